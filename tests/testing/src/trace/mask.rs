//! Traces of the real machine, made comparable with those of the simulated machine.

use traps::time::Time;

/// The fields whose value is a measured time or duration.
pub const MEASURED: [&str; 8] =
    ["until", "deadline", "over", "parked", "ran", "waited", "late", "clock"];

/// Replaces every time that depends on the clock by `*`, so that a trace of the real machine can be
/// compared with one of the simulated machine.
///
/// These are the time column, readings of the clock (`= 0.500000`), and the fields `until`,
/// `deadline`, `over`, `parked`, `ran`, `waited`, `late`, and `clock` in the header. Durations that
/// the program asked for stay, and so do the turns.
#[must_use]
pub fn mask_times(text: &str) -> String {
    text.split_inclusive('\n').map(mask_line).collect()
}

fn mask_line(line: &str) -> String {
    if line.starts_with('#') && !line.starts_with("#trace ") {
        return line.to_owned();
    }
    let (mut masked, mut before) = (String::new(), "");
    for piece in line.split_inclusive([' ', ',', '\n']) {
        let word = piece.trim_end_matches([' ', ',', '\n']);
        let key = word.split_once('=').map(|(key, _)| key).filter(|key| MEASURED.contains(key));
        let is_time = word.parse::<Time>().is_ok();
        match key {
            Some(key) => masked = masked + key + "=*",
            // The first column keeps its width.
            None if is_time && masked.trim().is_empty() => masked = "        *".to_owned(),
            None if is_time && before == "=" => masked.push('*'),
            None => masked += word,
        }
        masked += &piece[word.len()..];
        before = word;
    }
    masked
}
