//! The data of the live page about a kernel, gathered from the events of its log.
//!
//! The memory is bounded: the last [`EVENTS`] lines, and for each task that has not ended its first
//! line, the wait that it was woken from, the line that woke it with the cause of that line, its
//! last `run` and `block`, and one line for each of its open waits, scopes and deadlines. So a task
//! that parked long ago can still be explained.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

use kernel::trace::{Alias, Arrival, Event, Line, Op, Outcome, Parent, Seq, Timer};
use traps::Time;

use super::kept::{Kept, Words};
use super::lints::{Habits, Lints};
use super::metrics::Totals;

/// The number of log lines that are kept. Line number `n` is at `n % EVENTS`.
pub const EVENTS: usize = 256;

/// A task that has not ended, with the log lines that explain it.
pub struct Task {
    pub name: Rc<str>,
    pub parent: Option<u64>,
    pub state: &'static str,
    pub since: Time,
    pub runs: u64,
    /// The CPU time of the task while a page was open.
    pub ran: Duration,
    pub spawn: Option<Kept>,
    pub wake: Option<Kept>,
    pub cause: Option<Kept>,
    /// The line of the wait that the task was last woken from.
    pub ended: Option<Kept>,
    pub run: Option<Kept>,
    pub block: Option<Kept>,
    /// The `await` lines of the task's open waits, with their tickets.
    pub awaits: Vec<(u64, Kept)>,
    /// The timeouts and connection deadlines in force: the timer, its end, and `timeout` or the
    /// phase.
    pub limits: Vec<(Timer, Time, &'static str)>,
    /// The connection deadlines that the task made. Other tasks may arm them.
    deadlines: Vec<u64>,
    /// The number of the last event that changed the task.
    pub changed: Seq,
    /// The descriptor that the task used last.
    alias: Option<Alias>,
    pub habits: Habits,
}

#[derive(Default)]
pub struct Board {
    pub tasks: BTreeMap<u64, Task>,
    /// The number of events that are not hidden; `last` is the sequence number of the last of them.
    pub count: u64,
    pub last: Seq,
    pub totals: Totals,
    events: Vec<Option<Kept>>,
    words: Words,
    /// The task that made each connection deadline.
    owners: BTreeMap<u64, u64>,
    /// The name in the log lines of the kernel itself.
    kernel: Option<Rc<str>>,
    /// The number of open pages. The clock is read only while a page is open.
    pub viewers: usize,
    /// The time when the running task got the CPU.
    running: Option<Instant>,
    /// The CPU time of the tasks while a page was open; `own` is the CPU time of the tasks that
    /// serve the page.
    pub ran: Duration,
    pub own: Duration,
    /// The tasks that serve the page.
    hidden: BTreeSet<u64>,
    /// The descriptors of these tasks, each with its task, and whether it is registered. A
    /// registered descriptor stays until it is unregistered, which may be after the end of its
    /// task.
    aliases: BTreeMap<Alias, (u64, bool)>,
    /// The timers of these tasks, each with its task.
    timers: BTreeMap<Timer, u64>,
    pub lints: Lints,
    /// The ready tasks, and the largest number of them since the last update of the page.
    ready: usize,
    most_ready: usize,
    /// The tasks that ran or were ready at the last look, and the time of the next look.
    pub look: Vec<Seen>,
    pub next_look: Time,
}

/// A task that runs or is ready at a look: its number, its state, for how long, and the number of
/// the line that made it ready.
pub type Seen = (u64, &'static str, Duration, Seq);

impl Board {
    pub fn hide(&mut self, task: u64) {
        self.hidden.insert(task);
        let known = self.remove(task);
        self.totals.hide(known.is_some());
        let alias = known.and_then(|known| known.alias);
        self.aliases.extend(alias.map(|alias| (alias, (task, true))));
    }

    /// The number of things that are hidden now: tasks, descriptors and timers.
    pub fn hidden(&self) -> usize {
        self.hidden.len() + self.aliases.len() + self.timers.len()
    }

    /// Forgets a hidden task that has ended.
    fn unhide(&mut self, task: u64) {
        self.hidden.remove(&task);
        self.aliases.retain(|_, (of, is_registered)| *of != task || *is_registered);
        self.timers.retain(|_, of| *of != task);
    }

    fn is_ready(&self, task: u64) -> bool {
        self.tasks.get(&task).is_some_and(|task| task.state == "ready")
    }

    /// Looks which tasks run and are ready. An update is made while the page's own task runs, often
    /// when all others have run. So the look is at the first run of another task that is due.
    fn look(&mut self, now: Time) {
        self.next_look = Time::NEVER;
        let busy = self.tasks.iter().filter(|(_, task)| task.state != "parked");
        let seen = busy.map(|(id, task)| {
            let woken = task.wake.as_ref().or(task.spawn.as_ref());
            (*id, task.state, now.since(task.since), woken.map_or(0, |kept| kept.seq))
        });
        self.look = seen.collect();
    }

    /// Returns the largest number of ready tasks since the last call.
    pub fn take_most_ready(&mut self) -> usize {
        std::mem::replace(&mut self.most_ready, self.ready)
    }

    fn remove(&mut self, task: u64) -> Option<Task> {
        let known = self.tasks.remove(&task)?;
        for number in &known.deadlines {
            self.owners.remove(number);
        }
        Some(known)
    }

    pub fn event(&mut self, line: &Line<'_>) {
        let ran = self.measure(&line.event);
        if self.is_hidden(line) {
            self.own += ran;
            return;
        }
        self.count += 1;
        self.last = line.seq;
        self.totals.event(&line.event);
        let name = match line.task {
            0 => self.kernel.get_or_insert_with(|| (&*line.name).into()).clone(),
            task => self.tasks.get(&task).map_or_else(|| (&*line.name).into(), Task::name),
        };
        let kept = Kept::new(line, name, &mut self.words);
        Lints::follow_others(line, &kept, &mut self.tasks);
        if line.task > 0 {
            use Event::{Deliver, Exit, Run, Spawn, Wake};
            let moves = matches!(
                line.event,
                Spawn { .. } | Wake { .. } | Deliver { .. } | Run { .. } | Exit { .. }
            );
            self.ready -= usize::from(moves && self.is_ready(line.task));
            self.follow(line, &kept, ran);
            self.ready += usize::from(moves && self.is_ready(line.task));
            self.most_ready = self.most_ready.max(self.ready);
            let is_run = matches!(line.event, Run { .. });
            if is_run && self.viewers > 0 && line.at >= self.next_look {
                self.look(line.at);
            }
        }
        let place = place(line.seq);
        if place >= self.events.len() {
            self.events.resize(place + 1, None);
        }
        self.events[place] = Some(kept);
    }

    /// Returns the CPU time of a run when its task leaves the CPU, and zero at any other event.
    /// Returns zero too if no page was open when the run began.
    fn measure(&mut self, event: &Event<'_>) -> Duration {
        match event {
            Event::Run { .. } if self.viewers > 0 => self.running = Some(Instant::now()),
            Event::Block { .. } | Event::Exit { .. } => {
                return self.running.take().map_or(Duration::ZERO, |since| since.elapsed());
            }
            _ => {}
        }
        Duration::ZERO
    }

    /// Returns whether an event comes from the work of serving this page.
    fn is_hidden(&mut self, line: &Line<'_>) -> bool {
        let task = line.task;
        if self.hidden.contains(&task) {
            match &line.event {
                Event::Block { op: Op::Sleep { .. }, wait: Some(wait) }
                | Event::Await { op: Op::Sleep { .. }, wait } => {
                    self.timers.insert(Timer::Sleep(wait.ticket), task);
                }
                Event::Wake { ticket: Some(ticket), .. }
                | Event::Deliver { ticket, .. }
                | Event::Withdraw { ticket } => {
                    self.timers.remove(&Timer::Sleep(*ticket));
                }
                Event::Trap {
                    op: Op::SetTimeout { .. }, outcome: Outcome::Scope(scope), ..
                } => {
                    self.timers.insert(Timer::Scope(*scope), task);
                }
                Event::Trap { op: Op::UnsetTimeout { scope }, .. } => {
                    self.timers.remove(&Timer::Scope(*scope));
                }
                Event::Arm { timer, .. } => drop(self.timers.insert(*timer, task)),
                Event::Disarm { timer } => drop(self.timers.remove(timer)),
                Event::Io { alias, .. } => {
                    self.aliases.entry(*alias).or_insert((task, false));
                }
                Event::Register { alias, .. } => drop(self.aliases.insert(*alias, (task, true))),
                Event::Unregister { alias, .. } => drop(self.aliases.remove(alias)),
                Event::Exit { .. } => self.unhide(task),
                _ => {}
            }
            return true;
        }
        if self.hidden.is_empty() && self.aliases.is_empty() {
            return false;
        }
        match &line.event {
            Event::Fire { timer, .. } => self.timers.remove(timer).is_some(),
            Event::Arrive(Arrival::Io { alias, .. }) | Event::Remember { alias, .. } => {
                self.aliases.contains_key(alias)
            }
            Event::Unregister { alias, .. } => self.aliases.remove(alias).is_some(),
            Event::Tick { .. } => !self.hidden.is_empty(),
            _ => false,
        }
    }

    /// Updates the task of `line` with the event of `line`.
    fn follow(&mut self, line: &Line<'_>, kept: &Kept, ran: Duration) {
        self.ran += ran;
        if let Event::Exit { .. } = line.event {
            self.remove(line.task);
            return;
        }
        let cause = match line.event {
            Event::Wake { cause, .. } | Event::Deliver { cause, .. } => self.find(cause).cloned(),
            _ => None,
        };
        let task = self.tasks.entry(line.task).or_insert_with(|| Task::new(line, kept.name()));
        task.changed = line.seq;
        task.ran += ran;
        self.lints.follow(line, kept, task, cause.as_ref());
        match &line.event {
            Event::Spawn { parent, .. } => {
                task.parent = match parent {
                    Parent::Task(parent) => Some(*parent),
                    Parent::Kernel | Parent::Thread(_) => None,
                };
                task.spawn = Some(kept.clone());
            }
            Event::Wake { ticket, .. } => task.wake(line.at, *ticket, kept, cause),
            Event::Deliver { ticket, .. } => task.wake(line.at, Some(*ticket), kept, cause),
            Event::Withdraw { ticket } => task.awaits.retain(|(of, _)| of != ticket),
            Event::Run { .. } => {
                task.run = Some(kept.clone());
                task.runs += 1;
                (task.state, task.since) = ("running", line.at);
            }
            Event::Await { wait, .. } => task.awaits.push((wait.ticket, kept.clone())),
            Event::Block { .. } => {
                task.block = Some(kept.clone());
                (task.state, task.since) = ("parked", line.at);
            }
            Event::Io { alias, .. } => task.alias = Some(*alias),
            Event::Trap {
                op: Op::ConnectionDeadline, outcome: Outcome::Deadline(number), ..
            } => {
                task.deadlines.push(*number);
                self.owners.insert(*number, line.task);
            }
            _ => self.limit(line),
        }
    }

    /// Records the beginning or the end of a timeout or of an armed deadline, if `line` reports it.
    fn limit(&mut self, line: &Line<'_>) {
        let (timer, limit) = match &line.event {
            Event::Trap {
                op: Op::SetTimeout { until: Some(until), .. },
                outcome: Outcome::Scope(scope),
                ..
            } => (Timer::Scope(*scope), Some((*until, "timeout"))),
            Event::Trap { op: Op::UnsetTimeout { scope }, .. } => (Timer::Scope(*scope), None),
            Event::Arm { timer, until, phase, .. } => {
                (*timer, Some((*until, self.words.find(phase))))
            }
            Event::Disarm { timer } => (*timer, None),
            _ => return,
        };
        let task = match timer {
            Timer::Deadline(number) => self.owners.get(&number).copied(),
            _ => Some(line.task),
        };
        let Some(task) = task.and_then(|task| self.tasks.get_mut(&task)) else { return };
        task.changed = line.seq;
        task.limits.retain(|(known, ..)| *known != timer);
        task.limits.extend(limit.map(|(until, what)| (timer, until, what)));
    }

    /// Returns the log line with the number `seq`, if it is kept.
    pub fn find(&self, seq: Seq) -> Option<&Kept> {
        let found = self.events.get(place(seq))?.as_ref();
        found.filter(|kept| kept.seq == seq)
    }

    /// Returns the kept log lines after the line with the number `shown`, up to the line with the
    /// number `last`.
    pub fn between(&self, shown: Seq, last: Seq) -> impl Iterator<Item = &Kept> {
        let from = shown.max(self.last.saturating_sub(EVENTS as u64));
        (from + 1..=last).filter_map(|seq| self.find(seq))
    }
}

fn place(seq: Seq) -> usize {
    (seq % EVENTS as u64) as usize
}

impl Task {
    fn new(line: &Line<'_>, name: Rc<str>) -> Task {
        Task {
            name,
            parent: None,
            state: "ready",
            since: line.at,
            runs: 0,
            ran: Duration::ZERO,
            spawn: None,
            wake: None,
            cause: None,
            ended: None,
            run: None,
            block: None,
            awaits: Vec::new(),
            limits: Vec::new(),
            deadlines: Vec::new(),
            changed: line.seq,
            alias: None,
            habits: Habits::default(),
        }
    }

    fn name(&self) -> Rc<str> {
        self.name.clone()
    }

    fn wake(&mut self, at: Time, ticket: Option<u64>, kept: &Kept, cause: Option<Kept>) {
        let place = self.awaits.iter().position(|(of, _)| Some(*of) == ticket);
        let ended = place.map(|place| self.awaits.remove(place).1).or_else(|| self.block.clone());
        // The first line that made it ready is the reason why it will run.
        if self.state == "parked" {
            self.wake = Some(kept.clone());
            (self.cause, self.ended) = (cause, ended);
            (self.state, self.since) = ("ready", at);
        }
    }

    /// Returns the log lines of a parked task's waits: its `await` lines, or its `block` line if it
    /// has no `await` lines.
    pub fn waits(&self) -> impl Iterator<Item = &Kept> {
        let alone = self.block.as_ref().filter(|_| self.awaits.is_empty());
        let several = self.awaits.iter().map(|(_, kept)| kept);
        alone.into_iter().chain(several).filter(|_| self.state == "parked")
    }
}
