//! Who holds what tasks wait for at the end of a trace, and which of them wait for each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use testing::trace::Line;

use super::model::{State, Trace, is_primitive, opens, tasks_in_words, wait_in_words};

/// A wait that is open at the end.
struct Wait<'t> {
    task: u64,
    block: &'t Line<'static>,
    /// The tasks that hold what it is for, or the task that it joins.
    held_by: Vec<u64>,
    /// There are more of them than a line names.
    has_others: bool,
}

/// The waits that are open at the end of a trace.
///
/// What is known of holders comes from the `block` line of the wait, and from later lines of a
/// primitive of that kind and name. A `wake` that a holder caused hands the primitive to the task
/// that is woken. A `block` that names one of the holders names all of them. What a log does not
/// say is not known: a lock that was taken or a permit that was given back without a wake is seen
/// in the next `block` line alone, a `block` line names four holders at most, and two primitives
/// of one name are told apart by their holders alone.
pub struct Stuck<'t> {
    trace: &'t Trace,
    /// By the number of the line.
    waits: BTreeMap<u64, Wait<'t>>,
    /// Tasks that an own deadline can wake.
    limited: BTreeSet<u64>,
}

impl<'t> Stuck<'t> {
    /// At the end of this trace.
    pub fn of(trace: &'t Trace) -> Stuck<'t> {
        let mut open = BTreeMap::new();
        for line in &trace.lines {
            match (line.verb, line.number("k")) {
                ("block" | "await", Some(ticket)) => drop(open.insert(ticket, line)),
                ("wake" | "deliver" | "withdraw", Some(ticket)) => drop(open.remove(&ticket)),
                _ => {}
            }
        }
        let open: BTreeSet<u64> = open.values().map(|block| block.seq).collect();
        let mut by_op: BTreeMap<&str, Vec<Wait<'t>>> = BTreeMap::new();
        for (place, line) in trace.lines.iter().enumerate() {
            if line.verb == "wake" {
                let by = trace.cause(place).map_or(0, |cause| trace.lines[cause].task);
                for wait in by_op.get_mut(line.op()).into_iter().flatten() {
                    wait.hand_over(by, line.task);
                }
            } else if opens(line) {
                let (held_by, has_others) = holders(line);
                let waits = by_op.entry(line.op()).or_default();
                for wait in waits.iter_mut() {
                    if held_by.iter().any(|holder| wait.held_by.contains(holder)) {
                        wait.held_by.clone_from(&held_by);
                        wait.has_others = has_others;
                    }
                }
                if open.contains(&line.seq) {
                    waits.push(Wait { task: line.task, block: line, held_by, has_others });
                }
            }
        }
        let waits = by_op.into_values().flatten().map(|wait| (wait.block.seq, wait));
        Stuck { trace, waits: waits.collect(), limited: limited(trace) }
    }

    /// What a `block` line waits for, in words, with who holds it now if the wait is open.
    pub fn in_words(&self, block: &Line<'_>) -> String {
        match self.waits.get(&block.seq).filter(|wait| !wait.held_by.is_empty()) {
            Some(wait) if is_primitive(block) => {
                let numbers: Vec<_> = wait.held_by.iter().map(u64::to_string).collect();
                let rest = if wait.has_others { ",.." } else { "" };
                format!("{}, held by {}", block.op(), tasks_in_words(&(numbers.join(",") + rest)))
            }
            _ => wait_in_words(block),
        }
    }

    /// Each circle of tasks that wait for each other, in the words of the kernel's report; empty if
    /// there is none.
    ///
    /// A task is in a deadlock if none of its waits can end: no deadline of its own can interrupt
    /// it, and each wait is for what tasks hold that are in a deadlock themselves.
    pub fn circles(&self) -> String {
        let mut stuck = self.blocked_by_tasks();
        loop {
            let can_end = |wait: &&Wait<'_>| wait.held_by.iter().any(|id| !stuck.contains_key(id));
            let freed: Vec<u64> = stuck
                .iter()
                .filter(|(_, waits)| waits.iter().any(can_end))
                .map(|(id, _)| *id)
                .collect();
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
                at = stuck[&at][0].held_by[0];
            }
            // A way that ends at an earlier one leads to a circle that is known.
            if let Some(first) = way.iter().position(|id| *id == at) {
                let links: Vec<_> = way[first..].iter().map(|id| stuck[id][0]).collect();
                self.tell(&links, &mut text);
            }
        }
        text
    }

