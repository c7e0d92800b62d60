//! How scopes open and close, and what becomes of interrupts when they do.

use traps::Time;
use traps::protocol::{
    Answer, Filed, InForce, Left, Limit, Opening, Post, ROOT, Reading, Request, ScopeId, ScopeKind,
};

use crate::emit::emit;
use crate::kernel::Kernel;
use crate::log;
use crate::machine::Machine;
use crate::owner::Owner;
use crate::pending::{Pending, Source};
use crate::scope::{Scope, Timing};
use crate::shields::Hold;
use crate::table::At;
use crate::timers::{Class, Rank, TimerId};
use crate::trace::{Event, Op, Outcome, Timer};

/// The trap that opens a scope, for the log.
pub(crate) fn shown_scope(limit: Limit, kind: ScopeKind, point: Time, now: Time) -> Op<'static> {
    let until = (point != Time::NEVER).then_some(point);
    let span = match limit {
        Limit::After(span) => Some(span),
        _ => until.map(|point| point.since(now)),
    };
    match (kind, limit) {
        (_, Limit::Deadline { number, .. }) => Op::Guard { deadline: u64::from(number) },
        (ScopeKind::Timeout | ScopeKind::Guard, _) => Op::SetTimeout { span, until },
        (ScopeKind::Branch, _) => Op::Branch,
        (ScopeKind::Shield, _) => Op::Shield { grace: span },
    }
}

impl<M: Machine> Kernel<M> {
    pub(crate) fn open_scope(&mut self, at: &At, limit: Limit, kind: ScopeKind) {
        let task = at.task;
        let parent = self.scopes.find(at.scope).unwrap_or(ROOT);
        let point = self.point(limit);
        // A grace does not run yet, and is no deadline of anybody's.
        let deadline = if kind == ScopeKind::Shield { Time::NEVER } else { point };
        let index = self.scopes.open(&mut self.tasks, task, parent, kind, deadline, at.site);
        let scope = self.scopes.name_of(&self.tasks, task, index);
        if let Limit::Deadline { slot, .. } = limit {
            let scope = self.scopes.get_mut(index);
            scope.timing = Timing::Guard;
            scope.set_timer(Some(TimerId(slot)));
            self.timers.set_owner(TimerId(slot), Owner::guard(index));
        }
        let now = self.log.now;
        self.answer(at, Ok(Answer::Scope { scope, deadline }), || {
            shown_scope(limit, kind, point, now)
        });
        self.scopes.get_mut(index).seq = self.log.seq;
        if kind == ScopeKind::Shield {
            emit!(self, task, Event::Shield { scope: scope.serial.get(), open: true });
            self.scopes.get_mut(index).set_hold(Hold::Shut(limit));
            self.start_graces(task);
        }
        if deadline != Time::NEVER {
            let rank = || Rank { class: Class::Timeout, seq: scope.serial.get() };
            let timer = self.timers.arm(deadline, Owner::scope(index), self.log.now, rank);
            self.scopes.get_mut(index).set_timer(Some(timer));
        }
    }

    /// Opens a timeout, and those beside it: nothing is asked inside one of them before all are
    /// open. Gives how many there were beside it.
    pub(crate) fn open_timeouts(&mut self, first: Opening, rest: &[Filed]) -> usize {
        self.open_timeout(first);
        let mut beside = 0;
        for filed in rest {
            match filed {
                Filed::Opening(opening) => {
                    self.open_timeout(*opening);
                    beside += 1;
                }
                Filed::Request { .. } => {}
                // Where nobody listens most of these are stores.
                Filed::Post(
                    Post::MakeDeadline { .. }
                    | Post::SetDeadline { .. }
                    | Post::LeaveGuard { .. }
                    | Post::DropDeadline { .. },
                ) => {}
                // What ended, or was told, before the next one opened.
                Filed::Post(_) => break,
            }
        }
        beside
    }

    /// A timeout was opened by the task whose poll is being served.
    pub(crate) fn open_timeout(&mut self, opening: Opening) {
        let Opening { scope: name, parent, limit, reading, site } = opening;
        let kind = ScopeKind::Timeout;
        let Some(task) = self.acting() else {
            // That poll was the task's last.
            return self.scopes.table().free(name.index);
        };
        self.counts.traps += 1;
        if self.counts.traps >= self.inject.from {
            let op = self.shown(&Request::OpenScope { limit, kind });
            self.before_trap(task, site, &op);
        }
        let now = match reading {
            Reading::Exact(now) => now,
            Reading::Bound(bound) => self.machine.now().min(bound),
            Reading::None => self.log.now,
        };
        // One that is over needs no timer, and its lines have the time that they would not change.
        let is_over = self.scopes.table().is_closed(name);
        if !is_over {
            self.log.now = self.log.now.max(now);
        }
        let (parent, deadline) = (self.scopes.find(parent).unwrap_or(ROOT), limit.from(now));
        let scope = Scope::new(name.serial, (task, parent), kind, deadline, site);
        self.scopes.add(&mut self.tasks, name.index, scope);
        self.scopes.table().set_deadline(name, deadline);
        let seq = emit!(self, task, {
            let op = shown_scope(limit, kind, deadline, now);
            let outcome = Outcome::Scope(name.serial.get());
            Event::Trap { op, outcome, cause: None, at: Some(log::site(site)) }
        });
        self.scopes.get_mut(name.index).seq = seq;
        if deadline != Time::NEVER && !is_over {
            let rank = || Rank { class: Class::Timeout, seq: name.serial.get() };
            let timer = self.timers.arm(deadline, Owner::scope(name.index), self.log.now, rank);
            self.scopes.get_mut(name.index).set_timer(Some(timer));
        }
    }

