//! The words of the language with an example for each, and what the reader says of a wrong line.
//! A message says what was expected, in the words of the program.

use trace_tool::near::nearest;

/// The kinds of names. Two kinds can have the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Name {
    /// A task.
    Task,
    /// A lock.
    Lock,
    /// A queue of `wait` and `wake`.
    Bell,
    /// A channel.
    Channel,
    /// A variable, shared or not.
    Variable,
    /// `seed` or `late`.
    Setting,
}

/// The words that begin a line outside of tasks.
const TOP: [(&str, &str); 5] = [
    ("task", "task ann:"),
    ("shared", "shared money = 100"),
    ("channel", "channel tea 2"),
    ("seed", "seed 7"),
    ("late", "late 3"),
];

/// The words that begin a line in a task. An example with a colon needs a block.
const STATEMENTS: [(&str, &str); 19] = [
    ("sleep", "sleep 5"),
    ("spin", "spin 5"),
    ("yield", "yield"),
    ("note", "note a text"),
    ("lock", "lock fork"),
    ("unlock", "unlock fork"),
    ("wait", "wait dinner"),
    ("wake", "wake dinner"),
    ("send", "send tea 1"),
    ("recv", "recv tea"),
    ("spawn", "spawn child:"),
    ("join", "join child"),
    ("cancel", "cancel child"),
    ("within", "within 5:"),
    ("shield", "shield:"),
    ("try", "try:"),
    ("if", "if n < 3:"),
    ("repeat", "repeat 3:"),
    ("while", "while n < 3:"),
];

/// The words of second blocks, each with the word of the first.
const SECOND: [(&str, &str); 3] = [("late", "within"), ("finally", "try"), ("else", "if")];

pub const NO_TASK: &str =
    "expected a task, such as `task ann:`, and its statements below, indented";
pub const INDENTED: &str = "expected no indentation: only the statements of a block are indented";
pub const NO_ROOM: &str = "expected room for one value or more";
pub const NO_FINALLY: &str = "expected `finally:` after the block of `try:`";

pub fn too_many_lines(most: usize) -> String {
    format!("expected at most {most} lines")
}

pub fn control(character: char) -> String {
    format!("expected text, not the control character U+{:04X}", u32::from(character))
}

pub fn no_block(text: &str) -> String {
    format!("expected statements below `{}`, indented", shown(text))
}

pub fn nested(most: usize) -> String {
    format!("expected at most {most} blocks inside each other")
}

pub fn block_in_a_line(word: &str) -> String {
    format!("expected `{word}` in a line of its own, because it has a block")
}

pub fn other_indentation(first: usize) -> String {
    format!("expected the indentation of line {first}, the first of this block")
}

pub fn twice(kind: Name, name: &str, before: usize) -> String {
    match kind {
        Name::Setting => format!("line {before} has set the {name} already"),
        Name::Task => format!("line {before} has a task `{name}` already"),
        Name::Channel => format!("line {before} has a channel `{name}` already"),
        Name::Variable | Name::Lock | Name::Bell => {
            format!("line {before} has a shared `{name}` already")
        }
    }
}

pub fn not_a_number(text: &str) -> String {
    format!("expected a number, not `{}`", shown(text))
}

pub fn not_a_value(text: &str) -> String {
    match text {
        "" => "expected a number or a variable after `=`".to_owned(),
        _ => format!("expected a number or a variable, not `{}`", shown(text)),
    }
}

pub fn negative(text: &str) -> String {
    format!("expected 0 ms or more, not `{text}`")
}

pub fn too_large(digits: usize, text: &str) -> String {
    format!("expected a number of at most {digits} digits, not `{}`", shown(text))
}

pub fn one_sided(sign: char) -> String {
    format!("expected a number or a variable on both sides of `{sign}`")
}

pub fn not_a_test(text: &str) -> String {
    format!("expected a test such as `n < 3`, not `{}`", shown(text))
}

/// Says what is wrong with a line outside of tasks.
pub fn not_at_the_top(word: &str, text: &str, has_colon: bool) -> String {
    if let Some((_, example)) = TOP.iter().find(|(each, _)| *each == word) {
        return wrong_form(example, text, has_colon);
    }
    if is_word(word) {
        return format!(
            "`{word}` is a statement: expected `task ann:` above it, and this line indented"
        );
    }
    match nearest(word, words()) {
        Some(near) => format!("there is no `{}`; did you mean `{near}`?", shown(word)),
        None => format!("expected `task ann:`, not `{}`", shown(text)),
    }
}

/// Says what is wrong with a line of a task.
pub fn not_a_statement(word: &str, text: &str, has_colon: bool) -> String {
    if let Some((_, example)) = STATEMENTS.iter().find(|(each, _)| *each == word) {
        return wrong_form(example, text, has_colon);
    }
    if let Some((_, first)) = SECOND.iter().find(|(each, _)| *each == word) {
        return match has_colon {
            true => format!("expected `{word}:` right after the block of `{first}`"),
            false => wrong_form(&format!("{word}:"), text, has_colon),
        };
    }
    if is_word(word) {
        return format!("expected `{word}` outside of a task, not indented");
    }
    // If two words are equally near, the word of a statement is meant.
    let statements = STATEMENTS.into_iter().map(|(word, _)| word);
    match nearest(word, statements.chain(words())) {
        Some(near) => format!("there is no `{}`; did you mean `{near}`?", shown(word)),
        None => format!("expected a statement such as `sleep 5`, not `{}`", shown(text)),
    }
}

fn wrong_form(example: &str, text: &str, has_colon: bool) -> String {
    match example.ends_with(':') && !has_colon {
        true => format!("expected a colon at the end: `{example}`"),
        false => format!("expected `{example}`, not `{}`", shown(text)),
    }
}

/// Says that no line introduces a name. `others` are the names of this kind that lines introduce.
pub fn unknown<'n>(kind: Name, name: &str, others: impl Iterator<Item = &'n str>) -> String {
    let text = match kind {
        Name::Lock => format!("no line locks `{name}`"),
        Name::Task => format!("there is no task `{name}`"),
        _ => format!("no line sets `{name}`: expected `{name} = 0` in a line before"),
    };
    match nearest(name, others) {
        Some(near) => format!("{text}; did you mean `{near}`?"),
        None => text,
    }
}

/// Checks a name.
pub fn name(kind: Name, text: &str) -> Result<String, String> {
    // In a value a `-` is an operator.
    let (is_sign, signs) = match kind {
        Name::Variable => ("_", "digits and `_`"),
        _ => ("-_", "digits, `-` and `_`"),
    };
    let is_part = |c: char| c.is_alphanumeric() || is_sign.contains(c);
    if is_word(text) {
        return Err(format!("`{text}` is a word of the language: expected another name"));
    }
    if !text.starts_with(char::is_alphabetic) || !text.chars().all(is_part) {
        return Err(format!("expected a name of letters, {signs}, not `{}`", shown(text)));
    }
    Ok(text.to_owned())
}

/// Returns the word of the block that can follow the block of a statement.
pub fn second(first: &str) -> Option<&'static str> {
    SECOND.into_iter().find(|(_, each)| *each == first).map(|(word, _)| word)
}

/// Returns whether a line in a task can begin with this word.
pub fn is_statement(word: &str) -> bool {
    STATEMENTS.iter().any(|(each, _)| *each == word)
}

fn words() -> impl Iterator<Item = &'static str> {
    TOP.into_iter().chain(STATEMENTS).chain(SECOND).map(|(word, _)| word)
}

fn is_word(text: &str) -> bool {
    words().any(|word| word == text)
}

/// Shortens a text of the program, because a message is one line.
fn shown(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
