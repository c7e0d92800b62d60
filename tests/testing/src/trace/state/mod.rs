//! The state of the kernel at a line of its log.
//!
//! A log records events; a state is the situation between them: which task has the CPU, which are
//! ready and in which order, what each other task waits for, which timers are set. [`State::line`]
//! reads the log line by line. The state is then that of the kernel when it had written the line:
//!
//! ```
//! use testing::trace::{State, trace};
//!
//! let ran = testing::run(traps::sleep(std::time::Duration::from_secs(1)));
//! let mut state = State::default();
//! let lines = trace(&ran.trace).unwrap();
//! let block = lines.iter().position(|line| line.word(0) == "sleep").unwrap();
//! lines[..=block].iter().for_each(|line| state.line(line));
//! let main = &state.tasks[&2];
//! assert_eq!(&*state.waits[main.waits.first().unwrap()].op, "sleep 1s until=1.000000");
//! assert!(state.to_string().contains("timer 1.000000 k=1\n"));
//! ```
//!
//! # What is kept
//!
//! Ended tasks, ended waits and closed descriptors are forgotten, so a state does not grow with its
//! log. The exception is the last notification of a queue, which a task that begins to wait later
//! has missed; those of 1,024 queues are kept. Each thing is in one table, by its number in the
//! log. If another table needs it, that table has only the number. A line costs O(log n), or O(the
//! number of changes).
//!
//! The ready queue is one table too: a task gets the next place when it becomes ready. The first
//! run of a turn marks the place from which on tasks wait for the next turn. The next turn removes
//! the mark, so these tasks follow those that are left.
//!
//! # What is not known
//!
//! A log can begin in the middle, or lack lines. Unknown facts are left out, never guessed, and a
//! line about something unknown changes nothing else. A number that decreases begins another log.

mod interrupts;
mod outside;
mod text;
mod things;

use std::collections::{BTreeMap, BTreeSet};

use traps::Time;

use super::{Line, Seq};

pub use text::View;
use things::Store;
pub use things::{
    Alias, DIRECTIONS, Deadline, Descriptor, Doing, Hold, In, Job, JobDoing, Key, Kind, Notified,
    Pending, Primitive, Scope, Shutdown, Task, TimerName, Wait,
};

/// The number of the kernel's own task.
const WAKEUP: u64 = 1;

/// Whether a line is about the kernel's own task, which has no row.
fn is_wakeup(line: &Line<'_>) -> bool {
    (line.task, line.name()) == (WAKEUP, "wakeup")
}

/// The state of the kernel at a line of its log. Callers must not change the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The time of the last line.
    pub at: Time,
    /// Its turn.
    pub turn: u64,
    /// The number of the last line; `None` before the first.
    pub seq: Option<Seq>,
    /// The task that has the CPU.
    pub cpu: Option<u64>,
    /// All tasks that have not ended, without `wakeup`, by number.
    pub tasks: BTreeMap<u64, Task>,
    /// All open scopes.
    pub scopes: BTreeMap<u64, Scope>,
    /// All open waits, by ticket.
    pub waits: BTreeMap<u64, Wait>,
    /// The timers in the order in which they fire, and the line that set each.
    pub timers: BTreeMap<(Time, TimerName), Seq>,
    /// The armed deadlines in the order in which they pass.
    pub armed: BTreeSet<(Time, u64)>,
    /// The connection deadlines that are armed or guard a scope.
    pub deadlines: BTreeMap<u64, Deadline>,
    /// The descriptors that are registered, waited for, or remembered as ready.
    pub descriptors: BTreeMap<Alias, Descriptor>,
    /// The primitives and queues that tasks wait for or hold, by the words of the wait.
    pub primitives: BTreeMap<Box<str>, Primitive>,
    /// The last notification of each of them, and of those that no task waits for yet.
    pub notified: BTreeMap<Box<str>, Notified>,
    /// The jobs that have not come back.
    pub jobs: BTreeMap<u64, Job>,
    /// The shutdown, once it has begun.
    pub shutdown: Option<Shutdown>,
    /// How many messages `wakeup` handles in this run, if the line has the number.
    pub messages: Option<u64>,
    /// The ready tasks, by place.
    queue: BTreeMap<u64, u64>,
    /// How many places were assigned.
    places: u64,
    /// The first place of the next turn, once a task has run in this one.
    next_from: Option<u64>,
    changed: Vec<Key>,
}

