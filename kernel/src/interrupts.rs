//! Interrupts: which waits a deadline or a cancellation interrupts, and what stays pending.
//!
//! A source of interrupts (a scope that fired, a cancellation) reaches every wait inside it that no
//! shield covers. It is delivered once to each *branch* that was open when it fired. A wait outside
//! of all branches gets it only if it was not delivered yet. An interrupt that was not delivered is
//! pending: it ends the next blocking trap.

use traps::protocol::{ROOT, ScopeId, ScopeKind};
use traps::{Delivery, Interrupt, Kind, TaskId, Time};

use crate::kernel::Kernel;
use crate::log::emit;
use crate::machine::Machine;
use crate::scopes::Scopes;
use crate::trace::{Effect, Event, Seq};

/// The source of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Cancel,
    /// The scope in that place of the table.
    Scope(u32),
    /// A connection deadline that fired without a guard, by its slot. It is for the whole task.
    Deadline(u32),
}

impl Source {
    /// The outermost scope that it applies to.
    pub(crate) fn root(self) -> u32 {
        match self {
            Source::Scope(index) => index,
            Source::Cancel | Source::Deadline(_) => ROOT,
        }
    }
}

/// The state of a source that has fired.
#[derive(Debug)]
pub(crate) struct Fired {
    /// The rank of this source among all that fired.
    order: u64,
    /// Its `fire` or `cancel` line.
    pub(crate) seq: Seq,
    /// The newest scope of the kernel at that time.
    newest: u64,
    /// The branches that it was delivered to, or its root: one entry for each delivery.
    pub(crate) delivered_to: Vec<u32>,
}

/// A cancellation that was asked for. A task is cancelled once in its life.
#[derive(Debug)]
pub(crate) struct Cancellation {
    by: Option<TaskId>,
    reason: &'static str,
    pub(crate) fired: Fired,
}

