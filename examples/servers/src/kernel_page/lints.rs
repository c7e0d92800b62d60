//! Lints: habits of tasks that are often mistakes, each with the log lines that show it.
//!
//! A lint is a hint, not a proof of a fault. Two kinds are remembered when they happen, because
//! their task may have ended since: a run that was too long, and a sleep with a lock. The others
//! are about tasks that live now, and are looked for when an update of the page is made.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Event, Line, Op};
use serde_json::{Value, json};
use traps::Time;

use super::board::Task;
use super::kept::Kept;

/// The largest numbers of remembered lints, of lints in an update, and of primitives whose last
/// notification is remembered.
const REMEMBERED: usize = 32;
const SHOWN: usize = 32;
const NOTIFIED: usize = 256;

/// A task wakes itself if it did so this often, and in more than half of its wakes.
const OWN_WAKES: u64 = 100;

/// A wait for a wake that was lost lasts this long before the lint is shown.
const LOST: Duration = Duration::from_secs(5);

/// The kinds of primitives whose queues are measured. At the others, waiting tasks are often idle.
const MEASURED: [&str; 4] = ["mutex", "rwlock", "semaphore", "queue_put"];

/// A queue only grows if it has got longer by this many waits in this time, and never shorter.
const GROWN: usize = 5;
const GROWING: Duration = Duration::from_secs(10);

/// What is known of a task for its lints.
#[derive(Default)]
pub struct Habits {
    wakes: u64,
    /// The wakes by the task itself, and the newest of them.
    own_wakes: u64,
    own_wake: Option<Kept>,
    /// Whether the kernel has made the task yield, so that its next wake is not the task's own.
    must_yield: bool,
    /// The named locks that the task holds, with the lines that took them.
    locks: Vec<(String, Kept)>,
    /// The primitives at which the task waits, with the tickets.
    waits: Vec<Wait>,
    /// The line that reports the drop of the task's handle.
    dropped: Option<Kept>,
}

struct Wait {
    ticket: u64,
    primitive: Rc<str>,
    line: Kept,
    /// The last notification of the primitive before the wait, if it woke no task.
    lost: Option<Kept>,
}

/// A lint that is remembered.
struct Seen {
    count: u64,
    at: Time,
    text: String,
    lines: Vec<Kept>,
}

/// A queue, since it was last shorter than before.
struct Growth {
    since: Time,
    from: usize,
    to: usize,
}

/// The lints of a kernel.
#[derive(Default)]
pub struct Lints {
    /// By the kind, and by what the texts of one kind have in common.
    seen: BTreeMap<(&'static str, String), Seen>,
    /// The primitives whose last notification woke no task, with that line.
    lost: BTreeMap<String, Kept>,
    queues: BTreeMap<Rc<str>, Growth>,
}

impl Habits {
    /// The named locks that the task holds.
    pub fn locks(&self) -> impl Iterator<Item = &str> {
        self.locks.iter().map(|(name, _)| name.as_str())
    }

    fn give(&mut self, lock: &str) {
        if let Some(place) = self.locks.iter().position(|(held, _)| held == lock) {
            self.locks.remove(place);
        }
    }

    fn end(&mut self, ticket: Option<u64>) {
        self.waits.retain(|wait| Some(wait.ticket) != ticket);
    }

