//! Processes: started, talked to, waited for, and never left behind.
//!
//! A process belongs to the task that has its [`Process`]. Whoever drops that ends it: a task that
//! is cancelled takes its processes with it. Its end is waited for by a pidfd, which becomes
//! readable, like any descriptor; no signal and no thread is needed for that.

mod pipe;

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::OwnedFd;
use std::panic::Location;
use std::pin::{Pin, pin};
use std::process::{Child, Command, ExitStatus};
use std::task::Poll;
use std::thread;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use traps::core::names::Site;
use traps::io::{Direction, Io};
use traps::{Interruptible, Signal, branch, take_pending_from};

use crate::stream::{Stream as _, read_to_end};

pub use pipe::Pipe;

/// A process that was started here.
///
/// Dropping it kills it (`SIGKILL`, and only it: not what it has started itself) and reaps it; one
/// that is not gone at once is waited for by a thread that ends with it, or here if none can start.
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
    child: Reaped,
    /// Readable when it has ended.
    end: Io<OwnedFd>,
    /// What it reads, if that is piped and was not taken.
    pub stdin: Option<Pipe>,
    /// What it writes, if that is piped and was not taken.
    pub stdout: Option<Pipe>,
    /// What it complains, if that is piped and was not taken.
    pub stderr: Option<Pipe>,
}

/// What a process wrote, up to a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Of each of the two, in bytes.
    pub limit: usize,
    /// On standard output.
    pub stdout: Vec<u8>,
    /// On standard error.
    pub stderr: Vec<u8>,
}

impl Collected {
    /// Nothing yet, and at most `limit` bytes of each.
    #[must_use]
    pub fn with_limit(limit: usize) -> Collected {
        Collected { limit, ..Collected::default() }
    }
}

impl Process {
    /// Starts a process. Does not trap, but holds the kernel's thread until the program was found
    /// and loaded: about a millisecond.
    ///
    /// # Errors
    ///
    /// The system's: the program is not there, no process or descriptor is left, or it has no pidfd
    /// (Linux before 5.3); what was started is ended then.
    pub fn spawn(command: &mut Command) -> io::Result<Process> {
        let mut child = Reaped(Some(command.spawn()?));
        let started = child.get();
        let end = Io::new(pidfd_open(Pid::from_child(started), PidfdFlags::empty())?);
        let stdin = started.stdin.take().map(Pipe::new).transpose()?;
        let stdout = started.stdout.take().map(Pipe::new).transpose()?;
        let stderr = started.stderr.take().map(Pipe::new).transpose()?;
        Ok(Process { child, end, stdin, stdout, stderr })
    }

    /// Its number in the system; somebody else's once it has ended and was waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.0.as_ref().expect(HERE).id()
    }

    /// Waits until it has ended, after closing its standard input if that is piped and still here:
    /// a process that reads to the end would not end. Blocks.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait: the process goes on, and can be waited for again.
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
        // One that is pending would be heard by the first of them alone, and the others would wait.
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
            // Its end is what many a process waits for.
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
            // First: the system tells of an end for as long as it is not reaped, and no longer.
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            self.end.ready(Direction::Read, site).await?;
        }
    }

    /// How it has ended; `None` if it has not. Does not trap.
    ///
    /// # Errors
    ///
    /// The system's; none is known.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.get().try_wait()
    }

    /// Kills it (`SIGKILL`). Does not wait for its end, and does nothing if it was waited for.
    ///
    /// # Errors
    ///
    /// The system's: it belongs to another user now.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.get().kill()
    }

    /// Sends it a signal: [`Signal::Terminate`] asks it to end. Does nothing if it was waited for.
    ///
    /// # Errors
    ///
    /// The system's: it belongs to another user now.
    pub fn send(&mut self, signal: Signal) -> io::Result<()> {
        if self.try_wait()?.is_some() {
            return Ok(());
        }
        let signal = match signal {
            Signal::Hangup => rustix::process::Signal::HUP,
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::User1 => rustix::process::Signal::USR1,
            Signal::Terminate => rustix::process::Signal::TERM,
        };
        Ok(pidfd_send_signal(&*self.end, signal)?)
    }

    /// Writes `input` and closes it, collects what is piped of both outputs, and waits for the
    /// end, all at once, so that no full pipe stops another. Blocks. A process that does not read
    /// all of its input is no error.
    ///
    /// # Errors
    ///
    /// The interrupt that ended it: `input` is then what was not written, `into` has what came so
    /// far, and a second call goes on. [`FileTooLarge`](ErrorKind::FileTooLarge) beyond the limit
    /// of `into`, which has some of what is too much as well; the process goes on, until it is
    /// killed or dropped. Else the system's.
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

    /// Gives it away as it is, to be waited for, or left, by whoever takes it.
    #[must_use]
    pub fn into_child(mut self) -> Child {
        self.child.0.take().expect(HERE)
    }
}

/// Reads a pipe to its end, if there is one.
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

/// Polls them side by side: each may be what the process waits for. The first failure ends it, for
/// the others may wait for what has failed; an interrupt is heard by each of them first, and is
/// what it comes to where one has heard it.
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

const HERE: &str = "a process is here until it is given away";

/// A process that is killed and reaped when this is dropped, unless it was given away.
#[derive(Debug)]
struct Reaped(Option<Child>);

impl Reaped {
    fn get(&mut self) -> &mut Child {
        self.0.as_mut().expect(HERE)
    }
}

impl Drop for Reaped {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        // It may have ended already, or belong to another user now: then it is waited for as it is.
        let _ = child.kill();
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        // A killed process is gone in a moment, or as late as the system lets go of it, which is
        // no time for a kernel's thread to wait. Its number is its own until it is reaped.
        let pid = Pid::from_child(&child);
        let reap = move || {
            let _ = retry_on_intr(|| waitpid(Some(pid), WaitOptions::empty()));
        };
        if thread::Builder::new().name("trapline-reaper".to_owned()).spawn(reap).is_err() {
            reap();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::task::{Context, Waker};

    use traps::core::names::ScopeId;
    use traps::{Delivery, Interrupt, Kind, Time};

    use super::*;

    #[test]
    fn who_was_interrupted_says_so_though_another_part_failed_beside_it() {
        let root = ScopeId::new(0, 1);
        let cancelled = Interrupt::new(Delivery {
            kind: Kind::Cancelled,
            source: root,
            order: 1,
            position: None,
            place: root,
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
