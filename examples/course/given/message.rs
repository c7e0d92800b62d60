//! Given: reads the head of an HTTP/1.1 request, and writes the response.

use std::time::SystemTime;

const MAX_HEADERS: usize = 64;

/// The response to a request.
pub struct Response {
    status: &'static str,
    body: &'static str,
    is_head: bool,
    pub closes: bool,
}

/// Returns the response that refuses a request and ends the connection.
pub fn refuse(status: &'static str) -> Response {
    Response { status, body: "", is_head: false, closes: true }
}

/// Returns the response to a complete head, and the length of the head.
pub fn parse(input: &[u8]) -> Option<(Response, usize)> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return None,
        Err(_) => return Some((refuse("400 Bad Request"), input.len())),
    };
    let all = |name: &'static str| {
        head.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name))
    };
    let is_one =
        |value: &[u8], word: &str| value.trim_ascii().eq_ignore_ascii_case(word.as_bytes());
    let options = || all("connection").flat_map(|header| header.value.split(|byte| *byte == b','));
    let is_old = head.version == Some(0);
    let has_body = all("transfer-encoding").count() > 0
        || all("content-length").any(|header| !is_one(header.value, "0"));
    let (status, body) = match (head.method, head.path) {
        // RFC 9112, section 3.2.
        _ if !is_old && all("host").count() != 1 => {
            return Some((refuse("400 Bad Request"), length));
        }
        // Bodies are beyond the course. Until a body is read, the next request cannot be found.
        _ if has_body => return Some((refuse("413 Content Too Large"), length)),
        (Some("GET" | "HEAD"), Some("/")) => ("200 OK", "Hello from the course.\n"),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", "There is nothing here.\n"),
        _ => ("501 Not Implemented", ""),
    };
    let is_head = head.method == Some("HEAD");
    let closes = is_old || options().any(|option| is_one(option, "close"));
    Some((Response { status, body, is_head, closes }, length))
}

/// Returns the bytes of a response.
pub fn text(response: &Response) -> String {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let Response { status, body, is_head, closes } = response;
    let closes = if *closes { "connection: close\r\n" } else { "" };
    let (length, body) = (body.len(), if *is_head { "" } else { body });
    format!(
        "HTTP/1.1 {status}\r\ndate: {date}\r\ncontent-type: text/plain\r\n\
         content-length: {length}\r\n{closes}\r\n{body}"
    )
}
