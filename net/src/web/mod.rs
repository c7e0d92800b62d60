//! Tools for HTTP handlers: a [`Router`], [`Files`], [`Events`], [`Blocking`] handlers.
//! With the feature `json`, requests and responses have bodies as JSON. Also a [`Client`].
//!
//! The page [`services`](crate::guide::services) shows them together.
//!
//! This module uses only the public parts of `http`, except for the parts that the client shares
//! with the server: the parser of heads, the chunked coding, and the grammar of
//! hosts.

mod blocking;
mod client;
mod client_request;
mod conditions;
mod events;
mod files;
mod form;
#[cfg(feature = "json")]
mod json;
mod owned_request;
mod router;

pub use blocking::{Blocking, ConcurrencyLimit};
pub use client::{Client, ClientResponse};
pub use client_request::ClientRequest;
pub use events::{Event, Events};
pub use files::Files;
pub use form::Form;
pub use owned_request::OwnedRequest;
pub use router::Router;
