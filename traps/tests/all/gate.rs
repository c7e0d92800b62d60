//! The gate: the way of requests, futures that are dropped, moved or polled by another task, and
//! the state after a panic.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{join, select_biased};
use kernel::{Kernel, Sim};
use support::kernels::*;
use traps::io::{Direction, Io, Scripted};
use traps::sync::{Event, Mutex};
use traps::{
    Interrupt, Kind, Time, WaitQueue, clock, ignore_after, shield, sleep, spawn, timeout_after,
    yield_now,
};

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    traps::internal::panic_message(&*panic).to_owned()
}

// ---- Dropping ----------------------------------------------------------------------------------

#[test]
fn a_request_withdrawn_in_the_poll_that_filed_it_never_happened() {
    let (_, trace) = on_sim(async {
        let _ = poll_once(&mut sleep(secs(9))).await;
        let _ = poll_once(&mut clock()).await;
        let _ = poll_once(&mut WaitQueue::new().wait()).await;
        yield_now().await.unwrap();
    });
    for word in ["sleep", "trap     clock", "wait q", "withdraw"] {
        assert_lines(&trace, word, 0);
    }
    assert_lines(&trace, "k=1", 3); // the block, wake and run of the yield
}

#[test]
fn a_future_dropped_before_its_result_withdraws_its_request() {
    let (_, trace) = on_sim(async {
        let mut parked = sleep(secs(9));
        assert!(poll_once(&mut parked).await.is_pending());
        sleep(secs(1)).await.unwrap();
        drop(parked);
        assert_eq!(clock().await, Time::from_micros(1_000_000));
    });
    assert_lines(&trace, "withdraw k=", 1);
}

#[test]
fn an_unread_reply_leaves_nothing_behind() {
    let mut kernel = sim();
    kernel.go(async {
        let mut scope = Box::pin(timeout_after(secs(9), sleep(secs(5))));
        assert!(poll_once(&mut scope).await.is_pending());
        clock().await;
        drop(scope); // the scope is open, but its future was never polled
        sleep(secs(20)).await.unwrap();
    });
    assert_eq!(kernel.counters().scopes, 0, "{}", kernel.text());
    assert_eq!(kernel.counters().timers, 0, "{}", kernel.text());
    let trace = kernel.end();
    assert_lines(&trace, "fire     s", 0);
}

#[test]
fn an_unread_interrupt_is_pending_again_and_hits_the_next_trap() {
    let (kind, trace) = on_sim(async {
        let timed = timeout_after(secs(1), async {
            let mut first = sleep(secs(1)).fuse();
            let mut second = sleep(secs(9)).fuse();
            // Both end at 1 s: the first by its time, the second by the timeout.
            select_biased! { _ = first => {}, _ = second => {} }
            drop((first, second));
            clock().await;
            sleep(secs(3)).await
        });
        timed.await.map_err(|why| (why.kind(), why.reading()))
    });
    assert_eq!(kind, Err((Kind::TaskTimeout, Time::from_micros(1_000_000))));
    assert_lines(&trace, "cleanup", 1);
    assert_lines(&trace, "trap     sleep 3s until=4.000000 = !timeout", 1);
}

#[test]
fn an_unread_cancellation_is_not_lost() {
    let (end, trace) = on_sim(async {
        let mut child = spawn("child", async {
            {
                let mut first = sleep(secs(1)).fuse();
                let mut second = sleep(secs(9)).fuse();
                select_biased! { _ = first => {}, _ = second => {} }
            }
            sleep(secs(5)).await.map_err(|why| why.is_cancelled())
        })
        .await;
        sleep(secs(1)).await.unwrap();
        child.cancel_because("enough").await.unwrap();
        child.join().await
    });
    assert_eq!(end, Ok(Err(true)), "{trace}");
    assert_lines(&trace, "exit     cancelled", 1);
}

/// Polls the future until `flag` is up, and then leaves it pending.
async fn until<T>(flag: Rc<Cell<bool>>, shared: Shared<T>) -> Result<(), Interrupt> {
    let mut waiting = Box::pin(async move { shared.wait().await });
    poll_fn(move |cx| match flag.get() {
        true => Poll::Ready(Ok(())),
        false => waiting.as_mut().poll(cx).map(|_| Ok(())),
    })
    .await
}

#[test]
fn a_cancellation_that_is_dropped_unread_after_its_scope_has_closed_is_not_lost() {
    let (ended, trace) = on_sim(async {
        let flag = Rc::new(Cell::new(false));
        let raised = flag.clone();
        let child = async move {
            let nap = Shared::new(sleep(secs(100)));
            timeout_after(secs(50), until(raised, nap.clone())).await.unwrap();
            nap.drop_future();
            sleep(secs(1)).await
        };
        let mut child = spawn("child", child).await;
        sleep(secs(1)).await.unwrap();
        child.cancel_now("stop");
        flag.set(true);
        child.join().await.unwrap()
    });
    assert!(ended.is_err_and(|why| why.is_cancelled()), "{trace}");
}

#[test]
fn a_timeout_that_is_dropped_unread_after_its_branch_has_closed_is_not_lost() {
    let (ended, trace) = on_sim(async {
        let flag = Rc::new(Cell::new(false));
        let raised = flag.clone();
        let raise = async move {
            sleep(secs(1)).await.unwrap();
            raised.set(true);
        };
        spawn("raises", raise).detached().await;
        let work = async move {
            let nap = Shared::new(sleep(secs(100)));
            traps::branch(until(flag, nap.clone())).await.unwrap();
            nap.drop_future();
            sleep(secs(1)).await
        };
        timeout_after(secs(1), work).await
    });
    assert!(ended.is_err(), "{trace}");
}

#[test]
fn an_unread_wake_passes_to_the_next_waiter() {
    let (order, _) = on_sim(async {
        let queue = WaitQueue::new();
        let order = Rc::new(RefCell::new(Vec::new()));
        let (line, log) = (queue.clone(), order.clone());
        let mut first = spawn("first", async move {
            let mut other = sleep(secs(1)).fuse();
            let mut wait = line.wait().fuse();
            select_biased! {
                _ = other => log.borrow_mut().push("first gave up"),
                _ = wait => log.borrow_mut().push("first"),
            }
        })
        .await;
        let (line, log) = (queue.clone(), order.clone());
        let mut second = spawn("second", async move {
            line.wait().await.unwrap();
            log.borrow_mut().push("second");
        })
        .await;
        sleep(secs(1)).await.unwrap();
        // The first is ready because of its sleep, and is still in the queue.
        queue.wake(1);
        first.join().await.unwrap();
        second.join().await.unwrap();
        Rc::try_unwrap(order).unwrap().into_inner()
    });
    assert_eq!(order, ["first gave up", "second"]);
}

