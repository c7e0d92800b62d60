//! Pieces: try first, wait on "not yet", and register once.

use std::collections::BTreeSet;

use testing::trace::{self, Line};

use super::scenario::{self, Piece};
use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace::trace(&work.log).map_err(|error| error.to_string())?;
    let pieces = scenario::of(work.seed);
    let end = pieces.iter().position(|piece| piece.text.ends_with('.')).unwrap_or_default();
    let pieces = &pieces[..=end];
    waits_after_not_yet(&lines)?;
    if let Some(line) = lines.iter().find(|line| line.verb == "block" && line.word(0) == "sleep") {
        return Err(format!(
            "line #{:04}: `{}` sleeps before it tries again; no sleep is needed: wait for the \
             descriptor, and the kernel says when it is ready",
            line.seq,
            line.name()
        ));
    }
    waits_before_the_next_try(&lines)?;
    message(&lines, pieces)?;
    // A piece that is there from the start needs no wait.
    let mut times: BTreeSet<_> = pieces.iter().map(|piece| piece.at).collect();
    let last = pieces[end].at;
    times.extend(scenario::false_alarms(work.seed).into_iter().filter(|at| *at < last));
    let right = times.iter().filter(|at| !at.is_zero()).count();
    if let Some(second) = lines.iter().filter(|line| line.verb == "register").nth(1) {
        return Err(format!(
            "line #{:04} is a second line `register`, and one is enough: each `Io` is registered \
             for itself, so wait with the `io` of the wire",
            second.seq
        ));
    }
    match lines.iter().filter(is_wait).count() {
        count if count == right => Ok(()),
        count => Err(format!("{count} waits for the wire, and {right} are needed")),
    }
}

fn is_wait(line: &&Line<'_>) -> bool {
    line.verb == "block" && line.word(0) == "io"
}

/// A line that `given.rs` wrote of a read.
fn is_read(line: &Line<'_>) -> bool {
    line.verb == "note" && ["read", "read:"].contains(&line.word(0))
}

/// The reads that got a piece.
fn reads<'l, 't>(lines: &'l [Line<'t>]) -> impl Iterator<Item = &'l Line<'t>> {
    lines.iter().filter(|line| is_read(line) && line.word(0) == "read")
}

/// Before each wait, the last read was answered with "not yet".
fn waits_after_not_yet(lines: &[Line<'_>]) -> Result<(), String> {
    // The last read since the last wait.
    let mut last = None;
    let mut has_waited = false;
    for line in lines {
        if is_read(line) {
            last = Some(line.detail());
        }
        if !is_wait(&line) {
            continue;
        }
        let (seq, name) = (line.seq, line.name());
        match last {
            Some("read: not yet") => (last, has_waited) = (None, true),
            Some(read) => {
                return Err(format!(
                    "line #{seq:04}: `{name}` has {read}, and waits; the next piece may be there \
                     already, so try again, and wait only after `None`"
                ));
            }
            None if has_waited => {
                return Err(format!(
                    "line #{seq:04}: `{name}` waits again before it has tried to read; an event \
                     may be over, so wait only after `None`"
                ));
            }
            None => {
                return Err(format!(
                    "line #{seq:04}: `{name}` waits before it has tried to read; a piece may be \
                     there from the start, so wait only after `None`"
                ));
            }
        }
    }
    Ok(())
}

/// After "not yet", a wait comes before the next read.
fn waits_before_the_next_try(lines: &[Line<'_>]) -> Result<(), String> {
    let mut is_not_yet = false;
    for line in lines.iter().filter(|line| is_read(line) || is_wait(line)) {
        if is_not_yet && is_read(line) {
            return Err(format!(
                "line #{:04}: `{}` tries again after `None` without a wait; the kernel says when \
                 the descriptor is ready, so wait for it",
                line.seq,
                line.name()
            ));
        }
        is_not_yet = line.detail() == "read: not yet";
    }
    Ok(())
}

/// A long message, by its ends.
fn short(message: &str) -> String {
    match (message.get(..20), message.len().checked_sub(20).and_then(|from| message.get(from..))) {
        (Some(first), Some(last)) if message.len() > 60 => format!("{first} ... {last}"),
        _ => message.to_owned(),
    }
}

/// The message is right, and it is there with its last piece.
fn message(lines: &[Line<'_>], pieces: &[Piece]) -> Result<(), String> {
    let right: String = pieces.iter().map(|piece| piece.text).collect();
    let is_result =
        |line: &&Line<'_>| line.verb == "note" && ["message", "error"].contains(&line.word(0));
    let Some(said) = lines.iter().find(is_result) else {
        let whole = reads(lines).nth(pieces.len() - 1);
        return Err(match whole {
            Some(last) => format!(
                "line #{:04}: `{}` has {}, and `message` does not return; the message ends with \
                 this full stop",
                last.seq,
                last.name(),
                last.detail()
            ),
            None => "the program ended before `message` returned".to_owned(),
        });
    };
    let last = lines.iter().rfind(|line| is_read(line) && line.seq < said.seq);
    let last = last.map_or("", |line| line.detail());
    let Some(message) = said.detail().strip_prefix("message ") else {
        return Err(format!("line #{:04}: `message` returned an {}", said.seq, said.detail()));
    };
    if message != right {
        let why = if last == "read: not yet" && right.starts_with(message) {
            ": `None` is no end, it means not yet"
        } else if right.starts_with(message) {
            ": it ends with the first piece that ends with a full stop, and not before"
        } else if message.starts_with(&right) {
            ": what comes after its full stop is the next message"
        } else {
            ""
        };
        let (message, right) = (short(message), short(&right));
        return Err(format!(
            "line #{:04}: the message is `{message}`, and not `{right}`{why}",
            said.seq
        ));
    }
    if let Some(extra) = reads(lines).nth(pieces.len()) {
        return Err(format!(
            "line #{:04}: `{}` has {} after the full stop, so it is lost for the next message",
            extra.seq,
            extra.name(),
            extra.detail()
        ));
    }
    let whole = pieces.last().map_or(0, |piece| piece.at.as_micros());
    let whole = format!("{}.{:06}", whole / 1_000_000, whole % 1_000_000);
    if said.at.to_string() == whole {
        Ok(())
    } else {
        Err(format!(
            "line #{:04}: the message is there at {}, and its last piece at {whole}",
            said.seq, said.at
        ))
    }
}
