//! The system calls of the measurements: pinning, `/proc`, and the bare calls of the `epoll` peer
//! and of the load generator.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::net::{RecvFlags, SendFlags, SocketFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// Keeps this thread, and what it starts, on one core.
///
/// # Errors
///
/// Returns the system's error if there is no such core.
pub fn pin(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// The cores that this process may run on; an invalid one if the system does not report them.
pub fn own_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else { return vec![CpuSet::MAX_CPU] };
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Raises the limit of descriptors as far as the system allows. Returns the limit.
///
/// # Errors
///
/// Returns the system's error if no limit can be set.
pub fn raise_descriptors() -> io::Result<u64> {
    let found = rustix::process::getrlimit(Resource::Nofile);
    let most = found.maximum.unwrap_or(u64::MAX);
    let wanted = Rlimit { current: Some(65_536), maximum: Some(most.max(65_536)) };
    let own = Rlimit { current: found.maximum, ..found };
    for limit in [wanted, own] {
        let current = limit.current.unwrap_or(u64::MAX);
        if rustix::process::setrlimit(Resource::Nofile, limit).is_ok() {
            return Ok(current);
        }
    }
    Ok(found.current.unwrap_or(u64::MAX))
}

/// Ends this process when the one that started it ends.
///
/// # Errors
///
/// The system's.
pub fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?)
}

/// Sends SIGTERM to a process that this one started.
///
/// # Errors
///
/// The system's: it is gone.
pub fn terminate(pid: u32) -> io::Result<()> {
    signal(pid, Signal::TERM)
}

/// Sends a signal to a process that this one started.
///
/// # Errors
///
/// The system's: it is gone.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, signal)?)
}

/// The state of a process, as a letter of `/proc/PID/stat`: `S` sleeps, `T` and `t` are stopped.
///
/// # Errors
///
/// The process is gone.
pub fn state(pid: u32) -> io::Result<char> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name of the program, in parentheses, may have any character.
    let after = text.rsplit_once(") ").and_then(|(_, after)| after.chars().next());
    after.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Milliseconds of the monotonic clock as of its last tick.
#[must_use]
#[inline]
pub fn coarse_millis() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec.unsigned_abs() * 1000 + now.tv_nsec.unsigned_abs() / 1_000_000
}

/// A bare epoll instance, edge-triggered.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<epoll::Event>,
}

/// The content of one event.
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
        let fd = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Epoll { fd, events: Vec::with_capacity(1024) })
    }

    /// Registers a descriptor for both directions, or for reading alone. Closing it ends that.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn add(&self, fd: impl AsFd, token: usize, write: bool) -> io::Result<()> {
        use epoll::EventFlags as Flags;
        let both = if write { Flags::OUT } else { Flags::empty() };
        let events = Flags::IN | Flags::RDHUP | Flags::ET | both;
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(token as u64), events)?)
    }

    /// Waits for at most this many milliseconds (`None`: forever). Returns the number of events.
    ///
    /// # Errors
    ///
    /// Returns the system's error, except `Interrupted`, which counts as no events.
    pub fn wait(&mut self, millis: Option<u32>) -> io::Result<usize> {
        let span = millis.map(|millis| Timespec {
            tv_sec: i64::from(millis / 1000),
            tv_nsec: i64::from(millis % 1000) * 1_000_000,
        });
        self.events.clear();
        match epoll::wait(&self.fd, spare_capacity(&mut self.events), span.as_ref()) {
            Ok(count) => Ok(count),
            Err(rustix::io::Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// One event of the last wait.
    #[must_use]
    #[inline]
    pub fn event(&self, n: usize) -> Ready {
        use epoll::EventFlags as Flags;
        let epoll::Event { flags, data } = self.events[n];
        let ended = flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
        Ready {
            token: data.u64() as usize,
            readable: ended || flags.contains(Flags::IN),
            ended,
            writable: flags.contains(Flags::OUT),
        }
    }
}

/// Accepts one connection in non-blocking mode by one system call.
///
/// # Errors
///
/// Returns the system's error; `WouldBlock` if none waits.
pub fn accept(listener: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)?)
}

/// Reads from a socket.
///
/// # Errors
///
/// Returns the system's error; `WouldBlock` if there is nothing.
#[inline]
pub fn recv(fd: impl AsFd, buf: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::net::recv(fd, buf, RecvFlags::empty())?.0)
}

/// Writes to a socket.
///
/// # Errors
///
/// Returns the system's error; `WouldBlock` if there is no room.
#[inline]
pub fn send(fd: impl AsFd, buf: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(fd, buf, SendFlags::NOSIGNAL)?)
}

/// CPU time of all threads of a process, in nanoseconds, from `/proc/PID/task/*/schedstat` (the
/// sum of `utime` and `stime`, without their rounding to hundredths of a second).
///
/// # Errors
///
/// Returns an error if the process has gone, or if the system keeps no such count.
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

/// The seconds that all cores together have been busy since the start of the machine.
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

/// How many cores the machine has, even if the process is pinned to one.
#[must_use]
pub fn cores() -> usize {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let is_core = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
    text.lines().filter(is_core).count().max(1)
}
