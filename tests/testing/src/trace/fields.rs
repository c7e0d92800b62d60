//! The fields of a line about scopes, holders and readiness, checked against the state after the
//! earlier lines.

use std::collections::BTreeSet;

use super::check::Report;
use super::state::{Alias, DIRECTIONS, In, Kind, State};
use super::{Line, Seq};

/// The number of taken primitives that are remembered.
const TAKEN: usize = 1024;

#[derive(Default)]
pub(super) struct Fields {
    /// Before the line.
    state: State,
    /// The words of primitives whose holders the log shows, because one of them was taken.
    taken: BTreeSet<Box<str>>,
    /// The scope that the sweep of a test armed. No line opens it.
    swept: Option<u64>,
    first: Option<Seq>,
}

/// Parses a scope as a field names it: `root` or `sN`.
fn scope(word: &str) -> Option<In> {
    let number = |word: &str| word.strip_prefix('s')?.parse().ok();
    if word == "root" { Some(None) } else { number(word).map(Some) }
}

/// Describes a scope.
fn name(scope: In) -> String {
    scope.map_or("root".to_owned(), |scope| format!("s{scope}"))
}

impl Fields {
    pub(super) fn line(&mut self, line: &Line<'_>, report: &mut Report<'_>) {
        // In a trace without its beginning, the open scopes are not known.
        let is_whole = *self.first.get_or_insert(line.seq) <= 1;
        match line.verb {
            _ if !is_whole => {}
            "block" | "await" | "trap" => {
                self.scope_of(line, report);
                self.held_by(line, report);
            }
            "move" => self.move_to(line, report),
            "cleanup" => self.cleanup(line, report),
            "take" | "give" => self.permit(line, report),
            "run" => messages(line, report),
            "remember" => self.remember(line, report),
            "close" => self.close(line, report),
            "arm" => self.swept = scope(line.word(0)).flatten().or(self.swept),
            _ => {}
        }
        self.state.line(line);
    }

    /// The scope that `in=` names. It must be open and belong to the task of the line.
    fn named(&self, line: &Line<'_>, report: &mut Report<'_>) -> Option<In> {
        let word = line.key("in")?;
        let found = scope(word).filter(|scope| self.is_open(line.task, *scope));
        if found.is_none() {
            report("scope", format!("in={word} is no open scope of task {}", line.task));
        }
        found
    }

    fn is_open(&self, task: u64, scope: In) -> bool {
        let is_its = |scope| self.state.scopes.get(&scope).is_some_and(|scope| scope.task == task);
        scope.is_none_or(is_its)
    }

    /// Checks `in=` of a wait or a trap, which is present if the scope is not the default.
    fn scope_of(&self, line: &Line<'_>, report: &mut Report<'_>) {
        let Some(named) = self.named(line, report) else { return };
        let scopes = self.state.tasks.get(&line.task).map(|task| &task.scopes);
        let default = scopes.and_then(|scopes| scopes.last()).copied();
        if named == default {
            report("scope", format!("in={} is the scope opened last", name(named)));
        }
        let opens = ["set_timeout", "guard", "branch", "shield"].contains(&line.word(0));
        let is_error = line.outcome().is_some_and(|outcome| outcome.starts_with('!'));
        let may_have = match line.verb {
            "trap" => opens || is_error,
            _ => line.ticket.is_some(),
        };
        if !may_have {
            report("scope", format!("in={} belongs to no wait, scope or interrupt", name(named)));
        }
    }

    fn move_to(&self, line: &Line<'_>, report: &mut Report<'_>) {
        let Some(to) = self.named(line, report) else {
            if line.key("in").is_none() {
                report("scope", "it does not say where to".to_owned());
            }
            return;
        };
        let state = &self.state;
        let moved = scope(line.word(0)).flatten();
        let from = match (line.ticket, moved) {
            (Some(ticket), _) => state.waits.get(&ticket).map(|wait| wait.scope),
            (None, Some(moved)) => state.scopes.get(&moved).map(|scope| scope.parent),
            (None, None) => None,
        };
        if from.is_none() {
            report("scope", format!("{} is not open", line.word(0)));
        } else if from == Some(to) {
            report("scope", format!("it is in {} already", name(to)));
        } else if moved.is_some_and(|moved| state.way(to).any(|on_the_way| on_the_way == moved)) {
            report("scope", format!("{} is inside it", name(to)));
        }
    }