#[test]
fn an_unread_lock_passes_to_the_next_waiter() {
    let (_, trace) = on_sim(async {
        let lock = Rc::new(Mutex::new(0));
        let held = lock.lock().await.unwrap();
        let theirs = lock.clone();
        let mut first = spawn("first", async move {
            let mut other = pin!(sleep(secs(1)).fuse());
            let mut wait = pin!(theirs.lock().fuse());
            select_biased! { _ = other => 1, _ = wait => 2 }
        })
        .await;
        let theirs = lock.clone();
        let mut second = spawn("second", async move { *theirs.lock().await.unwrap() += 1 }).await;
        sleep(secs(1)).await.unwrap();
        drop(held);
        assert_eq!(first.join().await, Ok(1));
        second.join().await.unwrap();
        assert_eq!(*lock.lock().await.unwrap(), 1);
    });
    assert_lines(&trace, "wake     mutex q1", 2);
}

#[test]
fn an_unread_signal_of_readiness_is_remembered() {
    let at = Time::from_micros(1_000_000);
    let mut kernel = Traced::new(Sim::new().ready_at(at, 7, Direction::Read), Default::default());
    kernel.go(async {
        let io = Io::new(Scripted(7));
        {
            let mut other = sleep(secs(1)).fuse();
            let mut ready = io.readable().fuse();
            select_biased! { _ = other => {}, _ = ready => panic!("the sleep comes first") }
        }
        // The edge has happened, and does not happen again.
        io.readable().await.unwrap();
    });
    kernel.end();
}

#[test]
fn a_join_that_is_dropped_with_the_output_can_be_made_again() {
    let (twice, _) = on_sim(async {
        let mut child = spawn("child", async {
            sleep(secs(1)).await.unwrap();
            String::from("output")
        })
        .await;
        {
            let mut other = sleep(secs(1)).fuse();
            let mut join = child.join().fuse();
            select_biased! { _ = other => {}, _ = join => panic!("the sleep comes first") }
        }
        (child.join().await, child.join().await)
    });
    assert_eq!(twice, (Ok(String::from("output")), Err(traps::Error::Taken)));
}

#[test]
fn a_join_that_timed_out_can_be_made_again() {
    let (both, _) = on_sim(async {
        let mut child = spawn("child", async { sleep(secs(2)).await.unwrap() }).await;
        let first = ignore_after(secs(1), child.join()).await;
        (first, child.join().await)
    });
    assert_eq!(both, (Ok(None), Ok(Time::from_micros(2_000_000))));
}

#[test]
fn a_guard_in_a_dropped_output_is_handed_over() {
    // No task joins the holder, so the kernel drops its output, the guard.
    let (_, trace) = on_sim(async {
        let lock: &'static Mutex<()> = Box::leak(Box::new(Mutex::new(())));
        drop(
            spawn("holder", async {
                let guard = lock.lock().await.unwrap();
                sleep(secs(1)).await.unwrap();
                guard
            })
            .await,
        );
        yield_now().await.unwrap();
        lock.lock().await.map(drop).unwrap();
    });
    assert_lines(&trace, "wake     mutex q1", 1);
}

// ---- Queues, locks, events: nothing is lost within one poll ------------------------------------

#[test]
fn a_lock_released_and_taken_again_in_one_poll() {
    on_sim(async {
        let lock = Rc::new(Mutex::new(()));
        let held = lock.lock().await.unwrap();
        let theirs = lock.clone();
        let mut other = spawn("other", async move { theirs.lock().await.map(drop).unwrap() }).await;
        yield_now().await.unwrap();
        drop(held);
        other.join().await.unwrap();
        let guard = lock.lock().await.unwrap();
        drop(guard);
        // The same poll continues, so the kernel may not know of the release yet.
        lock.lock().await.map(drop).unwrap();
    });
}

#[test]
fn a_permit_that_a_waker_gives_back_while_it_is_handed_one_is_kept() {
    thread_local! {
        static QUEUE: RefCell<Option<WaitQueue>> = const { RefCell::new(None) };
    }
    struct Gives(Waker);
    impl std::task::Wake for Gives {
        fn wake(self: Arc<Self>) {
            QUEUE.with_borrow(|queue| queue.as_ref().unwrap().give_permit());
            self.0.wake_by_ref();
        }
    }
    let queue = WaitQueue::with_permits(1);
    QUEUE.set(Some(queue.clone()));
    on_sim(async {
        let mut wait = queue.wait_for_permit();
        let waiting = poll_fn(|cx| {
            let waker = Waker::from(Arc::new(Gives(cx.waker().clone())));
            Pin::new(&mut wait).poll(&mut Context::from_waker(&waker))
        });
        waiting.await.unwrap();
    });
    assert!(queue.try_take_permit(), "one was taken, and one was given");
    assert!(!queue.try_take_permit());
}

#[test]
fn a_queue_keeps_no_more_permits_than_it_can_count() {
    let queue = WaitQueue::with_permits(u32::MAX);
    queue.give_permit();
    assert!(queue.try_take_permit());
}

#[test]
fn an_event_set_in_the_poll_in_which_the_wait_was_filed() {
    on_sim(async {
        let event = Event::new();
        let (woken, ()) = join!(event.wait(), async { event.set() });
        woken.unwrap();
    });
}

#[test]
fn an_event_set_in_the_poll_in_which_the_wait_was_filed_may_have_been_an_older_kernels() {
    let event = Rc::new(Event::new());
    for _ in 0..2 {
        let event = event.clone();
        on_sim(async move {
            let (woken, ()) = join!(event.wait(), async { event.set() });
            woken.unwrap();
            event.clear();
        });
    }
}

#[test]
fn a_lock_by_default_is_free() {
    on_sim(async {
        let lock = Mutex::<u32>::default();
        assert!(lock.try_lock().is_some());
        assert_eq!(*lock.lock().await.unwrap(), 0);
    });
}

#[test]
fn a_lock_outlives_its_kernel() {
    let lock = Rc::new(Mutex::new(0));
    for round in 0..3 {
        on_sim(async {
            let held = lock.lock().await.unwrap();
            let theirs = lock.clone();
            let mut other = spawn("other", async move { *theirs.lock().await.unwrap() += 1 }).await;
            yield_now().await.unwrap();
            drop(held);
            other.join().await.unwrap();
            assert_eq!(*lock.lock().await.unwrap(), round + 1);
        });
        assert!(lock.try_lock().is_some(), "round {round}, outside a kernel");
    }
}

#[test]
fn a_lock_survives_a_kernel_that_was_dropped_with_its_holder_and_a_waiter() {
    let lock = Rc::new(Mutex::new(0));
    let mut kernel = Kernel::new(Sim::new());
    kernel
        .run(async {
            for name in ["holder", "waiter"] {
                let lock = lock.clone();
                drop(
                    spawn(name, async move {
                        let _guard = lock.lock().await.unwrap();
                        sleep(secs(9)).await.unwrap();
                    })
                    .await,
                );
            }
            yield_now().await.unwrap();
            yield_now().await.unwrap();
        })
        .unwrap();
    drop(kernel);
    on_sim(async { *lock.lock().await.unwrap() += 1 });
    assert_eq!(*lock.try_lock().unwrap(), 1);
}

