//! The loop: one turn waits for the machine, fires timers, and runs the ready tasks.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::rc::Rc;

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

    /// Runs `main` and all that it spawns, until `main` ends.
    pub fn run<T: 'static>(&mut self, main: impl Future<Output = T> + 'static) -> io::Result<T> {
        let output = Rc::new(RefCell::new(None));
        let slot = output.clone();
        let body = Box::pin(async move { *slot.borrow_mut() = Some(main.await) });
        let main = self.add(NewTask { name: "main".to_owned(), body }, None);
        while self.tasks.contains_key(&main) {
            self.turn(main)?;
        }
        Ok(output.take().expect("main has ended"))
    }

    fn turn(&mut self, main: TaskId) -> io::Result<()> {
        self.turn += 1;
        self.wait()?;
        self.fire_timers();
        // A task that becomes ready from here on runs in the next turn.
        for _ in 0..self.ready.len() {
            let Some(id) = self.ready.pop_front() else { break };
            self.run_task(id);
            if id == main && !self.tasks.contains_key(&main) {
                break;
            }
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
    pub(super) fn add(&mut self, new: NewTask, parent: Option<TaskId>) -> TaskId {
        let id = self.next_task;
        self.next_task += 1;
        let task = TaskRecord { body: Some(new.body), ..TaskRecord::default() };
        self.tasks.insert(id, task);
        let parent = parent.map_or("-".to_owned(), |parent| parent.to_string());
        self.log(id, "spawn", &format!("{} parent={parent}", new.name));
        self.ready.push_back(id);
        id
    }

    pub(super) fn wake(&mut self, id: TaskId, reply: Reply) {
        self.log(id, "wake", "");
        self.task(id).reply = Some(reply);
        self.ready.push_back(id);
    }
}
