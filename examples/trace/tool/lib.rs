//! The tool's model of a trace, and each command as a function that returns text.
//!
//! It reads a log from memory or through [`model::Text`], and opens no file except in [`sources`].
//! So it also runs in a browser.

pub mod chain;
pub mod changes;
pub mod debugger;
pub mod diff;
pub mod idle;
pub mod lanes;
pub mod life;
pub mod living;
pub mod locks;
pub mod longest;
pub mod look;
pub mod model;
pub mod near;
pub mod now;
pub mod pack;
pub mod page;
pub mod perfetto;
pub mod query;
pub mod reading;
pub mod scopes;
pub mod select;
pub mod slow;
pub mod sources;
pub mod state;
pub mod step;
pub mod stuck;
pub mod style;
pub mod summary;
pub mod tables;
pub mod tally;
pub mod tree;
pub mod waits;
pub mod whole;
