//! Places: in the log, in the user's source, and among the descriptors.

use super::form::*;
use super::words::{Text, stop, word};

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
    /// The tasks that hold what its waiters want, in the order of their numbers; behind `block`.
    pub held_by: Vec<u64>,
}

impl<'a> Form<Box<Primitive<'a>>> for Own {
    fn write(&self, primitive: &Box<Primitive<'a>>, f: &mut Formatter<'_>) -> fmt::Result {
        let Primitive { kind, name, queue, held_by } = &**primitive;
        write!(f, "{} ", word(kind))?;
        if name.is_empty() { QUEUE.write(queue, f) } else { WORD.write(name, f) }?;
        for (nth, task) in held_by.iter().take(4).enumerate() {
            write!(f, "{}{task}", if nth == 0 { " held-by=" } else { "," })?;
        }
        f.write_str(if held_by.len() > 4 { ",.." } else { "" })
    }
}

impl<'a> Form<Site<'a>> for Own {
    fn write(&self, site: &Site<'a>, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", word(&site.file), site.line)
    }
}

impl<'a> Form<Stop<'a>> for Own {
    fn write(&self, Stop { trap, at }: &Stop<'a>, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&stop(trap))?;
        Opt(Own).put("@", at, f)
    }
}

impl Form<Alias> for Own {
    fn write(&self, alias: &Alias, f: &mut Formatter<'_>) -> fmt::Result {
        let kind = if alias.kind.is_ascii_lowercase() { alias.kind } else { 'f' };
        write!(f, "{kind}{}", alias.number)
    }
}

display!(Site<'a>);
display!(Stop<'a>);
display!(Alias);
