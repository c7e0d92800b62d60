//! The important events of a kernel, as messages in plain words.
//!
//! A kernel logs its events as lines of a trace. The operator of a server has not asked for a
//! trace, so this module turns events of level `info` and above into short messages.

use std::time::Duration;

use kernel::trace::Span;
use testing::trace::{self, Line};
use traps::Time;

/// Returns the message for a line of the kernel's log, or `None` if the line needs no message. Any
/// other text is already a message.
pub fn of(text: &str) -> Option<String> {
    match trace::line(text) {
        Ok(line) => of_event(&line),
        Err(_) => Some(text.to_owned()),
    }
}

fn of_event(line: &Line<'_>) -> Option<String> {
    // A phase with nothing to wait for ends as it begins.
    let is_empty = ["holds=0", "tasks=0"].contains(&line.word(1));
    let said = match line.verb {
        "phase" if is_empty => return None,
        "phase" => of_phase(line),
        // `--print-limits` shows the options.
        "boot" => return None,
        "halt" => match line.number("threads") {
            None => "stopped".to_owned(),
            Some(threads) => {
                format!("stopped; {} still running a job", counted(threads, "thread"))
            }
        },
        "panic" => format!("panic: {}", line.detail()),
        "refuse" => format!("cannot wait for {}", line.detail().replacen(' ', ": ", 1)),
        "cap" => format!("limit reached: {}", listed(line.detail())),
        "longrun" => {
            let [from, to] = ["from", "to"].map(|key| line.key(key).unwrap_or_default());
            let [ran, cpu] = ["ran", "cpu"].map(|key| span(line, key, Time::ZERO));
            let cpu = line.key("cpu").map(|_| format!(", {cpu} at most on a CPU"));
            format!("a run took {ran}{}, from {from} to {to}", cpu.unwrap_or_default())
        }
        "warn" => line.detail().to_owned(),
        _ => line.event().to_owned(),
    };
    let who = (line.task > 0).then(|| format!(" (task {} {})", line.task, line.name()));
    Some(said + &who.unwrap_or_default())
}

fn of_phase(line: &Line<'_>) -> String {
    let tasks = counted(line.number("tasks").unwrap_or_default(), "task");
    let holds = line.number("holds").unwrap_or_default();
    let most = match line.key("until") {
        Some("never") => String::new(),
        _ => format!(", at most {}", span(line, "until", line.at)),
    };
    match line.word(0) {
        "close" => {
            let reason = line.key("reason").unwrap_or_default().replace('_', " ");
            format!("shutting down ({reason}): {tasks}")
        }
        "drain" => format!("finishing work in progress: {holds} left{most}"),
        "cancel" => {
            let why = match line.key("after") {
                Some("limit") => "time is up",
                Some("signal") => "a second signal came",
                Some("failure") => "the system failed",
                _ => "no work is in progress",
            };
            format!("{why}: cancelling {tasks}")
        }
        "cleanup" => format!("cleaning up: {tasks} left{most}"),
        _ => format!("time is up: dropping {tasks}"),
    }
}

/// Returns the time from `then` to the time under `key` in the line.
fn span(line: &Line<'_>, key: &str, then: Time) -> Span {
    let at = line.key(key).and_then(|time| time.parse::<Time>().ok());
    Span(at.map_or(Duration::ZERO, |at| at.since(then)))
}

/// Rewrites `name=body_bytes limit=8 conn=1` as `body_bytes, limit 8 (--limit-body), conn 1`.
/// Returns other text unchanged.
fn listed(text: &str) -> String {
    let Some(words) = text.strip_prefix("name=") else { return text.to_owned() };
    let mut words: Vec<String> = words.split(' ').map(|word| word.replacen('=', " ", 1)).collect();
    if let (Some(option), Some(limit)) = (option(&words[0]), words.get_mut(1)) {
        *limit += &format!(" ({option})");
    }
    words.join(", ")
}

/// Returns the command-line option that sets the limit `name`, if there is one.
fn option(name: &str) -> Option<&'static str> {
    Some(match name {
        "gate" => "--gate",
        "head_bytes" => "--limit-head",
        "request_line_bytes" => "--limit-request-line",
        "fields" => "--limit-fields",
        "body_bytes" => "--limit-body",
        "memory_bytes" => "--limit-memory",
        "connections" => "--limit-connections",
        "requests" => "--limit-requests",
        "pipelined" => "--limit-pipelined",
        "head_wait" => "--deadline-head",
        "body_wait" => "--deadline-body",
        "body_rate" => "--deadline-body-rate, --deadline-body-whole",
        "handler_wait" => "--deadline-handler",
        "write_wait" => "--deadline-write",
        _ => return None,
    })
}

/// Returns a number with its noun: `1 task`, `2 tasks`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
