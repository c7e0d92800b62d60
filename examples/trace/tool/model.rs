//! A trace after reading: the facts about each line, and the lives of its tasks. The text of a line
//! is read again on demand, so that a long log needs no memory for its text.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, BufReader, Read as _};
use std::time::Duration;

use kernel::trace::{Event, Seq};
use testing::trace::{self, Behind, Causes, Line, Spans};
use traps::Time;

use super::reading::{Read, plain, read_lines};
use super::whole::Whole;

/// The text of a log, in memory or in a file. It does not change while the trace is used.
pub trait Text: fmt::Debug {
    /// Returns the number of bytes.
    fn length(&self) -> u64;

    /// Reads bytes of the text from a position on, and returns how many: 0 only if the text has
    /// become shorter.
    ///
    /// # Errors
    ///
    /// Returns an error if the text cannot be read.
    fn read_at(&self, bytes: &mut [u8], from: u64) -> io::Result<usize>;

    /// Ends the program, because a line that was there before cannot be read again.
    fn changed(&self, what: &dyn Display) -> ! {
        panic!("rule: the text of a trace does not change: {what}")
    }
}

impl Text for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, bytes: &mut [u8], from: u64) -> io::Result<usize> {
        (&self[from as usize..]).read(bytes)
    }
}

/// A reader of a text from a position on.
struct From<'t>(&'t dyn Text, u64);

impl io::Read for From<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.0.length().saturating_sub(self.1);
        let size = left.min(bytes.len() as u64) as usize;
        let read = self.0.read_at(&mut bytes[..size], self.1)?;
        if read == 0 && size > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.1 += read as u64;
        Ok(read)
    }
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has the CPU.
    Run,
    /// It waits for the CPU.
    Ready,
    /// It waits for something other than the CPU.
    Blocked,
}

impl State {
    /// The new state of a task after a line with that verb, if the state changes.
    pub fn after(now: Option<State>, verb: &str) -> Option<State> {
        let next = match verb {
            "spawn" => State::Ready,
            "run" => State::Run,
            "block" => State::Blocked,
            // A running task is polled again.
            "wake" | "deliver" if now != Some(State::Run) => State::Ready,
            _ => return None,
        };
        Some(next).filter(|next| now != Some(*next))
    }

    /// Whether a task was in this state up to a line with that verb. A ready task runs before it
    /// leaves the CPU, so if the `run` is missing, as in the head of a dump, only the beginning of
    /// the state is known.
    pub fn lasts_until(self, verb: &str) -> bool {
        (self, verb) != (State::Ready, "block")
    }
}

/// A piece of a task's life.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The state of the task.
    pub state: State,
    /// The place in the trace of the line with which the piece begins.
    pub from: usize,
    /// The line with which it ends, or the last line if it does not end.
    pub to: usize,
}

/// A span of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// Its task.
    pub task: u64,
    /// Its `enter` line, as a place in the trace.
    pub from: usize,
    /// Its `leave` line; if there is none, the end of its task or of the trace.
    pub to: usize,
}

/// One task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: Box<str>,
    /// The place of its last line.
    pub last: usize,
    /// The place of its `exit` line.
    pub end: Option<usize>,
}

/// A place in the trace, stored in few bytes.
type Place = u32;

/// In place of a cause: the line comes from outside.
const OUTSIDE: Place = Place::MAX;
/// In place of a cause or of an earlier line: there is none.
const NONE: Place = Place::MAX - 1;

/// A whole trace.
#[derive(Debug)]
pub struct Trace {
    /// The first line, if there is one.
    pub header: Option<String>,
    /// The faults of the log.
    pub whole: Whole,
    /// The spans of the program, in the order of their `enter` lines.
    pub spans: Vec<Span>,
    /// Whether the log has the measured time of each run.
    pub is_timed: bool,
    text: Box<dyn Text>,
    /// A piece of the text that was read last, and where it begins.
    window: RefCell<(u64, Vec<u8>)>,
    /// The kernel and all tasks, in the order of their first lines.
    tasks: Vec<Task>,
    /// The places of the tasks in `tasks`, by number.
    by_number: BTreeMap<u64, Place>,
    /// The places where the numbers of events begin again: in a single log, its first line.
    sections: Vec<usize>,
    /// The lengths of the runs that have a `longrun` line, by the place of the `run` line.
    long: BTreeMap<usize, Duration>,
    /// The places of the `notify` lines.
    notifies: Vec<usize>,
    /// The places of the `take` lines of each primitive.
    takes: BTreeMap<Box<str>, Vec<Place>>,
    // The facts about each line.
    seq: Vec<Seq>,
    at: Vec<Time>,
    turn: Vec<u64>,
    verb: Vec<u8>,
    task: Vec<Place>,
    /// The previous line of the same task.
    before: Vec<Place>,
    behind: Vec<Place>,
    offset: Vec<u64>,
}

