//! Where busy connections are served, so that one that waits needs little.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;

use super::closing::After;
use super::connection::{Begun, Line};
use super::server::Server;
use super::transport::Trouble;
use crate::limits::SPARE;
use crate::stream::Stream;

/// Where busy connections are served: a connection that waits has none of what is needed for that,
/// and the next that is busy uses it again.
pub(super) struct Rooms<S: Stream, C: Server, F>(RefCell<Vec<Room<S, C, F>>>);

/// One of them. Its work never ends: it serves the connection that is on the desk, puts it back
/// with what it came to, and pauses.
pub(super) struct Room<S: Stream, C: Server, F> {
    pub(super) desk: Rc<Desk<S, C>>,
    pub(super) work: Pin<Box<F>>,
}

pub(super) struct Desk<S: Stream, C: Server> {
    pub(super) line: Cell<Option<Line<S, C>>>,
    pub(super) begun: Cell<Option<Begun>>,
    pub(super) end: Cell<Option<Result<After, Trouble>>>,
}

impl<S: Stream, C: Server, F> Default for Rooms<S, C, F> {
    fn default() -> Rooms<S, C, F> {
        Rooms(RefCell::default())
    }
}

impl<S: Stream, C: Server, F> Rooms<S, C, F> {
    pub(super) fn take(&self, serve: fn(Rc<Desk<S, C>>) -> F) -> Room<S, C, F> {
        let spare = self.0.borrow_mut().pop();
        spare.unwrap_or_else(|| {
            let desk = Rc::new(Desk {
                line: Cell::new(None),
                begun: Cell::new(None),
                end: Cell::new(None),
            });
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
