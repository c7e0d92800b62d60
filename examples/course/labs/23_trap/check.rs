//! Each answer of the new trap, against the tasks that were ready then by the log.

use std::collections::BTreeSet;

use testing::trace::{Line, trace};

use crate::work::Work;

/// The number of times that the given program asks.
const ASKED: usize = 4;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let is_answer =
        |line: &&Line<'_>| line.verb == "note" && line.detail().starts_with("the answer is ");
    let answers: Vec<&Line<'_>> = lines.iter().filter(is_answer).collect();
    for answer in &answers {
        is_right(&lines, asked(&lines, answer)?, answer)?;
    }
    if answers.len() == ASKED {
        return Ok(());
    }
    let found = answers.len();
    Err(format!("the given program asks {ASKED} times, and the log has {found} answers"))
}

/// The one line of the trap, between `asks` and the answer.
fn asked<'a>(lines: &'a [Line<'a>], answer: &Line<'_>) -> Result<&'a Line<'a>, String> {
    let own = lines.iter().filter(|line| line.task == answer.task && line.seq < answer.seq);
    let own: Vec<&Line<'_>> = own.collect();
    let since = own.iter().rposition(|line| line.verb == "note").unwrap_or(0);
    let traps = &own[since..];
    if let Some(block) = traps.iter().find(|line| line.verb == "block") {
        return Err(format!(
            "line #{:04}: the task asks and leaves the CPU here, `{}`, so other tasks run before \
             the answer, which is about another time; your trap has its result at once, so the \
             verb makes this trap and no other, and its arm in the table calls `self.sched.answer`",
            block.seq,
            block.op()
        ));
    }
    let mut made = traps.iter().copied().filter(|line| line.verb == "trap");
    match (made.next(), made.next()) {
        (Some(_), Some(second)) => Err(format!(
            "line #{:04}: `{}` is the second trap of the same call; the verb makes one trap, and \
             the call is one line of the log",
            second.seq,
            second.op()
        )),
        (Some(one), None) => Ok(one),
        (None, _) => Err(format!(
            "line #{:04}: `{}`, and the task has made no trap since it asked; the verb is to ask \
             the kernel",
            answer.seq,
            answer.detail()
        )),
    }
}

/// The line of one trap, and the answer that the program noted.
fn is_right(lines: &[Line<'_>], asked: &Line<'_>, answer: &Line<'_>) -> Result<(), String> {
    let seq = asked.seq;
    if asked.word(0) != "ready_tasks" {
        return Err(format!(
            "line #{seq:04}: the log calls your trap `{}`, so a reader cannot tell it from \
             another; give it a word of its own, `ready_tasks`, in kernel/src/log/event.rs, and \
             name it in kernel/src/log/words.rs",
            asked.op()
        ));
    }
    let outcome = asked.outcome().unwrap_or_default();
    if let Some(interrupt) = outcome.strip_prefix('!') {
        let kind = interrupt.split(' ').next().unwrap_or_default();
        return Err(format!(
            "line #{seq:04}: your trap took an interrupt, `{kind}`, which its verb does not hand \
             on, so it is lost; a trap that only answers leaves it to the next that blocks: see \
             `pending_for` in kernel/src/interrupts.rs"
        ));
    }
    let Ok(count) = outcome.parse::<usize>() else {
        return Err(format!(
            "line #{seq:04}: the outcome in the log is `{outcome}`, expected the number; \
             `outcome` in kernel/src/log/words.rs says how a reply is shown"
        ));
    };
    is_counted(lines, asked, count)?;
    if answer.detail() == format!("the answer is {count}") {
        return Ok(());
    }
    let said = answer.detail();
    Err(format!(
        "line #{:04}: `{said}`, and the kernel has answered {count} in #{seq:04}; the verb is to \
         return what stands in the reply",
        answer.seq
    ))
}

/// The states of the tasks just before a line.
#[derive(Default)]
struct Tasks {
    alive: BTreeSet<u64>,
    ready: BTreeSet<u64>,
    /// The tasks that were ready when the turn began to run tasks.
    of_turn: BTreeSet<u64>,
    turn: u64,
}

impl Tasks {
    fn line(&mut self, line: &Line<'_>) {
        match line.verb {
            // The kernel's own task is never in the ready queue.
            _ if line.name() == "wakeup" => {}
            "spawn" => {
                self.alive.insert(line.task);
                self.ready.insert(line.task);
            }
            "wake" | "deliver" => {
                self.ready.insert(line.task);
            }
            "run" => {
                if self.turn != line.turn {
                    (self.turn, self.of_turn) = (line.turn, self.ready.clone());
                }
                self.ready.remove(&line.task);
                self.of_turn.remove(&line.task);
            }
            "exit" => {
                self.alive.remove(&line.task);
                self.ready.remove(&line.task);
                self.of_turn.remove(&line.task);
            }
            _ => {}
        }
    }
}

/// The number is that of the other tasks that are ready.
fn is_counted(lines: &[Line<'_>], asked: &Line<'_>, count: usize) -> Result<(), String> {
    let mut tasks = Tasks::default();
    lines.iter().filter(|line| line.seq < asked.seq).for_each(|line| tasks.line(line));
    let (seq, ready) = (asked.seq, tasks.ready.len());
    if count == ready {
        return Ok(());
    }
    let names = lines.iter().filter(|line| line.verb == "spawn");
    let names = names.filter(|line| tasks.ready.contains(&line.task)).map(|line| line.name());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    let names = match &names[..] {
        [] => "none of them".to_owned(),
        [first @ .., last] if names.len() > 20 => {
            format!("{}, {} more and {last}", first[..5].join(", "), names.len() - 6)
        }
        _ => names.join(", "),
    };
    let why = if count == ready + 1 && tasks.alive.len() != count + 1 {
        "the task that asks has the CPU, so it does not count"
    } else if count == tasks.of_turn.len() {
        "those that run in the next turn are ready too; `next` of kernel/src/core/tasks.rs has them"
    } else if count + 1 == tasks.alive.len() || count == tasks.alive.len() {
        "a task that is parked is not ready; it has no `wake` line since its `block`"
    } else {
        "who was spawned, woken or interrupted and has not run since is ready"
    };
    Err(format!(
        "line #{seq:04}: your trap answers {count}, expected {ready}, because ready \
         are {names}: {why}"
    ))
}
