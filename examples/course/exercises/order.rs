//! The order of lines, and the reasons for it.

use testing::trace::Line;

use super::answer::{Answer, find, shown};

/// The order of the lines with these numbers.
///
/// # Errors
///
/// Returns two neighbours that could be swapped. If each pair of neighbours has a reason, the lines
/// have one order.
pub fn answer(seqs: &[u64], lines: &[Line<'_>]) -> Result<Answer, String> {
    let mut chosen = Vec::new();
    for seq in seqs {
        chosen.push(find(lines, *seq)?);
    }
    let reasons = chosen.windows(2).map(|pair| {
        let (a, b) = (pair[0], pair[1]);
        let reason = (a.seq < b.seq).then(|| reason(a, b, lines)).flatten();
        reason.ok_or_else(|| format!("#{:04} need not be before #{:04}", a.seq, b.seq))
    });
    let reasons = reasons.collect::<Result<_, _>>()?;
    Ok(Answer::Order(chosen.into_iter().map(label).collect(), reasons))
}

/// A line without its time, turn, number and cause, which would reveal its place.
fn label(line: &Line<'_>) -> String {
    let event = shown(line.event());
    let words = event.split(' ').filter(|word| !word.starts_with("cause="));
    format!("{:<8} {}", line.name(), words.collect::<Vec<_>>().join(" ")).trim_end().to_owned()
}

/// The scope that a line opens.
fn opens<'l>(line: &'l Line<'_>) -> Option<&'l str> {
    let is_opening = ["set_timeout", "guard", "shield"].contains(&line.word(0));
    line.outcome().filter(|_| line.verb == "trap" && is_opening)
}

/// The scope that a line closes.
fn closes<'l>(line: &'l Line<'_>) -> Option<&'l str> {
    let is_closing = ["unset_timeout", "unguard", "unshield"].contains(&line.word(0));
    (line.verb == "trap" && is_closing).then(|| line.word(1))
}

fn number(scope: &str) -> u64 {
    scope.trim_start_matches('s').parse().unwrap_or(0)
}

fn deadline(line: &Line<'_>) -> Option<traps::Time> {
    line.key("deadline").filter(|_| line.verb == "fire")?.parse().ok()
}

/// The reason why a line must be before another one that is later in the log, in Markdown.
fn reason(a: &Line<'_>, b: &Line<'_>, lines: &[Line<'_>]) -> Option<String> {
    if b.cause == Some(a.seq) {
        return Some(match b.verb {
            "run" => "a task runs after the line that made it ready".to_owned(),
            "fire" => "a timer is set before it fires".to_owned(),
            _ => format!("the first line is the cause of the `{}`", b.verb),
        });
    }
    if let (Some(ticket), true) = (a.ticket, a.ticket == b.ticket) {
        return Some(match (a.verb, b.verb) {
            ("block" | "await", _) => format!("the wait `k={ticket}` begins before it ends"),
            _ => format!("the task runs after its wait `k={ticket}` has ended"),
        });
    }
    if let Some(scope) = opens(a)
        && b.words().any(|word| word == scope || word.strip_prefix("scope=") == Some(scope))
    {
        return Some(format!("the scope `{scope}` must be open"));
    }
    if let Some(deadline) = a.outcome().filter(|_| a.word(0) == "connection_deadline")
        && b.words().any(|word| word == deadline)
    {
        return Some(format!("the deadline `{deadline}` must exist"));
    }
    match (opens(a), opens(b)) {
        (Some(first), Some(second)) if number(first) < number(second) => {
            return Some("scopes have their numbers in the order of their opening".to_owned());
        }
        _ => {}
    }
    match (closes(a), closes(b)) {
        (Some(inner), Some(outer)) if a.task == b.task && number(inner) > number(outer) => {
            return Some("scopes close from the inside out".to_owned());
        }
        _ => {}
    }
    if let (Some(sooner), Some(later)) = (deadline(a), deadline(b))
        && sooner < later
    {
        return Some("timers fire in the order of their deadlines".to_owned());
    }
    let between = |line: &&Line<'_>| a.seq < line.seq && line.seq < b.seq && line.task == a.task;
    let is_one_run = a.task == b.task && !lines.iter().filter(between).any(|l| l.verb == "run");
    match (a.verb, b.verb) {
        ("run", _) if is_one_run => Some("a task does nothing before it runs".to_owned()),
        (_, "block" | "exit") if is_one_run && a.verb != "block" => {
            Some(format!("with `{}` the task leaves the CPU", b.verb))
        }
        _ => None,
    }
}
