//! Any order is right in which each line is after its reasons.

use testing::trace::{Line, line};
use traps::Time;

use crate::work::Work;

/// The shuffled log, as the student has it.
const SHUFFLED: &str = include_str!("given/shuffled.log");
/// One right order, by which the lines of one task are judged.
const ANSWER: &str = include_str!("solution.txt");

pub fn check(work: &Work) -> Result<(), String> {
    let order = letters(&work.source)?;
    if order.is_empty() {
        return Err("still missing: the letters behind `order:`".to_owned());
    }
    let answer = letters(ANSWER)?;
    for (at, letter) in order.iter().enumerate() {
        if order[..at].contains(letter) {
            return Err(format!("the line {letter} is in your order twice"));
        }
    }
    let missing = answer.iter().filter(|letter| !order.contains(letter));
    let missing: Vec<String> = missing.map(char::to_string).collect();
    if !missing.is_empty() {
        return Err(format!("still missing: {}", missing.join(", ")));
    }
    let texts: Vec<(char, String)> = answer.iter().map(|letter| (*letter, text(*letter))).collect();
    let mut lines = Vec::new();
    for (letter, text) in &texts {
        lines.push((*letter, line(text).map_err(|error| error.to_string())?));
    }
    let place = |letter: char| order.iter().position(|other| *other == letter);
    let index = |letter: &char| lines.iter().position(|(other, _)| other == letter);
    let ordered: Vec<usize> = order.iter().filter_map(index).collect();
    for at in &ordered {
        let is_later = |other: char| place(other) > place(lines[*at].0);
        before(&lines, *at, &is_later).map_or(Ok(()), Err)?;
    }
    let ordered: Vec<&(char, Line<'_>)> = ordered.into_iter().map(|at| &lines[at]).collect();
    clock(&ordered)?;
    cpu(&ordered)
}

/// The letters of an answer.
fn letters(source: &str) -> Result<Vec<char>, String> {
    let lines = source.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let lines = lines.map(|line| line.trim_start_matches("order:"));
    let mut letters = Vec::new();
    for word in lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || c == ',')) {
        // A single letter may be a small one.
        let is_letter = |c: char| c.is_ascii_uppercase() || (word.len() == 1 && c.is_alphabetic());
        if !word.chars().all(is_letter) {
            return Err(format!("`{word}` is not the letter of a line; expected A to Z"));
        }
        letters.extend(word.chars().map(|c| c.to_ascii_uppercase()));
    }
    Ok(letters)
}

/// The name of a line in a sentence.
fn name((letter, line): &(char, Line<'_>)) -> String {
    let words: Vec<&str> = line.event().split_whitespace().collect();
    format!("{letter}, `{} {}`", line.name(), words.join(" "))
}

/// The time of a line, if the line has one.
fn time(line: &Line<'_>) -> Option<Time> {
    match line.verb {
        "fire" => line.key("deadline")?.parse().ok(),
        "run" => line.outcome()?.parse().ok(),
        _ => None,
    }
}

/// Time goes forward.
fn clock(ordered: &[&(char, Line<'_>)]) -> Result<(), String> {
    let timed = ordered.iter().filter_map(|each| Some((each, time(&each.1)?)));
    let timed: Vec<_> = timed.collect();
    match timed.windows(2).find(|pair| pair[0].1 > pair[1].1) {
        None => Ok(()),
        Some(pair) => Err(format!(
            "line {}, is before {}; the clock does not go back: it is {} in the one, and {} in the \
             other",
            name(pair[0].0),
            name(pair[1].0),
            pair[0].1,
            pair[1].1
        )),
    }
}

/// A run ends before another begins, and before the kernel fires a timer.
fn cpu(ordered: &[&(char, Line<'_>)]) -> Result<(), String> {
    let mut running: Option<&(char, Line<'_>)> = None;
    for each in ordered {
        let line = &each.1;
        match (line.verb, running) {
            ("run" | "fire", Some(run)) => {
                return Err(format!(
                    "line {}, is before the end of the run {} of task {}, which has the CPU until \
                     it blocks or ends",
                    name(each),
                    run.0,
                    run.1.task
                ));
            }
            ("run", None) => running = Some(each),
            ("block" | "exit", Some(run)) if run.1.task == line.task => running = None,
            _ => {}
        }
    }
    Ok(())
}

/// A line of the shuffled log, with columns for what was left out.
fn text(letter: char) -> String {
    let found = SHUFFLED.lines().find_map(|line| line.strip_prefix(letter)?.strip_prefix("  "));
    format!("0.000000 0 #0001 {}", found.unwrap_or_default())
}

/// The reason why the line is too early, if it is.
fn before(
    lines: &[(char, Line<'_>)],
    at: usize,
    is_later: &dyn Fn(char) -> bool,
) -> Option<String> {
    let (letter, line) = &lines[at];
    let missed = |is_wanted: &dyn Fn(char, &Line<'_>) -> bool| {
        lines.iter().find(|(other, each)| is_later(*other) && is_wanted(*other, each)).map(name)
    };
    let this = format!("line {}, is before", name(&lines[at]));
    if let Some(cause) =
        missed(&|other, _| line.key("cause").is_some_and(|cause| cause.starts_with(other)))
    {
        return Some(format!("{this} its cause {cause}"));
    }
    let is_request = |_: char, each: &Line<'_>| {
        each.verb == "trap" && each.word(0) == "spawn" && each.word(1) == line.name()
    };
    if let Some(request) = missed(&is_request).filter(|_| line.verb == "spawn") {
        return Some(format!("{this} {request}, with which its parent asked for the task"));
    }
    let earlier =
        lines[..at].iter().find(|(other, each)| each.task == line.task && is_later(*other))?;
    let (why, earlier) = (earlier.0, name(earlier));
    Some(match line.task {
        0 => format!("{this} {earlier}; the clock does not go back: the sooner deadline is first"),
        task => {
            format!("{this} {earlier}; both are of task {task}, which did {why} before {letter}")
        }
    })
}