/// The things that are open while a trace is read.
#[derive(Default)]
struct Open {
    causes: Causes,
    spans: Spans,
}

impl Trace {
    /// Reads a whole trace. `seen` gets the size of each line.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`read_lines`], and an error if the log has 4,000,000,000 lines.
    pub fn read(text: impl Text + 'static, mut seen: impl FnMut(usize)) -> io::Result<Trace> {
        let mut trace = Trace {
            header: None,
            whole: Whole::default(),
            spans: Vec::new(),
            is_timed: false,
            text: Box::new(Vec::new()),
            window: RefCell::default(),
            tasks: Vec::new(),
            by_number: BTreeMap::new(),
            sections: Vec::new(),
            long: BTreeMap::new(),
            notifies: Vec::new(),
            takes: BTreeMap::new(),
            seq: Vec::new(),
            at: Vec::new(),
            turn: Vec::new(),
            verb: Vec::new(),
            task: Vec::new(),
            before: Vec::new(),
            behind: Vec::new(),
            offset: Vec::new(),
        };
        let mut open = Open::default();
        let mut is_too_long = false;
        let input = BufReader::with_capacity(1 << 16, From(&text, 0));
        trace.header = read_lines(input, |read| match read {
            Read::Line(_, _) if trace.len() >= NONE as usize => is_too_long = true,
            Read::Line(line, origin) => {
                seen(origin.size);
                trace.whole.line(&line, origin.number);
                trace.add(&line, origin.offset, &mut open);
            }
            Read::Header(_) => {}
            Read::Remark(text) => trace.whole.remark(text),
            Read::Bad(bad) => trace.whole.bad(&bad),
        })?;
        if is_too_long {
            return Err(io::Error::other("a log of so many lines is too long for this command"));
        }
        trace.text = Box::new(text);
        let last = trace.len().saturating_sub(1);
        for span in trace.spans.iter_mut().filter(|span| span.to == usize::MAX) {
            let nth = trace.by_number[&span.task] as usize;
            span.to = trace.tasks[nth].end.unwrap_or(last).max(span.from);
        }
        Ok(trace)
    }

    /// The next line.
    fn add(&mut self, line: &Line<'_>, offset: u64, open: &mut Open) {
        let place = self.len();
        if self.seq.last().is_none_or(|last| line.seq <= *last) {
            self.sections.push(place);
            *open = Open::default();
            self.whole.flight().into_iter().for_each(|it| open.causes.head_until(it.from));
        }
        let nth = match self.by_number.get(&line.task) {
            Some(nth) => *nth as usize,
            None => {
                self.by_number.insert(line.task, self.tasks.len() as Place);
                let (id, name) = (line.task, line.name().into());
                self.tasks.push(Task { id, name, last: NONE as usize, end: None });
                self.tasks.len() - 1
            }
        };
        let task = &mut self.tasks[nth];
        self.before.push(task.last as Place);
        task.last = place;
        if line.verb == "exit" {
            task.end.get_or_insert(place);
        }
        self.is_timed |= line.verb == "run" && !self.is_timed && line.key("waited").is_some();
        self.behind.push(match open.causes.behind(line) {
            Behind::Line(seq) => self.place_in_last_section(seq).map_or(NONE, |at| at as Place),
            Behind::Outside => OUTSIDE,
            Behind::Earlier | Behind::Nothing => NONE,
        });
        let entered = open.spans.leave(line).and_then(|seq| self.place_in_last_section(seq));
        if let Some(enter) = entered {
            let nth = self.spans.binary_search_by_key(&enter, |span| span.from);
            nth.into_iter().for_each(|nth| self.spans[nth].to = place);
        } else if line.verb == "enter" {
            let (name, task) = (line.word(0).to_owned(), line.task);
            self.spans.push(Span { name, task, from: place, to: usize::MAX });
        }
        self.seq.push(line.seq);
        self.at.push(line.at);
        self.turn.push(line.turn);
        let verb = Event::WORDS.iter().position(|verb| *verb == line.verb);
        self.verb.push(verb.expect("it is in the list of verbs") as u8);
        self.task.push(nth as Place);
        self.offset.push(offset);
        if line.verb == "notify" {
            self.notifies.push(place);
        }
        if line.verb == "take" {
            self.takes.entry(line.op().into()).or_default().push(place as Place);
        }
        if let Some(ran) = long_run(line) {
            let run = self.lines_before(Some(place)).find(|place| self.verb(*place) == "run");
            self.long.extend(run.map(|run| (run, ran)));
        }
    }

