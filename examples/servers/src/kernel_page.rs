//! `/kernel`, a page that shows what the kernel of this thread does now, by server-sent events,
//! `/kernel/why?task=N`, the log lines that explain a task, and `/kernel/metrics` for Prometheus.
//!
//! The page uses only the events of the log, and hides those of its own connections, so that it
//! does not show its own work. While no page is open, an event costs the copy of a few words, and
//! what the lints must remember. Everything else is made for an update, once for all pages.

mod board;
mod kept;
mod lints;
mod metrics;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Line, Seq};
use kernel::{Kernel, Machine};
use net::Stream;
use net::http::{Request, RequestHead, Response};
use net::web::{Event as Sent, Events};
use serde_json::{Value, json};
use traps::{Time, shutdown};

use board::{Board, Task};
use kept::Kept;

/// The largest number of tasks that the page shows, the oldest first.
const TASKS: usize = 5_000;

/// The time between two updates of the page.
const EVERY: Duration = Duration::from_millis(500);

/// The largest number of log lines in the explanation of a task.
const CHAIN: usize = 40;

/// The largest number of open pages. Each takes a part of the server's time.
const VIEWERS: usize = 8;

thread_local! {
    static BOARD: RefCell<Board> = RefCell::default();
    static SHOWN: RefCell<Shown> = RefCell::default();
}

/// The newest update, made once for all open pages.
#[derive(Default)]
struct Shown {
    /// The number of the update. Numbers begin at 1.
    number: u64,
    at: Time,
    /// The last event before the update, and the last event in it.
    before: Seq,
    last: Seq,
    /// The parts that are the same in both.
    common: Value,
    /// The changes since the previous update, and everything, for a page that has not seen the
    /// previous update. Each is made when a page needs it.
    changes: Option<Rc<str>>,
    all: Option<Rc<str>>,
}

impl Shown {
    /// Returns the newest update for a page that has seen the update `seen`, and its number.
    /// Returns `None` if the page already has it.
    fn next(&mut self, board: &mut Board, seen: u64, now: Time) -> Option<(Rc<str>, u64)> {
        if self.number == 0 || now.since(self.at) >= EVERY {
            *self = Shown {
                number: self.number + 1,
                at: now,
                before: self.last,
                last: board.last,
                common: common(board, now),
                changes: None,
                all: None,
            };
        }
        let common = &self.common;
        let (text, before) = match self.number - seen {
            0 => return None,
            1 if seen > 0 => (&mut self.changes, self.before),
            _ => (&mut self.all, 0),
        };
        let make = || {
            let mut update = snapshot(board, (before, self.last), now);
            update["common"] = common.clone();
            update.to_string().into()
        };
        Some((text.get_or_insert_with(make).clone(), self.number))
    }
}

/// Lets the page see the events of `kernel`, which runs on this thread.
pub fn watch<M: Machine>(kernel: &mut Kernel<M>) {
    kernel.observe(|line: &Line<'_>| BOARD.with_borrow_mut(|board| board.event(line)));
}

/// Returns the page itself, with its scripts and its style sheet.
pub async fn page() -> io::Result<Response> {
    hide_own().await;
    let scripts = [
        include_str!("../../trace/why.js"),
        include_str!("kernel_page/tasks.js"),
        include_str!("kernel_page/table.js"),
        include_str!("kernel_page/page.js"),
        // The columns are those of the timeline.
        include_str!("kernel_page/cards.js"),
        include_str!("../../trace/timeline/cast.js"),
        include_str!("../../trace/timeline/columns.js"),
        include_str!("../../trace/timeline/present.js"),
        include_str!("kernel_page/cards_end.js"),
        "open();\n",
    ];
    let page = include_str!("kernel_page/page.html")
        .replace("<!-- columns.html -->\n", include_str!("../../trace/timeline/columns.html"))
        .replace("/* page.css */", include_str!("kernel_page/page.css"))
        .replace("/* present.css */", include_str!("../../trace/timeline/present.css"))
        .replace("/* scripts */", &scripts.concat());
    let page = match common::flight::is_on() {
        true => page.replace("id=\"dump\" hidden", "id=\"dump\""),
        false => page,
    };
    Ok(Response::new(200).header("Content-Type", "text/html; charset=utf-8")?.with_text(page))
}

/// A mark of an open page: the page counts as open until the mark is dropped.
struct Viewer;

impl Viewer {
    /// Opens a page, unless too many are open.
    fn new() -> Option<Viewer> {
        BOARD.with_borrow_mut(|board| {
            let has_room = board.viewers < VIEWERS;
            if board.viewers == 0 {
                // What happened before is not of the first update.
                board.take_most_ready();
            }
            board.viewers += usize::from(has_room);
            has_room.then(|| Viewer)
        })
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        BOARD.with_borrow_mut(|board| board.viewers -= 1);
    }
}

/// Sends the page its data, again and again, until the client leaves or the server stops. `?own=1`
/// asks for the events of this connection too.
pub async fn feed<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
    if request.query_value("own").as_deref() != Some("1") {
        hide_own().await;
    }
    let Some(_viewer) = Viewer::new() else {
        let text = format!("{VIEWERS} pages are open. Close one first.\n");
        return Ok(Response::new(503).with_text(text));
    };
    let mut events = Events::start(request).await?;
    let mut seen = 0;
    while events.is_wanted() {
        let now = traps::clock().await;
        let next =
            BOARD.with_borrow_mut(|it| SHOWN.with_borrow_mut(|shown| shown.next(it, seen, now)));
        if let Some((text, number)) = next {
            seen = number;
            events.send(&Sent::new(&text)).await?;
        }
        if shutdown::until_begun(traps::sleep(EVERY)).await.transpose()?.is_none() {
            break;
        }
    }
    events.finish()
}

