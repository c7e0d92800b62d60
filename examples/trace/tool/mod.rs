//! What the tool knows of a trace, and each of its commands as a function that gives text.

pub mod chain;
pub mod diff;
pub mod idle;
pub mod lanes;
pub mod life;
pub mod living;
pub mod longest;
pub mod look;
pub mod model;
pub mod now;
pub mod page;
pub mod perfetto;
pub mod slow;
pub mod stuck;
pub mod style;
pub mod summary;
pub mod tables;
pub mod tally;
pub mod tree;