    /// The point that a limit comes to when it is set now.
    pub(crate) fn point(&mut self, limit: Limit) -> Time {
        if limit != Limit::Never {
            self.log.now = self.machine.now();
        }
        limit.from(self.log.now)
    }

    /// The nearest deadline in force in `scope`, a running grace included; of equal ones the
    /// outermost. A shield hides those outside it.
    pub(crate) fn in_force(&self, scope: ScopeId) -> Option<InForce> {
        let mut soonest: Option<InForce> = None;
        let mut at = self.scopes.find(scope)?;
        while at != ROOT {
            let scope = self.scopes.get(at);
            let Scope { serial, site, timing, parent, .. } = *scope;
            let grace = if let Hold::Until(end) = scope.hold() { end } else { Time::NEVER };
            let deadline = self.scopes.own_deadline(at, &self.timers).min(grace);
            let bound = soonest.map_or(Time::NEVER, |found| found.deadline);
            if deadline <= bound && deadline != Time::NEVER {
                let set_at = Some(site).filter(|_| timing == Timing::Own);
                soonest = Some(InForce { deadline, scope: serial.get(), set_at });
            }
            if self.scopes.holds(at) {
                break;
            }
            at = parent;
        }
        soonest
    }

    /// A scope ends: its own interrupt ends with it, one from outside moves outwards, and an
    /// enclosing deadline that has passed is pending again in this branch.
    pub(crate) fn close_scope(&mut self, index: u32, left: Left) {
        let scope = self.scopes.get(index);
        let (task, kind) = (scope.task, scope.kind);
        let (number, deadline) = (scope.serial.get(), scope.deadline);
        if let Some(timer) = scope.timer() {
            self.scopes.get_mut(index).set_timer(None);
            match self.scopes.get(index).timing {
                Timing::Own => self.timers.disarm(timer),
                // Its slot is another's.
                Timing::Guard | Timing::Bare => {}
            }
            if kind == ScopeKind::Shield {
                emit!(self, task, Event::Disarm { timer: Timer::Scope(number) });
            }
        }
        emit!(
            self,
            task,
            match kind {
                ScopeKind::Shield => Event::Shield { scope: number, open: false },
                ScopeKind::Timeout | ScopeKind::Guard | ScopeKind::Branch => {
                    let op = Op::UnsetTimeout { scope: number };
                    Event::Trap { op, outcome: log::left(left), cause: None, at: None }
                }
            }
        );
        if let Left::Value { by } = left
            && deadline != Time::NEVER
            && deadline <= by
        {
            self.tell_late(task, number, deadline, by);
        }
        self.leave_scope(index);
        if self.tasks.get(task).waits > 0 {
            return self.close_around_tickets(task, index);
        }
        self.scopes.close(&mut self.tasks, index);
    }

    /// A value came out of a timeout at that point or before, and perhaps after its deadline.
    #[cold]
    fn tell_late(&mut self, task: u32, scope: u64, deadline: Time, by: Time) {
        let ended = self.machine.now().min(by);
        if deadline <= ended {
            // The clock was read, so the line has that time.
            self.log.now = self.log.now.max(ended);
            let over = ended.since(deadline);
            emit!(self, task, Event::Late { scope, deadline, over });
        }
    }

    /// What a scope's end means for the interrupts in it, whether it closes or is kept for the next
    /// guard.
    pub(crate) fn leave_scope(&mut self, index: u32) {
        let scope = self.scopes.get(index);
        let (task, parent, kind) = (scope.task, scope.parent, scope.kind);
        if self.tasks.get(task).pending > 0 {
            self.move_pending_outwards(index);
        }
        if matches!(kind, ScopeKind::Timeout | ScopeKind::Guard) {
            let mut around = index;
            while let Some(outer) = self.scopes.around(around) {
                around = outer;
                if self.scopes.get(around).fired().is_some() {
                    let source = Source::Scope(around);
                    self.scopes.get_mut(around).delivered = 0;
                    self.scopes.pend(&mut self.tasks, Pending::new(task, parent, source));
                }
            }
        }
        self.forget_delivered(task, index);
    }

    /// An unread interrupt of that scope is nobody's any more.
    pub(crate) fn forget_delivered(&mut self, task: u32, index: u32) {
        let task = self.tasks.get_mut(task);
        if task.news().is_some_and(|news| !news.delivered.is_empty()) {
            task.rare().news.delivered.retain(|unread| unread.source != Source::Scope(index));
        }
    }

    /// What was pending in a scope that closes: its own interrupt ends with it, one from outside
    /// that nobody has heard of is pending around it.
    fn move_pending_outwards(&mut self, index: u32) {
        let scope = self.scopes.get(index);
        let (task, parent, kind) = (scope.task, scope.parent, scope.kind);
        // What a shield held back is still pending around it.
        let held = self.scopes.holds(index);
        let here = if held { Vec::new() } else { self.scopes.pending_at(task, index) };
        self.scopes.drop_pending(&mut self.tasks, task, |pending| {
            pending.at == index || pending.source == Source::Scope(index)
        });
        for Pending { source, unheard: by_all, .. } in here {
            let unheard = match source {
                Source::Cancel => {
                    let cancel = self.tasks.get(task).cancel();
                    cancel.is_some_and(|cancel| cancel.delivered == 0)
                }
                Source::Scope(from) => from != index && self.scopes.get(from).delivered == 0,
            };
            if unheard {
                let mut pending = Pending::new(task, parent, source);
                pending.unheard = by_all;
                if kind == ScopeKind::Branch {
                    // Its siblings have had theirs.
                    pending.barred = self.scopes.opened_so_far();
                }
                self.scopes.pend(&mut self.tasks, pending);
            }
        }
    }
}
