//! `summary`: the work of the kernel, and how each task spent its time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kernel::trace::Span;
use testing::trace::{Behind, Causes, Line};

use super::life::percent;
use super::living::{Mark, trap};
use super::stuck::Closed;
use super::style::Paint;
use super::tables::Table;
use super::tally::{Order, Row, Tally};

/// The work of the kernel, and how each task spent its time.
#[derive(Debug, Default)]
pub struct Summary {
    /// The tasks.
    pub tally: Tally,
    causes: Causes,
    counts: [u64; COUNTS.len()],
    turn: Option<u64>,
    /// For each kind of trap, how many were answered at once, blocked, and were interrupted.
    traps: BTreeMap<Box<str>, [u64; 3]>,
    /// How many timers were set when a dump begins.
    set: u64,
}

/// The counted things, in the order of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Events,
    Turns,
    Runs,
    Arrivals,
    Moves,
    Read,
    Written,
    Registrations,
    Unregistrations,
    Armed,
    Fired,
    Stale,
    Nowhere,
}
use What::*;

const COUNTS: [(What, &str); 13] = [
    (Events, "events"),
    (Turns, "turns with an event"),
    (Runs, "runs of a task (polls)"),
    (Arrivals, "arrivals"),
    (Moves, "reads, writes and accepts done"),
    (Read, "bytes read"),
    (Written, "bytes written"),
    (Registrations, "registrations (system calls)"),
    (Unregistrations, "unregistrations (system calls)"),
    (Armed, "timers armed"),
    (Fired, "timers fired"),
    (Stale, "timers stale (taken back or left)"),
    (Nowhere, "chains that end nowhere"),
];

impl Summary {
    /// Follows a remark.
    pub fn remark(&mut self, text: &str) {
        self.tally.now.remark(text);
        self.tally.now.flight.into_iter().for_each(|it| self.causes.head_until(it.from));
    }

    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        // The head of a dump has what was in force, and not what happened.
        if self.tally.now.flight.is_some_and(|flight| line.seq < flight.from) {
            self.causes.behind(line);
            self.set = (self.set + u64::from(arms(line))).saturating_sub(fires(line).into());
            return self.tally.line(line);
        }
        self.count(Events, 1);
        if self.turn.replace(line.turn) != Some(line.turn) {
            self.count(Turns, 1);
        }
        match line.verb {
            "run" => self.count(Runs, 1),
            "arrive" => self.count(Arrivals, 1),
            "io" => self.moved(line),
            "accept" => self.count(Moves, 1),
            "register" => self.count(Registrations, 1),
            "unregister" => self.count(Unregistrations, 1),
            _ => {}
        }
        self.count(Armed, arms(line).into());
        self.count(Fired, fires(line).into());
        let is_nowhere = self.causes.behind(line) == Behind::Nothing;
        self.count(Nowhere, is_nowhere.into());
        if line.task > 1 {
            self.trap(line);
        }
        self.tally.line(line);
    }

    fn count(&mut self, what: What, more: u64) {
        let count = &mut self.counts[what as usize];
        *count = count.saturating_add(more);
    }

    fn moved(&mut self, line: &Line<'_>) {
        self.count(Moves, 1);
        let bytes = line.outcome().and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        let is_read = line.word(1) == "read";
        self.count(if is_read { Read } else { Written }, bytes);
    }

    fn trap(&mut self, line: &Line<'_>) {
        let interrupted = line.number("k").filter(|_| line.verb == "deliver").and_then(|ticket| {
            let waits = &self.tally.now.tasks.get(&line.task)?.waits;
            trap(waits.iter().find(|wait| wait.number("k") == Some(ticket))?)
        });
        let found = match interrupted {
            Some(word) => Some((word, 2)),
            None => trap(line).map(|word| (word, usize::from(line.verb != "trap"))),
        };
        let Some((word, column)) = found else { return };
        match self.traps.get_mut(word) {
            Some(counts) => counts[column] += 1,
            None => {
                let mut counts = [0; 3];
                counts[column] = 1;
                self.traps.insert(word.into(), counts);
            }
        }
    }

    /// Returns the answer.
    pub fn show(&self, paint: Paint) -> String {
        let since = self.tally.now.flight.map(|it| it.from);
        let since =
            since.map_or(String::new(), |from| format!(", since the dump begins at #{from:04}"));
        let mut text = self.tally.head() + &paint.strong(&format!("The kernel{since}")) + "\n";
        let of = |what: What| self.counts[what as usize];
        for (what, words) in COUNTS {
            let count = match what {
                Stale => (self.set + of(Armed)).saturating_sub(of(Fired)),
                _ => of(what),
            };
            let _ = writeln!(text, "  {words:<34} {count:>10}");
        }
        let heads = ["id", "name", "life", "run", "unknown", "ready", "blocked", "runs", "traps"];
        let cells = |row: Row| {
            let [mut run, unknown, ready, blocked] = row.shares.permille().map(percent);
            if self.tally.run(row.shares.run).is_none() {
                run = "-".to_owned();
            }
            let life = Span(row.shares.total()).to_string();
            let [id, runs, traps] = [row.id, row.runs, row.traps].map(|number| number.to_string());
            [id, row.name.to_string(), life, run, unknown, ready, blocked, runs, traps]
        };
        let tasks = self.tally.show(heads, Order::Id, cells, paint);
        let _ = write!(text, "\n{}\n{tasks}", paint.strong("Tasks"));
        let mut table = Table::new(&["trap", "answered", "blocked", "interrupted"]);
        for (word, counts) in &self.traps {
            let [answered, blocked, interrupted] = counts.map(|count| count.to_string());
            table.row([word.to_string(), answered, blocked, interrupted]);
        }
        let _ = write!(text, "\n{}\n{}", paint.strong("Traps"), table.show(paint));
        for Closed { from: Mark { seq, at }, words, .. } in &self.tally.now.circles {
            let _ = write!(text, "\nFrom {at} s on (#{seq:04}): {}", paint.strong(words));
        }
        text + &self.tally.foot()
    }
}

/// Whether it sets a timer.
fn arms(line: &Line<'_>) -> bool {
    match (line.verb, line.word(0)) {
        ("block" | "await", "sleep") => line.word(1) != "0s",
        ("trap", "set_timeout") => line.key("until").is_some(),
        (verb, _) => verb == "arm",
    }
}

/// Whether it is such a timer that fires.
fn fires(line: &Line<'_>) -> bool {
    line.verb == "fire" && !["grace", "drain"].contains(&line.word(0))
}
