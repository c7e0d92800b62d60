//! The universal queue and event: between tasks, between threads, and between the two.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use kernel::{Kernel, Options, Real, RunError, Sim};
use support::kernels::{assert_lines, on_real, on_sim, poll_once, sim};
use support::{Notes, check, ms, short};
use traps::internal::panic_message;
use traps::universal::{UniversalEvent, UniversalQueue};
use traps::{
    Either, Interrupt, check_cancellation, clock, connection_deadline, current_task, ignore_after,
    race, run_in_thread, sleep, spawn, timeout_after, yield_now,
};

fn full<const N: usize>(items: [u32; N]) -> UniversalQueue<u32> {
    let queue = UniversalQueue::new(N);
    items.into_iter().for_each(|item| queue.try_put(item).unwrap());
    queue
}

/// Takes all that is there.
fn drain(queue: &UniversalQueue<u32>) -> Vec<u32> {
    std::iter::from_fn(|| queue.try_get().ok()).collect()
}

/// As with a thread, which sends before it ends.
#[test]
fn x1_a_message_that_a_scripted_job_sends_at_its_end_wins_against_a_timeout_of_its_turn() {
    let got = Kernel::new(Sim::new().jobs_take(ms(1))).run(async {
        let queue = UniversalQueue::new(1);
        let (theirs, ours) = (queue.clone(), queue);
        let get = async move { timeout_after(ms(1), ours.get()).await };
        let mut getter = spawn("getter", get).await;
        run_in_thread(move || theirs.try_put(7)).await.unwrap().unwrap();
        getter.join().await.unwrap()
    });
    assert_eq!(got.unwrap(), Ok(7));
}

// ---- The queue between tasks -------------------------------------------------------------------

#[test]
fn a_queue_between_tasks() {
    let ran = check("universal_queue_between_tasks", Sim::new(), async {
        let queue = UniversalQueue::new(1);
        let theirs = queue.clone();
        let mut consumer = spawn("consumer", async move {
            let mut got = Vec::new();
            while let Ok(item) = theirs.get().await {
                got.push(item);
            }
            got
        })
        .await;
        for item in 1..=3 {
            queue.put(item).await.unwrap();
        }
        queue.close();
        consumer.join().await.unwrap()
    });
    assert_eq!(ran.output, [1, 2, 3]);
}

