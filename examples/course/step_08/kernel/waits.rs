//! Waits: a task leaves the CPU until an event brings it back.

use super::*;

/// The thing that a task waits for.
#[derive(Clone, Copy)]
pub(super) enum On {
    Yield,
    Sleep(Timer),
    Join(TaskId),
    Io(HandleId, Direction),
}

/// One wait of a task. It ends once.
#[derive(Clone, Copy)]
pub(super) struct Wait {
    pub(super) on: On,
    /// Its number, `k=` in the log.
    pub(super) ticket: u64,
    /// Its `block` line.
    pub(super) line: Seq,
}

impl<M: Machine> Kernel<M> {
    /// Takes a task off the CPU.
    pub(super) fn park(&mut self, id: TaskId, on: On, words: &str, reg: &str, site: Site) {
        self.tickets += 1;
        let ticket = self.tickets;
        let line = self.log(id, "block", &format!("{words} k={ticket}{reg} {}", at(site)));
        let now = self.now;
        let task = self.task(id);
        (task.wait, task.left) = (Some(Wait { on, ticket, line }), Some(now));
        if let On::Yield = on {
            self.wake(id, Reply::Done, line);
        }
    }

    /// Ends a wait, and makes the task ready.
    pub(super) fn wake(&mut self, id: TaskId, reply: Reply, cause: Seq) {
        let wait = self.task(id).wait.take().expect("rule: a woken task waits");
        let on = self.shown(wait.on);
        let line = self.log(id, "wake", &format!("{on} k={} cause=#{cause:04}", wait.ticket));
        self.make_ready(id, wait.ticket, reply, line);
    }

    /// Ends a wait with an interrupt, and makes the task ready.
    pub(super) fn deliver(&mut self, id: TaskId, interrupt: Interrupt, cause: Seq) {
        let wait = self.task(id).wait.take().expect("rule: an interrupted task waits");
        let detail = format!("k={} = {}", wait.ticket, interrupt.in_full());
        let line = self.log(id, "deliver", &format!("{detail} cause=#{cause:04}"));
        self.undo(id, wait.on);
        self.make_ready(id, wait.ticket, Reply::Interrupt(interrupt), line);
    }

    /// Undoes the start of a wait that ends early.
    fn undo(&mut self, id: TaskId, on: On) {
        match on {
            On::Sleep(timer) => self.timers.clear(timer),
            On::Join(task) => self.task(task).joiners.retain(|joiner| *joiner != id),
            On::Io(handle, direction) => self.forget_waiter(handle, direction),
            On::Yield => {}
        }
    }

    fn make_ready(&mut self, id: TaskId, ticket: u64, reply: Reply, line: Seq) {
        let task = self.task(id);
        task.answered = format!(" k={ticket} = {}", outcome(&reply));
        (task.reply, task.cause) = (Some(reply), line);
        self.ready.push_back(id);
    }
}
