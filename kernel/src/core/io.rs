//! Descriptors: waits for them, arrivals, and when a registration ends.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;

use traps::core::names::{Direction, HandleId, Ticket};
use traps::core::protocol::Reply;
use traps::core::records::On;
use traps::threads::drop_quietly;

use super::Core;
use super::handles::{Handle, Policy};
use super::table::Verdict;
use crate::limits::UNWANTED;
use crate::log::{KERNEL, announce, emit, emit_for};
use crate::machine::{Arrival, Machine};
use crate::trace::{self, Event, Need, Reg, Seq, Why};

const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

impl<M: Machine> Core<M> {
    /// The `io` trap: answers if readiness is remembered, else blocks, and registers the
    /// descriptor if needed.
    #[inline]
    pub(super) fn wait_for_io(
        &mut self,
        task: u32,
        ticket: Ticket,
        handle: HandleId,
        direction: Direction,
    ) -> Verdict {
        let side = direction as usize;
        let rule = "rule: a descriptor is registered at the gate before it is waited for";
        let found = self.handles.get(handle).expect(rule);
        if found.waiting[side].is_some() {
            return Verdict::Answer(Reply::Busy);
        }
        found.unwanted = 0;
        let is_ready = mem::take(&mut found.ready[side]);
        let closed = found.closed && direction == Direction::Read;
        if is_ready || closed && self.is_closed_still(handle) {
            return Verdict::Answer(Reply::Ready(handle, direction));
        }
        let changed = self.options.policy == Policy::NextSleep
            && self.keep_or_undefer(task, handle, direction);
        let kept = self.handles.get(handle).expect(rule).registered;
        if !kept && let Err(refused) = self.register(task, handle) {
            return Verdict::Answer(Reply::Refused(refused));
        }
        self.handles.get(handle).expect(rule).waiting[side] = Some(ticket);
        let reg = if kept { Reg::Kept } else { Reg::New };
        Verdict::Block(On::Io(handle, direction), Some(if changed { Reg::Changed } else { reg }))
    }

    /// Whether the end or the error that was seen is still there. An error is gone after it was
    /// read, and a FIFO may get another writer. Without this check a task that waits in a loop
    /// would never give way.
    #[cold]
    fn is_closed_still(&mut self, handle: HandleId) -> bool {
        let found = self.handles.get(handle).expect("it was found before");
        found.closed = self.machine.is_readable(found.descriptor);
        found.closed
    }

    /// Registers a descriptor that a task is about to wait for.
    #[cold]
    fn register(&mut self, task: u32, handle: HandleId) -> io::Result<()> {
        let found = self.handles.get(handle).expect("it was found before");
        let alias = found.alias;
        match self.machine.register(found.descriptor, Handle::token(handle)) {
            Ok(()) => {
                found.registered = true;
                let again = mem::replace(&mut found.was_registered, true);
                self.handles.registered += 1;
                self.counts.registers += 1;
                let why = if again { Need::Again } else { Need::First };
                emit!(self, task, Event::Register { alias, why });
                Ok(())
            }
            Err(error) => {
                let text = error.to_string().into();
                announce!(self, self.tasks.label(task), Event::Refuse { alias, text });
                Err(error)
            }
        }
    }

    /// Step 2 of a turn, for one descriptor: wakes the waiters, or remembers that it is ready.
    #[inline]
    pub(crate) fn arrive(&mut self, arrival: Arrival) {
        // The handle of a stale event is gone, so its name does not match.
        let Some((handle, found)) = self.handles.find_token(arrival.token) else {
            return;
        };
        found.closed |= arrival.closed;
        let none = (None, false);
        let (reader, new_read) = if arrival.readable { found.meet(Direction::Read) } else { none };
        let (writer, new_write) =
            if arrival.writable { found.meet(Direction::Write) } else { none };
        for (ticket, direction) in [reader, writer].into_iter().zip(BOTH) {
            if let Some(ticket) = ticket {
                let cause = self.tell_arrival(handle, direction);
                self.wake_io(handle, ticket, direction, cause);
            }
        }
        if reader.is_none() && writer.is_none() {
            self.remember(handle, arrival, new_read || new_write);
        }
    }

    #[inline]
    fn tell_arrival(&mut self, handle: HandleId, direction: Direction) -> Seq {
        emit_for!(self, KERNEL, {
            let alias = self.alias(handle);
            Event::Arrive(trace::Arrival::Io { alias, direction })
        })
    }

    /// Wakes a waiter and leaves the registration as the policy says.
    #[inline]
    fn wake_io(&mut self, handle: HandleId, ticket: Ticket, direction: Direction, cause: Seq) {
        let task = self.gate.records().waits.get(ticket).map(|wait| wait.task);
        self.complete(ticket, Reply::Ready(handle, direction), cause);
        if self.options.policy != Policy::Lazy
            && let Some(task) = task
        {
            self.leave_at_wake(handle, task, direction);
        }
    }

    /// The policy ends a registration at a wake, or notes that the task may have to end it later.
    fn leave_at_wake(&mut self, handle: HandleId, task: u32, direction: Direction) {
        if self.options.policy == Policy::NextSleep {
            if self.deferred(task).is_some_and(|(other, _)| other != handle) {
                // The task was woken for two descriptors at once, and keeps one found.
                self.undefer(task, Why::Other);
            }
            self.tasks[task].rare().deferred = Some((handle, direction));
        } else if self.handles.get(handle).is_some_and(|it| it.nobody_waits()) {
            self.unregister(handle, Why::Wake);
        }
    }

