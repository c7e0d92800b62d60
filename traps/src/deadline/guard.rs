//! The guard: a future that runs under a connection deadline, and how it takes and leaves that.
//!
//! A connection that is busy may have one, so it is small: of the scope in which it runs the
//! deadline keeps what is to be known.

use std::fmt;
use std::num::NonZeroU64;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::{ConnectionDeadline, DeadlineSlot};
use crate::call::Call;
use crate::deadline_table::{BARE, GUARD};
use crate::gate;
use crate::interrupt::Interruptible;
use crate::protocol::{DeadlineName, Limit, Post, Request, ScopeId, ScopeKind, Site, Ticket};
use crate::scope::{Inner, Opener, close, close_unseen, left, opened, poll_inside, relabel};
use crate::time::Time;

/// So many waits are looked through at the end of a guard.
const FEW: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// It has so many microseconds from its first poll.
    After(u64),
    /// It has until then from its first poll.
    Until(Time),
    /// It runs on the deadline's own slot, in the scope that the deadline keeps.
    Kept,
    /// It will, once that scope is opened: the number of its ticket, once it is filed.
    Own(Option<NonZeroU64>),
    /// It runs inside another guard of the same deadline, in a scope of its own, which has that
    /// place there.
    Nested(u32),
    /// It has no limit.
    Free,
}

/// A stage in one word: which, in three bits, and its number.
#[derive(Clone, Copy)]
struct Packed(u64);

impl Packed {
    const BITS: u32 = 61;
    /// The largest number: a span or a point that stands for never.
    const MOST: u64 = (1 << Packed::BITS) - 1;

    #[inline(always)]
    fn of(stage: Stage) -> Packed {
        let (which, number) = match stage {
            Stage::After(span) => (0, span),
            Stage::Until(until) => (1, until.as_micros()),
            Stage::Kept => (2, 0),
            Stage::Own(serial) => (3, serial.map_or(0, NonZeroU64::get)),
            Stage::Nested(place) => (4, u64::from(place)),
            Stage::Free => (5, 0),
        };
        Packed(which << Packed::BITS | number.min(Packed::MOST))
    }

    #[inline(always)]
    fn stage(self) -> Stage {
        let number = self.0 & Packed::MOST;
        let micros = if number == Packed::MOST { u64::MAX } else { number };
        match self.0 >> Packed::BITS {
            0 => Stage::After(micros),
            1 => Stage::Until(Time::from_micros(micros)),
            2 => Stage::Kept,
            3 => Stage::Own(NonZeroU64::new(number)),
            4 => Stage::Nested(number as u32),
            _ => Stage::Free,
        }
    }

    #[inline(always)]
    fn set(&mut self, stage: Stage) {
        *self = Packed::of(stage);
    }
}

impl fmt::Debug for Packed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stage().fmt(f)
    }
}

pin_project! {
    /// The future of [`ConnectionDeadline::guard`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Guard<'a, F> {
        deadline: &'a ConnectionDeadline,
        site: Site,
        stage: Packed,
        #[pin]
        inner: Option<F>,
    }

    impl<F> PinnedDrop for Guard<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            let end = GivenUp { deadline: this.deadline, stage: *this.stage, site: this.site };
            // What is inside goes first, as in any scope.
            this.inner.set(None);
            drop(end);
        }
    }
}

/// A guard that is dropped: it ends also where what is inside panics.
struct GivenUp<'a> {
    deadline: &'a ConnectionDeadline,
    stage: Packed,
    site: Site,
}

impl Drop for GivenUp<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.stage.stage() != Stage::Free {
            self.deadline.give_up(self.stage.stage(), self.site);
        }
    }
}

impl<'a, F: Future> Guard<'a, F> {
    pub(super) fn new(
        deadline: &'a ConnectionDeadline,
        stage: Stage,
        site: Site,
        future: F,
    ) -> Guard<'a, F> {
        Guard { deadline, site, stage: Packed::of(stage), inner: Some(future) }
    }
}

