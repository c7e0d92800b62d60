//! Nested timeouts: which error each of them gives when a deadline in the middle passes.

use std::process::ExitCode;
use std::time::Duration;

use common::Lesson;
use kernel::Sim;
use traps::{Interrupt, Kind, sleep, timeout_after};

fn tenths(n: u64) -> Duration {
    Duration::from_millis(100 * n)
}

/// Three timeouts around one long sleep: 0.5 s, 0.4 s and 0.7 s, outermost first.
pub async fn nested() -> Result<(), Interrupt> {
    let outer = timeout_after(tenths(5), async {
        let middle = timeout_after(tenths(4), async {
            let inner = timeout_after(tenths(7), async { sleep(tenths(20)).await }).await;
            assert_eq!(inner.as_ref().unwrap_err().kind(), Kind::TimeoutCancellation);
            inner
        })
        .await;
        assert_eq!(middle.as_ref().unwrap_err().kind(), Kind::TaskTimeout);
        middle
    })
    .await;
    assert_eq!(outer.unwrap_err().kind(), Kind::UncaughtTimeout);

    // A timeout that was handled leaves the outer one in force.
    let outer = timeout_after(tenths(5), async {
        if timeout_after(tenths(2), sleep(tenths(9))).await.is_err() {
            sleep(tenths(9)).await?;
        }
        Ok(())
    });
    assert_eq!(outer.await.map_err(|why: Interrupt| why.kind()), Err(Kind::TaskTimeout));
    Ok(())
}

pub fn main() -> ExitCode {
    Lesson::parse("nested", "Nested timeouts: which error each of them gives")
        .run(Sim::new(), nested())
}
