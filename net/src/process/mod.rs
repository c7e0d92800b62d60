//! Processes: starting them, exchanging bytes with them, waiting for them, and leaving none behind.
//!
//! A process belongs to the task that owns its [`Process`]. Dropping the `Process` ends it, so a
//! cancelled task takes its processes with it. The kernel waits for the end through a pidfd, which
//! becomes readable like any other descriptor. No signal and no thread is needed for the wait.
//! macOS and FreeBSD have no pidfds, so there a thread waits for each process, and closes a pipe.

mod pipe;
mod simulated;

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::process::{self, Command, ExitStatus};
use std::rc::Rc;
use std::task::Poll;
use std::thread;

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, WaitOptions, waitpid};
use traps::Site;
use traps::internal::{keep_statuses, take_pending_from};
use traps::io::{Direction, Io};
use traps::{Interruptible, Signal, branch};

use crate::record::{self, Handle};
use crate::stream::{Stream as _, read_to_end};
use crate::system;

use simulated::State;

pub(crate) use pipe::End;
pub use pipe::Pipe;
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
pub(crate) use pipe::{read_from, write_to};
pub use simulated::Simulated;

/// A child process.
///
/// Dropping it kills the process (`SIGKILL`) and reaps it. Only this process is killed, not the
/// processes that it has started itself. To end those as well, start it with
/// `Command::process_group(0)`, and call `rustix::process::kill_process_group` with its
/// [pid](Process::id) before you drop it. If the process does not end at once, a short-lived thread
/// waits for it. If no thread can start, the drop itself waits.
///
/// A process in a group of its own does not get the Ctrl-C of the terminal. If it reads from the
/// terminal, the system stops it, and a stopped process does not handle `SIGTERM`. So start it with
/// `Command::stdin(Stdio::null())`, too.
///
/// ```no_run
/// use std::process::{Command, Stdio};
/// use std::time::Duration;
/// use net::process::{Collected, Process};
///
/// # async fn example() -> std::io::Result<()> {
/// let mut command = Command::new("sort");
/// command.stdin(Stdio::piped()).stdout(Stdio::piped());
/// let mut sort = Process::spawn(&mut command)?;
/// let mut output = Collected::with_limit(1 << 20);
/// let mut input = &b"b\na\n"[..];
/// let talk = sort.communicate(&mut input, &mut output);
/// let status = traps::timeout_after(Duration::from_secs(5), talk).await?;
/// assert!(status.success());
/// assert_eq!(output.stdout, b"a\nb\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// The standard input of the process, if it is piped and was not taken.
    pub stdin: Option<Pipe>,
    /// The standard output of the process, if it is piped and was not taken.
    pub stdout: Option<Pipe>,
    /// The standard error of the process, if it is piped and was not taken.
    pub stderr: Option<Pipe>,
}

#[derive(Debug)]
enum Child {
    System(Reaped),
    Memory(Rc<State>),
}

/// The output of a process, up to a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The largest number of bytes to collect of each of the two outputs.
    pub limit: usize,
    /// The bytes from standard output.
    pub stdout: Vec<u8>,
    /// The bytes from standard error.
    pub stderr: Vec<u8>,
}

impl Collected {
    /// Makes an empty collection of at most `limit` bytes of each output.
    #[must_use]
    pub fn with_limit(limit: usize) -> Collected {
        Collected { limit, ..Collected::default() }
    }
}

