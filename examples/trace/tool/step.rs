//! `step`: walks through a log with keys, and shows the state at each line.

use std::io;

use super::model::Trace;
use super::state::{Row, Walk, changes, count, head, line_at, unknown};
use super::style::Paint;
use super::tables::wrapped;

/// The target of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Go {
    /// This number of lines on, or back.
    Line(isize),
    /// To the next `run` of a task, or back to the one before.
    Run(isize),
    /// To the first line of the next turn, or back to the one before.
    Turn(isize),
    /// To the first line; in a dump, to the first one after its head.
    First,
    /// To the last one.
    Last,
}

/// Returns the target place, or the same place if there is none.
pub fn go(trace: &Trace, place: usize, go: Go) -> usize {
    let last = count(trace) - 1;
    let turn = |at: usize| line_at(trace, at).turn;
    let begins_turn = |at: &usize| *at == 0 || turn(at - 1) != turn(*at);
    let is_run = |at: &usize| line_at(trace, *at).verb == "run";
    let found = match go {
        Go::Line(by) => Some(place.saturating_add_signed(by).min(last)),
        Go::Run(1..) => (place + 1..=last).find(is_run),
        Go::Run(_) => (0..place).rev().find(is_run),
        Go::Turn(1..) => (place + 1..=last).find(begins_turn),
        Go::Turn(_) => (0..place).rev().find(begins_turn),
        Go::First => Some(trace.begin()),
        Go::Last => Some(last),
    };
    found.unwrap_or(place)
}

/// The keys, in words.
pub const KEYS: &str =
    "left/right line, up/down run, PgUp/PgDn turn, Enter cause, ? all keys, q ends";

/// What is shown below the line.
pub enum Body {
    /// The state at the line.
    State,
    /// These texts, of which one may be marked.
    List(Vec<String>, Option<usize>),
}

/// Prints the screen of that size at the place of the walk, with a text at its foot.
pub fn screen(
    trace: &Trace,
    walk: &Walk<'_>,
    (width, height): (usize, usize),
    paint: Paint,
    body: &Body,
    foot: &str,
) -> String {
    let place = walk.place();
    let mut shown: Vec<String> = Vec::new();
    let line = line_at(trace, place);
    let mut foot = wrapped(foot, width);
    foot.truncate((height / 2).max(1));
    let state: Vec<Row> = match body {
        Body::State => walk.rows(),
        Body::List(..) => Vec::new(),
    };
    let needed = if let Body::List(texts, _) = body { texts.len() } else { state.len() };
    // The line and the sentence get the rows that the rest leaves free, at least a quarter of the
    // screen, and at least one row each.
    let plain = head(trace, place, Paint::PLAIN);
    let mut said = plain.lines().map(|text| wrapped(text, width));
    let mut free = height.saturating_sub(needed + foot.len() + 3).max((height / 4).max(2) - 2);
    for is_sentence in [false, true] {
        let lines = said.next().unwrap_or_default();
        let most = 1 + free.min(lines.len().saturating_sub(1));
        free -= most - 1;
        let is_cut = most < lines.len();
        for (nth, text) in lines.iter().take(most).enumerate() {
            let is_last = is_cut && nth + 1 == most;
            let text = if is_last { lines[nth..].join(" ") } else { text.clone() };
            let text = cut(&text, width);
            shown.push(if is_sentence { paint.strong(&text) } else { paint.line(&line, &text) });
        }
    }
    shown.push(String::new());
    let room = height.saturating_sub(shown.len() + foot.len());
    match body {
        Body::State => {
            for row in fitted(state, room) {
                let text = cut(&row.text, width.saturating_sub(19));
                shown.push(Row { text, ..row }.show(paint));
            }
        }
        Body::List(texts, marked) => {
            // The marked text is in the middle, if there are enough texts around it.
            let first = marked.unwrap_or(0).saturating_sub(room / 2);
            let first = first.min(texts.len().saturating_sub(room));
            for (nth, text) in texts.iter().enumerate().skip(first).take(room) {
                let is_marked = Some(nth) == *marked;
                let text = cut(&format!("{} {text}", if is_marked { ">" } else { " " }), width);
                shown.push(if is_marked { paint.strong(&text) } else { text });
            }
        }
    }
    shown.resize(height.saturating_sub(foot.len()).max(shown.len()), String::new());
    shown.truncate(height.saturating_sub(foot.len()));
    shown.extend(foot.iter().map(|text| paint.faint(&cut(text, width))));
    shown.join("\r\n")
}

fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// Returns the rows that fit: the changed rows, the first row of each section, and the first of the
/// rest. In place of missing rows, one row has their number.
fn fitted(rows: Vec<Row>, room: usize) -> Vec<Row> {
    if rows.len() <= room {
        return rows;
    }
    let matters = |row: &Row| row.is_new || !row.section.is_empty();
    let is_first = |nth: usize, row: &Row| nth == 0 || !row.section.is_empty();
    let gaps = rows.iter().enumerate().filter(|(nth, row)| is_first(*nth, row)).count();
    let needed = rows.iter().filter(|row| matters(row)).count();
    let mut others = room.saturating_sub(needed + gaps);
    let (mut fitted, mut missing) = (Vec::new(), 0);
    let gap = |missing: &mut usize| {
        let text = format!("  ({} more)", std::mem::take(missing));
        Row { section: "", text, is_new: false }
    };
    for row in rows {
        if !matters(&row) && others == 0 {
            missing += 1;
            continue;
        }
        others -= usize::from(!matters(&row));
        if missing > 0 {
            fitted.push(gap(&mut missing));
        }
        fitted.push(row);
    }
    if missing > 0 {
        fitted.push(gap(&mut missing));
    }
    fitted
}

/// Prints each line with its changes, as plain text. The changes of the head of a dump are not
/// known.
///
/// # Errors
///
/// Returns those of `print`.
pub fn plain(trace: &Trace, mut print: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let mut walk = Walk::new(trace);
    for place in 0..count(trace) {
        walk.to(place);
        print(&format!("{}\n", line_at(trace, place)))?;
        if let Some(unknown) = unknown(trace, place) {
            if place + 1 == trace.begin() {
                print(&format!("    {unknown}\n"))?;
            }
            continue;
        }
        for change in changes(walk.before(), walk.after()) {
            print(&format!("    {change}\n"))?;
        }
    }
    Ok(())
}
