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

use super::config::Config;
use super::connection::Connection;
use super::guard::place::Place;
use super::state::State;
use crate::limits::{FIRST_BYTE, REFUSED_CONNECTIONS};
use crate::rate_meter::{guard, is_timeout};
use crate::stream::Stream;
use crate::tcp::TcpStream;

/// Runs the handshake of a connection. Returns `None` if it took too long, or had to make room for
/// another connection. `state` is that of the connection until the handshake is over.
pub(super) async fn handshake<S: Stream, C: Deref<Target = Config>>(
    (tcp, peer): (TcpStream, Option<SocketAddr>),
    place: Place<C>,
    wrap: &impl AsyncFn(TcpStream) -> io::Result<S>,
    state: State,
) -> io::Result<Option<Connection<S, C>>> {
    place.make_deadline().await;
    let Place { entry, config } = &place;
    if state == State::FULL {
        config.open.refuse(entry, REFUSED_CONNECTIONS);
    } else {
        config.open.enter(entry, state);
    }
    let head = config.deadlines.head;
    let span = if config.is_draining() { head.min(FIRST_BYTE) } else { head };
    let until = entry.now() + span;
    match guard(entry.deadline(), ("handshake", until), wrap(tcp)).await {
        Err(error) if is_timeout(&error) => Ok(None),
        wrapped => Ok(Some(Connection::accepted((wrapped?, peer), place))),
    }
}
