//! Posts: what tasks tell the kernel without waiting for an answer, and how a wait is undone.
//!
//! Runs after every poll and every drop of a future; may meet things that are gone already.

use traps::protocol::{Note, Post, ROOT, TaskRef, Ticket};

use crate::emit::{KERNEL, announce, drop_quietly, emit};
use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::pending::Source;
use crate::task::State;
use crate::threads::JobId;
use crate::trace::Event;
use crate::waits::{Entry, Wait};

impl<M: Machine> Kernel<M> {
    /// Does what a post says.
    pub(crate) fn heed(&mut self, post: Post) {
        // What a task posts is done by its run, whatever else has happened since; what nobody
        // posts follows what came before all of it.
        let acting = self.acting().map(|task| self.tasks.get(task).cause);
        let cause = acting.unwrap_or(self.before_posts).max(1);
        match post {
            Post::Withdraw(ticket) => {
                if let Some(entry) = self.parked(ticket) {
                    let (task, number) = (entry.task, entry.number);
                    emit!(self, task, Event::Withdraw { ticket: number });
                    self.forget_wait(ticket.index);
                } else {
                    self.gate.forget(ticket);
                }
            }
            Post::Unread(interrupt) => self.unread(&interrupt),
            Post::Remember { handle, direction } => self.give_back(handle, direction),
            Post::Keep { signal, .. } => self.arrive_signal(signal),
            Post::Orphan { job, task, site, work } => {
                self.job_unheard(job, task.serial.get(), site, work);
            }
            Post::Rehome(ticket, task) => self.rehome(ticket, task),
            Post::RehomeScope { scope, task, parent } => {
                let index = self.scopes.find(scope);
                let parent = self.scopes.find(parent).unwrap_or(ROOT);
                if let (Some(index), Some(task)) = (index, self.tasks.find(task))
                    && (parent == ROOT || !self.scopes.is_within(index, parent))
                {
                    self.rehome_scope(index, task, parent);
                }
            }
            Post::CloseScope { scope, left } => {
                if let Some(index) = self.scopes.find(scope)
                    && index != ROOT
                {
                    self.close_scope(index, left);
                }
            }
            Post::MakeDeadline { deadline, site } => self.tell_deadline(deadline, site),
            Post::SetDeadline { deadline, until, owner, site } => {
                self.set_deadline(deadline, until, owner, site);
            }
            Post::LeaveGuard { deadline, scope, owner } => {
                self.leave_guard(deadline, scope, owner);
            }
            Post::DropDeadline { deadline } => self.drop_deadline(deadline),
            Post::Close { handle } => self.close_handle(handle, cause),
            Post::Release { handle, descriptor, owner, sole } => {
                self.release(handle, descriptor, owner, sole, cause);
            }
            Post::Spawn(birth) => self.spawn_posted(birth),
            Post::Detach(task) => {
                if let Some(index) = self.tasks.find(task) {
                    self.tasks.get_mut(index).detached = true;
                    if self.tasks.get(index).is_ended() {
                        self.remove_task(index);
                    }
                }
            }
            Post::Cancel { task, reason } => {
                if let Some(task) = self.tasks.find(task) {
                    let by = self.acting().map(|acting| self.tasks.name_of(acting).id());
                    self.cancel_task(task, by, reason, cause);
                }
            }
            Post::Drop(task) => self.drop_task(task),
            Post::Woken(task) => self.wake_task(task, cause),
            Post::WakeTicket(ticket) => self.wake_ticket(ticket, cause),
            Post::Permit { queue, keep } => {
                if queue.home.get() != self.epoch && queue.waiting.get() > 0 && keep {
                    return self.gate.pass_on(Post::Permit { queue, keep });
                }
                if self.wake_queue(&queue, 1, cause) == 0 && keep {
                    queue.keep_permit();
                }
                drop_quietly(queue);
            }
            Post::Wake { queue, n } => {
                self.wake_queue(&queue, n, cause);
                drop_quietly(queue);
            }
            Post::Note { note, untold } => self.write_note(note, untold),
        }
    }

