//! The phases of a shutdown in the log: as types, as text, and back.

use traps::time::Time;

use super::cursor::{Words, owned};
use super::parse::ParseError;
use super::pen::{Field, Nr, Print, put, shown};
use super::words::{Word, word};
use super::{Seq, Text};

/// A phase that begins, behind `phase`; each says what it waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Phase<'a> {
    /// `gate reason=SIGTERM tasks=7 cause=#12`: the flag is set, who waits for it is woken.
    Gate {
        /// Why.
        reason: Text<'a>,
        /// Tasks that have not ended.
        tasks: u64,
        /// The line behind it; left out where it came from outside.
        cause: Option<Seq>,
    },
    /// `drain holds=3 until=10.000000`: until every hold is dropped.
    Drain {
        /// Holds that there are.
        holds: u64,
        /// At most.
        until: Time,
    },
    /// `cancel tasks=7 after=drained`: all that is left is cancelled.
    Cancel {
        /// How many.
        tasks: u64,
        /// How the drain ended.
        after: After,
    },
    /// `cleanup tasks=7 until=15.000000`: they are awaited.
    Cleanup {
        /// How many.
        tasks: u64,
        /// At most.
        until: Time,
    },
    /// `drop tasks=1`: the grace is over, what remains is dropped.
    Drop {
        /// How many.
        tasks: u64,
    },
}

/// How the drain of a shutdown ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// `drained`: nobody holds it any more.
    Drained,
    /// `limit`: it took too long.
    Limit,
    /// `signal`: a second signal came.
    Signal,
    /// `failure`: the machine failed.
    Failure,
}

impl Print for Phase<'_> {
    fn print(&self, out: &mut Vec<u8>) {
        match self {
            Phase::Gate { reason, tasks, cause } => {
                let cause = Field("cause", cause.map(Nr));
                put!(out, "gate reason=", word(reason), " tasks=", tasks, cause);
            }
            Phase::Drain { holds, until } => put!(out, "drain holds=", holds, " until=", until),
            Phase::Cancel { tasks, after } => {
                put!(out, "cancel tasks=", tasks, " after=", after);
            }
            Phase::Cleanup { tasks, until } => put!(out, "cleanup tasks=", tasks, " until=", until),
            Phase::Drop { tasks } => put!(out, "drop tasks=", tasks),
        }
    }
}

shown!(Phase<'_>);

/// What stands behind `phase`.
pub(super) fn phase(words: &mut Words<'_>) -> Result<Phase<'static>, ParseError> {
    const TASKS: &str = "tasks=COUNT";
    const UNTIL: &str = "until=TIME";
    Ok(match words.with("gate, drain, cancel, cleanup or drop", known)? {
        "gate" => {
            let reason = words.must("reason", "reason=WORD", |value| Some(owned(value)))?;
            let tasks = words.value("tasks", TASKS)?;
            Phase::Gate { reason, tasks, cause: words.any_cause() }
        }
        "drain" => {
            let holds = words.value("holds", "holds=COUNT")?;
            Phase::Drain { holds, until: words.value("until", UNTIL)? }
        }
        "cancel" => {
            let tasks = words.value("tasks", TASKS)?;
            let after = words.must("after", "after= and a word from the list", After::of)?;
            Phase::Cancel { tasks, after }
        }
        "cleanup" => {
            let tasks = words.value("tasks", TASKS)?;
            Phase::Cleanup { tasks, until: words.value("until", UNTIL)? }
        }
        _ => Phase::Drop { tasks: words.value("tasks", TASKS)? },
    })
}

fn known(word: &str) -> Option<&str> {
    ["gate", "drain", "cancel", "cleanup", "drop"].contains(&word).then_some(word)
}
