//! The open connections of a server, so that those that wait for nothing can be ended.
//!
//! It knows a connection by its deadline and by what it waits for, and may not touch a stream.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::Display;
use std::ops::Deref;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use traps::{ConnectionDeadline, Time, connection_deadline, wall_clock};

use super::caps::Caps;
use super::config::Config;
use crate::limits::{FIRST_BYTE, SPARE};

/// What a connection waits for, as far as it matters for a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Something that is to be finished.
    #[default]
    Busy,
    /// The first byte of its first request.
    First,
    /// The same, for less time than the head may take.
    Hurried,
    /// The first byte of its next request.
    Next,
    /// The peer to read that there are too many.
    Refused,
}

/// How far an answer has come that ends with the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OpenEnded {
    /// There is none, or all of it is out.
    #[default]
    Out,
    /// It has begun.
    Begun,
    /// It is complete, and not all of it is out, perhaps.
    Complete,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Seats {
    seats: RefCell<Vec<Rc<Seat>>>,
    /// Of connections that are gone, for their next use.
    spare: RefCell<Vec<Rc<Seat>>>,
    draining: Cell<bool>,
    /// How many of them are refused.
    refused: Cell<usize>,
    /// How many there ever were.
    numbers: Cell<u64>,
    /// What was hit for want of a seat.
    caps: Caps,
}

/// What the server can see of one connection.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// The one deadline of all its phases, made before its first wait.
    deadline: OnceCell<ConnectionDeadline>,
    pub(crate) waits: Cell<Waits>,
    /// Before its first wait it has no clock: whether the date was right when it was accepted.
    dated: Cell<bool>,
    place: Cell<u32>,
    /// What the log calls it: the how manieth connection of the server it is.
    number: u64,
    refused: bool,
    /// Of an answer that ends with the connection.
    open_ended: Cell<OpenEnded>,
    /// So far.
    requests: Cell<u64>,
    caps: Caps,
}

impl Seats {
    /// A seat, to be [left](Seats::leave).
    pub(crate) fn take(&self) -> Rc<Seat> {
        self.seat(false)
    }

    /// A connection is served. If none was refused for some time, the next that is is news.
    #[inline]
    pub(crate) fn calm(&self, now: Time) {
        self.caps.calm(self.numbers.get(), now);
    }

    /// A seat for a connection that is refused. Of those before it that read why, the slow ones are
    /// left when there are `most`.
    #[track_caller]
    pub(crate) fn take_refused(&self, most: usize) -> Rc<Seat> {
        if self.refused.get() >= most {
            self.press(|waits| waits == Waits::Refused);
        }
        self.seat(true)
    }

    /// It was refused because `limit` others have a seat. It has [begun](Seat::begin).
    pub(crate) fn refuse(&self, seat: &Seat, limit: usize) {
        self.caps.hit(seat.number, "connections", limit, seat.deadline().now());
    }

    fn seat(&self, refused: bool) -> Rc<Seat> {
        let number = self.numbers.get() + 1;
        self.numbers.set(number);
        self.refused.set(self.refused.get() + usize::from(refused));
        let spare = self.spare.borrow_mut().pop();
        // Whoever leaves holds it until it is gone itself.
        let mut seat = spare.filter(|seat| Rc::strong_count(seat) == 1).unwrap_or_default();
        let new = Rc::get_mut(&mut seat).expect("a spare seat is nobody's");
        (new.number, new.refused) = (number, refused);
        let mut seats = self.seats.borrow_mut();
        seat.place.set(u32::try_from(seats.len()).expect("there are fewer descriptors"));
        seats.push(seat.clone());
        seat
    }

    /// The connection is gone.
    pub(crate) fn leave(&self, seat: &mut Rc<Seat>) {
        let mut seats = self.seats.borrow_mut();
        let place = seat.place.get();
        seats.swap_remove(place as usize);
        let refused = &self.refused;
        refused.set(refused.get() - usize::from(seat.refused));
        if let Some(moved) = seats.get(place as usize) {
            moved.place.set(place);
        }
        drop(seats);
        if let Some(left) = Rc::get_mut(seat) {
            left.clear();
            let mut spare = self.spare.borrow_mut();
            if spare.len() < SPARE {
                spare.push(seat.clone());
            }
        }
    }

    /// How long a wait for a first byte may last, which was to last `span`.
    pub(crate) fn first_byte(&self, span: Duration) -> (Waits, Duration) {
        match self.is_draining() {
            true => (Waits::Hurried, span.min(FIRST_BYTE)),
            false => (Waits::First, span),
        }
    }

