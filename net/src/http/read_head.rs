//! How the next head is read: nearly always it is here whole, else it comes in pieces.
//!
//! It parses, and may not answer.

use std::future::poll_fn;
use std::task::Poll;

use super::config::Config;
use super::deadlines::Phase;
use super::head::Head;
use super::line::Busy;
use super::parse::{Stop, parse};
use super::status::Refusal;
use super::transport::Trouble;
use crate::limits::EMPTY_LINES;
use crate::stream::Stream;

/// Below this a head is small.
const SMALL: usize = 2048;

/// The bytes that arrived.
pub(super) enum Next {
    Head,
    /// Nothing yet, and all that was to be said is written.
    Nothing,
    /// The peer is done, or had nothing to say in time.
    Silence,
    /// The refusal, and whether it has no body.
    Refused(Refusal, bool),
}

impl<S: Stream> Busy<'_, S> {
    /// The next head, or what came instead of one.
    #[inline]
    pub(super) async fn next_head(&mut self) -> Result<Next, Trouble> {
        let leaves = self.leaves();
        let Busy { transport, buffers, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.input);
        if input.is_empty() {
            if transport.ended {
                return Ok(Next::Silence);
            }
            let room = input.room(config.limits.head);
            let came = match leaves {
                true => transport.look(room).await?,
                false => poll_fn(|cx| Poll::Ready(transport.read_now(room, cx))).await?,
            };
            match came {
                Some(0) => return Ok(Next::Silence),
                Some(n) => input.filled(n),
                None => {
                    transport.flush(config).await?;
                    return Ok(Next::Nothing);
                }
            }
        }
        match parse(input.rest(), config) {
            Ok(head) => Ok(self.begin(head)),
            Err(_) => Box::pin(self.next_in_pieces()).await,
        }
    }

    /// A request is here.
    #[inline]
    pub(super) fn begin(&mut self, head: Head) -> Next {
        self.transport.get_mut().head_until = None;
        self.buffers.input.finish();
        self.buffers.input.take(0, head.len);
        self.buffers.head = head;
        Next::Head
    }

    /// The next head where it does not come whole, or is not plain, or is none.
    async fn next_in_pieces(&mut self) -> Result<Next, Trouble> {
        // Up to where a head that is not whole was parsed.
        let (mut seen, mut empty_lines) = (0, 0);
        loop {
            let Busy { transport, buffers, config, .. } = self;
            let (transport, input) = (transport.get_mut(), &mut buffers.input);
            while let Some(len) = empty_line(input.rest(), config.bare_lf) {
                input.take(len, 0);
                input.finish();
                empty_lines += 1;
                seen = 0;
            }
            let rest = input.rest();
            if empty_lines > EMPTY_LINES || rest.first() == Some(&b'\n') {
                return Ok(Next::Refused(Refusal::bad("there is no request line\n"), false));
            }
            if !rest.is_empty() && is_worth_parsing(rest, seen, config) {
                match parse(rest, config) {
                    Err(Stop::Partial) => seen = rest.len(),
                    Ok(head) => return Ok(self.begin(head)),
                    Err(Stop::Refused(refusal)) => {
                        return Ok(Next::Refused(refusal, input.asks_for_none()));
                    }
                }
            }
            let room = input.room(config.limits.head);
            let refusal = match transport.read_head(room, config).await {
                Ok(n) if n > 0 => {
                    input.filled(n);
                    continue;
                }
                Ok(_) | Err(Trouble::Expired(_)) if input.is_empty() => return Ok(Next::Silence),
                Ok(_) => Refusal::bad("the head breaks off\n"),
                Err(Trouble::Expired(_)) => {
                    transport.entry.note_expired(Phase::Head, config);
                    Refusal::new(408, "the head took too long\n")
                }
                Err(trouble) => return Err(trouble),
            };
            return Ok(Next::Refused(refusal, input.asks_for_none()));
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
