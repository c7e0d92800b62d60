//! The verbs: the functions that a program calls.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::*;

/// Returns the time.
#[track_caller]
pub fn clock() -> impl Future<Output = Time> {
    let call = call(Trap::Clock);
    async move { time(call.await) }
}

/// Yields to every task that is ready now.
#[track_caller]
pub fn yield_now() -> impl Future<Output = ()> {
    let call = call(Trap::Yield);
    async move { _ = call.await }
}

/// Waits until `span` has passed, and returns the time.
#[track_caller]
pub fn sleep(span: Duration) -> impl Future<Output = Time> {
    let call = call(Trap::Sleep(span));
    async move { time(call.await) }
}

fn time(reply: Reply) -> Time {
    match reply {
        Reply::Time(time) => time,
        other => unreachable!("rule: this trap is answered with a time, not {other:?}"),
    }
}

/// Makes a task, and returns its handle.
#[track_caller]
pub fn spawn<T: 'static>(
    name: &str,
    future: impl Future<Output = T> + 'static,
) -> impl Future<Output = Task<T>> {
    let output = Rc::new(RefCell::new(None));
    let slot = output.clone();
    let body = Box::pin(async move { *slot.borrow_mut() = Some(future.await) });
    let call = call(Trap::Spawn(NewTask { name: name.replace(' ', "_"), body }));
    async move {
        match call.await {
            Reply::Task(id) => Task { id, output },
            other => unreachable!("rule: a spawn is answered with a task, not {other:?}"),
        }
    }
}

/// Writes a line into the log.
pub fn note(text: impl std::fmt::Display) {
    gate(|gate| gate.post(Post::Note("note", text.to_string())));
}
