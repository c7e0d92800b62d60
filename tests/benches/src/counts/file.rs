//! The file of the counts: `NAME INTEGER MODE REASON`, a line each.
//!
//! The mode is the kind of the comparison. `most`: the count may be less. `near`: it may be less,
//! and 3 % more. `exact`: neither. If a count that repeats is well below its line, the gate asks to
//! lower the line: at 1 % for a `most` line of a program without a server, and at 6 % for
//! instructions. An `exact` count fails. All other counts vary by themselves, so the gate does not
//! ask.
//!
//! `--write` keeps the reason if a line is lowered, and the whole line if the count is within its
//! tolerance. A line that it raises beyond the tolerance needs a new reason, as a new line does: it
//! writes `REASON MISSING`, and the gate fails until a reason is written. Only instructions of
//! another compiler are rewritten without a new reason.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// How a count is compared with its integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// It may be less.
    Most,
    /// It may be less, and a little more. A change that makes an instruction more is not a fault.
    /// In a server, real time and the order of clients have a small influence on the instructions.
    Near,
    /// It may be neither.
    Exact,
}

impl Mode {
    pub fn word(self) -> &'static str {
        match self {
            Mode::Most => "most",
            Mode::Near => "near",
            Mode::Exact => "exact",
        }
    }
}

/// One count.
#[derive(Debug)]
pub struct Line {
    pub name: String,
    pub count: u64,
    pub mode: Mode,
    /// The reason for the integer.
    pub reason: String,
}

/// The beginning of a missing reason.
const MISSING: &str = "REASON MISSING";

impl Line {
    /// The highest count that passes.
    pub fn most(&self) -> u64 {
        match self.mode {
            Mode::Near => self.count * 103 / 100,
            Mode::Most | Mode::Exact => self.count,
        }
    }

    fn lacks_reason(&self) -> bool {
        self.reason.starts_with(MISSING)
    }
}

enum Part {
    /// A comment, or nothing.
    Prose(String),
    Line(Line),
}

/// The whole file, including prose and order.
pub struct File {
    /// Whose instructions were counted.
    pub compiler: String,
    parts: Vec<Part>,
}

const COMPILER: &str = "compiler ";

impl File {
    pub fn read(path: &Path) -> Result<File, String> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        File::parse(&text)
    }

    pub fn parse(text: &str) -> Result<File, String> {
        let mut file = File { compiler: String::new(), parts: Vec::new() };
        for line in text.lines() {
            if let Some(compiler) = line.strip_prefix(COMPILER) {
                if !file.compiler.is_empty() {
                    return Err(format!("counts.txt: a second compiler: `{line}`"));
                }
                file.compiler = compiler.trim().to_owned();
            } else if line.is_empty() || line.starts_with('#') {
                file.parts.push(Part::Prose(line.to_owned()));
            } else {
                let parsed = parse_line(line).ok_or_else(|| {
                    format!("counts.txt: expected `NAME INTEGER MODE REASON`, not `{line}`")
                })?;
                if file.line(&parsed.name).is_some() {
                    return Err(format!("counts.txt: a second line `{}`", parsed.name));
                }
                file.parts.push(Part::Line(parsed));
            }
        }
        if file.compiler.is_empty() {
            let expected = "expected a line `compiler VERSION`, as `rustc --version` says it";
            return Err(format!("counts.txt: {expected}: instructions are a compiler's"));
        }
        Ok(file)
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.parts.iter().filter_map(|part| match part {
            Part::Line(line) => Some(line),
            Part::Prose(_) => None,
        })
    }

    /// The faults of the file, independent of the counts: lines without a reason, and lines without
    /// one of these names.
    pub fn faults(&self, names: &[String]) -> Vec<String> {
        let fault = |line: &Line| {
            let name = &line.name;
            if !names.contains(name) {
                Some(format!("{name:<28} NO SUCH COUNT: its line is to go"))
            } else if line.lacks_reason() {
                Some(format!("{name:<28} {MISSING}: counts.txt is to say why it is {}", line.count))
            } else {
                None
            }
        };
        self.lines().filter_map(fault).collect()
    }

    pub fn line(&self, name: &str) -> Option<&Line> {
        self.lines().find(|line| line.name == name)
    }

    /// Sets an integer, unless the count is within the tolerance of its line. A new or raised line
    /// needs a reason, unless it comes from another compiler (`is_alike` is false).
    pub fn set(&mut self, name: &str, mode: Mode, count: u64, is_alike: bool) {
        for part in &mut self.parts {
            if let Part::Line(line) = part
                && line.name == name
            {
                if is_alike && line.count < count && count <= line.most() {
                    return;
                }
                if is_alike && count > line.most() && !line.lacks_reason() {
                    line.reason = format!("{MISSING}; of {}: {}", line.count, line.reason);
                }
                line.count = count;
                return;
            }
        }
        let reason = MISSING.to_owned();
        self.parts.push(Part::Line(Line { name: name.to_owned(), count, mode, reason }));
    }

    pub fn write(&self, path: &Path) -> Result<(), String> {
        fs::write(path, self.text()).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The compiler is below the prose at the beginning of the file.
    fn text(&self) -> String {
        let mut text = String::new();
        let mut compiler = Some(&self.compiler);
        for part in &self.parts {
            let begins = matches!(part, Part::Prose(prose) if !prose.is_empty());
            if let Some(compiler) = compiler.take_if(|_| !begins) {
                let _ = writeln!(text, "{COMPILER}{compiler}");
            }
            let _ = match part {
                Part::Prose(prose) => writeln!(text, "{prose}"),
                Part::Line(Line { name, count, mode, reason }) => {
                    writeln!(text, "{name:<28} {count:>7} {:<5} {reason}", mode.word())
                }
            };
        }
        text
    }
}

