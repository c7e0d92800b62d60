//! The file of the counts: `NAME INTEGER MODE REASON`, a line each.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// How a count is held to its integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// It may be less.
    Most,
    /// It may be less, and 1 % more: real time, or who comes first, is a little part of it.
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
    /// Why the integer is what it is.
    pub reason: String,
}

enum Part {
    /// A comment, or nothing.
    Prose(String),
    Line(Line),
}

/// All of the file, prose and order included.
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

    fn parse(text: &str) -> Result<File, String> {
        let mut file = File { compiler: String::new(), parts: Vec::new() };
        for line in text.lines() {
            if let Some(compiler) = line.strip_prefix(COMPILER) {
                file.compiler = compiler.to_owned();
            } else if line.is_empty() || line.starts_with('#') {
                file.parts.push(Part::Prose(line.to_owned()));
            } else {
                let parsed =
                    parse_line(line).ok_or(format!("counts.txt: not a count: `{line}`"))?;
                file.parts.push(Part::Line(parsed));
            }
        }
        Ok(file)
    }

    pub fn line(&self, name: &str) -> Option<&Line> {
        self.parts.iter().find_map(|part| match part {
            Part::Line(line) if line.name == name => Some(line),
            _ => None,
        })
    }

    /// Sets an integer and leaves the reason; a new line asks for one.
    pub fn set(&mut self, name: &str, mode: Mode, count: u64) {
        for part in &mut self.parts {
            if let Part::Line(line) = part
                && line.name == name
            {
                line.count = count;
                return;
            }
        }
        let reason = "REASON MISSING".to_owned();
        self.parts.push(Part::Line(Line { name: name.to_owned(), count, mode, reason }));
    }

    pub fn write(&self, path: &Path) -> Result<(), String> {
        fs::write(path, self.text()).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// The compiler stands below the prose that the file begins with.
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
        answer.instructions               12 most  a call and a store\n";

    #[test]
    fn a_file_is_written_as_it_was_read() {
        assert_eq!(File::parse(TEXT).unwrap().text(), TEXT);
    }

    #[test]
    fn a_new_integer_keeps_its_reason_and_a_new_line_asks_for_one() {
        let mut file = File::parse(TEXT).unwrap();
        file.set("answer.instructions", Mode::Most, 7);
        file.set("echo.allocations", Mode::Exact, 0);
        let line = file.line("answer.instructions").unwrap();
        assert_eq!((line.count, line.reason.as_str()), (7, "a call and a store"));
        assert_eq!(file.line("echo.allocations").unwrap().reason, "REASON MISSING");
    }

    #[test]
    fn a_line_without_a_reason_is_refused() {
        assert!(File::parse("answer.instructions 12 most\n").is_err());
    }
}
