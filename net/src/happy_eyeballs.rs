//! Which of several addresses to connect to: the first that answers (RFC 8305).

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use traps::core::names::Site;
use traps::{Interruptible, branch, sleep_from};

use crate::limits::ATTEMPT_DELAY;

/// Tries the addresses until one succeeds: the next one as soon as one has failed, or a while after
/// the last try began. The first success ends the tries that still run, and so does an interrupt.
/// If all fail, it gives the last error.
pub(crate) async fn first<T, F: Future<Output = io::Result<T>>>(
    addresses: Vec<SocketAddr>,
    site: Site,
    try_one: impl Fn(SocketAddr) -> F,
) -> io::Result<T> {
    if let [only] = addresses[..] {
        return try_one(only).await;
    }
    let mut rest = interleaved(addresses).into_iter();
    let (mut tries, mut last) = (Vec::new(), None);
    loop {
        if let Some(address) = rest.next() {
            tries.push(Box::pin(branch(try_one(address))));
        } else if tries.is_empty() {
            return last.expect("a look-up finds an address or fails");
        }
        let mut pause = (rest.len() > 0).then(|| Box::pin(branch(sleep_from(ATTEMPT_DELAY, site))));
        let ended = poll_fn(|cx| {
            for at in 0..tries.len() {
                if let Poll::Ready(done) = tries[at].as_mut().poll(cx) {
                    drop(tries.remove(at));
                    return Poll::Ready(Some(done));
                }
            }
            let Some(pause) = &mut pause else { return Poll::Pending };
            pause.as_mut().poll(cx).map(|slept| Some(Err(slept.err()?.into())))
        });
        match ended.await {
            Some(Err(error)) if error.interrupt().is_none() => last = Some(Err(error)),
            Some(done) => return done,
            // The pause is over.
            None => {}
        }
    }
}

/// The addresses of both versions of IP in turn, each in its order, IPv6 first.
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let count = addresses.len();
    let (six, four): (Vec<_>, Vec<_>) = addresses.into_iter().partition(SocketAddr::is_ipv6);
    let (mut six, mut four) = (six.into_iter(), four.into_iter());
    (0..count).flat_map(|_| [six.next(), four.next()]).flatten().collect()
}

#[cfg(test)]
#[path = "happy_eyeballs_tests.rs"]
mod tests;
