//! The pages of the book, in their order.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use course::{exercises, labs, pages, slides};

use crate::{listing, step};

/// The concepts, in the order of the steps that build them.
const CONCEPTS: [&str; 4] = ["trap", "scope", "wake_queue", "deadline_table"];
/// The pages of the guide, in reading order.
const GUIDE: [&str; 13] = [
    "start",
    "reading",
    "time",
    "outside",
    "replay",
    "flight",
    "libraries",
    "tls",
    "recipes",
    "speed",
    "rows",
    "curio",
    "design",
];
const GUIDE_OF_NET: [&str; 3] = ["services", "connection", "conformance"];
/// The lab of step 12 has this number; the labs after it are about the real kernel.
const LABS_OF_STEPS: u32 = pages::STEPS;

/// A line of the table of contents.
pub enum Item {
    Part(String),
    Page(Page),
}

/// A page of the book, as Markdown.
pub struct Page {
    /// The depth of the page below the previous one, in the table of contents.
    pub depth: usize,
    pub title: String,
    /// The file of the book.
    pub path: String,
    /// The file of the repository that it shows.
    pub source: Option<String>,
    /// The step that the page belongs to.
    pub step: Option<u32>,
    /// The folder of the lab that the page belongs to.
    pub lab: Option<PathBuf>,
    pub text: String,
}

impl Page {
    /// A page that this program writes.
    fn new(depth: usize, title: String, path: String, text: String) -> Page {
        Page { depth, title, path, source: None, step: None, lab: None, text }
    }

    /// A page that shows a file of the repository.
    fn read(root: &Path, depth: usize, source: &str, path: &str) -> Result<Page> {
        let text = fs::read_to_string(root.join(source)).with_context(|| source.to_owned())?;
        let text = text.replace("\n```log\n", "\n```text\n").replace("\n```no_run", "\n```rust");
        let title = title(&text).with_context(|| format!("{source} has no title"))?;
        let (path, source) = (path.to_owned(), Some(source.to_owned()));
        Ok(Page { depth, title, path, source, step: None, lab: None, text })
    }
}

/// The first heading.
fn title(text: &str) -> Option<String> {
    let heading = text.lines().find_map(|line| line.strip_prefix("# "))?;
    Some(heading.replace('`', ""))
}

fn part(title: &str) -> Item {
    Item::Part(title.to_owned())
}

/// All pages, except those of linked files.
pub fn outline(root: &Path) -> Result<Vec<Item>> {
    let page = |depth, source: &str, path: &str| {
        Ok::<_, anyhow::Error>(Item::Page(Page::read(root, depth, source, path)?))
    };
    let mut items = vec![page(0, "examples/course/README.md", "index.md")?];
    let labs = labs::all().map_err(anyhow::Error::msg)?;
    let lab = |depth, lab: &labs::Lab| {
        let source = format!("examples/course/labs/{}/lab.md", lab.name);
        let mut page = Page::read(root, depth, &source, &format!("labs/{}.md", lab.name))?;
        page.title = format!("Lab {}", page.title.trim_start_matches('0'));
        page.lab = Some(lab.folder.clone());
        Ok::<_, anyhow::Error>(Item::Page(page))
    };
    items.push(part("The steps"));
    for step in 1..=pages::STEPS {
        let source = format!("examples/course/step_{step:02}/README.md");
        let mut page = Page::read(root, 0, &source, &format!("steps/step_{step:02}.md"))?;
        page.step = Some(step);
        items.push(Item::Page(page));
        for found in labs.iter().filter(|lab| lab.number == step) {
            items.push(lab(1, found)?);
        }
        if exercises::STEPS.contains(&step) {
            items.push(Item::Page(exercise(step)?));
        }
        let title = format!("The code of step {step}");
        items.push(Item::Page(Page::new(1, title, step::code_path(step), step::code(step))));
    }
    items.push(part("Labs on the real kernel"));
    for found in labs.iter().filter(|lab| lab.number > LABS_OF_STEPS) {
        items.push(lab(0, found)?);
    }
    items.push(part("Concepts"));
    for name in CONCEPTS {
        let source = format!("examples/course/concepts/{name}.md");
        items.push(page(0, &source, &format!("concepts/{name}.md"))?);
    }
    items.push(part("For the instructor"));
    items.push(page(0, "examples/course/INSTRUCTOR.md", "instructor.md")?);
    let title = "Slides of the lectures".to_owned();
    items.push(Item::Page(Page::new(0, title, "slides/index.md".to_owned(), list_of_slides()?)));
    items.push(part("The guide"));
    for name in GUIDE {
        items.push(page(0, &format!("kernel/src/guide/{name}.md"), &format!("guide/{name}.md"))?);
    }
    for name in GUIDE_OF_NET {
        items.push(page(0, &format!("net/src/guide/{name}.md"), &format!("guide/{name}.md"))?);
    }
    items.push(part("Reference"));
    items.push(page(0, "kernel/src/log/grammar.md", "log/grammar.md")?);
    Ok(items)
}

/// The questions about the log of a step.
fn exercise(step: u32) -> Result<Page> {
    let title = exercises::find(step).map_err(anyhow::Error::msg)?.title;
    let html = exercises::page(step).map_err(anyhow::Error::msg)?;
    // Without an empty line the piece is one block of HTML in Markdown. The page has its title.
    let is_kept = |line: &&str| !line.trim().is_empty() && !line.starts_with("<h2>");
    let lines: Vec<&str> = html.lines().filter(is_kept).collect();
    let text = format!("# {title}\n\n{}\n", lines.join("\n"));
    Ok(Page::new(1, title, format!("exercises/step_{step:02}.md"), text))
}

/// The file that the slides of a lecture are made from, and their page in the book.
pub fn lecture(number: u32) -> (String, String) {
    let name = format!("lecture_{number}");
    (format!("examples/course/slides/{name}.md"), format!("slides/{name}.html"))
}

fn list_of_slides() -> Result<String> {
    let mut text =
        "# Slides of the lectures\n\nThe arrow keys turn the slides. On paper each slide has \
                    a page of its own.\n\n"
            .to_owned();
    for number in 1..=slides::LECTURES {
        let slides = slides::slides(number).map_err(anyhow::Error::msg)?;
        let title = slides.first().map_or("", |slide| &slide.title);
        let count = listing::count(slides.len(), "slide");
        text += &format!("- [{title}](lecture_{number}.html), {count}\n");
    }
    Ok(text)
}

/// The page of a file of the repository.
pub fn file_path(source: &str) -> String {
    format!("files/{source}.md")
}

/// A page for each of these files of the repository, below a page that lists them.
pub fn files(root: &Path, sources: &BTreeSet<String>) -> Result<Vec<Item>> {
    let mut list =
        "# Files of trapline\n\nThe files that the pages of this book name.\n\n".to_owned();
    let mut found = Vec::new();
    for source in sources {
        let text = fs::read_to_string(root.join(source)).with_context(|| source.clone())?;
        list += &format!("- [`{source}`]({source}.md)\n");
        let text = format!("# {source}\n\n{}", listing::listing(source, &text, "L"));
        found.push(Item::Page(Page::new(1, source.clone(), file_path(source), text)));
    }
    let index = Page::new(0, "Files of trapline".to_owned(), "files/index.md".to_owned(), list);
    Ok([Item::Page(index)].into_iter().chain(found).collect())
}
