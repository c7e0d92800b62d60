//! The traps, replies, interrupts and scopes of the kernel, in the words of the log.
//!
//! A wait has one name everywhere. The record of the wait keeps its [`Trap`], and from that
//! [`Core::op_of`] makes the [`Op`] that the log, the task table and the tools show. Only reports
//! of long runs need no more than one word ([`Trap::word`]).

use std::collections::BTreeSet;
use std::time::Duration;

use traps::internal::protocol::{Left, Parked, Reply, ScopeKind, Trap};
use traps::internal::table::{
    self as names, HandleId, Label, Primitive as Described, Queue, TaskRef,
};
use traps::{Interrupt, Time};

use crate::core::Core;
use crate::log::emit_for;
use crate::machine::Machine;
use crate::trace::{Alias, Event, Op, Outcome, Primitive, Site, Text, Timed};

/// The primitives that keep what a wake is about, so that a task that waits later finds it. A wake
/// of them that reaches no task is not lost, and has no line.
const KEPT: [&str; 9] =
    ["mpsc", "oneshot", "broadcast", "watch", "queue", "group", "barrier", "rwlock", "pipe"];

/// The alias of a descriptor that is gone.
pub(crate) const UNKNOWN: Alias = Alias { kind: 'f', number: 0 };

impl<M: Machine> Core<M> {
    pub(crate) fn alias(&self, handle: HandleId) -> Alias {
        self.handles.alias(handle).unwrap_or(UNKNOWN)
    }

    /// Returns the operation of a trap for the log, with the tasks that hold the object of the
    /// wait. Numbers the queue of the trap if this kernel sees the queue for the first time.
    pub(crate) fn op(&mut self, trap: &Trap) -> Op<'static> {
        match trap {
            Trap::Wait { queue, .. } => self.number(queue),
            Trap::Park { what: Parked::Universal(_, id), .. } => {
                let number = self.universal.entry(*id).or_insert(self.queues + 1);
                self.queues = self.queues.max(*number);
            }
            _ => {}
        }
        let mut op = self.op_of(trap);
        if let (Op::Primitive(primitive), Trap::Wait { queue, .. }) = (&mut op, trap) {
            primitive.held_by = self.holders(queue);
        }
        op
    }

    /// Returns the operation of a trap, in the terms of the log.
    pub(crate) fn op_of(&self, trap: &Trap) -> Op<'static> {
        match trap {
            Trap::Clock => Op::Clock,
            Trap::Check => Op::CheckCancellation,
            Trap::Yield { .. } => Op::Yield,
            &Trap::Sleep { span, until } => Op::Sleep { span: Duration::from_micros(span), until },
            &Trap::Io { handle, direction } => Op::Io { alias: self.alias(handle), direction },
            Trap::Join { id, .. } => Op::Join { task: id.0 },
            Trap::Wait { queue, .. } => self.op_of_queue(queue),
            &Trap::Park { what, external } => match what {
                Parked::Foreign => Op::Foreign { external },
                Parked::Outside(what) => Op::Outside { what: what.into(), external },
                Parked::Job(job) => Op::Offload { job },
                Parked::Universal(act, id) => {
                    let number = self.universal.get(&id).copied().unwrap_or(0);
                    Op::primitive(act.word(), "".into(), number)
                }
            },
        }
    }

    /// Returns the operation of a wait in a queue.
    fn op_of_queue(&self, queue: &Queue) -> Op<'static> {
        let number = queue.number.get().0;
        match (queue.label.get(), queue.primitive.get()) {
            (Label::Signal, _) => Op::Signal,
            (Label::Queue, None) => Op::Wait { queue: number },
            (Label::Queue, Some(it)) => Op::primitive(it.kind, it.name.clone(), number),
        }
    }

    /// Logs that a task wakes the first `n` waits in a queue, before it wakes them. The line of a
    /// wake that reaches no task is the only trace of it.
    #[cold]
    pub(crate) fn log_notify(&mut self, queue: &Queue, n: u64) {
        let is_kept = |it: &Described| KEPT.contains(&it.kind);
        if queue.primitive.get().is_some_and(|it| is_kept(it)) {
            return;
        }
        self.number(queue);
        let (op, woke) = (self.op_of_queue(queue), n.min(queue.len.get()));
        let event = Event::Notify { op, woke };
        emit_for!(self, self.tasks.label_of(self.run.task), event);
    }

    /// Returns the numbers of the tasks that hold the primitive of a queue, in order.
    pub(crate) fn holders(&self, queue: &Queue) -> Vec<u64> {
        let holders = queue.primitive.get().map(|primitive| primitive.holders.borrow());
        let number = |task: &TaskRef| Some(self.tasks[self.find(*task)?].id);
        let numbers = holders.iter().flat_map(|tasks| tasks.iter()).filter_map(number);
        numbers.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Gives a user's queue a number if this kernel sees the queue for the first time.
    pub(crate) fn number(&mut self, queue: &Queue) {
        let (_, kernel) = queue.number.get();
        if kernel != self.shared.epoch && queue.label.get() == Label::Queue {
            self.queues += 1;
            queue.number.set((self.queues, self.shared.epoch));
        }
    }
}

impl Op<'static> {
    fn primitive(kind: &'static str, name: Text<'static>, queue: u64) -> Op<'static> {
        Op::Primitive(Box::new(Primitive { kind, name, queue, held_by: Vec::new() }))
    }
}

pub(crate) fn site(site: names::Site) -> Site<'static> {
    Site { file: site.file().into(), line: site.line() }
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
pub(crate) fn without_place(mut outcome: Outcome<'static>) -> Outcome<'static> {
    if let Outcome::Interrupt { set_at, .. } = &mut outcome {
        *set_at = None;
    }
    outcome
}

/// Returns the lateness of an event, for a timed trace.
pub(crate) fn late(deadline: Time, now: Time) -> Option<Timed> {
    Some(Timed { late: Some(now.since(deadline)), ..Timed::default() })
}
