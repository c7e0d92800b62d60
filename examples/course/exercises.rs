//! Exercises on a log: questions that a reader answers in the browser, without a program.
//!
//! `exercises/NN.md` has the questions of a step. A question is a heading, a text, a block `ask`,
//! and an explanation of the answer. The block names a log and asks for one of five things:
//!
//! ```text
//! log     step 8             the golden log of a step, or `oven`
//! lines   #0003-#0006 #0012  the lines that are shown
//!
//! whose   k=1                the line whose deadline or timer ends this wait
//! holder  mutex oven #0052   the task that holds a primitive at a line
//! next    #0029              the task that runs next
//! missing #0008              which line is left out
//! wrong   1 main wake ...    another line for that place
//! hint    See `#0007`.       why that line is wrong
//! order   #0006 #0007 #0008  the order of these lines
//! ```
//!
//! No file contains the answers: `exercises/answer.rs` computes them from the log, with a hint for
//! each wrong choice except a missing line, and refuses a question that has more than one answer.

pub mod answer;
mod html;
mod order;
pub mod oven;

use testing::trace::{self, Line};

use crate::pages;
use answer::{Answer, Ask};

/// The steps that have exercises.
pub const STEPS: std::ops::RangeInclusive<u32> = 8..=11;

/// The questions about one step.
#[derive(Debug, Default)]
pub struct Exercise {
    pub title: String,
    /// The text before the first question, in Markdown.
    intro: String,
    pub questions: Vec<Question>,
}

/// A question as read from the file, without its answer.
#[derive(Debug, Default)]
pub struct Question {
    pub title: String,
    /// The question, in Markdown.
    text: String,
    /// The whole log that it is about.
    log: String,
    /// The first and the last number of each group of lines that is shown.
    shown: Vec<(u64, u64)>,
    pub ask: Ask,
    /// The explanation of the answer, in Markdown.
    because: String,
}

impl Question {
    fn lines(&self) -> Result<Vec<Line<'_>>, String> {
        trace::trace(&self.log).map_err(|error| error.to_string())
    }

    /// Computes the answer.
    ///
    /// # Errors
    ///
    /// Returns why the question does not have exactly one answer.
    pub fn answer(&self) -> Result<Answer, String> {
        let is_shown = |seq| self.shown.iter().any(|(from, to)| (*from..=*to).contains(&seq));
        answer::answer(&self.ask, &self.lines()?, is_shown)
            .map_err(|why| format!("{}: {why}", self.title))
    }
}

/// The number of a line: `#0012`.
fn seq(word: &str) -> Result<u64, String> {
    let number = word.strip_prefix('#').and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("expected the number of a line such as #0012, not `{word}`"))
}

fn ticket(word: &str) -> Result<u64, String> {
    let number = word.strip_prefix("k=").and_then(|word| word.parse().ok());
    number.ok_or_else(|| format!("expected a ticket such as k=1, not `{word}`"))
}

fn log(name: &str) -> Result<String, String> {
    if let Some(step) = name.strip_prefix("step ") {
        return step.parse().map(pages::log).map_err(|_| format!("`{name}` is no step"));
    }
    pages::text(&format!("exercises/{name}.trace"))
}

/// Reads a line of a block `ask`.
fn field(question: &mut Question, line: &str) -> Result<(), String> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    match name {
        "log" => question.log = log(rest)?,
        "lines" => {
            for group in rest.split(' ') {
                let (from, to) = group.split_once('-').unwrap_or((group, group));
                question.shown.push((seq(from)?, seq(to)?));
            }
        }
        "whose" => question.ask = Ask::Whose(ticket(rest)?),
        "next" => question.ask = Ask::Next(seq(rest)?),
        "holder" => {
            let (words, at) = rest.rsplit_once(' ').ok_or("expected a primitive and a line")?;
            question.ask = Ask::Holder(words.to_owned(), seq(at)?);
        }
        "missing" => question.ask = Ask::Missing(seq(rest)?, Vec::new()),
        "wrong" => match &mut question.ask {
            Ask::Missing(_, wrong) => wrong.push((rest.to_owned(), String::new())),
            _ => return Err("only a question for the missing line has wrong lines".to_owned()),
        },
        "hint" => match &mut question.ask {
            Ask::Missing(_, wrong) if !wrong.is_empty() => {
                let last = wrong.len() - 1;
                rest.clone_into(&mut wrong[last].1);
            }
            _ => return Err("a hint belongs to a wrong line".to_owned()),
        },
        "order" => {
            question.ask = Ask::Order(rest.split(' ').map(seq).collect::<Result<_, _>>()?);
        }
        _ => return Err(format!("`{name}` is no field of a question")),
    }
    Ok(())
}

/// Reads a file of questions.
///
/// # Errors
///
/// Returns the line that could not be read, and why.
pub fn read(text: &str) -> Result<Exercise, String> {
    let mut exercise = Exercise::default();
    let (mut is_ask, mut is_asked) = (false, false);
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            title.clone_into(&mut exercise.title);
        } else if let Some(title) = line.strip_prefix("## ") {
            exercise.questions.push(Question { title: title.to_owned(), ..Question::default() });
            is_asked = false;
        } else if let Some(question) = exercise.questions.last_mut() {
            match line {
                "```ask" => is_ask = true,
                "```" if is_ask => (is_ask, is_asked) = (false, true),
                _ if is_ask => field(question, line).map_err(|why| format!("{line}: {why}"))?,
                _ if is_asked => question.because += &format!("{line}\n"),
                _ => question.text += &format!("{line}\n"),
            }
        } else {
            exercise.intro += &format!("{line}\n");
        }
    }
    Ok(exercise)
}

/// The exercise of a step.
///
/// # Errors
///
/// Returns what is wrong with its file, or that there is none.
pub fn find(step: u32) -> Result<Exercise, String> {
    if !STEPS.contains(&step) {
        let (first, last) = (STEPS.start(), STEPS.end());
        return Err(format!("there are exercises for the steps {first} to {last}, not for {step}"));
    }
    read(&pages::text(&format!("exercises/{step:02}.md"))?)
}

/// The exercise of a step as a piece of HTML with its own style and script, for a page.
///
/// # Errors
///
/// Those of [`find`], and why a question does not have exactly one answer.
pub fn page(step: u32) -> Result<String, String> {
    html::piece(&find(step)?)
}

/// The exercise of a step as a whole page.
///
/// # Errors
///
/// Those of [`page`].
pub fn document(step: u32) -> Result<String, String> {
    Ok(html::document(&find(step)?.title, &page(step)?))
}