/// Returns the log lines that explain a task, the oldest first, as JSON.
pub async fn why(head: &RequestHead) -> io::Result<Response> {
    hide_own().await;
    let Some(id) = head.query_value("task").and_then(|id| id.parse().ok()) else {
        let text = "Say which task, as in /kernel/why?task=2\n";
        return Ok(Response::new(400).with_text(text));
    };
    if head.query_value("worker").is_some_and(|asked| asked != worker()) {
        let text = "Another worker has answered. Start the server with --workers 1 to ask why.\n";
        return Ok(Response::new(409).with_text(text));
    }
    let lines = BOARD.with_borrow(|board| Some(explain(board, id, board.tasks.get(&id)?)));
    let Some(lines) = lines else {
        return Ok(Response::new(404).with_text(format!("No task {id} lives here\n")));
    };
    Response::json(&json!({ "lines": lines }))
}

/// Returns counts of the kernel as text for Prometheus. With several workers, each scrape gets the
/// counts of one worker, which the label `worker` names.
pub async fn metrics() -> io::Result<Response> {
    hide_own().await;
    let text = BOARD.with_borrow(|board| metrics::text(board, &worker(), thread_ran()));
    Ok(Response::new(200).header("Content-Type", metrics::TYPE)?.with_text(text))
}

/// Makes a dump of the flight recorder of this worker. A page of another site must not ask: a
/// browser sends the site that a request comes from as its `Origin`, and a page cannot change it.
pub fn dump(head: &RequestHead) -> Response {
    let text = |name| str::from_utf8(head.header(name)?).ok();
    let from = text("Origin").and_then(|site| site.split_once("://"));
    if from.is_none_or(|(_, host)| text("Host") != Some(host)) {
        let says = "Only the page /kernel of this server may ask for a dump\n";
        return Response::new(403).with_text(says);
    }
    if !common::flight::is_on() {
        return Response::new(409).with_text("Start the server with --flight 16m\n");
    }
    let says = match common::flight::dump("page") {
        true => "A dump is being written; standard error reports its file\n",
        false => "The last dump is less than a minute old\n",
    };
    Response::new(202).with_text(says)
}

/// Returns the number of this worker's thread. Workers share the port, and each has its own kernel.
fn worker() -> String {
    let id = format!("{:?}", std::thread::current().id());
    id.chars().filter(char::is_ascii_digit).collect()
}

/// Returns the lints that the page would show at the time `now`, as JSON, for tests.
pub fn lints(now: Time) -> Value {
    BOARD.with_borrow_mut(|board| board.lints.list(&board.tasks, now))
}

/// The number of tasks, descriptors and timers that the page hides now, for tests.
pub fn hidden() -> usize {
    BOARD.with_borrow(Board::hidden)
}

async fn hide_own() {
    let task = traps::current_task();
    BOARD.with_borrow_mut(|board| board.hide(task.0));
}

