//! Where a source of interrupts is pending, and which wait takes its interrupt: the rule at the
//! head of this folder, as methods of [`Records`].
//!
//! At first, a source is pending at every place. The map `places` of [`Fired`] has only those where
//! something has happened; an absent one is pending. Each source has a rank: a timeout gets it when
//! it fires, and a cancellation when it is asked for. A scope that opens copies the rank of the
//! last source. So a branch was open when a source fired if its `order` is lower than that of the
//! source.
//!
//! The questions are answered by walks from the inside out (`Records::outwards`), so that opening
//! a scope pays nothing for them.

use std::mem;

use super::interrupt::{Delivery, Interrupt, Kind, Places};
use super::source::{Fired, Scope, ScopeKind};
use crate::core::records::{Records, Wait};
use crate::core::table::{ScopeId, Site, TaskIndex, TaskRef, Ticket};
use crate::parts::deadlines::DeadlineTable;
use crate::time::Time;

impl Scope {
    /// Returns whether the scope has fired, and a wait anywhere inside has taken the source and has
    /// not given it back. `own` is the name of the scope.
    #[must_use]
    pub fn was_taken(&self, own: ScopeId) -> bool {
        let place = self.fired.as_ref().and_then(|fired| fired.places.get(&own));
        place.is_some_and(|place| place.taken > 0)
    }
}

impl Records {
    /// Returns whether a task was cancelled, and a wait has taken the cancellation and has not
    /// given it back.
    #[must_use]
    pub fn was_cancellation_taken(&self, task: TaskRef) -> bool {
        let source = self.scope_around(task, ScopeKind::Task);
        source.is_some_and(|source| self.scopes[source.index].was_taken(source))
    }
}

/// The soonest deadline in force, and the scope that set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The deadline.
    pub deadline: Time,
    /// The number of the scope, as the log shows it.
    pub scope: u64,
    /// The call site that opened the scope. `None` for a connection deadline, which many call sites
    /// arm.
    pub set_at: Option<Site>,
}

/// The methods for scopes around a whole task: a cancellation, a connection deadline.
impl Records {
    /// Opens a scope around a whole task, inside the earlier scopes around the same task.
    pub fn open_around(
        &mut self,
        task: TaskIndex,
        kind: ScopeKind,
        number: u64,
        site: Site,
    ) -> ScopeId {
        // The newest is the innermost. For interrupts their order means nothing, because the rank
        // decides.
        let parent = self.scopes.at(self.tasks[task.0].around).map_or(ScopeId::NONE, |(at, _)| at);
        let scope = Scope { parent, ..self.new_scope(task, kind, number, site) };
        let scope = self.scopes.insert(scope);
        self.tasks[task.0].around = scope.index;
        scope
    }

    /// Finds the scope of a kind around a whole task.
    #[must_use]
    pub fn scope_around(&self, task: TaskRef, kind: ScopeKind) -> Option<ScopeId> {
        let mut around = self.outwards(ScopeId::of(task));
        around.find(|(_, scope)| scope.kind == kind).map(|(at, _)| at)
    }
}

/// The methods that look for deadlines and for bare waits.
impl Records {
    /// Finds the nearest timeout at or around `from`.
    #[must_use]
    pub fn nearest_timeout(&self, from: ScopeId) -> Option<ScopeId> {
        self.outwards(from).find(|(_, scope)| scope.kind.relabels()).map(|(at, _)| at)
    }

    /// Returns whether the future inside a scope waits only on foreign wakers (*bare*): no trap of
    /// ours is parked inside, and no shield is open.
    #[must_use]
    pub fn is_bare(&self, scope: ScopeId) -> bool {
        let Scope { task, inside, is_inner, .. } = self.scopes[scope.index];
        // A scope around a whole task does not count its content, so its 0 means nothing.
        if is_inner && inside == 0 {
            return true;
        }
        let is_elsewhere = |wait: &Wait| wait.is_done() || !self.is_within(wait.scope, scope);
        // Without these counts, each timeout that fires and each task that is cancelled would look
        // through all scopes of the thread.
        let may_have_shield = self.shields > 0 && self.tasks[task.0].open > 0;
        let has_shield =
            || self.scopes_inside(scope).any(|(_, inner)| inner.kind == ScopeKind::Shield);
        self.waits_of(task).all(|(_, wait)| is_elsewhere(wait))
            && !(may_have_shield && has_shield())
    }

