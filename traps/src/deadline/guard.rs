//! The guard: a future that runs under a connection deadline, and how it takes and leaves that.
//!
//! Each connection that waits has one, so it is small: of the scope in which it runs the deadline
//! keeps what is to be known, or a box where guards nest.

use std::future::Future;
use std::mem;
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

#[derive(Debug)]
pub(super) enum Stage {
    /// It has so many microseconds from its first poll.
    After(u64),
    /// It has until then from its first poll.
    Until(Time),
    /// It runs on the deadline's own slot, in the scope that the deadline keeps.
    Kept,
    /// It will, once that scope is opened: its ticket, once it is filed. The epoch is the
    /// deadline's.
    Own { index: u32, serial: Option<NonZeroU64> },
    /// It runs inside another guard of the same deadline, in a scope of its own.
    Nested(Box<Opener>),
    /// It has no limit.
    Free,
}

pin_project! {
    /// The future of [`ConnectionDeadline::guard`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Guard<'a, F> {
        deadline: &'a ConnectionDeadline,
        site: Site,
        stage: Stage,
        #[pin]
        inner: Option<F>,
    }

    impl<F> PinnedDrop for Guard<'_, F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // What is inside goes first, as in any scope.
            this.inner.set(None);
            if !matches!(this.stage, Stage::Free) {
                this.deadline.give_up(this.stage, this.site);
            }
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
        Guard { deadline, site, stage, inner: Some(future) }
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
        let kept = match *stage {
            Stage::After(_) | Stage::Until(_) => deadline.begin(stage, site),
            Stage::Kept => deadline.scope_here(),
            Stage::Own { .. } | Stage::Nested(_) | Stage::Free => None,
        };
        let scope = match kept {
            Some(scope) => scope,
            None => {
                deadline.assert_here();
                if matches!(stage, Stage::Free) {
                    let rule = "rule: a future is not polled after it was ready";
                    return inner.as_pin_mut().expect(rule).poll(cx);
                }
                ready!(deadline.poll_open(stage, site, cx))
            }
        };
        let result = match ready!(poll_inside(inner.as_mut(), scope, true, cx)) {
            Inner::Value(Ok(value)) => Ok(value),
            other => relabel(other, scope, deadline.limit(stage), site).0,
        };
        inner.set(None);
        match mem::replace(stage, Stage::Free) {
            Stage::Nested(mut opener) => close(&mut opener.open, left(&result)),
            _ => deadline.leave(),
        }
        Poll::Ready(result)
    }
}

impl ConnectionDeadline {
    /// Arms it for the first poll of a guard. The scope, if that is kept and hangs here.
    #[inline(always)]
    fn begin(&self, stage: &mut Stage, site: Site) -> Option<ScopeId> {
        let limit = match *stage {
            Stage::After(0) | Stage::Until(Time::NEVER) => {
                *stage = Stage::Free;
                return None;
            }
            Stage::After(span) => Ok(span),
            Stage::Until(until) => Err(until),
            _ => unreachable!("a guard begins once"),
        };
        if self.kept.guards.get() {
            self.nest(stage, limit, site);
            return None;
        }
        let kept = self.scope_here();
        if kept.is_none() {
            self.look_for_scope();
        }
        self.kept.guards.set(true);
        match limit {
            Ok(span) => self.arm_from(span, site),
            Err(until) => self.arm_until(until, site),
        }
        let is_open = kept.is_some() || self.scope().is_some();
        *stage = if is_open { Stage::Kept } else { Stage::Own { index: 0, serial: None } };
        kept
    }

    /// A guard of it begins inside another one: in a scope of its own.
    #[cold]
    fn nest(&self, stage: &mut Stage, limit: Result<u64, Time>, site: Site) {
        let limit = match limit {
            Ok(span) => Limit::After(Duration::from_micros(span)),
            Err(until) => Limit::At(until),
        };
        *stage = Stage::Nested(Box::new(Opener::new(Call::at(site), limit, ScopeKind::Guard)));
    }

    #[cold]
    fn look_for_scope(&self) {
        self.assert_here();
        if !self.kept.is_in(gate::task()) {
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
    fn poll_open(&self, stage: &mut Stage, site: Site, cx: &mut Context<'_>) -> Poll<ScopeId> {
        if let Stage::Nested(opener) = stage {
            return opener.poll(cx).map(|open| open.scope);
        }
        self.kept.asked.set(true);
        let scope = match self.scope() {
            Some(scope) => scope,
            None => {
                let scope = ready!(self.ask(stage, site, cx));
                self.kept.open(scope);
                *stage = Stage::Kept;
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
    fn ask(&self, stage: &mut Stage, site: Site, cx: &mut Context<'_>) -> Poll<ScopeId> {
        let DeadlineName { slot, number, .. } = self.slot.name;
        let limit = Limit::Deadline { slot, number };
        let mut call = Call::of(self.ticket(stage), site);
        let is_new = !call.is_filed();
        let polled = call.poll(cx, || Request::OpenScope { limit, kind: ScopeKind::Guard });
        if is_new {
            self.hang();
        }
        let ticket = call.into_ticket();
        *stage = Stage::Own {
            index: ticket.map_or(0, |ticket| ticket.index),
            serial: ticket.map(|ticket| ticket.serial),
        };
        polled.map(|answer| opened(answer).0)
    }

    /// Where the answer will be, once the scope is asked for.
    fn ticket(&self, stage: &Stage) -> Option<Ticket> {
        let Stage::Own { index, serial: Some(serial) } = *stage else { return None };
        Some(Ticket { index, epoch: self.slot.name.epoch, serial })
    }

    /// A guard is dropped before its end, with what was inside it.
    #[cold]
    fn give_up(&self, stage: &mut Stage, site: Site) {
        match stage {
            Stage::After(_) | Stage::Until(_) | Stage::Free => return,
            Stage::Nested(opener) => return opener.abandon(),
            Stage::Kept | Stage::Own { .. } => self.leave(),
        }
        // A scope that is being opened for it is closed.
        if let Some(ticket) = self.ticket(stage) {
            close_unseen(&mut Call::of(Some(ticket), site));
        }
    }

    /// The scope hangs here, or will. Whether it hung elsewhere.
    fn hang(&self) -> bool {
        let (Some(parent), Some(task)) = (gate::scope(), gate::task()) else { return false };
        self.kept.hang(task, parent)
    }

    /// The deadline of a guard, for the labels of its interrupts.
    fn limit(&self, stage: &Stage) -> Option<Time> {
        match stage {
            Stage::Nested(opener) => opener.open.and_then(|open| open.deadline),
            _ => Some(self.until.get()),
        }
    }

    /// A guard ends, outermost of this deadline.
    #[inline]
    fn leave(&self) {
        let DeadlineSlot { table, name } = &self.slot;
        self.kept.guards.set(false);
        if gate::is_troubled() || !table.clear(name.slot, BARE | name.task) {
            self.post_leave();
        }
    }

    #[cold]
    fn post_leave(&self) {
        let DeadlineSlot { table, name } = &self.slot;
        table.post();
        let (deadline, owner) = (*name, self.owner());
        gate::post(Post::LeaveGuard { deadline, scope: self.scope(), owner });
    }
}
