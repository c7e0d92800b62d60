//! Sockets, streams and a minimal HTTP handler, made of traps.

#![forbid(unsafe_code)]

pub mod stream;
