//! The scopes of a trace, each from the line that opened it to the line that closed it.

use std::collections::BTreeMap;

use testing::trace::Line;

use super::model::Trace;

/// How a scope ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// With a value, or with an error of the program.
    Ok,
    /// By its own deadline.
    Deadline,
    /// By an interrupt from further out or further in.
    Interrupt,
    /// No line closes it, because its task was dropped with it, or the trace ends first.
    Open,
}

/// A timeout, a shield, the guard of a connection deadline or the branch of a combinator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The line that opened it, as a place in the trace. The line has the kind of the scope and its
    /// task.
    pub from: usize,
    /// The line that closed it; if there is none, the end of its task or of the trace.
    pub to: usize,
    /// How it was left.
    pub left: Left,
}

/// All scopes, in the order of their opening.
pub fn scopes(trace: &Trace) -> Vec<Scope> {
    let (mut scopes, mut open) = (Vec::new(), BTreeMap::<Box<str>, usize>::new());
    trace.each(|place, line| match line.word(0) {
        _ if line.verb != "trap" => {}
        "set_timeout" | "guard" | "shield" | "branch" => {
            if let Some(name) = line.outcome().filter(|name| name.starts_with('s')) {
                open.insert(name.into(), scopes.len());
                let to = trace.last_of(line.task).max(place);
                scopes.push(Scope { from: place, to, left: Left::Open });
            }
        }
        "unset_timeout" | "unguard" | "unshield" | "unbranch" => {
            if let Some(nth) = open.remove(line.word(1)) {
                scopes[nth] = Scope { to: place, left: left(line), ..scopes[nth] };
            }
        }
        _ => {}
    });
    scopes
}

/// Returns how a scope ended, from the line that closes it.
fn left(line: &Line<'_>) -> Left {
    let outcome = line.outcome().unwrap_or_default();
    match outcome.split(' ').next() {
        Some("!timeout") if line.key("scope").is_none_or(|name| name == line.word(1)) => {
            Left::Deadline
        }
        Some(kind) if kind.starts_with('!') => Left::Interrupt,
        _ => Left::Ok,
    }
}
