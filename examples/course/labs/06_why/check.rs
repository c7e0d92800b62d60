//! Why: each chain follows the causes to something from outside.

use testing::trace::{self, Line};

use crate::work::Work;

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace::trace(&work.log).map_err(|error| error.to_string())?;
    let asked: Vec<_> = work.log.lines().filter_map(|line| line.strip_prefix("# why ")).collect();
    let right = match work.seed {
        0 => 3,
        _ => lines.iter().filter(|line| line.task != 0 || line.verb == "fire").count(),
    };
    for each in &asked {
        let (asked, chain) = each.split_once(':').unwrap_or((each, ""));
        let chain = chain.split_whitespace().filter_map(|word| word.parse().ok());
        compare(&lines, asked, &chain.collect::<Vec<u64>>())?;
    }
    if asked.len() == right {
        Ok(())
    } else {
        Err(format!("{} of the {right} questions have an answer", asked.len()))
    }
}

fn compare(lines: &[Line<'_>], asked: &str, chain: &[u64]) -> Result<(), String> {
    let mut next = asked.parse().ok();
    let (mut steps, mut last) = (chain.iter(), None::<(&Line<'_>, String)>);
    loop {
        let (right, found) = (next, steps.next().copied());
        if right == found {
            let Some(seq) = right else { return Ok(()) };
            let Ok(place) = lines.binary_search_by_key(&seq, |line| line.seq) else {
                return Ok(());
            };
            let line = &lines[place];
            let (behind, why) = behind(lines, line);
            (next, last) = (behind, Some((line, why)));
            continue;
        }
        let Some((line, why)) = last else {
            let begins = found.map_or("is empty".into(), |seq| format!("begins at #{seq:04}"));
            return Err(format!(
                "why {asked}: your chain {begins}; it must begin at the line that was asked about"
            ));
        };
        let (seq, verb) = (line.seq, line.verb);
        return Err(match found {
            None => format!("why {asked}: your chain ends at #{seq:04}, a `{verb}`; {why}"),
            Some(found) => format!(
                "why {asked}: behind #{seq:04}, a `{verb}`, your chain has #{found:04}; {why}"
            ),
        });
    }
}

/// What is behind a line, and the rule for it.
fn behind(lines: &[Line<'_>], line: &Line<'_>) -> (Option<u64>, String) {
    let last_run = |task: u64| {
        let is_run = |run: &&Line<'_>| run.seq < line.seq && run.task == task && run.verb == "run";
        lines.iter().rfind(is_run).map_or(0, |run| run.seq)
    };
    match (line.verb, line.cause, line.number("parent")) {
        ("fire", ..) => {
            (None, "a timer fires because time has passed: the chain ends there".to_owned())
        }
        (_, Some(cause), _) => (Some(cause), format!("behind it is its cause, #{cause:04}")),
        ("spawn", None, None) => (None, "main has no parent: the chain ends there".to_owned()),
        ("spawn", None, Some(parent)) => {
            let run = last_run(parent);
            let rule = "behind the spawn of a child is its parent: continue at the last `run` line";
            (Some(run), format!("{rule} of task {parent}, #{run:04}"))
        }
        _ => {
            let run = last_run(line.task);
            let rule = "it names no cause, so its task did it: continue at the last `run` line";
            (Some(run), format!("{rule} of the task, #{run:04}"))
        }
    }
}
