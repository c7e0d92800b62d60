//! Text back to a line: accepts exactly what `Display` prints, and nothing else.
//!
//! The grammar needs no look-ahead beyond one word: free text holds no `=` where something may
//! follow it, and no `,` where a list may.

use std::borrow::Cow;
use std::fmt;

use traps::Kind;

use super::cursor::{Words, by, number, owned, span};
use super::phase::phase;
use super::words::Word;
use super::{Answered, Effect, Event, Exit, Line, Op, Outcome, Timed, WakeOp, Why};

/// Where a line stops being one, and what should stand there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The column, from 1.
    pub column: usize,
    /// What was expected, in words.
    pub expected: &'static str,
    /// What is there; empty at the end of the line.
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

/// One line of the log.
///
/// `line(text)?.to_string() == text` for every text that it accepts.
///
/// # Errors
///
/// The first word that is not what the grammar has there, or the first column that differs from
/// the one form in which the line is printed.
pub fn line(text: &str) -> Result<Line<'static>, ParseError> {
    let mut words = Words { text, at: 0 };
    let at = words.parse("the kernel time, seconds with six decimals")?;
    let turn = words.parse("the turn, a number")?;
    let seq = words.seq()?;
    let task = words.parse("the task, a number")?;
    let name = words.text("the name of the task")?;
    let event = event(&mut words)?;
    let timed = if event.ends_in_text() { None } else { timed(&mut words)? };
    if words.peek().is_some() {
        return Err(words.wrong("the end of the line"));
    }
    let line = Line { at, turn, seq, task, name, event, timed };
    let printed = line.to_string();
    if printed == text {
        return Ok(line);
    }
    let same = |(ours, theirs): &(u8, u8)| ours == theirs;
    words.at = printed.bytes().zip(text.bytes()).take_while(same).count();
    let column = words.at + 1;
    let found = text.chars().skip(words.at).collect();
    Err(ParseError { column, expected: "the spacing and digits of the printed form", found })
}

/// All lines of a log, without the header, remarks (`#` in the first column) and empty lines.
///
/// # Errors
///
/// The number, from 1, of the first line that is wrong, and what is wrong with it. A header of
/// another version is.
pub fn trace(text: &str) -> Result<Vec<Line<'static>>, (usize, ParseError)> {
    let mut lines = Vec::new();
    for (nth, each) in text.lines().enumerate() {
        if let Some(version) = each.strip_prefix("#trace ") {
            if version.split(' ').next() != Some("v1") {
                let found = version.to_owned();
                return Err((nth + 1, ParseError { column: 8, expected: "version v1", found }));
            }
        } else if !each.starts_with('#') && !each.trim().is_empty() {
            lines.push(line(each).map_err(|error| (nth + 1, error))?);
        }
    }
    Ok(lines)
}

fn timed(words: &mut Words<'_>) -> Result<Option<Timed>, ParseError> {
    let ran = words.field("ran", span);
    let waited = words.field("waited", span);
    let late = words.field("late", span);
    let timed = Timed { ran, waited, late };
    Ok((timed != Timed::default()).then_some(timed))
}

