//! A transfer is never half done: money that was taken is given, and locked accounts are
//! unlocked.

use std::time::Duration;

use testing::trace::{Line, trace};
use traps::Time;

use super::scenario::{self, Customer, Phase, Scenario};
use crate::work::{self, Work};

/// The notes of a bank, in the order of a whole transfer.
const STEPS: [&str; 5] = ["locked", "looked up", "taken", "given", "unlocked"];

/// The lines of one transfer: those of its task, and those of the tasks that it has spawned.
struct Transfer<'w> {
    name: &'static str,
    cancelled: Option<(Phase, Time)>,
    /// The last deadline of the customer.
    limit: Option<Time>,
    lines: Vec<&'w Line<'w>>,
    /// The result of `transfer`.
    returned: &'w Line<'w>,
}

impl<'w> Transfer<'w> {
    fn read(lines: &'w [Line<'w>], customer: &Customer) -> Result<Transfer<'w>, String> {
        let name = customer.name;
        let lines = work::family(lines, name);
        let returned = lines.iter().find(|line| line.verb == "note" && line.word(0) == "returned");
        let returned = *returned.ok_or_else(|| format!("the transfer of `{name}` does not end"))?;
        let at = |(phase, after): (Phase, Duration)| (phase, Time::ZERO + after);
        let cancelled = customer.cancelled.map(at);
        let limit = customer.limits.last().map(|limit| Time::ZERO + *limit);
        Ok(Transfer { name, cancelled, limit, returned, lines })
    }

    fn note(&self, text: &str) -> Option<&'w Line<'w>> {
        self.lines.iter().find(|line| is_note(line, text)).copied()
    }

    /// The first line after `from` at which an interrupt ended a wait, or prevented one.
    fn interrupted(&self, from: u64) -> Option<&'w Line<'w>> {
        let is_it = |line: &&&Line<'_>| {
            line.seq > from
                && ["deliver", "trap"].contains(&line.verb)
                && line.event().contains("= !cancelled")
        };
        self.lines.iter().find(is_it).copied()
    }

    fn is_ok(&self) -> bool {
        is_note(self.returned, "returned Ok")
    }
}

fn is_note(line: &Line<'_>, text: &str) -> bool {
    line.verb == "note" && line.detail() == text
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let scenario = scenario::of(work.seed);
    for customer in &scenario.customers {
        let transfer = Transfer::read(&lines, customer)?;
        once(&transfer)?;
        one_by_one(&transfer, &scenario)?;
        given_up(&transfer, &scenario)?;
        joined(&transfer)?;
        given(&transfer)?;
        unlocked(&transfer, &work.code())?;
        truth(&transfer)?;
    }
    Ok(())
}

/// Each step happens once, and in the order of the bank.
fn once(transfer: &Transfer<'_>) -> Result<(), String> {
    let name = transfer.name;
    let mut done = 0;
    for line in transfer.lines.iter().filter(|line| line.verb == "note") {
        let Some(step) = STEPS.iter().position(|step| *step == line.detail()) else { continue };
        let (seq, what) = (line.seq, STEPS[step]);
        let earlier = transfer.note(what).map_or(seq, |first| first.seq);
        if earlier < seq {
            return Err(format!(
                "line #{seq:04}: `{name}` notes `{what}` again, after line #{earlier:04}; each \
                 step is done once"
            ));
        }
        if step < done {
            return Err(format!(
                "line #{seq:04}: `{name}` notes `{what}` after `{}`; the order is: lock, look up, \
                 take, give, unlock",
                STEPS[done]
            ));
        }
        let missing = STEPS[..step].iter().find(|each| transfer.note(each).is_none());
        // A transfer that is given up is unlocked without its other steps.
        if let Some(missing) = missing.filter(|each| what != "unlocked" || **each == "locked") {
            return Err(format!(
                "line #{seq:04}: `{name}` notes `{what}`, and has never noted `{missing}`"
            ));
        }
        done = step;
    }
    Ok(())
}

/// No step begins before the step before it has ended.
fn one_by_one(transfer: &Transfer<'_>, scenario: &Scenario) -> Result<(), String> {
    let steps = STEPS.windows(2).zip(scenario.spans);
    for (pair, span) in steps {
        let (Some(before), Some(after)) = (transfer.note(pair[0]), transfer.note(pair[1])) else {
            continue;
        };
        if after.at < before.at + span {
            let (seq, begin, name) = (after.seq, after.at - span, transfer.name);
            return Err(format!(
                "line #{seq:04}: what `{name}` notes as `{}` has begun at {begin}, before it noted \
                 `{}` in line #{:04}; a step begins when the one before has ended",
                pair[1], pair[0], before.seq
            ));
        }
    }
    Ok(())
}

/// A transfer that is cancelled while it looks up ends at once, without money.
fn given_up(transfer: &Transfer<'_>, scenario: &Scenario) -> Result<(), String> {
    let Some((Phase::LookUp, at)) = transfer.cancelled else { return Ok(()) };
    let name = transfer.name;
    let cancelled = format!("`{name}` was cancelled at {at}, while it looked up");
    for step in ["taken", "looked up"] {
        if let Some(line) = transfer.note(step) {
            let (seq, at) = (line.seq, line.at);
            return Err(format!(
                "line #{seq:04}: {cancelled}, and notes `{step}` at {at}; until the money is taken \
                 a transfer can be given up"
            ));
        }
    }
    // An `unlock` that the deadline interrupts can be done again.
    let latest = transfer.limit.map_or(at, |limit| limit.max(at));
    let latest = latest + scenario.spans[Phase::Unlock as usize];
    let (seq, at) = (transfer.returned.seq, transfer.returned.at);
    if at > latest {
        return Err(format!(
            "line #{seq:04}: {cancelled}, and `transfer` returns at {at}; only the accounts are \
             left to unlock then, which is done at {latest}"
        ));
    }
    Ok(())
}

