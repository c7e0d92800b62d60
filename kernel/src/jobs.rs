//! What comes from outside the thread: jobs on worker threads, and signals.

use traps::protocol::{Answer, Failure};
use traps::threads::Work;
use traps::{Signal, SignalSet};

use crate::emit::{drop_quietly, emit, emit_for};
use crate::kernel::{Job, Kernel};
use crate::machine::Machine;
use crate::table::At;
use crate::threads::{Done, JobId};
use crate::trace::{Event, Op, WakeOp};
use crate::waits::Wait;

impl<M: Machine> Kernel<M> {
    pub(crate) fn offload(&mut self, at: At, work: Box<dyn Work>) {
        self.jobs.last += 1;
        let job = self.jobs.last;
        let mut on_thread = false;
        if let Some(work) = self.machine.run_job(job, work, &self.deliver) {
            on_thread = true;
            if let Err(error) = self.pool.submit(job, work) {
                drop_quietly(self.pool.withdraw(job));
                let result = Err(Failure::Refused(error));
                return self.answer(at.task, at.ticket, result, Op::Offload { job }, at.site);
            }
        }
        self.jobs.on_threads += usize::from(on_thread);
        self.jobs.live.insert(job, Job { ticket: Some(at.ticket.index), on_thread });
        // Told from what the kernel knows, not from how quick the threads are.
        let running = self.jobs.live.len().min(self.options.threads);
        let queued = self.jobs.live.len() - running;
        emit!(
            self,
            at.task,
            Event::Offload {
                job,
                running: u32::try_from(running).unwrap_or(u32::MAX),
                queued: u32::try_from(queued).unwrap_or(u32::MAX),
            }
        );
        self.park(at, Wait::Job(job), Op::Offload { job });
    }

    pub(crate) fn job_done(&mut self, done: Done) {
        let Done { job, work } = done;
        let Some(ticket) = self.forget_job(job) else { return drop_quietly(work) };
        match ticket {
            Some(index) if !self.is_doomed(index) => {
                let seq = emit_for!(self, 1, "wakeup", Event::Done { job });
                self.complete(index, Ok(Answer::Job(work)), WakeOp::Offload { job }, seq);
            }
            Some(_) | None => {
                emit_for!(self, 1, "wakeup", Event::Orphan { job });
                drop_quietly(work);
            }
        }
    }

    /// The job is back, or will never run: the ticket that waits for it, if one does.
    pub(crate) fn forget_job(&mut self, job: JobId) -> Option<Option<u32>> {
        let Job { ticket, on_thread } = self.jobs.live.remove(&job)?;
        self.jobs.on_threads -= usize::from(on_thread);
        Some(ticket)
    }

    pub(crate) fn wait_signal(&mut self, at: At, set: SignalSet) {
        for signal in Signal::ALL {
            if set.contains(signal) && !self.signals.watched.contains(signal) {
                if let Err(error) = self.machine.watch_signal(signal) {
                    let result = Err(Failure::Refused(error));
                    return self.answer(at.task, at.ticket, result, Op::Signal, at.site);
                }
                self.signals.watched = self.signals.watched.with(signal);
            }
        }
        self.signals.asked = Signal::ALL
            .into_iter()
            .filter(|signal| set.contains(*signal))
            .fold(self.signals.asked, SignalSet::with);
        let kept = Signal::ALL
            .into_iter()
            .find(|signal| set.contains(*signal) && self.signals.kept.contains(*signal));
        if let Some(signal) = kept {
            self.signals.kept = self.signals.kept.without(signal);
            let result = Ok(Answer::Signal(signal));
            return self.answer(at.task, at.ticket, result, Op::Signal, at.site);
        }
        self.signals.waiting.push(at.ticket.index);
        self.park(at, Wait::Signal(set), Op::Signal);
    }

    pub(crate) fn arrive_signal(&mut self, signal: Signal) {
        let waits = &self.waits;
        let wants = |index: &u32| {
            let entry = waits.get(*index).expect("a waiting ticket is parked");
            matches!(entry.wait, Wait::Signal(set) if set.contains(signal))
        };
        let who = self.signals.waiting.iter().copied().find(wants);
        match who.filter(|index| !self.is_doomed(*index)) {
            Some(index) => {
                self.signals.waiting.retain(|waiting| *waiting != index);
                let seq = self.waits.get(index).expect("found above").seq;
                self.complete(index, Ok(Answer::Signal(signal)), WakeOp::Signal, seq);
            }
            // Nobody ever asked for it: it was for the kernel, or for streams.
            None if !self.signals.asked.contains(signal) => {}
            None => self.signals.kept = self.signals.kept.with(signal),
        }
    }
}
