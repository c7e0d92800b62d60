//! What stands on the HTTP handler and could be someone else's: a [`Router`], [`Files`],
//! [`Events`], [`Blocking`] handlers, JSON, and a [`Client`].
//!
//! It uses `http` as any program may, but for what the client shares with the server: the classes
//! of bytes, the chunked coding, and the grammar of hosts.

mod blocking;
mod call;
mod client;
mod conditions;
mod events;
mod files;
mod form;
mod json;
mod router;
mod whole;

pub use blocking::{Blocking, Entrance};
pub use call::Call;
pub use client::{Client, Reply};
pub use events::{Event, Events};
pub use files::Files;
pub use form::Form;
pub use json::{Object, ToJson};
pub use router::{Found, Router};
pub use whole::Whole;
