//! From one stream to another.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::panic::Location;
use std::pin::pin;
use std::task::Poll;

use traps::branch;
use traps::core::names::Site;

use crate::halves::Split;
use crate::limits::READ_BUFFER;
use crate::stream::Stream;

/// Writes to `to` what `from` gives, until its end, and returns how many bytes that were. *Blocks*
/// whenever there is nothing to read or no room to write. The end is not passed on: shut `to` down.
///
/// # Errors
///
/// Those of either stream, `WriteZero` if `to` takes nothing; the interrupt that ended a wait. What
/// was read and not yet written is lost then, 16 KiB at most.
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
    }
}

/// Copies in both directions at the same time, in one task. The end of a stream is passed on to the
/// other as a shutdown, after all that came before it, and the other direction goes on. Returns,
/// when both have ended, how many bytes went from `a` to `b` and from `b` to `a`. *Blocks*. Where
/// both directions can go on, that from `a` to `b` goes first.
///
/// # Errors
///
/// As for [`copy`], of the direction that failed first; the other one is given up then. To have
/// neither peer take a part for the whole, [reset](Stream::reset) both streams, if they are of TCP.
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

/// Copies, and passes the end on.
async fn direction(mut from: impl Stream, mut to: impl Stream, site: Site) -> io::Result<u64> {
    let copied = copy_from(&mut from, &mut to, site).await?;
    match to.shutdown() {
        // It has gone, and needs no end.
        Err(error) if error.kind() != ErrorKind::NotConnected => Err(error),
        _ => Ok(copied),
    }
}
