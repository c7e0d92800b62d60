//! Colours on a terminal, plain text for a program.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use crossterm::terminal;
use testing::trace::Line;

/// The abilities of the reader's screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint {
    /// Whether to use colours.
    pub colors: bool,
    /// The columns of a terminal; unlimited for a file.
    pub width: Option<usize>,
}

impl Paint {
    /// No colours, and unlimited columns.
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

    /// Highlights text that the eye should find first.
    pub fn strong(self, text: &str) -> String {
        self.with(Style::new().bold(), text)
    }

    /// Dims text that can be skipped.
    pub fn faint(self, text: &str) -> String {
        self.with(Style::new().dimmed(), text)
    }

    /// Colours a line of a log, or a text about it, by the meaning of its verb.
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
