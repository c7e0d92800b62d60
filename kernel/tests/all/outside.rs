//! Waits that are woken from outside their task: by other tasks without a trap, and by threads.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;
use std::thread;

use futures_util::stream::{FuturesUnordered, StreamExt};
use kernel::{Kernel, Options, Real, RunError, Sim};
use support::kernels::{Traced, assert_lines, assert_sound, on_real, on_sim, real, sim, tenths};
use support::{check, ms};
use traps::{
    ConnectionDeadline, Interrupt, OutsideWaker, clock, connection_deadline, outside, sleep, spawn,
    timeout_after, yield_now,
};

/// A place for a waker until a task takes it.
#[derive(Clone, Default)]
struct Shelf(Rc<RefCell<Option<OutsideWaker>>>);

impl Shelf {
    #[track_caller]
    fn wait(&self) -> impl Future<Output = Result<(), Interrupt>> + use<> {
        let shelf = self.clone();
        outside("a_test", move |waker| {
            *shelf.0.borrow_mut() = Some(waker);
            true
        })
    }

    fn waker(&self) -> OutsideWaker {
        self.0.borrow().clone().expect("somebody waits")
    }
}

// ---- Between tasks -----------------------------------------------------------------------------

#[test]
fn an_outside_wait_between_tasks() {
    let ran = check("outside_between_tasks", Sim::new(), async {
        let shelf = Shelf::default();
        let theirs = shelf.clone();
        let mut child = spawn("waiter", async move { theirs.wait().await }).await;
        sleep(ms(1)).await.unwrap();
        shelf.waker().wake();
        shelf.waker().wake();
        child.join().await.unwrap()
    });
    assert_eq!(ran.output, Ok(()));
}

#[test]
fn c25_a_wake_that_comes_too_late_wakes_no_task() {
    let mut stale = sim();
    stale.go(async {
        let shelf = Shelf::default();
        timeout_after(ms(1), shelf.wait()).await.unwrap_err();
        let late = shelf.waker();
        // One of the next waits takes its place in the table.
        let shelves: Vec<Shelf> = (0..4).map(|_| Shelf::default()).collect();
        let mut tasks = Vec::new();
        for shelf in &shelves {
            tasks.push(spawn("next", shelf.wait()).await);
        }
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        late.wake();
        thread::scope(|threads| {
            threads.spawn(|| late.wake());
        });
        sleep(ms(5)).await.unwrap();
        // The waits continue until each is woken itself.
        shelves.iter().for_each(|shelf| shelf.waker().wake());
        for task in &mut tasks {
            task.join().await.unwrap().unwrap();
        }
    });
    assert_eq!(stale.counters().stale, 2);
    let trace = stale.end();
    assert_lines(&trace, "wake     outside", 4);
    let early = |line: &&str| line.contains("wake     outside") && !line.contains(" 0.006000 ");
    assert_eq!(trace.lines().find(early), None);
}

#[test]
fn a_wake_in_the_poll_that_files_the_wait_is_not_missed() {
    let (ends, trace) = on_sim(async {
        // The kernel has not seen the request yet.
        let at_once = outside("a_test", |waker| {
            waker.wake();
            true
        });
        // A wait that finds its condition true is never filed.
        let never_filed = outside("a_test", |_| false);
        (at_once.await, never_filed.await)
    });
    assert_eq!(ends, (Ok(()), Ok(())));
    assert_lines(&trace, "await    outside a_test k=", 1);
    assert_lines(&trace, "wake     outside k=", 1);
}

#[test]
fn x1_a_wake_and_a_timeout_in_one_turn_the_wake_wins() {
    let machine = Sim::new();
    let clock = machine.clock();
    let ran = check("x1_outside_wake_and_timeout_in_one_turn", machine, async move {
        let shelf = Shelf::default();
        let theirs = shelf.clone();
        let waiter = async move { timeout_after(ms(2), theirs.wait()).await };
        let mut child = spawn("waiter", waiter).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        // Time passes while a thread wakes the task, so the next turn begins with both events.
        clock.advance(ms(3));
        thread::scope(|threads| {
            let waker = shelf.waker();
            threads.spawn(move || waker.wake());
        });
        child.join().await.unwrap()
    });
    assert_eq!(ran.output, Ok(()));
}

#[test]
fn a_wake_after_the_timeout_fired_is_too_late() {
    let mut kernel = sim();
    kernel.go(async {
        let shelf = Shelf::default();
        let theirs = shelf.clone();
        let waiter = async move { timeout_after(ms(2), theirs.wait()).await };
        let mut child = spawn("waiter", waiter).await;
        // The timer fires in step 4 of the turn in which main runs.
        sleep(ms(2)).await.unwrap();
        shelf.waker().wake();
        child.join().await.unwrap().unwrap_err();
    });
    assert_eq!(kernel.counters().stale, 1);
    kernel.end();
}

