//! The kernel of the course. Its file names and words are those of the real kernel.

mod deadlines;
#[path = "../../step_08/kernel/error.rs"]
mod error;
mod gate;
#[path = "../../step_09/kernel/interrupt.rs"]
mod interrupt;
#[path = "../../step_08/kernel/io.rs"]
mod io;
#[path = "../../step_10/kernel/log.rs"]
mod log;
#[path = "../../given/machine.rs"]
mod machine;
#[path = "../../step_07/kernel/net.rs"]
mod net;
mod protocol;
mod run;
mod scopes;
#[path = "../../given/source.rs"]
mod source;
mod table;
#[path = "../../step_10/kernel/tasks.rs"]
mod tasks;
#[path = "../../given/text.rs"]
mod text;
#[path = "../../step_10/kernel/threads.rs"]
mod threads;
#[path = "../../step_02/kernel/time.rs"]
mod time;
#[path = "../../step_08/kernel/timers.rs"]
mod timers;
mod turn;
#[path = "../../step_09/kernel/verbs.rs"]
mod verbs;
#[path = "../../step_10/kernel/waits.rs"]
mod waits;
#[path = "../../step_10/kernel/wake_queue.rs"]
mod wake_queue;
mod words;

// The files of the kernel use each other's names.
use deadlines::*;
use error::*;
use gate::*;
use io::*;
use log::*;
use machine::*;
use protocol::*;
use scopes::*;
use source::*;
use table::*;
use tasks::*;
use text::*;
use threads::*;
use timers::*;
use verbs::*;
use waits::*;
use wake_queue::*;
use words::*;

pub use deadlines::ConnectionDeadline;
pub use error::Error;
pub use interrupt::{Interrupt, Interruptible, Kind};
pub use io::Io;
pub use machine::{Machine, Real, Sim};
pub use net::{TcpListener, TcpStream};
pub use source::{Direction, Scripted, Source};
pub use tasks::Task;
pub use threads::run_in_thread;
pub use time::Time;
pub use turn::Kernel;
pub use verbs::{clock, note, shield, sleep, spawn, timeout_after, yield_now};
