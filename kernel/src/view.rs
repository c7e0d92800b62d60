//! The view of a kernel from outside: counters, quiescence, and the task table. All views are
//! snapshots; nothing here changes the kernel.
//!
//! - [`Counters`]: what the kernel holds, and what it has done.
//! - [`Outstanding`]: what can still happen. If nothing can, the kernel is *quiescent*. The hang
//!   check ([`hangs`]) and `run_until_quiescent` both use this one predicate.
//! - [`circles`]: deadlocks, which are tasks that wait for each other in a circle.
//! - [`TaskTable`]: every task, with its waits, as data and as text.
//!
//! # How a deadlock is found
//!
//! A task is a suspect if each of its waits is for something that tasks hold, and if nothing else
//! can wake it: no deadline, and no waker elsewhere. Then clear every suspect that waits for a task
//! that is not one, and repeat until none is left to clear. The remaining tasks wait only for each
//! other. From each of them a walk goes to the first holder of its first wait, until it meets a
//! task again: the tasks from there on are a circle.
//!
//! Suppose task 2 holds lock A and waits for lock B, which task 3 holds. Task 3 waits for A, and
//! task 4 joins task 2. All three are suspects, and none can be freed. The walk from 2 finds the
//! circle 2, 3. The walk from 4 leads to task 2, which was seen already, and adds no circle.
//!
//! The walk does not report each circle that it meets: a task can have several waits, and a lock
//! several holders. If one of them can end, there is no deadlock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use traps::internal::protocol::{Post, Trap};
use traps::internal::records::Wait;
use traps::internal::table::{Label, TaskIndex};
use traps::{SignalSet, Time};

use crate::core::Core;
use crate::core::tasks::TaskState;
use crate::core::timers::lives;
use crate::log::form::word;
use crate::log::words;
use crate::machine::Machine;
use crate::parts::wakers::SpareWaker;
use crate::trace::Op;

/// Counts of the things that a kernel holds now, and of its events so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Tasks that have not ended, not counting the kernel's own task.
    pub tasks: usize,
    /// Waits that are parked, or that have ended and were not read.
    pub tickets: usize,
    /// Open scopes.
    pub scopes: usize,
    /// Timers that are set, plus connection deadlines that are armed.
    pub timers: usize,
    /// Connection deadlines that exist, armed or not.
    pub deadlines: usize,
    /// Descriptors registered with the poller.
    pub registered: usize,
    /// Open handles that a task has waited for at least once.
    pub handles: usize,
    /// Jobs that are queued or running, including abandoned jobs that still run.
    pub jobs: usize,
    /// Jobs that wait for a token of the pool or of their limiter.
    pub queued: usize,
    /// Tokens in use: one for each running job, abandoned ones included.
    pub tokens: usize,
    /// The largest number of tokens in use at one time so far.
    pub tokens_peak: usize,
    /// The sum of the times for which ended jobs held their tokens. Divided by the kernel's time,
    /// it is the mean number of tokens in use.
    pub tokens_held: std::time::Duration,
    /// Jobs that still run although their caller has its reply.
    pub abandoned: usize,
    /// Living worker threads, idle ones included.
    pub threads: usize,
    /// Interrupts that no task has received yet.
    pub pending: usize,
    /// [Holds](traps::shutdown::hold) that still existed when the drain of the shutdown ended, so
    /// that their work was cut off.
    pub cut_off: u64,
    /// Turns so far.
    pub turns: u64,
    /// Waits on the machine so far.
    pub polls: u64,
    /// Registrations made with the poller so far (`EPOLL_CTL_ADD`).
    pub registers: u64,
    /// Registrations removed so far (`EPOLL_CTL_DEL`). A close that ends a registration does not
    /// count.
    pub unregisters: u64,
    /// Traps answered or parked so far, plus tasks spawned by tasks so far. Scopes do not count.
    pub traps: u64,
    /// Rings of the bell so far.
    pub rings: u64,
    /// Scans of the deadline table so far.
    pub scans: u64,
    /// Messages of other threads so far: wakes, ended jobs, and requests of a
    /// [`Remote`](crate::Remote).
    pub wakes: u64,
    /// The batches in which the messages of other threads came so far.
    pub batches: u64,
    /// Wakes through an [`OutsideWaker`](traps::OutsideWaker) that came after the end of the wait.
    pub stale: u64,
}

