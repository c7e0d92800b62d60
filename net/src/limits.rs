//! The numbers that bound something in this crate, in one place (row F29).
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

/// Hits of a limit that are counted before the log has a line again.
pub(crate) const CAP_LINES: u64 = 100;

/// How old the last line is, at least, when those are so many; and for how long a limit is not hit
/// before the next hit is news.
pub(crate) const CAP_PAUSE: Duration = Duration::from_secs(10);

/// How old the last line may be before a further hit has one.
pub(crate) const CAP_SPAN: Duration = Duration::from_secs(60);

/// Connections that were refused because there were too many, and that may still read why.
pub(crate) const TURNED_AWAY: usize = 1024;

/// How long a connection that is new, and has sent nothing, may still take to do so once the
/// server drains: its first request may be on its way.
pub(crate) const FIRST_BYTE: Duration = Duration::from_millis(500);

/// Bytes of a process's output that are read at a time.
pub(crate) const PROCESS_PIECE: usize = 16 * 1024;

/// Bytes of a file that are read at a time (row F21).
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

fn sockets(options: &Options) -> Vec<Bound> {
    let Options { backlog, reuse_address: _, reuse_port: _ } = options;
    let backlog = (u64::from(*backlog), "connections");
    let what = "that wait to be accepted; the system cuts it";
    vec![
        Bound::set("listener.backlog", backlog, "listener::Options::backlog", what),
        Bound::fixed("listener.back_off", BACK_OFF_FIRST, "the first, when descriptors run out"),
        Bound::fixed("listener.back_off.most", BACK_OFF_LONGEST, "the longest"),
        Bound::fixed("listener.back_off.over", BACK_OFF_OVER, "without one, then the log says so"),
        Bound::fixed("listener.last_tries", (u64::from(LAST_TRIES), "back-offs"), "at shutdown"),
        Bound::set(
            "write_deadline",
            WriteDeadline::SPAN,
            "WriteDeadline::new",
            "for a peer to take some of what is written: what is usual",
        ),
        Bound::fixed("write_deadline.piece", bytes(PIECE), "after which it begins anew"),
    ]
}

fn requests(limits: &Limits) -> Vec<Bound> {
    let Limits { head, request_line, fields, body, drain, connections, requests, pipelined } =
        *limits;
    let over = |count: u64| (count, "bytes");
    vec![
        Bound::set("http.head", bytes(head), "Limits::head", "request line and fields, else 431"),
        Bound::set(
            "http.request_line",
            bytes(request_line),
            "Limits::request_line",
            "without its end, else 414",
        ),
        Bound::set(
            "http.fields",
            (fields.min(FIELDS) as u64, "lines"),
            "Limits::fields",
            "else 431",
        ),
        Bound::fixed("http.fields.most", (FIELDS as u64, "lines"), "that the option can set"),
        Bound::set("http.body", over(body), "Limits::body", "without framing, else 413"),
        Bound::set(
            "http.drain",
            over(drain),
            "Limits::drain",
            "of an unread body, read away to keep the connection",
        ),
        Bound::set(
            "http.connections",
            (connections as u64, "connections"),
            "Limits::connections",
            "at once, then 503",
        ),
        Bound::set(
            "http.requests",
            (requests, "requests"),
            "Limits::requests",
            "on a connection, which then closes",
        ),
        Bound::set(
            "http.pipelined",
            (u64::from(pipelined), "requests"),
            "Limits::pipelined",
            "answered in one go, then others have their turn",
        ),
    ]
}

fn phases(deadlines: &Deadlines) -> Vec<Bound> {
    let Deadlines { head, body, body_rate, body_window, handler, write, idle, linger } = *deadlines;
    let rate = (body_rate, "bytes/s");
    vec![
        Bound::set("http.head.time", head, "Deadlines::head", "for the whole head, then 408"),
        Bound::set("http.body.time", body, "Deadlines::body", "for each wait for a piece"),
        Bound::set("http.body.rate", rate, "Deadlines::body_rate", "least, while it is waited for"),
        Bound::set(
            "http.body.window",
            body_window,
            "Deadlines::body_window",
            "over which that rate counts",
        ),
        Bound::set(
            "http.handler.time",
            (handler != Duration::MAX).then_some(handler),
            "Deadlines::handler",
            "for a handler, then 503",
        ),
        Bound::set("http.write.time", write, "Deadlines::write", "for each wait for room"),
        Bound::set("http.idle.time", idle, "Deadlines::idle", "between two requests"),
        Bound::set("http.linger.time", linger, "Deadlines::linger", "after a last answer"),
    ]
}

fn fixed() -> Vec<Bound> {
    let lines = (EMPTY_LINES as u64, "lines");
    vec![
        Bound::fixed("http.empty_lines", lines, "before a request"),
        Bound::fixed("http.extensions", bytes(EXTENSIONS as usize), "of all chunks of a body"),
        Bound::fixed("http.trailers", bytes(TRAILERS as usize), "of a body"),
        Bound::fixed("http.chunk.digits", (u64::from(DIGITS), "digits"), "of a chunk's size"),
        Bound::fixed("http.gather", bytes(GATHER), "of small writes, before they go out"),
        Bound::fixed(
            "http.discarded",
            bytes(DISCARDED),
            "of a body that a client wants nothing of",
        ),
        Bound::fixed("http.operation", bytes(OPERATION), "written, for one more of the budget"),
        Bound::fixed("http.linger", (LINGER, "bytes"), "read away after an answer that closes"),
        Bound::set(
            "http.file.piece",
            bytes(FILE_PIECE),
            "Files::piece",
            "of a file, read at a time",
        ),
        Bound::fixed("http.first_byte", FIRST_BYTE, "of a new connection, once the server drains"),
        Bound::fixed("process.piece", bytes(PROCESS_PIECE), "of a process's output, at a time"),
        Bound::fixed("http.reply.head", bytes(REPLY_HEAD), "of an answer that a client takes"),
        Bound::fixed("http.reply.interim", (INTERIM as u64, "answers"), "before the final one"),
        Bound::fixed("http.read_buffer", bytes(READ_BUFFER), "of a connection that reads"),
        Bound::fixed("http.cap.lines", (CAP_LINES, "hits"), "of a limit, counted between lines"),
        Bound::fixed("http.cap.pause", CAP_PAUSE, "between two lines of a connection's limit"),
        Bound::fixed("http.cap.span", CAP_SPAN, "after which a hit has a line again"),
        Bound::fixed(
            "http.refused",
            (TURNED_AWAY as u64, "connections"),
            "over the limit that may still read why",
        ),
        Bound::fixed(
            "http.spare",
            (SPARE as u64, "buffers"),
            "of each kind, kept for their next use",
        ),
    ]
}
