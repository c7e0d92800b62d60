//! The differences between the systems: what Linux has, and what macOS and FreeBSD have instead.
//!
//! Each item has the same meaning everywhere. On Linux it is the system's own flag or call.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Child;

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    socket_with,
};
use rustix::process::{Pid, Signal};

pub(crate) use flags::*;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;

/// Makes a socket.
pub(crate) fn socket(family: AddressFamily, kind: SocketType) -> Result<OwnedFd, Errno> {
    prepared(socket_with(family, kind, SOCKET, None)?)
}

/// Converts a path to an address. A first byte of zero marks an abstract name, which only Linux
/// has; elsewhere such a path is refused, as any other zero in a path is.
pub(crate) fn address(path: &Path) -> Result<SocketAddrUnix, Errno> {
    match path.as_os_str().as_bytes() {
        // For an empty path the system would choose a name.
        [] => Err(Errno::INVAL),
        #[cfg(target_os = "linux")]
        [0, name @ ..] => SocketAddrUnix::new_abstract_name(name),
        path => SocketAddrUnix::new(path),
    }
}

/// Returns the address of a Unix socket, if it has a name. The longest path counts as none, because
/// its address is larger than the type.
pub(crate) fn named(found: &SocketAddrAny) -> Option<SocketAddrUnix> {
    let length = usize::try_from(found.addr_len()).ok()?;
    // The address of no name has two bytes. On macOS and FreeBSD it has more, and a path of zeros,
    // which is less than any path of that length.
    #[cfg(not(target_os = "linux"))]
    if *found < SocketAddrUnix::new(vec![1; length.saturating_sub(3)]).ok()?.into() {
        return None;
    }
    let fits = (3..=110).contains(&length);
    if fits { SocketAddrUnix::try_from(found.clone()).ok() } else { None }
}

#[cfg(not(target_vendor = "apple"))]
mod flags {
    use super::*;

    /// The flags of every new socket: non-blocking, closed on exec.
    pub(crate) const SOCKET: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);
    /// The flags of every send: a closed peer is an error, and no signal.
    pub(crate) const SEND: SendFlags = SendFlags::NOSIGNAL;
    /// The flags of the receipt of a datagram: the result has its full length.
    pub(crate) const DATAGRAM: RecvFlags = RecvFlags::TRUNC;
    /// The event of poll(2) for a peer that has closed its side.
    pub(crate) const CLOSED: PollFlags = PollFlags::RDHUP;
    /// The flag for a folder that is opened as the start of a path.
    pub(crate) const THROUGH: OFlags = OFlags::PATH;

    /// Prepares a new socket. Its flags did all.
    #[inline(always)]
    pub(crate) fn prepared(socket: OwnedFd) -> Result<OwnedFd, Errno> {
        Ok(socket)
    }
}

/// The calls of macOS take none of these flags, so each new socket is prepared by further calls. If
/// another thread starts a program in between, that program inherits the socket.
#[cfg(target_vendor = "apple")]
mod flags {
    use super::*;

    use socket2::SockRef;

    pub(crate) const SOCKET: SocketFlags = SocketFlags::empty();
    // Each socket has `SO_NOSIGPIPE` instead.
    pub(crate) const SEND: SendFlags = SendFlags::empty();
    pub(crate) const DATAGRAM: RecvFlags = RecvFlags::empty();
    pub(crate) const CLOSED: PollFlags = PollFlags::HUP;
    pub(crate) const THROUGH: OFlags = OFlags::RDONLY;

    pub(crate) fn prepared(socket: OwnedFd) -> Result<OwnedFd, Errno> {
        let set = SockRef::from(&socket);
        let done = set.set_nonblocking(true).and_then(|()| set.set_cloexec(true));
        match done.and_then(|()| set.set_nosigpipe(true)) {
            Ok(()) => Ok(socket),
            Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL)),
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    pub(crate) use rustix::fs::sendfile;
    use rustix::process::{PidfdFlags, getpid, pidfd_open, pidfd_send_signal};
    use socket2::SockRef;

    /// The flag of a send with more bytes to follow.
    pub(crate) const MORE: SendFlags = SendFlags::MORE;

    /// Makes the system report room only when every written byte has been sent.
    pub(crate) fn report_room_when_sent(socket: BorrowedFd<'_>) -> io::Result<()> {
        SockRef::from(&socket).set_tcp_notsent_lowat(1)
    }

    /// Reserves a descriptor, and returns a function that opens it for a process: it is readable
    /// once the process has ended.
    pub(crate) fn reserve_end() -> Result<impl FnOnce(Pid) -> Result<OwnedFd, Errno>, Errno> {
        let place = pidfd_open(getpid(), PidfdFlags::empty())?;
        Ok(move |pid| {
            drop(place);
            pidfd_open(pid, PidfdFlags::empty())
        })
    }

    /// Sends a signal to a process, by its end. Fails with `ESRCH` if it was waited for.
    pub(crate) fn signal(_: &mut Child, end: BorrowedFd<'_>, signal: Signal) -> Result<(), Errno> {
        pidfd_send_signal(end, signal)
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::*;

    use std::thread;

    use rustix::io::{pread, retry_on_intr};
    use rustix::net::send;
    use rustix::process::{WaitId, WaitIdOptions, kill_process, waitid};

    pub(crate) const MORE: SendFlags = SendFlags::empty();

    /// Sends a piece of a file. The systems' own calls differ, and rustix has none of them.
    pub(crate) fn sendfile(
        socket: BorrowedFd<'_>,
        file: BorrowedFd<'_>,
        at: Option<&mut u64>,
        most: usize,
    ) -> Result<usize, Errno> {
        let at = at.expect("rule: a file is sent from a given place");
        let mut piece = [0; 16 << 10];
        let most = most.min(piece.len());
        let read = pread(file, &mut piece[..most], *at)?;
        let sent = send(socket, &piece[..read], SEND)?;
        *at += sent as u64;
        Ok(sent)
    }

    /// Fails, because FreeBSD has no such option, and socket2 does not know that of macOS.
    pub(crate) fn report_room_when_sent(_: BorrowedFd<'_>) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }

    /// Here the end is a pipe, which a thread closes. The thread leaves the exit status to the
    /// owner of the process.
    pub(crate) fn reserve_end() -> io::Result<impl FnOnce(Pid) -> Result<OwnedFd, Errno>> {
        let (end, held) = io::pipe()?;
        Ok(move |pid| {
            let wait = move || {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), options));
                drop(held);
            };
            let thread = thread::Builder::new().name("trapline-wait".to_owned()).spawn(wait);
            thread.map(|_| end.into()).map_err(|_| Errno::AGAIN)
        })
    }

    /// The number of a process stays its own until the process was waited for, so ask this first.
    pub(crate) fn signal(child: &mut Child, _: BorrowedFd<'_>, by: Signal) -> Result<(), Errno> {
        match child.try_wait() {
            Ok(None) => kill_process(Pid::from_child(child), by),
            _ => Err(Errno::SRCH),
        }
    }
}
