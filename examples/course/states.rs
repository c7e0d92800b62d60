//! The logs of the steps, and the state at a line of them.
//!
//! A log is that on the page of its step, which a test holds to the program. Steps 7 and 12 talk to
//! the network, so theirs were recorded once. The first five steps write less than the real kernel;
//! `early.rs` tells their logs in its words.

use crate::early;
use crate::tool::model::{Text, Trace};
use crate::tool::state;
use crate::tool::style::Paint;

/// The first step whose log has the format of the real kernel.
const FIRST_TRACE: u32 = 6;

/// The log of a step, in the words of the real kernel, and the number of the event for each line
/// of the page.
struct Log {
    text: String,
    /// The numbers of the events, for the first five steps.
    events: Vec<u64>,
}

/// The page of a step, or its recorded log.
fn source(step: u32) -> Option<&'static str> {
    Some(match step {
        1 => include_str!("step_01/README.md"),
        2 => include_str!("step_02/README.md"),
        3 => include_str!("step_03/README.md"),
        4 => include_str!("step_04/README.md"),
        5 => include_str!("step_05/README.md"),
        6 => include_str!("step_06/README.md"),
        7 => include_str!("step_07/recorded.trace"),
        8 => include_str!("step_08/README.md"),
        9 => include_str!("step_09/README.md"),
        10 => include_str!("step_10/README.md"),
        11 => include_str!("step_11/README.md"),
        12 => include_str!("step_12/recorded.trace"),
        _ => return None,
    })
}

/// Returns the text between the marks of the log on a page.
fn on_page(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("<!-- log -->\n\n```text\n")?;
    Some(rest.split_once("```\n\n<!-- /log -->")?.0)
}

fn find(step: u32) -> Result<Log, String> {
    let source = source(step).ok_or("expected the number of a step, from 1 to 12")?;
    let text = on_page(source).unwrap_or(source);
    if step >= FIRST_TRACE {
        return Ok(Log { text: text.to_owned(), events: Vec::new() });
    }
    // All pages have the header of the same version.
    let header = on_page(include_str!("step_06/README.md")).unwrap_or_default();
    let header: Vec<&str> = header.lines().take_while(|line| line.starts_with('#')).collect();
    let (lines, events) = early::told(text);
    Ok(Log { text: format!("{}\n{lines}", header.join("\n")), events })
}

/// The log of a step in the words of the real kernel.
///
/// # Errors
///
/// Returns what was expected.
pub fn log(step: u32) -> Result<String, String> {
    Ok(find(step)?.text)
}

/// The state at a line of the log of a step. A line of the first five steps is numbered by its
/// place in the log on the page, without what the program prints; a line of the others has its
/// number.
///
/// # Errors
///
/// Returns what was expected.
pub fn state(step: u32, line: u64) -> Result<String, String> {
    let log = find(step)?;
    let seq = match usize::try_from(line).ok().and_then(|line| line.checked_sub(1)) {
        _ if step >= FIRST_TRACE => line,
        nth => *nth.and_then(|nth| log.events.get(nth)).ok_or_else(|| {
            format!("expected a line from 1 to {} of the log, not {line}", log.events.len())
        })?,
    };
    let trace = Trace::read(Text::Memory(log.text.clone().into()), |_| {})
        .map_err(|error| error.to_string())?;
    let place = state::place(&trace, state::At::Line(seq))?;
    Ok(state::state(&trace, place, Paint::of_standard_output()))
}
