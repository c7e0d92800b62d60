//! Processes that a test starts. Each has a time limit, so no test waits for a process forever.
//!
//! [`spawn`], [`output`] and [`cargo`] replace `Command::spawn`, `Command::output` and
//! `Command::new("cargo")`. A child that runs longer than its limit is killed. A wait for its end
//! and a read of its output then end too, and the test fails because of the result.

use std::env;
use std::io;
use std::net::Ipv4Addr;
use std::ops::{Deref, DerefMut};
use std::process::{self, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// How long a child may run: far longer than any child needs, even on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(180);

/// How long a child that compiles may run.
pub const BUILD: Duration = Duration::from_secs(1800);

/// A child process. It is killed when its limit has passed, or when this handle is dropped before
/// its end.
#[derive(Debug)]
pub struct Child {
    /// `None` once the output was taken.
    process: Option<process::Child>,
    /// Dropped when the child has ended, so that nothing is killed afterwards.
    alive: Option<Sender<()>>,
}

/// Starts a child with the limit [`LIMIT`].
///
/// # Panics
///
/// If the system cannot start it.
#[track_caller]
pub fn spawn(command: &mut Command) -> Child {
    spawn_within(LIMIT, command)
}

/// Starts a child with the given limit.
///
/// # Panics
///
/// If the system cannot start it.
#[track_caller]
pub fn spawn_within(limit: Duration, command: &mut Command) -> Child {
    let process = match command.spawn() {
        Ok(process) => process,
        Err(error) => panic!("cannot start {command:?}: {error}"),
    };
    let (id, (alive, ended)) = (process.id(), mpsc::channel::<()>());
    let name = format!("{command:?}");
    thread::spawn(move || {
        if ended.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            eprintln!("killed after {limit:?}: {name}");
            send("KILL", id);
        }
    });
    Child { process: Some(process), alive: Some(alive) }
}

/// Runs a child to its end, within [`LIMIT`]. Returns its status and its output.
///
/// # Panics
///
/// If the system cannot start it or read from it.
#[track_caller]
pub fn output(command: &mut Command) -> Output {
    output_within(LIMIT, command)
}

/// Runs a child like [`output`], within the given limit.
///
/// # Panics
///
/// If the system cannot start it or read from it.
#[track_caller]
pub fn output_within(limit: Duration, command: &mut Command) -> Output {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn_within(limit, command).wait_with_output()
}

/// Sends a signal, by its name without `SIG`, to a process.
///
/// # Panics
///
/// If there is no such process.
#[track_caller]
pub fn send(signal: &str, process: u32) {
    // Use the `kill` of the shell, so that nothing else needs to be installed.
    let kill = format!("kill -{signal} {process}");
    let sent = Command::new("sh").args(["-c", &kill]).status();
    assert!(sent.expect("a shell").success(), "{kill}");
}

/// Returns a `cargo` command, as a user would call it in a shell.
///
/// Cargo passes the package of a program that it runs to the program in environment variables. A
/// cargo that the program starts must not see these variables. Otherwise a build script that reads
/// one, like that of ring, runs again, and everything that depends on it is built again, once more
/// with the next cargo of the user.
pub fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let is_of_a_package = name.to_str().is_some_and(|name| {
            let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_EXE_"];
            let names = ["CARGO", "CARGO_PRIMARY_PACKAGE", "CARGO_CRATE_NAME", "OUT_DIR"];
            prefixes.iter().any(|prefix| name.starts_with(prefix)) || names.contains(&name)
        });
        if is_of_a_package {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Returns a host of the loopback network that only this process uses. A port there is free until
/// this process binds it: other processes, and sockets whose port the system chooses, use other
/// hosts.
#[must_use]
pub fn own_host() -> Ipv4Addr {
    let [_, high, middle, low] = process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 + high, middle, low)
}

/// Returns the name of the calling test in its binary, with its modules. `--exact` takes this name,
/// to run the test again in a separate process.
///
/// # Panics
///
/// If the calling thread has no name, because it is not the thread of a test.
#[must_use]
pub fn this_test() -> String {
    thread::current().name().expect("a test has a thread of its name").to_owned()
}

/// Returns the name of the test `name` in `module`, which is the `module_path!()` of that test.
#[must_use]
pub fn test_in(module: &str, name: &str) -> String {
    match module.split_once("::") {
        Some((_, inner)) => format!("{inner}::{name}"),
        None => name.to_owned(),
    }
}

impl Child {
    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        let ended = (**self).wait();
        self.alive = None;
        ended
    }

    /// Waits until the child has ended, and reads its piped output.
    ///
    /// # Panics
    ///
    /// If the system cannot read from it.
    #[must_use]
    #[track_caller]
    pub fn wait_with_output(mut self) -> Output {
        let process = self.process.take().expect("it is taken once");
        process.wait_with_output().expect("its output can be read")
    }

    /// Sends a signal to the child, by its name without `SIG`.
    ///
    /// # Panics
    ///
    /// If it has ended.
    #[track_caller]
    pub fn send(&self, signal: &str) {
        send(signal, self.id());
    }
}

impl Deref for Child {
    type Target = process::Child;
    fn deref(&self) -> &process::Child {
        self.process.as_ref().expect("it is taken once")
    }
}

impl DerefMut for Child {
    fn deref_mut(&mut self) -> &mut process::Child {
        self.process.as_mut().expect("it is taken once")
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // This fails if the child has ended.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn shell(script: &str) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(Stdio::piped());
        shell
    }

    #[test]
    fn a_child_that_does_not_end_is_killed_and_so_is_one_that_is_let_go() {
        let mut endless = spawn_within(Duration::ZERO, &mut shell("exec tail -f /dev/null"));
        assert_eq!(endless.stdout.take().unwrap().read_to_end(&mut Vec::new()).unwrap(), 0);
        assert!(!endless.wait().unwrap().success());
        let limit = Duration::from_millis(1);
        assert!(!output_within(limit, &mut shell("exec tail -f /dev/null")).status.success());

        let mut endless = spawn(&mut shell("echo; exec tail -f /dev/null"));
        let mut out = endless.stdout.take().unwrap();
        drop(endless);
        out.read_to_end(&mut Vec::new()).unwrap();
    }

    #[test]
    fn a_test_knows_the_name_that_runs_it_alone() {
        let name = "a_test_knows_the_name_that_runs_it_alone";
        assert_eq!(this_test(), test_in(module_path!(), name));
        let mut again = Command::new(env::current_exe().unwrap());
        let listed = output(again.args(["--list", "--exact", &this_test()])).stdout;
        assert_eq!(String::from_utf8(listed).unwrap().matches(": test\n").count(), 1);
        assert_eq!(test_in("own", "name"), "name");
    }

    #[test]
    fn a_child_that_ends_is_left_alone() {
        let ran = output(&mut shell("echo out; echo err >&2; exit 3"));
        assert_eq!(ran.status.code(), Some(3));
        assert_eq!((&ran.stdout[..], &ran.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    }

    #[test]
    fn a_cargo_of_a_test_knows_nothing_of_the_package_of_the_test() {
        assert!(env::var_os("CARGO_PKG_NAME").is_some(), "cargo runs this test");
        let cargo = cargo();
        for name in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION", "CARGO_MANIFEST_DIR"] {
            let mut changed = cargo.get_envs();
            assert!(changed.any(|(found, value)| found == name && value.is_none()), "{name}");
        }
    }
}
