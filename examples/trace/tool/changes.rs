//! The changes of each line in the kernel's state, packed for a page.
//!
//! The page steps through the states of a log without the kernel's rules: [`State`] follows the log
//! here, once, and the page gets the rows that each line changes. A row has a key and a value: `k9`
//! and `3 k=9 io c1 read #0034`. The page keeps the rows in a table, which is the state.
//!
//! Nearly everything in a row is also in the line that changes it. So the changes of a line are a
//! template with signs, like its text in [`super::pack`]: [`TASK`], [`SEQ`] and [`AT`] of the line,
//! [`ARGUMENT`] of its text. The rest are numbers in a column: [`NUMBER`], [`TIME`] minus that of
//! the line, [`BACK`] for an earlier line. A line names its template by 0 if it is that of the last
//! line with the same text, and otherwise by 1 + its place.
//!
//! | key | value |
//! |---|---|
//! | `c` | the task that has the CPU |
//! | `n` | the first task of the next turn |
//! | `t3` | `ready since=TIME` |
//! | `s1`, `k9` | its task, and the row; after a `!` if it waits in the queue of a primitive |
//! | `p3 pending s2` | nothing |
//! | `mk=9`, `ms1`, `mdrain`, `a1` | when that timer, or armed deadline, is due |
//! | `fc1`, `o1` | the rest of the row of a descriptor, a job |
//! | `h3 mutex fork-0` | nothing: task 3 holds it |
//! | `wcondition more` | its last notification: `#0012 by=5 woke=0` |
//! | `x`, `y` | the shutdown, the messages |

use std::collections::{BTreeSet, HashMap};

use testing::trace::{Line, State, state::Key};

use super::pack::{Column, digits, signs, time};

const TASK: char = '\u{1}';
const SEQ: char = '\u{2}';
const AT: char = '\u{3}';
/// A character follows: which one, from a space on.
const ARGUMENT: char = '\u{4}';
const NUMBER: char = '\u{5}';
const TIME: char = '\u{6}';
const BACK: char = '\u{7}';
/// Between a key and its value.
const IS: char = '\t';
/// Between two rows.
const NEXT: char = '\n';

/// The changes of all lines.
#[derive(Default)]
pub struct Changes {
    state: State,
    /// The present rows.
    rows: HashMap<String, String>,
    holders: HashMap<Box<str>, BTreeSet<u64>>,
    numbers: HashMap<String, usize>,
    /// All templates.
    pub templates: Vec<String>,
    /// For each template, the numbers that its lines do not have.
    pub arguments: Vec<Vec<Column>>,
    /// The template of each line.
    pub of_line: Column,
    /// By the template of the text, that of the changes.
    last: Vec<usize>,
}

/// A line in the form of the page: the line, its template, and its numbers.
pub struct Packed<'a> {
    /// The line.
    pub line: &'a Line<'a>,
    /// The number of the template of its text.
    pub nth: usize,
    /// The template of the text.
    pub template: &'a str,
    /// The numbers and the times, minus the time of the line.
    pub found: &'a [i64],
}

impl Changes {
    /// Follows the next line.
    pub fn line(&mut self, packed: &Packed<'_>) {
        self.state.line(packed.line);
        let mut writer = Writer::new(packed);
        for (key, value) in self.changed() {
            writer.row(&key, value.as_deref());
            match value {
                Some(value) => drop(self.rows.insert(key, value)),
                None => drop(self.rows.remove(&key)),
            }
        }
        let Writer { template, found, .. } = writer;
        let nth = match self.numbers.get(&template) {
            Some(nth) => *nth,
            None => {
                self.numbers.insert(template.clone(), self.templates.len());
                self.templates.push(template);
                self.arguments.push(found.iter().map(|_| Column::default()).collect());
                self.templates.len() - 1
            }
        };
        let columns = self.arguments[nth].iter_mut().zip(&found);
        columns.for_each(|(column, number)| column.put_next(*number));
        self.last.resize(self.last.len().max(packed.nth + 1), usize::MAX);
        let last = std::mem::replace(&mut self.last[packed.nth], nth);
        self.of_line.put(if last == nth { 0 } else { nth as u64 + 1 });
    }

    /// The rows that the last line has changed, and their new texts.
    fn changed(&mut self) -> Vec<(String, Option<String>)> {
        let keys: BTreeSet<Key> = self.state.changed().iter().cloned().collect();
        let mut rows = Vec::new();
        for key in &keys {
            match key {
                // The time is that of the line. The queues follow from the tasks.
                Key::Time | Key::Ready | Key::Next => {}
                Key::Primitive(words) => self.holders_of(words, &mut rows),
                _ => rows.push((name(key), self.value(key))),
            }
        }
        rows.push(("n".to_owned(), self.state.next().next().map(|task| task.to_string())));
        rows.retain(|(key, value)| self.rows.get(key) != value.as_ref());
        rows
    }

