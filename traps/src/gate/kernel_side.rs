//! The kernel's side of a gate: enter, take what is filed, park, complete.

use std::mem;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Waker;

use super::*;
use crate::protocol::Note;

/// What became of a result.
pub enum Completion {
    /// It lies ready to be read; the waker, if there is one, is to be called.
    Ready(Option<Waker>),
    /// The future was gone: here it is again, for the next in line.
    Withdrawn(TrapResult),
}

/// The first request of a poll, of the task that is being polled.
pub struct First {
    /// Where the result goes.
    pub ticket: Ticket,
    /// In which scope it was filed.
    pub scope: ScopeId,
    /// What is asked.
    pub request: Request,
    /// By whom.
    pub site: Site,
}

/// Whether a kernel of that number runs on this thread now. For wakers, on any thread.
#[inline]
#[must_use]
pub fn is_running(epoch: u32) -> bool {
    GATE.try_with(|gate| gate.epoch.get() == epoch).unwrap_or(false)
}

/// The task that is being polled, and whether `waker` is its own; `None` outside a poll.
pub(crate) fn polled_by(waker: &Waker) -> Option<(TaskRef, bool)> {
    GATE.with(|gate| Some((gate.task.get()?, gate.own.get() == identity(waker))))
}

/// A line for the log, which has its place among the arms that nobody is told of.
pub(crate) fn note(note: Note) {
    let counted = GATE.try_with(|gate| gate.deadlines.borrow().as_ref().map(|t| t.untold()));
    let untold = counted.ok().flatten().unwrap_or(0);
    post(Post::Note { note, untold });
}

/// Tells the kernel that runs on this thread that a task's waker was called.
pub fn post_woken(task: TaskRef) {
    post(Post::Woken(task));
}

