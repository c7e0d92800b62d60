//! The open connections of a server: the state of each, and the choice of the connections that
//! close when there is no room or when the server stops.
//!
//! This module closes a connection through its deadline. It must not touch a stream.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use traps::shutdown::Hold;
use traps::{ConnectionDeadline, Time};

use crate::http::guard::caps::Caps;
use crate::http::guard::queues::{Queue, Queues};
use crate::http::state::State;
use crate::limits::{DRAIN_WAIT, FIRST_BYTE, REFUSED_CONNECTIONS, SLOW};

impl State {
    /// Whether a connection in this state does not count as served.
    #[inline]
    fn is_unserved(self) -> bool {
        matches!(self, State::Leaving | State::FULL)
    }

    /// The queue of the connections in this state.
    #[inline]
    fn queue(self) -> Option<Queue> {
        Some(match self {
            State::New => Queue::New,
            State::Idle => Queue::Idle,
            State::Partial => Queue::Partial,
            State::Body => Queue::Body,
            State::Room => Queue::Room,
            State::Write => Queue::Write,
            State::FULL => Queue::Full,
            _ => return None,
        })
    }
}

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
    /// The entries that wait, the longest wait first.
    queues: RefCell<Queues>,
    /// The number of connections that were told to leave.
    leaving: Cell<usize>,
    /// The number of connections that are over the limit, or had to give way.
    refused: Cell<usize>,
    draining: Cell<bool>,
    /// The end of the grace of a drain. Set when the clock is first read.
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
    /// Whether enough was written that the peer may not have received all of it.
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

