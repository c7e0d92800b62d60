//! Where events become lines, and are handed to whoever listens. `emit.rs` numbers them.
//!
//! Decides nothing. With nobody listening, an event costs one addition and one test.

use std::io;
use std::time::Duration;

use log::{Level, LevelFilter};
use traps::Interrupt;
use traps::Time;
use traps::protocol::{self, Answer, Failure, Left};

use crate::trace::{Event, Line, Outcome, Seq, Site, Timed};

/// Gets every event, in order, as a typed [`Line`].
///
/// Called inside the kernel's loop: it must not block, and what it does cannot change the order
/// of events.
pub trait Activation {
    /// One event.
    fn event(&mut self, line: &Line<'_>);

    /// The kernel is about to sleep: time to write what was kept back.
    fn idle(&mut self) {}
}

impl<F: FnMut(&Line<'_>)> Activation for F {
    fn event(&mut self, line: &Line<'_>) {
        self(line);
    }
}

/// Writes the stable trace; what it cannot write is lost, and not reported.
pub(crate) struct Writer<W> {
    out: W,
    /// The line that was written last; it begins with so much that all lines of a turn begin with.
    line: Vec<u8>,
    turn: Option<(Time, u64)>,
    columns: usize,
}

impl<W> Writer<W> {
    pub(crate) fn new(out: W) -> Writer<W> {
        Writer { out, line: Vec::new(), turn: None, columns: 0 }
    }
}

impl<W: io::Write> Activation for Writer<W> {
    fn event(&mut self, line: &Line<'_>) {
        let turn = Some((line.at, line.turn));
        if self.turn == turn {
            self.line.truncate(self.columns);
        } else {
            self.line.clear();
            line.write_turn(&mut self.line);
            (self.turn, self.columns) = (turn, self.line.len());
        }
        line.write_event(&mut self.line);
        self.line.push(b'\n');
        let _ = self.out.write_all(&self.line);
        if matches!(line.event, Event::Halt { .. } | Event::Panic { .. }) {
            self.idle();
        }
    }

    fn idle(&mut self) {
        let _ = self.out.flush();
    }
}

/// The kernel's log.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) seq: Seq,
    pub(crate) turn: u64,
    pub(crate) now: Time,
    listening: bool,
    pub(crate) timed: bool,
    /// Lines that were not made, of deadlines, arms and scopes, and that have their numbers.
    counted: u64,
    activations: Vec<Box<dyn Activation>>,
}

impl Log {
    /// Gives numbers to the lines of deadlines, arms and scopes that nobody was told of, of which
    /// there were so many so far.
    #[inline]
    pub(crate) fn count_untold(&mut self, untold: u64) {
        if untold > self.counted {
            self.seq += untold - self.counted;
            self.counted = untold;
        }
    }

    pub(crate) fn add(&mut self, activation: Box<dyn Activation>) {
        if cfg!(feature = "trace") {
            self.activations.push(activation);
            self.listening = true;
        }
    }

    /// Whether somebody wants every event. Nobody does in a build without the feature `trace`.
    #[inline]
    pub(crate) fn is_listening(&self) -> bool {
        cfg!(feature = "trace") && self.listening
    }

    /// The kernel is about to sleep.
    pub(crate) fn idle(&mut self) {
        self.activations.iter_mut().for_each(|activation| activation.idle());
    }

    /// Learns whether anybody listens.
    pub(crate) fn look(&mut self) {
        self.listening = !self.activations.is_empty() || log::max_level() >= LevelFilter::Debug;
    }

    #[cold]
    pub(crate) fn write<'a>(
        &mut self,
        task: u64,
        name: &'a str,
        event: Event<'a>,
        timed: Option<Timed>,
    ) {
        let (level, target) = place(&event);
        let to_log = log::log_enabled!(target: target, level);
        if self.activations.is_empty() && !to_log {
            return;
        }
        let line = Line {
            at: self.now,
            turn: self.turn,
            seq: self.seq,
            task,
            name: name.into(),
            event,
            timed: timed.filter(|_| self.timed),
        };
        for activation in &mut self.activations {
            activation.event(&line);
        }
        if to_log {
            log::log!(target: target, level, "{line}");
        }
    }
}

impl Log {
    /// The facts of this machine and these options: event 0, which a stable trace does not show.
    pub(crate) fn boot(&mut self, text: &str) {
        if !cfg!(feature = "trace") {
            return;
        }
        let line = Line {
            at: self.now,
            turn: 0,
            seq: 0,
            task: 0,
            name: "kernel".into(),
            event: Event::Boot { text: text.into() },
            timed: None,
        };
        if self.timed {
            for activation in &mut self.activations {
                activation.event(&line);
            }
        }
        log::info!(target: "kernel::sched", "{line}");
    }
}

