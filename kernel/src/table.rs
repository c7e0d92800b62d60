//! The trap table: every service of the kernel, with one arm each.
//!
//! A handler never fails, neither to a task nor to the kernel.

use traps::protocol::{Answer, Asked, Owned, Request, Site, Ticket};
use traps::threads::drop_quietly;

use crate::kernel::Kernel;
use crate::log::{self, emit};
use crate::machine::Machine;
use crate::timers::Owner;
use crate::trace::{Event, Op};
use crate::waits::{On, Wait};

/// The task that made a request, and the place in the source.
#[derive(Clone, Copy)]
pub(crate) struct Asker {
    pub(crate) task: u32,
    pub(crate) asked: Asked,
}

impl Asker {
    #[inline]
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket { task: self.task, serial: self.asked.serial }
    }

    pub(crate) fn scope(&self) -> u32 {
        self.asked.scope
    }

    pub(crate) fn site(&self) -> Site {
        self.asked.site
    }
}

impl<M: Machine> Kernel<M> {
    /// The trap table: answers a request, or parks it.
    #[inline]
    pub(crate) fn dispatch(&mut self, task: u32, asked: Asked) {
        let asker = &Asker { task, asked };
        self.counts.traps += 1;
        if self.hook.is_set() {
            let op = self.asked_op(asker);
            self.before_trap(task, asked.site, &op);
        }
        if self.tasks[task].sources > 0 && self.refuse_if_pending(asker) {
            return;
        }
        match asked.request {
            Request::Clock => {
                let now = self.read_clock();
                self.answer(asker, Answer::Time(now), || Op::Clock);
            }
            Request::WallClock => {
                let wall = self.machine.wall();
                self.answer(asker, Answer::Wall(wall), || Op::WallClock);
            }
            Request::CurrentTask => {
                let id = traps::TaskId(self.tasks[task].id);
                self.answer(asker, Answer::Id(id), || Op::CurrentTask);
            }
            Request::Deadline => {
                let found = self.in_force(asked.scope);
                let until = found.map(|found| found.deadline);
                self.answer_owned(asker, Owned::InForce(found), || Op::Deadline { until });
            }
            // An interrupt that was pending has been given above.
            Request::CheckInterrupt => self.answer(asker, Answer::Done, || Op::CheckInterrupt),
            Request::HeldInterrupt => {
                let held = Owned::Held(self.held(task, asked.scope));
                self.answer_owned(asker, held, || Op::HeldInterrupt);
            }
            Request::Yield { spent } => {
                if spent {
                    emit!(self, task, Event::Yielded { budget: self.options.budget });
                }
                self.give_way(asker, false, || Op::Yield);
            }
            Request::Sleep { span, until } => self.sleep(asker, span, until),
            Request::Io { handle, direction } => self.wait_for_io(asker, handle, direction),
            Request::Join { task, id, take } => self.join(asker, task, id, take),
            Request::Wait { keep } => self.wait_in_queue(asker, keep),
            Request::Wake { n } => self.wake(asker, n),
            Request::Offload => self.offload(asker),
            Request::Signal(set) => self.wait_signal(asker, set),
            Request::NextSignal => self.next_signal(asker),
            Request::Foreign { external } => {
                self.external += usize::from(external);
                self.park(asker, On::Foreign(external), || Op::Foreign { external });
            }
            Request::Outside { what, external } => {
                self.external += usize::from(external);
                let on = On::Outside(self.name_number(what), external);
                self.park(asker, on, || Op::Outside { what: what.into(), external });
            }
        }
    }

    /// Answers a request with the interrupt that is pending for it, if there is one.
    #[cold]
    fn refuse_if_pending(&mut self, asker: &Asker) -> bool {
        let request = &asker.asked.request;
        let can_be = match request {
            Request::CheckInterrupt => true,
            // A join of a task that has ended does not block.
            Request::Join { task, .. } => {
                self.tasks.find(*task).is_some_and(|task| !self.tasks[task].is_ended())
            }
            other => other.blocks(),
        };
        if !can_be {
            return false;
        }
        let Some((interrupt, cause)) = self.take_pending(asker.task, asker.scope()) else {
            return false;
        };
        let op = self.asked_op(asker);
        drop_quietly(self.gate.take_owned(asker.asked.serial));
        emit!(self, asker.task, {
            let (outcome, at) = (log::interrupt(&interrupt), Some(log::site(asker.site())));
            Event::Trap { op, outcome, cause: Some(cause), at }
        });
        self.hand_over_owned(asker, Owned::Interrupt(interrupt));
        true
    }

    fn sleep(&mut self, asker: &Asker, span: u64, until: traps::Time) {
        // The task has read the clock.
        self.log.now = self.log.now.max(traps::Time::from_micros(until.as_micros() - span));
        let span = std::time::Duration::from_micros(span);
        let op = || Op::Sleep { span, until };
        if span.is_zero() {
            return self.give_way(asker, true, op);
        }
        self.sleeps += 1;
        let timer = self.timers.set(until, Owner::Sleep(asker.task), self.sleeps);
        self.park(asker, On::Sleep(timer), op);
    }

    /// Gives a task the answer to a request that did not park. `op` is for the log.
    #[inline]
    pub(crate) fn answer<'o>(
        &mut self,
        asker: &Asker,
        answer: Answer,
        op: impl FnOnce() -> Op<'o>,
    ) {
        emit!(self, asker.task, {
            let (op, outcome) = (op(), log::outcome(answer, None));
            let fails = matches!(answer, Answer::Busy | Answer::Closed);
            let at = fails.then(|| log::site(asker.site()));
            Event::Trap { op, outcome, cause: None, at }
        });
        self.gate.answer(asker.asked.serial, answer);
        self.polled_on(asker);
    }

    /// [`answer`](Kernel::answer), with an answer that owns a value.
    pub(crate) fn answer_owned<'o>(
        &mut self,
        asker: &Asker,
        owned: Owned,
        op: impl FnOnce() -> Op<'o>,
    ) {
        emit!(self, asker.task, {
            let (op, outcome) = (op(), log::outcome(Answer::Owned, Some(&owned)));
            let fails = matches!(owned, Owned::Refused(_));
            let at = fails.then(|| log::site(asker.site()));
            Event::Trap { op, outcome, cause: None, at }
        });
        self.hand_over_owned(asker, owned);
    }

    fn hand_over_owned(&mut self, asker: &Asker, owned: Owned) {
        self.gate.answer_owned(asker.asked.serial, owned);
        self.polled_on(asker);
    }

    /// The task has its answer, and is to be polled again.
    #[inline]
    fn polled_on(&mut self, asker: &Asker) {
        let task = &mut self.tasks[asker.task];
        task.answered = true;
        if task.rare.is_some() {
            self.call_waker(asker.ticket());
        }
    }

    /// Parks a request. `op` is for the log.
    #[inline]
    pub(crate) fn park<'o>(&mut self, asker: &Asker, on: On, op: impl FnOnce() -> Op<'o>) {
        let Asked { serial, scope, site, .. } = asker.asked;
        let task = &mut self.tasks[asker.task];
        task.keep(Wait { serial, scope, on, site });
        task.parked_now = true;
        if self.log.listening {
            let ran = self.ran(asker.task);
            let number = self.log.park(&mut self.tasks[asker.task], serial);
            let (ticket, at) = (Some(number), Some(log::site(site)));
            let reg = self.log.reg.take();
            emit!(self, asker.task, Event::Block { op: op(), ticket, reg, at }, ran);
        }
    }
}
