//! `task`: how a task spent its time.

use std::fmt::Write as _;
use std::time::Duration;

use kernel::trace::Span;

use super::living::Living;
use super::model::{Task, Trace};
use super::now::Now;
use super::style::Paint;
use super::tables::Table;
use super::whole::dump_in_words;

/// How long a task ran, was ready and was blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// It had the CPU.
    pub run: Duration,
    /// It or another task had the CPU; the log does not have the lengths of its runs. In a dump,
    /// also the time of which no line is left.
    pub unknown: Duration,
    /// It waited for the CPU.
    pub ready: Duration,
    /// It waited for something else.
    pub blocked: Duration,
}

impl Shares {
    /// Returns the times of a task, from its first line to its end, or to the end of the trace.
    pub fn of(trace: &Trace, task: &Task) -> Shares {
        let mut life = Living { is_timed: trace.is_timed, ..Living::default() };
        let end = task.end.unwrap_or(trace.len() - 1);
        let lines = trace.lines_of(task).into_iter().take_while(|place| *place < end);
        lines.for_each(|place| life.follow(&trace.line(place), place < trace.begin()));
        life.shares_until(trace.at(end))
    }

    /// Adds the times of another task.
    pub fn add(&mut self, other: Shares) {
        self.run += other.run;
        self.unknown += other.unknown;
        self.ready += other.ready;
        self.blocked += other.blocked;
    }

    /// All together.
    pub fn total(&self) -> Duration {
        self.run + self.unknown + self.ready + self.blocked
    }

    /// Returns the shares in tenths of a percent, 1,000 in all. A life that took no time counts as
    /// run.
    pub fn permille(&self) -> [u64; 4] {
        let micros = |span: Duration| span.as_micros() as u64;
        let total = micros(self.total());
        if total == 0 {
            return [1000, 0, 0, 0];
        }
        let part = |span| (u128::from(micros(span)) * 1000 / u128::from(total)) as u64;
        let mut parts = [part(self.run), part(self.unknown), part(self.ready), part(self.blocked)];
        // The largest share gets the rounding error.
        let missing = 1000 - parts.iter().sum::<u64>();
        *parts.iter_mut().max().expect("there are four") += missing;
        parts
    }
}

/// `12.3%`
pub fn percent(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

/// One task's life: the shares of its time, and its lines; with the end of the trace.
pub fn task(trace: &Trace, now: &Now, task: &Task, paint: Paint) -> String {
    let state = now.tasks.get(&task.id).map(|task| now.state_in_words(task));
    let state = state.as_deref().unwrap_or("ended");
    let shares = Shares::of(trace, task);
    let [mut run, unknown, ready, blocked] = shares.permille().map(percent);
    let mut length = Span(shares.run).to_string();
    if shares.run.is_zero() && !trace.is_timed {
        // The trace does not have it.
        (run, length) = (String::new(), "-".to_owned());
    }
    let head = format!("task {} `{}`: {state}", task.id, task.name);
    let mut text = paint.strong(&head) + "\n";
    let times = [
        ("run", length, run),
        ("unknown", Span(shares.unknown).to_string(), unknown),
        ("ready", Span(shares.ready).to_string(), ready),
        ("blocked", Span(shares.blocked).to_string(), blocked),
    ];
    for (name, span, share) in times {
        if name == "unknown" && shares.unknown.is_zero() {
            continue;
        }
        let _ = writeln!(text, "{}", format!("  {name:<8} {span:>12} {share:>7}").trim_end());
    }
    let _ = writeln!(text, "  {:<8} {:>12}\n", "in all", Span(shares.total()).to_string());
    if let Some(flight) = trace.whole.flight() {
        let _ = writeln!(text, "unknown: {}.\n", dump_in_words(flight));
    }
    for place in trace.lines_of(task) {
        let line = trace.line(place);
        let _ = writeln!(text, "{}", paint.line(&line, &line.to_string()));
    }
    text
}

/// A table of the tasks with one name, by number.
pub fn tasks(trace: &Trace, tasks: &[&Task], paint: Paint) -> String {
    let mut table = Table::new(&["id", "spawned", "ended", "runs", "at"]);
    for task in tasks {
        let lines = trace.lines_of(task);
        let (first, end) = (lines[0], task.end.map(|end| trace.at(end).to_string()));
        let runs = lines.iter().filter(|place| trace.verb(**place) == "run").count();
        let line = trace.line(first);
        let site = line.key("at").filter(|_| line.verb == "spawn").unwrap_or("-").to_owned();
        let end = end.unwrap_or_else(|| "-".to_owned());
        table.row([task.id.to_string(), line.at.to_string(), end, runs.to_string(), site]);
    }
    let head = format!("{} tasks have that name; `trace task ID` tells of one", tasks.len());
    paint.strong(&head) + "\n" + &table.show(paint)
}
