//! The kernel's side of a gate: enter, take what is filed, park, complete.

use std::mem;
use std::task::Waker;

use super::Gate;
use super::now::{Now, identity};
use super::register::Stage;
use super::slot::State;
use super::tables::is_unit;
use crate::interrupt::Interrupt;
use crate::protocol::{
    Birth, Filed, HOME, HandleId, Post, Request, ScopeId, Site, TaskRef, Ticket, TrapResult,
};

/// What became of a result.
pub enum Completion {
    /// It lies ready to be read; the waker, if there is one, is to be called.
    Ready(Option<Waker>),
    /// The future was gone: here it is again, for the next in line.
    Withdrawn(TrapResult),
}

/// Where the first request of a poll was made, by the task that is being polled.
#[derive(Clone, Copy)]
pub struct First {
    /// Where the result goes.
    pub ticket: Ticket,
    /// In which scope it was filed.
    pub scope: ScopeId,
    /// By whom.
    pub site: Site,
}

/// Whether a kernel of that number runs on this thread now. For wakers, on any thread. Not in a job
/// that it plays by a script: that is a thread of its own.
#[inline]
#[must_use]
pub fn is_running(epoch: u32) -> bool {
    super::epoch() == epoch && !crate::threads::is_in_job()
}

/// Tells the kernel that runs on this thread that a task's waker was called.
pub fn post_woken(task: TaskRef) {
    super::post(Post::Woken(task));
}

/// Tells the kernel that runs on this thread that a ticket was woken from outside its task.
pub fn post_wake_ticket(ticket: Ticket) {
    super::post(Post::WakeTicket(ticket));
}

impl Gate {
    /// A post that came to this kernel, and is for another one of the thread by now. Dropped if
    /// that is gone.
    pub fn pass_on(&self, post: Post) {
        super::post(post);
    }

    /// Before a task runs: says who it is, with which waker it is polled, how many operations it
    /// may do, and what [`Gate::end`] said after its last run, [`Gate::is_home_free`] before its
    /// first.
    #[inline]
    pub fn begin(
        &self,
        task: TaskRef,
        root: ScopeId,
        waker: &Waker,
        budget: u32,
        is_home_free: bool,
    ) {
        let now = self.now;
        now.task.set(Some(task));
        now.scope.set(Some(root));
        now.timeout.set(Some(root));
        now.own.set(identity(waker));
        now.budget.set(budget);
        now.troubled.set(false);
        now.register.begin(task, is_home_free);
    }

    /// Whether nothing is kept in the home of a new task of the kernel that runs. The place of one
    /// that has ended may still be taken, by the ticket of a future that is polled elsewhere.
    #[must_use]
    pub fn is_home_free(&self, task: TaskRef) -> bool {
        self.now.tables.borrow().is_home_free(task.index)
    }

    /// The task that runs is inside this scope from the start.
    pub fn set_root(&self, root: ScopeId) {
        let now = self.now;
        now.scope.set(Some(root));
        now.timeout.set(Some(root));
    }

    /// From now on the task that runs has something pending, or an open scope that fired.
    pub fn set_troubled(&self) {
        self.now.troubled.set(true);
    }

    /// Before a poll: so many tickets of the task are parked.
    #[inline]
    pub fn set_parked(&self, tickets: u32) {
        self.now.parked.set(tickets);
    }

    /// The task that runs is polled with another waker from now on.
    pub fn set_waker(&self, waker: &Waker) {
        self.now.own.set(identity(waker));
    }

    /// After a task ran. Whether nothing is kept in its home.
    #[inline]
    pub fn end(&self) -> bool {
        let now = self.now;
        if now.register.stage.get() != Stage::Empty {
            now.spill();
        }
        now.task.set(None);
        now.scope.set(None);
        now.timeout.set(None);
        now.register.is_home_free.get()
    }

    /// Whether anything is filed.
    #[inline]
    #[must_use]
    pub fn has_filed(&self) -> bool {
        self.now.register.stage.get() == Stage::Filed || self.now.any_filed.get()
    }

