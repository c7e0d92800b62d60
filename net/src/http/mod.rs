//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that comes back, in order, until the connection ends. The parts are nouns, one file
//! each: `head`, `target`, `fields` and `chunked` are pure functions over bytes; `inbox` is what
//! was read and not yet used; `wire` is the stream, what is to be written, and every wait;
//! `request` and `response` are what a handler sees, `outlet` how its answer goes out; `connection`
//! is the order of events, `parting` how it ends, `share` what it may have before others have their
//! turn; `seats` is what the server sees of all connections, `caps` what the log says of limits
//! that were hit. [`serve`] is all of it behind a listener. Which rules of HTTP it keeps is on a
//! page of its own, [`conformance`](crate::guide::conformance).
//!
//! What is absent: no TLS, no HTTP/2, no routing framework.

mod caps;
mod chunked;
mod config;
mod connection;
mod date;
mod fields;
#[cfg(test)]
mod fuzz_tests;
mod head;
mod host;
mod inbox;
mod outlet;
mod parting;
mod phase;
mod request;
mod response;
mod seats;
mod server;
mod share;
mod status;
mod target;
mod wire;

#[cfg(doc)]
use crate::stream::Stream;

pub use config::{Config, Deadlines, Limits};
pub use connection::{Handler, serve_connection};
pub use head::{Method, Version};
pub use parting::turn_away;
pub use request::{Answer, Request};
pub use response::{InvalidHeader, Response};
pub use server::serve;
