//! `state`: the kernel at a line of its log, as a page of text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;

use testing::trace::Line;
use testing::trace::state::{
    DIRECTIONS, Descriptor, Doing, In, Key, Primitive, State, Task, TimerName,
};
use traps::Time;

use super::chain;
use super::model::{Trace, notified_in_words};
use super::style::Paint;
use super::whole::dump_in_words;

/// The requested line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The line with this number.
    Line(u64),
    /// The last line at that time or before.
    Time(Time),
}

/// Parses a line from a user: `812`, `#0812`, `0.5`, `250ms`.
///
/// # Errors
///
/// Returns what was expected.
pub fn at(text: &str) -> Result<At, String> {
    if let Ok(seq) = text.trim_start_matches('#').parse() {
        return Ok(At::Line(seq));
    }
    super::look::time(text).map(At::Time).map_err(|_| {
        format!("expected the number of an event such as 812, or a time such as 0.5, not `{text}`")
    })
}

/// The line at a place.
pub fn line_at(trace: &Trace, place: usize) -> Line<'static> {
    trace.line(place)
}

/// Returns the number of lines.
pub fn count(trace: &Trace) -> usize {
    trace.len()
}

/// Passes the lines at some places to a function.
fn each(trace: &Trace, places: Range<usize>, mut line: impl FnMut(&Line<'_>)) {
    places.for_each(|place| line(&trace.line(place)));
}

/// Says that a trace does not have that event, and which events it has. It must have one.
pub fn missing(trace: &Trace, seq: u64) -> String {
    let (begin, len) = (trace.begin(), trace.len());
    let [first, from, last] = [0, begin, len - 1].map(|place| trace.seq(place));
    let expected = match (begin, (last + 1).checked_sub(first)) {
        _ if trace.whole.is_selection() => format!("one of the {len} selected, {first} to {last}"),
        (1.., _) => format!("one from {from} to {last}, or one of the {begin} in the dump's head"),
        (0, Some(all)) if all == len as u64 => format!("one from {first} to {last}"),
        (0, _) => format!("one of the {len} from {first} to {last}"),
    };
    format!("there is no event {seq}; expected {expected}")
}

/// Returns the place of that line in a trace, which must have a line.
///
/// # Errors
///
/// Returns what was expected.
pub fn place(trace: &Trace, at: At) -> Result<usize, String> {
    let (first, last) = (line_at(trace, 0), line_at(trace, count(trace) - 1));
    match at {
        At::Line(seq) => trace.place(seq).ok_or_else(|| missing(trace, seq)),
        At::Time(time) if time > last.at || time < first.at => {
            let (first, last) = (first.at, last.at);
            Err(format!("expected a time from {first} s to {last} s, not {time}"))
        }
        At::Time(time) => {
            let is_it = |place: &usize| line_at(trace, *place).at <= time;
            Ok((0..count(trace)).rev().find(is_it).unwrap_or(0))
        }
    }
}

/// The answer to `state`: the line, a sentence about it, and the state.
pub fn state(trace: &Trace, place: usize, paint: Paint) -> String {
    let mut walk = Walk::new(trace);
    walk.to(place);
    let mut text = head(trace, place, paint);
    for row in walk.rows() {
        let _ = writeln!(text, "{}", row.show(paint));
    }
    text
}

/// The state in the words of the kernel. In the head of a dump the state is not known.
pub fn raw(trace: &Trace, place: usize) -> String {
    if let Some(unknown) = unknown(trace, place) {
        return unknown + "\n";
    }
    let mut walk = Walk::new(trace);
    walk.to(place);
    walk.after().to_string()
}

/// The reason why the state at a line is not known, if the line is in the head of a dump.
pub fn unknown(trace: &Trace, place: usize) -> Option<String> {
    let flight = trace.whole.flight().filter(|_| place < trace.begin())?;
    Some(format!("unknown: {}", dump_in_words(flight)))
}

/// The line, and the first sentence of `why`.
pub fn head(trace: &Trace, place: usize, paint: Paint) -> String {
    let line = line_at(trace, place);
    let why = chain::why(trace, place, false, Paint::PLAIN);
    let sentence = why.lines().next().unwrap_or_default();
    format!("{}\n{}\n\n", paint.line(&line, &line.to_string()), paint.strong(sentence))
}

/// Lists the changes of a line, as [`State::row`]s: `- ` before the old row, `+ ` before the new.
pub fn changes(before: &State, after: &State) -> Vec<String> {
    let keys: BTreeSet<&Key> = after.changed().iter().filter(|key| **key != Key::Time).collect();
    let differs = keys.into_iter().map(|key| (before.row(key), after.row(key)));
    let differs = differs.filter(|(old, new)| old != new);
    let signs = differs.flat_map(|(old, new)| [("- ", old), ("+ ", new)]);
    signs.filter_map(|(sign, row)| Some(format!("{sign}{}", row?))).collect()
}

/// A row of the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The section that it begins, or nothing.
    pub section: &'static str,
    /// The text of the row.
    pub text: String,
    /// Whether the line has changed it.
    pub is_new: bool,
}

