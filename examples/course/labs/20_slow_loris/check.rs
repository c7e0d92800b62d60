//! The slow clients are ended by the deadlines of their connections, and the honest client is
//! served.

use testing::trace::{Line, trace};
use traps::Time;

use super::scenario::{self, Scenario};
use crate::work::Work;

/// The connections, by client.
const CONNECTIONS: [(&str, &str); 3] =
    [("loris", "conn-1"), ("honest", "conn-2"), ("silent", "conn-3")];

pub fn check(work: &Work) -> Result<(), String> {
    let scenario = scenario::of(work.seed);
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let end = |client: &str| {
        let is_end = |line: &&Line<'_>| line.verb == "note" && line.name() == client;
        lines.iter().rfind(is_end).ok_or_else(|| format!("the log has no note of `{client}`"))
    };
    let honest = end("honest")?;
    if honest.detail() != "has all answers" {
        return Err(honest_cut(&scenario, &lines, honest));
    }
    has_answered(&scenario, &lines)?;
    let (loris, silent) = (end("loris")?, end("silent")?);
    let is_unanswered = |line: &&Line<'_>| line.detail() == "has no answer to its first request";
    if let Some(client) = [loris, silent].into_iter().find(is_unanswered) {
        return Err(format!(
            "line #{:04}: `{}` has no answer to its first request, which it has sent at once",
            client.seq,
            client.name()
        ));
    }
    if !loris.detail().starts_with("is cut off") {
        return Err(still_there(&scenario, &lines, loris));
    }
    if silent.detail() != "is cut off" {
        return Err(format!(
            "line #{:04}: `silent` sends nothing, and it held its connection until {}; the limit \
             begins with the wait for the first byte, not with that byte",
            silent.seq, silent.at
        ));
    }
    for client in [loris, silent] {
        is_ended_by_deadline(&lines, client)?;
    }
    for (_, task) in CONNECTIONS {
        has_one_deadline(&lines, task)?;
        is_limited(&scenario, &lines, task)?;
        ends_at_once(&lines, task)?;
    }
    Ok(())
}

