//! Step 8: nested timeouts. Whose deadline was it?

// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::time::Duration;

use kernel::{Interrupt, Kernel, Kind, Sim, sleep, timeout_after};

fn tenths(n: u64) -> Duration {
    Duration::from_millis(100 * n)
}

/// Three timeouts around one long sleep. The second has the soonest deadline.
async fn nested() -> Result<(), Interrupt> {
    let outer = timeout_after(tenths(5), async {
        let middle = timeout_after(tenths(4), async {
            let inner = timeout_after(tenths(7), sleep(tenths(20))).await;
            assert_eq!(inner.as_ref().unwrap_err().kind(), Kind::TimeoutCancellation);
            inner
        })
        .await;
        assert_eq!(middle.as_ref().unwrap_err().kind(), Kind::TaskTimeout);
        middle
    })
    .await;
    assert_eq!(outer.unwrap_err().kind(), Kind::UncaughtTimeout);

    // After a handled timeout, the outer timeout is still in force.
    let outer = timeout_after(tenths(5), async {
        if timeout_after(tenths(2), sleep(tenths(9))).await.is_err() {
            sleep(tenths(9)).await?;
        }
        Ok::<_, Interrupt>(())
    });
    assert_eq!(outer.await.unwrap_err().kind(), Kind::TaskTimeout);
    Ok(())
}

fn main() -> std::io::Result<()> {
    Kernel::new(Sim::new()).run(nested())?.map_err(std::io::Error::other)
}
