//! `/kernel`: what the kernel of this thread does now, by server-sent events.
//!
//! It knows only the events of the log, and hides those of its own connection, so that it does not
//! show itself at work.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use kernel::trace::{Alias, Arrival, Event, Line, Op, Outcome, Timer};
use kernel::{Kernel, Machine};
use net::Stream;
use net::http::{Request, Response};
use net::web::{Event as Sent, Events};
use traps::{Time, shutdown};

/// So many events are kept for the page.
const EVENTS: usize = 200;

/// So many turns are kept for the lanes.
const TURNS: usize = 72;

/// So many tasks are shown.
const TASKS: usize = 200;

/// How often the page may change.
const EVERY: Duration = Duration::from_millis(300);

thread_local! {
    static BOARD: RefCell<Board> = RefCell::default();
}

/// Lets the page see the events of this kernel, which runs on this thread.
pub fn watch<M: Machine>(kernel: &mut Kernel<M>) {
    kernel.observe(|line: &Line<'_>| BOARD.with_borrow_mut(|board| board.event(line)));
}

/// The page itself.
pub async fn page() -> io::Result<Response> {
    hide_own().await;
    let page = Response::new(200).header("Content-Type", "text/html; charset=utf-8")?;
    Ok(page.with_text(include_str!("kernel_page.html")))
}

/// What it shows, again whenever something has happened, until the client leaves or the server
/// stops. `?own=1` shows the events of this connection too.
pub async fn feed<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
    if request.query_value("own") != Some("1") {
        hide_own().await;
    }
    let mut events = Events::start(request).await?;
    let (mut shown, mut last) = (0, None);
    while events.is_wanted() {
        let (count, text) = BOARD.with_borrow(|board| (board.count, board.snapshot(shown)));
        if last != Some(count) {
            (shown, last) = (count, Some(count));
            events.send(&Sent::new(&text)).await?;
        }
        if shutdown::until_begun(traps::sleep(EVERY)).await.transpose()?.is_none() {
            break;
        }
    }
    events.finish()
}

async fn hide_own() {
    let task = traps::current_task();
    BOARD.with_borrow_mut(|board| board.hide(task.0));
}

/// One task.
#[derive(Default)]
struct Row {
    name: String,
    state: &'static str,
    parked: String,
    since: Time,
    site: String,
    /// The descriptor that it used last.
    alias: Option<Alias>,
}

#[derive(Default)]
struct Board {
    tasks: BTreeMap<u64, Row>,
    counts: BTreeMap<&'static str, u64>,
    /// How many events were shown, and the last of them.
    count: u64,
    events: VecDeque<String>,
    /// What each task did in the last turns.
    turns: VecDeque<(u64, BTreeMap<u64, char>)>,
    at: Time,
    /// Tasks that serve this page, and what is theirs.
    hidden: BTreeSet<u64>,
    aliases: BTreeSet<Alias>,
    timers: BTreeSet<Timer>,
}

impl Board {
    fn hide(&mut self, task: u64) {
        self.hidden.insert(task);
        let row = self.tasks.remove(&task);
        self.aliases.extend(row.and_then(|row| row.alias));
    }

    fn event(&mut self, line: &Line<'_>) {
        if self.is_hidden(line) {
            return;
        }
        self.at = line.at;
        self.count += 1;
        *self.counts.entry(line.event.verb()).or_default() += 1;
        self.events.push_back(line.to_string());
        if self.events.len() > EVENTS {
            self.events.pop_front();
        }
        if line.task > 0 {
            self.follow(line);
        }
    }

