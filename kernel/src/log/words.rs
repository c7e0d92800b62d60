//! The traps, replies, interrupts and scopes of the kernel, in the words of the log.
//!
//! A wait has one name everywhere. The record of the wait keeps its [`Trap`], and from that
//! [`Names::op_of`] makes the [`Op`] that the log, the task table and the tools show. Only reports
//! of long runs need no more than one word ([`Trap::word`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use traps::internal::protocol::{Left, ParkedOn, Reply, ScopeKind, Trap};
use traps::internal::table::{self as names, HandleId, Label, Queue};
use traps::{Interrupt, Time};

use crate::trace::{Alias, LoggedPrimitive, LoggedSite, Op, Outcome, Timed};

/// The alias of a descriptor that is gone.
pub(crate) const UNKNOWN: Alias = Alias { kind: 'f', number: 0 };

/// The names that the log gives to descriptors, queues and objects shared with threads.
#[derive(Default)]
pub(crate) struct Names {
    /// The number of the kernel, unique in the process.
    kernel: u32,
    /// The aliases of the handles, by index, each with the serial number of its handle.
    aliases: Vec<(u32, Alias)>,
    /// The last number used in an alias, for each letter.
    letters: [u32; 26],
    /// The number of queues that have a number.
    queues: u64,
    /// The numbers of the queues of objects shared with threads, by the number of the object in the
    /// process.
    universal: BTreeMap<u32, u64>,
}

impl Names {
    pub(crate) fn new(kernel: u32) -> Names {
        Names { kernel, ..Names::default() }
    }

    /// Gives a handle its alias.
    pub(crate) fn add_handle(&mut self, handle: HandleId, kind: char) {
        let index = handle.index as usize;
        if index >= self.aliases.len() {
            self.aliases.resize(index + 1, (0, UNKNOWN));
        }
        let kind = if kind.is_ascii_lowercase() { kind } else { 'f' };
        let number = &mut self.letters[kind as usize - 'a' as usize];
        *number += 1;
        self.aliases[index] = (handle.serial(), Alias { kind, number: *number });
    }

    /// Forgets the alias of a handle that is gone.
    pub(crate) fn remove_handle(&mut self, handle: HandleId) {
        self.aliases[handle.index as usize].0 = 0;
    }

    pub(crate) fn alias(&self, handle: HandleId) -> Alias {
        let found = self.aliases.get(handle.index as usize);
        found.filter(|(serial, _)| *serial == handle.serial()).map_or(UNKNOWN, |(_, alias)| *alias)
    }

    /// Returns the alias of the kernel's own bell, `e1`.
    pub(crate) fn bell(&mut self) -> Alias {
        let events = &mut self.letters['e' as usize - 'a' as usize];
        *events = (*events).max(1);
        Alias { kind: 'e', number: 1 }
    }

    /// Numbers the object of a trap if this kernel sees it for the first time.
    pub(crate) fn number_object(&mut self, trap: &Trap) {
        match trap {
            Trap::Wait { queue, .. } => self.number(queue),
            Trap::Park { what: ParkedOn::Universal(_, id), .. } => {
                let number = self.universal.entry(*id).or_insert(self.queues + 1);
                self.queues = self.queues.max(*number);
            }
            _ => {}
        }
    }

