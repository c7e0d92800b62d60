//! The open connections of a server, so that those that wait for nothing can be ended.
//!
//! It knows a connection by its deadline and by what it waits for, and may not touch a stream.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use traps::ConnectionDeadline;

/// How long a connection that is new, and has sent nothing, may still take to do so once the
/// server drains: its first request may be on its way.
const FIRST_BYTE: Duration = Duration::from_millis(500);

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
}

/// All of them. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seats(Rc<List>);

#[derive(Debug, Default)]
struct List {
    seats: RefCell<Vec<Rc<Seat>>>,
    draining: Cell<bool>,
}

/// What the server can see of one connection.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// The one deadline of all its phases, made at its first wait.
    pub(crate) deadline: OnceCell<ConnectionDeadline>,
    pub(crate) waits: Cell<Waits>,
    place: Cell<usize>,
}

/// A connection's hold on its seat.
#[derive(Debug)]
pub(crate) struct Seated {
    list: Seats,
    seat: Rc<Seat>,
}

impl Seats {
    pub(crate) fn take(&self) -> Seated {
        let seat = Rc::new(Seat::default());
        let mut seats = self.0.seats.borrow_mut();
        seat.place.set(seats.len());
        seats.push(seat.clone());
        Seated { list: self.clone(), seat }
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.0.seats.borrow().len()
    }

    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.0.draining.get()
    }

    /// Ends the waits of those that wait for nothing that has begun: their deadline comes now.
    #[track_caller]
    pub(crate) fn drain(&self) {
        self.0.draining.set(true);
        for seat in &*self.0.seats.borrow() {
            let Some(deadline) = seat.deadline.get() else { continue };
            match seat.waits.get() {
                Waits::Busy => {}
                Waits::First => {
                    deadline.arm_at(deadline.until().min(deadline.now() + FIRST_BYTE));
                }
                Waits::Next => deadline.arm_at(deadline.now()),
            }
        }
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
        if let Some(moved) = seats.get(place) {
            moved.place.set(place);
        }
    }
}
