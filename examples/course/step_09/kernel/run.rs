//! One run of a task: poll it and answer its traps until it blocks or ends.

use std::task::{Context, Waker};

use super::*;

impl<M: Machine> Kernel<M> {
    pub(super) fn run_task(&mut self, id: TaskId) {
        self.log_run(id);
        let mut cx = Context::from_waker(Waker::noop());
        let mut body = self.task(id).body.take().expect("a ready task has its body");
        loop {
            let reply = self.task(id).reply.take();
            gate(|gate| gate.load(reply));
            let polled = body.as_mut().poll(&mut cx);
            self.take_posts(id);
            if polled.is_ready() {
                drop(body);
                self.take_posts(id);
                return self.end_task(id);
            }
            let Some((trap, site)) = gate(|gate| gate.take_request()) else {
                panic!("rule: a task waits for the kernel alone")
            };
            if self.dispatch(id, trap, site) {
                break;
            }
        }
        self.task(id).body = Some(body);
    }

    fn log_run(&mut self, id: TaskId) {
        let (task, now) = (&self.tasks[&id], self.now);
        let parked = task.left.map(|left| format!(" parked={}", span(now.since(left))));
        let detail =
            format!("cause=#{:04}{}{}", task.cause, parked.unwrap_or_default(), task.answered);
        let line = self.log(id, "run", &detail);
        let task = self.task(id);
        task.cause = line;
        task.answered.clear();
    }

    fn end_task(&mut self, id: TaskId) {
        let is_cancelled = self.tasks[&id].cancel.as_ref().is_some_and(|cancel| cancel.is_taken);
        let how = if is_cancelled { "cancelled" } else { "ok" };
        let cause = self.tasks[&id].cause;
        let line = self.log(id, "exit", &format!("{how} cause=#{cause:04}"));
        let task = self.tasks.remove(&id).expect("it has just run");
        for joiner in task.joiners {
            self.wake(joiner, Reply::Done, line);
        }
    }
}
