//! Waits in the words of the log: what each is called stands here and nowhere else.

use std::collections::BTreeSet;
use std::time::Duration;

use traps::core::names::{HandleId, TaskRef};
use traps::core::protocol::{Act, Parked, Trap};
use traps::core::queue::{Label, Queue};
use traps::core::records::On;

use super::Core;
use crate::machine::Machine;
use crate::trace::{Alias, Op, Primitive, QueueOp, WakeOp};

/// For a descriptor that is gone.
pub(crate) const UNKNOWN: Alias = Alias { kind: 'f', number: 0 };

impl<M: Machine> Core<M> {
    pub(crate) fn alias(&self, handle: HandleId) -> Alias {
        self.handles.alias(handle).unwrap_or(UNKNOWN)
    }

    /// What a trap asks for.
    pub(crate) fn op(&mut self, trap: &Trap) -> Op<'static> {
        match trap {
            Trap::Clock => Op::Clock,
            Trap::Check => Op::CheckCancellation,
            Trap::Yield { .. } => Op::Yield,
            &Trap::Sleep { span, until } => Op::Sleep { span: Duration::from_micros(span), until },
            &Trap::Io { handle, direction } => Op::Io { alias: self.alias(handle), direction },
            Trap::Wait { queue, .. } => {
                self.number(queue);
                Op::Queue(named(queue, self.holders(queue)))
            }
            Trap::Park { what: Parked::Foreign, external } => Op::Foreign { external: *external },
            Trap::Park { what: Parked::Outside(what), external } => {
                Op::Outside { what: (*what).into(), external: *external }
            }
            Trap::Park { what: Parked::Job(job), .. } => Op::Offload { job: *job },
            Trap::Park { what: Parked::Universal(act, id), .. } => {
                let number = self.universal.entry(*id).or_insert(self.queues + 1);
                self.queues = self.queues.max(*number);
                Op::Queue(self.universal(*act, *id))
            }
        }
    }

    /// What a parked wait is for.
    pub(crate) fn awaited(&self, on: &On) -> WakeOp<'static> {
        match on {
            On::Yield { zero: false } => WakeOp::Yield,
            On::Yield { zero: true } | On::Sleep(_) => WakeOp::Sleep,
            On::Io(handle, direction) => {
                WakeOp::Io { alias: self.alias(*handle), direction: *direction }
            }
            On::Queue(queue, _) => WakeOp::Queue(named(queue, Vec::new())),
            On::Park(Parked::Job(job), _) => WakeOp::Offload { job: *job },
            On::Park(Parked::Universal(act, id), _) => WakeOp::Queue(self.universal(*act, *id)),
            On::Park(Parked::Foreign | Parked::Outside(_), _) => WakeOp::Outside,
        }
    }

    /// What a parked wait is for, in the words of the task table.
    pub(crate) fn parked_in(&self, on: &On) -> String {
        match on {
            On::Yield { .. } => "yield".to_owned(),
            On::Park(Parked::Foreign, _) => "foreign".to_owned(),
            On::Park(Parked::Outside(what), _) => format!("outside {what}"),
            other => self.awaited(other).to_string(),
        }
    }

    /// What a task does with something that is shared with threads.
    fn universal(&self, act: Act, id: u32) -> QueueOp<'static> {
        let (queue, kind) = (self.universal.get(&id).copied().unwrap_or(0), act.word());
        QueueOp::Primitive(Box::new(Primitive { kind, name: "".into(), queue, held_by: vec![] }))
    }

    /// The tasks that hold what the waiters of a queue want, in the order of their numbers.
    pub(crate) fn holders(&self, queue: &Queue) -> Vec<u64> {
        let holders = queue.primitive.get().map(|primitive| primitive.holders.borrow());
        let number = |task: &TaskRef| Some(self.tasks[self.find(*task)?].id);
        let numbers = holders.iter().flat_map(|tasks| tasks.iter()).filter_map(number);
        numbers.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Numbers a user's queue that this kernel sees for the first time.
    pub(crate) fn number(&mut self, queue: &Queue) {
        if queue.home.replace(self.shared.epoch) != self.shared.epoch
            && queue.label.get() == Label::Queue
        {
            self.queues += 1;
            queue.number.set(self.queues);
        }
    }
}

/// A queue in the log.
fn named(queue: &Queue, held_by: Vec<u64>) -> QueueOp<'static> {
    match (queue.label.get(), queue.primitive.get()) {
        (Label::Join(task), _) => QueueOp::Join { task },
        (Label::Signal, _) => QueueOp::Signal,
        (Label::Queue, None) => QueueOp::Wait { queue: queue.number.get() },
        (Label::Queue, Some(primitive)) => {
            let (kind, name, queue) = (primitive.kind, primitive.name.clone(), queue.number.get());
            QueueOp::Primitive(Box::new(Primitive { kind, name, queue, held_by }))
        }
    }
}

/// What a wait is for, in one word.
pub(crate) fn word(on: &On) -> &'static str {
    match on {
        On::Yield { .. } => "yield",
        On::Sleep(_) => "sleep",
        On::Io(..) => "io",
        On::Queue(queue, _) => match queue.label.get() {
            Label::Join(_) => "join",
            Label::Signal => "signal",
            Label::Queue => queue.primitive.get().map_or("wait", |primitive| primitive.kind),
        },
        On::Park(Parked::Job(_), _) => "offload",
        On::Park(Parked::Foreign, _) => "foreign",
        On::Park(Parked::Outside(_), _) => "outside",
        On::Park(Parked::Universal(act, _), _) => act.word(),
    }
}
