//! Columns of text, and `summary`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kernel::trace::Span;
use testing::trace::{Behind, Line};

use super::life::{Shares, percent};
use super::model::Trace;
use super::style::Paint;

/// Rows in columns as wide as they need to be; numbers stand to the right.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// With these heads.
    pub fn new(heads: &[&str]) -> Table {
        Table { rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()] }
    }

    /// One more row.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        self.rows.push(cells.into());
    }

    /// Whether it has heads only.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// As text.
    pub fn show(&self, paint: Paint) -> String {
        let columns = self.rows[0].len();
        let width = |n: usize| self.rows.iter().map(|row| row[n].chars().count()).max();
        let widths: Vec<_> = (0..columns).map(|n| width(n).unwrap_or(0)).collect();
        let is_number = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit());
        let right: Vec<_> = (0..columns)
            .map(|n| self.rows.len() > 1 && self.rows[1..].iter().all(|row| is_number(&row[n])))
            .collect();
        let mut text = String::new();
        for (nth, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (n, cell) in row.iter().enumerate() {
                let width = widths[n];
                let _ = match right[n] {
                    true => write!(line, "  {cell:>width$}"),
                    false => write!(line, "  {cell:<width$}"),
                };
            }
            let line = line.trim_end();
            let _ =
                writeln!(text, "{}", if nth == 0 { paint.faint(line) } else { line.to_owned() });
        }
        text
    }
}

/// What the kernel did, and what each task did with its time.
pub fn summary(trace: &Trace, paint: Paint) -> String {
    let mut text = paint.strong("The kernel") + "\n";
    for (what, count) in kernel(trace) {
        let _ = writeln!(text, "  {what:<34} {count:>10}");
    }
    let mut table = Table::new(&["id", "name", "life", "run", "ready", "blocked", "runs", "traps"]);
    for task in trace.tasks.values() {
        let shares = Shares::of(trace, task);
        let [run, ready, blocked] = shares.permille().map(percent);
        let count = |is_it: fn(&Line<'_>) -> bool| {
            let lines = task.lines.iter().map(|place| &trace.lines[*place]);
            lines.filter(|line| is_it(line)).count().to_string()
        };
        table.row([
            task.id.to_string(),
            task.name.clone(),
            Span(shares.total()).to_string(),
            run,
            ready,
            blocked,
            count(|line| line.verb == "run"),
            count(|line| trap(line).is_some()),
        ]);
    }
    let _ = write!(text, "\n{}\n{}", paint.strong("Tasks"), table.show(paint));
    let _ = write!(text, "\n{}\n{}", paint.strong("Traps"), traps(trace).show(paint));
    text
}

/// The word of a trap that a task made.
fn trap<'l>(line: &'l Line<'_>) -> Option<&'l str> {
    let word = Some(line.word(0)).filter(|_| ["trap", "block", "await"].contains(&line.verb));
    word.filter(|word| !["waker", "parked"].contains(word))
}

/// Traps by kind: how many were answered at once, how many blocked.
fn traps(trace: &Trace) -> Table {
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for line in trace.lines.iter().filter(|line| line.task > 1) {
        if let Some(word) = trap(line) {
            let counts = kinds.entry(word).or_default();
            counts[usize::from(line.verb != "trap")] += 1;
        }
        if let Some(ticket) = line.number("k").filter(|_| line.verb == "deliver")
            && let Some(place) = trace.place(line.seq)
            && let Some(word) = trace.block_of(ticket, place).and_then(trap)
        {
            kinds.entry(word).or_default()[2] += 1;
        }
    }
    let mut table = Table::new(&["trap", "answered", "blocked", "interrupted"]);
    for (word, counts) in kinds {
        let [answered, blocked, interrupted] = counts.map(|count| count.to_string());
        table.row([word.to_owned(), answered, blocked, interrupted]);
    }
    table
}

/// What the kernel did, counted.
fn kernel(trace: &Trace) -> Vec<(&'static str, usize)> {
    let count =
        |is_it: &dyn Fn(&Line<'_>) -> bool| trace.lines.iter().filter(|line| is_it(line)).count();
    let of = |verb| count(&|line| line.verb == verb);
    let mut turns: Vec<_> = trace.lines.iter().map(|line| line.turn).collect();
    turns.dedup();
    let (armed, fired) = (count(&arms), count(&fires));
    let bytes = |direction| {
        let lines = trace.lines.iter().filter(|line| line.verb == "io");
        let moved = lines.filter(|line| line.word(1) == direction);
        moved.filter_map(|line| line.outcome()?.parse::<usize>().ok()).sum()
    };
    let nowhere = trace.behind.iter().filter(|behind| **behind == Behind::Nothing);
    vec![
        ("events", trace.lines.len()),
        ("turns with an event", turns.len()),
        ("runs of a task (polls)", of("run")),
        ("arrivals", of("arrive")),
        ("reads, writes and accepts done", of("io") + of("accept")),
        ("bytes read", bytes("read")),
        ("bytes written", bytes("write")),
        ("registrations (system calls)", of("register")),
        ("unregistrations (system calls)", of("unregister")),
        ("timers armed", armed),
        ("timers fired", fired),
        ("timers stale (taken back or left)", armed.saturating_sub(fired)),
        ("chains that end nowhere", nowhere.count()),
    ]
}

/// Whether it sets a timer.
fn arms(line: &Line<'_>) -> bool {
    match (line.verb, line.word(0)) {
        ("block" | "await", "sleep") => line.word(1) != "0s",
        ("trap", "set_timeout") => line.key("until").is_some(),
        (verb, _) => verb == "arm",
    }
}

/// Whether it is such a timer that comes true.
fn fires(line: &Line<'_>) -> bool {
    line.verb == "fire" && !["grace", "drain"].contains(&line.word(0))
}