/// The requests that were answered are those of the honest client, or all that the loris sends.
fn has_answered(scenario: &Scenario, lines: &[Line<'_>]) -> Result<(), String> {
    let answers = lines.iter().filter(|line| line.verb == "note");
    let (mut expected, mut last) = (scenario.requests.iter(), None);
    for line in answers {
        let Some(answered) = line.detail().strip_prefix("answers").map(str::trim_start) else {
            continue;
        };
        let is_first = line.name() != "conn-2" && Some(answered) == scenario.first;
        // The loris ends its bytes with a new line, which is empty if they were thrown away.
        let is_of_loris = [0, scenario.bytes].contains(&answered.len());
        if is_first || (line.name() == "conn-1" && is_of_loris) {
            continue;
        }
        if answered.is_empty() {
            return Err(format!(
                "line #{:04}: `{}` answers a request without a byte; a read of 0 bytes is the end \
                 of the connection, not of a request",
                line.seq,
                line.name()
            ));
        }
        let is_again = Some(&answered) == last;
        last = expected.next();
        if last != Some(&answered) && is_again {
            return Err(format!(
                "line #{:04}: `{}` answers `{answered:.80}` for the second time; a request has one \
                 answer",
                line.seq,
                line.name()
            ));
        }
        if last != Some(&answered) {
            return Err(format!(
                "line #{:04}: `{}` answers `{answered:.80}`, which no client has requested; a \
                 request ends with the end of its line",
                line.seq,
                line.name()
            ));
        }
    }
    Ok(())
}

/// The deadline of the connection ended it.
fn is_ended_by_deadline(lines: &[Line<'_>], client: &Line<'_>) -> Result<(), String> {
    let name = client.name();
    let of = CONNECTIONS.iter().find(|(each, _)| *each == name);
    let task = of.map_or("", |(_, task)| task);
    let Some((fire, set)) = fired(lines, task) else {
        return Err(format!(
            "line #{:04}: `{name}` is cut off, but no deadline of `{task}` fired before; a client \
             may take some time, whatever the number of its bytes or reads is",
            client.seq
        ));
    };
    if set.verb != "arm" {
        return Err(format!(
            "line #{:04}: a timeout ends `{name}` in time; but each request opens a scope and \
             sets a timer for it, see #{:04}; arm the deadline of the connection, which costs a \
             store",
            fire.seq, set.seq
        ));
    }
    Ok(())
}

/// A connection whose deadline has fired ends at that moment.
fn ends_at_once(lines: &[Line<'_>], task: &str) -> Result<(), String> {
    let Some((fire, _)) = fired(lines, task) else { return Ok(()) };
    let exit = lines.iter().find(|line| line.verb == "exit" && line.name() == task);
    match exit.filter(|exit| exit.at > fire.at) {
        Some(exit) => Err(format!(
            "line #{:04}: `{task}` ends at {}, and its deadline fired at {}, in #{:04}; a \
             connection whose request took too long ends at once, without another wait",
            exit.seq, exit.at, fire.at, fire.seq
        )),
        None => Ok(()),
    }
}

/// While the task waits for a part of a request, its deadline is in force, and is the limit after
/// the start of the wait for the first byte.
fn is_limited(scenario: &Scenario, lines: &[Line<'_>], task: &str) -> Result<(), String> {
    let (mut start, mut until) = (Time::ZERO, None);
    for line in lines.iter().filter(|line| line.name() == task) {
        match line.verb {
            "note" if line.word(0) == "answers" => start = line.at + scenario.answer,
            "arm" => until = line.key("until"),
            "disarm" => until = None,
            // In a race the wait is an `await` line.
            "block" | "await" if line.word(0) == "pipe" => {
                let right = (start + scenario.limit).to_string();
                if until != Some(&right) {
                    return Err(format!(
                        "line #{:04}: `{task}` waits here for a request, and has done so since \
                         {start}; its deadline is {}, and with a limit of {} s it must be {right}",
                        line.seq,
                        until.unwrap_or("not armed"),
                        scenario.limit.as_secs_f64()
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The line at which the task answers the first request of a client that is slow after it.
fn answers_first<'l>(
    scenario: &Scenario,
    lines: &'l [Line<'l>],
    task: &str,
) -> Option<&'l Line<'l>> {
    let note = format!("answers {}", scenario.first?);
    lines.iter().find(|line| line.name() == task && line.verb == "note" && line.detail() == note)
}

/// A connection has one deadline, however many requests it makes.
fn has_one_deadline(lines: &[Line<'_>], task: &str) -> Result<(), String> {
    let is_made =
        |line: &&Line<'_>| line.name() == task && line.word(0).starts_with("connection_deadline");
    match lines.iter().filter(is_made).nth(1) {
        Some(second) => Err(format!(
            "line #{:04}: `{task}` makes a second deadline here; a connection has one deadline, \
             and each request arms it again",
            second.seq
        )),
        None => Ok(()),
    }
}

/// The lines in which the task sets a deadline: of its connection, and of a timeout.
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

/// The reason why the honest client has not got all answers.
fn honest_cut(scenario: &Scenario, lines: &[Line<'_>], end: &Line<'_>) -> String {
    let Some((fire, set)) = fired(lines, "conn-2") else {
        return format!(
            "line #{:04}: the honest client {}, and no deadline had fired: `serve` ended its \
             connection; it is to answer until the client closes",
            end.seq,
            end.detail()
        );
    };
    let (seq, timer, took) = (fire.seq, fire.word(0), fire.at.since(set.at));
    let limit = scenario.limit.as_secs_f64();
    if took < scenario.limit {
        return format!(
            "line #{seq:04}: {timer} fires {} s after it was set in #{:04}, and the honest client \
             {}, for which it needs {} s; its line is bad, and a request may take {limit} s",
            took.as_secs_f64(),
            set.seq,
            end.detail(),
            2.0 * scenario.piece.as_secs_f64()
        );
    }
    let is_note = |line: &&Line<'_>| line.name() == "conn-2" && line.verb == "note";
    let noted = lines.iter().filter(is_note).rfind(|line| line.seq < fire.seq);
    let answers = noted.and_then(|line| line.detail().strip_prefix("answers "));
    let is_wait = |line: &&Line<'_>| line.name() == "conn-2" && line.verb == "block";
    let read = lines.iter().filter(is_wait).rfind(|line| line.seq < fire.seq);
    match answers.filter(|_| read.is_some_and(|line| line.word(0) == "sleep")) {
        Some(request) => format!(
            "line #{seq:04}: {timer} was set in #{:04}, at {}, and fires while `serve` answers \
             `{request}`; the limit of {limit} s ends with the last byte of the request, so disarm \
             the deadline before the answer",
            set.seq, set.at
        ),
        None => format!(
            "line #{seq:04}: {timer} was set in #{:04}, at {}, and fires while the honest client \
             is at a later request; the limit of {limit} s is for a request, so each request \
             begins with a deadline of its own",
            set.seq, set.at
        ),
    }
}

/// The reason why the loris was not ended.
fn still_there(scenario: &Scenario, lines: &[Line<'_>], end: &Line<'_>) -> String {
    let limit = scenario.limit.as_secs_f64();
    let held = format!("the loris held its connection until {}", end.at);
    if let Some((fire, _)) = fired(lines, "conn-1") {
        return format!(
            "line #{:04}: the deadline of `conn-1` fires, and yet {held}: `serve` continued to \
             read after the timeout; a request that took too long is the end of its connection",
            fire.seq
        );
    }
    // Of the request that is slow.
    let since = answers_first(scenario, lines, "conn-1").map_or(0, |line| line.seq);
    let slow: Vec<Line<'_>> = lines.iter().filter(|line| line.seq > since).cloned().collect();
    let (arms, timeouts) = set_by(&slow, "conn-1");
    let is_made = |line: &&Line<'_>| {
        line.name() == "conn-1" && line.word(0).starts_with("connection_deadline")
    };
    match (&arms[..], &timeouts[..]) {
        ([], []) => match lines.iter().find(is_made) {
            Some(_) if since > 0 => format!(
                "line #{:04}: {held}, and no deadline was in force since its first request: each \
                 request has a limit",
                end.seq
            ),
            Some(made) => format!(
                "line #{:04}: the deadline of `conn-1` is made here and never armed, so it cannot \
                 fire: {held}",
                made.seq
            ),
            None => format!("line #{:04}: {held}, and no deadline was in force", end.seq),
        },
        ([_, second, ..], _) => format!(
            "line #{:04}: the deadline of `conn-1` is armed here for the second time in the same \
             request, and {} times in all: each time the loris had another {limit} s, and {held}; \
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
            "line #{:04}: the deadline is at {}, and {held}; a request may take {limit} s",
            only.seq,
            only.key("until").unwrap_or("never")
        ),
    }
}
