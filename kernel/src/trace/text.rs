//! A line as text: columns first, then the detail of its verb. The forms are in `grammar.md`.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use traps::time::Time;

use super::words::{Span, phrase, sentence, signal, stop, word};
use super::{
    Alias, Answered, Effect, Event, Interrupted, Line, Op, Outcome, Site, Stop, Timed, Timer,
    WakeOp,
};

/// A field that may be missing: a space and `key=value`, or nothing.
struct Field<T>(&'static str, Option<T>);

impl<T: Display> Display for Field<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Field(key, Some(value)) => write!(f, " {key}={value}"),
            Field(_, None) => Ok(()),
        }
    }
}

/// A task that may be the kernel: its number or `-`.
struct By(Option<u64>);

impl Display for By {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            By(Some(task)) => write!(f, "{task}"),
            By(None) => f.write_str("-"),
        }
    }
}

/// A scope where 0 is the task's own: `s1` or `root`.
struct Scope(u64);

impl Display for Scope {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Scope(0) => f.write_str("root"),
            Scope(number) => write!(f, "s{number}"),
        }
    }
}

/// Where in the user's source, if that is known.
fn site<'a>(at: &'a Option<Site<'a>>) -> Field<&'a Site<'a>> {
    Field("at", at.as_ref())
}

/// A reason, left out when empty.
fn reason(text: &str) -> Field<Cow<'_, str>> {
    Field("reason", (!text.is_empty()).then(|| word(text)))
}

/// Time, turn, number, task, name, verb, detail, and what was measured.
impl Display for Line<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Line { at, turn, seq, task, name, event, timed } = self;
        let name = word(name);
        write!(f, "{at:>9} {turn:>7}  #{seq:04} {task:>3} {name:<8} {event}")?;
        match timed {
            Some(Timed { ran, waited, late }) if !event.ends_in_text() => {
                let [ran, waited, late] = [ran, waited, late].map(|span| span.map(Span));
                write!(f, "{}{}{}", Field("ran", ran), Field("waited", waited), Field("late", late))
            }
            _ => Ok(()),
        }
    }
}

