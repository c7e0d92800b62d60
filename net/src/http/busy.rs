//! What a connection has while it is busy.

use std::cell::RefCell;
use std::rc::Rc;

use super::buffers::Buffers;
use super::config::Config;
use super::connections::Entry;
use super::transport::Transport;
use crate::stream::Stream;

/// How a connection goes on after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With the next request.
    KeepAlive,
    /// It closes. Nothing is owed to the peer.
    Idle,
    /// It closes after the answer.
    Close,
    /// It closes, and the peer may still be sending.
    Linger,
    /// It closes as it is: it is reset.
    Reset,
}

/// A connection that is busy.
pub(super) struct Busy<'c, S> {
    /// Lent to a request, while there is one.
    pub(super) transport: RefCell<Transport<&'c mut S>>,
    pub(super) buffers: Box<Buffers>,
    /// Up to where a head that is not whole was parsed.
    pub(super) seen: usize,
    /// How many empty lines there were in front of it.
    pub(super) empty_lines: usize,
    pub(super) entry: &'c Entry,
    pub(super) config: &'c Config,
}

impl<'c, S: Stream> Busy<'c, S> {
    pub(super) fn new(stream: &'c mut S, entry: &'c Rc<Entry>, config: &'c Config) -> Busy<'c, S> {
        let mut buffers = config.pool.take();
        let out = std::mem::take(&mut buffers.out);
        let transport = RefCell::new(Transport::new(stream, entry.clone(), out, config));
        Busy { transport, buffers, seen: 0, empty_lines: 0, entry, config }
    }

    /// Gives the buffers back.
    pub(super) fn give_back(self) {
        let Busy { transport, mut buffers, config, .. } = self;
        buffers.out = transport.into_inner().out;
        config.pool.give(buffers);
    }
}
