//! Futures and threads without traps: channels of other libraries, jobs on threads.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use kernel::{Options, Sim};
use support::kernels::*;
use traps::{
    Error, Kind, Time, clock, foreign, ignore_after, run_in_thread, sleep, spawn, timeout_after,
    yield_now,
};

fn at(seconds: u64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

// ---- Channels ----------------------------------------------------------------------------------

#[test]
fn a_channel_completed_from_another_thread_wakes_its_task() {
    let (sum, trace) = on_real(async {
        let channels: Vec<Oneshot<u64>> = (0..8).map(|_| Oneshot::new()).collect();
        let senders = channels.clone();
        let thread = thread::spawn(move || {
            for (n, sender) in senders.iter().enumerate() {
                while !sender.is_awaited() {
                    thread::yield_now();
                }
                sender.send(n as u64);
            }
        });
        let mut tasks = Vec::new();
        for channel in channels {
            tasks.push(spawn("receiver", channel.receive()).await);
        }
        let mut sum = 0;
        for task in &mut tasks {
            sum += task.join().await.unwrap();
        }
        thread.join().unwrap();
        sum
    });
    assert_eq!(sum, 28);
    assert_lines(&trace, "receiver wake     waker", 8);
}

#[test]
fn foreign_external_stops_a_virtual_clock_until_it_is_woken() {
    let (end, _) = on_sim(async {
        let channel = Oneshot::new();
        let sender = channel.clone();
        let thread = thread::spawn(move || {
            while !sender.is_awaited() {
                thread::yield_now();
            }
            sender.send(());
        });
        let got = timeout_after(secs(1), foreign(channel.receive()).external()).await;
        thread.join().unwrap();
        (got, clock().await)
    });
    assert_eq!(end, (Ok(()), Time::ZERO));
}

#[test]
fn a_task_cancelled_on_a_bare_waker_ends_with_the_grace() {
    let dropped = Rc::new(Cell::new(None));
    let mut kernel = sim();
    let clock_of = kernel.machine().clock();
    let theirs = dropped.clone();
    kernel.go(async move {
        drop(
            spawn("bare", async move {
                let _guard = OnDrop(|| theirs.set(Some(clock_of.now())));
                never::<()>().await;
            })
            .await,
        );
        sleep(secs(1)).await.unwrap();
    });
    let trace = kernel.end();
    assert_eq!(dropped.get(), Some(at(6)), "the grace is 5 s");
    assert_lines(&trace, "bare     wake     scope root", 1);
    assert_lines(&trace, "bare     exit     dropped", 1);
    assert_lines(&trace, "fire     grace", 1);
}

// ---- Jobs on threads ---------------------------------------------------------------------------

#[test]
fn a_job_on_a_real_thread_returns_its_value() {
    let (values, trace) = on_real(async {
        let home = thread::current().id();
        let away = run_in_thread(move || thread::current().id() != home).await;
        let (a, b) = traps::join(run_in_thread(|| 1), run_in_thread(|| 2)).await;
        (away.unwrap(), a.unwrap() + b.unwrap())
    });
    assert_eq!(values, (true, 3));
    assert_lines(&trace, "done     o", 3);
}

#[test]
fn a_job_that_panics_is_an_error_of_its_caller() {
    let (end, _) = on_real(async {
        let bad = run_in_thread(|| -> u8 { panic!("in the job") }).await;
        let good = run_in_thread(|| 7).await;
        (matches!(bad, Err(Error::Panicked(text)) if text == "in the job"), good.unwrap())
    });
    assert_eq!(end, (true, 7));
}

#[test]
fn a_job_whose_panic_panics_when_it_is_dropped_is_an_error_of_its_caller() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("a payload");
        }
    }
    let (ended, _) = on_sim(async { run_in_thread(|| std::panic::panic_any(Bomb)).await });
    assert!(matches!(ended, Err::<(), _>(Error::Panicked(_))), "{ended:?}");
}

#[test]
fn a_job_on_the_virtual_clock_takes_its_scripted_span_and_no_thread() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(3)), Options::new());
    let end = kernel.go(async {
        let home = thread::current().id();
        let here = run_in_thread(move || thread::current().id() == home).await;
        (here.unwrap(), clock().await)
    });
    assert_eq!(end, (true, at(3)));
    assert_eq!(kernel.counters().threads, 0);
    kernel.end();
}