// ---- Re-homing ---------------------------------------------------------------------------------

#[test]
fn a_filed_future_is_answered_in_the_task_that_polls_it_now() {
    let (_, trace) = on_sim(async {
        let shared = Shared::new(sleep(secs(2)));
        assert!(shared.poll_once().await.is_pending());
        let theirs = shared.clone();
        let mut other = spawn("other", async move { theirs.wait().await }).await;
        // Main sleeps in another wait, and is not woken for this one.
        sleep(secs(3)).await.unwrap();
        assert_eq!(other.join().await, Ok(Ok(Time::from_micros(2_000_000))));
    });
    assert_lines(&trace, "other    wake     sleep", 1);
    assert_lines(&trace, "main     wake     sleep", 1);
}

#[test]
fn interrupts_of_the_new_task_reach_a_future_that_moved() {
    let (end, _) = on_sim(async {
        let shared = Shared::new(sleep(secs(9)));
        assert!(shared.poll_once().await.is_pending());
        let theirs = shared.clone();
        let mut other = spawn("other", async move { theirs.wait().await }).await;
        sleep(secs(1)).await.unwrap();
        other.cancel_because("now").await.unwrap();
        other.join().await.unwrap().map_err(|why| (why.kind(), why.reason()))
    });
    assert_eq!(end, Err((Kind::Cancelled, "now")));
}

#[test]
fn a_cancellation_that_is_pending_reaches_a_future_that_moved_in() {
    let (end, trace) = on_sim(async {
        let shared = Shared::new(sleep(secs(9)));
        assert!(shared.poll_once().await.is_pending());
        let theirs = shared.clone();
        let mut other = spawn("other", async move { theirs.wait().await }).await;
        // The task has not run yet. The request is pending, and main has filed its first wait.
        other.cancel_now("early");
        ignore_after(secs(5), other.join()).await
    });
    let end = end.unwrap().expect("the cancellation ends it").map_err(|why| why.is_cancelled());
    assert_eq!(end, Err(true), "{trace}");
}

#[test]
fn a_timeout_that_is_pending_reaches_a_future_that_moved_in() {
    let (end, trace) = on_sim(async {
        let mut long = sleep(secs(9));
        assert!(poll_once(&mut long).await.is_pending());
        let timed = timeout_after(secs(1), async {
            sleep(secs(1)).await?; // a tie: the value wins, and the timeout is pending
            long.await
        });
        timed.await.map_err(|why| (why.kind(), why.reading()))
    });
    assert_eq!(end, Err((Kind::TaskTimeout, Time::from_micros(1_000_000))), "{trace}");
}

#[test]
fn a_future_moved_into_a_timeout_ends_by_it_and_out_of_it_does_not() {
    let (ends, _) = on_sim(async {
        let mut long = sleep(secs(9));
        assert!(poll_once(&mut long).await.is_pending());
        let inside = timeout_after(secs(1), &mut long).await.map_err(|why| why.kind());
        let shared = Shared::new(sleep(secs(3)));
        let started = timeout_after(secs(1), async {
            assert!(shared.poll_once().await.is_pending());
            Ok::<_, Interrupt>(())
        });
        started.await.unwrap();
        (inside, shared.wait().await)
    });
    assert_eq!(ends, (Err(Kind::TaskTimeout), Ok(Time::from_micros(4_000_000))));
}

#[test]
fn a_scope_moved_to_another_task_keeps_its_deadline() {
    let (end, _) = on_sim(async {
        let shared = Shared::new(timeout_after(secs(2), sleep(secs(9))));
        assert!(shared.poll_once().await.is_pending());
        clock().await;
        assert!(shared.poll_once().await.is_pending());
        sleep(secs(1)).await.unwrap();
        let theirs = shared.clone();
        let mut other = spawn("other", async move { theirs.wait().await }).await;
        other.join().await.unwrap().map_err(|why| (why.kind(), why.reading()))
    });
    assert_eq!(end, Err((Kind::TaskTimeout, Time::from_micros(2_000_000))));
}

#[test]
fn a_scope_moved_to_another_task_is_reached_by_that_tasks_cancellation() {
    let (end, trace) = on_sim(async {
        let shared = Shared::new(timeout_after(secs(20), timeout_after(secs(20), sleep(secs(9)))));
        for _ in 0..3 {
            assert!(shared.poll_once().await.is_pending());
            clock().await;
        }
        let theirs = shared.clone();
        let mut other = spawn("other", async move { theirs.wait().await }).await;
        sleep(secs(1)).await.unwrap();
        other.cancel_because("moved").await.unwrap();
        other.join().await.unwrap().map_err(|why| why.is_cancelled())
    });
    assert_eq!(end, Err(true), "{trace}");
}

#[test]
fn a_scope_moved_into_a_timeout_lets_that_timeout_know_its_own() {
    let (end, trace) = on_sim(async {
        let mut long = Box::pin(timeout_after(secs(20), sleep(secs(9))));
        for _ in 0..2 {
            assert!(poll_once(&mut long).await.is_pending());
            clock().await;
        }
        ignore_after(secs(1), long).await.map_err(|why| why.kind())
    });
    assert_eq!(end, Ok(None), "{trace}");
}

/// Returns a timeout around a sleep. Another task has polled it once, and still lives.
async fn begun_by_another(
    inner: impl Future<Output = Result<(), Interrupt>> + 'static,
) -> (Shared<Result<(), Interrupt>>, traps::Task<()>) {
    let timeout = Shared::new(timeout_after(secs(50), inner));
    let theirs = timeout.clone();
    let first = async move {
        let _ = theirs.poll_once().await;
        never().await
    };
    let first = spawn("first", first).await;
    yield_now().await.unwrap();
    yield_now().await.unwrap();
    (timeout, first)
}

#[test]
fn a_cancellation_dropped_unread_in_a_scope_that_moved_is_its_former_tasks() {
    let ((), trace) = on_sim(async {
        let mut nap = Some(Box::pin(sleep(secs(100))));
        let mut polls = 0;
        let inner = poll_fn(move |cx| {
            polls += 1;
            match polls {
                1 => nap.as_mut().unwrap().as_mut().poll(cx).map_ok(drop),
                2 => Poll::Pending,
                _ => {
                    nap = None;
                    Poll::Pending
                }
            }
        });
        let (timeout, first) = begun_by_another(inner).await;
        first.cancel_now("stop");
        // Its scope moves to this task, and then the sleep in it is dropped.
        for _ in 0..2 {
            let _ = timeout.poll_once().await;
            yield_now().await.unwrap();
        }
        timeout.drop_future();
    });
    assert_lines(&trace, "first    cleanup  root", 1);
}

