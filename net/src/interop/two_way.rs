//! Streams whose two directions can wait at the same time.

use std::io::{self, ErrorKind, IoSlice};
use std::net::Shutdown;
use std::rc::Rc;

use rustix::io::{read, writev};
use traps::core::names::Site;
use traps::io::Direction;

use crate::attempt::attempt;
use crate::pipe::PipeEnd;
use crate::process::Pipe;
use crate::socket::{receive, taken_at_once, transmit_by};
use crate::stream::Stream;
use crate::tcp::TcpStream;

/// A stream that is tried and waited for through a shared reference.
///
/// A [`Stream`] is borrowed by its one wait. A library that polls has a wait in each direction, and
/// tries the other direction meanwhile.
#[allow(async_fn_in_trait, reason = "tasks of one thread need no Send bound")]
pub trait TwoWay: 'static {
    /// Reads what is there; `None` where nothing is. Zero: the peer has finished.
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>>;

    /// Writes some of the slices, in order; `None` where there is no room.
    fn put(&self, bufs: &[IoSlice<'_>]) -> Option<io::Result<usize>>;

    /// Waits until another try is worth it. *Blocks.* To be called only after a try gave `None`.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the system's.
    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()>;

    /// Says that nothing more will be written.
    ///
    /// # Errors
    ///
    /// The system's.
    fn end(this: &mut Rc<Self>) -> io::Result<()>;
}

impl TwoWay for TcpStream {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        if self.io.drained.get() && !buf.is_empty() { None } else { receive(&self.io, buf) }
    }

    fn put(&self, bufs: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        let bufs = taken_at_once(bufs);
        let size = bufs.iter().map(|buf| buf.len()).sum();
        if self.io.full.get() && 0 < size {
            return None;
        }
        transmit_by(&self.io, size, |socket| writev(socket, bufs))
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        match direction {
            Direction::Read => self.io.drained.set(false),
            Direction::Write => self.io.full.set(false),
        }
        Ok(self.io.ready(direction, site).await?)
    }

    fn end(this: &mut Rc<Self>) -> io::Result<()> {
        this.io.drained.set(false);
        this.io.full.set(false);
        this.io.stream.shutdown(Shutdown::Write)
    }
}

impl TwoWay for PipeEnd {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let most = buf.len().min(self.most);
        self.incoming.take(&mut buf[..most])
    }

    fn put(&self, bufs: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        self.outgoing.put(bufs, self.most)
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        let line = match direction {
            Direction::Read => &self.incoming.reader,
            Direction::Write => &self.outgoing.writer,
        };
        Ok(line.wait_from(site).await?)
    }

    fn end(this: &mut Rc<Self>) -> io::Result<()> {
        this.outgoing.close();
        Ok(())
    }
}

/// Once it has ended, a write fails with `BrokenPipe`.
impl TwoWay for Pipe {
    fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        let Some(io) = &self.0 else { return Some(Err(ErrorKind::BrokenPipe.into())) };
        let done = attempt(|| read(&**io, &mut *buf));
        done.iter().flatten().for_each(|n| io.note(Direction::Read, *n));
        done
    }

    fn put(&self, bufs: &[IoSlice<'_>]) -> Option<io::Result<usize>> {
        let Some(io) = &self.0 else { return Some(Err(ErrorKind::BrokenPipe.into())) };
        let done = attempt(|| writev(&**io, bufs));
        done.iter().flatten().for_each(|n| io.note(Direction::Write, *n));
        done
    }

    async fn wait(&self, direction: Direction, site: Site) -> io::Result<()> {
        match &self.0 {
            Some(io) => Ok(io.ready(direction, site).await?),
            None => Ok(()),
        }
    }

    /// A pipe that is written to has no wait for something to read, so nobody else shares it.
    fn end(this: &mut Rc<Self>) -> io::Result<()> {
        Rc::get_mut(this).map_or(Ok(()), Pipe::shutdown)
    }
}
