//! Listeners that whoever started the process has opened for it, as systemd does: sd_listen_fds(3).

use std::env;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::process;

use listenfd::ListenFd;
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::socket_acceptconn;

use crate::family::Family;
use crate::listener::{Listener, TcpListener};
use crate::unix::UnixListener;

/// A listener that the process was given.
#[derive(Debug)]
pub enum Inherited {
    /// Of TCP.
    Tcp(TcpListener),
    /// Of Unix connections.
    Unix(UnixListener),
}

/// The listeners in the descriptors from 3 on, in their order. `LISTEN_FDS` says how many there
/// are, and `LISTEN_PID` for which process. None if they are not set.
///
/// Both are unset then, so that no other process takes the descriptors for its own, and the
/// listeners belong to the caller: a second call gives none. Call it before there are other
/// threads. The listeners are in non-blocking mode, and no process that is started has them.
///
/// # Errors
///
/// `InvalidInput` if the variables are meant for another process (where sd_listen_fds gives none),
/// if they are no numbers, or if a descriptor is not open, is no socket of the two kinds or does
/// not listen; the error names it. The listeners are closed then, and other descriptors stay open.
pub fn inherited_listeners() -> io::Result<Vec<Inherited>> {
    let (Ok(count), pid) = (env::var("LISTEN_FDS"), env::var("LISTEN_PID")) else {
        return Ok(Vec::new());
    };
    if count.parse::<u16>().is_err() {
        let why = format!("LISTEN_FDS is `{count}`, not a number of descriptors");
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let own = process::id().to_string();
    if pid.as_ref() != Ok(&own) {
        let why = format!("LISTEN_PID is `{}`, not {own}", pid.unwrap_or_default());
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let mut given = ListenFd::from_env();
    let count = given.len();
    let take = |at| match given.take_tcp_listener(at) {
        Ok(tcp) => listening(tcp, at).map(Inherited::Tcp),
        Err(_) => listening(given.take_unix_listener(at)?, at).map(Inherited::Unix),
    };
    // All are taken, so that an error closes those behind it too.
    let taken: Vec<io::Result<Inherited>> = (0..count).map(take).collect();
    taken.into_iter().collect()
}

/// Takes the socket if it listens.
fn listening<F: Family, S: Into<OwnedFd>>(socket: Option<S>, at: usize) -> io::Result<Listener<F>> {
    let socket = socket.expect("no descriptor is taken twice").into();
    if !socket_acceptconn(&socket)? {
        let why = format!("descriptor {} does not listen", 3 + at);
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    ioctl_fionbio(&socket, true)?;
    Ok(Listener::from_socket(socket, u32::MAX))
}