    fn cleanup(&self, line: &Line<'_>, report: &mut Report<'_>) {
        let is_source = |it: &In| self.is_open(line.task, *it) || *it == self.swept;
        let Some(source) = scope(line.word(0)).filter(is_source) else {
            return report("scope", format!("{} is no open scope of the task", line.word(0)));
        };
        let Some(place) = self.named(line, report) else { return };
        let kind = place.and_then(|place| Some(self.state.scopes.get(&place)?.kind));
        let is_inside = source.is_none_or(|source| self.state.way(place).any(|on| on == source));
        if kind != Some(Kind::Branch) || place == source || !is_inside {
            report("scope", format!("{} is no branch inside {}", name(place), name(source)));
        }
    }

    /// Checks `held-by` of a wait, which names the tasks that have taken the primitive.
    fn held_by(&self, line: &Line<'_>, report: &mut Report<'_>) {
        if line.ticket.is_none() || !self.taken.contains(line.op()) {
            return;
        }
        let words = line.op();
        let holders = self.state.primitives.get(words).map(|it| &it.holders);
        let named = line.key("held-by").unwrap_or_default().split(',').filter(|it| !it.is_empty());
        let tasks: Vec<u64> = named.clone().filter_map(|task| task.parse().ok()).collect();
        let holds = |task: &u64| holders.is_some_and(|holders| holders.contains_key(task));
        if let Some(task) = tasks.iter().find(|task| !holds(task)) {
            report("primitive", format!("task {task} has not taken {words}"));
        }
        // Two primitives can have the same name, so there can be more holders than the line names.
        let count: u64 = holders.map_or(0, |it| it.values().map(|hold| hold.count).sum());
        let others = u64::from(named.clone().next_back() == Some(".."));
        if count < tasks.len() as u64 + others {
            report("primitive", format!("{words} was taken {count} times"));
        }
    }

    /// Checks `take` and `give`: a task releases only a primitive that it has taken.
    fn permit(&mut self, line: &Line<'_>, report: &mut Report<'_>) {
        let (words, from) = (line.op(), line.number("from"));
        let holders = self.state.primitives.get(words).map(|it| &it.holders);
        if line.verb == "take" {
            self.taken.insert(words.into());
            if self.taken.len() > TAKEN {
                self.taken.pop_first();
            }
            return;
        }
        if from == Some(line.task) {
            report("primitive", format!("from={} is the task of the line", line.task));
        }
        let holder = from.unwrap_or(line.task);
        // An ended task holds nothing any more. Another task may release what the ended task took.
        let lives = self.state.tasks.contains_key(&holder);
        if lives && holders.is_none_or(|holders| !holders.contains_key(&holder)) {
            report("primitive", format!("task {holder} has not taken {words}"));
        }
    }

    fn waits(&self, alias: &str, direction: &str) -> bool {
        let side = DIRECTIONS.iter().position(|word| *word == direction);
        let place = Alias::of(alias).zip(side);
        place.is_some_and(|(alias, side)| {
            let descriptor = self.state.descriptors.get(&alias);
            descriptor.is_some_and(|descriptor| descriptor.waits[side].is_some())
        })
    }

    fn remember(&self, line: &Line<'_>, report: &mut Report<'_>) {
        let (alias, direction) = (line.word(0), line.word(1));
        if self.waits(alias, direction) {
            report("one-waiter", format!("a task waits for io {alias} {direction}"));
        }
    }

    /// Checks `close`, the line for a handle that is not registered. A registered one has an
    /// `unregister` line.
    fn close(&self, line: &Line<'_>, report: &mut Report<'_>) {
        let alias = line.word(0);
        let found = Alias::of(alias).and_then(|alias| self.state.descriptors.get(&alias));
        if found.is_some_and(|found| found.is_registered) {
            report("register", format!("{alias} is registered"));
        }
        if DIRECTIONS.iter().any(|direction| self.waits(alias, direction)) {
            report("register", format!("a task waits for {alias}"));
        }
    }
}

/// Checks `messages` of a `run` of `wakeup`, which is left out if there are none.
fn messages(line: &Line<'_>, report: &mut Report<'_>) {
    let Some(messages) = line.key("messages") else { return };
    let is_number = messages.parse::<u64>().is_ok_and(|count| count > 0);
    if !is_number || line.name() != "wakeup" {
        report("ready", format!("messages={messages} of {}", line.name()));
    }
}
