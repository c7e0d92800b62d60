//! Groups of tasks: children that have all ended before their parent goes on.
//!
//! Built from spawn, cancel, the scheduling queue and a shield. The one thing that the kernel does
//! for it alone is to drop a member whose grace is over.

mod error;
mod member;
mod spawn;

pub use error::GroupError;
use member::{Ends, How};
pub use spawn::{GroupSpawn, Member};

use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use crate::call::Call;
use crate::error::JoinError;
use crate::gate;
use crate::interrupt::{Interrupt, Interruptible};
use crate::limits::GROUP_GRACE;
use crate::protocol::{Limit, Post, Site, TaskRef};
use crate::scope::Shield;
use crate::task::{Task, TaskId, WaitTask};
use crate::timeout::IgnoreAfter;
use crate::verbs::note_warning;

/// Tasks that belong together: [`TaskGroup::join`] gives their outputs, or the first failure after
/// all the others have been cancelled and have ended.
///
/// - A member runs under the deadline that was in force where it was spawned; a bare
///   [`spawn`](crate::spawn) inherits none (rows A1, X7).
/// - It fails by an error or a panic. Nothing happens to the others before the group is joined.
/// - A member that ends by its own cancellation does not fail its group; its output is missing
///   (rule G5).
/// - What ends early is cleaned up in full, whatever interrupts the clean-up: all members are
///   cancelled, newest first, then all are awaited, in all no longer than the grace; those left
///   are dropped, newest first (rules G3, D7).
///
/// A group that is dropped without a join cancels its members and lets them go; if one had failed,
/// a `warn` line says so.
///
/// ```no_run
/// use traps::{GroupError, Interrupt, TaskGroup, sleep};
/// # use std::time::Duration;
///
/// # async fn example() -> Result<(), GroupError<Interrupt>> {
/// let mut group = TaskGroup::new();
/// for n in 1..=3 {
///     let work = async move { sleep(Duration::from_secs(n)).await.map(|_| n * 10) };
///     group.spawn("worker", work).await;
/// }
/// assert_eq!(group.join().await?, [10, 20, 30]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a group that is dropped cancels its members"]
pub struct TaskGroup<T: 'static, E: 'static> {
    ends: Rc<Ends>,
    /// In the order of spawning.
    slots: Vec<Slot<T, E>>,
    grace: Duration,
    /// What a join found and has not given yet.
    failure: Option<GroupError<E>>,
    /// Members were cancelled for it: what else fails is no news.
    cleaning: bool,
    /// A task that waited for the group, and so is no member of it.
    joiner: Option<TaskRef>,
}

/// What a group keeps of a member.
enum Slot<T: 'static, E: 'static> {
    /// Not made yet, or let go.
    Empty,
    /// It runs, or its end was not seen yet.
    Member(Task<Result<T, E>>),
    Output(TaskId, T),
}

/// Members that failed and whose errors nobody gets.
struct Lost {
    first: TaskId,
    count: usize,
}

impl<T: 'static, E: 'static> Default for TaskGroup<T, E> {
    fn default() -> TaskGroup<T, E> {
        let (ends, slots) = (Rc::default(), Vec::new());
        TaskGroup { ends, slots, grace: GROUP_GRACE, failure: None, cleaning: false, joiner: None }
    }
}

impl<T: 'static, E: 'static> fmt::Debug for TaskGroup<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskGroup").field("alive", &self.ends.alive()).finish_non_exhaustive()
    }
}

impl<T: 'static, E: Interruptible + 'static> TaskGroup<T, E> {
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

