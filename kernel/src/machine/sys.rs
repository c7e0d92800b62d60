//! System calls that the standard library and mio do not serve: clocks, timers, limits, signals.
//!
//! The only file of the project with `unsafe` in it. Each wrapper is as thin as it can be made
//! while its callers need no `unsafe`; each proof lists what the call asks of us.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{self, Read};
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::limits::LISTENERS;

/// The monotonic clock as of about the last tick: a load, not a system call.
///
/// In nanoseconds. Behind by less than two of [`clock_monotonic_coarse_resolution`]: it is moved at
/// ticks, and by whole ticks only, so that what is left over, less than one, is missing as well.
/// Read at each run, and not checked, as the exact one is.
#[inline]
pub(crate) fn clock_monotonic_coarse_nanos() -> u64 {
    let (time, failed) = read_clock(libc::CLOCK_MONOTONIC_COARSE);
    debug_assert!(!failed, "Linux has had this clock since 2.6.32");
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}

/// The monotonic clock itself, on the same scale.
#[inline]
pub(crate) fn clock_monotonic() -> Duration {
    span(reading(libc::CLOCK_MONOTONIC))
}

/// What one of the clocks says that Linux has had since 2.6.32 or longer.
#[inline]
fn reading(clock: libc::clockid_t) -> libc::timespec {
    let (time, failed) = read_clock(clock);
    assert!(!failed, "this system has that clock");
    time
}

/// What a clock says, and whether there is none.
#[inline]
fn read_clock(clock: libc::clockid_t) -> (libc::timespec, bool) {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer must be valid for a write of one timespec: it is to our own local.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) } != 0;
    (time, failed)
}

/// How far apart the ticks of [`clock_monotonic_coarse_nanos`] are.
pub(crate) fn clock_monotonic_coarse_resolution() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer must be valid for a write of one timespec: it is to our own local.
    let failed = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    assert_eq!(failed, 0, "Linux has had this clock since 2.6.32");
    span(time)
}

