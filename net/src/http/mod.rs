//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that comes back, in order, until the connection ends. [`serve`] is that behind a
//! listener.
//!
//! To read the source, begin with `connection`: the life of a connection in order, and every status
//! that the server sends by itself. Below it, `line` is what there is of a connection, `transport`
//! the stream with its waits, `writer` how an answer goes out, `closing` how a connection ends,
//! `connections` all that are open. `parse`, `plain`, `target`, `fields` and `chunked` are pure
//! functions over bytes.
//!
//! For handlers there are [`Router`], [`Form`], [`Object`], [`Blocking`], [`Files`] and [`Events`];
//! [`Client`] is the other end. Which rules of HTTP the server keeps is on a page of its own,
//! [`conformance`](crate::guide::conformance). There is no TLS and no HTTP/2.

mod answer;
mod at_once;
mod blocking;
mod buffers;
mod call;
mod chunked;
mod client;
mod closing;
mod conditions;
mod config;
mod connection;
mod connections;
mod date;
mod deadlines;
mod events;
mod fields;
mod files;
mod finish;
mod form;
#[cfg(test)]
mod fuzz_tests;
mod gone;
mod handler;
mod head;
mod json;
mod limits;
mod line;
mod parse;
mod plain;
mod read_head;
mod request;
mod response;
mod rooms;
mod router;
mod server;
mod status;
mod target;
mod transport;
mod whole;
mod writer;

#[cfg(doc)]
use crate::stream::Stream;

pub use answer::Answer;
pub use blocking::{Blocking, Entrance};
pub use call::Call;
pub use client::{Client, Reply};
pub use closing::turn_away;
pub use config::Config;
pub use connection::serve_connection;
pub use deadlines::Deadlines;
pub use events::{Event, Events};
pub use files::Files;
pub use form::Form;
pub use handler::Handler;
pub use head::{Method, Version};
pub use json::{Object, ToJson};
pub use limits::Limits;
pub use request::Request;
pub use response::{InvalidHeader, Response};
pub use router::{Found, Router};
pub use server::serve;
pub use whole::Whole;
