//! `why`: the chain of causes of a line, in sentences.

use std::fmt::Write as _;
use std::io::{self, Write};

use kernel::trace::Span;
use testing::trace::{Flight, Line, span};
use traps::Time;

use super::model::{Trace, notified_in_words, tasks_in_words, wait_in_words};
use super::style::Paint;

/// The lines from this one back to an event from outside, as places in the trace.
pub fn chain(trace: &Trace, place: usize) -> Vec<usize> {
    std::iter::successors(Some(place), |place| trace.cause(*place)).collect()
}

/// The answer to `why`: one sentence, and then the chain, a line each. With `lines`, the lines of
/// the log themselves.
pub fn why(trace: &Trace, place: usize, lines: bool, paint: Paint) -> String {
    let chain = chain(trace, place);
    let mut said = sentence(trace, &chain);
    // The run that contains this event.
    let run = chain.iter().take(2).find(|place| trace.verb(**place) == "run");
    if let Some(waited) = run.and_then(|run| waited(trace, *run)) {
        said = said + " " + &waited;
    }
    let mut text = format!("{}\n\n", paint.strong(&said));
    for (nth, place) in chain.iter().enumerate() {
        let line = trace.line(*place);
        let shown = match lines {
            true => line.to_string(),
            false => {
                let because = if nth == 0 { "" } else { "because " };
                format!("  #{:04}  {}  {because}{}", line.seq, line.at, tell(trace, *place))
            }
        };
        let _ = writeln!(text, "{}", paint.line(&line, &shown));
    }
    let last = *chain.last().expect("a chain has a line");
    if !trace.is_from_outside(last) {
        let unknown = match trace.whole.flight() {
            _ if trace.whole.is_selection() => {
                "the selection does not have what is behind that".to_owned()
            }
            None => "the trace does not say what is behind that".to_owned(),
            Some(Flight { from, .. }) => {
                format!("what is behind that was before #{from:04}, where the dump begins")
            }
        };
        let _ = writeln!(text, "  ({unknown})");
    }
    text
}

/// Returns why a dump was written at a line, or the command that says it, if the causes of the line
/// do not: nothing causes a wait or a run to last. A selection of lines may not have what `idle`
/// needs.
pub fn hint(trace: &Trace, place: usize) -> &'static str {
    let is_shown = trace.cause_of_dump() == Some(place) && !trace.whole.is_selection();
    match trace.whole.cause().filter(|_| is_shown) {
        Some("hang") => "\nEvery task waits; `trace idle` says for what.\n",
        Some("deadlock") => "\nTasks wait for each other; `trace idle` says which.\n",
        Some("watchdog") => {
            "\nThe run had not ended when the watchdog made the dump; `trace slow` says whose.\n"
        }
        _ => "",
    }
}

/// Writes the answer to `why` for each line of a trace, below the number of its event.
pub fn why_all(trace: &Trace, lines: bool, paint: Paint, out: &mut dyn Write) -> io::Result<()> {
    for place in 0..trace.len() {
        writeln!(out, "#{:04}", trace.seq(place))?;
        out.write_all(why(trace, place, lines, paint).as_bytes())?;
    }
    Ok(())
}

/// The lines whose cause is this line, as places in the trace, and the `fire` of a timer that this
/// line has set.
pub fn effects(trace: &Trace, place: usize) -> Vec<usize> {
    let fires = |each: usize| {
        trace.verb(each) == "fire"
            && trace.line(each).cause.and_then(|set| trace.place(set)) == Some(place)
    };
    let is_effect = |each: &usize| trace.cause(*each) == Some(place) || fires(*each);
    (place + 1..trace.len()).filter(is_effect).collect()
}

