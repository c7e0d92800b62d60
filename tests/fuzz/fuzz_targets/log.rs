//! The reader of logs, under any text.
//!
//! A panic is a finding, in the reader of lines, in the oracle, or in the state of the kernel. So
//! is a line that is not its own text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use testing::trace::{Causes, Spans, State, View, check, mask_times, span, trace};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = mask_times(text);
    let _ = span(text);
    let Ok(lines) = trace(text) else { return };
    let (mut causes, mut spans, mut state) =
        (Causes::default(), Spans::default(), State::default());
    for line in &lines {
        assert!(text.contains(&line.to_string()), "the text of a line");
        let _ = (causes.behind(line), spans.leave(line), line.outcome(), line.op());
        state.line(line);
        let _ = state.changed().iter().filter_map(|key| state.row(key)).count();
    }
    let _ = (state.text(View::Whole), state.ready().count(), state.next().count());
    if let Err(violations) = check(&lines) {
        assert!(!violations.is_empty());
        let _ = violations.iter().map(ToString::to_string).count();
    }
});
