//! The trap table: every service of the kernel, with one arm each.
//!
//! A handler never fails, neither to a task nor to the kernel.

use traps::core::names::Ticket;
use traps::core::protocol::{Reply, Trap};
use traps::core::queue::Queue;
use traps::core::records::{On, Wait, WaitState};

use super::Core;
use super::timers::Owner;
use super::waits::call;
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::trace::{Event, Op, Reg, Seq};

/// What becomes of a trap.
pub(crate) enum Verdict {
    /// The task is polled on with this reply.
    Answer(Reply),
    /// It waits; for a descriptor, also what that did about its registration.
    Block(On, Option<Reg>),
}

impl<M: Machine> Core<M> {
    /// The trap table: answers a trap, or parks it.
    #[inline]
    pub(crate) fn dispatch(&mut self, task: u32, ticket: Ticket) {
        let mut records = self.gate.records();
        // It is gone if its future was dropped in the same poll.
        let Some(wait) = records.waits.get_mut(ticket) else { return };
        // A placeholder until it is answered or parked. What fires meanwhile finds no parked wait
        // here, and `pending_for` takes it.
        let filed = std::mem::replace(&mut wait.state, WaitState::Done(Reply::Done));
        let WaitState::Filed(trap) = filed else { unreachable!("rule: a trap is filed once") };
        let site = wait.site;
        drop(records);
        self.counts.traps += 1;
        let mut op = None;
        if self.log.listening || self.hook.is_set() {
            let shown = self.op(&trap);
            if self.hook.is_set() {
                self.before_trap(task, site, &shown);
            }
            op = Some(shown);
        }
        if let Some((interrupt, cause)) = self.pending_for(ticket, &trap) {
            drop(trap);
            return self.answer(task, ticket, Reply::Interrupt(interrupt), op, Some(cause));
        }
        let verdict = match trap {
            Trap::Clock => {
                self.now = self.machine.now();
                Verdict::Answer(Reply::Time(self.now))
            }
            // An interrupt that was pending has been given above.
            Trap::Check => Verdict::Answer(self.held(ticket).map_or(Reply::Done, Reply::Held)),
            Trap::Yield { spent } => {
                if spent {
                    emit!(self, task, Event::Yielded { budget: self.options.budget });
                }
                self.run.yields.push(ticket);
                Verdict::Block(On::Yield { zero: false }, None)
            }
            Trap::Sleep { span: 0, .. } => {
                self.run.yields.push(ticket);
                Verdict::Block(On::Yield { zero: true }, None)
            }
            Trap::Sleep { until, .. } => {
                let order = self.timers.next_order();
                let timer = self.timers.set(until, Owner::Sleep(ticket), order);
                Verdict::Block(On::Sleep(timer), None)
            }
            Trap::Io { handle, direction } => self.wait_for_io(task, ticket, handle, direction),
            Trap::Wait { queue, keep } => {
                self.stand_in(&queue, ticket);
                Verdict::Block(On::Queue(queue, keep), None)
            }
            Trap::Park { what, external } => {
                self.external += usize::from(external);
                Verdict::Block(On::Park(what, external), None)
            }
        };
        match verdict {
            Verdict::Answer(reply) => self.answer(task, ticket, reply, op, None),
            Verdict::Block(on, reg) => self.park(task, ticket, on, op, reg),
        }
    }

    /// Gives a task the reply to a trap that did not park. The task is polled again.
    fn answer(
        &mut self,
        task: u32,
        ticket: Ticket,
        reply: Reply,
        op: Option<Op<'static>>,
        cause: Option<Seq>,
    ) {
        let mut records = self.gate.records();
        let Some(wait) = records.waits.get_mut(ticket) else { return };
        let site = wait.site;
        let waker = wait.waker.take();
        if let (Some(op), true) = (op, self.log.listening) {
            let fails = matches!(
                reply,
                Reply::Busy | Reply::Closed | Reply::Refused(_) | Reply::Interrupt(_)
            );
            let (outcome, at) = (log::outcome(&reply), fails.then(|| log::site(site)));
            wait.state = WaitState::Done(reply);
            drop(records);
            emit!(self, task, Event::Trap { op, outcome, cause, at });
        } else {
            wait.state = WaitState::Done(reply);
            drop(records);
        }
        self.run.again = true;
        call(waker);
    }

    /// Parks a trap.
    #[inline]
    fn park(
        &mut self,
        task: u32,
        ticket: Ticket,
        on: On,
        op: Option<Op<'static>>,
        reg: Option<Reg>,
    ) {
        let queue = match &on {
            On::Queue(queue, _) => Some(queue.clone()),
            _ => None,
        };
        let mut records = self.gate.records();
        let Some(wait) = records.waits.get_mut(ticket) else { return };
        wait.state = WaitState::Parked(on);
        drop(records);
        let is_told = !self.log.listening || self.log_wait(task, ticket, queue.as_deref(), op, reg);
        let is_parked = queue.is_none_or(|queue| {
            // What it waits for may have come already.
            self.serve_newcomer(&queue);
            self.gate.records().waits.get(ticket).is_some_and(Wait::is_parked)
        });
        self.run.parked |= is_parked && is_told;
    }

    /// The line of a wait. True if it is `block`: the task leaves the CPU, and has no other wait.
    #[cold]
    fn log_wait(
        &mut self,
        task: u32,
        ticket: Ticket,
        queue: Option<&Queue>,
        op: Option<Op<'static>>,
        reg: Option<Reg>,
    ) -> bool {
        let records = self.gate.records();
        let leaves = !(self.run.goes_on || self.run.again)
            && queue.is_none_or(|queue| !queue.over.get() && queue.permits.get() == 0)
            && records.is_only(self.tasks[task].root.index, ticket);
        let (at, op) = (Some(log::site(records.waits[ticket.index].site)), op.expect("it listens"));
        drop(records);
        let ran = if leaves { self.ran(task) } else { None };
        let ticket = Some(self.log.number(ticket));
        let event = if leaves {
            Event::Block { op, ticket, reg, at }
        } else {
            Event::Await { op, ticket, reg, at }
        };
        emit!(self, task, event, ran);
        leaves
    }
}
