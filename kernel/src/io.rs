//! Descriptors: waits for them, what arrives, and when a registration ends.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;

use traps::protocol::{Answer, Descriptor, Direction, Failure, HandleId};

use crate::emit::{KERNEL, announce, drop_quietly, emit, emit_for};
use crate::kernel::Kernel;
use crate::limits::UNWANTED;
use crate::machine::{Arrival, Machine};
use crate::registrations::{Policy, side};
use crate::table::At;
use crate::task::NONE;
use crate::trace::{Alias, Event, Op, Seq, WakeOp, Why};
use crate::waits::Wait;

const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

impl<M: Machine> Kernel<M> {
    /// The `io` trap: answers if readiness is remembered, else parks, registering if need be.
    #[inline(always)]
    pub(crate) fn wait_for_io(
        &mut self,
        at: &At,
        handle: HandleId,
        descriptor: Descriptor,
        kind: char,
        direction: Direction,
    ) {
        let registration = self.registrations.of(handle, descriptor, kind);
        let alias = registration.alias();
        let op = || Op::Io { alias, direction };
        if registration.is_quiet(direction) && self.options.policy == Policy::Lazy {
            registration.unwanted = 0;
            registration.waiting[side(direction)] = at.ticket.index;
            emit!(self, at.task, Event::Reuse { alias, direction });
        } else if !self.begin_waiting_for_io(at, handle.index, direction) {
            return;
        }
        self.park(at, Wait::Io { handle: handle.index, direction }, op);
    }

    /// The same where there is more to see to than to join a registration. Gives false if the
    /// request is answered.
    #[inline(never)]
    fn begin_waiting_for_io(&mut self, at: &At, index: u32, direction: Direction) -> bool {
        let side = side(direction);
        let registration = self.registrations.at(index);
        let (alias, waiting) = (registration.alias(), registration.waiting[side]);
        let op = || Op::Io { alias, direction };
        if waiting != NONE && !self.is_gone(at, waiting) {
            self.answer(at, Err(Failure::Busy), op);
            return false;
        }
        if self.tasks.get(at.task).deferred().is_some() {
            self.keep_or_undefer(at.task, index, direction);
        }
        let registration = self.registrations.at(index);
        registration.unwanted = 0;
        let closed = registration.closed && direction == Direction::Read;
        if mem::take(&mut registration.ready[side]) || closed && self.is_closed_still(index) {
            self.answer(at, Ok(Answer::Unit), op);
            return false;
        }
        let registration = self.registrations.at(index);
        if registration.registered {
            registration.waiting[side] = at.ticket.index;
            emit!(self, at.task, Event::Reuse { alias, direction });
        } else if let Err(error) = self.register(at, index, direction) {
            self.answer(at, Err(Failure::Refused(error)), op);
            return false;
        }
        true
    }

    /// Whether the end or the error that was seen is there still. An error is gone when it was
    /// read, and a FIFO may have another writer: a task that waits in a loop would never give way.
    #[cold]
    fn is_closed_still(&mut self, index: u32) -> bool {
        let descriptor = self.registrations.at(index).descriptor();
        let closed = self.machine.is_readable(descriptor);
        self.registrations.at(index).closed = closed;
        closed
    }

    /// Whether a ticket that waits for a descriptor was withdrawn in this very poll.
    #[cold]
    fn is_gone(&mut self, at: &At, waiting: u32) -> bool {
        let entry = self.waits.get(waiting).expect("a waiting ticket is parked");
        let number = entry.number;
        if !self.gate.is_withdrawn(waiting, self.epoch) {
            return false;
        }
        emit!(self, at.task, Event::Withdraw { ticket: number });
        self.forget_wait(waiting);
        true
    }

    /// Tells the poller of a descriptor that a ticket is about to wait for.
    #[cold]
    fn register(&mut self, at: &At, index: u32, direction: Direction) -> io::Result<()> {
        let registration = self.registrations.at(index);
        let (alias, token) = (registration.alias(), registration.token(index));
        if let Err(error) = self.machine.register(registration.descriptor(), token) {
            let text = error.to_string();
            announce!(self, self.tasks.label(at.task), Event::Refuse { alias, text: text.into() });
            return Err(error);
        }
        self.counts.registers += 1;
        self.registrations.registered += 1;
        let registration = self.registrations.at(index);
        registration.registered = true;
        registration.waiting[side(direction)] = at.ticket.index;
        emit!(self, at.task, Event::Register { alias });
        Ok(())
    }