impl Row {
    /// Prints the row. A new row has a mark, even without colours.
    pub fn show(&self, paint: Paint) -> String {
        let mark = if self.is_new { "*" } else { " " };
        let text = format!("{mark} {}", self.text);
        let text = if self.is_new { paint.strong(&text) } else { text };
        format!("{} {text}", paint.faint(&format!("{:<16}", self.section))).trim_end().to_owned()
    }
}

/// The page of a state.
pub fn rows(state: &State) -> Vec<Row> {
    let changed = state.changed().iter().collect();
    let mut page = Page { state, changed, section: "", rows: Vec::new() };
    page.write();
    page.rows
}

/// The rows that a line has removed.
pub fn gone(before: &State, after: &State) -> Vec<Row> {
    let keys: BTreeSet<&Key> = after.changed().iter().collect();
    // The rest of the page shows that these have gone.
    let is_said = |key: &&Key| {
        use Key::{Cpu, Messages, Next, Notified, Ready, Time};
        matches!(key, Time | Cpu | Ready | Next | Messages | Notified(_))
    };
    let gone = keys.into_iter().filter(|key| !is_said(key) && after.row(key).is_none());
    let gone: Vec<_> = gone.filter_map(|key| before.row(key)).collect();
    let row = |(nth, text)| Row { section: if nth == 0 { "gone" } else { "" }, text, is_new: true };
    gone.into_iter().enumerate().map(row).collect()
}

struct Page<'s> {
    state: &'s State,
    changed: BTreeSet<&'s Key>,
    /// The section that the next row begins.
    section: &'static str,
    rows: Vec<Row>,
}

