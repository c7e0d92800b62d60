//! A pipe in memory: a [`Stream`] without a socket, for protocol code on a simulated machine.
//!
//! Its operations wait in queues, not for descriptors. So if nothing else runs, the kernel can
//! detect that no bytes will ever arrive.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Read as _};
use std::panic::Location;
use std::rc::Rc;

use traps::Site;
use traps::WaitQueue;
use traps::internal::liberty::{Liberty, draw};

use crate::halves::Split;
use crate::stream::Stream;
use crate::try_io::until_done;

/// Makes a pipe and returns its two ends: each end reads what the other one writes. Each direction
/// holds at most `capacity` bytes (at least one), and a writer blocks while the direction is full.
#[must_use]
pub fn duplex(capacity: usize) -> (PipeEnd, PipeEnd) {
    let lane = || {
        let [reader, writer] = [(); 2].map(|()| WaitQueue::new().described("pipe", ""));
        Rc::new(Lane { capacity: capacity.max(1), reader, writer, ..Lane::default() })
    };
    let (there, back) = (lane(), lane());
    let one = PipeEnd { incoming: there.clone(), outgoing: back.clone(), most: usize::MAX };
    (one, PipeEnd { incoming: back, outgoing: there, most: usize::MAX })
}

/// One end of a pipe. Dropping it ends the other end's reads and breaks its writes, unless the pipe
/// was reset before.
#[derive(Debug)]
pub struct PipeEnd {
    pub(crate) incoming: Rc<Lane>,
    pub(crate) outgoing: Rc<Lane>,
    /// The largest number of bytes that one read or write moves.
    pub(crate) most: usize,
}

/// One direction of a pipe.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    bytes: RefCell<VecDeque<u8>>,
    capacity: usize,
    state: Cell<State>,
    /// The queue in which the reader waits; `writer` is the queue of the writer. Each side wakes
    /// the other side to try again.
    pub(crate) reader: WaitQueue,
    pub(crate) writer: WaitQueue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// One side was dropped or shut down. The bytes already written can still be read.
    Closed,
    /// One end has reset the pipe.
    Reset,
}

impl Lane {
    /// Checks whether a read can proceed. Returns `None` if the read would wait, and an error if
    /// the pipe was reset.
    fn look(&self) -> Option<io::Result<()>> {
        match self.state.get() {
            State::Reset => Some(Err(ErrorKind::ConnectionReset.into())),
            State::Open if self.bytes.borrow().is_empty() => None,
            State::Open | State::Closed => Some(Ok(())),
        }
    }

    pub(crate) fn take(&self, buf: &mut [u8]) -> Option<io::Result<usize>> {
        if buf.is_empty() {
            return Some(Ok(0));
        }
        let most = shortened(buf.len().min(self.bytes.borrow().len()));
        let taken = self.look()?.and_then(|()| self.bytes.borrow_mut().read(&mut buf[..most]));
        if let Ok(1..) = taken {
            self.writer.wake(1);
        }
        Some(taken)
    }

    pub(crate) fn put(&self, bufs: &[IoSlice<'_>], most: usize) -> Option<io::Result<usize>> {
        match self.state.get() {
            State::Reset => return Some(Err(ErrorKind::ConnectionReset.into())),
            State::Closed => return Some(Err(ErrorKind::BrokenPipe.into())),
            State::Open => {}
        }
        let mut bytes = self.bytes.borrow_mut();
        let before = bytes.len();
        let mut room = (self.capacity - before).min(most);
        if room == 0 && bufs.iter().any(|buf| !buf.is_empty()) {
            return None;
        }
        room = shortened(room.min(bufs.iter().map(|buf| buf.len()).sum()));
        for buf in bufs {
            let n = buf.len().min(room);
            bytes.extend(&buf[..n]);
            room -= n;
        }
        if bytes.len() > before {
            self.reader.wake(1);
        }
        Some(Ok(bytes.len() - before))
    }

    pub(crate) fn close(&self) {
        if self.state.get() == State::Open {
            self.change(State::Closed);
        }
    }

    fn change(&self, state: State) {
        self.state.set(state);
        self.reader.wake(u64::MAX);
        self.writer.wake(u64::MAX);
    }
}

/// Returns `bytes`, or a smaller number of at least one if an explorer chooses so.
fn shortened(bytes: usize) -> usize {
    bytes - draw(Liberty::Lengths, bytes.saturating_sub(1) as u64) as usize
}

/// Repeats `try_io` until it returns `Some`, and waits in the queue `line` before each retry.
fn operation<T>(
    line: &WaitQueue,
    site: Site,
    try_io: impl FnMut() -> Option<io::Result<T>>,
) -> impl Future<Output = io::Result<T>> {
    until_done(false, site, move || line.wait_from(site), try_io)
}

impl PipeEnd {
    pub(crate) fn readable_from(&self, site: Site) -> impl Future<Output = io::Result<()>> {
        operation(&self.incoming.reader, site, || self.incoming.look())
    }

    /// Limits each later read and write at this end to `most` bytes (at least one), as a network
    /// may do. Code that takes a packet for a message fails under such a limit.
    pub fn set_short_reads(&mut self, most: usize) {
        self.most = most.max(1);
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.outgoing.close();
        self.incoming.close();
    }
}

impl Split for PipeEnd {
    fn split(&mut self) -> (impl Stream, impl Stream) {
        (Half(self), Half(self))
    }
}

/// A borrowed end of a pipe, shared by two halves: one reads, and the other writes.
struct Half<'e>(&'e PipeEnd);

impl Stream for Half<'_> {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        let most = buf.len().min(self.0.most);
        let lane = &self.0.incoming;
        operation(&lane.reader, site, move || lane.take(&mut buf[..most]))
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        let (lane, most) = (&self.0.outgoing, self.0.most);
        operation(&lane.writer, site, || lane.put(bufs, most)).await
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        self.0.readable_from(Location::caller())
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.0.outgoing.close();
        Ok(())
    }

    fn has_failed(&self) -> bool {
        self.0.outgoing.state.get() != State::Open
    }
}

impl Stream for PipeEnd {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        let most = buf.len().min(self.most);
        let lane = &self.incoming;
        operation(&lane.reader, site, move || lane.take(&mut buf[..most]))
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        let (lane, most) = (&self.outgoing, self.most);
        operation(&lane.writer, site, || lane.put(bufs, most)).await
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        self.readable_from(Location::caller())
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.outgoing.close();
        Ok(())
    }

    /// Resets the pipe at once: every later operation at either end fails with `ConnectionReset`.
    fn reset(&mut self) -> io::Result<()> {
        for lane in [&self.outgoing, &self.incoming] {
            lane.bytes.borrow_mut().clear();
            lane.change(State::Reset);
        }
        Ok(())
    }

    fn has_failed(&self) -> bool {
        self.outgoing.state.get() != State::Open
    }

    #[track_caller]
    fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        let lane = &self.incoming;
        operation(&lane.reader, Location::caller(), || {
            (lane.state.get() != State::Open).then_some(Ok(()))
        })
    }
}
