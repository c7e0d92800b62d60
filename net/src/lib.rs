//! Sockets, streams, processes and a minimal HTTP handler, made of traps.
//!
//! [`TcpListener`] and [`TcpStream`]; [`Stream`], what the HTTP handler needs of either end, and
//! [`pipe`], a stream in memory; [`WriteDeadline`] and [`MinRate`] against peers that stall;
//! [`http::serve`], a server that ends when its kernel does; [`web`], what its handlers are made
//! of, and a client; [`process`], processes and their pipes.
//!
//! An operation is tried first and traps only when it would block (`attempt.rs`). What waits is a
//! plain function returning a future, so that the log names the line that called it. Not so in
//! [`http`] and [`WriteDeadline`], whose waits are those of a phase and not of one call (to read a
//! body may first write the answers before it): there the log names the line of this crate that
//! waits, which tells the phase.

#![forbid(unsafe_code)]

mod attempt;
mod back_off;
mod buffer;
mod descriptors;
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
pub mod http;
#[cfg(any(feature = "futures-io", feature = "hyper"))]
pub mod interop;
mod limits;
pub mod listener;
mod min_rate;
mod pace;
pub mod pipe;
pub mod process;
mod resolve;
mod socket;
pub mod stream;
mod tcp;
pub mod web;
mod write_deadline;

pub use buffer::BufReader;
pub use descriptors::raise_descriptor_limit;
pub use listener::TcpListener;
pub use min_rate::MinRate;
pub use resolve::resolve;
pub use stream::Stream;
pub use tcp::{ReadHalf, TcpStream, WriteHalf};
pub use write_deadline::WriteDeadline;
