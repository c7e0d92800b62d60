//! Reads a program. Every wrong line is reported, so a wrong line does not end the reading: the
//! lines below it are read as its block.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::Problem;
use super::messages::{self, Name};
use super::program::{
    Block, COMPARISONS, LINES, OPERATORS, Piece, Program, Statement, Term, Test, Value, What,
    pieces,
};

/// A tab is as wide as this many blanks.
const TAB: usize = 4;
/// The largest number of blocks inside each other. Each needs some of the stack when it runs.
const NESTED: usize = 50;
/// The largest number of digits of a number in a program. A time is at most eleven days.
const DIGITS: usize = 9;

/// Reads a program.
///
/// # Errors
///
/// Returns what is wrong with it, at most one problem a line.
pub fn read(text: &str) -> Result<Program, Vec<Problem>> {
    // Editors on Windows may write a mark of the byte order.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1..).zip(text.lines()).map(|(number, text)| Line::new(number, text));
    let mut lines: Vec<_> = lines.filter(|line| !line.text.is_empty()).collect();
    if let Some(line) = lines.iter().map(|line| line.number).find(|number| *number > LINES) {
        return Err(vec![Problem { line, text: messages::too_many_lines(LINES) }]);
    }
    // A whole program may be indented, as in a quotation.
    let margin = lines.first().map_or(0, |line| line.depth);
    lines.iter_mut().for_each(|line| line.depth = line.depth.saturating_sub(margin));
    let mut reader = Reader { lines, ..Reader::default() };
    reader.control_characters();
    reader.program();
    reader.names();
    reader.spawned_names();
    let Reader { mut program, mut problems, joins, .. } = reader;
    if program.main.is_empty() && problems.is_empty() {
        problems.push(Problem { line: 1, text: messages::NO_TASK.to_owned() });
    }
    problems.sort_by_key(|problem| problem.line);
    problems.dedup_by_key(|problem| problem.line);
    program.main.extend(joins);
    if problems.is_empty() { Ok(program) } else { Err(problems) }
}

/// A line of the text, without its comment.
#[derive(Clone, Copy)]
struct Line<'t> {
    /// From 1.
    number: usize,
    /// How far it is indented, in blanks.
    depth: usize,
    text: &'t str,
}

impl<'t> Line<'t> {
    fn new(number: usize, text: &'t str) -> Line<'t> {
        let code = text.split('#').next().unwrap_or_default().trim_end();
        let indent = code.chars().take_while(|c| c.is_whitespace());
        let depth = indent.map(|c| if c == '\t' { TAB } else { 1 }).sum();
        Line { number, depth, text: code.trim_start() }
    }

    /// Splits the line into its first word, what follows that, and, if the line has a colon, what
    /// is after the colon. The colons of a note are text.
    fn parts(self) -> (&'t str, &'t str, Option<&'t str>) {
        let (word, args) = first_word(self.text);
        if word == "note" {
            return (word, args, None);
        }
        let (head, block) = match self.text.split_once(':') {
            Some((head, block)) => (head.trim_end(), Some(block.trim())),
            None => (self.text, None),
        };
        let (word, args) = first_word(head);
        (word, args, block)
    }
}

/// Splits a text into its first word and the rest.
fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim())
}

/// What has been read so far.
#[derive(Default)]
struct Reader<'t> {
    lines: Vec<Line<'t>>,
    /// The index of the next line.
    next: usize,
    /// The number of blocks around the next line.
    nested: usize,
    program: Program,
    /// A `join` for each task, for the end of the main task.
    joins: Block,
    problems: Vec<Problem>,
    /// What can be declared once, and the line that declares it.
    declared: BTreeMap<(Name, String), usize>,
    /// The names that some line introduces.
    known: BTreeSet<(Name, String)>,
    /// The names that another line must introduce, and the lines that use them.
    used: Vec<(Name, String, usize)>,
    /// The names of the tasks that `spawn` starts, and their lines.
    spawned: Vec<(String, usize)>,
}

/// What is read, or what is wrong with it.
type Read<T> = Result<T, String>;

impl<'t> Reader<'t> {
    fn wrong(&mut self, line: usize, text: String) {
        self.problems.push(Problem { line, text });
    }

