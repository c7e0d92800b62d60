//! `slow`: what took long.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::trace::Span;
use testing::trace::{Line, span};
use traps::Time;

use super::living::{Living, Mark};
use super::longest::Longest;
use super::model::{State, long_run};
use super::now::Now;
use super::style::Paint;
use super::tables::Table;
use super::whole::dump_in_words;

/// The longest runs, the longest waits for the CPU, and the timers that fired latest.
pub struct Slow {
    now: Now,
    runs: Longest<Row>,
    readies: Longest<Row>,
    fires: Longest<Row>,
    timers: Timers,
    /// Whether the watchdog has written the log, while a run did not end.
    is_of_watchdog: bool,
}

/// The facts about a piece or a timer: a task, a line, and a call site.
type Row = [String; 5];

/// The set timers, each with its task and its call site.
#[derive(Default)]
struct Timers(BTreeMap<(char, u64), Timer>);

struct Timer {
    task: u64,
    name: Box<str>,
    site: Option<Box<str>>,
}

/// A timer by its letter and number: `k=3`, `s1`, `d2`.
fn timer(word: &str) -> Option<(char, u64)> {
    let number = word.get(1..)?.trim_start_matches('=').parse().ok()?;
    word.chars().next().filter(char::is_ascii_lowercase).map(|letter| (letter, number))
}

impl Timers {
    /// Follows the next line. Call this before the tasks follow it. Returns a timer that fires.
    fn line(&mut self, line: &Line<'_>, now: &Now) -> Option<Timer> {
        let ticket = || line.number("k").map(|number| ('k', number));
        match (line.verb, line.word(0)) {
            ("block" | "await", "sleep") => self.set(ticket(), line),
            ("wake" | "deliver" | "withdraw", _) => drop(self.0.remove(&ticket()?)),
            ("trap", "set_timeout") if line.key("until").is_some() => {
                self.set(line.outcome().and_then(timer), line);
            }
            ("trap", "unset_timeout") => drop(self.0.remove(&timer(line.word(1))?)),
            ("arm", word) => self.set(timer(word), line),
            ("disarm", word) => drop(self.0.remove(&timer(word)?)),
            ("fire", word) => return self.0.remove(&timer(word)?),
            ("exit", _) => {
                let task = now.tasks.get(&line.task)?;
                let scopes = task.scopes.iter().filter_map(|scope| timer(&scope.name));
                let waits = task.waits.iter().filter_map(|wait| Some(('k', wait.number("k")?)));
                let deadlines = task.deadlines.iter().map(|number| ('d', *number));
                for timer in scopes.chain(waits).chain(deadlines) {
                    self.0.remove(&timer);
                }
            }
            _ => {}
        }
        None
    }

    fn set(&mut self, timer: Option<(char, u64)>, line: &Line<'_>) {
        if let Some(timer) = timer {
            let site = line.key("at").map(Box::from);
            self.0.insert(timer, Timer { task: line.task, name: line.name().into(), site });
        }
    }
}

impl Slow {
    /// Shows this many of each.
    pub fn new(most: usize) -> Slow {
        let [runs, readies, fires] = [(); 3].map(|()| Longest::new(most));
        let (now, timers) = (Now::default(), Timers::default());
        Slow { now, runs, readies, fires, timers, is_of_watchdog: false }
    }

