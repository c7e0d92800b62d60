//! The generated parts of the pages of the steps.
//!
//! A page has prose and marks. A mark is a comment on a line of its own, and stands for a part that
//! follows from the sources: the tool `course` prints these parts, and the book shows them in the
//! place of the marks.
//!
//! ```text
//! <!-- log -->        the golden log of the step, `golden.trace` in its folder
//! <!-- change -->     the change from the step before
//! <!-- code -->       the code in full
//! <!-- panel 13 -->   the timeline of the log, with the state of the kernel at line 13
//! ```
//!
//! The folder of a step has the files that the step adds or changes. The others are those of earlier
//! steps: the list of modules in `kernel/mod.rs` has their paths.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

/// The number of steps.
pub const STEPS: u32 = 12;

/// A place on a page for a generated part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Log,
    Change,
    Code,
    /// The number of the line that the panel shows.
    Panel(u64),
}

/// Reads a line of a page as a mark.
pub fn mark(line: &str) -> Option<Mark> {
    let words = line.strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    match words.split_once(' ').unwrap_or((words, "")) {
        ("log", "") => Some(Mark::Log),
        ("change", "") => Some(Mark::Change),
        ("code", "") => Some(Mark::Code),
        ("panel", line) => line.parse().ok().map(Mark::Panel),
        _ => None,
    }
}

/// The change of one file from the step before.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// The path in the folder of the step, such as `kernel/turn.rs`.
    pub path: String,
    /// A unified diff.
    pub diff: String,
}

/// The checkout that this program was built from.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("Cargo.lock").exists()).expect("it is in a checkout")
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
/// Returns the path and why it cannot be read.
pub fn text(path: &str) -> Result<String, String> {
    let path = root().join("examples/course").join(path);
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The golden log of a step.
pub fn log(step: u32) -> String {
    read(&folder(step).join("golden.trace"))
}

/// The step that a path such as `../../step_07/kernel/io.rs` leads to.
fn step_of(path: &str) -> Option<u32> {
    path.split('/').find_map(|part| part.strip_prefix("step_")?.parse().ok())
}

/// The sources of a step by their paths in the crate, such as `kernel/io.rs`. Each has the step that
/// it is from. The list of modules is without paths, as in a crate that has all the files.
pub fn sources(step: u32) -> BTreeMap<String, (u32, String)> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir(folder(step)) else { return found };
    for entry in entries {
        let name = entry.expect("a folder of the checkout").file_name();
        let name = name.to_string_lossy().into_owned();
        if name.ends_with(".rs") {
            found.insert(name.clone(), (step, read(&folder(step).join(name))));
        }
    }
    let kernel = folder(step).join("kernel");
    let (mut list, mut path) = (String::new(), None);
    for line in read(&kernel.join("mod.rs")).lines() {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path = rest.strip_suffix("\"]").map(str::to_owned);
            continue;
        }
        list += &format!("{line}\n");
        let module = line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
        if let Some(name) = module {
            let file = path.take().unwrap_or_else(|| format!("{name}.rs"));
            let from = step_of(&file).unwrap_or(step);
            found.insert(format!("kernel/{name}.rs"), (from, read(&kernel.join(file))));
        }
    }
    found.insert("kernel/mod.rs".to_owned(), (step, list));
    found
}

/// The change of a step from the step before, file by file.
pub fn change(step: u32) -> Vec<FileChange> {
    let (before, after) = (sources(step.saturating_sub(1)), sources(step));
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort();
    paths.dedup();
    let mut changes = Vec::new();
    for path in paths {
        let old = before.get(path).map_or("", |(_, text)| text);
        let new = after.get(path).map_or("", |(_, text)| text);
        if old != new {
            let (old_name, new_name) = (format!("a/{path}"), format!("b/{path}"));
            let diff = TextDiff::from_lines(old, new);
            let diff =
                diff.unified_diff().context_radius(2).header(&old_name, &new_name).to_string();
            changes.push(FileChange { path: path.clone(), diff });
        }
    }
    changes
}