/// The verb, eight wide, and its detail. No detail is empty, so no line ends in white space.
impl Display for Event<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} ", self.verb())?;
        match self {
            Event::Spawn { parent, cause, at } => {
                write!(f, "parent={}", By(*parent))?;
                cause.iter().try_for_each(|cause| write!(f, " cause=#{cause:04}"))?;
                write!(f, "{}", site(at))
            }
            Event::Run { cause, answered } => run(f, *cause, answered),
            Event::Trap { op, outcome, cause, at } => {
                write!(f, "{op} = {outcome}")?;
                cause.iter().try_for_each(|cause| write!(f, " cause=#{cause:04}"))?;
                write!(f, "{}", site(at))
            }
            Event::Block { op, ticket, at } => {
                write!(f, "{op}{}{}", Field("k", *ticket), site(at))
            }
            Event::Wake { op, ticket, cause } => {
                write!(f, "{op}{} cause=#{cause:04}", Field("k", *ticket))
            }
            Event::Deliver { ticket, outcome, cause } => {
                write!(f, "k={ticket} = {outcome} cause=#{cause:04}")
            }
            Event::Withdraw { ticket } => write!(f, "k={ticket}"),
            Event::Cancel { by, reason, cause, effect } => cancel(f, *by, reason, *cause, *effect),
            Event::Exit { how, cause } => write!(f, "{how} cause=#{cause:04}"),
            Event::Drop { what } => f.write_str(&word(what)),
            Event::Join { task } => write!(f, "{task}"),
            Event::Yielded { budget } => write!(f, "budget={budget}"),
            Event::Longrun { ran, from, to } => write!(f, "ran={ran} from={from} to={to}"),
            Event::Late { scope, deadline, over } => late(f, *scope, *deadline, *over),
            Event::Race { winner, loser, scope } => race(f, winner, loser, *scope),
            Event::Warn { text }
            | Event::Panic { text }
            | Event::Cap { text }
            | Event::Boot { text } => f.write_str(&sentence(text)),
            Event::Register { alias } => write!(f, "{alias} both"),
            Event::Defer { alias, direction } | Event::Reuse { alias, direction } => {
                write!(f, "{alias} {direction}")
            }
            Event::Remember { alias, direction, n } => write!(f, "{alias} {direction} n={n}"),
            Event::Unregister { alias, why } => write!(f, "{alias} why={why}"),
            Event::Refuse { alias, text } => write!(f, "{alias} {}", sentence(text)),
            Event::Arm { timer, until, at } => write!(f, "{timer} until={until}{}", site(at)),
            Event::Disarm { timer } => write!(f, "{timer}"),
            Event::Fire { timer, deadline, cause } => {
                write!(f, "{timer} deadline={deadline} cause=#{cause:04}")
            }
            Event::Tick { moved, far } => write!(f, "moved={moved} far={far}"),
            Event::Offload { job, running, queued, limiter } => {
                write!(f, "o{job} running={running} queued={queued}")?;
                limiter.as_ref().map_or(Ok(()), |limiter| write!(f, " limiter={limiter}"))
            }
            Event::OffloadStarts { job, running, queued, cause } => {
                write!(f, "o{job} starts running={running} queued={queued} cause=#{cause:04}")
            }
            Event::Done { job } | Event::Abandon { job } | Event::Orphan { job } => {
                write!(f, "o{job}")
            }
            Event::Shield { scope, open: true } => write!(f, "s{scope} open"),
            Event::Shield { scope, open: false } => write!(f, "s{scope} close"),
            Event::Cleanup { scope, outcome } => write!(f, "{} = {outcome}", Scope(*scope)),
            Event::Phase(phase) => write!(f, "{phase}"),
            Event::Halt { tasks, tickets, timers, handles, threads } => {
                write!(f, "tasks={tasks} tickets={tickets} timers={timers} handles={handles}")?;
                write!(f, "{}", Field("threads", Some(*threads).filter(|count| *count > 0)))
            }
        }
    }
}

fn cancel(
    f: &mut Formatter<'_>,
    by: Option<u64>,
    why: &str,
    cause: u64,
    effect: Effect,
) -> fmt::Result {
    write!(f, "by={}{} cause=#{cause:04} = {effect}", By(by), reason(why))
}

fn late(f: &mut Formatter<'_>, scope: u64, deadline: Time, over: Duration) -> fmt::Result {
    write!(f, "s{scope} deadline={deadline} over={}", Span(over))
}

fn run(f: &mut Formatter<'_>, cause: u64, answered: &[Answered<'_>]) -> fmt::Result {
    write!(f, "cause=#{cause:04}")?;
    for (nth, Answered { ticket, outcome }) in answered.iter().enumerate() {
        let comma = if nth == 0 { "" } else { "," };
        write!(f, "{comma} k={ticket} = {outcome}")?;
    }
    Ok(())
}

fn race(f: &mut Formatter<'_>, winner: &str, loser: &str, scope: u64) -> fmt::Result {
    write!(f, "winner={} loser={}", word(winner), word(loser))?;
    if scope == 0 { Ok(()) } else { write!(f, " s{scope}") }
}

