//! A line as text: columns first, then the detail of its verb. The forms are in `grammar.md`.

use std::borrow::Cow;
use std::time::Duration;

use traps::Kind;
use traps::time::Time;

use super::pen::{Field, Left, Nr, Print, Right, put, shown};
use super::words::{Span, phrase, sentence, signal, stop, word};
use super::{Alias, Answered, Event, Line, Op, Outcome, Site, Stop, Timed, Timer, WakeOp};

shown!(Line<'_>, Event<'_>, Op<'_>, WakeOp, Outcome<'_>, Site<'_>, Stop<'_>, Alias, Timer);

impl Line<'_> {
    /// Writes it, without a line end, behind what is in `out`: as its `Display` shows it, but
    /// without an allocation where `out` has room.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        self.write_turn(out);
        self.write_event(out);
    }

    /// The columns that all lines of a turn have in common, but for a timed trace.
    pub(crate) fn write_turn(&self, out: &mut Vec<u8>) {
        put!(out, Right(self.at, 9), " ", Right(self.turn, 7), "  ");
    }

    /// The others.
    pub(crate) fn write_event(&self, out: &mut Vec<u8>) {
        let Line { seq, task, name, event, timed, .. } = self;
        put!(out, Nr(*seq), " ", Right(*task, 3), " ", Left(&word(name)), " ", event);
        if let Some(Timed { ran, waited, late }) = timed
            && !event.ends_in_text()
        {
            let [ran, waited, late] = [ran, waited, late].map(|span| span.map(Span));
            put!(out, Field("ran", ran), Field("waited", waited), Field("late", late));
        }
    }
}

/// A task that may be the kernel: its number or `-`.
struct By(Option<u64>);

impl Print for By {
    fn print(&self, out: &mut Vec<u8>) {
        match self {
            By(Some(task)) => task.print(out),
            By(None) => put!(out, "-"),
        }
    }
}

/// A scope where 0 is the task's own: `s1` or `root`.
struct Scope(u64);