impl Page<'_> {
    fn row(&mut self, key: &Key, text: String) {
        let is_new = self.changed.contains(key);
        self.rows.push(Row { section: std::mem::take(&mut self.section), text, is_new });
    }

    fn write(&mut self) {
        let state = self.state;
        self.section = "has the CPU";
        match state.cpu.map(|cpu| (cpu, state.tasks.get(&cpu))) {
            Some((cpu, Some(task))) => self.task(cpu, task),
            Some(_) => self.row(&Key::Cpu, "1 wakeup, the kernel's own task".to_owned()),
            None => self.row(&Key::Cpu, "no task".to_owned()),
        }
        if let Some(messages) = state.messages {
            self.row(&Key::Messages, format!("  moves {messages} messages of other threads"));
        }
        self.section = "ready this turn";
        state.ready().for_each(|id| self.known(id));
        self.section = "ready next turn";
        state.next().for_each(|id| self.known(id));
        self.section = "parked";
        let parked = state.tasks.iter().filter(|(_, task)| task.doing == Doing::Parked);
        parked.for_each(|(id, task)| self.task(*id, task));
        self.section = "timers";
        for ((at, name), seq) in &state.timers {
            self.row(
                &Key::Timer(*name),
                format!("{at}  {name}{}, {}", owner(state, *name), line(*seq)),
            );
        }
        self.section = "deadlines";
        for (at, number) in &state.armed {
            let deadline = &state.deadlines[number];
            let phase = deadline.phase.as_deref().map_or(String::new(), |it| format!(" for {it}"));
            let site = site(deadline.site.as_deref());
            let text = format!("{at}  d{number}{phase}{site}, {}", line(deadline.seq));
            self.row(&Key::Armed(*number), text);
        }
        self.section = "descriptors";
        for (alias, descriptor) in &state.descriptors {
            let text = format!("{alias}  {}", self.descriptor(descriptor));
            self.row(&Key::Descriptor(*alias), text);
        }
        self.section = "queues";
        for (words, primitive) in &state.primitives {
            let notified = self.notified(words, primitive);
            let text = format!("{words}  {}{notified}", self.primitive(primitive));
            let key = Key::Notified(words.clone());
            let is_told = !notified.is_empty() && self.changed.contains(&key);
            let key = if is_told { key } else { Key::Primitive(words.clone()) };
            self.row(&key, text);
        }
        self.section = "jobs";
        for (number, job) in &state.jobs {
            let (since, whose) = (job.since, name(state, job.task));
            let limiter = job.limiter.as_deref().map_or(String::new(), |it| format!(" in {it}"));
            let text = format!("o{number}  {}{limiter} since {since}, of {whose}", job.doing);
            self.row(&Key::Job(*number), text);
        }
        self.section = "shutdown";
        if let Some(shutdown) = &state.shutdown {
            let (phase, seq, until) = (&shutdown.phase, shutdown.seq, until(shutdown.until));
            self.row(&Key::Shutdown, format!("{phase}{until}, {}", line(seq)));
        }
    }

    fn known(&mut self, id: u64) {
        if let Some(task) = self.state.tasks.get(&id) {
            self.task(id, task);
        }
    }

    /// A task, its scopes, its pending interrupts, and its waits.
    fn task(&mut self, id: u64, task: &Task) {
        let state = self.state;
        let waits = task.is_on_a_waker && task.doing == Doing::Parked;
        let waker = if waits { ", waits for a waker" } else { "" };
        let text = format!("{id} {}  since {}{waker}, {}", task.name, task.since, line(task.from));
        self.row(&Key::Task(id), text);
        for number in &task.scopes {
            let scope = &state.scopes[number];
            let (kind, until, inside) = (scope.kind, until(scope.until), inside(scope.parent));
            let fired =
                scope.fired.map_or(String::new(), |seq| format!(", fired at {}", line(seq)));
            let site = site(scope.site.as_deref());
            let text =
                format!("  s{number} {kind}{until}{inside}{fired}{site}, {}", line(scope.seq));
            self.row(&Key::Scope(*number), text);
        }
        for pending in &task.pending {
            let source = pending.source.map_or("a cancellation".to_owned(), |it| format!("s{it}"));
            let place = if pending.place == pending.source { None } else { pending.place };
            let text = format!("  pending: {source}{}", inside(place));
            self.row(&Key::Pending(id, *pending), text);
        }
        for ticket in &task.waits {
            let wait = &state.waits[ticket];
            let since = match wait.since == task.since {
                true => String::new(),
                false => format!(" since {}", wait.since),
            };
            let (what, inside) = (self.wait(&wait.op, wait.until), inside(wait.scope));
            let (site, held) = (site(wait.site.as_deref()), self.held(&wait.op));
            let seq = line(wait.seq);
            let text = format!("  k={ticket} {what}{since}{inside}{site}, {seq}{held}");
            self.row(&Key::Wait(*ticket), text);
        }
    }

    /// Describes a wait: the words of the log, with the names of tasks.
    fn wait(&self, op: &str, end: Option<Time>) -> String {
        let state = self.state;
        let joined = op.strip_prefix("join ").and_then(|task| task.parse().ok());
        match (joined, end) {
            (Some(task), _) => format!("join {}", name(state, task)),
            (None, Some(end)) => {
                let words = op.split(" until=").next().unwrap_or(op);
                format!("{words}{}", until(Some(end)))
            }
            (None, None) => op.to_owned(),
        }
    }

    /// `, held by 3 a`: the holders of the primitive that a wait is for. They follow the call site
    /// of the wait, which would otherwise look like theirs.
    fn held(&self, op: &str) -> String {
        let primitive = self.state.primitives.get(op).filter(|it| !it.holders.is_empty());
        let names = |it: &Primitive| names(self.state, it.holders.keys().copied());
        primitive.map_or(String::new(), |it| format!(", held by {}", names(it)))
    }

    fn descriptor(&self, descriptor: &Descriptor) -> String {
        let state = self.state;
        let mut words = Vec::new();
        words.extend(descriptor.is_registered.then(|| "registered".to_owned()));
        for (direction, ticket) in DIRECTIONS.iter().zip(descriptor.waits) {
            let wait = ticket.and_then(|ticket| state.waits.get(&ticket));
            words.extend(wait.map(|it| format!("{} waits to {direction}", name(state, it.task))));
        }
        for (direction, is_ready) in DIRECTIONS.iter().zip(descriptor.ready) {
            words.extend(is_ready.then(|| format!("ready to {direction}")));
        }
        words.join(", ")
    }

    fn primitive(&self, primitive: &Primitive) -> String {
        let state = self.state;
        let mut words = Vec::new();
        for (task, hold) in &primitive.holders {
            let site = site(hold.site.as_deref());
            let (who, seq) = (name(state, *task), line(hold.seq));
            words.push(format!("held by {who}{site}, {seq}"));
        }
        if !primitive.waits.is_empty() {
            let waits = primitive.waits.iter().filter_map(|it| state.waits.get(it));
            words.push(format!("waiting: {}", names(state, waits.map(|wait| wait.task))));
        }
        words.join("; ")
    }
}

