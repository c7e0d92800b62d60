//! A lost wake-up: no seed finds one, and the reader waits for a wake and for nothing else.

use testing::trace::{Line, trace};

use crate::work::Work;

/// So many seeds are enough here.
const ENOUGH: u64 = 100;
/// So often the reader may yield for three items.
const YIELDS: usize = 20;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    let found = remark(&work.log, "# found ");
    let spins = lines.iter().filter(|line| is_of_reader(line, "yield")).nth(YIELDS);
    if let Some(line) = spins {
        return Err(format!(
            "line #{:04}: `reader` has yielded more than {YIELDS} times for three items, and is \
             ready in every turn; wait for the writer's wake instead",
            line.seq
        ));
    }
    // A timeout is the reader's own doing, whatever else it leads to.
    let by_clock = |line: &&Line<'_>| {
        line.name() == "reader" && (line.word(0) == "set_timeout" || is_of_reader(line, "sleep"))
    };
    if let Some(line) = lines.iter().find(by_clock) {
        return Err(format!(
            "line #{:04}: `reader` waits for a time (`{}`); that hides a lost wake-up and delays \
             its item; a wait that no wake can miss needs no clock",
            line.seq,
            line.word(0)
        ));
    }
    if let Some(found) = found {
        return Err(
            lost(&lines).unwrap_or_else(|| format!("the explorer found a failure: {found}"))
        );
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

/// What a remark says after that.
fn remark<'t>(log: &'t str, key: &str) -> Option<&'t str> {
    log.lines().find_map(|line| line.strip_prefix(key))
}

/// Whether the reader blocks in that.
fn is_of_reader(line: &Line<'_>, what: &str) -> bool {
    line.verb == "block" && line.name() == "reader" && line.word(0) == what
}

/// The item that came between a look and a wait.
fn lost(lines: &[Line<'_>]) -> Option<String> {
    let end = lines.iter().position(|line| line.word(0) == "its_run_failed")?;
    let waits = lines[..end].iter().rposition(|line| is_of_reader(line, "wait"))?;
    let is_woken = |line: &Line<'_>| line.name() == "reader" && line.verb == "wake";
    if lines[waits..end].iter().any(is_woken) {
        return None;
    }
    let put =
        lines[..waits].iter().rposition(|line| line.verb == "note" && line.word(0) == "put")?;
    let left =
        lines[..put].iter().rev().find(|line| line.name() == "reader" && line.verb == "block")?;
    let (item, put, waits) = (lines[put].word(1), lines[put].seq, lines[waits].seq);
    Some(format!(
        "line #{waits:04}: `reader` waits for ever, because item {item} came before its wait, in \
         line #{put:04}, and the wake found nobody: `reader` had looked, and had left the CPU at \
         #{:04} ({})",
        left.seq,
        left.word(0)
    ))
}
