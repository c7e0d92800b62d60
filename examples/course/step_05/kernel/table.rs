//! The trap table: every service of the kernel, with one match arm each.

use super::*;

/// The next state of a task that trapped.
pub(super) enum Verdict {
    /// The task runs on with this reply.
    Answer(Reply),
    /// The task leaves the CPU.
    Block,
}

impl<M: Machine> Kernel<M> {
    /// Serves a trap. Returns whether the task leaves the CPU.
    pub(super) fn dispatch(&mut self, id: TaskId, trap: Trap) -> bool {
        use Verdict::{Answer, Block};
        self.now = self.machine.now();
        let words = self.words(&trap);
        let verdict = match trap {
            Trap::Clock => Answer(Reply::Time(self.now)),
            Trap::Yield => {
                self.log(id, "block", &words);
                self.wake(id, Reply::Done);
                return true;
            }
            Trap::Sleep(span) => {
                self.timers.set(self.now + span, id);
                Block
            }
            Trap::Spawn(new) => {
                let child = self.next_task;
                self.answer(id, &words, Reply::Task(child));
                self.add(new, Some(id));
                return false;
            }
            Trap::Join(other) => match self.tasks.get_mut(&other) {
                None => Answer(Reply::Done),
                Some(task) => {
                    task.joiners.push(id);
                    Block
                }
            },
        };
        match verdict {
            Answer(reply) => {
                self.answer(id, &words, reply);
                false
            }
            Block => {
                self.log(id, "block", &words);
                true
            }
        }
    }

    /// Logs the reply, with which the task runs on.
    pub(super) fn answer(&mut self, id: TaskId, words: &str, reply: Reply) {
        self.log(id, "trap", &format!("{words} = {}", outcome(&reply)));
        self.task(id).reply = Some(reply);
    }
}
