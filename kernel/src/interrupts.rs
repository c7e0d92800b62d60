//! Interrupts: who gets one when a deadline fires or a task is cancelled, and what stays pending.
//!
//! A source of interrupts (a scope that fired, a cancellation) reaches every wait inside it that no
//! shield covers. Each *branch* that was open when it fired hears of it once; anything else hears
//! of it only if nobody has. What has not been heard is pending: it ends the next blocking trap.

use traps::protocol::{ROOT, ScopeId, ScopeKind};
use traps::{Delivery, Interrupt, Kind, TaskId, Time};

use crate::kernel::Kernel;
use crate::log::emit;
use crate::machine::Machine;
use crate::scopes::Scopes;
use crate::trace::{Effect, Event, Seq};

/// Where an interrupt comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Cancel,
    /// The scope in that place.
    Scope(u32),
    /// A connection deadline that fired without a guard: its slot. It is for the whole task.
    Deadline(u32),
}

impl Source {
    /// The outermost scope that it is for.
    pub(crate) fn root(self) -> u32 {
        match self {
            Source::Scope(index) => index,
            Source::Cancel | Source::Deadline(_) => ROOT,
        }
    }
}

/// What has come of a source since it fired.
#[derive(Debug)]
pub(crate) struct Fired {
    /// Sources fire in this order.
    order: u64,
    /// Its `fire` or `cancel` line.
    pub(crate) seq: Seq,
    /// The newest scope of the kernel at that time.
    newest: u64,
    /// The branches that have heard of it, or its own root: once for each delivery.
    pub(crate) heard: Vec<u32>,
}

/// A cancellation that was asked for. A task is cancelled once in its life.
#[derive(Debug)]
pub(crate) struct Cancellation {
    by: Option<TaskId>,
    reason: &'static str,
    pub(crate) fired: Fired,
}

impl Cancellation {
    pub(crate) fn was_heard(&self) -> bool {
        !self.fired.heard.is_empty()
    }
}

/// A connection deadline that fired without a guard.
#[derive(Debug)]
pub(crate) struct FiredDeadline {
    slot: u32,
    deadline: Time,
    pub(crate) fired: Fired,
}

impl Scopes {
    /// Where a wait in `from` would hear of a source that fired, if it does: its branch, or the
    /// source's root. `heard` is who has heard of it. `shields`: also what a shield holds back.
    pub(crate) fn hears(
        &self,
        (fired, heard): (&Fired, &[u32]),
        root: u32,
        from: u32,
        shields: bool,
    ) -> Option<u32> {
        let (mut branch, mut has_heard, mut is_inside) = (None, false, root == ROOT);
        for (index, scope) in self.around(from) {
            match scope.kind {
                _ if index == root => {
                    is_inside = true;
                    break;
                }
                ScopeKind::Shield if !shields => return None,
                ScopeKind::Branch if scope.number <= fired.newest => {
                    branch = branch.or(Some(index));
                    has_heard |= heard.contains(&index);
                }
                _ => {}
            }
        }
        let is_news = heard.is_empty() || branch.is_some() && !has_heard;
        (is_inside && is_news).then(|| branch.unwrap_or(root))
    }

    /// Whether `inner` is `outer` or inside it, shields or not.
    pub(crate) fn is_within(&self, outer: u32, inner: u32) -> bool {
        outer == ROOT || self.around(inner).any(|(index, _)| index == outer)
    }
}

impl<M: Machine> Kernel<M> {
    pub(crate) fn fired(&self, task: u32, source: Source) -> Option<&Fired> {
        let rare = self.tasks[task].rare.as_ref();
        match source {
            Source::Scope(index) => self.scopes[index].fired.as_deref(),
            Source::Cancel => Some(&rare?.cancel.as_ref()?.fired),
            Source::Deadline(slot) => {
                Some(&rare?.deadlines.iter().find(|it| it.slot == slot)?.fired)
            }
        }
    }

