//! A shutdown, phase by phase: close, drain, cancel, cleanup, halt.
//!
//! Each phase has its line, and a phase that fails does not skip the next. All together take no
//! longer than the drain and one grace.

use std::task::{Context, Poll};
use std::time::Duration;

use crate::core::posts::OVER;
use crate::kernel::Kernel;
use crate::log::{KERNEL, announce};
use crate::machine::Machine;
use crate::options::Error;
use crate::services::shutdown::{Shutdown, Stage};
use crate::trace::{After, Event, Phase};

/// In a shutdown there is no main to poll.
fn nobody(_: &mut Context<'_>) -> Poll<()> {
    Poll::Pending
}

impl<M: Machine> Kernel<M> {
    /// See [`Kernel::shutdown`]. Goes on with what a run has begun.
    pub(crate) fn shut_down(&mut self, reason: &str) -> Result<(), Error> {
        let Kernel { core, services } = self;
        core.look(services);
        core.now = core.machine.now();
        // An observer may have panicked in the middle of a run.
        core.abort_run();
        core.serve_between_runs(services);
        core.main_ended = false;
        let mut ended = Ok(());
        let is_idle = core.tasks.alive() == 0 && core.shared.holds.get() == 0;
        if is_idle && services.shutdown.stage == Stage::Open {
            // Phases that wait for nothing have no lines.
            core.shared.closing.set(true);
            services.shutdown.until = core.now + core.options.grace;
        } else {
            services.shutdown.begin(core, reason, 0);
            ended = self.drain();
            let cleaned = self.clean_up();
            ended = ended.and(cleaned);
        }
        self.halt();
        ended
    }

    fn drain(&mut self) -> Result<(), Error> {
        // A task that the shutdown has woken, or a new one, may want to hold it.
        self.core.serve(&mut self.services);
        let mut is_heard = self.core.ready.is_empty();
        while self.services.shutdown.stage == Stage::Drain {
            let Kernel { core, services } = self;
            let shutdown = &mut services.shutdown;
            let drained = (is_heard && Shutdown::is_drained(core)).then_some(After::Drained);
            let failure = shutdown.failed.then_some(After::Failure);
            if let Some(after) = shutdown.over.or(failure).or(drained) {
                shutdown.cancel_all(core, after);
            } else if let Err(error) = self.turn(&mut nobody) {
                self.services.shutdown.cancel_all(&mut self.core, After::Failure);
                return Err(error);
            }
            is_heard = true;
        }
        Ok(())
    }

    /// Runs the tasks until they have ended, and drops those that are left when the grace is over.
    /// If the machine fails, they are dropped at once.
    fn clean_up(&mut self) -> Result<(), Error> {
        let mut ended = Ok(());
        loop {
            let Kernel { core, services } = self;
            services.shutdown.cancel_newer(core);
            let Shutdown { overdue, failed, .. } = services.shutdown;
            if ended.is_err() || core.tasks.alive() == 0 || overdue || failed {
                break;
            }
            ended = self.turn(&mut nobody);
        }
        let Kernel { core, services } = self;
        services.shutdown.forget_timer(core);
        if core.tasks.alive() > 0 {
            let tasks = core.tasks.alive() as u64;
            announce!(core, KERNEL, Event::Phase(Phase::Drop { tasks }));
            let why = if services.shutdown.failed { "the_machine_has_failed" } else { OVER };
            core.drop_tasks(services, why);
        }
        ended
    }

    /// Waits for the worker threads for the rest of the grace, and reports what is left.
    fn halt(&mut self) {
        let Kernel { core, services } = self;
        services.shutdown.stage = Stage::Halted;
        core.now = core.machine.now();
        // Other threads are refused at once, not when the wait is over: one of them may run a job
        // that is waited for.
        core.inbox.queue.seal();
        core.run_wakeup(services);
        core.serve(services);
        services.threads.drop_queued(core);
        core.serve(services);
        let on_threads = services.threads.tokens.on_threads > 0;
        let rest = services.shutdown.until.since(core.now);
        services.threads.pool.wait_for_workers(if on_threads { rest } else { Duration::ZERO });
        core.now = core.machine.now();
        core.run_wakeup(services);
        core.serve(services);
        let threads = services.threads.tokens.on_threads as u64;
        if threads > 0 {
            let jobs = services.threads.tokens.jobs.keys().map(|job| format!("o{job}"));
            let jobs: Vec<String> = jobs.collect();
            let text = format!("jobs still running on threads, left behind: {}", jobs.join(" "));
            announce!(core, KERNEL, Event::Warn { text: text.into() });
        }
        let counters = self.counters();
        let event = Event::Halt {
            tasks: counters.tasks as u64,
            tickets: counters.tickets as u64,
            timers: counters.timers as u64,
            handles: counters.registered as u64,
            threads,
        };
        announce!(self.core, KERNEL, event);
    }
}