/// The level and the target of an event in the `log` facade.
fn place(event: &Event<'_>) -> (Level, &'static str) {
    match event {
        Event::Panic { .. } => (Level::Error, "kernel::sched"),
        Event::Warn { .. } | Event::Longrun { .. } => (Level::Warn, "kernel::sched"),
        Event::Cap { .. } => (Level::Warn, "net::http"),
        Event::Boot { .. } | Event::Phase(_) | Event::Halt { .. } => (Level::Info, "kernel::sched"),
        Event::Spawn { .. } | Event::Exit { .. } | Event::Drop { .. } => {
            (Level::Debug, "kernel::sched")
        }
        Event::Run { .. } | Event::Join { .. } | Event::Yielded { .. } => {
            (Level::Trace, "kernel::sched")
        }
        Event::Trap { .. } | Event::Block { .. } | Event::Withdraw { .. } => {
            (Level::Trace, "kernel::trap")
        }
        Event::Wake { .. } => (Level::Trace, "kernel::wake"),
        Event::Deliver { .. }
        | Event::Cancel { .. }
        | Event::Shield { .. }
        | Event::Cleanup { .. } => (Level::Debug, "kernel::cancel"),
        Event::Late { .. } | Event::Race { .. } => (Level::Debug, "kernel::time"),
        Event::Arm { .. } | Event::Disarm { .. } | Event::Fire { .. } | Event::Tick { .. } => {
            (Level::Trace, "kernel::time")
        }
        Event::Refuse { .. } => (Level::Warn, "kernel::io"),
        Event::Register { .. }
        | Event::Defer { .. }
        | Event::Reuse { .. }
        | Event::Remember { .. }
        | Event::Unregister { .. } => (Level::Trace, "kernel::io"),
        Event::Offload { .. } | Event::OffloadStarts { .. } | Event::Done { .. } => {
            (Level::Trace, "kernel::thread")
        }
        Event::Abandon { .. } | Event::Orphan { .. } => (Level::Debug, "kernel::thread"),
    }
}

pub(crate) fn site(site: protocol::Site) -> Site<'static> {
    Site { file: site.file().into(), line: site.line() }
}

/// The same for reports: `file:line`, the file as it is called.
pub(crate) fn place_of(site: protocol::Site) -> String {
    format!("{}:{}", site.file(), site.line())
}

/// What came out of a scope: what that is worth a reader's while.
pub(crate) fn left(left: Left) -> Outcome<'static> {
    match left {
        Left::Value { .. } | Left::Other => Outcome::Ok,
        Left::Interrupt { kind, scope, by } => Outcome::Interrupt {
            kind,
            scope: scope.unwrap_or(0),
            set_at: None,
            by: by.map(|task| task.0),
            reason: "".into(),
        },
    }
}

pub(crate) fn interrupt(interrupt: &Interrupt) -> Outcome<'static> {
    Outcome::Interrupt {
        kind: interrupt.kind(),
        scope: interrupt.scope().unwrap_or(0),
        set_at: interrupt.set_at().map(site),
        by: interrupt.by().map(|task| task.0),
        reason: interrupt.reason().into(),
    }
}

pub(crate) fn outcome(result: &Result<Answer, Failure>) -> Outcome<'static> {
    match result {
        Ok(Answer::Unit | Answer::Ended(_) | Answer::Job { .. } | Answer::Wall(_)) => Outcome::Ok,
        Ok(Answer::Time(time)) => Outcome::Time(*time),
        Ok(Answer::Deadline(Some(found))) => Outcome::Scope(found.scope),
        Ok(Answer::Deadline(None) | Answer::Held(None)) => Outcome::NoTime,
        Ok(Answer::Held(Some(why))) => interrupt(why),
        Ok(Answer::Task(task)) => Outcome::Number(task.serial.get()),
        Ok(Answer::Count(n)) => Outcome::Number(*n),
        Ok(Answer::Scope { scope, .. }) => Outcome::Scope(scope.serial.get()),
        Ok(Answer::Signal(signal)) => Outcome::Signal(signal.to_string().into()),
        Err(Failure::Interrupt(why)) => interrupt(why),
        Err(Failure::Busy) => Outcome::Error("busy".into()),
        Err(Failure::Closed) => Outcome::Error("closed".into()),
        Err(Failure::Refused(error)) => Outcome::Error(format!("refused {error}").into()),
    }
}

/// The same for a `run` line, which follows a `deliver` line that says where.
pub(crate) fn without_place(outcome: Outcome<'static>) -> Outcome<'static> {
    match outcome {
        Outcome::Interrupt { kind, scope, by, reason, .. } => {
            Outcome::Interrupt { kind, scope, set_at: None, by, reason }
        }
        other => other,
    }
}

/// How late something is, for a timed trace.
pub(crate) fn late(deadline: Time, now: Time) -> Option<Timed> {
    let late: Duration = now.since(deadline);
    Some(Timed { late: Some(late), ..Timed::default() })
}
