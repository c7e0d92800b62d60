//! The delivery of signals of the process.
//!
//! A signal goes, in this order, to the shutdown that it begins, to the hooks of the kernel's
//! owner, to every stream that asked for it, and to the tasks that wait for a single signal. One of
//! these tasks takes it.

use std::io;
use std::rc::{Rc, Weak};

use traps::internal::quietly;
use traps::internal::signals::{Refusal, SignalInbox};
use traps::{Signal, SignalSet};

use crate::core::Core;
use crate::machine::Machine;
use crate::view::TaskTable;

/// A hook of the owner for a signal.
type SignalHook = (Signal, Box<dyn FnMut(&TaskTable)>);

/// The receivers of signals.
#[derive(Default)]
pub(crate) struct Signals {
    /// The signals that the machine reports.
    watched: SignalSet,
    /// The signal streams of tasks, in the order of their first `next`.
    streams: Vec<Weak<SignalInbox>>,
    hooks: Vec<SignalHook>,
}

impl Signals {
    /// Adds a hook for a signal.
    pub(crate) fn add_hook(&mut self, signal: Signal, hook: Box<dyn FnMut(&TaskTable)>) {
        self.hooks.push((signal, hook));
    }

    /// Makes the machine report the signals of the options and the hooks.
    pub(crate) fn watch_own<M: Machine>(&mut self, core: &mut Core<M>) -> io::Result<()> {
        let hooked = self.hooks.iter().map(|(signal, _)| *signal);
        let set = hooked.fold(core.options.shutdown_on, SignalSet::with);
        self.watch(core, set)
    }

    /// Makes the machine report the signals of `set`. Returns the error of the first that it
    /// refuses.
    fn watch<M: Machine>(&mut self, core: &mut Core<M>, set: SignalSet) -> io::Result<()> {
        let (mut result, watched) = (Ok(()), self.watched);
        for signal in set.iter().filter(|signal| !watched.contains(*signal)) {
            match core.sched.machine.watch_signal(signal) {
                Ok(()) => self.watched = self.watched.with(signal),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// Makes the machine report the signals that a wait in `line` wants. If the system refuses a
    /// signal, the wait gets the error.
    pub(crate) fn serve<M: Machine>(
        &mut self,
        core: &mut Core<M>,
        line: &Rc<SignalInbox>,
        wanted: SignalSet,
        is_stream: bool,
        refusal: &Refusal,
    ) {
        let its = Rc::downgrade(line);
        if is_stream && !self.streams.iter().any(|known| known.ptr_eq(&its)) {
            self.streams.retain(|known| known.strong_count() > 0);
            self.streams.push(its);
        }
        let watched = self.watch(core, wanted);
        if !is_stream {
            let reported = wanted.iter().filter(|signal| self.watched.contains(*signal));
            line.wanted.set(reported.fold(line.wanted.get(), SignalSet::with));
        }
        if let Err(error) = watched {
            refusal.set(Some(error));
            // The wait that asked parks after this post, so a permit must be kept for it. The first
            // wait of a queue takes the permit, so the others leave the queue first, and wait
            // again. If a permit is left, the wait that it was for has been dropped.
            core.sched.wake(&line.queue, u64::MAX);
            line.queue.permits.set(1);
        }
    }

    /// Delivers a signal to every stream that asked for it, and to the tasks that wait for a single
    /// signal. `cause` is the log line of its arrival.
    pub(crate) fn arrive<M: Machine>(&mut self, core: &mut Core<M>, signal: Signal) {
        let streams: Vec<_> = self.streams.iter().filter_map(Weak::upgrade).collect();
        for line in streams.into_iter().chain([core.sched.shared.signals.clone()]) {
            if line.wanted.get().contains(signal) {
                line.kept.set(line.kept.get().with(signal));
                core.sched.wake(&line.queue, u64::MAX);
            }
        }
    }

    /// Returns whether a hook exists for the signal.
    pub(crate) fn has_hook(&self, signal: Signal) -> bool {
        self.hooks.iter().any(|(wanted, _)| *wanted == signal)
    }

    pub(crate) fn call_hooks(&mut self, signal: Signal, table: &TaskTable) {
        for (_, hook) in self.hooks.iter_mut().filter(|(wanted, _)| *wanted == signal) {
            quietly(|| hook(table));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Kernel, Sim};
    use traps::{
        Error, Signal, SignalSet, Time, ignore_after, join, race, signals, spawn, wait_signal,
        yield_now,
    };

    const SECOND: std::time::Duration = std::time::Duration::from_secs(1);

    /// Makes a kernel whose machine reports one hangup after a second, and refuses `SIGUSR1`.
    fn kernel_that_refuses() -> Kernel<Sim> {
        let mut sim = Sim::new().signal_at(Time::ZERO + SECOND, Signal::Hangup);
        sim.refused = [Signal::User1].into_iter().collect();
        Kernel::new(sim)
    }

    fn is_refused(result: Result<Signal, Error>) -> bool {
        matches!(result, Err(Error::Io(error)) if error.to_string() == "SIGUSR1 is refused")
    }

    #[test]
    fn the_refusal_of_a_signal_reaches_the_task_that_asked_and_not_the_first_that_waits() {
        let ran = kernel_that_refuses().run(async {
            let first = spawn("first", wait_signal(&[Signal::Hangup])).await;
            yield_now().await.unwrap();
            let result = ignore_after(SECOND / 2, wait_signal(&[Signal::User1])).await;
            assert!(is_refused(result.map(|got| got.expect("it is refused in time"))));
            assert_eq!(first.await.unwrap(), Ok(Signal::Hangup), "the other goes on");
        });
        ran.unwrap();
    }

    #[test]
    fn each_wait_of_one_poll_for_a_refused_signal_gets_its_error() {
        let ran = kernel_that_refuses().run(async {
            let both = join(wait_signal(&[Signal::User1]), wait_signal(&[Signal::User1]));
            let both = ignore_after(SECOND, async { Ok::<_, Error>(both.await) });
            let (one, other) = both.await.unwrap().expect("they are refused in time");
            assert!(is_refused(one) && is_refused(other));
        });
        ran.unwrap();
    }

    #[test]
    fn a_refusal_that_was_not_read_reaches_no_later_wait_and_leaves_nothing() {
        let mut kernel = Kernel::new(Sim::new().signal_at(Time::ZERO + SECOND, Signal::User1));
        kernel.core.sched.machine.refused = [Signal::User1].into_iter().collect();
        let dropped = kernel.run(async {
            for _ in 0..3 {
                race(wait_signal(&[Signal::User1]), async {}).await;
                yield_now().await.unwrap();
            }
        });
        dropped.unwrap();
        assert!(kernel.core.sched.shared.signals.queue.permits.get() <= 1);
        // The system reports the signal from now on.
        kernel.core.sched.machine.refused = SignalSet::default();
        assert_eq!(kernel.run(wait_signal(&[Signal::User1])).unwrap(), Ok(Signal::User1));
    }

    #[test]
    fn streams_that_are_gone_leave_nothing_behind() {
        let mut kernel = Kernel::new(Sim::new());
        let ran = kernel.run(async {
            for _ in 0..10 {
                let mut stream = signals(&[Signal::Hangup]);
                let next = ignore_after(std::time::Duration::from_secs(1), stream.next()).await;
                assert!(next.unwrap().is_none());
            }
        });
        ran.unwrap();
        assert_eq!(kernel.services.signals.streams.len(), 1, "the last one");
    }
}
