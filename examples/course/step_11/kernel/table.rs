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
        let words = self.words(id, &trap);
        // Only a trap that blocks can be interrupted.
        let blocks = matches!(
            trap,
            Trap::Yield | Trap::Sleep(_) | Trap::Join(_) | Trap::Io(..) | Trap::Offload(_)
        );
        if blocks && let Some((interrupt, cause)) = self.take_pending(id) {
            let tail = format!(" cause=#{cause:04} {}", at(site));
            self.answer(id, &words, Reply::Interrupt(interrupt), &tail);
            return false;
        }
        let verdict = match trap {
            Trap::Clock => Answer(Reply::Time(self.now)),
            Trap::Yield => Block(On::Yield, ""),
            Trap::Sleep(span) => {
                Block(On::Sleep(self.timers.set(self.now + span, Owner::Sleep(id))), "")
            }
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
            Trap::Open(kind) => {
                self.open(id, kind, &words, site);
                return false;
            }
            Trap::Close(scope, left) => Answer(self.close(id, scope, left)),
            Trap::Cancel(other) => {
                self.cancel(id, other);
                self.task(id).reply = Some(Reply::Done);
                return false;
            }
            Trap::Offload(job) => {
                self.offload(id, job, &words, site);
                return true;
            }
            Trap::ConnectionDeadline => Answer(Reply::Deadline(self.deadlines(Deadlines::add))),
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