    /// Counts a wake. `cause` is its cause, if that line is kept.
    fn wake(&mut self, task: u64, kept: &Kept, cause: Option<&Kept>) {
        self.wakes += 1;
        let is_own = cause.is_some_and(|cause| cause.task == task);
        if is_own && !std::mem::take(&mut self.must_yield) {
            self.own_wakes += 1;
            self.own_wake = Some(kept.clone());
        }
    }
}

impl Lints {
    /// Updates the habits of the task of `line`. `cause` is the line that woke the task, if `line`
    /// is a wake.
    pub fn follow(&mut self, line: &Line<'_>, kept: &Kept, task: &mut Task, cause: Option<&Kept>) {
        let habits = &mut task.habits;
        match &line.event {
            Event::Wake { ticket, .. } => {
                habits.wake(line.task, kept, cause);
                habits.end(*ticket);
            }
            Event::Deliver { ticket, .. } | Event::Withdraw { ticket } => habits.end(Some(*ticket)),
            Event::Yielded { .. } => habits.must_yield = true,
            Event::Await { op, wait } | Event::Block { op, wait: Some(wait) } => {
                if let Some(primitive) = primitive(op) {
                    let lost = self.lost.get(&primitive).cloned();
                    let (ticket, line) = (wait.ticket, kept.clone());
                    let primitive = primitive.into();
                    habits.waits.push(Wait { ticket, primitive, line, lost });
                }
                if let Op::Sleep { span, .. } = op
                    && !span.is_zero()
                    && let Some((lock, taken)) = habits.locks.first()
                {
                    let text = format!("{} held {lock} during a sleep of {span:?}", line.name);
                    let lines = vec![taken.clone(), kept.clone()];
                    self.see("a lock held over a sleep", lock.clone(), line.at, text, lines);
                }
            }
            Event::Take { kind, name, .. } if matches!(&**kind, "mutex" | "rwlock") => {
                habits.locks.push((format!("{kind} {name}"), kept.clone()));
            }
            Event::Give { kind, name, from: None } => {
                habits.give(&format!("{kind} {name}"));
            }
            // On a busy machine a run can be long because another process had the CPU.
            Event::Longrun { ran, cpu, .. }
                if cpu.is_none_or(|cpu| 2 * cpu.as_micros() > ran.as_micros()) =>
            {
                let ran = Duration::from_micros(cpu.unwrap_or(*ran).as_micros());
                let text = format!("{} had the CPU for {ran:?} between two traps", line.name);
                let family = family(&line.name);
                self.see("never yields", family, line.at, text, vec![kept.clone()]);
            }
            Event::Notify { op, woke } => {
                let Some(primitive) = primitive(op) else { return };
                self.lost.remove(&primitive);
                if *woke == 0 {
                    if self.lost.len() >= NOTIFIED {
                        self.lost.pop_first();
                    }
                    self.lost.insert(primitive, kept.clone());
                }
            }
            _ => {}
        }
    }

    fn see(&mut self, kind: &'static str, of: String, at: Time, text: String, lines: Vec<Kept>) {
        let key = (kind, of);
        let count = self.seen.get(&key).map_or(0, |seen| seen.count) + 1;
        self.seen.insert(key, Seen { count, at, text, lines });
        if self.seen.len() > REMEMBERED {
            let oldest = self.seen.iter().min_by_key(|(_, seen)| seen.at);
            let oldest = oldest.expect("there are lints").0.clone();
            self.seen.remove(&oldest);
        }
    }

    /// Returns all lints at the time `now`, as JSON.
    pub fn list(&mut self, tasks: &BTreeMap<u64, Task>, now: Time) -> Value {
        self.measure_queues(tasks, now);
        let mut found = Vec::new();
        let mut add = |kind: &str, at: Time, text: String, lines: &[&Kept]| {
            let lines: Vec<_> = lines.iter().map(|kept| kept.text()).collect();
            found.push(json!({ "kind": kind, "at": at.as_micros(), "text": text, "lines": lines }));
        };
        for ((kind, _), Seen { count, at, text, lines }) in &self.seen {
            let lines: Vec<_> = lines.iter().collect();
            add(kind, *at, with_count(text, *count, "times"), &lines);
        }
        for (primitive, Growth { since, from, to }) in &self.queues {
            if now.since(*since) >= GROWING && *to >= from + GROWN {
                let waits = tasks.values().flat_map(|task| &task.habits.waits);
                let newest = waits.filter(|wait| wait.primitive == *primitive);
                let Some(newest) = newest.max_by_key(|wait| wait.line.seq) else { continue };
                let text = format!("{from} waited for {primitive}, and now {to} do");
                add("a queue that only grows", *since, text, &[&newest.line]);
            }
        }
        // Tasks of one family have one lint of each kind.
        let mut families = BTreeMap::new();
        for (id, task) in tasks {
            for lint in lints_of(*id, task, now) {
                let (count, _) = families.entry((lint.0, family(&task.name))).or_insert((0, lint));
                *count += 1;
            }
        }
        for (count, (kind, at, text, lines)) in families.into_values() {
            add(kind, at, with_count(&text, count, "tasks"), &lines);
        }
        found.truncate(SHOWN);
        Value::Array(found)
    }

