//! Descriptors: waits for them, arrivals, and when a registration ends.

use std::mem;
use std::os::fd::OwnedFd;

use traps::protocol::{Answer, Direction, HandleId, Owned, Ticket};
use traps::threads::drop_quietly;

use crate::kernel::Kernel;
use crate::limits::UNWANTED;
use crate::log::{self, KERNEL, announce, emit, emit_for};
use crate::machine::{Arrival, Machine};
use crate::ops::UNKNOWN;
use crate::registrations::Policy;
use crate::table::Asker;
use crate::trace::{self, Event, Need, Op, Reg, Seq, WakeOp, Why};
use crate::waits::On;

const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

impl<M: Machine> Kernel<M> {
    /// The `io` trap: answers if readiness is remembered, else parks, and registers the descriptor
    /// if needed.
    #[inline]
    pub(crate) fn wait_for_io(&mut self, asker: &Asker, handle: HandleId, direction: Direction) {
        let side = direction as usize;
        let rule = "rule: a descriptor is registered at the gate before it is waited for";
        let registration = self.registrations.find(handle).expect(rule);
        let alias = registration.alias;
        let op = || Op::Io { alias, direction };
        if registration.waiting[side].is_some() {
            return self.answer(asker, Answer::Busy, op);
        }
        registration.unwanted = 0;
        let is_ready = mem::take(&mut registration.ready[side]);
        let closed = registration.closed && direction == Direction::Read;
        if is_ready || closed && self.is_closed_still(handle.index) {
            return self.answer(asker, Answer::Done, op);
        }
        let changed = self.options.policy == Policy::NextSleep
            && self.keep_or_undefer(asker.task, handle.index, direction);
        let registration = self.registrations.get(handle.index).expect("found above");
        registration.waiting[side] = Some(asker.ticket());
        let kept = registration.registered;
        if !kept && let Err(refused) = self.register(asker, handle.index) {
            return self.answer_owned(asker, refused, op);
        }
        if self.log.listening {
            let reg = if kept { Reg::Kept } else { Reg::New };
            self.log.reg = Some(if changed { Reg::Changed } else { reg });
        }
        self.park(asker, On::Io(handle.index, direction), op);
    }

    /// Whether the end or the error that was seen is still there. An error is gone after it was
    /// read, and a FIFO may get another writer. Without this check a task that waits in a loop
    /// would never give way.
    #[cold]
    fn is_closed_still(&mut self, index: u32) -> bool {
        let registration = self.registrations.get(index).expect("it was found before");
        registration.closed = self.machine.is_readable(registration.descriptor);
        registration.closed
    }

    /// Registers a descriptor that a task is about to wait for.
    #[cold]
    fn register(&mut self, asker: &Asker, index: u32) -> Result<(), Owned> {
        let registration = self.registrations.get(index).expect("it was found before");
        let (alias, token) = (registration.alias, registration.token(index));
        match self.machine.register(registration.descriptor, token) {
            Ok(()) => {
                registration.registered = true;
                let again = mem::replace(&mut registration.was_registered, true);
                self.registrations.registered += 1;
                self.counts.registers += 1;
                let why = if again { Need::Again } else { Need::First };
                emit!(self, asker.task, Event::Register { alias, why });
                Ok(())
            }
            Err(error) => {
                registration.waiting = [None; 2];
                let text = error.to_string().into();
                announce!(self, self.tasks.label(asker.task), Event::Refuse { alias, text });
                Err(Owned::Refused(error))
            }
        }
    }

    /// Step 2 of a turn, for one descriptor: wakes the waiters, or remembers that it is ready.
    #[inline]
    pub(crate) fn arrive(&mut self, arrival: Arrival) {
        // The handle of a stale event is gone, so its name does not match.
        let Some((index, registration)) = self.registrations.find_token(arrival.token) else {
            return;
        };
        registration.closed |= arrival.closed;
        let none = (None, false);
        let (reader, new_read) =
            if arrival.readable { registration.meet(Direction::Read) } else { none };
        let (writer, new_write) =
            if arrival.writable { registration.meet(Direction::Write) } else { none };
        if let Some(ticket) = reader {
            let cause = self.tell_arrival(index, Direction::Read);
            self.wake_io(index, ticket, Direction::Read, cause);
        }
        if let Some(ticket) = writer {
            let cause = self.tell_arrival(index, Direction::Write);
            self.wake_io(index, ticket, Direction::Write, cause);
        }
        if reader.is_none() && writer.is_none() {
            self.remember(index, arrival, new_read || new_write);
        }
    }

    #[inline]
    fn tell_arrival(&mut self, index: u32, direction: Direction) -> Seq {
        emit_for!(self, KERNEL, {
            let alias = self.registrations.alias(index).unwrap_or(UNKNOWN);
            Event::Arrive(trace::Arrival::Io { alias, direction })
        })
    }

    /// Wakes a waiter and leaves the registration as the policy says.
    #[inline]
    fn wake_io(&mut self, index: u32, ticket: Ticket, direction: Direction, cause: Seq) {
        self.complete(ticket, On::IoReady(index, direction), |kernel| {
            let alias = kernel.registrations.alias(index).unwrap_or(UNKNOWN);
            (WakeOp::Io { alias, direction }, cause)
        });
        if self.options.policy != Policy::Lazy {
            self.leave_at_wake(index, ticket.task, direction);
        }
    }

