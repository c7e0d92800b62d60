//! Lines that a program writes into the log of its kernel: notes, spans and warnings.

use std::borrow::Cow;
use std::fmt::Display;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::core::gate;
use crate::core::protocol::{Note, Post};

/// Writes a `note` line into the log of the kernel that runs on this thread. If the log is off,
/// this costs one branch, and `text` is not formatted. Does nothing if no kernel runs. Does not
/// trap.
///
/// ```no_run
/// # let rows = 12;
/// traps::note(format_args!("loaded {rows} rows"));
/// ```
pub fn note(text: impl Display) {
    if is_traced() {
        post(Note::Said(text.to_string().into()));
    }
}

/// Runs `future` as a log span with this name. The log shows an `enter` line at its first poll, and
/// a `leave` line when it ends or is dropped. Spans nest. If the log is off, this costs one branch.
/// Does not trap.
///
/// ```no_run
/// # async fn pay() {}
/// # async fn example() {
/// traps::span("checkout", pay()).await;
/// # }
/// ```
pub fn span<F: Future>(name: impl Into<Cow<'static, str>>, future: F) -> Spanned<F> {
    Spanned { future, edge: Edge { name: name.into(), is_new: true, is_open: false } }
}

pin_project! {
    /// The future of [`span`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Spanned<F> {
        #[pin]
        future: F,
        // Dropped after the future, so that the last lines of the future are inside the span.
        edge: Edge,
    }
}

impl<F: Future> Future for Spanned<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        if this.edge.is_new {
            this.edge.enter();
        }
        let polled = this.future.poll(cx);
        if polled.is_ready() {
            this.edge.leave();
        }
        polled
    }
}

/// The state of a span, which writes the log lines of its beginning and its end.
#[derive(Debug)]
struct Edge {
    name: Cow<'static, str>,
    is_new: bool,
    is_open: bool,
}

impl Edge {
    fn enter(&mut self) {
        (self.is_new, self.is_open) = (false, is_traced());
        if self.is_open {
            post(Note::Span(true, self.name.clone()));
        }
    }

    fn leave(&mut self) {
        if std::mem::take(&mut self.is_open) {
            post(Note::Span(false, std::mem::take(&mut self.name)));
        }
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Writes a `warn` line into the log of the kernel that runs on this thread. Does nothing if no
/// kernel runs. Does not trap.
pub fn note_warning(text: impl Into<Cow<'static, str>>) {
    post(Note::Warning(text.into()));
}

/// Writes a `cap` line, which reports that a limit was hit, into the log of the kernel that runs on
/// this thread. Does nothing if no kernel runs. Does not trap.
pub fn note_cap(text: impl Into<Cow<'static, str>>) {
    post(Note::Cap(text.into()));
}

/// Returns whether the kernel that runs on this thread logs every event. If not, there is no need
/// to build a text that only the log shows.
#[inline]
#[must_use]
pub fn is_traced() -> bool {
    gate::is_listening()
}

fn post(note: Note) {
    if gate::epoch() != 0 {
        gate::post(Post::Note(note));
    }
}
