//! t
pub mod trace;
#[allow(dead_code)]
mod timers;
