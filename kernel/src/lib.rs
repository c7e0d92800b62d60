//! t
pub mod trace;
