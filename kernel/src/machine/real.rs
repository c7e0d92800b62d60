//! Unix, through mio: the poller, the kernel clock, and the environment.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd;
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use traps::internal::table::Descriptor;
use traps::{Signal, Time};

use super::sealed::Driver;
use super::signals::Listener;
use super::{Arrivals, Bell, CpuClock, IoEvent, WaitLimit, sys};
use crate::options::ARRIVALS;

const BELL: Token = Token(usize::MAX);
const SIGNALS: Token = Token(usize::MAX - 1);
#[cfg(target_os = "linux")]
const TIMER: Token = Token(usize::MAX - 2);
/// The environment variable that sets the deadline tick in milliseconds, if the options of a kernel
/// do not.
const TICK: &str = "TRAPLINE_DEADLINE_TICK_MS";

/// The operating system: epoll, the monotonic clock, and an eventfd as the bell. On macOS and
/// FreeBSD, a kqueue is the poller, the timer and the bell. It does not exist on other systems.
///
/// ```
/// use std::time::{Duration, Instant};
/// use kernel::{Kernel, Real};
///
/// # fn main() -> std::io::Result<()> {
/// let (begin, span) = (Instant::now(), Duration::from_millis(2));
/// let mut kernel = Kernel::new(Real::new()?);
/// kernel.run(traps::sleep(span)).unwrap().unwrap();
/// assert!(begin.elapsed() >= span); // never early
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Real {
    poll: Poll,
    events: Events,
    bell: Arc<Waker>,
    /// The reading of the clock when the machine was made, in nanoseconds.
    start: u64,
    signals: Option<Listener>,
    /// The timer for the end of a wait. It is exact to a microsecond; the poller's own timeout is
    /// only exact to a millisecond.
    #[cfg(target_os = "linux")]
    timer: OwnedFd,
    /// The point in time to which the timer is set, if it is set.
    #[cfg(target_os = "linux")]
    set_to: Option<Time>,
    /// The deadline tick that the environment sets, if it sets one.
    tick: Option<Duration>,
}

impl Bell for Waker {
    fn ring(&self) {
        // The eventfd counts its writes. If the counter is full, the bell has rung already.
        let _ = self.wake();
    }
}

impl Real {
    /// Opens the poller and its bell. Reads `TRAPLINE_DEADLINE_TICK_MS` here, and never again.
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example if no descriptor is left. Returns `InvalidInput` if
    /// the variable is set to anything other than a whole number of milliseconds, at most an hour.
    pub fn new() -> io::Result<Real> {
        let start = sys::exact_clock();
        let tick = std::env::var_os(TICK).map(|found| tick(&found)).transpose()?;
        let poll = Poll::new()?;
        let bell = Arc::new(Waker::new(poll.registry(), BELL)?);
        #[cfg(target_os = "linux")]
        let timer = sys::timerfd()?;
        #[cfg(target_os = "linux")]
        poll.registry().register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        let events = Events::with_capacity(ARRIVALS);
        Ok(Real {
            poll,
            events,
            bell,
            start,
            signals: None,
            #[cfg(target_os = "linux")]
            timer,
            #[cfg(target_os = "linux")]
            set_to: None,
            tick,
        })
    }

    /// Makes the next wait end at `point` or earlier. Calls the system only if the timer is set to
    /// a later point. If an earlier setting is left in place, the wait ends in vain at that point,
    /// and the timer is set again. This pays for a deadline that is pushed back again and again,
    /// such as 60 s for the next request of a connection: one vain wake-up a minute, instead of a
    /// system call per request.
    #[cfg(target_os = "linux")]
    fn set_timer(&mut self, point: Time) -> io::Result<()> {
        if self.set_to.is_none_or(|set_to| set_to > point) {
            sys::timerfd_arm(self.timer.as_fd(), point.since(since(self.start)))?;
            self.set_to = Some(point);
        }
        Ok(())
    }
}

