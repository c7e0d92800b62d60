//! `why`: the chain of causes of a line, in sentences.

use std::fmt::Write as _;

use kernel::trace::{Arrival, Behind, Event, Line, Op, Outcome, Phase, Span, Timer, WakeOp};
use traps::protocol::Direction;

use super::model::{Trace, site, wait_in_words};
use super::style::Paint;

/// The lines from this one back to what came from outside, as places in the trace.
pub fn chain(trace: &Trace, place: usize) -> Vec<usize> {
    std::iter::successors(Some(place), |place| trace.cause(*place)).collect()
}

/// The answer to `why`: one sentence, and then the chain, a line each. With `lines`, the lines of
/// the log themselves.
pub fn why(trace: &Trace, place: usize, lines: bool, paint: Paint) -> String {
    let chain = chain(trace, place);
    let mut text = format!("{}\n\n", paint.strong(&sentence(trace, &chain)));
    for (nth, place) in chain.iter().enumerate() {
        let line = &trace.lines[*place];
        let shown = match lines {
            true => line.to_string(),
            false => {
                let because = if nth == 0 { "" } else { "because " };
                format!("  #{:04}  {}  {because}{}", line.seq, line.at, tell(trace, *place))
            }
        };
        let _ = writeln!(text, "{}", paint.line(&line.event, &shown));
    }
    let last = *chain.last().expect("a chain has a line");
    if trace.behind[last] != Behind::Outside {
        text += "  (the trace does not say what is behind that)\n";
    }
    text
}

/// `task 5 `conn-1``
pub fn who(line: &Line<'_>) -> String {
    match line.task {
        0 => "the kernel".to_owned(),
        id => format!("task {id} `{}`", line.name),
    }
}

/// The whole chain in one sentence: what happened, and what made the task run that did it.
fn sentence(trace: &Trace, chain: &[usize]) -> String {
    let is_run = |nth: usize| {
        chain.get(nth).is_some_and(|at| matches!(trace.lines[*at].event, Event::Run { .. }))
    };
    // A `run` only passes the question on to what made the task ready.
    let why = |nth: usize| {
        let place = *chain.get(nth)?;
        let cause = chain.get(nth + 1).map(|place| &trace.lines[*place]);
        Some(reason(trace, place, cause))
    };
    let did = tell(trace, chain[0]);
    let text = if is_run(0) {
        let who = who(&trace.lines[chain[0]]);
        why(1).map_or(did, |why| format!("{who} ran because {why}"))
    } else if is_run(1) {
        why(2).map_or(did.clone(), |why| format!("{did}, in a run that began because {why}"))
    } else {
        match chain.get(1) {
            Some(place) => format!("{did} because {}", tell(trace, *place)),
            None => did,
        }
    };
    let mut letters = text.chars();
    let capital = letters.next().into_iter().flat_map(char::to_uppercase);
    capital.chain(letters).collect::<String>() + "."
}

/// Why a task became ready, in one clause.
fn reason(trace: &Trace, place: usize, cause: Option<&Line<'static>>) -> String {
    let line = &trace.lines[place];
    let (Event::Wake { ticket: Some(ticket), .. } | Event::Deliver { ticket, .. }) = &line.event
    else {
        return tell(trace, place);
    };
    let Some(block) = trace.block_of(*ticket, place) else { return tell(trace, place) };
    let at = at(block);
    let waited = format!("it had been waiting for {} since {} s{at}", waited_for(block), block.at);
    match (&line.event, cause) {
        (Event::Deliver { outcome, .. }, _) => {
            format!("{} while {waited}", interrupted(outcome)).replace("it had been", "it was")
        }
        (_, Some(Line { event: Event::Arrive(arrival), .. })) => {
            let since = format!("since {} s{at}", block.at);
            format!("{}, which it had been waiting for {since}", arrived(arrival))
        }
        (Event::Wake { op: WakeOp::Sleep, .. }, _) => match &block.event {
            Event::Block { op: Op::Sleep { span, .. }, .. } => {
                format!("its sleep of {}, begun at {} s{at}, was over", Span(*span), block.at)
            }
            _ => tell(trace, place),
        },
        (Event::Wake { op, .. }, Some(cause)) => {
            format!("{} (#{:04}) ended its wait for `{op}`, and {waited}", who(cause), cause.seq)
        }
        _ => tell(trace, place),
    }
}

/// An interrupt as a clause.
fn interrupted(outcome: &Outcome<'_>) -> String {
    let Outcome::Interrupt { kind, scope, set_at, by, .. } = outcome else {
        return format!("it was told `{outcome}`");
    };
    if *kind == traps::Kind::Cancelled {
        return match by {
            Some(task) => format!("task {task} cancelled it"),
            None => "it was cancelled from outside".to_owned(),
        };
    }
    let set = set_at.as_ref().map_or(String::new(), |site| format!(", set at {site},"));
    match scope {
        0 => format!("its connection deadline{set} passed"),
        scope => format!("the deadline of scope s{scope}{set} passed"),
    }
}

