//! The lines of an access log, in the common log format.

use std::fmt::Write as _;

use net::http::Exchange;

/// Returns the access log line of an exchange: `PEER - - [TIME] "REQUEST LINE" STATUS LENGTH`. An
/// unknown peer or request line is `-`, and so is the length of an empty body. `time` is a result
/// of [`access_time`](common::log::access_time).
pub fn line(exchange: &Exchange<'_>, time: &str) -> String {
    let Exchange { peer, request_line, status, length } = exchange;
    let peer = peer.map_or("-".to_owned(), |peer| peer.ip().to_canonical().to_string());
    let asked = if request_line.is_empty() { "-".to_owned() } else { escaped(request_line) };
    let length = if *length == 0 { "-".to_owned() } else { length.to_string() };
    format!("{peer} - - [{time}] \"{asked}\" {status} {length}")
}

/// Escapes a text from a client as Apache does, so that the text cannot end its quotes or the log
/// line.
fn escaped(text: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text {
        match byte {
            b'"' | b'\\' => escaped.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => escaped.push(char::from(*byte)),
            b'\x08' => escaped.push_str("\\b"),
            b'\n' => escaped.push_str("\\n"),
            b'\r' => escaped.push_str("\\r"),
            b'\t' => escaped.push_str("\\t"),
            b'\x0b' => escaped.push_str("\\v"),
            byte => drop(write!(escaped, "\\x{byte:02x}")),
        }
    }
    escaped
}
