//! Pieces: try first, wait on "not yet", and register once.

use testing::trace::{self, Line};

use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace::trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    let is_wait = |line: &&Line<'_>| line.verb == "block" && line.word(0) == "io";
    let is_try = |line: &&Line<'_>| line.verb == "trap" && line.word(0) == "clock";
    let (first_wait, first_try) = (lines.iter().find(is_wait), lines.iter().find(is_try));
    if let Some(wait) = first_wait
        && first_try.is_none_or(|tried| wait.seq < tried.seq)
    {
        return Err(format!(
            "line #{:04}: `reader` waits before it has tried to read, but the first piece is \
             there; an event may be over, so wait only after `None`",
            wait.seq
        ));
    }
    if lines.iter().any(|line| line.verb == "block" && line.word(0) == "sleep") {
        let text = "`reader` sleeps and looks again; nobody needs to look at a descriptor: wait \
                    for it, and the kernel says when";
        return Err(text.to_owned());
    }
    let said = work.log.lines().find_map(|line| line.split_once(" note     message "));
    match said {
        Some((_, "hello.")) => {}
        Some((_, other)) => {
            return Err(format!(
                "the message is `{other}`, and not `hello.`: `None` is no end, it means not yet"
            ));
        }
        None => return Err("no message was read".to_owned()),
    }
    match lines.iter().filter(|line| line.verb == "register").count() {
        1 => {}
        count => {
            return Err(format!(
                "{count} lines `register`, and one is enough: each `Io` is registered for itself, \
                 so wait with the `io` of the wire"
            ));
        }
    }
    match lines.iter().filter(is_wait).count() {
        2 => Ok(()),
        count => Err(format!("{count} waits for the wire, and 2 are needed")),
    }
}
