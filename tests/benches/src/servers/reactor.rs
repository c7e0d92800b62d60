//! The hand-written event loop of the `epoll` and `mio` peers: edge-triggered, registered once for
//! both directions, one read buffer for all, a short read is trusted, a deadline is a store.

use std::io::{self, ErrorKind};
use std::time::Duration;

use super::How;
use super::program::{Kept, Next, ROOM, WRITE};
use crate::sys::{Ready, coarse_millis};

/// A connected socket in non-blocking mode.
pub trait Socket {
    fn recv(&self, buf: &mut [u8]) -> io::Result<usize>;
    fn send(&self, buf: &[u8]) -> io::Result<usize>;
}

/// The interval at which the deadlines are checked, in milliseconds.
const SCAN: u64 = 1000;

struct Conn<S> {
    socket: S,
    /// In milliseconds of the coarse clock.
    due: u64,
    kept: Kept,
    /// Made by the first answer that the peer does not take.
    #[expect(clippy::box_collection, reason = "most connections never have one")]
    unsent: Option<Box<Vec<u8>>>,
    closing: bool,
}

/// All connections, by the number of their descriptor.
pub struct Reactor<S> {
    conns: Vec<Option<Conn<S>>>,
    input: Box<[u8; ROOM]>,
    out: Vec<u8>,
    how: How,
    now: u64,
    scanned: u64,
}

impl<S: Socket> Reactor<S> {
    pub fn new(how: How) -> Reactor<S> {
        let (input, out) = (Box::new([0; ROOM]), Vec::with_capacity(ROOM));
        let now = coarse_millis();
        Reactor { conns: Vec::new(), input, out, how, now, scanned: now }
    }

    /// How long to wait for events: forever if there are no deadlines to check.
    pub fn patience(&self) -> Option<Duration> {
        self.how.deadlines.then_some(Duration::from_millis(SCAN))
    }

    pub fn insert(&mut self, token: usize, socket: S) {
        if self.conns.len() <= token {
            self.conns.resize_with(token + 1, || None);
        }
        let due = self.now + Next::Request.span().as_millis() as u64;
        let kept = Kept::default();
        self.conns[token] = Some(Conn { socket, due, kept, unsent: None, closing: false });
    }

    /// Once before the events of a wait.
    pub fn begin(&mut self) {
        if !self.how.deadlines {
            return;
        }
        self.now = coarse_millis();
        if self.now >= self.scanned + SCAN {
            self.scanned = self.now;
            for place in &mut self.conns {
                place.take_if(|conn| conn.due < self.now);
            }
        }
    }

    #[inline]
    pub fn ready(&mut self, event: Ready) {
        let Some(Some(conn)) = self.conns.get_mut(event.token) else { return };
        let (input, out) = (&mut self.input, &mut self.out);
        let now = self.how.deadlines.then_some(self.now);
        let mut open = true;
        if event.writable && conn.unsent.is_some() {
            open = conn.flush();
        }
        if open && event.readable {
            open = conn.read(event.ended, &mut input[..], out, self.how.echo, now);
        }
        if !open {
            self.conns[event.token] = None;
        }
    }
}

impl<S: Socket> Conn<S> {
    /// Whether the connection continues.
    #[inline]
    fn read(
        &mut self,
        ended: bool,
        input: &mut [u8],
        out: &mut Vec<u8>,
        echo: bool,
        now: Option<u64>,
    ) -> bool {
        loop {
            let n = match self.socket.recv(input) {
                Ok(0) => return false,
                Ok(n) => n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            let next = if echo {
                out.extend_from_slice(&input[..n]);
                Next::Request
            } else {
                self.kept.answer(&input[..n], out)
            };
            self.closing = next == Next::Close;
            if let Some(now) = now {
                self.due = now + WRITE.as_millis() as u64;
            }
            let open = self.send(out);
            if !open || self.closing && self.unsent.is_none() {
                return false;
            }
            if let Some(now) = now.filter(|_| self.unsent.is_none()) {
                self.due = now + next.span().as_millis() as u64;
            }
            if n < input.len() && !ended {
                return true;
            }
        }
    }

    /// Sends what is in `out` and empties it.
    #[inline]
    fn send(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(unsent) = &mut self.unsent {
            unsent.append(out);
            return self.flush();
        }
        let sent = match self.socket.send(out) {
            Ok(sent) => sent,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(_) => return false,
        };
        if sent < out.len() {
            self.unsent = Some(Box::new(out.split_off(sent)));
        }
        out.clear();
        true
    }

    #[cold]
    fn flush(&mut self) -> bool {
        let Some(unsent) = &mut self.unsent else { return true };
        match self.socket.send(unsent) {
            Ok(sent) => drop(unsent.drain(..sent)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        if unsent.is_empty() {
            self.unsent = None;
            return !self.closing;
        }
        true
    }
}
