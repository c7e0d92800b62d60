//! Groups of tasks: the parent continues only after all of its children have ended.
//!
//! A group is built from spawn, cancel, a wait queue and a shield. It needs one special service of
//! the kernel: the kernel drops a member whose *grace* is over.
//!
//! Each member holds a [`Reporter`]. When the member ends, the reporter is dropped: it adds a
//! [`Report`] to the list of the group and wakes one wait. The group takes reports from the list in
//! the order of ending, and moves each output or failure out of its member. The wake-up carries no
//! data, so no report is lost if the woken future is dropped.
//!
//! A group ends in a *clean-up*: cancel all members, wait for them for at most the grace, then drop
//! the members that are left. The wait runs inside a shield, so an interrupt of the joiner cannot
//! leave members behind.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::marker::PhantomData;
use std::panic::Location;
use std::rc::{Rc, Weak};
use std::time::Duration;
use std::{fmt, mem, thread};

use crate::core::protocol::Post;
use crate::core::table::{Site, TaskId, TaskRef};
use crate::core::{gate, wait};
use crate::error::{Error, caught, drop_quietly};
use crate::interrupts::interrupt::{Interrupt, Interruptible};
use crate::interrupts::scope::{Limit, shield_from};
use crate::notes::note_warning;
use crate::sync::WaitQueue;
use crate::task::{self, CellState, Spawn, Task, TaskValue, WaitForEnd};
use crate::timeout::{IgnoreAfter, TimeoutAfter};
use crate::verbs::{GROUP_GRACE, in_force};

/// The largest number of members that the group names in the log as the members it waits for. A
/// larger group names none.
const NAMED: usize = 8;

/// A group of tasks. [`TaskGroup::join`] returns their outputs. If a member fails, it cancels the
/// others, waits for their end and returns the first failure.
///
/// | waits for | method |
/// |---|---|
/// | all members | [`join`](TaskGroup::join) |
/// | the first end, a failure included | [`join_any`](TaskGroup::join_any) |
/// | the first output | [`join_first_ok`](TaskGroup::join_first_ok) |
/// | each output in turn, and takes it out | [`next_result`](TaskGroup::next_result) |
/// | each output in turn, and leaves it there | [`next_done`](TaskGroup::next_done) |
/// | the end of all members, cancelled first | [`cancel_remaining`](TaskGroup::cancel_remaining) |
///
/// - A member runs under the deadline that was in force at its spawn. A plain
///   [`spawn`](crate::spawn) inherits none.
/// - A member fails by an error or a panic. Its failure does not affect the other members until the
///   group is joined.
/// - A member that ends by its own cancellation does not fail its group. Its output is missing.
/// - Members can spawn into their group through a [`Spawner`], even while the group is awaited.
/// - An early end is always followed by a full clean-up, which no interrupt can cut short. It
///   cancels all members, newest first, and waits for all of them together for at most the grace.
///   Then it drops the members that are left, newest first.
///
/// If a group is dropped without a join, it cancels its members and does not wait for them. If a
/// member had failed, a `warn` line reports that.
///
/// ```
/// use traps::{Error, TaskGroup, sleep};
/// # use std::time::Duration;
///
/// # testing::run(async {
/// let mut group = TaskGroup::<_, Error>::new();
/// for n in 1..=3 {
///     let work = async move {
///         sleep(Duration::from_secs(n)).await?;
///         Ok(n * 10)
///     };
///     group.spawn("worker", work).await;
/// }
/// assert_eq!(group.join().await?, [10, 20, 30]); // after three seconds
/// # Ok::<(), Error>(())
/// # }).output.unwrap();
/// ```
#[must_use = "a group that is dropped cancels its members"]
pub struct TaskGroup<T: 'static, E: 'static> {
    members: Rc<Members<T, E>>,
    spawner: Spawner<T, E>,
    /// The outputs that no wait has returned yet, by member number.
    outputs: BTreeMap<u64, TaskValue<T>>,
    grace: Duration,
    /// The failure that a wait has found and not returned yet.
    failure: Option<JoinFailure<E>>,
    /// A task that has waited for the group before, so it is known not to be a member.
    joiner: Option<TaskRef>,
}

/// The reason why a join returns no outputs.
enum JoinFailure<E> {
    /// This member failed.
    Member(TaskValue<E>),
    /// This member panicked.
    Panic(TaskId, Error),
    /// The joiner's own wait ended early.
    Joiner(Interrupt),
}

