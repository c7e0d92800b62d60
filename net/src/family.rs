//! The two families of sockets: what their addresses are.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;

use rustix::net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

/// What a socket's addresses are: [`Inet`] or [`Unix`].
pub trait Family: fmt::Debug + 'static {
    /// Whether a read that is short has taken all that was there.
    #[doc(hidden)]
    const SHORT_IS_ALL: bool;

    /// An address of one end.
    type Address;

    /// Reads an address of the system, which may give none for a Unix socket without a name; `None`
    /// if it is of another family.
    #[doc(hidden)]
    fn address(found: Option<SocketAddrAny>) -> Option<Self::Address>;
}

/// IP addresses and ports, of either version.
#[derive(Debug)]
pub enum Inet {}

/// Paths in the file system, abstract names, or none. The address of a socket whose path has 108
/// bytes, the most possible, is reported as none.
#[derive(Debug)]
pub enum Unix {}

impl Family for Inet {
    const SHORT_IS_ALL: bool = true;

    type Address = SocketAddr;

    fn address(found: Option<SocketAddrAny>) -> Option<SocketAddr> {
        found?.try_into().ok()
    }
}

impl Family for Unix {
    const SHORT_IS_ALL: bool = false;

    type Address = net::SocketAddr;

    fn address(found: Option<SocketAddrAny>) -> Option<net::SocketAddr> {
        // One without a name has two bytes, and that of the longest path is longer than its type.
        let shown = found.filter(|found| (3..=110).contains(&found.addr_len()));
        let Some(found) = shown else { return net::SocketAddr::from_pathname("").ok() };
        let found = SocketAddrUnix::try_from(found).ok()?;
        if let Some(name) = found.abstract_name() {
            return net::SocketAddr::from_abstract_name(name).ok();
        }
        let path = found.path_bytes()?.split(|byte| *byte == 0).next()?;
        net::SocketAddr::from_pathname(OsStr::from_bytes(path)).ok()
    }
}

/// The address of this end of a socket.
pub(crate) fn local_addr<F: Family>(socket: impl AsFd) -> io::Result<F::Address> {
    F::address(Some(getsockname(socket)?)).ok_or_else(|| ErrorKind::AddrNotAvailable.into())
}

/// The address of the other end of a socket.
pub(crate) fn peer_addr<F: Family>(socket: impl AsFd) -> io::Result<F::Address> {
    F::address(getpeername(socket)?).ok_or_else(|| ErrorKind::AddrNotAvailable.into())
}
