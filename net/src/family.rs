//! The two families of sockets, and their addresses.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;

use rustix::net::{SocketAddrAny, SocketAddrUnix, getpeername, getsockname};

use crate::record::{self, Handle};
use crate::system;

/// A family of socket addresses: [`Inet`] or [`Unix`].
pub trait Family: fmt::Debug + 'static {
    /// Whether a short read has always taken all the bytes that had arrived.
    #[doc(hidden)]
    const SHORT_IS_ALL: bool;

    /// The address of a socket of this family.
    type Address;

    /// Converts an address from the system. The system may return no address for a Unix socket
    /// without a name. Returns `None` if the address is of another family.
    #[doc(hidden)]
    fn address(found: Option<SocketAddrAny>) -> Option<Self::Address>;
}

/// The family of IPv4 and IPv6 addresses, with ports.
#[derive(Debug)]
pub enum Inet {}

/// The family of Unix addresses: paths in the file system, abstract names, or no name. A path of
/// 108 bytes, the longest possible, is reported as no name.
#[derive(Debug)]
pub enum Unix {}

impl Family for Inet {
    const SHORT_IS_ALL: bool = system::REPORTS_URGENT;

    type Address = SocketAddr;

    fn address(found: Option<SocketAddrAny>) -> Option<SocketAddr> {
        found?.try_into().ok()
    }
}

impl Family for Unix {
    const SHORT_IS_ALL: bool = false;

    type Address = net::SocketAddr;

    fn address(found: Option<SocketAddrAny>) -> Option<net::SocketAddr> {
        // A nameless address has two bytes. The address of the longest path is larger than its
        // type.
        let shown = found.filter(|found| (3..=110).contains(&found.addr_len()));
        let Some(found) = shown else { return net::SocketAddr::from_pathname("").ok() };
        let found = SocketAddrUnix::try_from(found).ok()?;
        if let Some(name) = system::abstract_name(&found) {
            return system::std_abstract(name).ok();
        }
        let path = found.path_bytes()?.split(|byte| *byte == 0).next()?;
        net::SocketAddr::from_pathname(OsStr::from_bytes(path)).ok()
    }
}

/// Returns the address of this end of a socket.
pub(crate) fn local_addr<F: Family, const KIND: char>(
    socket: &Handle<KIND>,
) -> io::Result<F::Address> {
    let found = record::call("sockname", || Ok(getsockname(socket.get()?)?))?;
    F::address(Some(found)).ok_or_else(|| ErrorKind::AddrNotAvailable.into())
}

/// Returns the address of the other end of a socket.
pub(crate) fn peer_addr<F: Family, const KIND: char>(
    socket: &Handle<KIND>,
) -> io::Result<F::Address> {
    let found = record::call("peername", || Ok(getpeername(socket.get()?)?))?;
    F::address(found).ok_or_else(|| ErrorKind::AddrNotAvailable.into())
}
