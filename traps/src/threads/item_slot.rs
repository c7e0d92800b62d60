//! Where an iterator lies between its jobs, and the job of one item.
//!
//! The source and its jobs share a slot. What a job leaves there is the source's from then on,
//! whatever became of the call that asked; nothing here traps, and nothing foreign runs under the
//! lock.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::outside::OutsideWaker;

use super::{ThreadContext, Work, into_panic_message};

/// What the source and its jobs share.
pub(super) struct Slot<I: Iterator>(Mutex<Shared<I>>);

struct Shared<I: Iterator> {
    state: State<I>,
    /// Of the one who waits for a job of an earlier call.
    waker: Option<OutsideWaker>,
}

/// Where the iterator is.
enum State<I: Iterator> {
    /// Here, and nothing is asked of it.
    Idle(Box<I>),
    /// Here, for a job that has not begun.
    Asked(Box<I>),
    /// With a job that runs.
    Away,
    /// Here, with an item that nobody has taken.
    Made(Box<I>, I::Item),
    /// Gone, with a panic that nobody has heard of.
    Panicked(String),
    /// Gone.
    Ended,
    /// The source is gone, and with it all that was here.
    Closed,
}

impl<I: Iterator> State<I> {
    fn name(&self) -> &'static str {
        match self {
            State::Idle(_) => "idle",
            State::Asked(_) => "asked",
            State::Away => "running",
            State::Made(..) => "made",
            State::Panicked(_) => "panicked",
            State::Ended => "ended",
            State::Closed => "closed",
        }
    }
}

/// What is found in a slot.
pub(super) enum Look<I: Iterator> {
    There(Result<Option<I::Item>, String>),
    Ask(NextJob<I>),
    Busy,
}

/// What the source finds. Where there is nothing, a job is to ask for it.
pub(super) fn look<I: Iterator>(slot: &Arc<Slot<I>>) -> Look<I> {
    let mut shared = slot.enter();
    let (state, found) = match mem::replace(&mut shared.state, State::Ended) {
        State::Idle(iterator) => {
            let job = NextJob { slot: slot.clone(), begun: false, unheard: None };
            (State::Asked(iterator), Look::Ask(job))
        }
        State::Made(iterator, item) => (State::Idle(iterator), Look::There(Ok(Some(item)))),
        State::Panicked(message) => (State::Ended, Look::There(Err(message))),
        State::Ended => (State::Ended, Look::There(Ok(None))),
        busy @ (State::Asked(_) | State::Away) => (busy, Look::Busy),
        State::Closed => unreachable!("rule: only the source looks, and it is there"),
    };
    shared.state = state;
    found
}

impl<I: Iterator> Slot<I> {
    pub(super) fn new(iterator: I) -> Slot<I> {
        let state = State::Idle(Box::new(iterator));
        Slot(Mutex::new(Shared { state, waker: None }))
    }

    /// The source goes, with all that is here.
    pub(super) fn close(&self) {
        let left = mem::replace(&mut self.enter().state, State::Closed);
        // The lock is open again: an iterator is foreign.
        drop(left);
    }

    pub(super) fn state_name(&self) -> &'static str {
        self.enter().state.name()
    }

    /// Takes the lock. Nothing foreign runs or is dropped while it is held.
    fn enter(&self) -> MutexGuard<'_, Shared<I>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the waker where the job will find it; a value if there is no job to wait for any more.
    pub(super) fn join(&self, waker: OutsideWaker) -> Option<()> {
        let mut shared = self.enter();
        if !matches!(shared.state, State::Asked(_) | State::Away) {
            return Some(());
        }
        let earlier = shared.waker.replace(waker);
        drop(shared);
        drop(earlier);
        None
    }

    /// Changes the state and wakes who waits for that. `change` gives back what it cannot use.
    fn settle<R>(&self, change: impl FnOnce(&mut State<I>) -> R) -> R {
        let mut shared = self.enter();
        let left = change(&mut shared.state);
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
        left
    }

    /// The job begins. `None`: the source is gone.
    fn begin(&self) -> Option<Box<I>> {
        let mut shared = self.enter();
        match mem::replace(&mut shared.state, State::Away) {
            State::Asked(iterator) => Some(iterator),
            other => {
                // What else there is holds nothing: a source that is there waits for this job.
                shared.state = other;
                None
            }
        }
    }

    /// The job ends. `Some`: the source is gone, and nobody will have this.
    fn end(&self, state: State<I>) -> Option<State<I>> {
        self.settle(|now| match now {
            State::Closed => Some(state),
            _ => {
                *now = state;
                None
            }
        })
    }

    /// The job will never begin: the source may ask again.
    fn give_back(&self) {
        self.settle(|now| {
            *now = match mem::replace(now, State::Ended) {
                State::Asked(iterator) => State::Idle(iterator),
                other => other,
            };
        });
    }
}

// ---- The job ---------------------------------------------------------------------------------

/// The job of one item. Dropped before it has begun, it leaves the iterator as it was.
pub(super) struct NextJob<I: Iterator> {
    slot: Arc<Slot<I>>,
    begun: bool,
    /// The message of a panic that the source will not hear of.
    unheard: Option<String>,
}

impl<I> NextJob<I>
where
    I: Iterator,
{
    /// Has the iterator make its next item. Does not panic.
    fn make(&mut self) {
        self.begun = true;
        let Some(mut iterator) = self.slot.begin() else { return };
        let state = match caught(|| iterator.next()) {
            Ok(Some(item)) => State::Made(iterator, item),
            // A file is closed here, not when the source is dropped, and not on its thread.
            Ok(None) => caught(|| drop(iterator)).map_or_else(State::Panicked, |()| State::Ended),
            Err(message) => {
                // What its drop may say comes after what ended it.
                let _ = caught(|| drop(iterator));
                State::Panicked(message)
            }
        };
        self.unheard = match self.slot.end(state) {
            Some(State::Panicked(message)) => Some(message),
            Some(left) => caught(|| drop(left)).err(),
            None => None,
        };
    }
}

impl<I> Work for NextJob<I>
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    fn run(&mut self, context: ThreadContext) {
        // The locals that came with the context are foreign too.
        let left = caught(|| context.run(|| self.make()));
        self.unheard = self.unheard.take().or(left.err());
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn into_outcome(mut self: Box<Self>) -> Option<Result<Box<dyn Any>, String>> {
        self.unheard.take().map(Err)
    }
}

impl<I: Iterator> Drop for NextJob<I> {
    fn drop(&mut self) {
        if !self.begun {
            self.slot.give_back();
        }
    }
}

/// Runs foreign code; the message of its panic.
fn caught<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(into_panic_message)
}
