//! The results of three scopes, computed by the program on the page.

use std::time::Duration;

use traps::Kind;

use super::given::program;
use crate::work::Work;

const SCOPES: [&str; 3] = ["inner", "middle", "outer"];

/// The keys of `answer.txt`: the setting and the scope.
const KEYS: [&str; 9] = [
    "1 inner", "1 middle", "1 outer", "2 inner", "2 middle", "2 outer", "3 inner", "3 middle",
    "3 outer",
];

/// The spans of the scopes in tenths of a second, as in `lab.md`.
const SETTINGS: [[u64; 3]; 3] = [[3, 5, 7], [7, 4, 5], [6, 5, 4]];

pub fn check(work: &Work) -> Result<(), String> {
    let answers = work.answers(KEYS)?;
    for (nth, spans) in SETTINGS.into_iter().enumerate() {
        let [inner, middle, outer] = spans.map(|tenths| Duration::from_millis(100 * tenths));
        let right = testing::run(program::kinds(inner, middle, outer)).output;
        for scope in 0..SCOPES.len() {
            let given = answers[nth * SCOPES.len() + scope];
            let said = kind(given).ok_or_else(|| {
                format!(
                    "setting {}, {}: `{given}` is no kind of a timeout; expected `timeout`, \
                     `timeout-cancellation` or `uncaught-timeout`",
                    nth + 1,
                    SCOPES[scope]
                )
            })?;
            if said != right[scope] {
                return Err(wrong(nth + 1, scope, given, right));
            }
        }
    }
    Ok(())
}

/// In the words of the log, in which an error has a `!`, or in those of the program.
fn kind(word: &str) -> Option<Kind> {
    let word = word.trim_matches(['`', '.', '!']);
    match word.strip_prefix("Kind::").unwrap_or(word) {
        "timeout" | "TaskTimeout" => Some(Kind::TaskTimeout),
        "timeout-cancellation" | "TimeoutCancellation" => Some(Kind::TimeoutCancellation),
        "uncaught-timeout" | "UncaughtTimeout" => Some(Kind::UncaughtTimeout),
        _ => None,
    }
}

fn wrong(setting: usize, scope: usize, said: &str, right: [Kind; 3]) -> String {
    let fired = right.iter().position(|kind| *kind == Kind::TaskTimeout).unwrap_or_default();
    let (name, fired) = (SCOPES[scope], SCOPES[fired]);
    let why = match right[scope] {
        Kind::TaskTimeout => "the deadline that passes first is its own".to_owned(),
        Kind::TimeoutCancellation => format!(
            "the deadline that passes first is that of the {fired} scope, which is further out, so \
             this scope is only left on the way there"
        ),
        _ => format!(
            "the deadline that passes first is that of the {fired} scope, which is further in, and \
             no scope on the way has handled its error"
        ),
    };
    format!("setting {setting}, {name}: not `{said}`: {why}")
}