fn tick(found: &OsStr) -> io::Result<Duration> {
    let millis = found.to_str().and_then(|text| text.parse().ok());
    // More than an hour is a mistake.
    millis.filter(|millis| *millis <= 3_600_000).map(Duration::from_millis).ok_or_else(|| {
        let found = found.to_string_lossy();
        let text =
            format!("{TICK}: expected a number of milliseconds up to 3600000, not `{found}`");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

/// Reads the clock of a machine, in whole microseconds since `start`.
#[inline]
fn since(start: u64) -> Time {
    Time::from_micros((sys::exact_clock() - start) / 1000)
}

fn unscripted() -> io::Error {
    let text = "a scripted descriptor exists on the simulated machine only";
    io::Error::new(io::ErrorKind::Unsupported, text)
}

impl Driver for Real {
    fn clock_name(&self) -> &'static str {
        "real"
    }

    fn tick(&self) -> Option<Duration> {
        self.tick
    }

    fn now(&mut self) -> Time {
        since(self.start)
    }

    fn mark(&mut self) -> u64 {
        sys::coarse_clock()
    }

    fn cpu(&mut self) -> Option<Duration> {
        CpuClock::CALLER.read()
    }

    fn wall_clock(&self) -> Box<dyn Fn() -> SystemTime> {
        Box::new(SystemTime::now)
    }

    // `Taped` calls this too. With two callers the compiler would not inline it, and each wait of
    // `Real` would pay for a call.
    #[inline(always)]
    fn wait(&mut self, until: WaitLimit, arrivals: &mut Arrivals) -> io::Result<()> {
        let timeout = match until {
            WaitLimit::Now => Some(Duration::ZERO),
            #[cfg(target_os = "linux")]
            WaitLimit::Arrival { by, .. } => {
                by.map_or(Ok(()), |by| self.set_timer(by))?;
                None
            }
            // A kqueue counts nanoseconds, so it needs no timer. It refuses very long timeouts; a
            // wait that ends early ends in vain.
            #[cfg(not(target_os = "linux"))]
            WaitLimit::Arrival { by, .. } => {
                by.map(|by| by.since(since(self.start)).min(Duration::from_secs(86_400)))
            }
        };
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            // A signal handler ran. If the kernel watches that signal, the next wait reports it.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        for event in &self.events {
            match event.token() {
                BELL => arrivals.bell = true,
                #[cfg(target_os = "linux")]
                TIMER => self.set_to = None,
                SIGNALS => arrivals.signals.extend(self.signals.iter().flat_map(Listener::take)),
                Token(token) => {
                    // Report an error and a close as readiness: the next read or write fetches it.
                    // Otherwise a task that waits for bytes would wait forever.
                    let closed = event.is_read_closed() || event.is_error();
                    arrivals.io.push(IoEvent {
                        token: token as u64,
                        readable: event.is_readable() || closed,
                        writable: event.is_writable()
                            || event.is_write_closed()
                            || event.is_error(),
                        closed,
                        urgent: event.is_priority(),
                    });
                }
            }
        }
        Ok(())
    }

    fn register(&mut self, descriptor: Descriptor, token: u64) -> io::Result<()> {
        let Descriptor::Real(fd) = descriptor else { return Err(unscripted()) };
        let token = usize::try_from(token).map_err(io::Error::other)?;
        let all = Interest::READABLE | Interest::WRITABLE;
        // A kqueue does not report urgent data.
        #[cfg(target_os = "linux")]
        let all = all | Interest::PRIORITY;
        self.poll.registry().register(&mut SourceFd(&fd), Token(token), all)
    }

    fn deregister(&mut self, descriptor: Descriptor) -> io::Result<()> {
        let Descriptor::Real(fd) = descriptor else { return Err(unscripted()) };
        self.poll.registry().deregister(&mut SourceFd(&fd))
    }

    fn is_readable(&mut self, descriptor: Descriptor) -> bool {
        let Descriptor::Real(fd) = descriptor else { return true };
        sys::is_readable(fd)
    }

    fn bell(&self) -> Arc<dyn Bell> {
        self.bell.clone()
    }

    fn watch_signal(&mut self, signal: Signal) -> io::Result<()> {
        if self.signals.is_none() {
            let listener = Listener::new()?;
            let fd = listener.as_raw_fd();
            self.poll.registry().register(&mut SourceFd(&fd), SIGNALS, Interest::READABLE)?;
            self.signals = Some(listener);
        }
        crate::machine::sys::handle_signal(crate::machine::signals::number(signal))
    }

    fn thread_clock(&self) -> Box<dyn Fn() -> Time + Send + Sync> {
        let start = self.start;
        Box::new(move || since(start))
    }

    fn has_io(&self) -> bool {
        true
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn d33_a_deadline_that_is_pushed_back_costs_no_system_call() {
        let mut real = Real::new().unwrap();
        let after = |seconds| Time::ZERO + Duration::from_secs(seconds);
        // The requested point, and the timer's setting after the request.
        for (asked, set_to) in [(1000, 1000), (1001, 1000), (999, 999), (5000, 999)] {
            real.set_timer(after(asked)).unwrap();
            assert_eq!(real.set_to, Some(after(set_to)));
        }
        // The timer has expired. From here on it is set to the requested point.
        real.set_to = None;
        real.set_timer(after(5000)).unwrap();
        assert_eq!(real.set_to, Some(after(5000)));
    }
}
