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
use super::status::Refusal;
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
                true => transport.look(room).await?,
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
        self.whole_head().await
    }

    /// Reads until the head that has begun is whole, or is none.
    async fn whole_head(&mut self) -> io::Result<Next> {
        // Up to where a head that is not whole was parsed.
        let (mut seen, mut empty_lines) = (0, 0);
        loop {
            let Busy { transport, buffers, config, .. } = self;
            let (transport, input) = (transport.get_mut(), &mut buffers.input);
            let skipped = skip_empty_lines(input, config);
            if skipped > 0 {
                (seen, empty_lines) = (0, empty_lines + skipped);
            }
            let rest = input.rest();
            if empty_lines > EMPTY_LINES || rest.first() == Some(&b'\n') {
                return Ok(Next::Refused(Refusal::bad("there is no request line\n"), false));
            }
            if !rest.is_empty() && is_worth_parsing(rest, seen, config) {
                match parse(rest, config) {
                    Err(Stop::Partial) => seen = rest.len(),
                    Err(Stop::Refused(refusal)) => {
                        return Ok(Next::Refused(refusal, input.asks_for_none()));
                    }
                    Ok(head) => {
                        transport.head_until = None;
                        buffers.begin(head);
                        return Ok(Next::Head);
                    }
                }
            }
            let room = input.room(config.limits.head);
            let refusal = match transport.read_head(room, config).await {
                Ok(n) if n > 0 => {
                    input.filled(n);
                    continue;
                }
                Err(error) if !Expired::is(&error) => return Err(error),
                Ok(_) | Err(_) if input.is_empty() => return Ok(Next::Silence),
                Ok(_) => Refusal::bad("the head breaks off\n"),
                Err(_) => Refusal::new(408, "the head took too long\n"),
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
