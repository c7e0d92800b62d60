//! Stands in for `pages.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use similar::TextDiff;

pub const STEPS: u32 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Log,
    Change,
    Code,
    Panel(u64),
}

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

pub struct FileChange {
    pub path: String,
    pub diff: String,
}

fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("Cargo.lock").exists()).expect("it is in a checkout")
}

pub fn folder(step: u32) -> PathBuf {
    root().join(format!("examples/course/step_{step:02}"))
}

pub fn log(step: u32) -> String {
    if let Ok(text) = fs::read_to_string(folder(step).join("recorded.trace")) {
        return text;
    }
    let page = fs::read_to_string(folder(step).join("README.md")).unwrap();
    let (_, rest) = page.split_once("<!-- log -->\n\n```text\n").unwrap();
    rest.split_once("```\n\n<!-- /log -->").unwrap().0.to_owned()
}

pub fn sources(step: u32) -> BTreeMap<String, (u32, String)> {
    let mut found = BTreeMap::new();
    for part in ["", "kernel/"] {
        let Ok(entries) = fs::read_dir(folder(step).join(part)) else { continue };
        for entry in entries {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".rs") {
                let path = format!("{part}{name}");
                let text = fs::read_to_string(folder(step).join(&path)).unwrap();
                found.insert(path, (step, text));
            }
        }
    }
    found
}

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
