//! A line of the log, and a whole log, as text and back.

use std::fmt::Write;
use std::time::Duration;

use traps::time::Time;

use super::event::{Event, Seq, Text};
use super::form::*;
use super::reader::ParseError;
use super::words::word;

/// One line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<'a> {
    /// Kernel time.
    pub at: Time,
    /// The turn of the loop; 0 before the first.
    pub turn: u64,
    /// The number of this event.
    pub seq: Seq,
    /// The task it happened to; 0 is the kernel itself.
    pub task: u64,
    /// The task's name, `kernel` for 0. White space and control characters are shown as `_`.
    pub name: Text<'a>,
    /// What happened.
    pub event: Event<'a>,
    /// What only a timed trace shows; `None` in a stable one.
    pub timed: Option<Timed>,
}

/// Measured spans, in timed traces only. Microseconds inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timed {
    /// How long the task ran before this line (`block`, `exit`).
    pub ran: Option<Duration>,
    /// How long it was ready before it ran (`run`).
    pub waited: Option<Duration>,
    /// How long after its time it fired (`fire`).
    pub late: Option<Duration>,
}

/// The columns, and what was measured. Nothing is allocated, unless a free text has characters
/// that must be replaced.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Line { at, turn, seq, task, name, event, timed } = self;
        write_time(*at, 9, f)?;
        write!(f, " {turn:>7}  #{seq:04} {task:>3} ")?;
        write_column(&word(name), 8, f)?;
        Own.put(" ", event, f)?;
        if let Some(Timed { ran, waited, late }) = timed
            && !event.ends_in_text()
        {
            Opt(Own).put(" ran=", ran, f)?;
            Opt(Own).put(" waited=", waited, f)?;
            Opt(Own).put(" late=", late, f)?;
        }
        Ok(())
    }
}

/// The version of the format.
const VERSION: &str = "v2";

/// The two lines above every trace: what made it, and the names of the columns.
///
/// No line end behind the second. `clock` is `virtual` or `real`.
#[must_use]
pub fn header(clock: &str, seed: u64) -> String {
    let columns = "# time       turn    seq  id task     verb     detail";
    format!("#trace {VERSION} clock={} seed={seed}\n{columns}", word(clock))
}

/// One line of the log.
///
/// `line(text)?.to_string() == text` for every text that it accepts.
///
/// # Errors
///
/// The first word that is not what the grammar has there, or the first column that differs from
/// the one form in which the line is printed.
pub fn line(text: &str) -> Result<Line<'static>, ParseError> {
    let line = words(text).map_err(|error| {
        let found = text[error.column - 1..].split(' ').next().unwrap_or_default().to_owned();
        ParseError { found, ..error }
    })?;
    // The reader of words does not look at spaces and zeros.
    let mut same = Same { text, at: 0 };
    if write!(same, "{line}").is_ok() && same.at == text.len() {
        return Ok(line);
    }
    let at = (0..=same.at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (expected, found) = ("the spacing and digits of the printed form", text[at..].to_owned());
    Err(ParseError { column: at + 1, expected, found })
}

/// The words of a line.
fn words(text: &str) -> Parsed<Line<'static>> {
    let mut reader = Reader::new(text);
    let mut line = Line {
        at: reader.word("the kernel time, seconds with six decimals", |at| at.parse().ok())?,
        turn: reader.word("the turn, a number", |turn| turn.parse().ok())?,
        seq: SEQ.read(&mut reader)?,
        task: reader.word("the task, a number", |task| task.parse().ok())?,
        name: WORD.read(&mut reader)?,
        event: Own.read(&mut reader)?,
        timed: None,
    };
    let timed = Timed {
        ran: Opt(Own).get(" ran=", &mut reader)?,
        waited: Opt(Own).get(" waited=", &mut reader)?,
        late: Opt(Own).get(" late=", &mut reader)?,
    };
    line.timed = (timed != Timed::default()).then_some(timed);
    if reader.peek().is_empty() { Ok(line) } else { Err(reader.wrong("the end of the line")) }
}

/// Compares what is written with a text, as far as they are the same.
struct Same<'t> {
    text: &'t str,
    at: usize,
}

impl Write for Same<'_> {
    fn write_str(&mut self, written: &str) -> fmt::Result {
        let text = &self.text.as_bytes()[self.at..];
        if text.starts_with(written.as_bytes()) {
            self.at += written.len();
            return Ok(());
        }
        let same = text.iter().zip(written.as_bytes());
        self.at += same.take_while(|(ours, theirs)| ours == theirs).count();
        Err(fmt::Error)
    }
}

/// All lines of a log, without the header, remarks (`#` in the first column) and empty lines.
///
/// # Errors
///
/// The number, from 1, of the first line that is wrong, and what is wrong with it. A header of
/// another version is.
pub fn trace(text: &str) -> Result<Vec<Line<'static>>, (usize, ParseError)> {
    let mut lines = Vec::new();
    for (nth, each) in text.lines().enumerate() {
        if let Some(version) = each.strip_prefix("#trace ") {
            if version.split(' ').next() != Some(VERSION) {
                let found = version.to_owned();
                return Err((nth + 1, ParseError { column: 8, expected: VERSION, found }));
            }
        } else if !each.starts_with('#') && !each.trim().is_empty() {
            lines.push(line(each).map_err(|error| (nth + 1, error))?);
        }
    }
    Ok(lines)
}
