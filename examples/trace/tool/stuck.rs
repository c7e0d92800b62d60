//! The holders of the primitives that tasks wait for, and the tasks that wait for each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use kernel::trace::Seq;
use testing::trace::Line;

use super::living::{Living, Mark, SHOWN};
use super::model::{Names, State, is_primitive, notified_in_words, tasks_in_words, wait_in_words};
use super::now::Now;

/// An open wait for a primitive or a task.
#[derive(Debug)]
struct Wait {
    ticket: u64,
    /// The tasks that hold the primitive, or the task that it joins. None if the log does not say.
    held_by: Vec<u64>,
    /// Whether there are more holders than these.
    has_others: bool,
    /// Whether the holders are those of the `take` lines, because the line of the wait named none,
    /// or was in the head of a dump and may have named an old one.
    is_by_takes: bool,
    /// The first known holder, for a wait that has ended.
    first: Option<First>,
}

/// The holders that the line of a wait names, or the first task that took the primitive during the
/// wait. `why` says the same of a wait.
#[derive(Debug)]
struct First {
    held_by: Vec<u64>,
    has_others: bool,
    /// Where the only holder took it.
    site: Option<Box<str>>,
}

/// The time for which a wait is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Now, with the present holders.
    Now,
    /// The whole wait, which ends, with the first holders.
    All,
}

/// The number of lines whose tasks are remembered.
const LINES: usize = 1 << 12;

/// The open waits for primitives and tasks.
///
/// Holders are known from the `block` or `await` line of the wait, and from later lines of a
/// primitive of that kind and name. A `wake` that a holder caused hands the primitive to the woken
/// task. A `block` that names one of the holders names all of them. It names none while a primitive
/// is handed over: then the next `take` line has the holder. A primitive without a name has no such
/// line, so a lock that was taken, or a permit that was released, without a wake is visible only in
/// the next `block` or `await` line. Such a line names four holders at most, and two primitives
/// with the same name differ only in their holders.
#[derive(Debug, Default)]
pub struct Holders {
    by_op: BTreeMap<Box<str>, Vec<Wait>>,
    /// The primitive or task that each of these tickets waits for.
    ops: BTreeMap<u64, Box<str>>,
    /// The numbers and the tasks of the last lines.
    tasks: VecDeque<(Seq, u64)>,
    /// How often each task has taken the primitive that it holds, and the last call site.
    taken: BTreeMap<(u64, Box<str>), (u64, Box<str>)>,
    /// The last notification of each primitive and queue: the line, the task, and how many it woke.
    notified: BTreeMap<Box<str>, (Seq, u64, u64)>,
}

/// The number of primitives and queues whose last notification is remembered.
const NOTIFIED: usize = 1024;

