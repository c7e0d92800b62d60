//! The code that servers and their clients share, in addition to that of all examples.

#![allow(dead_code, reason = "each example uses a part")]

#[path = "mod.rs"]
mod base;

pub mod access;
pub mod http_flags;
pub mod http_lines;
pub mod kernel_page;
pub mod server;

pub use base::*;
