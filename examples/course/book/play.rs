//! The marks of the playground, on any page: each becomes a frame with one of its programs.
//!
//! The playground is one page of HTML, `play.html` at the root of the book. The command
//! `cargo run --example playground` makes it, and needs a target of rustup for that. Without the
//! page, a mark becomes the program and its golden log.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use course::markup::escaped;
use course::pages::{self, Mark};
use testing::child;

use crate::listing::{count, folded};

/// The page of the playground.
const PAGE: &str = "play.html";

pub struct Playground<'r> {
    root: &'r Path,
    /// The files of the programs by their names.
    programs: BTreeMap<String, PathBuf>,
    has_page: bool,
}

impl<'r> Playground<'r> {
    /// Makes the page in the folder `src`. If this fails, one line says why.
    pub fn make(root: &'r Path, src: &Path) -> Result<Playground<'r>> {
        let programs = programs(&root.join("examples/play/pages"))?;
        let made = page(root, &src.join(PAGE));
        if let Err(error) = &made {
            eprintln!("book: the programs of the playground are only text: {error:#}");
        }
        Ok(Playground { root, programs, has_page: made.is_ok() })
    }

    /// Replaces the marks on the page at `path`.
    pub fn expand(&self, text: &str, path: &str) -> Result<String> {
        let mut expanded = String::new();
        for line in text.lines() {
            match pages::mark(line) {
                Some(Mark::Play(name)) => expanded += &self.part(name, path)?,
                _ => expanded += line,
            }
            expanded.push('\n');
        }
        Ok(expanded)
    }

    fn part(&self, name: &str, path: &str) -> Result<String> {
        let file = self.programs.get(name).with_context(|| {
            let names: Vec<&str> = self.programs.keys().map(String::as_str).collect();
            format!("{path}: there is no program `{name}`; expected one of {}", names.join(", "))
        })?;
        if self.has_page {
            return Ok(frame(name, path));
        }
        let log = self.root.join(format!("tests/golden/play/{name}.trace"));
        Ok(shown(&read(file)?, &read(&log)?))
    }
}

fn frame(name: &str, path: &str) -> String {
    let up = "../".repeat(path.matches('/').count());
    format!(
        "<div class=\"play\">\n<iframe src=\"{up}{PAGE}?small#{name}\" \
         title=\"The playground with the program {name}\" loading=\"lazy\"></iframe>\n</div>\n"
    )
}

/// A program and its log as text.
fn shown(program: &str, log: &str) -> String {
    let lines = log.lines().filter(|line| !line.starts_with('#')).count();
    let code = |text| format!("<pre><code class=\"language-text\">{}</code></pre>", escaped(text));
    let summary = format!("The log of this program, {}", count(lines, "line"));
    format!("{}\n\n{}", code(program), folded("log", &summary, &code(log)))
}

/// The programs of a folder by their names. Before the name, a file has a number, which orders the
/// programs.
fn programs(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut programs = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let name = file.strip_suffix(".play").and_then(|name| Some(name.split_once('-')?.1));
        let name = name.with_context(|| format!("expected a name like 1-race.play, not {file}"))?;
        programs.insert(name.to_owned(), folder.join(&file));
    }
    Ok(programs)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Makes the page of the playground.
fn page(root: &Path, file: &Path) -> Result<()> {
    fs::create_dir_all(file.parent().context("a file is in a folder")?)?;
    let mut cargo = child::cargo();
    cargo.current_dir(root).args(["run", "--quiet", "--locked", "--example", "playground", "--"]);
    let made = child::output_within(child::BUILD, cargo.arg(file));
    let said = String::from_utf8_lossy(&made.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
    ensure!(made.status.success(), "`cargo run --example playground` failed: {last}");
    Ok(())
}
