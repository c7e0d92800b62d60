//! Yours: the task `pump`.

use std::future::poll_fn;
use std::task::Poll;

use traps::channel::mpsc::Receiver;
use traps::{Error, check_cancellation};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    loop {
        let item = match items.recv().await {
            Err(Error::SendersGone) => return Ok(()),
            item => item?,
        };
        bench.work(item);
        leave_the_cpu_once().await;
        check_cancellation().await?;
    }
}

/// The task wakes itself, as foreign code does, and so it is ready again at once.
async fn leave_the_cpu_once() {
    let mut has_left = false;
    poll_fn(|context| {
        if has_left {
            return Poll::Ready(());
        }
        has_left = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
