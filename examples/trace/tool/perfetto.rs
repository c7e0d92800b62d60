//! `perfetto`: the Chrome trace event format, which Perfetto reads too.

use std::fmt::Write as _;

use testing::trace::Line;

use super::model::{State, Trace, wait_in_words};

/// A text as JSON has it.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // `<` must not end the script that a page carries this in.
            '<' | '\0'..='\x1f' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn micros(line: &Line<'_>) -> u64 {
    line.at.as_micros()
}

/// The whole trace: a slice for each piece of a task's life and each event from outside, a flow
/// from what woke a task to its run, and counters of how many tasks are in which state.
pub fn perfetto(trace: &Trace) -> String {
    let mut events = vec![meta("process_name", 0, "trapline"), meta("thread_name", 0, "kernel")];
    events.extend(trace.tasks.values().map(|task| meta("thread_name", task.id, &task.name)));
    for task in trace.tasks.values() {
        for piece in &task.pieces {
            let name = match piece.state {
                State::Run => "run".to_owned(),
                State::Ready => "ready".to_owned(),
                State::Blocked => wait_in_words(&trace.lines[piece.from]),
            };
            let (from, to) = (&trace.lines[piece.from], &trace.lines[piece.to]);
            events.push(slice(&name, task.id, from, micros(to) - micros(from)));
        }
    }
    for line in &trace.lines {
        if ["arrive", "fire"].contains(&line.verb) {
            events.push(slice(line.event(), 0, line, 0));
        }
    }
    for place in 0..trace.lines.len() {
        flow(trace, place, &mut events);
    }
    counters(trace, &mut events);
    format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
}

fn meta(what: &str, id: u64, name: &str) -> String {
    let name = quoted(name);
    format!(r#"{{"ph":"M","pid":1,"tid":{id},"name":"{what}","args":{{"name":{name}}}}}"#)
}

fn slice(name: &str, id: u64, line: &Line<'_>, length: u64) -> String {
    let (name, at, text) = (quoted(name), micros(line), quoted(&line.to_string()));
    let slice = format!(
        r#"{{"ph":"X","pid":1,"tid":{id},"ts":{at},"dur":{length},"name":{name},"cat":"task","#
    );
    slice + &format!(r#""args":{{"line":{text}}}}}"#)
}

/// From what is behind a wake to the run that follows it.
fn flow(trace: &Trace, place: usize, events: &mut Vec<String>) {
    let run = &trace.lines[place];
    if run.verb != "run" {
        return;
    }
    let wake = trace.cause(place);
    let Some(from) = wake.and_then(|wake| trace.cause(wake)).map(|place| &trace.lines[place])
    else {
        return;
    };
    for (ph, line, end) in [("s", from, ""), ("f", run, r#","bp":"e""#)] {
        let (id, at, seq) = (line.task, micros(line), run.seq);
        let place = format!(r#""pid":1,"tid":{id},"ts":{at},"id":{seq}"#);
        events.push(format!(r#"{{"ph":"{ph}",{place},"name":"wake","cat":"wake"{end}}}"#));
    }
}

/// How many tasks run, are ready and are blocked, whenever that changes and time goes on.
fn counters(trace: &Trace, events: &mut Vec<String>) {
    let mut changes = Vec::new();
    for task in trace.tasks.values() {
        for piece in &task.pieces {
            changes.push((piece.from, piece.state, 1));
            changes.push((piece.to, piece.state, -1));
        }
    }
    changes.sort_by_key(|(place, ..)| *place);
    let mut counts = [0_i64; 3];
    for (nth, (place, state, change)) in changes.iter().enumerate() {
        counts[*state as usize] += change;
        let at = micros(&trace.lines[*place]);
        if changes.get(nth + 1).is_none_or(|(next, ..)| micros(&trace.lines[*next]) > at) {
            let [run, ready, blocked] = counts;
            let args = format!(r#"{{"run":{run},"ready":{ready},"blocked":{blocked}}}"#);
            events.push(format!(r#"{{"ph":"C","pid":1,"ts":{at},"name":"tasks","args":{args}}}"#));
        }
    }
}
