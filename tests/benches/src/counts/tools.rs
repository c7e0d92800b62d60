//! The programs that count, valgrind and strace, and parsers of their output.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::mem;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};

use crate::{out, sys, tied};

/// The tool that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool {
    /// Instructions in user space.
    Callgrind,
    /// Instructions in user space, of the flight recorder alone.
    Packing,
    /// Instructions in user space, by source file.
    Files,
    /// Allocations.
    Memcheck,
    /// System calls.
    Strace,
}

impl Tool {
    /// The command line before the program's own. The process of the tool becomes that of the
    /// program, so a signal reaches the program. The counts go to standard error.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Tool::Callgrind => {
                &["valgrind", "--vgdb=no", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            }
            Tool::Packing => &[
                "valgrind",
                "--vgdb=no",
                "--tool=callgrind",
                "--callgrind-out-file=/dev/null",
                "--toggle-collect=*LineRecorder*record_line*",
            ],
            Tool::Files => &[
                "valgrind",
                "--vgdb=no",
                "--tool=callgrind",
                "--log-file=/dev/null",
                "--callgrind-out-file=/dev/stderr",
            ],
            Tool::Memcheck => &[
                "valgrind",
                "--vgdb=no",
                "--tool=memcheck",
                "--leak-check=no",
                "--undef-value-errors=no",
            ],
            // Through a pipe, so that each line is complete. Otherwise output of the program on
            // standard error would be in the middle of lines.
            Tool::Strace => &[
                "strace",
                "-D",
                "-f",
                "-C",
                "-s0",
                "-esignal=none",
                "-o|cat >&2",
                "sh",
                "-c",
                "exec \"$0\" \"$@\" 2>/dev/null",
            ],
        }
    }

    /// A command that ends with this process, with the tool's words in it.
    ///
    /// # Errors
    ///
    /// Returns an error if the system does not find this program.
    pub fn command(self) -> io::Result<Command> {
        // Batch scheduling: a server that wakes up does not preempt the client that woke it, which
        // continues to send on its other connections. So a turn finds all of them.
        let mut command = tied::command("chrt")?;
        command.args(["--batch", "0"]).args(self.words());
        Ok(command)
    }

    /// Its output, or `None` if the output is incomplete.
    pub fn read(self, text: &str) -> Option<Counted> {
        match self {
            Tool::Callgrind | Tool::Packing => one(text, "Collected :", ' ').map(Counted::of),
            Tool::Files => files(text),
            Tool::Memcheck => one(text, "total heap usage:", ' ').map(Counted::of),
            Tool::Strace => calls(text),
        }
    }
}

/// The counts: the total, and by name if there are names.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub all: u64,
    pub by_name: BTreeMap<String, u64>,
}

impl Counted {
    pub fn of(all: u64) -> Counted {
        Counted { all, by_name: BTreeMap::new() }
    }

    pub fn named(&self, name: &str) -> u64 {
        self.by_name.get(name).copied().unwrap_or(0)
    }
}

/// The output of a tool, in memory, so that an interrupted run leaves no file.
pub struct Report(File);

/// How long a tool may take to write it.
const PATIENCE: Duration = Duration::from_secs(30);

impl Report {
    /// # Errors
    ///
    /// The system's.
    pub fn new() -> io::Result<Report> {
        Ok(Report(memfd_create("trapline-report", MemfdFlags::CLOEXEC)?.into()))
    }