/// A time of the kernel below, which is never negative and has less than a second in `tv_nsec`.
fn span(time: libc::timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Sets the soft limit of open descriptors to the hard one. Returns both, the soft one first,
/// as they are now.
///
/// # Errors
///
/// If the limit cannot be read or set; it is then as it was.
pub(crate) fn raise_descriptor_limit() -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer must be valid for a write of one rlimit: it is to our own local.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur != limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the pointer must be valid for a read of one rlimit: it is to our own local.
        check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    }
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Makes a timer of the monotonic clock: non-blocking, closed on exec, not armed.
pub(crate) fn timerfd() -> io::Result<OwnedFd> {
    let flags = libc::TFD_NONBLOCK | libc::TFD_CLOEXEC;
    // SAFETY: the call takes integers only.
    let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
    // SAFETY: the descriptor must be open and nobody else's: it was made by the line above.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes a timer readable once, `after` from now; zero counts as 1 ns, the soonest there is.
/// `None` disarms it. Either way it is not readable on return, unless it has expired anew.
///
/// # Errors
///
/// If `fd` is not a timer.
pub(crate) fn timerfd_arm(fd: BorrowedFd<'_>, after: Option<Duration>) -> io::Result<()> {
    // To the call, zero means "disarm".
    let value = after.map_or(Duration::ZERO, |after| after.max(Duration::from_nanos(1)));
    let time = libc::itimerspec {
        it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: libc::timespec {
            // 292 thousand million years, which Linux cuts to 292 of its own.
            tv_sec: value.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: value.subsec_nanos() as libc::c_long,
        },
    };
    // SAFETY: the first pointer must be valid for a read of one itimerspec: it is to our own
    // local. The second may be null, and then nothing is written. `fd` is open while borrowed.
    check(unsafe { libc::timerfd_settime(fd.as_raw_fd(), 0, &raw const time, ptr::null_mut()) })?;
    Ok(())
}

/// Whether a descriptor has something to read, or its peer's end; also where the system cannot
/// say. An error alone is neither: there may be one that no read takes away.
pub(crate) fn is_readable(fd: RawFd) -> bool {
    let wanted = libc::POLLIN | libc::POLLRDHUP;
    let mut look = libc::pollfd { fd, events: wanted, revents: 0 };
    // SAFETY: the pointer must be valid for reads and writes of one pollfd: it is to our own local.
    // Of a descriptor that is not open the call says so.
    let found = unsafe { libc::poll(&raw mut look, 1, 0) };
    found == -1 || look.revents & !libc::POLLERR != 0
}

/// The result of a call that says -1 and sets `errno` when it fails.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The signals that an instruction of the thread itself raises. Blocking one, or returning from
/// a handler of one, cannot end well.
const FAULTS: [i32; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// Keeps signals away from the calling thread, for good: all but the four faults, so that a
/// stack overflow still says its name.
pub(crate) fn block_all_signals() {
    // SAFETY: all zeros must be a sigset_t: it is an array of integers.
    let mut all = unsafe { mem::zeroed::<libc::sigset_t>() };
    // SAFETY: each pointer must be valid for reads and writes of one sigset_t, or null where the
    // old mask would go: they are to our own local, set up by the first call, and null. The
    // numbers must be signals: they are. The mask is the calling thread's alone.
    let failed = unsafe {
        libc::sigfillset(&raw mut all);
        for fault in FAULTS {
            libc::sigdelset(&raw mut all, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut())
    };
    assert_eq!(failed, 0, "SIG_SETMASK and a set are all it takes");
}

/// A set of signal numbers, and an iterator of them, lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signals(u64);

impl Signals {
    /// The set of `signal` alone; empty if there is no such signal. Linux has 1 to 64.
    fn only(signal: i32) -> Signals {
        Signals(if matches!(signal, 1..=64) { 1 << (signal - 1) } else { 0 })
    }

    /// Whether `signal` is in the set.
    pub(crate) fn contains(self, signal: i32) -> bool {
        self.0 & Signals::only(signal).0 != 0
    }
}

impl Iterator for Signals {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        let lowest = (self.0 != 0).then(|| self.0.trailing_zeros() as i32 + 1)?;
        self.0 &= self.0 - 1;
        Some(lowest)
    }
}

/// What the handler of signals knows of one listener.
struct Slot {
    /// The listener's eventfd, or [`FREE`], or [`LEAVING`].
    fd: AtomicI32,
    /// The signals that came since the listener last took them; zero in a free slot.
    bits: AtomicU64,
    /// How many handlers are at this slot now, on any thread.
    inside: AtomicU32,
}

/// Nobody's slot.
const FREE: RawFd = -1;
/// A slot whose listener is on its way out: no handler may begin to use it, nor a new listener.
const LEAVING: RawFd = -2;

impl Slot {
    const fn new() -> Slot {
        Slot { fd: AtomicI32::new(FREE), bits: AtomicU64::new(0), inside: AtomicU32::new(0) }
    }

    /// Gives the slot to a listener with this eventfd, if it is free.
    fn claim(&self, fd: RawFd) -> bool {
        // Acquire pairs with the release of the last listener: its bits are gone.
        self.fd.compare_exchange(FREE, fd, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Tells the listener of a signal. Runs in the signal handler, so it does only what may be
    /// done there: lock-free atomics and `write`.
    fn tell(&self, signal: i32) {
        // Count ourselves in, then look: the listener that leaves does it the other way round
        // (says so, then counts). In one order of all four steps, hence `SeqCst`, either we see
        // that it leaves or it sees that we are here and keeps the descriptor open.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let fd = self.fd.load(Ordering::SeqCst);
        if fd >= 0 {
            // The bit before the count: whoever is woken by the count finds the bit.
            self.bits.fetch_or(Signals::only(signal).0, Ordering::Release);
            let one = 1_u64;
            // SAFETY: the pointer must be valid for a read of eight bytes: it is to our own
            // local. `fd` must be the listener's still, not a stranger's under the same number:
            // it is closed only after `retire`, which waits for `inside` to be zero. `write`
            // may be called in a signal handler. A failure is a full counter, which is readable.
            unsafe { libc::write(fd, (&raw const one).cast(), size_of::<u64>()) };
        }
        self.inside.fetch_sub(1, Ordering::Release);
    }

    /// Takes the slot from its listener. No handler uses the eventfd any more on return.
    fn retire(&self) {
        self.fd.store(LEAVING, Ordering::SeqCst);
        // A handler never blocks, so this is short; one on this thread has ended already.
        while self.inside.load(Ordering::SeqCst) != 0 {
            thread::yield_now();
        }
        self.bits.store(0, Ordering::Relaxed);
        self.fd.store(FREE, Ordering::Release);
    }
}

/// Every listener of the process. The handler may not lock or allocate, so the table is small,
/// static and searched from end to end.
static SLOTS: [Slot; LISTENERS] = [const { Slot::new() }; LISTENERS];

/// The handler of every watched signal.
extern "C" fn on_signal(signal: libc::c_int) {
    // SAFETY: the pointer must be valid for a read of an int: it is this thread's `errno`, which
    // lives as long as the thread.
    let errno = unsafe { *libc::__errno_location() };
    SLOTS.iter().for_each(|slot| slot.tell(signal));
    // SAFETY: as above, for a write; no reference to it exists. The interrupted code finds the
    // value that it left.
    unsafe { *libc::__errno_location() = errno };
}

/// Sees every signal that is watched, from its making on: readable when one has come.
///
/// Each listener sees each signal, however many there are. Signals of one number that come
/// between two calls of [`SignalListener::take`] are one.
pub(crate) struct SignalListener {
    /// In non-blocking mode; closed after `drop` has emptied the slot.
    eventfd: File,
    slot: &'static Slot,
}

/// Makes a listener. It sees nothing until [`watch_signal`] was called, by anyone.
///
/// # Errors
///
/// If no descriptor is to be had, or all [`LISTENERS`] slots of the process are taken.
pub(crate) fn signal_listener() -> io::Result<SignalListener> {
    // SAFETY: the call takes integers only.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) })?;
    // SAFETY: the descriptor must be open and nobody else's: it was made by the line above.
    let eventfd = unsafe { File::from_raw_fd(fd) };
    let slot = claim_slot(&SLOTS, fd)?;
    Ok(SignalListener { eventfd, slot })
}

/// Finds a free slot for the listener with this eventfd.
fn claim_slot(slots: &[Slot], fd: RawFd) -> io::Result<&Slot> {
    slots
        .iter()
        .find(|slot| slot.claim(fd))
        .ok_or_else(|| io::Error::other(format!("{} signal listeners at most", slots.len())))
}

/// Has every listener told of `signal`, instead of what would happen otherwise, until the process
/// ends: a watched signal that nobody listens to is ignored. Interrupted system calls go on,
/// but for those that Linux never restarts: waits such as `epoll_wait` fail with `EINTR`.
/// To watch a signal twice is to watch it.
///
/// # Errors
///
/// `InvalidInput` if there is no such signal, it cannot be caught, or it is a fault
/// (segmentation, bus, illegal instruction, arithmetic).
pub(crate) fn watch_signal(signal: i32) -> io::Result<()> {
    if FAULTS.contains(&signal) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: all zeros must be a sigaction: it is integers, an empty set of signals among them,
    // and an optional function.
    let mut action = unsafe { mem::zeroed::<libc::sigaction>() };
    action.sa_sigaction = on_signal as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the first pointer must be valid for a read of one sigaction: it is to our own
    // local. The second may be null. The handler must have the signature that the flags ask for,
    // an int without SA_SIGINFO: it has; it must live as long as the process: it is a function;
    // and it may call only what is safe in a handler on any thread at any time: loads and stores
    // of atomics and of `errno`, and `write`. It does not panic: it has no arithmetic that can
    // overflow and no index.
    check(unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) })?;
    Ok(())
}

impl SignalListener {
    /// Takes the signals that came since the last call. Empty if none did: a listener may be
    /// readable for a signal already taken.
    pub(crate) fn take(&self) -> Signals {
        // The count before the bits: a signal in between leaves the count, and the next call
        // finds nothing. The other way round it would leave a bit that nobody is woken for.
        // An error is an empty counter.
        let _ = (&self.eventfd).read(&mut [0; size_of::<u64>()]);
        Signals(self.slot.bits.swap(0, Ordering::Acquire))
    }
}

impl AsFd for SignalListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.eventfd.as_fd()
    }
}

