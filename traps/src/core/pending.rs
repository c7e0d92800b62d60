//! What is pending in the tree of scopes: which interrupt a wait gets.
//!
//! The paragraph that it follows is at the head of the kernel's `interrupts.rs`.

use super::deadlines::DeadlineTable;
use super::interrupt::{Delivery, Interrupt, Kind};
use super::names::{ScopeId, Site, Ticket};
use super::protocol::ScopeKind;
use super::records::{Fired, Records, Scope};
use super::table::NONE;
use crate::time::Time;

impl Records {
    /// A scope has fired: it is pending at itself and at every branch inside it. Gives the parked
    /// waits that it ends, oldest first, and where it is pending for each.
    pub fn fire(&mut self, source: ScopeId, fired: Fired) -> Vec<(Ticket, ScopeId)> {
        self.order += 1;
        self.forget(source);
        self.fired += 1;
        let fired = Fired { order: self.order, ..fired };
        self.scopes[source.index].interrupts.get_or_insert_default().fired = Some(fired);
        let mut next = Some(source.index);
        while let Some(inside) = next {
            let scope = &mut self.scopes[inside];
            if inside == source.index || scope.kind == ScopeKind::Branch {
                scope.add_pending(source);
            }
            next = self.next_inside(source.index, inside);
        }
        let reached = self.each_wait(source.index).filter_map(|ticket| {
            let wait = Some(&self.waits[ticket.index]).filter(|wait| wait.is_parked())?;
            Some((ticket, self.place(source, wait.scope, false)?))
        });
        let mut reached: Vec<_> = reached.collect();
        reached.sort_unstable();
        reached
    }

    /// A source is armed anew: what it has left pending is for nobody.
    pub fn forget(&mut self, source: ScopeId) {
        let Some(scope) = self.scopes.get_mut(source) else { return };
        if scope.interrupts.as_mut().is_some_and(|it| it.fired.take().is_some()) {
            self.fired -= 1;
            let mut next = Some(source.index);
            while let Some(inside) = next {
                self.scopes[inside].forget(source);
                next = self.next_inside(source.index, inside);
            }
        }
    }

    /// The first place on the way from `from` out to `source` at which that is pending, unless a
    /// shield is on that way. `shields`: look through them.
    #[must_use]
    pub fn place(&self, source: ScopeId, from: u32, shields: bool) -> Option<ScopeId> {
        let mut first = None;
        for (index, scope) in self.around(from) {
            if first.is_none() && scope.has_pending(source) {
                first = Some(self.scopes.key(index));
            }
            if index == source.index {
                return first;
            }
            if scope.kind == ScopeKind::Shield && !shields {
                return None;
            }
        }
        None
    }

    /// The source that is pending for a wait in `from`: a cancellation first, then the one that
    /// fired first.
    #[must_use]
    pub fn pending(&self, from: u32, shields: bool) -> Option<ScopeId> {
        let sources = self.around(from).filter_map(|(index, scope)| {
            let rank = (scope.kind != ScopeKind::Task, scope.fired()?.order);
            let source = self.scopes.key(index);
            self.place(source, from, shields).map(|_| (rank, source))
        });
        sources.min_by_key(|(rank, _)| *rank).map(|(_, source)| source)
    }

    /// Takes a source off the whole way from `from`.
    pub fn take_pending(&mut self, source: ScopeId, from: u32) {
        self.on_the_way(source, from, |scope| scope.take_pending(source));
    }

    /// An interrupt of `source` that was taken at `place` was not read: it is pending again there,
    /// and further out wherever nobody else has it. False if it is pending nowhere.
    pub fn put_back(&mut self, source: ScopeId, place: ScopeId, order: u64) -> bool {
        let fired = self.scopes.get(source).and_then(Scope::fired);
        if fired.is_none_or(|fired| fired.order != order) {
            return false;
        }
        let is_open = self.scopes.get_mut(place).map(|place| place.add_pending(source)).is_some();
        let from = if is_open { place.index } else { source.index };
        self.on_the_way(source, from, |scope| scope.put_back(source));
        is_open || !self.scopes[source.index].was_taken(source)
    }

    /// Each scope from `from` out to `source`.
    fn on_the_way(&mut self, source: ScopeId, from: u32, mut change: impl FnMut(&mut Scope)) {
        let mut at = from;
        while at != NONE {
            let scope = &mut self.scopes[at];
            change(scope);
            at = if at == source.index { NONE } else { scope.parent };
        }
    }

