//! Attempts: one's own timeout is handled, and every other interrupt is passed on.

use std::time::Duration;

use testing::trace::{self, Line};

use super::scenario::{self, Attempt, Call};
use crate::work::Work;

const SECOND: Duration = Duration::from_secs(1);

/// How a call ends.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Value(u32),
    /// All three attempts timed out.
    ThirdTimeout,
    /// The deadline of the caller has passed.
    Caller,
    /// A timeout inside the attempt.
    Inside,
}

/// What a call should do: its attempts with their times, and its end.
struct Right {
    attempts: Vec<Duration>,
    at: Duration,
    end: End,
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace::trace(&work.log).map_err(|error| error.to_string())?;
    let notes: Vec<&Line<'_>> = lines.iter().filter(|line| line.verb == "note").collect();
    let mut calls = notes.split(|note| note.word(0) == "call").skip(1);
    let mut start = Duration::ZERO;
    for (nth, call) in scenario::of(work.seed).iter().enumerate() {
        let right = right(call, start);
        let notes = calls.next().ok_or_else(|| format!("the program ended after {nth} calls"))?;
        compare(notes, &right)
            .and_then(|()| one_after_the_other(&lines, notes))
            .and_then(|()| interrupt_of_the_last(&lines, notes, right.end))
            .map_err(|(line, wrong)| match line {
                Some(seq) => format!("call {}, line #{seq:04}: {wrong}", nth + 1),
                None => format!("call {}: {wrong}", nth + 1),
            })?;
        start = right.at;
    }
    Ok(())
}

/// Does the call as the page says.
fn right(call: &Call, start: Duration) -> Right {
    let caller = start + call.limit;
    let (mut attempts, mut at) = (Vec::new(), start);
    loop {
        attempts.push(at);
        let n = attempts.len();
        let (own, (over, end)) = (
            at + SECOND,
            match call.attempts[n - 1] {
                Attempt::Value(takes) => (at + takes, End::Value(call.value + n as u32)),
                Attempt::Fails(limit) => (at + limit, End::Inside),
            },
        );
        // Of equal times, that of the timer that was set first counts.
        at = over.min(own).min(caller);
        if at == caller {
            return Right { attempts, at, end: End::Caller };
        }
        if at != own {
            return Right { attempts, at, end };
        }
        if n == 3 {
            return Right { attempts, at, end: End::ThirdTimeout };
        }
    }
}

/// A fault of a call: the number of its line in the log, if there is one, and the sentence.
type Fault = (Option<u64>, String);