    /// Follows a remark.
    pub fn remark(&mut self, text: &str) {
        self.now.remark(text);
        self.is_of_watchdog |= text.starts_with("# flight ") && text.contains(" cause=watchdog ");
    }

    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        if let Some(piece) = self.now.ends(line) {
            // A timed trace has the length of each run; any other trace has only those of long
            // runs.
            let (longest, length) = match piece.state {
                State::Run => (Some(&mut self.runs), line.key("ran").and_then(span)),
                State::Ready => {
                    let waited = line.key("waited").and_then(span);
                    (Some(&mut self.readies), waited.or(Some(piece.span)))
                }
                State::Blocked => (None, None),
            };
            if let Some((longest, length)) = longest.zip(length) {
                let spawned = piece.task.site.as_deref().filter(|_| piece.task.runs == 0);
                let site = line.key("at").or(spawned);
                let task = (piece.task.id, &*piece.task.name);
                add(longest, length, task, piece.from, site);
            }
        }
        if let Some(ran) = long_run(line).filter(|_| !self.now.is_timed)
            && let Some(task) = self.now.tasks.get(&line.task)
        {
            let site = line.key("to").and_then(|to| Some(to.split_once('@')?.1));
            add(&mut self.runs, ran, (task.id, &task.name), task.ran_from, site);
        }
        let fired = self.timers.line(line, &self.now);
        let deadline = line.key("deadline").filter(|_| line.verb == "fire");
        if let Some(deadline) = deadline.and_then(|time| time.parse::<Time>().ok()) {
            let (late, mark) = (line.at.since(deadline), Mark::of(line));
            match &fired {
                Some(Timer { task, name, site }) => {
                    add(&mut self.fires, late, (*task, name), mark, site.as_deref());
                }
                None => add(&mut self.fires, late, (line.task, line.name()), mark, None),
            }
        }
        self.now.line(line);
    }

    /// Returns the answer, for a log with that header.
    pub fn show(&self, header: Option<&str>, paint: Paint) -> String {
        let mut text = self.what_is_missing(header) + &paint.strong(&self.endless());
        let none = "none took any time";
        let no_run = if self.now.is_timed { none } else { "the trace says no length of a run" };
        for (longest, title, none) in [
            (&self.runs, "Longest runs, from the line that began each", no_run),
            (
                &self.readies,
                "Longest waits for the CPU, from the line that made the task ready",
                none,
            ),
            (&self.fires, "Timers that fired latest", none),
        ] {
            let mut table = Table::new(&["for", "id", "name", "line", "at", "site"]);
            for (span, row) in longest.rows().filter(|(span, _)| !span.is_zero()) {
                let mut cells = vec![Span(span).to_string()];
                cells.extend(row.clone());
                table.row(cells);
            }
            let body = if table.is_empty() { format!("  {none}\n") } else { table.show(paint) };
            text += &format!("{}\n{body}\n", paint.strong(title));
        }
        text
    }

    /// Describes the run during which the watchdog wrote the log. The log does not say how long it
    /// has been, because its last line may be older than the watchdog's look.
    fn endless(&self) -> String {
        let runs = self.now.tasks.values().filter(|task| task.state == Some(State::Run));
        let last = runs.filter(|_| self.is_of_watchdog).max_by_key(|task| task.ran_from.seq);
        last.map_or(String::new(), |task| {
            let (Living { id, name, .. }, Mark { seq, at }) = (task, task.ran_from);
            format!(
                "A run has not ended: that of task {id} `{name}`, since {at} s (#{seq:04}); `trace \
                 why {seq}` says from where.\n\n"
            )
        })
    }

    /// The reason why a run seems to take no time.
    fn what_is_missing(&self, header: Option<&str>) -> String {
        let is_virtual = header.is_some_and(|header| header.contains(" clock=virtual"));
        let dump = self.now.flight.map(|it| format!("unknown: {}.\n\n", dump_in_words(it)));
        let untimed = match (self.now.is_timed, is_virtual) {
            (true, _) => String::new(),
            (false, true) => "On the virtual clock a run takes no time.\n\n".to_owned(),
            (false, false) => {
                "This trace is not timed: it knows the lengths of long runs alone (`longrun`).\n\
                 Record one with `Kernel::time_the_trace`, or with `--timed`, as in \
                 `cargo run --example http -- --timed --trace http.trace`.\n\n"
                    .to_owned()
            }
        };
        dump.unwrap_or_default() + &untimed
    }
}

fn add(
    longest: &mut Longest<Row>,
    span: Duration,
    (id, name): (u64, &str),
    mark: Mark,
    site: Option<&str>,
) {
    let Mark { seq, at } = mark;
    longest.add(span, seq, || {
        let site = site.unwrap_or("-").to_owned();
        [id.to_string(), name.to_owned(), format!("#{seq:04}"), at.to_string(), site]
    });
}
