//! The log: it turns events into lines, and passes the lines to the observers.
//!
//! The log decides nothing. Without an observer, an event costs one test.
//!
//! # Causes
//!
//! Most lines name their cause: an earlier line that led to them. A reader who goes back from cause
//! to cause arrives at something from outside. The kernel passes no causes from function to
//! function. The log stores one line, [`Log::cause`], by this rule:
//!
//! > **The line of the event that is being worked on is the cause of the next line, unless that
//! > line names another cause.**
//!
//! An event begins with a line of its own: a `run`, an `arrive`, a `fire`, a `cancel`, the end of a
//! job or of a task, or the beginning of a shutdown (`begins`). Suppose main runs and cancels two
//! tasks:
//!
//! ```text
//! #0024   2 main     run      cause=#0022        from here on main's run is the cause
//! #0026   5 tidy     cancel   by=2 cause=#0024   from here on this line is the cause
//! #0027   5 tidy     deliver  k=4 cause=#0026
//! #0028   3 slow     cancel   by=2 cause=#0024   the next post of the same run
//! #0029   3 slow     deliver  k=2 cause=#0028
//! ```
//!
//! If an event begins inside another one, the outer cause must be restored. The kernel does so in
//! three places: after a post (`Core::handle_post`), after the hook for tests
//! (`Core::before_trap`), and after a wait that ends as it parks (`Sched::by_last_line`).
//! Task 1 uses its `run` line as the cause of each message, and a shutdown its `phase` line as the
//! cause of each cancellation.
//!
//! A line that names another cause finds it where the kernel has stored it. A `run` names the line
//! that made the task ready. A `fire` names the line that set the timer. A `trap` that takes a
//! pending interrupt names the line of the scope that fired. A task becomes ready right before the
//! line that says why, so the cause of its `run` is the next line at that moment
//! (`Sched::make_ready`).
//!
//! A line is written when its change is made: the state of the kernel after a line is the state
//! that a reader of the log can work out. [`Activation::state`] shows it to the tests.
//!
//! The obvious way is a parameter for the cause in each function on the way to a line. There were
//! 29 such functions, and most of them only passed the number on.
//!
//! # Files
//!
//! | file | content |
//! |---|---|
//! | `event.rs` | lines and events, with the tables of their types and their text |
//! | `form.rs` | the forms of values in a line; free text; the macros behind the tables |
//! | `words.rs` | the values of the kernel in the words of the log |
//! | `lines.rs` | the lines that the core writes, and the state that is shown after each |
//! | `state.rs` | the whole state of a kernel as text |
//! | `circle.rs` | the warning of a deadlock, when its last task begins to wait |
//! | `pack.rs` | the packed form of values |
//! | `flight.rs` | the flight recorder: the last lines, packed, and dumps of them |
//!
//! The public names are in `kernel::trace`. `tests/testing` parses the text.

pub(crate) mod circle;
pub(crate) mod event;
pub(crate) mod flight;
pub(crate) mod form;
pub(crate) mod lines;
mod pack;
mod state;
#[cfg(test)]
mod text_tests;
pub(crate) mod words;

use std::cell::Cell;
use std::io;

use log::{Level, LevelFilter};
use traps::Time;
use traps::internal::table::{HandleId, Ticket};
use traps::internal::tape;

use self::flight::LineRecorder;
use self::form::{Form, Out, Own};
use crate::trace::{Event, Line, Phase, Seq};

