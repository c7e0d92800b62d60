//! Given: spans and points in time, as the log writes them.

use std::time::Duration;

use super::*;

/// Returns a duration in the unit that fits it.
pub(super) fn span(span: Duration) -> String {
    let micros = span.as_nanos().div_ceil(1000);
    let (value, unit) = match micros {
        0 => return "0s".to_owned(),
        1..1000 => (micros as f64, "us"),
        1000..100_000 => (micros as f64 / 1e3, "ms"),
        _ => (micros as f64 / 1e6, "s"),
    };
    format!("{value}{unit}")
}

/// Returns a time without the padding of its column.
pub(super) fn time_of(time: Time) -> String {
    time.to_string().trim_start().to_owned()
}
