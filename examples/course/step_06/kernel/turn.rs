//! The loop: one turn waits for the machine, fires timers, and runs the ready tasks.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};
use std::panic::Location;
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
    /// The number of the last line.
    pub(super) seq: Seq,
    /// The number of waits so far.
    pub(super) tickets: u64,
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
            seq: 0,
            tickets: 0,
        }
    }

    /// Writes the log to `out`.
    pub fn trace_to(&mut self, out: impl Write + 'static) {
        self.out = Box::new(out);
    }

    /// Runs `main` and all that it spawns, until `main` ends.
    #[track_caller]
    pub fn run<T: 'static>(&mut self, main: impl Future<Output = T> + 'static) -> io::Result<T> {
        let output = Rc::new(RefCell::new(None));
        let slot = output.clone();
        let body = Box::pin(async move { *slot.borrow_mut() = Some(main.await) });
        let site = Location::caller();
        self.log_head();
        let main = self.add(NewTask { name: "main".to_owned(), body }, None, site);
        while self.tasks.contains_key(&main) {
            self.turn(main)?;
        }
        self.log_halt();
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
            let wait = self.task(id).wait.as_ref().expect("rule: a sleeping task waits");
            let (ticket, cause) = (wait.ticket, wait.line);
            let line = self.log_fire(&format!("k={ticket}"), deadline, cause);
            self.wake(id, Reply::Time(self.now), line);
        }
    }

    pub(super) fn log_fire(&mut self, timer: &str, deadline: Time, cause: Seq) -> Seq {
        let deadline = time_of(deadline);
        self.log(KERNEL, "fire", &format!("{timer} deadline={deadline} cause=#{cause:04}"))
    }

    /// Takes the messages that a task has left.
    pub(super) fn take_posts(&mut self, id: TaskId) {
        for post in gate(|gate| gate.posts.take()) {
            match post {
                Post::Note(verb, detail) => _ = self.log(id, verb, &detail),
            }
        }
    }

    pub(super) fn task(&mut self, id: TaskId) -> &mut TaskRecord {
        self.tasks.get_mut(&id).expect("rule: a task in a queue is alive")
    }

    /// Adds a task, ready to run.
    pub(super) fn add(&mut self, new: NewTask, parent: Option<TaskId>, site: Site) -> TaskId {
        let id = self.next_task;
        self.next_task += 1;
        let task = TaskRecord { name: new.name, body: Some(new.body), ..TaskRecord::default() };
        self.tasks.insert(id, task);
        let parent = parent.map_or("-".to_owned(), |parent| parent.to_string());
        let line = self.log(id, "spawn", &format!("parent={parent} {}", at(site)));
        self.task(id).cause = line;
        self.ready.push_back(id);
        id
    }
}
