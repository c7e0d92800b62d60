//! How a group ends its members: cancelled, awaited as long as the grace lasts, then dropped.

use std::panic::Location;
use std::time::Duration;

use super::{Failure, TaskGroup};
use crate::core::filing;
use crate::core::interrupt::{Interrupt, Interruptible};
use crate::core::names::{Site, TaskId, TaskRef};
use crate::core::posting;
use crate::core::protocol::Post;
use crate::core::scope::{Limit, shield_from};
use crate::error::Error;
use crate::notes::note_warning;
use crate::task;
use crate::timeout::IgnoreAfter;

impl<T: 'static, E: Interruptible + From<Error> + 'static> TaskGroup<T, E> {
    /// Sets how long a clean-up waits in all for members that were cancelled. Zero gives them one
    /// turn; [`Duration::MAX`] waits for ever. A group inside a member wants a shorter one: a
    /// member that is dropped in its own clean-up lets its members go.
    pub fn grace(mut self, span: Duration) -> TaskGroup<T, E> {
        self.grace = span;
        self
    }

    /// Cancels all members and daemons that have not ended, and waits for their end, as in any
    /// clean-up. *Blocks* unless all have ended. The group can be used again; outputs and a failure
    /// that were there before remain for the next wait. `reason` is shown in the log and in the
    /// interrupts. An interrupt that comes meanwhile is held back until the next wait.
    ///
    /// # Panics
    ///
    /// In a member of the group: it would wait for itself.
    #[track_caller]
    pub fn cancel_remaining(&mut self, reason: &'static str) -> impl Future<Output = ()> {
        let site = Location::caller();
        async move {
            self.refuse_a_member(site);
            let is_open = self.reports().closing.get().is_none();
            while is_open && self.failure.is_none() && self.take_end().is_some() {}
            self.clean_up(reason, site).await;
        }
    }

    /// Cleans up, and gives the failure if there is one; then no output is left.
    pub(super) async fn finish(&mut self, site: Site) -> Result<(), E> {
        let reason = match &self.failure {
            Some(Failure::Joiner(_)) => "join interrupted",
            Some(Failure::Member(..)) => "group failed",
            None => "group done",
        };
        self.clean_up(reason, site).await;
        let error = match self.failure.take() {
            None => return Ok(()),
            Some(Failure::Member(_, error)) => error,
            Some(Failure::Joiner(interrupt)) => interrupt.into(),
        };
        self.outputs.clear();
        Err(error)
    }

    /// Cancels the members that are left and sees all of them end, whatever comes.
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
        self.post_for_each(|task| Post::Cancel(task, reason));
        if reports.is_any_alive() {
            self.name_those_awaited();
            let all = async move {
                while reports.is_any_alive() {
                    reports.line.wait_from(site).await?;
                }
                Ok::<(), Interrupt>(())
            };
            let all = IgnoreAfter::new(Limit::After(self.grace), site, all);
            // The grace is the only interrupt in here.
            if shield_from(site, all).await != Ok(Some(())) {
                self.forget_the_ended();
                self.post_for_each(Post::Drop);
                let oldest = self.members.borrow().values().next().map(|it| it.task.end());
                if let Some(oldest) = oldest {
                    // Posts are heeded before a later trap, so all are gone when this answers.
                    let _ = task::wait(&*oldest, site).await;
                }
            }
        }
        self.reports().ended.take();
        drop(self.members.take());
        self.reports().closing.set(None);
    }
}

impl<T: 'static, E: 'static> TaskGroup<T, E> {
    /// Newest first.
    fn post_for_each(&self, post: impl Fn(TaskRef) -> Post) {
        self.members.borrow().values().rev().for_each(|it| posting::post(post(it.task.name())));
    }

    /// Forgets the members that have ended; gives those that had failed, in the order of ending.
    pub(super) fn forget_the_ended(&self) -> Vec<TaskId> {
        let mut failed = Vec::new();
        for report in self.reports().ended.take() {
            // Its output is dropped after the borrow.
            let entry = self.members.borrow_mut().remove(&report.member);
            failed.extend(entry.filter(|_| report.failed).map(|it| it.task.id()));
        }
        failed
    }
}

impl<T: 'static, E: 'static> Drop for TaskGroup<T, E> {
    fn drop(&mut self) {
        let mut failed = self.forget_the_ended();
        if self.reports().closing.replace(Some("group dropped")).is_some() {
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
