//! A trace that was read: its lines, what is behind each, and the lives of its tasks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead};

use kernel::trace::Seq;
use testing::trace::{self, Behind, Causes, Line, ParseError, Spans};
use traps::Time;

/// A line that cannot be read: its number in the file, from 1, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// From 1.
    pub number: usize,
    /// The expected input.
    pub error: ParseError,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}, {}", self.number, self.error)
    }
}

/// A line of the input.
pub enum Read<'t> {
    /// A line of the log, and its bytes.
    Line(Line<'t>, usize),
    /// A remark.
    Remark(&'t str),
    /// None of them.
    Bad(Bad),
}

/// Reads a trace line by line.
///
/// # Errors
///
/// Those of the input; a header of another version, since then no line means what it says.
pub fn read_lines(
    mut input: impl BufRead,
    mut seen: impl FnMut(Read<'_>),
) -> io::Result<Option<String>> {
    let (mut text, mut number, mut header) = (Vec::new(), 0, None);
    loop {
        text.clear();
        let size = input.read_until(b'\n', &mut text)?;
        if size == 0 {
            return Ok(header);
        }
        number += 1;
        let text = match std::str::from_utf8(&text) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&text),
        };
        let text = text.trim_end_matches(['\n', '\r']);
        if text.starts_with("#trace ") {
            trace::trace(text).map_err(|(_, error)| {
                let text = format!("line {number}, {error}: this tool reads no other version");
                io::Error::new(io::ErrorKind::InvalidData, text)
            })?;
            header = Some(text.to_owned());
        } else if text.starts_with('#') {
            seen(Read::Remark(text));
        } else if !text.trim().is_empty() {
            match trace::line(text) {
                Ok(line) => seen(Read::Line(line, size)),
                Err(error) => seen(Read::Bad(Bad { number, error })),
            }
        }
    }
}

/// What a task does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has the CPU.
    Run,
    /// It waits for the CPU.
    Ready,
    /// It waits for something else.
    Blocked,
}

/// A piece of a task's life.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// What it does.
    pub state: State,
    /// The line with which that begins: its place in the trace.
    pub from: usize,
    /// The line with which it ends; the last one, if it does not.
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
    /// Its `leave` line; without one, the end of its task or of the trace.
    pub to: usize,
}

/// One task.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// All that it did, in order.
    pub pieces: Vec<Piece>,
    /// Its lines, as places in the trace.
    pub lines: Vec<usize>,
    /// It has ended.
    pub ended: bool,
}

/// A whole trace.
#[derive(Debug, Default)]
pub struct Trace {
    /// The first line, if there is one.
    pub header: Option<String>,
    /// All lines that could be read.
    pub lines: Vec<Line<'static>>,
    /// The others.
    pub bad: Vec<Bad>,
    /// The cause of each line.
    pub behind: Vec<Behind>,
    /// All tasks, by number.
    pub tasks: BTreeMap<u64, Task>,
    /// The spans of the program, in the order of their `enter` lines.
    pub spans: Vec<Span>,
}

impl Trace {
    /// Reads a whole trace.
    ///
    /// # Errors
    ///
    /// Those of [`read_lines`].
    pub fn read(input: impl BufRead, mut seen: impl FnMut(usize)) -> io::Result<Trace> {
        let (mut lines, mut bad) = (Vec::new(), Vec::new());
        let header = read_lines(input, |read| match read {
            Read::Line(line, size) => {
                lines.push(line.into_owned());
                seen(size);
            }
            Read::Remark(_) => {}
            Read::Bad(each) => bad.push(each),
        })?;
        Ok(Trace::new(header, lines, bad))
    }

    /// The trace up to the line at which its run has failed, if one did: nothing could wake its
    /// tasks any more, and what follows is their end.
    pub fn until_failure(self) -> Trace {
        let fails = |line: &Line<'_>| line.verb == "drop" && line.word(0) == "its_run_failed";
        match self.lines.iter().position(fails) {
            Some(end) => Trace::new(self.header, self.lines[..end].to_vec(), self.bad),
            None => self,
        }
    }

    fn new(header: Option<String>, lines: Vec<Line<'static>>, bad: Vec<Bad>) -> Trace {
        let mut causes = Causes::default();
        let behind = lines.iter().map(|line| causes.behind(line)).collect();
        let mut trace = Trace { header, lines, bad, behind, ..Trace::default() };
        for place in 0..trace.lines.len() {
            trace.follow(place);
        }
        let last = trace.lines.len().saturating_sub(1);
        for task in trace.tasks.values_mut().filter(|task| !task.ended) {
            task.pieces.last_mut().into_iter().for_each(|piece| piece.to = last);
        }
        trace.find_spans();
        trace
    }

