//! A task as its kernel's owner sees it.

use std::rc::Rc;

use traps::Time;
use traps::core::queue::{Label, Queue};
use traps::core::records::On;

use crate::core::Core;
use crate::core::tasks::State;
use crate::core::wakers::SpareWaker;
use crate::log;
use crate::machine::Machine;

/// A task as a reader of the task table sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskView {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Who spawned it; none for main, and for one that another thread spawned.
    pub parent: Option<u64>,
    /// `ready`, `running` or `parked`.
    pub state: &'static str,
    /// Since when it is in that state, by the kernel clock.
    pub since: Time,
    /// How often it had the CPU.
    pub cycles: u64,
    /// Where it was spawned, `file:line`.
    pub spawned_at: Option<String>,
    /// The traps that it is parked in; none if it waits on a waker alone.
    pub parked: Vec<ParkedView>,
    /// Whether something keeps a clone of its waker, and may wake it.
    pub has_waker: bool,
}

/// A trap that a task is parked in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedView {
    /// The ticket's number in the log.
    pub ticket: u64,
    /// What it waits for, in the words of the log.
    pub trap: String,
    /// The tasks that have taken what it waits for, or the task that it joins.
    pub held_by: Vec<u64>,
    /// When it ends at the latest: a sleep by itself, any by the nearest deadline in force.
    pub until: Option<Time>,
    /// Where it was made, `file:line`.
    pub site: String,
}

impl TaskView {
    /// The tasks that have not ended, in the order of their numbers.
    pub(crate) fn all<M: Machine>(core: &Core<M>) -> Vec<TaskView> {
        let tasks = core.tasks.newest_first(0).into_iter().rev();
        tasks.map(|index| TaskView::of(core, index)).collect()
    }

    fn of<M: Machine>(core: &Core<M>, index: u32) -> TaskView {
        let task = &core.tasks[index];
        let parked = core.parked(index, |ticket, wait, on| {
            let (number, what) = (core.log.number_of(ticket).0, (core.parked_in(on), queue_of(on)));
            (number, what, sleeps_until(core, on), wait.scope, wait.site)
        });
        let parked = parked.into_iter().map(|(ticket, (trap, queue), sleep, scope, site)| {
            let held_by = queue.map(|queue| holders(core, &queue)).unwrap_or_default();
            let records = core.gate.records();
            let deadline = records.in_force(scope, &core.shared.deadlines);
            let until = sleep.into_iter().chain(deadline.map(|found| found.deadline)).min();
            let until = until.filter(|until| *until != Time::NEVER);
            ParkedView { ticket, trap, held_by, until, site: log::place_of(site) }
        });
        let is_running = task.state == State::Running;
        TaskView {
            id: task.id,
            name: core.tasks.label(index).1.to_owned(),
            parent: (task.parent != 0).then_some(task.parent),
            state: match task.state {
                State::Ready => "ready",
                State::Running => "running",
                State::Parked => "parked",
            },
            since: if is_running { core.run.since } else { task.since },
            cycles: u64::from(task.runs),
            spawned_at: core.tasks.site(index).map(log::place_of),
            parked: parked.collect(),
            has_waker: task.rare.iter().flat_map(|it| &it.waker).any(SpareWaker::was_kept),
        }
    }
}

fn queue_of(on: &On) -> Option<Rc<Queue>> {
    match on {
        On::Queue(queue, _) => Some(queue.clone()),
        _ => None,
    }
}

fn holders<M: Machine>(core: &Core<M>, queue: &Queue) -> Vec<u64> {
    match queue.label.get() {
        Label::Join(task) => vec![task],
        Label::Queue | Label::Signal => core.holders(queue),
    }
}

fn sleeps_until<M: Machine>(core: &Core<M>, on: &On) -> Option<Time> {
    match on {
        On::Sleep(timer) => Some(core.timers.at(*timer)),
        _ => None,
    }
}