/// The event that a join waits for, if nothing goes wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JoinMode {
    /// The end of all members.
    All,
    /// The end of the first member.
    Any,
    /// The first output; failed members are passed over.
    FirstOk,
}

impl<T: 'static, E: 'static> Default for TaskGroup<T, E> {
    fn default() -> TaskGroup<T, E> {
        let members = Rc::default();
        let queue = WaitQueue::new().described("group", "");
        let reports = Rc::new(Reports { queue, ..Reports::default() });
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
    /// Makes a group without members, with a grace of 5 s. The two types are those of the members'
    /// outputs and errors; usually the first `spawn` fixes the output.
    pub fn new() -> TaskGroup<T, E> {
        TaskGroup::default()
    }

    /// Waits until all members have ended, and returns their outputs in the order of spawning.
    /// *Blocks* unless all have ended. Afterwards the group is empty and can be used again. A
    /// member that was cancelled from outside has no output, so the list is then shorter. If that
    /// can happen, let each output name its member.
    ///
    /// If the future of a join is dropped, it has either cancelled nothing or begun the clean-up.
    /// Another join continues from there.
    ///
    /// # Errors
    ///
    /// Returns the first failure in the order of ending: the member's error, or
    /// [`Error::Panicked`]. If this wait was interrupted, returns the interrupt. In both cases, all
    /// members have ended or were dropped before the error is returned. A `warn` line counts the
    /// further members that had failed by then; an error that a member returns because it is
    /// cancelled does not count. An interrupt inside a member's error belongs to another task, so
    /// the scopes around the join pass it on.
    ///
    /// # Panics
    ///
    /// Panics if a member of the group calls it: the member would wait for itself.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<(), Error>::new();
    /// let slow = group.spawn("slow", async { Ok(sleep(Duration::MAX).await.map(drop)?) }).await;
    /// group.spawn("fails", async { Err(Error::Full) }).await;
    /// assert_eq!(group.join().await, Err(Error::Full));
    /// slow.wait().await.unwrap(); // the join has cancelled it, and waited for its end
    /// # });
    /// ```
    #[track_caller]
    pub fn join(&mut self) -> impl Future<Output = Result<Vec<T>, E>> {
        let outputs = self.join_members(JoinMode::All, Location::caller());
        async { Ok(outputs.await?.collect()) }
    }

    /// Waits for the first member to end, cancels the others and waits for their end. Returns the
    /// output or the failure of the first. A member that was cancelled from outside has neither and
    /// does not count; if there is no other member, the result is `None`. *Blocks* unless a member
    /// has ended. In all other respects it works like [`TaskGroup::join`].
    ///
    /// A member that [`next_done`](TaskGroup::next_done) has shown counts as ended. If there are
    /// several, the oldest one is returned.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// for n in [3, 1, 2] {
    ///     let work = async move {
    ///         sleep(Duration::from_secs(n)).await?;
    ///         Ok(n)
    ///     };
    ///     group.spawn("worker", work).await;
    /// }
    /// assert_eq!(group.join_any().await?, Some(1));
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the failure if that came first, or the interrupt that ended this wait. All members
    /// have ended by then.
    ///
    /// # Panics
    ///
    /// Panics if a member of the group calls it: the member would wait for itself.
    #[track_caller]
    pub fn join_any(&mut self) -> impl Future<Output = Result<Option<T>, E>> {
        let outputs = self.join_members(JoinMode::Any, Location::caller());
        async { Ok(outputs.await?.next()) }
    }

    /// Waits for the first member that ends with an output, cancels the others and waits for their
    /// end. Returns the output. Failures are passed over without a `warn` line as long as another
    /// member may succeed. In all other respects it works like [`TaskGroup::join_any`].
    ///
    /// # Errors
    ///
    /// Returns the last failure if no member has succeeded and one has failed, or the interrupt
    /// that ended this wait. All members have ended by then.
    ///
    /// # Panics
    ///
    /// Panics if a member of the group calls it: the member would wait for itself.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut mirrors = TaskGroup::new();
    /// mirrors.spawn("first", async { Err(Error::Closed) }).await;
    /// let second = async { Ok(sleep(Duration::from_secs(1)).await.map(|_| "page")?) };
    /// mirrors.spawn("second", second).await;
    /// assert_eq!(mirrors.join_first_ok().await?, Some("page"));
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn join_first_ok(&mut self) -> impl Future<Output = Result<Option<T>, E>> {
        let outputs = self.join_members(JoinMode::FirstOk, Location::caller());
        async { Ok(outputs.await?.next()) }
    }

    /// Waits for the next member that ends with an output, in the order of ending, and lends the
    /// output. The output stays in the group, and [`TaskGroup::join`] returns it. The result is
    /// `None` if all members have ended or one has failed; a join then returns the outputs or the
    /// failure. *Blocks* until there is a result.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. The interrupt cancels no member.
    ///
    /// # Panics
    ///
    /// Panics if a member of the group calls it: the member would wait for itself.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// for n in [3, 1] {
    ///     let work = async move { Ok(sleep(Duration::from_secs(n)).await.map(|_| n)?) };
    ///     group.spawn("worker", work).await;
    /// }
    /// let mut seen = Vec::new();
    /// while let Some((_task, output)) = group.next_done().await? {
    ///     seen.push(*output);
    /// }
    /// assert_eq!(seen, [1, 3]); // in the order of ending
    /// assert_eq!(group.join().await?, [3, 1]); // in the order of spawning
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn next_done(&mut self) -> impl Future<Output = Result<Option<(TaskId, &T)>, Interrupt>> {
        let site = Location::caller();
        async move {
            let ended = self.next_output(site).await?;
            let output = ended.and_then(|number| self.outputs.get(&number));
            Ok(output.and_then(|kept| Some((kept.task, kept.get()?))))
        }
    }

    /// Waits for the next member that ends with an output, in the order of ending, and takes the
    /// output out of the group. A later join does not return it. The result is `None` if all
    /// members and daemons have ended. *Blocks* until there is a result. A loop takes all outputs:
    ///
    /// ```
    /// # use traps::{Error, TaskGroup};
    /// # testing::run(async {
    /// let mut group = TaskGroup::<u32, Error>::new();
    /// group.spawn("one", async { Ok(1) }).await;
    /// group.spawn("two", async { Ok(2) }).await;
    /// let mut sum = 0;
    /// while let Some(output) = group.next_result().await? {
    ///     sum += output;
    /// }
    /// assert_eq!((sum, group.join().await?), (3, vec![]));
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// Returns the first failure, after the other members were cancelled and have ended, like
    /// [`TaskGroup::join`]. Or returns the interrupt that ended this wait, which cancels no member.
    ///
    /// # Panics
    ///
    /// Panics if a member of the group calls it: the member would wait for itself.
    #[track_caller]
    pub fn next_result(&mut self) -> impl Future<Output = Result<Option<T>, E>> {
        let site = Location::caller();
        async move {
            let Some(number) = self.next_output(site).await? else {
                return self.finish(site).await.map(|()| None);
            };
            Ok(self.outputs.remove(&number).and_then(TaskValue::take))
        }
    }

    /// Waits until the members that `mode` asks for have ended, or a member has failed. Then
    /// cleans up and returns the outputs.
    async fn join_members(
        &mut self,
        mode: JoinMode,
        site: Site,
    ) -> Result<impl Iterator<Item = T>, E> {
        self.refuse_a_member(site);
        while !self.has_enough(mode) {
            match self.wait_for_next(site).await {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(interrupt) => self.failure = Some(JoinFailure::Joiner(interrupt)),
            }
        }
        if mode == JoinMode::FirstOk && !self.outputs.is_empty() {
            // Forget the failures that the group has not collected yet. There is an output, so they
            // are not reported.
            self.forget_the_ended();
            self.failure.take_if(|failure| !matches!(failure, JoinFailure::Joiner(_)));
        }
        self.finish(site).await?;
        Ok(mem::take(&mut self.outputs).into_values().filter_map(TaskValue::take))
    }

    fn has_enough(&self, mode: JoinMode) -> bool {
        match (&self.failure, mode) {
            (Some(JoinFailure::Joiner(_)), _) | (Some(_), JoinMode::All | JoinMode::Any) => true,
            (_, JoinMode::Any | JoinMode::FirstOk) => !self.outputs.is_empty(),
            (None, JoinMode::All) => false,
        }
    }

    /// Waits for the next member that ends with an output, and returns its number.
    async fn next_output(&mut self, site: Site) -> Result<Option<u64>, Interrupt> {
        self.refuse_a_member(site);
        while self.failure.is_none()
            && let Some(number) = self.wait_for_next(site).await?
        {
            if self.outputs.contains_key(&number) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    fn refuse_a_member(&mut self, site: Site) {
        let task = gate::task();
        // The search costs O(members), so it must not be made for each wait of a loop. New members
        // are new tasks, so a task that was no member before is still none.
        if task != self.joiner {
            let is_member = self.members.borrow().values().any(|it| Some(it.task.name()) == task);
            let rule = "rule: a member does not wait for its own group";
            assert!(!is_member, "{rule}; it does at {site}");
            self.joiner = task;
        }
    }

    /// Waits until one more member has ended, takes its output or its failure, and returns its
    /// number. Returns `None` if all members have ended, or if the group is cleaning up.
    async fn wait_for_next(&mut self, site: Site) -> Result<Option<u64>, Interrupt> {
        while self.reports().closing.get().is_none() {
            let ended = self.collect_next();
            if ended.is_some() || self.reports().alive.get() == 0 {
                return Ok(ended);
            }
            self.name_those_awaited();
            self.reports().queue.wait_from(site).await?;
        }
        Ok(None)
    }

    /// Takes the output or the failure of the next ended member, and returns its number.
    fn collect_next(&mut self) -> Option<u64> {
        let report = self.reports().ended.borrow_mut().pop_front()?;
        let entry = self.members.borrow_mut().remove(&report.member);
        // A report without an entry belongs to a member that was forgotten.
        let Some(MemberEntry { task: member, .. }) = entry else { return Some(report.member) };
        let task = member.id();
        match member.take_output() {
            Ok(Ok(output)) => {
                drop(self.outputs.insert(report.member, TaskValue::new(task, output)))
            }
            Ok(Err(error)) => {
                let error = TaskValue::new(task, error);
                // Otherwise the member was cancelled, and the error is dropped here.
                if report.failed {
                    self.failure = Some(JoinFailure::Member(error));
                }
            }
            Err(panic @ Error::Panicked(_)) if report.failed => {
                self.failure = Some(JoinFailure::Panic(task, panic));
            }
            // The member was dropped.
            Err(_) => {}
        }
        Some(report.member)
    }
}

impl<T: 'static, E: 'static> TaskGroup<T, E> {
    fn reports(&self) -> &Rc<Reports> {
        &self.spawner.reports
    }

    /// Names the awaited members as the holders of the group's queue, for the log and the table of
    /// tasks. If there are too many, it names none.
    fn name_those_awaited(&self) {
        let members = self.members.borrow();
        let named = if members.len() > NAMED { 0 } else { NAMED };
        let awaited = members.values().filter(|it| !it.is_daemon).take(named);
        self.reports().queue.held_by(awaited.map(|it| it.task.name()));
    }
}

/// The members whose end the group has not collected, by number.
pub(super) type Members<T, E> = RefCell<BTreeMap<u64, MemberEntry<T, E>>>;

pub(super) struct MemberEntry<T, E> {
    pub(super) task: Task<Result<T, E>>,
    pub(super) is_daemon: bool,
}

/// The state that the members of a group and the group share.
///
/// A wake-up only means that the list has a report. If the woken future is dropped, the wake-up is
/// lost but the report is not.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// The number of members that the group has had so far. Members are numbered from 1.
    pub(super) spawned: Cell<u64>,
    /// The number of members that have not ended, without daemons.
    pub(super) alive: Cell<u64>,
    /// The number of daemons that have not ended.
    pub(super) daemons: Cell<u64>,
    /// The reports that the group has not collected, in the order of ending.
    pub(super) ended: RefCell<VecDeque<Report>>,
    pub(super) queue: WaitQueue,
    /// The reason why the members were cancelled. Set during a clean-up, and once the group is
    /// dropped. While it is set, new members are cancelled at once, and failures are not reported.
    pub(super) closing: Cell<Option<&'static str>>,
}

impl Reports {
    /// Returns whether a member or a daemon has not ended.
    pub(super) fn is_any_alive(&self) -> bool {
        self.alive.get() + self.daemons.get() > 0
    }
}

/// The report that a member has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// The number of the member in the group.
    pub(super) member: u64,
    /// Whether the member failed: by a panic, or by an error other than its own cancellation. A
    /// daemon never fails.
    pub(super) failed: bool,
}

/// The part of a member that reports its end. It does so when it is dropped, which happens when the
/// member ends or panics, and when the kernel drops the member's future.
pub(super) struct Reporter {
    to: Rc<Reports>,
    report: Report,
    is_daemon: bool,
}

impl Reporter {
    /// Makes the reporter of a new member. Returns it with the number of the member.
    pub(super) fn new(to: &Rc<Reports>, is_daemon: bool) -> (u64, Reporter) {
        let member = to.spawned.get() + 1;
        to.spawned.set(member);
        let report = Report { member, failed: false };
        let reporter = Reporter { to: to.clone(), report, is_daemon };
        reporter.alive().set(reporter.alive().get() + 1);
        (member, reporter)
    }

