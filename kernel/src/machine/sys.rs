//! System calls that the standard library and mio do not offer.
//!
//! This is the only file of the project with `unsafe` in it. Each wrapper is as thin as possible,
//! as long as its callers need no `unsafe`. Each proof lists the call's requirements and why they
//! hold.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::RawFd;
#[cfg(target_os = "linux")]
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use super::signals;

#[cfg(target_os = "linux")]
use libc::__errno_location as errno;
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
use libc::__error as errno;

/// The cheapest clock. Other systems than Linux have one monotonic clock.
#[cfg(target_os = "linux")]
const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC_COARSE;
#[cfg(not(target_os = "linux"))]
const COARSE: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// The event of `poll` for a peer that has closed its side. Apple reports it as `POLLIN`.
#[cfg(not(target_vendor = "apple"))]
const CLOSED: libc::c_short = libc::POLLRDHUP;
#[cfg(target_vendor = "apple")]
const CLOSED: libc::c_short = 0;

/// Converts the result of a call that returns -1 and sets `errno` if it fails.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Reads the monotonic clock, in nanoseconds. This is no system call.
#[inline]
pub(super) fn exact_clock() -> u64 {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Reads the monotonic clock as of about the last tick of the system, in nanoseconds. On Linux this
/// is a load, not a system call, and the clock moves in steps of 1 to 10 ms.
#[inline]
pub(super) fn coarse_clock() -> u64 {
    read_clock(COARSE)
}

#[inline]
fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer must be valid for a write of one timespec: it is to our own local. A
    // clock that the system does not know would leave the local as it is; Linux has had the two
    // clocks above since 2.6.32.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// A clock of the CPU time that a thread uses. Reading it costs a system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuClock(libc::clockid_t);

impl CpuClock {
    /// The clock of the thread that reads it.
    pub(super) const CALLER: CpuClock = CpuClock(libc::CLOCK_THREAD_CPUTIME_ID);

    /// Returns the clock of this thread, for other threads to read, or `None` if the system has
    /// none.
    #[cfg(not(target_vendor = "apple"))]
    pub(crate) fn of_this_thread() -> Option<CpuClock> {
        let mut clock = 0;
        // SAFETY: the first argument must be a thread that has not ended: it is the caller. The
        // pointer must be valid for a write of one clockid_t: it is to our own local.
        let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (failed == 0).then_some(CpuClock(clock))
    }

    #[cfg(target_vendor = "apple")]
    pub(crate) fn of_this_thread() -> Option<CpuClock> {
        None
    }

    /// Reads the CPU time so far. Returns `None` if the thread has ended.
    pub(crate) fn read(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer must be valid for a write of one timespec: it is to our own local. If
        // the clock does not exist, the call returns an error.
        check(unsafe { libc::clock_gettime(self.0, &raw mut time) }).ok()?;
        Some(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// Makes a timer of the monotonic clock: non-blocking, closed on exec, not armed.
#[cfg(target_os = "linux")]
pub(super) fn timerfd() -> io::Result<OwnedFd> {
    let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
    // SAFETY: the call takes integers only.
    let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
    // SAFETY: the descriptor must be open and owned by no other value: the line above made it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Arms a timer to become readable once, `after` from now; zero counts as 1 ns. Arming also makes a
/// readable timer unreadable, until it expires again.
#[cfg(target_os = "linux")]
pub(super) fn timerfd_arm(fd: BorrowedFd<'_>, after: Duration) -> io::Result<()> {
    // For the call, zero means "disarm".
    let after = after.max(Duration::from_nanos(1));
    let time = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec {
            tv_sec: after.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: after.subsec_nanos() as libc::c_long,
        },
    };
    // SAFETY: the first pointer must be valid for a read of one itimerspec: it is to our own
    // local. The second may be null, and then nothing is written. `fd` is open while borrowed.
    check(unsafe { libc::timerfd_settime(fd.as_raw_fd(), 0, &raw const time, ptr::null_mut()) })?;
    Ok(())
}

/// Returns whether a descriptor has bytes to read, its peer has closed, or the system cannot tell.
/// An error alone does not count, because some errors are not cleared by a read.
pub(super) fn is_readable(fd: RawFd) -> bool {
    let wanted = libc::POLLIN | CLOSED;
    let mut poll = libc::pollfd { fd, events: wanted, revents: 0 };
    // SAFETY: the pointer must be valid for reads and writes of one pollfd: it is to our own local.
    // If the descriptor is not open, the call reports this in `revents`.
    let found = unsafe { libc::poll(&raw mut poll, 1, 0) };
    found == -1 || poll.revents & !libc::POLLERR != 0
}

/// Handles every watched signal.
extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: the pointer must be valid for a read of an int: it is this thread's `errno`, which
    // lives as long as the thread.
    let before = unsafe { *errno() };
    signals::note(signal);
    // SAFETY: as above, for a write; no reference to it exists. The interrupted code finds the
    // value that it left.
    unsafe { *errno() = before };
}

/// Sets the handler of `signal` for the process to one that calls [`signals::note`]. Interrupted
/// system calls continue, except for those that Linux never restarts: waits such as `epoll_wait`
/// fail with `EINTR`.
pub(super) fn handle_signal(signal: i32) -> io::Result<()> {
    // SAFETY: all zeros must be a sigaction: it is integers, an empty set of signals among them,
    // and an optional function.
    let mut action = unsafe { mem::zeroed::<libc::sigaction>() };
    action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the first pointer must be valid for a read of one sigaction: it is to our own
    // local. The second may be null. The handler must have the signature that the flags ask for,
    // an int without SA_SIGINFO: it has; it must live as long as the process: it is a function;
    // and it may call only what is safe in a handler on any thread at any time: loads and stores
    // of atomics and of `errno`, and `write`. It does not panic: a signal number is below 64.
    check(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) })?;
    Ok(())
}

/// Lets children of the process keep their exit statuses until they are waited for: sets `SIGCHLD`
/// to its default action if it is ignored, and removes its flag `SA_NOCLDWAIT`. A handler stays.
pub(crate) fn keep_statuses() -> io::Result<()> {
    // SAFETY: all zeros must be a sigaction, as in `handle_signal`.
    let mut action = unsafe { mem::zeroed::<libc::sigaction>() };
    // SAFETY: the first pointer may be null. The second must be valid for a write of one sigaction:
    // it is to our own local.
    check(unsafe { libc::sigaction(libc::SIGCHLD, ptr::null(), &raw mut action) })?;
    let is_ignored = action.sa_sigaction == libc::SIG_IGN;
    if !is_ignored && action.sa_flags & libc::SA_NOCLDWAIT == 0 {
        return Ok(());
    }
    if is_ignored {
        action.sa_sigaction = libc::SIG_DFL;
    }
    action.sa_flags &= !libc::SA_NOCLDWAIT;
    // SAFETY: the first pointer must be valid for a read of one sigaction: it is to our own local.
    // The second may be null. The handler is the one that the system has given, or the default.
    check(unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut()) })?;
    Ok(())
}

