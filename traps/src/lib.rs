//! t
pub mod time;