    #[cold]
    #[inline(never)]
    fn write_note(&mut self, note: Note, untold: u64) {
        let event = match &note {
            Note::Warning(text) => Event::Warn { text: text.as_ref().into() },
            Note::Cap(text) => Event::Cap { text: text.as_ref().into() },
        };
        let (id, name) = self.acting().map_or(KERNEL, |task| self.tasks.label(task));
        announce!(self, untold, id, name, event);
    }

    /// The task whose poll is being served.
    pub(crate) fn acting(&self) -> Option<u32> {
        self.running.filter(|index| self.tasks.get(*index).state == State::Running)
    }

    /// Moves a scope, and the tickets in it, to where its future is polled now.
    fn rehome_scope(&mut self, index: u32, task: u32, parent: u32) {
        let from = self.scopes.get(index).task;
        self.tasks.get_mut(task).troubled |= self.tasks.get(from).troubled;
        if from != task {
            self.forget_moved(from, index);
        }
        self.scopes.rehome(&mut self.tasks, index, task, parent);
        for ticket in self.waits.of(&self.tasks, from) {
            let entry = self.waits.get(ticket).expect("a list holds parked tickets");
            let scope = self.scope_of(entry);
            let at = self.scopes.find(scope).unwrap_or(ROOT);
            if from != task && self.scopes.is_within(index, at) {
                self.waits.rehome(&mut self.tasks, ticket, task, scope);
            }
        }
        for ticket in self.waits.of(&self.tasks, task) {
            self.deliver_pending(ticket);
        }
        self.start_graces(task);
    }

    /// A scope moves to another task: what is unread in it, or in one inside it, goes with it.
    fn forget_moved(&mut self, from: u32, index: u32) {
        let Kernel { scopes, tasks, .. } = self;
        let task = tasks.get_mut(from);
        if task.news().is_some_and(|news| !news.delivered.is_empty()) {
            task.rare().news.delivered.retain(|unread| match unread.source {
                Source::Scope(source) => !scopes.is_within(index, source),
                Source::Cancel => true,
            });
        }
    }

    pub(crate) fn rehome(&mut self, ticket: Ticket, task: TaskRef) {
        let known = self.parked(ticket).is_some();
        let Some(scope) = self.gate.scope_of(ticket).filter(|_| known) else { return };
        if let Some(task) = self.tasks.find(task) {
            self.waits.rehome(&mut self.tasks, ticket.index, task, scope);
            self.deliver_pending(ticket.index);
        }
    }

    /// The wait of that very ticket, if it is parked.
    pub(crate) fn parked(&self, ticket: Ticket) -> Option<&Entry> {
        let known = ticket.epoch == self.epoch && self.gate.has(ticket);
        self.waits.get(ticket.index).filter(|_| known)
    }

    /// Takes a ticket out of every table, as if it had never been filed.
    pub(crate) fn forget_wait(&mut self, index: u32) {
        let Some(entry) = self.waits.remove(&mut self.tasks, index) else { return };
        self.undo(index, &entry);
        self.gate.forget_at(index, self.epoch);
        drop_quietly(entry);
    }

    /// Undoes what parking a ticket did beside the wait table.
    pub(crate) fn undo(&mut self, index: u32, entry: &Entry) {
        match &entry.wait {
            Wait::Yield { .. } => self.scratch.yielded.retain(|ticket| *ticket != index),
            Wait::Sleep { timer } => {
                if let Some(timer) = timer {
                    self.timers.disarm(*timer);
                }
            }
            Wait::Io { handle, direction } => self.stop_waiting_for_io(*handle, *direction),
            Wait::Join { task, .. } => {
                let joined = self.tasks.get(*task);
                let ends = (joined.first_joiner, joined.last_joiner);
                let ends = self.waits.lines.remove(ends, index);
                let joined = self.tasks.get_mut(*task);
                (joined.first_joiner, joined.last_joiner) = ends;
            }
            Wait::Queue(queue) => self.leave_queue(queue, index),
            Wait::Job { number, slot } => {
                self.stop_waiting_for_job(entry.task, JobId { number: *number, slot: *slot });
            }
            Wait::Signal(_) | Wait::Stream(_) => {
                self.signals.waiting.retain(|ticket| *ticket != index)
            }
            Wait::Foreign { external } | Wait::Outside { external, .. } => {
                self.external -= usize::from(*external);
            }
        }
    }
}
