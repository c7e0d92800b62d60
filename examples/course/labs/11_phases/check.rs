//! Slow peers are closed in time, and each connection has one deadline for all its phases.

use std::time::Duration;

use testing::trace::{Line, trace};
use traps::Time;

use crate::work::Work;

/// A peer, how its connection is to end, and when at the latest, in tenths of a second. A deadline
/// may fire a tenth late.
const EXPECTED: [(&str, &str, u64); 5] = [
    ("quick", "answered 200", 40),
    ("patient", "answered 200", 150),
    ("silent", "closed", 51),
    ("trickle", "answered 408", 122),
    ("greedy", "closed", 61),
];

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    for (peer, end, tenths) in EXPECTED {
        let own: Vec<_> = lines.iter().filter(|line| line.name() == peer).collect();
        one_deadline(peer, &own)?;
        ends(peer, end, Time::ZERO + Duration::from_millis(100 * tenths), &own)?;
    }
    Ok(())
}

fn one_deadline(peer: &str, own: &[&Line<'_>]) -> Result<(), String> {
    let traps = |word: &'static str| {
        own.iter().filter(move |line| line.verb == "trap" && line.word(0) == word)
    };
    if let Some(line) = traps("set_timeout").next() {
        let seq = line.seq;
        return Err(format!(
            "line #{seq:04}: `{peer}` opens a timeout: that is a timer to set and to clear for \
             each phase; arm a connection deadline, which is a store"
        ));
    }
    let mut made = traps("connection_deadline");
    if made.next().is_none() {
        return Err(format!("`{peer}` makes no connection deadline"));
    }
    match made.next() {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `{peer}` makes another connection deadline; one serves all phases, if it \
             is armed anew for each",
            line.seq
        )),
    }
}

fn ends(peer: &str, end: &str, latest: Time, own: &[&Line<'_>]) -> Result<(), String> {
    let Some(note) = own.iter().find(|line| line.verb == "note") else {
        return Err(format!("`{peer}` is neither answered nor closed"));
    };
    let (seq, at, is) = (note.seq, note.at, note.event().trim_start_matches("note").trim());
    if is == end && at <= latest {
        return Ok(());
    }
    let why = match (peer, is) {
        ("patient", "closed") => {
            "the deadline of an earlier phase was still armed while it took its answer; arm it for \
             each phase"
        }
        ("patient", "answered 408") => {
            "it was slow, but in time in each phase; each phase has a time of its own, which \
             begins with it"
        }
        ("trickle", "closed") => "a head that is too slow is answered with 408",
        ("trickle", "answered 200") => {
            "it sent a line every 3 s, and the head took a minute; the time of the head begins \
             with its first byte, and no line gives it more"
        }
        ("greedy", _) => {
            "its head ended at 2 s, and there are 4 s from there to take the answer; arm the \
             deadline for the answer, and guard the wait"
        }
        _ => "it is the first phase that counts here, 5 s for the first byte",
    };
    Err(format!(
        "line #{seq:04}: `{peer}` is `{is}` at {at}, where `{end}` by {latest} is right; {why}"
    ))
}
