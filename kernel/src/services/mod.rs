//! The services above the core: worker threads, signals, requests of other threads, the shutdown,
//! and the watchdog. Each is one small struct.

use std::sync::Arc;

use shutdown::Shutdown;
use signals::Signals;
use threads::Threads;
use traps::internal::protocol::ServicePost;
use traps::internal::table::TaskIndex;
use traps::{Signal, Time};
use watchdog::Watchdog;

use crate::core::timers::ServiceTimer;
use crate::core::{Core, Services};
use crate::log::KERNEL;
use crate::log::lines::emit_for;
use crate::machine::Machine;
use crate::parts::wakers::Message;
use crate::trace::{Arrival, Event};
use crate::view::TaskTable;

pub(crate) mod remote;
pub(crate) mod shutdown;
pub(crate) mod signals;
pub(crate) mod threads;
pub(crate) mod watchdog;

/// All services of a kernel.
pub(crate) struct All {
    pub(crate) threads: Threads,
    pub(crate) signals: Signals,
    pub(crate) shutdown: Shutdown,
    pub(crate) watchdog: Watchdog,
    /// The reference that every [`Remote`](crate::Remote) clones, so that the kernel can count
    /// them.
    pub(crate) remotes: Arc<()>,
}

impl All {
    /// Checks the invariants of the services if an observer wants the whole state.
    fn check<M: Machine>(&self, core: &Core<M>) {
        if core.sched.log.shows_state {
            self.threads.tokens.check();
            let busy = self.threads.busy();
            assert_eq!(core.busy_threads, busy, "the core knows the threads with a job");
        }
    }
}

impl<M: Machine> Services<M> for All {
    fn signal(&mut self, core: &mut Core<M>, signal: Signal) {
        let name = signal.to_string().into();
        let arrival = emit_for!(core.sched, KERNEL, Event::Arrive(Arrival::Signal { name }));
        if core.options.shutdown_on.contains(signal) {
            self.shutdown.signal(core, signal);
        }
        if self.signals.has_hook(signal) {
            self.signals.call_hooks(signal, &TaskTable::of(core));
        }
        core.sched.log.cause = arrival;
        self.signals.arrive(core, signal);
    }

    fn message(&mut self, core: &mut Core<M>, message: Message) {
        match message {
            Message::Done(job) => self.threads.done(core, job),
            Message::Spawn(order) if self.shutdown.is_closing() => {
                traps::internal::drop_quietly(order);
            }
            Message::Spawn(order) => remote::spawn(core, order),
            Message::Cancel(task, reason) => remote::cancel(core, &task, reason),
            Message::ShutDown(reason) => self.shutdown.begin(core, reason),
            Message::Wake(_) | Message::Unpark(_) | Message::Turn => {
                unreachable!("rule: the core handles what is its own")
            }
        }
        self.check(core);
    }

    fn timer(&mut self, core: &mut Core<M>, timer: ServiceTimer, deadline: Time) {
        match timer {
            ServiceTimer::Retry => self.threads.retry(core),
            ServiceTimer::Phase => self.shutdown.end_phase(core, deadline),
        }
    }

    fn post(&mut self, core: &mut Core<M>, post: ServicePost) {
        match post {
            ServicePost::Submit(job) => self.threads.submit(core, *job),
            ServicePost::Abandon(job) => self.threads.abandon(core, job),
            ServicePost::Orphan(ended) => self.threads.orphan(core, *ended),
            ServicePost::Watch { inbox, wanted, is_stream, refusal } => {
                self.signals.serve(core, &inbox, wanted, is_stream, &refusal);
            }
        }
        self.check(core);
    }

    fn watches(&self) -> bool {
        self.watchdog.is_on()
    }

    fn run_begins(&mut self, core: &Core<M>, task: TaskIndex) {
        self.watchdog.begin(core.sched.tasks.label(task), Some(core.sched.tasks.site(task)));
    }

    fn run_ends(&mut self) {
        self.watchdog.end();
    }
}
