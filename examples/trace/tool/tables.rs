//! Columns of text, and `summary`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kernel::trace::{Behind, Event, Op, Span, Timer};

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
        let count = |is_it: fn(&Event<'_>) -> bool| {
            let lines = task.lines.iter().map(|place| &trace.lines[*place].event);
            lines.filter(|event| is_it(event)).count().to_string()
        };
        table.row([
            task.id.to_string(),
            task.name.clone(),
            Span(shares.total()).to_string(),
            run,
            ready,
            blocked,
            count(|event| matches!(event, Event::Run { .. })),
            count(|event| trap(event).is_some()),
        ]);
    }
    let _ = write!(text, "\n{}\n{}", paint.strong("Tasks"), table.show(paint));
    let _ = write!(text, "\n{}\n{}", paint.strong("Traps"), traps(trace).show(paint));
    text
}

/// The word of a trap that a task made.
fn trap(event: &Event<'_>) -> Option<&'static str> {
    match event {
        Event::Trap { op, .. } | Event::Block { op, .. } => match op {
            Op::Waker | Op::Parked { .. } => None,
            op => Some(op.word()),
        },
        _ => None,
    }
}

/// Traps by kind: how many were answered at once, how many blocked.
fn traps(trace: &Trace) -> Table {
    let mut kinds: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for line in trace.lines.iter().filter(|line| line.task > 1) {
        if let Some(word) = trap(&line.event) {
            let counts = kinds.entry(word).or_default();
            counts[usize::from(matches!(line.event, Event::Block { .. }))] += 1;
        }
        if let Event::Deliver { ticket, .. } = &line.event
            && let Some(place) = trace.place(line.seq)
            && let Some(word) = trace.block_of(*ticket, place).and_then(|line| trap(&line.event))
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
    let count = |is_it: &dyn Fn(&Event<'_>) -> bool| {
        trace.lines.iter().filter(|line| is_it(&line.event)).count()
    };
    let mut turns: Vec<_> = trace.lines.iter().map(|line| line.turn).collect();
    turns.dedup();
    let (armed, fired) = (count(&arms), count(&fires));
    let moves = count(&|event| matches!(event, Event::Io { .. } | Event::Accept { .. }));
    let (register, unregister) = (
        count(&|event| matches!(event, Event::Register { .. })),
        count(&|event| matches!(event, Event::Unregister { .. })),
    );
    let bytes = |wanted| {
        let of = |event: &Event<'_>| match event {
            Event::Io { direction, bytes, .. } if *direction == wanted => *bytes as usize,
            _ => 0,
        };
        trace.lines.iter().map(|line| of(&line.event)).sum()
    };
    let nowhere = trace.behind.iter().filter(|behind| **behind == Behind::Nothing);
    vec![
        ("events", trace.lines.len()),
        ("turns with an event", turns.len()),
        ("runs of a task (polls)", count(&|event| matches!(event, Event::Run { .. }))),
        ("arrivals", count(&|event| matches!(event, Event::Arrive(_)))),
        ("reads, writes and accepts done", moves),
        ("bytes read", bytes(traps::protocol::Direction::Read)),
        ("bytes written", bytes(traps::protocol::Direction::Write)),
        ("registrations (system calls)", register),
        ("unregistrations (system calls)", unregister),
        ("timers armed", armed),
        ("timers fired", fired),
        ("timers stale (taken back or left)", armed.saturating_sub(fired)),
        ("chains that end nowhere", nowhere.count()),
    ]
}

/// Whether it sets a timer.
fn arms(event: &Event<'_>) -> bool {
    match event {
        Event::Block { op: Op::Sleep { span, .. }, .. } => !span.is_zero(),
        Event::Trap { op: Op::SetTimeout { until, .. }, .. } => until.is_some(),
        event => matches!(event, Event::Arm { .. }),
    }
}

/// Whether it is such a timer that comes true.
fn fires(event: &Event<'_>) -> bool {
    match event {
        Event::Fire { timer, .. } => !matches!(timer, Timer::Grace | Timer::Drain),
        _ => false,
    }
}
