//! Groups of tasks: children that have all ended before their parent goes on.
//!
//! Built from spawn, cancel, the scheduling queue and a shield. The one thing that the kernel does
//! for it alone is to drop a member whose grace is over.

mod cleanup;
mod members;
mod reports;
mod spawn;

pub use spawn::{Member, Spawner};

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use crate::core::gate;
use crate::core::interrupt::{Interrupt, Interruptible};
use crate::core::names::{Site, TaskId, TaskRef};
use crate::error::Error;
use crate::limits::GROUP_GRACE;
use crate::sync::WaitQueue;
use members::{Entry, Members};
use reports::Reports;

/// If a group has more members, it does not name those that it waits for.
const NAMED: usize = 8;

/// Tasks that belong together: [`TaskGroup::join`] gives their outputs, or the first failure after
/// all the others have been cancelled and have ended.
///
/// | waits for | method |
/// |---|---|
/// | all members | [`join`](TaskGroup::join) |
/// | the first end, failed or not | [`join_any`](TaskGroup::join_any) |
/// | the first output | [`join_first_ok`](TaskGroup::join_first_ok) |
/// | each output in turn | [`next_result`](TaskGroup::next_result) |
/// | the same, and the outputs stay | [`next_done`](TaskGroup::next_done) |
/// | the end of all, cancelled | [`cancel_remaining`](TaskGroup::cancel_remaining) |
///
/// - A member runs under the deadline that was in force where it was spawned; a plain
///   [`spawn`](crate::spawn) inherits none.
/// - It fails by an error or a panic. Nothing happens to the others before the group is joined.
/// - A member that ends by its own cancellation does not fail its group; its output is missing.
/// - Members can spawn into their group while it is awaited, through a [`Spawner`].
/// - What ends early is cleaned up in full, whatever interrupts the clean-up: all members are
///   cancelled, newest first, then all are awaited, in all no longer than the grace; those left
///   are dropped, newest first.
///
/// A group that is dropped without a join cancels its members and lets them go; if one had failed,
/// a `warn` line says so.
///
/// ```no_run
/// use traps::{Error, TaskGroup, sleep};
/// # use std::time::Duration;
///
/// # async fn example() -> Result<(), Error> {
/// let mut group = TaskGroup::<_, Error>::new();
/// for n in 1..=3 {
///     let work = async move {
///         sleep(Duration::from_secs(n)).await?;
///         Ok(n * 10)
///     };
///     group.spawn("worker", work).await;
/// }
/// assert_eq!(group.join().await?, [10, 20, 30]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a group that is dropped cancels its members"]
pub struct TaskGroup<T: 'static, E: 'static> {
    members: Rc<Members<T, E>>,
    spawner: Spawner<T, E>,
    /// By number.
    outputs: BTreeMap<u64, (TaskId, T)>,
    grace: Duration,
    /// What a wait found and has not given yet.
    failure: Option<Failure<E>>,
    /// A task that waited for the group, and so is no member of it.
    joiner: Option<TaskRef>,
}

/// Why a join gives no outputs.
enum Failure<E> {
    /// This member failed or panicked.
    Member(TaskId, E),
    /// The joiner's own wait ended early.
    Joiner(Interrupt),
}

/// What a join waits for, if nothing goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The end of all members.
    All,
    /// The first end.
    Any,
    /// The first output; failures are passed over.
    Ok,
}

impl<T: 'static, E: 'static> Default for TaskGroup<T, E> {
    fn default() -> TaskGroup<T, E> {
        let members = Rc::default();
        let line = WaitQueue::new().described("group", "");
        let reports = Rc::new(Reports { line, ..Reports::default() });
        let spawner = Spawner { reports, members: Rc::downgrade(&members) };
        let (outputs, grace) = (BTreeMap::new(), GROUP_GRACE);
        TaskGroup { members, spawner, outputs, grace, failure: None, joiner: None }
    }
}

impl<T: 'static, E: 'static> fmt::Debug for TaskGroup<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup").field("alive", &self.reports().alive).finish_non_exhaustive()
    }
}

impl<T: 'static, E: Interruptible + From<Error> + 'static> TaskGroup<T, E> {
    /// A group without members, with a grace of 5 s.
    pub fn new() -> TaskGroup<T, E> {
        TaskGroup::default()
    }

