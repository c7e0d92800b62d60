//! The configuration of an HTTP server, in two lines.

use std::time::Duration;

use kernel::trace::Span;
use net::http::{Config, Deadlines, Limits};

use common::message::counted;

/// Returns the main limits and deadlines of an HTTP server, in two lines; `--print-limits` prints
/// the rest.
pub fn in_force(config: &Config) -> [String; 2] {
    let Config { limits, deadlines, .. } = config;
    let Limits { head, request_line, fields, body, memory, connections, requests, .. } = limits;
    let Deadlines { body_rate, write_rate, .. } = deadlines;
    let [head, line] = [*head, *request_line].map(|size| bytes(size as u64));
    let [body, memory] = [*body, *memory].map(bytes);
    let limits = format!(
        "limits: {connections} connections, {requests} requests on each, head {head} (line {line}, \
         {fields} fields), body {body}, bodies together {memory}"
    );
    let span = |span| if span == Duration::MAX { "off".to_owned() } else { Span(span).to_string() };
    let [head, body, handler] = [deadlines.head, deadlines.body, deadlines.handler].map(span);
    let [write, idle, linger] = [deadlines.write, deadlines.idle, deadlines.linger].map(span);
    let deadlines = format!(
        "deadlines: head {head}, body {body} and {body_rate} bytes/s, handler {handler}, \
         write {write} and {write_rate} bytes/s, idle {idle}, linger {linger}"
    );
    [limits, deadlines]
}

/// Returns a size with its unit: `8 MiB`, `64 KiB`, `14 bytes`.
fn bytes(size: u64) -> String {
    match size {
        _ if size >= 1 << 20 && size.is_multiple_of(1 << 20) => format!("{} MiB", size >> 20),
        _ if size >= 1 << 10 && size.is_multiple_of(1 << 10) => format!("{} KiB", size >> 10),
        _ => counted(size, "byte"),
    }
}
