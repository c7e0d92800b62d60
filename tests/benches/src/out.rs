//! Output, for readers that may go away and devices that may be full.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process;

/// The status that a shell shows for a program that SIGPIPE has ended.
const NOBODY_READS: i32 = 128 + 13;

/// Prints to standard output. If the reader has gone, ends the program silently.
///
/// # Errors
///
/// Returns the system's error, for example if the device is full.
pub fn say(text: &str) -> Result<(), String> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => process::exit(NOBODY_READS),
        done => done.map_err(|error| format!("standard output: {error}")),
    }
}

/// Warns if this is a build whose figures mean nothing.
pub fn warn_of_debugging() {
    if cfg!(debug_assertions) {
        note("a build for debugging: its figures mean nothing; build it with --release");
    }
}

/// Prints a line to standard error, if it has a reader.
pub fn note(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
