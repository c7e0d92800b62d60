//! The examples as a user runs them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use testing::child;

/// Builds an example with the profile of this test and returns its path.
pub fn build(name: &str) -> PathBuf {
    build_all(&[name]).join(name)
}

/// Builds some examples and returns their folder.
pub fn build_all(names: &[&str]) -> PathBuf {
    build_with(names.iter().flat_map(|name| ["--example", name]))
}

/// Builds the examples of a package that is not built by default, and returns their folder.
pub fn build_of(package: &str) -> PathBuf {
    build_with(["--package", package, "--examples"].into_iter())
}

fn build_with<'a>(what: impl Iterator<Item = &'a str>) -> PathBuf {
    // The dependencies of the test itself are already present, so the network is not needed.
    let mut build = child::cargo();
    build.current_dir(crate::root());
    build.args(["build", "--quiet", "--offline"]);
    build.args(what);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let built = child::spawn_within(child::BUILD, &mut build).wait();
    assert!(built.unwrap().success());
    let deps = std::env::current_exe().unwrap();
    deps.parent().unwrap().parent().unwrap().join("examples")
}

/// Returns the names of the examples in a manifest, except those that are libraries.
fn names(manifest: &str) -> Vec<&str> {
    let parts = manifest.split("[[example]]").skip(1).filter(|part| !part.contains("crate-type"));
    let lines = parts.map(|part| part.lines().find_map(|line| line.strip_prefix("name = ")));
    lines.map(|name| name.expect("an example has a name").trim_matches('"')).collect()
}

/// Checks that each example of a package answers `--help`, and refuses an option that it does not
/// have, with one line and code 2. `folder` has the manifest of the package, and `package` is its
/// name if it is not built by default. Returns the number of the examples.
pub fn answer_help_and_refuse_what_is_wrong(folder: &str, package: Option<&str>) -> usize {
    let manifest = fs::read_to_string(crate::root().join(folder).join("Cargo.toml")).unwrap();
    let names = names(&manifest);
    let built = match package {
        Some(package) => build_of(package),
        None => build_all(&names),
    };
    for name in &names {
        let ask = |argument| child::output(Command::new(built.join(name)).arg(argument));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let helped = ask("--help");
        let (help, errors) = (text(&helped.stdout), text(&helped.stderr));
        assert_eq!((helped.status.code(), &*errors), (Some(0), ""), "{name}: {help}");
        assert!(help.contains("Usage: ") && help.contains("--help"), "{name}: {help}");
        let refused = ask("--no-such-option");
        let (said, error) = (text(&refused.stdout), text(&refused.stderr));
        assert_eq!((refused.status.code(), &*said), (Some(2), ""), "{name}: {error}");
        let wanted = "error: unexpected argument '--no-such-option' found";
        assert!(error.contains(wanted), "{name}: {error}");
        assert!(!error.contains("panicked"), "{name}: {error}");
    }
    names.len()
}
