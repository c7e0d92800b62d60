//! Each task gets what is right, and nobody waits for ever.

use testing::trace::{Line, trace};

use crate::work::Work;

/// A task, what it has to get, and what `main` notes when it does its part.
struct Expected {
    task: &'static str,
    gets: &'static str,
    when: &'static str,
}

const EXPECTED: [Expected; 4] = [
    Expected { task: "early", gets: "value 1", when: "send 1" },
    Expected { task: "parked", gets: "value 2", when: "send 2" },
    Expected { task: "closed", gets: "closed", when: "drop 3" },
    Expected { task: "heir", gets: "value 4", when: "send 4" },
];

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    if let Some(line) = lines.iter().find(|line| is_note(line, "ready too early")) {
        let seq = line.seq;
        return Err(format!(
            "line #{seq:04}: the first poll of `moved` is ready, and nothing was sent yet"
        ));
    }
    EXPECTED.iter().try_for_each(|expected| received(&lines, expected))
}

fn is_note(line: &Line<'_>, text: &str) -> bool {
    line.verb == "note" && text == line.event().trim_start_matches("note").trim()
}

fn received(lines: &[Line<'_>], expected: &Expected) -> Result<(), String> {
    let Expected { task, gets, when } = expected;
    let own: Vec<_> = lines.iter().filter(|line| line.name() == *task).collect();
    let sent = lines.iter().find(|line| is_note(line, when));
    let Some(note) = own.iter().find(|line| line.verb == "note") else {
        return Err(lost(&own, sent, expected));
    };
    let (seq, is) = (note.seq, note.event().trim_start_matches("note").trim());
    if sent.is_none_or(|sent| sent.seq > seq) {
        return Err(format!(
            "line #{seq:04}: `{task}` gets `{is}`, before `main` has done anything with its \
             sender; its waker was called without a reason, and a poll is no promise of a value"
        ));
    }
    if is == *gets {
        return Ok(());
    }
    let sent = sent.map_or(0, |sent| sent.seq);
    Err(format!(
        "line #{seq:04}: `{task}` gets `{is}`, where `{gets}` is right: `main` did `{when}` in \
         line #{sent:04}; to send is to drop the sender, too, so look at the value first"
    ))
}

/// It waits for ever.
fn lost(own: &[&Line<'_>], sent: Option<&Line<'_>>, expected: &Expected) -> String {
    let Expected { task, when, .. } = expected;
    let (Some(last), Some(sent)) = (own.last(), sent) else {
        return format!("`{task}` has not run, or `main` has not come to `{when}`");
    };
    let (last, sent) = (last.seq, sent.seq);
    let why = match *task {
        "closed" => "to drop the sender is news for the receiver as well",
        "heir" => "`moved` had polled the receiver before, and the waker of the last poll counts",
        _ => "the receiver has to keep its waker in each poll, and the sender to call it",
    };
    format!(
        "line #{last:04}: `{task}` waits for ever: `main` did `{when}` in line #{sent:04}, and no \
         `wake` of `{task}` followed; {why}"
    )
}
