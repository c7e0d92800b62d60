//! The output of `--print-limits`: a line `NAME VALUE UNIT` for each limit in force.
//!
//! A limit with an option has the name of the option. A word has the unit `-`, and a duration that
//! never passes is `off`.

use std::fmt::Display;
use std::time::Duration;

use traps::SignalSet;

use super::values::Span;

/// A limit: its name, its value and its unit.
pub type Limit = (&'static str, String, &'static str);

/// Makes a limit of a number or a word.
pub fn limit(name: &'static str, value: impl Display, unit: &'static str) -> Limit {
    (name, value.to_string(), unit)
}

/// Makes a limit of a duration.
pub fn span(name: &'static str, span: Duration) -> Limit {
    limit(name, Span(span), "ms")
}

/// Makes a limit that is on or off.
pub fn switch(name: &'static str, is_on: bool) -> Limit {
    limit(name, if is_on { "on" } else { "off" }, "-")
}

/// Returns the limits of a kernel.
pub fn of_kernel(options: &kernel::Options) -> Vec<Limit> {
    let kernel::Options { policy, budget, drain, grace, threads, idle, .. } = options;
    let optional = |name, found: Option<Duration>| span(name, found.unwrap_or(Duration::MAX));
    let mut limits = vec![
        limit("policy", policy, "-"),
        limit("budget", budget, "operations"),
        span("grace", *grace),
        limit("threads", threads, "threads"),
        span("thread-idle", *idle),
        span("timer-slack", options.timer_slack),
        optional("longrun", options.longrun),
        optional("watchdog", options.watchdog),
    ];
    // Only a server gets a shutdown.
    if options.shutdown_on != SignalSet::default() {
        limits.insert(0, span("drain", *drain));
    }
    limits
}

/// Returns the output lines of the limits.
pub fn text(limits: &[Limit]) -> String {
    limits.iter().map(|(name, value, unit)| format!("{name} {value} {unit}\n")).collect()
}
