//! What the oracle finds.

use std::fmt;

use super::Seq;

/// A promise that a trace breaks, and the line that breaks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The line.
    pub seq: Seq,
    /// The rule, one word from the list in `grammar.md`.
    pub rule: &'static str,
    /// What is wrong, in words.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:04} {}: {}", self.seq, self.rule, self.what)
    }
}

impl std::error::Error for Violation {}
