//! A server in a process of its own, ended with its owner.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Target;
use crate::servers::How;
use crate::sys;

pub struct Process {
    child: Child,
    /// The server's own, also where another program runs it.
    pub pid: u32,
    pub addr: SocketAddr,
}

/// What runs the server, and where that program's standard error goes.
pub struct Tool<'t> {
    pub words: &'t [&'t str],
    pub errors: Option<File>,
    /// Whether the server is a child of it.
    pub forks: bool,
}

impl Process {
    /// Starts a server on the last core; returns when it listens.
    ///
    /// # Errors
    ///
    /// The system's; `UnexpectedEof` if it ended instead.
    pub fn start(target: Target, how: How) -> io::Result<Process> {
        Process::start_in(target, how, Tool { words: &[], errors: None, forks: false })
    }

    /// The same inside a tool.
    pub fn start_in(target: Target, how: How, tool: Tool<'_>) -> io::Result<Process> {
        let ourselves = std::env::current_exe()?;
        let core = (sys::cores() - 1).to_string();
        let mut command = match tool.words {
            [] => Command::new(&ourselves),
            [program, words @ ..] => {
                let mut command = Command::new(program);
                command.args(words).arg(&ourselves);
                command
            }
        };
        command.args(["serve", target.server.name, "--with-parent", "--core", &core]);
        command.args(how.deadlines.then_some("--deadlines"));
        command.args(how.echo.then_some("--echo"));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        if let Some(errors) = tool.errors {
            command.stderr(errors);
        }
        let mut child = command.spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked for");
        let read = BufReader::new(out).read_line(&mut line);
        let addr = line.trim().strip_prefix("listening on ").and_then(|addr| addr.parse().ok());
        let pid = if tool.forks { sys::child_of(child.id()) } else { Some(child.id()) };
        let (Ok(_), Some(addr), Some(pid)) = (read, addr, pid) else {
            child.kill()?;
            child.wait()?;
            let what = format!("{} did not start", target.name());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        };
        Ok(Process { child, pid, addr })
    }

    /// Ends the server, and waits until the tool around it has written what it found.
    pub fn end(mut self) -> io::Result<()> {
        sys::terminate(self.pid)?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > Duration::from_secs(20) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to save; one that has ended does not mind.
        if self.pid != self.child.id() {
            let _ = sys::terminate(self.pid);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
