//! What is known of the tasks of a kernel, from its events alone.
//!
//! It grows with the number of tasks that live: each has a few lines of the log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use kernel::trace::{Alias, Arrival, Event, Line, Op, Outcome, Timer};
use serde_json::{Value, json};
use traps::Time;

/// So many lines are kept, to find what is behind a wake.
const KEPT: usize = 4_000;

/// So many of the last lines are sent.
const SENT: usize = 200;

/// So many tasks are sent.
const TASKS: usize = 5_000;

/// So many tasks that have ended are remembered, for a page that still shows them.
const GONE: usize = 10_000;

/// A line of the log.
type Text = Rc<str>;

/// One task.
#[derive(Default)]
struct Row {
    name: String,
    parent: Option<u64>,
    state: &'static str,
    since: Time,
    runs: u64,
    /// How long it ran while somebody looked.
    busy: Duration,
    /// Its open waits: their tickets, and the lines that opened them.
    waits: Vec<(u64, Text)>,
    /// The line with which it left the CPU.
    left: Option<Text>,
    /// Why it is ready: the wait that ended, what ended it, and its `wake`.
    woken: Vec<Text>,
    /// The same of its last run, and the `run` line.
    why: Vec<Text>,
    /// When its deadlines pass: of open scopes, by number, and of its connection.
    deadlines: BTreeMap<u64, Time>,
    /// The descriptor that it used last.
    alias: Option<Alias>,
    /// The number of events when it last changed.
    changed: u64,
}

/// What the page shows.
#[derive(Default)]
pub struct Board {
    tasks: BTreeMap<u64, Row>,
    /// Tasks that have ended, and when.
    gone: VecDeque<(u64, u64)>,
    counts: BTreeMap<&'static str, u64>,
    /// How many events were shown.
    pub count: u64,
    /// The last of them, with their numbers in the log.
    lines: VecDeque<(u64, Text)>,
    at: Time,
    /// How many look at it now.
    pub viewers: usize,
    /// When the task that runs got the CPU.
    started: Option<Instant>,
    /// Tasks that serve this page, and what is theirs.
    hidden: BTreeSet<u64>,
    aliases: BTreeSet<Alias>,
    timers: BTreeSet<Timer>,
}

impl Board {
    /// Shows nothing of that task any more.
    pub fn hide(&mut self, task: u64) {
        self.hidden.insert(task);
        let row = self.tasks.remove(&task);
        self.aliases.extend(row.and_then(|row| row.alias));
        self.forget(task);
    }

    pub fn event(&mut self, line: &Line<'_>) {
        if self.is_hidden(line) {
            return;
        }
        self.at = line.at;
        self.count += 1;
        *self.counts.entry(line.event.verb()).or_default() += 1;
        let text: Text = line.to_string().into();
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back((line.seq, text.clone()));
        if line.task > 0 {
            self.follow(line, text);
        }
    }

    /// Whether an event is of this page's own making.
    fn is_hidden(&mut self, line: &Line<'_>) -> bool {
        if self.hidden.contains(&line.task) {
            match &line.event {
                Event::Block { op: Op::Sleep { .. }, ticket: Some(ticket), .. }
                | Event::Await { op: Op::Sleep { .. }, ticket: Some(ticket), .. } => {
                    self.timers.insert(Timer::Sleep(*ticket));
                }
                Event::Trap { outcome: Outcome::Scope(scope), .. } => {
                    self.timers.insert(Timer::Scope(*scope));
                }
                Event::Arm { timer, .. } => drop(self.timers.insert(*timer)),
                Event::Io { alias, .. } => drop(self.aliases.insert(*alias)),
                Event::Exit { .. } => drop(self.hidden.remove(&line.task)),
                _ => {}
            }
            return true;
        }
        match &line.event {
            Event::Fire { timer, .. } => self.timers.remove(timer),
            Event::Arrive(Arrival::Io { alias, .. })
            | Event::Remember { alias, .. }
            | Event::Unregister { alias, .. } => self.aliases.contains(alias),
            Event::Tick { .. } => !self.hidden.is_empty(),
            _ => false,
        }
    }

    /// The line of that number, if it is kept.
    fn line(&self, seq: u64) -> Option<Text> {
        let at = self.lines.binary_search_by_key(&seq, |(seq, _)| *seq).ok()?;
        Some(self.lines[at].1.clone())
    }

    /// A task does something else now.
    fn follow(&mut self, line: &Line<'_>, text: Text) {
        let cause = match &line.event {
            Event::Wake { cause, .. } | Event::Deliver { cause, .. } => self.line(*cause),
            Event::Spawn { cause: Some(cause), .. } => self.line(*cause),
            Event::Exit { .. } => {
                self.started = None;
                self.tasks.remove(&line.task);
                self.forget(line.task);
                return;
            }
            _ => None,
        };
        let is_watched = self.viewers > 0;
        let row = self.tasks.entry(line.task).or_default();
        row.changed = self.count;
        if row.name.is_empty() {
            row.name = line.name.to_string();
        }
        match &line.event {
            Event::Run { .. } => self.started = is_watched.then(Instant::now),
            Event::Block { .. } => {
                row.busy += self.started.take().map_or(Duration::ZERO, |since| since.elapsed());
            }
            _ => {}
        }
        row.follow(line, text, cause);
    }