/// Makes a write beyond the process's limit of file sizes an error. By default `SIGXFSZ` ends the
/// process. A handler, unlike an ignored signal, is not inherited by started programs.
pub(crate) fn survive_file_limit() -> io::Result<()> {
    // SAFETY: all zeros must be a sigaction, as above.
    let mut action = unsafe { mem::zeroed::<libc::sigaction>() };
    // SAFETY: the first pointer may be null. The second must be valid for a write of one
    // sigaction: it is to our own local.
    check(unsafe { libc::sigaction(libc::SIGXFSZ, ptr::null(), &raw mut action) })?;
    if action.sa_sigaction == libc::SIG_DFL { handle_signal(libc::SIGXFSZ) } else { Ok(()) }
}

#[cfg(all(test, target_os = "linux"))]
pub mod tests {
    use super::*;
    use std::os::fd::AsFd;

    pub fn raise(signal: i32) {
        // SAFETY: the call takes an integer; the tests raise only what they watch.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    pub fn set_errno(number: i32) {
        // SAFETY: it is this thread's `errno`, and no reference to it exists.
        unsafe { *errno() = number };
    }

    pub fn is_readable_now(fd: RawFd) -> bool {
        poll(fd, 0)
    }

    extern "C" fn on_child(_: libc::c_int) {}

