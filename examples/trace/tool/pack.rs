//! The data of a timeline: a JSON head and columns of small numbers, deflated.
//!
//! | after the head, as numbers of 7 bits a byte | how many |
//! |---|---|
//! | `seq`, `at`, `turn`, `task`, each less that of the line before | a line |
//! | how many lines back the cause is; 0 without one | a line |
//! | the template | a line |
//! | for each template, each number in it, less that of its line before | a line of it |
//! | how many pieces, the state of each, where each begins, and where the last one ends | a task |
//! | for scopes, waits and timers: how many, and three numbers each | |
//!
//! A template is the text of a line with signs for what differs: [`HEAD`] for all up to the verb,
//! [`NUMBER`], [`TIME`] less that of the line, [`CAUSE`]. Behind [`AS_IS`] the text has no signs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::{Compression, write::DeflateEncoder};
use testing::trace::Line;

use super::model::Trace;
use super::perfetto::quoted;

const AS_IS: char = '\0';
const HEAD: char = '\u{1}';
const NUMBER: char = '\u{2}';
const TIME: char = '\u{3}';
const CAUSE: char = '\u{4}';

/// A list of numbers, small ones in a byte.
#[derive(Default)]
struct Column {
    bytes: Vec<u8>,
    before: i64,
}

impl Column {
    fn put(&mut self, mut number: u64) {
        while number > 127 {
            self.bytes.push(number as u8 | 128);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// The sign in the lowest bit.
    fn put_signed(&mut self, number: i64) {
        self.put(((number << 1) ^ (number >> 63)) as u64);
    }

    /// Less the one before.
    fn put_next(&mut self, number: i64) {
        self.put_signed(number - self.before);
        self.before = number;
    }
}

/// The texts of lines.
#[derive(Default)]
struct Texts {
    numbers: HashMap<String, usize>,
    templates: Vec<String>,
    arguments: Vec<Vec<Column>>,
    of_line: Column,
    // Of the line at hand.
    template: String,
    found: Vec<i64>,
}

impl Texts {
    fn add(&mut self, line: &Line<'_>, name: &str, cause: Option<u64>) {
        self.split(line, name, cause);
        let nth = match self.numbers.get(&self.template) {
            Some(nth) => *nth,
            None => {
                self.numbers.insert(self.template.clone(), self.templates.len());
                self.templates.push(self.template.clone());
                self.arguments.push(self.found.iter().map(|_| Column::default()).collect());
                self.templates.len() - 1
            }
        };
        self.of_line.put(nth as u64);
        let columns = self.arguments[nth].iter_mut().zip(&self.found);
        columns.for_each(|(column, number)| column.put_next(*number));
    }

    /// Sets the template of a line, and the numbers that were found in it.
    fn split(&mut self, line: &Line<'_>, name: &str, cause: Option<u64>) {
        let text = line.to_string();
        self.template.clear();
        self.found.clear();
        if text.contains([AS_IS, HEAD, NUMBER, TIME, CAUSE]) {
            self.template.push(AS_IS);
            self.template += &text;
            return;
        }
        let head = head(line, name);
        let mut rest = match text.strip_prefix(&head) {
            Some(rest) => {
                self.template.push(HEAD);
                rest
            }
            None => &text,
        };
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            self.template += &rest[..start];
            rest = &rest[start..];
            let zeros = rest.len() - rest.trim_start_matches('0').len();
            if let Some((time, size)) = time(rest) {
                self.template.push(TIME);
                self.found.push(time - line.at.as_micros() as i64);
                rest = &rest[size..];
                continue;
            }
            let size = digits(rest);
            // A number does not begin with zeros.
            let zeros = zeros.min(size - 1);
            self.template += &rest[..zeros];
            match rest[zeros..size].parse() {
                Ok(number) if cause == Some(number) && self.template.ends_with("cause=#") => {
                    self.template.push(CAUSE);
                }
                Ok(number) if number < 1 << 50 => {
                    self.template.push(NUMBER);
                    self.found.push(number as i64);
                }
                _ => self.template += &rest[zeros..size],
            }
            rest = &rest[size..];
        }
        self.template += rest;
    }
}

/// A line up to its verb, as the log writes it.
fn head(line: &Line<'_>, name: &str) -> String {
    let Line { at, turn, seq, task, .. } = line;
    let at = at.to_string();
    format!("{at:>9} {turn:>7}  #{seq:04} {task:>3} {name:<8} ")
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A time in microseconds, if the text begins with one, and its length: `12.000345`.
fn time(text: &str) -> Option<(i64, usize)> {
    let whole = digits(text);
    let rest = text[whole..].strip_prefix('.').filter(|rest| digits(rest) == 6)?;
    let is_plain = whole < 10 && (whole == 1 || !text.starts_with('0'));
    let (seconds, micros): (i64, i64) = (text[..whole].parse().ok()?, rest[..6].parse().ok()?);
    is_plain.then_some((seconds * 1_000_000 + micros, whole + 7))
}

/// What a page is to know beside the lines and the tasks.
pub struct Beside {
    /// More members of the head, as JSON.
    pub head: String,
    /// Lists of `from`, `to` and how, in the order of `from`.
    pub lists: Vec<Vec<[usize; 3]>>,
}

/// All of it, as a page carries it.
pub fn pack(trace: &Trace, beside: &Beside) -> String {
    let (mut columns, texts) = columns(trace);
    let mut tasks = String::new();
    let mut lives = Column::default();
    for task in trace.tasks.values() {
        let ends = |place: &&usize| trace.lines[**place].verb == "exit";
        let end = task.lines.iter().find(ends).map_or(-1, |place| *place as i64);
        let comma = if tasks.is_empty() { "" } else { "," };
        let _ = write!(tasks, "{comma}[{},{},{end}]", task.id, quoted(&task.name));
        lives.put(task.pieces.len() as u64);
        task.pieces.iter().for_each(|piece| lives.put(piece.state as u64));
        task.pieces.iter().for_each(|piece| lives.put_next(piece.from as i64));
        lives.put_next(task.pieces.last().map_or(0, |piece| piece.to as i64));
    }
    let mut lists = Column::default();
    for list in &beside.lists {
        lists.put(list.len() as u64);
        for [from, to, how] in list {
            lists.put_next(*from as i64);
            lists.put_signed(*to as i64 - *from as i64);
            lists.put(*how as u64);
        }
    }
    let templates: Vec<_> = texts.templates.iter().map(|text| quoted(text)).collect();
    let templates = templates.join(",");
    let count = trace.lines.len();
    let more = &beside.head;
    let head = format!(r#"{{"count":{count},"templates":[{templates}],"tasks":[{tasks}],{more}}}"#);
    columns.push(texts.of_line);
    columns.extend(texts.arguments.into_iter().flatten());
    columns.extend([lives, lists]);
    deflated(&head, &columns)
}

/// One of each thing that a line has, and its text.
fn columns(trace: &Trace) -> (Vec<Column>, Texts) {
    let [mut seq, mut at, mut turn, mut task, mut behind] =
        std::array::from_fn(|_| Column::default());
    let mut texts = Texts::default();
    for (place, line) in trace.lines.iter().enumerate() {
        seq.put_next(line.seq as i64);
        at.put_next(line.at.as_micros() as i64);
        turn.put_next(line.turn as i64);
        task.put_next(line.task as i64);
        let cause = trace.cause(place);
        behind.put(cause.map_or(0, |cause| (place - cause) as u64));
        let name = trace.tasks.get(&line.task).map_or("kernel", |task| &*task.name);
        texts.add(line, name, cause.map(|cause| trace.lines[cause].seq));
    }
    (vec![seq, at, turn, task, behind], texts)
}

/// The length of the head, the head, the columns.
fn deflated(head: &str, columns: &[Column]) -> String {
    let mut packer = DeflateEncoder::new(Vec::new(), Compression::new(7));
    let mut put = |bytes: &[u8]| packer.write_all(bytes).expect("memory takes everything");
    let mut length = Column::default();
    length.put(head.len() as u64);
    put(&length.bytes);
    put(head.as_bytes());
    columns.iter().for_each(|column| put(&column.bytes));
    BASE64_STANDARD.encode(packer.finish().expect("memory takes everything"))
}
