//! Addresses, given as numbers or by name, and the errors that speak of them.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use traps::Interruptible;

/// Where to connect to: an address, or a name that is yet to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An IP address and a port.
    Known(SocketAddr),
    /// `name:port`.
    Named(String),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Known(address) => address.fmt(f),
            Address::Named(name) => f.write_str(name),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Known(address)
    }
}

impl<I: Into<IpAddr>> From<(I, u16)> for Address {
    fn from((ip, port): (I, u16)) -> Address {
        Address::Known(SocketAddr::new(ip.into(), port))
    }
}

/// `127.0.0.1:80`, `[::1]:80` and `name:80`.
impl<T: AsRef<str> + ?Sized> From<&T> for Address {
    fn from(text: &T) -> Address {
        let text = text.as_ref();
        text.parse().map_or_else(|_| Address::Named(text.to_owned()), Address::Known)
    }
}

/// Finds the addresses behind a name, in the order in which the system prefers them; at least one.
///
/// Blocks the task while a worker thread asks the system; an address that is known already costs
/// neither a trap nor a thread.
///
/// # Errors
///
/// `InvalidInput` if the text is not `name:port`, the system's if it finds nothing, the interrupt
/// that ended the wait.
#[track_caller]
pub fn resolve<A: Into<Address>>(
    address: A,
) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + use<A> {
    let address = address.into();
    let lookup = match &address {
        Address::Named(name) if has_port(name) => {
            let name = name.clone();
            Some(traps::run_in_thread(move || name.to_socket_addrs().map(Vec::from_iter)))
        }
        Address::Named(_) | Address::Known(_) => None,
    };
    async move {
        let found = match (&address, lookup) {
            (Address::Known(known), _) => return Ok(vec![*known]),
            (_, Some(job)) => job.await.unwrap_or_else(|error| Err(error.into())),
            (_, None) => Err(io::Error::new(ErrorKind::InvalidInput, "expected NAME:PORT")),
        };
        let found = match found {
            Ok(found) if found.is_empty() => {
                Err(io::Error::new(ErrorKind::NotFound, "the name has no address"))
            }
            found => found,
        };
        found.map_err(|error| failed("find", address, error))
    }
}

fn has_port(name: &str) -> bool {
    name.rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// An error of the system, and what it kept us from doing.
#[derive(Debug)]
struct Failed {
    what: &'static str,
    subject: String,
    source: io::Error,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.what, self.subject, self.source)
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// The same kind of error, naming what could not be done to `subject`.
pub(crate) fn failed(
    what: &'static str,
    subject: impl fmt::Display,
    error: io::Error,
) -> io::Error {
    // An interrupt stays where a closing scope looks for it.
    if error.interrupt().is_some() {
        return error;
    }
    let kind = error.kind();
    io::Error::new(kind, Failed { what, subject: subject.to_string(), source: error })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn literals_need_no_lookup() {
        assert_eq!(Address::from("127.0.0.1:80"), ([127, 0, 0, 1], 80).into());
        assert_eq!(Address::from("[::1]:80"), (Ipv6Addr::LOCALHOST, 80).into());
        assert_eq!(Address::from("localhost:80"), Address::Named("localhost:80".to_owned()));
    }

    #[test]
    fn a_name_needs_a_port() {
        assert!(has_port("localhost:80"));
        for text in ["localhost", ":80", "localhost:", "localhost:http", "localhost:65536"] {
            assert!(!has_port(text), "{text}");
        }
    }

    #[test]
    fn an_error_names_its_address_and_keeps_its_kind_and_cause() {
        let error = failed("listen on", "127.0.0.1:80", io::Error::from_raw_os_error(13));
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(
            error.to_string(),
            "cannot listen on 127.0.0.1:80: Permission denied (os error 13)"
        );
        let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(cause.raw_os_error(), Some(13));
    }
}