/// The events that could still happen in a kernel: a snapshot. Parked tasks that none of these
/// events can wake do not count.
///
/// A plain waker that another thread holds is not visible, unless the wait is marked as
/// [external](traps::Foreign::external).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outstanding {
    /// Tasks that are ready to run.
    pub ready: usize,
    /// Timers and connection deadlines that will fire, not counting the timers of a shutdown.
    pub timers: usize,
    /// Waits for descriptors and signals, or 0 on a simulated machine.
    pub io: usize,
    /// Waits that something outside the kernel will end.
    pub external: usize,
    /// Wakes that were sent and not delivered yet.
    pub wakes: usize,
    /// Jobs that wait for a token.
    pub queued: usize,
    /// Running jobs whose caller waits.
    pub running: usize,
    /// Running jobs whose caller has its reply already. Their end is still an event.
    pub abandoned: usize,
    /// The remaining steps of a simulated machine's script, without its jobs.
    pub scripted: usize,
}

impl Outstanding {
    /// Returns whether all counts are zero.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Outstanding::default()
    }
}

/// Prints `ready=1 timers=0 ...`, as in the log.
impl fmt::Display for Outstanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outstanding { ready, timers, io, external, wakes, .. } = self;
        let Outstanding { queued, running, abandoned, scripted, .. } = self;
        write!(f, "ready={ready} timers={timers} io={io} external={external} wakes={wakes} ")?;
        write!(f, "queued={queued} running={running} abandoned={abandoned} scripted={scripted}")
    }
}

impl Outstanding {
    /// Counts the events that could still happen in a kernel. O(waits).
    pub(crate) fn of<M: Machine>(core: &Core<M>, counters: &Counters) -> Outstanding {
        let Counters { queued, abandoned, jobs, .. } = *counters;
        let records = core.sched.gate.records();
        let is_io = |wait: &Wait| match &wait.trap {
            Trap::Io { .. } => wait.is_parked(),
            Trap::Wait { queue, .. } => wait.is_parked() && queue.label.get() == Label::Signal,
            _ => false,
        };
        let io = records.waits.iter().filter(|(_, wait)| is_io(wait)).count();
        let timers = core.timers.count_of_tasks(|owner| lives(&records, owner));
        drop(records);
        let posts = core.sched.gate.count_posts(wakes);
        Outstanding {
            ready: core.sched.ready.iter().count(),
            timers: timers + core.sched.shared.deadlines.armed(),
            io: if core.sched.machine.has_io() { io } else { 0 },
            external: core.sched.external,
            wakes: posts + usize::from(!core.wakeup.inbox.queue.is_empty()),
            queued,
            running: jobs - (abandoned + queued),
            abandoned,
            scripted: core.sched.machine.scripted(),
        }
    }
}

/// Returns whether a kernel on the real clock would sleep forever: nothing can happen in it, and
/// nothing outside can wake a task. Called before each turn, so the checks that usually decide come
/// first.
#[inline]
pub(crate) fn hangs<M: Machine>(
    core: &Core<M>,
    remotes: &Arc<()>,
    counters: impl FnOnce() -> Counters,
) -> bool {
    core.sched.machine.has_io()
        && core.sched.ready.is_empty()
        && core.sched.external + core.busy_threads == 0
        && !core.sched.gate.has_filed()
        && !core.handles.has_waiter()
        && core.options.shutdown_on == SignalSet::default()
        && is_alone(core, remotes)
        && Outstanding::of(core, &counters()).is_nothing()
}