impl Process {
    /// Starts a process. Does not trap, but holds up the kernel's thread until the system has found
    /// and loaded the program: about a millisecond.
    ///
    /// If `SIGCHLD` is ignored, the system discards the exit statuses of processes, and reuses
    /// their process ids at once. A program can inherit this setting. So this function sets
    /// `SIGCHLD` to its default action if it is ignored, and removes `SA_NOCLDWAIT`. It keeps a
    /// handler.
    ///
    /// # Errors
    ///
    /// Returns the system's error if the program does not exist, if no process or descriptor is
    /// left, or if the system has no pidfds (Linux before 5.3). In none of these cases has the
    /// program run, except that if another thread takes the last descriptor at that moment, the new
    /// process is killed. Also returns an error if other code of this process has already waited
    /// for the new process.
    pub fn spawn(command: &mut Command) -> io::Result<Process> {
        let mut child = None;
        let (id, (end, pipes)) = record::call("spawn", || {
            keep_statuses()?;
            // After the program has started, the pidfd needs a descriptor. So reserve one first.
            let open = system::reserve_end()?;
            let mut started = command.spawn()?;
            let end = match open(Pid::from_child(&started)) {
                Ok(end) => end,
                Err(error) => {
                    // If the process does not exist, other code has waited for it, and another
                    // process may have its process id.
                    if error != Errno::SRCH {
                        let _ = started.kill();
                    }
                    reap(started);
                    return Err(error.into());
                }
            };
            let pipes = [
                started.stdin.take().map(OwnedFd::from),
                started.stdout.take().map(OwnedFd::from),
                started.stderr.take().map(OwnedFd::from),
            ];
            let piped =
                |pipe: Option<OwnedFd>| (pipe.is_some(), pipe.map_or(Handle::EMPTY, Handle::from));
            let id = u64::from(started.id());
            child = Some(started);
            Ok((id, (end.into(), pipes.map(piped))))
        })?;
        let id = u32::try_from(id).expect("the system has it in 32 bits");
        let child = Child::System(Reaped { child, end: Io::new(end), id });
        let pipe = |(is_piped, pipe): (bool, _)| is_piped.then(|| Pipe::from_handle(pipe));
        let [stdin, stdout, stderr] = pipes.map(pipe).map(Option::transpose);
        let (stdin, stdout, stderr) = (stdin?, stdout?, stderr?);
        Ok(Process { child, stdin, stdout, stderr })
    }

    /// Makes a process in memory, for tests: one end for the program, and the other one for the
    /// test, which acts as the process. All three of its standard streams are piped. Needs no
    /// system, so it works on the virtual clock.
    #[must_use]
    pub fn simulated() -> (Process, Simulated) {
        let (simulated, state, ends) = Simulated::new();
        let [stdin, stdout, stderr] = ends.map(|end| Some(Pipe(End::Memory(end))));
        (Process { child: Child::Memory(state), stdin, stdout, stderr }, simulated)
    }

    /// Returns the process id. The system may give it to another process once this process has
    /// ended and was waited for. A [simulated](Process::simulated) process has the id
    /// `i32::MAX`, which no process of the system has.
    #[must_use]
    pub fn id(&self) -> u32 {
        match &self.child {
            Child::System(child) => child.id,
            Child::Memory(_) => i32::MAX as u32,
        }
    }

    /// Waits until the process has ended. Closes its standard input first, if it is piped and was
    /// not taken, because a process that reads to the end would otherwise not end. Blocks.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. The process continues, and can be waited for
    /// again. Otherwise returns the errors of [`try_wait`](Process::try_wait).
    #[track_caller]
    pub fn wait(&mut self) -> impl Future<Output = io::Result<ExitStatus>> {
        self.ended(Location::caller())
    }

    async fn talk(
        &mut self,
        input: &mut &[u8],
        into: &mut Collected,
        site: Site,
    ) -> io::Result<()> {
        // Take a pending interrupt first. Otherwise only the first branch would get it, and the
        // other branches would wait on.
        take_pending_from(site).await?;
        let Collected { limit, stdout, stderr } = into;
        let write = async {
            if let Some(pipe) = &mut self.stdin {
                while !input.is_empty() {
                    match pipe.write_from(&[IoSlice::new(input)], site).await {
                        Err(error) if error.kind() == ErrorKind::BrokenPipe => break,
                        written => *input = &input[written?..],
                    }
                }
            }
            // Close the input: many processes wait for its end.
            self.stdin = None;
            Ok(())
        };
        let out = collect(&mut self.stdout, stdout, *limit, site);
        let err = collect(&mut self.stderr, stderr, *limit, site);
        at_once([pin!(branch(write)), pin!(branch(out)), pin!(branch(err))]).await
    }

