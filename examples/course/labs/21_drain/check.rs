//! Once the shutdown has begun, no order is taken, each order in progress is finished, and the
//! drain ends by itself.

use std::collections::BTreeSet;

use testing::trace::{Line, trace};

use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let lines = &lines[..];
    let close = phase(lines, "close").filter(|line| line.key("reason") == Some("SIGTERM"));
    let Some(close) = close else {
        return Err("the log has no `phase close reason=SIGTERM`: `serve` returned before the \
                    shutdown began; it is to take orders until then"
            .to_owned());
    };
    is_open(lines, close)?;
    let taken_late = said(lines, "begins").find(|(line, _)| line.seq > close.seq);
    if let Some((begins, order)) = taken_late {
        return Err(too_late(lines, close, begins, order));
    }
    let done: BTreeSet<u32> = said(lines, "is done").map(|(_, order)| order).collect();
    if let Some((begins, order)) = said(lines, "begins").find(|(_, order)| !done.contains(order)) {
        return Err(not_done(work, lines, close, begins, order));
    }
    has_drained(lines)?;
    if let Some((sent, order)) = said(lines, "is sent").find(|(_, order)| !done.contains(order)) {
        let (why, what) = match sent.seq < close.seq {
            true => (
                "no task had begun it when the shutdown began",
                "begin each order as soon as it comes",
            ),
            false => (
                "the receiver was still there after the beginning of the shutdown",
                "drop it as soon as the shutdown has begun",
            ),
        };
        return Err(format!(
            "line #{:04}: order {order} is sent at {} and neither served nor refused, so its \
             customer waits forever: {why}, in #{:04}; {what}",
            sent.seq, sent.at, close.seq
        ));
    }
    // With no order in work the drain may be over before the next customer comes.
    let has_begun = said(lines, "begins").next().is_some();
    if has_begun && said(lines, "is refused").next().is_none() {
        if let Some(drain) = phase(lines, "drain").filter(|it| it.number("holds") == Some(0)) {
            return Err(format!(
                "line #{:04}: nothing is held when the drain begins (`holds=0`), so it is over at \
                 once, and all remaining tasks are cancelled; a task that is to be finished has \
                 a `hold`, and a shield is none",
                drain.seq
            ));
        }
        return Err(format!(
            "line #{:04}: the shutdown begins here, and no order is refused after it",
            close.seq
        ));
    }
    by_no_clock(lines, close)?;
    ends_with_the_orders(lines, close)?;
    let failed = lines
        .iter()
        .filter(|line| line.verb == "note")
        .find_map(|line| Some((line.seq, line.detail().strip_prefix("the server failed: ")?)));
    match failed {
        Some((seq, error)) => Err(format!(
            "line #{seq:04}: `serve` returns the error `{error}`; the beginning of the shutdown, \
             in #{:04}, must end the wait for the next order",
            close.seq
        )),
        None => Ok(()),
    }
}

