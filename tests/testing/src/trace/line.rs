//! A line of the log, read from its text.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kernel::trace::{Event, Seq};
use traps::Time;

/// Verbs whose detail ends in free text, which contains no keys.
const TEXTS: [&str; 6] = ["warn", "panic", "refuse", "cap", "note", "boot"];

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'t> {
    /// Kernel time.
    pub at: Time,
    /// The turn of the loop; 0 before the first.
    pub turn: u64,
    /// The number of this event.
    pub seq: Seq,
    /// The task that the event belongs to; 0 is the kernel itself.
    pub task: u64,
    /// The verb.
    pub verb: &'static str,
    /// The line that this line names as its cause.
    pub cause: Option<Seq>,
    /// The first ticket that the line names.
    pub ticket: Option<u64>,
    text: Cow<'t, str>,
    /// The positions in the text at which the name begins and ends, and the verb and the detail
    /// begin.
    name: (usize, usize),
    event: usize,
    detail: usize,
}

/// The parts that can follow the operation of a line.
const OP_ENDS: [&str; 10] =
    [" = ", " held-by=", " from=", " woke=", " k=", " reg=", " in=", " cause=", " at=", " ran="];

impl<'t> Line<'t> {
    /// Returns the name of the task, `kernel` for task 0.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text[self.name.0..self.name.1]
    }

    /// Returns the line from its verb on.
    #[must_use]
    pub fn event(&self) -> &str {
        &self.text[self.event..]
    }

    /// Returns the text after the verb.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.text[self.detail..]
    }

    /// Returns the words of the detail, without the commas after them.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        // Words are short, so comparing each character with an array is faster than a search for a
        // `char`.
        self.detail().split([' ']).map(|word| word.trim_end_matches(','))
    }

    /// Returns one of these words, counted from 0; empty if there are fewer.
    #[must_use]
    pub fn word(&self, nth: usize) -> &str {
        self.words().nth(nth).unwrap_or_default()
    }

    /// Returns the operation of a `trap`, `block` or `wake` line: its detail up to the first key or
    /// outcome. For a primitive, this is its kind and its name.
    #[must_use]
    pub fn op(&self) -> &str {
        let detail = self.detail();
        let end = OP_ENDS.into_iter().filter_map(|end| detail.find(end)).min();
        &detail[..end.unwrap_or(detail.len())]
    }

    /// Returns the value after the first `key=` in the detail. Free text has no keys.
    #[must_use]
    pub fn key(&self, key: &str) -> Option<&str> {
        if TEXTS.contains(&self.verb) {
            return None;
        }
        self.words().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// Returns the value of [`Line::key`] as a number. The number of an event can begin with `#`.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        self.key(key).and_then(|value| number(value.trim_start_matches('#')))
    }

    /// Returns the text after the first ` = `, up to the next answer, cause or call site.
    #[must_use]
    pub fn outcome(&self) -> Option<&str> {
        let (_, rest) = self.detail().split_once(" = ").filter(|_| !TEXTS.contains(&self.verb))?;
        let ends = [", ", " cause=", " at="].into_iter().filter_map(|end| rest.find(end));
        Some(&rest[..ends.min().unwrap_or(rest.len())])
    }

    /// Finds the cause and the ticket in one pass.
    fn numbers(&self) -> (Option<Seq>, Option<u64>) {
        let (mut cause, mut ticket) = (None, None);
        for word in self.words().filter(|_| !TEXTS.contains(&self.verb)) {
            if let Some(value) = word.strip_prefix("cause=") {
                cause.get_or_insert(value.trim_start_matches('#'));
            } else if let Some(value) = word.strip_prefix("k=") {
                ticket.get_or_insert(value);
            }
        }
        (cause.and_then(number), ticket.and_then(number))
    }

    /// Returns the same line with an owned text.
    #[must_use]
    pub fn into_owned(self) -> Line<'static> {
        let Line { at, turn, seq, task, verb, cause, ticket, text, name, event, detail } = self;
        let text = Cow::Owned(text.into_owned());
        Line { at, turn, seq, task, verb, cause, ticket, text, name, event, detail }
    }
}

/// As it was read.
impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The position at which a line is malformed, and the expected input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The column, from 1.
    pub column: usize,
    /// The expected input, in words.
    pub expected: &'static str,
    /// The text found there; empty at the end of the line.
    pub found: String,
}

