//! `tasks`: how each task spent its time.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use kernel::trace::Span;
use testing::trace::Line;

use super::life::Shares;
use super::living::Living;
use super::look::Writer;
use super::now::Now;
use super::style::Paint;
use super::tables::Table;
use super::whole::dump_in_words;

/// The remark about a log that does not have the lengths of most runs.
const NOT_TIMED: &str = "
-: the trace is not timed, so of runs it knows the long ones alone (`longrun`). The time of the
   others is in unknown (this task or another one had the CPU), ready or blocked.
   `Kernel::time_the_trace`, or `--timed`, measures each run.
";

/// By what `tasks` sorts: [`Order::ALL`] says what each of them means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Id,
    Name,
    Run,
    Ready,
    Blocked,
    Runs,
}

impl Order {
    /// The name that a user gives each order, and its meaning.
    pub const ALL: [(Order, &str, &str); 6] = [
        (Order::Id, "id", "By number"),
        (Order::Name, "name", "By name"),
        (Order::Run, "run", "The longest time on the CPU first"),
        (Order::Ready, "ready", "The longest time waiting for the CPU first"),
        (Order::Blocked, "blocked", "The longest time blocked first"),
        (Order::Runs, "runs", "The most runs first"),
    ];
}

/// A row about a task or a family.
#[derive(Clone, Debug)]
pub struct Row {
    /// The number of the task; for several tasks, their count.
    pub id: u64,
    /// The name of the task; for several tasks, the common part of their names.
    pub name: Box<str>,
    /// Its state.
    pub state: Box<str>,
    /// How it spent its time.
    pub shares: Shares,
    /// How often it had the CPU.
    pub runs: u64,
    /// How many traps it made.
    pub traps: u64,
    site: Option<Box<str>>,
}

impl Row {
    fn of(task: Living, state: &str) -> Row {
        let Living { id, name, shares, runs, traps, site, .. } = task;
        Row { id, name, state: state.into(), shares, runs, traps, site }
    }

    fn add(&mut self, other: &Row) {
        self.id += 1;
        self.shares.add(other.shares);
        self.runs += other.runs;
        self.traps += other.traps;
        self.site = self.site.take().filter(|site| other.site.as_ref() == Some(site));
    }
}

/// A name with `*` for its numbers.
pub fn pattern(name: &str) -> String {
    let mut pattern = String::new();
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            true if pattern.ends_with('*') => {}
            true => pattern.push('*'),
            false => pattern.push(letter),
        }
    }
    pattern
}

/// Up to this many ended tasks have a row each. If there are more, the tasks of one family of names
/// share a row.
pub const ENDED: usize = 1000;
/// The largest number of families with a row each.
const FAMILIES: usize = 1000;

/// The tasks that have ended.
#[derive(Debug, Default)]
struct Ended {
    each: Vec<Row>,
    families: BTreeMap<Box<str>, Row>,
}

impl Ended {
    fn add(&mut self, task: Living) {
        let row = Row::of(task, "ended");
        if !self.families.is_empty() {
            return self.fold(&row);
        }
        self.each.push(row);
        if self.each.len() > ENDED {
            std::mem::take(&mut self.each).iter().for_each(|row| self.fold(row));
        }
    }

    fn fold(&mut self, row: &Row) {
        let family = match pattern(&row.name).into_boxed_str() {
            known if self.families.contains_key(&known) => known,
            _ if self.families.len() >= FAMILIES => "*".into(),
            new => new,
        };
        match self.families.get_mut(&family) {
            Some(rows) => rows.add(row),
            None => {
                let first = Row { id: 1, name: family.clone(), ..row.clone() };
                self.families.insert(family, first);
            }
        }
    }
}

/// Follows the tasks of a log.
#[derive(Debug, Default)]
pub struct Tally {
    /// The tasks that have not ended.
    pub now: Now,
    /// The process that is still writing after the last line.
    pub writer: Option<Writer>,
    ended: Ended,
}

impl Tally {
    /// Follows a remark.
    pub fn remark(&mut self, text: &str) {
        self.now.remark(text);
    }

