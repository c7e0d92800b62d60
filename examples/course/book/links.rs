//! Links between files of the repository become links between pages of the book.
//!
//! A file without a page gets one that shows its text. Other links, such as a link to an item of a
//! crate's documentation, become plain text; a link to a web site stays.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use mdbook_markdown::pulldown_cmark::{Event, Tag};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

use crate::outline;

/// The pages by the files that they show.
pub struct Links<'r> {
    root: &'r Path,
    places: BTreeMap<String, String>,
    /// The files that get a page because one is linked.
    files: BTreeSet<String>,
}

impl<'r> Links<'r> {
    pub fn new(root: &'r Path, places: BTreeMap<String, String>) -> Links<'r> {
        Links { root, places, files: BTreeSet::new() }
    }

    /// The files that a page links to, and that no page of the outline shows.
    pub fn files(&self) -> &BTreeSet<String> {
        &self.files
    }

    /// Returns the text of a page with the links of the book. `source` is its file in the
    /// repository, `path` its place in the book.
    pub fn rewrite(&mut self, text: &str, source: &str, path: &str) -> String {
        let mut options = MarkdownOptions::default();
        (options.smart_punctuation, options.definition_lists) = (false, false);
        let (mut rewritten, mut end) = (String::new(), 0);
        for (event, range) in new_cmark_parser(text, &options).into_offset_iter() {
            let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
            let written = &text[range.clone()];
            let Some((label, _)) = written.rsplit_once("](") else { continue };
            rewritten += &text[end..range.start];
            match self.target(&dest_url, source, path) {
                Some(target) => rewritten += &format!("{label}](<{target}>)"),
                None => rewritten += label.strip_prefix('[').unwrap_or(label),
            }
            end = range.end;
        }
        rewritten + &text[end..]
    }

    /// The target in the book of a link on a page.
    fn target(&mut self, link: &str, source: &str, path: &str) -> Option<String> {
        if link.starts_with("https://") || link.starts_with('#') {
            return Some(link.to_owned());
        }
        let (file, fragment) = match link.split_once('#') {
            Some((file, fragment)) => (file, format!("#{fragment}")),
            None => (link, String::new()),
        };
        let file = documented(file).unwrap_or_else(|| join(source, file));
        let place = match self.places.get(&file) {
            Some(place) => place.clone(),
            None if self.is_text(&file) => {
                self.files.insert(file.clone());
                outline::file_path(&file)
            }
            None => return None,
        };
        let up = "../".repeat(path.matches('/').count());
        // The place of a file among others has its own anchor.
        let fragment = if place.contains('#') { "" } else { &fragment };
        Some(format!("{up}{place}{fragment}"))
    }

    /// Whether it is a text file of the repository.
    fn is_text(&self, file: &str) -> bool {
        let shown = ["rs", "trace", "txt", "toml", "patch"];
        let ending = Path::new(file).extension().and_then(|ending| ending.to_str());
        !file.starts_with("target/")
            && ending.is_some_and(|ending| shown.contains(&ending))
            && self.root.join(file).is_file()
    }
}

/// The source file behind a link to a page of a crate's documentation.
fn documented(link: &str) -> Option<String> {
    if link == "crate::trace" {
        return Some("kernel/src/log/grammar.md".to_owned());
    }
    let name = link.strip_prefix("crate::guide::")?;
    Some(format!("kernel/src/guide/{name}.md"))
}

/// The path that a link in the file `source` leads to, from the root of the repository.
fn join(source: &str, link: &str) -> String {
    let mut path = PathBuf::from(source);
    path.pop();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
    }
    path.to_string_lossy().into_owned()
}
