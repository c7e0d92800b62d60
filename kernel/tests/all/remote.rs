//! A kernel as other threads see it: spawn, wake, cancel, join, and their results when it is gone.

use std::cell::Cell;
use std::future::pending;
use std::rc::Rc;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Real, Sim};
use support::kernels::{assert_lines, real, sim};
use support::ms;
use traps::universal::{UniversalEvent, UniversalQueue};
use traps::{
    Error, Kind, check_cancellation, current_task, shutdown, sleep, spawn, timeout_after, yield_now,
};

#[test]
fn c23_a_task_that_a_thread_asks_for_is_made_and_run_on_the_kernels_thread() {
    let mut kernel = real();
    let remote = kernel.remote();
    let home = thread::current().id();
    let over = UniversalEvent::new();
    let set = over.clone();
    let thread = thread::spawn(move || {
        // Neither the value that is made nor the future need be `Send`.
        let mut task = remote.spawn("guest", move || {
            let (kept, made) = (Rc::new(Cell::new(6)), thread::current().id() == home);
            async move {
                sleep(ms(1)).await.unwrap();
                (made, thread::current().id() == home, kept.get() * 7)
            }
        });
        let joined = task.join();
        let again = task.join();
        set.set();
        (joined, again, task.has_ended())
    });
    // As far as the kernel knows, main waits forever, so the kernel is idle.
    kernel.go(async { over.wait().await.unwrap() });
    let (joined, again, ended) = thread.join().unwrap();
    assert_eq!((joined, again), (Ok((true, true, 42)), Err(Error::Taken)));
    assert!(ended);
    kernel.end();
}

#[test]
fn tasks_from_outside_are_made_in_the_order_of_the_asking() {
    let mut kernel = sim();
    let remote = kernel.remote();
    let ran = kernel.go(async move {
        let queue = UniversalQueue::new(8);
        for name in ["a", "b", "c"] {
            let queue = queue.clone();
            drop(remote.spawn(name, move || async move {
                let id = current_task();
                queue.put((name, id.0)).await.unwrap();
            }));
        }
        let mut got = Vec::new();
        while got.len() < 3 {
            got.push(queue.get().await.unwrap());
        }
        got
    });
    kernel.end();
    assert_eq!(ran, [("a", 3), ("b", 4), ("c", 5)]);
}

#[test]
fn a_task_from_outside_in_the_log() {
    let mut kernel = sim();
    let remote = kernel.remote();
    let (task, trace) = {
        let mut task =
            thread::spawn(move || remote.spawn("guest", || sleep(ms(1)))).join().unwrap();
        kernel.go(async { sleep(ms(2)).await.unwrap() });
        (task.join(), kernel.end())
    };
    assert_eq!(task.unwrap().unwrap().as_micros(), 1_000);
    let spawned = "guest    spawn    parent=- cause=#0003 at=kernel/tests/all/remote.rs:";
    assert_lines(&trace, spawned, 1);
    support::compare("remote_spawn", &without_sites(&trace));
}