    /// Step 2 for one descriptor: wakes who waits, remembers for who does not.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, arrival: Arrival) {
        // A stale event is of a handle that is gone: the name does not match any more.
        let Some((index, registration)) = self.registrations.find_token(arrival.token) else {
            return;
        };
        registration.closed |= arrival.closed;
        let alias = registration.alias();
        let (reader, new_read) = registration.meet(Direction::Read, arrival.readable);
        let (writer, new_write) = registration.meet(Direction::Write, arrival.writable);
        let read = reader != NONE && self.wake_io(index, alias, reader, Direction::Read);
        let written = writer != NONE && self.wake_io(index, alias, writer, Direction::Write);
        if !read && !written {
            self.remember(index, arrival, new_read || new_write);
        }
    }

    /// Wakes a waiter and leaves the registration as the policy says.
    #[inline]
    fn wake_io(&mut self, index: u32, alias: Alias, ticket: u32, direction: Direction) -> bool {
        let op = WakeOp::Io { alias, direction };
        let woken = match self.is_doomed(ticket) {
            true => None,
            false => self.complete_here(ticket, Ok(Answer::Unit), op, None),
        };
        let Some(task) = woken else {
            // The future was gone, or is about to be interrupted: it is there for the next.
            self.registrations.at(index).ready[side(direction)] = true;
            return false;
        };
        match self.options.policy {
            Policy::Eager if self.registrations.at(index).nobody_waits() => {
                self.unregister(index, Why::Wake);
            }
            // Eager: somebody waits for the other direction.
            Policy::Lazy | Policy::Eager => {
                emit!(self, task, Event::Defer { alias, direction });
            }
            Policy::NextSleep => {
                let write = direction == Direction::Write;
                let before = self.tasks.get(task).deferred();
                if before.is_some_and(|(other, _)| other != index) {
                    // It wakes for two at once, and keeps one.
                    self.undefer(task, Why::Other);
                }
                self.tasks.get_mut(task).defer(index, write);
                emit!(self, task, Event::Defer { alias, direction });
            }
        }
        true
    }

    /// A wake that was not read: it is for the next who waits.
    pub(crate) fn give_back(&mut self, handle: HandleId, direction: Direction) {
        let Some(index) = self.registrations.find(handle) else { return };
        let registration = self.registrations.at(index);
        let waiting = mem::replace(&mut registration.waiting[side(direction)], NONE);
        if waiting != NONE {
            let alias = registration.alias();
            self.wake_io(index, alias, waiting, direction);
            return;
        }
        registration.ready[side(direction)] = true;
        let (alias, n) = (registration.alias(), u32::from(registration.unwanted));
        emit_for!(self, KERNEL, Event::Remember { alias, direction, n });
    }

    /// An event that served nobody. Too many of them end the registration.
    fn remember(&mut self, index: u32, arrival: Arrival, news: bool) {
        let registration = self.registrations.at(index);
        let waited_for = !registration.nobody_waits();
        if waited_for && !news {
            return;
        }
        if !waited_for {
            registration.unwanted = registration.unwanted.saturating_add(1);
        }
        let (alias, n) = (registration.alias(), u32::from(registration.unwanted));
        let read = arrival.readable;
        let direction = if read { Direction::Read } else { Direction::Write };
        emit_for!(self, KERNEL, Event::Remember { alias, direction, n });
        if n >= UNWANTED {
            self.unregister(index, Why::Unwanted);
        }
    }

    /// Ends a registration, if there is one.
    pub(crate) fn unregister(&mut self, index: u32, why: Why) {
        let Some(registration) = self.registrations.get(index) else { return };
        if !registration.registered {
            return;
        }
        registration.registered = false;
        registration.unwanted = 0;
        let (alias, descriptor) = (registration.alias(), registration.descriptor());
        self.registrations.registered -= 1;
        self.counts.unregisters += 1;
        // A refusal means that the system has forgotten it already, which is what was wanted.
        let _ = self.machine.deregister(descriptor);
        emit_for!(self, KERNEL, Event::Unregister { alias, why });
    }

    /// A wait was interrupted or withdrawn.
    pub(crate) fn stop_waiting_for_io(&mut self, index: u32, direction: Direction) {
        let Some(registration) = self.registrations.get(index) else { return };
        registration.waiting[side(direction)] = NONE;
        if self.options.policy != Policy::Lazy && registration.nobody_waits() {
            self.unregister(index, Why::Interrupt);
        }
    }

    /// Policy NextSleep, at a wait: the same one goes on, another one ends the deferred one.
    fn keep_or_undefer(&mut self, task: u32, index: u32, direction: Direction) {
        let same = (index, direction == Direction::Write);
        let task_entry = self.tasks.get_mut(task);
        match task_entry.deferred() {
            Some(deferred) if deferred == same => {
                task_entry.undefer();
            }
            Some(_) => self.undefer(task, Why::Other),
            None => {}
        }
    }

    /// Policy NextSleep: ends the registration that the task's last wake left in place.
    pub(crate) fn undefer(&mut self, task: u32, why: Why) {
        let Some((index, _)) = self.tasks.get_mut(task).undefer() else { return };
        let nobody = self.registrations.get(index).is_some_and(|r| r.nobody_waits());
        if nobody {
            self.unregister(index, why);
        }
    }

    /// A handle is closed: its waiters hear of it, and nobody else will wait. It keeps its place,
    /// so that its descriptor is not closed before the system has let go of that.
    pub(crate) fn close_handle(&mut self, handle: HandleId, cause: Seq) {
        if let Some(index) = self.registrations.find(handle) {
            self.end_waits(index, cause);
            self.unregister(index, Why::Close);
        }
    }

    fn end_waits(&mut self, index: u32, cause: Seq) {
        for direction in BOTH {
            let registration = self.registrations.at(index);
            let alias = registration.alias();
            let waiting = mem::replace(&mut registration.waiting[side(direction)], NONE);
            if waiting != NONE {
                let op = WakeOp::Closed { alias };
                self.complete(waiting, Err(Failure::Closed), op, cause);
            }
        }
    }

    /// A handle is gone: its waiters hear of it, then its descriptor goes.
    pub(crate) fn release(
        &mut self,
        handle: HandleId,
        descriptor: Descriptor,
        owner: Option<OwnedFd>,
        sole: bool,
        cause: Seq,
    ) {
        let Some(index) = self.registrations.find(handle) else {
            self.gate.free_handle(handle);
            return drop(owner);
        };
        self.end_waits(index, cause);
        let closes = sole && owner.is_some();
        let registration = self.registrations.at(index);
        if registration.registered && closes {
            // Closing the last descriptor of a file takes it out of the poller's set.
            registration.registered = false;
            let alias = registration.alias();
            self.registrations.registered -= 1;
            emit_for!(self, KERNEL, Event::Unregister { alias, why: Why::Close });
            self.machine.forget(descriptor);
        } else {
            self.unregister(index, Why::Close);
        }
        drop_quietly(owner);
        self.registrations.remove(index);
        self.gate.free_handle(handle);
    }
}
