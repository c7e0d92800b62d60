//! Each task gets the right value, and no task waits forever.

use testing::trace::{Line, trace};

use super::scenario::{self, Channel};
use crate::work::Work;

/// A task, its lines, and the value that it must get.
struct Receiving<'l> {
    task: &'static str,
    own: Vec<&'l Line<'l>>,
    /// The note of the task.
    gets: String,
    /// The use that `main` makes of the sender, and the line of it.
    sends: String,
    sent: Option<u64>,
}

impl<'l> Receiving<'l> {
    fn read(lines: &'l [Line<'l>], channel: &Channel) -> Receiving<'l> {
        let task = channel.task;
        let (gets, sends) = match channel.value {
            Some(value) => (format!("value {value}"), format!("send {value} to {task}")),
            None => ("closed".to_owned(), format!("drop the sender of {task}")),
        };
        let own = lines.iter().filter(|line| line.name() == task).collect();
        let sent = lines.iter().find(|line| line.name() == "main" && is_note(line, &sends));
        Receiving { task, own, gets, sends, sent: sent.map(|line| line.seq) }
    }
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    if let Some(line) = lines.iter().find(|line| is_note(line, "ready too early")) {
        let seq = line.seq;
        return Err(format!(
            "line #{seq:04}: the first poll of `moved` is ready, and nothing was sent yet"
        ));
    }
    for channel in scenario::of(work.seed) {
        if channel.task != "nobody" {
            let receiving = Receiving::read(&lines, &channel);
            only_a_waker(&receiving)?;
            received(&receiving)?;
        }
    }
    Ok(())
}

fn is_note(line: &Line<'_>, text: &str) -> bool {
    line.verb == "note" && line.detail() == text
}

/// The receiver asks nothing of the kernel. Its task notes only the result.
fn only_a_waker(receiving: &Receiving<'_>) -> Result<(), String> {
    let is_request = |line: &&&Line<'_>| match line.verb {
        "block" => line.word(0) != "waker",
        "note" => !["value", "closed"].contains(&line.word(0)),
        verb => verb == "trap",
    };
    match receiving.own.iter().find(is_request) {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `{}` asks the kernel for `{}`; a receiver does not know the kernel: it \
             keeps its waker, and is polled when the sender has called it",
            line.seq,
            receiving.task,
            if line.verb == "note" { line.verb } else { line.word(0) }
        )),
    }
}

fn received(receiving: &Receiving<'_>) -> Result<(), String> {
    let Receiving { task, own, gets, sends, sent } = receiving;
    let Some(note) = own.iter().find(|line| line.verb == "note") else {
        return Err(lost(receiving));
    };
    let (seq, is) = (note.seq, note.detail());
    let Some(sent) = sent.filter(|sent| *sent < seq) else {
        let runs = own.iter().filter(|line| line.verb == "run" && line.seq < seq).count();
        let why = match runs {
            0 | 1 => "a poll is pending until then",
            _ => "its waker was called without a reason, and a poll is no promise of a value",
        };
        return Err(format!(
            "line #{seq:04}: `{task}` gets `{is}`, before `main` has done anything with its \
             sender; {why}"
        ));
    };
    if is == *gets {
        return Ok(());
    }
    let why = match is {
        "closed" if gets == "value 0" => "0 is a value, like any other",
        "closed" => "to send is to drop the sender, too, so look for a value first",
        _ => "each channel has a value of its own, or none",
    };
    Err(format!(
        "line #{seq:04}: `{task}` gets `{is}`, and `{gets}` is right: `main` did `{sends}` in line \
         #{sent:04}; {why}"
    ))
}

/// The sentence for a task that waits forever.
fn lost(receiving: &Receiving<'_>) -> String {
    let Receiving { task, own, sends, sent, .. } = receiving;
    let (Some(last), Some(sent)) = (own.last(), sent) else {
        return format!("`{task}` has not run, or `main` has not come to `{sends}`");
    };
    let last = last.seq;
    if *sent < last {
        return format!(
            "line #{last:04}: `{task}` waits forever: `main` had done `{sends}` in line \
             #{sent:04}, before `{task}` was polled; a poll looks at that first"
        );
    }
    let why = match *task {
        "closed" => "to drop the sender is news for the receiver as well",
        "heir" => "`moved` had polled the receiver before, and the waker of the last poll counts",
        _ => "the receiver has to keep its waker in each poll, and the sender to call it",
    };
    format!(
        "line #{last:04}: `{task}` waits forever: `main` did `{sends}` in line #{sent:04}, and no \
         `wake` of `{task}` followed; {why}"
    )
}