impl Holders {
    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        let ticket = if waits(line) { line.number("k") } else { None };
        match (line.verb, ticket) {
            ("wake", ticket) => {
                ticket.into_iter().for_each(|ticket| self.close(ticket));
                // Most waits are not for anything that a task holds.
                if let Some(waits) = self.by_op.get_mut(line.op()) {
                    let cause = line.cause.unwrap_or_default();
                    let place = self.tasks.binary_search_by_key(&cause, |(seq, _)| *seq);
                    let by = place.map_or(0, |place| self.tasks[place].1);
                    waits.iter_mut().for_each(|wait| wait.hand_over(by, line.task));
                }
            }
            ("deliver" | "withdraw", Some(ticket)) => self.close(ticket),
            ("block" | "await", Some(ticket)) => self.open(ticket, line),
            ("take", _) => self.take(line),
            ("give", _) => {
                let key = (line.number("from").unwrap_or(line.task), line.op().into());
                if let Some((count, _)) = self.taken.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 {
                        self.taken.remove(&key);
                    }
                }
            }
            ("notify", _) => {
                let woke = line.number("woke").unwrap_or(0);
                self.notified.insert(line.op().into(), (line.seq, line.task, woke));
                if self.notified.len() > NOTIFIED {
                    let oldest = self.notified.iter().min_by_key(|(_, (seq, ..))| *seq);
                    let oldest = oldest.expect("there are many").0.clone();
                    self.notified.remove(&oldest);
                }
            }
            ("exit", _) => self.taken.retain(|(task, _), _| *task != line.task),
            _ => {}
        }
        self.tasks.push_back((line.seq, line.task));
        if self.tasks.len() > LINES {
            self.tasks.pop_front();
        }
    }

    fn open(&mut self, ticket: u64, line: &Line<'_>) {
        let (held_by, has_others) = holders(line);
        let is_by_takes = held_by.is_empty();
        if is_by_takes && !is_named(line) {
            return;
        }
        let op: Box<str> = line.op().into();
        let site = self.taken_at(&op, &held_by).map(Box::from);
        let first = First { held_by: held_by.clone(), has_others, site };
        let first = Some(first).filter(|_| !is_by_takes);
        let waits = self.by_op.entry(op.clone()).or_default();
        for wait in waits.iter_mut().filter(|_| !is_by_takes) {
            let is_unknown = wait.held_by.is_empty() && wait.first.is_some();
            if is_unknown || held_by.iter().any(|holder| wait.held_by.contains(holder)) {
                wait.held_by.clone_from(&held_by);
                wait.has_others = has_others;
            }
        }
        waits.push(Wait { ticket, held_by, has_others, is_by_takes, first });
        self.ops.insert(ticket, op);
    }

    fn take(&mut self, line: &Line<'_>) {
        let (task, op, site) = (line.task, line.op(), line.key("at").unwrap_or_default());
        let (count, last) = self.taken.entry((task, op.into())).or_default();
        (*count, *last) = (*count + 1, site.into());
        let Holders { by_op, taken, .. } = self;
        let waits = by_op.get_mut(op).into_iter().flatten();
        for wait in waits.filter(|wait| wait.is_by_takes) {
            wait.held_by.retain(|id| *id != task && taken.contains_key(&(*id, op.into())));
            wait.held_by.push(task);
            wait.held_by.sort_unstable();
            let site = Some(site).filter(|site| !site.is_empty()).map(Box::from);
            let first = || First { held_by: vec![task], has_others: false, site };
            wait.first.get_or_insert_with(first);
        }
    }

    /// The head of a dump is over. It does not have the lines that gave a primitive to another
    /// task, so the line of a wait may name an old holder. But it has the `take` of each present
    /// one, if the primitive has a name.
    pub fn begin(&mut self) {
        let Holders { by_op, taken, .. } = self;
        for (op, waits) in by_op.iter_mut().filter(|(op, _)| !op.starts_with("join ")) {
            let of = |((task, it), _): (&(u64, Box<str>), _)| (it == op).then_some(*task);
            let held_by: Vec<u64> = taken.iter().filter_map(of).collect();
            for wait in waits {
                (wait.has_others, wait.is_by_takes) = (false, true);
                wait.held_by.clone_from(&held_by);
            }
        }
    }

    /// A wait is over.
    pub fn close(&mut self, ticket: u64) {
        let Some(op) = self.ops.remove(&ticket) else { return };
        if let Some(waits) = self.by_op.get_mut(&op) {
            waits.retain(|wait| wait.ticket != ticket);
            if waits.is_empty() {
                self.by_op.remove(&op);
            }
        }
    }

    /// The open waits for that primitive: the ticket of each, and the holders.
    pub fn of(&self, op: &str) -> impl Iterator<Item = (u64, &[u64])> {
        let waits = self.by_op.get(op).into_iter().flatten();
        waits.map(|wait| (wait.ticket, &*wait.held_by))
    }

    /// All open waits, as [`Holders::of`].
    pub fn all(&self) -> impl Iterator<Item = (u64, &[u64])> {
        self.by_op.values().flatten().map(|wait| (wait.ticket, &*wait.held_by))
    }

    fn wait(&self, line: &Line<'_>) -> Option<&Wait> {
        let ticket = line.number("k")?;
        self.by_op.get(self.ops.get(&ticket)?)?.iter().find(|wait| wait.ticket == ticket)
    }

    /// Describes the wait of a `block` or `await` line, with its holders if the wait is open.
    pub fn in_words(&self, line: &Line<'_>, of: Of, names: Names<'_>) -> String {
        let Some(wait) = self.wait(line).filter(|_| is_primitive(line)) else {
            return wait_in_words(line, names);
        };
        let (held_by, has_others, site) = match (of, &wait.first) {
            (Of::Now, _) => {
                let site = self.taken_at(line.op(), &wait.held_by);
                (&wait.held_by, wait.has_others, site)
            }
            (Of::All, Some(first)) => (&first.held_by, first.has_others, first.site.as_deref()),
            (Of::All, None) => return wait_in_words(line, names),
        };
        if held_by.is_empty() {
            return match line.key("held-by") {
                Some(_) => format!("{}, held by an unknown task", line.op()),
                None => wait_in_words(line, names),
            };
        }
        let numbers: Vec<_> = held_by.iter().map(u64::to_string).collect();
        let rest = if has_others { ",.." } else { "" };
        let numbers = numbers.join(",") + rest;
        let words = format!("{}, held by {}", line.op(), tasks_in_words(&numbers, names));
        match site {
            Some(site) => format!("{words}, who took it at {site}"),
            None => words,
        }
    }

    /// Describes the last notification of each primitive that a task waits for, after a comma.
    /// Leaves out those that woke no task, which `waits_in_words` tells.
    pub fn notified_in_words(&self, task: &Living) -> String {
        let waits = task.open_waits().into_iter().take(SHOWN);
        let told = waits.filter_map(|wait| self.notified.get(wait.op()));
        let told = told.filter(|(.., woke)| *woke > 0);
        told.map(|(seq, by, woke)| format!(", {}", notified_in_words(*seq, *by, *woke))).collect()
    }

    /// Describes the last notification of the primitive of a wait, after a comma, if it came before
    /// the wait and woke no task.
    fn lost_in_words(&self, wait: &Line<'_>) -> String {
        match self.notified.get(wait.op()) {
            Some((seq, by, 0)) if *seq < wait.seq => {
                format!(", {}", notified_in_words(*seq, *by, 0))
            }
            _ => String::new(),
        }
    }

    /// Returns the call site at which the only holder took that primitive.
    fn taken_at(&self, op: &str, held_by: &[u64]) -> Option<&str> {
        let [holder] = held_by else { return None };
        self.taken.get(&(*holder, op.into())).map(|(_, site)| &**site)
    }

    /// Describes everything that a task waits for, with the notifications that it has missed.
    pub fn waits_in_words(&self, task: &Living, of: Of, names: Names<'_>) -> String {
        let waits = task.open_waits();
        let said = |wait: &Line<'_>| self.in_words(wait, of, names) + &self.lost_in_words(wait);
        let mut words: Vec<_> = waits.iter().take(SHOWN).map(|wait| said(wait)).collect();
        if let Some(more) = waits.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            words.push(format!("any of {more} other waits"));
        }
        words.join(" or ")
    }
}

