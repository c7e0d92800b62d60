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