    pub(crate) fn fired_mut(&mut self, task: u32, source: Source) -> Option<&mut Fired> {
        let rare = self.tasks[task].rare.as_mut();
        match source {
            Source::Scope(index) => self.scopes[index].fired.as_deref_mut(),
            Source::Cancel => Some(&mut rare?.cancel.as_mut()?.fired),
            Source::Deadline(slot) => {
                Some(&mut rare?.deadlines.iter_mut().find(|it| it.slot == slot)?.fired)
            }
        }
    }

    /// Where a wait in `from` hears of a source that fires now.
    pub(crate) fn hears_now(&self, task: u32, source: Source, from: u32) -> Option<u32> {
        self.scopes.hears((self.fired(task, source)?, &[]), source.root(), from, false)
    }

    fn new_fired(&mut self, seq: Seq) -> Fired {
        self.fires += 1;
        let newest = self.shared.scopes.get();
        Fired { order: self.fires, seq, newest, heard: Vec::new() }
    }

    /// The interrupt that is pending for a trap in `from`, and where that hears of it.
    ///
    /// The one place that says who comes first: a cancellation, then the timeout that fired first.
    /// (A value that is there comes before both, since a task that is ready is not interrupted.)
    pub(crate) fn pending(&self, task: u32, from: u32, shields: bool) -> Option<(Source, u32)> {
        let record = &self.tasks[task];
        if record.sources == 0 {
            return None;
        }
        let hears = |fired: &Fired, source: Source| {
            let key = self.scopes.hears((fired, &fired.heard), source.root(), from, shields)?;
            Some((source, key))
        };
        if let Some(cancel) = record.cancel()
            && let Some(found) = hears(&cancel.fired, Source::Cancel)
        {
            return Some(found);
        }
        let deadlines = record.rare.iter().flat_map(|rare| &rare.deadlines);
        let deadlines = deadlines.map(|it| (&it.fired, Source::Deadline(it.slot)));
        let scopes = self.scopes.around(from);
        let scopes = scopes.filter_map(|(at, it)| Some((it.fired.as_deref()?, Source::Scope(at))));
        let found = deadlines.chain(scopes).filter_map(|(it, s)| Some((it.order, hears(it, s)?)));
        found.min_by_key(|(order, _)| *order).map(|(_, found)| found)
    }

    /// Takes the interrupt that is pending for a trap in `from`, with the line behind it.
    #[cold]
    pub(crate) fn take_pending(&mut self, task: u32, from: u32) -> Option<(Interrupt, Seq)> {
        let (source, key) = self.pending(task, from, false)?;
        let interrupt = self.interrupt(task, source, from, key);
        let fired = self.fired_mut(task, source)?;
        fired.heard.push(key);
        Some((interrupt, fired.seq))
    }

    /// What is pending in `from`, or held back by a shield there.
    pub(crate) fn held(&self, task: u32, from: u32) -> Option<Interrupt> {
        let (source, key) = self.pending(task, from, true)?;
        Some(self.interrupt(task, source, from, key))
    }

    /// The interrupt of `source` as a trap in `from` sees it.
    pub(crate) fn interrupt(
        &self,
        task: u32,
        source: Source,
        from: u32,
        heard_in: u32,
    ) -> Interrupt {
        let position = self.scopes.timeout_at(from);
        let timeout =
            if position == source.root() { Kind::TaskTimeout } else { Kind::TimeoutCancellation };
        let mut delivery = Delivery {
            kind: timeout,
            source: self.scopes.name_of(&self.tasks, task, source.root()),
            position: self.scopes.name_of(&self.tasks, task, position),
            heard_in,
            passed: false,
            deadline: Time::NEVER,
            reading: self.log.now,
            set_at: None,
            by: None,
            reason: "",
            scope: 0,
        };
        self.describe(task, source, &mut delivery);
        Interrupt::new(delivery)
    }