impl Print for Scope {
    fn print(&self, out: &mut Vec<u8>) {
        match self {
            Scope(0) => put!(out, "root"),
            Scope(number) => put!(out, "s", number),
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

/// The line behind it, if it is told.
fn cause(seq: impl Into<Option<u64>>) -> Field<Nr> {
    Field("cause", seq.into().map(Nr))
}

/// Time, turn, number, task, name, verb, detail, and what was measured.
impl Print for Line<'_> {
    fn print(&self, out: &mut Vec<u8>) {
        self.write_to(out);
    }
}

/// The verb, eight wide, and its detail. No detail is empty, so no line ends in white space.
impl Print for Event<'_> {
    fn print(&self, out: &mut Vec<u8>) {
        put!(out, Left(self.verb()), " ");
        match self {
            Event::Spawn { parent, cause: by, at } => {
                put!(out, "parent=", By(*parent), cause(*by), site(at));
            }
            Event::Run { cause, answered } => run(out, *cause, answered),
            Event::Trap { op, outcome, cause: by, at } => {
                put!(out, op, " = ", outcome, cause(*by), site(at));
            }
            Event::Block { op, ticket, at } => put!(out, op, Field("k", *ticket), site(at)),
            Event::Wake { op, ticket, cause: by } => put!(out, op, Field("k", *ticket), cause(*by)),
            Event::Deliver { ticket, outcome, cause: by } => {
                put!(out, "k=", ticket, " = ", outcome, cause(*by));
            }
            Event::Withdraw { ticket } => put!(out, "k=", ticket),
            Event::Cancel { by, reason: why, cause: seq, effect } => {
                put!(out, "by=", By(*by), reason(why), cause(*seq), " = ", effect);
            }
            Event::Exit { how, cause: by } => put!(out, how, cause(*by)),
            Event::Drop { what } => put!(out, word(what)),
            Event::Join { task } => put!(out, task),
            Event::Yielded { budget } => put!(out, "budget=", budget),
            Event::Longrun { ran, from, to } => put!(out, "ran=", ran, " from=", from, " to=", to),
            Event::Late { scope, deadline, over } => late(out, *scope, *deadline, *over),
            Event::Race { winner, loser, scope } => race(out, winner, loser, *scope),
            Event::Warn { text }
            | Event::Panic { text }
            | Event::Cap { text }
            | Event::Boot { text } => put!(out, sentence(text)),
            Event::Register { alias } => put!(out, alias, " both"),
            Event::Defer { alias, direction } | Event::Reuse { alias, direction } => {
                put!(out, alias, " ", direction);
            }
            Event::Remember { alias, direction, n } => put!(out, alias, " ", direction, " n=", n),
            Event::Unregister { alias, why } => put!(out, alias, " why=", why),
            Event::Refuse { alias, text } => put!(out, alias, " ", sentence(text)),
            Event::Arm { timer, until, at } => put!(out, timer, " until=", until, site(at)),
            Event::Disarm { timer } => put!(out, timer),
            Event::Fire { timer, deadline, cause: by } => {
                put!(out, timer, " deadline=", deadline, cause(*by));
            }
            Event::Tick { moved, far } => put!(out, "moved=", moved, " far=", far),
            Event::Offload { job, running, queued, limiter } => {
                put!(
                    out,
                    "o",
                    job,
                    Occupied(*running, *queued),
                    Field("limiter", limiter.as_deref().map(word))
                );
            }
            Event::OffloadStarts { job, running, queued, cause: by } => {
                put!(out, "o", job, " starts", Occupied(*running, *queued), cause(*by));
            }
            Event::Done { job } | Event::Abandon { job } | Event::Orphan { job } => {
                put!(out, "o", job);
            }
            Event::Shield { scope, open: true } => put!(out, "s", scope, " open"),
            Event::Shield { scope, open: false } => put!(out, "s", scope, " close"),
            Event::Cleanup { scope, outcome } => put!(out, Scope(*scope), " = ", outcome),
            Event::Phase(phase) => put!(out, phase),
            Event::Halt { tasks, tickets, timers, handles, threads } => {
                put!(out, "tasks=", tasks, " tickets=", tickets, " timers=", timers);
                put!(
                    out,
                    " handles=",
                    handles,
                    Field("threads", Some(threads).filter(|n| **n > 0))
                );
            }
        }
    }
}

fn late(out: &mut Vec<u8>, scope: u64, deadline: Time, over: Duration) {
    put!(out, "s", scope, " deadline=", deadline, " over=", Span(over));
}

fn run(out: &mut Vec<u8>, cause: u64, answered: &[Answered<'_>]) {
    put!(out, "cause=", Nr(cause));
    for (nth, Answered { ticket, outcome }) in answered.iter().enumerate() {
        put!(out, if nth == 0 { " k=" } else { ", k=" }, ticket, " = ", outcome);
    }
}

fn race(out: &mut Vec<u8>, winner: &str, loser: &str, scope: u64) {
    put!(out, "winner=", word(winner), " loser=", word(loser));
    if scope != 0 {
        put!(out, " s", scope);
    }
}

/// How many jobs have a token, and how many wait for one.
struct Occupied(u32, u32);

impl Print for Occupied {
    fn print(&self, out: &mut Vec<u8>) {
        put!(out, " running=", self.0, " queued=", self.1);
    }
}

/// What was asked for: the word of the trap, and its arguments.
impl Print for Op<'_> {
    fn print(&self, out: &mut Vec<u8>) {
        put!(out, self.word());
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
            | Op::Waker
            | Op::Foreign { external: false } => {}
            Op::Foreign { external: true } => put!(out, " external"),
            Op::Deadline { until } => put!(out, Field("until", *until)),
            Op::Sleep { span, until } => put!(out, " ", Span(*span), " until=", until),
            Op::Io { alias, direction } => put!(out, " ", alias, " ", direction),
            Op::SetTimeout { span: Some(span), until } => {
                put!(out, " ", Span(*span), Field("until", *until));
            }
            Op::SetTimeout { span: None, until } => put!(out, " none", Field("until", *until)),
            Op::UnsetTimeout { scope } => put!(out, " s", scope),
            Op::Guard { deadline } => put!(out, " d", deadline),
            Op::Shield { grace: Some(grace) } => put!(out, " ", Span(*grace)),
            Op::Spawn { name } => put!(out, " ", word(name)),
            Op::Join { task } => put!(out, " ", task),
            Op::Cancel { task, reason: why } => put!(out, " ", task, reason(why)),
            Op::Wait { queue } => put!(out, " q", queue),
            Op::Wake { queue, n: u64::MAX } => put!(out, " q", queue, " n=all"),
            Op::Wake { queue, n } => put!(out, " q", queue, " n=", n),
            Op::Offload { job } => put!(out, " o", job),
            Op::Outside { what, external } => {
                put!(out, " ", word(what), if *external { " external" } else { "" });
            }
            Op::Parked { tickets } => put!(out, " n=", tickets),
        }
    }
}