    /// Returns the first place behind the head of a dump of the flight recorder; 0 for another log.
    pub fn begin(&self) -> usize {
        let from = self.whole.flight().map_or(0, |flight| flight.from);
        self.seq.partition_point(|seq| *seq < from).min(self.len().saturating_sub(1))
    }

    /// Returns the place of the cause of a dump, or `None` for another log.
    pub fn cause_of_dump(&self) -> Option<usize> {
        self.place(self.whole.flight()?.at)
    }

    fn place_in_last_section(&self, seq: Seq) -> Option<usize> {
        let first = *self.sections.last()?;
        let within = self.seq[first..].binary_search(&seq).ok()?;
        Some(first + within)
    }

    /// Returns the number of lines.
    pub fn len(&self) -> usize {
        self.seq.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the line at a place.
    pub fn line(&self, place: usize) -> Line<'static> {
        let offset = self.offset[place];
        let mut window = self.window.borrow_mut();
        let (start, bytes) = &mut *window;
        loop {
            let from = offset.checked_sub(*start).filter(|from| *from < bytes.len() as u64);
            let from = from.map_or(bytes.len(), |from| from as usize);
            let end = bytes[from..].iter().position(|byte| *byte == b'\n');
            let is_all = *start + bytes.len() as u64 >= self.text.length() && from < bytes.len();
            if let Some(end) = end.or(is_all.then(|| bytes.len() - from)) {
                let text = &bytes[from..from + end];
                let text = plain(text.strip_suffix(b"\r").unwrap_or(text));
                return trace::line(&text)
                    .unwrap_or_else(|error| self.text.changed(&error))
                    .into_owned();
            }
            // The window has lines on both sides of the place. If a line does not fit, the window
            // must be longer.
            let begin = offset - offset % (WINDOW / 2);
            let size = if *start == begin { bytes.len() as u64 * 2 } else { WINDOW };
            *start = begin;
            bytes.clear();
            let size = size.max(WINDOW);
            bytes.reserve(size as usize);
            match From(&*self.text, begin).take(size).read_to_end(bytes) {
                Ok(size) if size as u64 > offset - begin => {}
                Ok(_) => self.text.changed(&"it is shorter than it was"),
                Err(error) => self.text.changed(&error),
            }
        }
    }

    /// Passes all lines with their places to a function, in order.
    pub fn each(&self, mut line: impl FnMut(usize, &Line<'_>)) {
        let mut place = 0;
        let input = BufReader::with_capacity(1 << 16, From(&*self.text, 0));
        let read = read_lines(input, |read| {
            if let Read::Line(each, _) = read {
                line(place, &each);
                place += 1;
            }
        });
        match read {
            Err(error) => self.text.changed(&error),
            Ok(_) if place != self.len() => {
                self.text.changed(&"it has another number of lines now")
            }
            Ok(_) => {}
        }
    }

    /// Returns the number of a line.
    pub fn seq(&self, place: usize) -> Seq {
        self.seq[place]
    }

    /// The time of a line.
    pub fn at(&self, place: usize) -> Time {
        self.at[place]
    }

    /// The turn of a line.
    pub fn turn(&self, place: usize) -> u64 {
        self.turn[place]
    }

    /// The verb of a line.
    pub fn verb(&self, place: usize) -> &'static str {
        Event::WORDS[usize::from(self.verb[place])]
    }

    /// Returns the task of a line; task 0 is the kernel.
    pub fn task_of(&self, place: usize) -> &Task {
        &self.tasks[self.task[place] as usize]
    }

