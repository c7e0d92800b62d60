//! The language of `select` and of `step`'s stop: conditions of a line, as in `verb=block for>1s`.
//!
//! A condition is a field, an operator and a value, without spaces between them. A line is taken
//! if all conditions hold. A value in double quotes may have spaces.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use kernel::trace::Event;
use testing::trace::{Line, span};
use traps::Time;

use super::look::time;
use super::near::nearest;

/// What the help says about the language.
pub const HELP: &str = "\
A query has conditions, and a line is taken if all of them hold. A condition is a field, an \
operator and a value without spaces between them. Put a value that has spaces in double quotes.

  verb   = !=              a verb of the log: verb=block; one of several: verb=wake,deliver
  task   = != ~ !~         the number or the name of the task: task=5, task=main, task~conn-*
  at     = != ~ !~         the call site, whole or its end: at=chat.rs:57, at~chat.rs:*
  text   ~ !~              the line from its verb on, any part of it: text~held-by=3
  line   = != < <= > >=    the number of the line: line>=100, line=#0042
  turn   = != < <= > >=    the turn of the kernel
  time   < <= > >=         the time of the line: time>=3.25, time<250ms
  for    < <= > >=         the length of the wait that a `block` or `await` begins, or of the run
                           that a `run` begins: for>1s, for<=64us

After ~ and !~ the value is a pattern: * is any text, ? is one character. A wait that has not \
ended counts until the end of its task or of the trace. A run that has no `ran=` and no `longrun` \
line has no length, and no condition on `for` holds.";

/// The conditions of a query, all of which must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    conditions: Vec<Condition>,
    text: String,
}

/// As it was written, in one line.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    /// Whether the test must fail.
    is_not: bool,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Verb(Vec<String>),
    Task(Vec<String>),
    TaskLike(String),
    At(String),
    AtLike(String),
    /// The pattern with a `*` at both ends.
    Text(String),
    Line(Order, u64),
    Turn(Order, u64),
    Time(Order, Time),
    For(Order, Duration),
}

/// How a number must compare with the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Equal,
    Less,
    AtMost,
    More,
    AtLeast,
}

impl Order {
    fn holds<T: Ord>(self, found: &T, value: &T) -> bool {
        match self {
            Order::Equal => found == value,
            Order::Less => found < value,
            Order::AtMost => found <= value,
            Order::More => found > value,
            Order::AtLeast => found >= value,
        }
    }
}

/// The fields, each with its operators.
const FIELDS: [(&str, &[&str]); 8] = [
    ("verb", &["=", "!="]),
    ("task", &["=", "!=", "~", "!~"]),
    ("at", &["=", "!=", "~", "!~"]),
    ("text", &["~", "!~"]),
    ("line", &["=", "!=", "<", "<=", ">", ">="]),
    ("turn", &["=", "!=", "<", "<=", ">", ">="]),
    ("time", &["<", "<=", ">", ">="]),
    ("for", &["<", "<=", ">", ">="]),
];

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says what was expected.
    pub fn parse(text: &str) -> Result<Query, String> {
        let conditions: Vec<_> =
            words(text)?.iter().map(|word| condition(word)).collect::<Result<_, _>>()?;
        if conditions.is_empty() {
            return Err("expected a condition such as verb=block".to_owned());
        }
        let text = text.replace(char::is_control, " ").trim().to_owned();
        Ok(Query { conditions, text })
    }

    /// Whether a line fulfils all conditions that do not ask for a length.
    pub fn takes(&self, line: &Line<'_>) -> bool {
        self.conditions.iter().all(|each| each.test.takes(line) != each.is_not)
    }

    /// Whether a condition asks how long a wait or a run lasted.
    pub fn has_length(&self) -> bool {
        self.conditions.iter().any(|each| matches!(each.test, Test::For(..)))
    }

    /// Whether a wait or a run of this length fulfils all conditions that ask for one.
    pub fn takes_length(&self, found: Duration) -> bool {
        self.conditions.iter().all(|each| match &each.test {
            Test::For(order, value) => order.holds(&found, value),
            _ => true,
        })
    }
}

impl Test {
    fn takes(&self, line: &Line<'_>) -> bool {
        let is_end_of_site = |is_it: &dyn Fn(&str) -> bool| {
            line.key("at").is_some_and(|site| {
                let ends = site.match_indices('/').map(|(slash, _)| &site[slash + 1..]);
                is_it(site) || ends.into_iter().any(is_it)
            })
        };
        match self {
            Test::Verb(verbs) => verbs.iter().any(|verb| verb == line.verb),
            Test::Task(tasks) => tasks.iter().any(|task| {
                task == line.name() || task.parse().is_ok_and(|number: u64| number == line.task)
            }),
            Test::TaskLike(pattern) => is_like(line.name(), pattern),
            Test::At(value) => is_end_of_site(&|site| site == value),
            Test::AtLike(pattern) => is_end_of_site(&|site| is_like(site, pattern)),
            Test::Text(pattern) => is_like(line.event(), pattern),
            Test::Line(order, value) => order.holds(&line.seq, value),
            Test::Turn(order, value) => order.holds(&line.turn, value),
            Test::Time(order, value) => order.holds(&line.at, value),
            // See `takes_length`.
            Test::For(..) => true,
        }
    }
}