/// Returns whether no other thread has a [`Remote`](crate::Remote) or a waker of this kernel. A
/// clone of a task's waker counts, wherever it is, and so does the waker of a wait at a universal
/// queue. A drop of the last one rings no bell: that would need a second count next to that of each
/// `Arc`.
fn is_alone<M: Machine>(core: &Core<M>, remotes: &Arc<()>) -> bool {
    let is_alone = Arc::strong_count(remotes) == 1
        && Arc::strong_count(&core.sched.shared.outside) == 1
        && !core.sched.tasks.wakers().any(SpareWaker::was_kept);
    // If a thread sent a message before it dropped its handle, the message is in the queue now.
    fence(Ordering::Acquire);
    is_alone
}

/// Returns whether a post that is kept for the next run will wake a task.
fn wakes(post: &Post) -> bool {
    match post {
        Post::Woken(_) | Post::Unpark(_) => true,
        Post::Wake(queue, _) | Post::Permit(queue, _) => queue.len.get() > 0,
        _ => false,
    }
}

/// A task of a circle, and its wait for the next task of the circle.
pub(super) type Link<'t> = (&'t TaskView, &'t ParkedView);

/// Returns the circles among `tasks`, which are ordered by number. The head of this file describes
/// the steps. O(waits) for each task of the longest chain.
///
/// A task is in a deadlock if none of its waits has a deadline, nothing has its waker, and every
/// task that holds what it waits for is in a deadlock itself. Then only the cancellation of one of
/// these tasks can end the deadlock. If a wait has several holders, the first one is shown.
pub(super) fn circles(tasks: &[TaskView]) -> Vec<Vec<Link<'_>>> {
    let place = |id: &u64| tasks.binary_search_by_key(id, |task| task.id).ok();
    let mut is_stuck: Vec<bool> = tasks.iter().map(waits_for_tasks_alone).collect();
    loop {
        let can_end = |wait: &ParkedView| {
            wait.held_by.iter().any(|id| !place(id).is_some_and(|holder| is_stuck[holder]))
        };
        let freed: Vec<usize> = (0..tasks.len())
            .filter(|index| is_stuck[*index] && tasks[*index].parked.iter().any(can_end))
            .collect();
        if freed.is_empty() {
            break;
        }
        freed.into_iter().for_each(|index| is_stuck[index] = false);
    }
    let next = |index: usize| place(tasks[index].parked.first()?.held_by.first()?);
    let (mut circles, mut is_seen) = (Vec::new(), vec![false; tasks.len()]);
    for start in (0..tasks.len()).filter(|index| is_stuck[*index]) {
        let (mut way, mut at) = (Vec::new(), Some(start));
        while let Some(index) = at
            && !std::mem::replace(&mut is_seen[index], true)
        {
            way.push(index);
            at = next(index);
        }
        // A walk that meets a task of an earlier walk leads to a known circle.
        if let Some(first) = way.iter().position(|index| Some(*index) == at) {
            circles
                .push(way[first..].iter().map(|at| (&tasks[*at], &tasks[*at].parked[0])).collect());
        }
    }
    circles
}

fn waits_for_tasks_alone(task: &TaskView) -> bool {
    // Semaphores do not count: a permit may have moved to another task, and any task can add
    // permits.
    let is_link = |wait: &ParkedView| {
        wait.until.is_none() && !wait.held_by.is_empty() && !wait.trap.starts_with("semaphore ")
    };
    let waits = !task.parked.is_empty() && task.parked.iter().all(is_link);
    task.state == "parked" && waits && !task.has_waker
}

/// All tasks of a kernel at one moment, ordered by number.
///
/// Prints as an aligned table, with one line per task, and one more line for each further trap that
/// the task is parked in. *since* is when the task entered its state. *until* is when the wait ends
/// at the latest. *site* is where the trap was made, or where the task was spawned if it is in no
/// trap. The word `waker` under *parked in* marks a task that waits without a trap.
///
/// ```text
/// 1 task at 0.250000
/// id name state  parked in since    until    site
///  2 main parked sleep     0.000000 1.000000 examples/hello.rs:16
/// ```
///
/// ```
/// use std::time::Duration;
/// use kernel::{Kernel, Sim};
/// use traps::{sleep, spawn};
///
/// let second = Duration::from_secs(1);
/// let mut kernel = Kernel::new(Sim::new());
/// kernel.run(async {
///     spawn("child", sleep(60 * second)).detached().await;
///     sleep(second).await
/// }).unwrap().unwrap();
/// let table = kernel.task_table();
/// let child = &table.tasks[0];
/// assert_eq!(child.parked[0].trap, "sleep");
/// assert_eq!(child.parked[0].until, Some(child.since + 60 * second));
/// assert!(table.to_string().starts_with("1 task at 1.000000"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskTable {
    /// The kernel time of the snapshot.
    pub at: Time,
    /// The tasks that have not ended.
    pub tasks: Vec<TaskView>,
}