    fn alive(&self) -> &Cell<u64> {
        if self.is_daemon { &self.to.daemons } else { &self.to.alive }
    }

    pub(super) fn set_failed(&mut self, failed: bool) {
        self.report.failed = failed;
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.report.failed |= thread::panicking();
        self.report.failed &= !self.is_daemon;
        self.alive().set(self.alive().get() - 1);
        self.to.ended.borrow_mut().push_back(self.report);
        self.to.queue.wake(1);
    }
}

impl<T: 'static, E: Interruptible + From<Error> + 'static> TaskGroup<T, E> {
    /// Sets how long a clean-up waits for all the cancelled members together. Zero gives them one
    /// turn; with [`Duration::MAX`] the clean-up waits forever. Give a group inside a member a
    /// shorter grace: if the member is dropped during its own clean-up, nothing waits for the
    /// members of the inner group.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, shield, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<(), Error>::new().grace(Duration::from_secs(1));
    /// // A member that ignores its cancellation for an hour.
    /// let stubborn = async { Ok(shield(sleep(Duration::from_secs(3600))).await.map(drop)?) };
    /// group.spawn("stubborn", stubborn).await;
    /// sleep(Duration::from_secs(1)).await?;
    ///
    /// let before = traps::clock().await;
    /// group.cancel_remaining("time is up").await; // waits a second, and drops the member
    /// assert_eq!(traps::clock().await.since(before), Duration::from_secs(1));
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    pub fn grace(mut self, span: Duration) -> TaskGroup<T, E> {
        self.grace = span;
        self
    }

