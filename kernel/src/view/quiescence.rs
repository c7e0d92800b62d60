//! Whether anything can still happen: the one predicate, and what it counts.
//!
//! A hang is decided here, and whether a kernel that is to run until all is quiet has come there.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use traps::SignalSet;
use traps::core::protocol::Post;
use traps::core::queue::Label;
use traps::core::records::{On, Wait, WaitState};

use super::counters::Counters;
use crate::core::Core;
use crate::core::wakers::SpareWaker;
use crate::machine::Machine;

/// What could still happen in a kernel: a snapshot. Tasks that are parked and that none of this
/// can wake do not count.
///
/// A bare waker that another thread holds cannot be seen, unless the wait is marked as
/// [external](traps::Foreign::external).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outstanding {
    /// Tasks that are ready to run.
    pub ready: usize,
    /// Timers and connection deadlines that will fire; those of a shutdown not counted.
    pub timers: usize,
    /// Waits for descriptors and signals, where the machine has any.
    pub io: usize,
    /// Waits that something outside the kernel will end.
    pub external: usize,
    /// Wakes that were sent and not delivered yet.
    pub wakes: usize,
    /// Jobs that wait for a token.
    pub queued: usize,
    /// Jobs that run, and whose caller waits.
    pub running: usize,
    /// Jobs that run although their caller was answered: their end is still seen.
    pub abandoned: usize,
    /// Steps of a simulated machine's script that are still to come; its jobs not counted.
    pub scripted: usize,
}

impl Outstanding {
    /// Whether it is nothing at all.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Outstanding::default()
    }
}

/// `ready=1 timers=0 ...`, as in the log.
impl fmt::Display for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outstanding { ready, timers, io, external, wakes, .. } = self;
        let Outstanding { queued, running, abandoned, scripted, .. } = self;
        write!(f, "ready={ready} timers={timers} io={io} external={external} wakes={wakes} ")?;
        write!(f, "queued={queued} running={running} abandoned={abandoned} scripted={scripted}")
    }
}

impl Outstanding {
    /// What could still happen in the core. O(waits).
    pub(crate) fn of<M: Machine>(core: &Core<M>, counters: &Counters) -> Outstanding {
        let Counters { queued, abandoned, jobs, .. } = *counters;
        let records = core.gate.records();
        let is_ours =
            |wait: &Wait| records.scopes[records.root_of(wait)].epoch == core.shared.epoch;
        let is_io = |wait: &Wait| match &wait.state {
            WaitState::Parked(On::Io(..)) => true,
            WaitState::Parked(On::Queue(queue, _)) => queue.label.get() == Label::Signal,
            _ => false,
        };
        let io = records.waits.iter().filter(|(_, wait)| is_io(wait) && is_ours(wait)).count();
        drop(records);
        let posts = core.gate.count_later(core.shared.epoch, wakes);
        Outstanding {
            ready: core.ready.iter().count(),
            timers: core.timers.count_of_tasks() + core.shared.deadlines.armed(),
            io: if core.machine.has_io() { io } else { 0 },
            external: core.external,
            wakes: posts + usize::from(!core.inbox.queue.is_empty()),
            queued,
            running: jobs - (abandoned + queued),
            abandoned,
            scripted: core.machine.scripted(),
        }
    }
}

/// Whether a kernel on the real clock would sleep for ever: nothing in it can happen any more,
/// and nobody outside can wake a task. Asked before each turn, so what mostly differs comes first.
#[inline]
pub(crate) fn hangs<M: Machine>(
    core: &Core<M>,
    remotes: &Arc<()>,
    counters: impl FnOnce() -> Counters,
) -> bool {
    core.machine.has_io()
        && core.ready.is_empty()
        && core.timers.next().is_none()
        && core.external + core.busy_threads == 0
        && !core.gate.has_filed()
        && !core.handles.somebody_waits()
        && core.options.shutdown_on == SignalSet::default()
        && is_alone(core, remotes)
        && Outstanding::of(core, &counters()).is_nothing()
}

/// Whether nobody outside has a [`Remote`](crate::Remote) or a waker of this kernel. A clone of a
/// task's waker counts, wherever it is.
fn is_alone<M: Machine>(core: &Core<M>, remotes: &Arc<()>) -> bool {
    let is_alone = Arc::strong_count(remotes) == 1
        && Arc::strong_count(&core.shared.outside) == 1
        && !core.tasks.wakers().any(SpareWaker::was_kept);
    // What another thread sent before it let go is in the queue now.
    fence(Ordering::Acquire);
    is_alone
}

/// Whether a post that waits for the next run will wake a task.
fn wakes(post: &Post) -> bool {
    matches!(post, Post::Woken(_) | Post::Unpark(_) | Post::Wake(..) | Post::Permit(..))
}
