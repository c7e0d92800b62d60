//! The verbs: the functions that a program calls.

use std::time::Duration;

use super::*;

/// The time.
pub async fn clock() -> Time {
    time(call(Trap::Clock).await)
}

/// Lets every task run that is ready now.
pub async fn yield_now() {
    call(Trap::Yield).await;
}

/// Waits until `span` has passed. Returns the time then.
pub async fn sleep(span: Duration) -> Time {
    time(call(Trap::Sleep(span)).await)
}

fn time(reply: Reply) -> Time {
    match reply {
        Reply::Time(time) => time,
        other => unreachable!("rule: this trap is answered with a time, not {other:?}"),
    }
}
