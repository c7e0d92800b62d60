//! Who holds what tasks wait for, and which tasks wait for each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use kernel::trace::Seq;
use testing::trace::Line;

use super::living::{Living, SHOWN};
use super::model::{State, is_primitive, tasks_in_words, wait_in_words};
use super::now::Now;

/// An open wait for what tasks hold.
#[derive(Debug)]
struct Wait {
    ticket: u64,
    /// The tasks that hold what it is for, or the task that it joins.
    held_by: Vec<u64>,
    /// There are more of them than a line names.
    has_others: bool,
}

/// So many lines back it is known whose a line was.
const LINES: usize = 1 << 12;

/// The open waits for what tasks hold.
///
/// What is known of holders comes from the `block` or `await` line of the wait, and from later
/// lines of a primitive of that kind and name. A `wake` that a holder caused hands the primitive to
/// the task that is woken. A `block` that names one of the holders names all of them. What a log
/// does not say is not known: a lock that was taken or a permit that was given back without a wake
/// is seen in the next `block` or `await` line alone, such a line names four holders at most, and
/// two primitives of one name are told apart by their holders alone.
#[derive(Debug, Default)]
pub struct Holders {
    by_op: BTreeMap<Box<str>, Vec<Wait>>,
    /// What each of these tickets is for.
    ops: BTreeMap<u64, Box<str>>,
    /// The last lines: their numbers, and whose they were.
    tasks: VecDeque<(Seq, u64)>,
}

impl Holders {
    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        let ticket = if waits(line) { line.number("k") } else { None };
        match (line.verb, ticket) {
            ("wake", ticket) => {
                ticket.into_iter().for_each(|ticket| self.close(ticket));
                // Most waits are for nothing that a task holds.
                if let Some(waits) = self.by_op.get_mut(line.op()) {
                    let cause = line.cause.unwrap_or_default();
                    let place = self.tasks.binary_search_by_key(&cause, |(seq, _)| *seq);
                    let by = place.map_or(0, |place| self.tasks[place].1);
                    waits.iter_mut().for_each(|wait| wait.hand_over(by, line.task));
                }
            }
            ("deliver" | "withdraw", Some(ticket)) => self.close(ticket),
            ("block" | "await", Some(ticket)) => self.open(ticket, line),
            _ => {}
        }
        self.tasks.push_back((line.seq, line.task));
        if self.tasks.len() > LINES {
            self.tasks.pop_front();
        }
    }

    fn open(&mut self, ticket: u64, line: &Line<'_>) {
        let (held_by, has_others) = holders(line);
        if held_by.is_empty() {
            return;
        }
        let op: Box<str> = line.op().into();
        let waits = self.by_op.entry(op.clone()).or_default();
        for wait in waits.iter_mut() {
            if held_by.iter().any(|holder| wait.held_by.contains(holder)) {
                wait.held_by.clone_from(&held_by);
                wait.has_others = has_others;
            }
        }
        waits.push(Wait { ticket, held_by, has_others });
        self.ops.insert(ticket, op);
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

    fn wait(&self, line: &Line<'_>) -> Option<&Wait> {
        let ticket = line.number("k")?;
        self.by_op.get(self.ops.get(&ticket)?)?.iter().find(|wait| wait.ticket == ticket)
    }

    /// What a `block` or `await` line waits for, in words, with who holds it now if the wait is
    /// open.
    pub fn in_words(&self, line: &Line<'_>) -> String {
        match self.wait(line) {
            Some(wait) if is_primitive(line) => {
                let numbers: Vec<_> = wait.held_by.iter().map(u64::to_string).collect();
                let rest = if wait.has_others { ",.." } else { "" };
                format!("{}, held by {}", line.op(), tasks_in_words(&(numbers.join(",") + rest)))
            }
            _ => wait_in_words(line),
        }
    }

    /// All that a task waits for, in words.
    pub fn waits_in_words(&self, task: &Living) -> String {
        let waits = task.open_waits();
        let mut words: Vec<_> = waits.iter().take(SHOWN).map(|wait| self.in_words(wait)).collect();
        if let Some(more) = waits.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            words.push(format!("any of {more} other waits"));
        }
        words.join(" or ")
    }
}

/// Whether the key `k` of a line is a ticket that it opens or ends.
fn waits(line: &Line<'_>) -> bool {
    ["block", "await", "wake", "deliver", "withdraw"].contains(&line.verb)
}

impl Wait {
    /// A holder has woken the next one.
    fn hand_over(&mut self, from: u64, to: u64) {
        if let Some(place) = self.held_by.iter().position(|holder| *holder == from) {
            self.held_by.remove(place);
            self.held_by.push(to);
            self.held_by.sort_unstable();
            self.held_by.dedup();
        }
    }
}

/// The tasks that a line waits for, and whether there are more of them.
fn holders(line: &Line<'_>) -> (Vec<u64>, bool) {
    let numbers = match line.word(0) {
        "join" => line.word(1),
        _ => line.key("held-by").unwrap_or_default(),
    };
    let tasks = numbers.split(',').filter_map(|number| number.parse().ok());
    (tasks.collect(), numbers.ends_with(",.."))
}

/// A wait in a circle: the line, and the first of the tasks that hold what it is for.
type Link<'n> = (&'n Line<'static>, &'n Wait);

/// Each circle of tasks that wait for each other, in the words of the kernel's report; empty if
/// there is none.
///
/// A task is in a deadlock if none of its waits can end: no deadline of its own can interrupt it,
/// and each wait is for what tasks hold that are in a deadlock themselves.
pub fn circles(now: &Now) -> String {
    let mut stuck = blocked_by_tasks(now);
    loop {
        let can_end = |(_, wait): &Link<'_>| wait.held_by.iter().any(|id| !stuck.contains_key(id));
        let free = stuck.iter().filter(|(_, links)| links.iter().any(can_end));
        let freed: Vec<u64> = free.map(|(id, _)| *id).collect();
        if freed.is_empty() {
            break;
        }
        freed.iter().for_each(|id| drop(stuck.remove(id)));
    }
    let (mut text, mut seen) = (String::new(), BTreeSet::new());
    for start in stuck.keys() {
        let (mut way, mut at) = (Vec::new(), *start);
        while seen.insert(at) {
            way.push(at);
            at = stuck[&at][0].1.held_by[0];
        }
        // A way that ends at an earlier one leads to a circle that is known.
        if let Some(first) = way.iter().position(|id| *id == at) {
            let links: Vec<_> = way[first..].iter().map(|id| stuck[id][0]).collect();
            tell(now, &links, &mut text);
        }
    }
    text
}

/// The tasks that wait for tasks alone, with their waits.
fn blocked_by_tasks(now: &Now) -> BTreeMap<u64, Vec<Link<'_>>> {
    let blocked = now.tasks.values().filter(|task| task.state == Some(State::Blocked));
    let links = blocked.filter(|task| !now.is_limited(task)).filter_map(|task| {
        let waits = task.waits.iter().filter(|wait| wait.number("k").is_some());
        let held: Option<Vec<_>> = waits
            .map(|line| Some((line, now.holders.wait(line).filter(|wait| !wait.has_others)?)))
            .collect();
        held.filter(|held| !held.is_empty()).map(|held| (task.id, held))
    });
    links.collect()
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
