//! The lines of a log that a query takes, in one pass, each with the length of its wait or run.
//!
//! A length is known only at the end of its wait or run. So a line that needs one is open until
//! then, and the lines after it stay in a queue, because they are returned in the order of the log.
//! The queue has only lines that fulfil the other conditions.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use kernel::trace::Seq;
use testing::trace::{Line, span};
use traps::Time;

use super::model::{long_run, opens};
use super::perfetto::wait_name;
use super::query::Query;
use super::style::Paint;
use super::tables::Table;

/// The remark below the header of a log that `select` has written. It ends with the query.
pub const REMARK: &str = "# select ";

/// A selection of lines. Each line that is taken is an item of type `T`.
pub struct Select<T> {
    query: Query,
    /// Whether lengths are measured.
    measures: bool,
    queue: VecDeque<(T, Fate)>,
    /// The number of lines that have left the queue.
    over: u64,
    /// The lines whose length is not known yet.
    open: BTreeMap<Key, Open>,
    last: (Seq, Time),
}

/// A task, and the ticket of its wait. A run has none, and a wait of the task `wakeup` has 0.
type Key = (u64, Option<u64>);

/// A line whose length is not known yet: how many entered the queue before it, and its time.
struct Open {
    nth: u64,
    at: Time,
}

#[derive(Clone, Copy)]
enum Fate {
    Open,
    Taken(Option<Duration>),
    Left,
}

impl<T> Select<T> {
    /// Takes the lines of that query. With `measures`, each that begins a wait or a run has a
    /// length, if the log has it. Otherwise lengths are measured only if the query asks for them.
    pub fn new(query: Query, measures: bool) -> Select<T> {
        let measures = measures || query.has_length();
        let (queue, open, last) = (VecDeque::new(), BTreeMap::new(), (0, Time::ZERO));
        Select { query, measures, queue, over: 0, open, last }
    }

    /// Follows the next line. Calls `item` if the line may be taken.
    pub fn line(&mut self, line: &Line<'_>, item: impl FnOnce() -> T) {
        if self.measures {
            // Another log begins.
            if line.seq <= self.last.0 {
                self.end();
            }
            self.last = (line.seq, line.at);
            self.measure(line);
        }
        if !self.query.takes(line) {
            return;
        }
        let key = match line.verb {
            "run" => Some((line.task, None)),
            _ if opens(line) => Some((line.task, Some(ticket(line)))),
            _ => None,
        };
        if let Some(key) = key.filter(|_| self.measures) {
            let open = Open { nth: self.over + self.queue.len() as u64, at: line.at };
            self.queue.push_back((item(), Fate::Open));
            if let Some(before) = self.open.insert(key, open) {
                self.settle(&before, None);
            }
        } else if !self.query.has_length() {
            self.queue.push_back((item(), Fate::Taken(None)));
        }
    }

    /// Ends the waits and runs that a line ends.
    fn measure(&mut self, line: &Line<'_>) {
        let run = (line.task, None);
        let ran = match line.verb {
            "block" | "exit" => line.key("ran").and_then(span),
            _ => long_run(line),
        };
        let over = match line.verb {
            "wake" | "deliver" | "withdraw" => self.open.remove(&(line.task, Some(ticket(line)))),
            // The length of the last run was not in the log.
            "run" => self.open.remove(&run),
            _ if ran.is_some() => self.open.remove(&run),
            _ => None,
        };
        // It has left the CPU for several waits, of which one is over.
        if ["wake", "deliver"].contains(&line.verb) {
            self.close((line.task, Some(0)), line.at);
        }
        if let Some(open) = over {
            let length = if ended_is_run(line) { ran } else { Some(line.at.since(open.at)) };
            self.settle(&open, length);
        }
        if line.verb == "exit" {
            let rest: Vec<Key> =
                self.open.range(run..=(line.task, Some(u64::MAX))).map(|(key, _)| *key).collect();
            rest.into_iter().for_each(|key| self.close(key, line.at));
        }
    }

