//! The descendants of this process: counts them, and kills all of them.
//!
//! This process is their *subreaper*: when the parent of a process ends, the process becomes a
//! child of the subreaper. So a process is still a descendant if it leaves its session, or if all
//! its parents end.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{self, Pid, Signal, WaitOptions};

/// The longest time that killing may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether this module finds the descendants, by their lines in `/proc`. Elsewhere the group of the
/// program is killed, and its processes and memory are not counted.
pub const ARE_FOUND: bool = cfg!(target_os = "linux");

/// Makes this process the parent of each descendant that loses its parent.
#[cfg(not(target_os = "linux"))]
pub fn adopt() -> io::Result<()> {
    Ok(())
}

/// Makes this process the parent of each descendant that loses its parent.
#[cfg(target_os = "linux")]
pub fn adopt() -> io::Result<()> {
    Ok(process::set_child_subreaper(Some(process::getpid()))?)
}

/// The use of resources by the descendants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Their process ids.
    pub ids: Vec<i32>,
    /// Processes and threads.
    pub tasks: u64,
    /// Memory in MiB.
    pub memory: u64,
}

/// One line of `/proc/PID/stat`.
struct Stat {
    parent: i32,
    is_dead: bool,
    threads: u64,
    pages: u64,
}

fn stat(id: i32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name of the program comes before these fields, and may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let threads = fields.get(17)?.parse().ok()?;
    Some(Stat {
        // The first thread may have ended before the others.
        is_dead: matches!(*fields.first()?, "Z" | "X") && threads <= 1,
        parent: fields.get(1)?.parse().ok()?,
        threads,
        pages: fields.get(21)?.parse().ok()?,
    })
}

/// Finds the live descendants, and their use of resources.
pub fn usage() -> io::Result<Usage> {
    if !ARE_FOUND {
        return Ok(Usage::default());
    }
    let mut children: HashMap<i32, Vec<(i32, Stat)>> = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let id = entry?.file_name().to_string_lossy().parse();
        if let Ok(id) = id
            && let Some(stat) = stat(id)
        {
            children.entry(stat.parent).or_default().push((id, stat));
        }
    }
    let (mut usage, mut pages) = (Usage::default(), 0);
    let mut parents = vec![process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for (id, stat) in children.remove(&parent).unwrap_or_default() {
            parents.push(id);
            if !stat.is_dead {
                usage.ids.push(id);
                usage.tasks += stat.threads;
                pages += stat.pages;
            }
        }
    }
    usage.memory = (pages * rustix::param::page_size() as u64) >> 20;
    Ok(usage)
}

/// Waits for the children that have ended. Returns the status of `main` if it is among them.
pub fn reap(main: Pid) -> Option<ExitStatus> {
    let mut found = None;
    while let Ok(Some((id, status))) = process::wait(WaitOptions::NOHANG) {
        if id == main {
            found = Some(ExitStatus::from_raw(status.as_raw()));
        }
    }
    found
}

/// Kills all descendants: first the session of `main` in one step, then the processes that have
/// left it. Returns the status of `main` if it had not ended before.
pub fn kill_session(main: Pid) -> io::Result<Option<ExitStatus>> {
    // An error means that the session has ended already.
    let _ = process::kill_process_group(main, Signal::KILL);
    kill_all(main)
}

/// Kills all descendants, and waits for them. Returns the status of `main`, as above.
pub fn kill_all(main: Pid) -> io::Result<Option<ExitStatus>> {
    let (start, mut found) = (Instant::now(), None);
    loop {
        let left = usage()?.ids;
        for id in left.iter().filter_map(|id| Pid::from_raw(*id)) {
            let _ = process::kill_process(id, Signal::KILL);
        }
        found = found.or(reap(main));
        if left.is_empty() {
            return Ok(found);
        }
        if start.elapsed() > PATIENCE {
            return Err(io::Error::other("processes of the program go on in spite of SIGKILL"));
        }
        thread::sleep(Duration::from_millis(1));
    }
}
