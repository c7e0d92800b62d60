//! The guard: a process that runs an untrusted program, and removes everything that the program
//! leaves.
//!
//! The grader starts `course guard`, which starts `course confined`, which becomes the program:
//!
//! ```text
//! grader ── guard ── program ── whatever it starts
//! ```
//!
//! 1. *Confined* opens a session, sets the limits of the system, and executes the program.
//! 2. Every few milliseconds the guard checks the time, the output, the processes and the memory of
//!    everything that the program has started. It kills all of it when a limit is exceeded, when
//!    the program has ended, or when the grader has gone.
//! 3. Then it reads the output. The output goes into files, not into pipes, so a process that holds
//!    standard output open delays nothing, and a system limit bounds the size.
//! 4. It removes the scratch folder, and reports to the grader in JSON.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt, parent_id};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use course::limits::{self, Limits};
use rustix::process::{self, Pid, Resource, Rlimit, Signal};
use serde_json::json;

use crate::processes;

/// The interval of the guard's checks. The first checks follow sooner, because most programs end
/// soon.
const PERIOD: Duration = Duration::from_millis(20);

/// The interval for a build, in which the student's code cannot start processes.
const BUILD_PERIOD: Duration = Duration::from_millis(100);

/// The command that a guard runs.
#[derive(clap::Args)]
pub struct Order {
    /// The process id of the grader
    #[arg(long)]
    parent: u32,
    /// It is a build: it runs in this folder, and has the limits of a build
    #[arg(long)]
    build: bool,
    /// The limit of time
    #[arg(long)]
    millis: u64,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Order {
    /// Whether a wait for the lock of another cargo does not count. In `cargo test` a student's
    /// code could print the line with which cargo reports the wait.
    fn may_wait(&self) -> bool {
        self.build && self.command.get(1).is_some_and(|verb| verb == "build")
    }

    fn limits(&self) -> Limits {
        let limits = if self.build { limits::BUILD } else { limits::RUN };
        Limits { time: Duration::from_millis(self.millis), ..limits }
    }
}

/// The environment of a program.
#[derive(clap::Args)]
pub struct Confined {
    #[arg(long)]
    build: bool,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// A new folder in the system's folder for temporary files, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// Makes the folder, for this user only.
    pub fn new() -> io::Result<Scratch> {
        let base = env::temp_dir();
        for nth in 0.. {
            let folder = base.join(format!("trapline-lab-{}-{nth}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Scratch(folder)),
            }
        }
        unreachable!("some number is free")
    }

    /// Puts the program and an empty folder `work` into it. The program stays there even if another
    /// build replaces the original, because the compiler then makes a new file.
    pub fn furnish(&self, program: &Path) -> io::Result<(PathBuf, PathBuf)> {
        let (own, work) = (self.0.join("program"), self.0.join("work"));
        // The copy of a debug build would take longer than its run. Only a program on another file
        // system needs one.
        if fs::hard_link(fs::canonicalize(program)?, &own).is_err() {
            fs::copy(program, &own)?;
        } else if own.metadata()?.mode() & 0o100 == 0 {
            // An earlier run has taken this right from its file, which is the same one.
            fs::set_permissions(&own, Permissions::from_mode(0o755))?;
        }
        fs::create_dir(&work)?;
        Ok((own, work))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let is_left = fs::remove_dir_all(&self.0).is_err()
            && fs::symlink_metadata(&self.0).is_ok_and(|found| found.is_dir());
        if is_left {
            // A folder may be closed to its owner, or nested more deeply than the number of files
            // that may be open.
            for (tool, how) in [("chmod", "u+rwx"), ("rm", "-f")] {
                drop(Command::new(tool).args(["-R", how, "--"]).arg(&self.0).status());
            }
        }
    }
}

/// Sets the limits, and executes the program. Returns only if that fails.
pub fn confined(order: &Confined) -> Result<ExitCode, String> {
    let failed = |error: io::Error| {
        eprintln!("cannot execute {}: {error}", order.command[0].display());
        Ok(ExitCode::from(limits::NOT_EXECUTED))
    };
    if let Err(error) = confine(&if order.build { limits::BUILD } else { limits::RUN }) {
        return failed(error);
    }
    failed(Command::new(&order.command[0]).args(&order.command[1..]).exec())
}

fn confine(limits: &Limits) -> io::Result<()> {
    process::setsid()?;
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    for (resource, most) in [
        (Resource::Core, 0),
        (Resource::Cpu, limits.cpu),
        (Resource::Data, limits.memory << 20),
        (Resource::Fsize, limits.file << 20),
        (Resource::Nofile, limits.open),
    ] {
        // Keep a limit that is already lower.
        let now = process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        // The system sends SIGXCPU, which names the reason, only if SIGKILL is due later.
        let later = most + u64::from(resource == Resource::Cpu);
        let (current, maximum) = (Some(most.min(now)), Some(later.min(now)));
        process::setrlimit(resource, Rlimit { current, maximum })?;
    }
    Ok(())
}

/// Runs a program to its end or to a limit, and prints the report.
pub fn guard(order: &Order) -> Result<ExitCode, String> {
    let scratch = Scratch::new().map_err(|error| format!("cannot make a folder: {error}"))?;
    let ran = Run::new(order, &scratch).and_then(|run| run.watched(order));
    if ran.is_err() {
        // No process may outlive the guard. The first error is reported.
        drop(processes::kill_all(process::getpid()));
    }
    drop(scratch);
    match ran {
        Ok(Some(report)) => {
            println!("{report}");
            Ok(ExitCode::SUCCESS)
        }
        Ok(None) => Ok(ExitCode::FAILURE),
        Err(error) => Err(format!("cannot run {}: {error}", order.command[0].display())),
    }
}

/// Runs a student's own program on the terminal: without limits, and until Ctrl-C, but in a scratch
/// folder, and without leaving anything. `taken` is kept until the program is there.
pub fn attended(program: &Path, seed: u64, taken: File) -> io::Result<ExitCode> {
    processes::adopt()?;
    let scratch = Scratch::new()?;
    let (program, work) = scratch.furnish(program)?;
    drop(taken);
    let (started, asked) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(false)));
    let (group, has_asked) = (Arc::clone(&started), Arc::clone(&asked));
    ctrlc::set_handler(move || {
        // The first Ctrl-C asks the program to end, and the next one kills it. An error means that
        // it has ended.
        let signal =
            if has_asked.swap(true, Ordering::SeqCst) { Signal::KILL } else { Signal::INT };
        if let Some(id) = group.get() {
            let _ = process::kill_process_group(*id, signal);
        }
    })
    .map_err(io::Error::other)?;
    let mut command = Command::new(program);
    command.arg(seed.to_string()).current_dir(work).stdin(Stdio::null());
    // It is not in the terminal's group, so that each Ctrl-C reaches it only once, from the
    // handler.
    let id = Pid::from_child(&command.process_group(0).spawn()?);
    started.get_or_init(|| id);
    // A Ctrl-C before the line above found no program.
    if asked.load(Ordering::SeqCst) {
        let _ = process::kill_process_group(id, Signal::INT);
    }
    let status = loop {
        if let Some(status) = processes::reap(id) {
            break status;
        }
        thread::sleep(PERIOD);
    };
    processes::kill_session(id)?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The limit that a program has exceeded.
enum Over {
    Time,
    /// In words that follow `your program`.
    Other(String),
}

/// A program that runs.
struct Run {
    id: Pid,
    start: Instant,
    limits: Limits,
    out: File,
    err: File,
}

impl Run {
    fn new(order: &Order, scratch: &Scratch) -> io::Result<Run> {
        processes::adopt()?;
        let file = |name| {
            let mut options = OpenOptions::new();
            let path = scratch.0.join(name);
            let file = options.read(true).append(true).create_new(true).mode(0o600).open(&path)?;
            // It is known by its descriptor only.
            fs::remove_file(path).map(|()| file)
        };
        let (out, err) = (file("out")?, file("err")?);
        let mut command = Command::new(env::current_exe()?);
        command.arg("confined");
        if order.build {
            command.args(["--build", "--"]).args(&order.command);
        } else {
            let (program, work) = scratch.furnish(Path::new(&order.command[0]))?;
            command.arg("--").arg(program).args(&order.command[1..]).current_dir(&work);
            let path = env::var_os("PATH").unwrap_or_default();
            command.env_clear().env("PATH", path).env("RUST_BACKTRACE", "1");
            command.env("HOME", &work).env("TMPDIR", &work);
        }
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(err.try_clone()?);
        let child = command.spawn()?;
        let id = Pid::from_child(&child);
        Ok(Run { id, start: Instant::now(), limits: order.limits(), out, err })
    }

