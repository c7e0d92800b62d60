//! `perfetto`: the Chrome trace event format, which Perfetto reads too.

use std::collections::BTreeMap;
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

/// The whole trace: a slice for each piece of a task's life, each span and each event from outside,
/// an instant for each note, a flow from what woke a task to its run, and counters of how many
/// tasks are in which state.
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
        } else if line.verb == "note" {
            events.push(instant(line));
        }
    }
    spans(trace, &mut events);
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

fn instant(note: &Line<'_>) -> String {
    let (id, at, name) = (note.task, micros(note), quoted(note.detail()));
    let place = format!(r#""pid":1,"tid":{id},"ts":{at}"#);
    let text = quoted(&note.to_string());
    format!(r#"{{"ph":"i","s":"t",{place},"name":{name},"cat":"note","args":{{"line":{text}}}}}"#)
}

/// Lanes of spans have numbers from here.
const SPANS: u64 = 1_000_000_000;

/// Nested slices in a lane beside that of the task, since a span begins and ends in the middle of
/// runs. A span that overlaps another one and is not inside it has a further lane.
fn spans(trace: &Trace, events: &mut Vec<String>) {
    // The lanes of each task: the number, and where the open spans end, outermost first.
    let mut tasks: BTreeMap<u64, Vec<(u64, Vec<usize>)>> = BTreeMap::new();
    let mut next = SPANS;
    for span in &trace.spans {
        let lanes = tasks.entry(span.task).or_default();
        let fits = |(_, ends): &mut (u64, Vec<usize>)| {
            ends.retain(|end| *end > span.from);
            ends.last().is_none_or(|end| span.to <= *end)
        };
        let nth = lanes.iter_mut().position(fits).unwrap_or_else(|| {
            let name = trace.tasks.get(&span.task).map_or("kernel", |task| &*task.name);
            events.push(meta("thread_name", next, &format!("spans of {} {name}", span.task)));
            lanes.push((next, Vec::new()));
            next += 1;
            lanes.len() - 1
        });
        let (lane, ends) = &mut lanes[nth];
        ends.push(span.to);
        let (from, to) = (&trace.lines[span.from], &trace.lines[span.to]);
        events.push(slice(&span.name, *lane, from, micros(to) - micros(from)));
    }
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