/// Returns the CPU time of this thread in microseconds, or `None` if the system does not report it.
fn thread_ran() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split(' ').next()?.parse::<u64>().ok()? / 1_000)
}

/// Returns the parts of an update that are the same for a new page, as JSON.
fn common(board: &mut Board, now: Time) -> Value {
    board.next_look = now + EVERY / 2;
    let look = std::mem::take(&mut board.look);
    let parked = board.tasks.values().filter(|task| task.state == "parked").count();
    let waiting =
        if look.is_empty() { parked } else { board.tasks.len().saturating_sub(look.len()) };
    let look = look.iter().map(|(id, state, span, woken)| {
        json!({ "id": id, "state": state, "for": micros(*span), "woken": woken })
    });
    json!({
        "look": look.take(TASKS).collect::<Vec<_>>(),
        "most_ready": board.take_most_ready(),
        "waiting": waiting,
        "lints": board.lints.list(&board.tasks, now),
    })
}

/// Returns all changes after the event `shown`, as JSON, with the log lines up to the event `last`.
fn snapshot(board: &Board, (shown, last): (Seq, Seq), now: Time) -> Value {
    let tasks = board.tasks.iter().take(TASKS);
    let rows = tasks.clone().filter(|(_, task)| shown == 0 || task.changed > shown);
    json!({
        "worker": worker(),
        "at": now.as_micros(),
        "count": board.count,
        "live": board.tasks.len(),
        "cpu": { "thread": thread_ran(), "tasks": micros(board.ran), "page": micros(board.own) },
        "ids": tasks.map(|(id, _)| id).collect::<Vec<_>>(),
        "rows": rows.map(|(id, task)| row(*id, task)).collect::<Vec<_>>(),
        "lines": board.between(shown, last).map(Kept::text).collect::<Vec<_>>(),
    })
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn row(id: u64, task: &Task) -> Value {
    let limits = task.limits.iter().filter(|(_, until, _)| *until != Time::NEVER);
    let limit = limits.min_by_key(|(_, until, _)| *until);
    json!({
        "id": id,
        "name": &*task.name,
        "parent": task.parent,
        "state": task.state,
        "since": task.since.as_micros(),
        "runs": task.runs,
        "ran": micros(task.ran),
        "waits": task.waits().map(Kept::text).collect::<Vec<_>>(),
        "locks": task.habits.locks().collect::<Vec<_>>(),
        "limit": limit.map(|(timer, until, what)| {
            json!({ "until": until.as_micros(), "what": format!("{timer} {what}").trim_end() })
        }),
    })
}

/// Returns the kept log lines of a task, and the kept lines that led to them.
fn explain(board: &Board, id: u64, task: &Task) -> Vec<String> {
    let own = [&task.spawn, &task.ended, &task.wake, &task.cause, &task.run, &task.block];
    let own = own.into_iter().flatten().chain(task.awaits.iter().map(|(_, kept)| kept));
    let mut lines: BTreeMap<Seq, &Kept> = own.map(|kept| (kept.seq, kept)).collect();
    let (wake, cause) = (task.wake.as_ref(), task.cause.as_ref());
    let mut open: Vec<&Kept> = wake.into_iter().chain(cause).collect();
    while let Some(line) = open.pop()
        && lines.len() < CHAIN
    {
        let behind = line.cause().and_then(|cause| find(board, cause));
        if let Some(kept) = behind.or_else(|| run_before(board, id, line))
            && lines.insert(kept.seq, kept).is_none()
        {
            open.push(kept);
        }
    }
    lines.into_values().map(Kept::text).collect()
}

fn find(board: &Board, seq: Seq) -> Option<&Kept> {
    let tasks = board.tasks.values();
    let kept = tasks.flat_map(|it| [&it.spawn, &it.wake, &it.run, &it.block]).flatten();
    board.find(seq).or_else(|| kept.into_iter().find(|kept| kept.seq == seq))
}

/// Returns the last `run` line of the task of `line`, if this is another task than `id` and the run
/// began before `line`.
fn run_before<'b>(board: &'b Board, id: u64, line: &Kept) -> Option<&'b Kept> {
    let task = board.tasks.get(&line.task).filter(|_| line.task != id)?;
    task.run.as_ref().filter(|run| run.seq < line.seq)
}