impl Page<'_> {
    /// Writes the last notification of a primitive that tasks wait for.
    fn notified(&self, words: &str, primitive: &Primitive) -> String {
        let notified = self.state.notified.get(words).filter(|_| !primitive.waits.is_empty());
        let said = notified.map(|it| notified_in_words(it.seq, it.by, it.woke));
        said.map_or(String::new(), |said| format!("; {said}"))
    }
}

/// `3 conn-1`
fn name(state: &State, id: u64) -> String {
    state.tasks.get(&id).map_or_else(|| id.to_string(), |task| format!("{id} {}", task.name))
}

fn names(state: &State, tasks: impl Iterator<Item = u64>) -> String {
    tasks.map(|id| name(state, id)).collect::<Vec<_>>().join(", ")
}

/// ` of 3 conn-1`: the task of a timer.
fn owner(state: &State, timer: TimerName) -> String {
    let task = match timer {
        TimerName::Sleep(ticket) => state.waits.get(&ticket).map(|wait| wait.task),
        TimerName::Scope(scope) => state.scopes.get(&scope).map(|scope| scope.task),
        TimerName::Drain | TimerName::Grace => return " of the shutdown".to_owned(),
    };
    task.map_or(String::new(), |task| format!(" of {}", name(state, task)))
}

fn line(seq: u64) -> String {
    format!("#{seq:04}")
}

fn site(site: Option<&str>) -> String {
    site.map_or(String::new(), |site| format!(" at {site}"))
}

fn until(until: Option<Time>) -> String {
    until.map_or(String::new(), |until| format!(" until {until}"))
}

fn inside(scope: In) -> String {
    scope.map_or(String::new(), |scope| format!(" in s{scope}"))
}

/// Walks a trace line by line, forwards and back. To go back, it follows the lines again from a
/// state that it has kept. It keeps few, so that a long log needs little room.
pub struct Walk<'t> {
    trace: &'t Trace,
    /// States before the lines of places that are multiples of `every`, from the first on.
    kept: Vec<State>,
    every: usize,
    place: usize,
    before: State,
    after: State,
}

/// The largest number of states that are kept of a log.
const KEPT: usize = 64;
/// The smallest number of lines between two kept states.
const EVERY: usize = 1024;

impl<'t> Walk<'t> {
    /// Begins at the first line of a trace, which must have one.
    pub fn new(trace: &'t Trace) -> Walk<'t> {
        let mut after = State::default();
        after.line(&line_at(trace, 0));
        let every = EVERY.max(count(trace).div_ceil(KEPT));
        let kept = vec![State::default()];
        Walk { trace, kept, every, place: 0, before: State::default(), after }
    }

    /// The place of the line.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The state before the line.
    pub fn before(&self) -> &State {
        &self.before
    }

    /// The state at the line.
    pub fn after(&self) -> &State {
        &self.after
    }

    /// The page of the state at the line, with the rows that the line has removed. In the head of a
    /// dump the state is not known.
    pub fn rows(&self) -> Vec<Row> {
        match unknown(self.trace, self.place) {
            Some(text) => vec![Row { section: "state", text, is_new: false }],
            None => rows(&self.after).into_iter().chain(gone(&self.before, &self.after)).collect(),
        }
    }

    /// Goes to a place, or to the last one if the place does not exist.
    pub fn to(&mut self, place: usize) {
        let place = place.min(count(self.trace) - 1);
        if place < self.place {
            let nth = (place / self.every).min(self.kept.len() - 1);
            self.before = self.kept[nth].clone();
            self.place = nth * self.every;
        } else if place == self.place + 1 {
            self.pass(place);
            self.after.line(&line_at(self.trace, place));
            return;
        } else if place == self.place {
            return;
        }
        self.pass(place);
        self.after = self.before.clone();
        self.after.line(&line_at(self.trace, place));
    }

    /// Follows the lines up to that place with the state before it.
    fn pass(&mut self, place: usize) {
        let Walk { trace, kept, every, place: at, before, .. } = self;
        each(trace, *at..place, |line| {
            before.line(line);
            *at += 1;
            if *at == kept.len() * *every {
                kept.push(before.clone());
            }
        });
    }
}
