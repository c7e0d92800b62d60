//! The pages of the steps: marks become the log, the change, the code and the timeline. Marks of
//! the playground stay, for `play.rs`.

use anyhow::{Context as _, Result};
use course::markup::escaped;
use course::pages::{self, FileChange, GIVEN, Mark};
use course::{labs, states};
use trace_tool::model::Trace;
use trace_tool::{page, sources};

use crate::listing::{count, folded, lines_of_code, listing};

pub fn code_path(step: u32) -> String {
    format!("code/step_{step:02}.md")
}

pub fn timeline_path(step: u32) -> String {
    format!("steps/step_{step:02}_timeline.html")
}

/// Replaces the marks on the page of a step.
pub fn expand(text: &str, step: u32) -> Result<String> {
    let (mut expanded, mut is_left_out) = (String::new(), false);
    let mut parts = pages::change(step).into_iter();
    for line in text.lines() {
        let mark = pages::mark(line);
        is_left_out &= mark.is_none();
        match mark {
            None if is_left_out => continue,
            None | Some(Mark::Play(_)) => expanded += line,
            Some(Mark::Log) => expanded += &log(step),
            Some(Mark::Change(_)) => expanded += &change(step, parts.next().unwrap_or_default()),
            Some(Mark::Code) => expanded += &code_link(step),
            Some(Mark::Panel(line)) => expanded += &panel(step, line)?,
            Some(Mark::Checkout) => is_left_out = true,
        }
        expanded.push('\n');
    }
    Ok(expanded)
}

fn log(step: u32) -> String {
    let log = pages::log(step);
    let lines = log.lines().filter(|line| !line.starts_with('#')).count();
    let body = format!("<pre><code class=\"language-text\">{}</code></pre>", escaped(&log));
    folded("log", &format!("The log of step {step}, {}", count(lines, "line")), &body)
}

/// A part of the change. What the page does not explain is folded apart.
fn change(step: u32, part: Vec<FileChange>) -> String {
    let (given, explained): (Vec<_>, Vec<_>) = part.into_iter().partition(|file| file.is_given);
    let mut text = diffs(&format!("The change from step {}", step - 1), &explained);
    if !given.is_empty() {
        text += &diffs("Given, or from an earlier step", &given);
    }
    text
}

fn diffs(title: &str, changes: &[FileChange]) -> String {
    let diff: String = changes.iter().map(|change| change.diff.as_str()).collect();
    let is_of =
        |line: &&str, sign: &str, head: &str| line.starts_with(sign) && !line.starts_with(head);
    let added = diff.lines().filter(|line| is_of(line, "+", "+++")).count();
    let removed = diff.lines().filter(|line| is_of(line, "-", "---")).count();
    let files = count(changes.len(), "file");
    let summary = format!("{title}: {files}, +{added} −{removed} lines");
    let body = changes.iter().map(|change| {
        format!("<pre><code class=\"language-diff\">{}</code></pre>\n", escaped(&change.diff))
    });
    folded("change", &summary, &body.collect::<String>())
}

fn code_link(step: u32) -> String {
    let sources = pages::sources(step);
    let lines: usize = sources.values().map(|(_, text)| lines_of_code(text)).sum();
    let files = count(sources.len(), "file");
    let link = format!("[The code of step {step} in full](../code/step_{step:02}.md)");
    format!("{link}: {files}, {lines} lines of code.\n")
}

/// The number of the event at a line of the log, as the tool `course` counts lines.
fn event(step: u32, line: u64) -> Result<u64> {
    let state = states::state(step, line).map_err(anyhow::Error::msg)?;
    let (_, rest) = state.split_once('#').context("the state begins with its line")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

fn panel(step: u32, line: u64) -> Result<String> {
    let page = format!("step_{step:02}_timeline.html#{:04}", event(step, line)?);
    let title = format!("The timeline of step {step}, and the state at line {line}");
    let body = format!(
        "<iframe src=\"{page}?state\" title=\"{title}\" loading=\"lazy\"></iframe>\n\n\
         <a href=\"{page}?state\">The timeline on a page of its own</a>, \
         <a href=\"{page}?present\">large, for a hall</a>"
    );
    Ok(folded("panel", &title, &body))
}

/// The page that shows the log of a step, with its states.
pub fn timeline(step: u32) -> Result<Vec<u8>> {
    let trace = Trace::read(states::log(step).into_bytes(), |_| {})?;
    let mut html = Vec::new();
    page::page(&trace, &sources::sources(&trace, labs::root())?, &mut html)?;
    Ok(html)
}

/// The code of a step, file by file.
pub fn code(step: u32) -> String {
    let sources = pages::sources(step);
    let mut text = format!("# The code of step {step}\n\n");
    text += &format!("Back to [step {step}](../steps/step_{step:02}.md).\n\n");
    text += "| file | lines of code | from step |\n|---|---:|---:|\n";
    for (path, (from, source)) in &sources {
        let (anchor, lines) = (anchor(path), lines_of_code(source));
        let is_given = *from == GIVEN || pages::is_given(source);
        let from = if is_given { "given".to_owned() } else { from.to_string() };
        text += &format!("| [`{path}`](#{anchor}) | {lines} | {from} |\n");
    }
    for (path, (_, source)) in &sources {
        let anchor = anchor(path);
        text += &format!("\n## `{path}` {{#{anchor}}}\n\n");
        text += &listing(path, source, &format!("{anchor}-"));
    }
    text
}

/// The files of a step's folder, and their places on the page of its code.
pub fn places(step: u32) -> Vec<(String, String)> {
    let sources = pages::sources(step).into_iter();
    let own = sources.filter(|(_, (from, _))| *from == step).map(|(path, _)| path);
    let place = |path: String| {
        let anchor = anchor(&path);
        let file = format!("examples/course/step_{step:02}/{path}");
        (file, format!("{}#{anchor}", code_path(step)))
    };
    own.map(place).collect()
}

/// The anchor of a file on the page of a step's code.
fn anchor(path: &str) -> String {
    path.replace(['/', '.'], "-")
}