    fn measure_queues(&mut self, tasks: &BTreeMap<u64, Task>, now: Time) {
        let mut sizes = BTreeMap::<Rc<str>, usize>::new();
        for wait in tasks.values().flat_map(|task| &task.habits.waits) {
            let kind = wait.primitive.split(' ').next().unwrap_or_default();
            if MEASURED.contains(&kind) {
                *sizes.entry(wait.primitive.clone()).or_default() += 1;
            }
        }
        self.queues.retain(|primitive, _| sizes.contains_key(primitive));
        for (primitive, size) in sizes {
            let queue = self.queues.entry(primitive);
            let queue = queue.or_insert(Growth { since: now, from: size, to: size });
            if size < queue.to {
                (queue.since, queue.from) = (now, size);
            }
            queue.to = size;
        }
    }

    /// Updates the habits of another task than that of `line`: its handle was dropped, or a lock of
    /// it was given back.
    pub fn follow_others(line: &Line<'_>, kept: &Kept, tasks: &mut BTreeMap<u64, Task>) {
        match &line.event {
            Event::Give { kind, name, from: Some(from) } => {
                let lock = format!("{kind} {name}");
                if let Some(task) = tasks.get_mut(from) {
                    task.habits.give(&lock);
                }
            }
            Event::Warn { text } => {
                let words = text.strip_prefix("the handle of task ");
                let id = words.and_then(|words| words.split_once(" was dropped unused"));
                let id = id.and_then(|(id, _)| id.parse::<u64>().ok());
                if let Some(task) = id.and_then(|id| tasks.get_mut(&id)) {
                    task.habits.dropped = Some(kept.clone());
                }
            }
            _ => {}
        }
    }
}

/// A lint: its kind, its time, its text, and the lines that show it.
type Found<'a> = (&'static str, Time, String, Vec<&'a Kept>);

/// Returns the lints about a task that lives.
fn lints_of(id: u64, task: &Task, now: Time) -> Vec<Found<'_>> {
    let (name, habits) = (&task.name, &task.habits);
    let mut found: Vec<Found<'_>> = Vec::new();
    let (own, all) = (habits.own_wakes, habits.wakes);
    if let Some(wake) = &habits.own_wake
        && own >= OWN_WAKES
        && own * 2 > all
    {
        let text = format!("{name} ({id}) has caused {own} of its {all} wakes itself");
        found.push(("wakes itself", wake.at, text, vec![wake]));
    }
    if let Some(dropped) = &habits.dropped {
        let text = format!("{name} ({id}) runs, and no task can join it");
        found.push(("no handle", dropped.at, text, vec![dropped]));
    }
    for Wait { primitive, line, lost, .. } in &habits.waits {
        let Some(lost) = lost else { continue };
        if now.since(line.at) >= LOST {
            let text = format!(
                "{name} ({id}) waits for {primitive}, which was last notified before, when no \
                 task waited"
            );
            found.push(("perhaps a lost wake", line.at, text, vec![lost, line]));
        }
    }
    found
}

fn with_count(text: &str, count: u64, of: &str) -> String {
    match count {
        1 => text.to_owned(),
        _ => format!("{text} ({count} {of})"),
    }
}

/// Returns the kind and the name of a primitive, or the number of its queue.
fn primitive(op: &Op<'_>) -> Option<String> {
    match op {
        Op::Primitive(it) if it.name.is_empty() => Some(format!("{} q{}", it.kind, it.queue)),
        Op::Primitive(it) => Some(format!("{} {}", it.kind, it.name)),
        Op::Wait { queue } => Some(format!("wait q{queue}")),
        _ => None,
    }
}

/// Returns a name with a star for each number: tasks whose names differ only in numbers are of one
/// family.
fn family(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            true if text.ends_with('*') => {}
            true => text.push('*'),
            false => text.push(letter),
        }
    }
    text
}
