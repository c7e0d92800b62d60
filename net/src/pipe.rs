//! A pipe in memory: a [`Stream`] without a socket, for protocol code on a simulated machine.
//!
//! It waits in queues, so a kernel that runs nothing else can tell that nothing will ever come.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use traps::core::names::Site;
use traps::{Wait, WaitQueue};

use crate::attempt::{Attempt, First};
use crate::stream::Stream;

/// The two ends of a pipe: what one writes the other reads. Each direction holds at most
/// `capacity` bytes (at least one); a writer that is further ahead blocks.
#[must_use]
pub fn duplex(capacity: usize) -> (PipeEnd, PipeEnd) {
    let (there, back) = (Rc::new(Lane::new(capacity)), Rc::new(Lane::new(capacity)));
    (PipeEnd::new(there.clone(), back.clone()), PipeEnd::new(back, there))
}

/// One end of a pipe. Dropping it ends what the other end reads, and breaks what it writes, unless
/// it was reset before.
#[derive(Debug)]
pub struct PipeEnd {
    incoming: Rc<Lane>,
    outgoing: Rc<Lane>,
    /// The most that one read or write moves.
    most: usize,
}

/// One direction.
#[derive(Debug)]
struct Lane {
    bytes: RefCell<VecDeque<u8>>,
    capacity: usize,
    /// Nothing more will be written.
    ended: Cell<bool>,
    /// Nobody will read.
    broken: Cell<bool>,
    /// One end gave the pipe up.
    reset: Cell<bool>,
    reader: Side,
    writer: Side,
}

/// Where one side waits for the other.
///
/// A permit, not a wake: it also reaches a wait that was filed in the same poll, which stands in
/// no line yet (both ends in one `join`), and it survives a wait that is interrupted meanwhile.
#[derive(Debug, Default)]
struct Side {
    line: WaitQueue,
    /// Somebody has begun to wait since the last call. At most one permit answers it.
    taken: Cell<bool>,
}

impl Side {
    fn would_block<T>(&self) -> io::Result<T> {
        // An answer that is left here was for a wait that was given up.
        while self.line.try_take_permit() {}
        self.taken.set(true);
        Err(ErrorKind::WouldBlock.into())
    }

    /// Has the one who waits here try again.
    fn call(&self) {
        if self.taken.take() {
            self.line.give_permit();
        }
    }
}

impl Lane {
    fn new(capacity: usize) -> Lane {
        Lane {
            bytes: RefCell::default(),
            capacity: capacity.max(1),
            ended: Cell::new(false),
            broken: Cell::new(false),
            reset: Cell::new(false),
            reader: Side::default(),
            writer: Side::default(),
        }
    }

    fn take(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.check()?;
        let mut bytes = self.bytes.borrow_mut();
        if bytes.is_empty() && !self.ended.get() && !buf.is_empty() {
            return self.reader.would_block();
        }
        let n = io::Read::read(&mut *bytes, buf)?;
        if n > 0 {
            self.writer.call();
        }
        Ok(n)
    }

    fn look(&self) -> io::Result<()> {
        self.check()?;
        if self.bytes.borrow().is_empty() && !self.ended.get() {
            return self.reader.would_block();
        }
        Ok(())
    }

    fn put(&self, bufs: &[IoSlice<'_>], most: usize) -> io::Result<usize> {
        self.check()?;
        if self.ended.get() || self.broken.get() {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let mut bytes = self.bytes.borrow_mut();
        let before = bytes.len();
        let mut room = (self.capacity - before).min(most);
        if room == 0 && bufs.iter().any(|buf| !buf.is_empty()) {
            return self.writer.would_block();
        }
        for buf in bufs {
            let n = buf.len().min(room);
            bytes.extend(&buf[..n]);
            room -= n;
        }
        if bytes.len() > before {
            self.reader.call();
        }
        Ok(bytes.len() - before)
    }

    fn check(&self) -> io::Result<()> {
        if self.reset.get() { Err(ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }

    fn reset(&self) {
        self.reset.set(true);
        self.bytes.borrow_mut().clear();
        self.reader.call();
        self.writer.call();
    }

    fn end(&self) {
        self.ended.set(true);
        self.reader.call();
    }

    fn break_off(&self) {
        self.broken.set(true);
        self.writer.call();
    }
}

impl PipeEnd {
    fn new(incoming: Rc<Lane>, outgoing: Rc<Lane>) -> PipeEnd {
        PipeEnd { incoming, outgoing, most: usize::MAX }
    }

    /// From now on a read or a write at this end moves at most `most` bytes (at least one), as a
    /// network may do: code that takes a message for a packet fails.
    pub fn set_short_reads(&mut self, most: usize) {
        self.most = most.max(1);
    }
}

impl Drop for PipeEnd {
    fn drop(&mut self) {
        self.outgoing.end();
        self.incoming.break_off();
    }
}

impl Stream for PipeEnd {
    #[track_caller]
    fn read(&mut self, buf: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.read_from(buf, Location::caller())
    }

    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        let most = buf.len().min(self.most);
        let (lane, buf) = (&*self.incoming, &mut buf[..most]);
        operation(&lane.reader, site, move || lane.take(buf))
    }

    #[track_caller]
    fn write(&mut self, buf: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.write_from(buf, Location::caller())
    }

    fn write_from(&mut self, buf: &[u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        let (lane, most) = (&*self.outgoing, self.most);
        operation(&lane.writer, site, move || lane.put(&[IoSlice::new(buf)], most))
    }

    #[track_caller]
    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> impl Future<Output = io::Result<usize>> {
        let (lane, most) = (&*self.outgoing, self.most);
        operation(&lane.writer, Location::caller(), move || lane.put(bufs, most))
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        let lane = &*self.incoming;
        operation(&lane.reader, Location::caller(), move || lane.look())
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.outgoing.end();
        Ok(())
    }

    /// At once: from here on every operation at either end fails with `ConnectionReset`.
    fn reset(&mut self) -> io::Result<()> {
        self.outgoing.reset();
        self.incoming.reset();
        Ok(())
    }
}

fn operation<F>(side: &Side, site: Site, operation: F) -> Operation<F> {
    let wait = side.line.wait_for_permit_from(site);
    Operation { attempt: Attempt::new(First::Try, site, wait), operation }
}

/// The future of a read or a write.
struct Operation<F> {
    attempt: Attempt<Wait>,
    operation: F,
}

// It is never pinned inside: the operation is called, not polled.
impl<F> Unpin for Operation<F> {}

impl<F, T> Future for Operation<F>
where
    F: FnMut() -> io::Result<T>,
{
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let Operation { attempt, operation } = &mut *self;
        attempt.poll(cx, operation)
    }
}
