//! Colours where somebody looks, plain text where a program reads.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use testing::trace::Line;

/// Whether to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(pub bool);

impl Paint {
    /// On a terminal, unless `NO_COLOR` is set.
    pub fn of_standard_output() -> Paint {
        Paint(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// What the eye is to find first.
    pub fn strong(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// What may be skipped.
    pub fn faint(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// A line of a log, or a text about it, by what its verb means.
    pub fn line(self, line: &Line<'_>, text: &str) -> String {
        let color = match line.verb {
            "run" | "io" => AnsiColor::Green,
            "block" | "await" | "exit" => AnsiColor::Blue,
            "wake" => AnsiColor::Cyan,
            "arrive" | "fire" => AnsiColor::Magenta,
            "deliver" | "cancel" | "panic" | "warn" => AnsiColor::Red,
            _ => return text.to_owned(),
        };
        self.with(color.on_default(), text)
    }
}