#[test]
fn x2_a_timeout_dropped_unread_in_a_scope_that_moved_is_pending_behind_a_cancellation() {
    let (ends, trace) = on_sim(async {
        let nap = Shared::new(sleep(secs(100)));
        let mut begun = false;
        let inner = poll_fn(move |cx| {
            if !begun {
                begun = true;
                assert!(pin!(nap.wait()).poll(cx).is_pending());
            }
            Poll::<Result<(), Interrupt>>::Pending
        });
        let moved = Shared::new(timeout_after(secs(50), inner));
        let theirs = moved.clone();
        let victim = async move {
            let work = async {
                let _ = theirs.poll_once().await;
                let read = sleep(secs(100)).await.unwrap_err().kind();
                // Pending interrupts are searched for the shield.
                shield(yield_now()).await.unwrap();
                let first = sleep(secs(1)).await.unwrap_err().kind();
                let second = sleep(secs(1)).await.unwrap_err().kind();
                sleep(secs(1)).await.map(|_| [read, first, second])
            };
            timeout_after(secs(1), work).await
        };
        let mut victim = spawn("victim", victim).await;
        // This keeps the place of the moved scope from being used again.
        let other = Shared::new(timeout_after(secs(50), never::<Result<(), Interrupt>>()));
        let _ = other.poll_once().await;
        // This sleep ends before the timeout, which is due at the same time.
        sleep(secs(1)).await.unwrap();
        let _ = moved.poll_once().await;
        victim.cancel_now("stop");
        moved.drop_future();
        other.drop_future();
        victim.join().await.unwrap().unwrap()
    });
    // One wait reads the timeout. The other timeout goes back, and the cancellation comes first.
    assert_eq!(ends, [Kind::TaskTimeout, Kind::Cancelled, Kind::TaskTimeout]);
    assert_lines(&trace, "victim   cleanup  s2", 1);
}

/// An unread result in a moved timeout does not concern its former task.
#[test]
fn x2_a_timeout_that_fired_and_moved_is_not_pending_where_it_was_begun() {
    for (ends, around) in [(false, false), (true, false), (false, true), (true, true)] {
        let ((), trace) = on_sim(async move {
            let nap = Shared::new(sleep(secs(100)));
            let mut polled = 0;
            let inner = poll_fn(move |cx| {
                polled += 1;
                match polled {
                    1 => pin!(nap.wait()).poll(cx).map(|_| Ok(())),
                    2 if ends => Poll::Ready(Ok::<_, Interrupt>(())),
                    _ => Poll::Pending,
                }
            });
            let fires = timeout_after(secs(1), inner);
            let moved = match around {
                true => Shared::new(timeout_after(secs(50), fires)),
                false => Shared::new(fires),
            };
            let theirs = moved.clone();
            let victim = async move {
                let _ = theirs.poll_once().await;
                sleep(secs(100)).await.unwrap_err();
            };
            let victim = spawn("victim", victim).await;
            // This sleep ends before the timeout, which is due at the same time.
            sleep(secs(1)).await.unwrap();
            assert_eq!(moved.poll_once().await.is_ready(), ends);
            victim.cancel_now("stop");
            if !ends {
                moved.drop_future();
            }
            sleep(secs(1)).await.unwrap();
        });
        assert_lines(&trace, "fire     s", 1);
    }
}

/// If the scope around a trap has closed, the trap continues in the timeout around that scope.
#[test]
fn x2_a_timeout_stays_before_a_cancellation_also_in_a_scope_that_has_closed() {
    let (ends, _) = on_sim(async {
        let victim = timeout_after(secs(1), async {
            let mut naps = FuturesUnordered::new();
            naps.push(sleep(secs(10)));
            traps::race(naps.next(), yield_now()).await;
            let first = naps.next().await.unwrap().unwrap_err().kind();
            let second = sleep(secs(1)).await.unwrap_err().kind();
            sleep(secs(1)).await.map(|_| [first, second])
        });
        let mut victim = spawn("victim", victim).await;
        // This sleep ends before the timeout, which is due at the same time.
        sleep(secs(1)).await.unwrap();
        victim.cancel_now("stop");
        victim.join().await.unwrap().unwrap()
    });
    assert_eq!(ends, [Kind::TaskTimeout, Kind::Cancelled]);
}

/// Two timeouts were delivered, one of them after a shield. The line shows both.
#[test]
fn x2_a_run_line_shows_the_timeouts_that_came_before_a_cancellation() {
    let (_, trace) = on_sim(async {
        let short = || timeout_after(secs(1), sleep(secs(10)));
        let victim = async move {
            let both = traps::join(shield(short()), short()).await;
            assert!(sleep(secs(1)).await.unwrap_err().is_cancelled());
            both
        };
        let mut victim = spawn("victim", victim).await;
        // This sleep ends before the timeouts, which are due at the same time.
        sleep(secs(1)).await.unwrap();
        victim.cancel_now("stop");
        let (shielded, open) = victim.join().await.unwrap();
        let kinds = [shielded, open].map(|end| end.unwrap_err().kind());
        assert_eq!(kinds, [Kind::TaskTimeout; 2]);
    });
    let run = |line: &&str| line.contains("victim   run") && line.contains("!");
    let line = trace.lines().find(run).unwrap();
    assert_eq!((line.matches("!timeout").count(), line.matches("!").count()), (2, 2), "{line}");
}

/// An unread wake passes to the next waiter in the queue, which may have come after the wake.
#[test]
fn a_wait_for_an_event_ends_only_where_it_was_set_meanwhile() {
    on_sim(async {
        let (queue, event) = (WaitQueue::new(), Rc::new(Event::new()));
        let (first, second) = (queue.clone(), event.clone());
        let both = async move { traps::race(first.wait(), second.wait()).await };
        let mut both = spawn("both", both).await;
        yield_now().await.unwrap();
        let (waited, ended) = (event.clone(), Rc::new(Cell::new(false)));
        let tell = ended.clone();
        let late = async move {
            waited.wait().await.unwrap();
            tell.set(true);
        };
        spawn("late", late).await;
        queue.wake(1);
        event.set();
        event.clear();
        sleep(secs(1)).await.unwrap();
        both.join().await.unwrap();
        assert!(!ended.get(), "nobody has set it since it came");
        event.set();
        event.clear();
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert!(ended.get());
    });
}

/// A post between two runs has its own turn, because the checker works by turns.
#[test]
fn tasks_that_become_ready_between_two_runs_run_in_that_order() {
    for shut_down in [false, true] {
        let mut kernel = sim();
        let events = kernel.go(async {
            let [one, two, three] = [(); 3].map(|()| Rc::new(Event::new()));
            let waited = two.clone();
            spawn("second", async move { waited.wait().await }).await;
            let (a, b) = (one.clone(), three.clone());
            spawn("first", async move { traps::join(a.wait(), b.wait()).await }).await;
            [one, two, three]
        });
        assert!(kernel.run_until_quiescent(secs(1)).unwrap());
        events.iter().for_each(|event| event.set());
        if !shut_down {
            assert!(kernel.run_until_quiescent(secs(1)).unwrap());
        }
        kernel.end();
    }
}

