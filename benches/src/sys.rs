//! What the measuring asks of the system: pinning, `/proc`, and the bare calls of the `epoll` peer
//! and of the load generator.
//!
//! The only file here with `unsafe`.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The error of the last call if it says so, else what it returned.
fn check(result: i32) -> io::Result<usize> {
    check_size(result as isize)
}

fn check_size(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Keeps this process on one core.
///
/// # Errors
///
/// The system's: no such core.
pub fn pin(core: usize) -> io::Result<()> {
    // SAFETY: a set is bits alone, and all zero is an empty one.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: takes a set of ours by reference; a core beyond its end is refused by its own check.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the set outlives the call, and its size is told.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }).map(drop)
}

/// Raises the limit of descriptors as far as the system lets it; says to how many.
///
/// # Errors
///
/// The system's, if it cannot be read.
pub fn raise_descriptors() -> io::Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the struct outlives the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    let wanted = libc::rlimit { rlim_cur: 65_536, rlim_max: limit.rlim_max.max(65_536) };
    let own = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
    for limit in [wanted, own] {
        // SAFETY: the struct outlives the call.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
            return Ok(limit.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

/// Ends this process when the one that started it ends.
///
/// # Errors
///
/// The system's.
pub fn end_with_parent() -> io::Result<()> {
    // SAFETY: takes no memory of ours.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM) }).map(drop)
}

/// Sends SIGTERM to a process that this one started.
///
/// # Errors
///
/// The system's: it is gone.
pub fn terminate(pid: u32) -> io::Result<()> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    // SAFETY: takes no memory of ours.
    check(unsafe { libc::kill(pid, libc::SIGTERM) }).map(drop)
}

/// Milliseconds of the monotonic clock as of its last tick.
#[must_use]
#[inline]
pub fn coarse_millis() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the struct outlives the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// A bare epoll instance, edge-triggered.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
}

/// What one event told.
#[derive(Clone, Copy)]
pub struct Ready {
    /// The number that was registered.
    pub token: usize,
    /// Something can be read, or reading has ended.
    pub readable: bool,
    /// The peer has ended, or there is an error: a short read is not all.
    pub ended: bool,
    /// There is room again.
    pub writable: bool,
}

impl Epoll {
    /// # Errors
    ///
    /// The system's.
    pub fn new() -> io::Result<Epoll> {
        // SAFETY: takes no memory of ours.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: it was made a line above, and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        Ok(Epoll { fd, events: vec![libc::epoll_event { events: 0, u64: 0 }; 1024] })
    }

    /// Registers a descriptor for both directions, or for reading alone. Closing it ends that.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn add(&self, fd: RawFd, token: usize, write: bool) -> io::Result<()> {
        let both = if write { libc::EPOLLOUT } else { 0 };
        let events = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET | both).cast_unsigned();
        let mut event = libc::epoll_event { events, u64: token as u64 };
        let (epoll, add) = (self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD);
        // SAFETY: the event outlives the call.
        check(unsafe { libc::epoll_ctl(epoll, add, fd, &raw mut event) }).map(drop)
    }

    /// Waits for so many milliseconds at most (-1: for ever); says how many events there are.
    ///
    /// # Errors
    ///
    /// The system's; not `Interrupted`, which gives none.
    pub fn wait(&mut self, millis: i32) -> io::Result<usize> {
        let (at, most) = (self.events.as_mut_ptr(), self.events.len() as i32);
        // SAFETY: the room for events is as large as is told.
        match check(unsafe { libc::epoll_wait(self.fd.as_raw_fd(), at, most, millis) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            done => done,
        }
    }

    /// One event of the last wait.
    #[must_use]
    #[inline]
    pub fn event(&self, n: usize) -> Ready {
        let libc::epoll_event { events, u64: token } = self.events[n];
        let has = |bits: i32| events & bits.cast_unsigned() != 0;
        let ended = has(libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR);
        Ready {
            token: token as usize,
            readable: ended || has(libc::EPOLLIN),
            ended,
            writable: has(libc::EPOLLOUT),
        }
    }
}

/// Accepts one connection in non-blocking mode by one system call.
///
/// # Errors
///
/// The system's; `WouldBlock` if none waits.
pub fn accept(listener: RawFd) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    let none = std::ptr::null_mut();
    // SAFETY: with no place for the address nothing is written.
    let fd = check(unsafe { libc::accept4(listener, none, none.cast(), flags) })?;
    // SAFETY: it was made a line above, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Reads from a socket.
///
/// # Errors
///
/// The system's; `WouldBlock` if there is nothing.
#[inline]
pub fn recv(fd: RawFd, buf: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the room is as large as is told.
    check_size(unsafe { libc::recv(fd, buf.as_mut_ptr().cast(), buf.len(), 0) })
}

/// Writes to a socket.
///
/// # Errors
///
/// The system's; `WouldBlock` if there is no room.
#[inline]
pub fn send(fd: RawFd, buf: &[u8]) -> io::Result<usize> {
    // SAFETY: the bytes are as many as is told.
    check_size(unsafe { libc::send(fd, buf.as_ptr().cast(), buf.len(), libc::MSG_NOSIGNAL) })
}

/// CPU time of all threads of a process, in nanoseconds, from `/proc/PID/task/*/schedstat` (the
/// sum of `utime` and `stime`, without their rounding to hundredths of a second).
///
/// # Errors
///
/// The process is gone, or the system keeps no such count.
pub fn cpu_nanos(pid: u32) -> io::Result<u64> {
    let mut sum = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let first = text.split(' ').next().and_then(|word| word.parse::<u64>().ok());
        sum += first.ok_or(io::ErrorKind::InvalidData)?;
    }
    Ok(sum)
}

/// Bytes of a process that are in memory.
///
/// # Errors
///
/// The process is gone.
pub fn resident(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("Rss:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kib.ok_or(io::ErrorKind::InvalidData)? * 1024)
}

/// Seconds for which all cores together were busy since the start of the machine.
///
/// # Errors
///
/// `/proc/stat` cannot be read.
pub fn busy_seconds() -> io::Result<f64> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().ok_or(io::ErrorKind::InvalidData)?;
    let ticks: Vec<f64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let busy: f64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|place| ticks.get(*place)).sum();
    Ok(busy / 100.0)
}

/// How many cores the machine has, also for a process that is kept on one.
#[must_use]
pub fn cores() -> usize {
    // SAFETY: takes no memory of ours.
    let count = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(count).unwrap_or(1).max(1)
}

/// The first child of a process that this one started.
#[must_use]
pub fn child_of(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    text.split(' ').next()?.parse().ok()
}
