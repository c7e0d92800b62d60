//! The programs that count: valgrind and strace, and what they print.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::out;

/// What counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool {
    /// Instructions in user space.
    Callgrind,
    /// Allocations.
    Memcheck,
    /// System calls.
    Strace,
}

impl Tool {
    /// The command line before the program's own. What it found is then in `report`.
    pub fn command(self, report: &Path) -> Command {
        // Batch: a server that wakes up does not take the processor from the client that woke it,
        // which goes on to send on its other connections. So a turn finds all of them.
        let mut command = Command::new("chrt");
        command.args(["--batch", "0"]);
        let report = report.display();
        match self {
            Tool::Callgrind => command.args(["valgrind", "--tool=callgrind"]).args([
                "--callgrind-out-file=/dev/null".to_owned(),
                format!("--log-file={report}"),
            ]),
            Tool::Memcheck => command
                .args(["valgrind", "--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"])
                .arg(format!("--log-file={report}")),
            // `-D`: the program keeps the process that was started, so a signal reaches it.
            Tool::Strace => {
                command.args(["strace", "-D", "-f", "-c", "-o"]).arg(report.to_string())
            }
        };
        command
    }

    /// What it printed, or `None` if that is not all there.
    pub fn read(self, text: &str) -> Option<Counted> {
        match self {
            Tool::Callgrind => one(text, "Collected :", ' ').map(Counted::of),
            Tool::Memcheck => one(text, "total heap usage:", ' ').map(Counted::of),
            Tool::Strace => calls(text),
        }
    }
}

/// What was counted: all, and by name where there are names.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub all: u64,
    pub by_name: BTreeMap<String, u64>,
}

impl Counted {
    fn of(all: u64) -> Counted {
        Counted { all, by_name: BTreeMap::new() }
    }

    pub fn named(&self, name: &str) -> u64 {
        self.by_name.get(name).copied().unwrap_or(0)
    }
}

/// The number behind `label`, with or without commas.
fn one(text: &str, label: &str, end: char) -> Option<u64> {
    let after = text.lines().find_map(|line| line.split_once(label))?.1.trim_start();
    after.split(end).next()?.replace(',', "").parse().ok()
}

/// The table of `strace -c`: `% time, seconds, usecs/call, calls, [errors], syscall`.
fn calls(text: &str) -> Option<Counted> {
    let mut counted = Counted::default();
    let mut is_whole = false;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [share, _, _, calls, .., name] = words.as_slice() else { continue };
        let (Ok(_), Ok(calls)) = (share.parse::<f64>(), calls.parse::<u64>()) else { continue };
        if *name == "total" {
            counted.all = calls;
            is_whole = true;
        } else {
            counted.by_name.insert((*name).to_owned(), calls);
        }
    }
    is_whole.then_some(counted)
}

/// Whether all of these programs are there; the error names what to install.
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
    let package = |tool| if ["chrt", "taskset"].contains(&tool) { "util-linux" } else { tool };
    let mut packages: Vec<&str> = missing.iter().map(|tool| package(*tool)).collect();
    packages.dedup();
    let (missing, packages) = (missing.join(", "), packages.join(" "));
    Err(format!("not found: {missing}; install the packages: {packages}"))
}

/// Has this process and those that it starts run on one processor: a client and its server take
/// turns then, always in the same way.
pub fn stay_on_one_cpu() {
    let this = std::process::id().to_string();
    let pinned = Command::new("taskset")
        .args(["--all-tasks", "--cpu-list", "--pid", "0", &this])
        .stdout(Stdio::null())
        .status();
    if !pinned.is_ok_and(|status| status.success()) {
        out::note("warning: not pinned to one processor; counts of servers may wander");
    }
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
        let text = "% time     seconds  usecs/call     calls    errors syscall\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
             60.00    0.000006           1         7         2 recvfrom\n\
             40.00    0.000004           1         4           sendto\n\
            ------ ----------- ----------- --------- --------- ----------------\n\
            100.00    0.000010           0        11         2 total\n";
        let counted = Tool::Strace.read(text).unwrap();
        assert_eq!((counted.all, counted.named("recvfrom"), counted.named("sendto")), (11, 7, 4));
    }

    #[test]
    fn a_tool_that_is_missing_is_named_with_its_package() {
        assert_eq!(check([]), Ok(()));
        let error = check(["nosuch-tool"]).unwrap_err();
        assert_eq!(error, "not found: nosuch-tool; install the packages: nosuch-tool");
    }

    #[test]
    fn a_report_that_is_not_whole_is_none() {
        assert!(Tool::Strace.read(" 60.00 0.000006 1 7 2 recvfrom\n").is_none());
        assert!(Tool::Callgrind.read("==1== Events    : Ir\n").is_none());
    }
}
