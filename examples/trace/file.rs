//! What the command asks the system about the file of a log: which file it is, and which process is
//! writing it.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek as _, SeekFrom};
#[cfg(unix)]
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use trace_tool::look::Writer;

/// The process that has this file open for writing, as far as we are allowed to see. On a system
/// other than Linux, none is seen.
pub fn writer(file: &Metadata) -> Option<Writer> {
    let ago = SystemTime::now().duration_since(file.modified().ok()?).unwrap_or_default();
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.filter(|pid| writes(*pid, file)).min()?;
    // The log counts in microseconds.
    let ago = Duration::from_micros(ago.as_micros() as u64);
    Some(Writer { pid, ago })
}

/// Whether the process has the file open for writing.
fn writes(pid: u32, file: &Metadata) -> bool {
    // The last two bits are the access mode; 0 is read-only.
    const ACCESS: u32 = 3;
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|descriptor| {
        let is_it = fs::metadata(descriptor.path()).is_ok_and(|other| is_one(&other, file));
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

/// Whether two paths lead to one file.
pub fn is_same(a: &Path, b: &Path) -> bool {
    let is_one = match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => is_one(&a, &b),
        _ => false,
    };
    is_one || a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

#[cfg(unix)]
fn is_one(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Knows nothing: only Unix has a number for each file.
#[cfg(not(unix))]
fn is_one(_: &Metadata, _: &Metadata) -> bool {
    false
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