#[test]
fn d7_a_guard_that_is_due_beats_a_wake_of_its_turn() {
    let mut kernel = sim();
    let clock = kernel.machine().clock();
    let (end, waker) = kernel.go(async move {
        let shelf = Shelf::default();
        let theirs = shelf.clone();
        let mut child = spawn("waiter", async move {
            let deadline: ConnectionDeadline = connection_deadline().await;
            deadline.guard(ms(1), theirs.wait()).await
        })
        .await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        // Time passes while a thread wakes the task, so the next turn begins with both events.
        let waker = shelf.waker();
        clock.advance(ms(300));
        thread::scope(|threads| {
            threads.spawn(|| waker.wake());
        });
        (child.join().await.unwrap(), waker)
    });
    assert!(end.is_err());
    waker.wake();
    kernel.end();
}

#[test]
fn an_outside_wait_that_no_event_can_end_is_a_hang_and_named() {
    let mut kernel = Kernel::new(Sim::new());
    match kernel.run(async { outside("the_other_side", |_| true).await }) {
        Err(RunError::Hang(report)) => {
            assert!(report.contains(" main parked outside the_other_side "), "{report}");
            assert!(report.contains(" kernel/tests/all/outside.rs:"), "{report}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn dropped_waits_leave_nothing_and_a_combinator_polls_only_whom_is_woken() {
    let (order, _) = on_sim(async {
        let shelves: Vec<Shelf> = (0..4).map(|_| Shelf::default()).collect();
        let mut all: FuturesUnordered<_> = shelves
            .iter()
            .enumerate()
            .map(|(n, shelf)| {
                let wait = shelf.wait();
                async move { wait.await.map(|()| n) }
            })
            .collect();
        assert!(std::future::poll_fn(|cx| Poll::Ready(all.poll_next_unpin(cx))).await.is_pending());
        shelves[2].waker().wake();
        shelves[0].waker().wake();
        let mut order = Vec::new();
        while order.len() < 2 {
            order.push(all.next().await.unwrap().unwrap());
        }
        order
        // Two waits are dropped here while they are parked.
    });
    assert_eq!(order, [2, 0]);
}

#[test]
fn a_wait_continues_in_another_kernel_with_a_waker_of_that_kernel() {
    let shelf = Shelf::default();
    let mut wait = Box::pin(shelf.wait());
    on_sim(async {
        assert!(support::kernels::poll_once(&mut wait).await.is_pending());
    });
    let old = shelf.waker();
    let mut kernel = sim();
    kernel.go(async {
        let mut child = spawn("waker", async move {
            yield_now().await.unwrap();
            old.wake();
            yield_now().await.unwrap();
            shelf.waker().wake();
        })
        .await;
        wait.await.unwrap();
        child.join().await.unwrap();
    });
    kernel.end();
}

#[test]
fn a_wake_that_was_heeded_is_waited_for_no_longer() {
    let mut kernel = sim();
    kernel.go(async {
        let woken = |waker: OutsideWaker| {
            waker.wake();
            true
        };
        outside("itself", woken).external().await.unwrap();
    });
    assert_eq!(kernel.outstanding().external, 0);
    kernel.end();
}

// ---- From threads ------------------------------------------------------------------------------

#[test]
fn an_external_wait_stops_the_virtual_clock_until_a_thread_wakes_it() {
    let (end, trace) = on_sim(async {
        let (wakers, theirs) = mpsc::channel::<OutsideWaker>();
        let thread = thread::spawn(move || theirs.recv().unwrap().wake());
        let wait = outside("a_thread", move |waker| wakers.send(waker).is_ok()).external();
        let end = timeout_after(tenths(1), wait).await;
        thread.join().unwrap();
        let stood_still = clock().await.as_micros();
        // The clock moves again when no task waits for a thread.
        sleep(ms(1)).await.unwrap();
        (end, stood_still)
    });
    assert_eq!(end, (Ok(()), 0));
    assert_lines(&trace, "block    outside a_thread external k=1", 1);
    assert_lines(&trace, "wake     outside k=1", 1);
}

#[test]
fn c24_the_wakeup_task_moves_the_messages_of_threads() {
    let (_, trace) = on_real(async {
        let (wakers, theirs) = mpsc::channel::<OutsideWaker>();
        let thread = thread::spawn(move || theirs.recv().unwrap().wake());
        outside("a_thread", move |waker| wakers.send(waker).is_ok()).await.unwrap();
        thread.join().unwrap();
    });
    let number = |line: &str| line.split_whitespace().nth(2).unwrap().to_owned();
    let woken = trace.lines().find(|line| line.contains("wake     outside")).unwrap();
    let cause = woken.split("cause=").nth(1).unwrap();
    let behind = trace.lines().find(|line| !line.starts_with('#') && number(line) == cause);
    assert!(behind.unwrap().contains("1 wakeup   run"), "{trace}");
}

#[test]
fn a_wake_from_a_thread_comes_out_of_an_idle_kernel_with_one_ring() {
    let mut kernel = real();
    kernel.go(async {
        let (wakers, theirs) = mpsc::channel::<OutsideWaker>();
        let thread = thread::spawn(move || theirs.recv().unwrap().wake());
        outside("a_thread", move |waker| wakers.send(waker).is_ok()).await.unwrap();
        thread.join().unwrap();
    });
    assert!(kernel.counters().rings <= 1);
    assert_eq!((kernel.counters().wakes, kernel.counters().stale), (1, 0));
    kernel.end();
}

const THREADS: u64 = 4;
const EACH: u64 = 250_000;

#[test]
fn c27_a_million_outside_wakes_none_lost_none_twice_one_ring_a_batch() {
    // Each wait is a new ticket and is woken twice: the first wake counts, and the second is stale.
    const LANES: u64 = 50;
    let mut kernel = Kernel::with_options(Real::new().unwrap(), Options::new());
    let woken = kernel
        .run(async {
            let mut threads = Vec::new();
            let mut tasks = Vec::new();
            for _ in 0..THREADS {
                let (wakers, theirs) = mpsc::channel::<OutsideWaker>();
                threads.push(thread::spawn(move || {
                    let mut count = 0;
                    for waker in theirs {
                        waker.wake();
                        waker.wake();
                        count += 1;
                    }
                    count
                }));
                for _ in 0..LANES {
                    let wakers = wakers.clone();
                    tasks.push(
                        spawn("lane", async move {
                            for _ in 0..EACH / LANES {
                                let wakers = wakers.clone();
                                let send = move |waker| wakers.send(waker).is_ok();
                                outside("a_thread", send).await.unwrap();
                            }
                        })
                        .await,
                    );
                }
            }
            for task in &mut tasks {
                task.join().await.unwrap();
            }
            threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
        })
        .unwrap();
    assert_eq!(woken, THREADS * EACH);
    // This takes the last wakes from the queue.
    kernel.run(async { yield_now().await.unwrap() }).unwrap();
    let c = kernel.counters();
    assert_eq!((c.wakes, c.stale), (2 * THREADS * EACH, THREADS * EACH));
    assert!(c.rings <= c.batches && c.batches <= c.turns && c.rings <= c.polls, "{c:?}");
    kernel.shutdown().unwrap();
}

#[test]
fn c27_a_million_wakes_of_one_task_are_all_heeded() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let called = Arc::new(AtomicU64::new(0));
    let threads = kernel
        .run(async {
            let mut mine = None;
            std::future::poll_fn(|cx| {
                mine = Some(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
            // After that poll, the waker belongs to the task for good.
            yield_now().await.unwrap();
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (waker, called) = (mine.clone().unwrap(), called.clone());
                    thread::spawn(move || {
                        for _ in 0..EACH {
                            called.fetch_add(1, Ordering::Relaxed);
                            waker.wake_by_ref();
                        }
                    })
                })
                .collect();
            std::future::poll_fn(|_| match called.load(Ordering::Relaxed) {
                done if done == THREADS * EACH => Poll::Ready(()),
                _ => Poll::Pending,
            })
            .await;
            threads
        })
        .unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    kernel.run(async { yield_now().await.unwrap() }).unwrap();
    let c = kernel.counters();
    assert_eq!(c.wakes, THREADS * EACH);
    assert!(c.rings <= c.batches && c.batches <= c.turns && c.rings <= c.polls, "{c:?}");
    kernel.shutdown().unwrap();
}

#[test]
fn curio_d8_a_kernel_that_does_not_read_its_bell_fails_no_thread() {
    // Ten times the wakes at which Curio's loopback socket was full, while the kernel is busy.
    let (ended, trace) = on_real(async {
        let (wakers, theirs) = mpsc::channel::<OutsideWaker>();
        let thread = thread::spawn(move || {
            let wakers: Vec<OutsideWaker> = theirs.iter().take(2_780).collect();
            wakers.iter().for_each(OutsideWaker::wake);
        });
        let mut tasks = Vec::new();
        for _ in 0..2_780 {
            let wakers = wakers.clone();
            let wait = async move { outside("a_thread", move |w| wakers.send(w).is_ok()).await };
            tasks.push(spawn("waiter", wait).await);
        }
        drop(wakers);
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        // The kernel's thread is held up until the thread has called every waker.
        thread.join().unwrap();
        let mut ended = 0;
        for task in &mut tasks {
            task.join().await.unwrap().unwrap();
            ended += 1;
        }
        // The thread's work goes on as usual.
        (ended, traps::run_in_thread(|| 7).await.unwrap())
    });
    assert_eq!(ended, (2_780, 7));
    assert_lines(&trace, "waiter   wake     outside", 2_780);
}

#[test]
fn a_waker_that_outlives_its_kernel_is_harmless_from_any_thread() {
    let shelf = Shelf::default();
    let mut kernel = Traced::new(Sim::new(), Options::new());
    kernel.go(async {
        spawn("waiter", shelf.wait()).await;
        yield_now().await.unwrap();
    });
    let text = kernel.text();
    drop(kernel);
    assert_sound(&text);
    let waker = shelf.waker();
    waker.wake();
    thread::scope(|threads| {
        threads.spawn(|| waker.wake());
    });
    on_sim(async { sleep(ms(1)).await.unwrap() });
}