/// Whether a wait is for a primitive with a name. If that is a lock, the log has its `take` lines.
fn is_named(line: &Line<'_>) -> bool {
    let queue = line.word(1).strip_prefix('q').map(str::parse::<u64>);
    is_primitive(line) && line.op().contains(' ') && !matches!(queue, Some(Ok(_)))
}

/// Whether the key `k` of a line is a ticket that it opens or ends.
fn waits(line: &Line<'_>) -> bool {
    ["block", "await", "wake", "deliver", "withdraw"].contains(&line.verb)
}

impl Wait {
    /// Whether all holders are known, and there is one.
    fn is_known(&self) -> bool {
        !self.has_others && !self.held_by.is_empty()
    }

    /// A holder has woken the next holder.
    fn hand_over(&mut self, from: u64, to: u64) {
        if let Some(place) = self.held_by.iter().position(|holder| *holder == from) {
            self.held_by.remove(place);
            self.held_by.push(to);
            self.held_by.sort_unstable();
            self.held_by.dedup();
        }
    }
}

/// Returns the tasks that a line waits for, and whether there are more of them.
fn holders(line: &Line<'_>) -> (Vec<u64>, bool) {
    let numbers = match line.word(0) {
        "join" => line.word(1),
        _ => line.key("held-by").unwrap_or_default(),
    };
    let tasks = numbers.split(',').filter_map(|number| number.parse().ok());
    (tasks.collect(), numbers.ends_with(",.."))
}

/// A wait in a circle: the line, and the first holder of the awaited primitive.
type Link<'n> = (&'n Line<'static>, &'n Wait);

/// Describes each circle of tasks that wait for each other, in the words of the kernel's report.
/// Empty if there is none.
pub fn circles(now: &Now) -> String {
    let mut text = String::new();
    for circle in find(now) {
        tell(now, &circle, &mut text);
    }
    text
}

/// A task in a circle: the line of its wait, and the holder that it waits for, which is the next
/// task.
pub type InCircle = (Seq, u64);

/// The circles of tasks that wait for each other.
pub fn rings(now: &Now) -> Vec<Vec<InCircle>> {
    find(now).iter().map(|circle| ring(circle)).collect()
}

/// Returns a circle, rotated so that it begins with its first wait.
fn ring(circle: &[Link<'_>]) -> Vec<InCircle> {
    let of = |(line, wait): &Link<'_>| (line.seq, wait.held_by[0]);
    let mut ring: Vec<_> = circle.iter().map(of).collect();
    let first = (0..ring.len()).min_by_key(|nth| ring[*nth].0).unwrap_or(0);
    ring.rotate_left(first);
    ring
}

/// A circle of a log. It may be over.
#[derive(Clone, Debug)]
pub struct Closed {
    /// The line that closed it.
    pub from: Mark,
    /// Its tasks.
    pub ring: Vec<InCircle>,
    /// The words of the kernel's report.
    pub words: String,
}

/// Returns the circles that the last line, a `block` line of that task, has closed.
pub fn closed(now: &Now, task: u64) -> Vec<Closed> {
    if !leads_back(now, task) {
        return Vec::new();
    }
    let circles = find(now).into_iter();
    let circles = circles.filter(|circle| circle.iter().any(|(line, _)| line.task == task));
    let of = |circle: Vec<Link<'_>>| {
        let mut words = String::new();
        tell(now, &circle, &mut words);
        Closed { from: now.last, ring: ring(&circle), words }
    };
    circles.map(of).collect()
}

