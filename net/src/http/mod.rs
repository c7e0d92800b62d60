//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that it returns, in order, until the connection ends. [`serve`] does this for all
//! connections of a listener.
//!
//! To read the source, begin with `connection`: the life of a connection, state by state, and every
//! status that the server sends by itself. Then follow a request:
//!
//! - `grammar` parses the head, and decodes a chunked body;
//! - `request_head` and `request` are what the handler sees, the second with the body;
//! - `handler` runs the handler, and `respond` ends the request with its result;
//! - `response` is the response, and `writer` writes it;
//! - `persists` decides whether the connection continues.
//!
//! Below these is `transport`, the stream of a busy connection with its waits for the peer; `phase`
//! has the consequences of a wait that took too long. `config` has what all connections of a server
//! share, and `limits` the limits and the deadlines. `server` accepts, and `handshake` makes the
//! stream, for example by TLS. `guard` bounds what all clients together can cost: the connections,
//! the bodies and responses in memory, and the lines in the log.
//!
//! Routers and files for handlers, and a client, are in [`web`](crate::web). The page
//! [`conformance`](crate::guide::conformance) lists the rules of HTTP that the server keeps. There
//! is no HTTP/2. For TLS, [`serve_wrapped`] runs a handshake; the kernel's guide has a page.

mod buffers;
mod config;
mod connection;
#[cfg(test)]
mod fuzz_tests;
pub(crate) mod grammar;
pub(crate) mod guard;
mod handler;
mod handshake;
mod input;
mod limits;
mod persists;
mod phase;
pub(crate) mod request;
mod request_head;
mod respond;
pub(crate) mod response;
mod server;
mod transport;
mod writer;

#[cfg(doc)]
use crate::stream::Stream;

pub use config::Config;
pub use connection::{reject, serve_connection};
pub use grammar::head::{Method, Version};
pub use guard::access_log::Exchange;
pub use handler::Handler;
pub use limits::{Deadlines, Limits};
pub use request::{Answer, Request};
pub use request_head::{RequestHead, RequestParts};
pub use response::{ErrorPage, InvalidHeader, Rejection, Response};
pub use server::{serve, serve_wrapped};
