//! The delivery of signals of the process.
//!
//! A signal goes, in this order, to the shutdown that it begins, to the hooks of the kernel's
//! owner, to every stream that asked for it, and to the tasks that wait for a single signal. One of
//! these tasks takes it.

use std::io;
use std::rc::{Rc, Weak};

use traps::internal::quietly;
use traps::internal::signals::SignalInbox;
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
        self.watch(core, set).pop().map_or(Ok(()), |(_, refused)| Err(refused))
    }

    /// Makes the machine report the signals of `set`. Returns the signals that it refuses.
    fn watch<M: Machine>(
        &mut self,
        core: &mut Core<M>,
        set: SignalSet,
    ) -> Vec<(Signal, io::Error)> {
        let (mut refused, watched) = (Vec::new(), self.watched);
        for signal in set.iter().filter(|signal| !watched.contains(*signal)) {
            match core.sched.machine.watch_signal(signal) {
                Ok(()) => self.watched = self.watched.with(signal),
                Err(error) => refused.push((signal, error)),
            }
        }
        refused
    }

    /// Makes the machine report the signals that the waiters of a queue want. If the system refuses
    /// a signal, the waiters of the queue get the error.
    pub(crate) fn serve<M: Machine>(
        &mut self,
        core: &mut Core<M>,
        line: &Rc<SignalInbox>,
        is_stream: bool,
    ) {
        let its = Rc::downgrade(line);
        if is_stream && !self.streams.iter().any(|known| known.ptr_eq(&its)) {
            self.streams.retain(|known| known.strong_count() > 0);
            self.streams.push(its);
        }
        let refused = self.watch(core, line.wanted.get());
        if !refused.is_empty() {
            if !is_stream {
                // Remove the refused signals, so that the next waiter asks for them again.
                let wanted =
                    refused.iter().fold(line.wanted.get(), |set, (it, _)| set.without(*it));
                line.wanted.set(wanted);
            }
            line.refused.borrow_mut().extend(refused);
            // The task that asked begins its wait after this post, so the permit must be kept for
            // it.
            line.queue.keep_permit();
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
    use traps::{Signal, ignore_after, signals};

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
