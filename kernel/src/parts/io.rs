//! Descriptors: waits for readiness, arrivals, and registrations with the poller.
//!
//! A *handle* is the kernel's record of a descriptor. It has one registration, for both directions.
//! The key of a handle is its name, never the number of the descriptor, because the system reuses
//! numbers.
//!
//! The poller reports a change (edge) only once. So no readiness may be lost between two waits:
//!
//! 1. A wait ends at once if the handle remembers readiness for its direction.
//! 2. Otherwise the descriptor is registered, unless it is already, and the wait's ticket is stored
//!    in the handle.
//! 3. An arrival takes the tickets of the ready directions and wakes their tasks. If a direction
//!    has no waiter, the handle remembers that it is ready.
//!
//! After a wake the descriptor stays registered, so that the next wait needs no system call.
//! [`Policy`] determines until when. By default ([`Policy::Lazy`]) the registration ends when the
//! handle is closed. The code calls a registration *deferred* only under [`Policy::NextSleep`],
//! which has to remember it for the task. Events that no task waits for cannot keep the kernel
//! busy: a registration is edge-triggered, so an event comes only when something has changed.
//!
//! Suppose a task serves connection `c1` under the default policy:
//!
//! ```text
//! wait    no readiness is remembered: register c1 (a system call), park
//! arrive  c1 is readable: wake the task, which reads
//! arrive  c1 is readable again, without a waiter: remember it
//! wait    readiness is remembered: do not park
//! wait    no readiness is remembered: park, without a system call
//! ```
//!
//! Why not the obvious way, to register for each wait and to unregister after it: that costs two
//! system calls per wait. It is [`Policy::Eager`], kept for comparison.

use std::{io, mem};

use traps::internal::drop_quietly;
use traps::internal::fd::OwnedFd;
use traps::internal::protocol::Reply;
use traps::internal::table::{Descriptor, Direction, HandleId, TaskIndex, Ticket};

use crate::core::sched::Sched;
use crate::log::KERNEL;
use crate::log::lines::{announce, emit, emit_for};
use crate::log::words::Names;
use crate::machine::{IoEvent, Machine};
use crate::options::Policy;
use crate::trace::{self, Alias, Event, Need, Reg, Why};

pub(crate) struct Handle {
    pub(crate) serial: u32,
    pub(crate) descriptor: Descriptor,
    /// The waits for the descriptor, for reading and for writing.
    pub(crate) waiting: [Option<Ticket>; 2],
    /// The remembered readiness, to read and to write.
    pub(crate) ready: [bool; 2],
    /// Whether the poller watches the descriptor.
    pub(crate) registered: bool,
    /// Whether the descriptor was ever registered, for the log.
    pub(crate) was_registered: bool,
    /// Whether the end of the stream or an error was seen. The handle then counts as readable as
    /// long as the system reports it as readable.
    pub(crate) closed: bool,
    /// Whether an event reported urgent data, and no wait has ended since.
    pub(crate) urgent: bool,
}

impl Handle {
    pub(crate) fn has_no_waiter(&self) -> bool {
        self.waiting == [None, None]
    }

    /// Returns the token that the poller returns with an event: the index, and 31 bits of the
    /// serial number, which reveal a stale event. Tokens with the highest bit belong to the
    /// machine.
    pub(crate) fn token(handle: HandleId) -> u64 {
        u64::from(handle.index) | u64::from(handle.serial() & 0x7fff_ffff) << 32
    }

    /// Clears the mark of urgent data, and returns whether it was set.
    #[inline]
    pub(crate) fn take_urgent(&mut self) -> bool {
        mem::take(&mut self.urgent)
    }

    /// Handles the readiness of one direction. Returns the wait for it. If there is none, remembers
    /// the readiness.
    #[inline]
    pub(crate) fn mark_ready(&mut self, direction: Direction) -> Option<Ticket> {
        let side = direction as usize;
        let ticket = self.waiting[side].take();
        self.ready[side] |= ticket.is_none();
        ticket
    }
}

