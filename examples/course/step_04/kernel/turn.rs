//! The loop: one turn waits for the machine, fires timers, and runs the ready tasks.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

use super::*;

pub struct Kernel<M> {
    pub(super) machine: M,
    /// The last reading of the clock.
    pub(super) now: Time,
    pub(super) turn: u64,
    pub(super) tasks: BTreeMap<TaskId, TaskRecord>,
    pub(super) next_task: TaskId,
    pub(super) ready: VecDeque<TaskId>,
    pub(super) timers: Timers,
    pub(super) out: Box<dyn Write>,
}

impl<M: Machine> Kernel<M> {
    /// Makes a kernel on this machine. The log goes to standard output.
    pub fn new(machine: M) -> Kernel<M> {
        Kernel {
            machine,
            now: Time::ZERO,
            turn: 0,
            tasks: BTreeMap::new(),
            next_task: 1,
            ready: VecDeque::new(),
            timers: Timers::default(),
            out: Box::new(io::stdout()),
        }
    }

    /// Runs turns until no task is left.
    pub fn run(&mut self) -> io::Result<()> {
        while !self.tasks.is_empty() {
            self.turn()?;
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        self.turn += 1;
        self.wait()?;
        self.fire_timers();
        // A task that becomes ready from here on runs in the next turn.
        for _ in 0..self.ready.len() {
            let id = self.ready.pop_front().expect("nothing else takes from the queue");
            self.run_task(id);
        }
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        let is_busy = !self.ready.is_empty();
        let until = if is_busy { Some(self.now) } else { self.timers.next() };
        self.machine.wait(until)?;
        self.now = self.machine.now();
        Ok(())
    }

    fn fire_timers(&mut self) {
        while let Some((deadline, id)) = self.timers.pop(self.now) {
            self.log(KERNEL, "fire", &format!("deadline={}", time_of(deadline)));
            self.wake(id, Reply::Time(self.now));
        }
    }

    pub(super) fn task(&mut self, id: TaskId) -> &mut TaskRecord {
        self.tasks.get_mut(&id).expect("rule: a task in a queue is alive")
    }

    /// Adds a task, ready to run.
    pub fn add(&mut self, future: impl Future<Output = ()> + 'static) {
        let id = self.next_task;
        self.next_task += 1;
        let task = TaskRecord { body: Some(Box::pin(future)), ..TaskRecord::default() };
        self.tasks.insert(id, task);
        self.log(id, "spawn", "");
        self.ready.push_back(id);
    }

    pub(super) fn wake(&mut self, id: TaskId, reply: Reply) {
        self.log(id, "wake", "");
        self.task(id).reply = Some(reply);
        self.ready.push_back(id);
    }
}
