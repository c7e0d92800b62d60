//! The page of a lab.

use crate::listing::folded;

/// Folds the hints: each is inside the one before, so that they open one at a time.
pub fn fold_hints(text: &str) -> String {
    let mut parts = text.split("\n## Hint ");
    let task = parts.next().unwrap_or_default().trim_end();
    let hints: Vec<&str> = parts.collect();
    let nested = hints.iter().rev().fold(String::new(), |inner, hint| {
        let (number, body) = hint.split_once('\n').unwrap_or((hint, ""));
        folded("hint", &format!("Hint {number}"), &format!("{}\n\n{inner}", body.trim()))
    });
    format!("{task}\n\n{nested}")
}
