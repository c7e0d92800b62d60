//! The log: what happened, as types, as text, and back.
pub mod event;
