//! The kernel of the page: a command that reads a program from standard input, and writes one
//! answer about its run to standard output.
//!
//! | arguments | answer |
//! |---|---|
//! | `run` | JSON: the `log`, the `problems` as `[line, text]`, the kernel's `report`, and the `lines` of the program for events that name none, as `[number, line]` |
//! | `timeline` | the page of the timeline |
//! | `why PLACE` | why an event happened, by its place in the log, from 0 |
//!
//! The page runs the command anew for each answer. It needs no state for that, because a program
//! runs in the same way each time.

use std::collections::BTreeMap;
use std::{env, io};

use trace_tool::model::Trace;
use trace_tool::perfetto::quoted;
use trace_tool::style::Paint;
use trace_tool::{chain, page};
use trapline_play::program::read;
use trapline_play::run::{Ran, run, run_timed};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let program = io::read_to_string(io::stdin())?;
    let arguments: Vec<&str> = arguments.iter().map(|argument| &**argument).collect();
    let wrong = || io::Error::other("expected run, timeline or why PLACE");
    match arguments[..] {
        ["run"] => println!("{}", ran(&program)),
        ["timeline"] => {
            let sources = BTreeMap::from([("program".to_owned(), program.clone())]);
            page::page(&timed(&program)?, &sources, &mut io::stdout().lock())?;
        }
        ["why", place] => {
            let place = place.parse().map_err(|_| wrong())?;
            let trace = timed(&program)?;
            if place < trace.len() {
                print!("{}", chain::why(&trace, place, false, Paint::PLAIN));
            }
        }
        _ => return Err(wrong()),
    }
    Ok(())
}

fn ran(program: &str) -> String {
    let Ran { log, problems, report, lines } = match read(program) {
        Ok(program) => run(program),
        Err(problems) => Ran { problems, ..Ran::default() },
    };
    let problems = problems.iter().map(|each| format!("[{},{}]", each.line, quoted(&each.text)));
    let problems = problems.collect::<Vec<_>>().join(",");
    let lines = lines.iter().map(|(number, line)| format!("[{number},{line}]"));
    let lines = lines.collect::<Vec<_>>().join(",");
    let report = report.as_deref().map_or("null".to_owned(), quoted);
    let log = quoted(&log);
    format!(r#"{{"log":{log},"problems":[{problems}],"report":{report},"lines":[{lines}]}}"#)
}

/// Returns the events of the log, at the same places, with the lengths of the runs. The log that
/// the page shows does not have them: they would be in every second line.
fn timed(program: &str) -> io::Result<Trace> {
    let Ran { log, .. } = read(program).map(run_timed).unwrap_or_default();
    let is_boot = |line: &&str| line.split_whitespace().nth(2) == Some("#0000");
    let log: String = log.lines().filter(|line| !is_boot(line)).flat_map(|l| [l, "\n"]).collect();
    Trace::read(log.into_bytes(), |_| {})
}