    fn peek(&self) -> Option<Line<'t>> {
        self.lines.get(self.next).copied()
    }

    // ---- Lines and blocks ------------------------------------------------------------------

    /// The first problem of a line is the one that is reported, and a control character may be why
    /// the line is wrong in another way too.
    fn control_characters(&mut self) {
        for line in self.lines.clone() {
            if let Some(found) = line.text.chars().find(|c| c.is_control() && *c != '\t') {
                self.wrong(line.number, messages::control(found));
            }
        }
    }

    fn program(&mut self) {
        while let Some(line) = self.peek() {
            if line.depth > 0 {
                self.wrong(line.number, messages::INDENTED.to_owned());
                self.lines_below(Line { depth: 0, ..line });
                continue;
            }
            self.next += 1;
            if let Err(text) = self.top(line) {
                self.wrong(line.number, text);
                self.lines_below(line);
            }
        }
    }

    /// Reads a line that is not in a task, and the block of a task below it.
    fn top(&mut self, line: Line<'t>) -> Read<()> {
        let (word, args, block) = line.parts();
        let words: Vec<_> = args.split_whitespace().collect();
        match (word, &words[..], block) {
            ("task", [name], Some(block)) => {
                let name = self.declared(Name::Task, name, line.number)?;
                let body = self.body(line, block)?;
                let what = What::Spawn(name.clone(), Rc::new(body));
                self.program.main.push(Statement { line: line.number, what });
                self.joins.push(Statement { line: line.number, what: What::Join(name) });
            }
            ("shared", [_, ..], None) if args.contains('=') => {
                let (name, value) = args.split_once('=').expect("the line has one");
                let name = self.declared(Name::Variable, name.trim(), line.number)?;
                self.program.shared.insert(name, number(value.trim())?);
            }
            ("channel", [name, room], None) => {
                let name = self.declared(Name::Channel, name, line.number)?;
                let room = usize::try_from(number(room)?).ok().filter(|room| *room > 0);
                let room = room.ok_or_else(|| messages::NO_ROOM.to_owned())?;
                self.program.channels.insert(name, room);
            }
            ("seed", [seed], None) => {
                self.declared(Name::Setting, word, line.number)?;
                self.program.seed = at_least_zero(seed)?;
            }
            ("late", [late], None) => {
                self.declared(Name::Setting, word, line.number)?;
                self.program.late = at_least_zero(late)?;
            }
            _ => return Err(messages::not_at_the_top(word, line.text, block.is_some())),
        }
        Ok(())
    }

    /// Reads the block of a line that has a colon. `inline` is what follows the colon.
    fn body(&mut self, above: Line<'t>, inline: &'t str) -> Read<Block> {
        if self.nested == NESTED {
            while self.peek().is_some_and(|line| line.depth > above.depth) {
                self.next += 1;
            }
            return Err(messages::nested(NESTED));
        }
        self.nested += 1;
        let block = self.statements(above, inline);
        self.nested -= 1;
        block
    }

    fn statements(&mut self, above: Line<'t>, inline: &'t str) -> Read<Block> {
        let (mut block, start) = (Block::new(), self.next);
        if !inline.is_empty() {
            for text in inline.split(';').map(str::trim).filter(|text| !text.is_empty()) {
                let line = Line { text, ..above };
                let (word, _, has_block) = line.parts();
                if has_block.is_some() {
                    return Err(messages::block_in_a_line(word));
                }
                let what = self.statement(line)?;
                block.push(Statement { line: above.number, what });
            }
        } else if let Some(first) = self.peek() {
            while let Some(line) = self.peek().filter(|line| line.depth > above.depth) {
                self.next += 1;
                if line.depth != first.depth {
                    self.wrong(line.number, messages::other_indentation(first.number));
                }
                match self.statement(line) {
                    Ok(what) => block.push(Statement { line: line.number, what }),
                    Err(text) => {
                        self.wrong(line.number, text);
                        self.lines_below(line);
                    }
                }
            }
        }
        match block.is_empty() && self.next == start {
            true => Err(messages::no_block(above.text)),
            false => Ok(block),
        }
    }

    /// Reads the lines that are indented below a wrong line, for their problems and the names that
    /// they introduce, and the second block of its statement, such as that of `late:`.
    fn lines_below(&mut self, wrong: Line<'t>) {
        if self.peek().is_some_and(|line| line.depth > wrong.depth) {
            let _ = self.body(wrong, "");
        }
        if let Some(second) = messages::second(wrong.parts().0) {
            let _ = self.second_body(wrong, second);
        }
    }

    /// Reads the block that goes with the one before, such as `late:`.
    fn second_body(&mut self, above: Line<'t>, word: &str) -> Read<Option<Block>> {
        match self.peek().map(|line| (line, line.parts())) {
            Some((line, (head, "", Some(inline)))) if head == word && line.depth == above.depth => {
                self.next += 1;
                self.body(line, inline).map(Some)
            }
            _ => Ok(None),
        }
    }

    // ---- Statements ------------------------------------------------------------------------

    /// Reads a statement, and the blocks below it.
    fn statement(&mut self, line: Line<'t>) -> Read<What> {
        let (word, args, block) = line.parts();
        let number = line.number;
        let has_blanks = args.contains(char::is_whitespace);
        Ok(match (word, args, block) {
            (_, _, None) if args.starts_with('=') => {
                let name = self.introduced(Name::Variable, word)?;
                What::Set(name, self.value(&args[1..], number)?)
            }
            ("yield", "", None) => What::Yield,
            ("shield", "", Some(inline)) => What::Shield(self.body(line, inline)?),
            ("try", "", Some(inline)) => {
                let body = self.body(line, inline)?;
                let finally = self.second_body(line, "finally")?;
                What::Try(body, finally.ok_or_else(|| messages::NO_FINALLY.to_owned())?)
            }
            ("repeat", "", Some(inline)) => What::Repeat(None, self.body(line, inline)?),
            // All others need an argument.
            (_, "", _) => return self.not_a_statement(line),
            ("sleep", _, None) => What::Sleep(self.time(args, number)?),
            ("spin", _, None) => What::Spin(self.time(args, number)?),
            ("note", _, None) => {
                for piece in pieces(args) {
                    if let Piece::Variable(name) = piece {
                        self.used(Name::Variable, name, number)?;
                    }
                }
                What::Note(args.to_owned())
            }
            ("send", _, None) if has_blanks => {
                let (channel, value) = first_word(args);
                let channel = self.introduced(Name::Channel, channel)?;
                What::Send(channel, self.value(value, number)?)
            }
            ("recv", _, None) => {
                let (channel, variable) = first_word(args);
                let channel = self.introduced(Name::Channel, channel)?;
                let variable = Some(variable).filter(|name| !name.is_empty());
                let variable = variable.map(|name| self.introduced(Name::Variable, name));
                What::Recv(channel, variable.transpose()?)
            }
            ("within", _, Some(inline)) => {
                let time = self.time(args, number)?;
                let body = self.body(line, inline)?;
                What::Within(time, body, self.second_body(line, "late")?.unwrap_or_default())
            }
            ("if", _, Some(inline)) => {
                let test = self.test(args, number)?;
                let yes = self.body(line, inline)?;
                What::If(test, yes, self.second_body(line, "else")?.unwrap_or_default())
            }
            ("repeat", _, Some(inline)) => {
                let count = self.value(args, number)?;
                What::Repeat(Some(count), self.body(line, inline)?)
            }
            ("while", _, Some(inline)) => {
                let test = self.test(args, number)?;
                What::While(test, self.body(line, inline)?)
            }
            // All others need one name.
            _ if has_blanks => return self.not_a_statement(line),
            ("lock", _, None) => What::Lock(self.introduced(Name::Lock, args)?),
            ("unlock", _, None) => What::Unlock(self.used(Name::Lock, args, number)?),
            ("wait", _, None) => What::Wait(self.introduced(Name::Bell, args)?),
            ("wake", _, None) => What::Wake(self.introduced(Name::Bell, args)?),
            ("spawn", _, Some(inline)) => {
                let name = self.introduced(Name::Task, args)?;
                self.spawned.push((name.clone(), number));
                What::Spawn(name, Rc::new(self.body(line, inline)?))
            }
            ("join", _, None) => What::Join(self.used(Name::Task, args, number)?),
            ("cancel", _, None) => What::Cancel(self.used(Name::Task, args, number)?),
            _ => return self.not_a_statement(line),
        })
    }

    /// Reads an assignment without blanks, or says what is wrong with the line.
    fn not_a_statement(&mut self, line: Line<'t>) -> Read<What> {
        let (word, _, block) = line.parts();
        match line.text.split_once('=') {
            Some((name, value)) if block.is_none() && !messages::is_statement(word) => {
                let name = self.introduced(Name::Variable, name.trim())?;
                Ok(What::Set(name, self.value(value, line.number)?))
            }
            _ => Err(messages::not_a_statement(word, line.text, block.is_some())),
        }
    }

    /// Reads a value that is a time. The result of a computation is not known here.
    fn time(&mut self, text: &str, line: usize) -> Read<Value> {
        match is_number(text) && number(text)? < 0 {
            true => Err(messages::negative(text)),
            false => self.value(text, line),
        }
    }

    fn value(&mut self, text: &str, line: usize) -> Read<Value> {
        let operator = |c: char| OPERATORS.into_iter().find(|(sign, _)| *sign == c);
        let operators: Vec<_> = text.chars().filter_map(operator).collect();
        let mut terms = Vec::new();
        for (place, term) in text.split(|c| operator(c).is_some()).enumerate() {
            terms.push(match (term.trim(), &operators[..]) {
                // `-5` is `0 - 5`.
                ("", [('-', _), ..]) if place == 0 => Term::Number(0),
                ("", [_, ..]) => {
                    let (sign, _) = operators[place.saturating_sub(1)];
                    return Err(messages::one_sided(sign));
                }
                (term, _) => self.term(term, line)?,
            });
        }
        let mut terms = terms.into_iter();
        let first = terms.next().expect("a split text has a part");
        let rest = operators.into_iter().map(|(_, operator)| operator).zip(terms).collect();
        Ok(Value { first, rest })
    }

    fn term(&mut self, text: &str, line: usize) -> Read<Term> {
        if text.starts_with(char::is_alphabetic) {
            self.used(Name::Variable, text, line).map(Term::Variable)
        } else if is_number(text) {
            number(text).map(Term::Number)
        } else {
            Err(messages::not_a_value(text))
        }
    }

    fn test(&mut self, text: &str, line: usize) -> Read<Test> {
        let split = |(sign, is)| text.split_once(sign).map(|(left, right)| (left, is, right));
        let found = COMPARISONS.into_iter().find_map(split);
        let (left, is, right) = found.ok_or_else(|| messages::not_a_test(text))?;
        if left.trim().is_empty() || right.trim().is_empty() {
            return Err(messages::not_a_test(text));
        }
        Ok(Test { left: self.value(left, line)?, is, right: self.value(right, line)? })
    }

    // ---- Names -----------------------------------------------------------------------------

    /// Reads a name that is known from here on, also in the lines before.
    fn introduced(&mut self, kind: Name, text: &str) -> Read<String> {
        let name = messages::name(kind, text)?;
        self.known.insert((kind, name.clone()));
        let Program { locks, bells, channels, .. } = &mut self.program;
        match kind {
            Name::Lock => drop(locks.insert(name.clone())),
            Name::Bell => drop(bells.insert(name.clone())),
            Name::Channel => drop(channels.entry(name.clone()).or_insert(1)),
            Name::Task | Name::Variable | Name::Setting => {}
        }
        Ok(name)
    }

    /// Reads a name that a program declares once at most.
    fn declared(&mut self, kind: Name, text: &str, line: usize) -> Read<String> {
        let name = match kind {
            Name::Setting => text.to_owned(),
            _ => self.introduced(kind, text)?,
        };
        match self.declared.entry((kind, name.clone())) {
            Entry::Occupied(before) => Err(messages::twice(kind, &name, *before.get())),
            Entry::Vacant(entry) => {
                entry.insert(line);
                Ok(name)
            }
        }
    }

    /// Reads a name that some line of the program must introduce.
    fn used(&mut self, kind: Name, text: &str, line: usize) -> Read<String> {
        let name = messages::name(kind, text)?;
        self.used.push((kind, name.clone(), line));
        Ok(name)
    }

    /// Reports the names that no line introduces.
    fn names(&mut self) {
        for (kind, name, line) in std::mem::take(&mut self.used) {
            if !self.known.contains(&(kind, name.clone())) {
                let others = self.known.iter().filter(|(other, _)| *other == kind);
                let text = messages::unknown(kind, &name, others.map(|(_, name)| &**name));
                self.wrong(line, text);
            }
        }
    }

    /// Reports the spawned tasks that have the name of a declared task. `join` waits for the newest
    /// task of a name, so the main task would end before the declared one.
    fn spawned_names(&mut self) {
        for (name, line) in std::mem::take(&mut self.spawned) {
            if let Some(&declared) = self.declared.get(&(Name::Task, name.clone())) {
                let text = messages::twice(Name::Task, &name, line.min(declared));
                self.wrong(line.max(declared), text);
            }
        }
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a number.
fn number(text: &str) -> Read<i64> {
    match text.parse() {
        _ if !is_number(text) => Err(messages::not_a_number(text)),
        Ok(number) if text.len() <= DIGITS + usize::from(text.starts_with('-')) => Ok(number),
        _ => Err(messages::too_large(DIGITS, text)),
    }
}

/// Reads a number that is not negative.
fn at_least_zero(text: &str) -> Read<u64> {
    u64::try_from(number(text)?).map_err(|_| messages::not_a_number(text))
}