/// Compares the notes of a call with what it should do.
fn compare(notes: &[&Line<'_>], right: &Right) -> Result<(), Fault> {
    let begun: Vec<&&Line<'_>> = notes.iter().filter(|note| note.word(0) == "attempt").collect();
    let result = notes.iter().find(|note| ["value", "no"].contains(&note.word(0)));
    for (nth, note) in begun.iter().enumerate() {
        let n = nth + 1;
        let fault = |wrong| Err((Some(note.seq), wrong));
        let Some(at) = right.attempts.get(nth) else {
            return fault(one_more(n, note, right));
        };
        if note.word(1) != n.to_string() {
            return fault(format!(
                "`fetch({})` at {}; expected `fetch({n})`",
                note.word(1),
                note.at
            ));
        }
        if u128::from(note.at.as_micros()) != at.as_micros() {
            return fault(format!("attempt {n} begins at {}, and not at {}", note.at, shown(*at)));
        }
    }
    match (result, begun.len()) {
        (_, 0) => Err((None, "it makes no attempt".to_owned())),
        (None, _) => Err((None, "`attempts` has not returned".to_owned())),
        (Some(result), count) => {
            compare_end(result, count, right).map_err(|wrong| (Some(result.seq), wrong))
        }
    }
}

/// Compares the result of a call, after so many attempts.
fn compare_end(result: &Line<'_>, count: usize, right: &Right) -> Result<(), String> {
    let (at, said) = (result.at, result.detail());
    let value = (result.word(0) == "value").then(|| result.word(1));
    let time_is = |time: Duration| u128::from(at.as_micros()) == time.as_micros();
    let deadline = right.attempts[count - 1] + SECOND;
    if value.is_some() && u128::from(at.as_micros()) > deadline.as_micros() {
        return Err(format!(
            "attempt {count} returned a value at {at}; each attempt must be under a timeout of 1 s \
             of its own"
        ));
    }
    if let Some(next) = right.attempts.get(count) {
        return Err(if time_is(deadline) {
            format!(
                "attempt {count} timed out after 1 s, and the call ends with `{said}`; your own \
                 timeout is handled where it belongs: try again"
            )
        } else {
            let next = shown(*next);
            format!("it ends at {at} with `{said}`; expected attempt {} at {next}", count + 1)
        });
    }
    if !time_is(right.at) {
        return Err(format!("it ends at {at}, and should end at {}", shown(right.at)));
    }
    match (right.end, value) {
        (End::Value(right), value) if value == Some(&*right.to_string()) => Ok(()),
        (End::Value(right), _) => {
            Err(format!("attempt {count} returned {right}, and the call ends with `{said}`"))
        }
        (_, None) => Ok(()),
        (End::ThirdTimeout, Some(_)) => Err(format!(
            "attempt 3 timed out, and the call ends with `{said}`; return the interrupt of attempt \
             3"
        )),
        (_, Some(_)) => Err(format!(
            "attempt {count} was interrupted by a timeout that is not yours, and the call ends \
             with `{said}`; return the interrupt"
        )),
    }
}

/// An attempt is over before the next one, or the call, also if it has a task of its own.
fn one_after_the_other(lines: &[Line<'_>], notes: &[&Line<'_>]) -> Result<(), Fault> {
    let is_step = |note: &&&Line<'_>| ["attempt", "value", "no"].contains(&note.word(0));
    let steps: Vec<&&Line<'_>> = notes.iter().filter(is_step).collect();
    for pair in steps.windows(2) {
        let (attempt, next) = (pair[0], pair[1]);
        let is_exit = |line: &Line<'_>| line.verb == "exit" && line.task == attempt.task;
        if attempt.task != next.task
            && !lines.iter().any(|line| is_exit(line) && line.seq < next.seq)
        {
            let wrong = format!(
                "{} goes on in task {} at {}, when its time is up; the timeout ends only waits of \
                 your task",
                attempt.detail(),
                attempt.task,
                next.at
            );
            return Err((Some(next.seq), wrong));
        }
    }
    Ok(())
}

/// The interrupt that leaves the call is that of its last attempt.
fn interrupt_of_the_last(lines: &[Line<'_>], notes: &[&Line<'_>], end: End) -> Result<(), Fault> {
    let mut attempts = notes.iter().filter(|note| note.word(0) == "attempt");
    let last = attempts.next_back().filter(|_| !matches!(end, End::Value(_)));
    let result = notes.iter().find(|note| note.word(0) == "no");
    let (Some(last), Some(result)) = (last, result) else { return Ok(()) };
    // The caller's scope closes with the interrupt, just before the result is noted.
    let is_close = |line: &&Line<'_>| line.word(0) == "unset_timeout" && line.seq < result.seq;
    let Some(close) = lines.iter().rfind(is_close) else { return Ok(()) };
    let Some(scope) = close.words().find_map(|word| word.strip_prefix("scope=")) else {
        return Ok(());
    };
    let (line, last_attempt) = (Some(close.seq), last.detail());
    let fired = lines.iter().find(|line| line.verb == "fire" && line.word(0) == scope);
    if let Some(fired) = fired.filter(|fired| fired.seq < last.seq) {
        let wrong = format!(
            "it returns the interrupt of scope {scope}, which fired at {}, before {last_attempt}; \
             return the interrupt of {last_attempt}",
            fired.at
        );
        return Err((line, wrong));
    }
    let is_set =
        |line: &&Line<'_>| line.word(0) == "set_timeout" && line.words().any(|word| word == scope);
    let set = lines.iter().find(is_set);
    let ended = lines.iter().find(|line| line.verb == "fire" && line.seq > last.seq);
    if let (Some(set), Some(ended)) = (set, ended)
        && set.seq > ended.seq
    {
        let wrong = format!(
            "it returns the interrupt of scope {scope}, which was opened in line #{:04}, when \
             {last_attempt} was over; return the interrupt of {last_attempt}",
            set.seq
        );
        return Err((line, wrong));
    }
    let before = attempts.next_back().filter(|_| end == End::ThirdTimeout);
    match (before, set) {
        (Some(before), Some(set)) if set.seq < before.seq => {
            let wrong = format!(
                "it returns the interrupt of scope {scope}, which is around {} too; return the \
                 interrupt of a timeout around {last_attempt} alone",
                before.detail()
            );
            Err((line, wrong))
        }
        _ => Ok(()),
    }
}

/// The sentence for an attempt that must not be.
fn one_more(n: usize, note: &Line<'_>, right: &Right) -> String {
    let head = format!("attempt {n} begins at {}", note.at);
    match right.end {
        End::ThirdTimeout => format!(
            "{head}, and three attempts are the most; if the third times out, return its interrupt"
        ),
        End::Caller => format!(
            "{head}, although the deadline of the caller has passed; a `timeout-cancellation` is \
             not yours: return it"
        ),
        End::Inside => format!(
            "{head}, although attempt {} failed by a timeout inside of `fetch`; an \
             `uncaught-timeout` is not yours: return it",
            n - 1
        ),
        End::Value(value) => format!("{head}, although attempt {} returned {value}", n - 1),
    }
}

fn shown(time: Duration) -> String {
    format!("{}.{:06}", time.as_secs(), time.subsec_micros())
}