    /// A wake that was not read goes to the next waiter.
    pub(super) fn ready_again(&mut self, handle: HandleId, direction: Direction, cause: Seq) {
        let Some(found) = self.handles.get(handle) else { return };
        match found.meet(direction) {
            (Some(ticket), _) => self.wake_io(handle, ticket, direction, cause),
            (None, _) => {
                let (alias, n) = (found.alias, u32::from(found.unwanted));
                emit_for!(self, KERNEL, Event::Remember { alias, direction, n });
            }
        }
    }

    /// An event that no task waited for. Too many of them end the registration.
    fn remember(&mut self, handle: HandleId, arrival: Arrival, news: bool) {
        let read = arrival.readable;
        let direction = if read { Direction::Read } else { Direction::Write };
        self.tell_race(handle, direction);
        let Some(found) = self.handles.get(handle) else { return };
        let waited_for = !found.nobody_waits();
        if waited_for && !news {
            return;
        }
        if !waited_for {
            found.unwanted = found.unwanted.saturating_add(1);
        }
        let (alias, n) = (found.alias, u32::from(found.unwanted));
        emit_for!(self, KERNEL, Event::Remember { alias, direction, n });
        if n >= UNWANTED {
            self.unregister(handle, Why::Unwanted);
        }
    }

    /// Logs a race: a guard has ended a wait in this turn, and now the descriptor is ready.
    fn tell_race(&mut self, handle: HandleId, direction: Direction) {
        let is_it =
            |lost: &&(HandleId, Direction, u32, u64)| lost.0 == handle && lost.1 == direction;
        if let Some(&(_, _, task, scope)) = self.guarded.iter().find(is_it) {
            let (winner, loser) = ("timeout".into(), "value".into());
            emit!(self, task, Event::Race { winner, loser, scope });
        }
    }

    /// Ends a registration, if there is one.
    pub(crate) fn unregister(&mut self, handle: HandleId, why: Why) {
        let Some(found) = self.handles.get(handle) else { return };
        found.unwanted = 0;
        if !mem::take(&mut found.registered) {
            return;
        }
        let (alias, descriptor) = (found.alias, found.descriptor);
        self.handles.registered -= 1;
        self.counts.unregisters += 1;
        // A refusal means that the system has dropped the registration already.
        let _ = self.machine.deregister(descriptor);
        emit_for!(self, KERNEL, Event::Unregister { alias, why });
    }

    /// A wait was interrupted or withdrawn.
    pub(crate) fn stop_waiting_for_io(&mut self, handle: HandleId, direction: Direction) {
        let Some(found) = self.handles.get(handle) else { return };
        found.waiting[direction as usize] = None;
        if self.options.policy != Policy::Lazy && found.nobody_waits() {
            self.unregister(handle, Why::Interrupt);
        }
    }

    fn deferred(&self, task: u32) -> Option<(HandleId, Direction)> {
        self.tasks[task].rare.as_ref()?.deferred
    }

    /// Policy NextSleep, at a wait: a wait for the same direction keeps the deferred registration,
    /// another wait ends it. True if it was ended.
    fn keep_or_undefer(&mut self, task: u32, handle: HandleId, direction: Direction) -> bool {
        let deferred = self.deferred(task);
        if deferred == Some((handle, direction)) {
            self.tasks[task].rare().deferred = None;
            return false;
        }
        self.undefer(task, Why::Other);
        deferred.is_some()
    }

    /// Policy NextSleep: ends the registration that the task's last wake left in place.
    pub(crate) fn undefer(&mut self, task: u32, why: Why) {
        let Some((handle, _)) = self.deferred(task) else { return };
        self.tasks[task].rare().deferred = None;
        if self.handles.get(handle).is_some_and(|it| it.nobody_waits()) {
            self.unregister(handle, why);
        }
    }

    /// Closes a handle: ends its waits, and no more can begin. The handle keeps its place until its
    /// descriptor is closed.
    pub(crate) fn close_handle(&mut self, handle: HandleId, cause: Seq) {
        if self.handles.get(handle).is_some() {
            self.end_waits(handle, cause);
            self.unregister(handle, Why::Close);
        }
    }

    fn end_waits(&mut self, handle: HandleId, cause: Seq) {
        for direction in BOTH {
            let Some(found) = self.handles.get(handle) else { return };
            if let Some(ticket) = found.waiting[direction as usize].take() {
                self.complete(ticket, Reply::Closed, cause);
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
        self.end_waits(handle, cause);
        let Some(found) = self.handles.get(handle) else { return };
        if found.registered && sole && owner.is_some() {
            // Closing the last descriptor of a file takes it out of the poller's set.
            let (alias, descriptor) = (found.alias, found.descriptor);
            self.handles.registered -= 1;
            emit_for!(self, KERNEL, Event::Unregister { alias, why: Why::Close });
            self.machine.forget(descriptor);
        } else {
            self.unregister(handle, Why::Close);
        }
        drop_quietly(owner);
        self.handles.remove(handle);
        self.gate.free_handle(handle);
    }
}
