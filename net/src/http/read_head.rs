//! How the next head is read: most often it is here whole, else it comes in pieces.
//!
//! It parses, and may not answer.

use std::io;
use std::task::Context;

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
    /// A part of one, if anything, and there may be more.
    Partial,
    /// Nothing yet.
    Nothing,
    /// The peer is done, or had nothing to say in time.
    Silence,
    /// A malformed head, and whether the refusal has no body. In a box: it is large, and rare.
    Refused(Box<Refusal>, bool),
}

impl<S: Stream> Busy<'_, S> {
    /// The next head, or what came instead of one, as far as that takes no wait.
    pub(super) fn head_at_hand(&mut self, cx: &mut Context<'_>) -> io::Result<Next> {
        let Busy { transport, buffers, empty_lines, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.input);
        if input.is_empty() && *empty_lines == 0 {
            if transport.ended {
                return Ok(Next::Silence);
            }
            if transport.leaves(config) {
                return Ok(Next::Partial);
            }
            match transport.read_now(input.room(config.limits.head), cx)? {
                Some(0) => return Ok(Next::Silence),
                Some(n) => input.filled(n),
                None => return Ok(Next::Nothing),
            }
        }
        Ok(self.whole_head())
    }

    /// The head that has begun.
    fn whole_head(&mut self) -> Next {
        let Busy { transport, buffers, seen, empty_lines, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.input);
        let skipped = skip_empty_lines(input, config);
        if skipped > 0 {
            (*seen, *empty_lines) = (0, *empty_lines + skipped);
        }
        let rest = input.rest();
        if *empty_lines > EMPTY_LINES || rest.first() == Some(&b'\n') {
            return Next::Refused(Refusal::bad("there is no request line\n").into(), false);
        }
        if rest.is_empty() || !is_worth_parsing(rest, *seen, config) {
            return Next::Partial;
        }
        match parse(rest, config) {
            Err(Stop::Partial) => {
                *seen = rest.len();
                Next::Partial
            }
            Err(Stop::Refused(refusal)) => Next::Refused(refusal.into(), input.asks_for_none()),
            Ok(head) => {
                (*seen, *empty_lines, transport.head_until) = (0, 0, None);
                input.take(0, head.len);
                buffers.head = head;
                if transport.late { Next::Refused(STOPS.into(), head.no_body) } else { Next::Head }
            }
        }
    }

    /// Reads more of a head, or has the last look before it leaves: a part, or what came instead.
    pub(super) async fn read_on(&mut self) -> io::Result<Next> {
        let Busy { transport, buffers, empty_lines, config, .. } = self;
        let (transport, input) = (transport.get_mut(), &mut buffers.input);
        let looks = input.is_empty() && *empty_lines == 0;
        let room = input.room(config.limits.head);
        let read = match looks {
            true => transport.look(room).await.map(Option::unwrap_or_default),
            false => transport.read_head(room, config).await,
        };
        let refusal = match read {
            Ok(n) if n > 0 => {
                input.filled(n);
                return Ok(Next::Partial);
            }
            Err(error) if !Expired::is(&error) => return Err(error),
            Ok(_) | Err(_) if input.is_empty() => return Ok(Next::Silence),
            Ok(_) => Refusal::bad("the head breaks off\n"),
            Err(_) => Refusal::new(408, "the head took too long\n"),
        };
        Ok(Next::Refused(refusal.into(), input.asks_for_none()))
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
