//! The language of the playground, its pages, and its command.

use std::fs;

use support::root;
use testing::trace;
use trapline_play::program;
use trapline_play::run::{Ran, run};

mod command;
mod messages;
mod mutations;
mod pages;
mod runs;

/// Runs a program that is read without a mistake. Its log must keep the promises of the log.
#[track_caller]
fn ran(text: &str) -> Ran {
    let program = program::read(text).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
    let ran = run(program);
    assert_keeps_its_promises(&ran.log);
    ran
}

#[track_caller]
fn assert_keeps_its_promises(log: &str) {
    let lines = trace::trace(log).unwrap_or_else(|error| panic!("{error:?}\n{log}"));
    let mut checker = trace::Checker::default();
    log.lines().filter(|line| line.starts_with('#')).for_each(|line| checker.remark(line));
    lines.iter().for_each(|line| checker.line(line));
    assert_eq!(checker.end(), Ok(()), "{log}");
}

/// The text of a page, by its name without the number.
#[track_caller]
fn page(name: &str) -> String {
    let folder = root().join("examples/play/pages");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let is_it = |file: &std::path::PathBuf| {
        let stem = file.file_stem().unwrap().to_str().unwrap();
        stem.split_once('-').is_some_and(|(_, rest)| rest == name)
    };
    let file = files.into_iter().find(is_it).unwrap_or_else(|| panic!("no page {name}"));
    fs::read_to_string(file).unwrap()
}

/// The text with each first part replaced by the second part, wherever it is.
#[track_caller]
fn changed(text: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}\n{text}");
        text.replace(from, to)
    })
}

/// The notes of a log, each after its time in milliseconds and its task: `12 ann: eats`.
fn notes(ran: &Ran) -> Vec<String> {
    of_verb(ran, "note").map(|(time, task, text)| format!("{time} {task}: {text}")).collect()
}

/// The lines with this verb: time in milliseconds, task, and the detail.
fn of_verb<'r>(ran: &'r Ran, verb: &'r str) -> impl Iterator<Item = (u64, &'r str, String)> {
    let lines = ran.log.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| {
        let mut words = line.split_whitespace();
        let time: f64 = words.next()?.parse().ok()?;
        let task = words.nth(3)?;
        let is_it = words.next()? == verb;
        let detail = words.collect::<Vec<_>>().join(" ");
        is_it.then(|| ((time * 1000.0).round() as u64, task, detail))
    })
}

/// Whether a line of the log has all these words.
fn has(ran: &Ran, words: &[&str]) -> bool {
    ran.log.lines().any(|line| words.iter().all(|word| line.contains(word)))
}