/// What was asked for: the word of the trap, and its arguments.
impl Display for Op<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            Op::Clock
            | Op::WallClock
            | Op::CurrentTask
            | Op::ConnectionDeadline
            | Op::Yield
            | Op::Branch
            | Op::Shield { grace: None }
            | Op::CheckInterrupt
            | Op::HeldInterrupt
            | Op::Signal
            | Op::Waker => Ok(()),
            Op::Deadline { until } => write!(f, "{}", Field("until", *until)),
            Op::Sleep { span, until } => write!(f, " {} until={until}", Span(*span)),
            Op::Io { alias, direction } => write!(f, " {alias} {direction}"),
            Op::SetTimeout { span: Some(span), until } => {
                write!(f, " {}{}", Span(*span), Field("until", *until))
            }
            Op::SetTimeout { span: None, until } => write!(f, " none{}", Field("until", *until)),
            Op::UnsetTimeout { scope } => write!(f, " s{scope}"),
            Op::Guard { deadline } => write!(f, " d{deadline}"),
            Op::Shield { grace: Some(grace) } => write!(f, " {}", Span(*grace)),
            Op::Spawn { name } => write!(f, " {}", word(name)),
            Op::Join { task } => write!(f, " {task}"),
            Op::Cancel { task, reason: why } => write!(f, " {task}{}", reason(why)),
            Op::Wait { queue } => write!(f, " q{queue}"),
            Op::Wake { queue, n: u64::MAX } => write!(f, " q{queue} n=all"),
            Op::Wake { queue, n } => write!(f, " q{queue} n={n}"),
            Op::Offload { job } => write!(f, " o{job}"),
            Op::Foreign { external: true } => f.write_str(" external"),
            Op::Foreign { external: false } => Ok(()),
            Op::Outside { what, external } => {
                write!(f, " {}{}", word(what), if *external { " external" } else { "" })
            }
            Op::Parked { tickets } => write!(f, " n={tickets}"),
        }
    }
}

/// What a wait was for: its word, and what it stood at.
impl Display for WakeOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())?;
        match self {
            WakeOp::Yield | WakeOp::Sleep | WakeOp::Signal => Ok(()),
            WakeOp::Waker | WakeOp::Outside => Ok(()),
            WakeOp::Io { alias, direction } => write!(f, " {alias} {direction}"),
            WakeOp::Join { task } => write!(f, " {task}"),
            WakeOp::Wait { queue } => write!(f, " q{queue}"),
            WakeOp::Offload { job } => write!(f, " o{job}"),
            WakeOp::Closed { alias } => write!(f, " {alias}"),
            WakeOp::Scope { scope } => write!(f, " {}", Scope(*scope)),
        }
    }
}

/// One answer; `!` before what went wrong.
impl Display for Outcome<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Ok => f.write_str("ok"),
            Outcome::Time(time) => write!(f, "{time}"),
            Outcome::NoTime => f.write_str("none"),
            Outcome::Number(number) => write!(f, "{number}"),
            Outcome::Scope(scope) => write!(f, "s{scope}"),
            Outcome::Deadline(number) => write!(f, "d{number}"),
            Outcome::Interrupt { kind, scope, set_at, by, reason: why } => {
                let scope = Field("scope", (*scope != 0).then_some(Scope(*scope)));
                let shown = by.is_some() || *kind == Interrupted::Cancelled;
                let by = Field("by", shown.then_some(By(*by)));
                let set_at = Field("set-at", set_at.as_ref());
                write!(f, "!{kind}{scope}{set_at}{by}{}", reason(why))
            }
            Outcome::Error(text) => write!(f, "!{}", phrase(text)),
            Outcome::Signal(name) => f.write_str(&signal(name)),
        }
    }
}

/// `file:line`
impl Display for Site<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", word(&self.file), self.line)
    }
}

/// `trap@file:line`
impl Display for Stop<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&stop(&self.trap))?;
        self.at.iter().try_for_each(|at| write!(f, "@{at}"))
    }
}

/// A small letter and a number; what is no small letter is shown as `f`, any other.
impl Display for Alias {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = if self.kind.is_ascii_lowercase() { self.kind } else { 'f' };
        write!(f, "{kind}{}", self.number)
    }
}

/// Whose deadline it is.
impl Display for Timer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Timer::Sleep(ticket) => write!(f, "k={ticket}"),
            Timer::Scope(scope) => write!(f, "s{scope}"),
            Timer::Grace => f.write_str("grace"),
            Timer::Drain => f.write_str("drain"),
            Timer::Deadline(number) => write!(f, "d{number}"),
        }
    }
}
