//! The deadline table. Deadlines are set often and rarely reached, so setting one must be cheap,
//! and reaching one may cost more. Arming is a store; a scan finds the passed deadlines.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;

/// The time between two scans. A deadline fires at most this much late, and never early.
const TICK: Duration = Duration::from_millis(100);

/// One deadline for all the phases of a connection.
pub struct ConnectionDeadline(u32);

impl ConnectionDeadline {
    #[track_caller]
    pub fn new() -> impl Future<Output = ConnectionDeadline> {
        let call = call(Trap::ConnectionDeadline);
        async move {
            match call.await {
                Reply::Deadline(number) => ConnectionDeadline(number),
                other => unreachable!("rule: answered with a deadline, not {other:?}"),
            }
        }
    }

    /// Sets the deadline to `span` from now. This is a store, and no trap.
    pub fn arm(&self, span: Duration) {
        gate(|gate| {
            let at = gate.now.get() + span;
            gate.deadlines.borrow_mut().arm(self.0, at);
            gate.post(Post::Armed(self.0, at));
        });
    }

    pub fn disarm(&self) {
        gate(|gate| {
            if gate.deadlines.borrow_mut().disarm(self.0) {
                gate.post(Post::Disarmed(self.0));
            }
        });
    }

    /// Runs `future`, and interrupts its wait when the deadline passes.
    #[track_caller]
    pub fn guard<T, E: Interruptible>(
        &self,
        future: impl Future<Output = Result<T, E>>,
    ) -> impl Future<Output = Result<T, E>> {
        in_scope(call(Trap::Open(ScopeKind::Guard(self.0))), future)
    }
}

impl Drop for ConnectionDeadline {
    fn drop(&mut self) {
        self.disarm();
        gate(|gate| gate.deadlines.borrow_mut().entries.remove(&self.0));
    }
}

struct Entry {
    at: Time,
    /// The line that armed it.
    line: Seq,
    /// The scope that it interrupts.
    guard: Option<(TaskId, u32)>,
}

pub(super) struct Deadlines {
    entries: BTreeMap<u32, Entry>,
    made: u32,
    /// No deadline is due before this time. If this is too early, the kernel scans in vain. It is
    /// never too late.
    soonest: Time,
    scanned: Time,
}

impl Default for Deadlines {
    fn default() -> Deadlines {
        let (soonest, scanned) = (Time::NEVER, Time::ZERO);
        Deadlines { entries: BTreeMap::new(), made: 0, soonest, scanned }
    }
}

impl Deadlines {
    pub(super) fn add(&mut self) -> u32 {
        self.made += 1;
        self.entries.insert(self.made, Entry { at: Time::NEVER, line: 0, guard: None });
        self.made
    }

    fn arm(&mut self, number: u32, at: Time) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.at = at;
            self.soonest = self.soonest.min(at);
        }
    }

    /// Clears a deadline. Returns whether it was armed.
    fn disarm(&mut self, number: u32) -> bool {
        let entry = self.entries.get_mut(&number);
        entry.is_some_and(|entry| std::mem::replace(&mut entry.at, Time::NEVER) != Time::NEVER)
    }

    pub(super) fn guard(&mut self, number: u32, scope: Option<(TaskId, u32)>) {
        if let Some(entry) = self.entries.get_mut(&number) {
            entry.guard = scope;
        }
    }

    /// Returns the deadlines that are due, the soonest first, and the number of armed ones.
    fn scan(&mut self, now: Time) -> (Vec<(Time, u32)>, usize) {
        (self.scanned, self.soonest) = (now, Time::NEVER);
        let (mut due, mut armed) = (Vec::new(), 0);
        for (number, entry) in &mut self.entries {
            if entry.at <= now {
                due.push((std::mem::replace(&mut entry.at, Time::NEVER), *number));
            } else if entry.at != Time::NEVER {
                armed += 1;
                self.soonest = self.soonest.min(entry.at);
            }
        }
        due.sort_unstable();
        (due, armed)
    }
}

impl<M: Machine> Kernel<M> {
    pub(super) fn deadlines<R>(&self, f: impl FnOnce(&mut Deadlines) -> R) -> R {
        gate(|gate| f(&mut gate.deadlines.borrow_mut()))
    }

    pub(super) fn next_scan(&self) -> Option<Time> {
        let next = self.deadlines(|table| (table.soonest, table.scanned + TICK));
        (next.0 != Time::NEVER).then(|| next.0.max(next.1))
    }

    pub(super) fn scan_deadlines(&mut self) {
        if self.next_scan().is_none_or(|at| at > self.now) {
            return;
        }
        let (due, armed) = self.deadlines(|table| table.scan(self.now));
        self.log(KERNEL, "tick", &format!("fired={} armed={armed}", due.len()));
        for (at, number) in due {
            let found = self.deadlines(|table| {
                table.entries.get(&number).map(|entry| (entry.line, entry.guard))
            });
            let Some((cause, guard)) = found else { continue };
            let line = self.log_fire(&format!("d{number}"), at, cause);
            if let Some((id, scope)) = guard {
                self.fire(id, scope, line);
            }
        }
    }

    pub(super) fn log_arm(&mut self, id: TaskId, number: u32, until: Time) {
        let line = self.log(id, "arm", &format!("d{number} until={}", time_of(until)));
        self.deadlines(|table| {
            if let Some(entry) = table.entries.get_mut(&number) {
                entry.line = line;
            }
        });
    }
}
