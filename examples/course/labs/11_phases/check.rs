//! Slow clients are closed in time and not before, and each connection has one deadline for all its
//! phases.

use std::time::Duration;

use testing::trace::{Line, trace};
use traps::Time;

use super::scenario::{self, Client, FIRST, HEAD, Stop, WRITE};
use crate::work::{self, Work};

/// A deadline may fire this late, because the table is scanned once in this time.
const TICK: Duration = Duration::from_millis(100);

/// The right end of a connection.
struct Expected {
    /// The note.
    is: &'static str,
    earliest: Time,
    latest: Time,
    /// When the head has ended or timed out, at the earliest; never, if the first byte is late.
    head: Option<Time>,
    /// The phase whose deadline passes last, and when it began.
    passed: Option<(&'static str, Duration, Time)>,
    /// When the server interrupts the connection, before it could end, and how.
    stopped: Option<(Stop, Time)>,
}

impl Expected {
    fn of(client: &Client) -> Expected {
        let tenths = |n| Duration::from_millis(100 * n);
        let mut now = Time::ZERO;
        let mut late = Duration::ZERO;
        let (mut is, mut head, mut passed) = ("answered 200", None, None);
        if tenths(client.first) > FIRST {
            (is, passed) = ("closed", Some(("the first byte", FIRST, now)));
            (now, late) = (now + FIRST, TICK);
        } else {
            now += tenths(client.first);
            let lines = tenths(client.lines.iter().sum());
            if lines > HEAD {
                (is, passed) = ("answered 408", Some(("the head", HEAD, now)));
                (now, late) = (now + HEAD, TICK);
            } else {
                now += lines;
            }
            head = Some(now);
            if tenths(client.take) > WRITE {
                (is, passed) = ("closed", Some(("the answer", WRITE, now)));
                (now, late) = (now + WRITE, late + TICK);
            } else {
                now += tenths(client.take);
            }
        }
        let mut expected =
            Expected { is, earliest: now, latest: now + late, head, passed, stopped: None };
        if let Some((stop, at)) = client.stopped {
            let at = Time::ZERO + tenths(at);
            let stopped = Some((stop, at));
            expected = Expected { is: "closed", earliest: at, latest: at, stopped, ..expected };
        }
        expected
    }
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    for client in scenario::of(work.seed) {
        let own = work::family(&lines, client.name);
        one_deadline(&client, &own)?;
        ends(&client, &Expected::of(&client), &own)?;
    }
    for client in scenario::of(work.seed) {
        are_exact(client.name, &lines, &work::family(&lines, client.name))?;
    }
    Ok(())
}

fn one_deadline(client: &Client, own: &[&Line<'_>]) -> Result<(), String> {
    let peer = client.name;
    let traps = |word: &'static str| {
        own.iter().filter(move |line| line.verb == "trap" && line.word(0) == word)
    };
    // The first timeout can be that of the server.
    let given = matches!(client.stopped, Some((Stop::Timeout, _)));
    if let Some(line) = traps("set_timeout").nth(usize::from(given)) {
        let seq = line.seq;
        return Err(format!(
            "line #{seq:04}: `{peer}` opens a timeout: that is a timer to set and to clear for \
             each phase; arm a connection deadline, which is a store"
        ));
    }
    let mut made = traps("connection_deadline");
    if made.next().is_none() {
        return Err(format!("`{peer}` makes no connection deadline"));
    }
    match made.next() {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `{peer}` makes another connection deadline; one serves all phases, if it \
             is armed again for each",
            line.seq
        )),
    }
}

/// Each deadline that fires was set for the time of a phase, from an event of the connection on.
fn are_exact(peer: &str, lines: &[Line<'_>], own: &[&Line<'_>]) -> Result<(), String> {
    let is_own = |fire: &&Line<'_>| own.iter().any(|line| Some(line.seq) == fire.cause);
    let is_deadline = |line: &&Line<'_>| line.verb == "fire" && line.word(0).starts_with('d');
    for fire in lines.iter().filter(is_deadline).filter(is_own) {
        let Some(until) = fire.key("deadline").and_then(|at| at.parse::<Time>().ok()) else {
            continue;
        };
        let is_limit =
            |line: &&Line<'_>| [FIRST, HEAD, WRITE].iter().any(|span| line.at + *span == until);
        if !own.iter().any(is_limit) {
            return Err(format!(
                "line #{:04}: the deadline of `{peer}` was at {until}, and no phase could end \
                 there: there are {} s, {} s and {} s, each from the beginning of its phase on",
                fire.seq,
                FIRST.as_secs(),
                HEAD.as_secs(),
                WRITE.as_secs()
            ));
        }
    }
    Ok(())
}