/// Tells the kernel that runs on this thread that a ticket was woken from outside its task.
pub fn post_wake_ticket(ticket: Ticket) {
    post(Post::WakeTicket(ticket));
}

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
        self.tables.borrow_mut().kernels.push(epoch);
        epoch
    }

    /// Forgets a kernel: its tickets, and the posts that nobody will read.
    pub fn close(&self, epoch: u32) {
        let mut dropped = Vec::new();
        let mut posts = Vec::new();
        let locals = (self.locals.close(epoch), self.outsides.close(epoch));
        {
            let tables = &mut *self.tables.borrow_mut();
            tables.kernels.retain(|kernel| *kernel != epoch);
            for index in 0..tables.slots.len() {
                let slot = &tables.slots[index];
                if slot.epoch == epoch && !matches!(slot.state, State::Free(_)) {
                    dropped.push(tables.free(u32::try_from(index).expect("a slot's index")));
                }
            }
            for entry in mem::take(&mut tables.elsewhere) {
                if entry.0 == epoch {
                    posts.push(entry.1);
                } else {
                    tables.elsewhere.push(entry);
                }
            }
        }
        for post in &posts {
            // The queue lives on, and what was handed back to it is not lost.
            if let Post::Permit { queue, keep: true } = post {
                queue.permits.set(queue.permits.get() + 1);
            }
        }
        drop((dropped, posts, locals));
    }

    /// Makes the kernel the one that runs on this thread.
    ///
    /// # Panics
    ///
    /// If one runs already: a kernel does not run inside a kernel.
    pub fn enter(&self, epoch: u32, deadlines: &Rc<DeadlineTable>) {
        assert!(
            self.epoch.get() == 0,
            "rule: one kernel runs on a thread at a time; `run` was called inside `run`"
        );
        self.epoch.set(epoch);
        drop(self.deadlines.replace(Some(deadlines.clone())));
        let tables = &mut *self.tables.borrow_mut();
        for entry in mem::take(&mut tables.elsewhere) {
            if entry.0 == epoch {
                tables.filed.push(Filed::Post(entry.1));
                self.any_filed.set(true);
            } else {
                tables.elsewhere.push(entry);
            }
        }
    }

    /// The kernel stops running; what is posted and was not taken waits for its next run.
    pub fn leave(&self, epoch: u32) {
        self.end();
        self.epoch.set(0);
        drop(self.deadlines.take());
        self.any_filed.set(false);
        let mut requests = Vec::new();
        {
            let tables = &mut *self.tables.borrow_mut();
            for filed in mem::take(&mut tables.filed) {
                match filed {
                    Filed::Post(post) => tables.elsewhere.push((epoch, post)),
                    request @ Filed::Request { .. } => requests.push(request),
                }
            }
        }
        drop(requests);
    }

    /// Before a task runs: says who it is, with which waker it is polled, and how many operations
    /// it may do.
    #[inline]
    pub fn begin(&self, task: TaskRef, root: ScopeId, waker: &Waker, budget: u32) {
        self.task.set(Some(task));
        self.scope.set(Some(root));
        self.timeout.set(Some(root));
        self.own.set(identity(waker));
        self.budget.set(budget);
        self.troubled.set(false);
    }

    /// From now on the task that runs has something pending, or an open scope that fired.
    pub fn set_troubled(&self) {
        self.troubled.set(true);
    }

    /// The task that runs is polled with another waker from now on.
    pub fn set_waker(&self, waker: &Waker) {
        self.own.set(identity(waker));
    }

    /// After a task ran.
    #[inline]
    pub fn end(&self) {
        if self.register.stage.get() != Stage::Empty {
            self.spill();
        }
        self.task.set(None);
        self.scope.set(None);
        self.timeout.set(None);
    }

    /// Whether anything is filed.
    #[inline]
    #[must_use]
    pub fn has_filed(&self) -> bool {
        self.register.stage.get() == Stage::Filed || self.any_filed.get()
    }

    /// Takes what is filed, in order, in exchange for an empty `inbox`.
    #[inline]
    pub fn take(&self, inbox: &mut Vec<Filed>) {
        debug_assert!(inbox.is_empty(), "what was taken is heeded first");
        self.any_filed.set(false);
        self.register.behind.set(false);
        mem::swap(&mut self.tables.borrow_mut().filed, inbox);
    }

    /// Takes the first request of the poll, unless something in the list was filed before it.
    #[inline]
    pub fn take_first(&self) -> Option<First> {
        let register = &self.register;
        if register.stage.get() != Stage::Filed || register.behind.get() && self.any_filed.get() {
            return None;
        }
        register.stage.set(Stage::Taken);
        let epoch = self.epoch.get();
        let serial = NonZeroU64::new(register.serial.get()).expect("a filed request has a number");
        Some(First {
            ticket: Ticket { index: register.index.get(), epoch, serial },
            scope: register.scope.get().expect("a filed request has a scope"),
            request: register.request.take().expect("a filed request is there"),
            site: register.site.get().expect("a filed request has a place"),
        })
    }

    /// Whether a request that was taken is still wanted; frees its ticket if not.
    #[inline]
    #[must_use]
    pub fn is_wanted(&self, ticket: Ticket) -> bool {
        if self.register.holds(ticket) {
            let wanted = self.register.stage.get() == Stage::Taken;
            if !wanted {
                self.register.stage.set(Stage::Empty);
            }
            return wanted;
        }
        let freed = {
            let tables = &mut *self.tables.borrow_mut();
            match tables.live(ticket).map(|slot| &slot.state) {
                Some(State::Withdrawn) => Some(tables.free(ticket.index)),
                Some(_) => return true,
                None => None,
            }
        };
        drop(freed);
        false
    }

    /// The kernel keeps the request.
    #[inline]
    pub fn park(&self, ticket: Ticket) {
        if self.register.holds(ticket) {
            self.spill();
        }
        if let Some(slot) = self.tables.borrow_mut().live(ticket) {
            slot.state = State::Parked;
        }
    }

    /// The result of a request.
    #[inline(always)]
    #[must_use]
    pub fn complete(&self, ticket: Ticket, result: TrapResult) -> Completion {
        let register = &self.register;
        if register.holds(ticket) && register.stage.get() == Stage::Taken {
            register.stage.set(Stage::Answered);
            let earlier = register.result.replace(Some(result));
            debug_assert!(earlier.is_none(), "a request is answered once");
            mem::forget(earlier);
            return Completion::Ready(None);
        }
        let tables = &mut *self.tables.borrow_mut();
        match tables.live(ticket) {
            Some(slot) if !matches!(slot.state, State::Withdrawn) => {
                slot.state = State::Done(result);
                Completion::Ready(slot.waker.take())
            }
            _ => Completion::Withdrawn(result),
        }
    }

    /// Puts another result in place of one that was not read yet; gives the old one back.
    ///
    /// # Errors
    ///
    /// The new one, if the old one was read or withdrawn meanwhile.
    pub fn replace(&self, ticket: Ticket, result: TrapResult) -> Result<TrapResult, TrapResult> {
        let tables = &mut *self.tables.borrow_mut();
        match tables.live(ticket).map(|slot| &mut slot.state) {
            Some(State::Done(old)) => Ok(mem::replace(old, result)),
            _ => Err(result),
        }
    }

    /// Whether the ticket was parked and is now withdrawn.
    #[must_use]
    pub fn is_withdrawn(&self, ticket: Ticket) -> bool {
        let tables = &mut *self.tables.borrow_mut();
        matches!(tables.live(ticket).map(|slot| &slot.state), Some(State::Withdrawn) | None)
    }

    /// Frees a ticket that was withdrawn.
    pub fn forget(&self, ticket: Ticket) {
        if self.register.holds(ticket) {
            self.register.stage.set(Stage::Empty);
            return drop((self.register.request.take(), self.register.result.take()));
        }
        let freed = {
            let tables = &mut *self.tables.borrow_mut();
            if tables.live(ticket).is_none() {
                return;
            }
            tables.free(ticket.index)
        };
        drop(freed);
    }

    /// Which task and scope poll the future of that ticket now.
    #[must_use]
    pub fn home(&self, ticket: Ticket) -> Option<(TaskRef, ScopeId)> {
        let tables = &mut *self.tables.borrow_mut();
        tables.live(ticket).map(|slot| (slot.task, slot.scope))
    }

    /// Lets the next poll of the task end the scope, which fired around a wait on a bare waker.
    pub fn set_bare(&self, scope: ScopeId, interrupt: Interrupt) {
        self.any_bare.set(true);
        self.tables.borrow_mut().bare.push((scope, interrupt));
    }

    /// Takes back what that poll did not use.
    #[inline]
    pub fn clear_bare(&self) {
        if self.any_bare.replace(false) {
            let unused = mem::take(&mut self.tables.borrow_mut().bare);
            drop(unused);
        }
    }

    /// The place of a handle is free again.
    pub fn free_handle(&self, handle: HandleId) {
        self.tables.borrow_mut().free_handles.push(handle.index);
    }

    /// Posts for that kernel that it has not heeded and that may wake a task.
    #[must_use]
    pub fn wakes_for(&self, epoch: u32) -> usize {
        let tables = self.tables.borrow();
        let wakes = |post: &Post| {
            !matches!(post, Post::Detach(_) | Post::Note { .. } | Post::DropDeadline { .. })
        };
        let filed = tables.filed.iter().filter(|filed| match filed {
            Filed::Request { .. } => true,
            Filed::Post(post) => wakes(post),
        });
        let elsewhere = tables.elsewhere.iter().filter(|(of, post)| *of == epoch && wakes(post));
        elsewhere.count() + if self.epoch.get() == epoch { filed.count() } else { 0 }
    }

    /// Tickets of that kernel that are in use: for its counters and tests.
    #[must_use]
    pub fn tickets(&self, epoch: u32) -> usize {
        let tables = self.tables.borrow();
        let used = |slot: &&Slot| slot.epoch == epoch && !matches!(slot.state, State::Free(_));
        let first = self.register.stage.get() != Stage::Empty && self.epoch.get() == epoch;
        tables.slots.iter().filter(used).count() + usize::from(first)
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("epoch", &self.epoch.get()).finish_non_exhaustive()
    }
}
