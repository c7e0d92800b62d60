//! The loop: one turn waits, fires timers, and runs the ready tasks.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Instant;

use super::*;

/// The future of a task.
type Body = Pin<Box<dyn Future<Output = ()>>>;

pub struct Kernel {
    start: Instant,
    /// The last reading of the clock.
    pub(super) now: Time,
    pub(super) turn: u64,
    tasks: BTreeMap<TaskId, Body>,
    next_task: TaskId,
    ready: Ready,
    pub(super) out: Box<dyn Write>,
}

impl Kernel {
    /// Makes a kernel that writes its log to standard output.
    pub fn new() -> Kernel {
        Kernel {
            start: Instant::now(),
            now: Time::default(),
            turn: 0,
            tasks: BTreeMap::new(),
            next_task: 1,
            ready: Ready::default(),
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
            let id = self.ready.pop().expect("nothing else takes from the queue");
            self.run_task(id);
        }
        Ok(())
    }

    fn wait(&mut self) -> io::Result<()> {
        if self.ready.len() == 0 {
            let next = TIMERS.with_borrow(|timers| timers.next());
            let until =
                next.ok_or_else(|| io::Error::other("every task waits, and nothing will come"))?;
            std::thread::sleep(until.0.saturating_sub(self.start.elapsed()));
        }
        self.now = Time(self.start.elapsed());
        TIMERS.with_borrow_mut(|timers| timers.now = self.now);
        Ok(())
    }

    fn fire_timers(&mut self) {
        while let Some((_, waker)) = TIMERS.with_borrow_mut(|timers| timers.pop(self.now)) {
            self.log(KERNEL, "fire");
            waker.wake();
        }
    }

    /// Adds a task, ready to run.
    pub fn add(&mut self, future: impl Future<Output = ()> + 'static) {
        let id = self.next_task;
        self.next_task += 1;
        self.tasks.insert(id, Box::pin(future));
        self.log(id, "spawn");
        self.ready.push(id);
    }

    fn run_task(&mut self, id: TaskId) {
        // A task may be woken after its end.
        let Some(mut body) = self.tasks.remove(&id) else { return };
        self.log(id, "run");
        let waker = Waker::from(Arc::new(TaskWaker { task: id, ready: self.ready.clone() }));
        if body.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            return self.log(id, "exit");
        }
        self.log(id, "block");
        self.tasks.insert(id, body);
    }
}