const HEAD: [&str; 7] = ["id", "name", "state", "parked in", "since", "until", "site"];

type Row = [String; 7];

impl fmt::Display for TaskTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows: Vec<Row> = self.tasks.iter().flat_map(rows).collect();
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row[column].len());
            cells.chain([HEAD[column].len()]).max().unwrap_or_default()
        };
        let widths: [usize; 7] = std::array::from_fn(width);
        let plural = if self.tasks.len() == 1 { "" } else { "s" };
        writeln!(f, "{} task{plural} at {}", self.tasks.len(), self.at)?;
        for row in [HEAD.map(str::to_owned)].iter().chain(&rows) {
            // Align the numbers right and the words left, with no padding after the last column.
            write!(f, "{:>1$}", row[0], widths[0])?;
            for column in 1..6 {
                write!(f, " {:<1$}", row[column], widths[column])?;
            }
            writeln!(f, " {}", row[6])?;
        }
        for circle in circles(&self.tasks) {
            let plural = if circle.len() == 1 { "" } else { "s" };
            writeln!(f, "deadlock of {} task{plural}:", circle.len())?;
            for (place, (task, wait)) in circle.iter().enumerate() {
                let (holder, _) = circle[(place + 1) % circle.len()];
                let (name, holder_name) = (word(&task.name), word(&holder.name));
                write!(f, "{:>1$}", task.id, widths[0])?;
                let (trap, by) = (&wait.trap, holder.id);
                writeln!(f, " {name} waits for {trap}, held by {by} {holder_name}")?;
            }
        }
        Ok(())
    }
}

fn rows(task: &TaskView) -> Vec<Row> {
    let none = || "-".to_owned();
    let traps = task.parked.iter().map(|parked| {
        let until = parked.until.map_or_else(none, |until| until.to_string());
        (described(parked), until, parked.site.clone())
    });
    let mut traps: Vec<_> = traps.collect();
    if traps.is_empty() {
        let parked = if task.state == "parked" { "waker".to_owned() } else { none() };
        traps.push((parked, none(), task.spawned_at.clone().unwrap_or_else(none)));
    }
    let name = word(&task.name);
    let row = |(place, (parked, until, site))| {
        let first = |text: &str| if place == 0 { text.to_owned() } else { String::new() };
        let (id, name, state) = (first(&task.id.to_string()), first(&name), first(task.state));
        [id, name, state, parked, task.since.to_string(), until, site]
    };
    traps.into_iter().enumerate().map(row).collect()
}

/// Describes a wait and its holders. A join names its task already.
fn described(wait: &ParkedView) -> String {
    if wait.held_by.is_empty() || wait.trap.starts_with("join ") {
        return wait.trap.clone();
    }
    let holders: Vec<String> = wait.held_by.iter().map(u64::to_string).collect();
    format!("{} held-by={}", wait.trap, holders.join(","))
}

impl TaskTable {
    /// Makes the table of the tasks that have not ended. O(tasks + waits).
    pub(crate) fn of<M: Machine>(core: &Core<M>) -> TaskTable {
        TaskTable { at: core.sched.now, tasks: TaskView::all(core) }
    }
}

