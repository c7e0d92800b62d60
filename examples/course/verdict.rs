//! The verdict on one lab of one student.

use course::grade::Judgement;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The lab is passed.
    Passed,
    /// It is not, and this is why.
    Failed(String),
    /// There is nothing to check.
    NotSubmitted(String),
    /// The check itself failed: this says nothing about the student's work.
    Unchecked(String),
}

impl Verdict {
    /// One of four words.
    pub fn status(&self) -> &'static str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(_) => "failed",
            Verdict::NotSubmitted(_) => "not submitted",
            Verdict::Unchecked(_) => "could not be checked",
        }
    }

    /// A sentence.
    pub fn says(&self) -> &str {
        match self {
            Verdict::Passed => "passed",
            Verdict::Failed(why) | Verdict::NotSubmitted(why) | Verdict::Unchecked(why) => why,
        }
    }

    /// The exit code of the tool.
    pub fn code(&self) -> u8 {
        match self {
            Verdict::Passed => 0,
            Verdict::Failed(_) | Verdict::NotSubmitted(_) => 1,
            Verdict::Unchecked(_) => 2,
        }
    }
}

impl From<Result<Judgement, String>> for Verdict {
    fn from(judged: Result<Judgement, String>) -> Verdict {
        match judged {
            Ok(Ok(())) => Verdict::Passed,
            Ok(Err(why)) => Verdict::Failed(why),
            Err(why) => Verdict::Unchecked(why),
        }
    }
}
