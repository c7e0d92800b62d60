//! The log as text: a reader of lines, the cause of each line, and the oracle.
//!
//! | file | is |
//! |---|---|
//! | `line.rs` | a line: its columns, its verb, the words and the `key=value` of its detail |
//! | `causes.rs` | the cause of a line |
//! | `check.rs` | the oracle over a whole trace: the numbers and causes of lines |
//! | `lives.rs` | the part about the things that live in a trace |
//! | `queue.rs` | the part about the order in which tasks run |
//! | `primitives.rs` | the part about primitives and their holders |
//! | `fields.rs` | the part about scopes, holders and readiness, against the state |
//! | `spans.rs` | which `enter` a `leave` belongs to |
//! | `mask.rs` | `*` for times |
//! | `state/` | the state of the kernel at a line |
//!
//! [`kernel::trace`] is the grammar.
//!
//! ```
//! use testing::trace::{check, trace};
//!
//! let ran = testing::run(traps::sleep(std::time::Duration::from_secs(1)));
//! let lines = trace(&ran.trace).unwrap();
//! assert_eq!(check(&lines), Ok(()));
//! let sleep = lines.iter().find(|line| line.verb == "block" && line.word(0) == "sleep").unwrap();
//! assert_eq!((sleep.name(), sleep.word(1), sleep.key("until")), ("main", "1s", Some("1.000000")));
//! ```

mod causes;
mod check;
mod fields;
mod flight;
mod line;
mod lives;
mod mask;
mod primitives;
mod queue;
mod spans;
pub mod state;

pub use causes::{Behind, Causes};
pub use check::{Checker, Violation, check};
pub use flight::Flight;
use kernel::trace::Seq;
pub use line::{Line, ParseError, TraceError, line, span, trace};
pub use mask::{MEASURED, mask_times};
pub use spans::Spans;
pub use state::{State, View};

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod line_tests;
