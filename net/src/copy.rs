//! Copying from one stream to another.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;

use traps::Site;
use traps::branch;

use crate::halves::Split;
use crate::limits::READ_BUFFER;
use crate::stream::Stream;

/// Copies from `from` to `to` until `from` ends, and returns the number of bytes. *Blocks* when
/// there is nothing to read or no room to write. Does not pass the end on: to do so, shut `to`
/// down.
///
/// # Errors
///
/// Returns an error if either stream fails, `WriteZero` if `to` takes no bytes, and the interrupt
/// that ended a wait. After an error, the bytes that were read and not yet written are lost: 16 KiB
/// at most.
#[track_caller]
pub fn copy(from: &mut impl Stream, to: &mut impl Stream) -> impl Future<Output = io::Result<u64>> {
    copy_from(from, to, Location::caller())
}

async fn copy_from(from: &mut impl Stream, to: &mut impl Stream, site: Site) -> io::Result<u64> {
    let (mut piece, mut copied) = (vec![0; READ_BUFFER], 0);
    loop {
        let mut rest = match from.read_from(&mut piece, site).await? {
            0 => return Ok(copied),
            n => &piece[..n],
        };
        while !rest.is_empty() {
            match to.write_from(&[IoSlice::new(rest)], site).await? {
                0 => return Err(ErrorKind::WriteZero.into()),
                n => (rest, copied) = (&rest[n..], copied + n as u64),
            }
        }
        to.flush().await?;
    }
}

/// Copies in both directions at the same time, in one task. When one stream ends, the other is shut
/// down after the last byte, and the other direction continues. When both directions have ended,
/// returns the number of bytes from `a` to `b` and from `b` to `a`. *Blocks*. If both directions
/// can continue, `a` to `b` is served first.
///
/// # An idle timeout
///
/// A proxy ends a connection if no bytes move for some time. The task wakes only when bytes can
/// move, so each poll sets the deadline again:
///
/// ```
/// # use std::{io, time::Duration};
/// use std::future::poll_fn;
/// use std::pin::pin;
/// use net::{Split, copy_bidirectional};
/// use traps::connection_deadline;
///
/// /// Copies both ways. Fails with `TimedOut` if no bytes have moved for `idle`.
/// async fn relay(a: &mut impl Split, b: &mut impl Split, idle: Duration) -> io::Result<()> {
///     let deadline = connection_deadline().await;
///     let mut copy = pin!(copy_bidirectional(a, b));
///     let moves = poll_fn(|cx| {
///         let copied = copy.as_mut().poll(cx);
///         if copied.is_pending() {
///             deadline.arm(idle);
///         }
///         copied
///     });
///     deadline.guard(idle, moves).await?;
///     Ok(())
/// }
/// # use net::{Stream, pipe::duplex};
/// # let ran = testing::run(async {
/// #     let (mut client, mut a) = duplex(64);
/// #     let (mut server, mut b) = duplex(64);
/// #     let idle = Duration::from_secs(60);
/// #     let relay = traps::spawn("relay", async move { relay(&mut a, &mut b, idle).await }).await;
/// #     for _ in 0..4 {
/// #         traps::sleep(idle * 3 / 4).await?;
/// #         server.write_all(b"x").await?; // one direction is enough
/// #         client.read_exact(&mut [0]).await?;
/// #     }
/// #     let ended = relay.await?;
/// #     assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
/// #     Ok::<(), traps::Error>(())
/// # });
/// # ran.output.unwrap();
/// # assert_eq!(ran.took.as_secs(), 4 * 60);
/// ```
///
/// The task must wait for nothing else, also not outside of `relay`: each wake polls `relay`, which
/// sets the deadline again. [`until_begun`](traps::shutdown::until_begun) around it is right for a
/// server that is to end at a shutdown, because its wake ends the wait.
///
/// # Errors
///
/// Returns the error of [`copy`] in the direction that failed first. The other direction is
/// abandoned. Then [reset](Stream::reset) both streams, if they are TCP, so that neither peer takes
/// a part of the data for the whole.
#[track_caller]
pub fn copy_bidirectional(
    a: &mut impl Split,
    b: &mut impl Split,
) -> impl Future<Output = io::Result<(u64, u64)>> {
    let site = Location::caller();
    let ((from_a, to_a), (from_b, to_b)) = (a.split(), b.split());
    let there = branch(direction(from_a, to_b, site));
    let back = branch(direction(from_b, to_a, site));
    async move {
        let (mut there, mut back) = (pin!(there), pin!(back));
        let (mut sent, mut received) = (None, None);
        poll_fn(|cx| {
            if sent.is_none()
                && let Poll::Ready(done) = there.as_mut().poll(cx)
            {
                sent = Some(done?);
            }
            if received.is_none()
                && let Poll::Ready(done) = back.as_mut().poll(cx)
            {
                received = Some(done?);
            }
            sent.zip(received).map_or(Poll::Pending, |counts| Poll::Ready(Ok(counts)))
        })
        .await
    }
}

/// Copies until `from` ends, and then shuts `to` down.
async fn direction(mut from: impl Stream, mut to: impl Stream, site: Site) -> io::Result<u64> {
    let copied = copy_from(&mut from, &mut to, site).await?;
    match to.shutdown() {
        // The peer of `to` has already gone, so it needs no end.
        Err(error) if error.kind() != ErrorKind::NotConnected => Err(error),
        // The end message can be held back too.
        _ => to.flush().await.map(|()| copied),
    }
}