/// Returns the circles in which tasks are now, each from its last wait on.
pub fn open(now: &Now) -> Vec<Closed> {
    let of = |circle: Vec<Link<'_>>| {
        let mut words = String::new();
        tell(now, &circle, &mut words);
        let last = circle.iter().map(|(line, _)| Mark::of(line)).max_by_key(|mark| mark.seq);
        Closed { from: last.unwrap_or(now.last), ring: ring(&circle), words }
    };
    find(now).into_iter().map(of).collect()
}

/// Whether a task waits for itself through any chain of holders. Most tasks do not, and the search
/// visits few of all tasks.
fn leads_back(now: &Now, start: u64) -> bool {
    let holders = |id: u64| {
        let links = now.tasks.get(&id).and_then(|task| blocked_by(now, task));
        let links = links.unwrap_or_default().into_iter();
        links.flat_map(|(_, wait)| wait.held_by.iter().copied()).collect::<Vec<_>>()
    };
    let (mut open, mut seen) = (holders(start), BTreeSet::new());
    while let Some(id) = open.pop() {
        if id == start {
            return true;
        }
        if seen.insert(id) {
            open.extend(holders(id));
        }
    }
    false
}

/// Returns the circles that are over, with the lines that closed them.
pub fn past(now: &Now) -> Vec<&Closed> {
    let present = rings(now);
    now.circles.iter().filter(|closed| !present.contains(&closed.ring)).collect()
}

/// The circles.
///
/// A task is in a deadlock if none of its waits can end: none of its deadlines can interrupt it,
/// and each wait is for something that deadlocked tasks hold.
fn find(now: &Now) -> Vec<Vec<Link<'_>>> {
    let mut stuck = blocked_by_tasks(now);
    // The tasks whose wait ends if a given task continues.
    let mut waiters = BTreeMap::<u64, Vec<u64>>::new();
    for (id, links) in &stuck {
        for holder in links.iter().flat_map(|(_, wait)| &wait.held_by) {
            waiters.entry(*holder).or_default().push(*id);
        }
    }
    let mut free: Vec<u64> = waiters.keys().copied().filter(|id| !stuck.contains_key(id)).collect();
    while let Some(id) = free.pop() {
        let freed = waiters.remove(&id).unwrap_or_default();
        free.extend(freed.into_iter().filter(|id| stuck.remove(id).is_some()));
    }
    let (mut circles, mut seen) = (Vec::new(), BTreeSet::new());
    for start in stuck.keys() {
        let (mut way, mut at) = (Vec::new(), *start);
        while seen.insert(at) {
            way.push(at);
            at = stuck[&at][0].1.held_by[0];
        }
        // A way that reaches an earlier one leads to a known circle.
        if let Some(first) = way.iter().position(|id| *id == at) {
            circles.push(way[first..].iter().map(|id| stuck[id][0]).collect());
        }
    }
    circles
}

/// Returns the tasks that wait only for tasks, with their waits.
fn blocked_by_tasks(now: &Now) -> BTreeMap<u64, Vec<Link<'_>>> {
    now.tasks.values().filter_map(|task| Some((task.id, blocked_by(now, task)?))).collect()
}

/// Returns the waits of a task, if it waits only for tasks.
fn blocked_by<'n>(now: &'n Now, task: &'n Living) -> Option<Vec<Link<'n>>> {
    if task.state != Some(State::Blocked) || now.is_limited(task) {
        return None;
    }
    let waits = task.waits.iter().filter(|wait| wait.number("k").is_some());
    let held: Option<Vec<_>> = waits
        .map(|line| Some((line, now.holders.wait(line).filter(|wait| wait.is_known())?)))
        .collect();
    held.filter(|held| !held.is_empty())
}

fn tell(now: &Now, circle: &[Link<'_>], text: &mut String) {
    let plural = if circle.len() == 1 { "" } else { "s" };
    let width = now.tasks.keys().last().map_or(2, |id| id.to_string().len().max(2));
    let _ = writeln!(text, "deadlock of {} task{plural}:", circle.len());
    for (line, wait) in circle {
        let name = |id| now.tasks.get(&id).map_or("", |task| &*task.name);
        let (id, op, holder) = (line.task, line.op(), wait.held_by[0]);
        let (name, its_name) = (name(id), name(holder));
        let _ = writeln!(text, "{id:>width$} {name} waits for {op}, held by {holder} {its_name}");
    }
}
