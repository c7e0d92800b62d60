//! The implementation of the traits of `futures-io`.

use std::pin::Pin;
use std::task::{Context, Poll};

use ::futures_io::{AsyncRead, AsyncWrite};
use traps::io::Direction;

use super::{Compat, Polled, TwoWay};

impl<S: TwoWay> AsyncRead for Compat<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut [u8]) -> Polled<usize> {
        self.poll(Direction::Read, cx, |stream| stream.take(buf))
    }
}

impl<S: TwoWay> AsyncWrite for Compat<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Polled<usize> {
        self.poll(Direction::Write, cx, |stream| stream.put(buf))
    }

    /// Does nothing, because this adapter holds back no bytes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<()> {
        Poll::Ready(Ok(()))
    }

    /// Shuts the writing direction down.
    fn poll_close(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<()> {
        self.poll_end()
    }
}
