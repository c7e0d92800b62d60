//! The kernel of the course. Its file names and words are those of the real kernel.

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
mod timers;
mod turn;
mod verbs;
mod waits;

// The files of the kernel see each other's words.
use error::*;
use gate::*;
use io::*;
use log::*;
use machine::*;
use protocol::*;
use scopes::*;
use table::*;
use tasks::*;
use timers::*;
use waits::*;

pub use error::Error;
pub use interrupt::{Interrupt, Interruptible, Kind};
pub use io::{Direction, Io, Scripted, Source};
pub use machine::{Machine, Real, Sim, Time};
pub use net::{TcpListener, TcpStream};
pub use tasks::Task;
pub use turn::Kernel;
pub use verbs::{clock, note, sleep, spawn, timeout_after, yield_now};
