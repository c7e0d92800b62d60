// says: line #0568: item 99 was done, the second since `pump` was cancelled in #0560; `foreign` returns a value that is there, and not the cancellation, which is to end the task
// demand: A cancelled `pump` ends.
//! A future of another library, in `foreign`, leaves the CPU once.

use std::task::Poll;

use traps::Error;
use traps::channel::mpsc::Receiver;
use traps::foreign;

use super::given::Bench;

pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    loop {
        match items.recv().await {
            Ok(item) => bench.work(item),
            Err(Error::SendersGone) => return Ok(()),
            Err(error) => return Err(error),
        }
        let mut was_polled = false;
        let turn = std::future::poll_fn(|cx| {
            if std::mem::replace(&mut was_polled, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        foreign(turn).await?;
    }
}
