//! Places: in the log, in the user's source, and among the descriptors.

use super::form::*;
use super::words::Text;

/// The number of an event: gapless, from 1, in the order of the log.
pub type Seq = u64;

/// A place in the user's source: `file:line`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site<'a> {
    /// As the compiler was given it.
    pub file: Text<'a>,
    /// From 1.
    pub line: u32,
}

/// Where a task stands between two runs: `sleep@FILE:LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop<'a> {
    /// The trap, its words joined by `_`, as in `io_c1_read`; or `spawn`, `waker`, `exit`.
    pub trap: Text<'a>,
    /// Where it was made in the user's source.
    pub at: Option<Site<'a>>,
}

/// A dense name for a descriptor: a letter for its kind, a number in order of first use (`c1`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Alias {
    /// `l` listener, `c` connection, `p` pipe, `e` event, `f` any other.
    pub kind: char,
    /// From 1, per letter.
    pub number: u32,
}

/// A primitive that is built on a queue: `mutex accounts held-by=3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Primitive<'a> {
    /// Its kind: `mutex`.
    pub kind: &'static str,
    /// Its name; empty if it has none.
    pub name: Text<'a>,
    /// The number of its queue, which stands for a missing name.
    pub queue: u64,
    /// The tasks that hold what its waiters want, in the order of their numbers; behind `block` and
    /// `await`.
    pub held_by: Vec<u64>,
}

impl<'a> Form<Box<Primitive<'a>>> for Own {
    fn put(&self, before: &str, primitive: &Box<Primitive<'a>>, out: &mut Out) {
        let Primitive { kind, name, queue, held_by } = &**primitive;
        WORD.put(before, &(*kind).into(), out);
        match name.is_empty() {
            // Something shared with threads, of which no line was written.
            true if *queue == 0 => {}
            true => QUEUE.put(" ", queue, out),
            false => WORD.put(" ", name, out),
        }
        for (nth, task) in held_by.iter().take(4).enumerate() {
            TASK.put(if nth == 0 { " held-by=" } else { "," }, task, out);
        }
        out.text(if held_by.len() > 4 { ",.." } else { "" });
    }
}

impl<'a> Form<Site<'a>> for Own {
    fn put(&self, before: &str, site: &Site<'a>, out: &mut Out) {
        WORD.put(before, &site.file, out);
        COUNT.put(":", &site.line, out);
    }
}

impl<'a> Form<Stop<'a>> for Own {
    fn put(&self, before: &str, Stop { trap, at }: &Stop<'a>, out: &mut Out) {
        STOP.put(before, trap, out);
        Opt(Own).put("@", at, out);
    }
}

impl Form<Alias> for Own {
    fn put(&self, before: &str, alias: &Alias, out: &mut Out) {
        out.text(before);
        out.0.push(if alias.kind.is_ascii_lowercase() { alias.kind as u8 } else { b'f' });
        COUNT.put("", &alias.number, out);
    }
}

display!(Site<'a>);
display!(Stop<'a>);
display!(Alias);
