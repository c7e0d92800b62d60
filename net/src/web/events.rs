//! Server-sent events: an answer that goes on while there is something to tell.
//!
//! It may not know where events come from.

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::time::Duration;

use traps::{Either, race, sleep};

use crate::http::{Answer, Request, Response};
use crate::stream::Stream;

/// One event, as a browser's `EventSource` takes it.
///
/// ```
/// use net::web::Event;
///
/// let event = Event::new("two\nlines").named("news").with_id("7");
/// assert_eq!(event.text().unwrap(), "event: news\nid: 7\ndata: two\ndata: lines\n\n");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "an event is sent by `Events::send`"]
pub struct Event<'e> {
    data: &'e str,
    name: Option<&'e str>,
    id: Option<&'e str>,
    retry: Option<Duration>,
}

impl<'e> Event<'e> {
    /// An event with this data, of as many lines as it has.
    pub fn new(data: &'e str) -> Event<'e> {
        Event { data, ..Event::default() }
    }

    /// Gives it a name other than `message`.
    pub fn named(mut self, name: &'e str) -> Event<'e> {
        self.name = Some(name);
        self
    }

    /// Gives it an id: a client that comes back says which was its [last](Events::last_id).
    pub fn with_id(mut self, id: &'e str) -> Event<'e> {
        self.id = Some(id);
        self
    }

    /// Tells the client to wait for so long before it comes back, in whole milliseconds.
    pub fn with_retry(mut self, span: Duration) -> Event<'e> {
        self.retry = Some(span);
        self
    }

    /// Its lines, with the empty one that ends it.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a line end or NUL in the name or the id: it would be another event's.
    pub fn text(&self) -> io::Result<String> {
        let mut text = String::with_capacity(self.data.len() + 32);
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\n"] {
                text.push_str(part);
            }
        };
        for (name, value) in [("event", self.name), ("id", self.id)] {
            let Some(value) = value else { continue };
            if value.contains(['\r', '\n', '\0']) {
                let why = "the name and the id of an event are one line each";
                return Err(io::Error::new(ErrorKind::InvalidInput, why));
            }
            line(name, value);
        }
        if let Some(span) = self.retry {
            line("retry", &span.as_millis().to_string());
        }
        // CR LF is one end, and each of both alone is one too.
        let mut rest = self.data;
        while let Some(end) = rest.find(['\r', '\n']) {
            line("data", &rest[..end]);
            let len = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
            rest = &rest[end + len..];
        }
        line("data", rest);
        text.push('\n');
        Ok(text)
    }
}

/// An answer of events. Each goes out at once. While nothing is to be told, wait by
/// [`Events::during`], which keeps the connection and the handler alive.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use net::Stream;
/// use net::http::{Request, Response};
/// use net::web::{Event, Events};
///
/// async fn ticks<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
///     let last = Events::last_id(request).and_then(|id| id.parse().ok()).unwrap_or(0);
///     let mut events = Events::start(request).await?;
///     for number in last + 1..=last + 10 {
///         let tick = traps::sleep(Duration::from_secs(60));
///         events.during(Duration::from_secs(15), tick).await??;
///         events.send(&Event::new("tick").with_id(&number.to_string())).await?;
///     }
///     events.finish()
/// }
/// ```
#[must_use = "an answer that is not finished breaks off"]
pub struct Events<'a, 'r, S> {
    answer: Answer<'a, 'r, S>,
    wanted: bool,
}

impl<S> fmt::Debug for Events<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl<'a, 'r, S: Stream> Events<'a, 'r, S> {
    /// The id of the last event that this client had before it came back.
    #[must_use]
    pub fn last_id<'q>(request: &'q Request<'r, S>) -> Option<&'q str> {
        std::str::from_utf8(request.header("Last-Event-ID")?).ok()
    }

    /// Begins the answer, and writes its head out: the client knows that it is connected.
    ///
    /// # Errors
    ///
    /// As for [`Request::start`] and [`Answer::flush`].
    ///
    /// # Panics
    ///
    /// As [`Request::start`].
    pub async fn start(request: &'a mut Request<'r, S>) -> io::Result<Events<'a, 'r, S>> {
        let response = Response::new(200)
            .header("Content-Type", "text/event-stream")?
            .header("Cache-Control", "no-cache")?
            // For nginx in front, which would gather.
            .header("X-Accel-Buffering", "no")?;
        let wanted = !request.is_head();
        let mut answer = request.start(response).await?;
        answer.flush().await?;
        Ok(Events { answer, wanted })
    }

    /// Whether the client takes events. One that asked by HEAD does not: [finish](Events::finish).
    /// A handler that does not ask meets an error at its first event or wait, and the connection
    /// closes behind the head.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.wanted
    }

    fn check(&self) -> io::Result<()> {
        let why = "HEAD has no events";
        if self.wanted { Ok(()) } else { Err(io::Error::new(ErrorKind::Unsupported, why)) }
    }

    /// Sends an event. Blocks while the client does not read.
    ///
    /// # Errors
    ///
    /// As for [`Event::text`] and [`Answer::write`]; `Unsupported` for HEAD.
    pub async fn send(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.check()?;
        let text = event.text()?;
        self.write(&text).await
    }

    /// Waits for `work`, and meanwhile sends a remark, which clients pass over, in every such span.
    /// Proxies keep a connection on which something comes. A client that is gone without having
    /// closed its connection is noticed. With each remark the time of
    /// [`Deadlines::handler`](crate::http::Deadlines::handler) begins anew, so the span is to be
    /// shorter than that.
    ///
    /// # Errors
    ///
    /// As for [`Answer::write`], and `Unsupported` for HEAD; the work is dropped then. An interrupt
    /// reaches the work too, and what the work makes of it is the output, if the work is done by
    /// it.
    pub async fn during<T>(
        &mut self,
        every: Duration,
        work: impl Future<Output = T>,
    ) -> io::Result<T> {
        self.check()?;
        let mut work = pin!(work);
        loop {
            match race(work.as_mut(), sleep(every)).await {
                Either::Left(done) => return Ok(done),
                Either::Right(slept) => slept.map(drop)?,
            }
            self.write(":\n\n").await?;
        }
    }

    async fn write(&mut self, text: &str) -> io::Result<()> {
        self.answer.write(text.as_bytes()).await?;
        self.answer.flush().await
    }

    /// Ends the answer; the client will come back after a while. The handler returns what this
    /// gives.
    ///
    /// # Errors
    ///
    /// As for [`Answer::finish`].
    pub fn finish(self) -> io::Result<Response> {
        self.answer.finish()
    }
}
