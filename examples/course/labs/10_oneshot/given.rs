//! Given: tasks that receive, and `main`, which sends.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::kernel::{Error, Kernel, Sim, note, sleep, spawn};
use super::lab::{Receiver, channel};

const SECOND: Duration = Duration::from_secs(1);

/// The waker of a task, for somebody who calls it without a reason.
type Spare = Rc<RefCell<Option<Waker>>>;

async fn receive(receiver: Receiver) {
    match receiver.await {
        Some(value) => note(format_args!("value {value}")),
        None => note("closed"),
    }
}

async fn keep_waker(spare: Spare) {
    poll_fn(|cx| {
        *spare.borrow_mut() = Some(cx.waker().clone());
        Poll::Ready(())
    })
    .await;
}

/// Polls once, as somebody does who waits for two things, and has another task wait.
async fn hand_over(mut receiver: Receiver) -> Result<(), Error> {
    let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut receiver).poll(cx))).await;
    if first.is_ready() {
        note("ready too early");
        return Ok(());
    }
    spawn("heir", receive(receiver)).await.join().await
}

async fn main_task() -> Result<(), Error> {
    let (one, receiver) = channel();
    note("send 1");
    one.send(1);
    let mut early = spawn("early", receive(receiver)).await;
    let (two, receiver) = channel();
    let spare = Spare::default();
    let theirs = spare.clone();
    let parked = async {
        keep_waker(theirs).await;
        receive(receiver).await;
    };
    let mut parked = spawn("parked", parked).await;
    let (three, receiver) = channel();
    let mut closed = spawn("closed", receive(receiver)).await;
    let (four, receiver) = channel();
    let mut moved = spawn("moved", hand_over(receiver)).await;

    sleep(SECOND).await?;
    note("wake parked");
    spare.take().expect("it has run").wake();
    sleep(SECOND).await?;
    note("send 2");
    two.send(2);
    sleep(SECOND).await?;
    note("drop 3");
    // The skeleton has nothing to drop yet.
    #[allow(clippy::drop_non_drop)]
    drop(three);
    sleep(SECOND).await?;
    note("send 4");
    four.send(4);
    early.join().await?;
    parked.join().await?;
    closed.join().await?;
    moved.join().await?
}

pub fn main(_seed: u64) {
    // If a wake was lost, nothing will come any more: then the log ends where everybody waits.
    drop(Kernel::new(Sim::new()).run(main_task()));
}
