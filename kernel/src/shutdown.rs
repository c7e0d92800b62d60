//! The end of a kernel: cancel, wait for clean-up, drop what remains.

use std::task::{Context, Poll};

use traps::protocol::TaskRef;

use crate::emit::{announce, emit, emit_for};
use crate::kernel::{Job, Kernel};
use crate::machine::Machine;
use crate::options::Error;
use crate::tasks::{End, State};
use crate::timers::Rank;
use crate::trace::{Event, Seq};
use crate::turn::{Fired, Running};

/// Why a future is dropped that would not end.
const OVER: &str = "its_grace_is_over";

impl<M: Machine> Kernel<M> {
    /// See [`Kernel::shutdown`].
    pub(crate) fn shut_down(&mut self) -> Result<(), Error> {
        let _running = Running::enter(&self.gate, self.epoch, self.timers.table());
        self.look();
        self.log.now = self.machine.now();
        self.serve();
        let mut failed = Ok(());
        // Main ended a turn early; there is none now.
        self.main_ended = false;
        if self.tasks.alive > 0 {
            let tasks = self.tasks.alive as u64;
            announce!(self, 0, "kernel", Event::Phase { name: "cancel".into(), tasks });
            self.phase = self.log.seq;
            let end = self.log.now + self.options.grace;
            let rank = || Rank { class: 3, seq: 0 };
            self.grace = Some(self.timers.arm(end, Fired::GRACE, self.log.now, rank));
            let mut nobody = |_: &mut Context<'_>| Poll::Pending;
            let mut cancelled = 0;
            loop {
                // Again each turn: clean-up may spawn.
                let newest = self.tasks.last();
                if newest > cancelled {
                    self.cancel_all(std::mem::replace(&mut cancelled, newest));
                }
                if self.tasks.alive == 0 || self.grace_over {
                    break;
                }
                if let Err(error) = self.turn(&mut nobody) {
                    failed = Err(error);
                    break;
                }
            }
            if let Some(grace) = self.grace.take() {
                self.timers.disarm(grace);
            }
            self.drop_all();
        }
        self.shut = true;
        let wait =
            if self.jobs.live.is_empty() { std::time::Duration::ZERO } else { self.options.grace };
        self.pool.shut_down(wait);
        self.run_wakeup();
        self.serve();
        self.drop_scripted_jobs();
        let counters = self.counters();
        announce!(
            self,
            0,
            "kernel",
            Event::Halt {
                tasks: counters.tasks as u64,
                tickets: counters.tickets as u64,
                timers: counters.timers as u64,
                handles: counters.registered as u64,
            }
        );
        failed
    }

    /// Another thread asked for a shutdown.
    pub(crate) fn begin_shutdown(&mut self, reason: &'static str, _cause: Seq) {
        self.shutdown_asked.get_or_insert(reason);
    }

    fn cancel_all(&mut self, older: u64) {
        for task in self.tasks.newest_first(older) {
            if self.tasks.get(task).cancel.is_none() {
                self.cancel_task(task, None, "shutdown", self.phase);
            }
        }
    }

    /// What a script would have ended later ends here; a thread's job is its thread's.
    fn drop_scripted_jobs(&mut self) {
        let scripted = |(job, live): (&u64, &Job)| (!live.on_thread).then_some(*job);
        let scripted: Vec<u64> = self.jobs.live.iter().filter_map(scripted).collect();
        for job in scripted {
            self.forget_job(job);
            emit_for!(self, 0, "kernel", Event::Drop { what: format!("o{job}").into() });
        }
    }

    /// Ends a task whose grace is over by dropping its future, wherever that stands. A task that
    /// runs cannot be taken from under itself, and stays.
    pub(crate) fn drop_task(&mut self, task: TaskRef) {
        let Some(task) = self.tasks.find(task) else { return };
        if matches!(self.tasks.get(task).state, State::Ready | State::Parked) {
            let seq = emit!(self, task, Event::Drop { what: OVER.into() });
            // What its parts post is heeded after what was posted before.
            self.drop_body(task);
            self.end_task(task, End::Dropped, seq);
        }
    }

    fn drop_all(&mut self) {
        let left = self.tasks.newest_first(0);
        if !left.is_empty() {
            let tasks = left.len() as u64;
            announce!(self, 0, "kernel", Event::Phase { name: "drop".into(), tasks });
        }
        for task in left {
            let seq = emit!(self, task, Event::Drop { what: OVER.into() });
            self.drop_future(task);
            self.end_task(task, End::Dropped, seq);
        }
    }
}
