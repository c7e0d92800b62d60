//! What the tool knows of a trace, and each of its commands as a function that gives text.

pub mod chain;
pub mod diff;
pub mod lanes;
pub mod life;
pub mod model;
pub mod page;
pub mod perfetto;
pub mod scopes;
pub mod stuck;
pub mod style;
pub mod tables;
pub mod waits;
