//! Signals of the process, and who gets one.
//!
//! In this order: the shutdown that it begins, the hooks of the kernel's owner, every stream that
//! asked for it, and the line of those who wait for a single signal, of whom one takes it.

use std::io;
use std::rc::{Rc, Weak};

use traps::core::signals::SignalLine;
use traps::threads::quietly;
use traps::{Signal, SignalSet};

use crate::core::Core;
use crate::machine::Machine;
use crate::trace::Seq;
use crate::view::TaskTable;

/// What the owner does at a signal.
type Hook = (Signal, Box<dyn FnMut(&TaskTable)>);

/// Who wants which signal.
#[derive(Default)]
pub(crate) struct Signals {
    /// The signals that the machine reports.
    watched: SignalSet,
    /// In the order of their first `next`.
    streams: Vec<Weak<SignalLine>>,
    hooks: Vec<Hook>,
}

impl Signals {
    /// Has `hook` called at each such signal.
    pub(crate) fn add_hook(&mut self, signal: Signal, hook: Box<dyn FnMut(&TaskTable)>) {
        self.hooks.push((signal, hook));
    }

    /// Makes the machine report what the options and the hooks name.
    pub(crate) fn watch_own<M: Machine>(&mut self, core: &mut Core<M>) -> io::Result<()> {
        let hooked = self.hooks.iter().map(|(signal, _)| *signal);
        let set = hooked.fold(core.options.shutdown_on, SignalSet::with);
        self.watch(core, set).pop().map_or(Ok(()), |(_, refused)| Err(refused))
    }

    /// Makes the machine report these signals. Gives those that it refuses.
    fn watch<M: Machine>(
        &mut self,
        core: &mut Core<M>,
        set: SignalSet,
    ) -> Vec<(Signal, io::Error)> {
        let (mut refused, watched) = (Vec::new(), self.watched);
        for signal in set.iter().filter(|signal| !watched.contains(*signal)) {
            match core.machine.watch_signal(signal) {
                Ok(()) => self.watched = self.watched.with(signal),
                Err(error) => refused.push((signal, error)),
            }
        }
        refused
    }

    /// A task waits in a line: its signals are to be reported. If the system refuses, those who
    /// wait are told.
    pub(crate) fn serve<M: Machine>(
        &mut self,
        core: &mut Core<M>,
        line: &Rc<SignalLine>,
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
                // Who waits for it next asks again.
                let wanted =
                    refused.iter().fold(line.wanted.get(), |set, (it, _)| set.without(*it));
                line.wanted.set(wanted);
            }
            line.refused.borrow_mut().extend(refused);
            // The one who asked waits behind this post.
            line.queue.keep_permit();
        }
    }

    /// A signal has arrived, with the line of that: every stream that wants it has it, and so has
    /// the line of those who wait for one.
    pub(crate) fn arrive<M: Machine>(&mut self, core: &mut Core<M>, signal: Signal, cause: Seq) {
        let streams: Vec<_> = self.streams.iter().filter_map(Weak::upgrade).collect();
        for line in streams.into_iter().chain([core.shared.signals.clone()]) {
            if line.wanted.get().contains(signal) {
                line.kept.set(line.kept.get().with(signal));
                core.wake(&line.queue, u64::MAX, cause);
            }
        }
    }

    /// Whether a hook wants the signal.
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
