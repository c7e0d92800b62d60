//! The differences between the systems: what Linux has, and what macOS and FreeBSD have instead.
//!
//! Each item has the same meaning everywhere. On Linux it is the system's own flag or call.

#[cfg(not(any(target_os = "linux", target_os = "freebsd", target_vendor = "apple")))]
compile_error!("expected Linux, macOS or FreeBSD: net needs Unix sockets, processes and `Real`");

use std::io;
#[cfg(feature = "inherited")]
use std::os::fd::AsFd;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net;

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketAddrUnix, SocketFlags};
use rustix::process::{Pid, Signal};
use socket2::{Domain, Protocol, Socket, Type};

#[cfg(target_os = "linux")]
pub(crate) use linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;

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

    pub(crate) fn tcp(domain: Domain) -> io::Result<Socket> {
        Socket::new(domain, Type::STREAM.nonblocking().cloexec(), Some(Protocol::TCP))
    }

    /// Returns whether a socket listens.
    #[cfg(feature = "inherited")]
    pub(crate) fn listens(socket: impl AsFd) -> Result<bool, Errno> {
        rustix::net::sockopt::socket_acceptconn(socket)
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
    // A datagram that is longer than the buffer looks as long as the buffer.
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

    pub(crate) fn tcp(domain: Domain) -> io::Result<Socket> {
        // This sets the flag for exec and `SO_NOSIGPIPE`.
        let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// Returns true, because rustix cannot ask this system. If the socket does not listen, the
    /// first accept fails.
    #[cfg(feature = "inherited")]
    pub(crate) fn listens(_: impl AsFd) -> Result<bool, Errno> {
        Ok(true)
    }
}
pub(crate) use flags::*;

#[cfg(target_os = "linux")]
mod linux {
    use super::*;

    use std::os::linux::net::SocketAddrExt as _;

    pub(crate) use rustix::fs::sendfile;
    use rustix::process::{PidfdFlags, getpid, pidfd_open, pidfd_send_signal};
    use socket2::SockRef;

    /// Whether an event reports urgent data, so that another short read has taken all bytes.
    pub(crate) const REPORTS_URGENT: bool = true;
    /// The flag of a send with more bytes to follow.
    pub(crate) const MORE: SendFlags = SendFlags::MORE;

    /// Makes the system report room only when every written byte has been sent.
    pub(crate) fn report_room_when_sent(socket: BorrowedFd<'_>) -> io::Result<()> {
        SockRef::from(&socket).set_tcp_notsent_lowat(1)
    }

    /// Returns the abstract name of an address, if it has one.
    pub(crate) fn abstract_name(address: &SocketAddrUnix) -> Option<&[u8]> {
        address.abstract_name()
    }

    pub(crate) fn std_abstract(name: &[u8]) -> io::Result<net::SocketAddr> {
        net::SocketAddr::from_abstract_name(name)
    }

    pub(crate) fn new_abstract(name: &[u8]) -> Result<SocketAddrUnix, Errno> {
        SocketAddrUnix::new_abstract_name(name)
    }

    pub(crate) fn unnamed() -> SocketAddrUnix {
        SocketAddrUnix::new_unnamed()
    }

    /// The descriptor that [`End::of`] needs after a program has started, reserved before.
    pub(crate) struct End(OwnedFd);

    impl End {
        pub(crate) fn reserve() -> Result<End, Errno> {
            pidfd_open(getpid(), PidfdFlags::empty()).map(End)
        }

        /// Returns a descriptor that is readable once the process has ended: a pidfd.
        pub(crate) fn of(self, pid: Pid) -> Result<OwnedFd, Errno> {
            drop(self.0);
            pidfd_open(pid, PidfdFlags::empty())
        }
    }

    /// Sends a signal to the process of this end. Fails with `ESRCH` if it was waited for.
    pub(crate) fn signal(end: BorrowedFd<'_>, _: u32, signal: Signal) -> Result<(), Errno> {
        pidfd_send_signal(end, signal)
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::*;

    use std::thread;

    use rustix::event::{PollFd, Timespec, poll};
    use rustix::io::{pread, retry_on_intr};
    use rustix::net::send;
    use rustix::process::{WaitId, WaitIdOptions, kill_process, waitid};

    // A kqueue does not report it.
    pub(crate) const REPORTS_URGENT: bool = false;
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

    /// Fails, because these systems have no such option or socket2 does not know it.
    pub(crate) fn report_room_when_sent(_: BorrowedFd<'_>) -> io::Result<()> {
        Err(Errno::OPNOTSUPP.into())
    }

    // Only Linux has abstract names.
    pub(crate) fn abstract_name(_: &SocketAddrUnix) -> Option<&[u8]> {
        None
    }

    pub(crate) fn std_abstract(_: &[u8]) -> io::Result<net::SocketAddr> {
        Err(Errno::INVAL.into())
    }

    pub(crate) fn new_abstract(_: &[u8]) -> Result<SocketAddrUnix, Errno> {
        Err(Errno::INVAL)
    }

    pub(crate) fn unnamed() -> SocketAddrUnix {
        SocketAddrUnix::new("").expect("an empty path is short")
    }

    /// The pipe whose writing end closes with the process.
    pub(crate) struct End(io::PipeReader, io::PipeWriter);

    impl End {
        pub(crate) fn reserve() -> io::Result<End> {
            io::pipe().map(|(end, held)| End(end, held))
        }

        /// Returns a descriptor that is readable once the process has ended: a pipe, which a thread
        /// closes. The thread leaves the exit status to its owner.
        pub(crate) fn of(self, pid: Pid) -> Result<OwnedFd, Errno> {
            let End(end, held) = self;
            let wait = move || {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                let _ = retry_on_intr(|| waitid(WaitId::Pid(pid), options));
                drop(held);
            };
            let thread = thread::Builder::new().name("trapline-wait".to_owned()).spawn(wait);
            thread.map(|_| end.into()).map_err(|_| Errno::AGAIN)
        }
    }

    /// Sends a signal to a process. Once it has ended, its number may be another's.
    pub(crate) fn signal(end: BorrowedFd<'_>, id: u32, signal: Signal) -> Result<(), Errno> {
        let pid = Pid::from_raw(id.cast_signed()).ok_or(Errno::SRCH)?;
        match poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&Timespec::default()))? {
            0 => kill_process(pid, signal),
            _ => Err(Errno::SRCH),
        }
    }
}
