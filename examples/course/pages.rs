//! The generated parts of the pages of the steps.
//!
//! A page has prose and marks. A mark is a comment on a separate line, in place of a part that is
//! generated from the sources: the tool `course` prints these parts, and the book shows them in
//! place of the marks.
//!
//! ```text
//! <!-- log -->        the golden log of the step, `golden.trace` in its folder
//! <!-- change kernel/io.rs -->   the change from the step before, a part: these files
//! <!-- change -->     the change from the step before, the last part: the other files
//! <!-- code -->       the code in full
//! <!-- panel 13 -->   the timeline of the log, with the state of the kernel at line 13
//! <!-- play: race -->   the playground with this program, on any page of the book
//! <!-- checkout -->   up to the next mark: commands that the book does not show, because it shows
//!                     their results
//! ```
//!
//! The folder of a step has the files that the step adds or changes. The lists of modules, in
//! `main.rs` and `kernel/mod.rs`, have the paths of the others: they are from an earlier step, or
//! given.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

use crate::labs::root;

/// The number of steps.
pub const STEPS: u32 = 12;
/// The step of a file that several steps use, and that is in the folder `given`.
pub const GIVEN: u32 = 0;

/// The files of a step: the step that each is from, and its text.
pub type Sources = BTreeMap<String, (u32, String)>;

/// Whether a page does not explain the file, as its first line states.
pub fn is_given(text: &str) -> bool {
    text.starts_with("//! Given:")
}

/// A place on a page for a generated part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark<'l> {
    Log,
    /// The files of a part of the change, or nothing for all files that have no part yet.
    Change(&'l str),
    Code,
    /// The number of the line that the panel shows.
    Panel(u64),
    /// The name of a program of the playground.
    Play(&'l str),
    Checkout,
}

/// Reads a line of a page as a mark.
pub fn mark(line: &str) -> Option<Mark<'_>> {
    let words = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    match words.split_once(' ').unwrap_or((words, "")) {
        ("log", "") => Some(Mark::Log),
        ("change", files) => Some(Mark::Change(files)),
        ("code", "") => Some(Mark::Code),
        ("checkout", "") => Some(Mark::Checkout),
        ("panel", line) => line.parse().ok().map(Mark::Panel),
        ("play:", name) => Some(Mark::Play(name)),
        _ => None,
    }
}

/// The change of one file from the step before.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// The path in the folder of the step, such as `kernel/turn.rs`.
    pub path: String,
    /// Whether the page does not explain the file: it is given, or it is from an earlier step.
    pub is_given: bool,
    /// A unified diff.
    pub diff: String,
}

/// The folder of a step.
pub fn folder(step: u32) -> PathBuf {
    root().join(format!("examples/course/step_{step:02}"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The text of a file by its path in the folder of the course.
///
/// # Errors
///
/// Returns the path and the reason why it cannot be read.
pub fn text(path: &str) -> Result<String, String> {
    let path = root().join("examples/course").join(path);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The golden log of a step.
pub fn log(step: u32) -> String {
    read(&folder(step).join("golden.trace"))
}

/// A list of modules without the paths, and the modules with their paths.
fn modules(text: &str) -> (String, Vec<(&str, Option<&str>)>) {
    let (mut list, mut found, mut path) = (String::new(), Vec::new(), None);
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path = rest.strip_suffix("\"]");
            continue;
        }
        list += line;
        list.push('\n');
        if let Some(name) = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
            found.push((name, path.take()));
        }
    }
    (list, found)
}

/// The step that a path such as `../../step_07/kernel/io.rs` leads to, and the path in it.
fn in_step(path: &str) -> Option<(u32, &str)> {
    let (_, rest) = path.split_once("step_")?;
    let (number, path) = rest.split_once('/')?;
    Some((number.parse().ok()?, path))
}

/// Adds a file and the modules that it declares. The modules of a given file are not shown.
fn collect(found: &mut Sources, key: &str, from: u32, file: &Path) {
    let text = read(file);
    let (list, modules) = modules(&text);
    found.insert(key.to_owned(), (from, list));
    if is_given(&text) {
        return;
    }
    let (folder, place) = (file.parent().unwrap_or(file), key.rsplit_once('/'));
    let place = place.map_or(String::new(), |(folder, _)| format!("{folder}/"));
    for (name, path) in modules {
        let (plain, nested) = (format!("{name}.rs"), format!("{name}/mod.rs"));
        let is_nested = path.is_none() && folder.join(&nested).exists();
        let own = if is_nested { nested } else { plain };
        match path.map(|path| (path, in_step(path))) {
            None => collect(found, &format!("{place}{own}"), from, &folder.join(&own)),
            Some((path, Some((step, key)))) => collect(found, key, step, &folder.join(path)),
            Some((path, None)) => {
                collect(found, &format!("{place}{own}"), GIVEN, &folder.join(path))
            }
        }
    }
}

/// Returns the sources of a step by their paths in its crate, such as `kernel/io.rs`. Each has the
/// step that it is from, or [`GIVEN`]. The lists of modules are without paths, as in a crate that
/// has all the files. Before the first step there is nothing.
pub fn sources(step: u32) -> Sources {
    let mut found = Sources::new();
    if step > 0 {
        collect(&mut found, "main.rs", step, &folder(step).join("main.rs"));
    }
    found
}

/// The change of a step from the step before, file by file, in the parts of its page. What the page
/// does not explain comes last. Step 1 has no such parts: its change is the whole code.
///
/// # Panics
///
/// Panics if a mark of the page names a file that has not changed.
pub fn change(step: u32) -> Vec<Vec<FileChange>> {
    let page = read(&folder(step).join("README.md"));
    let mut changes = changes(step);
    let mut parts = Vec::new();
    for line in page.lines() {
        let Some(Mark::Change(files)) = mark(line) else { continue };
        if files.is_empty() {
            changes.sort_by_key(|file| file.is_given);
            parts.push(std::mem::take(&mut changes));
            continue;
        }
        let take = |path| {
            let place = changes.iter().position(|file| file.path == path);
            changes.remove(place.unwrap_or_else(|| panic!("step {step} does not change {path}")))
        };
        parts.push(files.split(' ').map(take).collect());
    }
    if !changes.is_empty() {
        parts.push(changes);
    }
    parts
}

fn changes(step: u32) -> Vec<FileChange> {
    let (before, after) = (sources(step - 1), sources(step));
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut changes = Vec::new();
    for path in paths {
        let old = before.get(path).map_or("", |(_, text)| text);
        let (from, new) = after.get(path).map_or((step, ""), |(from, text)| (*from, text));
        if old != new {
            let (old_name, new_name) = (format!("a/{path}"), format!("b/{path}"));
            let diff = TextDiff::from_lines(old, new);
            let diff =
                diff.unified_diff().context_radius(2).header(&old_name, &new_name).to_string();
            let is_given = from != step || is_given(new);
            changes.push(FileChange { path: path.clone(), is_given, diff });
        }
    }
    changes
}
