//! Colours where somebody looks, plain text where a program reads.

use std::io::IsTerminal;

use anstyle::{AnsiColor, Style};
use kernel::trace::Event;

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

    /// A line of a log, by what its verb means.
    pub fn line(self, event: &Event<'_>, text: &str) -> String {
        use Event::{Arrive, Block, Cancel, Deliver, Exit, Fire, Io, Panic, Run, Wake, Warn};
        let color = match event {
            Run { .. } | Io { .. } => AnsiColor::Green,
            Block { .. } | Exit { .. } => AnsiColor::Blue,
            Wake { .. } => AnsiColor::Cyan,
            Arrive(_) | Fire { .. } => AnsiColor::Magenta,
            Deliver { .. } | Cancel { .. } | Panic { .. } | Warn { .. } => AnsiColor::Red,
            _ => return text.to_owned(),
        };
        self.with(color.on_default(), text)
    }
}
