// says: line 1108: `give_way(5)` of task 1 gave way 3 times and was ready in turn 4; it should give way 5 times and be ready in turn 6
// demand: Each future gives way as often as it should.
//! Yours: a future that yields a number of times.

use std::pin::Pin;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};

/// The numbers of times that the futures must still yield. There are no more futures than this.
static LEFT: [AtomicU32; 128] = [const { AtomicU32::new(0) }; 128];
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Yields `times` times, and is then ready.
pub fn give_way(times: u32) -> GiveWay {
    let place = MADE.fetch_add(1, Relaxed) % LEFT.len();
    LEFT[place].store(times, Relaxed);
    GiveWay { place }
}

pub struct GiveWay {
    /// Its place in the table.
    place: usize,
}

impl Future for GiveWay {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let left = LEFT[self.place].load(Relaxed);
        if left == 0 {
            return Poll::Ready(());
        }
        LEFT[self.place].store(left - 1, Relaxed);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
