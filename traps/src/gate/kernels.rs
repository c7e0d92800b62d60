//! A kernel's life at its thread's gate: it comes, runs, stops and goes.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use super::locals::TaskLocals;
use super::register::Stage;
use super::tables::Tables;
use super::{EPOCHS, GATE, Gate};
use crate::protocol::{Filed, Post};
use crate::scope_table::ScopeTable;

impl Gate {
    /// The gate of this thread.
    #[must_use]
    pub fn of_this_thread() -> Rc<Gate> {
        GATE.with(Rc::clone)
    }

    /// Registers a kernel on this thread and numbers it.
    #[must_use]
    pub fn open(&self) -> u32 {
        let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed);
        self.now.tables.borrow_mut().kernels.push(epoch);
        epoch
    }

    /// Forgets a kernel: its tickets, and the posts that nobody will read.
    pub fn close(&self, epoch: u32) {
        let dropped;
        let mut posts = Vec::new();
        let locals = (self.locals.close(epoch, self.now), self.outsides.close(epoch));
        {
            let tables = &mut *self.now.tables.borrow_mut();
            tables.kernels.retain(|kernel| *kernel != epoch);
            dropped = tables.close(epoch);
            for entry in mem::take(&mut tables.elsewhere) {
                if entry.0 == epoch {
                    tables.refuse(&entry.1);
                    posts.push(entry.1);
                } else {
                    tables.elsewhere.push(entry);
                }
            }
        }
        for post in &posts {
            // The queue lives on, and what was handed back to it is not lost.
            if let Post::Permit { queue, keep: true } = post {
                queue.keep_permit();
            }
        }
        // Each by itself: a panic of one takes no other along, and two at once end the process.
        drop_each(dropped);
        drop_each(posts);
        let (locals, outside) = locals;
        drop_each(outside);
        locals.into_iter().for_each(TaskLocals::drop_each);
    }

    /// Makes the kernel the one that runs on this thread.
    ///
    /// # Panics
    ///
    /// If one runs already: a kernel does not run inside a kernel.
    pub fn enter(&self, epoch: u32, scopes: &Rc<ScopeTable>) {
        assert!(
            super::epoch() == 0,
            "rule: one kernel runs on a thread at a time; `run` was called inside `run`"
        );
        self.now.epoch.set(epoch);
        drop(self.now.scopes.replace(Some(scopes.clone())));
        let tables = &mut *self.now.tables.borrow_mut();
        tables.bring_home(epoch);
        for entry in mem::take(&mut tables.elsewhere) {
            if entry.0 == epoch {
                tables.filed.push(Filed::Post(entry.1));
                self.now.any_filed.set(true);
            } else {
                tables.elsewhere.push(entry);
            }
        }
    }

    /// The kernel stops running; what is posted and was not taken waits for its next run.
    pub fn leave(&self, epoch: u32) {
        self.end();
        let now = self.now;
        now.unfold();
        now.epoch.set(0);
        now.any_filed.set(false);
        now.born.set(0);
        let scopes = now.scopes.take();
        let mut requests = Vec::new();
        {
            let tables = &mut *self.now.tables.borrow_mut();
            for filed in mem::take(&mut tables.filed) {
                match filed {
                    Filed::Post(post) => tables.elsewhere.push((epoch, post)),
                    request @ Filed::Request { .. } => requests.push(request),
                    // Nobody will be told, and its end will be nobody's.
                    Filed::Opening(opening) => {
                        if let Some(scopes) = &scopes {
                            scopes.free(opening.scope.index);
                        }
                    }
                }
            }
        }
        drop((requests, scopes));
    }

    /// Posts for that kernel that it has not heeded and that may wake a task.
    #[must_use]
    pub fn wakes_for(&self, epoch: u32) -> usize {
        self.now.unfold();
        let tables = self.now.tables.borrow();
        let wakes = |post: &Post| {
            !matches!(post, Post::Detach(_) | Post::Note { .. } | Post::DropDeadline { .. })
        };
        let filed = tables.filed.iter().filter(|filed| match filed {
            Filed::Request { .. } => true,
            Filed::Post(post) => wakes(post),
            Filed::Opening(_) => false,
        });
        let elsewhere = tables.elsewhere.iter().filter(|(of, post)| *of == epoch && wakes(post));
        elsewhere.count() + if self.now.epoch.get() == epoch { filed.count() } else { 0 }
    }

    /// Whether something is filed that may make a task ready. It is filed whether or not anybody
    /// listens.
    #[must_use]
    pub fn has_wakes(&self) -> bool {
        self.now.unfold();
        let is_wake = |filed: &Filed| match filed {
            Filed::Post(post) => matches!(
                post,
                Post::Woken(_)
                    | Post::WakeTicket(_)
                    | Post::Permit { .. }
                    | Post::Wake { .. }
                    | Post::Cancel { .. }
                    | Post::Drop(_)
                    | Post::Close { .. }
                    | Post::Release { .. }
                    | Post::Remember { .. }
                    | Post::Keep { .. }
                    | Post::Spawn(_)
            ),
            Filed::Request { .. } | Filed::Opening(_) => false,
        };
        self.now.tables.borrow().filed.iter().any(is_wake)
    }

    /// Tickets of that kernel that are in use: for its counters and tests.
    #[must_use]
    pub fn tickets(&self, epoch: u32) -> usize {
        let first = self.now.register.stage.get() != Stage::Empty && self.now.epoch.get() == epoch;
        self.now.tables.borrow().used(epoch) + usize::from(first)
    }
}

