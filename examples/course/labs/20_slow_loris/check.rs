//! The loris is ended by the deadline of its connection, and the honest client is served.

use std::time::Duration;

use testing::trace::{Line, trace};

use crate::work::Work;

/// What a request may take.
const LIMIT: Duration = Duration::from_secs(10);

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    let end = |client: &str| {
        let is_end = |line: &&Line<'_>| line.verb == "note" && line.name() == client;
        lines.iter().rfind(is_end).ok_or_else(|| format!("the log has no note of `{client}`"))
    };
    let honest = end("honest")?;
    if honest.detail() != "has both answers" {
        return Err(honest_cut(&lines, honest));
    }
    let loris = end("loris")?;
    if !loris.detail().starts_with("is cut off") {
        return Err(still_there(&lines, loris));
    }
    let Some((fire, set)) = fired(&lines, "conn-1") else {
        return Err(format!(
            "line #{:04}: the loris is cut off, but no deadline of `conn-1` fired before; what a \
             client may take is time, and not a number of bytes or of reads",
            loris.seq
        ));
    };
    if set.verb != "arm" {
        return Err(format!(
            "line #{:04}: a timeout ends the loris in time; but each request opens a scope and \
             sets a timer for it, see #{:04}; arm the deadline of the connection, which costs a \
             store",
            fire.seq, set.seq
        ));
    }
    let (arms, _) = set_by(&lines, "conn-1");
    let began = arms.first().map_or(set.at, |arm| arm.at);
    let took = fire.at.since(began);
    if took < LIMIT || took > LIMIT + Duration::from_secs(1) {
        return Err(format!(
            "line #{:04}: the request of the loris is ended {} s after its deadline was armed \
             first; a request may take 10 s",
            fire.seq,
            took.as_secs_f64()
        ));
    }
    Ok(())
}

/// The lines in which that task sets a deadline: of its connection, and of a timeout.
fn set_by<'l>(lines: &'l [Line<'l>], task: &str) -> (Vec<&'l Line<'l>>, Vec<&'l Line<'l>>) {
    let of_task = || lines.iter().filter(|line| line.name() == task);
    let is_timeout = |line: &&Line<'_>| line.verb == "trap" && line.word(0) == "set_timeout";
    let arms = of_task().filter(|line| line.verb == "arm").collect();
    (arms, of_task().filter(is_timeout).collect())
}

/// The first deadline of that task that fired, and the line that set it.
fn fired<'l>(lines: &'l [Line<'l>], task: &str) -> Option<(&'l Line<'l>, &'l Line<'l>)> {
    let fires = lines.iter().filter(|line| line.verb == "fire");
    let mut with_cause = fires.filter_map(|fire| {
        let set = lines.iter().find(|line| Some(line.seq) == fire.cause)?;
        Some((fire, set))
    });
    with_cause.find(|(_, set)| set.name() == task && set.verb != "block")
}

/// Why the honest client has not got both answers.
fn honest_cut(lines: &[Line<'_>], end: &Line<'_>) -> String {
    let Some((fire, set)) = fired(lines, "conn-2") else {
        return format!(
            "line #{:04}: the honest client {}, and no deadline had fired: `serve` ended its \
             connection; it is to answer until the client closes",
            end.seq,
            end.detail()
        );
    };
    let (seq, timer, took) = (fire.seq, fire.word(0), fire.at.since(set.at));
    if took < LIMIT {
        return format!(
            "line #{seq:04}: {timer} fires {} s after it was set in #{:04}, and the honest client \
             {}, for which it needs 6 s; its line is bad, and a request may take 10 s",
            took.as_secs_f64(),
            set.seq,
            end.detail()
        );
    }
    format!(
        "line #{seq:04}: {timer} was set in #{:04}, at {}, and fires while the honest client is \
         at a later request; the limit of 10 s is for a request, so each request begins with a \
         deadline of its own",
        set.seq, set.at
    )
}

/// Why the loris was not ended.
fn still_there(lines: &[Line<'_>], end: &Line<'_>) -> String {
    let held = format!("the loris held its connection until {}", end.at);
    if let Some((fire, _)) = fired(lines, "conn-1") {
        return format!(
            "line #{:04}: the deadline of `conn-1` fires, and yet {held}: `serve` read on after \
             the timeout; a request that took too long is the end of its connection",
            fire.seq
        );
    }
    let (arms, timeouts) = set_by(lines, "conn-1");
    let is_made = |line: &&Line<'_>| {
        line.name() == "conn-1" && line.word(0).starts_with("connection_deadline")
    };
    match (&arms[..], &timeouts[..]) {
        ([], []) => match lines.iter().find(is_made) {
            Some(made) => format!(
                "line #{:04}: the deadline of `conn-1` is made here and never armed, so it cannot \
                 fire: {held}",
                made.seq
            ),
            None => format!("line #{:04}: {held}, and no deadline was in force", end.seq),
        },
        ([_, second, ..], _) => format!(
            "line #{:04}: the deadline of `conn-1` is armed here for the second time in the same \
             request, and {} times in all: each byte bought the loris another 10 s, and {held}; \
             arm it once for a request",
            second.seq,
            arms.len()
        ),
        ([], [first, second, ..]) => format!(
            "line #{:04}: this timeout is for one read, and #{:04} is the next for another: \
             each read ended in time, and {held}; the deadline must span all the reads of a \
             request",
            first.seq, second.seq
        ),
        ([only], _) | ([], [only]) => format!(
            "line #{:04}: the deadline is at {}, and {held}; a request may take 10 s",
            only.seq,
            only.key("until").unwrap_or("never")
        ),
    }
}
