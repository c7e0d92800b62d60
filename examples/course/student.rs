//! The crate of a lab: what `start` writes for the student, and `check` for itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::labs::{Kind, Lab, root};
use crate::pages;

/// The crates of a lab on the real kernel, where the repository has them. A lab that changes the
/// kernel has copies of them.
pub const CRATES: [(&str, &str); 3] =
    [("traps", "traps"), ("kernel", "kernel"), ("testing", "tests/testing")];

/// A lab about a server uses this one too.
const NET: (&str, &str) = ("net", "net");

/// Others that the kernel of a step may use.
const OF_STEPS: [&str; 4] = ["mio", "slab", "httparse", "ctrlc"];

/// The files that the unit tests of a copied crate use.
const OF_TESTS: &str = "\n[dev-dependencies]\nproptest.workspace = true\n";

/// The first argument is the seed of a scenario.
const MAIN: &str = "
fn main() {
    let seed = std::env::args().nth(1).and_then(|seed| seed.parse().ok());
    given::main(seed.unwrap_or(0));
}
";

/// The largest file that a student may hand in, in bytes.
pub const LARGEST: u64 = 1 << 20;

/// Writes a file unless it has this text already: cargo builds an unchanged file only once.
pub fn put(path: &Path, text: impl AsRef<[u8]>) -> Result<(), String> {
    let text = text.as_ref();
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(path);
    let done = fs::create_dir_all(folder).and_then(|()| fs::write(path, text));
    done.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Makes a folder the same as another, without `target`.
pub fn mirror(from: &Path, to: &Path) -> Result<(), String> {
    let names = entries(from)?;
    for old in entries(to).unwrap_or_default().iter().filter(|old| !names.contains(old)) {
        let old = to.join(old);
        let done = if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) };
        done.map_err(|error| format!("cannot remove {}: {error}", old.display()))?;
    }
    for name in names.iter().filter(|name| *name != "target") {
        let (from, to) = (from.join(name), to.join(name));
        let found = fs::symlink_metadata(&from);
        match found.map_err(|error| format!("cannot read {}: {error}", from.display()))? {
            found if found.is_dir() => mirror(&from, &to)?,
            found if found.is_file() && found.len() > LARGEST => {
                return Err(format!("{} has more than {} KiB", from.display(), LARGEST >> 10));
            }
            found if found.is_file() => put(&to, read(&from)?)?,
            // A link may lead anywhere, and opening a pipe would block.
            _ => return Err(format!("{} is neither a file nor a folder", from.display())),
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// The names in a folder, in their order.
pub fn entries(folder: &Path) -> Result<Vec<String>, String> {
    let named = |error| format!("cannot read {}: {error}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(named)? {
        names.push(entry.map_err(named)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Writes the crate of a lab, without the student's part, and the files to read. A lab that changes
/// the kernel is a workspace, which has the `others` too.
pub fn write_crate(lab: &Lab, folder: &Path, package: &str, others: &[&str]) -> Result<(), String> {
    if lab.kind == Kind::Answer {
        return Ok(());
    }
    let mut modules = String::new();
    let mut of_step = String::new();
    let scenario = lab.text("scenario.rs");
    if scenario.contains("crate::draw") {
        put(&folder.join("src/draw.rs"), include_str!("draw.rs"))?;
        modules += "mod draw;\n";
    }
    put(&folder.join("src/given.rs"), lab.text("given.rs"))?;
    modules += "mod given;\n";
    if let Kind::Step(step) = lab.kind {
        of_step = copy_step(step, folder)?;
        modules += "#[allow(dead_code, unused_imports)]\nmod kernel;\n";
    }
    if lab.folder.join("skeleton.rs").exists() {
        modules += "mod lab;\n";
    }
    if lab.has_scenarios() {
        put(&folder.join("src/scenario.rs"), scenario)?;
        modules += "mod scenario;\n";
    }
    put(&folder.join("src/main.rs"), modules + MAIN)?;
    put(&folder.join("Cargo.toml"), manifest(lab, package, &of_step, others)?)?;
    // The versions that the repository was built with are here already.
    if !folder.join("Cargo.lock").exists() {
        put(&folder.join("Cargo.lock"), read(&root().join("Cargo.lock"))?)?;
    }
    Ok(())
}

/// Writes the kernel of a step as plain files. Returns the dependencies that it has, as lines of a
/// manifest.
fn copy_step(step: u32, folder: &Path) -> Result<String, String> {
    let mut text = String::new();
    for (path, (_, file)) in pages::sources(step) {
        if path.starts_with("kernel/") {
            put(&folder.join("src").join(path), &file)?;
            text += &file;
        }
    }
    let all = String::from_utf8_lossy(&read(&root().join("Cargo.toml"))?).into_owned();
    let is_used = |name: &&&str| text.contains(&format!("{name}::"));
    let line = |name: &str| all.lines().find(|line| line.starts_with(&format!("{name} = ")));
    let lines = OF_STEPS.iter().filter(is_used).filter_map(|name| line(name));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

fn manifest(lab: &Lab, package: &str, of_step: &str, others: &[&str]) -> Result<String, String> {
    let is_patched = lab.kind == Kind::Patched;
    let dependency = |(name, path): (&str, &str)| {
        let path = if is_patched { PathBuf::from(name) } else { root().join(path) };
        format!("{name} = {{ package = \"trapline-{name}\", path = {path:?} }}\n")
    };
    // Building a crate that no file of the lab names would only delay the first check.
    let crates = if matches!(lab.kind, Kind::Step(_)) { &[][..] } else { &CRATES };
    let net = lab.text("given.rs").contains("net::").then_some(NET);
    let dependencies: String = crates.iter().copied().chain(net).map(dependency).collect();
    let workspace = if is_patched { workspace(others)? } else { "[workspace]\n".to_owned() };
    // A check of the crates builds them each time, and prints no backtrace.
    let debug = if others.is_empty() { "line-tables-only" } else { "none" };
    Ok(format!(
        "\
[package]
name = \"{package}\"
version = \"0.0.0\"
edition = \"2024\"
publish = false

[dependencies]
{dependencies}{of_step}
[profile.dev]
debug = {debug:?}

# A workspace of its own, wherever this folder lies.
{workspace}"
    ))
}

/// The head of the repository's own manifest, for copies of its crates.
fn workspace(others: &[&str]) -> Result<String, String> {
    let text = String::from_utf8_lossy(&read(&root().join("Cargo.toml"))?).into_owned();
    let head = text.split("\n[package]").next().unwrap_or_default();
    let (_, head) = head.split_once("\nresolver = ").unwrap_or_default();
    let head = head.replace("\"tests/testing\"", "\"testing\"");
    let members: Vec<&str> =
        CRATES.iter().map(|(name, _)| *name).chain(others.iter().copied()).collect();
    Ok(format!("[workspace]\nmembers = {members:?}\nresolver = {head}\n"))
}

/// The manifest of a copy. Of the crate's own tests it has the unit tests only, and what they use.
fn manifest_of_copy(text: &str) -> String {
    let is_kept = |section: &&str| {
        let head = section.lines().next().unwrap_or_default();
        !head.contains("dev-dependencies]") && head != "[test]]"
    };
    // A section begins with `[` on a separate line; the first of a manifest is `[package]`.
    let sections: Vec<&str> = text.split("\n[").filter(is_kept).collect();
    let of_tests = if text.contains("\nproptest") { OF_TESTS } else { "" };
    sections.join("\n[") + of_tests
}

/// Copies the crates. `sources` has the student's `src` folders, if they replace the original ones.
pub fn copy_crates(folder: &Path, sources: Option<&Path>) -> Result<(), String> {
    for (name, path) in CRATES {
        let (from, to) = (root().join(path), folder.join(name));
        let manifest = read(&from.join("Cargo.toml"))?;
        let manifest = manifest_of_copy(&String::from_utf8_lossy(&manifest));
        put(&to.join("Cargo.toml"), manifest)?;
        // The student must not write the judge.
        let source = sources.filter(|_| name != "testing").map(|sources| sources.join(name));
        mirror(&source.unwrap_or(from).join("src"), &to.join("src"))?;
    }
    Ok(())
}

/// Applies a patch of the lab to copies of the crates.
pub fn patch(lab: &Lab, file: &str, folder: &Path) -> Result<(), String> {
    let mut command = Command::new("patch");
    command.args(["-p1", "--quiet", "-i"]).arg(lab.folder.join(file)).current_dir(folder);
    // Otherwise GNU patch would leave `.orig` files. Others have no option against that.
    command.env("POSIXLY_CORRECT", "1");
    let ran = command.output().map_err(|error| format!("cannot run `patch`: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    if ran.status.success() { Ok(()) } else { Err(format!("{file} does not apply: {said}")) }
}

/// Writes the files from which the student starts.
pub fn start(lab: &Lab, folder: &Path, target: &Path) -> Result<(), String> {
    if entries(folder).is_ok_and(|names| !names.is_empty()) {
        return Err(format!(
            "{} is there already, and nothing in it was changed; go on with {}, or move the folder \
             away to start anew",
            folder.display(),
            lab.written().display()
        ));
    }
    write_crate(lab, folder, &format!("lab_{}", lab.name), &[])?;
    put(&folder.join("lab.md"), lab.task())?;
    if lab.folder.join("given").is_dir() {
        mirror(&lab.folder.join("given"), &folder.join("given"))?;
    }
    if lab.kind == Kind::Answer {
        return put(&folder.join("answer.txt"), lab.text("skeleton.txt"));
    }
    if lab.kind == Kind::Patched {
        copy_crates(folder, None)?;
        if lab.folder.join("skeleton.patch").exists() {
            patch(lab, "skeleton.patch", folder)?;
        }
    }
    if lab.folder.join("skeleton.rs").exists() {
        put(&folder.join("src/lab.rs"), lab.text("skeleton.rs"))?;
    }
    if lab.kind == Kind::Patched {
        // This lab has the original sources.
        return Ok(());
    }
    // All other labs share their target folder.
    let config = format!("[build]\ntarget-dir = {target:?}\n");
    put(&folder.join(".cargo/config.toml"), config)
}