    fn forget(&mut self, task: u64) {
        if self.gone.len() == GONE {
            self.gone.pop_front();
        }
        self.gone.push_back((self.count, task));
    }

    /// Why a task is where it is, as a list of lines in JSON.
    pub fn why(&self, task: u64) -> Option<String> {
        let row = self.tasks.get(&task)?;
        let mut lines: Vec<&Text> = row.why.iter().chain(&row.woken).chain(&row.left).collect();
        lines.extend(row.waits.iter().map(|(_, line)| line));
        let lines: BTreeMap<_, _> = lines.into_iter().map(|line| (number_of(line), line)).collect();
        Some(json!(lines.values().map(|line| &***line).collect::<Vec<_>>()).to_string())
    }

    /// What has changed since so many events were shown, as JSON; all of it for the first time.
    /// `tasks` are `[id, parent, name, state, since, runs, busy, until, lines]`, times in
    /// microseconds, `lines` those of the waits.
    pub fn changes(&self, shown: Option<u64>) -> String {
        let is_new = |changed: u64| shown.is_none_or(|shown| changed > shown);
        let rows = self.tasks.iter().take(TASKS).filter(|(_, row)| is_new(row.changed));
        let tasks: Vec<Value> = rows.map(|(id, row)| row.json(*id)).collect();
        let gone = self.gone.iter().filter(|(at, _)| shown.is_some_and(|shown| *at >= shown));
        let fresh = usize::try_from(self.count - shown.unwrap_or(0)).unwrap_or(SENT);
        let fresh = fresh.min(SENT).min(self.lines.len());
        let events = self.lines.range(self.lines.len() - fresh..);
        json!({
            "at": self.at.as_micros(),
            "count": self.count,
            "live": self.tasks.len(),
            "counts": self.counts,
            "first": shown.is_none(),
            "tasks": tasks,
            "gone": gone.map(|(_, task)| task).collect::<Vec<_>>(),
            "events": events.map(|(_, line)| &**line).collect::<Vec<_>>(),
        })
        .to_string()
    }
}

/// The number of a line, for an order.
fn number_of(line: &str) -> u64 {
    let number = line.split_whitespace().find_map(|word| word.strip_prefix('#'));
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

impl Row {
    fn follow(&mut self, line: &Line<'_>, text: Text, cause: Option<Text>) {
        match &line.event {
            Event::Spawn { parent, .. } => {
                self.parent = *parent;
                self.wake(None, cause, text, line.at);
            }
            Event::Wake { ticket, .. } => self.wake(*ticket, cause, text, line.at),
            Event::Deliver { ticket, .. } => self.wake(Some(*ticket), cause, text, line.at),
            Event::Withdraw { ticket } => drop(self.end(*ticket)),
            Event::Run { .. } => {
                self.woken.push(text);
                self.why = std::mem::take(&mut self.woken);
                self.runs += 1;
                self.go("running", line.at);
            }
            Event::Await { ticket, .. } => {
                self.waits.extend(ticket.map(|ticket| (ticket, text)));
            }
            Event::Block { ticket, .. } => {
                self.waits.extend(ticket.map(|ticket| (ticket, text.clone())));
                self.left = Some(text);
                self.go("parked", line.at);
            }
            Event::Io { alias, .. } => self.alias = Some(*alias),
            Event::Arm { until, .. } => drop(self.deadlines.insert(0, *until)),
            Event::Disarm { .. } => drop(self.deadlines.remove(&0)),
            Event::Trap {
                op: Op::SetTimeout { until: Some(until), .. },
                outcome: Outcome::Scope(scope),
                ..
            } => drop(self.deadlines.insert(*scope, *until)),
            Event::Trap { op: Op::UnsetTimeout { scope }, .. } => {
                self.deadlines.remove(scope);
            }
            _ => {}
        }
    }

    fn go(&mut self, state: &'static str, at: Time) {
        (self.state, self.since) = (state, at);
    }

    /// The line that opened a wait, which has ended.
    fn end(&mut self, ticket: u64) -> Option<Text> {
        let at = self.waits.iter().position(|(open, _)| *open == ticket)?;
        Some(self.waits.remove(at).1)
    }

    /// It is ready, unless it runs.
    fn wake(&mut self, ticket: Option<u64>, cause: Option<Text>, line: Text, at: Time) {
        let wait = ticket.and_then(|ticket| self.end(ticket));
        // The first wakes make it ready; more change nothing.
        if self.state != "running" && self.woken.len() < 9 {
            self.woken.extend(wait.into_iter().chain(cause).chain([line]));
            self.go("ready", at);
        }
    }

    fn json(&self, id: u64) -> Value {
        let until = self.deadlines.values().min().filter(|until| **until != Time::NEVER);
        let lines = self.waits.iter().map(|(_, line)| &**line);
        let left = self.left.iter().map(|line| &**line).filter(|_| self.waits.is_empty());
        json!([
            id,
            self.parent,
            self.name,
            self.state,
            self.since.as_micros(),
            self.runs,
            self.busy.as_micros() as u64,
            until.map(|until| until.as_micros()),
            lines.chain(left).collect::<Vec<_>>(),
        ])
    }
}
