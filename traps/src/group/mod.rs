//! Groups of tasks: children that have all ended before their parent goes on.
//!
//! Built from spawn, cancel, the scheduling queue and a shield. The one thing that the kernel does
//! for it alone is to drop a member whose grace is over.

mod reports;
mod spawn;

pub use spawn::Member;

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use crate::core::filing;
use crate::core::gate;
use crate::core::interrupt::{Interrupt, Interruptible};
use crate::core::names::{Site, TaskId, TaskRef};
use crate::core::posting;
use crate::core::protocol::Post;
use crate::core::scope::{Limit, shield_from};
use crate::error::Error;
use crate::limits::GROUP_GRACE;
use crate::notes::note_warning;
use crate::task::{self, Task};
use crate::timeout::IgnoreAfter;
use reports::{Report, Reports};

/// Tasks that belong together: [`TaskGroup::join`] gives their outputs, or the first failure after
/// all the others have been cancelled and have ended.
///
/// - A member runs under the deadline that was in force where it was spawned; a plain
///   [`spawn`](crate::spawn) inherits none.
/// - It fails by an error or a panic. Nothing happens to the others before the group is joined.
/// - A member that ends by its own cancellation does not fail its group; its output is missing.
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
    reports: Rc<Reports>,
    /// By number; those whose end the group has not looked at.
    members: BTreeMap<u64, Task<Result<T, E>>>,
    /// By number.
    outputs: BTreeMap<u64, (TaskId, T)>,
    grace: Duration,
    /// What a join found and has not given yet.
    failure: Option<Failure<E>>,
    /// The members were cancelled: what they fail with is no news.
    cleaning: bool,
    /// A task that waited for the group, and so is no member of it.
    joiner: Option<TaskRef>,
}

/// Why a join gives no outputs.
enum Failure<E> {
    /// This member failed or panicked, before any other.
    Member(TaskId, E),
    /// The joiner's own wait ended early.
    Joiner(Interrupt),
}

impl<T: 'static, E: 'static> Default for TaskGroup<T, E> {
    fn default() -> TaskGroup<T, E> {
        let (reports, grace) = (Rc::default(), GROUP_GRACE);
        let (members, outputs) = (BTreeMap::new(), BTreeMap::new());
        TaskGroup { reports, members, outputs, grace, failure: None, cleaning: false, joiner: None }
    }
}

impl<T: 'static, E: 'static> fmt::Debug for TaskGroup<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup").field("alive", &self.reports.alive).finish_non_exhaustive()
    }
}

impl<T: 'static, E: Interruptible + From<Error> + 'static> TaskGroup<T, E> {
    /// A group without members, with a grace of 5 s.
    pub fn new() -> TaskGroup<T, E> {
        TaskGroup::default()
    }

    /// Sets how long a clean-up waits in all for members that were cancelled. Zero gives them one
    /// turn; [`Duration::MAX`] waits for ever. A group inside a member wants a shorter one: a
    /// member that is dropped in its own clean-up lets its members go.
    pub fn grace(mut self, span: Duration) -> TaskGroup<T, E> {
        self.grace = span;
        self
    }

