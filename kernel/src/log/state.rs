//! The state of a kernel as text: what a reader of the log can work out after a line.
//!
//! A test compares this text with the state that the reducer of `tests/testing` makes from the
//! lines alone (`trace::State`, which describes the text). So the reducer cannot be a model of the
//! kernel that goes its own way.
//!
//! A poll files its traps and posts at the gate, and the kernel writes their lines after the poll.
//! Between these lines, the records at the gate are ahead of the log. So only the part about the
//! CPU (who runs, who is ready, who is parked) is shown after each line. All of it is shown between
//! two events ([`Core::between_events`]).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use traps::Time;
use traps::internal::protocol::{ParkedOn, ScopeKind, Trap};
use traps::internal::records::Records;
use traps::internal::source::Scope;
use traps::internal::table::{Direction, ScopeId, TaskIndex};

use crate::core::Core;
use crate::core::sched::Sched;
use crate::core::tasks::TaskState;
use crate::core::timers::{Owner, lives};
use crate::log::flight::LinesInForce;
use crate::log::form::word;
use crate::machine::Machine;
use crate::trace::{Moved, Op};

/// The part of the state that is shown after each line: who has the CPU and who is ready.
impl<M: Machine> Sched<M> {
    /// Shows the part of the state about the CPU to the observers.
    #[cold]
    pub(crate) fn show_state(&self) {
        let text = self.state(|_, _| Ok(())).expect("a string takes all text");
        self.log.show(&text, false);
    }

    /// Writes who runs, who is ready, and each task with what `inside` adds.
    pub(crate) fn state(
        &self,
        inside: impl Fn(TaskIndex, &mut String) -> std::fmt::Result,
    ) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let leaves = self.run.block_logged && self.log.listening;
        match self.run.task.filter(|_| !leaves) {
            Some(task) if self.tasks.state(task) == Some(TaskState::Running) => {
                writeln!(text, "cpu {}", self.tasks.id(task))?;
            }
            _ if self.run.messages => writeln!(text, "cpu 1")?,
            _ => {}
        }
        let (now, next) = self.ready.parts();
        // Before the first run of a turn, all ready tasks will run in it.
        let is_first = self.ready.ran_in != Some(self.log.turn);
        let (now, next): (Vec<TaskIndex>, Vec<TaskIndex>) = match is_first {
            true => (now.iter().chain(next).copied().collect(), Vec::new()),
            false => (now.to_vec(), next.to_vec()),
        };
        for (word, tasks) in [("ready", now), ("next", next)] {
            if !tasks.is_empty() {
                let numbers: Vec<_> =
                    tasks.iter().map(|task| self.tasks.id(*task).to_string()).collect();
                writeln!(text, "{word} {}", numbers.join(" "))?;
            }
        }
        for index in self.tasks.newest_first(0).into_iter().rev() {
            let task = &self.tasks[index];
            let (state, since) = match task.state {
                TaskState::Running if !leaves => ("running", self.run.since),
                TaskState::Running => ("parked", self.now),
                TaskState::Ready => ("ready", task.since),
                TaskState::Parked => ("parked", task.since),
            };
            writeln!(text, "{} {} {state} since={since}", self.tasks.id(index), word(&task.name))?;
            inside(index, &mut text)?;
        }
        Ok(text)
    }
}

impl<M: Machine> Core<M> {
    /// Names the log lines that are in force to the flight recorder, which then begins its next
    /// segment. O(tasks + waits + scopes + descriptors).
    #[cold]
    pub(crate) fn name_lines_in_force(&mut self) {
        // Something is filed, so a line is missing, and the records are ahead of the log.
        if self.sched.gate.has_filed() {
            return;
        }
        self.sched.log.wants_head = false;
        if let Some(flight) = &self.sched.log.flight {
            flight.begin_segment(&mut |lines| self.put_lines_in_force(lines));
        }
    }

