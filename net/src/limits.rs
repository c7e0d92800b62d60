//! The numbers that bound something in this crate, in one place.
//!
//! Those with an option have their defaults beside it, and [`limits`] lists them; it takes the
//! options apart, so that a new one does not compile before it is listed or passed over here.

use std::time::Duration;

use traps::limits::{Bound, Value};

use crate::http::{Config, Deadlines, Limits};
use crate::listener::Options;
use crate::write_deadline::WriteDeadline;

/// Bytes that are offered to a stream at a time under a write deadline: progress within them is
/// seen at their end at the latest.
pub(crate) const PIECE: usize = 1 << 20;

/// How long a listener backs off first when descriptors or memory run out.
pub(crate) const BACK_OFF_FIRST: Duration = Duration::from_millis(5);

/// The longest that it backs off, after doubling.
pub(crate) const BACK_OFF_LONGEST: Duration = Duration::from_secs(1);

/// How often a listener backs off once the kernel shuts down.
pub(crate) const LAST_TRIES: u32 = 3;

/// Field lines in a head that fit on the stack.
pub(crate) const FIELDS: usize = 100;

/// Empty lines that a client may send before a request.
pub(crate) const EMPTY_LINES: usize = 8;

/// Bytes of all chunk extensions of a body together.
pub(crate) const EXTENSIONS: u32 = 4096;

/// Bytes of all trailer fields of a body together.
pub(crate) const TRAILERS: u32 = 16 * 1024;

/// Digits of a chunk's size: as many as a u64 has, leading zeros included.
pub(crate) const DIGITS: u8 = 16;

/// Bytes that wait to be written before no more are gathered.
pub(crate) const GATHER: usize = 16 * 1024;

/// Bytes of a streamed body that a handler may write to a client that wants none, before a write
/// fails as if the client had gone: one that never ends would go on without anybody.
pub(crate) const DISCARDED: usize = 1 << 20;

/// Bytes of an answer for which another operation is taken from the budget of the task that writes.
pub(crate) const OPERATION: usize = 2 * 1024;

/// Bytes that are read and thrown away from a peer that goes on sending after the last answer, so
/// that it reads the answer and not a reset. Twice the longest body, for a client that sends all of
/// one before it reads; `Deadlines::linger` bounds it in time.
pub(crate) const LINGER: u64 = 16 << 20;

/// Bytes of a read buffer.
pub(crate) const READ_BUFFER: usize = 16 * 1024;

/// How long a listener has to go on without a back-off before that is over.
pub(crate) const BACK_OFF_OVER: Duration = Duration::from_secs(10);

/// How old the last `cap` line of a limit is, at least, before there is another.
pub(crate) const CAP_PAUSE: Duration = Duration::from_secs(1);

/// For how long a shortage of descriptors goes on where twice as many connections close each time.
pub(crate) const ROOM_PAUSE: Duration = Duration::from_secs(1);

/// Connections that were refused because there were too many, and that may still read why.
pub(crate) const TURNED_AWAY: usize = 1024;

/// How long a connection that is new, and has sent nothing, may still take to do so once the
/// server drains: its first request may be on its way.
pub(crate) const FIRST_BYTE: Duration = Duration::from_millis(500);

/// Bytes of a process's output that are read at a time.
pub(crate) const PROCESS_PIECE: usize = 16 * 1024;

/// Bytes of a file that are read at a time.
pub(crate) const FILE_PIECE: usize = 128 * 1024;

/// Bytes of an answer's head that a client takes.
pub(crate) const REPLY_HEAD: usize = 64 * 1024;

/// Interim answers (100 to 199) that a client passes over before the final one.
pub(crate) const INTERIM: usize = 8;

/// Buffers and seats that wait for their next use, of each kind; more are freed.
pub(crate) const SPARE: usize = 64;

/// Every number that bounds something in this crate, with these options.
#[must_use]
pub fn limits(listener: &Options, config: &Config) -> Vec<Bound> {
    let mut all = sockets(listener);
    all.extend(requests(&config.limits));
    all.extend(phases(&config.deadlines));
    all.extend(fixed());
    all
}

/// The bounds that the options of a server set, as they are in force, in one line for its log:
/// `http.head=65536 http.head.time=10s`.
#[must_use]
pub fn boot_line(config: &Config) -> String {
    let mut all = requests(&config.limits);
    all.extend(phases(&config.deadlines));
    let shown = all.iter().filter(|bound| !bound.option.is_empty()).map(|bound| {
        let value = match &bound.value {
            Value::Count(count, _) => count.to_string(),
            Value::Span(span) => format!("{span:?}"),
            Value::Off => "off".to_owned(),
        };
        format!("{}={value}", bound.name)
    });
    shown.collect::<Vec<_>>().join(" ")
}

fn bytes(count: usize) -> (u64, &'static str) {
    (count as u64, "bytes")
}

/// A bound that an option sets, by the name of that field of the options.
macro_rules! set {
    ($options:literal, $value:expr, $option:ident, $name:literal, $what:literal) => {
        Bound::set($name, $value, concat!($options, "::", stringify!($option)), $what)
    };
}