    /// All tasks, by number.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        let tasks = self.by_number.iter().filter(|(id, _)| **id != 0);
        tasks.map(|(_, nth)| &self.tasks[*nth as usize])
    }

    /// Returns the task with that number.
    pub fn task(&self, id: u64) -> Option<&Task> {
        self.by_number.get(&id).map(|nth| &self.tasks[*nth as usize])
    }

    /// Returns the name of the task with that number.
    pub fn name(&self, id: u64) -> Option<&str> {
        self.task(id).map(|task| &*task.name)
    }

    /// The lines of a task, as places, the last first.
    pub fn lines_back(&self, task: &Task) -> impl Iterator<Item = usize> + '_ {
        self.lines_before(Some(task.last))
    }

    /// Returns that line and the earlier lines of the same task.
    fn lines_before(&self, place: Option<usize>) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(place, |place| self.line_before(*place))
    }

    /// Returns the previous line of the same task.
    fn line_before(&self, place: usize) -> Option<usize> {
        Some(self.before[place] as usize).filter(|before| *before != NONE as usize)
    }

    /// The lines of a task, as places, in order.
    pub fn lines_of(&self, task: &Task) -> Vec<usize> {
        let mut lines: Vec<_> = self.lines_back(task).collect();
        lines.reverse();
        lines
    }

    /// The pieces of a task's life, in order. In a dump, from the first line after which all of
    /// them are known.
    pub fn pieces(&self, task: &Task) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for place in self.lines_of(task) {
            let now = pieces.last().map(|piece| piece.state);
            let next = State::after(now, self.verb(place));
            if now.is_some_and(|now| !now.lasts_until(self.verb(place))) {
                pieces.clear();
            }
            if next.is_some() || task.end == Some(place) {
                pieces.last_mut().into_iter().for_each(|piece| piece.to = place);
            }
            if task.end == Some(place) {
                return pieces;
            }
            let piece = next.map(|state| Piece { state, from: place, to: self.len() - 1 });
            pieces.extend(piece);
        }
        pieces
    }

    /// Returns the place of the line with that number; if there are several logs, in the first that
    /// has it.
    pub fn place(&self, seq: Seq) -> Option<usize> {
        self.sections.iter().enumerate().find_map(|(nth, first)| {
            let end = self.sections.get(nth + 1).copied().unwrap_or(self.len());
            self.seq[*first..end].binary_search(&seq).ok().map(|within| first + within)
        })
    }

    /// Returns the cause of a line, if it is an earlier line.
    pub fn cause(&self, place: usize) -> Option<usize> {
        Some(self.behind[place]).filter(|cause| *cause < NONE).map(|cause| cause as usize)
    }

    /// Whether a line comes from outside.
    pub fn is_from_outside(&self, place: usize) -> bool {
        self.behind[place] == OUTSIDE
    }

    /// Returns the tasks with that number or that name.
    pub fn find(&self, wanted: &str) -> Vec<&Task> {
        let number = wanted.parse().ok().filter(|id| *id != 0).and_then(|id| self.task(id));
        match number {
            Some(task) => vec![task],
            None => self.tasks().filter(|task| *task.name == *wanted).collect(),
        }
    }

    /// Returns the line with which the life of a task ends, or the last line of the trace.
    pub fn last_of(&self, task: u64) -> usize {
        self.task(task).and_then(|task| task.end).unwrap_or(self.len() - 1)
    }

    /// Returns the line that began the wait that a `wake` or `deliver` line ends: the `block` or
    /// `await` of its ticket. A wait of the task `wakeup` has no ticket, so its last `block` is
    /// returned.
    pub fn wait_of(&self, end: usize) -> Option<usize> {
        let line = self.line(end);
        let ticket = line.number("k");
        let found = self.lines_before(self.line_before(end)).find(|place| match ticket {
            Some(_) => {
                ["block", "await"].contains(&self.verb(*place))
                    && self.line(*place).number("k") == ticket
            }
            None => self.verb(*place) == "block",
        });
        found.filter(|place| ticket.is_some() || self.line(*place).op() == line.op())
    }

    /// Returns the length of a run, from its `run` line to its end. `None` if the log does not have
    /// it, because the clock was not read at its ends and the times of these lines may be those of
    /// other runs.
    pub fn ran(&self, [run, end]: [usize; 2]) -> Option<Duration> {
        match self.is_timed {
            true => Some(self.at[end].since(self.at[run])),
            false => self.long.get(&run).copied(),
        }
    }

    /// Returns the end of the last run of a line's task, if a `longrun` line has it.
    pub fn long_run_before(&self, place: usize) -> Option<Time> {
        let run = self.lines_before(Some(place)).find(|place| self.verb(*place) == "run")?;
        Some(self.at[run] + *self.long.get(&run)?)
    }

    /// Returns the last notification of the awaited primitive before a line that begins a wait.
    /// Searches only the last thousand, because each is read from the file.
    pub fn notified_before(&self, place: usize) -> Option<Line<'static>> {
        let wait = self.line(place);
        let before = self.notifies.partition_point(|at| *at < place);
        let earlier = self.notifies[..before].iter().rev().take(1_000).map(|at| self.line(*at));
        earlier.into_iter().find(|line| line.op() == wait.op())
    }

    /// Returns the first `take` of the awaited primitive during a wait, which begins at that place.
    pub fn taken_during(&self, wait: usize) -> Option<Line<'static>> {
        let line = self.line(wait);
        let takes = self.takes.get(line.op())?;
        let nth = takes.partition_point(|take| *take as usize <= wait);
        let take = *takes.get(nth)? as usize;
        let task = self.task[wait];
        let ends = |place: &usize| {
            ["wake", "deliver", "withdraw", "exit"].contains(&self.verb(*place))
                && (self.task[*place] == task || self.verb(*place) == "withdraw")
                && (self.verb(*place) == "exit" || self.line(*place).ticket == line.ticket)
        };
        let is_over = (wait + 1..take).any(|place| ends(&place));
        (!is_over).then(|| self.line(take))
    }

    /// The runs that have a `longrun` line: the place of the `run` line, and the length.
    pub fn long_runs(&self) -> impl ExactSizeIterator<Item = (usize, Duration)> {
        self.long.iter().map(|(run, ran)| (*run, *ran))
    }
}

