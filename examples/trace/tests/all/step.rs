//! The tool at a terminal, which `script` provides: keys in, screens out.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use support::examples;
use testing::child::{self, Child};

/// The tool at a terminal of 100 columns and 24 rows. Then the modes of the terminal are printed.
struct Terminal {
    child: Child,
    shown: String,
}

impl Terminal {
    /// `step` of a golden.
    fn of(log: &str) -> Terminal {
        Terminal::running("step", log)
    }

    /// A command of the tool, of a golden.
    fn running(command: &str, log: &str) -> Terminal {
        let tool = examples::build("trace");
        let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
        let command = format!(
            "stty cols 100 rows 24; {} {command} {goldens}/{log}.trace; stty -a",
            tool.display()
        );
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
        script.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
        Terminal { child: child::spawn(&mut script), shown: String::new() }
    }

    /// Waits for a text on the screen. The child has a time limit, and its end ends this wait.
    fn wait_for(&mut self, text: &str) {
        let out = self.child.stdout.as_mut().unwrap();
        let mut bytes = [0; 4096];
        while !self.shown.contains(text) {
            let count = out.read(&mut bytes).unwrap();
            assert!(count > 0, "there is no {text} in {}", self.shown);
            self.shown += &String::from_utf8_lossy(&bytes[..count]);
        }
    }

    /// Sends a key, and waits for the text that it shows.
    fn key(&mut self, key: &str, text: &str) {
        self.shown.clear();
        self.child.stdin.as_mut().unwrap().write_all(key.as_bytes()).unwrap();
        self.wait_for(text);
    }
}

#[test]
fn keys_walk_through_the_log_and_the_terminal_is_restored() {
    let mut terminal = Terminal::of("nested");
    terminal.wait_for("line 1 of 29");
    assert!(terminal.shown.contains("\x1b[?1049h"), "{}", terminal.shown);
    for (key, line) in [
        ("\x1b[C", 2),
        ("\x1b[B", 3),
        ("\x1b[B", 5),
        ("\x1b[D", 4),
        ("\x1b[6~", 10),
        ("\x1b[5~", 3),
        ("\x1b[F", 29),
        ("\x1b[A", 26),
        ("\x1b[H", 1),
    ] {
        terminal.key(key, &format!("line {line} of 29"));
    }
    terminal.key("\x1b[6~", "line 3 of 29");
    terminal.key("\x1b[6~", "line 10 of 29");
    assert!(terminal.shown.contains("pending: s2"), "{}", terminal.shown);
    terminal.key("q", "\x1b[?1049l");
    terminal.wait_for(" echoe");
    for mode in [" icanon", " echo "] {
        assert!(terminal.shown.contains(mode), "{mode}: {}", terminal.shown);
    }
    assert!(terminal.shown.contains("\x1b[?25h"), "{}", terminal.shown);
    assert!(terminal.child.wait().unwrap().success());
}

#[test]
fn a_terminal_session_searches_goes_to_causes_and_keeps_wrong_input() {
    let mut terminal = Terminal::of("nested");
    terminal.wait_for("line 1 of 29");
    terminal.key("?", "the line before the last jump");
    terminal.key("?", "line 1 of 29");
    terminal.key("/fire", "/fire_");
    terminal.key("\r", "line 10 of 29");
    terminal.key("\r", "line 7 of 29");
    terminal.key("\x7f", "line 10 of 29");
    terminal.key(":300\r", "there is no event 300; expected one from 1 to 29");
    terminal.key("\x7f\x7f\x7f29\r", "line 29 of 29");
    terminal.key("bverb=blok\r", "expected a verb of the log, not `blok`");
    terminal.key("\x1b", "line 29 of 29");
    terminal.key("bverb=block line<10\r", "no line after this one matches verb=block line<10");
    terminal.key("C", "block ");
    // In raw mode, Ctrl-C is a key.
    terminal.key("\x03", "\x1b[?1049l");
    terminal.wait_for(" echoe");
    assert!(terminal.child.wait().unwrap().success());
}

#[test]
fn a_picture_is_not_printed_on_a_terminal() {
    for (command, name) in [("timeline", "nested.html"), ("perfetto", "nested.json")] {
        let mut terminal = Terminal::running(command, "nested");
        terminal.wait_for(&format!("expected a file for it, such as `-o {name}`; `-o -` prints"));
        terminal.wait_for(" echoe");
        assert!(!terminal.shown.contains("<!doctype"), "{}", terminal.shown);
        let mut terminal = Terminal::running(&format!("{command} -o -"), "nested");
        terminal.wait_for(if command == "timeline" { "<!doctype" } else { "traceEvents" });
    }
}