/// An observer of the log. It gets every event, in order, as a typed [`Line`].
///
/// The kernel's loop calls it, so it must not block. It cannot change the order of events. If it
/// panics, the run ends with its panic, no observer gets a further event, and the kernel can only
/// be dropped.
pub trait Activation {
    /// Handles one event of the log.
    fn event(&mut self, line: &Line<'_>);

    /// Flushes the output that the observer has kept back, because the kernel is about to sleep.
    fn idle(&mut self) {}

    /// Returns whether the observer wants [`Activation::state`]. Asked once a turn.
    #[doc(hidden)]
    fn wants_state(&self) -> bool {
        false
    }

    /// Looks at the state of the kernel, as text (`log/state.rs`): after each line the part about
    /// the CPU, and between two events everything (`is_whole`). For tests: it costs O(state).
    #[doc(hidden)]
    fn state(&mut self, state: &str, is_whole: bool) {
        let _ = (state, is_whole);
    }
}

impl<F: FnMut(&Line<'_>)> Activation for F {
    fn event(&mut self, line: &Line<'_>) {
        self(line);
    }
}

/// A writer of a trace that also writes into the record, if its flag is set.
pub(crate) struct Teed<W>(pub(crate) W, pub(crate) bool);

impl<W: io::Write> io::Write for Teed<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if self.1 {
            tape::log(lines);
        }
        self.0.write_all(lines).map(|()| lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// An observer that writes the stable trace. Lines that it cannot write are lost, without a report.
pub(crate) struct Writer<W> {
    out: W,
    /// The buffer for a line, reused so that no line allocates.
    line: Out,
}

impl<W> Writer<W> {
    pub(crate) fn new(out: W) -> Writer<W> {
        Writer { out, line: Out::default() }
    }
}

impl<W: io::Write> Activation for Writer<W> {
    fn event(&mut self, line: &Line<'_>) {
        self.line.0.clear();
        Own.put("", line, &mut self.line);
        self.line.text("\n");
        let _ = self.out.write_all(&self.line.0);
        if matches!(line.event, Event::Halt { .. } | Event::Panic { .. }) {
            self.idle();
        }
    }

    fn idle(&mut self) {
        let _ = self.out.flush();
    }
}

/// The log of a kernel.
#[derive(Default)]
pub(crate) struct Log {
    /// The number of the last event. Events are counted only while there is an observer.
    pub(crate) seq: Seq,
    /// The turn of the last line. The view of the state reads it: a turn begins in the log with its
    /// first line.
    pub(crate) turn: u64,
    /// The log line of the event that is being handled, which is the cause of the next line.
    pub(crate) cause: Seq,
    /// The line at which a replay stops, or 0.
    pub(crate) until: Seq,
    /// Whether a record has the log.
    pub(crate) is_recorded: bool,
    /// Whether an observer wants every event. Always false without the feature `trace`.
    pub(crate) listening: bool,
    pub(crate) timed: bool,
    /// Whether an observer wants the state of the kernel after each line.
    pub(crate) shows_state: bool,
    /// Whether there is an observer.
    is_observed: bool,
    pub(crate) flight: Option<Box<dyn LineRecorder>>,
    /// Whether the flight recorder waits for the lines in force.
    pub(crate) wants_head: bool,
    /// The number that the log gave to the last wait.
    waits: u64,
    /// The waits by index, each with its number, the number of its `block` or `await` line, and the
    /// scope that its last line has named.
    parked: Vec<(Ticket, u64, Seq, u64)>,
    /// The log lines that armed connection deadlines last, by the slot of the deadline: the number
    /// of the deadline, and that of the line.
    pub(crate) armed: Vec<(u32, Seq)>,
    /// A list for the holders of what a task waits for, used again for each line.
    pub(crate) holders: Vec<u64>,
    pub(crate) names: words::Names,
    /// For the flight recorder: the lines of the registration of each handle, and of its remembered
    /// readiness to read and to write. By the index of the handle; 0 for what is not so now.
    pub(crate) handles: Vec<[Seq; 3]>,
    activations: Cell<Vec<Box<dyn Activation>>>,
}

impl Log {
    pub(crate) fn new(kernel: u32) -> Log {
        Log { names: words::Names::new(kernel), ..Log::default() }
    }

    pub(crate) fn add(&mut self, activation: Box<dyn Activation>) {
        if cfg!(feature = "trace") {
            self.activations.get_mut().push(activation);
        }
        self.refresh_flags();
    }

    /// Ends the log: no observer gets a further line.
    pub(crate) fn end(&mut self) {
        drop(self.activations.take());
        self.refresh_flags();
    }

    /// Shows the state of the kernel to the observers.
    pub(crate) fn show(&self, state: &str, is_whole: bool) {
        self.tell(|activation| activation.state(state, is_whole));
    }

    /// Tells the observers that the kernel is about to sleep.
    pub(crate) fn idle(&mut self) {
        self.tell(|activation| activation.idle());
    }

    /// Calls each observer. If an observer panics, all observers are gone.
    fn tell(&self, mut call: impl FnMut(&mut dyn Activation)) {
        let mut activations = self.activations.take();
        activations.iter_mut().for_each(|activation| call(&mut **activation));
        self.activations.set(activations);
    }

    /// Updates whether an observer wants every event.
    pub(crate) fn refresh_flags(&mut self) {
        self.is_observed = !self.activations.get_mut().is_empty();
        let listens = self.is_observed || self.flight.is_some();
        let all = listens || log::max_level() >= LevelFilter::Debug;
        self.listening = cfg!(feature = "trace") && all;
        self.shows_state = self.activations.get_mut().iter().any(|it| it.wants_state());
    }

    /// Gives a wait the next number, and returns the number. The next log line must be the `block`
    /// or `await` line of the wait, which says that it is in `scope`.
    pub(crate) fn number(&mut self, ticket: Ticket, scope: u64) -> u64 {
        self.waits += 1;
        let index = ticket.index as usize;
        if index >= self.parked.len() {
            self.parked.resize(index + 1, (ticket, 0, 0, 0));
        }
        self.parked[index] = (ticket, self.waits, self.seq + 1, scope);
        self.waits
    }

    /// Returns the number of a wait, and the number of the log line that filed the wait. Returns
    /// zeros if there was no observer.
    pub(crate) fn number_of(&self, ticket: Ticket) -> (u64, Seq) {
        let found = self.parked.get(ticket.index as usize).filter(|(of, ..)| *of == ticket);
        found.map_or((0, 0), |&(_, number, line, _)| (number, line))
    }

    /// Returns the number of a wait that is in `scope` now, unless its last line says so already.
    pub(crate) fn moved(&mut self, ticket: Ticket, scope: u64) -> Option<u64> {
        let found = self.parked.get_mut(ticket.index as usize).filter(|(of, ..)| *of == ticket);
        let (_, number, _, said) = found.filter(|(_, number, ..)| *number > 0)?;
        (std::mem::replace(said, scope) != scope).then_some(*number)
    }

    /// Stores the number of the last log line as the line that armed the connection deadline in
    /// this slot.
    pub(crate) fn arm(&mut self, slot: u32, number: u32) {
        let slot = slot as usize;
        if slot >= self.armed.len() {
            self.armed.resize(slot + 1, (0, 0));
        }
        self.armed[slot] = (number, self.seq);
    }

    /// Returns the number of the log line that armed a connection deadline last. Returns 0 if there
    /// was no observer.
    pub(crate) fn armed(&self, slot: u32, number: u32) -> Seq {
        let found = self.armed.get(slot as usize).filter(|(of, _)| *of == number);
        found.map_or(0, |(_, line)| *line)
    }

    /// Gives a line its number, records it, and passes it to the observers. Returns the number. The
    /// line is borrowed, because it is large: to move it costs more than to record it.
    #[inline(never)]
    pub(crate) fn write(&mut self, line: &mut Line<'_>) -> Seq {
        let (level, target) = place(&line.event);
        let to_log = log::log_enabled!(target: target, level);
        if !self.listening && !to_log {
            return 0;
        }
        // Count the event whatever the levels and filters are, so that they do not change the
        // numbers.
        self.seq += 1;
        (line.seq, self.turn) = (self.seq, line.turn);
        if begins(&line.event) {
            self.cause = self.seq;
        }
        if !self.timed {
            line.timed = None;
        }
        if let Some(flight) = &self.flight {
            self.wants_head |= flight.record_line(line);
        }
        if self.is_observed {
            self.tell(|activation| activation.event(line));
        }
        if to_log {
            log::log!(target: target, level, "{line}");
        }
        self.seq
    }

    /// Passes the facts of the machine and the options on. Their line has no number, and no stable
    /// trace has it.
    pub(crate) fn boot(&mut self, (at, turn): (Time, u64), facts: String) {
        let (task, name) = KERNEL;
        let (name, event) = (name.into(), Event::Boot { text: facts.into() });
        let line = Line { at, turn, seq: self.seq, task, name, event, timed: None };
        if self.timed {
            self.tell(|activation| activation.event(&line));
        }
        let (level, target) = place(&line.event);
        log::log!(target: target, level, "{line}");
    }

    /// Stores the last line as that of the registration of a handle (0), or of its readiness to
    /// read (1) or to write (2).
    #[cold]
    pub(crate) fn mark_handle(&mut self, handle: HandleId, what: usize) {
        let index = handle.index as usize;
        if index >= self.handles.len() {
            self.handles.resize(index + 1, [0; 3]);
        }
        self.handles[index][what] = self.seq;
    }

    /// Makes a dump of the flight recorder, if there is one. `line` is that of the cause.
    #[cold]
    pub(crate) fn dump(&self, cause: &str, line: Seq) {
        if let Some(flight) = &self.flight {
            flight.dump_at(cause, line);
        }
    }
}

/// Returns whether the line of an event is the cause of the lines that follow.
fn begins(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Run { .. }
            | Event::Arrive(_)
            | Event::Fire { .. }
            | Event::Cancel { .. }
            | Event::Done { .. }
            | Event::Orphan { .. }
            | Event::Exit { .. }
            | Event::Phase(Phase::Close { .. })
    )
}

/// The number and name for events that belong to no task.
pub(crate) const KERNEL: (u64, &str) = (0, "kernel");

/// The number and name of the kernel's own task, which moves the messages of other threads to the
/// ready queue.
pub(crate) const WAKEUP: (u64, &str) = (1, "wakeup");

/// Calls code that makes an event, out of line, because the calling function usually makes no
/// event.
#[cold]
#[inline(never)]
pub(crate) fn apart<R>(code: impl FnOnce() -> R) -> R {
    code()
}

/// Returns the level and the target of an event in the `log` facade.
fn place(event: &Event<'_>) -> (Level, &'static str) {
    match event {
        Event::Panic { .. } => (Level::Error, "kernel::sched"),
        Event::Warn { .. } | Event::Longrun { .. } => (Level::Warn, "kernel::sched"),
        Event::Cap { .. } => (Level::Warn, "net::http"),
        Event::Boot { .. } | Event::Phase(_) | Event::Halt { .. } => (Level::Info, "kernel::sched"),
        Event::Spawn { .. }
        | Event::Exit { .. }
        | Event::Drop { .. }
        | Event::DropJob { .. }
        | Event::Note { .. }
        | Event::Enter { .. }
        | Event::Leave { .. } => (Level::Debug, "kernel::sched"),
        Event::Run { .. } | Event::Join { .. } | Event::Yielded { .. } => {
            (Level::Trace, "kernel::sched")
        }
        Event::Trap { .. }
        | Event::Await { .. }
        | Event::Block { .. }
        | Event::Withdraw { .. }
        | Event::Move { .. }
        | Event::Take { .. }
        | Event::Give { .. } => (Level::Trace, "kernel::trap"),
        Event::Wake { .. } | Event::Notify { .. } => (Level::Trace, "kernel::wake"),
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
        | Event::Unregister { .. }
        | Event::Close { .. } => (Level::Trace, "kernel::io"),
        Event::Offload { .. } | Event::OffloadStarts { .. } | Event::Done { .. } => {
            (Level::Trace, "kernel::thread")
        }
        Event::Abandon { .. } | Event::Orphan { .. } => (Level::Debug, "kernel::thread"),
    }
}
