//! Given: tasks that receive, and `main`, which sends.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::kernel::{Error, Kernel, Sim, Task, note, sleep, spawn};
use super::lab::{Receiver, Sender, channel};
use super::scenario::{self, Channel};

const TENTH: Duration = Duration::from_millis(100);

/// The waker of a task. `main` calls it for no reason.
type Spare = Rc<RefCell<Option<Waker>>>;

/// What `main` does when the time has come.
enum Act {
    Wake(Spare),
    Send(Sender, u32),
    Drop(Sender),
}

async fn receive(receiver: Receiver, spare: Spare) {
    poll_fn(|cx| {
        *spare.borrow_mut() = Some(cx.waker().clone());
        Poll::Ready(())
    })
    .await;
    match receiver.await {
        Some(value) => note(format_args!("value {value}")),
        None => note("closed"),
    }
}

/// Polls once, like a task that waits for two events. Then another task waits.
async fn hand_over(mut receiver: Receiver) -> Result<(), Error> {
    let first = poll_fn(|cx| Poll::Ready(Pin::new(&mut receiver).poll(cx))).await;
    if first.is_ready() {
        note("ready too early");
        return Ok(());
    }
    spawn("heir", receive(receiver, Spare::default())).await.join().await
}

/// Spawns the task that receives from a channel.
async fn spawn_receiver(
    name: &str,
    receiver: Receiver,
    spare: &Spare,
) -> Option<Task<Result<(), Error>>> {
    let spare = spare.clone();
    match name {
        // The receiver of this task is dropped here.
        "nobody" => None,
        "heir" => Some(spawn("moved", hand_over(receiver)).await),
        _ => {
            let received = async {
                receive(receiver, spare).await;
                Ok(())
            };
            Some(spawn(name, received).await)
        }
    }
}

fn act(task: &str, act: Act) {
    match act {
        Act::Wake(spare) => {
            note(format_args!("wake {task}"));
            spare.borrow().as_ref().expect("it has run").wake_by_ref();
        }
        Act::Send(sender, value) => {
            note(format_args!("send {value} to {task}"));
            sender.send(value);
        }
        Act::Drop(sender) => {
            note(format_args!("drop the sender of {task}"));
            // The skeleton has nothing to drop yet.
            #[allow(clippy::drop_non_drop)]
            drop(sender);
        }
    }
}

async fn main_task(channels: Vec<Channel>) -> Result<(), Error> {
    let (mut tasks, mut later) = (Vec::new(), Vec::new());
    for Channel { task, wakes, at, value } in channels {
        let (sender, receiver) = channel();
        let end = match value {
            Some(value) => Act::Send(sender, value),
            None => Act::Drop(sender),
        };
        let spare = Spare::default();
        later.extend(wakes.into_iter().map(|at| (at, task, Act::Wake(spare.clone()))));
        match at {
            0 => act(task, end),
            _ => later.push((at, task, end)),
        }
        tasks.extend(spawn_receiver(task, receiver, &spare).await);
    }
    later.sort_by_key(|(at, ..)| *at);
    let mut now = 0;
    for (at, task, next) in later {
        sleep((at - now) as u32 * TENTH).await?;
        now = at;
        act(task, next);
    }
    for task in &mut tasks {
        task.join().await??;
    }
    Ok(())
}

pub fn main(seed: u64) {
    // If a wake is lost, no event is left, and the log ends with all tasks waiting.
    drop(Kernel::new(Sim::new()).run(main_task(scenario::of(seed))));
}