/// The length of the run that a `longrun` line reports.
pub fn long_run(line: &Line<'_>) -> Option<Duration> {
    let ran = line.key("ran").filter(|_| line.verb == "longrun")?;
    Some(ran.parse::<Time>().ok()?.since(Time::ZERO))
}

/// How many bytes of the text are read at a time.
const WINDOW: u64 = 1 << 15;

/// Whether a line begins a wait.
pub fn opens(line: &Line<'_>) -> bool {
    ["block", "await"].contains(&line.verb)
}

/// Describes the wait of a `block` or `await` line: `bytes on c1`.
pub fn wait_in_words(block: &Line<'_>, names: Names<'_>) -> String {
    let [first, second, third] = [0, 1, 2].map(|nth| block.word(nth));
    match (first, third) {
        ("io", "read") if second.starts_with('l') => format!("a connection at {second}"),
        ("io", "read") if second.starts_with('e') => "a message of another thread".to_owned(),
        ("io", "read") => format!("bytes on {second}"),
        ("io", _) => format!("room to write on {second}"),
        ("sleep", _) => {
            let until = block.key("until").unwrap_or_default();
            format!("the end of its sleep of {second} (until {until})")
        }
        ("join", _) => format!("the end of task {second}"),
        ("wait", _) => format!("a wake in queue {second}"),
        ("offload", _) => format!("job {second}"),
        ("signal", _) => "a signal".to_owned(),
        ("yield", _) => "its next turn".to_owned(),
        ("waker" | "foreign", _) => "a waker".to_owned(),
        ("outside", _) => format!("`{second}` from outside"),
        ("queue_get", _) => format!("an item of queue {second}"),
        ("queue_put", _) => format!("room in queue {second}"),
        ("parked", _) => {
            format!("any of {} waits", block.key("n").unwrap_or_default())
        }
        _ => match block.key("held-by") {
            Some(holders) => {
                format!("{first} {second}, held by {}", tasks_in_words(holders, names))
            }
            None => format!("{first} {second}"),
        },
    }
}

/// Describes the last notification of the primitive that a task waits for: `last notified at #0012
/// by task 5, which woke no task`.
pub fn notified_in_words(seq: Seq, by: u64, woke: u64) -> String {
    let who = if by == 0 { "the kernel".to_owned() } else { format!("task {by}") };
    let woke = match woke {
        0 => "no task".to_owned(),
        1 => "1 task".to_owned(),
        many => format!("{many} tasks"),
    };
    format!("last notified at #{seq:04} by {who}, which woke {woke}")
}

/// Whether such a line waits for a primitive, so that a trace may have its holders.
pub fn is_primitive(block: &Line<'_>) -> bool {
    let others = [
        "io", "sleep", "join", "wait", "offload", "signal", "yield", "waker", "foreign", "outside",
        "parked",
    ];
    opens(block) && !others.contains(&block.word(0))
}

/// The names of tasks by their numbers, as far as they are known.
pub type Names<'n> = &'n dyn Fn(u64) -> Option<&'n str>;

/// Numbers of tasks as the log has them, in words: ``tasks 3 `a`, 4 `b` and others``.
pub fn tasks_in_words(numbers: &str, names: Names<'_>) -> String {
    let named = |number: &str| match number.parse().ok().and_then(names) {
        Some(name) => format!("{number} `{name}`"),
        None => number.to_owned(),
    };
    let all = |numbers: &str| numbers.split(',').map(named).collect::<Vec<_>>().join(", ");
    match numbers.rsplit_once(',') {
        None => format!("task {}", named(numbers)),
        Some((first, "..")) => format!("tasks {} and others", all(first)),
        Some((first, last)) => format!("tasks {} and {}", all(first), named(last)),
    }
}
