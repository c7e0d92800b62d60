//! The kernel of the course. Its file names and words are those of the real kernel.

mod deadlines;
mod error;
mod gate;
mod interrupt;
mod io;
mod log;
mod machine;
mod net;
mod protocol;
mod run;
mod scopes;
mod table;
mod tasks;
mod threads;
mod timers;
mod turn;
mod verbs;
mod waits;
mod wake_queue;

// The files of the kernel see each other's words.
use deadlines::*;
use error::*;
use gate::*;
use io::*;
use log::*;
use machine::*;
use protocol::*;
use scopes::*;
use table::*;
use tasks::*;
use threads::*;
use timers::*;
use verbs::*;
use waits::*;
use wake_queue::*;

pub use deadlines::ConnectionDeadline;
pub use error::Error;
pub use interrupt::{Interrupt, Interruptible, Kind};
pub use io::{Direction, Io, Scripted, Source};
pub use machine::{Machine, Real, Sim, Time};
pub use net::{TcpListener, TcpStream};
pub use tasks::Task;
pub use threads::run_in_thread;
pub use turn::Kernel;
pub use verbs::{clock, note, shield, sleep, spawn, timeout_after, yield_now};