    /// Takes what is filed, if that is one post.
    #[inline]
    pub fn take_only(&self) -> Option<Post> {
        let post = self.now.only.take()?;
        debug_assert!(self.now.tables.borrow().filed.is_empty(), "a lone post is all of the list");
        self.now.any_filed.set(false);
        self.now.register.behind.set(false);
        Some(post)
    }

    /// Takes what is filed, if that is nothing but tasks to be made, in exchange for an empty list.
    #[inline]
    pub fn take_births(&self, into: &mut Vec<Birth>) {
        let births = &mut *self.now.births.borrow_mut();
        if !births.is_empty() {
            mem::swap(births, into);
            self.now.any_filed.set(false);
            self.now.born.set(0);
            self.now.register.behind.set(false);
        }
    }

    /// Takes what is filed, in order, in exchange for an empty `inbox`.
    #[inline]
    pub fn take(&self, inbox: &mut Vec<Filed>) {
        debug_assert!(inbox.is_empty(), "what was taken is heeded first");
        self.now.unfold();
        let now = self.now;
        now.any_filed.set(false);
        now.born.set(0);
        now.register.behind.set(false);
        mem::swap(&mut self.now.tables.borrow_mut().filed, inbox);
    }

    /// Takes the first request of the poll, unless something in the list was filed before it.
    #[inline]
    pub fn take_first(&self) -> Option<(First, Request)> {
        let register = &self.now.register;
        let stage = register.stage.get();
        if stage != Stage::Filed || register.behind.get() && self.now.any_filed.get() {
            return None;
        }
        register.stage.set(Stage::Taken);
        Some((register.first(self.now.epoch.get()), register.take_request()?))
    }

    /// Whether a request that was taken is still wanted; frees its ticket if not.
    #[inline]
    #[must_use]
    pub fn is_wanted(&self, ticket: Ticket) -> bool {
        let now = self.now;
        let register = &now.register;
        if register.holds(ticket) {
            let wanted = register.stage.get() == Stage::Taken;
            if !wanted {
                register.stage.set(Stage::Empty);
            }
            return wanted;
        }
        let freed = {
            let tables = &mut *self.now.tables.borrow_mut();
            match tables.live(ticket).map(|slot| slot.state) {
                Some(State::WITHDRAWN) => Some(tables.free(ticket)),
                Some(_) => return true,
                None => None,
            }
        };
        if freed.is_some() {
            now.come_home(ticket);
        }
        drop(freed);
        false
    }

    /// The kernel keeps the request.
    #[inline(always)]
    pub fn park(&self, ticket: Ticket) {
        let now = self.now;
        if now.register.holds(ticket) {
            if now.register.stage.get() == Stage::Taken && ticket.index & HOME != 0 {
                return self.move_home(ticket, State::PARKED_HERE);
            }
            now.spill();
        }
        if let Some(slot) = self.now.tables.borrow_mut().live(ticket) {
            slot.state = slot.state.parked();
        }
    }

    /// Whether the kernel took this request from the register, for the task's free home, and
    /// nothing else is filed.
    #[inline]
    #[must_use]
    pub fn is_alone(&self, ticket: Ticket) -> bool {
        let now = self.now;
        let taken = now.register.holds(ticket) && now.register.stage.get() == Stage::Taken;
        taken && ticket.index & HOME != 0 && !now.any_filed.get()
    }

    /// The result of such a request, which is to be read when its task runs again.
    #[inline(always)]
    pub fn keep(&self, ticket: Ticket, result: TrapResult) {
        if !is_unit(&result) {
            return self.keep_more(ticket, result);
        }
        // It has nothing to drop.
        mem::forget(result);
        self.move_home(ticket, State::DONE);
    }

    /// The same for one in which there is something.
    #[cold]
    fn keep_more(&self, ticket: Ticket, result: TrapResult) {
        let state = self.now.tables.borrow_mut().keep(result);
        self.move_home(ticket, state);
    }

    /// Moves what the kernel took from the register to the task's home.
    #[inline(always)]
    fn move_home(&self, ticket: Ticket, state: State) {
        let Now { task, register, .. } = self.now;
        let (Some(task), scope) = (task.get(), register.scope.get()) else { return };
        self.now.tables.borrow_mut().move_home(task, scope, ticket.serial, state);
        register.stage.set(Stage::Empty);
        register.leave_home();
    }

