//! Tasks: spawn, join, cancel, their ends, the shutdown, runs one after the other, the budget.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use kernel::{Kernel, Options, Real, RunError, Sim};
use support::kernels::*;
use traps::io::{Io, Scripted};
use traps::{
    Interrupt, Kind, Signal, Task, TaskGroup, TaskLocal, Time, WaitQueue, budget, clock,
    current_task, foreign, shield, sleep, spawn, timeout_after, wait_signal, yield_now,
};

fn at(seconds: u64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

// ---- Spawn and join ----------------------------------------------------------------------------

#[test]
fn a_child_first_runs_in_the_next_turn_and_its_parent_continues() {
    let (order, _) = on_sim(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let mut tasks = Vec::new();
        for name in ["a", "b", "c"] {
            let theirs = order.clone();
            tasks.push(spawn(name, async move { theirs.borrow_mut().push(name) }).await);
            order.borrow_mut().push("parent");
        }
        for task in &mut tasks {
            task.join().await.unwrap();
        }
        order.take()
    });
    assert_eq!(order, ["parent", "parent", "parent", "a", "b", "c"]);
}

#[test]
fn numbers_of_tasks_are_dense_and_never_used_twice() {
    let (numbers, _) = on_sim(async {
        let mut numbers = vec![current_task().0];
        for _ in 0..4 {
            let mut child = spawn("child", async { current_task() }).await;
            assert_eq!(child.join().await, Ok(child.id()));
            numbers.push(child.id().0);
        }
        numbers
    });
    assert_eq!(numbers, [2, 3, 4, 5, 6]);
}

#[test]
fn many_joiners_are_served_first_in_first_out_and_one_has_the_output() {
    let (order, trace) = on_sim(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let slow = Rc::new(
            spawn("slow", async {
                sleep(secs(1)).await.unwrap();
                String::from("output")
            })
            .await,
        );
        let mut waiters = Vec::new();
        for n in 0..4 {
            let (slow, order) = (slow.clone(), order.clone());
            waiters.push(
                spawn("waiter", async move {
                    slow.wait().await.unwrap();
                    order.borrow_mut().push(n);
                })
                .await,
            );
        }
        for waiter in &mut waiters {
            waiter.join().await.unwrap();
        }
        drop(waiters);
        let mut slow = Rc::try_unwrap(slow).unwrap();
        assert_eq!(slow.join().await, Ok(String::from("output")));
        assert_eq!(slow.join().await, Err(traps::Error::Taken));
        slow.wait().await.unwrap();
        order.take()
    });
    assert_eq!(order, [0, 1, 2, 3]);
    assert_lines(&trace, "wake     join 3", 4);
    assert_lines(&trace, "main     join     3", 1);
}

#[test]
fn an_unwanted_output_is_dropped_with_the_last_of_task_and_handle() {
    let drops = Rc::new(Cell::new(0));
    let output = |drops: &Rc<Cell<u32>>| {
        let drops = drops.clone();
        async move { OnDrop(move || drops.set(drops.get() + 1)) }
    };
    on_sim(async {
        drop(spawn("detached first", output(&drops)).await);
        sleep(secs(1)).await.unwrap();
        assert_eq!(drops.get(), 1, "at its end");
        let task = spawn("ended first", output(&drops)).await;
        sleep(secs(1)).await.unwrap();
        assert_eq!(drops.get(), 1, "somebody may join it");
        drop(task);
        yield_now().await.unwrap();
        assert_eq!(drops.get(), 2);
    });
}

/// The kernel forgets a task whose output was taken. The handle then names no other task.
#[test]
fn a_handle_whose_output_was_taken_names_no_later_task() {
    let (ends, trace) = on_sim(async {
        let mut ends = Vec::new();
        for waits in [true, false] {
            let mut first = spawn("first", async { "output" }).await;
            if waits {
                yield_now().await.unwrap();
            }
            ends.push(first.join().await);
            let mut second = spawn("second", async { "another" }).await;
            ends.push(first.join().await);
            first.wait().await.unwrap();
            first.cancel_because("late").await.unwrap();
            drop(first);
            // A task whose handle was dropped keeps no output.
            yield_now().await.unwrap();
            ends.push(second.join().await);
        }
        ends
    });
    let each = || [Ok("output"), Err(traps::Error::Taken), Ok("another")];
    assert_eq!(ends, [each(), each()].into_iter().flatten().collect::<Vec<_>>());
    assert!(!trace.contains("second  cancel"), "{trace}");
}

