//! `perfetto`: the Chrome trace event format, which Perfetto reads too.
//!
//! A slice has a category and one of a few names, so that slices can be grouped; the varying parts
//! are in its arguments. A task is a track. Next to it are tracks of its scopes and its spans, and
//! each primitive that tasks wait for has a track of its holders. On the virtual clock a run takes
//! no time, so the file counts turns, as a millisecond each.
//!
//! A viewer binds an end of a flow to the slice of its track that came last in the file, once all
//! events are sorted by time. Many lines have the same time, so each end is written right after its
//! slice. Then a user can go from a run to what woke its task, and from there to all that it woke.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;

use kernel::trace::Span;
use testing::trace::Line;

use super::locks::links;
use super::model::{State, Task, Trace};
use super::page::is_real;
use super::scopes::scopes;

/// Returns a text as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            // `<` must not end the script of a page that contains this text.
            '<' | '\0'..='\x1f' => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The position of each line on the time axis, in microseconds.
enum Clock<'t> {
    Real(&'t Trace),
    /// By place.
    Turns(Vec<u64>),
}

/// The length of a turn.
const TURN: u64 = 1000;

impl Clock<'_> {
    fn of(trace: &Trace) -> Clock<'_> {
        if is_real(trace) {
            return Clock::Real(trace);
        }
        let mut turns = Vec::with_capacity(trace.len());
        while turns.len() < trace.len() {
            let (first, turn) = (turns.len(), trace.turn(turns.len()));
            let size = (first..trace.len()).take_while(|place| trace.turn(*place) == turn).count();
            let start = turn.saturating_mul(TURN);
            let within = (0..size).map(|nth| start.saturating_add((nth * 1000 / size) as u64));
            turns.extend(within);
        }
        Clock::Turns(turns)
    }

    fn at(&self, place: usize) -> u64 {
        match self {
            Clock::Real(trace) => trace.at(place).as_micros(),
            Clock::Turns(turns) => turns[place],
        }
    }
}

/// Takes events, and writes commas between them.
struct Events<'w> {
    out: &'w mut dyn Write,
    clock: Clock<'w>,
    is_first: bool,
    result: io::Result<()>,
}

