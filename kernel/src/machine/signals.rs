//! Signals of the process. Each signal reaches every kernel that listens for one.
//!
//! A signal handler must not lock or allocate. So the listeners of a process are in a small static
//! table, and the handler leaves a bit and a byte for each listener. A slot of the table keeps its
//! pipe for the life of the process, so the handler never meets a closed descriptor.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mio::unix::pipe::{self, Receiver, Sender};
use traps::Signal;

use crate::options::LISTENERS;

/// The state that the signal handler shares with one listener.
#[derive(Debug)]
struct ListenerSlot {
    taken: AtomicBool,
    /// The pipe, made by the first listener of the slot.
    pipe: OnceLock<(Sender, Receiver)>,
    /// The signals that have come since the last [`Listener::take`], one bit per signal number.
    /// Signals are below 64.
    came: AtomicU64,
}

static SLOTS: [ListenerSlot; LISTENERS] = [const {
    ListenerSlot { taken: AtomicBool::new(false), pipe: OnceLock::new(), came: AtomicU64::new(0) }
}; LISTENERS];

/// Records a signal for every listener. Runs in the signal handler, on any thread, so it uses only
/// what is allowed there: lock-free atomics, and `write`.
pub(super) fn note(signal: i32) {
    for slot in &SLOTS {
        let Some((sender, _)) = slot.pipe.get() else { continue };
        // Set the bit before the byte, so that a reader woken by the byte finds the bit. One byte
        // is enough for all bits that are set before the next take.
        if slot.came.fetch_or(1 << signal, Ordering::AcqRel) == 0 {
            // A write that fails means a full pipe, which wakes its reader too.
            let _ = (&*sender).write(&[0]);
        }
    }
}

/// A listener for every watched signal. Signals with the same number that come between two calls of
/// [`Listener::take`] count as one.
#[derive(Debug)]
pub(super) struct Listener(&'static ListenerSlot);

impl Listener {
    /// Makes a listener from a free slot of the table.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or an error if all [`LISTENERS`] slots are taken.
    pub(super) fn new() -> io::Result<Listener> {
        let free = SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel));
        let full = || io::Error::other(format!("{LISTENERS} signal listeners at most"));
        let listener = Listener(free.ok_or_else(full)?);
        if listener.0.pipe.get().is_none() {
            let pipe = pipe::new()?;
            listener.0.pipe.get_or_init(|| pipe);
        }
        // Drop the signals that came while the slot had no listener: the kernel that asks now has
        // not watched them.
        listener.take().for_each(drop);
        Ok(listener)
    }

    fn receiver(&self) -> &Receiver {
        &self.0.pipe.get().expect("a listener has a pipe").1
    }

    /// Takes the signals that came since the last call, ordered by number.
    pub(super) fn take(&self) -> impl Iterator<Item = Signal> + use<> {
        // Read the bytes before the bits, so that a signal in between leaves its byte for the next
        // call. A read that fails means an empty pipe.
        let _ = self.receiver().read(&mut [0; 16]);
        let came = self.0.came.swap(0, Ordering::AcqRel);
        Signal::ALL.iter().copied().filter(move |signal| came & 1 << number(*signal) != 0)
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.receiver().as_raw_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

/// Returns the system's number of the signal.
pub(crate) fn number(signal: Signal) -> i32 {
    match signal {
        Signal::Hangup => libc::SIGHUP,
        Signal::Interrupt => libc::SIGINT,
        Signal::Quit => libc::SIGQUIT,
        Signal::User1 => libc::SIGUSR1,
        Signal::User2 => libc::SIGUSR2,
        Signal::Terminate => libc::SIGTERM,
        Signal::Child => libc::SIGCHLD,
        Signal::Window => libc::SIGWINCH,
        _ => unreachable!("rule: {signal} has a number"),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
    use std::thread;

    use crate::machine::sys::handle_signal;
    use crate::machine::sys::tests::{is_readable_now, raise, set_errno};

    /// Takes the lock for tests of signals, because signals reach the whole process.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn each_listener_hears_each_signal_and_a_dropped_one_leaves_the_other() {
        let _alone = alone();
        let (first, second) = (Listener::new().unwrap(), Listener::new().unwrap());
        handle_signal(number(Signal::User1)).unwrap();
        handle_signal(number(Signal::User1)).unwrap();
        handle_signal(number(Signal::Hangup)).unwrap();
        assert!(!is_readable_now(first.as_raw_fd()));
        raise(libc::SIGUSR1);
        raise(libc::SIGHUP);
        raise(libc::SIGHUP);
        for listener in [&first, &second] {
            assert!(is_readable_now(listener.as_raw_fd()));
            assert!(listener.take().eq([Signal::Hangup, Signal::User1]));
            assert!(!is_readable_now(listener.as_raw_fd()));
            assert_eq!(listener.take().count(), 0);
        }
        raise(libc::SIGUSR1);
        drop(first);
        raise(libc::SIGHUP);
        assert!(second.take().eq([Signal::Hangup, Signal::User1]));
        assert_eq!(Listener::new().unwrap().take().count(), 0, "a new listener starts clean");
    }

    #[test]
    fn a_handler_leaves_errno_as_it_found_it() {
        let _alone = alone();
        handle_signal(number(Signal::User1)).unwrap();
        let listener = Listener::new().unwrap();
        let (sender, _) = listener.0.pipe.get().unwrap();
        while (&*sender).write(&[0; 4096]).is_ok() {}
        set_errno(libc::EXDEV);
        raise(libc::SIGUSR1); // the handler's write fails: the pipe is full
        assert_eq!(io::Error::last_os_error().raw_os_error(), Some(libc::EXDEV));
        assert!(listener.take().eq([Signal::User1]));
        while listener.receiver().read(&mut [0; 4096]).is_ok() {}
    }

    #[test]
    fn listeners_come_and_go_while_signals_fall() {
        let _alone = alone();
        handle_signal(number(Signal::User1)).unwrap();
        let stays = Listener::new().unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let theirs = done.clone();
        let sender = thread::spawn(move || {
            // Raise at least once: this thread may begin after the others are done.
            loop {
                raise(libc::SIGUSR1);
                if theirs.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        (0..2_000).for_each(|_| drop(Listener::new().unwrap()));
        done.store(true, Ordering::Relaxed);
        sender.join().unwrap();
        assert!(is_readable_now(stays.as_raw_fd()) && stays.take().eq([Signal::User1]));
    }

    #[test]
    fn a_full_table_refuses_and_a_dropped_listener_makes_room() {
        let _alone = alone();
        let mut all: Vec<Listener> = (0..LISTENERS).map(|_| Listener::new().unwrap()).collect();
        assert!(Listener::new().is_err());
        all.pop();
        assert!(Listener::new().is_ok());
    }
}
