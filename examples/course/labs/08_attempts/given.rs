//! Given: a fetch that is slow, and its callers.

use std::cell::Cell;
use std::time::Duration;

use super::kernel::{Interrupt, Kernel, Sim, note, sleep, timeout_after};
use super::scenario::{self, Attempt, Call};

pub const SECOND: Duration = Duration::from_secs(1);

thread_local! {
    /// The call that `fetch` belongs to.
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
}

/// Makes the n-th attempt, from 1.
pub async fn fetch(n: u32) -> Result<u32, Interrupt> {
    note(format_args!("attempt {n}"));
    let Call { attempts, value, .. } = CALL.get().expect("`given.rs` makes the calls");
    match attempts[n.clamp(1, 3) as usize - 1] {
        Attempt::Value(takes) => _ = sleep(takes).await?,
        Attempt::Fails(limit) => _ = timeout_after(limit, sleep(60 * SECOND)).await?,
    }
    Ok(value + n)
}

async fn call(call: Call) {
    note(format_args!("call under a timeout of {:?}", call.limit));
    CALL.set(Some(call));
    match timeout_after(call.limit, super::lab::attempts()).await {
        Ok(value) => note(format_args!("value {value}")),
        Err(why) => note(format_args!("no value: {:?}", why.kind())),
    }
}

pub fn main(seed: u64) {
    let ran = Kernel::new(Sim::new()).run(async move {
        for each in scenario::of(seed) {
            call(each).await;
        }
    });
    if let Err(error) = ran {
        println!("# {error}");
    }
}