    /// Cancels all members and daemons, and waits for their end like any clean-up. *Blocks* unless
    /// all have ended. The group can be used again. Earlier outputs and an earlier failure remain
    /// for the next wait. The log and the interrupts show `reason`. An interrupt of the calling
    /// task is held back until its next wait.
    ///
    /// # Panics
    ///
    /// Panics if a member of the group calls it: the member would wait for itself.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// group.spawn("quick", async { Ok("output") }).await;
    /// group.spawn("slow", async { Ok(sleep(Duration::MAX).await.map(|_| "never")?) }).await;
    /// sleep(Duration::from_secs(1)).await?;
    /// group.cancel_remaining("enough").await;
    /// assert_eq!(group.join().await?, ["output"]);
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn cancel_remaining(&mut self, reason: &'static str) -> impl Future<Output = ()> {
        let site = Location::caller();
        async move {
            self.refuse_a_member(site);
            let is_open = self.reports().closing.get().is_none();
            while is_open && self.failure.is_none() && self.collect_next().is_some() {}
            self.clean_up(reason, site).await;
        }
    }

    /// Cancels the members that are left and waits for their end. If there was a failure, drops the
    /// outputs and returns the failure.
    pub(super) async fn finish(&mut self, site: Site) -> Result<(), E> {
        let reason = match &self.failure {
            Some(JoinFailure::Joiner(_)) => "join interrupted",
            Some(JoinFailure::Member(_) | JoinFailure::Panic(..)) => "group failed",
            None => "group done",
        };
        self.clean_up(reason, site).await;
        let error = match self.failure.take() {
            None => return Ok(()),
            Some(JoinFailure::Member(kept)) => kept.take().expect("a failure is taken once"),
            Some(JoinFailure::Panic(task, panic)) => {
                task::log_join(task);
                panic.into()
            }
            Some(JoinFailure::Joiner(interrupt)) => interrupt.into(),
        };
        drop_quietly(mem::take(&mut self.outputs));
        Err(error)
    }