#[test]
fn a_timeout_on_a_job_answers_on_time_and_the_late_result_is_an_orphan() {
    let ran = Arc::new(AtomicBool::new(false));
    let theirs = ran.clone();
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(3)), Options::new());
    let (end, jobs) = {
        let ends = kernel.go(async {
            let job = run_in_thread(move || theirs.store(true, Ordering::Relaxed));
            let end = timeout_after(secs(1), job).await.map_err(|error| match error {
                Error::Interrupt(why) => (why.kind(), why.reading()),
                other => panic!("{other}"),
            });
            assert_eq!(clock().await, at(1));
            end
        });
        (ends, kernel.counters().jobs)
    };
    assert_eq!((end, jobs), (Err((Kind::TaskTimeout, at(1))), 1));
    assert!(!ran.load(Ordering::Relaxed));
    kernel.go(async { sleep(secs(5)).await.unwrap() });
    assert!(ran.load(Ordering::Relaxed));
    let trace = kernel.end();
    assert_lines(&trace, "abandon  o1", 1);
    assert_lines(&trace, "orphan   o1", 1);
}

#[test]
fn an_abandoned_job_on_a_real_thread_is_listed_until_it_ends() {
    let (release, released) = mpsc::channel::<()>();
    let mut kernel = real();
    kernel.go(async move {
        let (started, is_started) = mpsc::channel();
        let mut child = spawn("child", async move {
            run_in_thread(move || {
                started.send(()).unwrap();
                released.recv().unwrap();
            })
            .await
        })
        .await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        is_started.recv().unwrap();
        child.cancel_because("no more").await.unwrap();
        assert!(matches!(child.join().await, Ok(Err(Error::Interrupt(_)))));
    });
    assert_eq!(kernel.counters().jobs, 1);
    let listed: Vec<_> = kernel.jobs().into_iter().map(|job| (job.number, job.state)).collect();
    assert_eq!(listed, [(1, "abandoned")]);
    release.send(()).unwrap();
    kernel.go(async {
        // The next job ends after the orphan, in the same wake queue or later.
        run_in_thread(|| ()).await.unwrap();
    });
    let trace = kernel.end();
    assert_lines(&trace, "abandon  o1", 1);
    assert_lines(&trace, "orphan   o1", 1);
}

#[test]
fn a_job_that_no_thread_has_taken_never_runs_once_its_caller_is_gone() {
    let runs = Arc::new(AtomicU64::new(0));
    let mut kernel = Traced::new(kernel::Real::new().unwrap(), Options::new().threads(1));
    let theirs = runs.clone();
    kernel.go(async move {
        let (release, released) = mpsc::channel::<()>();
        let (started, is_started) = mpsc::channel();
        let mut first = spawn("first", async move {
            run_in_thread(move || {
                started.send(()).unwrap();
                released.recv().unwrap();
            })
            .await
        })
        .await;
        let mut second = spawn("second", async move {
            run_in_thread(move || theirs.fetch_add(1, Ordering::Relaxed)).await
        })
        .await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        is_started.recv().unwrap();
        second.cancel_because("before it ran").await.unwrap();
        release.send(()).unwrap();
        first.join().await.unwrap().unwrap();
        assert!(second.join().await.unwrap().is_err());
    });
    let trace = kernel.end();
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    assert_lines(&trace, "drop     o2", 1);
}

#[test]
fn a_hundred_jobs_over_two_threads_all_come_back() {
    let mut kernel = Traced::new(kernel::Real::new().unwrap(), Options::new().threads(2));
    let sum = kernel.go(async {
        let jobs = (0..100_u64).map(|n| run_in_thread(move || n));
        let ends = traps::join_all(jobs).await;
        ends.into_iter().map(Result::unwrap).sum::<u64>()
    });
    assert_eq!(sum, 4950);
    assert!(kernel.counters().threads <= 2);
    kernel.end();
}

#[test]
fn ignore_after_on_a_job_hands_the_value_over_if_it_was_in_time() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    let ends = kernel.go(async {
        let in_time = ignore_after(secs(2), run_in_thread(|| 1)).await.unwrap();
        let too_late = ignore_after(tenths(5), run_in_thread(|| 2)).await.unwrap();
        sleep(secs(1)).await.unwrap();
        (in_time, too_late)
    });
    assert_eq!(ends, (Some(1), None));
    kernel.end();
}