    /// Waits until all members have ended; gives their outputs in the order of spawning. *Blocks*
    /// unless all have ended. Afterwards the group is empty and can be used again. A member that
    /// was cancelled from outside has no output, and then the list is shorter: where that may
    /// happen, let the outputs say whose they are.
    ///
    /// A join whose future is dropped has cancelled nothing, or has begun to clean up; it can be
    /// made again and goes on from there.
    ///
    /// # Errors
    ///
    /// The first failure in the order of ending: the member's error, or [`Error::Panicked`]. Or the
    /// interrupt that ended this wait. In all cases all members have ended, or were dropped, before
    /// it is given. Further members that had failed by then are counted in a `warn` line; what
    /// members make of being cancelled is not. An interrupt in a member's error is of another task:
    /// the scopes around the join pass it on.
    ///
    /// # Panics
    ///
    /// In a member of the group: it would wait for itself.
    #[track_caller]
    pub fn join(&mut self) -> impl Future<Output = Result<Vec<T>, E>> {
        let outputs = self.settle(Until::All, Location::caller());
        async { Ok(outputs.await?.collect()) }
    }

    /// Waits for the first member that ends, and gives its output or its failure; the others are
    /// cancelled and awaited. A member that was cancelled from outside has neither, and does not
    /// count. `None`: there was no other. *Blocks* unless one has ended. Else as
    /// [`TaskGroup::join`].
    ///
    /// A member that [`next_done`](TaskGroup::next_done) has shown counts as one that has ended; of
    /// several, the oldest.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # async fn example() -> Result<(), Error> {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// for n in [3, 1, 2] {
    ///     let work = async move {
    ///         sleep(Duration::from_secs(n)).await?;
    ///         Ok(n)
    ///     };
    ///     group.spawn("worker", work).await;
    /// }
    /// assert_eq!(group.join_any().await?, Some(1));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The failure, if that came first; or the interrupt that ended this wait. All members have
    /// ended then.
    ///
    /// # Panics
    ///
    /// In a member of the group: it would wait for itself.
    #[track_caller]
    pub fn join_any(&mut self) -> impl Future<Output = Result<Option<T>, E>> {
        let outputs = self.settle(Until::Any, Location::caller());
        async { Ok(outputs.await?.next()) }
    }

    /// Waits for the first member that ends with an output, and gives that; the others are
    /// cancelled and awaited. Failures are passed over, without a `warn` line, as long as another
    /// member may succeed. Else as [`TaskGroup::join_any`].
    ///
    /// # Errors
    ///
    /// The last failure, if no member has succeeded and one has failed; or the interrupt that ended
    /// this wait. All members have ended then.
    ///
    /// # Panics
    ///
    /// In a member of the group: it would wait for itself.
    #[track_caller]
    pub fn join_first_ok(&mut self) -> impl Future<Output = Result<Option<T>, E>> {
        let outputs = self.settle(Until::Ok, Location::caller());
        async { Ok(outputs.await?.next()) }
    }

    /// Waits for the next member that ends with an output, in the order of ending, and shows it;
    /// it stays in what [`TaskGroup::join`] gives. `None`: nothing more will come, because all
    /// have ended or one has failed; the join says which. *Blocks* until then.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; it cancels nothing.
    ///
    /// # Panics
    ///
    /// In a member of the group: it would wait for itself.
    #[track_caller]
    pub fn next_done(&mut self) -> impl Future<Output = Result<Option<(TaskId, &T)>, Interrupt>> {
        let site = Location::caller();
        async move {
            let ended = self.next_output(site).await?;
            let output = ended.and_then(|number| self.outputs.get(&number));
            Ok(output.map(|(task, output)| (*task, output)))
        }
    }

    /// Waits for the next member that ends with an output, in the order of ending, and takes the
    /// output out of the group: a later join is without it. `None`: all have ended, daemons too.
    /// *Blocks* until then. In a loop it gives all results:
    ///
    /// ```no_run
    /// # use traps::{Error, TaskGroup};
    /// # async fn example(mut group: TaskGroup<u32, Error>) -> Result<(), Error> {
    /// while let Some(output) = group.next_result().await? {
    ///     println!("{output}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The first failure, after the others have been cancelled and have ended, as from
    /// [`TaskGroup::join`]. Or the interrupt that ended this wait, which cancels nothing.
    ///
    /// # Panics
    ///
    /// In a member of the group: it would wait for itself.
    #[track_caller]
    pub fn next_result(&mut self) -> impl Future<Output = Result<Option<T>, E>> {
        let site = Location::caller();
        async move {
            let Some(number) = self.next_output(site).await? else {
                return self.finish(site).await.map(|()| None);
            };
            Ok(self.outputs.remove(&number).map(|(_, output)| output))
        }
    }

