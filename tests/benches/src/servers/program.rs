//! The program that every small server is: the same parser, the same answer, the same limits, so
//! that what differs between two of them is what they run on.

use std::mem::MaybeUninit;
use std::time::Duration;

use httparse::{Request, Status};

/// What every request is answered with. The date is a constant: to know it is the server's matter
/// and not the runtime's.
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

/// What a connection waits for next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request.
    Request,
    /// The rest of a head.
    Rest,
    /// Nothing: it is to be closed once the answers are out.
    Close,
}

impl Next {
    /// How long it may wait for that.
    #[must_use]
    pub fn span(self) -> Duration {
        if self == Next::Rest { HEAD } else { IDLE }
    }
}

/// The beginning of a head whose rest has not come. Owns no memory while there is none.
#[derive(Default)]
pub struct Kept(Vec<u8>);

impl Kept {
    /// Answers every request that is whole now that `input` has come.
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

/// How many bytes were used, and what comes next.
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
