//! What the server says to whom it does not serve: refusals, and the shutdown.
//!
//! When that is, is in `connection` and `wire`.

use std::io;

use traps::Interruptible;
use traps::shutdown::has_begun;

use super::connection::{After, Connection, request};
use super::head::{Framing, Head, Method, Span, Version};
use super::request::note_refusal;
use super::response::Response;
use super::status::Refusal;
use super::wire::{Trouble, Wire};
use crate::stream::Stream;

/// In how many seconds a client may ask again.
const RETRY_AFTER: &str = "5";

/// The answer to whom the server has no time for any more.
pub(super) fn unavailable() -> Response {
    let response = Response::new(503).with_text("the server is shutting down\n").and_close();
    response.header("Retry-After", RETRY_AFTER).expect("a field of digits")
}

/// Whether the shutdown cancelled a handler.
pub(super) fn is_cut_by_shutdown(error: &io::Error) -> bool {
    has_begun() && error.interrupt().is_some_and(|why| why.is_cancelled())
}

impl<S: Stream> Connection<'_, S> {
    /// Answers for the server, and closes.
    pub(super) async fn refuse(&mut self, refusal: Refusal, no_body: bool) -> Result<(), Trouble> {
        note_refusal(refusal);
        let mut request = request(REFUSED, &mut self.inbox, self.wire, self.config);
        request.head.no_body = no_body;
        request.settle(Response::new(refusal.status).with_text(refusal.why).and_close()).await?;
        self.part(After::Linger).await
    }

    /// Answers a request that came too late, without a look at its body, and closes (row F17).
    pub(super) async fn turn_away(&mut self, head: Head) -> Result<(), Trouble> {
        let mut request = request(head, &mut self.inbox, self.wire, self.config);
        let after = request.settle(unavailable()).await?;
        self.part(after).await
    }
}

impl<S: Stream> Wire<S> {
    /// Before an idle stream is dropped in a shutdown: the peer reads an end, also where something
    /// of it is on its way, which a stream that is only closed answers with a reset.
    pub(super) fn close_quietly(&mut self) {
        if has_begun() && !self.ended {
            // One that the peer has reset meanwhile has nothing to end.
            let _ = self.shutdown();
        }
    }
}

/// Stands for a head that was refused.
const REFUSED: Head = Head {
    len: 0,
    method: Method::Get,
    no_body: false,
    version: Version::Http11,
    path: Span { start: 0, end: 0 },
    query: Span { start: 0, end: 0 },
    fields: 0,
    framing: Framing::Length(0),
    keep_alive: false,
    expects: false,
};