    /// Waits until all members have ended, or those that `until` asks for, or one has failed. Then
    /// cleans up, and gives the outputs.
    async fn settle(&mut self, until: Until, site: Site) -> Result<impl Iterator<Item = T>, E> {
        self.refuse_a_member(site);
        while !self.has_enough(until) {
            match self.next_end(site).await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(interrupt) => self.failure = Some(Failure::Joiner(interrupt)),
            }
        }
        if until == Until::Ok && !self.outputs.is_empty() {
            // Nor are the failures told that nobody has looked at.
            self.forget_the_ended();
            self.failure.take_if(|failure| matches!(failure, Failure::Member(..)));
        }
        self.finish(site).await?;
        Ok(mem::take(&mut self.outputs).into_values().map(|(_, output)| output))
    }

    fn has_enough(&self, until: Until) -> bool {
        match (&self.failure, until) {
            (Some(Failure::Joiner(_)), _) | (Some(_), Until::All | Until::Any) => true,
            (_, Until::Any | Until::Ok) => !self.outputs.is_empty(),
            (None, Until::All) => false,
        }
    }

    /// The number of the next member that ends with an output.
    async fn next_output(&mut self, site: Site) -> Result<Option<u64>, Interrupt> {
        self.refuse_a_member(site);
        while self.failure.is_none()
            && let Some(number) = self.next_end(site).await?
        {
            if self.outputs.contains_key(&number) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn refuse_a_member(&mut self, site: Site) {
        let task = gate::task();
        // New members are new tasks, so one that was no member is still none.
        if task != self.joiner {
            let is_member = self.members.borrow().values().any(|it| Some(it.task.name()) == task);
            let rule = "rule: a member does not wait for its own group";
            assert!(!is_member, "{rule}; it does at {site}");
            self.joiner = task;
        }
    }

    /// Waits until one more member has ended, and takes its output or its failure; gives its
    /// number. `None`: all have ended, or the group cleans up.
    async fn next_end(&mut self, site: Site) -> Result<Option<u64>, Interrupt> {
        while self.reports().closing.get().is_none() {
            let ended = self.take_end();
            if ended.is_some() || self.reports().alive.get() == 0 {
                return Ok(ended);
            }
            self.name_those_awaited();
            self.reports().line.wait_from(site).await?;
        }
        Ok(None)
    }

    /// Takes the output or the failure of the next member that has ended; gives its number.
    fn take_end(&mut self) -> Option<u64> {
        let report = self.reports().ended.borrow_mut().pop_front()?;
        let entry = self.members.borrow_mut().remove(&report.member);
        // Without one, it is of a member that was forgotten.
        let Some(Entry { task: member, .. }) = entry else { return Some(report.member) };
        let task = member.id();
        match member.take() {
            Ok(Ok(output)) => drop(self.outputs.insert(report.member, (task, output))),
            Ok(Err(error)) if report.failed => self.failure = Some(Failure::Member(task, error)),
            Err(panic @ Error::Panicked(_)) if report.failed => {
                self.failure = Some(Failure::Member(task, panic.into()));
            }
            // It was cancelled or dropped, and has no output.
            Ok(Err(_)) | Err(_) => {}
        }
        Some(report.member)
    }
}

impl<T: 'static, E: 'static> TaskGroup<T, E> {
    fn reports(&self) -> &Rc<Reports> {
        &self.spawner.reports
    }

    /// The line of the group is held by its members, if these are few: for the log and the table.
    fn name_those_awaited(&self) {
        let members = self.members.borrow();
        let named = if members.len() > NAMED { 0 } else { NAMED };
        let awaited = members.values().filter(|it| !it.is_daemon).take(named);
        self.reports().line.held_by(awaited.map(|it| it.task.name()));
    }
}