    async fn ended(&mut self, site: Site) -> io::Result<ExitStatus> {
        self.stdin = None;
        loop {
            // Look first: the pidfd is readable only until the process is reaped.
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            match &self.child {
                Child::System(child) => drop(child.end.ready(Direction::Read, site).await?),
                Child::Memory(state) => state.changed.wait_from(site).await?,
            }
        }
    }

    /// Returns the exit status, or `None` if the process has not ended. Does not trap.
    ///
    /// # Errors
    ///
    /// Returns the system's error: `ECHILD` if other code of the program has waited for the
    /// process, or has set `SIGCHLD` to be ignored in the meantime.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let child = match &mut self.child {
            Child::System(child) => child,
            Child::Memory(state) => return Ok(state.status.get()),
        };
        let wait = || Ok(child.get()?.try_wait()?.map(|status| status.into_raw() as u64));
        let raw = record::call("exit", wait)?;
        Ok(raw.map(|raw| ExitStatus::from_raw(raw as i32)))
    }

    /// Kills the process (`SIGKILL`). Does not wait for its end. Does nothing if the process was
    /// waited for.
    ///
    /// # Errors
    ///
    /// Returns the system's error, if the process belongs to another user now.
    pub fn kill(&mut self) -> io::Result<()> {
        match &mut self.child {
            Child::System(child) => {
                record::call("kill", || child.signal(rustix::process::Signal::KILL))
            }
            Child::Memory(state) => {
                state.end(simulated::KILLED);
                Ok(())
            }
        }
    }

    /// Sends a signal to the process; [`Signal::Terminate`] asks it to end. Does nothing if the
    /// process has ended.
    ///
    /// # Errors
    ///
    /// Returns the system's error, if the process belongs to another user now.
    pub fn send(&mut self, signal: Signal) -> io::Result<()> {
        let child = match &mut self.child {
            Child::System(child) => child,
            Child::Memory(state) => {
                state.send(signal);
                return Ok(());
            }
        };
        let signal = match signal {
            Signal::Hangup => rustix::process::Signal::HUP,
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Quit => rustix::process::Signal::QUIT,
            Signal::User1 => rustix::process::Signal::USR1,
            Signal::User2 => rustix::process::Signal::USR2,
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::Child => rustix::process::Signal::CHILD,
            Signal::Window => rustix::process::Signal::WINCH,
            _ => unreachable!("rule: {signal} has a number"),
        };
        record::call("signal", || child.signal(signal))
    }

    /// Writes `input` and closes the standard input, collects the piped outputs, and waits for the
    /// end of the process. Does all of this at the same time, so that no full pipe holds up another
    /// one. Blocks. A process that does not read all of its input is no error.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. Then `input` is the part not written yet, `into`
    /// has the bytes read so far, and a second call continues. Returns
    /// [`FileTooLarge`](ErrorKind::FileTooLarge) if an output exceeds the limit of `into`, which
    /// then has some bytes more than its limit. The process continues until it is killed or
    /// dropped. Otherwise returns the system's error.
    #[track_caller]
    pub fn communicate(
        &mut self,
        input: &mut &[u8],
        into: &mut Collected,
    ) -> impl Future<Output = io::Result<ExitStatus>> {
        let site = Location::caller();
        async move {
            self.talk(input, into, site).await?;
            self.ended(site).await
        }
    }

    /// Returns the plain child process. The caller must wait for it, or leave it.
    ///
    /// # Panics
    ///
    /// Panics while a record is played, because there is no child process then, and for a
    /// [simulated](Process::simulated) process.
    #[must_use]
    pub fn into_child(mut self) -> process::Child {
        match &mut self.child {
            Child::System(child) => child.child.take().expect(HERE),
            Child::Memory(_) => panic!("expected a process of the system, not a simulated one"),
        }
    }
}

/// Reads a pipe to its end, if there is a pipe.
async fn collect(
    pipe: &mut Option<Pipe>,
    into: &mut Vec<u8>,
    limit: usize,
    site: Site,
) -> io::Result<()> {
    match pipe {
        Some(pipe) => read_to_end(pipe, into, limit, site).await,
        None => Ok(()),
    }
}