/// Drops foreign values, each by itself.
pub(crate) fn drop_each<T>(values: impl IntoIterator<Item = T>) {
    for value in values {
        // The panic hook has told of it. To drop its payload may panic again.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value))).map_err(mem::forget);
    }
}

impl Tables {
    /// Nobody will heed that post. The place of a handle is free all the same.
    pub(super) fn refuse(&mut self, post: &Post) {
        if let Post::Release { handle, .. } = post {
            self.free_handles.push(handle.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{Future, pending};
    use std::num::NonZeroU64;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use super::*;
    use crate::deadline_table::DeadlineTable;
    use crate::protocol::{Descriptor, ROOT, ScopeId, TaskRef};
    use crate::{Interrupt, Time, timeout_after};

    #[test]
    fn a_timeout_that_the_kernel_never_heard_of_leaves_its_place() {
        let gate = Gate::of_this_thread();
        let epoch = gate.open();
        let deadlines = DeadlineTable::new(Duration::ZERO, Box::new(|| Time::ZERO));
        let scopes = ScopeTable::new(epoch, deadlines, Box::new(|| Time::ZERO));
        gate.enter(epoch, &scopes);
        let serial = NonZeroU64::MIN;
        let root = ScopeId { index: ROOT, epoch, serial };
        gate.begin(TaskRef { index: 0, epoch, serial }, root, Waker::noop(), 1, true);
        let begun = timeout_after(Duration::from_secs(1), pending::<Result<(), Interrupt>>());
        let mut begun = pin!(begun);
        let polled = begun.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        // As by a panic in the kernel, which serves nothing more.
        gate.leave(epoch);
        assert_eq!((scopes.take(), scopes.take()), (0, 1));
        gate.close(epoch);
    }

    #[test]
    fn a_handle_that_outlives_its_kernel_leaves_its_place() {
        let gate = Gate::of_this_thread();
        let places: Vec<_> = (0..3)
            .map(|_| {
                let epoch = gate.open();
                let deadlines = DeadlineTable::new(Duration::ZERO, Box::new(|| Time::ZERO));
                let scopes = ScopeTable::new(epoch, deadlines, Box::new(|| Time::ZERO));
                gate.enter(epoch, &scopes);
                let handles = [(); 2].map(|()| super::super::new_handle().unwrap());
                gate.leave(epoch);
                let [first, second] = handles.map(|handle| Post::Release {
                    handle,
                    descriptor: Descriptor::Scripted(0),
                    owner: None,
                    sole: false,
                });
                // One goes with the kernel's tasks, the other after the kernel.
                super::super::post(first);
                gate.close(epoch);
                super::super::post(second);
                handles.map(|handle| handle.index)
            })
            .collect();
        assert!(places.iter().flatten().all(|place| *place < 2), "{places:?}");
    }
}