    /// Sets the action of SIGCHLD and its flags, and returns what `keep_statuses` makes of them.
    fn kept(handler: libc::sighandler_t, flags: libc::c_int) -> (libc::sighandler_t, libc::c_int) {
        // SAFETY: all zeros are a sigaction, the pointers are to our own locals or null, and the
        // handlers do nothing, for the process or in themselves.
        let mut action = unsafe { mem::zeroed::<libc::sigaction>() };
        (action.sa_sigaction, action.sa_flags) = (handler, flags);
        check(unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut()) })
            .unwrap();
        keep_statuses().unwrap();
        check(unsafe { libc::sigaction(libc::SIGCHLD, ptr::null(), &raw mut action) }).unwrap();
        (action.sa_sigaction, action.sa_flags & (libc::SA_NOCLDWAIT | libc::SA_NOCLDSTOP))
    }

    #[test]
    fn an_ignored_sigchld_has_its_default_again_and_a_handler_stays() {
        let (handler, wait, stop) =
            (on_child as *const () as libc::sighandler_t, libc::SA_NOCLDWAIT, libc::SA_NOCLDSTOP);
        assert_eq!(kept(libc::SIG_IGN, 0), (libc::SIG_DFL, 0));
        assert_eq!(kept(libc::SIG_IGN, wait), (libc::SIG_DFL, 0));
        assert_eq!(kept(handler, wait | stop), (handler, stop));
        assert_eq!(kept(handler, stop), (handler, stop));
        assert_eq!(kept(libc::SIG_DFL, wait), (libc::SIG_DFL, 0));
        assert_eq!(kept(libc::SIG_DFL, 0), (libc::SIG_DFL, 0));
    }

    fn poll(fd: RawFd, timeout: i32) -> bool {
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer must be valid for reads and writes of one pollfd: it is our own.
        check(unsafe { libc::poll(&raw mut poll, 1, timeout) }).unwrap() == 1
    }

    #[test]
    fn the_coarse_clock_never_goes_back() {
        let before = coarse_clock();
        assert!(before > 0 && coarse_clock() >= before);
    }

    #[test]
    fn a_thread_that_waits_uses_no_cpu_time_and_another_thread_can_read_that() {
        let clock = CpuClock::of_this_thread().unwrap();
        let before = CpuClock::CALLER.read().unwrap();
        while CpuClock::CALLER.read().unwrap() == before {}
        let theirs = std::thread::spawn(move || clock.read().unwrap()).join().unwrap();
        assert!(before < theirs && theirs <= CpuClock::CALLER.read().unwrap());
        let gone = std::thread::spawn(|| CpuClock::of_this_thread().unwrap()).join().unwrap();
        assert_eq!(gone.read(), None);
    }

    #[test]
    fn a_timer_is_readable_once_it_expired_and_not_when_armed_again() {
        let timer = timerfd().unwrap();
        assert!(!is_readable_now(timer.as_raw_fd()));
        for soon in [Duration::ZERO, Duration::from_millis(1)] {
            timerfd_arm(timer.as_fd(), soon).unwrap();
            assert!(poll(timer.as_raw_fd(), -1));
            timerfd_arm(timer.as_fd(), Duration::MAX).unwrap();
            assert!(!is_readable_now(timer.as_raw_fd()));
        }
        let no_timer = std::fs::File::open("/dev/null").unwrap();
        assert!(timerfd_arm(no_timer.as_fd(), Duration::ZERO).is_err());
    }
}
