//! The examples as a user runs them.

use std::path::PathBuf;

use testing::child;

/// Builds an example with the profile of this test and returns its path.
pub fn build(name: &str) -> PathBuf {
    build_all(&[name]).join(name)
}

/// Builds some examples and returns their folder.
pub fn build_all(names: &[&str]) -> PathBuf {
    // What the test itself was built from is there already: the network is not needed.
    let mut build = child::cargo();
    build.current_dir(crate::root());
    build.args(["build", "--quiet", "--offline"]);
    build.args(names.iter().flat_map(|name| ["--example", name]));
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let built = child::spawn_within(child::BUILD, &mut build).wait();
    assert!(built.unwrap().success());
    let deps = std::env::current_exe().unwrap();
    deps.parent().unwrap().parent().unwrap().join("examples")
}
