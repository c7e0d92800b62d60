//! Signals of the process: who is told of one.
//!
//! In this order: the shutdown that it begins, the hooks of the kernel's owner, every stream that
//! asked for it, and one task that waits for a single one.

use std::io;
use std::rc::{Rc, Weak};

use traps::protocol::{Answer, Failure, SignalLine};
use traps::{Signal, SignalSet};

use crate::emit::quietly;
use crate::kernel::Kernel;
use crate::longrun::Done;
use crate::machine::Machine;
use crate::table::At;
use crate::task_table::TaskTable;
use crate::trace::{Op, WakeOp};
use crate::waits::Wait;

/// What the owner does at a signal.
type Hook = (Signal, Box<dyn FnMut(&TaskTable)>);

/// Who wants to hear of which signal, and what nobody has heard of yet.
#[derive(Default)]
pub(crate) struct Signals {
    /// Those that the machine reports.
    watched: SignalSet,
    /// Those that somebody waited for singly: they are kept for the next who does.
    asked: SignalSet,
    /// Arrived while nobody waited.
    kept: SignalSet,
    /// Tickets that wait.
    pub(crate) waiting: Vec<u32>,
    /// In the order in which they began to ask.
    streams: Vec<Weak<SignalLine>>,
    hooks: Vec<Hook>,
}

impl<M: Machine> Kernel<M> {
    /// Calls `hook` with the table of tasks in the turn in which `signal` arrives, whatever the
    /// tasks wait for (row F26). From the next run on the signal does not end the process any more.
    ///
    /// Called inside the kernel's loop: it must not block. A panic in it ends nothing. A task that
    /// does not leave the CPU delays it.
    pub fn on_signal(&mut self, signal: Signal, hook: impl FnMut(&TaskTable) + 'static) {
        self.signals.hooks.push((signal, Box::new(hook)));
    }

    /// Makes the machine report what the options and the hooks name.
    pub(crate) fn watch_own_signals(&mut self) -> io::Result<()> {
        let hooked = self.signals.hooks.iter().map(|(signal, _)| *signal);
        let set = hooked.fold(self.options.shutdown_on, SignalSet::with);
        self.watch_signals(set)
    }

    fn watch_signals(&mut self, set: SignalSet) -> io::Result<()> {
        for signal in set.iter() {
            if !self.signals.watched.contains(signal) {
                self.machine.watch_signal(signal)?;
                self.signals.watched = self.signals.watched.with(signal);
            }
        }
        Ok(())
    }

    /// One came from the machine.
    pub(crate) fn meet_signal(&mut self, signal: Signal) {
        self.longrun.since_then = Done::Served;
        if self.options.shutdown_on.contains(signal) {
            self.shut_down_at(signal);
        }
        self.call_hooks(signal);
        self.signals.streams.retain(|line| line.strong_count() > 0);
        let streams: Vec<_> =
            self.signals.streams.iter().filter_map(|line| line.upgrade()).collect();
        for line in streams.into_iter().filter(|line| line.set().contains(signal)) {
            line.keep(signal);
            self.serve_stream(&line);
        }
        self.arrive_signal(signal);
    }

    fn call_hooks(&mut self, signal: Signal) {
        if !self.signals.hooks.iter().any(|(wanted, _)| *wanted == signal) {
            return;
        }
        let table = self.task_table();
        for (wanted, hook) in &mut self.signals.hooks {
            if *wanted == signal {
                quietly(|| hook(&table));
            }
        }
    }

    /// Gives the stream's waiter, if it has one, what is kept for it.
    fn serve_stream(&mut self, line: &Rc<SignalLine>) {
        let waits = &self.waits;
        let is_its = |index: &u32| {
            let entry = waits.get(*index).expect("a waiting ticket is parked");
            matches!(&entry.wait, Wait::Stream(waiting) if Rc::ptr_eq(waiting, line))
        };
        let found = self.signals.waiting.iter().copied().find(is_its);
        let Some(index) = found.filter(|index| !self.is_doomed(*index)) else { return };
        if let Some(signal) = line.take() {
            self.signals.waiting.retain(|waiting| *waiting != index);
            let seq = self.waits.get(index).expect("found above").seq;
            if !self.complete(index, Ok(Answer::Signal(signal)), WakeOp::Signal, seq) {
                line.keep(signal);
            }
        }
    }

    pub(crate) fn next_signal(&mut self, at: &At, line: Rc<SignalLine>) {
        if let Err(error) = self.watch_signals(line.set()) {
            let result = Err(Failure::Refused(error));
            return self.answer(at, result, || Op::Signal);
        }
        let known = |known: &Weak<SignalLine>| known.as_ptr() == Rc::as_ptr(&line);
        if !self.signals.streams.iter().any(known) {
            self.signals.streams.retain(|line| line.strong_count() > 0);
            self.signals.streams.push(Rc::downgrade(&line));
        }
        if let Some(signal) = line.take() {
            let result = Ok(Answer::Signal(signal));
            return self.answer(at, result, || Op::Signal);
        }
        self.signals.waiting.push(at.ticket.index);
        self.park(at, Wait::Stream(line), || Op::Signal);
    }

    pub(crate) fn wait_signal(&mut self, at: &At, set: SignalSet) {
        if let Err(error) = self.watch_signals(set) {
            let result = Err(Failure::Refused(error));
            return self.answer(at, result, || Op::Signal);
        }
        self.signals.asked = set.iter().fold(self.signals.asked, SignalSet::with);
        let kept = self.signals.kept;
        if let Some(signal) = set.iter().find(|signal| kept.contains(*signal)) {
            self.signals.kept = self.signals.kept.without(signal);
            let result = Ok(Answer::Signal(signal));
            return self.answer(at, result, || Op::Signal);
        }
        self.signals.waiting.push(at.ticket.index);
        self.park(at, Wait::Signal(set), || Op::Signal);
    }

    pub(crate) fn arrive_signal(&mut self, signal: Signal) {
        for place in 0..self.signals.waiting.len() {
            let index = self.signals.waiting[place];
            let entry = self.waits.get(index).expect("a waiting ticket is parked");
            let seq = entry.seq;
            let wants = matches!(entry.wait, Wait::Signal(set) if set.contains(signal));
            // One that is about to be interrupted leaves it to the next.
            if wants && !self.is_doomed(index) {
                self.signals.waiting.remove(place);
                if self.complete(index, Ok(Answer::Signal(signal)), WakeOp::Signal, seq) {
                    return;
                }
                // Its future was gone: as if it had not waited.
                return self.arrive_signal(signal);
            }
        }
        // If nobody ever asked for it, it was for the kernel, or for streams.
        if self.signals.asked.contains(signal) {
            self.signals.kept = self.signals.kept.with(signal);
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
        assert_eq!(kernel.signals.streams.len(), 1, "the last one");
    }
}
