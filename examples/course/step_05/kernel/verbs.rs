//! The verbs: the functions that a program calls.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::*;

/// Returns the time.
pub async fn clock() -> Time {
    time(call(Trap::Clock).await)
}

/// Yields to every task that is ready now.
pub async fn yield_now() {
    call(Trap::Yield).await;
}

/// Waits until `span` has passed, and returns the time.
pub async fn sleep(span: Duration) -> Time {
    time(call(Trap::Sleep(span)).await)
}

fn time(reply: Reply) -> Time {
    match reply {
        Reply::Time(time) => time,
        other => unreachable!("rule: this trap is answered with a time, not {other:?}"),
    }
}

/// Makes a task, and returns its handle.
pub async fn spawn<T: 'static>(name: &str, future: impl Future<Output = T> + 'static) -> Task<T> {
    let output = Rc::new(RefCell::new(None));
    let slot = output.clone();
    let body = Box::pin(async move { *slot.borrow_mut() = Some(future.await) });
    match call(Trap::Spawn(NewTask { name: name.replace(' ', "_"), body })).await {
        Reply::Task(id) => Task { id, output },
        other => unreachable!("rule: a spawn is answered with a task, not {other:?}"),
    }
}
