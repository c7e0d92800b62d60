//! How a group gets a member, and the name that others have for it.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use super::member::Body;
use super::{Slot, TaskGroup};
use crate::call::Call;
use crate::error::{never_fails, wrong_answer};
use crate::interrupt::Interruptible;
use crate::protocol::{Answer, Request, Site, TaskRef};
use crate::spawn::Spawn;
use crate::task::{Cancel, CancelNow, TaskId, WaitTask};

/// The future of [`TaskGroup::spawn`].
#[must_use = "a trap that is not awaited is never made: the task does not exist"]
pub struct GroupSpawn<'a, F, T: 'static, E: 'static> {
    group: &'a mut TaskGroup<T, E>,
    site: Site,
    /// `None` once it is ready.
    stage: Option<Spawning<F, T, E>>,
}

enum Spawning<F, T, E> {
    Deadline { name: Cow<'static, str>, future: F, call: Call },
    Task { slot: usize, spawn: Spawn<Result<T, E>> },
}

impl<'a, F, T, E> GroupSpawn<'a, F, T, E> {
    pub(super) fn new(
        group: &'a mut TaskGroup<T, E>,
        name: Cow<'static, str>,
        future: F,
        site: Site,
    ) -> GroupSpawn<'a, F, T, E> {
        let stage = Spawning::Deadline { name, future, call: Call::at(site) };
        GroupSpawn { group, site, stage: Some(stage) }
    }
}

/// The future inside is only moved, never polled here.
impl<F, T, E> Unpin for GroupSpawn<'_, F, T, E> {}

impl<F, T, E> fmt::Debug for GroupSpawn<'_, F, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupSpawn").field("site", &self.site).finish_non_exhaustive()
    }
}

impl<F, T, E> Future for GroupSpawn<'_, F, T, E>
where
    F: Future<Output = Result<T, E>> + 'static,
    T: 'static,
    E: Interruptible + 'static,
{
    type Output = Member;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Member> {
        let GroupSpawn { group, site, stage } = &mut *self;
        if let Some(Spawning::Deadline { call, .. }) = stage {
            let deadline = match ready!(call.poll(cx, || Request::Deadline)) {
                Ok(Answer::Deadline(found)) => found.map(|found| found.deadline),
                Ok(other) => wrong_answer(&other),
                Err(failure) => never_fails(&failure),
            };
            let Some(Spawning::Deadline { name, future, .. }) = stage.take() else {
                unreachable!("looked at above")
            };
            let slot = group.slots.len();
            group.slots.push(Slot::Empty);
            let body = Body::new(future, deadline, site, &group.ends, slot);
            *stage = Some(Spawning::Task { slot, spawn: Spawn::new(name, site, body) });
        }
        let Some(Spawning::Task { slot, spawn }) = stage else {
            unreachable!("rule: a future is not polled after it was ready")
        };
        let task = ready!(Pin::new(spawn).poll(cx));
        let member = Member { task: task.task_ref(), local: PhantomData };
        group.slots[*slot] = Slot::Member(task);
        *stage = None;
        Poll::Ready(member)
    }
}

impl<F, T: 'static, E: 'static> Drop for GroupSpawn<'_, F, T, E> {
    fn drop(&mut self) {
        // Made, and nobody was told: it is a member all the same.
        if let Some(Spawning::Task { slot, spawn }) = &mut self.stage
            && let Some(task) = spawn.salvage()
        {
            self.group.slots[*slot] = Slot::Member(task);
        }
    }
}

/// A name for a member of a group, with which any task may wait for it or cancel it. Its output is
/// the group's.
///
/// ```no_run
/// # use std::time::Duration;
/// use traps::{Interrupt, TaskGroup, sleep, spawn};
///
/// # async fn example() {
/// let mut group = TaskGroup::<_, Interrupt>::new();
/// let member = group.spawn("slow", sleep(Duration::from_secs(60))).await;
/// spawn("impatient", async move { member.cancel("too slow").await }).await;
/// assert_eq!(group.join().await, Ok(vec![]));
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Member {
    task: TaskRef,
    local: PhantomData<Rc<()>>,
}

impl Member {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// Waits for the end of the member and takes nothing from its group (defect D6). *Blocks*
    /// unless it has ended.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait.
    #[track_caller]
    pub fn wait(&self) -> WaitTask<'_> {
        WaitTask::new(self.task, Location::caller())
    }

    /// Cancels the member and waits for its end. Its group does not fail by that (rule G5).
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the request stands.
    #[track_caller]
    pub fn cancel(&self, reason: &'static str) -> Cancel<'_> {
        Cancel::new(self.task, reason, Location::caller())
    }

    /// Cancels the member and does not wait. *Answers.*
    #[track_caller]
    pub fn cancel_now(&self, reason: &'static str) -> CancelNow<'_> {
        CancelNow::new(self.task, reason, Location::caller())
    }
}
