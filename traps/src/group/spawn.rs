//! How a group gets a member, and the name that others have for it.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::rc::{Rc, Weak};

use super::TaskGroup;
use super::members::{Entry, Members};
use super::reports::{Reporter, Reports};
use crate::core::gate;
use crate::core::interrupt::{Interrupt, Interruptible};
use crate::core::names::{Site, TaskId, TaskRef};
use crate::core::scope::Limit;
use crate::error::Error;
use crate::task::spawn::Spawn;
use crate::task::{self, Ends, Output, Task};
use crate::timeout::TimeoutAfter;
use crate::verbs::in_force;

impl<T: 'static, E: Interruptible + From<Error> + 'static> TaskGroup<T, E> {
    /// Makes a new task that runs `future` as a member, under the deadline in force here.
    /// Costs what a [`spawn`](crate::spawn) does, and a place in the group; a scope in the member
    /// if there is a deadline.
    #[track_caller]
    pub fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future<Output = Result<T, E>> + 'static,
    ) -> impl Future<Output = Member> {
        self.spawner.spawn(name, future)
    }

    /// Makes a new task that serves the group as long as it lives: a daemon. No wait of the group
    /// waits for it, and its output is thrown away, a failure too. When a join ends, and in every
    /// clean-up, daemons are cancelled and awaited.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// use traps::{Error, TaskGroup, sleep};
    ///
    /// # async fn example() -> Result<(), Error> {
    /// let mut group = TaskGroup::<_, Error>::new();
    /// let ticks = async {
    ///     while sleep(Duration::from_secs(1)).await.is_ok() {
    ///         println!("still at work");
    ///     }
    /// };
    /// group.spawn_daemon("ticks", ticks).await;
    /// group.spawn("worker", async { Ok(sleep(Duration::from_secs(9)).await?) }).await;
    /// group.join().await?; // after nine seconds
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn spawn_daemon(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future + 'static,
    ) -> impl Future<Output = Member> {
        self.spawner.spawn_daemon(name, future)
    }

    /// A handle that spawns into this group: for its members, and for whoever else is to give it
    /// work while its owner waits.
    #[must_use]
    pub fn spawner(&self) -> Spawner<T, E> {
        self.spawner.clone()
    }

    /// Makes a task a member that was spawned elsewhere. It keeps the deadlines that it has. If it
    /// has ended, its end is the next that the group sees.
    pub fn add(&mut self, task: Task<Result<T, E>>) -> Member {
        // It may be the one that waited for the group.
        self.joiner = None;
        let (number, mut reporter) = Reporter::new(&self.spawner.reports, false);
        let name = task.name();
        task.when_ended(move |output| {
            reporter.set_failed(match output {
                Output::Value(result) => is_failure(result, name),
                Output::Panicked(_) => true,
                Output::Running | Output::Taken | Output::Dropped => false,
            });
        });
        self.spawner.admit(number, task, false)
    }
}

/// Whether a member fails by this: its own cancellation is no failure.
fn is_failure<T, E: Interruptible>(result: &Result<T, E>, task: TaskRef) -> bool {
    let cancels = |it: &Interrupt| it.is_cancelled() && it.delivery().source == task;
    result.as_ref().is_err_and(|error| !error.interrupt().is_some_and(cancels))
}

/// A handle that spawns into a [`TaskGroup`]; made by [`TaskGroup::spawner`]. Cheap to clone.
///
/// A member that is spawned while its group cleans up is cancelled at once and awaited with the
/// others: it runs until its first wait. One that is spawned after its group was dropped is
/// cancelled at once too.
///
/// ```no_run
/// use traps::{Error, TaskGroup};
///
/// # async fn example() -> Result<(), Error> {
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
/// # Ok(())
/// # }
/// ```
pub struct Spawner<T: 'static, E: 'static> {
    pub(super) reports: Rc<Reports>,
    /// The group's own. Members keep spawners, so a spawner keeps no members.
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
    /// [`TaskGroup::spawn`].
    #[track_caller]
    pub fn spawn(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future<Output = Result<T, E>> + 'static,
    ) -> impl Future<Output = Member> {
        let (name, site) = (name.into(), Location::caller());
        async move { self.make(name, site, false, future) }
    }

    /// [`TaskGroup::spawn_daemon`].
    #[track_caller]
    pub fn spawn_daemon(
        &self,
        name: impl Into<Cow<'static, str>>,
        future: impl Future + 'static,
    ) -> impl Future<Output = Member> {
        let (name, site) = (name.into(), Location::caller());
        let future = async move {
            future.await;
            // A daemon has no output, and does not fail.
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
            // `future` is named first, so what it holds is dropped before the group hears.
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
        task.attend();
        let member = Member { id: task.id(), task: task.name(), end: task.end() };
        if let Some(reason) = self.reports.closing.get() {
            member.cancel_now(reason);
        }
        if let Some(members) = self.members.upgrade() {
            members.borrow_mut().insert(number, Entry { task, is_daemon });
        }
        member
    }
}

/// A name for a member of a group, with which any task may wait for it or cancel it. Its output is
/// the group's.
///
/// ```no_run
/// # use std::time::Duration;
/// use traps::{Error, TaskGroup, sleep, spawn};
///
/// # async fn example() {
/// let mut group = TaskGroup::<_, Error>::new();
/// let member = group.spawn("slow", async { Ok(sleep(Duration::from_secs(60)).await?) }).await;
/// spawn("impatient", async move { member.cancel("too slow").await }).await;
/// assert_eq!(group.join().await, Ok(vec![]));
/// # }
/// ```
#[derive(Clone)]
pub struct Member {
    id: TaskId,
    task: TaskRef,
    end: Rc<dyn Ends>,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Member {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.id
    }

    /// Waits for the end of the member and takes nothing from its group. *Blocks* unless it has
    /// ended.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> + use<> {
        let (end, site) = (self.end.clone(), Location::caller());
        async move { task::wait(&*end, site).await }
    }

    /// Cancels the member and waits for its end. Its group does not fail by that.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the request stands.
    #[track_caller]
    pub fn cancel(
        &self,
        reason: &'static str,
    ) -> impl Future<Output = Result<(), Interrupt>> + use<> {
        let (member, site) = (self.clone(), Location::caller());
        async move {
            member.cancel_now(reason);
            task::wait(&*member.end, site).await
        }
    }

    /// Cancels the member and does not wait. *A post*.
    pub fn cancel_now(&self, reason: &'static str) {
        task::cancel(self.task, reason);
    }
}
