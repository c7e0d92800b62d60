//! A small HTTP/1.1 server over any [`Stream`]: one connection, one task.
//!
//! [`serve_connection`] reads heads, lends each [`Request`] to a [`Handler`] and writes the
//! [`Response`] that it returns, in order, until the connection ends. [`serve`] does this for all
//! connections of a listener.
//!
//! This is a hardened handler. A plain one is in step 12 of the course
//! (`examples/course/step_12/http.rs`): 80 lines that read a head, call a function and write its
//! response. It lacks these protections:
//!
//! | hardening | against | in |
//! |---|---|---|
//! | one strict grammar; a message that can be read in two ways is refused | request smuggling through a proxy | `grammar` |
//! | a bound on each part of a head, on chunk sizes, extensions and trailers | a head without an end | `grammar`, `limits` |
//! | a deadline for each wait, and a minimum rate for bodies and responses | a client that sends or reads a byte a minute | `transport`, `phase` |
//! | the bodies and large responses of all clients share one account | many clients with a large body each | `guard::memory` |
//! | a bound on connections; above it, the connection that has waited longest closes | a flood of connections | `guard::connections` |
//! | a client yields to the others after some pipelined requests | one client that starves the others | `connection` |
//! | a look at the client while its handler works | work for clients that have left | `handler` |
//! | the rest of a body is read or the connection closes, by one decision | the next request read out of a body | `persists`, `respond` |
//! | a wait for the client before the close | a response that a reset destroys before it is read | `connection` |
//! | a reset if a response broke off | half a response taken for a whole one | `connection` |
//! | a panic or an error of a handler is a response | one bad request that ends the server | `handler`, `respond` |
//! | a line a second for what clients can cause | a log that fills the disk | `guard::caps` |
//! | a drain: what was sent before the end is answered | requests lost at each deployment | `guard::connections`, `persists` |
//!
//! To read the source, begin with `state`, the states of a connection, and `connection`, its life
//! from state to state, with every status that the server sends by itself. Then follow a request:
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
//! is no HTTP/2: hyper has it, over the same streams. For TLS, [`serve_wrapped`] runs a handshake;
//! the kernel's guide has a page.

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
mod state;
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
pub use request::{BodyWriter, Request};
pub use request_head::{RequestHead, RequestParts};
pub use response::{Body, ErrorPage, InvalidHeader, Rejection, Response};
pub use server::{serve, serve_wrapped};
