//! Scopes: a timeout or a shield around a wait. Scopes nest, and the inner one closes first.

use super::*;

/// An open scope of a task.
pub(super) struct Scope {
    pub(super) number: u32,
    pub(super) kind: ScopeKind,
    timer: Option<Timer>,
    /// The `fire` line of its deadline, until the timeout was delivered, which happens once.
    fired: Option<Seq>,
    site: Site,
    /// The line that opened it.
    pub(super) line: Seq,
}

/// The cancellation of a task. A task has at most one.
pub(super) struct Cancel {
    by: TaskId,
    /// Its `cancel` line.
    line: Seq,
    pub(super) is_taken: bool,
}

impl<M: Machine> Kernel<M> {
    pub(super) fn open(&mut self, id: TaskId, kind: ScopeKind, words: &str, site: Site) {
        self.scopes += 1;
        let number = self.scopes;
        let timer = match kind {
            ScopeKind::Timeout(span) => {
                Some(self.timers.set(self.now + span, Owner::Scope(id, number)))
            }
            ScopeKind::Shield => None,
        };
        let line = self.answer(id, words, Reply::Scope(number), &format!(" {}", at(site)));
        let scope = Scope { number, kind, timer, fired: None, site, line };
        self.task(id).scopes.push(scope);
    }

    /// Closes the innermost scope. Returns the interrupt that leaves the scope, with its new kind.
    pub(super) fn close(&mut self, id: TaskId, number: u32, left: Option<Interrupt>) -> Reply {
        let task = self.task(id);
        let scope = task.scopes.pop().filter(|scope| scope.number == number);
        let scope = scope.expect("rule: scopes close in order, the innermost first");
        let open: Vec<u32> = task.scopes.iter().map(|scope| scope.number).collect();
        if let Some(timer) = scope.timer {
            self.timers.clear(timer);
        }
        let Some(left) = left else { return Reply::Done };
        let kind = match left.scope {
            _ if left.kind == Kind::Cancelled => Kind::Cancelled,
            fired if fired == number => Kind::TaskTimeout,
            fired if open.contains(&fired) => Kind::TimeoutCancellation,
            _ => Kind::UncaughtTimeout,
        };
        Reply::Interrupt(Interrupt { kind, ..left })
    }

    /// Interrupts the task of a scope whose deadline has passed.
    pub(super) fn fire(&mut self, id: TaskId, number: u32, line: Seq) {
        self.scope(id, number).fired = Some(line);
        self.interrupt(id);
    }

    /// Cancels a task on behalf of `by`.
    pub(super) fn cancel(&mut self, by: TaskId, id: TaskId) {
        let cause = self.tasks[&by].cause;
        let Some(task) = self.tasks.get(&id) else { return };
        let effect = match &task.cancel {
            Some(_) => "again",
            None if task.wait.is_some() && shielded(&task.scopes) == 0 => "delivered",
            None => "pending",
        };
        let line = self.log(id, "cancel", &format!("by={by} cause=#{cause:04} = {effect}"));
        self.task(id).cancel.get_or_insert(Cancel { by, line, is_taken: false });
        self.interrupt(id);
    }

    /// Ends the wait of a task if a pending interrupt can reach the wait.
    fn interrupt(&mut self, id: TaskId) {
        let waits = self.task(id).wait.is_some();
        if waits && let Some((interrupt, cause)) = self.take_pending(id) {
            self.deliver(id, interrupt, cause);
        }
    }

    /// Takes the pending interrupt that ends the next wait of a task, with the line of its cause.
    pub(super) fn take_pending(&mut self, id: TaskId) -> Option<(Interrupt, Seq)> {
        let task = self.task(id);
        let first = shielded(&task.scopes);
        if first == 0
            && let Some(cancel) = task.cancel.as_mut().filter(|cancel| !cancel.is_taken)
        {
            cancel.is_taken = true;
            let kind = Kind::Cancelled;
            return Some((Interrupt { kind, scope: 0, set_at: None, by: cancel.by }, cancel.line));
        }
        let innermost = task.scopes.last()?.number;
        let scope = task.scopes[first..].iter_mut().find(|scope| scope.fired.is_some())?;
        let line = scope.fired.take()?;
        let is_own = scope.number == innermost;
        let kind = if is_own { Kind::TaskTimeout } else { Kind::TimeoutCancellation };
        let interrupt = Interrupt { kind, scope: scope.number, set_at: Some(scope.site), by: 0 };
        Some((interrupt, line))
    }

    pub(super) fn scope(&mut self, id: TaskId, number: u32) -> &mut Scope {
        let mut scopes = self.task(id).scopes.iter_mut();
        scopes.find(|scope| scope.number == number).expect("rule: a closed scope has no timer")
    }

    pub(super) fn innermost(&self, id: TaskId) -> &Scope {
        self.tasks[&id].scopes.last().expect("rule: a scope is opened before it is closed")
    }
}

/// Returns the number of scopes up to the innermost shield, which holds back their interrupts.
fn shielded(scopes: &[Scope]) -> usize {
    let shield = scopes.iter().rposition(|scope| matches!(scope.kind, ScopeKind::Shield));
    shield.map_or(0, |index| index + 1)
}
