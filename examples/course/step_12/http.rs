//! One HTTP/1.1 connection. All its phases share one deadline.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use super::kernel::{ConnectionDeadline, Error, TcpStream};

/// From the first byte of a request to the end of its head. Bytes that trickle in gain no time.
const HEAD: Duration = Duration::from_secs(10);
/// For the first byte of a request.
const LINGER: Duration = Duration::from_secs(5);
/// For a client to take its answer.
const WRITE: Duration = Duration::from_secs(10);
const MAX_HEAD: usize = 8192;
const MAX_HEADERS: usize = 64;

/// What a connection and the shutdown tell each other.
#[derive(Default)]
pub struct State {
    /// It waits for a request, and none has begun.
    pub is_idle: Cell<bool>,
    /// The answer to this request is the last.
    pub is_closing: Cell<bool>,
}

/// What is to be answered.
struct Answer {
    status: &'static str,
    body: &'static str,
    is_head: bool,
    closes: bool,
}

fn refuse(status: &'static str) -> Answer {
    Answer { status, body: "", is_head: false, closes: true }
}

pub async fn serve(stream: TcpStream, state: Rc<State>) -> Result<(), Error> {
    let deadline = ConnectionDeadline::new().await;
    let mut input = Vec::new();
    loop {
        if input.is_empty() {
            state.is_idle.set(true);
            deadline.arm(LINGER);
            let count = deadline.guard(fill(&stream, &mut input)).await?;
            state.is_idle.set(false);
            if count == 0 {
                return Ok(());
            }
        }
        deadline.arm(HEAD);
        let mut answer = match deadline.guard(request(&stream, &mut input)).await {
            Ok(answer) => answer,
            // The cancellation of a shutdown goes on; a deadline is the client's fault.
            Err(Error::Interrupt(why)) if why.kind() == super::kernel::Kind::TaskTimeout => {
                refuse("408 Request Timeout")
            }
            Err(error) => return Err(error),
        };
        answer.closes |= state.is_closing.get();
        deadline.arm(WRITE);
        deadline.guard(stream.write_all(text(&answer).as_bytes())).await?;
        deadline.disarm();
        if answer.closes {
            return Ok(());
        }
    }
}

async fn fill(stream: &TcpStream, input: &mut Vec<u8>) -> Result<usize, Error> {
    let mut buffer = [0; 1024];
    let count = stream.read(&mut buffer).await?;
    input.extend_from_slice(&buffer[..count]);
    Ok(count)
}

/// Reads to the end of a head, takes it out of the input, and decides on the answer.
async fn request(stream: &TcpStream, input: &mut Vec<u8>) -> Result<Answer, Error> {
    loop {
        if let Some((answer, length)) = parse(input) {
            input.drain(..length);
            return Ok(answer);
        }
        if input.len() > MAX_HEAD {
            return Ok(refuse("431 Request Header Fields Too Large"));
        }
        if fill(stream, input).await? == 0 {
            return Ok(refuse("400 Bad Request"));
        }
    }
}

/// The answer to a complete head, and the length of the head.
fn parse(input: &[u8]) -> Option<(Answer, usize)> {
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
        // Where the body ends is beyond the course, and so where the next request begins.
        _ if has_body => return Some((refuse("413 Content Too Large"), length)),
        (Some("GET" | "HEAD"), Some("/")) => ("200 OK", "Hello from the course.\n"),
        (Some("GET" | "HEAD"), _) => ("404 Not Found", "There is nothing here.\n"),
        _ => ("501 Not Implemented", ""),
    };
    let is_head = head.method == Some("HEAD");
    let closes = is_old || options().any(|option| is_one(option, "close"));
    Some((Answer { status, body, is_head, closes }, length))
}

fn text(answer: &Answer) -> String {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let Answer { status, body, is_head, closes } = answer;
    let closes = if *closes { "connection: close\r\n" } else { "" };
    let (length, body) = (body.len(), if *is_head { "" } else { body });
    format!(
        "HTTP/1.1 {status}\r\ndate: {date}\r\ncontent-type: text/plain\r\n\
         content-length: {length}\r\n{closes}\r\n{body}"
    )
}
