//! Signals of the process, and who gets one.
//!
//! In this order: the shutdown that it begins, the hooks of the kernel's owner, every stream that
//! asked for it, and one task that waits for a single signal.

use std::io;
use std::rc::{Rc, Weak};

use traps::protocol::{Answer, Owned, SignalLine, Ticket};
use traps::threads::quietly;
use traps::{Signal, SignalSet};

use crate::kernel::Kernel;
use crate::log::{KERNEL, emit_for};
use crate::machine::Machine;
use crate::table::Asker;
use crate::trace::{Arrival, Event, Op, Seq, WakeOp};
use crate::view::TaskTable;
use crate::waits::On;

/// What the owner does at a signal.
type Hook = (Signal, Box<dyn FnMut(&TaskTable)>);

/// Who wants which signal, and the signals that nobody has taken yet.
#[derive(Default)]
pub(crate) struct Signals {
    /// The signals that the machine reports.
    watched: SignalSet,
    /// Signals that a task has waited for outside a stream: one that comes later is kept for the
    /// next such wait.
    asked: SignalSet,
    /// Of these, the signals that arrived while no task waited.
    kept: SignalSet,
    /// Waits for a signal, oldest first.
    pub(crate) waiting: Vec<Ticket>,
    /// In the order of their first `next`.
    streams: Vec<Weak<SignalLine>>,
    hooks: Vec<Hook>,
}

impl<M: Machine> Kernel<M> {
    /// Calls `hook` with the table of tasks in the turn in which `signal` arrives, whatever the
    /// tasks wait for. From the next run on the signal no longer ends the process.
    ///
    /// The hook is called inside the kernel's loop: it must not block. A panic in it ends nothing.
    /// A task that does not leave the CPU delays it.
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

    /// A signal came from the machine.
    pub(crate) fn meet_signal(&mut self, signal: Signal) {
        let name = signal.to_string().into();
        let cause = emit_for!(self, KERNEL, Event::Arrive(Arrival::Signal { name }));
        if self.options.shutdown_on.contains(signal) {
            self.shut_down_by(signal, cause);
        }
        self.call_hooks(signal);
        let streams: Vec<_> = self.signals.streams.iter().filter_map(Weak::upgrade).collect();
        for line in streams.into_iter().filter(|line| line.set().contains(signal)) {
            line.keep(signal);
            self.serve_stream(&line, cause);
        }
        self.arrive_signal(signal, cause);
    }

    fn call_hooks(&mut self, signal: Signal) {
        if !self.signals.hooks.iter().any(|(wanted, _)| *wanted == signal) {
            return;
        }
        let table = self.task_table();
        for (_, hook) in self.signals.hooks.iter_mut().filter(|(wanted, _)| *wanted == signal) {
            quietly(|| hook(&table));
        }
    }

    /// Takes the first matching wait out of the line.
    fn take_waiting(&mut self, is_it: impl Fn(On, Option<&Owned>) -> bool) -> Option<Ticket> {
        let is_it = |ticket: &Ticket| {
            let task = &self.tasks[ticket.task];
            let mut waits = task.parked().filter(|wait| wait.serial == ticket.serial);
            waits.any(|wait| is_it(wait.on, task.owned(wait.serial)))
        };
        let place = self.signals.waiting.iter().position(is_it)?;
        Some(self.signals.waiting.remove(place))
    }

    /// Gives a signal of the stream to the task that waits for it, if there is one.
    fn serve_stream(&mut self, line: &Rc<SignalLine>, cause: Seq) {
        let is_its = |_, owned: Option<&Owned>| match owned {
            Some(Owned::Stream(waiting)) => Rc::ptr_eq(waiting, line),
            _ => false,
        };
        if let Some(ticket) = self.take_waiting(is_its)
            && let Some(signal) = line.take()
        {
            self.end_signal_wait(ticket, On::Signalled(signal), cause);
        }
    }

    /// Gives a signal to one task that waits for it, or keeps it if a task has ever waited for it.
    pub(crate) fn arrive_signal(&mut self, signal: Signal, cause: Seq) {
        let wants = |on, _: Option<&_>| matches!(on, On::Signal(set) if set.contains(signal));
        if let Some(ticket) = self.take_waiting(wants) {
            self.end_signal_wait(ticket, On::Signalled(signal), cause);
        } else if self.signals.asked.contains(signal) {
            self.signals.kept = self.signals.kept.with(signal);
        }
    }

    fn end_signal_wait(&mut self, ticket: Ticket, come: On, cause: Seq) {
        self.complete(ticket, come, |_| (WakeOp::Signal, cause));
    }

    /// The trap of `wait_signal`.
    pub(crate) fn wait_signal(&mut self, asker: &Asker, set: SignalSet) {
        if let Err(error) = self.watch_signals(set) {
            return self.answer_owned(asker, Owned::Refused(error), || Op::Signal);
        }
        self.signals.asked = set.iter().fold(self.signals.asked, SignalSet::with);
        let kept = self.signals.kept;
        if let Some(signal) = set.iter().find(|signal| kept.contains(*signal)) {
            self.signals.kept = kept.without(signal);
            return self.answer(asker, Answer::Signal(signal), || Op::Signal);
        }
        self.signals.waiting.push(asker.ticket());
        self.park(asker, On::Signal(set), || Op::Signal);
    }

    /// The trap of `Signals::next`.
    pub(crate) fn next_signal(&mut self, asker: &Asker) {
        let Some(Owned::Stream(line)) = self.gate.take_owned(asker.asked.serial) else {
            unreachable!("rule: a request for a stream's signal owns the stream")
        };
        if let Err(error) = self.watch_signals(line.set()) {
            return self.answer_owned(asker, Owned::Refused(error), || Op::Signal);
        }
        let its = Rc::downgrade(&line);
        if !self.signals.streams.iter().any(|known| known.ptr_eq(&its)) {
            self.signals.streams.retain(|known| known.strong_count() > 0);
            self.signals.streams.push(its);
        }
        if let Some(signal) = line.take() {
            return self.answer(asker, Answer::Signal(signal), || Op::Signal);
        }
        self.signals.waiting.push(asker.ticket());
        self.tasks[asker.task].own(asker.asked.serial, Owned::Stream(line));
        self.park(asker, On::Stream, || Op::Signal);
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