/// Splits a query at its spaces, except in double quotes, which are removed.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut is_quoted, mut is_open) = (Vec::<String>::new(), false, false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => is_open = false,
            c => {
                if !is_open {
                    words.push(String::new());
                }
                is_open = true;
                words.last_mut().expect("a word is open").push(c);
            }
        }
    }
    if is_quoted {
        Err("expected a second \" at the end of the value".to_owned())
    } else {
        Ok(words)
    }
}

/// Parses one condition.
fn condition(word: &str) -> Result<Condition, String> {
    let end = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
    let (field, rest) = word.split_at(end);
    let Some((_, operators)) = FIELDS.iter().find(|(name, _)| *name == field) else {
        let names: Vec<_> = FIELDS.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of the fields {} and an operator", names.join(", "));
        return Err(format!("expected {expected}, as in verb=block, not `{word}`"));
    };
    let end = rest.find(|c| !"=!~<>".contains(c)).unwrap_or(rest.len());
    let (operator, value) = rest.split_at(end);
    if !operators.contains(&operator) {
        let expected =
            format!("expected one of the operators {} after {field}", operators.join(" "));
        return Err(match rest {
            "" => format!("{expected}, and then a value"),
            rest => format!("{expected}, not `{rest}`"),
        });
    }
    if value.is_empty() {
        return Err(format!("expected a value after {field}{operator}"));
    }
    let list = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
    let order = match operator {
        "<" => Order::Less,
        "<=" => Order::AtMost,
        ">" => Order::More,
        ">=" => Order::AtLeast,
        _ => Order::Equal,
    };
    let number = |what: &str| {
        let found = value.trim_start_matches('#').parse();
        found.map_err(|_| format!("expected the number of a {what} after {field}, not `{value}`"))
    };
    let test = match (field, operator.trim_start_matches('!')) {
        ("verb", _) => {
            let verbs = list();
            if let Some(other) = verbs.iter().find(|verb| !Event::WORDS.contains(&verb.as_str())) {
                return Err(no_verb(other));
            }
            Test::Verb(verbs)
        }
        ("task", "~") => Test::TaskLike(value.to_owned()),
        ("task", _) => Test::Task(list()),
        ("at", "~") => Test::AtLike(value.to_owned()),
        ("at", _) => Test::At(value.to_owned()),
        ("text", _) => Test::Text(format!("*{value}*")),
        ("line", _) => Test::Line(order, number("line")?),
        ("turn", _) => Test::Turn(order, number("turn")?),
        ("time", _) => Test::Time(order, time(value)?),
        _ => {
            let length = span(value).filter(|_| value != "never");
            Test::For(
                order,
                length.ok_or_else(|| {
                    format!(
                        "expected a duration such as 1s, 250ms or 64us after for, not `{value}`"
                    )
                })?,
            )
        }
    };
    Ok(Condition { is_not: operator.starts_with('!'), test })
}

/// Says that a word is no verb, and names the verb that is most like it, or all.
fn no_verb(word: &str) -> String {
    let wrong = format!("expected a verb of the log, not `{word}`");
    let verbs: BTreeSet<&str> = Event::WORDS.iter().copied().collect();
    match nearest(word, verbs.iter().copied()) {
        Some(verb) => format!("{wrong}; did you mean `{verb}`?"),
        None => format!("{wrong}: {}", Vec::from_iter(verbs).join(", ")),
    }
}

/// Whether a whole text is as a pattern, in which `*` is any text and `?` one character.
fn is_like(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut at, mut next) = (0, 0);
    // The last `*`, and where the text that it stands for ends so far.
    let mut star = None;
    while at < text.len() {
        match pattern.get(next) {
            Some(b'*') => {
                star = Some((next, at));
                next += 1;
            }
            Some(c) if *c == b'?' || *c == text[at] => {
                at += 1;
                next += 1;
                // The other bytes of a character.
                while *c == b'?' && text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    at += 1;
                }
            }
            _ => {
                let Some((place, end)) = star else { return false };
                star = Some((place, end + 1));
                (at, next) = (end + 1, place + 1);
            }
        }
    }
    pattern[next..].iter().all(|c| *c == b'*')
}