/// What a wait was for: its word, and what it stood at.
impl Print for WakeOp {
    fn print(&self, out: &mut Vec<u8>) {
        put!(out, self.word());
        match self {
            WakeOp::Yield | WakeOp::Sleep | WakeOp::Signal => {}
            WakeOp::Waker | WakeOp::Outside => {}
            WakeOp::Io { alias, direction } => put!(out, " ", alias, " ", direction),
            WakeOp::Join { task } => put!(out, " ", task),
            WakeOp::Wait { queue } => put!(out, " q", queue),
            WakeOp::Offload { job } => put!(out, " o", job),
            WakeOp::Closed { alias } => put!(out, " ", alias),
            WakeOp::Scope { scope } => put!(out, " ", Scope(*scope)),
        }
    }
}

/// One answer; `!` before what went wrong.
impl Print for Outcome<'_> {
    fn print(&self, out: &mut Vec<u8>) {
        match self {
            Outcome::Ok => put!(out, "ok"),
            Outcome::Time(time) => time.print(out),
            Outcome::NoTime => put!(out, "none"),
            Outcome::Number(number) => number.print(out),
            Outcome::Scope(scope) => put!(out, "s", scope),
            Outcome::Deadline(number) => put!(out, "d", number),
            Outcome::Interrupt { kind, scope, set_at, by, reason: why } => {
                let scope = Field("scope", (*scope != 0).then_some(Scope(*scope)));
                let shown = by.is_some() || *kind == Kind::Cancelled;
                let by = Field("by", shown.then_some(By(*by)));
                let set_at = Field("set-at", set_at.as_ref());
                put!(out, "!", kind, scope, set_at, by, reason(why));
            }
            Outcome::Error(text) => put!(out, "!", phrase(text)),
            Outcome::Signal(name) => put!(out, signal(name)),
        }
    }
}

/// `file:line`
impl Print for Site<'_> {
    fn print(&self, out: &mut Vec<u8>) {
        put!(out, word(&self.file), ":", self.line);
    }
}

/// `trap@file:line`
impl Print for Stop<'_> {
    fn print(&self, out: &mut Vec<u8>) {
        put!(out, stop(&self.trap));
        if let Some(at) = &self.at {
            put!(out, "@", at);
        }
    }
}

/// A small letter and a number; what is no small letter is shown as `f`, any other.
impl Print for Alias {
    fn print(&self, out: &mut Vec<u8>) {
        let kind = if self.kind.is_ascii_lowercase() { self.kind as u8 } else { b'f' };
        out.push(kind);
        self.number.print(out);
    }
}

/// Whose deadline it is.
impl Print for Timer {
    fn print(&self, out: &mut Vec<u8>) {
        match self {
            Timer::Sleep(ticket) => put!(out, "k=", ticket),
            Timer::Scope(scope) => put!(out, "s", scope),
            Timer::Grace => put!(out, "grace"),
            Timer::Drain => put!(out, "drain"),
            Timer::Deadline(number) => put!(out, "d", number),
        }
    }
}
