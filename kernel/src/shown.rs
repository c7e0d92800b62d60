//! How requests and waits look in the log and in reports.
//!
//! Changes nothing but the numbers that it has to give out to show something for the first time.

use traps::protocol::Request;

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::scoping::shown_scope;
use crate::trace::Op;
use crate::trace::words::Word;
use crate::waits::{Entry, Wait};

impl<M: Machine> Kernel<M> {
    pub(crate) fn shown(&mut self, request: &Request) -> Op<'static> {
        match request {
            Request::Clock => Op::Clock,
            Request::WallClock => Op::WallClock,
            Request::CurrentTask => Op::CurrentTask,
            Request::Deadline => Op::Deadline { until: None },
            Request::CheckInterrupt => Op::CheckInterrupt,
            Request::HeldInterrupt => Op::HeldInterrupt,
            Request::Yield { .. } => Op::Yield,
            Request::Sleep { span } => Op::Sleep { span: *span, until: self.log.now + *span },
            Request::Io { handle, descriptor, kind, direction } => {
                let alias = self.registrations.of(*handle, *descriptor, *kind).alias();
                Op::Io { alias, direction: *direction }
            }
            Request::OpenScope { limit, kind } => {
                let now = self.log.now;
                shown_scope(*limit, *kind, limit.from(now), now)
            }
            Request::Spawn { body, .. } => Op::Spawn { name: body.name().to_owned().into() },
            Request::Join { task, .. } => Op::Join { task: task.serial.get() },
            Request::Cancel { task, reason } => {
                Op::Cancel { task: task.serial.get(), reason: (*reason).into() }
            }
            Request::Wait { queue } => Op::Wait { queue: self.queue_number(queue) },
            Request::Wake { queue, n } => Op::Wake { queue: self.queue_number(queue), n: *n },
            Request::Offload { .. } => Op::Offload { job: self.workers.next_number() },
            Request::Signal(_) | Request::NextSignal(_) => Op::Signal,
            Request::Foreign { external } => Op::Foreign { external: *external },
            Request::Outside { what, external } => {
                Op::Outside { what: (*what).into(), external: *external }
            }
        }
    }

    pub(crate) fn shown_wait(&self, entry: &Entry) -> String {
        match &entry.wait {
            Wait::Yield { .. } => "yield".to_owned(),
            Wait::Sleep { .. } => "sleep".to_owned(),
            Wait::Io { handle, direction } => {
                let alias = self.registrations.alias(*handle);
                let side = direction.word();
                format!("io {} {side}", alias.map_or_else(|| "-".to_owned(), |a| a.to_string()))
            }
            Wait::Join { task, .. } => format!("join {}", self.tasks.label(*task).0),
            Wait::Queue(queue) => format!("wait q{}", queue.number.get()),
            Wait::Job { number, .. } => format!("offload o{number}"),
            Wait::Signal(_) | Wait::Stream(_) => "signal".to_owned(),
            Wait::Foreign { .. } => "foreign".to_owned(),
            Wait::Outside { what, .. } => format!("outside {}", self.waits.names.name(*what)),
        }
    }
}