impl Drop for SignalListener {
    fn drop(&mut self) {
        self.slot.retire();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

    /// Signals are the whole process's: one test of them at a time.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raise(signal: i32) {
        // SAFETY: the call takes an integer; the tests raise only what they watch or block.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    /// Whether `fd` is readable, now or, if `wait`, ever.
    fn readable(fd: BorrowedFd<'_>, wait: bool) -> bool {
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the pointer must be valid for reads and writes of one pollfd: it is our own.
        check(unsafe { libc::poll(&raw mut poll, 1, if wait { -1 } else { 0 }) }).unwrap() == 1
    }

    #[test]
    fn the_coarse_clock_never_goes_back_and_knows_its_resolution() {
        let coarse = || Duration::from_nanos(clock_monotonic_coarse_nanos());
        let (exact, before) = (clock_monotonic(), coarse());
        assert!(before <= clock_monotonic() && exact <= clock_monotonic());
        assert!(before > Duration::ZERO);
        assert!(coarse() >= before);
        assert!(clock_monotonic_coarse_resolution() > Duration::ZERO);
    }

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let (soft, hard) = raise_descriptor_limit().unwrap();
        assert_eq!(soft, hard);
        assert_eq!(raise_descriptor_limit().unwrap(), (soft, hard));
    }

