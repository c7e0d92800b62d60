//! The log of a server: lines on standard error, all of one form.
//!
//! `[TIME ][worker-N: ][warning: |error: ]MESSAGE`. Lines have the time on a terminal, or with
//! `--log-time`. A kernel's events are messages too, see `message.rs`; with `RUST_LOG` at `debug`
//! or `trace` they are lines of its trace. The lines of an access log consist of the message alone,
//! because other servers write them in this form. No thread waits for the reader of the log;
//! `stderr.rs` drops lines that are not read.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt::{Display, Write as _};
use std::io::{self, IsTerminal, Write};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::SystemTime;

use ::log::{Level, log_enabled};
use env_logger::Target;

use super::{message, stderr};

/// The log target of the access log. Its lines begin with the peer and have their own time.
pub const ACCESS: &str = "access";

/// Whether log lines begin with the time.
static TIME: AtomicBool = AtomicBool::new(false);

/// Sets the form of the log lines. With `RUST_LOG` the log starts at once. Otherwise only an error
/// is written before the server listens.
pub fn prepare(time: bool) {
    TIME.store(time || io::stderr().is_terminal(), Ordering::Relaxed);
    say_panics();
    if std::env::var_os("RUST_LOG").is_some() {
        start();
    }
}

/// Starts the log, at the level `info` unless `RUST_LOG` sets another level. A second call does
/// nothing.
pub fn start() {
    let level = env_logger::Env::default().default_filter_or("info");
    let mut builder = env_logger::Builder::from_env(level);
    builder.target(Target::Pipe(Box::new(Lines)));
    // The access log has its own option.
    builder.filter_module(ACCESS, ::log::LevelFilter::Info);
    builder.format(|out, record| {
        // The hook of a kernel reports the findings of the watchdog, with the number of the worker.
        if thread::current().name() == Some("trapline-watchdog") {
            return Ok(());
        }
        if record.target() == ACCESS {
            return writeln!(out, "{}", record.args());
        }
        // With debug logging enabled for a target, log all its events in the raw format.
        if log_enabled!(target: record.target(), Level::Debug) {
            return writeln!(out, "{}{}{}", now(), worker(), record.args());
        }
        let Some(message) = message::of(&record.args().to_string()) else { return Ok(()) };
        let level = match record.level() {
            Level::Error => "error: ",
            Level::Warn => "warning: ",
            _ => "",
        };
        writeln!(out, "{}{}{level}{}", now(), worker(), plain(&message))
    });
    // This fails if the log has already started.
    let _ = builder.try_init();
}

/// Writes a message to standard error in one piece. The message may have several lines.
pub fn say(worker: &str, message: &impl Display) {
    let now = now();
    let mut text = String::new();
    for line in message.to_string().lines() {
        let _ = writeln!(text, "{now}{worker}{}", plain(line));
    }
    stderr::write(text.as_bytes());
}

/// Returns a text from outside as one line that does not control the reader's terminal. White space
/// becomes a space. A character that controls a terminal or the direction of a text becomes
/// `\u{fffd}`.
pub fn plain(text: &str) -> String {
    let shown = |letter: char| match letter {
        letter if letter.is_whitespace() => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    };
    text.chars().map(shown).collect()
}

/// Returns the log line that replaces `lines` lost lines.
pub fn lost(lines: u64) -> String {
    format!("{}{lines} lines of the log were lost\n", now())
}

/// Makes each panic write its message to the log. The message that Rust prints by itself would wait
/// for the reader.
fn say_panics() {
    panic::set_hook(Box::new(|panic| {
        let thread = thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let mut text = format!("thread '{name}' {panic}");
        let stack = Backtrace::capture();
        if stack.status() == BacktraceStatus::Captured {
            let _ = write!(text, "\n{stack}");
        }
        say(&worker(), &text);
    }));
}

/// The writer of the log records, each in one piece.
struct Lines;

impl Write for Lines {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        stderr::write(record);
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the prefix of this thread's log lines: `worker-2: ` for the second of several workers,
/// and nothing for the only worker or any other thread.
pub fn worker() -> String {
    let thread = thread::current();
    let name = thread.name().filter(|name| name.starts_with("worker-"));
    name.map_or(String::new(), |name| format!("{name}: "))
}

/// Returns the time prefix of a log line, such as `2026-01-31 23:59:59Z `, or nothing if log lines
/// do not begin with the time.
fn now() -> String {
    if !TIME.load(Ordering::Relaxed) {
        return String::new();
    }
    let [day, month, year, time] = date(SystemTime::now());
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(&month).unwrap_or(0) / 3 + 1;
    format!("{year}-{month:02}-{day} {time}Z ")
}

/// Returns the time in the form of an access log: `31/Jan/2026:23:59:59 +0000`. In a replay it is
/// the recorded time.
pub fn access_time() -> String {
    let [day, month, year, time] = date(traps::wall_clock());
    format!("{day}/{month}/{year}:{time} +0000")
}

/// Returns the day, the month by name, the year and the time of day, in UTC.
fn date(time: SystemTime) -> [String; 4] {
    // `Sat, 31 Jan 2026 23:59:59 GMT`
    let text = httpdate::fmt_http_date(time);
    let mut words = text.split(' ').skip(1).map(str::to_owned);
    std::array::from_fn(|_| words.next().unwrap_or_default())
}
