//! The open connections of a server, so that those that wait for nothing can be ended.
//!
//! It knows a connection by its deadline and by what it waits for, and may not touch a stream.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::Display;
use std::rc::Rc;
use std::time::Duration;

use traps::{ConnectionDeadline, Time};

use super::caps::Caps;
use crate::limits::FIRST_BYTE;

/// What a connection waits for, as far as it matters for a drain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Something that is to be finished.
    #[default]
    Busy,
    /// The first byte of its first request.
    First,
    /// The first byte of its next request.
    Next,
    /// The peer to read that there are too many.
    Refused,
}

/// All of them. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Rc<List>);

#[derive(Debug, Default)]
struct List {
    seats: RefCell<Vec<Rc<Seat>>>,
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
    /// The one deadline of all its phases, made at its first wait.
    pub(crate) deadline: OnceCell<ConnectionDeadline>,
    pub(crate) waits: Cell<Waits>,
    place: Cell<usize>,
    /// What the log calls it: the how manieth connection of the server it is.
    number: u64,
    refused: bool,
    /// So far.
    requests: Cell<u64>,
    caps: Caps,
}

/// A connection's hold on its seat.
#[derive(Debug)]
pub(crate) struct Seated {
    list: Seats,
    seat: Rc<Seat>,
}

impl Seats {
    pub(crate) fn take(&self) -> Seated {
        self.0.caps.finish(self.0.numbers.get());
        self.seat(false)
    }

    /// A seat for a connection that is refused, because `limit` others have one. Of those before
    /// it that read why, the slow ones are left when there are `most`.
    #[track_caller]
    pub(crate) fn take_refused(&self, limit: usize, most: usize) -> Seated {
        if self.0.refused.get() >= most {
            self.press(|waits| waits == Waits::Refused);
        }
        let seated = self.seat(true);
        self.0.caps.hit(seated.number, "connections", limit, Time::ZERO);
        seated
    }

    fn seat(&self, refused: bool) -> Seated {
        let number = self.0.numbers.get() + 1;
        self.0.numbers.set(number);
        self.0.refused.set(self.0.refused.get() + usize::from(refused));
        let seat = Rc::new(Seat { number, refused, ..Seat::default() });
        let mut seats = self.0.seats.borrow_mut();
        seat.place.set(seats.len());
        seats.push(seat.clone());
        Seated { list: self.clone(), seat }
    }

    /// How many are taken by connections that are served.
    pub(crate) fn serving(&self) -> usize {
        self.0.seats.borrow().len() - self.0.refused.get()
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.get()
    }

    /// Ends the waits of those that wait for nothing that has begun: their deadline comes now.
    #[track_caller]
    pub(crate) fn drain(&self) {
        self.0.draining.set(true);
        self.0.caps.finish(self.0.numbers.get());
        self.press(|waits| matches!(waits, Waits::First | Waits::Next));
    }

    /// The process has run out of descriptors, and somebody is at the door: those who keep one for
    /// nothing give it back.
    #[track_caller]
    pub(crate) fn make_room(&self) {
        self.press(|waits| waits != Waits::Busy);
    }

    #[track_caller]
    fn press(&self, whom: impl Fn(Waits) -> bool) {
        for seat in &*self.0.seats.borrow() {
            let Some(deadline) = seat.deadline.get() else { continue };
            match seat.waits.get() {
                waits if !whom(waits) => {}
                Waits::Busy => {}
                Waits::First => {
                    deadline.arm_at(deadline.until().min(deadline.now() + FIRST_BYTE));
                }
                Waits::Next | Waits::Refused => deadline.arm_at(deadline.now()),
            }
        }
    }
}

impl Seat {
    /// How many requests that makes.
    #[inline]
    pub(crate) fn count_request(&self) -> u64 {
        self.requests.set(self.requests.get() + 1);
        self.requests.get()
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

impl Seated {
    /// How long a wait for a first byte may last, which was to last `span`.
    pub(crate) fn first_byte(&self, span: Duration) -> Duration {
        if self.list.is_draining() { span.min(FIRST_BYTE) } else { span }
    }
}

impl std::ops::Deref for Seated {
    type Target = Seat;
    fn deref(&self) -> &Seat {
        &self.seat
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        let mut seats = self.list.0.seats.borrow_mut();
        let place = self.seat.place.get();
        seats.swap_remove(place);
        let refused = &self.list.0.refused;
        refused.set(refused.get() - usize::from(self.seat.refused));
        if let Some(moved) = seats.get(place) {
            moved.place.set(place);
        }
    }
}
