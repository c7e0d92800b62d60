//! Colours where somebody looks, plain text where a program reads.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use crossterm::terminal;
use testing::trace::Line;

/// What the reader's screen can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// Whether to use colours.
    pub colors: bool,
    /// The columns of a terminal; a file has no end of them.
    pub width: Option<usize>,
}

impl Paint {
    /// Neither colours nor an end of columns.
    pub const PLAIN: Paint = Paint { colors: false, width: None };

    /// Colours and a width on a terminal, but no colours if `NO_COLOR` is set.
    pub fn of_standard_output() -> Paint {
        let is_terminal = std::io::stdout().is_terminal();
        let size = if is_terminal { terminal::size().ok() } else { None };
        let colors = is_terminal && std::env::var_os("NO_COLOR").is_none();
        Paint { colors, width: size.map(|(columns, _)| columns.into()) }
    }

    fn with(self, style: Style, text: &str) -> String {
        if self.colors { format!("{style}{text}{style:#}") } else { text.to_owned() }
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