    /// Returns the operation of a trap, in the terms of the log.
    pub(crate) fn op_of<'t>(&self, trap: &'t Trap) -> Op<'t> {
        match trap {
            Trap::Clock => Op::Clock,
            Trap::Check => Op::CheckCancellation,
            Trap::Yield { .. } => Op::Yield,
            &Trap::Sleep { span, until } => Op::Sleep { span: Duration::from_micros(span), until },
            &Trap::Io { handle, direction } => Op::Io { alias: self.alias(handle), direction },
            Trap::Join { id, .. } => Op::Join { task: id.0 },
            Trap::Wait { queue, .. } => self.op_of_queue(queue),
            &Trap::Park { what, external } => match what {
                ParkedOn::Foreign => Op::Foreign { external },
                ParkedOn::Outside(what) => Op::Outside { what: what.into(), external },
                ParkedOn::Job(job) => Op::Offload { job },
                ParkedOn::Universal(act, id) => {
                    let number = self.universal.get(&id).copied().unwrap_or(0);
                    Op::primitive(act.word(), "", number)
                }
            },
        }
    }

    /// Returns the operation of a wait in a queue.
    pub(crate) fn op_of_queue<'q>(&self, queue: &'q Queue) -> Op<'q> {
        let number = queue.number.get().0;
        match (queue.label.get(), queue.primitive.get()) {
            (Label::Signal, _) => Op::Signal,
            (Label::Queue, None) => Op::Wait { queue: number },
            (Label::Queue, Some(it)) => Op::primitive(it.kind, &it.name, number),
        }
    }

    /// Gives a user's queue a number if this kernel sees the queue for the first time.
    pub(crate) fn number(&mut self, queue: &Queue) {
        let (_, kernel) = queue.number.get();
        if kernel != self.kernel && queue.label.get() == Label::Queue {
            self.queues += 1;
            queue.number.set((self.queues, self.kernel));
        }
    }
}

impl<'a> Op<'a> {
    fn primitive(kind: &'static str, name: &'a str, queue: u64) -> Op<'a> {
        let (name, held_by) = (name.into(), Cow::Borrowed(&[][..]));
        Op::Primitive(LoggedPrimitive { kind, name, queue, held_by })
    }
}

pub(crate) fn site(site: names::Site) -> LoggedSite {
    LoggedSite { file: site.file(), line: site.line() }
}

/// Formats a location for a report: `file:line`.
pub(crate) fn place_of(site: names::Site) -> String {
    format!("{}:{}", site.file(), site.line())
}

/// Returns the operation that opens a scope at the time `now`, in the terms of the log.
pub(crate) fn opening(kind: ScopeKind, deadline: Time, now: Time) -> Op<'static> {
    let until = (deadline != Time::NEVER).then_some(deadline);
    match kind {
        ScopeKind::Guard { slot: Some(_), number } => Op::Guard { deadline: u64::from(number) },
        ScopeKind::Branch => Op::Branch,
        ScopeKind::Shield => Op::Shield,
        _ => Op::SetTimeout { span: until.map(|until| until.since(now)), until },
    }
}

/// Returns the operation that closes a scope, in the terms of the log.
pub(crate) fn closing(kind: ScopeKind, scope: u64) -> Op<'static> {
    match kind {
        ScopeKind::Guard { slot: Some(_), .. } => Op::Unguard { scope },
        ScopeKind::Branch => Op::Unbranch { scope },
        ScopeKind::Shield => Op::Unshield { scope },
        _ => Op::UnsetTimeout { scope },
    }
}

/// Returns the result of a scope, in the terms of the log.
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

/// Returns the result of a wait, in the terms of the log.
pub(crate) fn outcome(reply: &Reply) -> Outcome<'static> {
    match reply {
        Reply::Time(time) => Outcome::Time(*time),
        Reply::Busy => Outcome::Error("busy".into()),
        Reply::Closed => Outcome::Error("closed".into()),
        Reply::Interrupt(why) | Reply::Held(why) => interrupt(why),
        Reply::Refused(error) => Outcome::Error(format!("refused {error}").into()),
        Reply::Done | Reply::Ready(_) | Reply::Permit | Reply::Job(_) => Outcome::Ok,
    }
}

/// Removes the location from an outcome, for a `run` line: the `deliver` line before it has the
/// location.
pub(crate) fn remove_place(outcome: &mut Outcome<'static>) {
    if let Outcome::Interrupt { set_at, .. } = outcome {
        *set_at = None;
    }
}

/// Returns the lateness of an event, for a timed trace.
pub(crate) fn late(deadline: Time, now: Time) -> Option<Timed> {
    Some(Timed { late: Some(now.since(deadline)), ..Timed::default() })
}