#[test]
fn curio_s4_waiters_are_served_first_and_no_task_overtakes() {
    let notes = Notes::default();
    let (queue, theirs) = (UniversalQueue::new(1), notes.clone());
    on_sim(async move {
        for name in ["a", "b", "c"] {
            let (queue, notes) = (queue.clone(), theirs.clone());
            spawn(name, async move {
                let item: u32 = queue.get().await.unwrap();
                notes.add(format!("{name}{item}"));
            })
            .await;
        }
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert_eq!(queue.waiting(), 3);
        queue.try_put(1).unwrap();
        // The item is on its way to `a`, and still counts.
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.try_get(), Err(traps::Error::Empty));
        assert_eq!(queue.try_put(2).unwrap_err().why, traps::Error::Full);
        queue.put(2).await.unwrap();
        queue.put(3).await.unwrap();
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
    assert_eq!(notes.text(), "a1 b2 c3");
}

#[test]
fn curio_s4_puts_get_in_in_the_order_in_which_they_came() {
    let (got, _) = on_sim(async {
        let queue = full([0]);
        for item in 1..=3 {
            let queue = queue.clone();
            spawn("putter", async move { queue.put(item).await.unwrap() }).await;
        }
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert_eq!((queue.len(), queue.waiting()), (1, 3));
        let mut got = Vec::new();
        while got.len() < 4 {
            // The room belongs to the first putter, not to a later one.
            got.push(queue.try_get().unwrap());
            assert!(got.len() == 4 || queue.try_put(9).is_err());
        }
        got
    });
    assert_eq!(got, [0, 1, 2, 3]);
}

#[test]
fn curio_s8_an_item_handed_to_a_get_that_is_cancelled_goes_to_the_next() {
    let ran = check("universal_get_gives_back", Sim::new(), async {
        let queue = UniversalQueue::new(2);
        let mut gets = Vec::new();
        for name in ["first", "second"] {
            let queue = queue.clone();
            gets.push(spawn(name, async move { queue.get().await }).await);
        }
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        // The cancellation is delivered, then the item handed over. The task has not run yet.
        gets[0].cancel_now("too many");
        queue.try_put(7).unwrap();
        let second = gets[1].join().await.unwrap();
        (gets[0].join().await.unwrap().is_err(), second)
    });
    assert_eq!(ran.output, (true, Ok(7)));
}

#[test]
fn curio_s8_an_item_given_back_is_in_its_place_in_the_order() {
    let (got, _) = on_sim(async {
        let queue = UniversalQueue::new(4);
        let mut gets = Vec::new();
        for _ in 0..3 {
            let queue = queue.clone();
            gets.push(spawn("get", async move { queue.get().await }).await);
        }
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        for get in &gets {
            get.cancel_now("all");
        }
        (1..=4).for_each(|item| queue.try_put(item).unwrap());
        // They give items back in this order: the first, the second, the third.
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert_eq!(queue.waiting(), 0);
        drain(&queue)
    });
    assert_eq!(got, [1, 2, 3, 4]);
}

#[test]
fn a_put_that_is_cancelled_gives_its_item_back() {
    let (end, _) = on_sim(async {
        let queue = full([1]);
        let end = timeout_after(ms(1), queue.put(2)).await.unwrap_err();
        assert_eq!(end.item, Some(2));
        assert!(matches!(end.why, traps::Error::Interrupt(_)));
        drain(&queue)
    });
    assert_eq!(end, [1]);
}

#[test]
fn a_put_interrupted_when_its_item_is_in_takes_it_back() {
    let (got, _) = on_sim(async {
        let queue = full([1]);
        let theirs = queue.clone();
        let mut put = spawn("put", async move { theirs.put(2).await }).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        put.cancel_now("no more");
        // This makes room for the put while the interrupt is on its way.
        let first = queue.try_get().unwrap();
        assert_eq!(queue.len(), 1);
        let end = put.join().await.unwrap().unwrap_err();
        (first, end.item, queue.len())
    });
    assert_eq!(got, (1, Some(2), 0));
}

#[test]
fn a_put_interrupted_after_its_item_was_taken_is_done_and_the_interrupt_stays_pending() {
    let (got, trace) = on_sim(async {
        let queue = full([1]);
        let theirs = queue.clone();
        let mut put = spawn("put", async move {
            let end = theirs.put(2).await;
            (end, check_cancellation().await.is_err(), sleep(ms(1)).await.is_ok())
        })
        .await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        put.cancel_now("no more");
        let both = (queue.try_get().unwrap(), queue.try_get().unwrap());
        (both, put.join().await.unwrap())
    });
    assert_eq!(got, ((1, 2), (Ok(()), true, true)));
    assert_lines(&trace, "put      cleanup  root = !cancelled", 1);
    assert_lines(&trace, "put      exit     cancelled", 1);
}

#[test]
fn d7_a_guard_that_wins_against_a_hand_over_leaves_the_item_there() {
    let mut kernel = sim();
    let clock = kernel.machine().clock();
    let end = kernel.go(async move {
        let queue = UniversalQueue::new(1);
        let theirs = queue.clone();
        let mut get = spawn("get", async move {
            let deadline = connection_deadline().await;
            deadline.guard(ms(1), theirs.get()).await
        })
        .await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        clock.advance(ms(300));
        thread::scope(|threads| {
            threads.spawn(|| queue.put_blocking(7).unwrap());
        });
        (get.join().await.unwrap().is_err(), queue.try_get())
    });
    assert_eq!(end, (true, Ok(7)));
    kernel.end();
}

#[test]
fn curio_d12_two_thousand_timed_out_waits_leave_nothing() {
    on_sim(async {
        let queue = UniversalQueue::<u32>::new(1);
        let event = UniversalEvent::new();
        for _ in 0..2_000 {
            assert!(ignore_after(ms(1), queue.get()).await.unwrap().is_none());
            assert!(ignore_after(ms(1), event.wait()).await.unwrap().is_none());
        }
        queue.try_put(1).unwrap();
        for _ in 0..2_000 {
            timeout_after(ms(1), queue.put(2)).await.unwrap_err();
        }
        assert_eq!((queue.waiting(), event.waiting()), (0, 0));
        // Threads too.
        thread::scope(|threads| {
            threads.spawn(|| {
                let span = Duration::from_micros(1);
                for _ in 0..100 {
                    let late = queue.put_blocking_timeout(3, span).unwrap_err();
                    assert_eq!((late.item, late.why), (Some(3), traps::Error::TimedOut));
                    assert!(!event.wait_blocking_timeout(span));
                }
            });
        });
        assert_eq!((queue.waiting(), event.waiting()), (0, 0));
        assert_eq!(drain(&queue), [1]);
    });
}

#[test]
fn a_dropped_get_or_put_was_never_there() {
    on_sim(async {
        let queue = UniversalQueue::new(1);
        let kept = Arc::new(());
        {
            let mut get = Box::pin(queue.get());
            assert!(poll_once(&mut get).await.is_pending());
            // The item is handed over and not taken.
            queue.try_put(kept.clone()).unwrap();
        }
        assert_eq!((queue.len(), queue.waiting()), (1, 0));
        {
            let mut put = Box::pin(queue.put(kept.clone()));
            assert!(poll_once(&mut put).await.is_pending());
        }
        assert_eq!((Arc::strong_count(&kept), queue.waiting()), (2, 0));
        let mut put = Box::pin(queue.put(kept.clone()));
        assert!(poll_once(&mut put).await.is_pending());
        drop(queue.try_get().unwrap());
        // An item that is in the queue stays there, although the put's result is dropped.
        drop(put);
        assert_eq!((queue.len(), Arc::strong_count(&kept)), (1, 2));
        match race(queue.get(), queue.get()).await {
            traps::Either::Left(got) => drop(got.unwrap()),
            traps::Either::Right(_) => panic!("the first is first"),
        }
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
}

#[test]
fn a_closed_queue_returns_its_items_and_then_closed() {
    on_sim(async {
        let queue = full([1, 2]);
        let theirs = queue.clone();
        let mut put = spawn("put", async move { theirs.put(3).await }).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        queue.close();
        queue.close();
        assert!(queue.is_closed());
        let refused = put.join().await.unwrap().unwrap_err();
        assert_eq!((refused.item, refused.why), (Some(3), traps::Error::Closed));
        assert_eq!(queue.put(4).await.unwrap_err().item, Some(4));
        assert_eq!(queue.try_put(5).unwrap_err().why, traps::Error::Closed);
        assert_eq!((queue.get().await, queue.try_get()), (Ok(1), Ok(2)));
        assert_eq!(queue.get().await, Err(traps::Error::Closed));
        assert_eq!(queue.try_get(), Err(traps::Error::Closed));
        assert_eq!(queue.put(6).await.unwrap_err().why, traps::Error::Closed);
    });
}

#[test]
fn a_close_ends_a_get_and_a_put_that_were_polled_before() {
    on_sim(async {
        let queue = UniversalQueue::<u32>::new(1);
        let mut get = queue.get();
        assert!(matches!(race(&mut get, sleep(ms(1))).await, Either::Right(Ok(_))));
        queue.close();
        assert_eq!(get.await, Err(traps::Error::Closed));

        let queue = full([1]);
        let mut put = queue.put(2);
        assert!(matches!(race(&mut put, sleep(ms(1))).await, Either::Right(Ok(_))));
        queue.close();
        assert_eq!(put.await.unwrap_err().item, Some(2));
    });
}

#[test]
fn closed_means_that_no_item_comes_any_more_not_even_one_given_back() {
    let (ends, _) = on_sim(async {
        let queue = UniversalQueue::new(2);
        let mut gets = Vec::new();
        for _ in 0..3 {
            let queue = queue.clone();
            gets.push(spawn("get", async move { queue.get().await }).await);
        }
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        gets[0].cancel_now("no more");
        queue.try_put(1).unwrap();
        queue.close();
        // The first task has the item and will give it back to the second. The third has none.
        let mut ends = Vec::new();
        for get in &mut gets {
            ends.push(get.join().await.unwrap().ok());
        }
        ends
    });
    assert_eq!(ends, [None, Some(1), None]);
}

#[test]
fn a_dropped_kernel_gives_back_the_permits_and_items_of_its_tasks() {
    let queue = UniversalQueue::new(1);
    let mut kernel = Kernel::new(Sim::new());
    let theirs = queue.clone();
    kernel
        .run(async move {
            spawn("get", async move { theirs.get().await }).await;
            yield_now().await.unwrap();
            yield_now().await.unwrap();
        })
        .unwrap();
    // The kernel of the waiter does not run. Its next run would find the item.
    queue.try_put(1).unwrap();
    assert_eq!((queue.waiting(), queue.try_get()), (1, Err(traps::Error::Empty)));
    drop(kernel);
    assert_eq!((queue.waiting(), queue.try_get()), (0, Ok(1)));
}

#[test]
fn a_task_that_never_has_to_wait_yields_when_its_budget_is_spent() {
    let mut kernel = support::kernels::Traced::new(Sim::new(), Options::new().budget(10));
    kernel.go(async {
        let queue = UniversalQueue::new(1);
        for n in 0..40 {
            queue.put(n).await.unwrap();
            queue.get().await.unwrap();
        }
    });
    assert_lines(&kernel.end(), "yielded  budget=10", 7);
}

#[test]
fn a_wait_that_no_event_can_end_is_a_hang_and_named() {
    for (name, what) in [("queue_get", 0), ("queue_put", 1), ("event_wait", 2)] {
        let mut kernel = Kernel::new(Sim::new());
        let hang = kernel.run(async move {
            let queue = full([1]);
            match what {
                0 => drop(UniversalQueue::<u32>::new(1).get().await),
                1 => drop(queue.put(2).await),
                _ => drop(UniversalEvent::new().wait().await),
            }
        });
        match hang {
            Err(RunError::Hang(report)) => {
                let wanted = format!(" main parked {name} ");
                assert!(report.contains(&wanted), "{report}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_task_may_not_block_its_kernels_thread() {
    let (said, _) = on_sim(async {
        let queue = UniversalQueue::<u32>::new(1);
        let event = UniversalEvent::new();
        let calls: [&dyn Fn(); 3] =
            [&|| drop(queue.get_blocking()), &|| drop(queue.put_blocking(1)), &|| {
                event.wait_blocking()
            }];
        calls.map(|call| {
            let panic = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
            panic_message(&*panic).to_owned()
        })
    });
    for said in said {
        assert!(said.starts_with("rule: a task does not block"), "{said}");
    }
}

#[test]
fn a_scripted_job_may_block_as_long_as_it_need_not_wait() {
    let mut kernel = support::kernels::Traced::new(Sim::new().jobs_take(ms(1)), Options::new());
    let ends = kernel.go(async {
        let queue = UniversalQueue::new(1);
        let (one, two) = (queue.clone(), queue.clone());
        let first = traps::run_in_thread(move || one.put_blocking(1).is_ok()).await;
        let second = traps::run_in_thread(move || two.put_blocking(2).is_ok()).await;
        (first.unwrap(), second.unwrap_err().to_string())
    });
    assert!(ends.0);
    assert!(ends.1.contains("rule: a thread does not block while a kernel runs"), "{}", ends.1);
    kernel.end();
}

/// However a program is interrupted, each item is with a task that got it, in the queue, or in the
/// error of its put.
#[test]
fn no_interrupt_anywhere_loses_an_item_or_makes_two_of_it() {
    type Books = Arc<Mutex<Vec<u32>>>;
    type Run = (UniversalQueue<u32>, Books);
    async fn program(queue: UniversalQueue<u32>, books: Books) {
        let mut tasks = Vec::new();
        for first in [1, 4] {
            let (queue, books) = (queue.clone(), books.clone());
            let put = async move {
                for item in first..first + 3 {
                    if let Err(traps::Rejected { item, .. }) = queue.put(item).await {
                        books.lock().unwrap().push(item.expect("it comes back"));
                    }
                }
            };
            tasks.push(spawn("put", put).await);
        }
        for _ in 0..2 {
            let (queue, books) = (queue.clone(), books.clone());
            let get = async move {
                while let Ok(item) = queue.get().await {
                    books.lock().unwrap().push(item);
                }
            };
            tasks.push(spawn("get", get).await);
        }
        let _ = sleep(ms(1)).await;
        for task in &mut tasks[..2] {
            let _ = task.join().await;
        }
        queue.close();
        let _ = sleep(ms(1)).await;
    }
    let books: Arc<Mutex<VecDeque<Run>>> = Arc::default();
    let theirs = books.clone();
    let sweep = testing::sweep(move || {
        let fresh = (UniversalQueue::new(1), Books::default());
        theirs.lock().unwrap().push_back(fresh.clone());
        (Sim::new(), program(fresh.0, fresh.1))
    });
    sweep.run();
    let books = books.lock().unwrap();
    assert!(books.len() > 30, "{} runs", books.len());
    for (queue, book) in books.iter() {
        let mut items = book.lock().unwrap().clone();
        items.extend(drain(queue));
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
        items.sort_unstable();
        assert_eq!(items, [1, 2, 3, 4, 5, 6]);
    }
}

// ---- The event ---------------------------------------------------------------------------------

#[test]
fn an_event_between_tasks() {
    check("universal_event_between_tasks", Sim::new(), async {
        let event = UniversalEvent::new();
        let mut tasks = Vec::new();
        for name in ["a", "b"] {
            let event = event.clone();
            tasks.push(spawn(name, async move { event.wait().await }).await);
        }
        sleep(ms(1)).await.unwrap();
        event.set();
        // The waiters are woken, whatever happens to the flag.
        event.clear();
        for task in &mut tasks {
            task.join().await.unwrap().unwrap();
        }
        assert!(!event.is_set());
    });
}

#[test]
fn an_event_may_be_set_twice_and_after_a_waiter_gave_up() {
    let (ends, _) = on_sim(async {
        let event = UniversalEvent::new();
        // Curio's issues #350 and #352.
        event.set();
        event.set();
        event.wait().await.unwrap();
        event.clear();
        let gone = timeout_after(ms(1), event.wait()).await;
        event.set();
        event.set();
        let after = event.wait().await;
        (short(&gone), after, clock().await.as_micros())
    });
    assert_eq!(ends, ("TT", Ok(()), 1_000));
}

#[test]
fn waiters_that_give_up_while_it_is_set_disturb_no_other_task() {
    // Curio's issue #375: a discard races with a set.
    on_real(async {
        for _ in 0..200 {
            let event = UniversalEvent::new();
            let setter = event.clone();
            let thread = thread::spawn(move || setter.set());
            let mut patient = Vec::new();
            for n in 0..8 {
                let event = event.clone();
                patient.push(
                    spawn("waiter", async move {
                        if n % 2 == 0 {
                            let span = Duration::from_micros(n);
                            let _ = timeout_after(span, event.wait()).await;
                            Ok(())
                        } else {
                            event.wait().await
                        }
                    })
                    .await,
                );
            }
            for task in &mut patient {
                task.join().await.unwrap().unwrap();
            }
            thread.join().unwrap();
            assert_eq!(event.waiting(), 0);
        }
    });
}

// ---- Between tasks and threads -----------------------------------------------------------------

#[test]
fn a_queue_and_an_event_in_both_directions_on_the_virtual_clock() {
    let (end, _) = on_sim(async {
        let (questions, answers) = (UniversalQueue::new(1), UniversalQueue::new(1));
        let over = UniversalEvent::new();
        let (theirs, ours) = (questions.clone(), answers.clone());
        let (asked, ended) = (over.clone(), UniversalEvent::new());
        let finished = ended.clone();
        let thread = thread::spawn(move || {
            while let Ok(n) = theirs.get_blocking() {
                ours.put_blocking(n * n).unwrap();
            }
            asked.wait_blocking();
            finished.set();
        });
        let mut sum = 0;
        for n in 1..=10_u64 {
            questions.put(n).external().await.unwrap();
            sum += timeout_after(ms(1), answers.get().external()).await.unwrap();
        }
        questions.close();
        over.set();
        ended.wait().external().await.unwrap();
        thread.join().unwrap();
        (sum, clock().await.as_micros())
    });
    assert_eq!(end, (385, 0));
}

#[test]
fn tasks_and_threads_stand_in_one_line() {
    let queue = UniversalQueue::new(4);
    let (queue, got) = (&queue, &Mutex::new(Vec::new()));
    thread::scope(|threads| {
        on_real(async move {
            // A thread, a task, a thread, a task: each joins once its predecessor is in the queue.
            for n in 0..4_usize {
                while queue.waiting() < n {
                    yield_now().await.unwrap();
                }
                if n % 2 == 0 {
                    threads.spawn(move || {
                        let item: usize = queue.get_blocking().unwrap();
                        got.lock().unwrap().push((n, item));
                    });
                } else {
                    let queue = queue.clone();
                    spawn("get", async move {
                        let item = queue.get().await.unwrap();
                        // The queue was closed by then, and returned each put its own item.
                        assert_eq!(item, n);
                    })
                    .await;
                }
            }
            while queue.waiting() < 4 {
                yield_now().await.unwrap();
            }
            (0..4).for_each(|n| queue.try_put(n).unwrap());
            while !queue.is_empty() {
                yield_now().await.unwrap();
            }
        });
    });
    let mut got = got.lock().unwrap().clone();
    got.sort_unstable();
    assert_eq!(got, [(0, 0), (2, 2)]);
}

#[test]
fn a_thread_that_gives_up_passes_its_item_on() {
    // The item and the end of the span race. In the end, the item exists once.
    let queue = UniversalQueue::new(1);
    for n in 0..2_000_u32 {
        let theirs = queue.clone();
        let thread = thread::spawn(move || {
            theirs.get_blocking_timeout(Duration::from_micros(u64::from(n % 60))).ok()
        });
        queue.put_blocking(n).unwrap();
        let got = thread.join().unwrap();
        assert_eq!(got.or_else(|| queue.try_get().ok()), Some(n));
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    }
}

/// A generator that is the same everywhere (splitmix64).
struct Dice(u64);

/// Whether a thread or task waits as long as it takes, or sometimes gives up.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Patient,
    Hasty,
}

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn micros(&mut self) -> Duration {
        Duration::from_micros(self.roll(80))
    }

    /// Returns the number of a way to wait. The first way is to wait to the end.
    fn way(&mut self, mood: Mood) -> u64 {
        if mood == Mood::Patient { 0 } else { self.roll(3) }
    }
}

const ITEMS: u64 = 4_000;

type Queue = UniversalQueue<(u64, u64)>;

/// Puts `(who, 0..ITEMS)` from a thread that sometimes gives up.
fn put_from_a_thread(queue: &Queue, who: u64, mood: Mood) -> thread::JoinHandle<()> {
    let (queue, mut dice) = (queue.clone(), Dice(who));
    thread::spawn(move || {
        for n in 0..ITEMS {
            let mut item = (who, n);
            while let Err(late) = match dice.way(mood) {
                0 => queue.put_blocking(item),
                _ => queue.put_blocking_timeout(item, dice.micros()),
            } {
                assert_eq!(late.why, traps::Error::TimedOut);
                item = late.item.unwrap();
            }
        }
    })
}

fn get_in_a_thread(queue: &Queue, seed: u64, mood: Mood) -> thread::JoinHandle<Vec<(u64, u64)>> {
    let (queue, mut dice) = (queue.clone(), Dice(seed));
    thread::spawn(move || {
        let mut got = Vec::new();
        loop {
            match match dice.way(mood) {
                0 => queue.get_blocking(),
                _ => queue.get_blocking_timeout(dice.micros()),
            } {
                Ok(item) => got.push(item),
                Err(traps::Error::TimedOut) => {}
                Err(_) => return got,
            }
        }
    })
}

async fn put_from_a_task(queue: Queue, who: u64, mood: Mood) {
    let mut dice = Dice(who);
    for n in 0..ITEMS {
        let mut item = (who, n);
        while let Err(late) = match dice.way(mood) {
            0 => queue.put(item).await,
            _ => timeout_after(dice.micros(), queue.put(item)).await,
        } {
            // The span may be over before the put is polled. Then the error has no item.
            item = late.item.unwrap_or((who, n));
        }
    }
}

async fn get_in_a_task(queue: Queue, seed: u64, mood: Mood) -> Vec<(u64, u64)> {
    let (mut dice, mut got) = (Dice(seed), Vec::new());
    loop {
        let end = match dice.way(mood) {
            0 => queue.get().await,
            1 => timeout_after(dice.micros(), queue.get()).await,
            _ => {
                // Gets in a new task, which is cancelled when it may have been handed an item.
                let theirs = queue.clone();
                let mut child = spawn("child", async move { theirs.get().await }).await;
                let _ = ignore_after(dice.micros(), child.wait()).await;
                child.cancel_because("hammer").await.unwrap();
                child.join().await.unwrap()
            }
        };
        match end {
            Ok(item) => got.push(item),
            Err(traps::Error::Interrupt(_)) => {}
            Err(_) => return got,
        }
    }
}

/// Two threads and two tasks put, and two threads and two tasks get. Returns the items of each.
fn hammer(mood: Mood) -> Vec<Vec<(u64, u64)>> {
    let mut kernel = Kernel::new(kernel::Real::new().unwrap());
    let got = kernel.run(async {
        let queue = UniversalQueue::new(3);
        let threads = [put_from_a_thread(&queue, 0, mood), put_from_a_thread(&queue, 1, mood)];
        let takers = [get_in_a_thread(&queue, 7, mood), get_in_a_thread(&queue, 8, mood)];
        let (mut putters, mut getters) = (Vec::new(), Vec::new());
        for who in [2, 3] {
            putters.push(spawn("put", put_from_a_task(queue.clone(), who, mood)).await);
        }
        for seed in [9, 10] {
            getters.push(spawn("get", get_in_a_task(queue.clone(), seed, mood)).await);
        }
        for putter in &mut putters {
            putter.join().await.unwrap();
        }
        let joined = || threads.into_iter().for_each(|thread| thread.join().unwrap());
        traps::run_in_thread(joined).await.unwrap();
        queue.close();
        let mut got = Vec::new();
        for getter in &mut getters {
            got.push(getter.join().await.unwrap());
        }
        got.extend(takers.map(|thread| thread.join().unwrap()));
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
        got
    });
    kernel.shutdown().unwrap();
    got.unwrap()
}

#[track_caller]
fn assert_each_once(got: &[Vec<(u64, u64)>]) {
    let mut all: Vec<(u64, u64)> = got.concat();
    all.sort_unstable();
    let wanted: Vec<(u64, u64)> =
        (0..4).flat_map(|who| (0..ITEMS).map(move |n| (who, n))).collect();
    assert!(all == wanted, "{} of {} items", all.len(), wanted.len());
}

#[test]
fn hammered_from_both_sides_no_item_is_lost_and_none_comes_twice() {
    assert_each_once(&hammer(Mood::Hasty));
}

#[test]
fn if_no_side_gives_up_each_getter_sees_the_items_of_each_putter_in_order() {
    let got = hammer(Mood::Patient);
    assert_each_once(&got);
    for of_one in got {
        let mut last = [None; 4];
        for (who, n) in of_one {
            let last = &mut last[who as usize];
            assert!(last.is_none_or(|last| last < n), "{n} of {who} came out of order");
            *last = Some(n);
        }
    }
}

#[test]
fn two_kernels_talk_through_a_queue() {
    let (there, back) = (UniversalQueue::new(2), UniversalQueue::new(2));
    let (theirs, ours) = (there.clone(), back.clone());
    let thread = thread::spawn(move || {
        on_real(async move {
            while let Ok(n) = theirs.get().await {
                ours.put(n + 1_u64).await.unwrap();
            }
            ours.close();
        });
    });
    let (sum, _) = on_real(async move {
        let mut sum = 0;
        for n in 0..500 {
            there.put(n).await.unwrap();
            sum += back.get().await.unwrap();
        }
        there.close();
        assert_eq!(back.get().await, Err(traps::Error::Closed));
        sum
    });
    thread.join().unwrap();
    assert_eq!(sum, (1..=500).sum());
}

#[test]
fn an_error_distinguishes_an_interrupt_from_other_errors() {
    on_sim(async {
        let queue = UniversalQueue::<u32>::new(1);
        let boxed: Result<u32, Box<dyn std::error::Error>> =
            timeout_after(ms(1), async { Ok(queue.get().await?) }).await;
        let io: std::io::Result<u32> = timeout_after(ms(1), async { Ok(queue.get().await?) }).await;
        assert!(boxed.is_err());
        assert_eq!(io.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(queue.get().now_or_never_in_a_task().await, None);
        let _ = current_task();
    });
}

/// Polls once and drops.
trait OnceInATask: Future + Sized {
    async fn now_or_never_in_a_task(self) -> Option<Self::Output> {
        let mut future = Box::pin(self.fuse());
        match poll_once(&mut future).await {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }
}

impl<F: Future> OnceInATask for F {}

#[test]
fn the_shared_types_are_send_and_sync() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<UniversalQueue<std::cell::Cell<u8>>>();
    shared::<UniversalEvent>();
    shared::<traps::OutsideWaker>();
    shared::<kernel::Remote>();
    let (sender, receiver) = mpsc::channel::<UniversalQueue<u8>>();
    sender.send(UniversalQueue::new(1)).unwrap();
    receiver.recv().unwrap().close();
}

/// An observer that buffers lines writes them when the kernel is about to sleep, perhaps to a task.
#[test]
fn a_task_woken_as_the_kernel_is_about_to_sleep_runs_before_the_sleep() {
    struct Hook(UniversalQueue<u32>, bool);
    impl kernel::Activation for Hook {
        fn event(&mut self, _: &kernel::trace::Line<'_>) {}
        fn idle(&mut self) {
            if !std::mem::replace(&mut self.1, true) {
                self.0.try_put(7).unwrap();
            }
        }
    }
    let queue = UniversalQueue::new(4);
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel.observe(Hook(queue.clone(), false));
    let got = kernel.run(async move {
        // In its own turn the deadline wins, so the test fails if the kernel sleeps.
        let deadline = connection_deadline().await;
        let secs = Duration::from_secs(60);
        let got = async { Ok::<_, Interrupt>(queue.get().await.unwrap()) };
        deadline.guard(secs, got).await
    });
    assert_eq!(got.unwrap(), Ok(7));
}

/// The item is reserved for a get that was in the queue before, and has not run yet.
#[test]
fn a_put_interrupted_when_its_item_is_reserved_is_done() {
    let (got, _) = on_sim(async {
        let queue = UniversalQueue::new(1);
        let get = || {
            let queue = queue.clone();
            async move { queue.get().await }
        };
        let mut first = spawn("first", get()).await;
        let mut second = spawn("second", get()).await;
        yield_now().await.unwrap();
        assert_eq!(queue.waiting(), 2);
        queue.try_put(1).unwrap();
        // The put waits for room. The first get makes room in the turn in which the put times out.
        let put = timeout_after(Duration::ZERO, queue.put(2)).await;
        let gets = [first.join().await.unwrap(), second.join().await.unwrap()];
        (put.is_ok(), gets)
    });
    assert_eq!(got, (true, [Ok(1), Ok(2)]));
}
