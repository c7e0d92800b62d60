//! The panics that a program reports on standard error.

use testing::trace;

/// A panic.
pub struct Panic<'e> {
    /// The file and the line, as the compiler names them.
    file: &'e str,
    line: usize,
    pub message: String,
}

/// Reads the panics, in order.
pub fn panics(stderr: &str) -> Vec<Panic<'_>> {
    let texts = stderr.split(" panicked at ").skip(1);
    texts.filter_map(read).collect()
}

fn read(text: &str) -> Option<Panic<'_>> {
    let (place, rest) = text.split_once(":\n")?;
    let mut parts = place.rsplitn(3, ':').skip(1);
    let line = parts.next()?.parse().ok()?;
    let file = parts.next()?;
    // A failed run prints its log after the message, and another panic begins with its thread.
    let is_message = |line: &&str| {
        let ends = ["#", "note: run with", "stack backtrace:", "thread '"];
        !ends.iter().any(|end| line.starts_with(end)) && trace::line(line).is_err()
    };
    let message: Vec<&str> = rest.lines().take_while(is_message).map(str::trim).collect();
    let message = message.join("; ").trim_end_matches("; ").to_owned();
    Some(Panic { file, line, message })
}

impl Panic<'_> {
    /// Returns the place in the student's terms. `source` is the student's `src/lab.rs`: the
    /// message of an overflow has no operands, so its line is quoted.
    pub fn place(&self, source: &str) -> String {
        let Panic { file, line, message } = self;
        if file.contains("/library/") {
            // Only a function that tracks its caller names the line that called it.
            let name = file.rsplit('/').next().unwrap_or(file);
            return format!("in the standard library ({name})");
        }
        let file = of_student(file);
        let quoted = source.lines().nth(line.saturating_sub(1)).map(str::trim);
        match quoted.filter(|_| file == "src/lab.rs" && message.starts_with("attempt to ")) {
            Some(quoted) => format!("at {file}:{line}, `{quoted}`"),
            None => format!("at {file}:{line}"),
        }
    }
}

/// The name of a file in the student's crate. The tests build variants of `lab.rs` in its place.
fn of_student(file: &str) -> String {
    let Some((_, rest)) = file.split_once("/labs/") else { return file.to_owned() };
    if let Some((_, kernel)) = rest.rsplit_once("/kernel/") {
        return format!("src/kernel/{kernel}");
    }
    match rest.rsplit('/').next() {
        Some(given @ ("given.rs" | "scenario.rs")) => format!("src/{given}"),
        _ => "src/lab.rs".to_owned(),
    }
}
