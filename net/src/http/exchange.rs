//! What is told of each answer, for an access log.

use std::fmt;
use std::net::SocketAddr;

/// One answer, as an access log shows it.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// The address of the client, where the stream knows it.
    pub peer: Option<SocketAddr>,
    /// The request line as it came, without its end. Empty if none was read.
    pub request_line: &'a [u8],
    /// The status that was sent; 499 if the client left before.
    pub status: u16,
    /// Bytes of the body.
    pub length: u64,
}

/// Called for each answer.
type Hook = Box<dyn Fn(&Exchange<'_>)>;

/// Who is told of each answer.
#[derive(Default)]
pub(crate) struct Tell(pub(crate) Option<Hook>);

impl fmt::Debug for Tell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Tell" } else { "Nobody" })
    }
}
