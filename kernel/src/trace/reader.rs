//! A line that is read from left to right, and what is wrong where it cannot be read.

use std::fmt;

/// Where a line stops being one, and what should stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The column, from 1.
    pub column: usize,
    /// The expected input, in words.
    pub expected: &'static str,
    /// The text found there; empty at the end of the line.
    pub found: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ParseError { column, expected, found } = self;
        write!(f, "column {column}: expected {expected}, found ")?;
        if found.is_empty() { f.write_str("the end of the line") } else { write!(f, "`{found}`") }
    }
}

impl std::error::Error for ParseError {}

pub(super) type Parsed<T> = Result<T, ParseError>;

/// A row of [`Reader::one_of`]: its first word, or `""` if that may be any, and what reads the rest
/// of it.
pub(super) type Row<T> = (&'static str, fn(&mut Reader<'_>) -> Parsed<T>);

/// A place in a line.
///
/// Words end at a space or a comma. The spaces before a word are skipped, however many they are:
/// that a line has the right ones is checked once, at its end.
#[derive(Clone, Copy)]
pub(super) struct Reader<'t> {
    line: &'t str,
    /// The part of `line` that is not read yet.
    rest: &'t str,
}

impl<'t> Reader<'t> {
    pub(super) fn new(line: &'t str) -> Reader<'t> {
        Reader { line, rest: line }
    }

    /// The next word, unread. Empty at the end of the line.
    pub(super) fn peek(&self) -> &'t str {
        let rest = self.ahead();
        &rest[..rest.bytes().position(|b| b == b' ' || b == b',').unwrap_or(rest.len())]
    }

    /// The unread part, from the next word on.
    fn ahead(&self) -> &'t str {
        &self.rest[self.rest.bytes().position(|b| b != b' ').unwrap_or(self.rest.len())..]
    }

    /// Reads `prefix` if the rest starts with it; says whether it did.
    pub(super) fn skip(&mut self, prefix: &str) -> bool {
        let rest = self.ahead().strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads `text`, which must be next.
    pub(super) fn expect(&mut self, text: &'static str) -> Parsed<()> {
        if self.skip(text) { Ok(()) } else { Err(self.wrong(text)) }
    }

    /// Reads the next word, which `read` must accept.
    pub(super) fn word<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'t str) -> Option<T>,
    ) -> Parsed<T> {
        let word = self.peek();
        let value = read(word).filter(|_| !word.is_empty());
        let value = value.ok_or_else(|| self.wrong(expected))?;
        self.skip(word);
        Ok(value)
    }

    /// Reads to the end of the line, which must not be here.
    pub(super) fn remainder(&mut self) -> Parsed<String> {
        let text = std::mem::take(&mut self.rest).trim_start_matches(' ');
        if text.is_empty() { Err(self.wrong("text")) } else { Ok(text.to_owned()) }
    }

    /// Reads what `read` makes something of, or nothing.
    pub(super) fn attempt<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'t>) -> Parsed<T>,
    ) -> Parsed<T> {
        let mut ahead = *self;
        let value = read(&mut ahead)?;
        *self = ahead;
        Ok(value)
    }

    /// Reads the first row that fits. If none does, the error is that of the row that was read
    /// furthest.
    pub(super) fn one_of<T>(&mut self, expected: &'static str, rows: &[Row<T>]) -> Parsed<T> {
        let (word, mut furthest) = (self.peek(), self.wrong(expected));
        for (first, read) in rows {
            if first.is_empty() || *first == word {
                match self.attempt(|line| line.expect(first).and_then(|()| read(line))) {
                    Ok(value) => return Ok(value),
                    Err(error) if error.column > furthest.column => furthest = error,
                    Err(_) => {}
                }
            }
        }
        Err(furthest)
    }

    /// The error of this place, without what was found there: most of these are of a value that was
    /// left out.
    pub(super) fn wrong(&self, expected: &'static str) -> ParseError {
        let column = self.line.len() - self.ahead().len() + 1;
        ParseError { column, expected, found: String::new() }
    }
}
