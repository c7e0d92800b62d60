//! The trap table: every service of the kernel, with one match arm each.

use super::*;

/// The next state of a task that trapped.
pub(super) enum Verdict {
    /// The task runs on with this reply.
    Answer(Reply),
    /// The task leaves the CPU. The text is for the log: how its descriptor is registered.
    Block(On, &'static str),
}

impl<M: Machine> Kernel<M> {
    /// Serves a trap. Returns whether the task leaves the CPU.
    pub(super) fn dispatch(&mut self, id: TaskId, trap: Trap, site: Site) -> bool {
        use Verdict::{Answer, Block};
        self.now = self.machine.now();
        let words = self.words(&trap);
        let verdict = match trap {
            Trap::Clock => Answer(Reply::Time(self.now)),
            Trap::Yield => Block(On::Yield, ""),
            Trap::Sleep(span) => Block(On::Sleep(self.timers.set(self.now + span, id)), ""),
            Trap::Spawn(new) => {
                let child = self.next_task;
                self.answer(id, &words, Reply::Task(child), "");
                self.add(new, Some(id), site);
                return false;
            }
            Trap::Join(other) => match self.tasks.get_mut(&other) {
                None => Answer(Reply::Done),
                Some(task) => {
                    task.joiners.push(id);
                    Block(On::Join(other), "")
                }
            },
            Trap::Io(handle, direction) => self.wait_for_io(id, handle, direction),
        };
        match verdict {
            Answer(reply) => {
                self.answer(id, &words, reply, "");
                false
            }
            Block(on, reg) => {
                self.park(id, on, &words, reg, site);
                true
            }
        }
    }

    /// Logs the reply, with which the task runs on. Returns the number of the line.
    pub(super) fn answer(&mut self, id: TaskId, words: &str, reply: Reply, tail: &str) -> Seq {
        let line = self.log(id, "trap", &format!("{words} = {}{tail}", outcome(&reply)));
        self.task(id).reply = Some(reply);
        line
    }
}
