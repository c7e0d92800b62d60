//! Looking up addresses by name, and errors that name an address.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};

use traps::Interruptible;
use traps::internal::ask_in_thread;

use crate::record;

/// An address or a name, with a port: a text such as `localhost:80`, `[::1]:80` or
/// `[fe80::1%eth0]:80`, a [`SocketAddr`], or a pair of a host and a port.
///
/// ```
/// use std::io;
/// use net::TcpStream;
///
/// async fn both() -> io::Result<(TcpStream, TcpStream)> {
///     let by_text = TcpStream::connect("localhost:80").await?;
///     let by_pair = TcpStream::connect(("localhost", 80)).await?;
///     Ok((by_text, by_pair))
/// }
/// ```
pub trait ToAddress {
    /// Returns the address as `host:port`. A host that is an IPv6 address has brackets.
    fn to_address(&self) -> String;
}

macro_rules! texts {
    ($($address:ty)*) => {$(
        impl ToAddress for $address {
            fn to_address(&self) -> String {
                self.to_string()
            }
        }
    )*};
}

texts! { str String SocketAddr SocketAddrV4 SocketAddrV6 }

impl<H: ToString> ToAddress for (H, u16) {
    fn to_address(&self) -> String {
        let (host, port) = (self.0.to_string(), self.1);
        if is_v6(&host) { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }
}

impl<A: ToAddress + ?Sized> ToAddress for &A {
    fn to_address(&self) -> String {
        (**self).to_address()
    }
}

/// Finds the addresses of `name:port`, at least one, in the order in which the system prefers them.
/// If `address` is an address already, such as a [`SocketAddr`] or `[::1]:80`, returns it.
///
/// Blocks the task while a worker thread asks the system. An address costs no trap and no thread.
/// An interrupt ends the wait, but not the thread. If no name server answers, the thread often
/// continues for ten seconds or more. A shutdown does not wait for it.
///
/// # Errors
///
/// Returns `InvalidInput` if the text is not `name:port`, the system's error if it finds no
/// address, and the interrupt that ended the wait.
#[track_caller]
pub fn resolve<A: ToAddress>(
    address: A,
) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + use<A> {
    let name = address.to_address();
    let known = name.parse();
    // No closure, because a closure would hide the call site from `track_caller`.
    let lookup = if known.is_err()
        && let Some((host, port)) = host_and_port(&name)
    {
        let host = host.to_owned();
        Some(ask_in_thread(move || match traps::is_replaying() {
            false => (host, port).to_socket_addrs().map(Vec::from_iter),
            // The record has the addresses.
            true => Ok(Vec::new()),
        }))
    } else {
        None
    };
    async move {
        let found = match (known, lookup) {
            (Ok(known), _) => return Ok(vec![known]),
            (_, Some(job)) => match job.await {
                Ok(found) => record::call("resolve", || found),
                Err(error) => Err(error.into()),
            },
            (_, None) => Err(io::Error::new(ErrorKind::InvalidInput, "expected NAME:PORT")),
        };
        found.map_err(|error| failed(format!("find {name}"), error))
    }
}

/// Parses an IP address and port. Asks the system for the zone of an IPv6 address, which is the
/// name of an interface, but does not look up host names.
pub(crate) fn ip_address(text: &str) -> io::Result<SocketAddr> {
    let no_address = "expected an IP address and a port; resolve a name first";
    let wrong = || io::Error::new(ErrorKind::InvalidInput, no_address);
    if let Ok(known) = text.parse() {
        return Ok(known);
    }
    let zoned = host_and_port(text).filter(|(host, _)| host.contains('%') && is_v6(host));
    let (host, port) = zoned.ok_or_else(wrong)?;
    let found = record::call("resolve", || (host, port).to_socket_addrs().map(Vec::from_iter))?;
    found.first().copied().ok_or_else(wrong)
}

/// Whether a host is an IPv6 address, with or without a zone.
fn is_v6(host: &str) -> bool {
    let address = host.split_once('%').map_or(host, |(address, _)| address);
    address.parse::<Ipv6Addr>().is_ok()
}

/// Splits `HOST:PORT`. Removes the brackets around an IPv6 address, because the system expects
/// none.
fn host_and_port(name: &str) -> Option<(&str, u16)> {
    let (host, port) = name.rsplit_once(':')?;
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = inside.filter(|host| is_v6(host)).unwrap_or(host);
    // `parse` alone would also accept a sign.
    let is_port = !host.is_empty() && !port.starts_with('+');
    Some((host, port.parse().ok().filter(|_| is_port)?))
}

/// An error of the system, and the action that failed.
struct Failed {
    what: String,
    source: io::Error,
}

/// A `main` that returns an error prints this form of it.
impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.what, self.source)
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Wraps an error in another error of the same kind, which names the failed action.
pub(crate) fn failed(what: String, error: io::Error) -> io::Error {
    // Keep an interrupt as it is, because a closing scope must find it.
    if error.interrupt().is_some() {
        return error;
    }
    io::Error::new(error.kind(), Failed { what, source: error })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// This test runs outside a kernel, where nothing can wait.
    #[test]
    fn literals_need_no_lookup() {
        let scoped = SocketAddrV6::new(Ipv6Addr::LOCALHOST, 80, 0, 3);
        for known in [
            ([127, 0, 0, 1], 80).into(),
            (Ipv6Addr::LOCALHOST, 80).into(),
            SocketAddr::from(scoped),
        ] {
            let resolved = pin!(resolve(known)).poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(found) = resolved else { panic!("{known} is known") };
            assert_eq!(found.unwrap(), [known]);
        }
    }

    #[test]
    fn a_name_needs_a_port() {
        assert_eq!(host_and_port("localhost:80"), Some(("localhost", 80)));
        for text in ["localhost", ":80", "localhost:", "localhost:http", "localhost:65536", "a:+80"]
        {
            assert_eq!(host_and_port(text), None, "{text}");
        }
    }

    #[test]
    fn brackets_are_part_of_an_address_and_not_of_its_host() {
        for (text, host) in [
            ("[::1]:80", "::1"),
            ("[fe80::1%lo]:80", "fe80::1%lo"),
            ("fe80::1%lo:80", "fe80::1%lo"),
            ("[localhost]:80", "[localhost]"),
            ("[fe80::1:80", "[fe80::1"),
        ] {
            assert_eq!(host_and_port(text), Some((host, 80)), "{text}");
        }
        for (host, text) in [
            ("::1", "[::1]:80"),
            ("fe80::1%lo", "[fe80::1%lo]:80"),
            ("[fe80::1%lo]", "[fe80::1%lo]:80"),
            ("127.0.0.1", "127.0.0.1:80"),
        ] {
            assert_eq!((host, 80).to_address(), text);
        }
    }

    #[test]
    fn an_error_names_its_address_and_keeps_its_kind_and_cause() {
        let error = failed("listen on 127.0.0.1:80".to_owned(), io::Error::from_raw_os_error(13));
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(
            error.to_string(),
            "cannot listen on 127.0.0.1:80: Permission denied (os error 13)"
        );
        let cause = error.source().unwrap().downcast_ref::<io::Error>().unwrap();
        assert_eq!(cause.raw_os_error(), Some(13));
    }
}
