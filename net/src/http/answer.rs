//! A streamed answer, as its handler writes it.

use std::io;

use super::request::{Body, Request, none_lost};
use super::response::Response;
use crate::stream::Stream;

/// A streamed answer, while it is being written. Return what [`Answer::finish`] gives; an answer
/// that is dropped breaks off, and the connection closes.
#[derive(Debug)]
#[must_use = "an answer that is not finished breaks off"]
pub struct Answer<'a, 'r, S> {
    request: &'a mut Request<'r, S>,
}

impl<'r, S: Stream> Request<'r, S> {
    /// Begins a streamed answer: its head, with the fields of `response` and without its body.
    ///
    /// With a [length](Response::with_length) the client is told it; else the body goes in chunks,
    /// or, to a client of HTTP/1.0, until the connection closes.
    ///
    /// Many clients send their whole body before they read. A handler that writes meanwhile must
    /// keep reading, or answer when the body is here ([`Request::body_to_vec`]); else both wait
    /// until [`Deadlines::write`](super::Deadlines::write) ends the connection.
    ///
    /// # Errors
    ///
    /// The stream's, if the client has to be told to send its body. The head goes out with the
    /// first piece of the body, [`Answer::flush`] or the end: until then the handler can still
    /// fail, or the body of the request break a rule, and the client gets a status that says so.
    ///
    /// # Panics
    ///
    /// If an answer has begun already.
    pub async fn start(&mut self, response: Response) -> io::Result<Answer<'_, 'r, S>> {
        // A client sends no body after a final head. A refusal wants none.
        if response.status() < 400 {
            let comes = matches!(self.body, Body::End) || !self.input.rest().is_empty();
            self.writer.go_on(comes).await?;
        }
        self.writer.start(&response, self.head, matches!(self.body, Body::End));
        Ok(Answer { request: self })
    }
}

impl<'r, S: Stream> Answer<'_, 'r, S> {
    /// Writes a piece of the body. Small pieces are gathered until the task waits.
    ///
    /// Blocks while the peer does not read: that is the back-pressure. An interrupt before a small
    /// piece leaves it unwritten; one within a large piece cuts the answer off.
    ///
    /// # Errors
    ///
    /// The stream's; `ConnectionReset` if the peer takes nothing for too long; `InvalidInput` if it
    /// is more than was announced, `BrokenPipe` if it is 1 MiB to a HEAD; an interrupt.
    pub async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.request.writer.write_piece(piece).await
    }

    /// Writes out what was gathered.
    ///
    /// # Errors
    ///
    /// As for [`Answer::write`].
    pub async fn flush(&mut self) -> io::Result<()> {
        self.request.writer.flush().await
    }

    /// Passes the next piece of the request's body on; false at its end.
    ///
    /// # Errors
    ///
    /// As for [`Answer::write`] and [`Request::read_chunk`].
    pub async fn forward(&mut self) -> io::Result<bool> {
        none_lost(self.request.held)?;
        // First: an interrupt after the piece was taken would lose it.
        if self.request.writer.is_full() {
            self.request.writer.flush_gathered().await?;
        }
        let Some(place) = self.request.next_piece().await? else { return Ok(false) };
        let Request { writer, input, .. } = &mut *self.request;
        writer.write_piece(input.at(place)).await?;
        Ok(true)
    }

    /// The request, to read more of its body.
    pub fn request(&mut self) -> &mut Request<'r, S> {
        self.request
    }

    /// Ends the body. The handler returns what this gives.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if less was written than was announced.
    pub fn finish(self) -> io::Result<Response> {
        self.request.writer.finish()?;
        Ok(Response::sent())
    }
}
