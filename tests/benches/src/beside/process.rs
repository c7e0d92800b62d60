//! A server in a separate process, which ends with its owner.

use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Target;
use crate::servers::How;
use crate::{sys, tied};

pub struct Process {
    child: Child,
    pub pid: u32,
    pub addr: SocketAddr,
}

impl Process {
    /// Starts a server on the last core, and returns when it listens.
    ///
    /// # Errors
    ///
    /// Returns the system's error, and `UnexpectedEof` if the server ended instead.
    pub fn start(target: Target, how: How) -> io::Result<Process> {
        Process::start_in(&[], target, how, Stdio::inherit())
    }

    /// Starts the target under a tool, whose process becomes that of the server. Both write to
    /// `errors`.
    pub fn start_in(tool: &[&str], target: Target, how: How, errors: Stdio) -> io::Result<Process> {
        let ourselves = std::env::current_exe()?;
        let core = (sys::cores() - 1).to_string();
        let mut command = match tool {
            [] => tied::command(&ourselves)?,
            [program, words @ ..] => {
                let mut command = tied::command(program)?;
                command.args(words).arg(&ourselves);
                command
            }
        };
        command.args(["serve", target.server.name, "--core", &core]);
        command.args(how.deadlines.then_some("--deadlines"));
        command.args(how.echo.then_some("--echo"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked for");
        let read = BufReader::new(out).read_line(&mut line);
        let addr = line.trim().strip_prefix("listening on ").and_then(|addr| addr.parse().ok());
        let (Ok(_), Some(addr)) = (read, addr) else {
            child.kill()?;
            child.wait()?;
            let what = format!("{} did not start", target.name());
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        };
        Ok(Process { pid: child.id(), child, addr })
    }

    /// Ends the server, and waits for that.
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
        // It has nothing to save, and killing an ended process does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