/// The handles of a kernel, and the registrations of their descriptors.
pub(crate) struct Handles {
    policy: Policy,
    /// The handles by index. The gate chooses the indexes.
    pub(crate) table: Vec<Option<Handle>>,
    /// The number of descriptors registered with the poller now.
    pub(crate) registered: usize,
    /// The number of handles.
    pub(crate) known: usize,
    /// The number of registrations so far, and of those that were ended by a call.
    pub(crate) changes: [u64; 2],
    /// The waits that guards have ended in this turn: descriptor, direction, task and scope. If
    /// such a descriptor turns out to be ready, the log has a `race` line.
    pub(crate) guarded: Vec<(HandleId, Direction, TaskIndex, u64)>,
}

impl Handles {
    pub(crate) fn new(policy: Policy) -> Handles {
        let (table, guarded) = (Vec::new(), Vec::new());
        Handles { policy, table, registered: 0, known: 0, changes: [0; 2], guarded }
    }

    /// Adds a handle for a descriptor.
    pub(crate) fn add(&mut self, handle: HandleId, descriptor: Descriptor) {
        let index = handle.index as usize;
        if index >= self.table.len() {
            self.table.resize_with(index + 1, || None);
        }
        self.known += 1;
        self.table[index] = Some(Handle {
            serial: handle.serial(),
            descriptor,
            waiting: [None; 2],
            ready: [false; 2],
            registered: false,
            was_registered: false,
            closed: false,
            urgent: false,
        });
    }

    #[inline]
    pub(crate) fn get(&mut self, handle: HandleId) -> Option<&mut Handle> {
        let found = self.table.get_mut(handle.index as usize)?.as_mut();
        found.filter(|found| found.serial == handle.serial())
    }

    /// Finds the handle that an event's token names. Returns `None` if the event is stale: its
    /// descriptor is closed, but a duplicate lives on, for example in a child of another thread
    /// between its fork and its exec.
    #[inline]
    pub(crate) fn find_token(&mut self, token: u64) -> Option<(HandleId, &mut Handle)> {
        let index = token as u32;
        let found = self.table.get_mut(index as usize)?.as_mut()?;
        let handle = HandleId::new(index, found.serial);
        (Handle::token(handle) == token).then_some((handle, found))
    }

    /// Returns whether the readiness of a descriptor is remembered, so that a wait is answered at
    /// once.
    pub(crate) fn is_ready(&mut self, handle: HandleId, direction: Direction) -> bool {
        self.get(handle).is_some_and(|found| found.ready[direction as usize])
    }

    /// Returns whether a task waits for a descriptor. O(handles) if none does.
    pub(crate) fn has_waiter(&self) -> bool {
        self.table.iter().flatten().any(|handle| !handle.has_no_waiter())
    }

    /// Lists the handles in the order of their aliases. O(handles).
    pub(crate) fn in_order(&self, names: &Names) -> Vec<(Alias, &Handle)> {
        let handles = (0..).zip(&self.table).filter_map(|(index, handle)| {
            let handle = handle.as_ref()?;
            Some((names.alias(HandleId::new(index, handle.serial)), handle))
        });
        let mut handles: Vec<(Alias, &Handle)> = handles.collect();
        handles.sort_unstable_by_key(|(alias, _)| *alias);
        handles
    }

    fn remove(&mut self, handle: HandleId) {
        if self.get(handle).is_some() {
            self.known -= 1;
            self.table[handle.index as usize] = None;
        }
    }
}

const BOTH: [Direction; 2] = [Direction::Read, Direction::Write];

impl Handles {
    /// Serves the `io` trap: replies at once if readiness is remembered, and parks otherwise.
    /// Registers the descriptor if needed. Returns the change of the registration if the wait
    /// parks, or the reply.
    #[inline]
    pub(crate) fn wait(
        &mut self,
        sched: &mut Sched<impl Machine>,
        task: TaskIndex,
        ticket: Ticket,
        handle: HandleId,
        direction: Direction,
    ) -> Result<Reg, Reply> {
        let side = direction as usize;
        let rule = "rule: a descriptor is registered at the gate before it is waited for";
        let policy = self.policy;
        let found = self.get(handle).expect(rule);
        if found.waiting[side].is_some() {
            return Err(Reply::Busy);
        }
        if mem::take(&mut found.ready[side]) {
            return Err(Reply::Ready(found.take_urgent()));
        }
        if !found.registered || found.closed || policy != Policy::Lazy {
            return self.wait_unusually(sched, task, ticket, handle, direction);
        }
        found.waiting[side] = Some(ticket);
        Ok(Reg::Kept)
    }

