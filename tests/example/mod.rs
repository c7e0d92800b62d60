//! The examples as a user runs them.

#![allow(dead_code, reason = "each user takes a part")]

use std::path::PathBuf;
use std::process::Command;

/// Builds an example with the profile of this test and gives its path.
pub fn build(name: &str) -> PathBuf {
    build_all(&[name]).join(name)
}

/// Builds some examples and gives their folder.
pub fn build_all(names: &[&str]) -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    // What the test itself was built from is there already: the network is not needed.
    let mut build = Command::new(cargo);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    build.args(["build", "--quiet", "--offline"]);
    build.args(names.iter().flat_map(|name| ["--example", name]));
    // Cargo tells a test about its package. A build script that asks for such a variable, like
    // that of ring, would run again, and all that depends on it would be built again.
    let of_package =
        |key: &String| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|s| key.starts_with(s));
    for key in std::env::vars().map(|(key, _)| key).filter(of_package) {
        build.env_remove(key);
    }
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    let deps = std::env::current_exe().unwrap();
    deps.parent().unwrap().parent().unwrap().join("examples")
}