impl Cancellation {
    pub(crate) fn was_delivered(&self) -> bool {
        !self.fired.delivered_to.is_empty()
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
    /// Where a source that has fired would be delivered to a wait in `from`: at its branch, or at
    /// the root of the source. `None` if it would not be. `delivered_to` lists the deliveries so
    /// far. `shields`: count what a shield holds back as well.
    pub(crate) fn delivery_key(
        &self,
        (fired, delivered_to): (&Fired, &[u32]),
        root: u32,
        from: u32,
        shields: bool,
    ) -> Option<u32> {
        let (mut branch, mut was_delivered, mut is_inside) = (None, false, root == ROOT);
        for (index, scope) in self.around(from) {
            match scope.kind {
                _ if index == root => {
                    is_inside = true;
                    break;
                }
                ScopeKind::Shield if !shields => return None,
                ScopeKind::Branch if scope.number <= fired.newest => {
                    branch = branch.or(Some(index));
                    was_delivered |= delivered_to.contains(&index);
                }
                _ => {}
            }
        }
        let is_news = delivered_to.is_empty() || branch.is_some() && !was_delivered;
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

    /// Where a source that fires now is delivered to a wait in `from`.
    pub(crate) fn delivery_key_now(&self, task: u32, source: Source, from: u32) -> Option<u32> {
        self.scopes.delivery_key((self.fired(task, source)?, &[]), source.root(), from, false)
    }

    fn new_fired(&mut self, seq: Seq) -> Fired {
        self.fires += 1;
        let newest = self.shared.scopes.get();
        Fired { order: self.fires, seq, newest, delivered_to: Vec::new() }
    }

    /// The interrupt that is pending for a trap in `from`, and where it would be delivered.
    ///
    /// The one place that decides the order: a cancellation, then the timeout that fired first. (A
    /// value comes before both, since a task that is ready is not interrupted.)
    pub(crate) fn pending(&self, task: u32, from: u32, shields: bool) -> Option<(Source, u32)> {
        let record = &self.tasks[task];
        if record.sources == 0 {
            return None;
        }
        let key_of = |fired: &Fired, source: Source| {
            let key = self.scopes.delivery_key(
                (fired, &fired.delivered_to),
                source.root(),
                from,
                shields,
            )?;
            Some((source, key))
        };
        if let Some(cancel) = record.cancel()
            && let Some(found) = key_of(&cancel.fired, Source::Cancel)
        {
            return Some(found);
        }
        let deadlines = record.rare.iter().flat_map(|rare| &rare.deadlines);
        let deadlines = deadlines.map(|it| (&it.fired, Source::Deadline(it.slot)));
        let scopes = self.scopes.around(from);
        let scopes = scopes.filter_map(|(at, it)| Some((it.fired.as_deref()?, Source::Scope(at))));
        let found = deadlines.chain(scopes).filter_map(|(it, s)| Some((it.order, key_of(it, s)?)));
        found.min_by_key(|(order, _)| *order).map(|(_, found)| found)
    }

    /// Takes the interrupt that is pending for a trap in `from`, with the line of its cause.
    #[cold]
    pub(crate) fn take_pending(&mut self, task: u32, from: u32) -> Option<(Interrupt, Seq)> {
        let (source, key) = self.pending(task, from, false)?;
        let interrupt = self.interrupt(task, source, from, key);
        let fired = self.fired_mut(task, source)?;
        fired.delivered_to.push(key);
        Some((interrupt, fired.seq))
    }

    /// The interrupt that is pending in `from`, or that a shield holds back there.
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
        delivered_in: u32,
    ) -> Interrupt {
        let position = self.scopes.nearest_timeout(from);
        let timeout =
            if position == source.root() { Kind::TaskTimeout } else { Kind::TimeoutCancellation };
        let mut delivery = Delivery {
            kind: timeout,
            source: self.scopes.name_of(&self.tasks, task, source.root()),
            position: self.scopes.name_of(&self.tasks, task, position),
            delivered_in,
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

    /// Fills in the fields that only this kind of source has.
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
                // A guard adds its own place when it returns the error. Until then its `arm` line
                // has the place.
                delivery.set_at = (scope.kind == ScopeKind::Timeout).then_some(scope.site);
            }
            Source::Deadline(slot) => {
                let deadlines = self.tasks[task].rare.iter().flat_map(|rare| &rare.deadlines);
                let found = deadlines.into_iter().find(|it| it.slot == slot);
                delivery.deadline = found.map_or(Time::NEVER, |it| it.deadline);
                // The index differs from that of a cancellation of the task, which has the same
                // root.
                delivery.source = ScopeId { index: NO_SCOPE, number: u64::from(slot) };
            }
        }
    }

    // ---- Sources ---------------------------------------------------------------------------

    /// The deadline of a scope has passed; `fire` is the line of that.
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

    /// A connection deadline has fired that guards nothing, so it interrupts its whole task.
    pub(crate) fn fire_deadline(&mut self, task: u32, slot: u32, deadline: Time, fire: Seq) {
        self.forget_deadline(task, slot);
        let fired = self.new_fired(fire);
        let record = &mut self.tasks[task];
        record.sources += 1;
        record.rare().deadlines.push(FiredDeadline { slot, deadline, fired });
        self.spread(task, Source::Deadline(slot), fire);
    }

    /// Discards the interrupt of a connection deadline that guards nothing.
    pub(crate) fn forget_deadline(&mut self, task: u32, slot: u32) {
        let record = &mut self.tasks[task];
        let Some(rare) = &mut record.rare else { return };
        let before = rare.deadlines.len();
        rare.deadlines.retain(|it| it.slot != slot);
        record.sources -= u32::try_from(before - rare.deadlines.len()).unwrap_or(0);
    }

    /// A scope that fired is armed again, which only a guard can be. Its interrupt is discarded
    /// where it has not been delivered.
    pub(crate) fn unfire(&mut self, index: u32) {
        if let Some(scope) = self.scopes.get_mut(index)
            && scope.fired.take().is_some()
        {
            let task = scope.task;
            self.tasks[task].sources -= 1;
        }
    }

    /// Cancels a task. A task is cancelled once, and a cancellation comes before any timeout.
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

/// Stands for the scope of a connection deadline that guards nothing.
pub(crate) const NO_SCOPE: u32 = ROOT - 1;