    fn find_spans(&mut self) {
        let mut open = Spans::default();
        for place in 0..self.lines.len() {
            let line = &self.lines[place];
            if let Some(enter) = open.leave(line).and_then(|seq| self.place(seq)) {
                let nth = self.spans.binary_search_by_key(&enter, |span| span.from);
                nth.into_iter().for_each(|nth| self.spans[nth].to = place);
            } else if line.verb == "enter" {
                let (name, task) = (line.word(0).to_owned(), line.task);
                let last = self.tasks.get(&task).and_then(|task| task.pieces.last());
                let to = last.map_or(self.lines.len() - 1, |piece| piece.to);
                self.spans.push(Span { name, task, from: place, to: to.max(place) });
            }
        }
    }

    /// The state of the task of a line changes.
    fn follow(&mut self, place: usize) {
        let line = &self.lines[place];
        if line.task == 0 {
            return;
        }
        let task = self.tasks.entry(line.task).or_default();
        if task.lines.is_empty() {
            (task.id, task.name) = (line.task, line.name().to_owned());
        }
        task.lines.push(place);
        let now = task.pieces.last().map(|piece| piece.state);
        let next = match line.verb {
            "spawn" => State::Ready,
            "run" => State::Run,
            "block" => State::Blocked,
            // One that runs is polled on.
            "wake" | "deliver" if now != Some(State::Run) => State::Ready,
            "exit" => {
                task.ended = true;
                task.pieces.last_mut().into_iter().for_each(|piece| piece.to = place);
                return;
            }
            _ => return,
        };
        if now != Some(next) && !task.ended {
            task.pieces.last_mut().into_iter().for_each(|piece| piece.to = place);
            task.pieces.push(Piece { state: next, from: place, to: place });
        }
    }

    /// The place of the line of that number.
    pub fn place(&self, seq: Seq) -> Option<usize> {
        self.lines.binary_search_by_key(&seq, |line| line.seq).ok()
    }

    /// The cause of a line, if that is an earlier line.
    pub fn cause(&self, place: usize) -> Option<usize> {
        match self.behind[place] {
            Behind::Line(seq) => self.place(seq).filter(|cause| *cause < place),
            Behind::Outside | Behind::Nothing => None,
        }
    }

    /// The tasks that have that number, or that name.
    pub fn find(&self, wanted: &str) -> Vec<&Task> {
        let number = wanted.parse().ok().and_then(|id| self.tasks.get(&id));
        match number {
            Some(task) => vec![task],
            None => self.tasks.values().filter(|task| task.name == wanted).collect(),
        }
    }

    /// The time of the last line.
    pub fn end(&self) -> Time {
        self.lines.last().map_or(Time::ZERO, |line| line.at)
    }

    /// The `block` or `await` line of a ticket, the last before that place.
    pub fn block_of(&self, ticket: u64, before: usize) -> Option<&Line<'static>> {
        let is_it = |line: &&Line<'_>| opens(line) && line.number("k") == Some(ticket);
        self.lines[..before].iter().rev().find(is_it)
    }

    /// How long a piece is.
    pub fn length(&self, piece: &Piece) -> std::time::Duration {
        self.lines[piece.to].at.since(self.lines[piece.from].at)
    }
}

/// Whether a line begins a wait.
pub fn opens(line: &Line<'_>) -> bool {
    ["block", "await"].contains(&line.verb)
}

/// What a `block` or `await` line waits for, in words: `bytes on c1`.
pub fn wait_in_words(block: &Line<'_>) -> String {
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
        ("parked", _) => {
            format!("any of {} waits", block.key("n").unwrap_or_default())
        }
        _ => match block.key("held-by") {
            Some(holders) => format!("{first} {second}, held by {}", tasks_in_words(holders)),
            None => format!("{first} {second}"),
        },
    }
}

/// Whether such a line waits for a primitive, whose holders a trace may know.
pub fn is_primitive(block: &Line<'_>) -> bool {
    let others = [
        "io", "sleep", "join", "wait", "offload", "signal", "yield", "waker", "foreign", "outside",
        "parked",
    ];
    opens(block) && !others.contains(&block.word(0))
}

/// Numbers of tasks as the log has them, in words: `tasks 3, 4 and others`.
pub fn tasks_in_words(numbers: &str) -> String {
    match numbers.rsplit_once(',') {
        None => format!("task {numbers}"),
        Some((first, "..")) => format!("tasks {} and others", first.replace(',', ", ")),
        Some((first, last)) => format!("tasks {} and {last}", first.replace(',', ", ")),
    }
}
