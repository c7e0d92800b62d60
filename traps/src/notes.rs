//! Lines that a program writes into the log of its kernel: notes, spans and warnings.

use std::borrow::Cow;
use std::fmt::Display;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use crate::core::gate;
use crate::core::protocol::{Note, Post};
use crate::time::Time;

/// Writes a `note` line into the log of the kernel that runs on this thread. If the log is off,
/// this costs one branch, and `text` is not formatted. Does nothing if no kernel runs. Does not
/// trap.
///
/// ```
/// # let ran = testing::run(async {
/// let rows = 12;
/// traps::note(format_args!("loaded {rows} rows"));
/// # });
/// # assert!(ran.trace.contains("note     loaded 12 rows"), "{}", ran.trace);
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
/// ```
/// use traps::{note, span};
///
/// # let ran = testing::run(async {
/// let total = span("checkout", async {
///     note("paid"); // between the `enter` line and the `leave` line
///     7
/// });
/// assert_eq!(total.await, 7);
/// # });
/// # for text in ["enter    checkout", "note     paid", "leave    checkout"] {
/// #     assert!(ran.trace.contains(text), "{}", ran.trace);
/// # }
/// ```
pub fn span<F: Future>(name: impl Into<Cow<'static, str>>, future: F) -> Spanned<F> {
    Spanned { future, edge: Edge { name: name.into(), is_new: true, is_open: false } }
}

pin_project! {
    /// The future of [`span`].
    ///
    /// ```
    /// use traps::{Spanned, span};
    ///
    /// # testing::run(async {
    /// let checkout: Spanned<_> = span("checkout", traps::yield_now());
    /// checkout.await.unwrap();
    /// # });
    /// ```
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
///
/// ```
/// # let ran = testing::run(async {
/// traps::note_warning("the cache is cold");
/// # });
/// # assert!(ran.trace.contains("warn     the cache is cold"), "{}", ran.trace);
/// ```
pub fn note_warning(text: impl Into<Cow<'static, str>>) {
    post(Note::Warning(text.into()));
}

/// Writes a `cap` line, which reports that a limit was hit, into the log of the kernel that runs on
/// this thread. Does nothing if no kernel runs. Does not trap.
///
/// ```
/// # let ran = testing::run(async {
/// traps::internal::note_cap("name=uploads limit=5");
/// # });
/// # assert!(ran.trace.contains("cap      name=uploads limit=5"), "{}", ran.trace);
/// ```
pub fn note_cap(text: impl Into<Cow<'static, str>>) {
    post(Note::Cap(text.into()));
}

/// Returns whether the kernel that runs on this thread logs every event. If not, there is no need
/// to build a text that only the log shows.
///
/// ```
/// use traps::{is_traced, note};
///
/// # let ran = testing::run(async {
/// if is_traced() {
///     let sizes: Vec<usize> = (1..4).collect(); // only the log needs it
///     note(format_args!("sizes {sizes:?}"));
/// }
/// # });
/// # assert!(ran.trace.contains("sizes [1, 2, 3]"), "{}", ran.trace);
/// ```
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

/// Keeps a pause between log lines that a client can cause at will, so that no client can fill the
/// log. Counts the events that no line has reported yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Throttle {
    /// The time of the last line.
    logged_at: Option<Time>,
    unlogged: u64,
}

impl Throttle {
    /// Counts an event.
    pub fn count(&mut self) {
        self.unlogged += 1;
    }

    /// Claims a line at `now`. Returns false if the last line is younger than `pause`. A last line
    /// in the future holds nothing back, because it was stamped by the clock of another kernel.
    #[must_use]
    pub fn claim_line(&mut self, now: Time, pause: Duration) -> bool {
        let is_recent = |at| at <= now && now.since(at) < pause;
        let is_claimed = !self.logged_at.is_some_and(is_recent);
        if is_claimed {
            self.stamp(now);
        }
        is_claimed
    }

    /// Begins the pause after a line that is logged at `now`.
    pub fn stamp(&mut self, now: Time) {
        self.logged_at = Some(now);
    }

    /// Returns the number of events that no line has reported.
    #[must_use]
    pub fn unlogged(&self) -> u64 {
        self.unlogged
    }

    /// Returns the number of events that no line has reported, because a line is about to report
    /// them.
    pub fn take_unlogged(&mut self) -> u64 {
        mem::take(&mut self.unlogged)
    }
}
