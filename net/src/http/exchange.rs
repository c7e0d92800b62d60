//! What an access log is told of an answer.

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
    /// Bytes of the body that were handed to the stream, without the framing of chunks.
    pub length: u64,
}
