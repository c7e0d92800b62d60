//! The list of traps: all that a task can ask of its kernel (row C1).
//!
//! Data only. A test holds it to the words of the log.

use std::fmt;

/// A trap, as `--list-traps` of the examples prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its word in the log.
    pub word: &'static str,
    /// Whether it parks its task until the result exists. Then an interrupt can end it, and where
    /// the result exists already it answers. Else it answers always: the task is polled on at once.
    pub blocks: bool,
    /// What makes it, in the crate `traps` unless it says so.
    pub by: &'static str,
    /// What it comes to.
    pub what: &'static str,
}

/// One line: word, `answers` or `blocks`, what makes it, what it comes to.
impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Listed { word, by, what, .. } = self;
        let does = if self.blocks { "blocks" } else { "answers" };
        write!(f, "{word:<19} {does:<7} {by:<25} {what}")
    }
}

/// The lines of `--list-traps`: all traps, and what their columns are.
#[must_use]
pub fn listed() -> Vec<String> {
    let mut lines = vec![
        "# trap              does    made by (crate traps)     comes to".to_owned(),
        "# One that blocks answers where its result exists already; an interrupt can end it. What"
            .to_owned(),
        "# else stands in a log (arm, offload oN, register, ...) is the kernel's, and no trap."
            .to_owned(),
    ];
    lines.extend(TRAPS.iter().map(Listed::to_string));
    lines
}

const fn answers(word: &'static str, by: &'static str, what: &'static str) -> Listed {
    Listed { word, blocks: false, by, what }
}

const fn blocks(word: &'static str, by: &'static str, what: &'static str) -> Listed {
    Listed { word, blocks: true, by, what }
}

/// All of them, those that answer first.
pub const TRAPS: &[Listed] = &[
    answers("clock", "clock", "a reading of the kernel's clock"),
    answers("wall_clock", "wall_clock", "the time of day"),
    answers("current_task", "current_task", "its own number"),
    answers("deadline", "current_deadline", "the nearest deadline in force, and whose it is"),
    answers("spawn", "spawn", "a new task, which first runs in the next turn"),
    answers("cancel", "Task::cancel", "a task is interrupted, now or at its next trap"),
    answers("wake", "WaitQueue::wake", "how many that wait there were made ready"),
    answers("connection_deadline", "connection_deadline", "a deadline that is armed by stores"),
    answers("set_timeout", "timeout_after", "a scope with a deadline, inside those open"),
    answers("guard", "ConnectionDeadline::guard", "the scope that it interrupts"),
    answers("branch", "branch", "a scope for one branch of a combinator"),
    answers("shield", "shield", "a scope that holds outside interrupts back"),
    answers("unset_timeout", "the end of any of these", "its scope is closed"),
    answers("check_interrupt", "check_interrupt", "that nothing is pending, or what was"),
    answers("held_interrupt", "held_interrupt", "what is pending or held back, and stays"),
    blocks("yield", "yield_now", "when all that are ready now have run once"),
    blocks("sleep", "sleep", "when so much time has passed"),
    blocks("io", "io::Io::readable", "when a descriptor looks ready, one way"),
    blocks("join", "Task::join", "when a task has ended: its output"),
    blocks("wait", "WaitQueue::wait", "when a wake or a permit comes, in order"),
    blocks("offload", "run_in_thread", "when a worker thread has run a job: its value"),
    blocks("signal", "wait_signal", "when one of some signals arrives"),
    blocks("outside", "outside", "when any thread, or a task, ends it"),
    blocks("foreign", "foreign", "when interrupted: it stands beside a waker"),
];
