//! `/kernel`: what the kernel of this thread does now, by server-sent events.
//!
//! It knows only the events of the log, and hides those of its own connection, so that it does not
//! show itself at work.

mod board;

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use kernel::trace::Line;
use kernel::{Kernel, Machine};
use net::Stream;
use net::http::{Request, Response};
use net::web::{Event as Sent, Events};
use traps::shutdown;

use board::Board;

/// How often the page may change.
const EVERY: Duration = Duration::from_millis(300);

const STYLE: &str = include_str!("page.css");

/// Reads the lines of the log, says why, and draws what comes.
const SCRIPT: &str = concat!(include_str!("../../trace/why.js"), include_str!("page.js"));

thread_local! {
    static BOARD: RefCell<Board> = RefCell::default();
}

/// Lets the page see the events of this kernel, which runs on this thread.
pub fn watch<M: Machine>(kernel: &mut Kernel<M>) {
    kernel.observe(|line: &Line<'_>| BOARD.with_borrow_mut(|board| board.event(line)));
}

/// The page itself.
pub async fn page() -> io::Result<Response> {
    hide_own();
    let page = include_str!("page.html").replace("{{style}}", STYLE).replace("{{script}}", SCRIPT);
    Ok(Response::new(200).header("Content-Type", "text/html; charset=utf-8")?.with_text(page))
}

/// The lines of the log that say why a task is where it is, as a list in JSON: `?task=5`.
pub async fn why(task: Option<&str>) -> io::Result<Response> {
    hide_own();
    let Some(id) = task.and_then(|task| task.parse().ok()) else {
        return Ok(Response::new(400).with_text("expected ?task= and the number of a task\n"));
    };
    match BOARD.with_borrow(|board| board.why(id)) {
        Some(lines) => {
            Ok(Response::new(200).header("Content-Type", "application/json")?.with_text(lines))
        }
        None => Ok(Response::new(404).with_text(format!("task {id} has ended\n"))),
    }
}

/// One who looks: only meanwhile the clock is read for each run.
struct Viewer;

impl Viewer {
    fn new() -> Viewer {
        BOARD.with_borrow_mut(|board| board.viewers += 1);
        Viewer
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        BOARD.with_borrow_mut(|board| board.viewers -= 1);
    }
}

/// What it shows, again whenever something has happened, until the client leaves or the server
/// stops. `?own=1` shows the events of this connection too.
pub async fn feed<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
    if request.query_value("own") != Some("1") {
        hide_own();
    }
    let _viewer = Viewer::new();
    let mut events = Events::start(request).await?;
    let mut shown = None;
    while events.is_wanted() {
        let (count, text) = BOARD.with_borrow(|board| (board.count, board.changes(shown)));
        if shown != Some(count) {
            shown = Some(count);
            events.send(&Sent::new(&text)).await?;
        }
        if shutdown::until_begun(traps::sleep(EVERY)).await.transpose()?.is_none() {
            break;
        }
    }
    events.finish()
}

fn hide_own() {
    let task = traps::current_task();
    BOARD.with_borrow_mut(|board| board.hide(task.0));
}
