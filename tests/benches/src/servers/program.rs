//! The program of every small server: the same parser, the same response, the same limits, so that
//! two of them differ only in the runtime.

use std::mem::MaybeUninit;
use std::time::Duration;

use httparse::{Request, Status};

/// The response to every request. The date is a constant, because it depends on the server and not
/// on the runtime.
pub const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 13\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\nHello, World!";

/// Of a read buffer.
pub const ROOM: usize = 4096;

/// A longer head ends the connection.
const LONGEST: usize = 65_536;

/// For the first byte of the next request.
pub const IDLE: Duration = Duration::from_secs(20);
/// For the rest of a head.
pub const HEAD: Duration = Duration::from_secs(10);
/// For a peer to take an answer.
pub const WRITE: Duration = Duration::from_secs(30);

/// The next wait of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request.
    Request,
    /// The rest of a head.
    Rest,
    /// Nothing, because it closes once the responses have been sent.
    Close,
}

impl Next {
    /// How long it may wait for that.
    #[must_use]
    pub fn span(self) -> Duration {
        if self == Next::Rest { HEAD } else { IDLE }
    }
}

/// The beginning of an incomplete head. Owns no memory if there is none.
#[derive(Default)]
pub struct Kept(Vec<u8>);

impl Kept {
    /// Answers every request that is complete after `input` has arrived.
    #[inline]
    pub fn answer(&mut self, input: &[u8], out: &mut Vec<u8>) -> Next {
        if !self.0.is_empty() {
            return self.answer_joined(input, out);
        }
        let (used, next) = answer_all(input, out);
        if next == Next::Rest {
            self.0.extend_from_slice(&input[used..]);
        }
        next
    }

    #[cold]
    fn answer_joined(&mut self, input: &[u8], out: &mut Vec<u8>) -> Next {
        self.0.extend_from_slice(input);
        let (used, next) = answer_all(&self.0, out);
        self.0.drain(..used);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        if self.0.len() > LONGEST { Next::Close } else { next }
    }
}

/// The number of bytes used, and the next wait.
#[inline]
fn answer_all(input: &[u8], out: &mut Vec<u8>) -> (usize, Next) {
    let mut used = 0;
    while used < input.len() {
        let mut fields = [const { MaybeUninit::uninit() }; 16];
        let mut request = Request::new(&mut []);
        match request.parse_with_uninit_headers(&input[used..], &mut fields) {
            Ok(Status::Complete(len)) => used += len,
            Ok(Status::Partial) => return (used, Next::Rest),
            Err(_) => return (used, Next::Close),
        }
        out.extend_from_slice(ANSWER);
        let close = |field: &httparse::Header<'_>| {
            field.name.eq_ignore_ascii_case("connection")
                && field.value.eq_ignore_ascii_case(b"close")
        };
        if request.headers.iter().any(close) {
            return (used, Next::Close);
        }
    }
    (used, Next::Request)
}
