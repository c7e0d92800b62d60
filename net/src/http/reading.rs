//! How the next head is read: at once where it is here whole, as nearly always, or in pieces.
//!
//! It parses, and may not answer.

use std::io;
use std::task::Context;

use super::config::{Buffers, Config};
use super::connection::{Connection, note_expired};
use super::head::{Head, Parsed, parse, parse_any, within};
use super::phase::Phase;
use super::plain::plain;
use super::status::Refusal;
use super::wire::Trouble;
use crate::limits::EMPTY_LINES;
use crate::stream::Stream;

/// Below this a head is small.
const SMALL: usize = 2048;

/// What came.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Head,
    /// Nothing yet, and all that was to be said is written.
    Nothing,
    /// The peer is done, or had nothing to say in time.
    Silence,
    /// What is to be [refused](Refused).
    Refused,
}

/// What is to be answered for the server, and whether without a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refused {
    pub(super) refusal: Refusal,
    pub(super) no_body: bool,
}

impl<S: Stream> Connection<'_, S> {
    /// The next head, or what came instead of one, if that takes no wait; else `None`, and
    /// [`next_in_pieces`](Connection::next_in_pieces) gives it.
    pub(super) fn next_at_once(&mut self, cx: &mut Context<'_>) -> io::Result<Option<Next>> {
        let Connection { wire, buffers, config, .. } = self;
        let (wire, inbox) = (wire.get_mut(), &mut buffers.inbox);
        if inbox.is_empty() {
            let came = match wire.is_drained() {
                true => None,
                // What filled the buffer may have been all.
                false => wire.try_read(inbox.room(config.limits.head), cx)?,
            };
            match came {
                Some(0) => return Ok(Some(Next::Silence)),
                Some(n) => inbox.filled(n),
                None => return Ok(wire.try_flush(cx)?.then_some(Next::Nothing)),
            }
        }
        match plain(within(inbox.rest(), config), config) {
            Some(head) => Ok(Some(self.begin(head))),
            None => Ok(self.any_at_once()),
        }
    }

    /// The same where something is here, and not plain.
    #[cold]
    fn any_at_once(&mut self) -> Option<Next> {
        let rest = self.buffers.inbox.rest();
        if let [b'\r' | b'\n', ..] = rest {
            return None;
        }
        match parse_any(within(rest, self.config), self.config) {
            Parsed::Head(head) => Some(self.begin(head)),
            Parsed::Partial | Parsed::Refused { .. } => None,
        }
    }

    /// A request is here.
    #[inline]
    fn begin(&mut self, head: Head) -> Next {
        self.wire.get_mut().watch.leave();
        let Buffers { inbox, head: place, .. } = &mut *self.buffers;
        inbox.finish();
        inbox.take(0, head.len);
        *place = head;
        Next::Head
    }

    fn refused(&mut self, refusal: Refusal, no_body: bool) -> Next {
        self.buffers.refused = Some(Refused { refusal, no_body });
        Next::Refused
    }

    /// The next head where it does not come whole, or is none, or the last answers take a wait.
    pub(super) async fn next_in_pieces(&mut self) -> Result<Next, Trouble> {
        let Connection { wire, buffers, config, .. } = self;
        let (wire, inbox) = (wire.get_mut(), &mut buffers.inbox);
        // Up to where a head that is not whole was parsed.
        let (mut seen, mut empty_lines) = (0, 0);
        loop {
            while let Some(len) = empty_line(inbox.rest(), config.bare_lf) {
                inbox.take(len, 0);
                inbox.finish();
                empty_lines += 1;
                seen = 0;
            }
            let rest = inbox.rest();
            if empty_lines > EMPTY_LINES || rest.first() == Some(&b'\n') {
                let refusal = Refusal::bad("there is no request line\n");
                return Ok(self.refused(refusal, false));
            }
            if !rest.is_empty() && is_worth_parsing(rest, seen, config) {
                match parse(rest, config) {
                    Parsed::Partial => seen = rest.len(),
                    Parsed::Head(head) => return Ok(self.begin(head)),
                    Parsed::Refused { refusal, no_body } => {
                        return Ok(self.refused(refusal, no_body));
                    }
                }
            }
            if inbox.is_empty() && empty_lines == 0 {
                wire.flush(config).await?;
                return Ok(Next::Nothing);
            }
            let room = inbox.room(config.limits.head);
            let refusal = match wire.read(room, Phase::Head, config).await {
                Ok(n) if n > 0 => {
                    inbox.filled(n);
                    continue;
                }
                Ok(_) | Err(Trouble::Expired(Phase::Head)) if inbox.is_empty() => {
                    return Ok(Next::Silence);
                }
                Ok(_) => Refusal::bad("the head breaks off\n"),
                Err(Trouble::Expired(Phase::Head)) => {
                    note_expired(Phase::Head, config, self.seat);
                    Refusal::new(408, "the head took too long\n")
                }
                Err(trouble) => return Err(trouble),
            };
            let no_body = inbox.asks_for_none();
            return Ok(self.refused(refusal, no_body));
        }
    }
}

/// Whether a head that was not whole up to `seen` may be so now: a small one is parsed again at
/// every read, a large one at every line, so that it does not cost its square.
fn is_worth_parsing(rest: &[u8], seen: usize, config: &Config) -> bool {
    let line = config.limits.request_line.saturating_add(1);
    rest.len() < SMALL
        || rest[seen..].contains(&b'\n')
        || (seen <= line && rest.len() > line)
        || rest.len() >= config.limits.head
}

/// How long the empty line is that `bytes` begin with.
fn empty_line(bytes: &[u8], bare_lf: bool) -> Option<usize> {
    match bytes {
        [b'\r', b'\n', ..] => Some(2),
        [b'\n', ..] if bare_lf => Some(1),
        _ => None,
    }
}
