//! A lost wake-up: no seed finds one, and the reader waits for a wake and for nothing else.

use testing::trace::{Line, trace};

use super::scenario;
use crate::panics;
use crate::work::Work;

/// This number of seeds is enough here.
const ENOUGH: u64 = 100;
/// The largest number of yields of the reader for each item.
const YIELDS: usize = 3;
/// The method of the mailbox that stays as it is.
const PUT: &str =
    "fn put(&self, item: u32) { self.items.borrow_mut().push_back(item); self.line.wake(1); }";

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    if !words(&work.code()).contains(PUT) {
        return Err(
            "`put` has changed; it appends the item and wakes a task that waits, and only \
                    `get` is to be mended"
                .to_owned(),
        );
    }
    let found = remark(&work.log, "# found ");
    let items = scenario::of(work.seed).items.len();
    let spins = lines.iter().filter(|line| is_of_reader(line, "yield")).nth(YIELDS * items);
    if let Some(line) = spins {
        return Err(format!(
            "line #{:04}: `reader` has yielded more than {} times for {items} items, and is \
             ready in every turn; wait for the writer's wake instead",
            line.seq,
            YIELDS * items
        ));
    }
    // A timeout or a sleep hides a lost wake-up, whatever else it leads to.
    let by_clock =
        |line: &&Line<'_>| line.task != 0 && line.name() != "writer" && line.key("until").is_some();
    if let Some(line) = lines.iter().find(by_clock) {
        return Err(format!(
            "line #{:04}: `{}` waits for a time (`{}`); that hides a lost wake-up and delays \
             its item; a wait that no wake can miss needs no clock",
            line.seq,
            line.name(),
            line.word(0)
        ));
    }
    if let Some(found) = found {
        return Err(left(&lines)
            .or_else(|| lost(&lines))
            .unwrap_or_else(|| format!("the explorer found a failure: {found}")));
    }
    let seeds = remark(&work.log, "# seeds ").and_then(|it| it.parse().ok()).unwrap_or(0);
    if seeds < ENOUGH {
        return Err(format!(
            "only {seeds} seeds were explored, and a seed may miss a failure; explore at least \
             {ENOUGH}"
        ));
    }
    Ok(())
}

/// The code with one blank between its words.
fn words(code: &str) -> String {
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a remark after this key.
fn remark<'t>(log: &'t str, key: &str) -> Option<&'t str> {
    log.lines().find_map(|line| line.strip_prefix(key))
}

/// Returns whether a reader waits in `what`. In a race the wait is an `await` line.
fn is_of_reader(line: &Line<'_>, what: &str) -> bool {
    ["block", "await"].contains(&line.verb) && line.name() == "reader" && line.word(0) == what
}

/// A cancelled reader that has not ended, or what was lost with it.
fn left(lines: &[Line<'_>]) -> Option<String> {
    let cancel = lines.iter().find(|line| line.verb == "cancel" && line.name() == "reader")?;
    let seq = cancel.seq;
    let of_task = || lines.iter().filter(|line| line.task == cancel.task);
    let place = of_task().filter_map(|line| line.key("at")?.rsplit_once(':')).next_back();
    let place = place.map(|(file, line)| format!("{}:{line}", panics::of_student(file)));
    let place = place.unwrap_or_default();
    if !of_task().any(|line| line.verb == "exit") {
        return Some(format!(
            "line #{seq:04}: `reader` is cancelled here and does not end; it waits at {place}, and \
             `get` is to return the interrupt that ends this wait"
        ));
    }
    let count = |what: &str, item: &str| {
        let is_it =
            |line: &&Line<'_>| (line.verb, line.word(0), line.word(1)) == ("note", what, item);
        lines.iter().filter(is_it).count()
    };
    let mut puts = lines.iter().filter(|line| line.verb == "note" && line.word(0) == "put");
    let item = puts.find(|line| count("got", line.word(1)) < count("put", line.word(1)))?.word(1);
    let is_ended = |line: &&Line<'_>| line.outcome().is_some_and(|it| it.starts_with("!cancelled"));
    let ended = of_task().rfind(is_ended).map_or(seq, |line| line.seq);
    Some(format!(
        "line #{ended:04}: the cancellation of #{seq:04} ends `get` at {place}, and item {item} is \
         lost: no reader gets it; after the wake of its wait, `get` must take the item and return \
         it without another `await`"
    ))
}

/// The item that came between a look and a wait.
fn lost(lines: &[Line<'_>]) -> Option<String> {
    let end = lines.iter().position(|line| line.word(0) == "its_run_failed")?;
    let waits = lines[..end].iter().rposition(|line| is_of_reader(line, "wait"))?;
    let reader = lines[waits].task;
    let is_woken = |line: &Line<'_>| line.task == reader && line.verb == "wake";
    if lines[waits..end].iter().any(is_woken) {
        return None;
    }
    let put =
        lines[..waits].iter().rposition(|line| line.verb == "note" && line.word(0) == "put")?;
    let left =
        lines[..put].iter().rev().find(|line| line.task == reader && line.verb == "block")?;
    let (item, put, waits) = (lines[put].word(1), lines[put].seq, lines[waits].seq);
    Some(format!(
        "line #{waits:04}: `reader` waits forever, because item {item} came before its wait, in \
         line #{put:04}, and the wake found no task: `reader` had looked, and had left the CPU at \
         #{:04} ({})",
        left.seq,
        left.word(0)
    ))
}