fn ends(client: &Client, expected: &Expected, own: &[&Line<'_>]) -> Result<(), String> {
    let peer = client.name;
    let mut notes = own.iter().filter(|line| line.verb == "note");
    let Some(note) = notes.next() else {
        let seq = own.last().map_or(0, |line| line.seq);
        outlived(peer, own)?;
        let why = match expected.stopped {
            Some(stopped) => of_server(stopped),
            None => "return the interrupt that ends its phase".to_owned(),
        };
        return Err(format!(
            "line #{seq:04}: `{peer}` ends, and is neither answered nor closed; {why}"
        ));
    };
    let (seq, at, is) = (note.seq, note.at, note.detail());
    let Expected { is: right, earliest, latest, .. } = *expected;
    if is != right || at < earliest || at > latest {
        let when = match earliest == latest {
            true => format!("at {earliest}"),
            false => format!("between {earliest} and {latest}"),
        };
        let why = why(expected, is, at);
        return Err(format!(
            "line #{seq:04}: `{peer}` is `{is}` at {at}, and `{right}` {when} is right; {why}"
        ));
    }
    let goes_on = own.iter().find(|line| line.verb == "block" && line.seq > seq);
    match (notes.next(), goes_on) {
        (None, None) => outlived(peer, own),
        (None, Some(line)) if line.task == note.task => Err(format!(
            "line #{:04}: `{peer}` waits again, and was `{is}` in line #{seq:04}; a connection \
             ends with its answer",
            line.seq
        )),
        (None, Some(line)) => Err(format!(
            "line #{:04}: the task `{}` goes on, and `{peer}` was `{is}` in line #{seq:04}; a \
             guard interrupts its own task, and no task that this one has spawned",
            line.seq,
            line.name()
        )),
        (Some(line), _) => Err(format!(
            "line #{:04}: `{peer}` is `{}`, and was `{is}` in line #{seq:04}; a request gets one \
             answer",
            line.seq,
            line.detail()
        )),
    }
}

/// No task that the connection has spawned ends after it.
fn outlived(peer: &str, own: &[&Line<'_>]) -> Result<(), String> {
    let exit = |task| own.iter().find(|line| line.task == task && line.verb == "exit");
    let mut spawned = own.iter().filter(|line| line.verb == "spawn");
    let Some(end) = spawned.next().and_then(|first| exit(first.task)) else { return Ok(()) };
    match spawned.find(|line| exit(line.task).is_none_or(|exit| exit.seq > end.seq)) {
        None => Ok(()),
        Some(line) => Err(format!(
            "line #{:04}: `{peer}` ends, and its task `{}` has not ended; join what you have \
             spawned",
            end.seq,
            line.name()
        )),
    }
}

fn of_server((stop, at): (Stop, Time)) -> String {
    let did = match stop {
        Stop::Cancel => "the server cancelled it",
        Stop::Timeout => "a timeout of the server around it fired",
    };
    format!("{did} at {at}: return an interrupt that is not the timeout of your deadline")
}

/// Why an end is wrong.
fn why(expected: &Expected, is: &str, at: Time) -> String {
    if let Some(stopped) = expected.stopped {
        return of_server(stopped);
    }
    let Some((phase, span, from)) = expected.passed else {
        return match (is, expected.head.is_some_and(|head| at > head)) {
            ("answered 200", false) => {
                "its head had not ended yet: that is when `line` returns false, and not before"
            }
            ("closed", true) => {
                "the deadline of an earlier phase was still armed while it took \
                                 its answer; arm it for each phase"
            }
            _ => {
                "it was slow, but in time in each phase; each phase has a time of its own, which \
                  begins with it"
            }
        }
        .to_owned();
    };
    let span = format!("{} s for {phase}, from {from} on", span.as_secs());
    let is_early = at < expected.earliest;
    match (is, expected.is) {
        ("closed", "answered 408") => "a head that is too slow is answered with 408".to_owned(),
        (is, right) if is == right && is_early => {
            format!("a deadline must not come too early: there are {span}")
        }
        _ if is_early && expected.head.is_some_and(|head| at < head) => {
            format!("it was interrupted too early: there are {span}")
        }
        (_, "answered 408") => {
            format!("there are {span}, when the first byte came, and no line gives it more")
        }
        ("answered 408", _) if phase == "the first byte" => {
            "a connection without a request is closed without a word".to_owned()
        }
        _ => format!("there are {span}; arm the deadline for that, and guard the wait"),
    }
}