impl State {
    /// The tasks that run in this turn, in order.
    pub fn ready(&self) -> impl Iterator<Item = u64> {
        self.queue.range(..self.next_from.unwrap_or(u64::MAX)).map(|(_, task)| *task)
    }

    /// The tasks that run in the next turn, in order.
    pub fn next(&self) -> impl Iterator<Item = u64> {
        self.queue.range(self.next_from.unwrap_or(u64::MAX)..).map(|(_, task)| *task)
    }

    /// The time at which a timer fires; `None` if it is not set.
    #[must_use]
    pub fn timer(&self, name: TimerName) -> Option<Time> {
        let until = match name {
            TimerName::Sleep(ticket) => self.waits.get(&ticket)?.until,
            TimerName::Scope(scope) => self.scopes.get(&scope)?.until,
            TimerName::Drain | TimerName::Grace => self.shutdown.as_ref()?.until,
        }?;
        self.timers.contains_key(&(until, name)).then_some(until)
    }

    /// The rows that the last line has changed, added or removed, in any order; a row can be named
    /// twice. [`State::row`] returns the text of each, and `None` if the row is gone.
    #[must_use]
    pub fn changed(&self) -> &[Key] {
        &self.changed
    }

    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        self.changed.clear();
        if self.seq.is_some_and(|seq| line.seq <= seq) {
            *self = State { changed: self.keys(View::Whole), ..State::default() };
        }
        if (self.at, self.turn) != (line.at, line.turn) || self.seq.is_none() {
            self.changed.push(Key::Time);
        }
        if self.turn != line.turn && self.next_from.is_some() {
            self.changed.extend([Key::Ready, Key::Next]);
            self.next_from = None;
        }
        (self.at, self.turn, self.seq) = (line.at, line.turn, Some(line.seq));
        match line.verb {
            "spawn" | "run" | "block" | "exit" if is_wakeup(line) => self.wakeup(line),
            "spawn" => self.spawn(line),
            "run" => self.run(line),
            "await" => self.open(line),
            "block" => self.block(line),
            "wake" | "deliver" | "withdraw" => self.end(line),
            "exit" => self.exit(line.task),
            "trap" | "move" | "cancel" | "cleanup" => self.scope_line(line),
            _ => self.outside(line),
        }
    }

    /// `wakeup` runs before the queue, and waits for nothing but messages.
    fn wakeup(&mut self, line: &Line<'_>) {
        self.cpu = (line.verb == "run").then_some(WAKEUP);
        self.messages = line.number("messages").filter(|_| line.verb == "run");
        self.changed.extend([Key::Cpu, Key::Messages]);
    }

    fn spawn(&mut self, line: &Line<'_>) {
        let task = self.add(line);
        task.parent = line.number("parent");
        task.site = line.key("at").map(Box::from);
        self.make_ready(line);
    }

    /// Adds the task of a line, parked. Removes everything that an earlier task with the same
    /// number left.
    fn add(&mut self, line: &Line<'_>) -> &mut Task {
        self.exit(line.task);
        let task = Task {
            name: line.name().into(),
            doing: Doing::Parked,
            since: line.at,
            from: line.seq,
            parent: None,
            site: None,
            place: 0,
            is_on_a_waker: false,
            waits: BTreeSet::new(),
            scopes: BTreeSet::new(),
            pending: BTreeSet::new(),
            holds: BTreeSet::new(),
        };
        self.tasks.entry(line.task).or_insert(task)
    }

    /// The task of a line. If the log lacks its spawn, the task begins here.
    fn known(&mut self, line: &Line<'_>) -> Option<&mut Task> {
        if line.task == 0 || is_wakeup(line) {
            return None;
        }
        if !self.tasks.contains_key(&line.task) {
            self.add(line);
        }
        self.tasks.get_mut(&line.task)
    }

    /// Makes a parked task ready. A ready task keeps its place, and a running one continues.
    fn make_ready(&mut self, line: &Line<'_>) {
        let place = self.places;
        let Some(task) = self.known(line).filter(|task| task.doing == Doing::Parked) else {
            return;
        };
        (task.doing, task.since, task.from) = (Doing::Ready, line.at, line.seq);
        task.place = place;
        self.queue.insert(place, line.task);
        self.places += 1;
        let queue = if self.next_from.is_some() { Key::Next } else { Key::Ready };
        self.changed.extend([Key::Task(line.task), queue]);
    }

    /// Removes a task from the ready queue, if it is there.
    fn leave_queue(&mut self, place: u64, id: u64) {
        if self.queue.get(&place) == Some(&id) {
            self.queue.remove(&place);
            let is_next = self.next_from.is_some_and(|from| place >= from);
            self.changed.push(if is_next { Key::Next } else { Key::Ready });
        }
    }

    fn run(&mut self, line: &Line<'_>) {
        // The log lacks the line with which that task left the CPU.
        if let Some(id) = self.cpu.take()
            && let Some(other) = self.tasks.get_mut(&id)
        {
            (other.doing, other.since, other.from) = (Doing::Parked, line.at, line.seq);
            self.changed.push(Key::Task(id));
        }
        let Some(task) = self.known(line) else { return };
        (task.doing, task.since, task.from) = (Doing::Running, line.at, line.seq);
        task.is_on_a_waker = false;
        let place = task.place;
        self.leave_queue(place, line.task);
        self.next_from.get_or_insert(self.places);
        self.cpu = Some(line.task);
        self.changed.extend([Key::Task(line.task), Key::Cpu]);
    }

    fn block(&mut self, line: &Line<'_>) {
        let Some(task) = self.known(line) else { return };
        (task.doing, task.since, task.from) = (Doing::Parked, line.at, line.seq);
        task.is_on_a_waker = line.word(0) == "waker";
        let place = task.place;
        self.leave_queue(place, line.task);
        self.leave_cpu(line.task);
        self.changed.push(Key::Task(line.task));
        self.open(line);
    }

    fn leave_cpu(&mut self, id: u64) {
        if self.cpu == Some(id) {
            self.cpu = None;
            self.changed.push(Key::Cpu);
        }
    }

    /// Begins a wait, if the line has a ticket.
    fn open(&mut self, line: &Line<'_>) {
        let Some(ticket) = line.ticket.filter(|_| line.task != 0) else { return };
        self.close(ticket);
        let until = line.key("until").and_then(|until| until.parse().ok());
        let store = match line.word(0) {
            // A sleep of zero duration is served in the next turn, and needs no timer.
            "sleep" if line.word(1) == "0s" => Store::Nowhere,
            "sleep" => until.filter(|at| *at != Time::NEVER).map_or(Store::Nowhere, Store::Timers),
            "io" => {
                let side = DIRECTIONS.iter().position(|direction| *direction == line.word(2));
                let place = Alias::of(line.word(1)).zip(side);
                place.map_or(Store::Nowhere, |(alias, side)| Store::Descriptor(alias, side))
            }
            "yield" | "join" | "offload" | "waker" | "foreign" | "outside" | "parked" => {
                Store::Nowhere
            }
            _ => Store::Primitive,
        };
        let scope = self.scope_of(line);
        let wait = Wait {
            task: line.task,
            op: line.op().into(),
            seq: line.seq,
            since: line.at,
            until,
            scope,
            site: line.key("at").map(Box::from),
            store,
        };
        self.store(ticket, &wait);
        self.waits.insert(ticket, wait);
        if let Some(task) = self.known(line) {
            task.waits.insert(ticket);
        }
        if let Some(scope) = scope.and_then(|scope| self.scopes.get_mut(&scope)) {
            scope.waits.insert(ticket);
        }
        self.changed.push(Key::Wait(ticket));
    }

    /// Adds a wait to the other table that lists it.
    fn store(&mut self, ticket: u64, wait: &Wait) {
        match wait.store {
            Store::Nowhere => {}
            Store::Timers(until) => self.set_timer(until, TimerName::Sleep(ticket), wait.seq),
            Store::Descriptor(alias, side) => {
                self.descriptors.entry(alias).or_default().waits[side] = Some(ticket);
                self.changed.push(Key::Descriptor(alias));
            }
            Store::Primitive => {
                self.primitives.entry(wait.op.clone()).or_default().waits.insert(ticket);
                self.changed.push(Key::Primitive(wait.op.clone()));
                self.changed.push(Key::Notified(wait.op.clone()));
            }
        }
    }

    /// A wait is over.
    fn close(&mut self, ticket: u64) -> Option<Wait> {
        let wait = self.waits.remove(&ticket)?;
        self.changed.push(Key::Wait(ticket));
        if let Some(task) = self.tasks.get_mut(&wait.task) {
            task.waits.remove(&ticket);
        }
        if let Some(scope) = wait.scope.and_then(|scope| self.scopes.get_mut(&scope)) {
            scope.waits.remove(&ticket);
        }
        match wait.store {
            Store::Nowhere => {}
            Store::Timers(until) => self.remove_timer(until, TimerName::Sleep(ticket)),
            Store::Descriptor(alias, side) => {
                if let Some(descriptor) = self.descriptors.get_mut(&alias)
                    && descriptor.waits[side] == Some(ticket)
                {
                    descriptor.waits[side] = None;
                    self.forget_idle(alias);
                }
            }
            Store::Primitive => {
                if let Some(primitive) = self.primitives.get_mut(&wait.op) {
                    primitive.waits.remove(&ticket);
                    self.forget_unused(&wait.op);
                    self.changed.push(Key::Notified(wait.op.clone()));
                }
            }
        }
        Some(wait)
    }

    /// Ends a wait by a `wake`, a `deliver` or a `withdraw`.
    fn end(&mut self, line: &Line<'_>) {
        let wait = line.ticket.and_then(|ticket| self.close(ticket));
        if line.verb == "deliver" {
            self.take(line, wait.and_then(|wait| wait.scope));
        }
        if line.verb != "withdraw" {
            self.make_ready(line);
        }
    }

    /// Removes an ended task with everything that belonged to it.
    fn exit(&mut self, id: u64) {
        let Some(task) = self.tasks.remove(&id) else { return };
        self.leave_queue(task.place, id);
        self.leave_cpu(id);
        self.changed.push(Key::Task(id));
        self.changed.extend(task.pending.iter().map(|pending| Key::Pending(id, *pending)));
        task.waits.iter().for_each(|ticket| drop(self.close(*ticket)));
        task.scopes.iter().for_each(|scope| self.remove_scope(*scope));
        for words in &task.holds {
            if let Some(primitive) = self.primitives.get_mut(words) {
                primitive.holders.remove(&id);
                self.forget_unused(words);
            }
        }
    }

    fn set_timer(&mut self, until: Time, name: TimerName, seq: Seq) {
        self.timers.insert((until, name), seq);
        self.changed.push(Key::Timer(name));
    }

    fn remove_timer(&mut self, until: Time, name: TimerName) {
        if self.timers.remove(&(until, name)).is_some() {
            self.changed.push(Key::Timer(name));
        }
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod state_tests;
