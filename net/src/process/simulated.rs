//! Processes in memory, for tests of programs that start processes.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::panic::Location;
use std::process::ExitStatus;
use std::rc::Rc;

use traps::{Interrupt, Signal, WaitQueue};

use crate::pipe::{Lane, PipeEnd, duplex};

/// What a pipe of Linux holds, in bytes.
const CAPACITY: usize = 64 * 1024;

/// The raw status of a process that `SIGKILL` has ended.
pub(super) const KILLED: i32 = 9;

/// The test's end of a process in memory, made by [`Process::simulated`]: the test acts as the
/// process. If this end is dropped, the process ends as if by `SIGKILL`.
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use net::Stream;
/// use net::process::Process;
/// use traps::{join, sleep};
///
/// /// Starts a worker again and again, until one succeeds. Returns how many it has started.
/// async fn supervise(mut start: impl FnMut() -> io::Result<Process>) -> io::Result<usize> {
///     let mut started = 1;
///     while !start()?.wait().await?.success() {
///         sleep(Duration::from_secs(1)).await?;
///         started += 1;
///     }
///     Ok(started)
/// }
///
/// let ran = testing::run(async {
///     let pairs = [Process::simulated(), Process::simulated()];
///     let (mut processes, plays): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
///     let play = async {
///         for (code, mut process) in [1, 0].into_iter().zip(plays) {
///             sleep(Duration::from_secs(60)).await?;
///             process.stderr.write_all(b"bye\n").await?;
///             process.exit(code);
///         }
///         io::Result::Ok(())
///     };
///     join(supervise(|| Ok(processes.remove(0))), play).await.0
/// });
/// assert_eq!(ran.output.unwrap(), 2);
/// assert_eq!(ran.took, Duration::from_secs(120)); // the pause is within the second minute
/// ```
///
/// In the program, take the function that starts a process as an argument, such as
/// `|| Process::spawn(&mut Command::new("worker"))`.
///
/// [`Process::simulated`]: super::Process::simulated
#[derive(Debug)]
pub struct Simulated {
    /// What the program writes to the process. Ends when the program closes it.
    pub stdin: PipeEnd,
    /// What the process writes to its standard output.
    pub stdout: PipeEnd,
    /// What the process writes to its standard error.
    pub stderr: PipeEnd,
    life: Life,
}

impl Simulated {
    /// Makes a process, and returns what it shares with its other end, and the standard streams of
    /// that end.
    pub(super) fn new() -> (Simulated, Rc<State>, [PipeEnd; 3]) {
        let [stdin, stdout, stderr] = [(); 3].map(|()| duplex(CAPACITY));
        let ends = [&stdin.1, &stdout.1, &stderr.1];
        let state = Rc::new(State {
            status: Cell::default(),
            signals: RefCell::default(),
            changed: WaitQueue::new().described("process", ""),
            streams: ends.map(|end| [end.incoming.clone(), end.outgoing.clone()]),
        });
        let theirs = [stdin.0, stdout.0, stderr.0];
        let (stdin, stdout, stderr) = (stdin.1, stdout.1, stderr.1);
        (Simulated { stdin, stdout, stderr, life: Life(state.clone()) }, state, theirs)
    }

    /// Ends the process with an exit code.
    pub fn exit(self, code: u8) {
        self.life.0.end(i32::from(code) << 8);
    }

    /// Waits for the next signal that the program sends to the process. A signal has no effect of
    /// its own: to obey `SIGTERM`, exit. Returns `None` once the program has killed or dropped the
    /// process. Blocks unless there is a signal.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait. It takes no signal.
    #[track_caller]
    pub fn next_signal(&self) -> impl Future<Output = Result<Option<Signal>, Interrupt>> {
        let (state, site) = (&self.life.0, Location::caller());
        async move {
            loop {
                let signal = state.signals.borrow_mut().pop_front();
                if signal.is_some() || state.status.get().is_some() {
                    return Ok(signal);
                }
                state.changed.wait_from(site).await?;
            }
        }
    }
}

/// Ends the process when the test drops its end.
#[derive(Debug)]
struct Life(Rc<State>);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.end(KILLED);
    }
}

/// What both ends of a process in memory share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) status: Cell<Option<ExitStatus>>,
    signals: RefCell<VecDeque<Signal>>,
    /// Both ends wait here, for the exit status and for a signal.
    pub(super) changed: WaitQueue,
    streams: [[Rc<Lane>; 2]; 3],
}

impl State {
    /// Ends the process, unless it has ended, and closes the process's side of its streams.
    pub(super) fn end(&self, status: i32) {
        if self.status.get().is_none() {
            self.status.set(Some(ExitStatus::from_raw(status)));
            self.streams.as_flattened().iter().for_each(|lane| lane.close());
            self.changed.wake(u64::MAX);
        }
    }

    pub(super) fn send(&self, signal: Signal) {
        if self.status.get().is_none() {
            self.signals.borrow_mut().push_back(signal);
            self.changed.wake(u64::MAX);
        }
    }
}
