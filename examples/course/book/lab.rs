//! The page of a lab.

use crate::listing::{count, folded, listing};

/// Adds the given file, and folds the hints. Each hint is inside the previous one, so they open one
/// at a time.
pub fn page(text: &str, given: Option<&str>) -> String {
    let mut parts = text.split("\n## Hint ");
    let task = parts.next().unwrap_or_default().trim_end();
    let given = given.map_or(String::new(), |given| {
        let summary = format!("<code>given.rs</code>, {}", count(given.lines().count(), "line"));
        folded("given", &summary, &listing("given.rs", given, "given-"))
    });
    let hints: Vec<&str> = parts.collect();
    let nested = hints.iter().rev().fold(String::new(), |inner, hint| {
        let (number, body) = hint.split_once('\n').unwrap_or((hint, ""));
        folded("hint", &format!("Hint {number}"), &format!("{}\n\n{inner}", body.trim()))
    });
    format!("{task}\n\n{given}\n{nested}")
}
