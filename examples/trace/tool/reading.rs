//! Reads a log line by line.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, Read as _};

use testing::trace::{self, Line, ParseError, TraceError};

/// A malformed line: its number in the file, from 1, and the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// From 1.
    pub number: usize,
    /// The expected input.
    pub error: ParseError,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, {}", self.number, self.error)
    }
}

/// The position of a line in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Its number, from 1.
    pub number: usize,
    /// The number of bytes before the line.
    pub offset: u64,
    /// The number of its bytes, including the line end.
    pub size: usize,
}

/// A line of the input.
pub enum Read<'t> {
    /// A line of the log.
    Line(Line<'t>, Origin),
    /// The header.
    Header(&'t str),
    /// A remark.
    Remark(&'t str),
    /// None of them.
    Bad(Bad),
}

/// The text of a line as it may reach a terminal: a character that controls a terminal or the
/// direction of a text is escaped. A log has none of these; another file may.
pub fn plain(bytes: &[u8]) -> Cow<'_, str> {
    let is_plain = bytes.iter().all(|byte| (b' '..=b'~').contains(byte));
    let text = String::from_utf8_lossy(bytes);
    let is_safe = |c: char| {
        !c.is_control() && !matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if is_plain || text.chars().all(is_safe) {
        return text;
    }
    let mut escaped = String::new();
    for c in text.chars() {
        if is_safe(c) { escaped.push(c) } else { escaped.extend(c.escape_default()) }
    }
    Cow::Owned(escaped)
}

/// The largest number of bytes in a line. A file with a longer line is not a log.
const MOST: usize = 1 << 24;

const RECORD: &str = "\
this is a record and no log: `grep -v '^<'` prints the log in it, if it has one, and a replay with \
`--trace` writes it";

/// Reads a trace line by line.
///
/// # Errors
///
/// Returns the errors of the input. Returns an error for a header of another version, because the
/// lines would have another meaning, for a record, and for a line that is too long for a log.
pub fn read_lines(
    mut input: impl BufRead,
    mut seen: impl FnMut(Read<'_>),
) -> io::Result<Option<String>> {
    let (mut bytes, mut next, mut header) = (Vec::new(), Origin::default(), None);
    loop {
        bytes.clear();
        let size = input.by_ref().take(MOST as u64).read_until(b'\n', &mut bytes)?;
        if size == 0 {
            return Ok(header);
        }
        let wrong = |text| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        if next.number == 0 && bytes.starts_with(b"<trapline-record ") {
            return wrong(RECORD.to_owned());
        }
        if size == MOST {
            let number = next.number + 1;
            return wrong(format!("line {number} has 16 MiB and no end: this is no log"));
        }
        next = Origin { number: next.number + 1, offset: next.offset + next.size as u64, size };
        let is_cut = bytes.pop_if(|byte| *byte == b'\n').is_none();
        bytes.pop_if(|byte| *byte == b'\r');
        let (text, number) = (plain(&bytes), next.number);
        if text.starts_with("#trace ") {
            trace::trace(&text).map_err(|TraceError { error, .. }| {
                let text = format!("line {number}, {error}: this tool reads no other version");
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?;
            seen(Read::Header(&text));
            header = Some(text.into_owned());
        } else if text.starts_with('#') {
            seen(Read::Remark(&text));
        } else if !text.trim().is_empty() {
            match trace::line(&text) {
                // A number that is cut off would be another number.
                Ok(line) if is_cut && line.verb != "halt" => {
                    let (column, found) = (text.len() + 1, String::new());
                    let error = ParseError { column, expected: "the rest of the line", found };
                    seen(Read::Bad(Bad { number, error }));
                }
                Ok(line) => seen(Read::Line(line, next)),
                Err(error) => seen(Read::Bad(Bad { number, error })),
            }
        }
    }
}
