//! Where events become lines, and are handed to whoever listens.
//!
//! Decides nothing. While nobody listens, an event costs one test.
//!
//! | file | is |
//! |---|---|
//! | `event.rs` | the table of events: their types and their text in one |
//! | `op.rs` | the tables of what stands in events |
//! | `place.rs` | places in the log and in the source, and descriptors |
//! | `line.rs` | a line with its columns, and the head of a trace |
//! | `form.rs` | how a value is written: the words of the tables |
//! | `table.rs` | the macros that make types and text from a table |
//! | `words.rs` | what free text and spans look like |
//!
//! The public names are in `kernel::trace`. `tests/testing` reads the text.

pub(crate) mod event;
mod form;
pub(crate) mod line;
pub(crate) mod op;
pub(crate) mod place;
mod table;
#[cfg(test)]
mod text_tests;
pub(crate) mod words;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use log::{Level, LevelFilter};
use traps::core::names::{self, Ticket};
use traps::core::protocol::{Left, Reply};
use traps::{Interrupt, Time};

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
    /// Used again for each line, so that none allocates.
    line: String,
}

impl<W> Writer<W> {
    pub(crate) fn new(out: W) -> Writer<W> {
        Writer { out, line: String::new() }
    }
}

impl<W: io::Write> Activation for Writer<W> {
    fn event(&mut self, line: &Line<'_>) {
        self.line.clear();
        let _ = writeln!(self.line, "{line}");
        let _ = self.out.write_all(self.line.as_bytes());
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
    /// The number of the last event. Events are counted while somebody listens.
    pub(crate) seq: Seq,
    /// Somebody wants every event. Nobody does in a build without the feature `trace`.
    pub(crate) listening: bool,
    pub(crate) timed: bool,
    /// The number of the last wait.
    waits: u64,
    /// Waits by their index, with their number and their `block` or `await` line.
    parked: Vec<(Ticket, u64, Seq)>,
    /// The lines that armed connection deadlines, by number.
    pub(crate) armed: BTreeMap<u32, Seq>,
    activations: Vec<Box<dyn Activation>>,
}

impl Log {
    pub(crate) fn add(&mut self, activation: Box<dyn Activation>) {
        if cfg!(feature = "trace") {
            self.activations.push(activation);
        }
        self.look();
    }

    /// The kernel is about to sleep.
    pub(crate) fn idle(&mut self) {
        self.activations.iter_mut().for_each(|activation| activation.idle());
    }

    /// Learns whether anybody listens.
    pub(crate) fn look(&mut self) {
        let all = !self.activations.is_empty() || log::max_level() >= LevelFilter::Debug;
        self.listening = cfg!(feature = "trace") && all;
    }

    /// Numbers a wait that is about to park; the next line is its `block` or `await` line.
    pub(crate) fn number(&mut self, ticket: Ticket) -> u64 {
        self.waits += 1;
        let index = ticket.index as usize;
        if index >= self.parked.len() {
            self.parked.resize(index + 1, (ticket, 0, 0));
        }
        self.parked[index] = (ticket, self.waits, self.seq + 1);
        self.waits
    }

    /// The number of a wait and the line that filed it; zeros if nobody listened.
    pub(crate) fn number_of(&self, ticket: Ticket) -> (u64, Seq) {
        let found = self.parked.get(ticket.index as usize).filter(|(of, ..)| *of == ticket);
        found.map_or((0, 0), |&(_, number, line)| (number, line))
    }

    /// Remembers the line just made, which armed a connection deadline, or forgets it.
    pub(crate) fn arm(&mut self, number: u32, armed: bool) {
        if armed {
            self.armed.insert(number, self.seq);
        } else {
            self.armed.remove(&number);
        }
    }

