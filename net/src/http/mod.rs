//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that comes back, in order, until the connection ends. The parts are nouns, one file
//! each: `head`, `plain`, `target`, `fields` and `chunked` are pure functions over bytes; `inbox`
//! is what was read and not yet used; `wire` is the stream, what is to be written, and every wait;
//! `request` and `response` are what a handler sees, `outlet` how its answer goes out; `connection`
//! is the order of events, `busy` what a connection has meanwhile, `reading` how a request begins,
//! `settle` how it ends, `parting` how the connection does, `share` what it may have before others
//! have their turn; `seats` is what the server sees of all connections, `caps` what the log says of
//! limits that were hit. [`serve`] is all of it behind a listener. For handlers there are `router`,
//! `form`, `json`, and `blocking` for those that need threads, `files` with its `conditions`,
//! `events`. `client` is the other end, which sends a `call`. Which rules of HTTP the server keeps
//! is on a page of its own, [`conformance`](crate::guide::conformance).
//!
//! What is absent: no TLS, no HTTP/2, no routing framework.

mod blocking;
mod busy;
mod call;
mod caps;
mod caught;
mod chunked;
mod client;
mod conditions;
mod config;
mod connection;
mod date;
mod events;
mod fields;
mod files;
mod form;
#[cfg(test)]
mod fuzz_tests;
mod head;
mod host;
mod inbox;
mod json;
mod outlet;
mod parting;
mod phase;
mod plain;
mod reading;
mod request;
mod response;
mod router;
mod seats;
mod server;
mod settle;
mod share;
mod status;
mod target;
mod whole;
mod wire;

#[cfg(doc)]
use crate::stream::Stream;

pub use blocking::{Blocking, Entrance};
pub use call::Call;
pub use client::{Client, Reply};
pub use config::{Config, Deadlines, Limits};
pub use connection::{Handler, serve_connection};
pub use events::{Event, Events};
pub use files::Files;
pub use form::Form;
pub use head::{Method, Version};
pub use json::{Object, ToJson};
pub use parting::turn_away;
pub use request::{Answer, Request};
pub use response::{InvalidHeader, Response};
pub use router::{Found, Router};
pub use server::serve;
pub use whole::Whole;
