//! Attempts: one's own timeout is handled, and that of the caller is passed on.

use testing::trace::{self, Line};

use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace::trace(&work.log).map_err(|(line, error)| format!("line {line}: {error}"))?;
    let notes: Vec<&Line<'_>> = lines.iter().filter(|line| line.verb == "note").collect();
    let end = notes.iter().position(|note| note.word(0) != "attempt").unwrap_or(notes.len());
    let (first, second) = (&notes[..end], notes.get(end + 1..).unwrap_or_default());
    let Some(result) = notes.get(end) else {
        return Err("the first call did not come to its end".to_owned());
    };
    if result.word(0) != "value" {
        return Err(format!(
            "the first call ends after attempt {}; a timeout of your own is handled where it \
             belongs: try again",
            first.len()
        ));
    }
    if result.word(1) != "3" {
        return Err(format!(
            "attempt {} took 2 s and gave a value; each attempt is under a timeout of its own, of \
             1 s",
            result.word(1)
        ));
    }
    if result.at.to_string() != "2.500000" {
        return Err(format!("the value comes at {}, and not at 2.500000", result.at));
    }
    match second.iter().filter(|note| note.word(0) == "attempt").nth(2) {
        Some(third) => Err(format!(
            "at {} the deadline of the caller has passed, and attempt 3 begins all the same; a \
             `timeout-cancellation` is not yours: return it",
            third.at
        )),
        None if second.last().is_some_and(|last| last.word(0) == "no") => Ok(()),
        None => Err("the second call gives a value after its deadline".to_owned()),
    }
}
