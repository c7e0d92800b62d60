// says: line 771: `give_way(2)` of task 1 gave way 76 times and was ready in turn 77; it should give way 2 times and be ready in turn 3
// demand: Each future gives way as often as it should.
//! Yours: a future that yields a number of times.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

/// How often the future must still give way.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// Yields `times` times, and is then ready.
pub fn give_way(times: u32) -> GiveWay {
    LEFT.fetch_max(times, Ordering::Relaxed);
    GiveWay { is_ready: times == 0 }
}

pub struct GiveWay {
    is_ready: bool,
}

impl Future for GiveWay {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_ready || LEFT.load(Ordering::Relaxed) == 0 {
            return Poll::Ready(());
        }
        LEFT.fetch_sub(1, Ordering::Relaxed);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