    /// Waits until all members have ended; gives their outputs in the order of spawning. *Blocks*
    /// unless all have ended. Afterwards the group is empty and can be used again. A member that
    /// was cancelled from outside has no output, and then the list is shorter: where that may
    /// happen, let the outputs say whose they are.
    ///
    /// A join whose future is dropped has cancelled nothing, or has begun to clean up; it can be
    /// made again and goes on from there. Costs one answering trap a member.
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
        let site = Location::caller();
        async move {
            self.refuse_a_member(site);
            loop {
                match self.next_end(site).await {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(interrupt) => self.failure = Some(Failure::Joiner(interrupt)),
                }
            }
            if self.failure.is_some() {
                self.clean_up(site).await;
            }
            let outputs = mem::take(&mut self.outputs).into_values().map(|(_, output)| output);
            match self.failure.take() {
                None => Ok(outputs.collect()),
                Some(Failure::Member(_, error)) => Err(error),
                Some(Failure::Joiner(interrupt)) => Err(interrupt.into()),
            }
        }
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
            self.refuse_a_member(site);
            let mut ended = self.next_end(site).await?;
            while ended.is_some_and(|number| !self.outputs.contains_key(&number)) {
                ended = self.next_end(site).await?;
            }
            let output = ended.and_then(|number| self.outputs.get(&number));
            Ok(output.map(|(task, output)| (*task, output)))
        }
    }

    fn refuse_a_member(&mut self, site: Site) {
        let task = gate::task();
        // New members are new tasks, so one that was no member is still none.
        if task != self.joiner {
            let is_member = self.members.values().any(|it| Some(it.name()) == task);
            let rule = "rule: a member does not wait for its own group";
            assert!(!is_member, "{rule}; it does at {site}");
            self.joiner = task;
        }
    }

    /// Waits until one more member has ended, and takes its output or its failure; gives its
    /// number. `None`: all have ended, or one has failed.
    async fn next_end(&mut self, site: Site) -> Result<Option<u64>, Interrupt> {
        while self.failure.is_none() {
            let first = self.reports.ended.borrow().front().copied();
            let Some(Report { member: number, failed }) = first else {
                if self.reports.alive.get() == 0 {
                    break;
                }
                self.reports.line.wait_from(site).await?;
                continue;
            };
            if let Some(member) = self.members.get_mut(&number) {
                let task = member.id();
                match member.take() {
                    Ok(Ok(output)) => drop(self.outputs.insert(number, (task, output))),
                    Ok(Err(error)) if failed => self.failure = Some(Failure::Member(task, error)),
                    Err(Error::Interrupt(interrupt)) => return Err(interrupt),
                    Err(panic @ Error::Panicked(_)) => {
                        self.failure = Some(Failure::Member(task, panic.into()));
                    }
                    // It was cancelled or dropped, and has no output.
                    Ok(Err(_)) | Err(_) => {}
                }
                self.members.remove(&number);
            }
            self.reports.ended.borrow_mut().pop_front();
            return Ok(Some(number));
        }
        Ok(None)
    }

    /// Cancels the members that are left and sees all of them end, whatever comes.
    async fn clean_up(&mut self, site: Site) {
        let failed = self.forget_the_ended();
        if let (Some(first), false) = (failed.first(), self.cleaning) {
            note_warning(format!(
                "a group gives one error; {} more members had failed, first task {first}",
                failed.len()
            ));
        }
        self.cleaning = true;
        let is_interrupt = matches!(self.failure, Some(Failure::Joiner(_)));
        let reason = if is_interrupt { "join interrupted" } else { "group failed" };
        self.post_for_each(|task| Post::Cancel(task, reason));
        if self.reports.alive.get() > 0 {
            let reports = self.reports.clone();
            let all = async move {
                while reports.alive.get() > 0 {
                    reports.line.wait_from(site).await?;
                }
                Ok::<(), Interrupt>(())
            };
            let all = IgnoreAfter::new(Limit::After(self.grace), site, all);
            // The grace is the only interrupt in here.
            if shield_from(site, all).await != Ok(Some(())) {
                self.forget_the_ended();
                self.post_for_each(Post::Drop);
                if let Some(oldest) = self.members.values().next() {
                    // Posts are heeded before a later trap, so all are gone when this answers.
                    let _ = task::wait(&*oldest.end(), site).await;
                }
            }
        }
        self.reports.ended.take();
        self.members.clear();
        self.outputs.clear();
        self.cleaning = false;
    }
}

impl<T: 'static, E: 'static> TaskGroup<T, E> {
    /// Newest first.
    fn post_for_each(&self, post: impl Fn(TaskRef) -> Post) {
        self.members.values().rev().for_each(|member| posting::post(post(member.name())));
    }

    /// Forgets the members that have ended; gives those that had failed, in the order of ending.
    fn forget_the_ended(&mut self) -> Vec<TaskId> {
        let ended = self.reports.ended.take().into_iter();
        let gone = ended.filter_map(|it| Some((self.members.remove(&it.member)?, it.failed)));
        gone.filter_map(|(member, failed)| failed.then_some(member.id())).collect()
    }
}

impl<T: 'static, E: 'static> Drop for TaskGroup<T, E> {
    fn drop(&mut self) {
        let mut failed = self.forget_the_ended();
        if self.cleaning {
            failed.clear();
        }
        match &self.failure {
            Some(Failure::Member(task, _)) => failed.insert(0, *task),
            // A join took it and was dropped before it gave it.
            Some(Failure::Joiner(interrupt)) => filing::unread(interrupt),
            None => {}
        }
        if let Some(first) = failed.first() {
            note_warning(format!(
                "a group was dropped unjoined; {} of its members had failed, first task {first}",
                failed.len()
            ));
        }
        self.post_for_each(|task| Post::Cancel(task, "group dropped"));
    }
}
