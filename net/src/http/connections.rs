//! The open connections of a server: the state of each, and which of them close when there is no
//! room or when the server stops.
//!
//! This module knows a connection by its deadline. It must not touch a stream.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use traps::shutdown::Hold;
use traps::{ConnectionDeadline, Time};

use super::limits::Caps;
use crate::limits::{DRAIN_WAIT, FIRST_BYTE};

/// The state of a connection. The head of `connection` draws the states, and says what ends each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// The connection waits for its handshake, or for the first byte of its first request.
    New,
    /// The connection waits for the first byte of its next request.
    Idle,
    /// The connection was told to close, to make room for another, while it was new or idle.
    Leaving,
    /// The connection reads a head.
    #[default]
    Head,
    /// The connection waits for the rest of a head.
    Partial,
    /// The connection has a request: its handler runs, its body comes, or its response goes out.
    Request,
    /// The connection waits for a piece of a body.
    Body,
    /// The connection waits for room in memory for more of a body.
    Room,
    /// The connection waits for the peer to take some of what was written.
    Write,
    /// The connection lingers because no request came. It owes no further response.
    Silent,
    /// The connection lingers after the last response, because the peer asked for the end or is
    /// lost.
    Asked,
    /// The connection lingers after the last response, and the peer may still be sending.
    Sending,
    /// The connection is one too many. It gets 503, whatever the client requests, and lingers.
    TurnedAway,
    /// The connection is over.
    Closed,
}

const STATES: usize = State::Closed as usize + 1;

/// The progress of a response that ends with the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum UntilClose {
    /// No response ends with the connection, or all bytes of that response are out.
    #[default]
    Out,
    /// The response has begun, and is not complete.
    Started,
    /// The response is complete, but may still have bytes to send.
    Complete,
}

/// The open connections of a server.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    entries: RefCell<Vec<Rc<Entry>>>,
    /// The number of connections in each state.
    counts: [Cell<usize>; STATES],
    draining: Cell<bool>,
    /// The end of the grace of a drain. Set by the first look at the clock.
    grace: Cell<Option<Time>>,
    /// The number of connections so far, closed ones included.
    numbers: Cell<u64>,
    pub(crate) caps: Caps,
}

/// The entry of one connection in the list of open connections.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// The deadline of all phases. The task of the connection makes it.
    deadline: OnceCell<ConnectionDeadline>,
    pub(crate) state: Cell<State>,
    place: Cell<u32>,
    /// The number of the connection, which names it in the log. Numbers begin at 1.
    pub(crate) number: u64,
    pub(crate) until_close: Cell<UntilClose>,
    /// Whether the connection closes as soon as it has nothing left to do.
    pub(crate) leaves: Cell<bool>,
    /// Whether so much was written that the peer may lack some of it.
    pub(crate) much: Cell<bool>,
    /// The number of requests on this connection so far.
    requests: Cell<u64>,
    /// The hold that delays the shutdown, as long as the connection has work that should finish.
    hold: Held,
}

/// The hold of a connection, until the connection lets it go.
#[derive(Default)]
struct Held(Cell<Hold>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// A wait of a connection under its deadline. Dropping it ends the wait.
pub(crate) struct Shown<'w> {
    open: &'w Connections,
    entry: &'w Entry,
    before: State,
    during: State,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        // The connection may have been told to leave in the meantime.
        if self.entry.state.get() == self.during {
            self.open.enter(self.entry, self.before);
        }
    }
}

impl Connections {
    /// Adds the entry of a new connection, which its owner must [remove](Connections::remove).
    pub(crate) fn add(&self) -> Rc<Entry> {
        let number = self.numbers.get() + 1;
        self.numbers.set(number);
        let mut entries = self.entries.borrow_mut();
        let place = u32::try_from(entries.len()).expect("there are fewer descriptors");
        let entry = Rc::new(Entry { number, place: Cell::new(place), ..Entry::default() });
        self.count(State::Head).set(self.count(State::Head).get() + 1);
        entries.push(entry.clone());
        entry
    }

    /// Removes the entry of a connection that is over.
    pub(crate) fn remove(&self, entry: &Entry) {
        let mut entries = self.entries.borrow_mut();
        let place = entry.place.get();
        entries.swap_remove(place as usize);
        if let Some(moved) = entries.get(place as usize) {
            moved.place.set(place);
        }
        self.enter(entry, State::Closed);
        if let Some(deadline) = entry.deadline.get() {
            self.caps.sum_up(deadline.now(), entries.is_empty() && self.is_draining());
        }
    }