    /// What only this kind of source has to say.
    fn describe(&self, task: u32, source: Source, delivery: &mut Delivery) {
        match source {
            Source::Cancel => {
                let cancel = self.tasks[task].cancel().expect("it was cancelled");
                delivery.kind = Kind::Cancelled;
                (delivery.by, delivery.reason) = (cancel.by, cancel.reason);
            }
            Source::Scope(index) => {
                let scope = &self.scopes[index];
                (delivery.deadline, delivery.scope) = (scope.deadline, scope.number);
                // A guard names its own place on the way out; until then its `arm` line tells.
                delivery.set_at = (scope.kind == ScopeKind::Timeout).then_some(scope.site);
            }
            Source::Deadline(slot) => {
                let deadlines = self.tasks[task].rare.iter().flat_map(|rare| &rare.deadlines);
                let found = deadlines.into_iter().find(|it| it.slot == slot);
                delivery.deadline = found.map_or(Time::NEVER, |it| it.deadline);
                // Told from a cancellation of the task, which has the same root.
                delivery.source = ScopeId { index: NO_SCOPE, number: u64::from(slot) };
            }
        }
    }

    // ---- Sources ---------------------------------------------------------------------------

    /// The deadline of a scope has passed; `fire` is the line that says so.
    pub(crate) fn fire_scope(&mut self, index: u32, deadline: Time, fire: Seq) {
        let fired = Box::new(self.new_fired(fire));
        let scope = &mut self.scopes[index];
        scope.deadline = deadline;
        let task = scope.task;
        if scope.fired.replace(fired).is_none() {
            self.tasks[task].sources += 1;
        }
        self.spread(task, Source::Scope(index), fire);
    }

    /// A connection deadline has fired that guards nothing: its task is interrupted.
    pub(crate) fn fire_deadline(&mut self, task: u32, slot: u32, deadline: Time, fire: Seq) {
        self.forget_deadline(task, slot);
        let fired = self.new_fired(fire);
        let record = &mut self.tasks[task];
        record.sources += 1;
        record.rare().deadlines.push(FiredDeadline { slot, deadline, fired });
        self.spread(task, Source::Deadline(slot), fire);
    }

    /// An interrupt of a connection deadline that guards nothing is for nobody any more.
    pub(crate) fn forget_deadline(&mut self, task: u32, slot: u32) {
        let record = &mut self.tasks[task];
        let Some(rare) = &mut record.rare else { return };
        let before = rare.deadlines.len();
        rare.deadlines.retain(|it| it.slot != slot);
        record.sources -= u32::try_from(before - rare.deadlines.len()).unwrap_or(0);
    }

    /// A scope that fired is armed anew, as only a guard is: what it has not ended, it will not.
    pub(crate) fn unfire(&mut self, index: u32) {
        if let Some(scope) = self.scopes.get_mut(index)
            && scope.fired.take().is_some()
        {
            let task = scope.task;
            self.tasks[task].sources -= 1;
        }
    }

    /// Cancels a task: once in its life, and before any timeout.
    pub(crate) fn cancel_task(
        &mut self,
        index: u32,
        by: Option<TaskId>,
        reason: &'static str,
        cause: Seq,
    ) {
        let by_number = by.map(|task| task.0);
        let event = |effect| Event::Cancel { by: by_number, reason: reason.into(), cause, effect };
        let task = &self.tasks[index];
        if task.is_ended() || task.cancel().is_some() {
            let effect = if task.is_ended() { Effect::Ended } else { Effect::Again };
            emit!(self, index, event(effect));
            return;
        }
        let fired = self.new_fired(0);
        self.tasks[index].sources += 1;
        self.tasks[index].rare().cancel = Some(Cancellation { by, reason, fired });
        let hits = !self.reached(index, Source::Cancel).is_empty() || self.unread_timeouts(index);
        let effect = if hits { Effect::Delivered } else { Effect::Pending };
        let seq = emit!(self, index, event(effect));
        self.fired_mut(index, Source::Cancel).expect("set above").seq = seq;
        self.spread(index, Source::Cancel, seq);
    }
}

/// In place of a scope, for a connection deadline that guards nothing.
pub(crate) const NO_SCOPE: u32 = ROOT - 1;
