//! Any order in which each line stands behind what led to it.

use testing::trace::{Line, line};

use crate::work::Work;

/// The shuffled log, as the student has it.
const SHUFFLED: &str = include_str!("given/shuffled.log");
/// One right order, by which the lines of one task are judged.
const ANSWER: &str = include_str!("solution.txt");

pub fn check(work: &Work) -> Result<(), String> {
    let order = letters(&work.source);
    if order.is_empty() {
        return Err("still missing: the letters behind `order:`".to_owned());
    }
    let answer = letters(ANSWER);
    for (at, letter) in order.iter().enumerate() {
        if !answer.contains(letter) {
            return Err(format!("`{letter}` is not the letter of a line; expected A to Z"));
        }
        if order[..at].contains(letter) {
            return Err(format!("the line {letter} stands twice in your order"));
        }
    }
    let missing: Vec<&str> =
        answer.iter().copied().filter(|letter| !order.contains(letter)).collect();
    if !missing.is_empty() {
        return Err(format!("still missing: {}", missing.join(", ")));
    }
    let texts: Vec<(&str, String)> = answer.iter().map(|letter| (*letter, text(letter))).collect();
    let mut lines = Vec::new();
    for (letter, text) in &texts {
        lines.push((*letter, line(text).map_err(|error| error.to_string())?));
    }
    let place = |letter: &str| order.iter().position(|other| *other == letter);
    for letter in &order {
        let at = lines.iter().position(|(other, _)| other == letter).unwrap_or_default();
        let is_later = |other: &str| place(other) > place(letter);
        before(&lines, at, &is_later).map_or(Ok(()), Err)?;
    }
    Ok(())
}

/// The letters of an answer.
fn letters(source: &str) -> Vec<&str> {
    let lines = source.lines().filter(|line| !line.starts_with('#'));
    let words = lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || c == ','));
    words.filter(|word| !word.is_empty() && *word != "order:").collect()
}

/// A line of the shuffled log, with columns for what was left out.
fn text(letter: &str) -> String {
    let found = SHUFFLED.lines().find_map(|line| line.strip_prefix(letter)?.strip_prefix("  "));
    format!("0.000000 0 #0001 {}", found.unwrap_or_default())
}

/// What should stand before the line, and stands behind it.
fn before(
    lines: &[(&str, Line<'_>)],
    at: usize,
    is_later: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let (letter, line) = &lines[at];
    let name = |(letter, line): &(&str, Line<'_>)| {
        let words: Vec<&str> = line.event().split_whitespace().collect();
        format!("{letter}, `{} {}`", line.name(), words.join(" "))
    };
    let missed = |is_wanted: &dyn Fn(&str, &Line<'_>) -> bool| {
        lines.iter().find(|(other, each)| is_later(other) && is_wanted(other, each)).map(name)
    };
    let this = format!("line {}, stands before", name(&lines[at]));
    if let Some(cause) = missed(&|other, _| line.key("cause") == Some(other)) {
        return Some(format!("{this} its cause {cause}"));
    }
    let is_request = |_: &str, each: &Line<'_>| {
        each.verb == "trap" && each.word(0) == "spawn" && each.word(1) == line.name()
    };
    if let Some(request) = missed(&is_request).filter(|_| line.verb == "spawn") {
        return Some(format!("{this} {request}, with which its parent asked for the task"));
    }
    let earlier =
        lines[..at].iter().find(|(other, each)| each.task == line.task && is_later(other))?;
    let (why, earlier) = (earlier.0, name(earlier));
    Some(match line.task {
        0 => format!("{this} {earlier}; the clock does not go back: the sooner deadline is first"),
        task => {
            format!("{this} {earlier}; both are of task {task}, which did {why} before {letter}")
        }
    })
}