    /// Cancels the members that are left and waits for their end. No interrupt ends this early.
    async fn clean_up(&mut self, reason: &'static str, site: Site) {
        let failed = self.forget_the_ended();
        let reports = self.reports().clone();
        if let (Some(first), None) = (failed.first(), reports.closing.get()) {
            note_warning(format!(
                "a group gives one result; {} more members had failed, first task {first}",
                failed.len()
            ));
        }
        reports.closing.set(Some(reason));
        self.post_for_each(|task| gate::cancellation(task, reason));
        if reports.is_any_alive() {
            self.name_those_awaited();
            let all = async move {
                while reports.is_any_alive() {
                    reports.queue.wait_from(site).await?;
                }
                Ok::<(), Interrupt>(())
            };
            let all = IgnoreAfter::new(Limit::After(self.grace), site, all);
            // Inside the shield, the grace is the only interrupt. So any other result than that of
            // the wait means that members are left.
            if shield_from(site, all).await != Ok(Some(())) {
                self.forget_the_ended();
                self.post_for_each(Post::Drop);
                let oldest = self.members.borrow().values().next().map(|it| it.task.ended(site));
                if let Some(oldest) = oldest {
                    // One wait is enough for all members: the kernel handles posts in the order of
                    // filing and before this trap, and the oldest member is dropped last.
                    let _ = oldest.await;
                }
            }
        }
        self.reports().ended.take();
        drop_quietly(self.members.take());
        self.reports().closing.set(None);
    }
}

impl<T: 'static, E: 'static> TaskGroup<T, E> {
    /// Makes a post for each member, newest first.
    fn post_for_each(&self, post: impl Fn(TaskRef) -> Post) {
        self.members.borrow().values().rev().for_each(|it| gate::post(post(it.task.name())));
    }

