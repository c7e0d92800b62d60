//! Blocking work runs on a worker thread, and its result comes back through the wake queue.

use std::process::ExitCode;
use std::time::Duration;

use common::Lesson;
use kernel::Sim;
use traps::{Error, run_in_thread, sleep, spawn, timeout_after};

const MS: Duration = Duration::from_millis(1);

/// `work` is how long a job keeps its thread busy.
pub async fn worker(work: Duration) -> Result<(), Error> {
    // Another task continues while the thread works.
    let mut other = spawn("other", sleep(5 * MS)).await;
    let sum = run_in_thread(move || {
        std::thread::sleep(work);
        (1..=10).sum::<u32>()
    });
    assert_eq!(sum.await?, 55);
    assert!(other.join().await.is_ok());

    // A job that takes too long times out; its thread continues, and its result is dropped.
    let late = timeout_after(5 * MS, run_in_thread(move || std::thread::sleep(work)));
    assert!(matches!(late.await, Err(Error::Interrupt(_))));
    sleep(30 * MS).await?;
    Ok(())
}

fn main() -> ExitCode {
    let args = Lesson::parse("worker", "Blocking work on a thread, and its way back");
    // On the virtual clock a job has no thread and no work: it takes 20 ms by script.
    let work = if args.virtual_clock { Duration::ZERO } else { 20 * MS };
    args.run(Sim::new().jobs_take(20 * MS), worker(work))
}