    /// Whether an event is of this page's own making.
    fn is_hidden(&mut self, line: &Line<'_>) -> bool {
        if self.hidden.contains(&line.task) {
            match &line.event {
                Event::Block { op: Op::Sleep { .. }, ticket: Some(ticket), .. }
                | Event::Await { op: Op::Sleep { .. }, ticket: Some(ticket), .. } => {
                    self.timers.insert(Timer::Sleep(*ticket));
                }
                Event::Trap { outcome: Outcome::Scope(scope), .. } => {
                    self.timers.insert(Timer::Scope(*scope));
                }
                Event::Arm { timer, .. } => drop(self.timers.insert(*timer)),
                Event::Io { alias, .. } => drop(self.aliases.insert(*alias)),
                Event::Exit { .. } => drop(self.hidden.remove(&line.task)),
                _ => {}
            }
            return true;
        }
        match &line.event {
            Event::Fire { timer, .. } => self.timers.remove(timer),
            Event::Arrive(Arrival::Io { alias, .. })
            | Event::Remember { alias, .. }
            | Event::Unregister { alias, .. } => self.aliases.contains(alias),
            Event::Tick { .. } => !self.hidden.is_empty(),
            _ => false,
        }
    }

    /// A task does something else now.
    fn follow(&mut self, line: &Line<'_>) {
        if self.turns.back().is_none_or(|(turn, _)| *turn != line.turn) {
            self.turns.push_back((line.turn, BTreeMap::new()));
            if self.turns.len() > TURNS {
                self.turns.pop_front();
            }
        }
        let row = self.tasks.entry(line.task).or_default();
        let mark = match &line.event {
            Event::Spawn { .. } | Event::Wake { .. } | Event::Deliver { .. } => {
                if row.state == "running" {
                    return;
                }
                row.state = "ready";
                '+'
            }
            Event::Run { .. } => {
                row.state = "running";
                '#'
            }
            Event::Block { op, at, .. } => {
                row.state = "parked";
                row.parked = op.to_string();
                row.site = at.as_ref().map_or("-".to_owned(), ToString::to_string);
                if let Op::Io { alias, .. } = op {
                    row.alias = Some(*alias);
                }
                '.'
            }
            Event::Io { alias, .. } => {
                row.alias = Some(*alias);
                return;
            }
            Event::Exit { .. } => {
                self.tasks.remove(&line.task);
                return;
            }
            _ => return,
        };
        row.since = line.at;
        if row.name.is_empty() {
            row.name = line.name.to_string();
        }
        let (_, marks) = self.turns.back_mut().expect("there is one of this turn");
        let old = marks.entry(line.task).or_insert(mark);
        *old = if *old == '#' { '#' } else { mark };
    }

    /// All that the page shows, as JSON, with the events after the first `shown`.
    fn snapshot(&self, shown: u64) -> String {
        let list = |items: Vec<String>| format!("[{}]", items.join(","));
        let tasks = self.tasks.iter().take(TASKS).map(|(id, row)| {
            let waits = row.state == "parked";
            let parked = if waits { &*row.parked } else { "-" };
            let cells = [&row.name, row.state, parked, &row.since.to_string(), &row.site];
            format!("[{id},{}]", cells.map(quoted).join(","))
        });
        let lanes = self.tasks.iter().take(TASKS).map(|(id, row)| {
            let marks = self.turns.iter().map(|(_, marks)| *marks.get(id).unwrap_or(&'.'));
            format!(
                "[{},{}]",
                quoted(&format!("{id:>3} {}", row.name)),
                quoted(&marks.collect::<String>())
            )
        });
        let counts = self.counts.iter().map(|(verb, count)| format!("[{},{count}]", quoted(verb)));
        let fresh = usize::try_from(self.count - shown).unwrap_or(EVENTS).min(self.events.len());
        let events = self.events.range(self.events.len() - fresh..).map(|line| quoted(line));
        format!(
            r#"{{"at":{},"count":{},"live":{},"counts":{},"tasks":{},"lanes":{},"events":{}}}"#,
            quoted(&self.at.to_string()),
            self.count,
            self.tasks.len(),
            list(counts.collect()),
            list(tasks.collect()),
            list(lanes.collect()),
            list(events.collect()),
        )
    }
}

/// A text as JSON has it. Lines of the log are ASCII.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\0'..='\x1f' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