/// Begins `n` sleeps, each in two nested timeouts. The timeouts end at once with values, and the
/// sleeps continue after them.
async fn outliving(n: usize, span: Duration) -> FuturesUnordered<traps::Sleep> {
    let mut naps = FuturesUnordered::new();
    for _ in 0..n {
        naps.push(sleep(span));
        let begun = poll_fn(|cx| {
            assert!(naps.poll_next_unpin(cx).is_pending());
            Poll::Ready(Ok::<_, Interrupt>(()))
        });
        timeout_after(secs(50), timeout_after(secs(60), begun)).await.unwrap();
    }
    naps
}

/// Few tickets, and enough that a closing scope does not scan them.
const OUTLIVING: [usize; 2] = [1, 30];

#[test]
fn a_trap_that_outlives_its_scope_is_interrupted_in_place_by_the_scope_around() {
    for n in OUTLIVING {
        let (ended, trace) = on_sim(async move {
            let mut ended = 0;
            let work = async {
                let mut naps = outliving(n, secs(100)).await;
                while let Some(nap) = naps.next().await {
                    ended += usize::from(nap.is_err());
                }
                Ok::<_, Interrupt>(())
            };
            timeout_after(secs(3), work).await.unwrap();
            ended
        });
        assert_eq!(ended, n, "{trace}");
    }
}

#[test]
fn c31_a_shield_holds_for_a_trap_that_outlives_a_scope_inside_it() {
    for n in OUTLIVING {
        let (slept, trace) = on_sim(async move {
            let napping = shield(async move {
                let mut naps = outliving(n, secs(3)).await;
                let mut slept = 0;
                while let Some(nap) = naps.next().await {
                    slept += usize::from(nap.is_ok());
                }
                slept
            });
            let mut child = spawn("child", napping).await;
            sleep(secs(1)).await.unwrap();
            child.cancel_because("stop").await.unwrap();
            child.join().await.unwrap()
        });
        assert_eq!(slept, n, "{trace}");
    }
}

#[test]
fn a_future_whose_task_ended_is_filed_again() {
    let (end, _) = on_sim(async {
        let shared = Shared::new(sleep(secs(2)));
        let theirs = shared.clone();
        let mut child =
            spawn("child", async move { assert!(theirs.poll_once().await.is_pending()) }).await;
        child.join().await.unwrap();
        sleep(secs(1)).await.unwrap();
        shared.wait().await
    });
    assert_eq!(end, Ok(Time::from_micros(2_000_000)));
}

// ---- Kernels and threads -----------------------------------------------------------------------

#[test]
fn a_future_filed_in_a_kernel_that_is_gone_is_filed_again() {
    let shared = Shared::new(timeout_after(secs(7), sleep(secs(5))));
    let mut first = Kernel::new(Sim::new());
    let poll_twice = async {
        for _ in 0..2 {
            assert!(shared.poll_once().await.is_pending());
            clock().await;
        }
    };
    first.run(poll_twice).unwrap();
    drop(first);
    let (end, _) = on_sim(shared.wait());
    assert_eq!(end, Ok(Time::from_micros(5_000_000)));
}

#[test]
fn futures_dropped_after_or_outside_any_kernel_are_harmless() {
    let mut left: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    let lock = Rc::new(Mutex::new(()));
    let queue = WaitQueue::new();
    {
        let mut kernel = Kernel::new(Sim::new().jobs_take(secs(1)));
        let (queue, lock) = (queue.clone(), lock.clone());
        let futures = kernel.run(async move {
            let held = lock.lock().await.unwrap();
            let other = lock.clone();
            let io = Io::new(Scripted(1));
            let mut futures: Vec<Pin<Box<dyn Future<Output = ()>>>> = vec![
                Box::pin(async { sleep(secs(9)).await.map(drop).unwrap() }),
                Box::pin(async move { queue.wait().await.unwrap() }),
                Box::pin(async move { other.lock().await.map(drop).unwrap() }),
                Box::pin(async { timeout_after(secs(1), sleep(secs(9))).await.map(drop).unwrap() }),
                Box::pin(async { traps::run_in_thread(|| ()).await.unwrap() }),
                Box::pin(async move { io.readable().await.unwrap() }),
            ];
            for _ in 0..2 {
                for future in &mut futures {
                    let _ = poll_once(future).await;
                }
                clock().await;
            }
            drop(held);
            futures
        });
        left.extend(futures.unwrap());
    }
    drop(left);
    drop((sleep(secs(1)), clock(), timeout_after(secs(1), sleep(secs(1))), lock.lock()));
    on_sim(async { sleep(secs(1)).await.unwrap() });
}

#[test]
fn a_handle_of_a_dropped_kernel_is_harmless_in_the_next() {
    let mut first = sim();
    let (mut ended, mut dropped) = first.go(async {
        let ended = spawn("ended", async { 1 }).await;
        yield_now().await.unwrap();
        (ended, spawn("dropped", sleep(secs(1))).await)
    });
    first.drop_live();
    let (_, trace) = on_sim(async {
        // A task that has the name of the first.
        let mut own = spawn("own", sleep(secs(2))).await;
        dropped.cancel_now("from afar");
        assert_eq!(dropped.join().await, Err(traps::Error::Dropped));
        assert_eq!(ended.join().await, Ok(1));
        assert!(own.join().await.unwrap().is_ok());
    });
    assert_eq!(count(&trace, " cancel "), 0, "{trace}");
}

#[test]
fn a_wake_that_a_dropped_kernel_has_not_handled_ends_no_wait_in_the_next() {
    let mut first = sim();
    let queue = WaitQueue::new();
    let waits = |queue: &WaitQueue| {
        let queue = queue.clone();
        async move { queue.wait().await }
    };
    first.go(async {
        spawn("waits", waits(&queue)).detached().await;
        yield_now().await.unwrap();
    });
    queue.wake(9);
    first.drop_live();
    assert_eq!(queue.waiting(), 0);
    on_sim(async {
        let mut waits = spawn("waits", waits(&queue)).await;
        sleep(secs(1)).await.unwrap();
        assert_eq!(queue.waiting(), 1);
        queue.wake(9);
        waits.join().await.unwrap().unwrap();
    });
}

