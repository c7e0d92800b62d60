//! Step 10: results from other threads, and wakers.

// This program uses it in part.
#[allow(dead_code, unused_imports)]
mod kernel;

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kernel::{Error, Kernel, Sim, note, run_in_thread, sleep, spawn};

/// A flag that one task waits for. It knows no kernel, only wakers.
#[derive(Clone, Default)]
struct Flag(Rc<RefCell<(bool, Option<Waker>)>>);

impl Flag {
    fn raise(&self) {
        let mut flag = self.0.borrow_mut();
        flag.0 = true;
        if let Some(waker) = flag.1.take() {
            waker.wake();
        }
    }
}

impl Future for Flag {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut flag = self.0.borrow_mut();
        if flag.0 {
            return Poll::Ready(());
        }
        flag.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A long computation.
fn collatz(mut n: u64) -> u32 {
    let mut steps = 0;
    while n != 1 {
        n = if n.is_multiple_of(2) { n / 2 } else { 3 * n + 1 };
        steps += 1;
    }
    steps
}

async fn raise(flag: Flag) -> Result<(), Error> {
    sleep(Duration::from_secs(1)).await?;
    flag.raise();
    Ok(())
}

async fn main_task() -> Result<(), Error> {
    let flag = Flag::default();
    let mut other = spawn("other", raise(flag.clone())).await;
    // No time passes on the virtual clock while a thread runs.
    let steps = run_in_thread(|| collatz(27)).await?;
    note(format_args!("{steps} steps"));
    flag.await;
    other.join().await?
}

fn main() -> std::io::Result<()> {
    Kernel::new(Sim::new()).run(main_task())?.map_err(std::io::Error::other)
}
