//! The concept pages, the exercises and the slides of the course: everything that they show comes
//! from the sources and the logs.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;

use course::exercises::answer::Answer;
use course::exercises::{self, oven};
use course::slides;
use support::goldens;
use testing::trace;

/// The folder of the course.
fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The concept pages, by their names.
fn concepts() -> Vec<(String, String)> {
    let pages = fs::read_dir(folder().join("concepts")).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.display().to_string(), fs::read_to_string(&path).unwrap())
    });
    pages.collect()
}

/// A line of a log without the locations in the source.
fn without_sites(line: &str) -> String {
    let words = line.split(' ');
    let words = words.filter(|word| !word.starts_with("at=") && !word.starts_with("set-at="));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_concept_page_shows_lines_of_golden_logs() {
    let logs: Vec<String> = goldens().iter().map(|name| support::golden(name)).collect();
    let golden = logs.iter().flat_map(|log| log.lines());
    let golden: BTreeSet<String> = golden.map(without_sites).collect();
    for (name, page) in concepts() {
        let shown: Vec<&str> = page.lines().filter(|line| trace::line(line).is_ok()).collect();
        assert!(shown.len() >= 3, "{name} shows {} lines of a log", shown.len());
        for line in shown {
            assert!(golden.contains(line), "{name}: {line}");
        }
    }
}

#[test]
fn a_concept_page_fits_on_one_screen() {
    for (name, page) in concepts() {
        let lines = page.lines().count();
        assert!(lines <= 45, "{name} has {lines} lines");
        let drawn = page.split("```").skip(1).step_by(2).flat_map(str::lines);
        assert!(drawn.into_iter().all(|line| line.chars().count() <= 100), "{name} is too wide");
    }
}

#[test]
fn the_links_of_the_concept_pages_lead_to_files() {
    for (name, page) in concepts() {
        let links: Vec<&str> =
            page.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
        assert!(links.len() >= 2, "{name} has {} links", links.len());
        for link in links {
            assert!(folder().join("concepts").join(link).is_file(), "{name}: {link}");
        }
    }
}

/// The log as a reader sees it: call sites are in `oven.rs`, and the spawn of `main` has none.
#[test]
fn the_log_of_the_oven_is_that_of_its_program() {
    let log = testing::run(oven::kitchen()).trace;
    let sites = log.replace("at=examples/course/exercises/", "at=");
    let log: String = sites
        .lines()
        .map(|line| line.split(" at=examples/course/tests/").next().unwrap().to_owned() + "\n")
        .collect();
    let path = folder().join("exercises/oven.trace");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &log).unwrap();
    }
    assert_eq!(log, fs::read_to_string(path).unwrap());
}

#[test]
fn each_question_has_exactly_one_answer() {
    for step in exercises::STEPS {
        let exercise = exercises::find(step).unwrap();
        assert!((4..=6).contains(&exercise.questions.len()), "step {step}");
        for question in &exercise.questions {
            match question.answer().unwrap_or_else(|why| panic!("step {step}: {why}")) {
                Answer::Choices(choices, shows) => {
                    let right = choices.iter().filter(|choice| choice.wrong.is_none());
                    assert_eq!(right.count(), 1, "step {step}: {}", question.title);
                    assert!(choices.len() >= 2 && !shows.is_empty(), "{}", question.title);
                    for hint in choices.iter().filter_map(|choice| choice.wrong.as_ref()) {
                        assert!(hint.contains('#'), "a hint names a line, not: {hint}");
                    }
                }
                Answer::Order(lines, reasons) => {
                    assert!(lines.len() >= 4, "{}", question.title);
                    assert_eq!(reasons.len() + 1, lines.len(), "{}", question.title);
                }
            }
        }
    }
}

/// The reason why a question is refused.
fn refused(ask: &str) -> String {
    let text = format!("# A\n## B\n```ask\n{ask}\n```\n");
    match exercises::read(&text) {
        Ok(exercise) => exercise.questions[0].answer().unwrap_err(),
        Err(why) => why,
    }
}

#[test]
fn a_question_without_exactly_one_answer_is_refused() {
    // `cake` was woken for the lock, and has not taken it: no task holds it.
    let none = refused("log oven\nholder mutex oven #0049");
    assert!(none.contains("not exactly one task holds `mutex oven`"), "{none}");
    // Two waits of different tasks may begin in any order.
    let order = refused("log oven\norder #0019 #0021");
    assert!(order.contains("#0019 need not be before #0021"), "{order}");
    let right = "2 main wake offload o1 k=1 cause=#0015";
    let twice = refused(&format!("log step 10\nmissing #0016\nwrong {right}"));
    assert!(twice.contains("it fits as well"), "{twice}");
    let shown = refused("log step 8\nlines #0003-#0008\nwhose k=1");
    assert!(shown.contains("the end is not"), "{shown}");
    let other = refused("log step 8\nmistake #0017");
    assert!(other.contains("`mistake` is no field"), "{other}");
}

#[test]
fn a_page_of_questions_needs_no_network_and_works_without_a_script() {
    for step in exercises::STEPS {
        let page = exercises::page(step).unwrap();
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
        let questions = exercises::find(step).unwrap().questions.len();
        assert_eq!(page.matches("<details><summary>Answer</summary>").count(), questions);
    }
}

/// More lines or columns are too small to read from the back of a room.
#[test]
fn a_slide_fits_and_has_a_note() {
    for lecture in 1..=slides::LECTURES {
        let slides = slides::slides(lecture).unwrap();
        assert!((22..=28).contains(&slides.len()), "lecture {lecture}: {}", slides.len());
        for slide in &slides {
            let (columns, lines) = slide.size;
            assert!(columns <= 105 && lines <= 26, "{}: {lines} lines of {columns}", slide.title);
            assert!((1..=2).contains(&slide.note.trim().lines().count()), "{}", slide.title);
        }
    }
}

#[test]
fn a_lecture_has_a_heading_on_each_slide_and_no_mark_left() {
    for lecture in 1..=slides::LECTURES {
        let page = slides::document(lecture).unwrap();
        assert!(!page.contains("<h2></h2>") && !page.contains("<!-- "));
        assert!(!page.contains("src=") && !page.contains("http://") && !page.contains("https://"));
    }
}

/// The rows of the plans of the lectures: the first and the last slide, and the minutes.
fn plans() -> Vec<(usize, usize, usize)> {
    let page = fs::read_to_string(folder().join("INSTRUCTOR.md")).unwrap();
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (from, to) = cells.next()?.split_once('-')?;
        Some((from.parse().ok()?, to.parse().ok()?, cells.next()?.parse().ok()?))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn the_plan_of_a_lecture_has_each_slide_once_and_ninety_minutes() {
    let plans = plans();
    let mut lectures = plans.chunk_by(|(_, to, _), (from, ..)| *from == to + 1);
    for lecture in 1..=slides::LECTURES {
        let plan = lectures.next().unwrap();
        let slides = slides::slides(lecture).unwrap();
        assert_eq!((plan[0].0, plan[plan.len() - 1].1), (1, slides.len()), "lecture {lecture}");
        assert_eq!(plan.iter().map(|(_, _, minutes)| minutes).sum::<usize>(), 90);
        // A row has the slides of one step.
        for (from, to, _) in &plan[1..] {
            let step = |nth: usize| slides[nth - 1].title.split(':').next();
            let last = if *to == slides.len() { to - 1 } else { *to };
            assert_eq!(step(*from), step(last), "slides {from} to {to} of lecture {lecture}");
        }
    }
    assert_eq!(lectures.next(), None);
}