    /// As a program's standard error.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn errors(&self) -> io::Result<Stdio> {
        Ok(self.0.try_clone()?.into())
    }

    /// Waits until it is complete, because strace runs a little longer than its program.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or an error if the output is unexpected.
    pub fn read(&self, tool: Tool) -> io::Result<Counted> {
        let start = Instant::now();
        loop {
            let mut bytes = vec![0; usize::try_from(self.0.metadata()?.len()).unwrap_or(0)];
            // The writer shares the position of this file, so the position must not move.
            self.0.read_exact_at(&mut bytes, 0)?;
            let text = String::from_utf8_lossy(&bytes);
            if let Some(counted) = tool.read(&text) {
                return Ok(counted);
            }
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("{tool:?} said only: {text}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The number after `label`, with or without commas.
fn one(text: &str, label: &str, end: char) -> Option<u64> {
    let after = text.lines().find_map(|line| line.split_once(label))?.1.trim_start();
    after.split(end).next()?.replace(',', "").parse().ok()
}

/// A profile of callgrind: lines `fl=(1) NAME`, later `fl=(1)`, and after each the costs of lines
/// of that file. `fi` and `fe` name the file of inlined code, `cfi` and `cfl` that of a call; the
/// next line has the cost of the call. The last line has the total.
fn files(text: &str) -> Option<Counted> {
    let (mut names, mut counted) = (BTreeMap::new(), Counted::default());
    let (mut file, mut is_of_a_call) = ("", false);
    for line in text.lines() {
        if let Some((word, value)) = line.split_once('=') {
            is_of_a_call = word == "calls";
            if ["fl", "fi", "fe", "cfi", "cfl"].contains(&word) {
                let (number, name) = value.split_once(' ').unwrap_or((value, ""));
                let known = names.entry(number).or_insert(name);
                file = if word.starts_with('c') { file } else { known };
            }
        } else if line.starts_with(|it: char| it.is_ascii_digit() || "+-*".contains(it))
            && let Some((_, cost)) = line.split_once(' ')
            && let Ok(cost) = cost.parse::<u64>()
            && !mem::take(&mut is_of_a_call)
        {
            *counted.by_name.entry(file.to_owned()).or_default() += cost;
            counted.all += cost;
        }
    }
    let total = text.lines().next_back()?.strip_prefix("totals: ")?;
    (total.trim().parse() == Ok(counted.all)).then_some(counted)
}

/// Calls that do not count. Only time decides about a reading of a clock (a kernel reads its CPU
/// time after a long run), about the sleeps of the watchdog thread, and about the number of writes
/// of the program's log (sockets use `send`). Memory counts as allocations.
const UNCOUNTED: [&str; 9] =
    ["clock_gettime", "futex", "write", "brk", "mmap", "munmap", "mremap", "mprotect", "madvise"];

/// The lines of `strace -C`, a call each, and the table below them, which ends it. Without
/// [`UNCOUNTED`], and without two more that depend only on time: a call that a stop of the server
/// has interrupted, and a wait that found nothing (a kernel with ready tasks asks the machine once
/// a tick).
fn calls(text: &str) -> Option<Counted> {
    let mut counted = Counted::default();
    for line in text.lines() {
        if line.starts_with("100.00") && line.ends_with(" total") {
            return Some(counted);
        }
        let Some((name, result)) = call(line) else { continue };
        let is_wait = name.starts_with("epoll_") && name.ends_with("wait");
        let is_interrupted = result.starts_with('?') || result.starts_with("-1 EINTR");
        if !(is_wait && result == "0" || is_interrupted || UNCOUNTED.contains(&name)) {
            *counted.by_name.entry(name.to_owned()).or_default() += 1;
            counted.all += 1;
        }
    }
    None
}

/// The name of a call and its result, of a line `12 recvfrom(3, "", 1, 0, NULL, NULL) = 0` or
/// `12 <... futex resumed>) = 0`. A line with only the beginning of a call has no result.
fn call(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(|it: char| it.is_ascii_digit() || it == ' ');
    let name = line.strip_prefix("<... ").unwrap_or(line);
    let end = name.find(|it: char| !it.is_ascii_alphanumeric() && it != '_')?;
    let (_, result) = line.rsplit_once(" = ")?;
    (end > 0).then(|| (&name[..end], result.trim()))
}

/// Checks that all of these programs exist. The error names the missing packages.
pub fn check<'t>(tools: impl IntoIterator<Item = &'t str>) -> Result<(), String> {
    let is_missing = |tool: &&str| {
        let mut command = Command::new(tool);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_err()
    };
    let missing: Vec<&str> = tools.into_iter().filter(is_missing).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let package = |tool| if tool == "chrt" { "util-linux" } else { tool };
    let mut packages: Vec<&str> = missing.iter().map(|tool| package(*tool)).collect();
    packages.dedup();
    let (missing, packages) = (missing.join(", "), packages.join(" "));
    Err(format!("not found: {missing}; install the packages: {packages}"))
}

/// Does the work for each of `all`, on all cores at once, and returns the results in their order.
///
/// Each thread, with the processes that it starts, keeps to one core, so a client and its server
/// always take turns in the same way.
///
/// # Errors
///
/// Returns the first error of the work. Work that has not begun by then is not done.
pub fn on_all_cores<T: Sync, R: Send>(
    all: &[T],
    work: impl Fn(&T) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let one_core = |core| {
        if sys::pin(core).is_err() {
            out::note("warning: not pinned to one core; counts of servers may wander");
        }
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = all.get(place) else { break };
            let result = work(item);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            done.push((place, result));
        }
        done
    };
    let mut done = thread::scope(|scope| {
        let one_core = &one_core;
        let cores = sys::own_cores().into_iter();
        let threads: Vec<_> = cores.map(|core| scope.spawn(move || one_core(core))).collect();
        let joined = threads.into_iter().map(|thread| thread.join().expect("it does not panic"));
        joined.flatten().collect::<Vec<_>>()
    });
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_words_are_understood() {
        let text = "==1== Events    : Ir\n==1== Collected : 123456\n";
        assert_eq!(Tool::Callgrind.read(text).unwrap().all, 123_456);
        let text = "==1==   total heap usage: 1,234 allocs, 5 frees, 6 bytes allocated\n";
        assert_eq!(Tool::Memcheck.read(text).unwrap().all, 1234);
        let text = "pid: 7\nfl=(1) /a/x.rs\nfn=(1) f\n3 40\nfi=(2) /a/y.rs\n+1 5\ncfi=(3) /a/z.rs\n\
            calls=1 7\n* 900\nfe=(1)\n-1 2\n\ntotals: 47\n";
        let counted = Tool::Files.read(text).unwrap();
        assert_eq!((counted.named("/a/x.rs"), counted.named("/a/y.rs")), (42, 5));
        let text = "recvfrom(9, \"\"..., 64, 0, NULL, NULL) = 64\n\
            sendto(9, \"\"..., 64, MSG_NOSIGNAL, NULL, 0) = 64\n\
            17    recvfrom(9,  <unfinished ...>\n\
            4     close(5) = 0\n\
            4     brk(NULL) = 0x55\n\
            17    <... recvfrom resumed>0x7, 64, 0, NULL, NULL) = -1 EAGAIN (x = y)\n\
            +++ killed by SIGTERM +++\n\
            100.00    0.000010           0         4         1 total\n";
        let counted = Tool::Strace.read(text).unwrap();
        assert_eq!((counted.all, counted.named("recvfrom"), counted.named("sendto")), (4, 2, 1));
    }

    #[test]
    fn a_call_on_which_time_alone_decides_does_not_count() {
        let text = "epoll_wait(3, [], 1024, 0) = 0\n\
            epoll_wait(3, 0x5, 1024, -1) = -1 EINTR (Interrupted system call)\n\
            epoll_wait(3, [{events=EPOLLIN, data={u32=1, u64=1}}], 1024, -1) = 1\n\
            7     <... futex resumed>) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)\n\
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, {tv_sec=0, tv_nsec=6}) = 0\n\
            100.00    0.000010           0         5         2 total\n";
        let counted = Tool::Strace.read(text).unwrap();
        assert_eq!((counted.all, counted.named("epoll_wait")), (1, 1));
    }

    #[test]
    fn results_come_in_order_and_an_error_ends_it() {
        let all: Vec<u64> = (0..100).collect();
        assert_eq!(on_all_cores(&all, |n| Ok(*n)), Ok(all.clone()));
        let odd = |n: &u64| if *n == 7 { Err("7".to_owned()) } else { Ok(*n) };
        assert_eq!(on_all_cores(&all, odd), Err("7".to_owned()));
    }

    #[test]
    fn a_tool_that_is_missing_is_named_with_its_package() {
        assert_eq!(check([]), Ok(()));
        let error = check(["nosuch-tool"]).unwrap_err();
        assert_eq!(error, "not found: nosuch-tool; install the packages: nosuch-tool");
    }

    #[test]
    fn a_report_that_is_not_whole_is_none() {
        assert!(Tool::Strace.read("brk(NULL) = 0x55\n").is_none());
        assert!(Tool::Callgrind.read("==1== Events    : Ir\n").is_none());
    }
}
