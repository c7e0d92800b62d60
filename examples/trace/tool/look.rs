//! The time of a view of a log: its end, a given time, or now.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use kernel::trace::Span;
use testing::trace::{Line, span};
use traps::Time;

use super::now::Now;

/// A process that is writing the log.
#[derive(Clone, Copy, Debug)]
pub struct Writer {
    /// The process.
    pub pid: u32,
    /// How long ago it wrote last. Because the kernel writes whenever it is about to sleep, this is
    /// also the age of the last event.
    pub ago: Duration,
}

impl Writer {
    /// The process that has this file open for writing, as far as we are allowed to see.
    pub fn of(file: &Metadata) -> Option<Writer> {
        let ago = SystemTime::now().duration_since(file.modified().ok()?).unwrap_or_default();
        let pids = fs::read_dir("/proc").ok()?.flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let pid = pids.filter(|pid| writes(*pid, file)).min()?;
        // The log counts in microseconds.
        let ago = Duration::from_micros(ago.as_micros() as u64);
        Some(Writer { pid, ago })
    }
}

impl Writer {
    /// Describes a log that continues after its last line.
    pub fn in_words(self, last: Time) -> String {
        let Writer { pid, ago } = self;
        let (time, ago) = (last + ago, Span(ago));
        format!("now ({time} s), {ago} after the last event; process {pid} is writing the trace")
    }
}

/// Whether the process has the file open for writing.
fn writes(pid: u32, file: &Metadata) -> bool {
    // The last two bits are the access mode; 0 is read-only.
    const ACCESS: u32 = 3;
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        let is_it = fs::metadata(descriptor.path())
            .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()));
        let number = descriptor.file_name();
        let info = Path::new("/proc").join(pid.to_string()).join("fdinfo").join(number);
        is_it
            && fs::read_to_string(info).is_ok_and(|info| {
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                let flags = flags.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok());
                flags.is_some_and(|flags| flags & ACCESS != 0)
            })
    })
}

/// The length of a file without an incomplete last line.
///
/// # Errors
///
/// Those of the file.
pub fn whole_lines(file: &mut File, length: u64) -> io::Result<u64> {
    const BACK: u64 = 1 << 16;
    let from = length.saturating_sub(BACK);
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    Read::by_ref(file).take(length - from).read_to_end(&mut end)?;
    file.rewind()?;
    let last = end.iter().rposition(|byte| *byte == b'\n');
    Ok(last.map_or(length, |last| from + last as u64 + 1))
}

/// Whether the header of a trace has a virtual clock, so that no time passes by itself.
///
/// # Errors
///
/// Those of the file.
pub fn is_virtual(file: &mut File) -> io::Result<bool> {
    const HEADER: u64 = 64;
    let mut start = Vec::new();
    Read::by_ref(file).take(HEADER).read_to_end(&mut start)?;
    file.rewind()?;
    let start = String::from_utf8_lossy(&start);
    Ok(start.lines().next().is_some_and(|header| header.contains(" clock=virtual ")))
}

/// Parses a time from a user: `3.25`, `3.25s` or `250ms`.
///
/// # Errors
///
/// The expected input.
pub fn time(text: &str) -> Result<Time, String> {
    let found = span(text).or_else(|| span(&format!("{text}s"))).filter(|_| text != "never");
    let time = found.map(|span| Time::ZERO + span);
    time.ok_or_else(|| format!("expected a time of the trace such as 3.25 or 250ms, not `{text}`"))
}

/// The time of the view.
#[derive(Debug, Default)]
pub struct Look {
    at: Option<Time>,
    writer: Option<Writer>,
    /// The reason why no more lines count.
    over: Over,
}

/// The lines that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Over {
    /// All lines so far, and there may be more.
    #[default]
    No,
    /// All that there are.
    Halted,
    /// The lines up to the requested time.
    Later,
    /// The lines up to the failure of the run. Nothing could wake its tasks any more, and the rest
    /// is their end.
    Failed,
}

impl Look {
    /// Views the log at that time, or now if a process is writing the log, or at its end.
    pub fn new(at: Option<Time>, writer: Option<Writer>) -> Look {
        Look { at, writer, over: Over::No }
    }

    /// Whether the next line counts.
    pub fn wants(&mut self, line: &Line<'_>) -> bool {
        if self.over == Over::Failed || self.over == Over::Later {
            return false;
        }
        if self.at.is_some_and(|at| line.at > at) {
            self.over = Over::Later;
        } else if line.verb == "drop" && line.word(0) == "its_run_failed" {
            self.over = Over::Failed;
        } else {
            // A test may run several kernels, one after the other.
            self.over = if line.verb == "halt" { Over::Halted } else { Over::No };
            return true;
        }
        false
    }

    /// The process that is still writing after the last line.
    fn goes_on(&self) -> Option<Writer> {
        self.writer.filter(|_| self.over == Over::No)
    }

    /// The time of the view.
    ///
    /// # Errors
    ///
    /// The log ends before the requested time.
    pub fn time(&self, now: &Now) -> Result<Time, String> {
        let end = now.last.at + self.goes_on().map_or(Duration::ZERO, |writer| writer.ago);
        match self.at {
            Some(at) if at > end && self.over != Over::Later => {
                let what = if self.over == Over::Failed { "its run failed" } else { "it ends" };
                Err(format!("expected a time up to {end} s, when {what}, not {at}"))
            }
            Some(at) => Ok(at),
            None => Ok(end),
        }
    }

    /// The same in words.
    pub fn in_words(&self, time: Time, now: &Now) -> String {
        match (self.at, self.over, self.goes_on()) {
            (Some(_), ..) => format!("at {time} s"),
            (None, Over::Failed, _) => format!("when the run failed ({time} s)"),
            (None, _, Some(writer)) => writer.in_words(now.last.at),
            (None, ..) => format!("at the end of the trace ({time} s)"),
        }
    }
}
