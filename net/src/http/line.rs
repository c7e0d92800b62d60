//! What there is of a connection, while nothing comes and while it is busy.
//!
//! It may not serve it.

use std::cell::RefCell;
use std::io;
use std::mem::take;
use std::ops::Deref;
use std::rc::Rc;

use super::buffers::Buffers;
use super::config::Config;
use super::connections::{Entry, UntilClose};
use super::head::Head;
use super::transport::{Transport, Trouble};
use crate::stream::Stream;

/// A connection: all that there is of it while nothing comes.
#[derive(Debug)]
pub(super) struct Line<S: Stream, C: Deref<Target = Config>> {
    pub(super) stream: S,
    /// Dropped after the stream.
    pub(super) open: Open<C>,
}

impl<S: Stream, C: Deref<Target = Config>> Line<S, C> {
    pub(super) fn new(stream: S, entry: Rc<Entry>, config: C) -> Line<S, C> {
        Line { stream, open: Open { entry, config } }
    }

    /// Says what is to be said.
    pub(super) fn end(&self, end: Result<(), Trouble>) -> io::Result<()> {
        let Open { entry, config } = &self.open;
        match end {
            Ok(()) => Ok(()),
            Err(Trouble::Expired(phase)) => {
                entry.note_expired(phase, config);
                Ok(())
            }
            Err(Trouble::Failed(error)) => Err(error),
        }
    }
}

impl<S: Stream, C: Deref<Target = Config>> Drop for Line<S, C> {
    fn drop(&mut self) {
        // An end now would be taken for that of an answer, which it is not: the peer can tell by a
        // reset only. It ends one way or another.
        if self.open.entry.until_close.get() != UntilClose::Out {
            let _ = self.stream.reset();
        }
    }
}

/// A connection's entry, until this is dropped: after the stream, so that the peer is the first to
/// know.
#[derive(Debug)]
pub(crate) struct Open<C: Deref<Target = Config>> {
    pub(crate) entry: Rc<Entry>,
    pub(crate) config: C,
}

impl<C: Deref<Target = Config>> Drop for Open<C> {
    fn drop(&mut self) {
        self.config.open.remove(&self.entry);
    }
}

/// A connection that is busy.
pub(super) struct Busy<'c, S> {
    /// Lent to a request, while there is one.
    pub(super) transport: RefCell<Transport<S>>,
    pub(super) buffers: Box<Buffers>,
    pub(super) entry: &'c Entry,
    pub(super) config: &'c Config,
}

impl<'c, S: Stream> Busy<'c, S> {
    pub(super) fn new(stream: S, entry: &'c Rc<Entry>, config: &'c Config) -> Busy<'c, S> {
        let mut buffers = config.pool.take();
        let transport = Transport::new(stream, entry.clone(), take(&mut buffers.out), config);
        Busy { transport: RefCell::new(transport), buffers, entry, config }
    }

    /// Gives the buffers back.
    pub(super) fn rest(self) {
        let Busy { transport, mut buffers, config, .. } = self;
        buffers.out = transport.into_inner().out;
        config.pool.give(buffers);
    }

    /// Whether it closes as soon as nothing is here.
    pub(super) fn leaves(&self) -> bool {
        self.entry.leaves.get() || self.config.is_draining() && self.entry.has_asked()
    }
}

/// Counts a request. Whether the connection may go on after it.
#[inline]
pub(super) fn may_go_on(head: &Head, entry: &Entry, config: &Config) -> bool {
    let limit = config.limits.requests;
    let last = entry.count_request() >= limit;
    if last && head.keep_alive {
        entry.hit(config, "requests", limit);
    }
    head.keep_alive && !last && !entry.leaves.get()
}