fn parse_line(line: &str) -> Option<Line> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let count = words.next()?.parse().ok()?;
    let mode = match words.next()? {
        "most" => Mode::Most,
        "near" => Mode::Near,
        "exact" => Mode::Exact,
        _ => return None,
    };
    let reason = words.collect::<Vec<_>>().join(" ");
    (!reason.is_empty()).then_some(Line { name, count, mode, reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# What it is.\ncompiler rustc 1\n\n# Traps.\n\
        answer.instructions               12 most  a call and a store\n\
        http.instructions               1000 near  a read\n";

    #[test]
    fn a_file_is_written_as_it_was_read() {
        assert_eq!(File::parse(TEXT).unwrap().text(), TEXT);
    }

    /// Returns the line after a count was written.
    fn after(name: &str, mode: Mode, count: u64, is_alike: bool) -> (u64, String) {
        let mut file = File::parse(TEXT).unwrap();
        file.set(name, mode, count, is_alike);
        let line = file.line(name).unwrap();
        (line.count, line.reason.clone())
    }

    #[test]
    fn a_lower_integer_keeps_its_reason_and_a_higher_or_a_new_one_asks_for_one() {
        let reason = "a call and a store";
        let most = |count, alike| after("answer.instructions", Mode::Most, count, alike);
        assert_eq!(most(7, true), (7, reason.to_owned()));
        assert_eq!(most(13, true), (13, format!("REASON MISSING; of 12: {reason}")));
        assert_eq!(most(13, false), (13, reason.to_owned()));
        let new = after("echo.allocations_per_100", Mode::Exact, 0, true);
        assert_eq!(new, (0, "REASON MISSING".to_owned()));
    }

    #[test]
    fn a_line_stays_where_the_count_is_within_its_tolerance() {
        let near = |count| after("http.instructions", Mode::Near, count, true);
        assert_eq!(near(1030), (1000, "a read".to_owned()));
        assert_eq!(near(990), (990, "a read".to_owned()));
        assert_eq!(near(1031), (1031, "REASON MISSING; of 1000: a read".to_owned()));
    }

    #[test]
    fn a_line_without_a_reason_or_without_a_count_is_a_fault() {
        let mut file = File::parse(TEXT).unwrap();
        let names = ["answer.instructions", "http.instructions"].map(str::to_owned);
        assert_eq!(file.faults(&names), Vec::<String>::new());
        file.set("http.instructions", Mode::Near, 2000, true);
        let text = format!("{}old.instructions 1 most why\n", file.text());
        let faults = File::parse(&text).unwrap().faults(&names);
        let is_of = |fault: &String, name, what| fault.starts_with(name) && fault.contains(what);
        assert!(is_of(&faults[0], "http.instructions", "REASON MISSING"), "{faults:?}");
        assert!(is_of(&faults[1], "old.instructions", "NO SUCH COUNT"), "{faults:?}");
        assert_eq!(faults.len(), 2);
    }

    #[test]
    fn what_is_not_a_file_of_counts_is_refused() {
        let refused = |text: &str, why: &str| {
            let error = File::parse(text).err().unwrap();
            assert!(error.contains(why), "{error}");
        };
        refused("compiler rustc 1\nanswer.instructions 12 most\n", "NAME INTEGER MODE REASON");
        refused("answer.instructions 12 most why\n", "compiler VERSION");
        refused(&format!("{TEXT}compiler rustc 2\n"), "a second compiler");
        refused(&format!("{TEXT}answer.instructions 13 most why\n"), "a second line `answer.");
    }
}
