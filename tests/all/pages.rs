//! The pages for newcomers: everything that they name exists, and each switch of the tests is in
//! the table of `tests/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const PAGES: [&str; 5] =
    ["README.md", "CONTRIBUTING.md", "SECURITY.md", "tests/README.md", "examples/README.md"];
/// Variables that the system, a shell, cargo or systemd sets; cargo also all with `CARGO_`.
const OF_OTHERS: [&str; 6] = ["HOME", "LISTEN_FDS", "LISTEN_PID", "PATH", "RUSTC", "TMPDIR"];

fn root() -> PathBuf {
    support::root().to_path_buf()
}

fn text(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files below a folder of the repository with this ending, without build output.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() || path.file_name().is_some_and(|name| name == "target") {
        } else if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_str().is_some_and(|path| path.ends_with(ending)) {
            found.push(path);
        }
    }
}

/// The files of the crates, the tests and the examples with this ending.
fn all(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["traps", "kernel", "net", "tests", "examples"] {
        files(&root().join(folder), ending, &mut found);
    }
    found
}

/// The words that follow `before` in a text, up to the first character that no name has.
fn names<'t>(text: &'t str, before: &str) -> BTreeSet<&'t str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let names = text.split(before).skip(1);
    let names = names.map(|rest| &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())]);
    names.filter(|name| !name.is_empty()).collect()
}

#[test]
fn each_link_leads_to_a_file() {
    for page in PAGES {
        let folder = root().join(page).parent().unwrap().to_owned();
        for link in text(page).split("](").skip(1) {
            let target = link.split([')', '#']).next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                assert!(folder.join(target).exists(), "{page} links to {target}");
            }
        }
    }
}

#[test]
fn each_command_names_an_example_and_a_package_that_exist() {
    let root = text("Cargo.toml");
    let manifests: String = all("Cargo.toml").into_iter().map(text).chain([root]).collect();
    let exist = names(&manifests, "name = \"");
    for page in PAGES {
        let text = text(page);
        // Capitals are a placeholder for a name.
        let is_name = |name: &&&str| name.chars().all(|c| !c.is_ascii_uppercase());
        for name in names(&text, "--example ").union(&names(&text, " -p ")).filter(is_name) {
            assert!(exist.contains(name), "{page}: nothing is named {name}");
        }
    }
}

#[test]
fn each_library_of_the_guide_has_a_test_or_a_reason() {
    let page = text("kernel/src/guide/libraries.md");
    let parts = page.split("\n## ");
    let mut rows = 0;
    for part in
        parts.filter(|part| part.starts_with("What runs") || part.starts_with("What cannot"))
    {
        for line in part.lines().filter(|line| line.starts_with("| ")).skip(1) {
            rows += 1;
            let tests = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            if tests.starts_with("none: ") {
                continue;
            }
            for part in tests.split("; ") {
                let (file, names) = part.split_once(": ").unwrap_or_else(|| panic!("{line}"));
                let source = text(file);
                for name in names.split(", ") {
                    let test = format!("#[test]\nfn {}()", name.trim_matches('`'));
                    assert!(source.contains(&test), "{file} has no test {name}");
                }
            }
        }
    }
    assert!(rows >= 15, "the tables are found: {rows} rows");
}

#[test]
fn each_variable_that_is_read_is_in_the_table_of_switches() {
    let table = text("tests/README.md");
    let mut read = BTreeSet::new();
    for path in all(".rs") {
        let source = text(&path);
        for call in ["env::var(", "env::var_os("] {
            for argument in source.split(call).skip(1) {
                let argument = argument.split(')').next().unwrap();
                // The name itself, or a constant of the same file.
                let value = format!("const {argument}: &str = ");
                let argument = source.split(&value).nth(1).unwrap_or(argument);
                if let Some(name) = argument.strip_prefix('"').and_then(|it| it.split('"').next()) {
                    read.insert(name.to_owned());
                }
            }
        }
    }
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    read.retain(|name| name.chars().all(is_part) && !name.starts_with("CARGO_"));
    read.retain(|name| !OF_OTHERS.contains(&name.as_str()));
    assert!(read.len() >= 10, "the calls are found: {read:?}");
    let missing =
        |name: &&String| !["`", "="].iter().any(|after| table.contains(&format!("`{name}{after}")));
    let missing: Vec<_> = read.iter().filter(missing).collect();
    assert!(missing.is_empty(), "tests/README.md does not name {missing:?}");
}