    /// The number of connections in `state`.
    fn count(&self, state: State) -> &Cell<usize> {
        &self.counts[state as usize]
    }

    /// Moves a connection to its next state.
    #[inline]
    pub(crate) fn enter(&self, entry: &Entry, state: State) {
        let before = self.count(entry.state.replace(state));
        before.set(before.get() - 1);
        self.count(state).set(self.count(state).get() + 1);
    }

    /// Begins a wait in the state `during`, under the deadline of the connection. A connection that
    /// leaves or was turned away keeps its state.
    pub(crate) fn wait<'w>(&'w self, entry: &'w Entry, during: State) -> Shown<'w> {
        let before = entry.state.get();
        if !matches!(before, State::Leaving | State::TurnedAway) {
            self.enter(entry, during);
        }
        Shown { open: self, entry, before, during }
    }

    /// The time until which a drain allows a wait in `state` that began at `begun`.
    pub(crate) fn bound(&self, state: State, begun: Time) -> Time {
        match (self.is_draining(), state) {
            (false, _) => Time::NEVER,
            (true, State::Partial) => self.end_of_grace(begun),
            (true, _) => begun.max(self.end_of_grace(begun)) + DRAIN_WAIT,
        }
    }

    /// The number of connections being served.
    pub(crate) fn serving(&self) -> usize {
        let others = self.count(State::Leaving).get() + self.count(State::TurnedAway).get();
        self.entries.borrow().len() - others
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Whether the grace of a drain is over, by the clock of `entry`.
    #[inline]
    pub(crate) fn is_after_grace(&self, entry: &Entry) -> bool {
        self.is_draining() && {
            let now = entry.now();
            now > self.end_of_grace(now)
        }
    }

    fn end_of_grace(&self, now: Time) -> Time {
        let end = self.grace.get().unwrap_or(now + FIRST_BYTE);
        self.grace.set(Some(end));
        end
    }

    /// Begins a drain: ends the wait of each idle connection, and shortens all other waits for a
    /// peer.
    #[track_caller]
    pub(crate) fn drain(&self) {
        let is_first = !self.draining.replace(true);
        self.caps.sum_up(self.now().unwrap_or_default(), true);
        for entry in &*self.entries.borrow() {
            let Some(deadline) = entry.deadline.get() else { continue };
            let grace = self.end_of_grace(deadline.now());
            match entry.state.get() {
                State::New if is_first => {
                    deadline.arm((deadline.now() + FIRST_BYTE).min(deadline.until()));
                }
                State::Idle => deadline.fire(),
                state @ (State::Partial | State::Body | State::Room | State::Write) if is_first => {
                    deadline.arm(self.bound(state, grace).min(deadline.until()));
                }
                _ => {}
            }
        }
    }

    /// Tells a waiting connection to close, to make room for another. Returns the closing
    /// connection, if there is one.
    ///
    /// The first choice is the new connection that has waited longest, if it has waited for more
    /// than half a second. `span` is the whole time that it has for its first byte. The second
    /// choice is the connection that has been idle longest. The last choice is the longest new one
    /// of all: the bytes of newer ones may be on their way.
    #[track_caller]
    pub(crate) fn close_one_waiting(&self, span: Duration) -> Option<Rc<Entry>> {
        self.close_one(State::New, span.saturating_sub(FIRST_BYTE))
            .or_else(|| self.close_one(State::Idle, Duration::MAX))
            .or_else(|| self.close_one(State::New, Duration::MAX))
    }

    /// Tells the connection that has been in `state` longest to close, if at most `left` of its
    /// wait remains. Returns that connection, if there is one.
    #[track_caller]
    fn close_one(&self, state: State, left: Duration) -> Option<Rc<Entry>> {
        // In a drain, new connections have little time left. They are not chosen.
        if self.count(state).get() == 0 || state == State::New && self.is_draining() {
            return None;
        }
        let entries = self.entries.borrow();
        // All have the same limit, so the wait that ends first has lasted longest.
        let waiting = entries.iter().filter(|entry| entry.state.get() == state);
        let longest = waiting.min_by_key(|entry| entry.until())?;
        if longest.until().since(longest.now()) > left {
            return None;
        }
        self.enter(longest, State::Leaving);
        longest.leaves.set(true);
        longest.deadline().fire();
        Some(longest.clone())
    }

    /// Closes one connection because the process has run out of descriptors, unless one is closing
    /// already. The choice is the same as at the connection limit. If no connection is waiting, a
    /// refused peer that does not read its response is closed.
    #[track_caller]
    pub(crate) fn make_room(&self, span: Duration) {
        if self.count(State::Leaving).get() == 0 {
            let _ = self.close_one_waiting(span).is_some() || self.close_refused(1);
        }
    }

    fn now(&self) -> Option<Time> {
        let entries = self.entries.borrow();
        entries.iter().find_map(|entry| entry.deadline.get()).map(ConnectionDeadline::now)
    }

    /// Ends the waits of up to `most` refused connections. Returns whether there was such a
    /// connection.
    #[track_caller]
    fn close_refused(&self, most: usize) -> bool {
        let entries = self.entries.borrow();
        let refused = entries.iter().filter(|entry| entry.state.get() == State::TurnedAway);
        let left = refused.filter_map(|entry| entry.deadline.get()).take(most);
        left.map(ConnectionDeadline::fire).count() > 0
    }

    /// Marks a connection as refused, because it is one too many. If `most` refused connections are
    /// open already, their waits end.
    #[track_caller]
    pub(crate) fn refuse(&self, entry: &Entry, most: usize) {
        if entry.state.get() == State::TurnedAway {
            return;
        }
        if self.count(State::TurnedAway).get() >= most {
            self.close_refused(usize::MAX);
        }
        self.enter(entry, State::TurnedAway);
    }
}

impl Entry {
    /// Stores the deadline, which the task has made.
    pub(crate) fn set_deadline(&self, deadline: ConnectionDeadline) {
        self.deadline.set(deadline).expect("a connection has one deadline");
    }