impl Shown<'_> {
    /// Whether the connection was chosen to give way during this wait.
    pub(crate) fn is_cut(&self) -> bool {
        self.before != State::FULL && self.entry.gives_way()
    }
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
        entries.push(entry.clone());
        self.queues.borrow_mut().add();
        entry
    }

    /// Removes the entry of a connection that is over.
    pub(crate) fn remove(&self, entry: &Entry) {
        let mut entries = self.entries.borrow_mut();
        let place = entry.place.get();
        entries.swap_remove(place as usize);
        self.queues.borrow_mut().swap_remove(place);
        if let Some(moved) = entries.get(place as usize) {
            moved.place.set(place);
        }
        self.enter(entry, State::Closed);
        if let Some(deadline) = entry.deadline.get() {
            self.caps.sum_up(deadline.now(), entries.is_empty() && self.is_draining());
        }
    }

    /// Counts a change between a state that is served and one that is not.
    #[cold]
    fn count(&self, before: State, state: State) {
        for (counter, counted) in [(&self.leaving, State::Leaving), (&self.refused, State::FULL)] {
            let (less, more) = (before == counted, state == counted);
            counter.set(counter.get() + usize::from(more) - usize::from(less));
        }
    }

    /// Moves a connection to its next state. Always inlined, because little of it is left if the
    /// caller knows the state.
    #[inline(always)]
    pub(crate) fn enter(&self, entry: &Entry, state: State) {
        self.enter_since(entry, state, Time::ZERO);
    }

    /// Moves a connection to its next state, a wait that begins at `since`.
    #[inline(always)]
    fn enter_since(&self, entry: &Entry, state: State, since: Time) {
        let before = entry.state.replace(state);
        // `before` is compared only if it can matter, because that is the dearer comparison.
        if state.is_unserved() || self.leaving.get() + self.refused.get() > 0 {
            self.count(before, state);
        }
        if let Some(queue) = state.queue() {
            self.queues.borrow_mut().push(queue, entry.place.get(), since);
        }
    }

    /// Begins a wait in the state `during`, under the deadline of the connection. A connection that
    /// leaves or was refused keeps its state.
    pub(crate) fn wait<'w>(&'w self, entry: &'w Entry, during: State) -> Shown<'w> {
        let before = entry.state.get();
        if !matches!(before, State::Leaving | State::FULL) {
            self.enter_since(entry, during, entry.now());
        }
        Shown { open: self, entry, before, during }
    }

    /// The end of the time that a drain allows for a wait in `state` that began at `begun`.
    pub(crate) fn bound(&self, state: State, begun: Time) -> Time {
        match (self.is_draining(), state) {
            (false, _) => Time::NEVER,
            (true, State::Partial) => self.end_of_grace(begun),
            (true, _) => begun.max(self.end_of_grace(begun)) + DRAIN_WAIT,
        }
    }

    /// The number of connections being served.
    pub(crate) fn serving(&self) -> usize {
        let others = self.leaving.get() + self.refused.get();
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

    /// Makes room for another connection. Returns the connection that gives way, if there is one.
    ///
    /// The order of the choice (within each kind, the connection that has waited longest):
    ///
    /// 1. a new connection that has waited for half a second for its first byte;
    /// 2. a connection that waits for its next request;
    /// 3. a connection that waits for the rest of a head;
    /// 4. a connection that has waited for a while for a piece of a body, for room in memory, or
    ///    for its peer to take some of a response;
    /// 5. any new connection: its bytes may be on their way.
    ///
    /// `span` is the whole time that a new connection has for its first byte. The first two kinds
    /// and the last close without a response. The others get 503, if their response has not begun.
    #[track_caller]
    pub(crate) fn give_way(&self, span: Duration) -> Option<Rc<Entry>> {
        self.close_waiting(span).or_else(|| self.cut_waiting()).or_else(|| self.close_new(None))
    }

    /// Closes a connection of the first two choices.
    fn close_waiting(&self, span: Duration) -> Option<Rc<Entry>> {
        let idle = || self.first(State::Idle).map(|(entry, _)| self.leave(entry));
        self.close_new(Some(span.saturating_sub(FIRST_BYTE))).or_else(idle)
    }

    /// Closes the new connection that has waited longest, if at most `left` of its wait remains.
    fn close_new(&self, left: Option<Duration>) -> Option<Rc<Entry>> {
        // In a drain, new connections have little time left. They are not chosen.
        let (entry, _) = self.first(State::New).filter(|_| !self.is_draining())?;
        let rest = entry.until().since(entry.now());
        left.is_none_or(|left| rest <= left).then(|| self.leave(entry))
    }

    fn leave(&self, entry: Rc<Entry>) -> Rc<Entry> {
        self.enter(&entry, State::Leaving);
        entry.leaves.set(true);
        entry.deadline().fire();
        entry
    }

    /// Ends the wait of the connection that has made the least recent progress with its request.
    fn cut_waiting(&self) -> Option<Rc<Entry>> {
        let waits = [
            (State::Partial, Duration::ZERO),
            (State::Body, SLOW),
            (State::Room, SLOW),
            // A slow reader makes progress in large steps.
            (State::Write, DRAIN_WAIT),
        ];
        let cut = waits.into_iter().find_map(|(state, span)| {
            let (entry, since) = self.first(state)?;
            (entry.now().since(since) >= span).then_some(entry)
        });
        // In a drain, these waits have little time left.
        let entry = cut.filter(|_| !self.is_draining())?;
        self.refuse(&entry, REFUSED_CONNECTIONS);
        entry.leaves.set(true);
        entry.deadline().fire();
        Some(entry)
    }

    /// The connection that has waited longest in `state`, and the time at which its wait began.
    fn first(&self, state: State) -> Option<(Rc<Entry>, Time)> {
        let queue = state.queue().expect("a queue for each wait");
        let (entries, mut queues) = (self.entries.borrow(), self.queues.borrow_mut());
        while let Some((place, since)) = queues.first(queue) {
            let entry = &entries[place as usize];
            if entry.state.get() == state {
                return Some((entry.clone(), since));
            }
            // Its wait was already over.
            queues.leave(place);
        }
        None
    }

    /// Ends one connection because the process has run out of descriptors, unless one is closing
    /// already. The choice is the same as at the connection limit, except that refused peers that
    /// do not read their response are chosen before any others are refused.
    #[track_caller]
    pub(crate) fn make_room(&self, span: Duration) {
        if self.leaving.get() == 0 {
            let _ = self.close_waiting(span).is_some()
                || self.close_refused(1)
                || self.cut_waiting().is_some()
                || self.close_new(None).is_some();
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
        let most = most.min(self.refused.get());
        for _ in 0..most {
            let Some((entry, _)) = self.first(State::FULL) else { break };
            entry.deadline.get().map(ConnectionDeadline::fire);
            // The next call must choose another connection.
            self.enter(&entry, State::FULL);
        }
        most > 0
    }

    /// Marks a connection as refused, because it is over the limit. If `most` refused connections
    /// are already open, their waits end.
    #[track_caller]
    pub(crate) fn refuse(&self, entry: &Entry, most: usize) {
        if entry.state.get() == State::FULL {
            return;
        }
        if self.refused.get() >= most {
            self.close_refused(usize::MAX);
        }
        self.enter(entry, State::FULL);
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

    /// The time for which the deadline was last armed.
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

    /// Whether the connection must end for another one, because it is over the limit or was chosen
    /// to give way.
    pub(crate) fn gives_way(&self) -> bool {
        self.state.get() == State::FULL
    }

    #[inline]
    pub(crate) fn count_request(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// The number of requests so far.
    #[inline]
    pub(crate) fn requests(&self) -> u64 {
        self.requests.get()
    }

    /// Whether the connection has had a request.
    #[inline]
    pub(crate) fn has_asked(&self) -> bool {
        self.requests() > 0
    }

    /// Notes that all gathered bytes have been sent, so a complete response has no bytes left to
    /// send.
    pub(crate) fn flushed(&self) {
        if self.until_close.get() == UntilClose::Complete {
            self.until_close.set(UntilClose::Out);
        }
    }
}

#[cfg(test)]
mod tests {
    use kernel::{Kernel, Sim};
    use traps::{connection_deadline, sleep, spawn};

    use super::*;
    use crate::http::handler::Hello;
    use crate::http::{Config, serve_connection};
    use crate::pipe::duplex;
    use crate::stream::Stream;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn bytes_of_the_turn_in_which_a_place_is_given_away_come_too_late() {
        let response = Kernel::new(Sim::new()).run(async {
            let config = Rc::new(Config::default());
            let (mut client, server) = duplex(1024);
            let shared = config.clone();
            let serving = async move { serve_connection(server, &Hello, &shared).await };
            let mut serving = spawn("server", serving).await;
            client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            sleep(SECOND).await.unwrap();
            // The server's wait has its bytes, but its task has not run.
            client.write_all(b"Host: a\r\n\r\n").await.unwrap();
            config.open.make_room(SECOND);
            let mut response = Vec::new();
            client.shutdown().unwrap();
            client.read_to_end(&mut response, 1024).await.unwrap();
            serving.join().await.unwrap().unwrap();
            String::from_utf8(response).unwrap()
        });
        assert!(response.as_deref().unwrap().starts_with("HTTP/1.1 503 "), "{response:?}");
    }

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

    /// The numbers of the connections that close, one for each new connection, until none is left.
    fn closed(open: &Connections) -> Vec<u64> {
        std::iter::from_fn(|| Some(open.give_way(10 * SECOND)?.number)).collect()
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
    fn a_head_gives_way_then_a_body_a_response_and_at_the_limit_none_that_is_making_progress() {
        on_sim(async |open| {
            let begin = async |state| {
                let entry = waits(open, State::Request, 10 * SECOND).await;
                let shown = open.wait(&entry, state);
                // It waits as long as the entry exists.
                std::mem::forget(shown);
                entry
            };
            let bodies = [begin(State::Body).await, begin(State::Body).await];
            let _room = begin(State::Room).await;
            let _write = begin(State::Write).await;
            sleep(SECOND).await.unwrap();
            let _slow_write = begin(State::Write).await;
            sleep(SECOND).await.unwrap();
            let heads = [begin(State::Partial).await, begin(State::Partial).await];
            let _busy = waits(open, State::Request, SECOND).await;
            let _new = waits(open, State::New, 10 * SECOND).await;
            let _idle = waits(open, State::Idle, 5 * SECOND).await;
            // A byte comes.
            for entry in [&bodies[0], &heads[0]] {
                let state = entry.state.get();
                open.enter(entry, State::Request);
                std::mem::forget(open.wait(entry, state));
            }
            assert_eq!(closed(open), [10, 7, 6, 2, 3, 4, 9]);
            assert_eq!(open.serving(), 3, "the fast body, the fast response, the busy one");
            assert_eq!(open.refused.get(), 5);
        });
    }

    #[test]
    fn in_a_drain_no_wait_with_a_bound_of_its_own_gives_way() {
        on_sim(async |open| {
            let entry = waits(open, State::Partial, 10 * SECOND).await;
            sleep(SECOND).await.unwrap();
            open.drain();
            assert_eq!(closed(open), [0; 0]);
            open.make_room(10 * SECOND);
            assert_eq!(entry.state.get(), State::Partial);
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
            // All of them belong to this task, so firing one would interrupt it.
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
    fn descriptors_are_freed_one_by_one_and_a_refused_peer_goes_before_one_to_be_refused() {
        on_sim(async |open| {
            let idle = waits(open, State::Idle, 5 * SECOND).await;
            let new = waits(open, State::New, 10 * SECOND).await;
            let partial = waits(open, State::Partial, 10 * SECOND).await;
            let refused = [
                waits(open, State::FULL, 10 * SECOND).await,
                waits(open, State::FULL, 10 * SECOND).await,
            ];
            for _ in 0..2 {
                open.make_room(10 * SECOND);
                assert!(is_over(&idle) && !is_over(&new), "one is closing already");
            }
            open.remove(&idle);
            for (number, entry) in refused.iter().enumerate() {
                open.make_room(10 * SECOND);
                assert_eq!(refused.iter().filter(|entry| is_over(entry)).count(), number + 1);
                assert!(is_over(entry) && !is_over(&partial));
            }
            refused.iter().for_each(|entry| open.remove(entry));
            open.make_room(10 * SECOND);
            assert!(is_over(&partial) && !is_over(&new));
            open.remove(&partial);
            open.make_room(10 * SECOND);
            assert!(is_over(&new));
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
            assert_eq!(open.refused.get(), 1);
        });
    }

    #[test]
    fn those_that_leave_and_those_that_are_refused_are_not_served() {
        on_sim(async |open| {
            let _busy = waits(open, State::Request, SECOND).await;
            let _idle = waits(open, State::Idle, SECOND).await;
            let _refused = waits(open, State::FULL, SECOND).await;
            assert_eq!(open.serving(), 2);
            assert_eq!(closed(open), [2]);
            assert_eq!(open.serving(), 1);
        });
    }
}