    /// Ends a wait or a run that has no line of its own for that.
    fn close(&mut self, key: Key, at: Time) {
        if let Some(open) = self.open.remove(&key) {
            let length = key.1.map(|_| at.since(open.at));
            self.settle(&open, length);
        }
    }

    fn settle(&mut self, open: &Open, length: Option<Duration>) {
        let is_taken = match length {
            Some(length) => self.query.takes_length(length),
            None => !self.query.has_length(),
        };
        let fate = if is_taken { Fate::Taken(length) } else { Fate::Left };
        self.queue[(open.nth - self.over) as usize].1 = fate;
    }

    /// Ends all waits and runs, at the end of the log.
    pub fn end(&mut self) {
        let (keys, at): (Vec<Key>, _) = (self.open.keys().copied().collect(), self.last.1);
        keys.into_iter().for_each(|key| self.close(key, at));
    }

    /// Returns the next taken line, and the length of its wait or run, as soon as it is known for
    /// this line and all before it.
    pub fn pop(&mut self) -> Option<(T, Option<Duration>)> {
        loop {
            if matches!(self.queue.front()?.1, Fate::Open) {
                return None;
            }
            self.over += 1;
            if let Some((item, Fate::Taken(length))) = self.queue.pop_front() {
                return Some((item, length));
            }
        }
    }
}

/// Whether a line can only end a run.
fn ended_is_run(line: &Line<'_>) -> bool {
    !["wake", "deliver", "withdraw"].contains(&line.verb)
}

fn ticket(line: &Line<'_>) -> u64 {
    line.ticket.unwrap_or_default()
}

/// The lengths of waits and runs, by kind.
#[derive(Default)]
pub struct Lengths(BTreeMap<String, Kind>);

#[derive(Default)]
struct Kind {
    all: Vec<Duration>,
    longest: (Duration, Seq),
}

/// With fewer lengths than this, a percentile is no more than one of the longest.
const ENOUGH: usize = 10;

impl Lengths {
    /// The kind of the wait or run that a line begins: `run`, or `block sleep`.
    pub fn kind(line: &Line<'_>) -> String {
        match opens(line) {
            true => format!("{} {}", line.verb, wait_name(line)),
            false => line.verb.to_owned(),
        }
    }

    /// Takes the lines of a selection whose lengths are known: their kinds and numbers.
    pub fn take(&mut self, select: &mut Select<(String, Seq)>) {
        while let Some(((kind, seq), length)) = select.pop() {
            let Some(length) = length else { continue };
            let kind = self.0.entry(kind).or_default();
            if kind.all.is_empty() || length > kind.longest.0 {
                kind.longest = (length, seq);
            }
            kind.all.push(length);
        }
    }

    /// The table: each kind with its number, its sum, its percentiles and its longest.
    pub fn show(mut self, paint: Paint) -> String {
        let heads = ["kind", "count", "sum", "p50", "p90", "p99", "longest", "line"];
        let mut table = Table::new(&heads);
        for (name, kind) in &mut self.0 {
            kind.all.sort_unstable();
            let count = kind.all.len();
            // The least length that is not under this part of them.
            let part = |percent: usize| kind.all[(count * percent).div_ceil(100) - 1];
            let tail = |percent| if count < ENOUGH { "-".to_owned() } else { shown(part(percent)) };
            let (longest, seq) = kind.longest;
            table.row([
                name.clone(),
                count.to_string(),
                shown(kind.all.iter().sum()),
                shown(part(50)),
                tail(90),
                tail(99),
                shown(longest),
                format!("#{seq:04}"),
            ]);
        }
        match table.is_empty() {
            true => "no wait or run of these lines has a length\n".to_owned(),
            false => table.show(paint),
        }
    }
}

fn shown(length: Duration) -> String {
    kernel::trace::Span(length).to_string()
}