/// The `wake` lines of the waits that a `notify` or `give` line has ended, as places in the trace.
/// Their cause is the run of that line, so [`effects`] does not find them. For a `give` they end
/// with the next one of the same primitive.
fn woken(trace: &Trace, place: usize) -> Vec<usize> {
    let line = trace.line(place);
    let most = match line.verb {
        "notify" => line.number("woke").unwrap_or(0) as usize,
        "give" => usize::MAX,
        _ => 0,
    };
    let is_over = |each: &usize| {
        trace.task_of(*each).id == line.task
            && (["block", "exit"].contains(&trace.verb(*each))
                || trace.verb(*each) == "give" && trace.line(*each).op() == line.op())
    };
    let is_woken = |each: &usize| {
        trace.verb(*each) == "wake"
            && trace.cause(*each) == trace.cause(place)
            && trace.line(*each).op() == line.op()
    };
    let rest = (place + 1..trace.len()).take_while(|each| !is_over(each));
    rest.filter(is_woken).take(most).collect()
}

/// All lines that this line caused, as places in the trace: its [`effects`], and the wakes of a
/// `notify` or `give` line.
pub fn caused(trace: &Trace, place: usize) -> Vec<usize> {
    let mut found = effects(trace, place);
    found.extend(woken(trace, place));
    found
}

