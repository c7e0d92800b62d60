//! Never half done: what was taken is given, and what was locked is unlocked.

use testing::trace::{Line, trace};

use crate::work::Work;

/// The lines of one transfer.
struct Transfer<'w> {
    name: &'static str,
    lines: Vec<&'w Line<'w>>,
}

impl<'w> Transfer<'w> {
    fn note(&self, text: &str) -> Option<&'w Line<'w>> {
        let is_it = |line: &&&Line<'_>| line.verb == "note" && line.event().ends_with(text);
        self.lines.iter().find(is_it).copied()
    }

    /// Where an interrupt ended a wait, or came instead of one.
    fn interrupted(&self) -> Option<&'w Line<'w>> {
        let is_it = |line: &&&Line<'_>| {
            ["deliver", "trap"].contains(&line.verb) && line.event().contains("= !cancelled")
        };
        self.lines.iter().find(is_it).copied()
    }

    fn last(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.seq)
    }
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    for name in ["calm", "early", "middle", "late"] {
        let lines = lines.iter().filter(|line| line.name() == name).collect();
        let transfer = Transfer { name, lines };
        whole(&transfer)?;
        stopped(&transfer)?;
        unlocked(&transfer, &work.source)?;
    }
    Ok(())
}

/// All of it, or nothing.
fn whole(transfer: &Transfer<'_>) -> Result<(), String> {
    let name = transfer.name;
    if transfer.note("locked").is_none() {
        return Err(format!("`{name}` does not lock the accounts"));
    }
    if let (Some(taken), None) = (transfer.note("taken"), transfer.note("given")) {
        let (taken, cut) = (taken.seq, transfer.interrupted().map_or(0, |line| line.seq));
        return Err(format!(
            "line #{cut:04}: the cancellation of `{name}` ended its wait while it gave; the money \
             was taken in line #{taken:04}, and is lost"
        ));
    }
    if let (None, Some(given)) = (transfer.note("taken"), transfer.note("given")) {
        let seq = given.seq;
        return Err(format!("line #{seq:04}: `{name}` gives money that it has not taken"));
    }
    if ["calm", "late"].contains(&name) && transfer.note("given").is_none() {
        let last = transfer.last();
        return Err(format!("line #{last:04}: `{name}` ends, and has not given the money"));
    }
    Ok(())
}

/// Who is cancelled in time takes nothing, and says why.
fn stopped(transfer: &Transfer<'_>) -> Result<(), String> {
    if transfer.name != "early" {
        return Ok(());
    }
    if let Some(taken) = transfer.note("taken") {
        let (seq, at) = (taken.seq, taken.at);
        return Err(format!(
            "line #{seq:04}: `early` was cancelled at 1.000000, while it looked up, and takes the \
             money at {at}; until the money is taken a transfer can be given up"
        ));
    }
    let has_error = transfer.lines.iter().any(|line| {
        line.verb == "note" && line.word(0) == "error" && line.event().contains("!cancelled")
    });
    if has_error {
        return Ok(());
    }
    let last = transfer.last();
    Err(format!(
        "line #{last:04}: the transfer of `early` was given up, and `transfer` gives `Ok`; its \
         caller takes it for done"
    ))
}

/// Also at the end of a transfer that was given up.
fn unlocked(transfer: &Transfer<'_>, source: &str) -> Result<(), String> {
    if transfer.note("unlocked").is_some() {
        return Ok(());
    }
    let (name, last) = (transfer.name, transfer.last());
    let is_behind_a_shield = transfer.interrupted().is_some_and(|line| line.verb == "trap");
    if let (true, Some(cut)) = (is_behind_a_shield, transfer.interrupted()) {
        let seq = cut.seq;
        return Err(format!(
            "line #{seq:04}: `{name}` is interrupted where it would unlock: a shield had held the \
             cancellation back, and the first wait behind it gets it"
        ));
    }
    let why = match source.contains("impl Drop") {
        true => "a destructor cannot await, and a future that nobody polls does nothing",
        false => "`?` leaves at once, and what is written below it does not run",
    };
    Err(format!("line #{last:04}: `{name}` ends, and the accounts are still locked; {why}"))
}