fn arrived(arrival: &Arrival<'_>) -> String {
    match arrival {
        Arrival::Io { alias, .. } if alias.kind == 'l' => format!("a client connected to {alias}"),
        Arrival::Io { alias, .. } if alias.kind == 'e' => {
            "another thread sent the kernel a message".to_owned()
        }
        Arrival::Io { alias, direction: Direction::Read } => format!("bytes arrived on {alias}"),
        Arrival::Io { alias, direction: Direction::Write } => {
            format!("{alias} had room for more bytes")
        }
        Arrival::Signal { name } => format!("the process got {name}"),
    }
}

/// `, since 0.100000 at FILE:LINE` of a `block` line.
fn since(block: &Line<'static>) -> String {
    let at = site(block).map_or(String::new(), |site| format!(" at {site}"));
    format!("since {}{at}", block.at)
}

/// What a line says, as a clause.
pub fn tell(trace: &Trace, place: usize) -> String {
    let line = &trace.lines[place];
    let who = who(line);
    match &line.event {
        Event::Run { parked: Some(span), .. } => {
            format!("{who} ran, {} after it had left the CPU", Span(*span))
        }
        Event::Run { .. } => format!("{who} ran for the first time"),
        Event::Wake { ticket, .. } => {
            let block = ticket.and_then(|ticket| trace.block_of(ticket, place));
            let what = block.map_or("a waker".to_owned(), waited_for);
            let since = block
                .map_or(String::new(), |block| format!(" (#{:04}, {})", block.seq, since(block)));
            format!("the wait of {who} for {what}{since} was over")
        }
        Event::Deliver { outcome, .. } => {
            format!("{who} was interrupted: {}", interrupted(outcome))
        }
        Event::Spawn { parent: None, cause: None, .. } => {
            format!("{who} was started with the kernel (from outside)")
        }
        Event::Spawn { parent, .. } => {
            let by = parent.map_or("another thread".to_owned(), |task| format!("task {task}"));
            format!("{by} spawned {who}{}", at(line))
        }
        Event::Arrive(arrival) => format!("{} (from outside)", arrived(arrival)),
        Event::Fire { timer, deadline, cause } => {
            let set = trace.place(*cause).map_or(String::new(), |place| at(&trace.lines[place]));
            let what = timer_in_words(timer);
            format!(
                "it was {deadline}: {what} was due, set by #{cause:04}{set} (from outside: time)"
            )
        }
        _ => did(line, &who),
    }
}

/// ` at FILE:LINE`, if a line says so.
fn at(line: &Line<'static>) -> String {
    site(line).map_or(String::new(), |site| format!(" at {site}"))
}

/// What a `block` line waits for.
fn waited_for(block: &Line<'static>) -> String {
    match &block.event {
        Event::Block { op, .. } => wait_in_words(op),
        _ => "something".to_owned(),
    }
}

fn timer_in_words(timer: &Timer) -> String {
    match timer {
        Timer::Sleep(ticket) => format!("the sleep k={ticket}"),
        Timer::Scope(scope) => format!("the timeout s{scope}"),
        Timer::Deadline(number) => format!("the connection deadline d{number}"),
        Timer::Grace | Timer::Drain => format!("the `{timer}` of the shutdown"),
    }
}

/// What a task or the kernel did.
fn did(line: &Line<'static>, who: &str) -> String {
    match &line.event {
        Event::Block { op, .. } => {
            format!("{who} left the CPU to wait for {}{}", wait_in_words(op), at(line))
        }
        Event::Io { alias, direction: Direction::Read, bytes: 0 } => {
            format!("{who} read the end of {alias}")
        }
        Event::Io { alias, direction, bytes } => {
            let verb = if *direction == Direction::Read { "read" } else { "wrote" };
            format!("{who} {verb} {bytes} bytes on {alias}")
        }
        Event::Accept { listener, connection, .. } => {
            format!("{who} accepted {connection} at {listener}")
        }
        Event::Trap { op, outcome, .. } => format!("{who} got `{outcome}` for its trap `{op}`"),
        Event::Exit { how, .. } => format!("{who} ended ({how})"),
        Event::Cancel { by, .. } => {
            let by = by.map_or("the kernel".to_owned(), |task| format!("task {task}"));
            format!("{by} asked {who} to end")
        }
        Event::Phase(Phase::Close { reason, .. }) => format!("the shutdown began ({reason})"),
        Event::Phase(phase) => format!("the shutdown reached its phase {}", phase.word()),
        event => format!("{who}: {event}"),
    }
}