/// Also by a join that was given up when the output was ready. The handle then has the output.
#[test]
fn an_output_that_came_for_a_join_that_was_given_up_is_there_for_the_next() {
    let (ends, _) = on_sim(async {
        let mut task = spawn("task", async { "output" }).await;
        {
            let mut given_up = Box::pin(task.join());
            assert!(poll_fn(|cx| Poll::Ready(given_up.as_mut().poll(cx).is_pending())).await);
            yield_now().await.unwrap();
            yield_now().await.unwrap();
        }
        [task.join().await, task.join().await]
    });
    assert_eq!(ends, [Ok("output"), Err(traps::Error::Taken)]);
}

#[test]
fn a_task_spawned_detached_is_one_whose_handle_was_dropped_line_by_line() {
    let live = |drops: Rc<Cell<u32>>, panics: bool| async move {
        let output = OnDrop(move || drops.set(drops.get() + 1));
        sleep(secs(1)).await.unwrap();
        assert!(!panics, "on purpose");
        output
    };
    let run = |detached: bool| {
        let drops = Rc::new(Cell::new(0));
        let ((), trace) = on_sim(async {
            for panics in [false, true, false] {
                let spawned = spawn("child", live(drops.clone(), panics));
                match detached {
                    true => spawned.detached().await,
                    false => drop(spawned.await),
                }
            }
            sleep(secs(2)).await.unwrap();
        });
        // All three tasks are gone, and so are their outputs.
        assert_eq!(drops.get(), 3);
        let lines = trace.lines().map(|line| line.split(" at=").next().unwrap().to_owned());
        let (told, lines): (Vec<_>, Vec<_>) = lines.partition(|line| line.contains(" warn "));
        // Compare the lines without numbers, because a warning has a number, too.
        let words = |line: String| -> Vec<String> {
            line.split(' ').filter(|word| !word.contains('#')).map(str::to_owned).collect()
        };
        (told.len(), lines.into_iter().map(words).collect::<Vec<_>>())
    };
    let (detached, dropped) = (run(true), run(false));
    assert_eq!((detached.0, dropped.0), (0, 3));
    assert_eq!(detached.1, dropped.1);
}

/// A value that panics when it is dropped.
struct Bad;

