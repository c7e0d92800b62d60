//! Looking up addresses by name, and errors that name an address.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};

use traps::{Interruptible, tape};

use crate::door;

/// Finds the addresses of `name:port`, at least one, in the order in which the system prefers them.
/// If `address` is an address already, such as a [`SocketAddr`] or `[::1]:80`, returns it.
///
/// Blocks the task while a worker thread asks the system. An address costs no trap and no thread.
///
/// # Errors
///
/// Returns `InvalidInput` if the text is not `name:port`, the system's error if it finds no
/// address, and the interrupt that ended the wait.
#[track_caller]
pub fn resolve<A: ToString>(
    address: A,
) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + use<A> {
    let name = address.to_string();
    let known = name.parse();
    // No closure, because a closure would hide the call site from `track_caller`.
    let lookup = if known.is_err() && has_port(&name) {
        let name = name.clone();
        Some(traps::run_in_thread(move || match tape::is_playing() {
            false => name.to_socket_addrs().map(Vec::from_iter),
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
                Ok(found) => door::call("resolve", || found),
                Err(error) => Err(error.into()),
            },
            (_, None) => Err(io::Error::new(ErrorKind::InvalidInput, "expected NAME:PORT")),
        };
        found.map_err(|error| failed(format!("find {name}"), error))
    }
}

/// Parses an IP address and port, without a look-up.
pub(crate) fn ip_address(text: &str) -> io::Result<SocketAddr> {
    let no_address = "expected an IP address and a port; resolve a name first";
    text.parse().map_err(|_| io::Error::new(ErrorKind::InvalidInput, no_address))
}

fn has_port(name: &str) -> bool {
    // `parse` alone would also accept a sign.
    name.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !port.starts_with('+') && port.parse::<u16>().is_ok()
    })
}

/// An error of the system, and the action that failed.
#[derive(Debug)]
struct Failed {
    what: String,
    source: io::Error,
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
    // Keep an interrupt as it is: a closing scope must find it.
    if error.interrupt().is_some() {
        return error;
    }
    io::Error::new(error.kind(), Failed { what, source: error })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// This test runs outside a kernel, where nothing can wait.
    #[test]
    fn literals_need_no_lookup() {
        let scoped = std::net::SocketAddrV6::new(Ipv6Addr::LOCALHOST, 80, 0, 3);
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
        assert!(has_port("localhost:80"));
        for text in ["localhost", ":80", "localhost:", "localhost:http", "localhost:65536", "a:+80"]
        {
            assert!(!has_port(text), "{text}");
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