    /// Serves the `io` trap for a descriptor that is not registered, or whose end was seen, or
    /// under another policy than [`Policy::Lazy`].
    #[cold]
    fn wait_unusually(
        &mut self,
        sched: &mut Sched<impl Machine>,
        task: TaskIndex,
        ticket: Ticket,
        handle: HandleId,
        direction: Direction,
    ) -> Result<Reg, Reply> {
        let rule = "it was found before";
        let closed = self.get(handle).expect(rule).closed && direction == Direction::Read;
        if closed && self.is_closed_still(sched, handle) {
            return Err(Reply::Ready(self.get(handle).expect(rule).take_urgent()));
        }
        let changed = self.policy == Policy::NextSleep
            && self.keep_or_undefer(sched, task, handle, direction);
        let kept = self.get(handle).expect(rule).registered;
        if !kept && let Err(refused) = self.register(sched, task, handle) {
            return Err(Reply::Refused(refused));
        }
        self.get(handle).expect(rule).waiting[direction as usize] = Some(ticket);
        let reg = if kept { Reg::Kept } else { Reg::New };
        Ok(if changed { Reg::Changed } else { reg })
    }

    /// Returns whether the end of the stream or the error that was seen earlier is still there. An
    /// error is gone once it was read, and a FIFO may get another writer. Without this check, a
    /// task that waits in a loop would never yield.
    #[cold]
    fn is_closed_still(&mut self, sched: &mut Sched<impl Machine>, handle: HandleId) -> bool {
        let found = self.get(handle).expect("it was found before");
        found.closed = sched.machine.is_readable(found.descriptor);
        found.closed
    }

    /// Registers a descriptor that a task is about to wait for.
    #[cold]
    fn register(
        &mut self,
        sched: &mut Sched<impl Machine>,
        task: TaskIndex,
        handle: HandleId,
    ) -> io::Result<()> {
        let found = self.get(handle).expect("it was found before");
        let alias = sched.log.names.alias(handle);
        match sched.machine.register(found.descriptor, Handle::token(handle)) {
            Ok(()) => {
                found.registered = true;
                let again = mem::replace(&mut found.was_registered, true);
                self.registered += 1;
                self.changes[0] += 1;
                let why = if again { Need::Again } else { Need::First };
                emit!(sched, task, Event::Register { alias, why });
                if sched.log.flight.is_some() {
                    sched.log.mark_handle(handle, 0);
                }
                Ok(())
            }
            Err(error) => {
                let text = error.to_string().into();
                announce!(sched, sched.tasks.label(task), Event::Refuse { alias, text });
                Err(error)
            }
        }
    }

    /// Handles the arrival of one descriptor (step 2 of a turn): wakes the waiters, or remembers
    /// the readiness.
    #[inline]
    pub(crate) fn arrive(&mut self, sched: &mut Sched<impl Machine>, arrival: IoEvent) {
        // The handle of a stale event is gone, so its token does not match.
        let Some((handle, found)) = self.find_token(arrival.token) else {
            return;
        };
        found.closed |= arrival.closed;
        found.urgent |= arrival.urgent;
        let before = found.ready;
        let reader = if arrival.readable { found.mark_ready(Direction::Read) } else { None };
        let writer = if arrival.writable { found.mark_ready(Direction::Write) } else { None };
        let news = [0, 1].map(|side| found.ready[side] && !before[side]);
        let nobody = reader.is_none() && writer.is_none();
        let urgent = !nobody && found.take_urgent();
        for (ticket, direction) in [reader, writer].into_iter().zip(BOTH) {
            if let Some(ticket) = ticket {
                log_arrival(sched, handle, direction);
                self.wake(sched, handle, ticket, direction, urgent);
            }
        }
        if nobody {
            let direction = if arrival.readable { Direction::Read } else { Direction::Write };
            self.log_race(sched, handle, direction);
        }
        for (direction, is_news) in BOTH.into_iter().zip(news) {
            log_readiness(sched, handle, direction, is_news);
        }
    }

