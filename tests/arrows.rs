//! The architecture, asserted like behaviour: which crate may know which, and who may touch what.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The names under `[dependencies]` of a member's manifest.
fn dependencies(member: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(member).join("Cargo.toml")).unwrap();
    let section = text.split("[dependencies]").nth(1).expect("it has dependencies");
    let section = section.split("\n[").next().unwrap();
    let names = section.lines().filter(|line| !line.trim().is_empty());
    names.map(|line| line.split(['.', ' ', '=']).next().unwrap().to_owned()).collect()
}

/// Every source file below a folder, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    found.sort();
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// Code lines: what a comment says does not count.
fn code(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn arrows_point_at_traps_and_nowhere_else() {
    assert_eq!(dependencies("traps"), ["pin-project-lite"]);
    assert_eq!(dependencies("net"), ["traps", "socket2", "httparse", "httpdate", "rustix"]);
    assert_eq!(dependencies("kernel"), ["traps", "mio", "libc", "log"]);
}

#[test]
fn net_does_not_know_the_kernel() {
    for (path, text) in sources("net/src") {
        assert!(!code(&text).contains("kernel::"), "kernel:: in {}", path.display());
        assert!(!code(&text).contains("traps::gate"), "the gate in {}", path.display());
    }
}

#[test]
fn only_the_real_machine_touches_the_world() {
    for word in ["mio::", "Instant::now", "SystemTime::now", "env::"] {
        for (path, text) in sources("kernel/src") {
            // The watchdog looks from outside, by the real clock.
            let allowed = ["real.rs", "signals.rs", "sys.rs"]
                .iter()
                .any(|file| path.ends_with(format!("machine/{file}")))
                || path.ends_with("watchdog.rs") && word == "Instant::now";
            assert!(allowed || !code(&text).contains(word), "{word} in {}", path.display());
        }
    }
}

#[test]
fn unsafe_lives_in_one_file() {
    for folder in ["traps/src", "net/src", "kernel/src"] {
        for (path, text) in sources(folder) {
            let allowed = path.ends_with("machine/sys.rs");
            let found = code(&text)
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == "unsafe");
            assert!(allowed || !found, "unsafe in {}", path.display());
        }
    }
    for member in ["traps", "net"] {
        let text = fs::read_to_string(root().join(member).join("src/lib.rs")).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{member}");
    }
}

#[test]
fn no_hash_map_can_reach_the_order_of_events() {
    for folder in ["traps/src", "net/src", "kernel/src"] {
        for (path, text) in sources(folder) {
            for word in ["HashMap", "HashSet"] {
                assert!(!code(&text).contains(word), "{word} in {}", path.display());
            }
        }
    }
}

#[test]
fn the_head_of_the_kernel_names_each_of_its_files() {
    let folder = root().join("kernel/src");
    let head = fs::read_to_string(folder.join("lib.rs")).unwrap();
    for (path, _) in sources("kernel/src") {
        if path.parent() == Some(&folder) && !path.ends_with("lib.rs") {
            let name = path.file_name().unwrap().to_string_lossy();
            assert!(head.contains(&format!("`{name}`")), "{name} is not in the reading list");
        }
    }
}
