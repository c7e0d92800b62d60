//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that comes back, in order, until the connection ends. [`serve`] is that behind a
//! listener.
//!
//! To read the source, begin with `connection`: the life of a connection in order, and every status
//! that the server sends by itself. It is a loop: a connection is busy as long as something is
//! here, and then waits for the first byte of the next request. Follow a request from there:
//!
//! - `busy`, what a connection has while it is busy; `read_head`, how the next head is read;
//! - `handling`, how the handler is run; `request`, what it sees, the body included;
//! - `finish`, what is left when the handler has ended; `writer`, how an answer goes out;
//!   `response`, what an answer is; `closing`, how a connection ends.
//!
//! Below these is `transport`, the stream of a busy connection with its waits for the peer. Beside
//! them, `connections` knows all that are open and which of them closes for a new one. `memory`
//! bounds the bodies in memory, `limits` and `deadlines` say how much a peer may send and how long
//! it may take, and an access log is told an `exchange`. `server` accepts. `parse`, `class`,
//! `fields`, `target`, `chunked`, `head`, `status` and `date` neither read nor wait.
//!
//! What handlers are made of, and a client, is in [`web`](crate::web). Which rules of HTTP the
//! server keeps is on a page of its own, [`conformance`](crate::guide::conformance). There is no
//! TLS and no HTTP/2.

mod answer;
mod buffers;
mod busy;
pub(crate) mod chunked;
pub(crate) mod class;
mod closing;
mod config;
mod connection;
mod connections;
mod date;
mod deadlines;
mod exchange;
mod fields;
mod finish;
#[cfg(test)]
mod fuzz_tests;
mod gone;
mod handler;
mod handling;
pub(crate) mod head;
mod limits;
mod memory;
mod parse;
mod read_head;
pub(crate) mod request;
pub(crate) mod response;
mod server;
mod status;
pub(crate) mod target;
mod transport;
mod writer;

#[cfg(doc)]
use crate::stream::Stream;

pub use answer::Answer;
pub use config::Config;
pub use connection::{serve_connection, turn_away};
pub use deadlines::Deadlines;
pub use exchange::Exchange;
pub use handler::Handler;
pub use head::{Method, Version};
pub use limits::Limits;
pub use request::Request;
pub use response::{InvalidHeader, Response};
pub use server::serve;
pub use writer::ErrorPage;
