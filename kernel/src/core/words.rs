//! Waits in the words of the log: what each is called stands here and nowhere else.

use traps::core::names::HandleId;
use traps::core::protocol::{Parked, Trap};
use traps::core::queue::{Label, Queue};
use traps::core::records::On;

use super::Core;
use crate::machine::Machine;
use crate::trace::{Alias, Op, WakeOp};

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
            Trap::Sleep { span, until } => {
                Op::Sleep { span: std::time::Duration::from_micros(*span), until: *until }
            }
            Trap::Io { handle, direction } => {
                Op::Io { alias: self.alias(*handle), direction: *direction }
            }
            Trap::Wait { queue, .. } => {
                self.number(queue);
                match queue.label.get() {
                    Label::Join(task) => Op::Join { task },
                    Label::Signal => Op::Signal,
                    Label::Queue(queue) => Op::Wait { queue },
                    Label::New => Op::Wait { queue: 0 },
                }
            }
            Trap::Park { what: Parked::Foreign, external } => Op::Foreign { external: *external },
            Trap::Park { what: Parked::Outside(what), external } => {
                Op::Outside { what: (*what).into(), external: *external }
            }
            Trap::Park { what: Parked::Job(job), .. } => Op::Offload { job: *job },
        }
    }

    /// What a parked wait is for.
    pub(crate) fn awaited(&self, on: &On) -> WakeOp {
        match on {
            On::Yield { zero: false } => WakeOp::Yield,
            On::Yield { zero: true } | On::Sleep(_) => WakeOp::Sleep,
            On::Io(handle, direction) => {
                WakeOp::Io { alias: self.alias(*handle), direction: *direction }
            }
            On::Queue(queue, _) => match queue.label.get() {
                Label::Join(task) => WakeOp::Join { task },
                Label::Signal => WakeOp::Signal,
                Label::Queue(queue) => WakeOp::Wait { queue },
                Label::New => WakeOp::Wait { queue: 0 },
            },
            On::Park(Parked::Job(job), _) => WakeOp::Offload { job: *job },
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

    /// Numbers a user's queue that this kernel sees for the first time.
    pub(crate) fn number(&mut self, queue: &Queue) {
        if queue.home.replace(self.shared.epoch) != self.shared.epoch
            && matches!(queue.label.get(), Label::New | Label::Queue(_))
        {
            self.queues += 1;
            queue.label.set(Label::Queue(self.queues));
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
            Label::New | Label::Queue(_) => "wait",
        },
        On::Park(Parked::Job(_), _) => "offload",
        On::Park(Parked::Foreign, _) => "foreign",
        On::Park(Parked::Outside(_), _) => "outside",
    }
}
