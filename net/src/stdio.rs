//! The standard input and output of the program, as streams.
//!
//! Epoll refuses files, and non-blocking mode would also change the terminal of the shell that has
//! started the program. So a thread stands behind each of the two: it calls read(2) or write(2),
//! which may block, and tasks wait for the thread. The thread of the input reads only while a task
//! wants bytes or has wanted some, so another program can have the rest.
//!
//! - **A read that was dropped or interrupted** leaves the thread in its read(2). The bytes that it
//!   reads are kept for the next reader.
//! - **At the end of the program** a blocked thread holds nothing up: it ends with the process. No
//!   shutdown of a kernel waits for it. Bytes that the thread of the output has not written by then
//!   are lost, so [flush](Stream::flush) the output, as `write_all` does.
//!
//! A replay reads the input from its record, and writes no output.
//!
//! ```no_run
//! use net::stdio::{stdin, stdout};
//! use net::{BufReader, Stream};
//!
//! # async fn example() -> std::io::Result<()> {
//! let mut input = stdin();
//! let mut reader = BufReader::new(&mut input);
//! let mut lines = reader.lines(1024);
//! while let Some(line) = lines.next().await? {
//!     stdout().write_all(&[line, b"\n"].concat()).await?;
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread;

use traps::{Interrupt, OutsideWaker, Site, WaitOutside, outside};

use crate::limits::READ_BUFFER;
use crate::record::{self, TryIo};
use crate::stream::Stream;
use crate::try_io::{note_site, until_done};

/// The largest number of written bytes that the thread has not passed to the system.
const MOST_UNWRITTEN: usize = 64 * 1024;

static INPUT: Lane = Lane::new("stdin", read_for_tasks);
static OUTPUT: Lane = Lane::new("stdout", write_for_tasks);

/// Returns the standard input of the program. All values are the same stream, also in several
/// kernels: each byte goes to one reader.
#[must_use]
pub fn stdin() -> Stdin {
    Stdin(())
}

/// Returns the standard output of the program. All values are the same stream, also in several
/// kernels: the bytes of one write that fits stay together.
#[must_use]
pub fn stdout() -> Stdout {
    Stdout(())
}

/// The standard input of the program: a [`Stream`] to read from. A write fails with `Unsupported`.
#[derive(Debug)]
pub struct Stdin(());

/// The standard output of the program: a [`Stream`] to write to. A read fails with `Unsupported`.
///
/// A write ends when the thread has the bytes, and a [flush](Stream::flush) when the system has
/// them. An error of the system, such as `BrokenPipe`, is the error of the next write or flush, and
/// the bytes before it are lost.
#[derive(Debug)]
pub struct Stdout(());

/// One direction: what its thread and the tasks share.
struct Lane {
    name: &'static str,
    state: Mutex<State>,
    /// The thread waits here for work.
    work: Condvar,
    run: fn(&'static Lane),
}

struct State {
    is_started: bool,
    /// The bytes that no task has read, or that the thread has not begun to write.
    bytes: VecDeque<u8>,
    /// Whether the thread must read, or is writing.
    is_busy: bool,
    has_ended: bool,
    /// The error of the system, for the next operation.
    error: Option<io::Error>,
    /// The waits of tasks, by their numbers.
    waits: BTreeMap<u64, OutsideWaker>,
    /// The number of the next wait.
    next: u64,
}

impl Lane {
    const fn new(name: &'static str, run: fn(&'static Lane)) -> Lane {
        let state = State {
            is_started: false,
            bytes: VecDeque::new(),
            is_busy: false,
            has_ended: false,
            error: None,
            waits: BTreeMap::new(),
            next: 0,
        };
        Lane { name, state: Mutex::new(state), work: Condvar::new(), run }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks the thread of this lane while `condition` holds.
    fn wait_while(&self, condition: fn(&mut State) -> bool) -> MutexGuard<'_, State> {
        self.work.wait_while(self.lock(), condition).unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the thread, unless it runs. If that fails, the next operation gets the error.
    fn start(&'static self, state: &mut State) {
        if !state.is_started {
            let started = thread::Builder::new().name(self.name.to_owned());
            match started.spawn(move || (self.run)(self)) {
                Ok(_) => state.is_started = true,
                Err(error) => state.error = Some(error),
            }
        }
    }

    /// Wakes all tasks, because the thread has done something.
    fn wake(mut state: MutexGuard<'_, State>) {
        let waits = mem::take(&mut state.waits);
        drop(state);
        waits.into_values().for_each(|waker| waker.wake());
    }

    /// Waits until the thread has done something, or returns at once if `is_ready` holds. `asks`
    /// is called first if it does not.
    fn wait(
        &'static self,
        is_ready: fn(&State) -> bool,
        asks: fn(&mut State),
    ) -> impl Future<Output = Result<(), Interrupt>> + Unpin {
        let mut state = self.lock();
        let id = state.next;
        state.next += 1;
        drop(state);
        let register = move |waker| {
            let register = || {
                let mut state = self.lock();
                self.start(&mut state);
                let waits = state.error.is_none() && !is_ready(&state);
                if waits {
                    asks(&mut state);
                    state.waits.insert(id, waker);
                    self.work.notify_one();
                }
                Ok(waits)
            };
            // A replay must not ask the thread, because it has none.
            record::call("waits", register).unwrap_or(false)
        };
        Wait { wait: outside(self.name, register).external(), lane: self, id }
    }
}

/// A wait of a task for the thread. Dropping it removes its waker.
struct Wait<R> {
    wait: WaitOutside<R>,
    lane: &'static Lane,
    id: u64,
}

impl<R: FnMut(OutsideWaker) -> bool> Future for Wait<R> {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.wait).poll(cx)
    }
}

