//! Given: the machine below the kernel. A clock, a way to wait, and what comes from outside.
//!
//! Steps 7 to 12 use this file as it is. The bell, and the argument `outside` of `wait`, are for
//! the threads of step 10.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::*;

/// A function that ends the wait of a machine, from any thread.
pub(super) type Bell = Arc<dyn Fn() + Send + Sync>;
/// No handle has this number.
const BELL: Token = Token(usize::MAX);

/// An event from outside.
pub enum Arrival {
    Ready(HandleId, Direction),
    /// Another thread has rung.
    Bell,
}

pub trait Machine {
    /// Returns the name of the machine for the first line of the log.
    fn name(&self) -> &'static str;
    fn now(&self) -> Time;
    /// Waits until this time, or until an event arrives. Without a time, waits for events alone.
    /// `outside` is set if a thread is at work, which will ring.
    fn wait(
        &mut self,
        until: Option<Time>,
        outside: bool,
        arrivals: &mut Vec<Arrival>,
    ) -> io::Result<()>;
    /// Asks for reports when the descriptor becomes ready, for both directions.
    fn register(&mut self, descriptor: RawFd, handle: HandleId) -> io::Result<()>;
    fn unregister(&mut self, descriptor: RawFd) -> io::Result<()>;
    fn bell(&self) -> Bell;
}

/// Linux, with its real clock.
pub struct Real {
    start: Instant,
    poll: Poll,
    events: Events,
    waker: Arc<mio::Waker>,
}

impl Real {
    pub fn new() -> io::Result<Real> {
        let poll = Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), BELL)?);
        Ok(Real { start: Instant::now(), poll, events: Events::with_capacity(1024), waker })
    }
}

impl Machine for Real {
    fn name(&self) -> &'static str {
        "real"
    }

    fn now(&self) -> Time {
        Time(self.start.elapsed())
    }

    fn wait(
        &mut self,
        until: Option<Time>,
        _: bool,
        arrivals: &mut Vec<Arrival>,
    ) -> io::Result<()> {
        let span = until.map(|until| until.0.saturating_sub(self.now().0));
        match self.poll.poll(&mut self.events, span) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &self.events {
            if event.token() == BELL {
                arrivals.push(Arrival::Bell);
                continue;
            }
            let handle = event.token().0 as HandleId;
            if event.is_readable() || event.is_read_closed() || event.is_error() {
                arrivals.push(Arrival::Ready(handle, Direction::Read));
            }
            if event.is_writable() || event.is_write_closed() || event.is_error() {
                arrivals.push(Arrival::Ready(handle, Direction::Write));
            }
        }
        Ok(())
    }

    fn register(&mut self, descriptor: RawFd, handle: HandleId) -> io::Result<()> {
        let both = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut SourceFd(&descriptor), Token(handle as usize), both)
    }

    fn unregister(&mut self, descriptor: RawFd) -> io::Result<()> {
        self.poll.registry().deregister(&mut SourceFd(&descriptor))
    }

    fn bell(&self) -> Bell {
        let waker = self.waker.clone();
        // This fails only if the poller is gone, and then no thread waits.
        Arc::new(move || _ = waker.wake())
    }
}

/// A simulated machine. Its clock jumps to the next due time, and a script says what arrives.
pub struct Sim {
    now: Time,
    /// The readiness of descriptors, by time. The number keeps the order of the script.
    script: BTreeMap<(Time, usize), (RawFd, Direction)>,
    registered: BTreeMap<RawFd, HandleId>,
    bell: Bell,
    rung: Receiver<()>,
}

impl Sim {
    pub fn new() -> Sim {
        let (ring, rung) = channel();
        let bell: Bell = Arc::new(move || _ = ring.send(()));
        Sim { now: Time::ZERO, script: BTreeMap::new(), registered: BTreeMap::new(), bell, rung }
    }

    /// Makes a descriptor ready at this time.
    pub fn ready_at(mut self, at: Time, descriptor: RawFd, direction: Direction) -> Sim {
        self.script.insert((at, self.script.len()), (descriptor, direction));
        self
    }
}

impl Machine for Sim {
    fn name(&self) -> &'static str {
        "virtual"
    }

    fn now(&self) -> Time {
        self.now
    }

    fn wait(
        &mut self,
        until: Option<Time>,
        outside: bool,
        arrivals: &mut Vec<Arrival>,
    ) -> io::Result<()> {
        // A thread takes no time on this clock, which stands still until the thread has rung.
        // While tasks are ready, ignore the bell, because the real thread may or may not have rung.
        let is_idle = until.is_none_or(|until| until > self.now);
        let rung = match outside {
            true => is_idle && self.rung.recv().is_ok(),
            false => self.rung.try_recv().is_ok(),
        };
        if rung {
            arrivals.push(Arrival::Bell);
            return Ok(());
        }
        let next = self.script.keys().next().map(|(at, _)| *at);
        let until = [until, next].into_iter().flatten().min().ok_or_else(hang)?;
        self.now = self.now.max(until);
        while let Some(entry) = self.script.first_entry().filter(|entry| entry.key().0 <= self.now)
        {
            let (descriptor, direction) = entry.remove();
            if let Some(handle) = self.registered.get(&descriptor) {
                arrivals.push(Arrival::Ready(*handle, direction));
            }
        }
        Ok(())
    }

    fn register(&mut self, descriptor: RawFd, handle: HandleId) -> io::Result<()> {
        self.registered.insert(descriptor, handle);
        Ok(())
    }

    fn unregister(&mut self, descriptor: RawFd) -> io::Result<()> {
        self.registered.remove(&descriptor);
        Ok(())
    }

    fn bell(&self) -> Bell {
        self.bell.clone()
    }
}

fn hang() -> io::Error {
    io::Error::other("every task waits, and nothing will come")
}
