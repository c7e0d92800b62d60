//! Requests and waits in the words of the log.

use traps::Time;
use traps::protocol::{InForce, Owned, Request, ScopeKind};

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::table::Asker;
use crate::task::Task;
use crate::trace::{Alias, Op};
use crate::waits::{On, Wait};

/// For a descriptor that is gone.
pub(crate) const UNKNOWN: Alias = Alias { kind: 'f', number: 0 };

impl<M: Machine> Kernel<M> {
    /// What a request asks for. Numbers what is shown for the first time.
    pub(crate) fn asked_op(&mut self, asker: &Asker) -> Op<'static> {
        let owned = self.gate.take_owned(asker.asked.serial);
        let op = self.op_of(asker, owned.as_ref());
        if let Some(owned) = owned {
            self.gate.give_owned_back(asker.asked.serial, owned);
        }
        op
    }

    fn op_of(&mut self, asker: &Asker, owned: Option<&Owned>) -> Op<'static> {
        let mut queue = || match owned {
            Some(Owned::Queue(queue)) => self.queue_number(queue),
            _ => 0,
        };
        match asker.asked.request {
            Request::Clock => Op::Clock,
            Request::WallClock => Op::WallClock,
            Request::CurrentTask => Op::CurrentTask,
            Request::Deadline => Op::Deadline { until: None },
            Request::CheckInterrupt => Op::CheckInterrupt,
            Request::HeldInterrupt => Op::HeldInterrupt,
            Request::Yield { .. } => Op::Yield,
            Request::Sleep { span, until } => {
                Op::Sleep { span: std::time::Duration::from_micros(span), until }
            }
            Request::Io { handle, direction } => {
                let alias = self.registrations.alias(handle.index).unwrap_or(UNKNOWN);
                Op::Io { alias, direction }
            }
            Request::Join { id, .. } => Op::Join { task: id.0 },
            Request::Wait { .. } => Op::Wait { queue: queue() },
            Request::Wake { n } => Op::Wake { queue: queue(), n },
            Request::Offload => Op::Offload { job: self.jobs.tokens.next_number() },
            Request::Signal(_) | Request::NextSignal => Op::Signal,
            Request::Foreign { external } => Op::Foreign { external },
            Request::Outside { what, external } => Op::Outside { what: what.into(), external },
        }
    }

    /// What a task is parked in.
    pub(crate) fn parked_in(&self, task: &Task, wait: &Wait) -> String {
        match wait.on {
            On::Sleep(_) => "sleep".to_owned(),
            On::Io(index, direction) => {
                let alias = self.registrations.alias(index).unwrap_or(UNKNOWN);
                Op::Io { alias, direction }.to_string()
            }
            On::Join(joined, _) => {
                let joined = self.tasks.find(joined).map_or(0, |joined| self.tasks[joined].id);
                format!("join {joined}")
            }
            On::Queue { .. } => match task.owned(wait.serial) {
                Some(Owned::Queue(queue)) => format!("wait q{}", queue.number.get()),
                _ => "wait".to_owned(),
            },
            On::Job(job) => format!("offload o{job}"),
            On::Signal(_) | On::Stream => "signal".to_owned(),
            On::Foreign(_) => "foreign".to_owned(),
            On::Outside(what, _) => format!("outside {}", self.outside_names[usize::from(what)]),
            _ => "yield".to_owned(),
        }
    }

    /// A small number for the name of an outside wait.
    pub(crate) fn name_number(&mut self, what: &'static str) -> u16 {
        let known = self.outside_names.iter().position(|name| *name == what);
        let number = known.unwrap_or_else(|| {
            self.outside_names.push(what);
            self.outside_names.len() - 1
        });
        u16::try_from(number).expect("a program has fewer than 65,536 names for its waits")
    }

    /// The nearest deadline in force in that scope.
    pub(crate) fn in_force(&self, scope: u32) -> Option<InForce> {
        let mut soonest: Option<InForce> = None;
        for (_, scope) in self.scopes.around(scope) {
            let deadline = match scope.kind {
                ScopeKind::Shield => break,
                ScopeKind::Guard { slot: Some(slot), .. } if scope.fired.is_none() => {
                    self.shared.deadlines.at(slot)
                }
                _ => scope.deadline,
            };
            if deadline != Time::NEVER && soonest.is_none_or(|found| deadline <= found.deadline) {
                let set_at = (scope.kind == ScopeKind::Timeout).then_some(scope.site);
                soonest = Some(InForce { deadline, scope: scope.number, set_at });
            }
        }
        soonest
    }
}