impl<R> Drop for Wait<R> {
    fn drop(&mut self) {
        self.lane.lock().waits.remove(&self.id);
    }
}

/// The thread of the input.
fn read_for_tasks(lane: &'static Lane) {
    let mut buf = vec![0; READ_BUFFER];
    loop {
        drop(lane.wait_while(|state| !state.is_busy));
        let read = io::stdin().lock().read(&mut buf);
        let mut state = lane.lock();
        match read {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => state.error = Some(error),
            Ok(0) => state.has_ended = true,
            Ok(n) => state.bytes.extend(&buf[..n]),
        }
        state.is_busy = false;
        let has_ended = state.has_ended;
        Lane::wake(state);
        if has_ended {
            return;
        }
    }
}

/// The thread of the output.
fn write_for_tasks(lane: &'static Lane) {
    loop {
        let mut state = lane.wait_while(|state| state.bytes.is_empty());
        let bytes = Vec::from(mem::take(&mut state.bytes));
        state.is_busy = true;
        drop(state);
        let mut output = io::stdout().lock();
        let written = output.write_all(&bytes).and_then(|()| output.flush());
        drop(output);
        let mut state = lane.lock();
        state.is_busy = false;
        // Keep the error of an earlier write until a task has taken it.
        state.error = state.error.take().or(written.err());
        Lane::wake(state);
    }
}

fn unsupported<T>() -> io::Result<T> {
    Err(ErrorKind::Unsupported.into())
}

impl Stdin {
    /// Repeats `take` until it does not return `None`.
    async fn until_done(
        &self,
        site: Site,
        mut take: impl FnMut() -> TryIo<usize>,
    ) -> io::Result<usize> {
        let has_some = |state: &State| !state.bytes.is_empty() || state.has_ended;
        note_site(site);
        until_done(false, site, || INPUT.wait(has_some, |state| state.is_busy = true), &mut take)
            .await
    }
}

/// Takes bytes that the thread has read, if `buf` has room. Returns `None` if there are none.
fn take(buf: &mut [u8]) -> TryIo<usize> {
    let mut state = INPUT.lock();
    match state.error.take() {
        Some(error) => Some(Err(error)),
        None if state.bytes.is_empty() && !state.has_ended => None,
        None => Some(state.bytes.read(buf)),
    }
}

impl Stream for Stdin {
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        self.until_done(site, || record::read(buf, take)).await
    }

    async fn write_from(&mut self, _: &[IoSlice<'_>], _: Site) -> io::Result<usize> {
        unsupported()
    }

    #[track_caller]
    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        let looked = self.until_done(Location::caller(), || record::read(&mut [], take));
        async { looked.await.map(drop) }
    }

    /// Does nothing.
    fn shutdown(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives bytes to the thread. Returns `None` if there is no room.
fn put(bufs: &[IoSlice<'_>]) -> TryIo<usize> {
    let mut state = OUTPUT.lock();
    OUTPUT.start(&mut state);
    if let Some(error) = state.error.take() {
        return Some(Err(error));
    }
    let before = state.bytes.len();
    if before >= MOST_UNWRITTEN {
        return None;
    }
    for buf in bufs {
        let room = MOST_UNWRITTEN - state.bytes.len();
        state.bytes.extend(&buf[..buf.len().min(room)]);
    }
    OUTPUT.work.notify_one();
    Some(Ok(state.bytes.len() - before))
}

impl Stream for Stdout {
    async fn read_from(&mut self, _: &mut [u8], _: Site) -> io::Result<usize> {
        unsupported()
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        let has_room = |state: &State| state.bytes.len() < MOST_UNWRITTEN;
        note_site(site);
        let put = || record::sent(bufs, || put(bufs));
        until_done(false, site, || OUTPUT.wait(has_room, |_| {}), put).await
    }

    #[track_caller]
    fn flush(&mut self) -> impl Future<Output = io::Result<()>> {
        let has_written = |state: &State| state.bytes.is_empty() && !state.is_busy;
        let look = move || {
            let mut state = OUTPUT.lock();
            let error = state.error.take();
            error.map(Err).or_else(|| has_written(&state).then_some(Ok(())))
        };
        let flushed = move || record::try_io("flush", look);
        let wait = move || OUTPUT.wait(has_written, |_| {});
        until_done(false, Location::caller(), wait, flushed)
    }

    async fn readable(&mut self) -> io::Result<()> {
        unsupported()
    }

    /// Does nothing: the output ends with the program.
    fn shutdown(&mut self) -> io::Result<()> {
        Ok(())
    }
}