/// A task in the task table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskView {
    /// The number of the task.
    pub id: u64,
    /// The name of the task.
    pub name: String,
    /// The number of the task that spawned this task. `None` for main, and for a task that another
    /// thread spawned.
    pub parent: Option<u64>,
    /// The state of the task: `ready`, `running` or `parked`.
    pub state: &'static str,
    /// The time at which the task entered this state, by the kernel clock.
    pub since: Time,
    /// The number of times that the task had the CPU.
    pub cycles: u64,
    /// The location of the spawn, `file:line`.
    pub spawned_at: Option<String>,
    /// The traps that the task is parked in. Empty if it waits on a waker only.
    pub parked: Vec<ParkedView>,
    /// Whether something keeps a clone of the task's waker, and may wake the task.
    pub has_waker: bool,
}

/// A trap that a task is parked in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParkedView {
    /// The number of the ticket in the log.
    pub ticket: u64,
    /// The object of the wait, in the words of the log.
    pub trap: String,
    /// The numbers of the tasks that hold the object of the wait, or of the task that the wait
    /// joins.
    pub held_by: Vec<u64>,
    /// The latest time at which the wait ends: the end of a sleep, or the nearest deadline in
    /// force.
    pub until: Option<Time>,
    /// The location of the trap, `file:line`.
    pub site: String,
}

impl TaskView {
    /// Returns the tasks that have not ended, ordered by number.
    pub(crate) fn all<M: Machine>(core: &Core<M>) -> Vec<TaskView> {
        let tasks = core.sched.tasks.newest_first(0).into_iter().rev();
        tasks.map(|index| TaskView::of(core, index)).collect()
    }

    fn of<M: Machine>(core: &Core<M>, index: TaskIndex) -> TaskView {
        let task = &core.sched.tasks[index];
        let parked =
            core.sched.parked(index, |ticket, wait| (ticket, wait.trap.clone(), wait.site));
        let parked = parked.into_iter().map(|(ticket, trap, site)| {
            let number = core.sched.log.number_of(ticket).0;
            let (held_by, sleep) = (holders(core, &trap), sleeps_until(&trap));
            let trap = parked_in(&core.sched.log.names.op_of(&trap));
            let records = core.sched.gate.records();
            let deadline = {
                let scope = records.waits[ticket.index].scope;
                records.in_force(scope, &core.sched.shared.deadlines)
            };
            let until = sleep.into_iter().chain(deadline.map(|found| found.deadline)).min();
            let until = until.filter(|until| *until != Time::NEVER);
            ParkedView { ticket: number, trap, held_by, until, site: words::place_of(site) }
        });
        let is_running = task.state == TaskState::Running;
        TaskView {
            id: core.sched.tasks.id(index),
            name: core.sched.tasks.label(index).1.to_owned(),
            parent: (task.parent != 0).then_some(task.parent),
            state: match task.state {
                TaskState::Ready => "ready",
                TaskState::Running => "running",
                TaskState::Parked => "parked",
            },
            since: if is_running { core.sched.run.since } else { task.since },
            cycles: u64::from(task.runs),
            spawned_at: Some(words::place_of(core.sched.tasks.site(index))),
            parked: parked.collect(),
            has_waker: task.rare.iter().flat_map(|it| &it.waker).any(SpareWaker::was_kept),
        }
    }
}

/// Describes a wait in the words of the log, without the details that are in other columns.
fn parked_in(op: &Op<'_>) -> String {
    match op {
        Op::Sleep { span: Duration::ZERO, .. } => "yield".to_owned(),
        Op::Sleep { .. } => "sleep".to_owned(),
        Op::Foreign { .. } => "foreign".to_owned(),
        Op::Outside { what, .. } => format!("outside {what}"),
        other => other.to_string(),
    }
}

fn holders<M: Machine>(core: &Core<M>, trap: &Trap) -> Vec<u64> {
    match trap {
        Trap::Join { id, .. } => vec![id.0],
        Trap::Wait { queue, .. } => core.sched.holders(queue),
        _ => Vec::new(),
    }
}

fn sleeps_until(trap: &Trap) -> Option<Time> {
    match trap {
        Trap::Sleep { span: 1.., until } => Some(*until),
        _ => None,
    }
}