    /// Forgets the members that have ended. Returns the numbers of the failed members' tasks, in
    /// the order of ending.
    pub(super) fn forget_the_ended(&self) -> Vec<TaskId> {
        let mut failed = Vec::new();
        for report in self.reports().ended.take() {
            // The output is dropped after the borrow has ended. If its drop panics, the loop
            // continues.
            let entry = self.members.borrow_mut().remove(&report.member);
            failed.extend(entry.iter().filter(|_| report.failed).map(|it| it.task.id()));
            drop_quietly(entry);
        }
        failed
    }
}

impl<T: 'static, E: 'static> Drop for TaskGroup<T, E> {
    fn drop(&mut self) {
        let mut failed = self.forget_the_ended();
        if self.reports().closing.replace(Some("group dropped")).is_some() {
            // A clean-up had begun. It has reported the failures before it, and its cancellation
            // has caused the others.
            failed.clear();
        }
        match &self.failure {
            Some(JoinFailure::Member(kept)) => failed.insert(0, kept.task),
            Some(JoinFailure::Panic(task, _)) => failed.insert(0, *task),
            // A join took the interrupt and was dropped before it returned it.
            Some(JoinFailure::Joiner(interrupt)) => wait::give_back(interrupt),
            None => {}
        }
        if let Some(first) = failed.first() {
            note_warning(format!(
                "a group was dropped unjoined; {} of its members had failed, first task {first}",
                failed.len()
            ));
        }
        self.post_for_each(|task| gate::cancellation(task, "group dropped"));
    }
}

impl<T: 'static, E: Interruptible + From<Error> + 'static> TaskGroup<T, E> {
    /// Makes a new task that runs `future` as a member, under the deadline in force here. The costs
    /// are those of a [`spawn`](crate::spawn), plus an entry in the group, and a scope in the
    /// member if there is a deadline.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, current_deadline, timeout_after};
    ///
    /// # testing::run(async {
    /// timeout_after(Duration::from_secs(5), async {
    ///     let mut group = TaskGroup::new();
    ///     group.spawn("member", async { Ok::<_, Error>(current_deadline()) }).await;
    ///     assert_eq!(group.join().await?, [current_deadline()]); // the same five seconds
    ///     Ok::<_, Error>(())
    /// })
    /// .await
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future<Output = Result<T, E>> + 'static,
    ) -> impl Future<Output = Member> {
        self.spawner.spawn(name, future)
    }

    /// Makes a *daemon*: a new task that serves the group as long as the group lives. No wait of
    /// the group waits for a daemon, and its output is thrown away, even a failure. Daemons are
    /// cancelled and awaited in every clean-up, also when a join ends.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// let ticks = async {
    ///     while sleep(Duration::from_secs(1)).await.is_ok() {
    ///         println!("still at work");
    ///     }
    /// };
    /// group.spawn_daemon("ticks", ticks).await;
    /// group.spawn("worker", async { Ok(sleep(Duration::from_secs(9)).await?) }).await;
    /// assert_eq!(group.join().await?.len(), 1); // after nine seconds
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_daemon(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future + 'static,
    ) -> impl Future<Output = Member> {
        self.spawner.spawn_daemon(name, future)
    }

