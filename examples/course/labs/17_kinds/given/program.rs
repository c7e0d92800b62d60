//! Three timeouts, one inside the other, around a sleep of 2 s.

use std::time::Duration;

use traps::{Interrupt, Kind, sleep, timeout_after};

/// What each scope gives: of the inner, the middle and the outer one.
pub async fn kinds(inner: Duration, middle: Duration, outer: Duration) -> [Kind; 3] {
    let mut seen = Vec::new();
    let out: Result<_, Interrupt> = timeout_after(outer, async {
        let mid = timeout_after(middle, async {
            let inn = timeout_after(inner, sleep(Duration::from_secs(2))).await;
            seen.push(inn.clone().unwrap_err().kind());
            inn
        })
        .await;
        seen.push(mid.clone().unwrap_err().kind());
        mid
    })
    .await;
    [seen[0], seen[1], out.unwrap_err().kind()]
}
