//! Sockets, streams, processes and a minimal HTTP handler, made of traps.
//!
//! [`TcpListener`] and [`TcpStream`]; [`Stream`], what the HTTP handler needs of either end, and
//! [`pipe`], a stream in memory; [`BufReader`] for lines, [`Frames`], [`copy`] and
//! [`copy_bidirectional`] over any stream; [`WriteDeadline`] and [`MinRate`] against peers that
//! stall; [`serve`](serve()), a server that ends when its kernel does, and [`http::serve`], one of
//! HTTP; [`web`], what its handlers are made of, and a client; [`process`], processes and their
//! pipes.
//!
//! An operation is tried first and traps only when it would block (`attempt.rs`). What waits is a
//! plain function returning a future, so that the log names the line that called it. Not so in
//! [`http`], [`serve`](serve()) and [`WriteDeadline`], whose waits are those of a phase and not of
//! one call (to read a body may first write the answers before it): there the log names the line
//! of this crate that waits, which tells the phase.

#![forbid(unsafe_code)]

mod attempt;
mod back_off;
mod buffer;
mod copy;
mod descriptors;
mod frames;
pub mod guide {
    //! Pages to read: the states of an HTTP connection ([`connection`]), and which test holds which
    //! rule of HTTP ([`conformance`]).

    pub mod connection {
        #![doc = include_str!("guide/connection.md")]
    }
    pub mod conformance {
        #![doc = include_str!("guide/conformance.md")]
    }
}
mod halves;
pub mod http;
mod limits;
pub mod listener;
mod min_rate;
mod pace;
pub mod pipe;
pub mod process;
mod resolve;
mod serve;
mod socket;
pub mod stream;
mod tcp;
pub mod web;
mod write_deadline;

pub use buffer::{BufReader, Lines};
pub use copy::{copy, copy_bidirectional};
pub use descriptors::raise_descriptor_limit;
pub use frames::Frames;
pub use halves::Split;
pub use listener::TcpListener;
pub use min_rate::MinRate;
pub use resolve::resolve;
pub use serve::{Connection, Slot, serve};
pub use stream::Stream;
pub use tcp::{ReadHalf, TcpStream, WriteHalf};
pub use write_deadline::WriteDeadline;
