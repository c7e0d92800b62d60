//! Reading a line word by word: the cursor behind `parse.rs`.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use traps::protocol::Direction;

use super::parse::ParseError;
use super::words::{Span, Word};
use super::{Alias, Event, Seq, Site, Stop, Text, Timer};

/// A place in a line: what stands before `at` is read.
pub(super) struct Words<'t> {
    /// The line, or its first part.
    pub(super) text: &'t str,
    /// In bytes.
    pub(super) at: usize,
}

impl<'t> Words<'t> {
    /// What is not read yet, without the spaces before it.
    pub(super) fn rest(&self) -> &'t str {
        self.text[self.at..].trim_start_matches(' ')
    }

    /// The next word, unread.
    pub(super) fn peek(&self) -> Option<&'t str> {
        self.rest().split(' ').next().filter(|word| !word.is_empty())
    }

    /// Reads `length` bytes of the rest.
    pub(super) fn skip(&mut self, length: usize) {
        self.at = self.text.len() - self.rest().len() + length;
    }

    /// The error of this place.
    pub(super) fn wrong(&self, expected: &'static str) -> ParseError {
        let column = self.text.len() - self.rest().len() + 1;
        ParseError { column, expected, found: self.peek().unwrap_or_default().to_owned() }
    }

    /// Reads the next word if `read` makes something of it.
    pub(super) fn try_with<T>(&mut self, read: impl FnOnce(&'t str) -> Option<T>) -> Option<T> {
        let word = self.peek()?;
        let value = read(word)?;
        self.skip(word.len());
        Some(value)
    }

    /// Reads the next word, of which `read` must make something.
    pub(super) fn with<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'t str) -> Option<T>,
    ) -> Result<T, ParseError> {
        self.try_with(read).ok_or_else(|| self.wrong(expected))
    }

    pub(super) fn parse<T: FromStr>(&mut self, expected: &'static str) -> Result<T, ParseError> {
        self.with(expected, |word| word.parse().ok())
    }

    pub(super) fn text(&mut self, expected: &'static str) -> Result<Text<'static>, ParseError> {
        self.with(expected, |word| Some(owned(word)))
    }

    /// Reads to the end of the line.
    pub(super) fn sentence(&mut self, expected: &'static str) -> Result<Text<'static>, ParseError> {
        let rest = self.rest();
        if rest.is_empty() {
            return Err(self.wrong(expected));
        }
        self.skip(rest.len());
        Ok(owned(rest))
    }

    /// Reads `key=value` if it is next and `read` makes something of the value.
    pub(super) fn field<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&'t str) -> Option<T>,
    ) -> Option<T> {
        self.try_with(|word| read(word.strip_prefix(key)?.strip_prefix('=')?))
    }

    /// Reads `key=value`, of whose value `read` must make something.
    pub(super) fn must<T>(
        &mut self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(&'t str) -> Option<T>,
    ) -> Result<T, ParseError> {
        self.field(key, read).ok_or_else(|| self.wrong(expected))
    }

    /// Reads `key=value` where the value is a number or a time.
    pub(super) fn value<T: FromStr>(
        &mut self,
        key: &str,
        expected: &'static str,
    ) -> Result<T, ParseError> {
        self.must(key, expected, |value| value.parse().ok())
    }

    /// The same where it may be missing.
    pub(super) fn any_value<T: FromStr>(&mut self, key: &str) -> Option<T> {
        self.field(key, |value| value.parse().ok())
    }

    /// Reads a number behind `letter`.
    pub(super) fn numbered(
        &mut self,
        letter: char,
        expected: &'static str,
    ) -> Result<u64, ParseError> {
        self.with(expected, |word| number(letter, word))
    }

    pub(super) fn job(&mut self) -> Result<u64, ParseError> {
        self.numbered('o', "a job, such as o1")
    }

    pub(super) fn queue(&mut self) -> Result<u64, ParseError> {
        self.numbered('q', "a queue, such as q1")
    }

    pub(super) fn scope(&mut self) -> Result<u64, ParseError> {
        self.numbered('s', "a scope, such as s1")
    }

    pub(super) fn scope_or_root(&mut self) -> Result<u64, ParseError> {
        self.with("a scope, such as s1, or `root`", |word| {
            if word == "root" { Some(0) } else { number('s', word) }
        })
    }

    pub(super) fn seq(&mut self) -> Result<Seq, ParseError> {
        self.numbered('#', "the number of an event, such as #0042")
    }

    pub(super) fn cause(&mut self) -> Result<Seq, ParseError> {
        self.must("cause", "cause=#SEQ, such as cause=#0042", |value| number('#', value))
    }

    pub(super) fn equals(&mut self) -> Result<(), ParseError> {
        self.with("`=` and the outcome", |word| (word == "=").then_some(()))
    }

    pub(super) fn alias(&mut self) -> Result<Alias, ParseError> {
        self.with("a descriptor, such as c1", alias)
    }

    pub(super) fn direction(&mut self) -> Result<Direction, ParseError> {
        self.with("`read` or `write`", Direction::of)
    }

    pub(super) fn task(&mut self) -> Result<u64, ParseError> {
        self.parse("a task, a number")
    }

    pub(super) fn by(
        &mut self,
        key: &str,
        expected: &'static str,
    ) -> Result<Option<u64>, ParseError> {
        self.must(key, expected, by)
    }

    pub(super) fn reason(&mut self) -> Text<'static> {
        self.field("reason", |value| Some(owned(value))).unwrap_or_default()
    }

    pub(super) fn site(&mut self, key: &str) -> Option<Site<'static>> {
        self.field(key, site)
    }

    /// The detail of a `longrun`.
    pub(super) fn longrun(&mut self) -> Result<Event<'static>, ParseError> {
        let ran = self.value("ran", "ran=SECONDS")?;
        let from = self.must("from", "from=TRAP@SITE", stop)?;
        let to = self.must("to", "to=TRAP@SITE", stop)?;
        Ok(Event::Longrun { ran, from, to })
    }

    /// Reads a cause that may be missing.
    pub(super) fn any_cause(&mut self) -> Option<Seq> {
        self.field("cause", |value| number('#', value))
    }

    /// Reads that word, if it is the next.
    pub(super) fn flag(&mut self, flag: &str) -> bool {
        self.try_with(|word| (word == flag).then_some(())).is_some()
    }

    /// Reads an error's words, after the first: up to the next that is a field or `=`.
    pub(super) fn phrase(&mut self, first: &str) -> Text<'static> {
        let mut text = first.to_owned();
        while let Some(word) = self.try_with(|word| (!word.contains('=')).then_some(word)) {
            text.push(' ');
            text.push_str(word);
        }
        text.into()
    }

    pub(super) fn ticket(&mut self) -> Result<u64, ParseError> {
        self.value("k", "the ticket, k=N")
    }

    pub(super) fn timer(&mut self) -> Result<Timer, ParseError> {
        self.with("a timer: k=12, s3, d4, `drain` or `grace`", |word| match word {
            "grace" => Some(Timer::Grace),
            "drain" => Some(Timer::Drain),
            _ => (word.strip_prefix("k=").and_then(|n| n.parse().ok()).map(Timer::Sleep))
                .or_else(|| number('s', word).map(Timer::Scope))
                .or_else(|| number('d', word).map(Timer::Deadline)),
        })
    }
}

pub(super) fn owned(text: &str) -> Text<'static> {
    Cow::Owned(text.to_owned())
}

fn site(value: &str) -> Option<Site<'static>> {
    let (file, line) = value.rsplit_once(':')?;
    Some(Site { file: owned(file), line: line.parse().ok()? })
}

fn stop(value: &str) -> Option<Stop<'static>> {
    let Some((trap, at)) = value.split_once('@') else {
        return Some(Stop { trap: owned(value), at: None });
    };
    Some(Stop { trap: owned(trap), at: Some(site(at)?) })
}

pub(super) fn number(letter: char, word: &str) -> Option<u64> {
    word.strip_prefix(letter)?.parse().ok()
}

pub(super) fn alias(word: &str) -> Option<Alias> {
    let kind = word.chars().next().filter(char::is_ascii_lowercase)?;
    Some(Alias { kind, number: word[1..].parse().ok()? })
}

pub(super) fn by(value: &str) -> Option<Option<u64>> {
    if value == "-" { Some(None) } else { value.parse().ok().map(Some) }
}

pub(super) fn span(word: &str) -> Option<Duration> {
    word.parse().ok().map(|Span(span)| span)
}
