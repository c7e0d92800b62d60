//! A connection over a socket of either family, whole or in two halves.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::marker::PhantomData;
use std::net::{Shutdown, SocketAddr};
use std::ops::Deref;
use std::panic::Location;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use socket2::SockRef;
use traps::Site;
use traps::internal::take_budget;
use traps::io::{Io, Source};

use crate::family::{Family, Inet, local_addr, peer_addr};
use crate::record::{self, Handle};
use crate::socket::{self, FileSender, Readable, Socket};
use crate::stream::Stream;

/// A connection of an address family: a [`TcpStream`](crate::TcpStream) or a
/// [`UnixStream`](crate::UnixStream). It is a [`Stream`]. `read` and `write_all`, which are enough
/// for a small program, are also inherent methods.
///
/// Dropping it closes the connection, as soon as the kernel has released the descriptor. Written
/// bytes are still sent, unless there are bytes left to read. In that case the system resets the
/// connection.
#[derive(Debug)]
pub struct StreamSocket<F> {
    pub(crate) io: Io<Socket>,
    family: PhantomData<F>,
}

impl<F: Family> StreamSocket<F> {
    /// Takes ownership of a connected socket in non-blocking mode that has no duplicate.
    pub(crate) fn from_socket(socket: Handle<'c'>) -> StreamSocket<F> {
        StreamSocket { io: Io::new(Socket::new(socket)), family: PhantomData }
    }

    /// Takes ownership of a connected socket in non-blocking mode that may have duplicates.
    pub(crate) fn from_std(socket: Handle<'c'>) -> StreamSocket<F> {
        let stream = StreamSocket::from_socket(socket);
        stream.io.lent();
        stream
    }

    /// Returns the socket, for a read. If a short read does not prove the socket empty, makes the
    /// next read try.
    #[inline(always)]
    pub(crate) fn reader(&self) -> &Io<Socket> {
        if !F::SHORT_IS_ALL {
            self.io.drained.set(false);
        }
        &self.io
    }

    /// Logs the connection as accepted by `listener`.
    #[inline]
    pub(crate) fn accepted_by<L: Source>(self, listener: &Io<L>) -> StreamSocket<F> {
        listener.note_accept(&self.io, || self.peer());
        self
    }

    /// Reads the bytes that have arrived into `buf`. Blocks while there are none. Returns zero if
    /// the peer has finished writing (or `buf` is empty).
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example `ConnectionReset`. Returns `ResourceBusy` if another
    /// task is reading, and the interrupt that ended the wait. After an error nothing was read.
    #[track_caller]
    pub fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        socket::read(self.reader(), buf, Location::caller())
    }

    /// Writes all of `buf`. Blocks when there is no room.
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example `BrokenPipe`. Returns `ResourceBusy` if another task
    /// is writing, and the interrupt that ended the wait. After an error a part of `buf` may have
    /// been written; compare [`StreamSocket::written`] before and after the call.
    #[track_caller]
    pub fn write_all(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<()>> {
        socket::write_all(&self.io, buf, Location::caller())
    }

    /// Returns the number of bytes that the system has taken so far. It shows how much of a failed
    /// `write_all` was written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.io.written()
    }

    /// Returns two halves for two branches of a join: one reads while the other writes. Each is a
    /// [`Stream`].
    pub fn split(&mut self) -> (ReadHalf<&Self>, WriteHalf<&Self>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Splits the connection into two halves for two tasks: one reads while the other writes. Each
    /// is a [`Stream`]. The connection closes when both are dropped. Dropping the writing half
    /// shuts the writing direction down.
    ///
    /// ```
    /// use std::io;
    /// use net::{Stream, TcpStream};
    ///
    /// /// Sends a text in a task of its own, and reads the peer's bytes in the meantime.
    /// async fn talk(stream: TcpStream, text: &'static [u8]) -> io::Result<Vec<u8>> {
    ///     let (mut reader, mut writer) = stream.into_split();
    ///     let mut sent = traps::spawn("send", async move { writer.write_all(text).await }).await;
    ///     let mut heard = Vec::new();
    ///     reader.read_to_end(&mut heard, 1 << 20).await?;
    ///     sent.join().await.expect("a write does not panic")?;
    ///     Ok(heard)
    /// }
    /// ```
    #[must_use]
    pub fn into_split(self) -> (OwnedReadHalf<F>, OwnedWriteHalf<F>) {
        let both = Rc::new(self);
        (ReadHalf(both.clone()), WriteHalf(WriteSide(Some(both))))
    }

    /// Shuts one direction or both down. The peer reads the end of the stream after the written
    /// bytes.
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example `NotConnected`.
    pub fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        socket::shutdown(&self.io, how)
    }

    /// Returns the address of the other end.
    ///
    /// # Errors
    ///
    /// Returns the system's error: `NotConnected` if the connection was reset.
    pub fn peer_addr(&self) -> io::Result<F::Address> {
        peer_addr::<F, _>(&self.io.fd)
    }

    /// Returns the address of this end.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn local_addr(&self) -> io::Result<F::Address> {
        local_addr::<F, _>(&self.io.fd)
    }

    /// Asks the system for buffers of these sizes, in bytes.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn set_buffer_sizes(&self, receive: usize, send: usize) -> io::Result<()> {
        record::call("buffers", || {
            let fd = self.io.fd.get()?;
            SockRef::from(&fd).set_recv_buffer_size(receive)?;
            SockRef::from(&fd).set_send_buffer_size(send)
        })
    }
}