    /// Makes a handle that spawns into this group. Members use it, and so can any task that adds
    /// work while the owner of the group waits.
    #[must_use]
    pub fn spawner(&self) -> Spawner<T, E> {
        self.spawner.clone()
    }

    /// Makes an existing task a member of the group. The task keeps the deadlines that it has. If
    /// it has already ended, it is the next that a wait of the group collects.
    ///
    /// ```
    /// use traps::{Error, TaskGroup, spawn};
    ///
    /// # testing::run(async {
    /// let task = spawn("elsewhere", async { Ok::<_, Error>(7) }).await;
    /// let mut group = TaskGroup::new();
    /// group.add(task);
    /// assert_eq!(group.join().await?, [7]);
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    pub fn add(&mut self, task: Task<Result<T, E>>) -> Member {
        // The added task may be the one that waited for the group before.
        self.joiner = None;
        let (number, mut reporter) = Reporter::new(&self.spawner.reports, false);
        let name = task.name();
        task.when_ended(move |output| {
            reporter.set_failed(match output {
                CellState::Value(result) => caught(|| is_failure(result, name)).unwrap_or(true),
                CellState::Panicked(_) => true,
                CellState::Running | CellState::Taken | CellState::Dropped => false,
            });
        });
        self.spawner.admit(number, task, false)
    }
}

/// Returns whether `result` is a failure of the member. Its own cancellation is not one.
fn is_failure<T, E: Interruptible>(result: &Result<T, E>, task: TaskRef) -> bool {
    let cancels = |it: &Interrupt| it.is_cancelled() && it.delivery().task == task;
    result.as_ref().is_err_and(|error| !error.interrupt().is_some_and(cancels))
}

/// A handle that spawns into a [`TaskGroup`], made by [`TaskGroup::spawner`]. Cheap to clone.
///
/// A member that is spawned during a clean-up is cancelled at once and awaited with the others. It
/// runs until its first wait. A member that is spawned after its group was dropped is cancelled at
/// once, too.
///
/// ```
/// use traps::{Error, TaskGroup};
///
/// # testing::run(async {
/// let mut group = TaskGroup::<u32, Error>::new();
/// let spawner = group.spawner();
/// let finds_more = async move {
///     for n in 1..=3 {
///         spawner.spawn("worker", async move { Ok(n * 10) }).await;
///     }
///     Ok(0)
/// };
/// group.spawn("finder", finds_more).await;
/// assert_eq!(group.join().await?, [0, 10, 20, 30]);
/// # Ok::<(), Error>(())
/// # }).output.unwrap();
/// ```
pub struct Spawner<T: 'static, E: 'static> {
    pub(super) reports: Rc<Reports>,
    /// The members of the group. Members can hold spawners, so a spawner must not keep members
    /// alive.
    pub(super) members: Weak<Members<T, E>>,
}

impl<T: 'static, E: 'static> Clone for Spawner<T, E> {
    fn clone(&self) -> Spawner<T, E> {
        Spawner { reports: self.reports.clone(), members: self.members.clone() }
    }
}

impl<T: 'static, E: 'static> fmt::Debug for Spawner<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawner").field("alive", &self.reports.alive).finish_non_exhaustive()
    }
}

impl<T: 'static, E: Interruptible + From<Error> + 'static> Spawner<T, E> {
    /// Spawns a member, like [`TaskGroup::spawn`].
    #[track_caller]
    pub fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future<Output = Result<T, E>> + 'static,
    ) -> impl Future<Output = Member> {
        let (name, site) = (name.into(), Location::caller());
        async move { self.make(name, site, false, future) }
    }

    /// Spawns a daemon, like [`TaskGroup::spawn_daemon`].
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// let spawner = group.spawner();
    /// let opens_a_log = async move {
    ///     spawner.spawn_daemon("flusher", sleep(Duration::MAX)).await;
    ///     Ok("open")
    /// };
    /// group.spawn("opener", opens_a_log).await;
    /// assert_eq!(group.join().await?, ["open"]); // the join has cancelled the daemon
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn spawn_daemon(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future + 'static,
    ) -> impl Future<Output = Member> {
        let (name, site) = (name.into(), Location::caller());
        let future = async move {
            future.await;
            // A daemon has no output and does not fail, so this error is not a failure.
            Err(Error::Dropped.into())
        };
        async move { self.make(name, site, true, future) }
    }

    fn make<F>(&self, name: Cow<'static, str>, site: Site, is_daemon: bool, future: F) -> Member
    where
        F: Future<Output = Result<T, E>> + 'static,
    {
        let deadline = in_force(site).map(|found| found.deadline);
        let (number, mut reporter) = Reporter::new(&self.reports, is_daemon);
        let member = async move {
            // The block mentions `future` first, so `future` and all that it holds are dropped
            // before the reporter reports.
            let result = match deadline {
                Some(point) => TimeoutAfter::new(Limit::At(point), site, future).await,
                None => future.await,
            };
            reporter.set_failed(gate::task().is_some_and(|own| is_failure(&result, own)));
            result
        };
        let task = Spawn::new(name, site, member).make();
        self.admit(number, task, is_daemon)
    }

    fn admit(&self, number: u64, task: Task<Result<T, E>>, is_daemon: bool) -> Member {
        task.mark_used();
        let member = Member { id: task.id(), task: task.name(), local: PhantomData };
        if let Some(reason) = self.reports.closing.get() {
            member.cancel_now(reason);
        }
        if let Some(members) = self.members.upgrade() {
            members.borrow_mut().insert(number, MemberEntry { task, is_daemon });
        }
        member
    }
}

