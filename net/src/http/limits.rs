//! How much a peer may send, and how long each phase may take.
//!
//! A connection has one deadline for all its phases, which is armed again for each wait.

use std::time::Duration;

/// Bounds on the bytes and requests of a peer. Each has a default. The largest value means no
/// limit, except for `fields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest size of a head, in bytes: the request line and the fields together. A longer
    /// head gets 431. Default 64 KiB.
    pub head: usize,
    /// The largest size of the request line, in bytes, without its line end. A longer line gets
    /// 414. Default 8 KiB.
    pub request_line: usize,
    /// The largest number of field lines in a head. A head with more gets 431. Default 100; a
    /// larger value counts as 100.
    pub fields: usize,
    /// The largest size of a body, in bytes, without the framing of chunks. A longer body gets 413.
    /// Default 8 MiB.
    pub body: u64,
    /// The largest number of bytes that the server keeps in memory for all its connections
    /// together: for the bodies that [`body_to_vec`](super::Request::body_to_vec) reads, for the
    /// responses that handlers make in memory, for the pieces of [files](crate::web::Files), and
    /// for the read buffers of long heads. A body takes room as it arrives, and doubles its room
    /// whenever it needs more; so does a head. The first 16 KiB of each need no room: in addition
    /// to this memory, each busy connection has a read buffer of that size. A body that is longer
    /// than the memory is refused with 413. Default 256 MiB.
    ///
    /// A response of more than 16 KiB already exists when it is counted. So it never waits, and the
    /// sum can exceed this limit; slow clients then give way.
    ///
    /// A head that finds no room, or arrives while a body waits for room, gets 503.
    ///
    /// Bodies that find no room wait, smallest need first. One body at a time may use a reserve
    /// until it is complete. The reserve is as large as the largest body, but at most half of the
    /// memory. A body waits for at most [`Deadlines::body`](super::Deadlines::body), and then gets
    /// 503. While it waits, its rate does not count, and the time of its handler does not run.
    ///
    /// While a body waits, a slow one gives way: the one that has cost most, in bytes times time. A
    /// client is slow if it has let the server wait for a quarter of a second without moving a
    /// sixteenth of what it holds. A body that gives way is refused with 503; a response that gives
    /// way ends with its connection.
    pub memory: u64,
    /// The largest number of bytes of a body that the server reads and throws away to keep the
    /// connection, if the handler has not read them. If more is left, the connection closes.
    /// Default 64 KiB.
    pub drain: u64,
    /// The largest number of connections that [`serve`](super::serve) serves at once. When one more
    /// arrives, the server closes a connection that is waiting for its client (see `serve`). If
    /// there is none, the new one gets 503 with `Retry-After: 1`,
    /// whatever the client requests, and closes. A `cap` line names the connection that closes for
    /// another or is refused. Default 16,384.
    pub connections: usize,
    /// The largest number of requests on one connection. The response to the last request says
    /// `Connection: close`. Default 1,000,000.
    pub requests: u64,
    /// The largest number of pipelined requests that are answered without a wait between them.
    /// After this many, their responses go out and other tasks have a turn. Default 64.
    pub pipelined: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: 65_536,
            request_line: 8_192,
            fields: 100,
            body: 8 << 20,
            memory: 256 << 20,
            drain: 65_536,
            connections: 16_384,
            requests: 1_000_000,
            pipelined: 64,
        }
    }
}

// ---- Deadlines ----------------------------------------------------------------------------------

/// The time that each phase of a connection may take. Zero has passed at once; `Duration::MAX`
/// never passes. A deadline is noticed within a tick of the kernel. In the turn that notices it,
/// the deadline wins against bytes that the peer sent. Only in the wait for a request to begin do
/// the bytes win, and the request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// The time for a whole head, from its first byte. For the first request of a connection, the
    /// time runs from the start of the task. After this time, the client gets 408. If no byte has
    /// arrived, the connection closes silently. Default 10 s.
    pub head: Duration,
    /// The time for each wait for a piece of a body. After this time, the client gets 408, or the
    /// connection ends if some of a response has gone out. Also the time for each wait for room in
    /// memory ([`Limits::memory`](super::Limits::memory)), after which the client gets 503. Default
    /// 30 s.
    pub body: Duration,
    /// The rate, in bytes a second, at which a peer must send a body while the server waits for it,
    /// in every `body_window`. So a client cannot keep a body alive with an occasional byte. A body
    /// that is too slow ends like a late body (see `body`). Zero switches the rate off. Default
    /// 240.
    pub body_rate: u64,
    /// The time over which `body_rate` counts. Default 5 s.
    pub body_window: Duration,
    /// The time for a whole body that [`body_to_vec`](super::Request::body_to_vec) keeps in memory,
    /// with a length or in chunks. The bytes so far divided by this time are the rate at which the
    /// rest must come, if that is more than `body_rate`. The length of a response made of the body
    /// divided by this time is the rate at which the peer must take it, if that is more than
    /// `write_rate`. Default 5 min: 3.5 kB/s after 1 MiB, 28 kB/s at the end of 8 MiB and for its
    /// response.
    pub body_whole: Duration,
    /// The time for a handler, while it waits for something other than its client or room in memory
    /// for the body. The time runs from the head, from the last piece of the body that the handler
    /// read, or from the last piece of the response that went out. Then the handler is cancelled:
    /// an interrupt ends its wait, except in a [shield](traps::shield()). The response is 503, or
    /// breaks off if some of it had gone out, and the connection closes. A foreign future, which
    /// waits without a trap, is cancelled only inside [`foreign`](traps::foreign()). Default 30 s.
    pub handler: Duration,
    /// The time over which `write_rate` counts; its end may come up to an eighth later. If the peer
    /// has taken too few bytes, the connection closes. The socket is closed, not reset, so that
    /// data already accepted by the system is still sent; it is reset only if the client could
    /// otherwise take the response for complete. The rate counts the bytes that the system accepts.
    /// The buffers of the system hold some megabytes and free room in steps of up to some hundred
    /// kilobytes, so this time must be longer than a slow reader needs for one step. Default 30 s.
    pub write: Duration,
    /// The rate, in bytes a second, at which the peer must take a response while the server waits
    /// for it, in every period of `write`. Zero switches the rate off. Default 20.
    pub write_rate: u64,
    /// The time for the wait between two requests. After this time, the connection closes silently.
    /// Default 5 s.
    pub idle: Duration,
    /// The time for the whole wait after a last response (a refusal, or the response of a server
    /// that stops) until the peer stops sending. Default 2 s.
    pub linger: Duration,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        let seconds = Duration::from_secs;
        Deadlines {
            head: seconds(10),
            body: seconds(30),
            body_rate: 240,
            body_window: seconds(5),
            body_whole: seconds(300),
            handler: seconds(30),
            write: seconds(30),
            write_rate: 20,
            idle: seconds(5),
            linger: seconds(2),
        }
    }
}

impl Deadlines {
    /// The rate, in bytes a second, at which a peer must send a body, if `kept` bytes of the body
    /// are kept in memory.
    pub(crate) fn body_rate(&self, kept: u64) -> u64 {
        self.body_rate.max(self.whole_rate(kept))
    }

    /// The rate, in bytes a second, at which a peer must take a response, if `kept` bytes are kept
    /// in memory.
    pub(crate) fn write_rate(&self, kept: u64) -> u64 {
        self.write_rate.max(self.whole_rate(kept))
    }

    /// The rate, in bytes a second, at which `kept` bytes pass within [`Deadlines::body_whole`].
    fn whole_rate(&self, kept: u64) -> u64 {
        kept / self.body_whole.as_secs().max(1)
    }
}