    fn put_lines_in_force(&self, lines: &mut LinesInForce<'_>) {
        // The header of a log has no line, and task 1 has no record.
        [1, self.wakeup.line].into_iter().for_each(|line| lines.add(line));
        for (_, task) in self.sched.tasks.iter() {
            let Some(rare) = &task.rare else { continue };
            rare.lines.iter().chain(&rare.answers).for_each(|line| lines.add(*line));
            rare.held.iter().for_each(|(_, line)| lines.add(*line));
            if task.state == TaskState::Ready {
                lines.add(rare.cause);
            }
        }
        let records = self.sched.gate.records();
        for (ticket, _) in records.waits.iter().filter(|(_, wait)| wait.is_parked()) {
            let (number, line) = self.sched.log.number_of(ticket);
            lines.add(line);
            lines.add_move(Moved::Wait(number));
        }
        for (id, scope) in records.scopes.iter().filter(|(_, it)| it.kind != ScopeKind::Closed) {
            lines.add(scope.line);
            lines.add_move(Moved::Scope(scope.number));
            // A cancellation that has ended its trap is over. A timeout that has done so is not:
            // its timer has fired.
            let is_over = scope.kind == ScopeKind::Task && records.places_of(id).is_empty();
            scope.fired.iter().filter(|_| !is_over).for_each(|fired| lines.add(fired.line));
        }
        let deadlines = &self.sched.shared.deadlines;
        for (slot, (_, line)) in (0..).zip(&self.sched.log.armed) {
            if deadlines.at(slot) != Time::NEVER {
                lines.add(*line);
            }
        }
        for (index, handle) in self.handles.table.iter().enumerate() {
            let Some(handle) = handle else { continue };
            let is_so = [handle.registered, handle.ready[0], handle.ready[1]];
            let known = self.sched.log.handles.get(index).copied().unwrap_or_default();
            known.iter().zip(is_so).filter(|(_, is_so)| *is_so).for_each(|(it, _)| lines.add(*it));
        }
    }

    /// Shows the whole state to the observers that want it, because no event is being handled. If
    /// something is filed, a line is missing, and the state is shown later.
    #[inline]
    pub(crate) fn between_events(&self) {
        if self.sched.log.shows_state && !self.sched.gate.has_filed() {
            self.check();
            self.show_whole();
        }
    }

    /// Checks the invariants of all that the core owns. For tests: O(state).
    ///
    /// # Panics
    ///
    /// Panics if an invariant is broken.
    fn check(&self) {
        self.sched.check();
        self.sched.gate.check();
        self.sched.shared.deadlines.check();
        self.wakeup.inbox.queue.check();
        let records = self.sched.gate.records();
        records.check();
        self.timers.check(&records);
        self.handles.check(&records);
    }

    #[cold]
    fn show_whole(&self) {
        let text = self.whole().expect("a string takes all text");
        self.sched.log.show(&text, true);
    }

    fn whole(&self) -> Result<String, std::fmt::Error> {
        let mut text = self.sched.state(|index, text| self.put_inside(index, text))?;
        self.put_timers(&mut text)?;
        self.put_descriptors(&mut text)?;
        self.put_queues(&mut text)?;
        Ok(text)
    }

    /// Writes the scopes and the waits of a task, and what is pending in it.
    fn put_inside(&self, index: TaskIndex, text: &mut String) -> std::fmt::Result {
        let root = ScopeId::of(self.sched.tasks.key(index));
        let records = self.sched.gate.records();
        let mut scopes: Vec<(ScopeId, &Scope)> = records.scopes.iter().collect();
        scopes.retain(|(_, scope)| scope.task == index && scope.kind != ScopeKind::Closed);
        scopes.sort_unstable_by_key(|(_, scope)| (scope.kind != ScopeKind::Task, scope.number));
        for (_, scope) in scopes.iter().filter(|(_, scope)| scope.line != 0) {
            let Scope { kind, number, line, deadline, parent, .. } = scope;
            let kind = match kind {
                ScopeKind::Guard { slot: Some(_), number } => format!("guard d{number}"),
                ScopeKind::Branch => "branch".to_owned(),
                ScopeKind::Shield => "shield".to_owned(),
                _ => "set_timeout".to_owned(),
            };
            write!(text, "  s{number} {kind} #{line:04}")?;
            if kind == "set_timeout" && *deadline != Time::NEVER {
                write!(text, " until={deadline}")?;
            }
            put_in(&records, *parent, text)?;
        }
        for (source, scope) in &scopes {
            let is_cancellation = scope.kind == ScopeKind::Task;
            if !is_cancellation && scope.line == 0 {
                continue;
            }
            let mut places = records.places_of(*source);
            places.sort_unstable_by_key(|at| (at != source, records.number_of(*at)));
            for at in places {
                match is_cancellation {
                    true => write!(text, "  pending root")?,
                    false => write!(text, "  pending s{}", scope.number)?,
                }
                put_in(&records, if at == *source { root } else { at }, text)?;
            }
        }
        for (ticket, wait) in records.waits_of(index).filter(|(_, wait)| wait.is_parked()) {
            let (number, line) = self.sched.log.number_of(ticket);
            write!(text, "  k={number} {} #{line:04}", self.sched.log.names.op_of(&wait.trap))?;
            put_in(&records, wait.scope, text)?;
        }
        Ok(())
    }

