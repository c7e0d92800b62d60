//! Sockets, streams, processes and a small HTTP server, made of traps.
//!
//! - Sockets: a [`Listener`] and a [`StreamSocket`] are generic over a [`Family`] of addresses. The
//!   concrete types are [`TcpListener`] and [`TcpStream`], [`UnixListener`] and [`UnixStream`]. A
//!   [`UdpSocket`] and a [`UnixDatagram`] are each a [`DatagramSocket`]. Each converts from and to
//!   its type in `std`, and lends its descriptor ([`AsFd`](std::os::fd::AsFd)). [`datagrams`] has a
//!   network in memory, for tests of programs that use UDP.
//! - Streams: [`Stream`] is the interface of every byte stream. [`pipe`] is a stream in memory.
//!   [`BufReader`], [`Frames`], [`copy`] and [`copy_bidirectional`] work over any stream.
//!   [`WriteDeadline`] and [`MinRate`] guard against peers that stall.
//! - Other libraries: `interop`, with the features `futures-io`, `hyper` and `tokio-io`, converts
//!   streams in both directions. So everything here can run over TLS by rustls, and hyper over
//!   every stream.
//! - The program's own streams: [`stdio`] has its standard input and output.
//! - Servers: [`serve`](serve()) serves any protocol and ends when the kernel shuts down.
//!   [`http::serve`] serves HTTP. [`web`] has the parts for HTTP handlers, and a client.
//! - Processes: [`process`] has processes and their pipes, and processes in memory for tests.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `futures-io` | off | `interop`: the traits of `futures-io`, for rustls and others |
//! | `hyper` | off | `interop`: the traits of hyper, its timer and its executor |
//! | `inherited` | off | `inherited_listeners`: listeners that the parent process has opened |
//! | `json` | off | bodies of HTTP as JSON, both ways, by `serde` |
//! | `tokio-io` | off | `interop`: the traits of `tokio::io`, without a part of its runtime |
//!
//! # How an operation waits
//!
//! Every operation is tried first, and traps only if it would block (`try_io.rs`). A function that
//! can wait is a plain function that returns a future, so that the log names the line of its
//! caller. The exceptions are [`http`], [`serve`](serve()) and [`WriteDeadline`]. They wait on
//! behalf of a phase of the connection rather than of one call. For example, reading a body may
//! first have to write earlier responses. For these waits the log names the line in this crate,
//! which identifies the phase.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

/// As the macro of the crate `cfg_if`, whose name rustfmt knows. A system that this crate does not
/// run on gets the one sentence, and not the errors of all modules.
macro_rules! cfg_if {
    (if #[cfg($system:meta)] { $($item:item)* } else { $sentence:item }) => {
        $(#[cfg($system)] $item)*
        #[cfg(not($system))]
        $sentence
    };
}

cfg_if! { if #[cfg(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple"))] {

mod back_off;
mod buffer;
mod copy;
mod datagram_socket;
pub mod datagrams;
mod descriptors;
mod family;
mod frames;
pub mod guide {
    //! Pages to read: how to write a small HTTP service ([`services`]), the states of an HTTP
    //! connection ([`connection`]), and the tests behind each rule of HTTP ([`conformance`]).

    pub mod connection {
        #![doc = include_str!("guide/connection.md")]
    }
    pub mod conformance {
        #![doc = include_str!("guide/conformance.md")]
    }
    pub mod services {
        #![doc = include_str!("guide/services.md")]
    }
}
mod halves;
mod happy_eyeballs;
pub mod http;
#[cfg(feature = "inherited")]
mod inherited;
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
pub mod interop;
mod limits;
pub mod listener;
mod min_rate;
pub mod pipe;
pub mod process;
mod rate_meter;
mod record;
mod resolve;
mod serve;
mod socket;
pub mod stdio;
pub mod stream;
mod stream_socket;
mod system;
mod tcp;
mod throttle;
mod try_io;
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
pub use resolve::{ToAddress, resolve};
pub use serve::{Accepted, Connection, serve};
pub use socket::FileSender;
pub use stream::Stream;
pub use stream_socket::{
    OwnedReadHalf, OwnedWriteHalf, ReadHalf, StreamSocket, WriteHalf, WriteSide,
};
pub use tcp::TcpStream;
pub use unix::{UnixDatagram, UnixListener, UnixStream};
pub use write_deadline::WriteDeadline;

} else {
    compile_error!("expected Linux, macOS or FreeBSD: net needs Unix sockets and processes");
} }