    /// Follows the next line.
    pub fn line(&mut self, line: &Line<'_>) {
        if let Some(task) = self.now.line(line) {
            self.ended.add(task);
        }
    }

    /// Returns a length of runs, or nothing if the log does not have it.
    pub fn run(&self, run: Duration) -> Option<Duration> {
        Some(run).filter(|run| self.now.is_timed || !run.is_zero())
    }

    /// Returns the text before a table.
    pub fn head(&self) -> String {
        let Some(writer) = self.writer else { return String::new() };
        format!("The tasks {}:\n", writer.in_words(self.now.last.at))
    }

    /// Returns the text after a table.
    pub fn foot(&self) -> String {
        let mut foot = if self.now.is_timed { "" } else { NOT_TIMED }.to_owned();
        if let Some(flight) = self.now.flight {
            let _ = write!(foot, "\nunknown: {}.\n", dump_in_words(flight));
        }
        foot
    }

    /// Returns a row for each task, by number, except for folded tasks.
    pub fn rows(&self) -> Vec<Row> {
        let end = self.now.last.at + self.writer.map_or(Duration::ZERO, |writer| writer.ago);
        let alive = self.now.tasks.values().map(|task| {
            let state = self.now.state_in_words(task);
            let shares = task.shares_until(end);
            Row::of(Living { shares, waits: Vec::new(), ..task.clone() }, &state)
        });
        let mut rows: Vec<_> = alive.chain(self.ended.each.iter().cloned()).collect();
        rows.sort_by_key(|row| row.id);
        rows
    }

    /// All tasks, a row each.
    pub fn tasks(&self, order: Order, paint: Paint) -> String {
        let last = |row: &Row| row.site.as_deref().unwrap_or("-").to_owned();
        let cells = |row: Row| {
            let run = self.run(row.shares.run).map_or("-".to_owned(), |run| Span(run).to_string());
            let [unknown, ready, blocked] =
                [row.shares.unknown, row.shares.ready, row.shares.blocked]
                    .map(|span| Span(span).to_string());
            let (id, name, runs) = (row.id.to_string(), row.name.to_string(), row.runs.to_string());
            [id, name, row.state.to_string(), runs, run, unknown, ready, blocked, last(&row)]
        };
        let heads =
            ["id", "name", "state", "runs", "run", "unknown", "ready", "blocked", "spawned at"];
        self.head() + &self.show(heads, order, cells, paint) + &self.foot()
    }

    /// Returns a table of the tasks with a row each, and a table of the families.
    pub fn show<const N: usize>(
        &self,
        mut heads: [&'static str; N],
        order: Order,
        cells: impl Fn(Row) -> [String; N],
        paint: Paint,
    ) -> String {
        let table = |heads: [&str; N], mut rows: Vec<Row>| {
            sort(&mut rows, order);
            let has_unknown = rows.iter().any(|row| !row.shares.unknown.is_zero());
            let mut table = Table::new(&heads);
            rows.into_iter().for_each(|row| table.row(cells(row)));
            if !has_unknown {
                table.leave_out("unknown");
            }
            table.show(paint)
        };
        let mut text = table(heads, self.rows());
        if !self.ended.families.is_empty() {
            let rows: Vec<_> = self.ended.families.values().cloned().collect();
            let count: u64 = rows.iter().map(|row| row.id).sum();
            let title = format!("{count} tasks have ended; by name");
            heads[0] = "tasks";
            let _ = write!(text, "\n{}\n{}", paint.strong(&title), table(heads, rows));
        }
        text
    }
}

fn sort(rows: &mut [Row], order: Order) {
    match order {
        Order::Id => {}
        Order::Name => rows.sort_by(|a, b| a.name.cmp(&b.name)),
        Order::Run => rows.sort_by_key(|row| Reverse(row.shares.run)),
        Order::Ready => rows.sort_by_key(|row| Reverse(row.shares.ready)),
        Order::Blocked => rows.sort_by_key(|row| Reverse(row.shares.blocked)),
        Order::Runs => rows.sort_by_key(|row| Reverse(row.runs)),
    }
}
