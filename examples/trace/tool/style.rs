//! Colours on a terminal, plain text for a program.

use std::env;
use std::io::{self, IsTerminal as _};

use anstyle::{AnsiColor, Style};
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

    /// Colours on a terminal, unless `NO_COLOR` is set, and unlimited columns: only a terminal
    /// library knows how many there are.
    pub fn of_standard_output() -> Paint {
        let colors = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none();
        Paint { colors, width: None }
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