    /// After a timeout has closed: enclosing deadlines that have passed are pending again, in the
    /// first branch on the way out, or at themselves if there is none.
    pub(super) fn make_pending_again(&mut self, from: u32) {
        let (mut at, mut branch) = (from, None);
        while at != NONE && self.scopes[at].kind != ScopeKind::Shield {
            let scope = &self.scopes[at];
            let (kind, is_over, outer) = (scope.kind, scope.fired().is_some(), scope.parent);
            if kind == ScopeKind::Branch {
                branch = branch.or(Some(at));
            }
            if is_over && kind.is_timeout() {
                let source = self.scopes.key(at);
                self.scopes[branch.unwrap_or(at)].add_pending(source);
            }
            at = outer;
        }
    }
}

impl Records {
    /// The interrupt of `source`, which was pending at `place`, as a trap in `from` sees it.
    #[must_use]
    pub fn interrupt(
        &self,
        source: ScopeId,
        place: ScopeId,
        from: u32,
        reading: Time,
    ) -> Interrupt {
        let scope = &self.scopes[source.index];
        let position = self.nearest_timeout(from);
        let fired = scope.fired();
        let is_own = match scope.kind {
            ScopeKind::Deadline(_) => position.is_none(),
            _ => position == Some(source),
        };
        let kind = match (scope.kind, is_own) {
            (ScopeKind::Task, _) => Kind::Cancelled,
            (_, true) => Kind::TaskTimeout,
            (_, false) => Kind::TimeoutCancellation,
        };
        Interrupt::new(Delivery {
            kind,
            source,
            order: fired.map_or(0, |fired| fired.order),
            position,
            place,
            passed: false,
            deadline: scope.deadline,
            reading,
            // A guard adds its own place when it returns the error. Until then its `arm` line has
            // the place.
            set_at: (scope.kind == ScopeKind::Timeout).then_some(scope.site),
            by: fired.and_then(|fired| fired.by),
            reason: fired.map_or("", |fired| fired.reason),
            scope: if scope.kind.is_timeout() { scope.number } else { 0 },
        })
    }

    /// Takes the interrupt that is pending for a trap in `from`, with the line of its cause.
    pub fn take_interrupt(&mut self, from: u32, reading: Time) -> Option<(Interrupt, u64)> {
        let source = self.pending(from, false)?;
        let place = self.place(source, from, false)?;
        self.take_pending(source, from);
        let line = self.scopes[source.index].fired().map_or(0, |fired| fired.line);
        Some((self.interrupt(source, place, from, reading), line))
    }

    /// Takes the interrupt of a scope that fired around waits on foreign wakers alone.
    pub(crate) fn take_bare(&mut self, scope: ScopeId, reading: Time) -> Option<Interrupt> {
        self.scopes.get(scope)?.fired()?;
        let place = self.inside(scope.index).find(|at| self.scopes[*at].has_pending(scope))?;
        if !self.is_bare(scope.index) {
            return None;
        }
        self.take_pending(scope, place);
        let place = self.scopes.key(place);
        Some(self.interrupt(scope, place, scope.index, reading))
    }

    /// The nearest deadline in force in that scope: when, the number of the scope, and where it
    /// was set. A connection deadline is armed in many places, and has none.
    #[must_use]
    pub fn in_force(&self, from: u32, deadlines: &DeadlineTable) -> Option<InForce> {
        let mut soonest: Option<InForce> = None;
        for (_, scope) in self.around(from) {
            let deadline = match scope.kind {
                ScopeKind::Shield => break,
                ScopeKind::Guard { slot: Some(slot), .. } if scope.fired().is_none() => {
                    deadlines.at(slot)
                }
                kind if kind.is_timeout() => scope.deadline,
                _ => continue,
            };
            if deadline != Time::NEVER && soonest.is_none_or(|found| deadline <= found.deadline) {
                let set_at = (scope.kind == ScopeKind::Timeout).then_some(scope.site);
                soonest = Some(InForce { deadline, scope: scope.number, set_at });
            }
        }
        soonest
    }
}

/// The nearest deadline in force, and the scope that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The point in time.
    pub deadline: Time,
    /// The number of the scope, as the log shows it.
    pub scope: u64,
    /// Where that scope was opened; `None` for a connection deadline, which is armed in many
    /// places.
    pub set_at: Option<Site>,
}
