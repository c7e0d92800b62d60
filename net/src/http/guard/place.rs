//! The place of a connection among the open ones, from its accept to its end.

use std::ops::Deref;
use std::rc::Rc;

use traps::connection_deadline;

use crate::http::config::Config;
use crate::http::guard::connections::Entry;

/// The place of a connection among the open ones. Dropping it gives the place to another one.
#[derive(Debug)]
pub(crate) struct Place<C: Deref<Target = Config>> {
    pub(crate) entry: Rc<Entry>,
    pub(crate) config: C,
}

impl<C: Deref<Target = Config>> Place<C> {
    /// Makes the place of a connection, which counts as open from now on.
    pub(crate) fn new(config: C) -> Place<C> {
        if config.connections() == 0 {
            // The kernel that runs now may be another one.
            config.date.forget();
        }
        Place { entry: config.open.add(), config }
    }

    /// Makes the deadline that all phases of the connection share, in the task of the connection. A
    /// handshake has made it before.
    pub(crate) async fn make_deadline(&self) {
        if !self.entry.has_deadline() {
            self.entry.set_deadline(connection_deadline().await);
        }
    }
}

impl<C: Deref<Target = Config>> Drop for Place<C> {
    fn drop(&mut self) {
        self.config.open.remove(&self.entry);
    }
}
