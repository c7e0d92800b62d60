//! A connection over a socket of either family, whole or in halves.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::marker::PhantomData;
use std::net::{Shutdown, SocketAddr};
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::panic::Location;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

use socket2::SockRef;
use traps::core::names::Site;
use traps::io::{Io, Source};
use traps::take_budget;

use crate::family::{Family, Inet, local_addr, peer_addr};
use crate::socket::{self, Readable, Socket};
use crate::stream::Stream;

/// A connection of a family: a [`TcpStream`](crate::TcpStream) or a
/// [`UnixStream`](crate::UnixStream), which is a [`Stream`]. The two methods that a small program
/// needs are here as well.
///
/// Dropping it closes it: the kernel does, as soon as it has let go of the descriptor. Bytes that
/// were written still go out, unless there are unread ones: then the system resets the connection.
#[derive(Debug)]
pub struct StreamSocket<F> {
    pub(crate) io: Io<Socket>,
    family: PhantomData<F>,
}

impl<F: Family> StreamSocket<F> {
    /// Takes a connected socket in non-blocking mode of which no duplicate exists.
    pub(crate) fn from_socket(socket: impl Into<OwnedFd>) -> StreamSocket<F> {
        StreamSocket { io: Io::new(Socket::new(socket.into())), family: PhantomData }
    }

    /// The socket, for a read: after a short one the next has to try, unless that took all.
    #[inline(always)]
    pub(crate) fn reader(&self) -> &Io<Socket> {
        if !F::SHORT_IS_ALL {
            self.io.drained.set(false);
        }
        &self.io
    }

    /// The log introduces it as what that listener accepted.
    #[inline]
    pub(crate) fn accepted_by<L: Source>(self, listener: &Io<L>) -> StreamSocket<F> {
        listener.note_accept(&self.io, || Stream::peer_addr(&self));
        self
    }

    /// Reads what is there into `buf`; blocks while nothing is. Zero: the peer has finished
    /// writing (or `buf` is empty).
    ///
    /// # Errors
    ///
    /// The system's, for example `ConnectionReset`; `ResourceBusy` if another task reads already;
    /// the interrupt that ended the wait: nothing was read then.
    #[track_caller]
    pub fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        socket::read(self.reader(), buf, Location::caller())
    }

    /// Writes all of `buf`, blocking whenever there is no room.
    ///
    /// # Errors
    ///
    /// The system's, for example `BrokenPipe`; `ResourceBusy` if another task writes already; the
    /// interrupt that ended the wait. Some of `buf` may be written then; how much is the difference
    /// in [`StreamSocket::written`].
    #[track_caller]
    pub fn write_all(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<()>> {
        socket::write_all(&self.io, buf, Location::caller())
    }

    /// How many bytes the system has taken in all: how far a `write_all` came before its error.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.io.written.get()
    }

    /// Two halves for two branches of a join: one reads while the other writes. Each is a
    /// [`Stream`].
    pub fn split(&mut self) -> (ReadHalf<&Self>, WriteHalf<&Self>) {
        (ReadHalf(self), WriteHalf(self))
    }

    /// Two halves for two tasks, each a [`Stream`]: one reads while the other writes. The
    /// connection closes when both are dropped. Dropping the half that writes ends what the peer
    /// reads, as its `shutdown` does.
    ///
    /// ```
    /// use std::io;
    /// use net::{Stream, TcpStream};
    ///
    /// /// Sends a text in a task of its own, and reads what comes meanwhile.
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

    /// Ends one direction or both. The peer reads the end of the stream after what was written.
    ///
    /// # Errors
    ///
    /// The system's, for example `NotConnected`.
    pub fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        socket::shutdown(&self.io, how)
    }

    /// The address of the other end.
    ///
    /// # Errors
    ///
    /// The system's: `NotConnected` when the connection was reset.
    pub fn peer_addr(&self) -> io::Result<F::Address> {
        peer_addr::<F>(&self.io.fd)
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn local_addr(&self) -> io::Result<F::Address> {
        local_addr::<F>(&self.io.fd)
    }

    /// Asks the system for buffers of so many bytes for receiving and for sending.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn set_buffer_sizes(&self, receive: usize, send: usize) -> io::Result<()> {
        let socket = SockRef::from(&self.io.fd);
        socket.set_recv_buffer_size(receive)?;
        socket.set_send_buffer_size(send)
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
        if take_budget() { socket::receive(&self.io, buf) } else { None }
    }

    #[inline(always)]
    fn try_write(&mut self, buf: &[u8], _: &mut Context<'_>) -> Option<io::Result<usize>> {
        if self.io.full.take() && !buf.is_empty() || !take_budget() {
            return None;
        }
        socket::transmit(&self.io, buf)
    }

    fn shutdown(&mut self) -> io::Result<()> {
        socket::shutdown(&self.io, Shutdown::Write)
    }

    fn reset(&mut self) -> io::Result<()> {
        // A close that lingers for no time throws away what is unsent, and resets.
        SockRef::from(&self.io.fd).set_linger(Some(Duration::ZERO))
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::closed(&self.io, Location::caller())
    }

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::sent(&self.io, Location::caller())
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        peer_addr::<Inet>(&self.io.fd).ok()
    }
}

// ---- Halves -------------------------------------------------------------------------------------

/// The reading half of a connection that is lent or owned: a [`Stream`] of which every write fails
/// with `Unsupported`.
#[derive(Debug)]
pub struct ReadHalf<C>(C);

/// The writing half of a connection that is lent or owned: a [`Stream`] of which every read fails
/// with `Unsupported`. It knows no reset: that is for the whole connection.
#[derive(Debug)]
pub struct WriteHalf<C>(C);

/// The reading half of a connection, for a task of its own: [`StreamSocket::into_split`].
pub type OwnedReadHalf<F> = ReadHalf<Rc<StreamSocket<F>>>;

/// The writing half of a connection, for a task of its own: [`StreamSocket::into_split`]. Dropping
/// it ends what the peer reads.
pub type OwnedWriteHalf<F> = WriteHalf<WriteSide<F>>;

/// The connection of an [`OwnedWriteHalf`]: dropping it ends what the peer reads.
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
        // It fails where the connection has failed: then the peer has met an end already.
        let _ = self.0.iter().try_for_each(|both| socket::shutdown(&both.io, Shutdown::Write));
    }
}

impl<F: Family> OwnedReadHalf<F> {
    /// Puts a connection together again.
    ///
    /// # Errors
    ///
    /// Both halves, if they are of different connections.
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

    /// Nothing was ever to be written here.
    fn shutdown(&mut self) -> io::Result<()> {
        Ok(())
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::closed(&self.0.io, Location::caller())
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        peer_addr::<Inet>(&self.0.io.fd).ok()
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

    #[track_caller]
    fn sent(&mut self) -> impl Future<Output = io::Result<()>> {
        socket::sent(&self.0.io, Location::caller())
    }

    fn peer_addr(&self) -> Option<SocketAddr> {
        peer_addr::<Inet>(&self.0.io.fd).ok()
    }
}