    /// How many are taken by connections that are served.
    pub(crate) fn serving(&self) -> usize {
        self.seats.borrow().len() - self.refused.get()
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// Ends the waits of those that wait for nothing that has begun: their deadline comes now.
    #[track_caller]
    pub(crate) fn drain(&self) {
        self.draining.set(true);
        self.caps.finish(self.numbers.get());
        self.press(|waits| matches!(waits, Waits::First | Waits::Hurried | Waits::Next));
    }

    /// The process has run out of descriptors, and somebody is at the door: those who keep one for
    /// nothing give it back.
    #[track_caller]
    pub(crate) fn make_room(&self) {
        self.press(|waits| waits != Waits::Busy);
    }

    #[track_caller]
    fn press(&self, whom: impl Fn(Waits) -> bool) {
        for seat in &*self.seats.borrow() {
            let Some(deadline) = seat.deadline.get() else { continue };
            match seat.waits.get() {
                waits if !whom(waits) => {}
                Waits::Busy => {}
                Waits::First | Waits::Hurried => {
                    let soon = deadline.now() + FIRST_BYTE;
                    if soon < deadline.until() {
                        deadline.arm_at(soon);
                        seat.waits.set(Waits::Hurried);
                    }
                }
                Waits::Next | Waits::Refused => deadline.arm_at(deadline.now()),
            }
        }
    }
}

/// A seat that is taken, until this is dropped: after the stream, so that the peer is the first to
/// know.
#[derive(Debug)]
pub(crate) struct Taken<C: Deref<Target = Config>> {
    pub(crate) seat: Rc<Seat>,
    pub(crate) config: C,
}

impl<C: Deref<Target = Config>> Deref for Taken<C> {
    type Target = Seat;

    #[inline]
    fn deref(&self) -> &Seat {
        &self.seat
    }
}

impl<C: Deref<Target = Config>> Drop for Taken<C> {
    fn drop(&mut self) {
        self.config.seats.leave(&mut self.seat);
    }
}

impl Seat {
    /// Forgets the connection that had it.
    fn clear(&mut self) {
        let Seat { deadline, waits, dated, open_ended, requests, caps, .. } = self;
        *deadline = OnceCell::new();
        open_ended.set(OpenEnded::Out);
        *caps = Caps::default();
        waits.set(Waits::default());
        dated.set(false);
        requests.set(0);
    }

    /// Makes the deadline, if there is none.
    pub(crate) async fn begin(&self) {
        if self.is_new() {
            let first = self.deadline.set(connection_deadline().await);
            debug_assert!(first.is_ok(), "a connection waits for one thing at a time");
        }
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_new(&self) -> bool {
        self.deadline.get().is_none()
    }

    /// The deadline, once it was made: whoever waits has [begun](Seat::begin).
    pub(crate) fn deadline(&self) -> &ConnectionDeadline {
        self.deadline.get().expect("a wait begins by making it")
    }

    /// Until when its deadline was armed last; never before the first wait.
    #[inline]
    pub(crate) fn until(&self) -> Time {
        self.deadline.get().map_or(Time::NEVER, ConnectionDeadline::until)
    }

    /// The date was right when it was accepted, a turn ago.
    pub(crate) fn set_dated(&self) {
        self.dated.set(true);
    }

    /// Asks for the time of day.
    pub(crate) async fn ask_date(&self, config: &Config) -> SystemTime {
        config.date.ask(self.deadline().now());
        wall_clock().await
    }

    /// Whether the date that was read last is no longer right.
    #[inline]
    pub(crate) fn is_date_old(&self, config: &Config) -> bool {
        match self.deadline.get() {
            Some(deadline) => !config.date.is_right(deadline.now()),
            None => !self.dated.get(),
        }
    }

    /// Reads the date, for all connections. A trap, needed once a second; when the time of day is
    /// set, what it says is late by less than that.
    pub(crate) async fn read_date(&self, config: &Config) {
        self.begin().await;
        config.date.tell(self.ask_date(config).await);
    }

    /// How many requests that makes.
    #[inline]
    pub(crate) fn count_request(&self) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.requests.get()
    }

    /// Whether there was a request.
    #[inline]
    pub(crate) fn has_asked(&self) -> bool {
        self.requests.get() > 0
    }

    /// An answer that ends with the connection has come so far.
    pub(crate) fn set_open_ended(&self, open_ended: OpenEnded) {
        self.open_ended.set(open_ended);
    }

    /// What was gathered is out. It was all if the answer is complete.
    pub(crate) fn flushed(&self) {
        if self.open_ended.get() == OpenEnded::Complete {
            self.open_ended.set(OpenEnded::Out);
        }
    }

    /// Whether an end now would be taken for that of an answer, which it is not.
    #[inline]
    pub(crate) fn is_cut(&self) -> bool {
        self.open_ended.get() != OpenEnded::Out
    }

    /// It hit the limit of that name.
    #[cold]
    pub(crate) fn hit(&self, name: &'static str, limit: impl Display) {
        let now = self.deadline.get().map_or(Time::ZERO, ConnectionDeadline::now);
        self.caps.hit(self.number, name, limit, now);
    }

    /// It is over.
    #[inline]
    pub(crate) fn finish(&self) {
        self.caps.finish(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_that_is_used_again_knows_nothing_of_who_had_it() {
        let seats = Seats::default();
        let mut seat = seats.take_refused(2);
        seat.count_request();
        seat.set_dated();
        seat.set_open_ended(OpenEnded::Begun);
        seat.waits.set(Waits::Next);
        let first = Rc::as_ptr(&seat);
        seats.leave(&mut seat);
        drop(seat);
        let mut seat = seats.take();
        assert_eq!(Rc::as_ptr(&seat), first);
        let new = Seat { number: 2, ..Seat::default() };
        assert_eq!(format!("{seat:?}"), format!("{new:?}"));
        // Somebody looks at it yet.
        let held = seat.clone();
        seats.leave(&mut seat);
        drop(seat);
        assert_ne!(Rc::as_ptr(&seats.take()), Rc::as_ptr(&held));
        assert_eq!(seats.serving(), 1);
    }
}