/// No order is refused before the shutdown.
fn is_open(lines: &[Line<'_>], close: &Line<'_>) -> Result<(), String> {
    match said(lines, "is refused").find(|(line, _)| line.seq < close.seq) {
        Some((refused, order)) => Err(format!(
            "line #{:04}: order {order} is refused at {}, and the shutdown begins only at {}, in \
             #{:04}; the server is to take each order until then",
            refused.seq, refused.at, close.at, close.seq
        )),
        None => Ok(()),
    }
}

/// The server waits for an order or for the shutdown, and not for a time.
fn by_no_clock(lines: &[Line<'_>], close: &Line<'_>) -> Result<(), String> {
    let is_timed = |line: &&Line<'_>| {
        // In a race the wait is an `await` line.
        let is_sleep = ["block", "await"].contains(&line.verb) && line.word(0) == "sleep";
        let is_timeout = line.verb == "trap" && line.word(0) == "set_timeout";
        line.name() == "main" && line.seq < close.seq && (is_sleep || is_timeout)
    };
    match lines.iter().find(is_timed) {
        Some(timed) => Err(format!(
            "line #{:04}: the server waits for a time (`{}`), so it sees the shutdown late, and \
             an order that comes in between is lost; the beginning of the shutdown itself is to \
             end the wait",
            timed.seq,
            timed.word(0)
        )),
        None => Ok(()),
    }
}

/// The drain is over when the last order is done or refused.
fn ends_with_the_orders(lines: &[Line<'_>], close: &Line<'_>) -> Result<(), String> {
    let settled = ["is done", "is refused"].into_iter().flat_map(|what| said(lines, what));
    let last = settled.map(|(line, _)| line).chain([close]).max_by_key(|line| line.seq);
    match (phase(lines, "cancel"), last) {
        (Some(end), Some(last)) if end.at > last.at => Err(format!(
            "line #{:04}: the drain ends at {}, and no order was in work after {}, in #{:04}; a \
             hold lasts as long as the order that it is for, and no time must be guessed",
            end.seq, end.at, last.at, last.seq
        )),
        _ => Ok(()),
    }
}

/// The first line of this phase.
fn phase<'l>(lines: &'l [Line<'l>], name: &str) -> Option<&'l Line<'l>> {
    lines.iter().find(|line| line.verb == "phase" && line.word(0) == name)
}

/// The notes `order N WHAT`, with the numbers `N`.
fn said<'l>(lines: &'l [Line<'l>], what: &'l str) -> impl Iterator<Item = (&'l Line<'l>, u32)> {
    lines.iter().filter(|line| line.verb == "note").filter_map(move |line| {
        let order = line.detail().strip_prefix("order ")?.strip_suffix(what)?;
        Some((line, order.trim().parse().ok()?))
    })
}

/// The sentence for an order that begins after the beginning of the shutdown.
fn too_late(lines: &[Line<'_>], close: &Line<'_>, begins: &Line<'_>, order: u32) -> String {
    let (seq, at, closed) = (begins.seq, begins.at, close.seq);
    let sent = said(lines, "is sent").find(|(line, sent)| *sent == order && line.seq < closed);
    let Some((sent, _)) = sent else {
        return format!(
            "line #{seq:04}: order {order} begins at {at}, and the shutdown has begun at {}, in \
             #{closed:04}; the beginning of the shutdown must end the wait for the next order",
            close.at
        );
    };
    let is_before = |line: &Line<'_>| line.task == begins.task && line.seq < begins.seq;
    let why = match said(lines, "is done").filter(|(line, _)| is_before(line)).last() {
        Some((_, other)) => format!(
            "because its task `{}` was busy with order {other}; each order is served in a task of \
             its own",
            begins.name()
        ),
        None => "in the drain; an order is begun as soon as it has come".to_owned(),
    };
    format!(
        "line #{seq:04}: order {order}, sent at {} in #{:04}, begins only at {at}, {why}",
        sent.at, sent.seq
    )
}

/// An order was begun, and its customer has not got it.
fn not_done(
    work: &Work,
    lines: &[Line<'_>],
    close: &Line<'_>,
    begins: &Line<'_>,
    order: u32,
) -> String {
    let of_task = |verb: &str| {
        let is_it = |line: &&Line<'_>| line.verb == verb && line.task == begins.task;
        lines.iter().find(is_it)
    };
    let is_interrupted = || {
        let is_it = |line: &Line<'_>| line.verb == "deliver" && line.task == begins.task;
        lines.iter().any(|line| is_it(line) && line.seq > begins.seq)
    };
    let begun = format!("order {order}, begun in #{:04},", begins.seq);
    match (of_task("cancel"), of_task("exit")) {
        (Some(cancel), _) if cancel.key("by") != Some("-") => format!(
            "line #{:04}: {begun} is cancelled by your task {}; a drain waits for what has \
             begun, and does not cancel it",
            cancel.seq,
            cancel.key("by").unwrap_or_default()
        ),
        (Some(cancel), _) => not_held(work, lines, cancel, &begun),
        (None, Some(exit)) if is_interrupted() => format!(
            "line #{:04}: the task of {begun} ends and the order is not done: a timeout of the \
             server ended its work; an order that has begun is finished, however long it takes",
            exit.seq
        ),
        (None, Some(exit)) => format!(
            "line #{:04}: the task of {begun} ends and the order is not done: its work was given \
             up when the shutdown began, in #{:04}; only the wait for the next order ends then",
            exit.seq, close.seq
        ),
        (None, None) => format!("line #{:04}: order {order} begins and is never done", begins.seq),
    }
}

/// The kernel cancelled a task that had work to do.
fn not_held(work: &Work, lines: &[Line<'_>], cancel: &Line<'_>, begun: &str) -> String {
    let seq = cancel.seq;
    let after = phase(lines, "cancel").and_then(|line| line.key("after")).unwrap_or_default();
    let holds = phase(lines, "drain").and_then(|line| line.number("holds")).unwrap_or(0);
    if after == "limit" {
        return format!(
            "line #{seq:04}: {begun} is cancelled, because the drain has reached its limit"
        );
    }
    let held = match (work.code().contains("hold()"), holds) {
        (false, _) => {
            "nothing was held, so the drain was over at once; a task that is to be finished has a \
             `hold`"
        }
        (true, 0) => {
            "no hold was there when the drain began (`holds=0`), so it was over at once; a hold in \
             a variable is dropped at the end of its block, and `let _ = hold();` drops it in that \
             statement; move it into the task of the order"
        }
        (true, _) => {
            "what was held was dropped before the order was done, and then the drain was over; the \
             hold belongs in the task of the order"
        }
    };
    format!("line #{seq:04}: {begun} is cancelled by the kernel: {held}")
}

/// The drain ended by itself: no hold was left, and the server had returned.
fn has_drained(lines: &[Line<'_>]) -> Result<(), String> {
    let cancel = phase(lines, "cancel");
    let Some(cancel) = cancel.filter(|line| line.key("after") == Some("limit")) else {
        return Ok(());
    };
    let is_left = |line: &&Line<'_>| line.verb == "cancel" && line.seq > cancel.seq;
    let left: Vec<&str> = lines.iter().filter(is_left).map(Line::name).collect();
    let why = if left.contains(&"main") {
        "`serve` has not returned, and the drain lasts as long as main; a server that takes no \
         more orders has nothing to wait for"
            .to_owned()
    } else {
        format!("a hold was not dropped; left were `{}`", left.join("`, `"))
    };
    let (seq, at) = (cancel.seq, cancel.at);
    Err(format!(
        "line #{seq:04}: at {at} the drain has reached its limit, though every order was done \
         before: {why}"
    ))
}
