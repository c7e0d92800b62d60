//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that it returns, in order, until the connection ends. [`serve`] does this for all
//! connections of a listener.
//!
//! To read the source, begin with `connection`: the life of a connection, state by state, and every
//! status that the server sends by itself. Then follow a request:
//!
//! - `head` parses the head;
//! - `request_head` and `request` are what the handler sees, the second with the body, whose chunks
//!   `chunked` decodes;
//! - `answer` has the response, and writes it;
//! - `persists` decides whether the connection continues.
//!
//! Below these is `transport`, the stream of a busy connection with its waits for the peer, and
//! `input`, its input buffer; `phase` has the consequences of a wait that ended without the peer.
//! `config` has what all connections of a server share. `connections` lists the open connections,
//! and chooses the one that closes for a new one; `queues` has their order, and `place` is the part
//! of one connection in it. `memory` bounds the bodies and responses in memory. `access_log`
//! reports the responses. `limits` has the limits and the deadlines. `server` accepts, and
//! `handshake` makes the stream, for example by TLS.
//!
//! Routers and files for handlers, and a client, are in [`web`](crate::web). The page
//! [`conformance`](crate::guide::conformance) lists the rules of HTTP that the server keeps. There
//! is no HTTP/2. For TLS, [`serve_wrapped`] runs a handshake; the kernel's guide has a page.

mod access_log;
pub(crate) mod answer;
pub(crate) mod chunked;
mod config;
mod connection;
mod connections;
mod date;
#[cfg(test)]
mod fuzz_tests;
mod handshake;
pub(crate) mod head;
mod input;
mod limits;
pub(crate) mod memory;
mod persists;
mod phase;
mod place;
mod queues;
pub(crate) mod request;
mod request_head;
mod server;
mod transport;

#[cfg(doc)]
use crate::stream::Stream;

pub use access_log::Exchange;
pub use answer::{ErrorPage, InvalidHeader, Rejection, Response};
pub use config::Config;
pub use connection::{Handler, reject, serve_connection};
pub use head::{Method, Version};
pub use limits::{Deadlines, Limits};
pub use request::{Answer, Request};
pub use request_head::{RequestHead, RequestParts};
pub use server::{serve, serve_wrapped};
