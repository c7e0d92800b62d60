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
pub fn yield_now() -> impl Future<Output = Result<(), Interrupt>> {
    let call = call(Trap::Yield);
    async move { call.await.interrupted().map(|_| ()) }
}

/// Waits until `span` has passed, and returns the time.
#[track_caller]
pub fn sleep(span: Duration) -> impl Future<Output = Result<Time, Interrupt>> {
    let call = call(Trap::Sleep(span));
    async move { call.await.interrupted().map(time) }
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

/// Runs `future`, and interrupts its wait when `span` has passed.
#[track_caller]
pub fn timeout_after<T, E: Interruptible>(
    span: Duration,
    future: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    in_scope(call(Trap::Open(ScopeKind::Timeout(span))), future)
}

/// Runs `future`, and holds back the interrupts from outside until it has ended.
#[track_caller]
pub fn shield<T, E: Interruptible>(
    future: impl Future<Output = Result<T, E>>,
) -> impl Future<Output = Result<T, E>> {
    in_scope(call(Trap::Open(ScopeKind::Shield)), future)
}

/// Runs `future` between the opening and the close of a scope.
pub(super) async fn in_scope<T, E: Interruptible>(
    open: Call,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let Reply::Scope(scope) = open.await else {
        unreachable!("rule: an opening is answered with a scope")
    };
    let mut result = future.await;
    let left = result.as_mut().err().and_then(E::interrupt);
    let reply = call(Trap::Close(scope, left.as_deref().cloned())).await;
    // Outside this scope the interrupt can have another kind, which the kernel knows.
    if let (Some(left), Reply::Interrupt(interrupt)) = (left, reply) {
        *left = interrupt;
    }
    result
}