/// The verb and its detail. The verbs about traps and their tickets are here.
fn event(words: &mut Words<'_>) -> Result<Event<'static>, ParseError> {
    let verb = words.with("a verb", Some)?;
    let event = match verb {
        "spawn" => Event::Spawn {
            parent: words.by("parent", "parent=TASK or parent=-")?,
            cause: words.any_cause(),
            at: words.site("at"),
        },
        "run" => Event::Run { cause: words.cause()?, answered: answered(words)? },
        "trap" => {
            let op = op(words)?;
            words.equals()?;
            let outcome = outcome(words)?;
            Event::Trap { op, outcome, cause: words.any_cause(), at: words.site("at") }
        }
        "block" => {
            Event::Block { op: op(words)?, ticket: words.any_value("k"), at: words.site("at") }
        }
        "wake" => {
            Event::Wake { op: wake_op(words)?, ticket: words.any_value("k"), cause: words.cause()? }
        }
        "deliver" => {
            let ticket = words.ticket()?;
            words.equals()?;
            Event::Deliver { ticket, outcome: outcome(words)?, cause: words.cause()? }
        }
        "withdraw" => Event::Withdraw { ticket: words.ticket()? },
        "cancel" => {
            let (by, reason) = (words.by("by", "by=TASK or by=-")?, words.reason());
            let cause = words.cause()?;
            words.equals()?;
            let effect = words.with("delivered, pending, again or ended", Effect::of)?;
            Event::Cancel { by, reason, cause, effect }
        }
        _ => return task_event(verb, words),
    };
    Ok(event)
}

/// The verbs about a task's life, and those with text.
fn task_event(verb: &str, words: &mut Words<'_>) -> Result<Event<'static>, ParseError> {
    let event = match verb {
        "exit" => Event::Exit {
            how: words.with("ok, panic, cancelled or dropped", Exit::of)?,
            cause: words.cause()?,
        },
        "drop" => Event::Drop { what: words.text("what was dropped, in one word")? },
        "join" => Event::Join { task: words.task()? },
        "yielded" => Event::Yielded { budget: words.value("budget", "budget=N")? },
        "longrun" => words.longrun()?,
        "race" => race(words)?,
        "warn" => Event::Warn { text: words.sentence("the warning")? },
        "panic" => Event::Panic { text: words.sentence("the message")? },
        "cap" => Event::Cap { text: words.sentence("the limit")? },
        "boot" => Event::Boot { text: words.sentence("what was found")? },
        _ => return machine_event(verb, words),
    };
    Ok(event)
}

/// The verbs about descriptors and timers.
fn machine_event(verb: &str, words: &mut Words<'_>) -> Result<Event<'static>, ParseError> {
    let event = match verb {
        "register" => {
            let alias = words.alias()?;
            words.with("`both`", |word| (word == "both").then_some(()))?;
            Event::Register { alias }
        }
        "defer" => Event::Defer { alias: words.alias()?, direction: words.direction()? },
        "reuse" => Event::Reuse { alias: words.alias()?, direction: words.direction()? },
        "remember" => Event::Remember {
            alias: words.alias()?,
            direction: words.direction()?,
            n: words.value("n", "n=COUNT")?,
        },
        "unregister" => {
            let alias = words.alias()?;
            let why = words.must("why", "why= and a reason from the list", Why::of)?;
            Event::Unregister { alias, why }
        }
        "refuse" => {
            Event::Refuse { alias: words.alias()?, text: words.sentence("the poller's error")? }
        }
        "arm" => Event::Arm {
            timer: words.timer()?,
            until: words.value("until", "until=TIME")?,
            at: words.site("at"),
        },
        "disarm" => Event::Disarm { timer: words.timer()? },
        "fire" => Event::Fire {
            timer: words.timer()?,
            deadline: words.value("deadline", "deadline=TIME")?,
            cause: words.cause()?,
        },
        "late" => Event::Late {
            scope: words.scope()?,
            deadline: words.value("deadline", "deadline=TIME")?,
            over: words.must("over", "over=SPAN", span)?,
        },
        "tick" => Event::Tick {
            moved: words.value("moved", "moved=COUNT")?,
            far: words.value("far", "far=COUNT")?,
        },
        _ => return kernel_event(verb, words),
    };
    Ok(event)
}

/// The verbs about threads, scopes and the kernel itself.
fn kernel_event(verb: &str, words: &mut Words<'_>) -> Result<Event<'static>, ParseError> {
    let event = match verb {
        "offload" => {
            let (job, starts) = (words.job()?, words.flag("starts"));
            let running = words.value("running", "running=COUNT")?;
            let queued = words.value("queued", "queued=COUNT")?;
            if starts {
                Event::OffloadStarts { job, running, queued, cause: words.cause()? }
            } else {
                let limiter = words.field("limiter", |name| Some(owned(name)));
                Event::Offload { job, running, queued, limiter }
            }
        }
        "done" => Event::Done { job: words.job()? },
        "abandon" => Event::Abandon { job: words.job()? },
        "orphan" => Event::Orphan { job: words.job()? },
        "shield" => {
            Event::Shield { scope: words.scope()?, open: words.with("`open` or `close`", open)? }
        }
        "cleanup" => {
            let scope = words.scope_or_root()?;
            words.equals()?;
            Event::Cleanup { scope, outcome: outcome(words)? }
        }
        "phase" => Event::Phase(phase(words)?),
        "halt" => Event::Halt {
            tasks: words.value("tasks", "tasks=COUNT")?,
            tickets: words.value("tickets", "tickets=COUNT")?,
            timers: words.value("timers", "timers=COUNT")?,
            handles: words.value("handles", "handles=COUNT")?,
            threads: words.any_value("threads").unwrap_or(0),
        },
        _ => {
            words.at -= verb.len();
            return Err(words.wrong("a verb from the list"));
        }
    };
    Ok(event)
}

fn open(word: &str) -> Option<bool> {
    match word {
        "open" => Some(true),
        "close" => Some(false),
        _ => None,
    }
}

fn race(words: &mut Words<'_>) -> Result<Event<'static>, ParseError> {
    let side = |value: &str| Some(owned(value));
    let winner = words.must("winner", "winner=WORD", side)?;
    let loser = words.must("loser", "loser=WORD", side)?;
    let scope = words.try_with(|word| number('s', word)).unwrap_or(0);
    Ok(Event::Race { winner, loser, scope })
}

/// The tickets that a run answers, with commas between them.
fn answered(words: &mut Words<'_>) -> Result<Cow<'static, [Answered<'static>]>, ParseError> {
    let mut answered = Vec::new();
    while words.peek().is_some_and(|word| word.starts_with("k=")) {
        let comma = words.text[words.at..].find(", ").map(|length| words.at + length);
        let end = comma.unwrap_or(words.text.len());
        let mut one = Words { text: &words.text[..end], at: words.at };
        let ticket = one.ticket()?;
        one.equals()?;
        answered.push(Answered { ticket, outcome: outcome(&mut one)? });
        words.at = one.at;
        match comma {
            Some(comma) if one.rest().is_empty() => words.at = comma + 1,
            _ => break,
        }
    }
    Ok(Cow::Owned(answered))
}

fn op(words: &mut Words<'_>) -> Result<Op<'static>, ParseError> {
    let word = words.with("a trap", Some)?;
    let op = match word {
        "clock" => Op::Clock,
        "wall_clock" => Op::WallClock,
        "current_task" => Op::CurrentTask,
        "deadline" => Op::Deadline { until: words.any_value("until") },
        "yield" => Op::Yield,
        "sleep" => Op::Sleep {
            span: words.with("a span, such as 0.5s", span)?,
            until: words.value("until", "until=TIME")?,
        },
        "io" => Op::Io { alias: words.alias()?, direction: words.direction()? },
        "set_timeout" => Op::SetTimeout {
            span: words.with("a span, such as 0.5s, or `none`", |word| {
                if word == "none" { Some(None) } else { span(word).map(Some) }
            })?,
            until: words.any_value("until"),
        },
        "unset_timeout" => Op::UnsetTimeout { scope: words.scope()? },
        "connection_deadline" => Op::ConnectionDeadline,
        "guard" => {
            Op::Guard { deadline: words.numbered('d', "a connection deadline, such as d1")? }
        }
        "branch" => Op::Branch,
        "shield" => Op::Shield { grace: words.try_with(span) },
        "check_interrupt" => Op::CheckInterrupt,
        "held_interrupt" => Op::HeldInterrupt,
        "spawn" => Op::Spawn { name: words.text("the name of the child")? },
        "join" => Op::Join { task: words.task()? },
        "cancel" => Op::Cancel { task: words.task()?, reason: words.reason() },
        "wait" => Op::Wait { queue: words.queue()? },
        "wake" => {
            let queue = words.queue()?;
            let all =
                |value: &str| if value == "all" { Some(u64::MAX) } else { value.parse().ok() };
            let n = words.must("n", "n=COUNT or n=all", all)?;
            Op::Wake { queue, n }
        }
        "offload" => Op::Offload { job: words.job()? },
        "signal" => Op::Signal,
        "waker" => Op::Waker,
        "foreign" => Op::Foreign { external: words.flag("external") },
        "outside" => {
            Op::Outside { what: words.text("its name")?, external: words.flag("external") }
        }
        "parked" => Op::Parked { tickets: words.value("n", "n=COUNT")? },
        _ => {
            words.at -= word.len();
            return Err(words.wrong("a trap from the list"));
        }
    };
    Ok(op)
}

fn wake_op(words: &mut Words<'_>) -> Result<WakeOp, ParseError> {
    let word = words.with("what was waited for", Some)?;
    let op = match word {
        "yield" => WakeOp::Yield,
        "sleep" => WakeOp::Sleep,
        "io" => WakeOp::Io { alias: words.alias()?, direction: words.direction()? },
        "join" => WakeOp::Join { task: words.task()? },
        "wait" => WakeOp::Wait { queue: words.queue()? },
        "offload" => WakeOp::Offload { job: words.job()? },
        "signal" => WakeOp::Signal,
        "waker" => WakeOp::Waker,
        "outside" => WakeOp::Outside,
        "closed" => WakeOp::Closed { alias: words.alias()? },
        "scope" => WakeOp::Scope { scope: words.scope_or_root()? },
        _ => {
            words.at -= word.len();
            return Err(words.wrong("a wait from the list"));
        }
    };
    Ok(op)
}

fn outcome(words: &mut Words<'_>) -> Result<Outcome<'static>, ParseError> {
    let word = words.peek().unwrap_or_default();
    if let Some(error) = word.strip_prefix('!') {
        words.skip(word.len());
        return Ok(match Kind::of(error) {
            Some(kind) => Outcome::Interrupt {
                kind,
                scope: words.field("scope", |value| number('s', value)).unwrap_or(0),
                set_at: words.site("set-at"),
                by: words.field("by", by).flatten(),
                reason: words.reason(),
            },
            None => Outcome::Error(words.phrase(error)),
        });
    }
    words.with(
        "an outcome: ok, none, a time, a number, a scope, a deadline, a signal or `!` and an error",
        |word| {
            Some(match word {
                "ok" => Outcome::Ok,
                "none" => Outcome::NoTime,
                _ if word.starts_with("SIG") => Outcome::Signal(owned(word)),
                _ if word == "never" || word.contains('.') => Outcome::Time(word.parse().ok()?),
                _ if word.starts_with('s') => Outcome::Scope(number('s', word)?),
                _ if word.starts_with('d') => Outcome::Deadline(number('d', word)?),
                _ => Outcome::Number(word.parse().ok()?),
            })
        },
    )
}