    /// Wakes a waiter, and keeps or ends the registration as the policy requires.
    #[inline(always)]
    fn wake(
        &mut self,
        sched: &mut Sched<impl Machine>,
        handle: HandleId,
        ticket: Ticket,
        direction: Direction,
        urgent: bool,
    ) {
        if self.policy == Policy::Lazy {
            sched.complete(ticket, Reply::Ready(urgent));
            return;
        }
        let task = sched.gate.records().waits.get(ticket).map(|wait| wait.task);
        sched.complete(ticket, Reply::Ready(urgent));
        if let Some(task) = task {
            self.leave_at_wake(sched, handle, task, direction);
        }
    }

    /// Ends a registration at a wake, or notes that the task may have to end it later, as the
    /// policy requires.
    #[cold]
    fn leave_at_wake(
        &mut self,
        sched: &mut Sched<impl Machine>,
        handle: HandleId,
        task: TaskIndex,
        direction: Direction,
    ) {
        if self.policy == Policy::NextSleep {
            if deferred(sched, task).is_some_and(|(other, _)| other != handle) {
                // The task was woken for two descriptors at once: end the registration of the
                // first.
                self.undefer(sched, task, Why::Other);
            }
            sched.tasks[task].rare().deferred = Some((handle, direction));
        } else if self.get(handle).is_some_and(|it| it.has_no_waiter()) {
            self.unregister(sched, handle, Why::Wake);
        }
    }

    /// Passes readiness that a woken task did not read to the next waiter, or remembers the
    /// readiness.
    pub(crate) fn ready_again(
        &mut self,
        sched: &mut Sched<impl Machine>,
        handle: HandleId,
        direction: Direction,
        urgent: bool,
    ) {
        let Some(found) = self.get(handle) else { return };
        let before = found.ready;
        match found.mark_ready(direction) {
            Some(ticket) => self.wake(sched, handle, ticket, direction, urgent),
            None => {
                found.urgent |= urgent;
                let is_news = found.ready != before;
                log_readiness(sched, handle, direction, is_news);
            }
        }
    }

    /// Logs a race if a guard has ended a wait in this turn and the descriptor is ready now.
    fn log_race(&self, sched: &mut Sched<impl Machine>, handle: HandleId, direction: Direction) {
        let is_it =
            |lost: &&(HandleId, Direction, TaskIndex, u64)| lost.0 == handle && lost.1 == direction;
        if let Some(&(_, _, task, scope)) = self.guarded.iter().find(is_it) {
            let (winner, loser) = ("timeout".into(), "value".into());
            emit!(sched, task, Event::Race { winner, loser, scope });
        }
    }

    /// Ends the registration of a handle's descriptor with the poller, if there is a registration.
    fn unregister(&mut self, sched: &mut Sched<impl Machine>, handle: HandleId, why: Why) {
        let Some(found) = self.get(handle) else { return };
        if !mem::take(&mut found.registered) {
            return;
        }
        let descriptor = found.descriptor;
        self.registered -= 1;
        self.changes[1] += 1;
        // An error means that the system has dropped the registration already.
        let _ = sched.machine.deregister(descriptor);
        let alias = sched.log.names.alias(handle);
        emit_for!(sched, KERNEL, Event::Unregister { alias, why });
    }

    /// Removes an interrupted or withdrawn wait from its handle.
    pub(crate) fn stop_waiting(
        &mut self,
        sched: &mut Sched<impl Machine>,
        handle: HandleId,
        direction: Direction,
    ) {
        let Some(found) = self.get(handle) else { return };
        found.waiting[direction as usize] = None;
        let has_no_waiter = found.has_no_waiter();
        if self.policy != Policy::Lazy && has_no_waiter {
            self.unregister(sched, handle, Why::Interrupt);
        }
    }