#[test]
fn an_io_that_outlives_its_kernel_is_another_handle_in_the_next() {
    let io = Rc::new(Io::new(Scripted(1)));
    let machine = || Sim::new().ready_at(Time::from_micros(1_000_000), 1, Direction::Read);
    for _ in 0..2 {
        let mut kernel = Traced::new(machine(), kernel::Options::new());
        kernel.go(async { io.readable().await.unwrap() });
        assert_eq!(kernel.counters().handles, 1);
        kernel.drop_live();
    }
    // The handle is closed in a kernel that does not know it.
    on_sim(async move {
        let own = Io::new(Scripted(2));
        assert!(poll_once(&mut own.readable()).await.is_pending());
        yield_now().await.unwrap();
        drop(io);
        assert!(timeout_after(secs(1), own.readable()).await.is_err());
    });
}

#[test]
fn a_permit_left_in_one_kernel_is_for_a_waiter_in_the_next() {
    let mut first = sim();
    let queue = Rc::new(WaitQueue::new());
    let (handed,) = first.go(async {
        let mut wait = queue.wait_for_permit();
        assert!(poll_once(&mut wait).await.is_pending());
        yield_now().await.unwrap();
        queue.give_permit();
        yield_now().await.unwrap();
        (wait,)
    });
    drop(handed);
    first.drop_live();
    on_sim(async {
        let theirs = queue.clone();
        let takes = async move { theirs.wait_for_permit().await.unwrap() };
        spawn("takes", takes).detached().await;
        yield_now().await.unwrap();
        assert_eq!((queue.waiting(), queue.try_take_permit()), (0, false));
    });
}

#[test]
fn a_lock_that_was_handed_over_goes_with_its_future_to_the_next_kernel() {
    let mut first = sim();
    let lock = Rc::new(Mutex::new(()));
    let theirs = lock.clone();
    let mut wait = Box::pin(async move { theirs.lock().await.map(drop) });
    first.go(async {
        let held = lock.lock().await.unwrap();
        assert!(poll_once(&mut wait).await.is_pending());
        yield_now().await.unwrap();
        drop(held);
    });
    first.end();
    on_sim(async { wait.await.unwrap() });
    assert!(lock.try_lock().is_some());
}

#[test]
fn a_closed_io_stays_closed_for_a_wait_whose_task_has_ended() {
    on_sim(async {
        let io = Rc::new(Io::new(Scripted(1)));
        let theirs = io.clone();
        let wait = Shared::new(async move { theirs.readable().await });
        let polls = wait.clone();
        let polls = async move { assert!(polls.poll_once().await.is_pending()) };
        spawn("polls", polls).await.join().await.unwrap();
        io.close();
        assert!(matches!(wait.wait().await, Err(traps::Error::Closed)));
        assert!(matches!(io.readable().await, Err(traps::Error::Closed)));
    });
}

#[test]
fn run_inside_run_panics_by_rule() {
    let (inner, _) = on_sim(async {
        let other = catch_unwind(|| drop(kernel::run(async {})));
        sleep(secs(1)).await.unwrap(); // the outer kernel continues
        message(other.unwrap_err())
    });
    assert!(inner.starts_with("rule: a thread has one kernel at a time"), "{inner}");
}

#[test]
fn a_trap_polled_outside_a_kernel_panics_by_rule() {
    let mut cx = Context::from_waker(Waker::noop());
    let mut fresh = clock();
    let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut fresh).poll(&mut cx)));
    let text = message(polled.unwrap_err());
    assert!(text.starts_with("rule: ") && text.contains("traps/tests/all/gate.rs:"), "{text}");

    let mut kernel = sim();
    let (mut filed,) = kernel.go(async {
        let mut filed = sleep(secs(1));
        assert!(poll_once(&mut filed).await.is_pending());
        (filed,)
    });
    let polled = catch_unwind(AssertUnwindSafe(|| Pin::new(&mut filed).poll(&mut cx)));
    assert!(message(polled.unwrap_err()).starts_with("rule: "));
    drop(filed);
    kernel.end();
}

#[test]
fn two_kernels_on_two_threads_wake_each_other() {
    let (there, back) = (Oneshot::new(), Oneshot::new());
    let (ask, answer) = (there.clone(), back.clone());
    let other = std::thread::spawn(move || {
        let (_, trace) = on_real(async move {
            let n: u64 = ask.receive().await;
            answer.send(n + 1);
        });
        trace
    });
    let (n, _) = on_real(async {
        while !there.is_awaited() {
            yield_now().await.unwrap();
        }
        let mut asks = there.clone();
        // A task of this kernel hands it directly to a task of the other kernel.
        let mut sender = spawn("sender", async move {
            std::mem::replace(&mut asks, Oneshot::new()).send(41);
        })
        .await;
        let n = back.receive().await;
        sender.join().await.unwrap();
        n
    });
    assert_eq!(n, 42);
    other.join().unwrap();
}

// ---- Wakers ------------------------------------------------------------------------------------

#[test]
fn completion_calls_the_waker_of_a_combinator_once_and_only_then() {
    let counted = Counted::new();
    let (calls, _) = on_sim(async {
        let mut slept = sleep(secs(1));
        let waker = Waker::from(counted.clone());
        poll_fn(|cx| {
            *counted.behind.lock().unwrap() = Some(cx.waker().clone());
            let polled = Pin::new(&mut slept).poll(&mut Context::from_waker(&waker));
            assert_eq!(polled.is_ready(), counted.calls() == 1);
            polled
        })
        .await
        .unwrap();
        counted.calls()
    });
    assert_eq!(calls, 1);
}

#[test]
fn the_waker_of_the_last_poll_is_the_one_that_is_called() {
    let (old, new) = (Counted::new(), Counted::new());
    on_sim(async {
        let mut slept = sleep(secs(1));
        for counted in [&old, &new] {
            let waker = Waker::from(counted.clone());
            poll_fn(|cx| {
                *counted.behind.lock().unwrap() = Some(cx.waker().clone());
                let _ = Pin::new(&mut slept).poll(&mut Context::from_waker(&waker));
                Poll::Ready(())
            })
            .await;
        }
        sleep(secs(2)).await.unwrap();
        assert_eq!((old.calls(), new.calls()), (0, 1));
        // Polled by the task itself, it needs no waker at all.
        slept.await.unwrap();
        assert_eq!((old.calls(), new.calls()), (0, 1));
    });
    assert_eq!(Arc::strong_count(&old), 1, "the gate let go of it");
}

#[test]
fn an_answer_inside_a_combinator_costs_no_extra_turn() {
    let counted = Counted::new();
    let (polls, trace) = on_sim(async {
        let mut polls = 0;
        let mut reading = clock();
        let waker = Waker::from(counted.clone());
        poll_fn(|cx| {
            polls += 1;
            *counted.behind.lock().unwrap() = Some(cx.waker().clone());
            Pin::new(&mut reading).poll(&mut Context::from_waker(&waker))
        })
        .await;
        sleep(secs(1)).await.unwrap();
        polls
    });
    assert_eq!(polls, 2);
    assert_lines(&trace, "wake     waker", 0);
}