/// Polls all parts side by side, because the process may be waiting for any of them. A failure ends
/// the wait, because the other parts may be waiting for the failed one. An interrupt does not: each
/// part gets its interrupt first. If a part was interrupted, the result is the interrupt.
async fn at_once<const N: usize>(
    mut parts: [Pin<&mut dyn Future<Output = io::Result<()>>>; N],
) -> io::Result<()> {
    let mut done = [false; N];
    let mut interrupted = None;
    poll_fn(move |cx| {
        for (part, done) in parts.iter_mut().zip(&mut done).filter(|(_, done)| !**done) {
            match part.as_mut().poll(cx) {
                Poll::Pending => continue,
                Poll::Ready(Err(error)) if error.interrupt().is_none() => {
                    return Poll::Ready(Err(interrupted.take().unwrap_or(error)));
                }
                Poll::Ready(ended) => interrupted = interrupted.take().or(ended.err()),
            }
            *done = true;
        }
        if done.contains(&false) {
            return Poll::Pending;
        }
        Poll::Ready(interrupted.take().map_or(Ok(()), Err))
    })
    .await
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Child::Memory(state) = self {
            state.end(simulated::KILLED);
        }
    }
}

const HERE: &str = "a process is here until it is given away, and in no replay";

/// A process that is killed and reaped on drop, unless it was taken.
#[derive(Debug)]
struct Reaped {
    /// `None` while a record is played.
    child: Option<process::Child>,
    /// The pidfd of the process. Readable once the process has ended. Signals go through it: the
    /// number may belong to another process by now, if other code has waited for this one.
    end: Io<Handle>,
    id: u32,
}

impl Reaped {
    fn get(&mut self) -> io::Result<&mut process::Child> {
        self.child.as_mut().ok_or_else(|| io::Error::other(HERE))
    }

    fn signal(&mut self, signal: rustix::process::Signal) -> io::Result<()> {
        let child = self.child.as_mut().ok_or_else(|| io::Error::other(HERE))?;
        match system::signal(child, self.end.get()?, signal) {
            // It has ended, and was waited for.
            Err(Errno::SRCH) => Ok(()),
            sent => Ok(sent?),
        }
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        // The kill fails if the process belongs to another user now. Then wait for it anyway.
        let _ = self.signal(rustix::process::Signal::KILL);
        if let Some(child) = self.child.take() {
            reap(child);
        }
    }
}

/// Waits for a killed process. It usually ends in a moment, but the system may hold it for long,
/// and the kernel's thread must not wait.
fn reap(mut child: process::Child) {
    if !matches!(child.try_wait(), Ok(None)) {
        return;
    }
    // Its number stays its own until it is reaped.
    let pid = Pid::from_child(&child);
    let wait = move || {
        let _ = retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
    };
    if thread::Builder::new().name("trapline-reaper".to_owned()).spawn(wait).is_err() {
        wait();
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::task::{Context, Waker};

    use traps::internal::Delivery;
    use traps::internal::table::{ScopeId, TaskRef};
    use traps::{Interrupt, Kind, Time};

    use super::*;

    #[test]
    fn who_was_interrupted_says_so_though_another_part_failed_beside_it() {
        let (task, source) = (TaskRef::new(0, 1), ScopeId::new(0, 1));
        let cancelled = Interrupt::new(Delivery {
            kind: Kind::Cancelled,
            source,
            task,
            order: 1,
            nearest_timeout: None,
            places: vec![source],
            passed: false,
            deadline: Time::NEVER,
            reading: Time::ZERO,
            set_at: None,
            by: None,
            reason: "test",
            scope: 0,
        });
        let interrupted = ready(Err(io::Error::from(cancelled)));
        let fails = ready(Err(ErrorKind::FileTooLarge.into()));
        let (interrupted, fails) = (pin!(interrupted), pin!(fails));
        let ends = pin!(at_once([interrupted, fails]));
        let Poll::Ready(Err(end)) = ends.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("both are ready");
        };
        assert!(end.interrupt().is_some());
    }
}
