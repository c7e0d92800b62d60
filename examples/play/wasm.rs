//! The door to a page: bytes in, bytes out. An instance runs one program.

use std::cell::RefCell;
use std::collections::BTreeMap;

use trace_tool::model::Trace;
use trace_tool::perfetto::quoted;
use trace_tool::style::Paint;
use trace_tool::{chain, page};

use super::program::read;
use super::run::{Ran, run};

thread_local! {
    static IN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static RAN: RefCell<Option<(String, Ran, Option<Trace>)>> = const { RefCell::new(None) };
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// A panic, after which the instance is dead.
    safe fn panicked(text: *const u8, size: usize);
}

fn give(bytes: Vec<u8>) -> usize {
    OUT.replace(bytes);
    OUT.with_borrow(Vec::len)
}

/// Room for a program of so many bytes.
#[unsafe(no_mangle)]
pub extern "C" fn room(size: usize) -> *mut u8 {
    IN.with_borrow_mut(|bytes| {
        bytes.resize(size, 0);
        bytes.as_mut_ptr()
    })
}

/// Where the answer of the last call is.
#[unsafe(no_mangle)]
pub extern "C" fn out() -> *const u8 {
    OUT.with_borrow(|bytes| bytes.as_ptr())
}

/// Runs the program. The answer is JSON: problems with their lines, and a report.
#[unsafe(no_mangle)]
pub extern "C" fn play() -> usize {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        panicked(text.as_ptr(), text.len());
    }));
    let text = String::from_utf8_lossy(&IN.take()).into_owned();
    let ran = match read(&text) {
        Ok(program) => run(program),
        Err(problems) => Ran { problems, ..Ran::default() },
    };
    let problems: Vec<_> =
        ran.problems.iter().map(|each| format!("[{},{}]", each.line, quoted(&each.text))).collect();
    let report = ran.report.as_deref().map_or("null".to_owned(), quoted);
    let answer = format!(r#"{{"problems":[{}],"report":{report}}}"#, problems.join(","));
    RAN.set(Some((text, ran, None)));
    give(answer.into_bytes())
}

/// The log.
#[unsafe(no_mangle)]
pub extern "C" fn log() -> usize {
    give(RAN.with_borrow(|ran| {
        ran.as_ref().map_or(Vec::new(), |(_, ran, _)| ran.log.clone().into_bytes())
    }))
}

fn with_trace(make: impl FnOnce(&str, &Trace) -> Vec<u8>) -> usize {
    give(RAN.with_borrow_mut(|ran| {
        let Some((text, ran, trace)) = ran else { return Vec::new() };
        let trace = trace.get_or_insert_with(|| {
            let log = ran.log.clone().into_bytes();
            Trace::read(log, |_| {}).expect("a log in memory can be read")
        });
        make(text, trace)
    }))
}

/// The page of the timeline.
#[unsafe(no_mangle)]
pub extern "C" fn timeline() -> usize {
    with_trace(|text, trace| {
        let mut out = Vec::new();
        let sources = BTreeMap::from([("program".to_owned(), text.to_owned())]);
        page::page(trace, &sources, &mut out).expect("memory takes it");
        out
    })
}

/// Why a line is there, by its place from 0.
#[unsafe(no_mangle)]
pub extern "C" fn why(place: usize) -> usize {
    with_trace(|_, trace| match place < trace.len() {
        true => chain::why(trace, place, false, Paint::PLAIN).into_bytes(),
        false => Vec::new(),
    })
}