    #[test]
    fn a_timer_is_readable_once_it_expired_and_not_when_armed_anew_or_disarmed() {
        let timer = timerfd().unwrap();
        assert!(!readable(timer.as_fd(), false));
        for soon in [Duration::ZERO, Duration::from_millis(1)] {
            timerfd_arm(timer.as_fd(), Some(soon)).unwrap();
            assert!(readable(timer.as_fd(), true));
            timerfd_arm(timer.as_fd(), Some(Duration::MAX)).unwrap();
            assert!(!readable(timer.as_fd(), false));
        }
        timerfd_arm(timer.as_fd(), Some(Duration::ZERO)).unwrap();
        assert!(readable(timer.as_fd(), true));
        timerfd_arm(timer.as_fd(), None).unwrap();
        assert!(!readable(timer.as_fd(), false));
        assert!(timerfd_arm(File::open("/dev/null").unwrap().as_fd(), None).is_err());
    }

    #[test]
    fn each_listener_sees_each_signal_and_a_dropped_one_leaves_the_other() {
        let _alone = alone();
        let (first, second) = (signal_listener().unwrap(), signal_listener().unwrap());
        watch_signal(libc::SIGUSR1).unwrap();
        watch_signal(libc::SIGUSR1).unwrap();
        watch_signal(libc::SIGUSR2).unwrap();
        assert!(!readable(first.as_fd(), false));
        raise(libc::SIGUSR2);
        raise(libc::SIGUSR1);
        raise(libc::SIGUSR1);
        for listener in [&first, &second] {
            assert!(readable(listener.as_fd(), false));
            assert!(listener.take().eq([libc::SIGUSR1, libc::SIGUSR2]));
            assert!(!readable(listener.as_fd(), false));
            assert_eq!(listener.take(), Signals::default());
        }
        raise(libc::SIGUSR2);
        drop(first);
        raise(libc::SIGUSR1);
        assert!(second.take().eq([libc::SIGUSR1, libc::SIGUSR2]));
        assert_eq!(signal_listener().unwrap().take(), Signals::default(), "a slot is left clean");
    }

