//! The kernel of the course. Its file names and words are those of the real kernel.

#[path = "../../step_08/kernel/error.rs"]
mod error;
#[path = "../../step_07/kernel/gate.rs"]
mod gate;
#[path = "../../step_09/kernel/interrupt.rs"]
mod interrupt;
#[path = "../../step_08/kernel/io.rs"]
mod io;
mod log;
#[path = "../../given/machine.rs"]
mod machine;
#[path = "../../step_07/kernel/net.rs"]
mod net;
mod protocol;
mod run;
#[path = "../../step_09/kernel/scopes.rs"]
mod scopes;
#[path = "../../given/source.rs"]
mod source;
mod table;
mod tasks;
#[path = "../../given/text.rs"]
mod text;
mod threads;
#[path = "../../step_02/kernel/time.rs"]
mod time;
#[path = "../../step_08/kernel/timers.rs"]
mod timers;
mod turn;
#[path = "../../step_09/kernel/verbs.rs"]
mod verbs;
mod waits;
mod wake_queue;
mod words;

// The files of the kernel use each other's names.
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
use waits::*;
use wake_queue::*;
use words::*;

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
