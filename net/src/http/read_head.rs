//! How the next head is read: most often it is here whole, else it comes in pieces.
//!
//! It parses, and may not answer.

use std::future::poll_fn;
use std::io;
use std::task::Poll;

use super::buffers::Input;
use super::busy::Busy;
use super::config::Config;
use super::parse::{Stop, parse};
use super::status::{Refusal, STOPS};
use super::transport::Expired;
use crate::limits::EMPTY_LINES;
use crate::stream::Stream;

/// Below this a head is small.
const SMALL: usize = 2048;

/// What came.
pub(super) enum Next {
    /// A head.
    Head,
    /// Nothing yet, and all that was to be said is written.
    Nothing,
    /// The peer is done, or had nothing to say in time.
    Silence,
    /// What is no head; and whether its refusal has no body.
    Refused(Refusal, bool),
}

/// How far a head has come that is not whole.
#[derive(Default)]
struct Begun {
    /// Up to where it was parsed.
    seen: usize,
    /// How many there were in front of it.
    empty_lines: usize,
}

impl<S: Stream> Busy<'_, S> {
    /// The next head, or what came instead of one. Waits only for the rest of one that has begun.
    pub(super) async fn next_head(&mut self) -> io::Result<Next> {
        let Busy { transport, buffers, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.input);
        if input.is_empty() {
            if transport.ended {
                return Ok(Next::Silence);
            }
            let room = input.room(config.limits.head);
            let leaves = transport.leaves(config);
            let came = match leaves {
                true => Box::pin(transport.look(room)).await?,
                false => poll_fn(|cx| Poll::Ready(transport.read_now(room, cx))).await?,
            };
            match came {
                Some(0) => return Ok(Next::Silence),
                Some(n) => input.filled(n),
                None if leaves => return Ok(Next::Silence),
                None => {
                    transport.flush(config).await?;
                    return Ok(Next::Nothing);
                }
            }
        }
        let mut begun = Begun::default();
        loop {
            if let Some(next) = self.whole_head(&mut begun) {
                return Ok(next);
            }
            // In a box, for most heads come whole.
            if let Some(next) = Box::pin(self.read_on()).await? {
                return Ok(next);
            }
        }
    }

    /// The head that has begun, if it is whole, or is none.
    fn whole_head(&mut self, begun: &mut Begun) -> Option<Next> {
        let Busy { transport, buffers, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.input);
        let skipped = skip_empty_lines(input, config);
        if skipped > 0 {
            *begun = Begun { seen: 0, empty_lines: begun.empty_lines + skipped };
        }
        let rest = input.rest();
        if begun.empty_lines > EMPTY_LINES || rest.first() == Some(&b'\n') {
            return Some(Next::Refused(Refusal::bad("there is no request line\n"), false));
        }
        if rest.is_empty() || !is_worth_parsing(rest, begun.seen, config) {
            return None;
        }
        match parse(rest, config) {
            Err(Stop::Partial) => {
                begun.seen = rest.len();
                None
            }
            Err(Stop::Refused(refusal)) => Some(Next::Refused(refusal, input.asks_for_none())),
            Ok(head) => {
                transport.head_until = None;
                buffers.begin(head);
                let late = transport.late;
                Some(if late { Next::Refused(STOPS, head.no_body) } else { Next::Head })
            }
        }
    }

    /// Reads more of a head that has begun. What came instead, if no more did.
    async fn read_on(&mut self) -> io::Result<Option<Next>> {
        let Busy { transport, buffers, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.input);
        let room = input.room(config.limits.head);
        let refusal = match transport.read_head(room, config).await {
            Ok(n) if n > 0 => {
                input.filled(n);
                return Ok(None);
            }
            Err(error) if !Expired::is(&error) => return Err(error),
            Ok(_) | Err(_) if input.is_empty() => return Ok(Some(Next::Silence)),
            Ok(_) => Refusal::bad("the head breaks off\n"),
            Err(_) => Refusal::new(408, "the head took too long\n"),
        };
        Ok(Some(Next::Refused(refusal, input.asks_for_none())))
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

/// Uses up the empty lines in front (RFC 9112, 2.2). Gives how many there were.
fn skip_empty_lines(input: &mut Input, config: &Config) -> usize {
    let mut count = 0;
    loop {
        let len = match input.rest() {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] if config.bare_lf => 1,
            _ => return count,
        };
        input.take(len, 0);
        input.finish();
        count += 1;
    }
}