    /// Iterates over the scopes inside a scope, closed ones included, in no meaningful order.
    /// O(scopes).
    fn scopes_inside(&self, scope: ScopeId) -> impl Iterator<Item = (ScopeId, &Scope)> {
        self.scopes.iter().filter(move |(at, _)| *at != scope && self.is_within(*at, scope))
    }

    /// Finds the soonest deadline in force for code in `from`.
    #[must_use]
    pub fn in_force(&self, from: ScopeId, deadlines: &DeadlineTable) -> Option<InForce> {
        let mut soonest: Option<InForce> = None;
        for (_, scope) in self.outwards(from) {
            let deadline = match scope.kind {
                ScopeKind::Shield => break,
                ScopeKind::Guard { slot: Some(slot), .. } if scope.fired.is_none() => {
                    deadlines.at(slot)
                }
                kind if kind.relabels() => scope.deadline,
                _ => continue,
            };
            // `<=`: of equal deadlines, that of the outer scope fires first.
            if deadline != Time::NEVER && soonest.is_none_or(|found| deadline <= found.deadline) {
                let set_at = (scope.kind == ScopeKind::Timeout).then_some(scope.site);
                soonest = Some(InForce { deadline, scope: scope.number, set_at });
            }
        }
        soonest
    }
}

/// The methods that deliver interrupts.
impl Records {
    /// Takes the rank of the next source. A branch that is opened from now on was not open when
    /// that source fired.
    pub fn next_rank(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Makes a scope a source of interrupts. Returns the parked waits that it ends, oldest first,
    /// each with the places at which it takes the interrupt.
    pub fn fire(&mut self, source: ScopeId, fired: Fired) -> Vec<(Ticket, Places)> {
        debug_assert!(self.is_open(source), "an open scope fires");
        debug_assert!(fired.order <= self.order, "a rank is taken before it is used");
        // A guard that was armed again fires again. The places of its last firing say nothing about
        // this one.
        self.forget(source);
        self.sources += 1;
        self.scopes[source.index].fired = Some(Box::new(fired));
        self.targets(source)
    }

    /// Forgets that a scope has fired. Returns whether it had.
    pub fn forget(&mut self, source: ScopeId) -> bool {
        let fired = self.scopes.get_mut(source).and_then(|scope| scope.fired.take());
        self.sources -= usize::from(fired.is_some());
        fired.is_some()
    }

    /// Lists the parked waits that a source ends, oldest first, each with the places at which it
    /// takes the interrupt.
    #[must_use]
    pub fn targets(&self, source: ScopeId) -> Vec<(Ticket, Places)> {
        let target = |(ticket, wait): (_, &Wait)| {
            let places = wait.is_parked().then(|| self.places(source, wait.scope, false)).flatten();
            places.map(|places| (ticket, places))
        };
        // In the order of filing, so that the log does not depend on the order of the tables.
        match self.only_wait_in(source) {
            Some(only) => target(only).into_iter().collect(),
            None => {
                let waits = self.waits_of(self.scopes[source.index].task);
                waits.filter_map(target).collect()
            }
        }
    }

    /// Most timeouts contain one wait. Finds it without scanning the task's list; `None` means:
    /// scan. Without it, a task with n timeouts would scan n waits for each that fires.
    fn only_wait_in(&self, mut scope: ScopeId) -> Option<(Ticket, &Wait)> {
        loop {
            let found = self.scopes.get(scope).filter(|found| found.inside == 1)?;
            let (wait, inner) = (found.newest_wait, found.newest_scope);
            // The newest may be gone, and its row that of another wait. If a timeout contains the
            // waits 3 and 4, and 4 has ended, then 3 is the only one, and `newest_wait` still has
            // 4.
            if let Some(only) = self.waits.at(wait).filter(|(_, wait)| wait.scope == scope) {
                return Some(only);
            }
            (scope, _) = self.scopes.at(inner).filter(|(_, it)| it.parent == scope)?;
        }
    }

    /// Returns the places on the way from `from` out to `source`: the branches that were open when
    /// `source` fired, and `source` itself. Returns no place if a shield is on the way, unless
    /// `through_shields` is set.
    fn way(&self, source: ScopeId, from: ScopeId, through_shields: bool) -> Places {
        let order = self.scopes[source.index].fired.as_ref().map_or(0, |fired| fired.order);
        let mut places = Vec::new();
        for (at, scope) in self.outwards(from) {
            match scope.kind {
                _ if at == source => {
                    places.push(at);
                    return places;
                }
                // A branch that was opened later is part of the code that handles the interrupt,
                // such as `join(flush, close)`. It must not be interrupted a second time.
                ScopeKind::Branch if scope.order < order => places.push(at),
                // Outside of the shield the source stays pending, for the first trap after it.
                ScopeKind::Shield if !through_shields => break,
                _ => {}
            }
        }
        Vec::new()
    }

    /// Returns the places at which a trap in `from` takes the interrupt of `source`: the first on
    /// its way out at which the source is pending for a trap, and all further out.
    fn places(&self, source: ScopeId, from: ScopeId, through_shields: bool) -> Option<Places> {
        let fired = self.scopes.get(source)?.fired.as_ref()?;
        let mut way = self.way(source, from, through_shields);
        let first = way.iter().position(|place| fired.is_open_to_traps(*place))?;
        Some(way.split_off(first))
    }

    /// Finds the source that will interrupt a wait in `from`, and the places at which the wait
    /// takes it. A cancellation comes first, and then the source that fired first.
    #[must_use]
    pub fn pending(&self, from: ScopeId, through_shields: bool) -> Option<(ScopeId, Places)> {
        let sources = self.outwards(from).filter_map(|(source, scope)| {
            // `false` comes before `true`, so a cancellation is first. A task that is to end must
            // not be kept by a timeout that its clean-up code takes for an ordinary one.
            let rank = (scope.kind != ScopeKind::Task, scope.fired.as_ref()?.order);
            Some((rank, (source, self.places(source, from, through_shields)?)))
        });
        sources.min_by_key(|(rank, _)| *rank).map(|(_, found)| found)
    }

    /// Takes the interrupt of `source` at `places`, for a trap in `from`.
    #[must_use]
    pub fn take(
        &mut self,
        source: ScopeId,
        places: Places,
        from: ScopeId,
        reading: Time,
    ) -> Interrupt {
        debug_assert!(places.last() == Some(&source), "the way out leads to the source");
        if let Some(fired) = &mut self.scopes[source.index].fired {
            for at in &places {
                let place = fired.place(*at);
                (place.is_pending, place.taken) = (false, place.taken + 1);
            }
        }
        self.interrupt(source, places, from, reading)
    }

    /// Puts back an interrupt that was taken and not read. Its source is pending again at the first
    /// of its places, and further out at each that no other wait has taken. Returns the open places
    /// at which it is pending now.
    pub fn repend(&mut self, interrupt: &Interrupt) -> Places {
        let Delivery { source, order, ref places, .. } = *interrupt.delivery();
        let Some(scope) = self.scopes.get_mut(source) else { return Places::new() };
        // The scope may have been armed and fired again since. Then this interrupt is of the past.
        let Some(fired) = scope.fired.as_mut().filter(|fired| fired.order == order) else {
            return Places::new();
        };
        // Use the places that were taken, and do not walk outwards again. In
        // `join(branch(wait), b)`, the branch around the wait may have closed since, so a walk
        // could only begin at the source. The branch of `join` would count as taken forever.
        let mut pending = places.clone();
        pending.retain(|at| {
            let place = fired.place(*at);
            debug_assert!(place.taken > 0, "only what was taken goes back");
            place.taken -= 1;
            place.is_pending |= place.taken == 0 || *at == places[0];
            place.is_pending
        });
        pending.retain(|at| self.is_open(*at) && self.is_within(*at, source));
        pending
    }

    /// Lists the places at which a source is pending. O(scopes).
    #[must_use]
    pub fn places_of(&self, source: ScopeId) -> Vec<ScopeId> {
        let Some(fired) = self.scopes.get(source).and_then(|scope| scope.fired.as_ref()) else {
            return Vec::new();
        };
        let is_branch =
            |scope: &Scope| scope.kind == ScopeKind::Branch && scope.order < fired.order;
        let is_place = |at: ScopeId, scope: &Scope| {
            at == source || is_branch(scope) && self.is_within(at, source)
        };
        let places = self.scopes.iter().filter(|(at, scope)| is_place(*at, scope));
        places.map(|(at, _)| at).filter(|at| fired.is_pending(*at)).collect()
    }

    /// Makes enclosing deadlines that have passed pending again, because a timeout closes: each at
    /// the first branch on the way out, or at itself if there is no branch. Returns the sources
    /// with their places. Traps take nothing there before [`Records::repend_now`].
    pub(crate) fn repend_enclosing(&mut self, closing: ScopeId) -> Vec<(ScopeId, ScopeId)> {
        let timeout = self.scopes.get(closing).filter(|scope| scope.kind.relabels());
        let Some(&Scope { parent, .. }) = timeout else { return Vec::new() };
        // What a shield holds back stays held back. After a cancellation, or a deadline of the
        // whole task, the task cleans up, and its clean-up may use timeouts. So these are not
        // pending again.
        let around = self.outwards(parent).take_while(|(_, scope)| scope.kind != ScopeKind::Shield);
        let passed = around.filter(|(_, scope)| scope.kind.relabels() && scope.fired.is_some());
        // A way ends with its source, so it has at least one place: there is no shield on it.
        let first = |(source, _)| (source, self.way(source, parent, false)[0]);
        let passed: Vec<_> = passed.map(first).collect();
        for (source, first) in &passed {
            let fired = self.scopes[source.index].fired.as_mut();
            let place = fired.expect("it has fired").place(*first);
            // The same poll may have filed traps before the timeout closed. They are earlier in
            // program order, and must not take this. The post `RependNow` says when the traps
            // behind it begin.
            place.waits_for_post |= !mem::replace(&mut place.is_pending, true);
        }
        passed
    }

    /// Makes a source pending at `place` again for traps, too, if both are still there.
    pub fn repend_now(&mut self, source: ScopeId, place: ScopeId) {
        if self.is_open(place)
            && let Some(fired) = self.scopes.get_mut(source).and_then(|it| it.fired.as_mut())
        {
            // A trap of the same poll that was filed earlier, further in, may have taken it since.
            let place = fired.place(place);
            (place.is_pending, place.waits_for_post) = (true, false);
        }
    }

    /// Makes the interrupt of `source`, which is pending at `places`, as a trap in `from` sees it.
    #[must_use]
    pub fn interrupt(
        &self,
        source: ScopeId,
        places: Places,
        from: ScopeId,
        reading: Time,
    ) -> Interrupt {
        let scope = &self.scopes[source.index];
        debug_assert!(scope.fired.is_some(), "only a source interrupts");
        let nearest_timeout = self.nearest_timeout(from);
        let fired = scope.fired.as_ref();
        let is_own = match scope.kind {
            // A deadline around a whole task is no scope of the program. Outside of every timeout
            // it is the nearest.
            ScopeKind::Deadline(_) => nearest_timeout.is_none(),
            _ => nearest_timeout == Some(source),
        };
        let kind = match (scope.kind, is_own) {
            (ScopeKind::Task, _) => Kind::Cancelled,
            (_, true) => Kind::TaskTimeout,
            (_, false) => Kind::TimeoutCancellation,
        };
        Interrupt::new(Delivery {
            kind,
            source,
            task: self.tasks.key(scope.task.0),
            order: fired.map_or(0, |fired| fired.order),
            nearest_timeout,
            places,
            passed: false,
            deadline: scope.deadline,
            reading,
            // A guard adds its call site when it returns the error. Until then, its `arm` line has
            // the site.
            set_at: (scope.kind == ScopeKind::Timeout).then_some(scope.site),
            by: fired.and_then(|fired| fired.by),
            reason: fired.map_or("", |fired| fired.reason),
            scope: if scope.kind.relabels() { scope.number } else { 0 },
        })
    }

    /// Adjusts an interrupt that is read in `reader`, which is not the scope of its wait.
    pub(crate) fn move_interrupt(&self, interrupt: &mut Interrupt, reader: ScopeId) {
        let has_left = !self.is_within(reader, interrupt.delivery().source);
        interrupt.move_to(self.nearest_timeout(reader), has_left);
    }

    /// Takes the interrupt that is pending for a trap in `from`.
    pub fn take_interrupt(&mut self, from: ScopeId, reading: Time) -> Option<Interrupt> {
        let (source, places) = self.pending(from, false)?;
        Some(self.take(source, places, from, reading))
    }

    /// Takes the interrupt of a scope that has fired around waits on foreign wakers alone.
    pub(crate) fn take_bare(&mut self, scope: ScopeId, reading: Time) -> Option<Interrupt> {
        let fired = self.scopes.get(scope)?.fired.as_ref()?;
        // A sibling may have taken the interrupt at the source itself while it is still pending in
        // a branch. Only `places_of` finds that, and it looks through all scopes, so it comes
        // second.
        // Pending here includes `waits_for_post`. No trap of this poll is filed inside, so the bare
        // wait began after the close that made the source pending again. Nothing would poll it
        // after the post.
        let is_pending = || fired.is_pending(scope) || !self.places_of(scope).is_empty();
        if !self.is_bare(scope) || !is_pending() {
            return None;
        }
        Some(self.take(scope, vec![scope], scope, reading))
    }
}
