//! Server-sent events: a response that continues as long as the handler has events to send.
//!
//! This module must not know where events come from.

use std::fmt;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::time::Duration;

use traps::{Either, race, sleep};

use crate::http::{BodyWriter, Request, Response};
use crate::stream::Stream;

/// An event, in the form that a browser's `EventSource` reads.
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
    /// Makes an event with this data, which can have several lines.
    pub fn new(data: &'e str) -> Event<'e> {
        Event { data, ..Event::default() }
    }

    /// Sets the name of the event, which is `message` otherwise.
    pub fn named(mut self, name: &'e str) -> Event<'e> {
        self.name = Some(name);
        self
    }

    /// Sets the id of the event. A client that reconnects sends the id of its
    /// [last](Events::last_id) event.
    pub fn with_id(mut self, id: &'e str) -> Event<'e> {
        self.id = Some(id);
        self
    }

    /// Tells the client to wait for `span`, in whole milliseconds, before it reconnects.
    pub fn with_retry(mut self, span: Duration) -> Event<'e> {
        self.retry = Some(span);
        self
    }

    /// Returns the lines of the event, with the empty line that ends it.
    ///
    /// # Errors
    ///
    /// Returns `InvalidInput` if the name or the id contains a line end or NUL, which would begin
    /// another field or event.
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
        // CR LF is one line end, and so are CR and LF alone.
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

/// A response that consists of events. Each event is sent at once. Between events, wait with
/// [`Events::during`], which keeps the connection and the handler alive.
///
/// A shutdown waits for the response, until its drain is over. To end the response as soon as the
/// shutdown begins, wait inside [`until_begun`](traps::shutdown::until_begun), and then
/// [finish](Events::finish). A client that does not read its events can then delay the shutdown by
/// two and a half seconds; see [`Config::drain`](crate::http::Config::drain).
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use net::Stream;
/// use net::http::{Request, Response};
/// use net::web::{Event, Events};
/// use traps::shutdown::until_begun;
///
/// async fn ticks<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
///     let last = Events::last_id(request).and_then(|id| id.parse().ok()).unwrap_or(0);
///     let mut events = Events::start(request).await?;
///     for number in last + 1..=last + 10 {
///         let tick = until_begun(traps::sleep(Duration::from_secs(60)));
///         let ticked = events.during(Duration::from_secs(15), tick).await?;
///         if ticked.transpose()?.is_none() {
///             break; // the shutdown has begun
///         }
///         events.send(&Event::new("tick").with_id(&number.to_string())).await?;
///     }
///     events.finish()
/// }
/// ```
#[must_use = "an answer that is not finished breaks off"]
pub struct Events<'a, 'r, S> {
    answer: BodyWriter<'a, 'r, S>,
    wanted: bool,
}

impl<S> fmt::Debug for Events<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl<'a, 'r, S: Stream> Events<'a, 'r, S> {
    /// Returns the id of the last event that the client received before it reconnected.
    #[must_use]
    pub fn last_id<'q>(request: &'q Request<'r, S>) -> Option<&'q str> {
        std::str::from_utf8(request.header("Last-Event-ID")?).ok()
    }

    /// Begins the response and sends its header section, so that the client knows that it is
    /// connected.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Request::start`] and [`BodyWriter::flush`].
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Request::start`].
    pub async fn start(request: &'a mut Request<'r, S>) -> io::Result<Events<'a, 'r, S>> {
        let response = Response::new(200)
            .header("Content-Type", "text/event-stream")?
            .header("Cache-Control", "no-cache")?
            // An nginx in front of the server would otherwise buffer the events.
            .header("X-Accel-Buffering", "no")?;
        let wanted = !request.is_head();
        let mut answer = request.start(response).await?;
        answer.flush().await?;
        Ok(Events { answer, wanted })
    }

    /// Returns whether the client wants events. A client that sent HEAD does not:
    /// [finish](Events::finish) the response. Otherwise the first event or wait fails, and the
    /// connection is closed after the header section.
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
    /// Returns the errors of [`Event::text`] and [`BodyWriter::write`], and `Unsupported` for HEAD.
    pub async fn send(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.check()?;
        let text = event.text()?;
        self.write(&text).await
    }

    /// Waits for `work`. In the meantime, sends a comment after every `every`, which clients
    /// ignore. The comments keep proxies from closing the connection, and detect a client that has
    /// gone without closing its connection. Each comment restarts the time of
    /// [`Deadlines::handler`](crate::http::Deadlines::handler), so `every` must be shorter than
    /// that.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BodyWriter::write`], and `Unsupported` for HEAD. In these cases
    /// `work` is dropped. An interrupt also reaches `work`. If that ends `work`, its output is
    /// returned.
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

    /// Ends the response, which the handler then returns. The client reconnects after a while.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BodyWriter::finish`].
    pub fn finish(self) -> io::Result<Response> {
        self.answer.finish()
    }
}
