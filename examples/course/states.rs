//! The logs of the steps, and the state at a line of them.
//!
//! The log of a step is its golden log, and a test compares that with the output of the program.
//! The programs of steps 7 and 12 talk to the network, so their logs were recorded once. The first
//! five steps write less than the real kernel; `early.rs` translates their logs into its words.

use trace_tool::model::Trace;
use trace_tool::state;
use trace_tool::style::Paint;

use crate::early;
use crate::pages;

/// The first step with a log in the format of the real kernel.
const FIRST_TRACE: u32 = 6;

/// The log of a step, in the words of the real kernel, and the number of the event for each line
/// of the golden log.
struct Log {
    text: String,
    /// The numbers of the events, for the first five steps.
    events: Vec<u64>,
}

fn find(step: u32) -> Log {
    let text = pages::log(step);
    if step >= FIRST_TRACE {
        return Log { text, events: Vec::new() };
    }
    // All logs have the header of the same version.
    let header = pages::log(FIRST_TRACE);
    let header: Vec<&str> = header.lines().take_while(|line| line.starts_with('#')).collect();
    let (lines, events) = early::told(&text);
    Log { text: format!("{}\n{lines}", header.join("\n")), events }
}

/// Returns the log of a step in the words of the real kernel.
pub fn log(step: u32) -> String {
    find(step).text
}

/// Returns the state at a line of the log of a step. In the first five steps the number of a line
/// is its position in the log, without the lines that the program prints; in the others the log has
/// the number.
///
/// # Errors
///
/// Returns what was expected.
pub fn state(step: u32, line: u64) -> Result<String, String> {
    let log = find(step);
    let seq = match usize::try_from(line).ok().and_then(|line| line.checked_sub(1)) {
        _ if step >= FIRST_TRACE => line,
        nth => *nth.and_then(|nth| log.events.get(nth)).ok_or_else(|| {
            format!("expected a line from 1 to {} of the log, not {line}", log.events.len())
        })?,
    };
    let trace = Trace::read(log.text.into_bytes(), |_| {}).map_err(|error| error.to_string())?;
    let place = state::place(&trace, state::At::Line(seq))?;
    Ok(state::state(&trace, place, Paint::of_standard_output()))
}