    /// Makes the line of an event and hands it to whoever listens. Gives its number.
    #[cold]
    pub(crate) fn write<'a>(
        &mut self,
        (at, turn): (Time, u64),
        (task, name): (u64, &'a str),
        event: Event<'a>,
        timed: Option<Timed>,
    ) -> Seq {
        let (level, target) = place(&event);
        let to_log = log::log_enabled!(target: target, level);
        if !self.listening && !to_log {
            return 0;
        }
        // Levels and filters do not change the numbers.
        self.seq += u64::from(!matches!(event, Event::Boot { .. }));
        let line = Line {
            at,
            turn,
            seq: self.seq,
            task,
            name: name.into(),
            event,
            timed: timed.filter(|_| self.timed),
        };
        // The facts of a machine and its options are in no stable trace.
        if self.timed || !matches!(line.event, Event::Boot { .. }) {
            self.activations.iter_mut().for_each(|activation| activation.event(&line));
        }
        if to_log {
            log::log!(target: target, level, "{line}");
        }
        self.seq
    }
}

/// Whose events are of no task: number and name.
pub(crate) const KERNEL: (u64, &str) = (0, "kernel");

/// The kernel's own task, which moves what other threads sent to the ready queue.
pub(crate) const WAKEUP: (u64, &str) = (1, "wakeup");

/// Makes the line of an event of a task, if anybody listens. Gives its number, else 0.
macro_rules! emit {
    ($kernel:expr, $task:expr, $event:expr) => {
        $crate::log::emit!($kernel, $task, $event, None)
    };
    ($kernel:expr, $task:expr, $event:expr, $timed:expr) => {
        $crate::log::emit_for!($kernel, $kernel.tasks.label($task), $event, $timed)
    };
}
pub(crate) use emit;

/// A line for `who`: a number and a name, such as [`KERNEL`] or [`WAKEUP`].
macro_rules! emit_for {
    ($kernel:expr, $who:expr, $event:expr) => {
        $crate::log::emit_for!($kernel, $who, $event, None)
    };
    ($kernel:expr, $who:expr, $event:expr, $timed:expr) => {
        if $kernel.log.listening {
            $crate::log::apart(|| {
                let event = $event;
                let timed = $timed;
                let when = ($kernel.now, $kernel.turn);
                $kernel.log.write(when, $who, event, timed)
            })
        } else {
            0
        }
    };
}
pub(crate) use emit_for;

/// A line that is worth its cost even if only warnings are wanted.
macro_rules! announce {
    ($kernel:expr, $who:expr, $event:expr) => {{
        let event = $event;
        let when = ($kernel.now, $kernel.turn);
        $kernel.log.write(when, $who, event, None)
    }};
}
pub(crate) use announce;

/// Keeps the code that makes events out of the functions that mostly make none.
#[cold]
#[inline(never)]
pub(crate) fn apart<R>(code: impl FnOnce() -> R) -> R {
    code()
}

/// The level and the target of an event in the `log` facade.
fn place(event: &Event<'_>) -> (Level, &'static str) {
    match event {
        Event::Panic { .. } => (Level::Error, "kernel::sched"),
        Event::Warn { .. } | Event::Longrun { .. } => (Level::Warn, "kernel::sched"),
        Event::Cap { .. } => (Level::Warn, "net::http"),
        Event::Boot { .. } | Event::Phase(_) | Event::Halt { .. } => (Level::Info, "kernel::sched"),
        Event::Spawn { .. }
        | Event::Exit { .. }
        | Event::Drop { .. }
        | Event::Note { .. }
        | Event::Enter { .. }
        | Event::Leave { .. } => (Level::Debug, "kernel::sched"),
        Event::Run { .. } | Event::Join { .. } | Event::Yielded { .. } => {
            (Level::Trace, "kernel::sched")
        }
        Event::Trap { .. } | Event::Await { .. } | Event::Block { .. } | Event::Withdraw { .. } => {
            (Level::Trace, "kernel::trap")
        }
        Event::Wake { .. } => (Level::Trace, "kernel::wake"),
        Event::Deliver { .. } | Event::Cancel { .. } | Event::Cleanup { .. } => {
            (Level::Debug, "kernel::cancel")
        }
        Event::Late { .. } | Event::Race { .. } => (Level::Debug, "kernel::time"),
        Event::Arm { .. } | Event::Disarm { .. } | Event::Fire { .. } | Event::Tick { .. } => {
            (Level::Trace, "kernel::time")
        }
        Event::Refuse { .. } => (Level::Warn, "kernel::io"),
        Event::Arrive(_)
        | Event::Io { .. }
        | Event::Accept { .. }
        | Event::Register { .. }
        | Event::Remember { .. }
        | Event::Unregister { .. } => (Level::Trace, "kernel::io"),
        Event::Offload { .. } | Event::OffloadStarts { .. } | Event::Done { .. } => {
            (Level::Trace, "kernel::thread")
        }
        Event::Abandon { .. } | Event::Orphan { .. } => (Level::Debug, "kernel::thread"),
    }
}

pub(crate) fn site(site: names::Site) -> Site<'static> {
    Site { file: site.file().into(), line: site.line() }
}

/// A place in the source for a report: `file:line`.
pub(crate) fn place_of(site: names::Site) -> String {
    format!("{}:{}", site.file(), site.line())
}

/// The result of a scope, as far as a reader needs it.
pub(crate) fn left(left: Left) -> Outcome<'static> {
    match left {
        Left::Value(_) | Left::Other => Outcome::Ok,
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

/// What a wait came to.
pub(crate) fn outcome(reply: &Reply) -> Outcome<'static> {
    match reply {
        Reply::Time(time) => Outcome::Time(*time),
        Reply::Busy => Outcome::Error("busy".into()),
        Reply::Closed => Outcome::Error("closed".into()),
        Reply::Interrupt(why) | Reply::Held(why) => interrupt(why),
        Reply::Refused(error) => Outcome::Error(format!("refused {error}").into()),
        Reply::Done | Reply::Ready(..) | Reply::Permit(..) | Reply::Job(_) => Outcome::Ok,
    }
}

/// An outcome for a `run` line, without its places: the `deliver` line before it has them.
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