fn sockets(options: &Options) -> Vec<Bound> {
    let Options { backlog, reuse_address: _, reuse_port: _ } = options;
    let backlog = (u64::from(*backlog), "connections");
    let (tries, usual) = ((u64::from(LAST_TRIES), "back-offs"), WriteDeadline::SPAN);
    vec![
        set!(
            "listener::Options",
            backlog,
            backlog,
            "listener.backlog",
            "that wait; the system cuts it"
        ),
        Bound::fixed("listener.back_off", BACK_OFF_FIRST, "the first, when descriptors run out"),
        Bound::fixed("listener.back_off.most", BACK_OFF_LONGEST, "the longest"),
        Bound::fixed("listener.back_off.over", BACK_OFF_OVER, "without one, then the log says so"),
        Bound::fixed("listener.last_tries", tries, "at shutdown"),
        set!("WriteDeadline", usual, new, "write_deadline", "in which a peer takes nothing: usual"),
        Bound::fixed("write_deadline.piece", bytes(PIECE), "after which it begins anew"),
    ]
}

fn requests(limits: &Limits) -> Vec<Bound> {
    let Limits { head, request_line, fields, body, drain, connections, requests, pipelined } =
        *limits;
    let lines = |count: usize| (count as u64, "lines");
    let served = (connections as u64, "connections");
    let pipelined = (u64::from(pipelined), "requests");
    vec![
        set!("Limits", bytes(head), head, "http.head", "request line and fields, else 431"),
        set!("Limits", bytes(request_line), request_line, "http.request_line", "else 414"),
        set!("Limits", lines(fields.min(FIELDS)), fields, "http.fields", "else 431"),
        Bound::fixed("http.fields.most", lines(FIELDS), "that the option can set"),
        set!("Limits", (body, "bytes"), body, "http.body", "without framing, else 413"),
        set!("Limits", (drain, "bytes"), drain, "http.drain", "unread, read away to stay"),
        set!("Limits", served, connections, "http.connections", "at once, then 503"),
        set!("Limits", (requests, "requests"), requests, "http.requests", "on a connection"),
        set!("Limits", pipelined, pipelined, "http.pipelined", "then others have their turn"),
    ]
}

fn phases(deadlines: &Deadlines) -> Vec<Bound> {
    let Deadlines { head, body, body_rate, body_window, handler, write, idle, linger } = *deadlines;
    let rate = (body_rate, "bytes/s");
    vec![
        set!("Deadlines", head, head, "http.head.time", "for the whole head, then 408"),
        set!("Deadlines", body, body, "http.body.time", "for each wait for a piece, then 408"),
        set!("Deadlines", rate, body_rate, "http.body.rate", "least, while it is waited for"),
        set!("Deadlines", body_window, body_window, "http.body.window", "for that rate"),
        set!("Deadlines", handler, handler, "http.handler.time", "for a handler, then 503"),
        set!("Deadlines", write, write, "http.write.time", "in which the peer takes nothing"),
        set!("Deadlines", idle, idle, "http.idle.time", "between two requests"),
        set!("Deadlines", linger, linger, "http.linger.time", "after a last answer"),
    ]
}

fn fixed() -> Vec<Bound> {
    let count = |count: u64, of: &'static str| (count, of);
    let (refused, spare) = (count(TURNED_AWAY as u64, "connections"), count(SPARE as u64, "each"));
    vec![
        Bound::fixed("http.empty_lines", count(EMPTY_LINES as u64, "lines"), "before a request"),
        Bound::fixed("http.extensions", bytes(EXTENSIONS as usize), "of all chunks of a body"),
        Bound::fixed("http.trailers", bytes(TRAILERS as usize), "of a body"),
        Bound::fixed("http.chunk.digits", count(u64::from(DIGITS), "digits"), "of a chunk's size"),
        Bound::fixed("http.gather", bytes(GATHER), "of small writes, before they go out"),
        Bound::fixed("http.discarded", bytes(DISCARDED), "of a body that nobody wants"),
        Bound::fixed("http.operation", bytes(OPERATION), "written, for one more of the budget"),
        Bound::fixed("http.linger", (LINGER, "bytes"), "read away after an answer that closes"),
        set!("Files", bytes(FILE_PIECE), piece, "http.file.piece", "read at a time"),
        Bound::fixed("http.first_byte", FIRST_BYTE, "of a new connection, while it drains"),
        Bound::fixed("process.piece", bytes(PROCESS_PIECE), "of a process's output, at a time"),
        Bound::fixed("http.reply.head", bytes(REPLY_HEAD), "of an answer that a client takes"),
        Bound::fixed(
            "http.reply.interim",
            count(INTERIM as u64, "answers"),
            "before the final one",
        ),
        Bound::fixed("http.read_buffer", bytes(READ_BUFFER), "of a connection that reads"),
        Bound::fixed("http.cap.pause", CAP_PAUSE, "between two lines of a limit that is hit"),
        Bound::fixed("http.room.pause", ROOM_PAUSE, "after which one connection closes for room"),
        Bound::fixed("http.refused", refused, "over the limit that may still read why"),
        Bound::fixed("http.spare", spare, "of rooms and buffers, kept for their next use"),
    ]
}
