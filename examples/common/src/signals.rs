//! The signals that shut a server down.

use std::fs;

use traps::Signal;

/// Returns the signals that shut a server down.
pub fn of_shutdown() -> &'static [Signal] {
    const SIGNALS: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];
    if is_hangup_ignored() { &SIGNALS[..2] } else { &SIGNALS }
}

/// Returns whether this process ignores SIGHUP, and so survives its terminal, as after `nohup`.
fn is_hangup_ignored() -> bool {
    const HANGUP: u64 = 1;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & HANGUP != 0)
}
