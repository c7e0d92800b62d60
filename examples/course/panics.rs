//! The panics that a program reports on standard error.

use testing::trace;

/// A panic.
pub struct Panic<'e> {
    /// The file and the line, as the compiler names them.
    file: &'e str,
    line: usize,
    /// The innermost line of the student's `src/lab.rs` in the backtrace.
    caller: Option<usize>,
    pub message: String,
}

/// Reads the panics, in order.
pub fn panics(stderr: &str) -> Vec<Panic<'_>> {
    let texts = stderr.split(" panicked at ").skip(1);
    texts.filter_map(read).collect()
}

fn read(text: &str) -> Option<Panic<'_>> {
    let (place, rest) = text.split_once(":\n")?;
    let (file, line) = position(place)?;
    let frames = rest.split_once("stack backtrace:\n").map_or("", |(_, frames)| frames).lines();
    let mut positions = frames.filter_map(|line| position(line.trim_start().strip_prefix("at ")?));
    let caller = positions.find(|(file, _)| of_student(file) == LAB).map(|(_, line)| line);
    // A failed run prints its log after the message, and another panic begins with its thread.
    let is_message = |line: &&str| {
        let ends = ["#", "note: run with", "stack backtrace:", "thread '"];
        !ends.iter().any(|end| line.starts_with(end)) && trace::line(line).is_err()
    };
    let message: Vec<&str> = rest.lines().take_while(is_message).map(str::trim).collect();
    let message = message.join("; ").trim_end_matches("; ").to_owned();
    Some(Panic { file, line, caller, message })
}

/// Reads `FILE:LINE:COLUMN`.
fn position(text: &str) -> Option<(&str, usize)> {
    let mut parts = text.rsplitn(3, ':').skip(1);
    let line = parts.next()?.parse().ok()?;
    Some((parts.next()?, line))
}

impl Panic<'_> {
    /// Returns the place in the student's terms. `source` is the student's `src/lab.rs`. Its line
    /// is quoted if the message has no operands: that of an overflow, and that of the standard
    /// library.
    pub fn place(&self, source: &str) -> String {
        let Panic { file, line, caller, message } = self;
        let quoted = |line: usize| match source.lines().nth(line.saturating_sub(1)) {
            Some(text) => format!("at {LAB}:{line}, `{}`", text.trim()),
            None => format!("at {LAB}:{line}"),
        };
        // Only a function of the library that tracks its caller names the line that called it.
        let in_library = file.contains("/library/");
        let file = of_student(file);
        match caller {
            _ if file == LAB && message.starts_with("attempt to ") => quoted(*line),
            _ if file == LAB => format!("at {LAB}:{line}"),
            Some(caller) if in_library => quoted(*caller),
            Some(caller) => format!("at {file}:{line}, called at {LAB}:{caller}"),
            None if in_library => {
                format!("in the standard library ({})", file.rsplit('/').next().unwrap_or_default())
            }
            None => format!("at {file}:{line}"),
        }
    }
}

/// The file that the student writes.
const LAB: &str = "src/lab.rs";

/// The name of a file in the student's crate. The tests build variants of `lab.rs` in its place.
pub fn of_student(file: &str) -> String {
    let Some((_, rest)) = file.rsplit_once("/labs/") else { return file.to_owned() };
    if let Some(of_a_crate) = rest.strip_prefix("patched/") {
        return of_a_crate.to_owned();
    }
    // The checkout itself may be in a folder `labs`.
    if !rest.starts_with(|first: char| first.is_ascii_digit()) {
        return file.to_owned();
    }
    if let Some((_, kernel)) = rest.rsplit_once("/kernel/") {
        return format!("src/kernel/{kernel}");
    }
    match rest.rsplit('/').next() {
        Some(given @ ("given.rs" | "scenario.rs" | "draw.rs" | "main.rs")) => {
            format!("src/{given}")
        }
        _ => LAB.to_owned(),
    }
}