#[test]
fn a_task_that_wakes_itself_goes_to_the_end_of_the_queue() {
    let (order, trace) = on_sim(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let mut tasks = Vec::new();
        for name in ["a", "b"] {
            let order = order.clone();
            tasks.push(
                spawn(name, async move {
                    for _ in 0..3 {
                        order.borrow_mut().push(name);
                        let mut first = true;
                        poll_fn(|cx| {
                            if std::mem::take(&mut first) {
                                cx.waker().wake_by_ref();
                                return Poll::Pending;
                            }
                            Poll::Ready(())
                        })
                        .await;
                    }
                })
                .await,
            );
        }
        for task in &mut tasks {
            task.join().await.unwrap();
        }
        order.take().concat()
    });
    assert_eq!(order, "ababab");
    assert_lines(&trace, "wake     waker", 6);
}

#[test]
fn a_waker_that_was_kept_is_harmless_for_ever() {
    let kept: Rc<RefCell<Vec<Waker>>> = Rc::default();
    let theirs = kept.clone();
    on_sim(async move {
        let keep = theirs.clone();
        let mut child = spawn("child", async move {
            poll_fn(|cx| {
                keep.borrow_mut().push(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
            sleep(secs(1)).await.unwrap();
        })
        .await;
        child.join().await.unwrap();
        theirs.borrow()[0].wake_by_ref(); // the task has ended
        // Another task takes its place, and is not woken.
        let mut next = spawn("next", sleep(secs(1))).await;
        theirs.borrow()[0].wake_by_ref();
        next.join().await.unwrap().unwrap();
    });
    kept.borrow()[0].wake_by_ref(); // the kernel is gone
    let waker = kept.borrow()[0].clone();
    std::thread::spawn(move || waker.wake()).join().unwrap();
    on_sim(async { sleep(secs(1)).await.unwrap() });
}

#[test]
fn a_spurious_poll_changes_nothing() {
    let (end, trace) = on_sim(async {
        let kept: Rc<RefCell<Option<Waker>>> = Rc::default();
        let theirs = kept.clone();
        let mut child = spawn("child", async move {
            poll_fn(|cx| {
                *theirs.borrow_mut() = Some(cx.waker().clone());
                Poll::Ready(())
            })
            .await;
            timeout_after(secs(9), sleep(secs(4))).await
        })
        .await;
        for _ in 0..3 {
            sleep(secs(1)).await.unwrap();
            let waker = kept.borrow().clone();
            waker.unwrap().wake();
        }
        child.join().await.unwrap()
    });
    assert_eq!(end, Ok(Time::from_micros(4_000_000)));
    assert_lines(&trace, "parked n=1", 3);
    assert_lines(&trace, "until=4.000000", 1);
}

#[test]
fn a_waker_called_from_another_thread_wakes_its_task() {
    let (n, trace) = on_real(async {
        let channel = Oneshot::new();
        let sender = channel.clone();
        let thread = std::thread::spawn(move || {
            while !sender.is_awaited() {
                std::thread::yield_now();
            }
            sender.send(7);
        });
        let n = channel.receive().await;
        thread.join().unwrap();
        n
    });
    assert_eq!(n, 7);
    assert_lines(&trace, "main     wake     waker", 1);
}

// ---- Panics ------------------------------------------------------------------------------------

#[test]
fn a_panic_ends_that_task_only_and_its_joiner_hears_the_message() {
    let (ends, trace) = on_sim(async {
        let mut bad = spawn("bad", async {
            sleep(secs(1)).await.unwrap();
            if true {
                panic!("by the test: {}", 7);
            }
        })
        .await;
        let mut good = spawn("good", sleep(secs(2))).await;
        (bad.join().await, bad.join().await, good.join().await.unwrap().is_ok())
    });
    let panicked = || Err(traps::Error::Panicked("by the test: 7".into()));
    assert_eq!(ends, (panicked(), panicked(), true));
    assert_lines(&trace, "panic    by the test: 7", 1);
    assert_lines(&trace, "exit     panic", 1);
}

#[test]
fn a_panic_of_main_leaves_nothing_parked_that_it_filed_in_its_last_poll() {
    let mut kernel = sim();
    let panics = async {
        timeout_after(secs(1), async { Ok::<_, Interrupt>(()) }).await.unwrap();
        panic!("by the test");
    };
    let long = async { join!(timeout_after(secs(9), sleep(secs(5))), sleep(secs(7))) };
    let ran = catch_unwind(AssertUnwindSafe(|| kernel.run(traps::join(long, panics))));
    assert_eq!(message(ran.map(drop).unwrap_err()), "by the test");
    let trace = kernel.end();
    let exit = trace.find("exit     panic").unwrap();
    assert_lines(&trace[exit..], "block", 0);
    assert_lines(&trace, "block    sleep", 0);
    assert_lines(&trace, "withdraw k=", 0);
}

#[test]
fn the_traps_of_a_poll_that_panicked_are_not_served() {
    async fn asks(request: Shared<impl Sized + 'static>) {
        let _ = request.poll_once().await;
        panic!("by the test");
    }
    // A job whose future survives, and a second request of the same poll.
    let ran = Arc::new(AtomicU32::new(0));
    let request = || {
        let ran = ran.clone();
        let job = traps::run_in_thread(move || ran.fetch_add(1, Ordering::Relaxed));
        Shared::new(async { futures_util::join!(job, sleep(secs(1))) })
    };
    let (mains, childs) = (request(), request());
    let mut kernel = sim();
    let theirs = childs.clone();
    kernel.go(async move {
        spawn("child", asks(theirs)).detached().await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
    });
    let panicked = catch_unwind(AssertUnwindSafe(|| kernel.run(asks(mains.clone()))));
    assert_eq!(message(panicked.map(drop).unwrap_err()), "by the test");
    let trace = kernel.end();
    assert_eq!(ran.load(Ordering::Relaxed), 0, "{trace}");
    assert_lines(&trace, "offload", 0);
    assert_lines(&trace, "sleep", 0);
    drop((mains, childs));
}

#[test]
fn the_posts_of_a_poll_that_panicked_are_handled() {
    let ran = Rc::new(Cell::new(0));
    let counts = || {
        let ran = ran.clone();
        async move { ran.set(ran.get() + 1) }
    };
    let (told, beside) = (counts(), counts());
    let (joined, _) = on_sim(async move {
        let mut child = spawn("child", async move {
            spawn("told", told).detached().await;
            WaitQueue::new().wake(1);
            spawn("beside", beside).detached().await;
            panic!("by the test");
        })
        .await;
        let joined = child.join().await;
        yield_now().await.unwrap();
        joined
    });
    assert!(matches!(joined, Err(traps::Error::Panicked(_))), "{joined:?}");
    assert_eq!(ran.get(), 2);
}

#[test]
fn a_panic_inside_scopes_and_a_combinator_leaves_nothing_behind() {
    let mut kernel = sim();
    let text = kernel.go(async {
        let mut bad = spawn("bad", async {
            let io = Io::new(Scripted(3));
            let inner = traps::join(
                timeout_after(secs(5), async {
                    let (a, b) = join!(sleep(secs(4)), sleep(secs(3)));
                    a.and(b)
                }),
                timeout_after(secs(6), async {
                    sleep(secs(1)).await?;
                    let mut more = sleep(secs(2)); // filed, and never taken by the kernel
                    let _ = poll_once(&mut more).await;
                    if true {
                        panic!("in the second branch");
                    }
                    more.await
                }),
            );
            let mut ready = io.readable().fuse();
            let mut inner = pin!(inner.fuse());
            select_biased! { _ = ready => {}, _ = inner => {} }
        })
        .await;
        let end = bad.join().await;
        let c = sleep(tenths(1)).await;
        assert!(c.is_ok());
        end
    });
    assert_eq!(text, Err(traps::Error::Panicked("in the second branch".into())));
    let now = kernel.counters();
    assert_eq!((now.scopes, now.timers, now.tickets, now.handles), (0, 0, 0, 0));
    kernel.end();
}

#[test]
fn a_panic_restores_the_scope_of_the_task_that_caught_it() {
    let (end, _) = on_sim(async {
        let inner = async {
            let guarded = AssertUnwindSafe(timeout_after(secs(1), async {
                if true {
                    panic!("inside the scope");
                }
                sleep(secs(1)).await
            }));
            assert!(guarded.catch_unwind().await.is_err());
            sleep(secs(5)).await // in the outer scope, not in the one that is gone
        };
        timeout_after(secs(9), inner).await
    });
    assert_eq!(end, Ok(Time::from_micros(5_000_000)));
}

#[test]
fn a_panicking_drop_panics_its_own_task_or_no_task() {
    struct Bomb(&'static str);
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("{}", self.0);
            }
        }
    }
    let (ends, trace) = on_sim(async {
        // Dropped in its last poll.
        let mut own = spawn("own", async {
            let _bomb = Bomb("a local");
            sleep(secs(1)).await.unwrap();
        })
        .await;
        // Dropped by the kernel, as the output of a task that no task joins.
        drop(spawn("output", async { Bomb("an output") }).await);
        // Dropped by the kernel at the end of the grace.
        drop(
            spawn("grace", async {
                let _bomb = Bomb("by the kernel");
                never::<()>().await;
            })
            .await,
        );
        own.join().await
    });
    assert_eq!(ends, Err(traps::Error::Panicked("a local".into())));
    assert_lines(&trace, "exit     panic", 1);
    assert_lines(&trace, "exit     dropped", 1);
}

#[test]
fn a_panic_whose_payload_panics_when_dropped_is_contained() {
    struct Payload;
    impl Drop for Payload {
        fn drop(&mut self) {
            panic!("the payload's own");
        }
    }
    let (end, _) = on_sim(async {
        let mut bad = spawn("bad", async { std::panic::panic_any(Payload) }).await;
        let end = bad.join().await.map(|(): ()| ());
        sleep(secs(1)).await.unwrap();
        end
    });
    assert!(matches!(end, Err(traps::Error::Panicked(_))));
}

#[test]
fn a_panicking_foreign_waker_is_contained() {
    struct Angry;
    impl std::task::Wake for Angry {
        fn wake(self: Arc<Self>) {
            panic!("a foreign waker");
        }
    }
    let (end, _) = on_sim(async {
        let waker = Waker::from(Arc::new(Angry));
        let mut slept = sleep(secs(1));
        assert!(Pin::new(&mut slept).poll(&mut Context::from_waker(&waker)).is_pending());
        sleep(secs(2)).await.unwrap();
        slept.await
    });
    assert_eq!(end, Ok(Time::from_micros(1_000_000)));
}

#[test]
fn a_foreign_waker_that_is_called_as_its_task_leaves_the_cpu_is_heeded_in_that_turn() {
    struct Passes(Waker);
    impl std::task::Wake for Passes {
        fn wake(self: Arc<Self>) {
            self.0.wake_by_ref();
        }
    }
    let (woken, log) = on_sim(async {
        let kept = Rc::new(RefCell::new(None));
        let theirs = kept.clone();
        let waits = poll_fn(move |cx| match theirs.replace(Some(cx.waker().clone())) {
            None => Poll::Pending,
            Some(_) => Poll::Ready(()),
        });
        let mut waiter = spawn("waiter", waits).await;
        yield_now().await.unwrap();
        let foreign = Waker::from(Arc::new(Passes(kept.take().unwrap())));
        kept.replace(Some(Waker::noop().clone()));
        let mut yielded = yield_now();
        assert!(Pin::new(&mut yielded).poll(&mut Context::from_waker(&foreign)).is_pending());
        let woken = waiter.join().await;
        drop(yielded);
        woken
    });
    assert_eq!(woken, Ok(()));
    assert_lines(&log, " 2  #0016   2 main     wake     yield k=2 cause=#0013", 1);
    assert_lines(&log, " 2  #0017   3 waiter   wake     waker cause=#0016", 1);
}

#[test]
fn mains_panic_comes_out_of_run_after_the_shutdown() {
    let mut kernel = sim();
    let cleaned = Rc::new(Cell::new(false));
    let theirs = cleaned.clone();
    let ran = catch_unwind(AssertUnwindSafe(|| {
        kernel.run(async move {
            drop(
                spawn("child", async move {
                    assert!(sleep(secs(9)).await.is_err());
                    theirs.set(true);
                })
                .await,
            );
            yield_now().await.unwrap();
            let scoped = timeout_after(secs(5), async {
                let _filed = join!(sleep(secs(1)), async { panic!("main's own") });
                Ok::<(), Interrupt>(())
            });
            scoped.await.unwrap();
        })
    }));
    assert_eq!(message(ran.unwrap_err()), "main's own");
    assert!(cleaned.get());
    assert!(matches!(kernel.run(async {}), Err(kernel::RunError::Shut)));
    let trace = kernel.end();
    assert_lines(&trace, "main     panic    main's own", 1);
    assert_lines(&trace, "halt", 1);
}

#[test]
fn a_combinator_that_moved_polls_again_the_waits_of_the_task_that_has_ended() {
    let waits = |which: u64| async move {
        match which {
            // The trap of the last poll, which is never dispatched, and a parked wait.
            0 => drop(clock().await),
            _ => drop(sleep(secs(1)).await.unwrap()),
        }
    };
    for which in [0, 1] {
        on_sim(async {
            let mut all = FuturesUnordered::from_iter([Box::pin(waits(which))]);
            let all = Shared::new(async move { all.next().await });
            let theirs = all.clone();
            let polls = async move { assert!(theirs.poll_once().await.is_pending()) };
            spawn("polls", polls).await.join().await.unwrap();
            assert_eq!(all.wait().await, Some(()));
        });
    }
}
