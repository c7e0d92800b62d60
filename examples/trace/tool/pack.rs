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
//! | the template of the changes, see [`Changes`] | a line |
//! | for each of them, each number in it, less that of its line before | a line of it |
//!
//! A template is the text of a line with signs for the varying parts: [`HEAD`] for everything up to
//! the verb, [`NUMBER`], [`TIME`] minus that of the line, [`CAUSE`]. After [`AS_IS`] the text has
//! no signs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use base64::prelude::BASE64_STANDARD;
use base64::write::EncoderWriter;
use flate2::{Compression, write::DeflateEncoder};
use testing::trace::Line;

use super::changes::{Changes, Packed};
use super::model::Trace;
use super::perfetto::quoted;

const AS_IS: char = '\0';
const HEAD: char = '\u{1}';
const NUMBER: char = '\u{2}';
const TIME: char = '\u{3}';
const CAUSE: char = '\u{4}';

/// A list of numbers, small ones in a byte.
#[derive(Default)]
pub struct Column {
    bytes: Vec<u8>,
    before: i64,
}

impl Column {
    /// The next number.
    pub fn put(&mut self, mut number: u64) {
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
    pub fn put_next(&mut self, number: i64) {
        self.put_signed(number.wrapping_sub(self.before));
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
    // The data of the current line.
    template: String,
    found: Vec<i64>,
}

impl Texts {
    /// Returns the number of its template.
    fn add(&mut self, line: &Line<'_>, name: &str, cause: Option<u64>) -> usize {
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
        nth
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
                self.found.push(time.wrapping_sub(line.at.as_micros() as i64));
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

/// The positions of the numbers in a template, and whether each is a time.
pub fn signs(template: &str) -> impl Iterator<Item = (usize, bool)> {
    let template = if template.starts_with(AS_IS) { "" } else { template };
    template.match_indices([NUMBER, TIME]).map(|(place, sign)| (place, sign.starts_with(TIME)))
}

/// How many digits a text begins with.
pub fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A time in microseconds, if the text begins with one, and its length: `12.000345`.
pub fn time(text: &str) -> Option<(i64, usize)> {
    let whole = digits(text);
    let rest = text[whole..].strip_prefix('.').filter(|rest| digits(rest) == 6)?;
    let is_plain = whole < 10 && (whole == 1 || !text.starts_with('0'));
    let (seconds, micros): (i64, i64) = (text[..whole].parse().ok()?, rest[..6].parse().ok()?);
    is_plain.then_some((seconds * 1_000_000 + micros, whole + 7))
}

/// The data of a page in addition to the lines and the tasks.
pub struct Beside {
    /// More members of the head, as JSON.
    pub head: String,
    /// The lists.
    pub lists: Lists,
}

/// Lists of `from`, `to` and how, in the order of `from`.
#[derive(Default)]
pub struct Lists(Column);

impl Lists {
    /// One more list.
    pub fn add(&mut self, list: impl ExactSizeIterator<Item = [usize; 3]>) {
        self.0.put(list.len() as u64);
        for [from, to, how] in list {
            self.0.put_next(from as i64);
            self.0.put_signed(to as i64 - from as i64);
            self.0.put(how as u64);
        }
    }
}

/// Writes everything in the form that a page contains.
///
/// # Errors
///
/// Returns the error of `out`.
pub fn pack(trace: &Trace, beside: Beside, out: &mut dyn io::Write) -> io::Result<()> {
    let (mut columns, texts, changes) = columns(trace);
    let mut tasks = String::new();
    let mut lives = Column::default();
    for task in trace.tasks() {
        let end = task.end.map_or(-1, |place| place as i64);
        let comma = if tasks.is_empty() { "" } else { "," };
        let _ = write!(tasks, "{comma}[{},{},{end}]", task.id, quoted(&task.name));
        let pieces = trace.pieces(task);
        lives.put(pieces.len() as u64);
        pieces.iter().for_each(|piece| lives.put(piece.state as u64));
        pieces.iter().for_each(|piece| lives.put_next(piece.from as i64));
        lives.put_next(pieces.last().map_or(0, |piece| piece.to as i64));
    }
    let [templates, rows] = [&texts.templates, &changes.templates].map(|list| {
        let list: Vec<_> = list.iter().map(|text| quoted(text)).collect();
        list.join(",")
    });
    let count = trace.len();
    let Beside { head, lists } = beside;
    let dictionaries = format!(r#""templates":[{templates}],"changes":[{rows}]"#);
    let head = format!(r#"{{"count":{count},{dictionaries},"tasks":[{tasks}],{head}}}"#);
    columns.push(texts.of_line);
    columns.extend(texts.arguments.into_iter().flatten());
    columns.extend([lives, lists.0, changes.of_line]);
    columns.extend(changes.arguments.into_iter().flatten());
    deflated(&head, &columns, out)
}

/// The columns of a line, its text, and its changes.
fn columns(trace: &Trace) -> (Vec<Column>, Texts, Changes) {
    let [mut seq, mut at, mut turn, mut task, mut behind] =
        std::array::from_fn(|_| Column::default());
    let (mut texts, mut changes) = (Texts::default(), Changes::default());
    trace.each(|place, line| {
        seq.put_next(line.seq as i64);
        at.put_next(line.at.as_micros() as i64);
        turn.put_next(line.turn as i64);
        task.put_next(line.task as i64);
        let cause = trace.cause(place);
        behind.put(cause.map_or(0, |cause| (place - cause) as u64));
        let name = if line.task == 0 { "kernel" } else { &trace.task_of(place).name };
        let nth = texts.add(line, name, cause.map(|cause| trace.seq(cause)));
        let (template, found) = (&*texts.template, &*texts.found);
        changes.line(&Packed { line, nth, template, found });
    });
    (vec![seq, at, turn, task, behind], texts, changes)
}

/// The length of the head, the head, the columns.
fn deflated(head: &str, columns: &[Column], out: &mut dyn io::Write) -> io::Result<()> {
    let letters = EncoderWriter::new(out, &BASE64_STANDARD);
    let mut packer = DeflateEncoder::new(letters, Compression::new(7));
    let mut length = Column::default();
    length.put(head.len() as u64);
    packer.write_all(&length.bytes)?;
    packer.write_all(head.as_bytes())?;
    columns.iter().try_for_each(|column| packer.write_all(&column.bytes))?;
    packer.finish()?.finish().map(drop)
}
