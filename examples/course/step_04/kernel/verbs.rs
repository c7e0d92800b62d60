//! The verbs: the functions that a program calls.

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