    /// The result of a request that was answered at once.
    #[inline]
    #[must_use]
    pub fn answer(&self, ticket: Ticket, result: TrapResult) -> Completion {
        let now = self.now;
        let register = &now.register;
        if register.holds(ticket) && register.stage.get() == Stage::Taken {
            register.stage.set(Stage::Answered);
            register.set_result(result);
            return Completion::Ready(None);
        }
        self.answer_in_table(ticket, result)
    }

    /// The same for one that is not in the register.
    #[inline(never)]
    fn answer_in_table(&self, ticket: Ticket, result: TrapResult) -> Completion {
        if !self.has(ticket) {
            return Completion::Withdrawn(result);
        }
        self.complete(ticket.index, ticket.epoch, result)
    }

    /// The result of a request that was parked, by its place and its kernel: of each ticket that a
    /// kernel keeps there is one here, at the same place, until the kernel has let go of it.
    #[inline(always)]
    #[must_use]
    pub fn complete(&self, index: u32, epoch: u32, result: TrapResult) -> Completion {
        self.now.tables.borrow_mut().complete(index, epoch, result)
    }

    /// Whether a ticket is here, with its result or without.
    #[must_use]
    pub fn has(&self, ticket: Ticket) -> bool {
        self.now.tables.borrow_mut().live(ticket).is_some()
    }

    /// The ticket that is parked at that place.
    #[must_use]
    pub fn ticket_at(&self, index: u32, epoch: u32) -> Option<Ticket> {
        self.now.tables.borrow_mut().ticket_at(index, epoch)
    }

    /// Puts another result in place of one that was not read yet; gives the old one back.
    ///
    /// # Errors
    ///
    /// The new one, if the old one was read or withdrawn meanwhile.
    pub fn replace(&self, ticket: Ticket, result: TrapResult) -> Result<TrapResult, TrapResult> {
        self.now.tables.borrow_mut().replace(ticket, result)
    }

    /// Whether the future of the ticket that is parked at that place is gone.
    #[must_use]
    pub fn is_withdrawn(&self, index: u32, epoch: u32) -> bool {
        self.now.tables.borrow_mut().is_withdrawn(index, epoch)
    }

    /// Frees the ticket that is parked at that place.
    pub fn forget_at(&self, index: u32, epoch: u32) {
        if let Some(ticket) = self.ticket_at(index, epoch) {
            self.forget(ticket);
        }
    }

    /// Frees a ticket that was withdrawn.
    pub fn forget(&self, ticket: Ticket) {
        let held = {
            let now = self.now;
            let register = &now.register;
            register.holds(ticket).then(|| {
                register.stage.set(Stage::Empty);
                (register.take_request(), register.take_result())
            })
        };
        if held.is_some() {
            return;
        }
        let freed = {
            let tables = &mut *self.now.tables.borrow_mut();
            if tables.live(ticket).is_none() {
                return;
            }
            tables.free(ticket)
        };
        self.now.come_home(ticket);
        drop(freed);
    }

    /// In which scope the future of that ticket is polled now.
    #[must_use]
    pub fn scope_of(&self, ticket: Ticket) -> Option<ScopeId> {
        let tables = &mut *self.now.tables.borrow_mut();
        tables.live(ticket).map(|slot| slot.scope(ticket.epoch))
    }

    /// Lets the next poll of the task end the scope, which fired around a wait on a bare waker.
    pub fn set_bare(&self, scope: ScopeId, interrupt: Interrupt) {
        self.now.any_bare.set(true);
        self.now.tables.borrow_mut().bare.push((scope, interrupt));
    }

    /// Takes back what that poll did not use.
    #[inline]
    pub fn clear_bare(&self) {
        if self.now.any_bare.replace(false) {
            let unused = mem::take(&mut self.now.tables.borrow_mut().bare);
            drop(unused);
        }
    }

    /// The place of a handle is free again.
    pub fn free_handle(&self, handle: HandleId) {
        self.now.tables.borrow_mut().free_handles.push(handle.index);
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("epoch", &super::epoch()).finish_non_exhaustive()
    }
}
