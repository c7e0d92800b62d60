//! The exports to the page: bytes in, bytes out. An instance runs one program.
//!
//! The worker of the page copies a program into [`room`] and calls [`play`]. Each function that
//! has an answer returns its size, and [`out`] returns its address. The functions only return
//! addresses and read none, so the attribute `unsafe(no_mangle)` promises no more than that no
//! other function of the module has the same name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic;

use trace_tool::model::Trace;
use trace_tool::perfetto::quoted;
use trace_tool::style::Paint;
use trace_tool::{chain, page};

use super::program::read;
use super::run::{Ran, run, run_timed};

thread_local! {
    static IN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// The message of a panic, after which the instance must not run again.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
    static PLAYED: RefCell<Option<Played>> = const { RefCell::new(None) };
}

struct Played {
    program: String,
    log: String,
    /// The same run, timed. It is made when it is first needed.
    trace: Option<Trace>,
}

fn answer(bytes: Vec<u8>) -> usize {
    let size = bytes.len();
    OUT.set(bytes);
    size
}

/// Returns the address of `size` bytes, for the text of a program.
#[unsafe(no_mangle)]
pub extern "C" fn room(size: usize) -> *mut u8 {
    IN.with_borrow_mut(|bytes| {
        bytes.resize(size, 0);
        bytes.as_mut_ptr()
    })
}

/// Returns the address of the answer of the last call.
#[unsafe(no_mangle)]
pub extern "C" fn out() -> *const u8 {
    OUT.with_borrow(|bytes| bytes.as_ptr())
}

/// Runs the program. The answer is JSON: `problems` as `[line, text]`, the kernel's `report`, and
/// the `lines` of the program for events that name none, as `[number, line]`.
#[unsafe(no_mangle)]
pub extern "C" fn play() -> usize {
    panic::set_hook(Box::new(|info| PANIC.set(info.to_string())));
    let program = String::from_utf8_lossy(&IN.take()).into_owned();
    let Ran { log, problems, report, lines } = match read(&program) {
        Ok(program) => run(program),
        Err(problems) => Ran { problems, ..Ran::default() },
    };
    PLAYED.set(Some(Played { program, log, trace: None }));
    let problems: Vec<_> =
        problems.iter().map(|each| format!("[{},{}]", each.line, quoted(&each.text))).collect();
    let report = report.as_deref().map_or("null".to_owned(), quoted);
    let problems = problems.join(",");
    let lines: Vec<_> = lines.iter().map(|(number, line)| format!("[{number},{line}]")).collect();
    let lines = lines.join(",");
    let all = format!(r#"{{"problems":[{problems}],"report":{report},"lines":[{lines}]}}"#);
    answer(all.into_bytes())
}

/// The log of the run. It is empty if the program has mistakes.
#[unsafe(no_mangle)]
pub extern "C" fn log() -> usize {
    answer(PLAYED.with_borrow(|played| {
        played.as_ref().map_or(Vec::new(), |played| played.log.clone().into_bytes())
    }))
}

/// The page of the timeline.
#[unsafe(no_mangle)]
pub extern "C" fn timeline() -> usize {
    with_trace(|program, trace| {
        let mut out = Vec::new();
        let sources = BTreeMap::from([("program".to_owned(), program.to_owned())]);
        page::page(trace, &sources, &mut out).expect("memory takes all bytes");
        out
    })
}

/// Why an event happened, by its place in the log, from 0.
#[unsafe(no_mangle)]
pub extern "C" fn why(place: usize) -> usize {
    with_trace(|_, trace| match place < trace.len() {
        true => chain::why(trace, place, false, Paint::PLAIN).into_bytes(),
        false => Vec::new(),
    })
}

/// The message of the panic that has ended the instance, or nothing.
#[unsafe(no_mangle)]
pub extern "C" fn panicked() -> usize {
    answer(PANIC.take().into_bytes())
}

fn with_trace(make: impl FnOnce(&str, &Trace) -> Vec<u8>) -> usize {
    answer(PLAYED.with_borrow_mut(|played| {
        let Some(Played { program, trace, .. }) = played else { return Vec::new() };
        let trace = trace.get_or_insert_with(|| timed(program));
        make(program, trace)
    }))
}

/// Returns the events of the log, at the same places, with the lengths of the runs. The log that
/// the page shows does not have them: they would be in every second line.
fn timed(program: &str) -> Trace {
    let Ran { log, .. } = read(program).map(run_timed).unwrap_or_default();
    let is_boot = |line: &&str| line.split_whitespace().nth(2) == Some("#0000");
    let log: String = log.lines().filter(|line| !is_boot(line)).flat_map(|l| [l, "\n"]).collect();
    Trace::read(log.into_bytes(), |_| {}).expect("a log in memory can be read")
}
