//! Signals of the process as a stream: everyone who asks sees each of them.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::call::Call;
use crate::error::{Error, wrong_answer};
use crate::protocol::{Answer, Request};
use crate::signal::{Signal, SignalSet};

/// A stream of `signals`, for [`Signals::next`].
///
/// Every stream sees every signal that it asked for, also where others wait for the same one. From
/// the first poll of the first `next` on, these signals do not end the process any more, and those
/// that arrive between two `next`s are kept; of one number at most one, as the system does it.
///
/// ```no_run
/// # fn reload() {}
/// # async fn example() -> Result<(), traps::Error> {
/// use traps::{Signal, signals};
///
/// let mut hangups = signals(&[Signal::Hangup]);
/// loop {
///     hangups.next().await?;
///     reload();
/// }
/// # }
/// ```
#[must_use]
pub fn signals(signals: &[Signal]) -> Signals {
    let set = signals.iter().copied().collect();
    Signals { line: Rc::new(SignalLine { set, kept: Cell::default() }) }
}

/// A stream of signals, made by [`signals`]. Belongs to its thread.
#[derive(Debug)]
pub struct Signals {
    line: Rc<SignalLine>,
}

impl Signals {
    /// The next of its signals, the lowest number first where several wait. *Blocks*; *answers* if
    /// one is kept. A signal that was handed to a future which is then dropped is kept.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupt`] if the wait ended early, [`Error::Io`] if the system refused a handler.
    #[track_caller]
    #[expect(clippy::should_implement_trait, reason = "a stream is no iterator: it waits")]
    pub fn next(&mut self) -> NextSignal<'_> {
        NextSignal { line: &self.line, call: Call::here() }
    }
}

/// What a kernel and a stream of signals share.
#[derive(Debug)]
pub struct SignalLine {
    set: SignalSet,
    /// Arrived, and not taken yet.
    kept: Cell<SignalSet>,
}

impl SignalLine {
    /// Which it is for.
    #[must_use]
    pub fn set(&self) -> SignalSet {
        self.set
    }

    /// Keeps one that arrived, unless there is one already.
    pub fn keep(&self, signal: Signal) {
        self.kept.set(self.kept.get().with(signal));
    }

    /// Takes the lowest number that is kept.
    #[must_use]
    pub fn take(&self) -> Option<Signal> {
        let kept = self.kept.get();
        let found = kept.iter().next()?;
        self.kept.set(kept.without(found));
        Some(found)
    }
}

/// The future of [`Signals::next`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct NextSignal<'a> {
    line: &'a Rc<SignalLine>,
    call: Call,
}

impl Drop for NextSignal<'_> {
    fn drop(&mut self) {
        if let Some(Ok(Answer::Signal(signal))) = self.call.abandon() {
            self.line.keep(signal);
        }
    }
}

impl Future for NextSignal<'_> {
    type Output = Result<Signal, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let NextSignal { line, call } = &mut *self;
        call.poll(cx, || Request::NextSignal(line.clone())).map(|result| match result {
            Ok(Answer::Signal(signal)) => Ok(signal),
            Ok(other) => wrong_answer(&other),
            Err(failure) => Err(failure.into()),
        })
    }
}