    #[test]
    fn a_handler_leaves_errno_as_it_found_it() {
        let _alone = alone();
        watch_signal(libc::SIGUSR1).unwrap();
        let listener = signal_listener().unwrap();
        let full = u64::MAX - 1;
        // SAFETY: the pointer must be valid for a read of eight bytes: it is to our own local.
        let written =
            unsafe { libc::write(listener.as_fd().as_raw_fd(), (&raw const full).cast(), 8) };
        assert_eq!(written, 8);
        // SAFETY: it is this thread's `errno`, and no reference to it exists.
        unsafe { *libc::__errno_location() = libc::EXDEV };
        raise(libc::SIGUSR1); // and the handler's write fails: the counter is full
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EXDEV));
        assert!(listener.take().contains(libc::SIGUSR1));
    }

    #[test]
    fn a_thread_that_blocks_signals_gets_none() {
        let _alone = alone();
        watch_signal(libc::SIGUSR1).unwrap();
        let listener = signal_listener().unwrap();
        let blocked = || {
            block_all_signals();
            raise(libc::SIGUSR1); // to this thread, and pending when it ends
        };
        thread::spawn(blocked).join().unwrap();
        assert_eq!(listener.take(), Signals::default());
    }

    #[test]
    fn listeners_come_and_go_while_signals_fall() {
        let _alone = alone();
        watch_signal(libc::SIGUSR1).unwrap();
        let stays = signal_listener().unwrap();
        let done = Arc::new(AtomicU32::new(0));
        let theirs = done.clone();
        let sender = thread::spawn(move || {
            // Once at least: it may begin when the others are done.
            loop {
                raise(libc::SIGUSR1);
                if theirs.load(Ordering::Relaxed) != 0 {
                    break;
                }
            }
        });
        (0..2_000).for_each(|_| drop(signal_listener().unwrap()));
        done.store(1, Ordering::Relaxed);
        sender.join().unwrap();
        assert!(readable(stays.as_fd(), false) && stays.take().eq([libc::SIGUSR1]));
    }

    #[test]
    fn a_slot_is_kept_until_the_last_handler_has_left_it() {
        static SLOT: Slot = Slot::new();
        assert!(SLOT.claim(100));
        SLOT.inside.fetch_add(1, Ordering::SeqCst); // a handler on another thread
        let leaver = thread::spawn(|| SLOT.retire());
        while SLOT.fd.load(Ordering::SeqCst) == 100 {
            thread::yield_now();
        }
        for _ in 0..100 {
            assert!(!SLOT.claim(101) && !leaver.is_finished());
            SLOT.tell(libc::SIGUSR1); // a later handler passes by
            thread::yield_now();
        }
        assert_eq!(SLOT.bits.load(Ordering::SeqCst), 0);
        SLOT.inside.fetch_sub(1, Ordering::SeqCst);
        leaver.join().unwrap();
        assert!(SLOT.claim(101));
    }

    #[test]
    fn what_cannot_be_watched_is_refused() {
        for signal in [0, -1, 65, libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, libc::SIGFPE] {
            let refused = watch_signal(signal).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{signal}");
        }
    }

    #[test]
    fn a_full_table_refuses_and_a_retired_slot_serves_again() {
        let slots = [const { Slot::new() }; 3];
        for fd in 100..103 {
            claim_slot(&slots, fd).unwrap();
        }
        assert!(claim_slot(&slots, 103).is_err());
        slots[1].retire();
        assert!(ptr::eq(claim_slot(&slots, 104).unwrap(), &slots[1]));
    }
}
