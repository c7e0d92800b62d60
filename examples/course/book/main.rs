//! The book: the course, the guide and the grammar of the log as one folder of HTML, which works
//! without a server and without a network. mdBook makes the pages, the search and the themes. This
//! program collects its input:
//!
//! ```text
//! outline.rs   the pages in their order, and the file of the repository that each is from
//! links.rs     links between files of the repository become links between pages
//! step.rs      the marks on the pages of the steps become logs, changes, code and timelines
//! play.rs      the marks of the playground become frames with its programs
//! lab.rs       the given file and the hints of a lab, folded
//! listing.rs   a file of code with numbered lines
//! ```

mod lab;
mod links;
mod listing;
mod outline;
mod play;
mod step;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr as _;

use anyhow::{Context as _, Error, Result, ensure};
use clap::Parser;
use course::{labs, pages, slides};
use mdbook_driver::MDBook;
use mdbook_driver::config::Config;

use outline::{Item, Page};
use play::Playground;

/// Makes the book of the course, the guide and the grammar of the log, in HTML.
#[derive(Parser)]
#[command(name = "book")]
struct Cli {
    /// The folder to write; a book that is there is replaced
    #[arg(default_value = "target/book")]
    folder: PathBuf,
}

/// The settings of mdBook.
const SETTINGS: &str = include_str!("book.toml");

/// The files of the book that mdBook takes as they are, next to its pages.
const STYLE: &str = include_str!("trapline.css");
const SCRIPT: &str = include_str!("trapline.js");

fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let parent = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(parent).with_context(|| parent.display().to_string())?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// The list of pages, as mdBook reads it.
fn summary(items: &[Item]) -> String {
    let mut text = "# Summary\n\n".to_owned();
    for item in items {
        match item {
            Item::Part(title) => text += &format!("\n# {title}\n\n"),
            Item::Page(Page { depth, title, path, .. }) => {
                text += &format!("{:1$}- [{title}](<{path}>)\n", "", depth * 2);
            }
        }
    }
    text
}

/// Writes what mdBook reads into `src`, and returns the number of pages.
fn prepare(src: &Path) -> Result<usize> {
    let root = labs::root();
    let mut items = outline::outline(root)?;
    let mut places: BTreeMap<String, String> = pages_of(&items)
        .filter_map(|page| Some((page.source.clone()?, page.path.clone())))
        .collect();
    places.extend((1..=slides::LECTURES).map(outline::lecture));
    places.extend((1..=pages::STEPS).flat_map(step::places));
    let mut links = links::Links::new(root, places);
    let playground = Playground::make(root, src)?;
    for item in &mut items {
        let Item::Page(page) = item else { continue };
        if let Some(source) = &page.source {
            page.text = links.rewrite(&page.text, source, &page.path);
        }
        if let Some(step) = page.step {
            page.text = step::expand(&page.text, step)?;
        }
        page.text = playground.expand(&page.text, &page.path)?;
        if let Some(folder) = &page.lab {
            let given = fs::read_to_string(folder.join("given.rs")).ok();
            page.text = lab::page(&page.text, given.as_deref());
        }
    }
    items.extend(outline::files(root, links.files())?);
    for page in pages_of(&items) {
        write(&src.join(&page.path), &page.text)?;
    }
    for step in 1..=pages::STEPS {
        write(&src.join(step::timeline_path(step)), step::timeline(step)?)?;
    }
    for lecture in 1..=slides::LECTURES {
        let page = slides::document(lecture).map_err(Error::msg)?;
        write(&src.join(outline::lecture(lecture).1), page)?;
    }
    write(&src.join("SUMMARY.md"), summary(&items))?;
    Ok(pages_of(&items).count())
}

fn pages_of(items: &[Item]) -> impl Iterator<Item = &Page> {
    items.iter().filter_map(|item| match item {
        Item::Page(page) => Some(page),
        Item::Part(_) => None,
    })
}

/// Writes the book into this folder.
fn make(folder: &Path) -> Result<()> {
    let [src, html, style] = ["src", "html", "trapline.css"].map(|name| folder.join(name));
    // Refuse to remove anything from a folder that is not a book.
    ensure!(
        style.exists() || !src.exists() && !html.exists(),
        "{} has other files; expected a new folder, or that of a book",
        folder.display()
    );
    write(&style, STYLE)?;
    for part in [&src, &html] {
        if part.exists() {
            fs::remove_dir_all(part).with_context(|| part.display().to_string())?;
        }
    }
    let count = prepare(&src)?;
    write(&folder.join("trapline.js"), SCRIPT)?;
    MDBook::load_with_config(folder, Config::from_str(SETTINGS)?)?.build()?;
    println!("{count} pages, {}", html.join("index.html").display());
    Ok(())
}

fn main() -> ExitCode {
    let made = std::path::absolute(Cli::parse().folder).map_err(Error::new);
    match made.and_then(|folder| make(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("book: {error:#}");
            ExitCode::FAILURE
        }
    }
}