/// The answer to `effects`: the line in a clause, and then each line that it caused. With `lines`,
/// the lines of the log themselves.
pub fn tell_effects(trace: &Trace, place: usize, lines: bool, paint: Paint) -> String {
    let (did, mut found) = (tell(trace, place), effects(trace, place));
    let woken = woken(trace, place);
    let run = trace.cause(place).filter(|_| !woken.is_empty()).map(|run| trace.seq(run));
    let whose = |run| format!(", whose `cause` is the whole run, #{run:04}");
    let whose = run.map_or(String::new(), whose);
    found.extend(woken);
    let caused = match found.len() {
        0 => "no line.".to_owned(),
        1 => format!("this line{whose}:"),
        count => format!("these {count} lines{whose}:"),
    };
    let part =
        if place < trace.begin() { "Of what this caused, the dump has" } else { "This caused" };
    let said = format!("{}. {part} {caused}", capital(&did));
    let mut text = format!("{}\n", paint.strong(&said));
    for (nth, place) in found.into_iter().enumerate() {
        let line = trace.line(place);
        let shown = match lines {
            true => line.to_string(),
            false => format!("  #{:04}  {}  {}", line.seq, line.at, tell(trace, place)),
        };
        let gap = if nth == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{gap}{}", paint.line(&line, &shown));
    }
    text
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

/// `task 5 `conn-1``
pub fn who(line: &Line<'_>) -> String {
    match line.task {
        0 => "the kernel".to_owned(),
        id => format!("task {id} `{}`", line.name()),
    }
}

/// Returns the whole chain in one sentence: the event, and the reason why its task ran.
fn sentence(trace: &Trace, chain: &[usize]) -> String {
    let is_run = |nth: usize| chain.get(nth).is_some_and(|at| trace.verb(*at) == "run");
    // For a `run`, the question is why the task became ready.
    let why = |nth: usize| {
        let place = *chain.get(nth)?;
        let cause = chain.get(nth + 1).map(|place| trace.line(*place));
        Some(reason(trace, place, cause.as_ref()))
    };
    let did = tell(trace, chain[0]);
    let text = if is_run(0) {
        let who = who(&trace.line(chain[0]));
        why(1).map_or(did, |why| format!("{who} ran because {why}"))
    } else if is_run(1) {
        why(2).map_or(did.clone(), |why| format!("{did}, in a run that began because {why}"))
    } else {
        match chain.get(1) {
            Some(place) => format!("{did} because {}", tell(trace, *place)),
            None => did,
        }
    };
    capital(&text) + "."
}

/// Describes how long a task had waited for the CPU before a run, and which tasks had the CPU, as
/// far as the log has the lengths of runs. Empty if the task had not waited, or if the log does not
/// have the time.
fn waited(trace: &Trace, run: usize) -> Option<String> {
    let (line, ready) = (trace.line(run), trace.cause(run)?);
    let timed = line.key("waited").and_then(span);
    // In a log that is not timed, a line can have an older time than the end of the long run of its
    // task.
    let own = trace.long_run_before(ready).filter(|_| timed.is_none());
    let since = trace.at(ready).max(own.unwrap_or_default());
    let span = timed.unwrap_or_else(|| line.at.since(since));
    // The head of a dump has neither runs nor their lengths.
    let is_head = ready < trace.begin();
    if span.is_zero() || is_head && timed.is_none() {
        return None;
    }
    let text = format!("{} had been ready for {}", who(&line), Span(span));
    let text = text[..1].to_uppercase() + &text[1..];
    let runs = if is_head { Vec::new() } else { runs_between(trace, ready, run) };
    let length = |[from, to]: [usize; 2]| match timed.is_some() {
        true => Some(trace.at(to).since(trace.at(from).max(since))),
        false => trace.ran([from, to]).map(|ran| ran.min(span)),
    };
    let is_known = runs.iter().all(|run| length(*run).is_some());
    let length = |run: [usize; 2]| length(run).unwrap_or_default();
    let mut others: Vec<_> = runs.iter().map(|[from, _]| trace.task_of(*from).id).collect();
    // If several are equal, take the first.
    let longest = runs.into_iter().rev().max_by_key(|run| length(*run));
    let longest = longest.filter(|run| !length(*run).is_zero()).map(|[from, to]| {
        let task = trace.task_of(from).id;
        others.retain(|other| *other != task);
        let (who, span) = (who(&trace.line(from)), Span(length([from, to])));
        format!("{who} ran for {span} of that{}", resumed_at(trace, from))
    });
    others.sort_unstable();
    others.dedup();
    let others = match (others.len(), &longest) {
        (0, _) => None,
        (1, None) => Some("1 task ran first".to_owned()),
        (1, Some(_)) => Some("1 other task ran too".to_owned()),
        (many, None) => Some(format!("{many} tasks ran first")),
        (many, Some(_)) => Some(format!("{many} other tasks ran too")),
    };
    let unsaid = "the log is not timed and does not say for how long".to_owned();
    let unsaid = Some(unsaid).filter(|_| longest.is_none() && !is_known);
    let why: Vec<_> = longest.into_iter().chain(others).chain(unsaid).collect();
    Some(if why.is_empty() { text + "." } else { format!("{text}: {}.", why.join(", and ")) })
}

/// The runs between a line that made a task ready and the run of that task, each from its `run` to
/// its end. The first may have begun before.
fn runs_between(trace: &Trace, ready: usize, run: usize) -> Vec<[usize; 2]> {
    let ends = |place: usize| match trace.verb(place) {
        "exit" => trace.line(place).word(0) != "dropped",
        verb => verb == "block",
    };
    let begins = |place: usize| trace.verb(place) == "run";
    let last = (0..ready).rev().find(|place| begins(*place) || ends(*place));
    let (mut runs, mut open) = (Vec::new(), last.filter(|place| begins(*place)));
    for place in ready..run {
        if begins(place) {
            open = Some(place);
        } else if ends(place)
            && let Some(from) = open.take()
        {
            runs.push([from, place]);
        }
    }
    runs
}

/// `, from FILE:LINE`: the call site at which a run began, if the log has it.
fn resumed_at(trace: &Trace, run: usize) -> String {
    let from = trace.cause(run).and_then(|cause| match trace.verb(cause) {
        "spawn" => Some(cause),
        _ => trace.wait_of(cause),
    });
    let from = from.map(|from| trace.line(from));
    let site = from.as_ref().and_then(|from| from.key("at"));
    site.map_or(String::new(), |site| format!(", from {site}"))
}

/// Why a task became ready, in one clause.
fn reason(trace: &Trace, place: usize, cause: Option<&Line<'_>>) -> String {
    let line = &trace.line(place);
    let ends = ["wake", "deliver"].contains(&line.verb);
    let block = if ends { trace.wait_of(place) } else { None };
    let Some(block) = &block.map(|block| trace.line(block)) else { return tell(trace, place) };
    let at = at(block);
    let waited = format!("waiting{at} since {} s for {}", block.at, waits_for(trace, block));
    match (line.verb, line.word(0), cause) {
        ("deliver", ..) => format!("{} while it was {waited}", interrupted(line)),
        (_, _, Some(cause)) if cause.verb == "arrive" => {
            let since = format!("since {} s{at}", block.at);
            format!("{}, which it had been waiting for {since}", arrived(cause))
        }
        (_, "sleep", _) if block.word(0) == "sleep" => {
            format!("its sleep of {}, begun at {} s{at}, was over", block.word(1), block.at)
        }
        (_, "yield", _) => format!("it had yielded{at} until the next turn"),
        (_, _, Some(cause)) => {
            let (who, op) = (who(cause), line.op());
            format!("{who} (#{:04}) ended its wait for `{op}`, and it had been {waited}", cause.seq)
        }
        _ => tell(trace, place),
    }
}

/// The interrupt of a `deliver` line as a clause.
fn interrupted(line: &Line<'_>) -> String {
    let outcome = line.outcome().unwrap_or_default();
    let kind = outcome.split(' ').next().unwrap_or_default();
    let set = line.key("set-at").map_or(String::new(), |site| format!(", set at {site},"));
    match (kind, line.key("scope")) {
        ("!cancelled", _) => match line.number("by") {
            Some(task) => format!("task {task} cancelled it"),
            None => "it was cancelled from outside".to_owned(),
        },
        ("!timeout" | "!timeout-cancellation" | "!uncaught-timeout", scope) => match scope {
            Some(scope) => format!("the deadline of scope {scope}{set} passed"),
            None => format!("its connection deadline{set} passed"),
        },
        _ => format!("it was told `{outcome}`"),
    }
}

/// Returns an `arrive` line as a clause.
fn arrived(line: &Line<'_>) -> String {
    match (line.word(0), line.word(1)) {
        (signal, "") => format!("the process got {signal}"),
        (alias, _) if alias.starts_with('l') => format!("a client connected to {alias}"),
        (alias, _) if alias.starts_with('e') => {
            "another thread sent the kernel a message".to_owned()
        }
        (alias, "read") => format!("bytes arrived on {alias}"),
        (alias, _) => format!("{alias} had room for more bytes"),
    }
}

/// Returns a line as a clause.
pub fn tell(trace: &Trace, place: usize) -> String {
    let line = &trace.line(place);
    let who = who(line);
    match line.verb {
        "run" => match (line.key("parked"), trace.cause(place)) {
            (Some(span), _) => format!("{who} ran, {span} after it had left the CPU"),
            (None, Some(cause)) if trace.verb(cause) == "spawn" => {
                format!("{who} ran for the first time")
            }
            // The lines of the task `wakeup` have no such field.
            (None, _) => format!("{who} ran"),
        },
        "wake" => {
            let block = trace.wait_of(place).map(|block| trace.line(block));
            let block = block.as_ref();
            let what = match (block, line.ticket) {
                (Some(block), _) => waits_for(trace, block),
                (None, None) => "a waker".to_owned(),
                // A dump has the line that begins a wait only as long as the wait lasts.
                (None, Some(_)) => format!("`{}`", line.op()),
            };
            let since = block.map_or(String::new(), |block| {
                format!(" (#{:04}, since {}{})", block.seq, block.at, at(block))
            });
            format!("the wait of {who} for {what}{since} was over")
        }
        "deliver" => format!("{who} was interrupted: {}", interrupted(line)),
        "withdraw" => {
            let wait = trace.wait_of(place).map(|wait| trace.line(wait));
            let what = wait.as_ref().map_or(String::new(), |wait| {
                let (since, at) = (wait.at, at(wait));
                format!(" for {} (#{:04}, since {since}{at})", waits_for(trace, wait), wait.seq)
            });
            format!("the wait of {who}{what} was withdrawn: its future was dropped")
        }
        "spawn" => match (line.number("parent"), line.cause) {
            (Some(parent), _) => format!("task {parent} spawned {who}{}", at(line)),
            (None, Some(_)) => format!("another thread spawned {who}{}", at(line)),
            (None, None) => format!("{who} was started with the kernel (from outside)"),
        },
        "arrive" => format!("{} (from outside)", arrived(line)),
        "fire" => {
            let cause = line.cause.unwrap_or_default();
            let set = trace.place(cause).map_or(String::new(), |place| at(&trace.line(place)));
            let (now, what) = (line.at.to_string(), timer_in_words(line));
            let late = line.key("deadline").filter(|deadline| *deadline != now);
            let due = late.map_or("was due".to_owned(), |it| format!("had been due since {it}"));
            format!("it was {now}: {what} {due}, set by #{cause:04}{set} (from outside: time)")
        }
        _ => did(trace, line, &who),
    }
}

/// Describes the wait of a line, with the holders that the line names. If it names none, because
/// the primitive was handed over then, with the task that took it next.
fn waits_for(trace: &Trace, block: &Line<'_>) -> String {
    let mut words = wait_in_words(block, &|id| trace.name(id));
    let place = trace.place(block.seq);
    let next = place.filter(|_| block.key("held-by").is_none());
    let next = next.and_then(|place| trace.taken_during(place));
    let taken = match &next {
        Some(take) => {
            let holder = tasks_in_words(&take.task.to_string(), &|id| trace.name(id));
            words = format!("{words}, held by {holder}");
            take.key("at").map(str::to_owned)
        }
        None => block.number("held-by").and_then(|holder| taken_at(trace, block, holder)),
    };
    let lost = place.and_then(|place| trace.notified_before(place));
    let lost = lost.filter(|notify| notify.number("woke") == Some(0));
    match (taken, lost) {
        (Some(site), _) => format!("{words}, who took it at {site}"),
        (_, Some(notify)) => {
            format!("{words}, {}", notified_in_words(notify.seq, notify.task, 0))
        }
        (None, None) => words,
    }
}

/// Returns the call site at which a task took the primitive that a `block` or `await` line waits
/// for.
fn taken_at(trace: &Trace, block: &Line<'_>, holder: u64) -> Option<String> {
    let is_it = |place: &usize| trace.verb(*place) == "take" && trace.task_of(*place).id == holder;
    let takes = (0..trace.place(block.seq)?).rev().filter(is_it).map(|place| trace.line(place));
    let take = takes.into_iter().find(|take| take.op() == block.op())?;
    Some(take.key("at")?.to_owned())
}

/// ` at FILE:LINE`, if the line has a call site.
fn at(line: &Line<'_>) -> String {
    line.key("at").map_or(String::new(), |site| format!(" at {site}"))
}

/// Describes the timer of a `fire` line.
fn timer_in_words(fire: &Line<'_>) -> String {
    let timer = fire.word(0);
    match timer.chars().next() {
        Some('k') => format!("the sleep {timer}"),
        Some('s') => format!("the timeout {timer}"),
        _ if ["grace", "drain"].contains(&timer) => format!("the `{timer}` of the shutdown"),
        _ => format!("the connection deadline {timer}"),
    }
}

/// Describes the action of a task or the kernel. Each verb has a sentence, here or in [`tell`].
fn did(trace: &Trace, line: &Line<'_>, who: &str) -> String {
    let (first, second, outcome) = (line.word(0), line.word(1), line.outcome().unwrap_or_default());
    let key = |name| line.key(name).unwrap_or_default();
    match (line.verb, second) {
        ("block", _) => {
            format!("{who} left the CPU{} to wait for {}", at(line), waits_for(trace, line))
        }
        ("await", _) => {
            format!("{who} began{} to wait for {} and ran on", at(line), waits_for(trace, line))
        }
        ("io", "read") if outcome == "0" => format!("{who} read the end of {first}"),
        ("io", "read") => format!("{who} read {outcome} bytes on {first}"),
        ("io", _) => format!("{who} wrote {outcome} bytes on {first}"),
        ("accept", _) => format!("{who} accepted {} at {first}", line.word(2)),
        ("trap", _) => format!("{who} got `{outcome}` for its trap `{}`", line.op()),
        ("exit", _) => format!("{who} ended ({first})"),
        ("cancel", _) => {
            let by = line.number("by").map(|task| format!("task {task}"));
            format!("{} asked {who} to end", by.as_deref().unwrap_or("the kernel"))
        }
        ("phase", _) if first == "close" => format!("the shutdown began ({})", key("reason")),
        ("phase", _) => format!("the shutdown reached its phase {first}"),
        ("move", _) => {
            let to = scope_in_words(key("in"));
            let what = if first.starts_with('s') { "scope" } else { "wait" };
            format!("the {what} {first} of {who} moved into {to}: its future was polled there")
        }
        ("take", _) => format!("{who} took {first} {second}{}", at(line)),
        ("give", _) => {
            let from = line.key("from").map_or(String::new(), |task| format!(" of task {task}"));
            format!("{who} gave back {first} {second}{from}")
        }
        ("notify", _) => {
            // The operation of the waits in a queue.
            let what = match first {
                "wait" | "queue_get" | "queue_put" => format!("queue {second}"),
                _ => line.op().to_owned(),
            };
            match key("woke") {
                "0" => format!("{who} notified {what}, and no task waited there"),
                "1" => format!("{who} notified {what}, and woke 1 task"),
                many => format!("{who} notified {what}, and woke {many} tasks"),
            }
        }
        ("drop", _) if is_job(first) => format!("job {first} of {who} was dropped before it ran"),
        ("drop", _) => {
            let why = first.replace('_', " ");
            format!("the future of {who} was dropped before its end ({why})")
        }
        ("join", _) => {
            let output = tasks_in_words(first, &|id| trace.name(id));
            format!("{who} took the output of {output}")
        }
        ("yielded", _) => {
            let budget = key("budget");
            format!("{who} yielded after {budget} reads and writes that it did not wait for")
        }
        ("longrun", _) => {
            let span = |time: &str| time.parse::<Time>().ok().map(|it| Span(it.since(Time::ZERO)));
            let ran = span(key("ran")).map_or(String::new(), |ran| format!(" for {ran}"));
            let cpu = line.key("cpu").and_then(span);
            let cpu = cpu.map_or(String::new(), |cpu| format!(", {cpu} of that on a CPU"));
            let [from, to] = ["from", "to"].map(|name| stop_in_words(key(name)));
            format!("{who} had run{ran}{cpu}, from {from} to {to}")
        }
        ("late", _) => {
            let (over, deadline) = (key("over"), key("deadline"));
            format!(
                "scope {first} of {who} closed with a value, {over} after its deadline {deadline}"
            )
        }
        ("race", _) => {
            let [winner, loser] = ["winner", "loser"].map(|name| match key(name) {
                "cancel" => "a cancellation".to_owned(),
                word => format!("a {word}"),
            });
            let scope = line.word(2);
            let scope = if scope.is_empty() { "" } else { &format!(" (scope {scope})") };
            format!("{who} had got {winner} when {loser} came too{scope}")
        }
        ("warn", _) => format!("the kernel warned about {who}: `{}`", line.detail()),
        ("panic", _) => format!("{who} panicked: `{}`", line.detail()),
        ("note", _) => format!("{who} noted: `{}`", line.detail()),
        ("enter", _) => format!("{who} entered the span {first}"),
        ("leave", _) => format!("{who} left the span {first}"),
        ("register", _) => match key("why") {
            "first" => format!("the poller began to watch {first}, for the first wait of {who}"),
            _ => format!("the poller began to watch {first} again, for a wait of {who}"),
        },
        ("unregister", _) => {
            let why = match key("why") {
                "wake" => "a wait for it was over",
                "suspend" => "its task left the CPU for something else",
                "other" => "its task waits for another descriptor or direction",
                "exit" => "its task ended",
                "interrupt" => "a wait for it was interrupted or withdrawn",
                _ => "its handle was closed",
            };
            format!("the poller stopped watching {first}, because {why}")
        }
        ("remember", way) => {
            format!("the descriptor {first} became ready to {way}, and no task waited for that")
        }
        ("close", _) => format!("the handle of {first} was closed, which the poller did not watch"),
        ("refuse", _) => {
            let error = line.detail().strip_prefix(first).unwrap_or_default().trim_start();
            format!("the poller refused {first}: `{error}`")
        }
        ("arm", _) => {
            let phase = line.key("phase").map_or(String::new(), |phase| format!(" for {phase}"));
            let (timer, until) = (timer_in_words(line), key("until"));
            format!("{who} set {timer}{phase} to {until}{}", at(line))
        }
        ("disarm", _) => format!("{who} cancelled {}", timer_in_words(line)),
        ("tick", _) => {
            let (fired, armed) = (key("fired"), key("armed"));
            format!("the kernel scanned its connection deadlines: {fired} fired, {armed} are armed")
        }
        ("offload", "starts") => format!("job {first} of {who} got a token, and starts"),
        ("offload", _) => {
            let limiter = line.key("limiter").map_or(String::new(), |it| format!(" under {it}"));
            let (running, queued) = (key("running"), key("queued"));
            let counts = format!("{running} with a token, {queued} in the queue");
            format!("{who} asked for job {first} on a thread{limiter} (jobs: {counts})")
        }
        ("done", _) => format!("job {first} ended"),
        ("abandon", _) => format!("{who} stopped waiting for job {first}, whose thread continues"),
        ("orphan", _) => format!("job {first} ended without a task that takes its result"),
        ("cleanup", _) => {
            let place = line.key("in").map_or(String::new(), |it| format!(" at branch {it}"));
            let of = scope_in_words(first);
            format!("the interrupt of {of} of {who} is pending{place}: {}", interrupted(line))
        }
        ("cap", _) => format!("a limit was hit: {}", line.detail()),
        ("boot", _) => format!("the kernel started with {}", line.detail()),
        ("halt", _) => {
            let counts = ["tasks", "tickets", "timers", "handles", "threads"].map(|name| {
                let count = line.key(name).filter(|count| *count != "0")?;
                Some(format!("{name}={count}"))
            });
            let left: Vec<_> = counts.into_iter().flatten().collect();
            let left = if left.is_empty() { "nothing".to_owned() } else { left.join(" ") };
            format!("the kernel ended, and {left} was left")
        }
        _ => format!("{who}: {}", line.event()),
    }
}

/// Whether a word is the number of a job.
fn is_job(word: &str) -> bool {
    word.strip_prefix('o').is_some_and(|number| number.parse::<u64>().is_ok())
}

/// `scope s1`, or the scope of the whole task, as a line names it.
fn scope_in_words(scope: &str) -> String {
    if scope == "root" { "the root scope".to_owned() } else { format!("scope {scope}") }
}

/// The trap between two runs: its `sleep` at FILE:LINE.
fn stop_in_words(stop: &str) -> String {
    let (trap, site) = stop.split_once('@').unwrap_or((stop, ""));
    let at = if site.is_empty() { String::new() } else { format!(" at {site}") };
    match trap {
        "spawn" => "its spawn".to_owned(),
        "exit" => "its end".to_owned(),
        "waker" => format!("a waker{at}"),
        trap => format!("its `{trap}`{at}"),
    }
}