    /// The report; `None` if the grader has gone.
    fn watched(mut self, order: &Order) -> io::Result<Option<String>> {
        let (mut is_waiting, mut period) = (false, Duration::from_millis(1));
        let (mut status, mut stopped) = (None, None);
        let mut is_grader_there = true;
        while status.is_none() && stopped.is_none() && is_grader_there {
            thread::sleep(period);
            period = if order.build { BUILD_PERIOD } else { PERIOD }.min(period * 2);
            status = processes::reap(self.id);
            stopped = self.is_over()?;
            is_grader_there = parent_id() == order.parent;
            if order.may_wait() && self.is_blocked()? {
                self.start = Instant::now();
                if !is_waiting {
                    eprintln!("course: another cargo is at work; waiting");
                }
                is_waiting = true;
            }
        }
        let last = processes::kill_session(self.id)?;
        let status = status.or(last.filter(|_| stopped.is_none()));
        if stopped.is_none() {
            // It may have exceeded a limit between two checks, or the system has stopped it.
            stopped = self.is_output_over()?;
        }
        if let (None, Some(status)) = (&stopped, status) {
            stopped = self.by_signal(status)?;
        }
        is_grader_there.then(|| self.report(status, stopped)).transpose()
    }

    /// The limit that the program exceeds now.
    fn is_over(&self) -> io::Result<Option<Over>> {
        let (usage, limits) = (processes::usage()?, &self.limits);
        Ok(if self.start.elapsed() >= limits.time {
            Some(Over::Time)
        } else if usage.tasks > limits.tasks {
            let why = format!("has more than {} processes and threads", limits.tasks);
            Some(Over::Other(why))
        } else if usage.memory > limits.memory {
            Some(Over::Other(format!("uses more than {} MiB of memory", limits.memory)))
        } else {
            self.is_output_over()?
        })
    }