/// A handle to a member of a group. With it, any task can wait for the member or cancel it. The
/// output belongs to the group.
///
/// ```
/// # use std::time::Duration;
/// use traps::{Error, TaskGroup, sleep, spawn};
///
/// # testing::run(async {
/// let mut group = TaskGroup::<_, Error>::new();
/// let member = group.spawn("slow", async { Ok(sleep(Duration::from_secs(60)).await?) }).await;
/// let impatient = async move { member.cancel_because("too slow").await };
/// spawn("impatient", impatient).detached().await;
/// assert_eq!(group.join().await, Ok(vec![]));
/// # });
/// ```
#[derive(Clone)]
pub struct Member {
    id: TaskId,
    task: TaskRef,
    local: PhantomData<Rc<()>>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Member {
    /// Returns the number of the member's task, as the log shows it.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Waits for the end of the member, and leaves its output or failure in the group. *Blocks*
    /// unless the member has ended.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, Time, clock, sleep};
    ///
    /// # testing::run(async {
    /// let second = Duration::from_secs(1);
    /// let mut group = TaskGroup::<_, Error>::new();
    /// let first = group.spawn("first", async move { Ok(sleep(second).await.map(|_| 1)?) }).await;
    /// group.spawn("second", async move { Ok(sleep(2 * second).await.map(|_| 2)?) }).await;
    /// first.wait().await?;
    /// assert_eq!(clock().await, Time::ZERO + second);
    /// assert_eq!(group.join().await?, [1, 2]); // the wait has taken no output
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> + use<> {
        WaitForEnd::new(self.task, self.id, Location::caller())
    }

    /// Cancels the member and waits for its end. This does not fail the group.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. The request to cancel stays in force.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// let slow = group.spawn("slow", async { Ok(sleep(Duration::MAX).await.map(|_| 1)?) }).await;
    /// group.spawn("quick", async { Ok(2) }).await;
    /// slow.cancel().await?;
    /// assert_eq!(group.join().await?, [2]); // a cancelled member has no output
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    #[track_caller]
    pub fn cancel(&self) -> impl Future<Output = Result<(), Interrupt>> + use<> {
        self.cancel_because("")
    }

    /// Cancels the member like [`cancel`](Member::cancel). The log and the interrupt show `reason`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`cancel`](Member::cancel).
    #[track_caller]
    pub fn cancel_because(
        &self,
        reason: &'static str,
    ) -> impl Future<Output = Result<(), Interrupt>> + use<> {
        let (task, ended) = (self.task, self.wait());
        async move {
            task::cancel(task, reason);
            ended.await
        }
    }

    /// Cancels the member without waiting. The log and the interrupt show `reason`, unless it is
    /// empty. *A post*.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # testing::run(async {
    /// let mut group = TaskGroup::<(), Error>::new();
    /// let slow = group.spawn("slow", async { Ok(sleep(Duration::MAX).await.map(drop)?) }).await;
    /// slow.cancel_now("enough"); // also from a `Drop`, which cannot wait
    /// assert_eq!(group.join().await?, []);
    /// # Ok::<(), Error>(())
    /// # }).output.unwrap();
    /// ```
    pub fn cancel_now(&self, reason: &'static str) {
        task::cancel(self.task, reason);
    }
}