    /// Keeps or ends the deferred registration of a task that begins a wait, under policy
    /// NextSleep: a wait for the same direction keeps it, and any other wait ends it. Returns
    /// whether it was ended.
    fn keep_or_undefer(
        &mut self,
        sched: &mut Sched<impl Machine>,
        task: TaskIndex,
        handle: HandleId,
        direction: Direction,
    ) -> bool {
        let deferred = deferred(sched, task);
        if deferred == Some((handle, direction)) {
            sched.tasks[task].rare().deferred = None;
            return false;
        }
        self.undefer(sched, task, Why::Other);
        deferred.is_some()
    }

    /// Ends the registration that the task's last wake left in place, under policy NextSleep.
    pub(crate) fn undefer(&mut self, sched: &mut Sched<impl Machine>, task: TaskIndex, why: Why) {
        let Some((handle, _)) = deferred(sched, task) else { return };
        sched.tasks[task].rare().deferred = None;
        if self.get(handle).is_some_and(|it| it.has_no_waiter()) {
            self.unregister(sched, handle, why);
        }
    }

    /// Closes a handle: ends its waits and its registration. The handle keeps its index until its
    /// descriptor is closed.
    pub(crate) fn close(&mut self, sched: &mut Sched<impl Machine>, handle: HandleId) {
        if self.get(handle).is_some() {
            self.end_waits(sched, handle);
            self.unregister(sched, handle, Why::Close);
        }
    }

    fn end_waits(&mut self, sched: &mut Sched<impl Machine>, handle: HandleId) {
        for direction in BOTH {
            let Some(found) = self.get(handle) else { return };
            if let Some(ticket) = found.waiting[direction as usize].take() {
                sched.complete(ticket, Reply::Closed);
            }
        }
    }

    /// Removes a handle: ends its waits, then closes its descriptor.
    pub(crate) fn release(
        &mut self,
        sched: &mut Sched<impl Machine>,
        handle: HandleId,
        owner: Option<OwnedFd>,
        sole: bool,
    ) {
        self.end_waits(sched, handle);
        let Some(found) = self.get(handle) else { return };
        if found.registered && sole {
            // Closing the last descriptor of a file also removes it from the poller.
            let descriptor = found.descriptor;
            self.registered -= 1;
            let alias = sched.log.names.alias(handle);
            emit_for!(sched, KERNEL, Event::Unregister { alias, why: Why::Close });
            sched.machine.forget(descriptor);
        } else if found.registered {
            self.unregister(sched, handle, Why::Close);
        } else {
            let alias = sched.log.names.alias(handle);
            emit_for!(sched, KERNEL, Event::Close { alias });
        }
        drop_quietly(owner);
        self.remove(handle);
        sched.log.names.remove_handle(handle);
        sched.gate.free_handle(handle);
    }
}

#[inline]
fn log_arrival(sched: &mut Sched<impl Machine>, handle: HandleId, direction: Direction) {
    emit_for!(sched, KERNEL, {
        let alias = sched.log.names.alias(handle);
        Event::Arrive(trace::Arrival::Io { alias, direction })
    });
}

/// Logs readiness that no task waited for, unless it was remembered already.
fn log_readiness(
    sched: &mut Sched<impl Machine>,
    handle: HandleId,
    direction: Direction,
    news: bool,
) {
    if news {
        let alias = sched.log.names.alias(handle);
        emit_for!(sched, KERNEL, Event::Remember { alias, direction });
        if sched.log.flight.is_some() {
            sched.log.mark_handle(handle, 1 + direction as usize);
        }
    }
}

fn deferred(sched: &Sched<impl Machine>, task: TaskIndex) -> Option<(HandleId, Direction)> {
    sched.tasks[task].rare.as_ref()?.deferred
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_an_idle_connection_does_not_grow() {
        assert_eq!(size_of::<Option<Handle>>(), 36);
    }
}
