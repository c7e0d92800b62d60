//! The options of the HTTP server: one for each limit and each deadline, and for what its paths
//! need.

use std::path::PathBuf;
use std::time::Duration;

use net::http::{Config, Deadlines, Limits};
use traps::limits::Bound;

use super::{Flags, count};

/// What the command line says of HTTP.
#[derive(Clone)]
pub struct HttpFlags {
    limits: Limits,
    bare_lf: bool,
    deadlines: Deadlines,
    /// The directory behind `/files/`.
    pub files: Option<PathBuf>,
    /// Threads for reading files.
    pub file_threads: u64,
    /// Threads for `/blocking`.
    pub blocking_threads: u64,
    /// How many `/gate` lets in at a time.
    pub gate: u64,
}

impl Default for HttpFlags {
    fn default() -> HttpFlags {
        HttpFlags {
            limits: Limits::default(),
            deadlines: Deadlines::default(),
            bare_lf: false,
            files: None,
            file_threads: 8,
            blocking_threads: 16,
            gate: 5,
        }
    }
}

/// Where the value of an option goes, and what it counts.
enum Slot<'f> {
    /// From the first number to the second.
    Size(&'f mut usize, usize, usize),
    Count(&'f mut u64, u64, u64),
    Few(&'f mut u32, u32, u32),
    /// `on` or `off`.
    Switch(&'f mut bool),
    /// In milliseconds, from so many; `off` is never.
    Span(&'f mut Duration, u64),
    Path(&'f mut Option<PathBuf>),
}

/// One option.
struct Flag {
    name: &'static str,
    what: &'static str,
    slot: fn(&mut HttpFlags) -> Slot<'_>,
}

const fn flag(
    name: &'static str,
    what: &'static str,
    slot: fn(&mut HttpFlags) -> Slot<'_>,
) -> Flag {
    Flag { name, what, slot }
}

use Slot::{Count, Few, Path, Size, Span, Switch};

/// The most that a head may be let grow to, in bytes.
const HEAD: usize = 1 << 30;

/// The shortest head there is, and its first line.
const SHORTEST: usize = "GET / HTTP/1.0\r\n\r\n".len();
const SHORTEST_LINE: usize = "GET / HTTP/1.0".len();

/// All three together are fewer than a kernel has at most.
const THREADS: u64 = 1 << 14;

/// All of them, in the order of the help.
const FLAGS: &[Flag] = &[
    flag("--files", "serve this directory below /files/", |f| Path(&mut f.files)),
    flag("--file-threads", "threads that read files", |f| Count(&mut f.file_threads, 1, THREADS)),
    flag("--blocking-threads", "threads for /blocking", |f| {
        Count(&mut f.blocking_threads, 1, THREADS)
    }),
    flag("--gate", "requests that /gate lets in at a time", |f| Count(&mut f.gate, 1, THREADS)),
    flag("--limit-head", "bytes of a head, else 431", |f| Size(&mut f.limits.head, SHORTEST, HEAD)),
    flag("--limit-request-line", "bytes of its first line, else 414", |f| {
        Size(&mut f.limits.request_line, SHORTEST_LINE, HEAD)
    }),
    flag("--limit-fields", "field lines, else 431", |f| {
        Size(&mut f.limits.fields, 1, Limits::default().fields)
    }),
    flag("--limit-body", "bytes of a body, else 413", |f| Count(&mut f.limits.body, 0, u64::MAX)),
    flag("--limit-drain", "bytes of an unread body, else the connection closes", |f| {
        Count(&mut f.limits.drain, 0, u64::MAX)
    }),
    flag("--limit-connections", "connections at a time, else 503", |f| {
        Size(&mut f.limits.connections, 1, usize::MAX)
    }),
    flag("--limit-requests", "requests of a connection, which then closes", |f| {
        Count(&mut f.limits.requests, 1, u64::MAX)
    }),
    flag("--limit-pipelined", "requests in hand before others have their turn", |f| {
        Few(&mut f.limits.pipelined, 1, u32::MAX)
    }),
    flag("--bare-lf", "takes LF alone as the end of a line", |f| Switch(&mut f.bare_lf)),
    flag("--deadline-head", "for the whole head, then 408", |f| Span(&mut f.deadlines.head, 1)),
    flag("--deadline-body", "for each wait for a piece of a body", |f| {
        Span(&mut f.deadlines.body, 1)
    }),
    flag("--deadline-body-rate", "bytes a second of a body, at least", |f| {
        Count(&mut f.deadlines.body_rate, 0, u64::MAX)
    }),
    flag("--deadline-body-window", "over which that counts", |f| {
        Span(&mut f.deadlines.body_window, 1)
    }),
    flag("--deadline-handler", "for a handler, then 503", |f| Span(&mut f.deadlines.handler, 1)),
    flag("--deadline-write", "for a peer to take some of an answer", |f| {
        Span(&mut f.deadlines.write, 1)
    }),
    // Zero makes sense for these two: the connection closes at once.
    flag("--deadline-idle", "between two requests", |f| Span(&mut f.deadlines.idle, 0)),
    flag("--deadline-linger", "after an answer that is the last", |f| {
        Span(&mut f.deadlines.linger, 0)
    }),
];

impl Slot<'_> {
    fn set(self, option: &str, text: &str) -> Result<(), String> {
        let wrong = |what: &str| format!("{option}: expected {what}, not `{text}`");
        match self {
            Size(size, least, most) => *size = count(option, text, least, most)?,
            Count(number, least, most) => *number = count(option, text, least, most)?,
            Few(number, least, most) => *number = count(option, text, least, most)?,
            Switch(switch) => {
                *switch = match text {
                    "on" => true,
                    "off" => false,
                    _ => return Err(wrong("`on` or `off`")),
                }
            }
            Span(span, _) if text == "off" => *span = Duration::MAX,
            Span(span, least) => {
                let millis = text.parse().ok().filter(|millis| *millis >= least);
                let expected = format!("a number of milliseconds from {least}, or `off`");
                *span = Duration::from_millis(millis.ok_or_else(|| wrong(&expected))?);
            }
            Path(path) => *path = Some(PathBuf::from(text)),
        }
        Ok(())
    }

    fn unit(&self) -> &'static str {
        match self {
            Size(..) | Count(..) | Few(..) => "N",
            Switch(_) => "on|off",
            Span(..) => "MS",
            Path(_) => "DIR",
        }
    }

    fn value(&self) -> String {
        match self {
            Size(size, ..) => size.to_string(),
            Count(count, ..) => count.to_string(),
            Few(count, ..) => count.to_string(),
            Switch(switch) => if **switch { "on" } else { "off" }.to_owned(),
            Span(span, _) if **span == Duration::MAX => "off".to_owned(),
            Span(span, _) => span.as_millis().to_string(),
            Path(_) => "none".to_owned(),
        }
    }
}

impl Flags for HttpFlags {
    fn usage(&self) -> String {
        let mut defaults = self.clone();
        let line = |flag: &Flag| {
            let slot = (flag.slot)(&mut defaults);
            let option = format!("{} {}", flag.name, slot.unit());
            format!("  {option:<26}  {} ({})\n", flag.what, slot.value())
        };
        FLAGS.iter().map(line).collect()
    }

    fn take(&mut self, option: &str, value: &mut dyn FnMut() -> Value) -> Result<bool, String> {
        let Some(flag) = FLAGS.iter().find(|flag| flag.name == option) else { return Ok(false) };
        let text = value()?;
        (flag.slot)(self).set(option, &text)?;
        Ok(true)
    }

    fn config(&self) -> Config {
        let mut config = Config::new(self.limits, self.deadlines);
        config.bare_lf = self.bare_lf;
        config
    }

    fn threads(&self) -> usize {
        let HttpFlags { file_threads, blocking_threads, gate, .. } = self;
        usize::try_from(file_threads + blocking_threads + gate).expect("each has a bound")
    }

    fn bounds(&self) -> Vec<Bound> {
        let threads = |count| (count, "threads");
        let gate = (self.gate, "requests");
        vec![
            Bound::set("example.files", threads(self.file_threads), "--file-threads", "that read"),
            Bound::set(
                "example.blocking",
                threads(self.blocking_threads),
                "--blocking-threads",
                "for /blocking; others wait in line",
            ),
            Bound::set("example.gate", gate, "--gate", "in /gate; others are told so at once"),
        ]
    }
}

/// The word after an option.
type Value = Result<String, String>;