    fn value(&self, key: &Key) -> Option<String> {
        let row = self.state.row(key)?;
        let behind = |start: &str| row.strip_prefix(start).unwrap_or(&row).to_owned();
        let row_of = |task: u64| format!("{task} {}", row.trim_start());
        Some(match key {
            Key::Task(id) => {
                let task = self.state.tasks.get(id)?;
                format!("{} since={}", task.doing, task.since)
            }
            Key::Scope(number) => row_of(self.state.scopes.get(number)?.task),
            Key::Wait(ticket) => {
                let wait = self.state.waits.get(ticket)?;
                let primitive = self.state.primitives.get(&wait.op);
                let is_in = primitive.is_some_and(|it| it.waits.contains(ticket));
                format!("{}{}", if is_in { "!" } else { "" }, row_of(wait.task))
            }
            Key::Pending(..) => String::new(),
            Key::Timer(timer) => self.state.timer(*timer)?.to_string(),
            Key::Armed(number) => self.state.deadlines.get(number)?.until?.to_string(),
            Key::Descriptor(alias) => behind(&alias.to_string()),
            Key::Notified(words) => behind(&format!("notified {words} ")),
            Key::Job(number) => behind(&format!("job o{number} ")),
            Key::Shutdown => behind("shutdown "),
            Key::Messages => behind("messages "),
            Key::Cpu => behind("cpu "),
            Key::Time | Key::Ready | Key::Next | Key::Primitive(_) => row,
        })
    }

    /// The holders of a primitive that have changed.
    fn holders_of(&mut self, words: &str, rows: &mut Vec<(String, Option<String>)>) {
        let now = self.state.primitives.get(words).map(|it| it.holders.keys().copied());
        let now: BTreeSet<u64> = now.into_iter().flatten().collect();
        let before = self.holders.remove(words).unwrap_or_default();
        for task in before.symmetric_difference(&now) {
            let value = now.contains(task).then(String::new);
            rows.push((format!("h{task} {words}"), value));
        }
        if !now.is_empty() {
            self.holders.insert(words.into(), now);
        }
    }
}

/// The key of a row.
fn name(key: &Key) -> String {
    match key {
        Key::Cpu => "c".to_owned(),
        Key::Task(id) => format!("t{id}"),
        Key::Scope(number) => format!("s{number}"),
        Key::Pending(task, pending) => format!("p{task} {pending}"),
        Key::Wait(ticket) => format!("k{ticket}"),
        Key::Timer(timer) => format!("m{timer}"),
        Key::Armed(number) => format!("a{number}"),
        Key::Descriptor(alias) => format!("f{alias}"),
        Key::Notified(words) => format!("w{words}"),
        Key::Job(number) => format!("o{number}"),
        Key::Shutdown => "x".to_owned(),
        Key::Messages => "y".to_owned(),
        Key::Time | Key::Ready | Key::Next | Key::Primitive(_) => String::new(),
    }
}

/// The template of the changes of a line, and the numbers that are not in the line.
struct Writer<'a> {
    packed: &'a Packed<'a>,
    /// For each number in the line: whether it is a time, and the letter before it.
    kinds: Vec<(bool, Option<char>)>,
    template: String,
    found: Vec<i64>,
}

impl<'a> Writer<'a> {
    fn new(packed: &'a Packed<'a>) -> Writer<'a> {
        let kinds = signs(packed.template)
            .map(|(place, is_time)| (is_time, letter(&packed.template[..place])))
            .collect();
        Writer { packed, kinds, template: String::new(), found: Vec::new() }
    }

    fn row(&mut self, key: &str, value: Option<&str>) {
        if !self.template.is_empty() {
            self.template.push(NEXT);
        }
        self.text(key);
        if let Some(value) = value {
            self.template.push(IS);
            self.text(value);
        }
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit() || c < ' ') {
            self.template += &rest[..start];
            let before = &text[..text.len() - rest.len() + start];
            rest = &rest[start..];
            let size = if let Some((time, size)) = time(rest) {
                self.time(time - self.packed.line.at.as_micros() as i64);
                size
            } else {
                let size = digits(rest);
                if size == 0 {
                    // A control character is a sign.
                    self.template.push(char::REPLACEMENT_CHARACTER);
                }
                let plain = rest[..size].parse().ok().filter(|number| *number < 1 << 50);
                match plain {
                    Some(number) if before.ends_with('#') => self.line_number(number),
                    Some(number) if size == 1 || !rest.starts_with('0') => {
                        self.number(number, letter(before));
                    }
                    _ => self.template += &rest[..size],
                }
                size.max(1)
            };
            rest = &rest[size..];
        }
        self.template += rest;
    }

    fn put(&mut self, sign: char, number: i64) {
        self.template.push(sign);
        self.found.push(number);
    }

    fn line_number(&mut self, number: i64) {
        match self.packed.line.seq as i64 - number {
            0 => self.template.push(SEQ),
            back => self.put(BACK, back),
        }
    }

    fn time(&mut self, later: i64) {
        let found = self.packed.found.iter().zip(&self.kinds);
        let argument = found.into_iter().position(|(it, (is_time, _))| *is_time && *it == later);
        match argument {
            _ if later == 0 => self.template.push(AT),
            Some(nth) => self.argument(nth),
            None => self.put(TIME, later),
        }
    }

    /// A number of the line with the same letter before it is most likely the same thing.
    fn number(&mut self, number: i64, letter: Option<char>) {
        let found = || self.packed.found.iter().zip(&self.kinds);
        let same = found().position(|(it, kind)| *it == number && *kind == (false, letter));
        let any = || found().position(|(it, (is_time, _))| *it == number && !is_time);
        let is_task = self.packed.line.task as i64 == number;
        match same.or_else(|| if is_task { None } else { any() }) {
            Some(nth) => self.argument(nth),
            None if is_task => self.template.push(TASK),
            None => self.put(NUMBER, number),
        }
    }

    fn argument(&mut self, nth: usize) {
        self.template.push(ARGUMENT);
        self.template.push(char::from_u32(' ' as u32 + nth as u32).expect("a line is short"));
    }
}

/// The last letter of a text, before which is at most a `=`.
fn letter(text: &str) -> Option<char> {
    text.strip_suffix('=').unwrap_or(text).chars().next_back().filter(char::is_ascii_alphabetic)
}