impl<F: Family> Stream for StreamSocket<F> {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        socket::read(self.reader(), buf, site)
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        socket::write(&self.io, bufs, site).await
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        Readable::new(self.reader(), Location::caller())
    }

    #[inline(always)]
    fn try_read(&mut self, buf: &mut [u8], _: &mut Context<'_>) -> Option<io::Result<usize>> {
        if take_budget() { socket::receive(&self.io, buf, None) } else { None }
    }

    #[inline(always)]
    fn try_write(&mut self, buf: &[u8], _: &mut Context<'_>) -> Option<io::Result<usize>> {
        if self.io.full.take() && !buf.is_empty() || !take_budget() {
            return None;
        }
        socket::transmit(&self.io, buf, None)
    }

    fn shutdown(&mut self) -> io::Result<()> {
        socket::shutdown(&self.io, Shutdown::Write)
    }

    fn reset(&mut self) -> io::Result<()> {
        // A close with a linger time of zero discards the unsent bytes and resets the connection.
        let zero = Some(Duration::ZERO);
        record::call("linger", || SockRef::from(&self.io.fd.get()?).set_linger(zero))
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::closed(&self.io, Location::caller())
    }

    fn has_failed(&self) -> bool {
        socket::has_failed(&self.io)
    }

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::sent(&self.io, Location::caller())
    }

    fn file_sender(&self) -> Option<FileSender<'_>> {
        Some(FileSender(&self.io))
    }

    fn peer(&self) -> Option<SocketAddr> {
        peer_addr::<Inet, _>(&self.io.fd).ok()
    }
}

// ---- Halves -------------------------------------------------------------------------------------

/// The reading half of a connection, borrowed or owned. It is a [`Stream`] whose writes all fail
/// with `Unsupported`.
#[derive(Debug)]
pub struct ReadHalf<C>(pub(crate) C);

/// The writing half of a connection, borrowed or owned. It is a [`Stream`] whose reads all fail
/// with `Unsupported`. It cannot reset the connection; only the whole connection can do that.
#[derive(Debug)]
pub struct WriteHalf<C>(pub(crate) C);

/// The reading half of a connection, for a separate task. Made by [`StreamSocket::into_split`].
pub type OwnedReadHalf<F> = ReadHalf<Rc<StreamSocket<F>>>;

/// The writing half of a connection, for a separate task. Made by [`StreamSocket::into_split`].
/// Dropping it shuts the writing direction down.
pub type OwnedWriteHalf<F> = WriteHalf<WriteSide<F>>;

/// The connection of an [`OwnedWriteHalf`]. Dropping it shuts the writing direction down.
#[derive(Debug)]
pub struct WriteSide<F: Family>(Option<Rc<StreamSocket<F>>>);

impl<F: Family> Deref for WriteSide<F> {
    type Target = StreamSocket<F>;
    fn deref(&self) -> &StreamSocket<F> {
        self.0.as_ref().expect("only a half that is reunited has given its connection up")
    }
}

impl<F: Family> Drop for WriteSide<F> {
    fn drop(&mut self) {
        // This fails if the connection has failed. In that case the peer has already seen an end.
        let _ = self.0.iter().try_for_each(|both| socket::shutdown(&both.io, Shutdown::Write));
    }
}

impl<F: Family> OwnedReadHalf<F> {
    /// Puts the two halves of a connection together again.
    ///
    /// # Errors
    ///
    /// Returns both halves if they belong to different connections.
    pub fn reunite(
        self,
        mut other: OwnedWriteHalf<F>,
    ) -> Result<StreamSocket<F>, (OwnedReadHalf<F>, OwnedWriteHalf<F>)> {
        if !std::ptr::eq(&raw const *self.0, &raw const *other.0) {
            return Err((self, other));
        }
        drop(other.0.0.take());
        Ok(Rc::into_inner(self.0).expect("a connection has two halves"))
    }
}

impl<F: Family, C: Deref<Target = StreamSocket<F>>> Stream for ReadHalf<C> {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        socket::read(self.0.reader(), buf, site)
    }

    async fn write_from(&mut self, _: &[IoSlice<'_>], _: Site) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        Readable::new(self.0.reader(), Location::caller())
    }

    /// Does nothing, because this half writes nothing.
    fn shutdown(&mut self) -> io::Result<()> {
        Ok(())
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::closed(&self.0.io, Location::caller())
    }

    fn has_failed(&self) -> bool {
        socket::has_failed(&self.0.io)
    }

    fn peer(&self) -> Option<SocketAddr> {
        peer_addr::<Inet, _>(&self.0.io.fd).ok()
    }
}

impl<F: Family, C: Deref<Target = StreamSocket<F>>> Stream for WriteHalf<C> {
    async fn read_from(&mut self, _: &mut [u8], _: Site) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        socket::write(&self.0.io, bufs, site).await
    }

    async fn readable(&mut self) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }

    fn shutdown(&mut self) -> io::Result<()> {
        socket::shutdown(&self.0.io, Shutdown::Write)
    }

    fn has_failed(&self) -> bool {
        socket::has_failed(&self.0.io)
    }

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::sent(&self.0.io, Location::caller())
    }

    fn peer(&self) -> Option<SocketAddr> {
        peer_addr::<Inet, _>(&self.0.io.fd).ok()
    }
}
