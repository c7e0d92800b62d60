//! How a group gets a member, and the name that others have for it.

use std::borrow::Cow;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

use super::TaskGroup;
use super::reports::Reporter;
use crate::core::interrupt::{Interrupt, Interruptible};
use crate::core::names::{TaskId, TaskRef};
use crate::core::scope::Limit;
use crate::error::Error;
use crate::task::spawn::Spawn;
use crate::task::{self, Ends};
use crate::timeout::TimeoutAfter;
use crate::verbs::in_force;

impl<T: 'static, E: Interruptible + From<Error> + 'static> TaskGroup<T, E> {
    /// Makes a new task that runs `future` as a member, under the deadline in force here.
    /// Costs what a [`spawn`](crate::spawn) does, and a place in the group; a scope in the member
    /// if there is a deadline.
    #[track_caller]
    pub fn spawn<F>(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        future: F,
    ) -> impl Future<Output = Member>
    where
        F: Future<Output = Result<T, E>> + 'static,
    {
        let (name, site) = (name.into(), Location::caller());
        async move {
            let deadline = in_force(site).map(|found| found.deadline);
            let (number, mut reporter) = Reporter::new(&self.reports);
            let member = async move {
                // `future` is named first, so what it holds is dropped before the group hears.
                let result = match deadline {
                    Some(point) => TimeoutAfter::new(Limit::At(point), site, future).await,
                    None => future.await,
                };
                reporter.set_failed(result.as_ref().is_err_and(|error| {
                    !error.interrupt().is_some_and(Interrupt::is_own_cancellation)
                }));
                result
            };
            let task = Spawn::new(name, site, member).make();
            let member = Member { id: task.id(), task: task.name(), end: task.end() };
            self.members.insert(number, task);
            member
        }
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
