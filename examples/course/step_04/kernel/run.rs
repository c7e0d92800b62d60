//! One run of a task: poll it and answer its traps until it blocks or ends.

use std::task::{Context, Waker};

use super::*;

impl<M: Machine> Kernel<M> {
    pub(super) fn run_task(&mut self, id: TaskId) {
        self.log(id, "run", "");
        let mut cx = Context::from_waker(Waker::noop());
        let mut body = self.task(id).body.take().expect("a ready task has its body");
        loop {
            let reply = self.task(id).reply.take();
            gate(|gate| gate.load(reply));
            let polled = body.as_mut().poll(&mut cx);
            if polled.is_ready() {
                return self.end_task(id);
            }
            let Some(trap) = gate(|gate| gate.take_request()) else {
                panic!("rule: a task waits for the kernel alone")
            };
            if self.dispatch(id, trap) {
                break;
            }
        }
        self.task(id).body = Some(body);
    }

    fn end_task(&mut self, id: TaskId) {
        self.log(id, "exit", "ok");
        self.tasks.remove(&id);
    }
}
