//! Where busy connections are served, so that one that waits needs little.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::pin::Pin;
use std::rc::Rc;

use super::at_once::Step;
use super::buffers::Buffers;
use super::closing::After;
use super::config::Config;
use super::line::Line;
use super::transport::{Transport, Trouble};
use crate::limits::SPARE;
use crate::stream::Stream;

/// Where busy connections are served: a connection that waits has none of what is needed for that,
/// and the next that is busy uses it again.
pub(super) struct Rooms<S: Stream, C: Deref<Target = Config>, F>(RefCell<Vec<Room<S, C, F>>>);

/// One of them. Its work never ends: it serves the connection that is on the desk, puts it back
/// with what it came to, and pauses.
pub(super) struct Room<S: Stream, C: Deref<Target = Config>, F> {
    pub(super) desk: Rc<Desk<S, C>>,
    pub(super) work: Pin<Box<F>>,
}

pub(super) struct Desk<S: Stream, C: Deref<Target = Config>> {
    pub(super) line: Cell<Option<Line<S, C>>>,
    pub(super) begun: Cell<Option<Begun>>,
    pub(super) end: Cell<Option<Result<After, Trouble>>>,
}

/// What a busy connection has, while it is handed on.
pub(super) struct Begun {
    pub(super) transport: Transport<()>,
    pub(super) buffers: Box<Buffers>,
    pub(super) step: Step,
}

impl<S: Stream, C: Deref<Target = Config>, F> Default for Rooms<S, C, F> {
    fn default() -> Rooms<S, C, F> {
        Rooms(RefCell::default())
    }
}

impl<S: Stream, C: Deref<Target = Config>, F> Rooms<S, C, F> {
    pub(super) fn take(&self, serve: fn(Rc<Desk<S, C>>) -> F) -> Room<S, C, F> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| {
            let desk = Desk { line: Cell::default(), begun: Cell::default(), end: Cell::default() };
            let desk = Rc::new(desk);
            Room { desk: desk.clone(), work: Box::pin(serve(desk)) }
        })
    }

    pub(super) fn give(&self, room: Room<S, C, F>) {
        let mut spare = self.0.borrow_mut();
        if spare.len() < SPARE {
            spare.push(room);
        }
    }
}