impl<F, T, E> Future for Guard<'_, F>
where
    F: Future<Output = Result<T, E>>,
    E: Interruptible,
{
    type Output = Result<T, E>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = self.project();
        let (mut inner, stage, deadline, site) =
            (this.inner, this.stage, *this.deadline, *this.site);
        let kept = match stage.stage() {
            new @ (Stage::After(_) | Stage::Until(_)) => deadline.begin(new, stage, site),
            Stage::Kept => deadline.scope_here(),
            Stage::Own(_) | Stage::Nested(_) | Stage::Free => None,
        };
        let scope = match kept {
            Some(scope) => scope,
            None => {
                deadline.assert_here();
                if stage.stage() == Stage::Free {
                    let rule = "rule: a future is not polled after it was ready";
                    return inner.as_pin_mut().expect(rule).poll(cx);
                }
                ready!(deadline.poll_open(stage, site, cx))
            }
        };
        let result = match ready!(poll_inside(inner.as_mut(), scope, true, cx)) {
            Inner::Value(Ok(value)) => Ok(value),
            other => relabel(other, scope, deadline.limit(stage.stage()), site).0,
        };
        inner.set(None);
        match stage.stage() {
            Stage::Nested(place) => {
                let opener = deadline.kept().end_nested(place);
                close(&mut opener.and_then(|opener| opener.open), left(&result));
            }
            _ => deadline.leave(),
        }
        stage.set(Stage::Free);
        Poll::Ready(result)
    }
}

impl ConnectionDeadline {
    /// Arms it for the first poll of a guard. The scope, if that is kept and hangs here.
    #[inline(always)]
    fn begin(&self, new: Stage, stage: &mut Packed, site: Site) -> Option<ScopeId> {
        if matches!(new, Stage::After(0) | Stage::Until(Time::NEVER)) {
            // What has fired was another limit.
            if self.fired() && !self.has_guard() {
                self.arm_until(Time::NEVER, site);
            }
            stage.set(Stage::Free);
            return None;
        }
        let kept = self.kept();
        if kept.guards.get() {
            stage.set(self.nest(new, site));
            return None;
        }
        let here = kept.scope_here(self.slot.name.epoch);
        if here.is_none() {
            self.look_for_scope();
        }
        kept.guards.set(true);
        match new {
            Stage::Until(until) => self.arm_until(until, site),
            Stage::After(span) => {
                let owner = here.map_or_else(|| self.owner(), |scope| GUARD | scope.index);
                self.arm_from(span, owner, site);
            }
            _ => unreachable!("a guard begins once"),
        }
        let is_open = here.is_some() || self.scope().is_some();
        stage.set(if is_open { Stage::Kept } else { Stage::Own(None) });
        here
    }

    /// A guard of it begins inside another one: in a scope of its own.
    #[cold]
    fn nest(&self, new: Stage, site: Site) -> Stage {
        let limit = match new {
            Stage::After(span) => Limit::After(Duration::from_micros(span)),
            Stage::Until(until) => Limit::At(until),
            _ => unreachable!("a guard begins once"),
        };
        Stage::Nested(self.kept().nest(Opener::new(Call::at(site), limit, ScopeKind::Guard)))
    }

    #[cold]
    fn look_for_scope(&self) {
        self.assert_here();
        if !self.kept().is_in(gate::task()) {
            // It was left in another task, and may have ended with it.
            self.close();
        }
    }

    /// Elsewhere its slot is some other timer's.
    #[inline]
    fn assert_here(&self) {
        let rule = "rule: a connection deadline is used in the kernel that made it";
        assert!(self.slot.name.epoch == gate::epoch(), "{rule}");
    }

    /// Where the scope is not the one that is kept, or that was left somewhere else.
    #[inline(never)]
    fn poll_open(&self, stage: &mut Packed, site: Site, cx: &mut Context<'_>) -> Poll<ScopeId> {
        if let Stage::Nested(place) = stage.stage() {
            let mut opener = self.kept().lend(place).expect("a guard is polled by one at a time");
            let polled = opener.poll(cx).map(|open| open.scope);
            self.kept().unlend(place, opener);
            return polled;
        }
        self.kept().asked.set(true);
        let scope = match self.scope() {
            Some(scope) => scope,
            None => {
                let scope = ready!(self.ask(stage, site, cx));
                self.kept().open(scope);
                stage.set(Stage::Kept);
                scope
            }
        };
        // It may be polled elsewhere than where the scope was left, or asked for.
        if self.hang()
            && let (Some(parent), Some(task)) = (gate::scope(), gate::task())
        {
            gate::post(Post::RehomeScope { scope, task, parent });
        }
        self.slot.table.own(self.slot.name.slot, GUARD | scope.index);
        Poll::Ready(scope)
    }

