//! Signals of the process on the operating system. They reach all kernels of a process, so this is
//! a separate test binary.

use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Options, Real};
use support::kernels::*;
use traps::{
    Either, Signal, join, race, run_in_thread, shutdown, sleep, spawn, timeout_after, wait_signal,
    yield_now,
};

/// Returns a lock that each test holds, because the tests share the process and its signals.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to this process.
fn raise(signal: &str) {
    testing::child::send(signal, std::process::id());
}

#[test]
fn a_signal_ends_the_wait_for_it_and_one_between_two_waits_is_kept() {
    let _alone = alone();
    let (ends, trace) = on_real(async {
        let mut waiter = spawn("waiter", wait_signal(&[Signal::User1, Signal::Hangup])).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        raise("USR1");
        let first = waiter.join().await.unwrap().unwrap();
        raise("USR1"); // nobody waits now, and the process lives
        let second = wait_signal(&[Signal::User1]).await.unwrap();
        // A wait that ends early takes no signal.
        let third = timeout_after(tenths(0), wait_signal(&[Signal::User1])).await;
        assert!(third.is_err());
        raise("USR1");
        (first, second, wait_signal(&[Signal::User1]).await.unwrap())
    });
    assert_eq!(ends, (Signal::User1, Signal::User1, Signal::User1));
    assert_lines(&trace, "arrive   SIGUSR1", 3);
}

#[test]
fn each_signal_ends_the_wait_for_it_and_no_other() {
    let _alone = alone();
    let (ends, _) = on_real(async {
        let mut ends = Vec::new();
        for &signal in Signal::ALL {
            // Sending a signal takes a child process, whose end is a signal too.
            let is_other = |it: &Signal| ![signal, Signal::Child].contains(it);
            let others: Vec<_> = Signal::ALL.iter().copied().filter(is_other).collect();
            let name = signal.to_string();
            let sent = async {
                yield_now().await.unwrap();
                raise(&name["SIG".len()..]);
            };
            let wanted = join(wait_signal(&[signal]), sent);
            match race(wait_signal(&others), wanted).await {
                Either::Left(other) => panic!("{other:?} instead of {name}"),
                Either::Right((got, ())) => ends.push(got.unwrap()),
            }
        }
        ends
    });
    assert_eq!(ends, Signal::ALL);
}

/// A signal belongs to the whole process, so each kernel that waits for it gets it. A kernel counts
/// only its own waits.
#[test]
fn d18_each_real_kernel_counts_its_own_and_each_hears_a_signal() {
    let _alone = alone();
    let (ready, waiting) = mpsc::channel();
    let kernels = [1_u64, 5, 9].map(|tasks| {
        let ready = ready.clone();
        thread::spawn(move || {
            let mut kernel = Kernel::with_options(Real::new().unwrap(), Options::new().threads(1));
            let main = async {
                let mut found = Vec::new();
                for n in 0..tasks {
                    found.push(spawn("task", async move { run_in_thread(move || n).await }).await);
                }
                for (n, task) in found.iter_mut().enumerate() {
                    assert_eq!(task.join().await.unwrap().unwrap(), n as u64);
                }
                // Sent after the wait for the signal began, in the poll that goes to sleep.
                let told = async {
                    yield_now().await.unwrap();
                    ready.send(()).unwrap();
                    sleep(Duration::from_secs(60)).await
                };
                let heard = race(wait_signal(&[Signal::User1]), told).await;
                matches!(heard, Either::Left(Ok(Signal::User1)))
            };
            let heard = kernel.run(main).unwrap();
            (heard, kernel.counters())
        })
    });
    (0..3).for_each(|_| waiting.recv().unwrap());
    raise("USR1");
    for (kernel, tasks) in kernels.into_iter().zip([1, 5, 9]) {
        let (heard, counters) = kernel.join().unwrap();
        assert!(heard);
        // The branch that lost was in a sleep.
        assert_eq!((counters.tasks, counters.jobs), (0, 0), "of {tasks}");
    }
}

/// A kernel whose tasks wait only for a signal, or for a shutdown by one, is not deadlocked.
#[test]
fn a_kernel_that_a_signal_could_wake_sleeps() {
    let _alone = alone();
    let options = Options::new().shutdown_on(&[Signal::Hangup]);
    let mut kernel = Kernel::with_options(Real::new().unwrap(), options);
    let theirs = async {
        let mut waits = spawn("waits", wait_signal(&[Signal::User1])).await;
        yield_now().await?;
        raise("USR1");
        let _ = waits.join().await;
        let killer = spawn("killer", async { raise("HUP") });
        killer.detached().await;
        shutdown::begun().await
    };
    kernel.run(theirs).unwrap().unwrap();
}
