//! The slides of the two lectures: pages of HTML that are made from Markdown and from the sources.
//!
//! `slides/lecture_N.md` has a slide between two lines `---`. A slide has a heading `##`, Markdown,
//! marks, and a paragraph `Note:` for the speaker. A mark is a comment on a separate line. It is
//! replaced by a part of the repository, so no code and no log is copied into a lecture:
//!
//! ```text
//! <!-- item 4 fn dispatch -->     a function or a type of a step, without the comment before it
//! <!-- item 11 fn arm in impl Deadlines -->   the same, inside an item
//! <!-- lines 6 #0020-#0025 -->    lines of the golden log of a step
//! <!-- lines 1 3-9 -->            the same by their places, for logs without numbers
//! <!-- picture 4 -->              the drawing on the page of a step
//! <!-- section 4 Before you run it -->   a section of that page
//! <!-- present 1 1-18 -->         the log of a step between two events, in the present mode of its
//!                                 timeline; it has the slide to itself
//! ```

use std::collections::BTreeSet;

use trace_tool::model::Trace;
use trace_tool::{page, sources};

use crate::markup::{escaped, markdown, sentence};
use crate::{labs, pages, states};

const STYLE: &str = include_str!("slides/page.css");
const SCRIPT: &str = include_str!("slides/page.js");

/// The ends of the data of a timeline.
const DATA: [&str; 2] = ["<script id=\"data\" type=\"text/plain\">", "</script>"];

/// The number of lectures.
pub const LECTURES: u32 = 2;

#[derive(Debug, Default)]
pub struct Slide {
    pub title: String,
    /// HTML.
    body: String,
    /// The speaker's notes, in Markdown.
    pub note: String,
    /// The step whose log it plays.
    played: Option<u32>,
    /// The columns of its widest piece of code, log or drawing, and the lines of all pieces.
    pub size: (usize, usize),
}

/// The lines of a text from the first that `begins` to the first after it that `ends`.
fn between(
    text: &str,
    begins: impl Fn(&str) -> bool,
    ends: impl Fn(&str) -> bool,
) -> Option<Vec<&str>> {
    let mut lines = text.lines().skip_while(|line| !begins(line));
    let mut found = vec![lines.next()?];
    for line in lines {
        found.push(line);
        if ends(line) {
            return Some(found);
        }
    }
    None
}