    /// Asks the kernel for the scope.
    fn ask(&self, stage: &mut Packed, site: Site, cx: &mut Context<'_>) -> Poll<ScopeId> {
        let DeadlineName { slot, number, .. } = self.slot.name;
        let limit = Limit::Deadline { slot, number };
        let mut call = Call::of(self.ticket(stage.stage()), site);
        let is_new = !call.is_filed();
        let polled = call.poll(cx, || Request::OpenScope { limit, kind: ScopeKind::Guard });
        if is_new {
            self.hang();
        }
        stage.set(Stage::Own(self.kept().ask(call.into_ticket())));
        polled.map(|answer| opened(answer).0)
    }

    /// Where the answer will be, once the scope is asked for.
    fn ticket(&self, stage: Stage) -> Option<Ticket> {
        let Stage::Own(serial) = stage else { return None };
        self.kept().ticket(serial, self.slot.name.epoch)
    }

    /// A guard is dropped before its end, with what was inside it.
    #[cold]
    fn give_up(&self, stage: Stage, site: Site) {
        match stage {
            Stage::After(_) | Stage::Until(_) | Stage::Free => return,
            Stage::Nested(place) => {
                if let Some(mut opener) = self.kept().end_nested(place) {
                    opener.abandon();
                }
                return;
            }
            Stage::Kept | Stage::Own(_) if self.hangs_here() => self.leave(),
            // What is pending in the task where it hung is not known here.
            Stage::Kept | Stage::Own(_) => {
                self.keep_until();
                self.kept().guards.set(false);
                self.post_leave(self.scope(), self.owner());
            }
        }
        // A scope that is being opened for it is closed.
        if let Some(ticket) = self.ticket(stage) {
            close_unseen(&mut Call::of(Some(ticket), site));
        }
    }

    /// The scope hangs here, or will. Whether it hung elsewhere.
    fn hang(&self) -> bool {
        let (Some(parent), Some(task)) = (gate::scope(), gate::task()) else { return false };
        self.kept().hang(task, parent)
    }

    /// Whether the scope hangs in the task that is being polled.
    fn hangs_here(&self) -> bool {
        self.slot.name.epoch == gate::epoch() && self.kept().is_in(gate::task())
    }

    /// The deadline of a guard, for the labels of its interrupts.
    fn limit(&self, stage: Stage) -> Option<Time> {
        let Stage::Nested(place) = stage else { return Some(self.until()) };
        let opener = self.kept().lend(place)?;
        let deadline = opener.open.and_then(|open| open.deadline);
        self.kept().unlend(place, opener);
        deadline
    }

    /// A guard ends, outermost of this deadline: by a store, where the task waits for nothing else.
    /// A wait that was begun in it may go on after it, and is in what is around it then.
    #[inline]
    fn leave(&self) {
        let DeadlineSlot { table, name } = &self.slot;
        self.keep_until();
        self.kept().guards.set(false);
        match gate::waits_at_most() {
            0 if !gate::is_troubled() && table.clear(name.slot, BARE | name.task) => {}
            0..=FEW => self.post_leave(self.scope(), self.owner()),
            _ => self.leave_many(),
        }
    }

    /// Where there are too many of them to be looked through, the scope closes with the guard: that
    /// takes a note.
    #[cold]
    fn leave_many(&self) {
        self.post_leave(None, self.owner());
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_of_a_connection_deadline_and_its_guard_does_not_grow() {
        let guard = size_of::<Guard<'_, [u64; 4]>>() - size_of::<Option<[u64; 4]>>();
        assert_eq!((size_of::<ConnectionDeadline>(), guard), (40, 24));
    }

    #[test]
    fn a_stage_comes_out_of_its_word_as_it_went_in() {
        let serial = NonZeroU64::new(7);
        for stage in [
            Stage::After(0),
            Stage::After(5_000_000),
            Stage::After(u64::MAX),
            Stage::Until(Time::ZERO),
            Stage::Until(Time::NEVER),
            Stage::Kept,
            Stage::Own(None),
            Stage::Own(serial),
            Stage::Nested(3),
            Stage::Free,
        ] {
            assert_eq!(Packed::of(stage).stage(), stage);
        }
    }
}
