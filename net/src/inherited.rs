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
/// `InvalidInput` if the variables are meant for another process, or if a descriptor is not open,
/// is no socket of the two kinds or does not listen; the error names it. The listeners before it
/// are closed then.
pub fn inherited_listeners() -> io::Result<Vec<Inherited>> {
    let (Ok(_), pid) = (env::var("LISTEN_FDS"), env::var("LISTEN_PID")) else {
        return Ok(Vec::new());
    };
    let own = process::id().to_string();
    if pid.as_ref() != Ok(&own) {
        let why = format!("LISTEN_PID is `{}`, not {own}", pid.unwrap_or_default());
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    let mut given = ListenFd::from_env();
    let taken = (0..given.len()).map(|at| match given.take_tcp_listener(at) {
        Ok(tcp) => listening(tcp, at).map(Inherited::Tcp),
        Err(_) => listening(given.take_unix_listener(at)?, at).map(Inherited::Unix),
    });
    taken.collect()
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