impl Events<'_> {
    fn put(&mut self, event: &str) {
        let comma = if std::mem::take(&mut self.is_first) { "" } else { ",\n" };
        if self.result.is_ok() {
            self.result = write!(self.out, "{comma}{event}");
        }
    }

    /// The name and the position of a track.
    fn track(&mut self, id: u64, name: &str, order: u64) {
        self.meta("thread_name", id, &format!(r#""name":{}"#, quoted(name)));
        self.meta("thread_sort_index", id, &format!(r#""sort_index":{order}"#));
    }

    fn meta(&mut self, what: &str, id: u64, args: &str) {
        self.put(&format!(r#"{{"ph":"M","pid":1,"tid":{id},"name":"{what}","args":{{{args}}}}}"#));
    }

    /// A slice of a track, from one line to another one. `args` are members of a JSON object.
    fn slice(&mut self, (category, name): (&str, &str), id: u64, range: [usize; 2], args: &str) {
        let [from, to] = range.map(|place| self.clock.at(place));
        let (name, length) = (quoted(name), to.saturating_sub(from));
        let place = format!(r#""pid":1,"tid":{id},"ts":{from},"dur":{length}"#);
        let what = format!(r#""name":{name},"cat":"{category}","args":{{{args}}}"#);
        self.put(&format!(r#"{{"ph":"X",{place},{what}}}"#));
    }
}

/// The arguments of a line: its number, and its text from the verb on.
fn args(line: &Line<'_>) -> String {
    let at = line.key("at").map_or(String::new(), |at| format!(r#","at":{}"#, quoted(at)));
    format!(r##""seq":"#{:04}","line":{}{at}"##, line.seq, quoted(line.event()))
}

/// Writes the whole trace: a slice for each piece of a task's life, each scope, each span, each
/// holder of a primitive and each event from outside, an instant for each note, a flow from the
/// line that woke a task to its run, a flow from the line that set a timer to its `fire`, and
/// counters of the tasks in each state.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn perfetto(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n")?;
    let clock = Clock::of(trace);
    let name = match clock {
        Clock::Real(_) => "trapline",
        Clock::Turns(_) => "trapline (virtual clock: a turn is 1 ms)",
    };
    let mut events = Events { out, clock, is_first: true, result: Ok(()) };
    events.meta("process_name", 0, &format!(r#""name":{}"#, quoted(name)));
    events.track(0, "kernel", 0);
    for task in trace.tasks() {
        events.track(task.id, &format!("{} {}", task.id, task.name), order(task.id));
    }
    lives(trace, &mut events);
    let mut tracks = Tracks { next: FURTHER, of: BTreeMap::new() };
    for scope in scopes(trace) {
        let (line, task) = (trace.line(scope.from), trace.task_of(scope.from));
        let (word, id) = (line.word(0).trim_start_matches("set_"), line.outcome());
        let args = format!(
            r#""scope":{},"left":"{:?}",{}"#,
            quoted(id.unwrap_or_default()),
            scope.left,
            args(&line)
        );
        let range = [scope.from, scope.to];
        let track = tracks.of(Track::Scopes, task, range, &mut events);
        events.slice(("scope", word), track, range, &args);
    }
    for span in &trace.spans {
        let range = [span.from, span.to];
        let track = tracks.of(Track::Spans, trace.task_of(span.from), range, &mut events);
        events.slice(("span", &span.name), track, range, &args(&trace.line(span.from)));
    }
    holders(trace, &mut events);
    counters(trace, &mut events);
    events.result?;
    out.write_all(b"\n]}\n")
}

/// Tracks of tasks are in the order of their numbers, with those of their scopes and spans below
/// them.
fn order(task: u64) -> u64 {
    task.saturating_mul(4)
}

/// A piece of a life that is open.
struct Piece {
    state: State,
    from: usize,
    name: Box<str>,
    args: Box<str>,
}

/// A flow: its name, and the place of the line that it leads to, which is its number.
type Flow = (&'static str, usize);

/// The flows that have not begun, by the task and the place of the line that they begin at.
struct Flows(BTreeMap<(u64, usize), Vec<Flow>>);

impl Flows {
    fn of(trace: &Trace) -> Flows {
        let mut flows = Flows(BTreeMap::new());
        for place in 0..trace.len() {
            let (name, from) = match trace.verb(place) {
                "run" => ("wake", trace.cause(place).and_then(|wake| trace.cause(wake))),
                "fire" => {
                    let set = trace.line(place).cause.and_then(|set| trace.place(set));
                    ("timer", set.filter(|set| *set < place))
                }
                _ => continue,
            };
            if let Some(from) = from {
                let id = trace.task_of(from).id;
                flows.0.entry((id, from)).or_default().push((name, place));
            }
        }
        flows
    }

    /// Begins the flows of a task from the lines of this range.
    fn begin(&mut self, id: u64, range: Range<usize>, events: &mut Events<'_>) {
        let lines = self.0.range((id, range.start)..(id, range.end));
        let lines: Vec<_> = lines.map(|(line, _)| *line).collect();
        for (id, place) in lines {
            let flows = self.0.remove(&(id, place)).unwrap_or_default();
            flows.into_iter().for_each(|flow| end_of(flow, "s", id, place, events));
        }
    }
}

/// Writes an end of a flow. `ph` is `s` where it begins, and `f` where it ends.
fn end_of((name, number): Flow, ph: &str, id: u64, place: usize, events: &mut Events<'_>) {
    let at = events.clock.at(place);
    let place = format!(r#""pid":1,"tid":{id},"ts":{at},"id":{number}"#);
    let bind = if ph == "f" { r#","bp":"e""# } else { "" };
    events.put(&format!(r#"{{"ph":"{ph}",{place},"name":"{name}","cat":"{name}"{bind}}}"#));
}

/// Writes the actions of tasks and the kernel, line by line.
fn lives(trace: &Trace, events: &mut Events<'_>) {
    let mut lives = BTreeMap::<u64, Piece>::new();
    let mut flows = Flows::of(trace);
    let close = |flows: &mut Flows, events: &mut Events<'_>, task, piece: Piece, to| {
        let (mut name, mut args) = (&*piece.name, piece.args.to_string());
        let category = match piece.state {
            State::Run => "run",
            State::Ready => "ready",
            State::Blocked => "blocked",
        };
        if piece.state == State::Run && !trace.is_timed {
            match trace.ran([piece.from, to]) {
                Some(ran) => args += &format!(r#","ran":"{}""#, Span(ran)),
                None if trace.at(to) > trace.at(piece.from) => name = "run of unknown length",
                None => {}
            }
        }
        events.slice((category, name), task, [piece.from, to], &args);
        let is_woken = trace.cause(piece.from).and_then(|wake| trace.cause(wake)).is_some();
        if piece.state == State::Run && is_woken {
            end_of(("wake", piece.from), "f", task, piece.from, events);
        }
        // The last line of a task begins no other piece.
        let is_last = trace.task(task).is_some_and(|task| task.end == Some(to));
        flows.begin(task, piece.from..to + usize::from(is_last), events);
    };
    trace.each(|place, line| {
        let (now, id) = (lives.get(&line.task).map(|piece| piece.state), line.task);
        let end = trace.task_of(place).end;
        let next = State::after(now, line.verb).filter(|_| end.is_none_or(|end| place < end));
        if next.is_some() || end == Some(place) {
            let over = lives.remove(&id).filter(|piece| piece.state.lasts_until(line.verb));
            over.into_iter().for_each(|piece| close(&mut flows, events, id, piece, place));
        }
        if let Some(state) = next.filter(|_| id != 0) {
            let name = match state {
                State::Run => "run".into(),
                State::Ready => "ready".into(),
                State::Blocked => wait_name(line),
            };
            lives.insert(id, Piece { state, from: place, name, args: args(line).into() });
        }
        match line.verb {
            "arrive" | "fire" => {
                let name = format!("{} {}", line.verb, subject(line));
                events.slice(("outside", name.trim_end()), id, [place, place], &args(line));
                let is_set = line.cause.and_then(|set| trace.place(set));
                if line.verb == "fire" && is_set.is_some_and(|set| set < place) {
                    end_of(("timer", place), "f", id, place, events);
                }
            }
            "note" => note(place, line, events),
            _ if id == 0 && flows.0.contains_key(&(0, place)) => {
                events.slice(("kernel", line.verb), 0, [place, place], &args(line));
            }
            _ => {}
        }
        if id == 0 {
            flows.begin(0, place..place + 1, events);
        }
    });
    for (task, piece) in lives {
        close(&mut flows, events, task, piece, trace.len() - 1);
    }
    // In a log without its first lines, the first lines of tasks are in no slice.
    for ((id, place), flows) in flows.0 {
        flows.into_iter().for_each(|flow| end_of(flow, "s", id, place, events));
    }
}

/// Returns the event from outside, as one of a few words: `read`, `timeout`, or a signal.
fn subject<'l>(line: &'l Line<'_>) -> &'l str {
    let (first, second) = (line.word(0), line.word(1));
    match (line.verb, first.chars().next()) {
        ("arrive", _) if second.is_empty() => first,
        ("arrive", _) => second,
        (_, Some('k')) => "sleep",
        (_, Some('s')) => "timeout",
        (_, Some('d')) if first != "drain" => "connection deadline",
        _ => first,
    }
}

/// Returns the wait of a `block` line under a name that many waits share, without numbers and
/// times.
pub fn wait_name(block: &Line<'_>) -> Box<str> {
    let (first, second) = (block.word(0), block.word(1));
    let is_numbered = second.strip_prefix('q').is_some_and(|number| number.parse::<u64>().is_ok());
    match first {
        "io" if second.starts_with('l') => "io accept".into(),
        "io" => format!("io {}", block.word(2)).into(),
        "sleep" | "join" | "wait" | "offload" | "parked" | "foreign" => first.into(),
        _ if is_numbered => first.into(),
        _ => block.op().into(),
    }
}

fn note(place: usize, note: &Line<'_>, events: &mut Events<'_>) {
    let (id, at, name) = (note.task, events.clock.at(place), quoted(note.detail()));
    let (place, args) = (format!(r#""pid":1,"tid":{id},"ts":{at}"#), args(note));
    events.put(&format!(
        r#"{{"ph":"i","s":"t",{place},"name":{name},"cat":"note","args":{{{args}}}}}"#
    ));
}

/// The first number of tracks other than those of tasks. Perfetto keeps only 32 bits of a number.
const FURTHER: u64 = 1 << 30;

/// A kind of additional track of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    Scopes,
    Spans,
}

/// Tracks of slices that nest. A slice that overlaps another one and is not inside it has a further
/// track.
struct Tracks {
    next: u64,
    /// The tracks of each task.
    of: BTreeMap<(Track, u64), Vec<Ends>>,
}

/// The number of a track, and the ends of its open slices, outermost first.
type Ends = (u64, Vec<usize>);

impl Tracks {
    /// The track of the next slice.
    fn of(&mut self, kind: Track, task: &Task, range: [usize; 2], events: &mut Events<'_>) -> u64 {
        let tracks = self.of.entry((kind, task.id)).or_default();
        let [from, to] = range;
        let fits = |(_, ends): &mut Ends| {
            ends.retain(|end| *end > from);
            ends.last().is_none_or(|end| to <= *end)
        };
        let nth = tracks.iter_mut().position(fits).unwrap_or_else(|| {
            let word = if kind == Track::Scopes { "scopes" } else { "spans" };
            let name = format!("{word} of {} {}", task.id, task.name);
            events.track(self.next, &name, order(task.id).saturating_add(1 + kind as u64));
            tracks.push((self.next, Vec::new()));
            self.next += 1;
            tracks.len() - 1
        });
        tracks[nth].1.push(to);
        tracks[nth].0
    }
}

/// The first number of the tracks of holders, which are below all tasks.
const HOLDERS: u64 = 3 << 29;

/// The holders of each primitive while a task waits for it: a track for each primitive, and one
/// more for each simultaneous holder.
fn holders(trace: &Trace, events: &mut Events<'_>) {
    // For each primitive and each of its holders, the open slice and the number of its waits.
    let mut open = BTreeMap::<(Box<str>, u64), ([usize; 2], usize)>::new();
    let mut over = Vec::new();
    for link in links(trace) {
        let op: Box<str> = trace.line(link.wait).op().into();
        let fresh = ([link.from, link.to], 1);
        match open.get_mut(&(op.clone(), link.holder)) {
            Some(([_, to], waits)) if link.from <= *to => {
                (*to, *waits) = ((*to).max(link.to), *waits + 1);
            }
            Some(slice) => {
                let slice = std::mem::replace(slice, fresh);
                over.push((slice.0, op, link.holder, slice.1));
            }
            None => drop(open.insert((op, link.holder), fresh)),
        }
    }
    over.extend(open.into_iter().map(|((op, holder), (range, waits))| (range, op, holder, waits)));
    over.sort();
    let (mut tracks, mut next) = (BTreeMap::<Box<str>, Vec<(u64, usize)>>::new(), HOLDERS);
    for ([from, to], op, holder, waits) in over {
        let tracks = tracks.entry(op.clone()).or_default();
        let nth = tracks.iter().position(|(_, end)| *end <= from).unwrap_or_else(|| {
            events.track(next, &format!("holders of {op}"), next);
            tracks.push((next, 0));
            next += 1;
            tracks.len() - 1
        });
        tracks[nth].1 = to;
        let name = trace.task(holder).map_or("", |task| &task.name);
        let args = format!(r#""holder":{holder},"waits":{waits}"#);
        events.slice(("lock", &format!("held by {name}")), tracks[nth].0, [from, to], &args);
    }
}

/// The number of running, ready and blocked tasks, whenever it changes and time passes.
fn counters(trace: &Trace, events: &mut Events<'_>) {
    let (mut lives, mut counts) = (BTreeMap::<u64, State>::new(), [0_u64; 3]);
    let mut shown = None;
    for place in 0..trace.len() {
        let task = trace.task_of(place);
        let (now, is_over) = (lives.get(&task.id).copied(), task.end == Some(place));
        let next = State::after(now, trace.verb(place));
        let next = next.filter(|_| task.id != 0 && task.end.is_none_or(|end| place < end));
        if next.is_some() || is_over {
            now.into_iter().for_each(|state| counts[state as usize] -= 1);
            lives.remove(&task.id);
        }
        if let Some(state) = next {
            counts[state as usize] += 1;
            lives.insert(task.id, state);
        }
        let at = events.clock.at(place);
        let is_last = place + 1 == trace.len() || events.clock.at(place + 1) != at;
        if is_last && shown.replace(counts) != Some(counts) {
            let [run, ready, blocked] = counts;
            let args = format!(r#"{{"run":{run},"ready":{ready},"blocked":{blocked}}}"#);
            events.put(&format!(r#"{{"ph":"C","pid":1,"ts":{at},"name":"tasks","args":{args}}}"#));
        }
    }
}
