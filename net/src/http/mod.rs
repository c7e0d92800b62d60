//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that comes back, in order, until the connection ends. [`serve`] is that behind a
//! listener.
//!
//! To read the source, begin with `connection`: the life of a connection in order, and every status
//! that the server sends by itself. Below it, `line` is what there is of a connection, `transport`
//! the stream with its waits, `writer` how an answer goes out, `closing` how a connection ends,
//! `connections` all that are open. `parse`, `target`, `fields`, `class` and `chunked` are pure
//! functions over bytes.
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
