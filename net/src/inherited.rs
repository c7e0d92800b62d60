//! Listeners that the parent process has opened, for example systemd: see sd_listen_fds(3).

use std::env;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::process;

use listenfd::ListenFd;
use rustix::io::ioctl_fionbio;

use crate::listener::{Listener, TcpListener};
use crate::record::{self, Handle};
use crate::unix::UnixListener;

/// A listener that the process has inherited.
#[derive(Debug)]
#[non_exhaustive]
pub enum Inherited {
    /// A TCP listener.
    Tcp(TcpListener),
    /// A Unix listener.
    Unix(UnixListener),
}

/// Takes the listeners in the descriptors from 3 on, in order. `LISTEN_FDS` is the number of
/// descriptors, and `LISTEN_PID` is the process that they are meant for. If `LISTEN_FDS` is not
/// set, returns no listeners.
///
/// Both variables are removed, so that no child process takes the descriptors for its own. The
/// caller owns the listeners, so a second call returns none. Call this function before the process
/// starts other threads. The listeners are in non-blocking mode, and child processes do not inherit
/// them.
///
/// # Errors
///
/// Returns `InvalidInput` if the variables are meant for another process (sd_listen_fds would
/// return 0), or if they are not numbers. Also returns an error if a descriptor is not open, is not
/// a stream socket of one of the two kinds, or does not listen; on macOS, where the system cannot
/// tell whether it listens, the first accept fails instead. After an error the inherited listeners
/// are closed, and other descriptors stay open.
pub fn inherited_listeners() -> io::Result<Vec<Inherited>> {
    let taken = record::call("inherited", inherited)?.into_iter();
    let listener = |(is_unix, socket)| match is_unix {
        false => Inherited::Tcp(Listener::from_socket(socket, u32::MAX)),
        true => Inherited::Unix(Listener::from_socket(socket, u32::MAX)),
    };
    Ok(taken.map(listener).collect())
}

/// Takes the inherited sockets, and whether each is a Unix socket.
fn inherited() -> io::Result<Vec<(bool, Handle<'l'>)>> {
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
        Ok(tcp) => listening(tcp, at).map(|socket| (false, socket)),
        Err(_) => Ok((true, listening(given.take_unix_listener(at)?, at)?)),
    };
    // Take all descriptors before looking for an error, so that an error closes the later ones too.
    let taken: Vec<io::Result<_>> = (0..count).map(take).collect();
    taken.into_iter().collect()
}

/// Prepares the socket of descriptor `3 + at`. Returns an error if the socket does not listen.
fn listening(socket: Option<impl Into<OwnedFd>>, at: usize) -> io::Result<Handle<'l'>> {
    let socket = socket.expect("no descriptor is taken twice").into();
    #[cfg(not(target_vendor = "apple"))]
    let listens = rustix::net::sockopt::socket_acceptconn(&socket)?;
    // The system cannot tell. The first accept fails instead.
    #[cfg(target_vendor = "apple")]
    let listens = true;
    if !listens {
        let why = format!("descriptor {} does not listen", 3 + at);
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    ioctl_fionbio(&socket, true)?;
    Ok(socket.into())
}
