//! The list of every number that bounds something in this crate, as it is in force.
//!
//! It takes the options apart, so that a new one does not compile before it is listed or passed
//! over here.

use traps::limits::{Bound, Value};

use crate::http::{Config, Deadlines, Limits};
use crate::limits::*;
use crate::listener::Options;
use crate::write_deadline::WriteDeadline;

/// Every number that bounds something in this crate, with these options.
#[must_use]
pub fn limits(listener: &Options, config: &Config) -> Vec<Bound> {
    let (requests, phases) = (requests(&config.limits), phases(&config.deadlines));
    [sockets(listener), requests, phases, fixed()].concat()
}

/// The bounds that the options of a server set, as they are in force, in one line for its log:
/// `http.head=65536 http.head.time=10s`.
#[must_use]
pub fn boot_line(config: &Config) -> String {
    let all = [requests(&config.limits), phases(&config.deadlines)].concat();
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
    let (refused, spare) = ((TURNED_AWAY as u64, "connections"), (SPARE as u64, "each"));
    vec![
        Bound::fixed("http.empty_lines", (EMPTY_LINES as u64, "lines"), "before a request"),
        Bound::fixed("http.extensions", bytes(EXTENSIONS as usize), "of all chunks of a body"),
        Bound::fixed("http.trailers", bytes(TRAILERS as usize), "of a body"),
        Bound::fixed("http.chunk.digits", (u64::from(DIGITS), "digits"), "of a chunk's size"),
        Bound::fixed("http.gather", bytes(GATHER), "of small writes, before they go out"),
        Bound::fixed("http.discarded", bytes(DISCARDED), "of a body that nobody wants"),
        Bound::fixed("http.operation", bytes(OPERATION), "written, for one more of the budget"),
        Bound::fixed("http.linger", (LINGER, "bytes"), "read away after an answer that closes"),
        set!("Files", bytes(FILE_PIECE), piece, "http.file.piece", "read at a time"),
        Bound::fixed("http.first_byte", FIRST_BYTE, "of a new connection, while it drains"),
        Bound::fixed("process.piece", bytes(PROCESS_PIECE), "of a process's output, at a time"),
        Bound::fixed("http.reply.head", bytes(REPLY_HEAD), "of an answer that a client takes"),
        Bound::fixed("http.reply.interim", (INTERIM as u64, "answers"), "before the final one"),
        Bound::fixed("http.read_buffer", bytes(READ_BUFFER), "of a connection that reads"),
        Bound::fixed("http.cap.pause", CAP_PAUSE, "between two lines of a limit that is hit"),
        Bound::fixed("http.room.pause", ROOM_PAUSE, "after which one connection closes for room"),
        Bound::fixed("http.refused", refused, "over the limit that may still read why"),
        Bound::fixed("http.spare", spare, "of rooms and buffers, kept for their next use"),
    ]
}