impl Drop for Bad {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

static LOCAL: TaskLocal<Bad> = TaskLocal::new();

/// The ways in which a task leaves a value whose drop panics, and the name of the value.
const LEAVES: [(&str, &str); 9] = [
    ("detached", "output"),
    ("its handle is dropped before its end", "output"),
    ("its handle is dropped after its end", "output"),
    ("its join is dropped unread", "output"),
    ("its group is dropped", "output"),
    ("its group fails", "output"),
    ("its group has enough", "output"),
    ("it is dropped", "future"),
    ("it has a local", "local"),
];

async fn leave(way: &str) {
    let ends = || async {
        yield_now().await.unwrap();
        Bad
    };
    let member = async { Ok::<_, traps::Error>(Bad) };
    let mut group = TaskGroup::new();
    match way {
        "detached" => spawn("bad", ends()).detached().await,
        "its handle is dropped before its end" => drop(spawn("bad", ends()).await),
        "its handle is dropped after its end" => {
            let task = spawn("bad", ends()).await;
            task.wait().await.unwrap();
            drop(task);
        }
        "its join is dropped unread" => {
            let mut task = spawn("bad", ends()).await;
            assert!(poll_once(&mut task.join()).await.is_pending());
            sleep(secs(1)).await.unwrap();
        }
        "its group is dropped" => {
            group.spawn("bad", member).await;
            assert!(group.next_done().await.unwrap().is_some());
        }
        "its group fails" => {
            group.spawn("bad", member).await;
            group.spawn("fails", async { Err(traps::Error::Empty) }).await;
            assert!(group.join().await.is_err());
        }
        "its group has enough" => {
            group.spawn("other", member).await;
            group.spawn("bad", async move { Ok(ends().await) }).await;
            sleep(secs(1)).await.unwrap();
            std::mem::forget(group.join_any().await.unwrap());
        }
        "it is dropped" => {
            let stays = async {
                let _bad = Bad;
                never::<()>().await;
            };
            let stays = async {
                stays.await;
                Ok::<_, traps::Error>(Bad)
            };
            let mut group = group.grace(secs(1));
            group.spawn("bad", stays).await;
            group.cancel_remaining("enough").await;
        }
        "it has a local" => {
            let sets = async { drop(LOCAL.set(Bad)) };
            spawn("bad", sets).await.join().await.unwrap();
        }
        _ => unreachable!("{way}"),
    }
}

#[test]
fn a_panic_in_the_drop_of_a_tasks_leftovers_is_a_warn_line_and_ends_no_other_task() {
    for (way, what) in LEAVES {
        let (goes_on, trace) = on_sim(async move {
            let mut dropper = spawn("dropper", leave(way)).await;
            let end = dropper.join().await;
            sleep(secs(2)).await.unwrap();
            end
        });
        assert_eq!(goes_on, Ok(()), "{way}\n{trace}");
        let bad = trace.lines().find(|line| line.contains("bad      spawn")).unwrap();
        let number = bad.split_whitespace().nth(3).unwrap();
        let text = format!("the drop of the {what} of task {number} panicked: on purpose");
        assert_lines(&trace, &text, 1);
        assert_lines(&trace, " panic ", 0);
    }
}

#[test]
fn a_detached_spawn_has_its_place_among_the_traps_and_posts_of_its_poll() {
    let ((), trace) = on_sim(async {
        let queue = WaitQueue::new();
        let waits = queue.clone();
        spawn("waits", async move { waits.wait().await.unwrap() }).detached().await;
        yield_now().await.unwrap();
        let mut first = Box::pin(sleep(secs(1)));
        let _ = poll_once(&mut first).await;
        spawn("second", async {}).detached().await;
        queue.wake(1);
        spawn("third", async {}).detached().await;
        sleep(secs(2)).await.unwrap();
    });
    let lines = ["await    sleep 1s", "trap     spawn second", "wake     ", "trap     spawn third"];
    let first = trace.find(lines[0]).expect("it sleeps");
    let places = lines.map(|line| trace[first..].find(line).expect("it is there"));
    assert!(places.is_sorted(), "{places:?} {trace}");
}

#[test]
fn a_task_outlives_its_parent() {
    let (end, trace) = on_sim(async {
        let mut parent = spawn("parent", async {
            spawn("child", async { sleep(secs(2)).await.map(|_| "alive") }).await
        })
        .await;
        let mut child: Task<_> = parent.join().await.unwrap();
        drop(parent);
        child.join().await.unwrap()
    });
    assert_eq!(end, Ok("alive"));
    assert_lines(&trace, "spawn    parent=3", 1);
}

// ---- Cancel ------------------------------------------------------------------------------------

#[test]
fn the_four_ends_of_a_task() {
    let mut kernel = sim();
    kernel.go(async {
        let mut ok = spawn("ok", async { 1 }).await;
        let mut panics = spawn("panics", async { panic!("p") }).await;
        let cancelled = spawn("cancelled", sleep(secs(9))).await;
        drop(spawn("dropped", never::<()>()).await);
        yield_now().await.unwrap();
        cancelled.cancel_because("why not").await.unwrap();
        assert_eq!(ok.join().await, Ok(1));
        let end: Result<(), _> = panics.join().await;
        assert_eq!(end, Err(traps::Error::Panicked("p".into())));
    });
    let trace = kernel.end();
    for (name, how) in
        [("ok", "ok"), ("panics", "panic"), ("cancelle", "cancelled"), ("dropped", "dropped")]
    {
        let line = trace.lines().find(|line| {
            let mut words = line.split_whitespace().skip(4);
            words.next().is_some_and(|word| word.starts_with(name)) && words.next() == Some("exit")
        });
        let line = line.unwrap_or_else(|| panic!("no exit of {name}\n{trace}"));
        assert!(line.contains(&format!("exit     {how} ")), "{line}");
    }
}

#[test]
fn cancel_names_the_canceller_and_the_reason_and_waits_for_the_clean_up() {
    let (end, trace) = on_sim(async {
        let mut child = spawn("child", async {
            let why = sleep(secs(9)).await.unwrap_err();
            sleep(secs(2)).await.unwrap(); // clean-up may await after the interrupt
            (why.by().map(|task| task.0), why.reason(), why.reading())
        })
        .await;
        sleep(secs(1)).await.unwrap();
        child.cancel_because("closing time").await.unwrap();
        assert_eq!(clock().await, at(3));
        child.join().await
    });
    assert_eq!(end, Ok((Some(2), "closing time", at(1))));
    assert_lines(&trace, "cancel   by=2 reason=closing_time", 1);
    assert_lines(&trace, "exit     cancelled", 1);
}

#[test]
fn a_task_is_cancelled_once() {
    let (end, trace) = on_sim(async {
        let mut child = spawn("child", async {
            let first = sleep(secs(9)).await.is_err();
            (first, sleep(secs(9)).await)
        })
        .await;
        sleep(secs(1)).await.unwrap();
        child.cancel_now("one");
        child.cancel_now("two");
        sleep(secs(1)).await.unwrap();
        child.cancel_because("three").await.unwrap();
        // The child has ended, so the call does nothing.
        child.cancel_because("four").await.unwrap();
        child.join().await
    });
    assert_eq!(end, Ok((true, Ok(at(10)))));
    assert!(!trace.contains("reason=four"), "{trace}");
    for (effect, n) in [("= delivered", 1), ("= again", 2)] {
        assert_lines(&trace, effect, n);
    }
}

#[test]
fn a_cancellation_before_the_first_run_hits_the_first_blocking_trap() {
    let (end, trace) = on_sim(async {
        let mut child = spawn("child", async {
            clock().await; // no wait, so it cannot be interrupted
            let never_done = sleep(secs(9)).await;
            never_done.map_err(|why| why.kind())
        })
        .await;
        child.cancel_because("at once").await.unwrap();
        child.join().await
    });
    assert_eq!(end, Ok(Err(Kind::Cancelled)));
    assert_lines(&trace, "= pending", 1);
}

#[test]
fn a_task_can_cancel_itself_and_two_can_cancel_each_other() {
    let (ends, _) = on_sim(async {
        let slot: Rc<RefCell<Option<Task<bool>>>> = Rc::default();
        let theirs = slot.clone();
        let task = spawn("selfish", async move {
            yield_now().await.unwrap();
            let me = theirs.borrow_mut().take().unwrap();
            me.cancel_now("myself");
            sleep(secs(1)).await.is_err()
        })
        .await;
        *slot.borrow_mut() = Some(task);

        let other: Rc<RefCell<Option<Task<bool>>>> = Rc::default();
        let theirs = other.clone();
        let mut first = spawn("first", async move {
            sleep(secs(1)).await.unwrap();
            let second = theirs.borrow_mut().take().unwrap();
            // It waits for the end of a task that waits for its own end.
            second.cancel_because("you first").await.is_err()
        })
        .await;
        sleep(tenths(1)).await.unwrap();
        let handle = Rc::new(RefCell::new(None));
        let theirs = handle.clone();
        let second = spawn("second", async move {
            let hit = sleep(secs(9)).await.is_err();
            let first: Task<bool> = theirs.borrow_mut().take().unwrap();
            first.cancel_because("no, you").await.unwrap();
            hit
        })
        .await;
        *other.borrow_mut() = Some(second);
        let waited = timeout_after(tenths(5), first.join()).await;
        assert!(matches!(waited, Err(traps::Error::Interrupt(_))));
        *handle.borrow_mut() = Some(first);
        sleep(secs(5)).await
    });
    assert_eq!(ends, Ok(Time::from_micros(5_600_000)));
}

#[test]
fn a_shield_delays_a_cancellation_to_the_first_trap_after_it() {
    let (end, trace) = on_sim(async {
        let mut child = spawn("child", async {
            let inside = shield(sleep(secs(3))).await;
            (inside, sleep(secs(9)).await.map_err(|why| why.reading()))
        })
        .await;
        sleep(secs(1)).await.unwrap();
        child.cancel_because("shielded").await.unwrap();
        child.join().await
    });
    assert_eq!(end, Ok((Ok(at(3)), Err(at(3)))), "{trace}");
}

// ---- Shutdown ----------------------------------------------------------------------------------

#[test]
fn shutdown_cancels_newest_first_and_awaits_clean_up() {
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut kernel = sim();
    kernel.go(async {
        for n in 0..4_u64 {
            let order = order.clone();
            drop(
                spawn("task", async move {
                    let why = sleep(secs(99)).await.unwrap_err();
                    assert_eq!((why.by(), why.reason()), (None, "shutdown"));
                    order.borrow_mut().push(n);
                    sleep(secs(1)).await.unwrap();
                    order.borrow_mut().push(10 + n);
                })
                .await,
            );
        }
        yield_now().await.unwrap();
    });
    let trace = kernel.end();
    assert_eq!(order.take(), [3, 2, 1, 0, 13, 12, 11, 10]);
    let turn = |line: &str| line.split_whitespace().nth(1).map(str::to_owned);
    let mut turns: Vec<_> =
        trace.lines().filter(|l| l.contains(" cancel   by=")).map(turn).collect();
    turns.dedup();
    assert_eq!(turns.len(), 1, "all are cancelled in one turn\n{trace}");
    assert_lines(&trace, "phase    cancel tasks=4", 1);
    assert_lines(&trace, "exit     cancelled", 4);
    assert_lines(&trace, "fire     grace", 0);
}

#[test]
fn tasks_spawned_by_clean_up_are_cancelled_in_their_turn() {
    let mut kernel = sim();
    let depth = Rc::new(Cell::new(0));
    async fn cleaner(depth: Rc<Cell<u32>>) {
        assert!(sleep(secs(99)).await.is_err());
        depth.set(depth.get() + 1);
        if depth.get() < 5 {
            let next: std::pin::Pin<Box<dyn Future<Output = ()>>> =
                Box::pin(cleaner(depth.clone()));
            drop(spawn("cleaner", next).await);
        }
    }
    kernel.go(async {
        drop(spawn("cleaner", cleaner(depth.clone())).await);
        yield_now().await.unwrap();
    });
    let trace = kernel.end();
    assert_eq!(depth.get(), 5);
    assert_lines(&trace, "exit     cancelled", 5);
}

#[test]
fn a_task_that_swallows_the_cancellation_is_dropped_when_the_common_grace_is_over() {
    let order = Rc::new(RefCell::new(Vec::new()));
    let mut kernel = Traced::new(Sim::new(), Options::new().grace(secs(2)));
    let clock_of = kernel.machine().clock();
    kernel.go(async {
        for n in 0..3 {
            let (order, clock) = (order.clone(), clock_of.clone());
            drop(
                spawn("stubborn", async move {
                    let _guard = OnDrop(move || order.borrow_mut().push((n, clock.now())));
                    loop {
                        let _ = sleep(secs(60)).await;
                    }
                })
                .await,
            );
        }
        yield_now().await.unwrap();
    });
    let trace = kernel.end();
    assert_eq!(order.take(), [(2, at(2)), (1, at(2)), (0, at(2))]);
    assert_lines(&trace, "exit     dropped", 3);
    assert_lines(&trace, "phase    drop tasks=3", 1);
}

#[test]
fn a_task_that_never_leaves_the_cpu_for_long_is_dropped_at_the_end_of_the_grace_too() {
    let mut kernel = Traced::new(Sim::new(), Options::new().grace(secs(2)));
    let clock_of = kernel.machine().clock();
    kernel.go(async {
        drop(
            spawn("busy", async move {
                loop {
                    clock_of.advance(tenths(1));
                    let _ = yield_now().await;
                }
            })
            .await,
        );
        yield_now().await.unwrap();
    });
    let trace = kernel.end();
    assert_lines(&trace, "exit     dropped", 1);
}

#[test]
fn a_kernel_that_was_shut_down_refuses_to_run() {
    let mut kernel = sim();
    kernel.go(async {});
    kernel.shutdown().unwrap();
    kernel.shutdown().unwrap();
    assert!(matches!(kernel.run(async {}), Err(RunError::Shut)));
    let trace = kernel.end();
    assert_lines(&trace, "halt", 1);
}

#[test]
fn tasks_stay_parked_between_two_runs_and_go_on() {
    let mut kernel = sim();
    let mut child = kernel.go(async {
        let child = spawn("child", async {
            for _ in 0..3 {
                sleep(secs(1)).await.unwrap();
            }
            "done"
        })
        .await;
        sleep(secs(1)).await.unwrap();
        child
    });
    assert_eq!((kernel.counters().tasks, kernel.counters().timers), (1, 0));
    let second = kernel.go(async {
        let end = child.join().await;
        (end, clock().await)
    });
    assert_eq!(second, (Ok("done"), at(3)));
    drop(child); // outside a run
    kernel.go(async {});
    kernel.end();
}

#[test]
fn main_may_borrow_from_the_frame_of_its_caller() {
    let mut values = vec![1, 2];
    let mut kernel = sim();
    kernel.go(async {
        sleep(secs(1)).await.unwrap();
        values.push(3);
    });
    kernel.end();
    assert_eq!(values, [1, 2, 3]);
}

#[test]
fn the_free_run_runs_and_shuts_down() {
    let cleaned = Rc::new(Cell::new(false));
    let theirs = cleaned.clone();
    let output = kernel::run(async {
        drop(
            spawn("child", async move {
                assert!(foreign(never::<()>()).await.is_err());
                theirs.set(true);
            })
            .await,
        );
        yield_now().await.unwrap();
        7
    });
    assert_eq!((output.unwrap(), cleaned.get()), (7, true));
}

#[test]
fn a_kernel_dropped_without_a_shutdown_drops_its_tasks_and_no_more() {
    let drops = Rc::new(Cell::new(0));
    let mut kernel = Kernel::new(Real::new().unwrap());
    let theirs = drops.clone();
    kernel
        .run(async move {
            for _ in 0..3 {
                let drops = theirs.clone();
                drop_later(drops).await;
            }
            yield_now().await.unwrap();
        })
        .unwrap();
    drop(kernel);
    assert_eq!(drops.get(), 3);
    on_sim(async { sleep(secs(1)).await.unwrap() });

    async fn drop_later(drops: Rc<Cell<u32>>) {
        drop(
            spawn("parked", async move {
                let _guard = OnDrop(|| drops.set(drops.get() + 1));
                timeout_after(secs(60), sleep(secs(99))).await.unwrap();
            })
            .await,
        );
    }
}

// ---- Hangs -------------------------------------------------------------------------------------

#[test]
fn a_hang_names_each_blocked_task_and_its_traps() {
    let mut kernel = sim();
    let queue = WaitQueue::new();
    let error = kernel.run(async {
        let line = queue.clone();
        let mut waiter = spawn("waiter", async move { line.wait().await }).await;
        let io = Io::new(Scripted(1));
        drop(spawn("bare", never::<()>()).await);
        drop(spawn("reader", async move { io.readable().await }).await);
        let _ = waiter.join().await;
    });
    let Err(RunError::Hang(report)) = error else { panic!("{error:?}") };
    for line in [
        " 2 main   parked join 3     0.000000 -     traps/tests/all/tasks.rs:",
        " 3 waiter parked wait q1    0.000000 -     traps/tests/all/tasks.rs:",
        " 4 bare   parked waker      0.000000 -     traps/tests/all/tasks.rs:",
        " 5 reader parked io f1 read 0.000000 -     traps/tests/all/tasks.rs:",
    ] {
        assert_eq!(report.matches(line).count(), 1, "{line}\n{report}");
    }
    kernel.end();
}

#[test]
fn a_kernel_can_run_again_after_a_hang() {
    let mut kernel = sim();
    let event = Rc::new(traps::sync::Event::new());
    let theirs = event.clone();
    let hang = kernel.run(async move {
        drop(spawn("waiter", async move { theirs.wait().await.unwrap() }).await);
        never::<()>().await;
    });
    assert!(matches!(hang, Err(RunError::Hang(_))));
    kernel.go(async {
        event.set();
        sleep(secs(1)).await.unwrap();
    });
    assert_eq!(kernel.counters().tasks, 0);
    kernel.end();
}

// ---- Budget ------------------------------------------------------------------------------------

#[test]
fn a_task_whose_operations_never_block_yields_after_its_budget() {
    let (others, trace) = on_sim(async {
        let runs = Rc::new(Cell::new(0));
        let theirs = runs.clone();
        let other = spawn("other", async move {
            loop {
                theirs.set(theirs.get() + 1);
                if yield_now().await.is_err() {
                    return;
                }
            }
        })
        .await;
        for n in 0..1000 {
            budget().await.unwrap();
            // The other task has run once for each 128 operations, and no more often.
            assert_eq!(runs.get(), n / 128, "after {n} operations");
        }
        drop(other);
        runs.get()
    });
    assert_eq!(others, 7);
    assert_lines(&trace, "main     yielded  budget=128", 7);
}

#[test]
fn a_budget_is_whole_again_after_the_task_was_parked() {
    let (_, trace) = on_sim(async {
        for _ in 0..10 {
            for _ in 0..128 {
                budget().await.unwrap();
            }
            sleep(secs(1)).await.unwrap();
        }
    });
    assert_lines(&trace, "yielded", 0);
}

#[test]
fn a_busy_task_is_interrupted_by_a_timeout_when_it_yields() {
    let mut kernel = Traced::new(Sim::new(), Options::new().budget(4));
    let clock_of = kernel.machine().clock();
    let end = kernel.go(async {
        timeout_after(secs(1), async {
            // More turns than the kernel may take without reading the clock.
            for _ in 0..100 * 4 {
                budget().await?;
                clock_of.advance(tenths(1));
            }
            Ok::<_, Interrupt>(())
        })
        .await
    });
    assert_eq!(end.map_err(|why| why.kind()), Err(Kind::TaskTimeout));
    kernel.end();
}

// ---- Signals on the simulated machine ----------------------------------------------------------

#[test]
fn a_scripted_signal_ends_the_wait_for_it_and_one_between_two_waits_is_kept() {
    let script = Sim::new()
        .signal_at(at(1), Signal::Hangup)
        .signal_at(at(2), Signal::Interrupt)
        .signal_at(at(2), Signal::Terminate);
    let mut kernel = Traced::new(script, Options::new());
    let ends = kernel.go(async {
        let both = [Signal::Interrupt, Signal::Terminate];
        let first = wait_signal(&both).await;
        let when = clock().await;
        sleep(secs(1)).await.unwrap();
        (first.unwrap(), when, wait_signal(&both).await.unwrap())
    });
    assert_eq!(ends, (Signal::Interrupt, at(2), Signal::Terminate));
    kernel.end();
}

#[test]
fn an_unread_signal_is_for_the_next_waiter() {
    let script = Sim::new().signal_at(at(1), Signal::User1);
    let mut kernel = Traced::new(script, Options::new());
    let ends = kernel.go(async {
        // Both are done at 1 s. The race polls the first branch, and drops the other unread.
        let first = traps::race(
            async {
                sleep(secs(1)).await.unwrap();
                "slept"
            },
            wait_signal(&[Signal::User1]),
        )
        .await;
        (first, wait_signal(&[Signal::User1]).await.unwrap())
    });
    assert!(matches!(ends, (traps::Either::Left("slept"), Signal::User1)));
    kernel.end();
}

#[test]
fn two_waiters_for_a_signal_are_served_in_turn() {
    let script = Sim::new().signal_at(at(1), Signal::User1).signal_at(at(2), Signal::User1);
    let mut kernel = Traced::new(script, Options::new());
    let ends = kernel.go(async {
        let wait = || async {
            wait_signal(&[Signal::User1]).await.unwrap();
            clock().await
        };
        traps::join(wait(), wait()).await
    });
    assert_eq!(ends, (at(1), at(2)));
    kernel.end();
}