/// Returns the trace with line 0 in each site.
fn without_sites(trace: &str) -> String {
    let word = |word: &str| match word.split_once("at=kernel/tests/all/remote.rs:") {
        Some((before, _)) => format!("{before}at=test:0"),
        None => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(word).collect::<Vec<_>>().join(" ") + "\n";
    trace.lines().map(line).collect()
}

#[test]
fn a_thread_cancels_its_task_and_the_task_gets_the_reason() {
    let mut kernel = real();
    let remote = kernel.remote();
    let over = UniversalEvent::new();
    let set = over.clone();
    let thread = thread::spawn(move || {
        let started = UniversalEvent::new();
        let starts = started.clone();
        let mut task = remote.spawn("guest", move || async move {
            starts.set();
            let why = pending_trap().await.unwrap_err();
            (why.kind(), why.reason().to_owned(), why.by())
        });
        started.wait_blocking();
        task.cancel_because("from afar").unwrap();
        let end = task.join();
        task.cancel_because("it has ended").unwrap();
        set.set();
        end
    });
    kernel.go(async { over.wait().await.unwrap() });
    let end = thread.join().unwrap().unwrap();
    assert_eq!(end, (Kind::Cancelled, "from afar".to_owned(), None));
    let trace = kernel.end();
    assert_lines(&trace, "guest    cancel   by=- reason=from_afar cause=#", 1);
    assert_lines(&trace, "guest    exit     cancelled", 1);
}

async fn pending_trap() -> Result<(), traps::Interrupt> {
    traps::foreign(pending()).await
}

#[test]
fn a_cancel_on_the_heels_of_its_spawn_is_not_lost() {
    let mut kernel = sim();
    let remote = kernel.remote();
    let mut task = remote.spawn("guest", || async {
        (check_cancellation().await.is_err(), sleep(ms(1)).await.is_ok())
    });
    task.cancel_because("at once").unwrap();
    kernel.go(async { sleep(ms(2)).await.unwrap() });
    assert_eq!(task.join(), Ok((true, true)));
    assert_lines(&kernel.end(), "guest    cancel   by=- reason=at_once cause=#0003 = pending", 1);
}

#[test]
fn a_panic_of_the_future_or_of_its_making_is_returned() {
    let mut kernel = sim();
    let remote = kernel.remote();
    let mut made = remote.spawn("made", || async {
        if true {
            panic!("while it ran");
        }
    });
    let mut making = remote.spawn("making", || {
        if true {
            panic!("while it was made");
        }
        async {}
    });
    kernel.go(async { sleep(ms(1)).await.unwrap() });
    assert_eq!(made.join(), Err(Error::Panicked("while it ran".into())));
    assert_eq!(made.join(), Err(Error::Panicked("while it ran".into())));
    assert_eq!(making.join(), Err(Error::Panicked("while it was made".into())));
    let trace = kernel.end();
    assert_lines(&trace, "exit     panic", 2);
}

#[test]
fn a_join_that_is_not_in_time_can_be_made_again() {
    let mut kernel = real();
    let remote = kernel.remote();
    let over = UniversalEvent::new();
    let set = over.clone();
    let thread = thread::spawn(move || {
        let go = UniversalEvent::new();
        let theirs = go.clone();
        let mut task = remote.spawn("guest", move || async move {
            theirs.wait().await.unwrap();
            7
        });
        let early = task.join_timeout(Duration::from_millis(1));
        go.set();
        let late = task.join_timeout(Duration::from_secs(3_600));
        set.set();
        (early, late)
    });
    kernel.go(async { over.wait().await.unwrap() });
    assert_eq!(thread.join().unwrap(), (Err(Error::TimedOut), Ok(7)));
    kernel.end();
}

#[test]
fn the_kernels_own_thread_gets_an_error_instead_of_a_wait() {
    let mut kernel = sim();
    let remote = kernel.remote();
    let mut task = remote.spawn("guest", || async { 7 });
    assert_eq!(task.join(), Err(Error::OwnThread), "the kernel does not run");
    let theirs = remote.clone();
    let task = kernel.go(async move {
        let mut other = theirs.spawn("other", || async { 8 });
        assert_eq!(other.join(), Err(Error::OwnThread), "it runs, and could not");
        assert_eq!(other.join_timeout(ms(1)), Err(Error::OwnThread));
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert_eq!(other.join(), Ok(8), "what is there can be taken anywhere");
        task.join()
    });
    assert_eq!(task, Ok(7));
    kernel.end();
}

#[test]
fn a_handle_that_is_dropped_lets_the_task_run_on() {
    let (count, _) = {
        let mut kernel = sim();
        let remote = kernel.remote();
        let queue = UniversalQueue::new(4);
        for n in 0..4 {
            let queue = queue.clone();
            drop(remote.spawn("guest", move || async move {
                sleep(ms(1)).await.unwrap();
                queue.try_put(n).unwrap();
            }));
        }
        kernel.go(async { sleep(ms(2)).await.unwrap() });
        (queue.len(), kernel.end())
    };
    assert_eq!(count, 4);
}

#[test]
fn an_output_whose_drop_panics_ends_neither_its_task_nor_the_thread_that_drops_the_handle() {
    struct Bad;
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let mut kernel = real();
    let remote = kernel.remote();
    let over = UniversalEvent::new();
    let (waits, set) = (over.clone(), over.clone());
    let thread = thread::spawn(move || {
        // No code has the handle when the task ends.
        drop(remote.spawn("early", async move || {
            waits.wait().await.unwrap();
            Bad
        }));
        let late = remote.spawn("late", async || Bad);
        while !late.has_ended() {
            thread::yield_now();
        }
        drop(late);
        set.set();
    });
    kernel.go(async {
        let _ = timeout_after(Duration::from_secs(60), over.wait()).await;
        sleep(ms(1)).await.unwrap();
    });
    assert!(thread.join().is_ok());
    let trace = kernel.end();
    assert_lines(&trace, "warn     the drop of the output of task", 1);
    assert_lines(&trace, " panic ", 0);
}

#[test]
fn nothing_hangs_on_a_kernel_that_was_shut_down() {
    let mut kernel = sim();
    let remote = kernel.remote();
    let mut parked = remote.spawn("parked", pending::<()>);
    kernel.go(async { sleep(ms(1)).await.unwrap() });
    // Requested before the shutdown closes, handled after it: the task does not begin.
    let mut late = remote.spawn("late", || sleep(ms(1)));
    kernel.shutdown().unwrap();
    assert_eq!(parked.join(), Err(Error::Dropped));
    assert_eq!(late.join(), Err(Error::Gone));
    let kept = Arc::new(());
    let theirs = kept.clone();
    let mut never = remote.spawn("never", move || async move { drop(theirs) });
    assert_eq!(never.join(), Err(Error::Gone));
    assert_eq!(Arc::strong_count(&kept), 1);
    assert_eq!(never.cancel_because("anyway"), Err(Error::Gone));
    assert_eq!(remote.wake(), Err(Error::Gone));
    assert_eq!(remote.shut_down("anyway"), Err(Error::Gone));
    kernel.end();
}

#[test]
fn the_first_reason_for_a_shutdown_counts_and_it_begins_when_the_kernel_handles_it() {
    let mut kernel = sim();
    let remote = kernel.remote();
    kernel.go(async {
        spawn("guest", async { shutdown::begun().await.unwrap() }).await;
        remote.shut_down("enough").unwrap();
        remote.shut_down("again").unwrap();
        shutdown::begun().await.unwrap();
    });
    let text = kernel.end();
    assert_eq!(text.matches("phase    close reason=").count(), 1, "{text}");
    assert!(text.contains("phase    close reason=enough tasks=2 cause="), "{text}");
}

#[test]
fn a_kernel_that_never_ran_is_shut_down_with_a_whole_trace() {
    let mut kernel = sim();
    let mut task = kernel.remote().spawn("guest", || async {});
    kernel.shutdown().unwrap();
    assert_eq!(task.join(), Err(Error::Gone));
    kernel.end();
}

#[test]
fn a_task_that_the_last_turn_of_a_kernel_finds_is_not_begun() {
    let mut kernel = sim();
    let remote = kernel.remote();
    kernel.go(async {});
    // The kernel has no task to wait for, so it takes no turn.
    let mut task = remote.spawn("guest", || async {});
    kernel.shutdown().unwrap();
    assert_eq!(task.join(), Err(Error::Gone));
    kernel.end();
}

#[test]
fn a_message_to_a_dropped_kernel_is_dropped_on_its_thread() {
    struct Where(mpsc::Sender<thread::ThreadId>);
    impl Drop for Where {
        fn drop(&mut self) {
            let _ = self.0.send(thread::current().id());
        }
    }
    let kernel = Kernel::new(Sim::new());
    let remote = kernel.remote();
    let (dropped, seen) = mpsc::channel();
    let mut task = thread::spawn(move || {
        let here = Where(dropped);
        remote.spawn("guest", move || async move { drop(here) })
    })
    .join()
    .unwrap();
    let joiner = thread::spawn(move || task.join());
    drop(kernel);
    assert_eq!(joiner.join().unwrap(), Err(Error::Gone));
    assert_eq!(seen.recv().unwrap(), thread::current().id());
}

#[test]
fn threads_that_ask_while_the_kernel_goes_all_hear_of_it() {
    for _ in 0..50 {
        let mut kernel = Kernel::new(Real::new().unwrap());
        let remote = kernel.remote();
        let barrier = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (remote, barrier) = (remote.clone(), barrier.clone());
                thread::spawn(move || {
                    barrier.wait();
                    // The kernel handles some of them and not others. No join hangs.
                    let tasks: Vec<_> =
                        (0..50).map(|n| remote.spawn("guest", move || async move { n })).collect();
                    for (n, mut task) in tasks.into_iter().enumerate() {
                        match task.join() {
                            Ok(output) => assert_eq!(output, n),
                            Err(Error::Gone | Error::Dropped) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                })
            })
            .collect();
        barrier.wait();
        kernel.run(async { yield_now().await.unwrap() }).unwrap();
        drop(kernel);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_wake_makes_an_idle_kernel_take_a_turn_and_a_thousand_need_few() {
    let mut kernel = real();
    let remote = kernel.remote();
    let over = UniversalEvent::new();
    let set = over.clone();
    let (idle, is_idle) = mpsc::channel();
    // The observer reports that the kernel is about to sleep.
    kernel.observe(Idle(idle));
    let thread = thread::spawn(move || {
        is_idle.recv().unwrap();
        (0..1_000).for_each(|_| remote.wake().unwrap());
        // The kernel slept again, so the first sleep had ended.
        is_idle.recv().unwrap();
        set.set();
    });
    kernel.go(async { over.wait().await.unwrap() });
    thread.join().unwrap();
    let c = kernel.counters();
    assert!(c.rings <= c.batches && c.rings <= c.polls, "{c:?}");
    kernel.end();
}

struct Idle(mpsc::Sender<()>);

impl kernel::Activation for Idle {
    fn event(&mut self, _: &kernel::trace::Line<'_>) {}
    fn idle(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn many_threads_spawn_and_join_at_once() {
    let mut kernel = real();
    let remote = kernel.remote();
    let threads = 4;
    let results = UniversalQueue::new(threads);
    for _ in 0..threads {
        let (remote, results) = (remote.clone(), results.clone());
        thread::spawn(move || {
            let sum: u64 = (0..500_u64)
                .map(|n| {
                    let guest = move || async move {
                        let mut child = spawn("child", async move { n }).await;
                        yield_now().await.unwrap();
                        child.join().await.unwrap()
                    };
                    remote.spawn("guest", guest).join().unwrap()
                })
                .sum();
            results.put_blocking(sum).unwrap();
        });
    }
    let sum = kernel.go(async {
        let mut sum = 0;
        for _ in 0..threads {
            sum += results.get().await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 4 * 124_750);
    let c = kernel.counters();
    assert!(c.rings <= c.batches && c.rings <= c.polls, "{c:?}");
    kernel.end();
}