    /// Makes a new task that runs `future` as a member, under the deadline in force here.
    /// *Answers*, twice: which deadline, then the task. Costs what a [`spawn`](crate::spawn) does,
    /// and a place in the group; a scope in the member if there is a deadline.
    #[track_caller]
    pub fn spawn<F>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        future: F,
    ) -> GroupSpawn<'_, F, T, E>
    where
        F: Future<Output = Result<T, E>> + 'static,
    {
        GroupSpawn::new(self, name.into(), future, Location::caller())
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
    /// The first failure in the order of ending, or the interrupt that ended this wait; in both
    /// cases all members have ended, or were dropped, before it is given. Further members that had
    /// failed by then are counted in a `warn` line; what members make of being cancelled is not.
    ///
    /// # Panics
    ///
    /// In a member of the group: it would wait for itself.
    #[track_caller]
    pub fn join(&mut self) -> impl Future<Output = Result<Vec<T>, GroupError<E>>> {
        let site = Location::caller();
        async move {
            self.refuse_a_member(site);
            if self.failure.is_none()
                && let Err(interrupt) = self.wait_for_all(site).await
            {
                self.failure = Some(GroupError::Interrupt(interrupt));
            }
            if self.failure.is_some() {
                self.clean_up(site).await;
            }
            let slots = mem::take(&mut self.slots).into_iter();
            match self.failure.take() {
                Some(failure) => Err(failure),
                None => Ok(slots.filter_map(Slot::output).collect()),
            }
        }
    }

    /// Waits for the next member that ends with an output, in the order of ending, and shows it;
    /// it stays in what [`TaskGroup::join`] gives (rule G8). `None`: nothing more will come,
    /// because all have ended or one has failed; the join says which. *Blocks* until then.
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
            let mut found = None;
            while self.failure.is_none() && found.is_none() {
                match self.collect(site).await? {
                    Some(slot) => found = self.slots.get(slot).and_then(Slot::shown).map(|_| slot),
                    None if self.ends.alive() == 0 => break,
                    None => self.ends.next(site).await?,
                }
            }
            Ok(found.and_then(|slot| self.slots[slot].shown()))
        }
    }

    fn refuse_a_member(&mut self, site: Site) {
        let task = gate::task();
        if task == self.joiner {
            // New members are new tasks, so that one is still none.
            return;
        }
        let own = |slot: &Slot<T, E>| matches!(slot, Slot::Member(m) if Some(m.task_ref()) == task);
        assert!(
            !self.slots.iter().any(own),
            "rule: a member does not wait for its own group; it does at {site}"
        );
        self.joiner = task;
    }

    async fn wait_for_all(&mut self, site: Site) -> Result<(), Interrupt> {
        while self.failure.is_none() {
            if self.collect(site).await?.is_none() {
                if self.ends.alive() == 0 {
                    break;
                }
                self.ends.next(site).await?;
            }
        }
        Ok(())
    }

    /// Takes the output, or the failure, of the member whose end comes next; gives its slot.
    async fn collect(&mut self, site: Site) -> Result<Option<usize>, Interrupt> {
        let Some((index, how)) = self.ends.first() else { return Ok(None) };
        if let Some(Slot::Member(member)) = self.slots.get_mut(index) {
            let task = member.id();
            // It has ended, so this answers; a member whose join is dropped here is still first.
            let result = match (member.join_from(site).await, how) {
                (Ok(Ok(output)), _) => Ok(Slot::Output(task, output)),
                (Ok(Err(_)), How::Cancelled) => Ok(Slot::Empty),
                (Ok(Err(error)), _) => Err(GroupError::Failed { task, error }),
                (Err(JoinError::Panicked(message)), _) => {
                    Err(GroupError::Panicked { task, message })
                }
                (Err(JoinError::Dropped | JoinError::Taken), _) => Ok(Slot::Empty),
                (Err(JoinError::Interrupt(interrupt)), _) => return Err(interrupt),
            };
            self.slots[index] = result.unwrap_or_else(|failure| {
                self.failure = Some(failure);
                Slot::Empty
            });
        }
        self.ends.forget_first();
        Ok(Some(index))
    }

    /// Cancels the members that are left and sees all of them end, whatever comes.
    async fn clean_up(&mut self, site: Site) {
        let reason = match &self.failure {
            Some(GroupError::Interrupt(_)) => "join interrupted",
            _ => "group failed",
        };
        let begins = !mem::replace(&mut self.cleaning, true);
        if let Some(Lost { first, count }) = self.settle().filter(|_| begins) {
            note_warning(format!(
                "a group gives one error; {count} more members had failed, first task {first}"
            ));
        }
        self.cancel_all(reason);
        if self.ends.alive() > 0 {
            let ends = self.ends.clone();
            let all = async move {
                while ends.alive() > 0 {
                    ends.next(site).await?;
                }
                Ok::<(), Interrupt>(())
            };
            let all = IgnoreAfter::new(Call::at(site), Limit::After(self.grace), all);
            // The grace is the only interrupt in here.
            if Shield::new(Call::at(site), all).await != Ok(Some(())) {
                self.drop_all(site).await;
            }
        }
        self.slots.clear();
        self.ends.forget_all();
        self.cleaning = false;
    }

    /// Drops the members that are left.
    async fn drop_all(&mut self, site: Site) {
        self.settle();
        let mut last = None;
        for member in self.members() {
            gate::post(Post::Drop(member.task_ref()));
            last = Some(member.task_ref());
        }
        if let Some(last) = last {
            // Posts are heeded before a later trap, so all are gone when this answers.
            let _ = WaitTask::new(last, site).await;
        }
    }
}

impl<T: 'static, E: 'static> TaskGroup<T, E> {
    /// Newest first.
    fn members(&self) -> impl Iterator<Item = &Task<Result<T, E>>> {
        self.slots.iter().rev().filter_map(|slot| match slot {
            Slot::Member(task) => Some(task),
            Slot::Empty | Slot::Output(..) => None,
        })
    }

    fn cancel_all(&self, reason: &'static str) {
        for member in self.members() {
            gate::post(Post::Cancel { task: member.task_ref(), reason });
        }
    }

    /// Lets go of the members that have ended.
    fn settle(&mut self) -> Option<Lost> {
        let mut lost: Option<Lost> = None;
        while let Some((index, how)) = self.ends.first() {
            let slot = self.slots.get_mut(index).map(|slot| mem::replace(slot, Slot::Empty));
            if let Some(Slot::Member(member)) = slot
                && how == How::Failed
            {
                lost.get_or_insert(Lost { first: member.id(), count: 0 }).count += 1;
            }
            self.ends.forget_first();
        }
        lost
    }
}

impl<T: 'static, E: 'static> Slot<T, E> {
    fn shown(&self) -> Option<(TaskId, &T)> {
        match self {
            Slot::Output(task, output) => Some((*task, output)),
            Slot::Empty | Slot::Member(_) => None,
        }
    }

    fn output(self) -> Option<T> {
        match self {
            Slot::Output(_, output) => Some(output),
            Slot::Empty | Slot::Member(_) => None,
        }
    }
}

impl<T: 'static, E: 'static> Drop for TaskGroup<T, E> {
    fn drop(&mut self) {
        let mut lost = self.settle().filter(|_| !self.cleaning);
        if let Some(GroupError::Failed { task, .. } | GroupError::Panicked { task, .. }) =
            &self.failure
        {
            let count = 1 + lost.map_or(0, |lost| lost.count);
            lost = Some(Lost { first: *task, count });
        }
        if let Some(Lost { first, count }) = lost {
            note_warning(format!(
                "a group was dropped unjoined; {count} of its members had failed, first task \
                 {first}"
            ));
        }
        self.cancel_all("group dropped");
    }
}
