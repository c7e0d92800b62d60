//! The implementation of the traits of tokio.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use traps::io::Direction;

use super::{Compat, Polled, TwoWay};

impl<S: TwoWay> AsyncRead for Compat<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Polled<()> {
        let rest = buf.initialize_unfilled();
        let n = ready!(self.poll(Direction::Read, cx, |stream| stream.take(rest)))?;
        buf.advance(n);
        Poll::Ready(Ok(()))
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
    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled<()> {
        self.poll_end()
    }
}