/// No task that works for the transfer is left behind.
fn joined(transfer: &Transfer<'_>) -> Result<(), String> {
    let (name, end) = (transfer.name, transfer.returned.seq);
    if transfer.note("unlocked").is_some_and(|line| line.seq < end) {
        return Ok(());
    }
    let has_ended = |task| {
        let is_exit = |line: &&&Line<'_>| line.task == task && line.verb == "exit";
        transfer.lines.iter().find(is_exit).is_some_and(|line| line.seq < end)
    };
    let mut spawned = transfer.lines.iter().filter(|line| line.verb == "spawn").skip(1);
    match spawned.find(|line| line.seq < end && !has_ended(line.task)) {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{end:04}: `transfer` returns to `{name}`, and its task {} `{}` is still at \
             work; join what you have spawned",
            line.task,
            line.name()
        )),
    }
}

/// Money that was taken is given, and it is taken unless the transfer is cancelled before.
fn given(transfer: &Transfer<'_>) -> Result<(), String> {
    let name = transfer.name;
    let end = transfer.returned.seq;
    if let (Some(taken), None) = (transfer.note("taken"), transfer.note("given")) {
        let taken = taken.seq;
        let is_cut = |line: &&&Line<'_>| line.verb == "deliver" && line.event().contains("= !");
        let mut after = transfer.lines.iter().filter(|line| line.seq > taken);
        return Err(match after.rfind(is_cut) {
            Some(cut) if !cut.event().contains("= !cancelled") => format!(
                "line #{:04}: a timeout ended the wait of `{name}` while it gave; the money was \
                 taken in line #{taken:04}, and is lost",
                cut.seq
            ),
            Some(cut) => format!(
                "line #{:04}: the cancellation of `{name}` ended its wait while it gave; the money \
                 was taken in line #{taken:04}, and is lost",
                cut.seq
            ),
            None => format!(
                "line #{end:04}: `transfer` returns, and `{name}` has not given the money that it \
                 has taken in line #{taken:04}"
            ),
        });
    }
    if transfer.note("given").is_some() {
        return Ok(());
    }
    let why = match transfer.cancelled {
        Some((Phase::LookUp | Phase::Take, _)) => return Ok(()),
        None => "no task has cancelled it".to_owned(),
        Some((_, at)) if at > transfer.returned.at => {
            format!("no task has cancelled it by then; that comes only at {at}")
        }
        Some((_, at)) => format!("it was cancelled at {at}, too late to give it up"),
    };
    Err(format!("line #{end:04}: `transfer` returns, and `{name}` has given no money; {why}"))
}

/// The accounts are unlocked before the transfer returns, even if it was given up.
fn unlocked(transfer: &Transfer<'_>, code: &str) -> Result<(), String> {
    let (name, end) = (transfer.name, transfer.returned.seq);
    if transfer.note("locked").is_none() {
        return Err(format!("`{name}` does not lock the accounts"));
    }
    if transfer.note("unlocked").is_some() {
        return Ok(());
    }
    let given = transfer.note("given").map_or(0, |line| line.seq);
    let cut = transfer.interrupted(given);
    if let Some(cut) = cut.filter(|line| line.verb == "trap") {
        return Err(format!(
            "line #{:04}: `{name}` is interrupted where it would unlock: a shield had held the \
             cancellation back, and the first wait behind it gets it",
            cut.seq
        ));
    }
    if let (Some(cut), Some((Phase::Unlock, _))) = (cut, transfer.cancelled) {
        return Err(format!(
            "line #{:04}: the cancellation of `{name}` ended its wait while it unlocked, and the \
             accounts are still locked",
            cut.seq
        ));
    }
    let is_deadline = |line: &&&Line<'_>| {
        let event = line.event();
        line.verb == "deliver" && event.contains("= !") && !event.contains("= !cancelled")
    };
    if let Some(cut) = transfer.lines.iter().find(is_deadline) {
        return Err(format!(
            "line #{:04}: a timeout ended the wait of `{name}` while it unlocked, and the accounts \
             are still locked",
            cut.seq
        ));
    }
    let why = if code.contains("impl Drop") {
        "a destructor cannot await, and a future that is not polled does nothing"
    } else if cut.is_some() {
        "`?` leaves at once, and what is written below it does not run"
    } else {
        "`unlock` is the last step"
    };
    Err(format!("line #{end:04}: `{name}` ends, and the accounts are still locked; {why}"))
}

/// The caller learns whether the money was given.
fn truth(transfer: &Transfer<'_>) -> Result<(), String> {
    let (name, seq) = (transfer.name, transfer.returned.seq);
    let returned = transfer.returned.word(1);
    match (transfer.note("given"), transfer.is_ok()) {
        (Some(given), false) => Err(format!(
            "line #{seq:04}: `transfer` returns an interrupt to `{name}`, and the money was given \
             in line #{:04}; its caller would give it again",
            given.seq
        )),
        (None, true) => Err(format!(
            "line #{seq:04}: the transfer of `{name}` was given up, and `transfer` returns `Ok`; \
             its caller takes it for done"
        )),
        (None, false) if transfer.limit.is_none() && returned != "!cancelled" => {
            match transfer.interrupted(0).filter(|line| line.seq < seq) {
                None => Ok(()),
                Some(cut) => Err(format!(
                    "line #{seq:04}: the cancellation of `{name}` {} its wait in line #{:04}, and \
                     `transfer` returns `{returned}`; return the interrupt of the wait",
                    if cut.verb == "trap" { "prevented" } else { "ended" },
                    cut.seq
                )),
            }
        }
        _ => Ok(()),
    }
}