    /// Writes the timers and the connection deadlines, in the order in which they fire.
    fn put_timers(&self, text: &mut String) -> std::fmt::Result {
        let records = self.sched.gate.records();
        for (at, owner) in self.timers.in_order() {
            match owner {
                _ if !lives(&records, owner) => {}
                Owner::Sleep(ticket) => {
                    writeln!(text, "timer {at} k={}", self.sched.log.number_of(ticket).0)?;
                }
                Owner::Scope(scope) => writeln!(text, "timer {at} s{}", records.number_of(scope))?,
                // The core does not know for which phase of the shutdown it is.
                Owner::Service(_) => {}
            }
        }
        for (at, number) in self.sched.shared.deadlines.list() {
            writeln!(text, "armed d{number} {at}")?;
        }
        Ok(())
    }

    /// Writes the descriptors that are registered, waited for or ready.
    fn put_descriptors(&self, text: &mut String) -> std::fmt::Result {
        let mut waiting = BTreeMap::new();
        let records = self.sched.gate.records();
        for (_, wait) in records.waits.iter().filter(|(_, wait)| wait.is_parked()) {
            if let Trap::Io { handle, direction } = wait.trap {
                let side = direction == Direction::Write;
                waiting.insert(
                    (self.sched.log.names.alias(handle), side),
                    records.tasks[wait.task.0].number,
                );
            }
        }
        for (alias, handle) in self.handles.in_order(&self.sched.log.names) {
            let waits = [false, true].map(|side| waiting.get(&(alias, side)));
            if !handle.registered && handle.ready == [false; 2] && waits == [None, None] {
                continue;
            }
            write!(text, "{}{}", alias, if handle.registered { " registered" } else { "" })?;
            for (side, task) in ["read", "write"].into_iter().zip(waits) {
                task.map_or(Ok(()), |task| write!(text, " {side}={task}"))?;
            }
            writeln!(
                text,
                "{}",
                match handle.ready {
                    [true, true] => " ready=read,write",
                    [true, false] => " ready=read",
                    [false, true] => " ready=write",
                    [false, false] => "",
                }
            )?;
        }
        Ok(())
    }

    /// Writes the primitives and the queues that tasks wait for.
    fn put_queues(&self, text: &mut String) -> std::fmt::Result {
        let mut queues: BTreeMap<String, (Vec<u64>, BTreeMap<u64, u64>)> = BTreeMap::new();
        let records = self.sched.gate.records();
        let parked = records.waits.iter().filter(|(_, wait)| wait.is_parked());
        let waits: Vec<_> = parked.map(|(at, wait)| (at, wait.task, wait.trap.clone())).collect();
        drop(records);
        for (ticket, task, trap) in waits {
            let queue = match &trap {
                Trap::Wait { queue, .. } => Some(queue),
                Trap::Park { what: ParkedOn::Universal(..), .. } => None,
                _ => continue,
            };
            let op = self.sched.log.names.op_of(&trap);
            let (holders, waits) = queues.entry(op.to_string()).or_default();
            if let Some(queue) = queue
                && matches!(&op, Op::Primitive(it) if !it.name.is_empty())
            {
                holders.extend(self.sched.holders(queue));
            }
            waits.insert(self.sched.log.number_of(ticket).0, self.sched.tasks.id(task));
        }
        let list = |numbers: &mut dyn Iterator<Item = &u64>| {
            numbers.map(u64::to_string).collect::<Vec<_>>().join(",")
        };
        for (words, (mut holders, waits)) in queues {
            holders.sort_unstable();
            holders.dedup();
            write!(text, "{words}")?;
            if !holders.is_empty() {
                write!(text, " held-by={}", list(&mut holders.iter()))?;
            }
            writeln!(text, " waits={}", list(&mut waits.values()))?;
        }
        Ok(())
    }
}

/// Ends a row with the scope that it is in, if that is not the task itself.
fn put_in(records: &Records, scope: ScopeId, text: &mut String) -> std::fmt::Result {
    match records.logged_number_of(scope) {
        0 => writeln!(text),
        number => writeln!(text, " in=s{number}"),
    }
}
