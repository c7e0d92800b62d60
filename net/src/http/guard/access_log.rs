//! The access log: which responses are to be reported, and how much of each the stream has taken.
//!
//! A response is reported when the stream has taken all its bytes or takes no more, because only
//! then is it known whether the response was sent. A connection has an [`AccessLog`] only if its
//! server has a log. This module stores numbers and request lines. It must not write.

use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;

use crate::limits::GATHER;

/// The function that reports each response, if there is one.
#[derive(Default)]
pub(crate) struct OnExchange(pub(crate) Option<Box<Tell>>);

type Tell = dyn Fn(&Exchange<'_>);

impl fmt::Debug for OnExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "OnExchange" } else { "None" })
    }
}

/// The status in the access log if the client left before any of the response was sent.
const NONE_SENT: u16 = 499;

/// A request and its response, as an access log shows them.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The address of the client when it was accepted, if the stream knows it.
    pub peer: Option<SocketAddr>,
    /// The request line as the client sent it, without its line end. Empty if no request line was
    /// read.
    pub request_line: &'a [u8],
    /// The status that was sent. 499 if the client left before the stream took anything of the
    /// response.
    pub status: u16,
    /// The number of bytes of the body that the stream has taken, without the framing of chunks.
    /// For a chunked response that breaks off, the count may be a few bytes low. For a file that is
    /// abandoned while the system sends it, it may be 4 MiB low.
    pub length: u64,
}

/// The responses of a connection that are not reported yet, in order.
#[derive(Debug)]
pub(crate) struct AccessLog {
    pub(crate) peer: Option<SocketAddr>,
    /// The number of bytes that the stream has taken so far.
    taken: u64,
    /// The number of bytes that are still to be written directly, without being gathered.
    pub(crate) direct: usize,
    /// The response in hand.
    current: Answered,
    /// The request lines of `answers`, one after the other.
    lines: Vec<u8>,
    answers: Vec<Answered>,
}

/// A response to report.
#[derive(Debug)]
struct Answered {
    /// The length of the request line.
    line: usize,
    status: u16,
    /// The number of bytes of the body that were gathered or written.
    length: u64,
    /// The place of the response among all bytes that the connection writes.
    bytes: Range<u64>,
}

impl Answered {
    const NOT_BEGUN: Answered =
        Answered { line: 0, status: NONE_SENT, length: 0, bytes: u64::MAX..u64::MAX };
}

impl AccessLog {
    pub(crate) fn new(peer: Option<SocketAddr>) -> AccessLog {
        let (lines, answers) = (Vec::new(), Vec::new());
        AccessLog { peer, taken: 0, direct: 0, current: Answered::NOT_BEGUN, lines, answers }
    }

    /// Whether too many request lines are kept, so that the responses must be written first.
    pub(crate) fn is_long(&self) -> bool {
        self.lines.len() > GATHER
    }

    /// Notes that a response begins after the `gathered` bytes that wait to be written.
    pub(crate) fn begin(&mut self, status: u16, gathered: usize) {
        self.current.status = status;
        self.current.bytes.start = self.end(gathered);
    }

    /// Counts bytes of the body of the response in hand.
    pub(crate) fn count(&mut self, bytes: usize) {
        self.current.length += bytes as u64;
    }

    /// Notes that the stream has taken `bytes` more bytes.
    pub(crate) fn take(&mut self, bytes: usize) {
        self.taken += bytes as u64;
    }

    /// The number of bytes that the stream will have taken once all present bytes are written.
    fn end(&self, gathered: usize) -> u64 {
        self.taken + (gathered + self.direct) as u64
    }

    /// Ends the response in hand, to the request with this line. Returns whether the stream has
    /// taken all bytes.
    pub(crate) fn finish(&mut self, line: &[u8], gathered: usize) -> bool {
        let end = self.end(gathered);
        let Answered { status, length, bytes, .. } =
            std::mem::replace(&mut self.current, Answered::NOT_BEGUN);
        let bytes = bytes.start.min(end)..end;
        self.lines.extend_from_slice(line);
        self.answers.push(Answered { line: line.len(), status, length, bytes });
        end == self.taken
    }

    /// Reports all ended responses. Bytes that the stream has not taken by now count as lost.
    pub(crate) fn report(&mut self, on_exchange: &OnExchange) {
        let AccessLog { peer, taken, lines, answers, .. } = self;
        let (peer, mut rest) = (*peer, &lines[..]);
        for Answered { line, status, length, bytes } in answers.drain(..) {
            let request_line = rest.split_off(..line).expect("each has its line");
            let (status, length) = match bytes.end.saturating_sub(*taken) {
                left if left > 0 && *taken <= bytes.start => (NONE_SENT, 0),
                // The rest is the end of the body.
                left => (status, length.saturating_sub(left)),
            };
            let exchange = Exchange { peer, request_line, status, length };
            on_exchange.0.iter().for_each(|tell| tell(&exchange));
        }
        lines.clear();
    }
}
