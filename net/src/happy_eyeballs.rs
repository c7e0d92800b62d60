//! Connecting to one of several addresses: the first that succeeds wins (RFC 8305, "happy
//! eyeballs").
//!
//! A name often has addresses of both IP versions, and one version might fail on this network.
//! Trying the addresses one by one would cost a whole connect timeout for each dead address. So the
//! attempts overlap: the next address is tried as soon as an attempt fails, or [`ATTEMPT_DELAY`]
//! (250 ms) after the last attempt began. Earlier attempts continue.
//!
//! The two IP versions take turns, so a version that does not work costs one delay only. Suppose
//! the resolver returns `a6 b6 c4 d4`, and no IPv6 packet gets through:
//!
//! ```text
//! 0 ms    try a6
//! 250 ms  try c4
//! 280 ms  c4 connects: a6 is dropped, b6 and d4 are never tried
//! ```
//!
//! Each attempt is a branch of the calling task, not a separate task. So an interrupt of the caller
//! ends all of them, and no attempt can outlive the call.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::task::Poll;

use traps::Site;
use traps::internal::sleep_from;
use traps::{Interruptible, branch};

use crate::limits::ATTEMPT_DELAY;

/// Tries the addresses until one attempt succeeds, as the head of this file describes. The first
/// success drops the other attempts, and so does an interrupt. If all attempts fail, returns the
/// last error.
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
            // The pause has ended without a result.
            None => {}
        }
    }
}

/// Interleaves the addresses of the two IP versions; each version keeps its order. The version of
/// the first address goes first, because the resolver knows best which version works here (RFC
/// 8305, section 4).
fn interleaved(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (count, is_six) = (addresses.len(), addresses.first().is_some_and(SocketAddr::is_ipv6));
    let (first, second): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == is_six);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    (0..count).flat_map(|_| [first.next(), second.next()]).flatten().collect()
}

#[cfg(test)]
#[path = "happy_eyeballs_tests.rs"]
mod tests;
