//! Makes the page that runs programs of the small language in a browser: one file, which opens
//! without a server.
//!
//! | part of the page | what it does |
//! |---|---|
//! | the kernel | `answers.rs` as WebAssembly, deflated, in letters: a command that runs a program |
//! | the worker, `page/worker.js` | calls the command for each answer, with the part of WASI that it uses |
//! | the scripts, `page/*.js` | start a worker, end it if a run takes too long, and show the answers |
//! | the timeline | the page of `trace timeline`, in a frame; the kernel writes it for each run |
//! | the programs, `pages/*.play` | a list to choose from |
//!
//! A panic ends an instance, because WebAssembly cannot unwind; the next run has a new one. The
//! page keeps no state except the program, which is in its address.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{fs, io};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Parser;
use flate2::{Compression, write::DeflateEncoder};
use trace_tool::page::fill;
use trace_tool::perfetto::quoted;

const TARGET: &str = "wasm32-wasip1";

/// One script, in the order of the dependencies of its parts.
const SCRIPT: &str = concat!(
    include_str!("page/link.js"),
    include_str!("page/kernel.js"),
    include_str!("page/log.js"),
    include_str!("page/why.js"),
    include_str!("page/timeline.js"),
    include_str!("page/editor.js"),
    include_str!("page/settings.js"),
    include_str!("page/address.js"),
    include_str!("page/start.js"),
);

/// Makes the page of the playground, which runs programs in a browser.
#[derive(Parser)]
#[command(name = "playground", max_term_width = 100)]
struct Cli {
    /// Where to write the page; without it in target/playground.html
    file: Option<PathBuf>,
}

fn main() -> ExitCode {
    match make(Cli::parse().file) {
        Ok(file) => {
            println!("Open this file in a browser: {}", file.display());
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("playground: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn make(file: Option<PathBuf>) -> Result<PathBuf, String> {
    // Cargo has built this program as TARGET_DIR/PROFILE/examples/playground.
    let this = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let target_dir = this.ancestors().nth(3).ok_or("expected that cargo has built this program")?;
    let file = file.unwrap_or_else(|| target_dir.join("playground.html"));
    let kernel = build(target_dir)?;
    let [worker, script] = [include_str!("page/worker.js"), SCRIPT].map(without_comments);
    let programs = programs(&Path::new(env!("CARGO_MANIFEST_DIR")).join("pages"))?;
    let mut page = Vec::new();
    let written = fill(include_str!("page/page.html"), &mut page, |name, out| {
        let part = match name {
            "style" => include_str!("page/page.css"),
            "kernel" => &kernel,
            "programs" => &programs,
            "worker" => &worker,
            "script" => &script,
            other => unreachable!("the page has {other}"),
        };
        out.write_all(part.as_bytes())
    });
    written
        .and_then(|()| fs::write(&file, page))
        .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    std::path::absolute(&file).map_err(|error| error.to_string())
}

/// Builds the kernel for the browser, and packs it: deflated, and in letters.
fn build(target_dir: &Path) -> Result<String, String> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let library = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("cannot run rustc: {error}"))?;
    if !Path::new(String::from_utf8_lossy(&library.stdout).trim()).is_dir() {
        return Err(format!("{TARGET} is missing; `rustup target add {TARGET}` brings it"));
    }
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args([
            "build",
            "--bin",
            "answers",
            "--profile",
            "page",
            "--target",
            TARGET,
            "--target-dir",
        ])
        .arg(target_dir)
        .arg("--manifest-path")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .status()
        .map_err(|error| format!("cannot run cargo: {error}"))?;
    if !status.success() {
        return Err(format!("cargo could not build the kernel for {TARGET}"));
    }
    let file = target_dir.join(TARGET).join("page/answers.wasm");
    let packed = pack(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(BASE64_STANDARD.encode(packed))
}

fn pack(file: &Path) -> io::Result<Vec<u8>> {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::best());
    io::copy(&mut fs::File::open(file)?, &mut packer)?;
    packer.finish()
}

/// Returns the programs of a folder as JSON, in the order of their numbers: `4-deadlock.play` has
/// the name `deadlock`, and its first line is its title.
fn programs(folder: &Path) -> Result<String, String> {
    let problem = |error| format!("cannot read the programs in {}: {error}", folder.display());
    let mut files = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>())
        .map_err(problem)?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "play"));
    files.sort();
    let mut programs = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(problem)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        let (number, name) = stem.split_once('-').ok_or_else(|| {
            format!("expected a number and a name, as in 4-deadlock.play, not {stem}")
        })?;
        let title = text.lines().next().unwrap_or_default();
        let title = format!("{number}. {}", title.trim_matches(['#', ' ', '.']));
        let [name, title, text] = [name, &title, &text].map(quoted);
        programs.push(format!(r#"{{"name":{name},"title":{title},"text":{text}}}"#));
    }
    Ok(format!("[{}]", programs.join(",")))
}

/// Returns a script without its lines of comment: they are for readers of the repository.
fn without_comments(script: &str) -> String {
    let lines = script.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}