    fn is_output_over(&self) -> io::Result<Option<Over>> {
        let printed = self.out.metadata()?.len() + self.err.metadata()?.len();
        let most = self.limits.output;
        let is_over = printed > most << 20;
        Ok(is_over.then(|| Over::Other(format!("has printed more than {most} MiB"))))
    }

    /// The limit at which the system has stopped the program.
    fn by_signal(&self, status: ExitStatus) -> io::Result<Option<Over>> {
        let limits = &self.limits;
        let why = match status.signal().and_then(Signal::from_named_raw) {
            Some(Signal::XCPU) => format!("has used more than {} s of CPU time", limits.cpu),
            Some(Signal::XFSZ) => format!("has written a file of more than {} MiB", limits.file),
            Some(Signal::ABORT)
                if read(&self.err, 0, self.limits.output << 20)?
                    .contains("memory allocation of ") =>
            {
                format!("uses more than {} MiB of memory", limits.memory)
            }
            _ => return Ok(None),
        };
        Ok(Some(Over::Other(why)))
    }

    /// Whether cargo waits for the lock of another cargo. Then it has compiled nothing. Later lines
    /// may come from a student's `compile_error!`.
    fn is_blocked(&self) -> io::Result<bool> {
        let said = read(&self.err, 0, self.limits.output << 20)?;
        let is_wait = |line: &str| line.trim_start().starts_with("Blocking waiting for file lock");
        Ok(!said.is_empty() && said.lines().all(is_wait))
    }

    fn report(&self, status: Option<ExitStatus>, stopped: Option<Over>) -> io::Result<String> {
        let (is_late, why) = match stopped {
            Some(Over::Time) => (true, None),
            Some(Over::Other(why)) => (false, Some(why)),
            None => (false, None),
        };
        // Of an endless output, the end shows what the program repeats, and the beginning of
        // standard error has the first panic.
        let kept = if why.is_some() { 64 << 10 } else { self.limits.output << 20 };
        let printed = self.out.metadata()?.len();
        let object = json!({
            "is_success": status.is_some_and(|status| status.success()),
            "code": status.and_then(|status| status.code()),
            "status": status.map_or(String::new(), |status| status.to_string()),
            "is_late": is_late,
            "stopped": why,
            "stdout": read(&self.out, printed.saturating_sub(kept), kept)?,
            "stderr": read(&self.err, 0, kept)?,
        });
        Ok(object.to_string())
    }
}

/// A part of a file as text.
fn read(mut file: &File, from: u64, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