/// The number of characters that an error shows of what was found.
const SHOWN: usize = 80;

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { column, expected, found } = self;
        write!(f, "column {column}: expected {expected}, found ")?;
        match found.char_indices().nth(SHOWN) {
            _ if found.is_empty() => f.write_str("the end of the line"),
            None => write!(f, "`{found}`"),
            Some((cut, _)) => write!(f, "`{}...`", &found[..cut]),
        }
    }
}

impl std::error::Error for ParseError {}

/// The line at which a log is malformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, from 1.
    pub line: usize,
    /// The error in that line.
    pub error: ParseError,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.error)
    }
}

impl std::error::Error for TraceError {}

/// A reader of a line, column by column.
struct Columns<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Columns<'t> {
    /// Reads the next column, which `read` must accept. Returns its position and its value.
    fn next<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'t str) -> Option<T>,
    ) -> Result<(usize, T), ParseError> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.bytes().take_while(|byte| *byte == b' ').count();
        let rest = &self.text[start..];
        let word = &rest[..rest.bytes().position(|byte| byte == b' ').unwrap_or(rest.len())];
        let Some(value) = read(word).filter(|_| !word.is_empty()) else {
            return Err(ParseError { column: start + 1, expected, found: word.to_owned() });
        };
        self.at = start + word.len();
        Ok((start, value))
    }
}

/// Reads one line of the log: its columns and its verb. The detail is not parsed.
///
/// # Errors
///
/// Returns an error with the first malformed column, or the word that is not a verb.
pub fn line(text: &str) -> Result<Line<'_>, ParseError> {
    let mut columns = Columns { text, at: 0 };
    let (_, at) =
        columns.next("the kernel time, seconds with six decimals", |at| at.parse().ok())?;
    let (_, turn) = columns.next("the turn, a number", number)?;
    let (_, seq) = columns
        .next("the number of an event, such as #0042", |seq| number(seq.strip_prefix('#')?))?;
    let (_, task) = columns.next("the task, a number", number)?;
    let (name, length) = columns.next("the name of the task", |name| Some(name.len()))?;
    let (event, verb) = columns.next("a verb from the list", verb)?;
    let (detail, ()) = columns.next("what the verb is about", |_| Some(()))?;
    let (text, name) = (Cow::Borrowed(text), (name, name + length));
    let (cause, ticket) = (None, None);
    let mut line = Line { at, turn, seq, task, verb, cause, ticket, text, name, event, detail };
    (line.cause, line.ticket) = line.numbers();
    Ok(line)
}

fn verb(text: &str) -> Option<&'static str> {
    Event::WORDS.iter().find(|verb| **verb == text).copied()
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// The version of the format.
const VERSION: &str = "v3";

/// Reads all lines of a log, without the header, remarks (`#` in the first column) and empty lines.
///
/// # Errors
///
/// Returns the error of the first malformed line. A header of another version is an error.
pub fn trace(text: &str) -> Result<Vec<Line<'_>>, TraceError> {
    let mut lines = Vec::new();
    for (nth, each) in text.lines().enumerate() {
        if let Some(version) = each.strip_prefix("#trace ") {
            if version.split(' ').next() != Some(VERSION) {
                let found = version.to_owned();
                let error = ParseError { column: 8, expected: VERSION, found };
                return Err(TraceError { line: nth + 1, error });
            }
        } else if !each.starts_with('#') && !each.trim().is_empty() {
            lines.push(line(each).map_err(|error| TraceError { line: nth + 1, error })?);
        }
    }
    Ok(lines)
}

/// Parses a duration as the log shows it: `1s`, `12.5ms`, `64us`, `never`. Returns `None` if it is
/// malformed.
#[must_use]
pub fn span(text: &str) -> Option<Duration> {
    if text == "never" {
        return Some(Time::NEVER.since(Time::ZERO));
    }
    let units = [("ms", 3), ("us", 0), ("s", 6)];
    let of = |(unit, decimals)| Some((text.strip_suffix(unit)?, decimals));
    let (number, decimals): (&str, usize) = units.into_iter().find_map(of)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let is_number = !whole.is_empty() && part.len() <= decimals;
    let micros = u64::from_str(&format!("{whole}{part:0<decimals$}")).ok()?;
    is_number.then(|| Time::from_micros(micros).since(Time::ZERO))
}