    /// The policy ends a registration at a wake, or notes that the task may have to end it later.
    fn leave_at_wake(&mut self, index: u32, task: u32, direction: Direction) {
        if self.options.policy == Policy::NextSleep {
            if self.deferred(task).is_some_and(|(other, _)| other != index) {
                // The task was woken for two descriptors at once, and keeps one registration.
                self.undefer(task, Why::Other);
            }
            self.tasks[task].rare().deferred = Some((index, direction));
        } else if self.registrations.get(index).is_some_and(|it| it.nobody_waits()) {
            self.unregister(index, Why::Wake);
        }
    }

    /// A wake that was not read goes to the next waiter.
    pub(crate) fn give_back(&mut self, index: u32, direction: Direction, cause: Seq) {
        let Some(registration) = self.registrations.get(index) else { return };
        match registration.meet(direction) {
            (Some(ticket), _) => self.wake_io(index, ticket, direction, cause),
            (None, _) => {
                let (alias, n) = (registration.alias, u32::from(registration.unwanted));
                emit_for!(self, KERNEL, Event::Remember { alias, direction, n });
            }
        }
    }

    /// An event that no task waited for. Too many of them end the registration.
    fn remember(&mut self, index: u32, arrival: Arrival, news: bool) {
        let read = arrival.readable;
        let direction = if read { Direction::Read } else { Direction::Write };
        self.tell_race(index, direction);
        let Some(registration) = self.registrations.get(index) else { return };
        let waited_for = !registration.nobody_waits();
        if waited_for && !news {
            return;
        }
        if !waited_for {
            registration.unwanted = registration.unwanted.saturating_add(1);
        }
        let (alias, n) = (registration.alias, u32::from(registration.unwanted));
        emit_for!(self, KERNEL, Event::Remember { alias, direction, n });
        if n >= UNWANTED {
            self.unregister(index, Why::Unwanted);
        }
    }

    /// Logs a race: a guard has ended a wait in this turn, and now the descriptor is ready.
    fn tell_race(&mut self, index: u32, direction: Direction) {
        let is_it = |lost: &&(u32, Direction, u32, u64)| lost.0 == index && lost.1 == direction;
        if let Some(&(_, _, task, scope)) = self.guarded.iter().find(is_it) {
            let (winner, loser) = ("timeout".into(), "value".into());
            emit!(self, task, Event::Race { winner, loser, scope });
        }
    }

    /// Ends a registration, if there is one.
    pub(crate) fn unregister(&mut self, index: u32, why: Why) {
        let Some(registration) = self.registrations.get(index) else { return };
        registration.unwanted = 0;
        if !mem::take(&mut registration.registered) {
            return;
        }
        let (alias, descriptor) = (registration.alias, registration.descriptor);
        self.registrations.registered -= 1;
        self.counts.unregisters += 1;
        // A refusal means that the system has dropped the registration already.
        let _ = self.machine.deregister(descriptor);
        emit_for!(self, KERNEL, Event::Unregister { alias, why });
    }

    /// A wait was interrupted or withdrawn.
    pub(crate) fn stop_waiting_for_io(&mut self, index: u32, direction: Direction) {
        let Some(registration) = self.registrations.get(index) else { return };
        registration.waiting[direction as usize] = None;
        if self.options.policy != Policy::Lazy && registration.nobody_waits() {
            self.unregister(index, Why::Interrupt);
        }
    }

    fn deferred(&self, task: u32) -> Option<(u32, Direction)> {
        self.tasks[task].rare.as_ref()?.deferred
    }

    /// Policy NextSleep, at a wait: a wait for the same direction keeps the deferred registration,
    /// another wait ends it. True if it was ended.
    fn keep_or_undefer(&mut self, task: u32, index: u32, direction: Direction) -> bool {
        let deferred = self.deferred(task);
        if deferred == Some((index, direction)) {
            self.tasks[task].rare().deferred = None;
            return false;
        }
        self.undefer(task, Why::Other);
        deferred.is_some()
    }

    /// Policy NextSleep: ends the registration that the task's last wake left in place.
    pub(crate) fn undefer(&mut self, task: u32, why: Why) {
        let Some((index, _)) = self.deferred(task) else { return };
        self.tasks[task].rare().deferred = None;
        if self.registrations.get(index).is_some_and(|it| it.nobody_waits()) {
            self.unregister(index, why);
        }
    }

    /// Closes a handle: ends its waits, and no more can begin. The handle keeps its place until its
    /// descriptor is closed.
    pub(crate) fn close_handle(&mut self, handle: HandleId, cause: Seq) {
        if self.registrations.find(handle).is_some() {
            self.end_waits(handle.index, cause);
            self.unregister(handle.index, Why::Close);
        }
    }

    fn end_waits(&mut self, index: u32, cause: Seq) {
        for direction in BOTH {
            let Some(registration) = self.registrations.get(index) else { return };
            let alias = registration.alias;
            if let Some(ticket) = registration.waiting[direction as usize].take() {
                self.complete(ticket, On::Closed, |_| (WakeOp::Closed { alias }, cause));
            }
        }
    }

    /// Removes a handle: ends its waits, then closes its descriptor.
    pub(crate) fn release(
        &mut self,
        handle: HandleId,
        owner: Option<OwnedFd>,
        sole: bool,
        cause: Seq,
    ) {
        let index = handle.index;
        self.end_waits(index, cause);
        let Some(registration) = self.registrations.get(index) else { return };
        if registration.registered && sole && owner.is_some() {
            // Closing the last descriptor of a file takes it out of the poller's set.
            let (alias, descriptor) = (registration.alias, registration.descriptor);
            self.registrations.registered -= 1;
            emit_for!(self, log::KERNEL, Event::Unregister { alias, why: Why::Close });
            self.machine.forget(descriptor);
        } else {
            self.unregister(index, Why::Close);
        }
        drop_quietly(owner);
        self.registrations.remove(index);
        self.gate.free_handle(index);
    }
}
