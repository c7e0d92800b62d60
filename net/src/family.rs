//! The two families of sockets, and their addresses.

use std::ffi::OsStr;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net;

use rustix::net::{SocketAddrAny, getpeername, getsockname};

use crate::record::{self, Handle};
use crate::system::named;

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
    // Urgent data can cut a read short. Only Linux reports it.
    const SHORT_IS_ALL: bool = cfg!(target_os = "linux");

    type Address = SocketAddr;

    fn address(found: Option<SocketAddrAny>) -> Option<SocketAddr> {
        found?.try_into().ok()
    }
}

impl Family for Unix {
    const SHORT_IS_ALL: bool = false;

    type Address = net::SocketAddr;

    fn address(found: Option<SocketAddrAny>) -> Option<net::SocketAddr> {
        let shown = found.and_then(|found| named(&found));
        let Some(found) = shown else { return net::SocketAddr::from_pathname("").ok() };
        #[cfg(target_os = "linux")]
        if let Some(name) = found.abstract_name() {
            return net::SocketAddr::from_abstract_name(name).ok();
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
