//! Sockets, streams, processes and a minimal HTTP handler, made of traps.
//!
//! [`TcpListener`] and [`TcpStream`], [`UnixListener`] and [`UnixStream`]: a [`Listener`] and a
//! [`StreamSocket`], each of a [`Family`] of addresses; [`UdpSocket`] and [`UnixDatagram`], which
//! are a [`DatagramSocket`]; [`Stream`], what the HTTP handler needs of either end, and [`pipe`], a
//! stream in memory; [`BufReader`] for lines, [`Frames`], [`copy`] and [`copy_bidirectional`] over
//! any stream; [`WriteDeadline`] and [`MinRate`] against peers that stall; [`serve`](serve()), a
//! server that ends when its kernel does, and [`http::serve`], one of HTTP; [`web`], what its
//! handlers are made of, and a client; [`process`], processes and their pipes.
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
mod datagram_socket;
mod descriptors;
mod family;
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
mod happy_eyeballs;
pub mod http;
#[cfg(feature = "inherited")]
mod inherited;
#[cfg(any(feature = "futures-io", feature = "hyper"))]
pub mod interop;
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
mod stream_socket;
mod tcp;
mod unix;
pub mod web;
mod write_deadline;

pub use buffer::{BufReader, Lines};
pub use copy::{copy, copy_bidirectional};
pub use datagram_socket::{DatagramSocket, UdpSocket};
pub use descriptors::raise_descriptor_limit;
pub use family::{Family, Inet, Unix};
pub use frames::Frames;
pub use halves::Split;
#[cfg(feature = "inherited")]
pub use inherited::{Inherited, inherited_listeners};
pub use listener::{Listener, TcpListener};
pub use min_rate::MinRate;
pub use resolve::resolve;
pub use serve::{Connection, Slot, serve};
pub use stream::Stream;
pub use stream_socket::{
    OwnedReadHalf, OwnedWriteHalf, ReadHalf, StreamSocket, WriteHalf, WriteSide,
};
pub use tcp::TcpStream;
pub use unix::{UnixDatagram, UnixListener, UnixStream};
pub use write_deadline::WriteDeadline;
