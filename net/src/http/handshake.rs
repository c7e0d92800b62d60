//! The handshake of a connection, in which a function of the program turns the accepted stream into
//! another one.
//!
//! For HTTP, a handshake is a part of the wait for the first byte of a request. So its connection
//! is `New`, or `Closing`, until the handshake is over. The same deadline, drain and choice of a
//! connection to close therefore apply to every silent client, whether it owes a handshake or a
//! request.

use std::io;
use std::net::SocketAddr;
use std::ops::Deref;
use std::rc::Rc;

use traps::connection_deadline;
use traps::shutdown::Hold;

use super::config::Config;
use super::connection::{Connection, open};
use super::connections::{Entry, State};
use crate::limits::{FIRST_BYTE, TURNED_AWAY};
use crate::pace::{guard, is_timeout};
use crate::stream::Stream;
use crate::tcp::TcpStream;

/// A connection whose handshake is not over. It counts as open.
pub(super) struct Opening<C: Deref<Target = Config>> {
    accepted: Option<(TcpStream, Option<SocketAddr>)>,
    /// `None` once the connection has taken the entry over.
    place: Option<(Rc<Entry>, C)>,
}

impl<C: Deref<Target = Config>> Opening<C> {
    pub(super) fn new(accepted: (TcpStream, Option<SocketAddr>), config: C) -> Opening<C> {
        Opening { accepted: Some(accepted), place: Some((open(&config), config)) }
    }

    /// Delays the shutdown by `hold` as long as the connection has work that should finish.
    pub(super) fn hold(&self, hold: Hold) {
        let (entry, _) = self.place.as_ref().expect("the handshake has not begun");
        entry.hold(hold);
    }

    /// Runs the handshake. Returns `None` if it took too long, or had to make room for another
    /// connection. `state` is that of the connection until the handshake is over.
    pub(super) async fn wrap<S: Stream>(
        mut self,
        wrap: &impl AsyncFn(TcpStream) -> io::Result<S>,
        state: State,
    ) -> io::Result<Option<Connection<S, C>>> {
        let (tcp, peer) = self.accepted.take().expect("a connection has one handshake");
        let (entry, config) = self.place.as_ref().expect("it is taken over below");
        entry.set_deadline(connection_deadline().await);
        if state == State::FULL {
            config.open.refuse(entry, TURNED_AWAY);
        } else {
            config.open.enter(entry, state);
        }
        let head = config.deadlines.head;
        let span = if config.is_draining() { head.min(FIRST_BYTE) } else { head };
        let until = entry.now() + span;
        let stream = match guard(entry.deadline(), ("handshake", until), wrap(tcp)).await {
            Err(error) if is_timeout(&error) => return Ok(None),
            wrapped => wrapped?,
        };
        let place = self.place.take().expect("it was there before");
        Ok(Some(Connection::opened((stream, peer), place)))
    }
}

impl<C: Deref<Target = Config>> Drop for Opening<C> {
    fn drop(&mut self) {
        if let Some((entry, config)) = &self.place {
            config.open.remove(entry);
        }
    }
}