    pub(crate) fn has_deadline(&self) -> bool {
        self.deadline.get().is_some()
    }

    pub(crate) fn deadline(&self) -> &ConnectionDeadline {
        self.deadline.get().expect("a connection begins by making its deadline")
    }

    pub(crate) fn now(&self) -> Time {
        self.deadline().now()
    }

    /// The point in time for which the deadline was armed last.
    pub(crate) fn until(&self) -> Time {
        self.deadline.get().map_or(Time::NEVER, ConnectionDeadline::until)
    }

    /// Delays the shutdown until the connection [lets go](Entry::let_go) or ends.
    pub(crate) fn hold(&self, hold: Hold) {
        self.hold.0.set(hold);
    }

    /// Lets the shutdown continue, because no response to a request is left to send.
    pub(crate) fn let_go(&self) {
        drop(self.hold.0.take());
    }

    /// Counts a request. Returns the number so far.
    #[inline]
    pub(crate) fn count_request(&self) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.requests.get()
    }

    /// Whether the connection has had a request.
    #[inline]
    pub(crate) fn has_asked(&self) -> bool {
        self.requests.get() > 0
    }

    /// Notes that all gathered bytes are out, so a complete response has no bytes left to send.
    pub(crate) fn flushed(&self) {
        if self.until_close.get() == UntilClose::Complete {
            self.until_close.set(UntilClose::Out);
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Kernel, Sim};
    use traps::{connection_deadline, sleep};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn on_sim(test: impl AsyncFnOnce(&Connections)) {
        let mut kernel = Kernel::new(Sim::new());
        kernel.run(test(&Connections::default())).unwrap();
        kernel.shutdown().unwrap();
    }

    /// Opens a connection in that state, whose wait ends after `span`.
    async fn waits(open: &Connections, state: State, span: Duration) -> Rc<Entry> {
        let entry = open.add();
        entry.set_deadline(connection_deadline().await);
        open.enter(&entry, state);
        entry.deadline().arm(span);
        entry
    }

    /// The numbers of the connections that close, one for each newcomer, until none is left.
    fn closed(open: &Connections) -> Vec<u64> {
        std::iter::from_fn(|| Some(open.close_one_waiting(10 * SECOND)?.number)).collect()
    }

    /// Whether the wait of a connection is over.
    fn is_over(entry: &Entry) -> bool {
        entry.until() <= entry.now()
    }

    #[test]
    fn the_long_silent_close_first_then_the_idle_and_last_those_that_have_just_come() {
        on_sim(async |open| {
            let _silent = waits(open, State::New, 10 * SECOND).await;
            sleep(SECOND).await.unwrap();
            let _fresh = waits(open, State::New, 10 * SECOND).await;
            let _idle = waits(open, State::Idle, 5 * SECOND).await;
            sleep(SECOND / 100).await.unwrap();
            let _busy = waits(open, State::Request, 5 * SECOND).await;
            let _later = waits(open, State::Idle, 5 * SECOND).await;
            let _fresher = waits(open, State::New, 10 * SECOND).await;
            assert_eq!(closed(open), [1, 3, 5, 2, 6]);
        });
    }

    #[test]
    fn a_drain_shortens_the_wait_of_a_new_connection_once_and_lengthens_none() {
        on_sim(async |open| {
            let soon = waits(open, State::New, SECOND / 4).await;
            let late = waits(open, State::New, 10 * SECOND).await;
            let idle = waits(open, State::Idle, 10 * SECOND).await;
            let busy = waits(open, State::Request, 10 * SECOND).await;
            open.drain();
            assert_eq!(soon.until(), soon.now() + SECOND / 4);
            assert_eq!(late.until(), late.now() + SECOND / 2);
            assert_eq!(busy.until(), busy.now() + 10 * SECOND);
            assert!(is_over(&idle));
            // All of them belong to this task, which it would interrupt.
            idle.deadline().disarm();
            let until = late.until();
            sleep(SECOND / 5).await.unwrap();
            open.drain();
            assert_eq!(late.until(), until, "it has half a second in all");
        });
    }

    #[test]
    fn a_drain_closes_no_new_connection_for_another_one() {
        on_sim(async |open| {
            let _new = waits(open, State::New, 10 * SECOND).await;
            let _idle = waits(open, State::Idle, 10 * SECOND).await;
            sleep(SECOND).await.unwrap();
            open.drain();
            assert_eq!(closed(open), [2]);
        });
    }

    #[test]
    fn the_grace_of_a_drain_begins_with_the_drain_and_its_last_instant_is_in_it() {
        on_sim(async |open| {
            let entry = waits(open, State::Request, 10 * SECOND).await;
            open.drain();
            sleep(SECOND / 2).await.unwrap();
            assert!(!open.is_after_grace(&entry));
            sleep(Duration::from_micros(1)).await.unwrap();
            assert!(open.is_after_grace(&entry));
        });
    }

    #[test]
    fn descriptors_are_freed_one_by_one_and_a_refused_peer_is_the_last_to_go() {
        on_sim(async |open| {
            let idle = waits(open, State::Idle, 5 * SECOND).await;
            let new = waits(open, State::New, 10 * SECOND).await;
            let refused = [
                waits(open, State::TurnedAway, 10 * SECOND).await,
                waits(open, State::TurnedAway, 10 * SECOND).await,
            ];
            for _ in 0..2 {
                open.make_room(10 * SECOND);
                assert!(is_over(&idle) && !is_over(&new), "one is closing already");
            }
            open.remove(&idle);
            open.make_room(10 * SECOND);
            assert!(is_over(&new) && !refused.iter().any(|entry| is_over(entry)));
            open.remove(&new);
            open.make_room(10 * SECOND);
            assert_eq!(refused.iter().filter(|entry| is_over(entry)).count(), 1);
        });
    }

    #[test]
    fn one_refused_connection_too_many_ends_the_waits_of_those_before_it() {
        on_sim(async |open| {
            let mut refused = Vec::new();
            for wanted in [0, 0, 2, 2] {
                let entry = waits(open, State::Head, 10 * SECOND).await;
                open.refuse(&entry, 2);
                refused.push(entry);
                assert_eq!(refused.iter().filter(|entry| is_over(entry)).count(), wanted);
                if wanted > 0 {
                    // They close.
                    refused.drain(..2).for_each(|entry| open.remove(&entry));
                    break;
                }
            }
            assert_eq!(open.count(State::TurnedAway).get(), 1);
        });
    }

    #[test]
    fn those_that_leave_and_those_that_are_refused_are_not_served() {
        on_sim(async |open| {
            let _busy = waits(open, State::Request, SECOND).await;
            let _idle = waits(open, State::Idle, SECOND).await;
            let _refused = waits(open, State::TurnedAway, SECOND).await;
            assert_eq!(open.serving(), 2);
            assert_eq!(closed(open), [2]);
            assert_eq!(open.serving(), 1);
        });
    }
}
