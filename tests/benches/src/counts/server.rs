//! A server in a separate process, under a tool, for the duration of one client's work.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::drive::{Served, Work};
use super::tools::{Counted, Report, Tool};
use crate::sys;

/// How long a server may take to stop.
const PATIENCE: Duration = Duration::from_secs(30);

/// A program that says `listening on ADDR` on standard output and is ended by SIGTERM.
#[derive(Clone, Debug)]
pub struct Server {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Whether it is an example, which must be built first.
    pub is_example: bool,
}

impl Server {
    /// Counts the operations of the server from its start to its end, with that work between.
    pub fn count(&self, tool: Tool, work: &Work) -> Result<Counted, String> {
        let counted = (|| {
            let report = Report::new()?;
            let mut command = tool.command()?;
            command.arg(&self.program).args(&self.args).stderr(report.errors()?);
            let mut running = Running::start(command)?;
            // Not when instructions are counted, because those of an interrupted wait would be
            // counted too.
            running.served.lockstep = [Tool::Strace, Tool::Memcheck].contains(&tool);
            work.run(running.addr, running.served)?;
            // The work at the end of the connections is counted too.
            running.served.wait_until_asleep()?;
            running.stop()?;
            report.read(tool)
        })();
        counted.map_err(|error| format!("{} {work:?}: {error}", self.program.display()))
    }
}

/// Measures the CPU time, in nanoseconds, that the server takes for that work, without its start.
pub fn cpu_nanos(server: &Server, work: &Work) -> io::Result<u64> {
    let mut command = Command::new(&server.program);
    command.args(&server.args).stderr(Stdio::inherit());
    let mut running = Running::start(command)?;
    let before = sys::cpu_nanos(running.child.id())?;
    work.run(running.addr, running.served)?;
    let nanos = sys::cpu_nanos(running.child.id())? - before;
    running.stop()?;
    Ok(nanos)
}

/// Counts the operations of a program that ends by itself.
pub fn count_program(tool: Tool, program: &Path, args: &[&str]) -> Result<Counted, String> {
    let run = || {
        let report = Report::new()?;
        let mut command = tool.command()?;
        command.arg(program).args(args).stdout(Stdio::null()).stderr(report.errors()?);
        let status = command.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("it ended with {status}")));
        }
        report.read(tool)
    };
    run().map_err(|error| format!("{} {args:?}: {error}", program.display()))
}

struct Running {
    child: Child,
    addr: SocketAddr,
    served: Served,
}

impl Running {
    fn start(mut command: Command) -> io::Result<Running> {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        match listening(&mut child) {
            Ok(addr) => {
                let served = Served { pid: child.id(), lockstep: false };
                Ok(Running { child, addr, served })
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Asks it to end, and waits until it has.
    fn stop(&mut self) -> io::Result<()> {
        sys::terminate(self.child.id())?;
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            match self.child.try_wait()? {
                // A server of this program ends only by the signal.
                Some(status)
                    if status.success()
                        || status.signal() == Some(rustix::process::Signal::TERM.as_raw()) =>
                {
                    return Ok(());
                }
                Some(status) => return Err(io::Error::other(format!("it ended with {status}"))),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
        Err(io::Error::other("it does not end"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listening(child: &mut Child) -> io::Result<SocketAddr> {
    let out = child.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
    let mut line = String::new();
    BufReader::new(out.take(200)).read_line(&mut line)?;
    let addr = line.trim().strip_prefix("listening on ").and_then(|addr| addr.parse().ok());
    addr.ok_or_else(|| io::Error::other(format!("expected `listening on ADDR`, not `{line}`")))
}