/// A function or a type in a source that rustfmt has formatted, such as `fn poll`.
fn item_in(source: &str, item: &str) -> Option<String> {
    let is_item = |line: &str| {
        let rest = line.trim_start();
        let mut rest = rest.split_once(item).filter(|(before, _)| {
            before.is_empty() || before.starts_with("pub") || *before == "async "
        });
        let after = rest.take().and_then(|(_, after)| after.chars().next());
        after.is_some_and(|next| !next.is_alphanumeric() && next != '_')
    };
    let first = source.lines().find(|line| is_item(line))?;
    let indent = first.len() - first.trim_start().len();
    let is_last = |line: &str| {
        let rest = line.get(indent..).unwrap_or_default();
        rest.starts_with(['}', ')']) && !rest.ends_with('{')
    };
    let lines = match first.ends_with(';') || first.ends_with('}') {
        true => vec![first],
        false => between(source, is_item, is_last)?,
    };
    let lines = lines.into_iter().map(|line| line.get(indent..).unwrap_or_default());
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// An item of a step. Its name must be found in one of the files that the step has.
fn item(step: u32, item: &str) -> Result<String, String> {
    let sources = pages::sources(step);
    let (item, outer) = item.split_once(" in ").unwrap_or((item, ""));
    let found = sources.values().filter_map(|(_, source)| match outer {
        "" => item_in(source, item),
        outer => item_in(&item_in(source, outer)?, item),
    });
    let found: Vec<String> = found.collect();
    match <[String; 1]>::try_from(found) {
        Ok([only]) => Ok(only),
        Err(found) => Err(format!("step {step} has {} items `{item}`", found.len())),
    }
}

fn lines(step: u32, range: &str) -> Result<String, String> {
    let log = pages::log(step);
    let lines: Vec<&str> = log.lines().collect();
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let place = |end: &str| match end.starts_with('#') {
        true => lines.iter().position(|line| line.split_whitespace().nth(2) == Some(end)),
        false => end.parse::<usize>().ok().and_then(|nth| nth.checked_sub(1)),
    };
    let (from, to) = place(from).zip(place(to)).ok_or_else(|| format!("no lines {range}"))?;
    let found = lines.get(from..=to).ok_or_else(|| format!("no lines {range}"))?;
    // Without the call sites, and without the empty half of the column of the turn.
    let is_long = found.iter().all(|line| line.get(9..14) == Some("     "));
    let found = found.iter().map(|line| {
        let line =
            if is_long { format!("{}{}", &line[..9], &line[13..]) } else { (*line).to_owned() };
        let words = line.split(' ');
        let words = words.filter(|word| !word.starts_with("at=") && !word.starts_with("set-at="));
        words.collect::<Vec<_>>().join(" ")
    });
    Ok(found.collect::<Vec<_>>().join("\n"))
}

/// The page of a step.
fn page(step: u32) -> Result<String, String> {
    pages::text(&format!("step_{step:02}/README.md"))
}

/// A section of the page of a step, up to the next heading or mark.
fn section(step: u32, heading: &str) -> Result<String, String> {
    let page = page(step)?;
    let heading = format!("## {heading}");
    let is_end = |line: &str| line.starts_with("## ") || line.starts_with("<!--");
    let found = between(&page, |line| line == heading, is_end);
    let found = found.ok_or_else(|| format!("the page of step {step} has no `{heading}`"))?;
    Ok(found[1..found.len() - 1].join("\n"))
}

fn picture(step: u32) -> Result<String, String> {
    let page = page(step)?;
    let found = between(&page, |line| line == "```text", |line| line == "```");
    let found = found.ok_or_else(|| format!("the page of step {step} has no drawing"))?;
    Ok(found[1..found.len() - 1].join("\n"))
}

/// Returns the part of the repository that replaces a mark.
enum Part {
    Code(String),
    Text(String),
    /// A step, and the two events of its log.
    Present(u32, String),
}

/// The timeline of a step in three parts: its page up to the data, the data, and the rest.
fn timeline(step: u32) -> Result<[String; 3], String> {
    let said = |error: std::io::Error| error.to_string();
    let trace = Trace::read(states::log(step).into_bytes(), |_| {}).map_err(said)?;
    let files = sources::sources(&trace, labs::root()).map_err(said)?;
    let mut html = Vec::new();
    page::page(&trace, &files, &mut html).map_err(said)?;
    let html = String::from_utf8(html).map_err(|error| error.to_string())?;
    let (before, rest) = html.split_once(DATA[0]).expect("a timeline has data");
    let (data, after) = rest.split_once(DATA[1]).expect("the data ends");
    Ok([before, data, after].map(str::to_owned))
}

/// The timelines of the steps that slides play: one page, and the data of each step. The script of
/// the slides puts them together. A page inside a page must not have the tags of one.
fn timelines(slides: &[Slide]) -> Result<String, String> {
    let mut html = String::new();
    for step in slides.iter().filter_map(|slide| slide.played).collect::<BTreeSet<_>>() {
        let [before, data, after] = timeline(step)?;
        if html.is_empty() {
            let page = format!("{before}{}{}{after}", DATA[0], DATA[1]);
            let page = page.replace('&', "&amp;").replace('<', "&lt;");
            html = format!("<script type=\"text/plain\" id=\"timeline\">{page}</script>\n");
        }
        html += &format!("<script type=\"text/plain\" id=\"data-{step}\">{data}</script>\n");
    }
    Ok(html)
}

fn part(mark: &str) -> Result<Part, String> {
    let mut words = mark.splitn(3, ' ');
    let (kind, step, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
    let step = step.and_then(|step| step.parse().ok()).ok_or("expected the number of a step")?;
    Ok(match kind {
        Some("item") => Part::Code(item(step, rest)?),
        Some("lines") => Part::Code(lines(step, rest)?),
        Some("picture") => Part::Code(picture(step)?),
        Some("section") => Part::Text(section(step, rest)?),
        Some("present") => Part::Present(step, rest.replace('#', "")),
        _ => return Err("expected item, lines, picture, section or present".to_owned()),
    })
}

impl Slide {
    fn read(text: &str) -> Result<Slide, String> {
        let (mut slide, mut prose, mut is_note) = (Slide::default(), String::new(), false);
        for line in text.lines() {
            let mark = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->"));
            if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("# ")) {
                title.clone_into(&mut slide.title);
            } else if let Some(mark) = mark {
                slide.body += &markdown(&std::mem::take(&mut prose));
                match part(mark).map_err(|why| format!("{line}: {why}"))? {
                    Part::Code(code) => slide.code(&code),
                    Part::Text(text) => slide.body += &markdown(&text),
                    Part::Present(step, events) => {
                        slide.played = Some(step);
                        slide.body += &format!(
                            "<iframe data-step=\"{step}\" data-events=\"{events}\" \
                             title=\"The log of step {step}, played\"></iframe>\n"
                        );
                    }
                }
            } else if let Some(note) = line.strip_prefix("Note: ") {
                (slide.note, is_note) = (format!("{note}\n"), true);
            } else if is_note {
                slide.note += &format!("{line}\n");
            } else {
                prose += &format!("{line}\n");
            }
        }
        slide.body += &markdown(&prose);
        Ok(slide)
    }

    fn code(&mut self, code: &str) {
        let columns = code.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        let lines = code.lines().count();
        self.size = (self.size.0.max(columns), self.size.1 + lines);
        self.body += &format!("<pre tabindex=\"0\">{}</pre>\n", escaped(code));
    }

    fn html(&self, number: usize) -> String {
        // The rest of the height is for the prose and the space between the pieces.
        let (columns, lines) = self.size;
        let pieces = self.body.matches("<pre").count();
        let prose = ["<p>", "<li>"].iter().map(|tag| self.body.matches(tag).count()).sum::<usize>();
        let room = 74_usize.saturating_sub(7 * prose + 5 * pieces).max(30);
        let style = format!("--columns: {columns}; --lines: {lines}; --room: {room}vh");
        let head = format!("<section class=\"slide\" id=\"{number}\" style=\"{style}\">");
        let (title, body, note) = (sentence(&self.title), &self.body, markdown(&self.note));
        format!(
            "{head}\n<h2>{title}</h2>\n{body}<aside>{note}</aside>\n<footer>{number}</footer>\n\
             </section>\n"
        )
    }
}

/// The slides of a lecture.
///
/// # Errors
///
/// Returns the mark that cannot be replaced, and the reason.
pub fn slides(lecture: u32) -> Result<Vec<Slide>, String> {
    let text = pages::text(&format!("slides/lecture_{lecture}.md"))?;
    text.split("\n---\n").map(Slide::read).collect()
}

/// The page of a lecture.
///
/// # Errors
///
/// Those of [`slides`].
pub fn document(lecture: u32) -> Result<String, String> {
    let slides = slides(lecture)?;
    let title = slides.first().map_or("", |slide| &slide.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
         <style>\n{STYLE}</style>\n<main>\n",
        escaped(title)
    );
    for (nth, slide) in slides.iter().enumerate() {
        html += &slide.html(nth + 1);
    }
    html += "</main>\n";
    html += &timelines(&slides)?;
    html += &format!("<script>\n{SCRIPT}</script>\n</html>\n");
    Ok(html)
}