    /// The tasks that wait for tasks alone, with their waits.
    fn blocked_by_tasks(&self) -> BTreeMap<u64, Vec<&Wait<'t>>> {
        let mut stuck: BTreeMap<u64, Vec<&Wait<'_>>> = BTreeMap::new();
        for wait in self.waits.values() {
            stuck.entry(wait.task).or_default().push(wait);
        }
        stuck.retain(|id, waits| {
            let is_blocked = self.trace.tasks.get(id).is_some_and(|task| {
                !task.ended && task.pieces.last().is_some_and(|last| last.state == State::Blocked)
            });
            let is_held = waits.iter().all(|wait| !wait.held_by.is_empty() && !wait.has_others);
            is_blocked && is_held && !self.limited.contains(id)
        });
        stuck
    }

    fn tell(&self, circle: &[&Wait<'t>], text: &mut String) {
        let plural = if circle.len() == 1 { "" } else { "s" };
        let width = self.trace.tasks.keys().last().map_or(2, |id| id.to_string().len().max(2));
        let _ = writeln!(text, "deadlock of {} task{plural}:", circle.len());
        for wait in circle {
            let name = |id| self.trace.tasks.get(&id).map_or("", |task| &*task.name);
            let (id, op, holder) = (wait.task, wait.block.op(), wait.held_by[0]);
            let (name, its_name) = (name(id), name(holder));
            let _ =
                writeln!(text, "{id:>width$} {name} waits for {op}, held by {holder} {its_name}");
        }
    }
}

impl Wait<'_> {
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

/// The tasks that a `block` line waits for, and whether there are more of them.
fn holders(block: &Line<'_>) -> (Vec<u64>, bool) {
    let numbers = match block.word(0) {
        "join" => block.word(1),
        _ => block.key("held-by").unwrap_or_default(),
    };
    let tasks = numbers.split(',').filter_map(|number| number.parse().ok());
    (tasks.collect(), numbers.ends_with(",.."))
}

/// The tasks around which a deadline is open that no shield holds back.
fn limited(trace: &Trace) -> BTreeSet<u64> {
    // The scopes of each task that are open, outermost first, each with what opened it.
    let mut scopes: BTreeMap<u64, Vec<(&str, &Line<'_>)>> = BTreeMap::new();
    let mut armed = BTreeSet::new();
    for line in &trace.lines {
        let (open, timer) = (scopes.entry(line.task).or_default(), line.word(0));
        match (line.verb, timer) {
            ("trap", "set_timeout" | "guard" | "shield") => {
                open.extend(line.outcome().map(|scope| (scope, line)));
            }
            ("trap", "unset_timeout" | "unguard" | "unshield") => {
                open.retain(|(scope, _)| *scope != line.word(1));
            }
            ("arm", _) => drop(armed.insert(timer)),
            ("fire" | "disarm", _) => drop(armed.remove(timer)),
            _ => {}
        }
    }
    let is_limited = |scopes: &[(&str, &Line<'_>)]| {
        let inside = scopes.iter().rev().take_while(|(_, line)| line.word(0) != "shield");
        inside.into_iter().any(|(_, line)| match line.word(0) {
            "guard" => armed.contains(line.word(1)),
            _ => line.key("until").is_some(),
        })
    };
    let found = scopes.iter().filter(|(_, scopes)| is_limited(scopes));
    found.map(|(task, _)| *task).collect()
}
