//! One test for each regression that readers of the kernel found. Each fails on the kernel in which
//! the mistake was found.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use kernel::trace::{Event as Told, Line};
use kernel::{Kernel, Sim};
use support::kernels::*;
use testing::child;
use traps::io::{Direction, Io, Scripted};
use traps::sync::{Event, Mutex};
use traps::universal::{UniversalEvent, UniversalQueue};
use traps::{
    Either, Interrupt, Interruptible, Kind, Signal, Task, TaskGroup, Time, WaitQueue, branch,
    check_cancellation, clock, connection_deadline, foreign, ignore_after, join, join_all, outside,
    race, run_in_thread, shield, signals, sleep, spawn, timeout_after, wait_signal, yield_now,
};

const MS: Duration = Duration::from_millis(1);

// ---- An output is given once, and never lost ---------------------------------------------------

/// Ends a future in a new task.
async fn end_elsewhere<T: 'static>(future: &Shared<T>) -> T {
    let future = future.clone();
    let mut other = spawn("other", async move { future.wait().await }).await;
    other.join().await.unwrap_or_else(|why| panic!("the other task ends: {why}"))
}

/// A child that returns `output` after `output` milliseconds.
async fn child(output: u32) -> Task<u32> {
    let child = async move {
        sleep(MS * output).await.unwrap();
        output
    };
    spawn("child", child).await
}

#[test]
fn a_group_join_that_moves_with_an_unread_output_returns_all_outputs() {
    let (outputs, _) = on_sim(async {
        let mut group = TaskGroup::<u32, traps::Error>::new();
        for output in [2, 4, 6] {
            let member = async move { Ok(sleep(MS * output).await.map(|_| output)?) };
            group.spawn("member", member).await;
        }
        let join = Shared::new(async move { group.join().await });
        assert!(join.poll_once().await.is_pending());
        sleep(7 * MS).await.unwrap();
        end_elsewhere(&join).await
    });
    assert_eq!(outputs.unwrap(), [2, 4, 6]);
}

/// The join has read some outputs, and its reply holds only the last one.
#[test]
fn a_group_join_that_moves_at_any_time_returns_all_outputs() {
    for moved in 0..9 {
        let (outputs, _) = on_sim(async {
            let mut group = TaskGroup::<u32, traps::Error>::new();
            for output in [2, 4, 6] {
                let member = async move { Ok(sleep(MS * output).await.map(|_| output)?) };
                group.spawn("member", member).await;
            }
            let join = Shared::new(async move { group.join().await });
            for _ in 0..moved {
                if let Poll::Ready(outputs) = join.poll_once().await {
                    return outputs;
                }
                sleep(MS).await.unwrap();
            }
            end_elsewhere(&join).await
        });
        assert_eq!(outputs.unwrap(), [2, 4, 6], "moved after {moved} ms");
    }
}

#[test]
fn a_join_that_moves_with_an_unread_output_returns_it() {
    let (output, _) = on_sim(async {
        let mut child = child(1).await;
        let join = Shared::new(async move { child.join().await });
        assert!(join.poll_once().await.is_pending());
        sleep(2 * MS).await.unwrap();
        end_elsewhere(&join).await
    });
    assert_eq!(output.unwrap(), 1);
}

/// Joins a child, drops the join when `flag` is up, and joins again.
async fn join_twice(flag: Rc<Cell<bool>>, mut child: Task<u32>) -> u32 {
    {
        let mut first = child.join();
        poll_fn(|cx| match flag.get() {
            true => Poll::Ready(()),
            false => std::pin::Pin::new(&mut first).poll(cx).map(|_| panic!("the flag is late")),
        })
        .await;
    }
    child.join().await.unwrap_or_else(|why| panic!("the second join: {why}"))
}

#[test]
fn a_join_that_another_task_drops_unread_can_be_made_again() {
    let (output, _) = on_sim(async {
        let flag = Rc::new(Cell::new(false));
        let joins = Shared::new(join_twice(flag.clone(), child(1).await));
        assert!(joins.poll_once().await.is_pending());
        sleep(2 * MS).await.unwrap();
        flag.set(true);
        end_elsewhere(&joins).await
    });
    assert_eq!(output, 1);
}

// ---- An unread reply is given back -------------------------------------------------------------

#[test]
fn a_signal_that_a_stream_kept_is_not_lost_where_its_future_moves_unread() {
    let machine = Sim::new().signal_at(Time::from_micros(1_000), Signal::User1);
    let mut kernel = Traced::new(machine, kernel::Options::new());
    let (heard, others) = kernel.go(async {
        let mut stream = signals(&[Signal::User1]);
        let next = Shared::new(async move { stream.next().await.unwrap() });
        assert!(next.poll_once().await.is_pending());
        // The signal ends the wait, and the reply is not read here.
        sleep(2 * MS).await.unwrap();
        let heard = end_elsewhere(&next).await;
        (heard, ignore_after(MS, wait_signal(&[Signal::User1])).await)
    });
    assert_eq!(heard, Signal::User1, "{}", kernel.text());
    assert!(matches!(others, Ok(None)), "{}", kernel.text());
    kernel.end();
}

#[test]
fn a_remembered_readiness_is_not_lost_where_its_future_moves_unread() {
    let machine = Sim::new().ready_at(Time::from_micros(1_000), 1, Direction::Read);
    let mut kernel = Traced::new(machine, kernel::Options::new());
    let ready = kernel.go(async {
        let io = Rc::new(Io::new(Scripted(1)));
        // The descriptor is registered from the first wait on.
        assert!(matches!(ignore_after(Duration::ZERO, io.readable()).await, Ok(None)));
        sleep(2 * MS).await.unwrap();
        let readable = Shared::new(async move { ignore_after(secs(1), io.readable()).await });
        // The wait is answered at once, and the reply is not read here.
        assert!(readable.poll_once().await.is_pending());
        sleep(MS).await.unwrap();
        end_elsewhere(&readable).await
    });
    assert!(matches!(ready, Ok(Some(_))), "{ready:?}\n{}", kernel.text());
    kernel.end();
}

// ---- A sleep is a lower bound ------------------------------------------------------------------

#[test]
fn a_sleep_that_comes_from_an_older_kernel_ends_no_other_sleep() {
    let nap = Shared::new(sleep(MS));
    let mut older = Kernel::new(Sim::starting_at(Time::from_micros(1_000_000)));
    assert!(older.run(nap.poll_once()).unwrap().is_pending());
    drop(older);

    let machine = Sim::new();
    let clock = machine.clock();
    let mut younger = Traced::new(machine, kernel::Options::new());
    let (said, real) = younger.go(async {
        let theirs = clock.clone();
        let long = async move { (sleep(200 * MS).await.unwrap(), theirs.now()) };
        let mut long = spawn("long", long).await;
        yield_now().await.unwrap();
        let moved = nap.clone();
        let mut moved = spawn("moved", async move { moved.wait().await.map(drop) }).await;
        // Several turns that do not read the machine's clock.
        for _ in 0..5 {
            yield_now().await.unwrap();
        }
        let ended = long.join().await.unwrap();
        moved.cancel_now("the test is over");
        let _ = moved.join().await;
        ended
    });
    let due = Time::from_micros(200_000);
    assert!(said >= due && real >= due, "it says {said:?}, at {real:?}\n{}", younger.text());
    younger.end();
}

// ---- A cancellation is delivered once ----------------------------------------------------------

#[test]
fn a_group_that_another_task_took_over_does_not_tell_that_task_its_cancellation_again() {
    let (ends, trace) = on_sim(async {
        let place = Rc::new(RefCell::new(None));
        let handed = place.clone();
        let first = async move {
            let mut group = TaskGroup::<(), traps::Error>::new();
            // The member ends late, so that the join is dropped in its clean-up.
            group.spawn("member", async { Ok(shield(sleep(9 * MS)).await.map(drop)?) }).await;
            {
                let mut join = Box::pin(group.join());
                assert!(poll_once(&mut join).await.is_pending());
                // The future takes the cancellation in its second poll.
                let mut polls = 0;
                poll_fn(|cx| {
                    polls += 1;
                    assert!(join.as_mut().poll(cx).is_pending());
                    if polls < 2 { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
            }
            *handed.borrow_mut() = Some(group);
        };
        let mut first = spawn("first", first).await;
        let second = async move {
            let told = sleep(secs(9)).await.is_err();
            let mut group = place.borrow_mut().take().expect("the first has left it");
            let _ = group.next_done().await;
            drop(group);
            (told, sleep(MS).await.map(drop))
        };
        let mut second = spawn("second", second).await;
        sleep(MS).await.unwrap();
        first.cancel_now("enough");
        first.join().await.unwrap();
        second.cancel_now("enough");
        second.join().await.unwrap()
    });
    assert!(ends.0, "it is told once\n{trace}");
    assert!(ends.1.is_ok(), "it is told twice\n{trace}");
}

// ---- A cancellation is delivered to the task that was cancelled --------------------------------

/// Returns the waits that can be interrupted. The output of each: whether it was interrupted.
fn waits() -> Vec<(&'static str, Shared<bool>)> {
    fn ends<T, E: Interruptible>(
        wait: impl Future<Output = Result<T, E>> + 'static,
    ) -> Shared<bool> {
        Shared::new(async move { wait.await.is_err_and(|why| why.interrupt().is_some()) })
    }
    let (queue, event, io) = (WaitQueue::new(), Event::new(), Io::new(Scripted(1)));
    let held = Mutex::new(());
    let (items, flag) = (UniversalQueue::<u8>::new(1), UniversalEvent::new());
    let group = async {
        let mut group = TaskGroup::<(), traps::Error>::new();
        group.spawn("member", async { Ok(sleep(secs(5)).await.map(drop)?) }).await;
        group.next_result().await.map(drop)
    };
    vec![
        ("sleep", ends(sleep(secs(5)))),
        ("timeout", ends(timeout_after(secs(9), sleep(secs(5))))),
        ("branch", ends(branch(sleep(secs(5))))),
        ("queue", ends(async move { queue.wait().await })),
        ("event", ends(async move { event.wait().await })),
        ("io", ends(async move { io.readable().await })),
        ("lock", {
            ends(async move {
                let _held = held.try_lock();
                held.lock().await.map(drop)
            })
        }),
        ("get", ends(async move { items.get().await })),
        ("flag", ends(async move { flag.wait().await })),
        ("signal", ends(wait_signal(&[Signal::User1]))),
        ("foreign", ends(foreign(never::<()>()))),
        ("outside", ends(outside("test", |_| true))),
        ("group", ends(group)),
        ("thread", ends(run_in_thread(|| std::thread::sleep(MS)))),
    ]
}

/// The way in which the second task meets the wait that the first has not read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meets {
    Polls,
    Drops,
}

#[test]
fn a_cancellation_that_another_task_finds_unread_goes_to_the_cancelled_task() {
    for meets in [Meets::Polls, Meets::Drops] {
        for parked in [false, true] {
            for which in 0..waits().len() {
                let ((name, told), trace) = on_sim(async move {
                    let (name, wait) = waits().swap_remove(which);
                    let (theirs, go) = (wait.clone(), Oneshot::new());
                    let wakes = go.clone();
                    let first = async move {
                        assert!(theirs.poll_once().await.is_pending());
                        go.receive().await;
                        if parked {
                            // The wait parks before the second task meets it.
                            sleep(secs(2)).await.is_err()
                        } else {
                            yield_now().await.is_err() || sleep(MS).await.is_err()
                        }
                    };
                    let mut first = spawn("first", first).await;
                    sleep(MS).await.unwrap();
                    // This ends the wait, which the first task no longer polls.
                    first.cancel_now("enough");
                    yield_now().await.unwrap();
                    if parked {
                        wakes.send(());
                        sleep(MS).await.unwrap();
                    }
                    let is_told = match meets {
                        Meets::Drops => {
                            wait.drop_future();
                            false
                        }
                        Meets::Polls => matches!(wait.poll_once().await, Poll::Ready(true)),
                    };
                    wakes.send(());
                    let first = ignore_after(secs(1), first.join()).await;
                    (name, (is_told, first.unwrap()))
                });
                assert_eq!(told, (false, Some(true)), "{name}, {meets:?}, {parked}\n{trace}");
            }
        }
    }
}

#[test]
fn an_interrupt_that_a_shield_holds_back_does_not_reach_another_task() {
    let (told, trace) = on_sim(async {
        let check = Shared::new(check_cancellation());
        let theirs = check.clone();
        let first = shield(async move {
            sleep(2 * MS).await.unwrap();
            // The wait is answered in this run, and not read in it.
            assert!(theirs.poll_once().await.is_pending());
            sleep(secs(1)).await
        });
        let first = spawn("first", first).await;
        sleep(MS).await.unwrap();
        first.cancel_now("enough");
        sleep(2 * MS).await.unwrap();
        check.wait().await
    });
    assert!(told.is_ok(), "{told:?}\n{trace}");
}

// ---- References to ended things are dropped ----------------------------------------------------

/// Returns the waker of a task that has ended.
fn waker_of_the_dead(kernel: &mut Kernel<Sim>) -> Waker {
    let dead = async {
        let dead = async { poll_fn(|cx| Poll::Ready(cx.waker().clone())).await };
        let mut dead = spawn("dead", dead).await;
        dead.join().await.unwrap_or_else(|why| panic!("it ends: {why}"))
    };
    kernel.run(dead).unwrap()
}

/// Returns the bytes that a run requests from the allocator, and the bytes that it keeps.
fn bytes_of(run: impl FnOnce()) -> (u64, i64) {
    let info = allocation_counter::measure(run);
    (info.bytes_total, info.bytes_current)
}

fn empty_run(kernel: &mut Kernel<Sim>) {
    kernel.run(async {}).unwrap();
}

#[test]
fn late_wakes_are_forgotten_also_those_of_a_dropped_kernel() {
    let mut old = Kernel::new(Sim::new());
    let of_the_old = waker_of_the_dead(&mut old);
    drop(old);
    let mut kernel = Kernel::new(Sim::new());
    let wakers = [of_the_old, waker_of_the_dead(&mut kernel)];
    let rounds = |kernel: &mut Kernel<Sim>, rounds: u32| {
        let late = async {
            for _ in 0..rounds {
                (0..10).for_each(|n| wakers[n % 2].wake_by_ref());
                yield_now().await.unwrap();
            }
        };
        kernel.run(late).unwrap();
    };
    rounds(&mut kernel, 10);
    (0..2).for_each(|_| empty_run(&mut kernel));
    let (_, kept) = bytes_of(|| rounds(&mut kernel, 2_000));
    let (empty, _) = bytes_of(|| empty_run(&mut kernel));
    assert!(kept < 16_000, "20,000 late wakes leave {kept} bytes");
    assert!(empty < 64_000, "an empty run asks for {empty} bytes");
}

#[test]
fn handles_of_a_kernel_that_is_gone_leave_nothing_with_the_next() {
    let mut gone = Kernel::new(Sim::new());
    let mut handles = gone
        .run(async {
            let mut handles = Vec::new();
            for _ in 0..20_000 {
                handles.push(spawn("task", sleep(secs(9))).await);
            }
            handles
        })
        .unwrap();
    drop(gone);
    let mut next = Kernel::new(Sim::new());
    empty_run(&mut next);
    // Half of the handles are dropped while no kernel runs.
    handles.truncate(10_000);
    let in_a_task = async {
        for handle in handles {
            drop(handle);
            yield_now().await.unwrap();
        }
    };
    next.run(in_a_task).unwrap();
    empty_run(&mut next);
    let (empty, _) = bytes_of(|| empty_run(&mut next));
    assert!(empty < 64_000, "an empty run asks for {empty} bytes");
}

// ---- Growth ------------------------------------------------------------------------------------

/// The CPU time that a child may take, in seconds: many times what it needs.
const LIMIT: u32 = 20;

/// Runs `work` of the calling test in a child process, which the system ends if it takes more CPU
/// time than [`LIMIT`]. No clock is read, because work that grows too fast takes many times the
/// limit.
fn in_a_child(work: impl FnOnce()) {
    const CHILD: &str = "REGRESSIONS_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return work();
    }
    let limited = format!("ulimit -t {LIMIT}; exec \"$0\" \"$@\"");
    let (test, mut command) = (child::this_test(), Command::new("sh"));
    command
        .args(["-c", &limited])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--test-threads", "1"])
        .env(CHILD, "1");
    let status = child::spawn(&mut command).wait().unwrap();
    assert!(status.success(), "`{test}` took more than {LIMIT} s of CPU time: {status}");
}

/// `n` tasks that wait by `wait`, all cancelled, or timed out, together.
fn many_waiters<F: Future<Output = bool> + 'static>(n: u32, cancels: bool, wait: impl Fn() -> F) {
    let ended = Kernel::new(Sim::new()).run(async {
        let mut tasks = Vec::new();
        for _ in 0..n {
            tasks.push(spawn("waiter", wait()).await);
        }
        yield_now().await.unwrap();
        if cancels {
            for task in &tasks {
                task.cancel_now("all");
            }
        }
        let mut ended = 0;
        for task in &mut tasks {
            ended += u32::from(task.join().await.unwrap_or(false));
        }
        ended
    });
    assert_eq!(ended.unwrap(), n);
}

const MANY: u32 = 100_000;

#[test]
fn waiters_of_one_event_are_cancelled_together_in_time_that_grows_with_their_number() {
    in_a_child(|| {
        let event = Rc::new(Event::new());
        many_waiters(MANY, true, || {
            let event = event.clone();
            async move { event.wait().await.is_err() }
        });
    });
}

#[test]
fn waiters_of_one_lock_time_out_together_in_time_that_grows_with_their_number() {
    in_a_child(|| {
        let lock = Rc::new(Mutex::new(()));
        let held = lock.try_lock();
        many_waiters(MANY, false, || {
            let lock = lock.clone();
            async move {
                let wait = async { lock.lock().await.map(drop) };
                timeout_after(secs(1), wait).await.is_err()
            }
        });
        drop(held);
    });
}

#[test]
fn timeouts_of_one_task_fire_together_in_time_that_grows_with_their_number() {
    in_a_child(|| {
        let late = Kernel::new(Sim::new()).run(async {
            let waits = (0..5_000).map(|_| timeout_after(secs(1), WaitQueue::new().wait()));
            let ends = join_all(waits.collect::<Vec<_>>()).await;
            ends.iter().filter(|end| end.is_err()).count()
        });
        assert_eq!(late.unwrap(), 5_000);
    });
}

// ---- After an observer's panic -----------------------------------------------------------------

/// A program with a little of everything that a run can leave behind.
async fn busy() {
    let queue = Rc::new(WaitQueue::new());
    let mut tasks = Vec::new();
    for n in 0..3 {
        let queue = queue.clone();
        let task = async move {
            let _ = timeout_after(MS * n, queue.wait()).await;
            let _ = sleep(MS).await;
        };
        tasks.push(spawn("task", task).await);
    }
    let mut group = TaskGroup::<(), traps::Error>::new();
    group.spawn("member", async { Ok(sleep(MS).await.map(drop)?) }).await;
    let _ = group.join().await;
    queue.wake(1);
    tasks[0].cancel_now("enough");
    for task in &mut tasks {
        let _ = task.join().await;
    }
}

/// The payload of the panic of [`panicking`]'s observer.
const OBSERVERS: &str = "the observer's";

/// Returns a kernel whose observer panics at the line with this number and at each later line, and
/// the number of lines that it has seen.
fn panicking(panics_at: u64) -> (Kernel<Sim>, Rc<Cell<u64>>) {
    let lines = Rc::new(Cell::new(0));
    let seen = lines.clone();
    let mut kernel = Kernel::new(Sim::new());
    kernel.observe(move |_: &Line<'_>| {
        seen.set(seen.get() + 1);
        if seen.get() >= panics_at {
            // Without the panic hook, because a hundred messages are of no use.
            std::panic::resume_unwind(Box::new(OBSERVERS));
        }
    });
    (kernel, lines)
}

/// Returns the message of a panic in `call`.
fn panic_of<T>(call: impl FnOnce() -> T) -> Option<String> {
    let ended = catch_unwind(AssertUnwindSafe(call));
    ended.err().map(|panic| traps::internal::panic_message(&*panic).to_owned())
}

/// Runs [`busy`] with an observer that panics at the line with this number. Returns the fault, if
/// any, or `None` if the run has no such line.
fn observed(panics_at: u64) -> Option<Result<(), String>> {
    let (mut kernel, lines) = panicking(panics_at);
    let first = panic_of(|| kernel.run(busy()))?;
    let again = [
        panic_of(|| kernel.run(async {})),
        panic_of(|| kernel.run_until_quiescent(MS)),
        panic_of(|| kernel.shutdown()),
    ];
    let dropped = panic_of(|| drop(kernel));
    let next = panic_of(|| Kernel::new(Sim::new()).run(busy()).unwrap());
    let rule = Some("rule: a kernel that a panic has stopped can only be dropped".to_owned());
    let is_right = first == OBSERVERS && again.iter().all(|said| *said == rule);
    let is_quiet = (dropped, next, lines.get()) == (None, None, panics_at);
    Some(if is_right && is_quiet { Ok(()) } else { Err(format!("{first}, {again:?}")) })
}

#[test]
fn an_observers_panic_ends_the_run_and_the_kernel_can_only_be_dropped() {
    let all: Vec<_> = (1..).map_while(observed).collect();
    assert!(all.len() > 40, "the program has {} lines", all.len());
    let wrong = (1..).zip(all).filter_map(|(line, it)| Some((line, it.err()?)));
    let wrong: Vec<(u32, String)> = wrong.collect();
    assert!(wrong.is_empty(), "by the line of the panic: {wrong:?}");
}

// ---- Values that are dropped, or moved, at a bad time ------------------------------------------

#[test]
fn a_job_of_a_dropped_kernel_is_not_taken_for_one_of_the_next() {
    let machine = || Sim::new().jobs_take(secs(1));
    let mut first = Kernel::new(machine());
    let mut job = Box::pin(run_in_thread(|| 1));
    let begins = poll_fn(|cx| Poll::Ready(job.as_mut().poll(cx).is_pending()));
    assert!(first.run(async { begins.await && yield_now().await.is_ok() }).unwrap());
    drop(first);
    let mut next = Traced::new(machine(), kernel::Options::new());
    let value = next.go(async move {
        let mut task = spawn("next", run_in_thread(|| 7)).await;
        yield_now().await.unwrap();
        assert_eq!(job.as_mut().await, Err(traps::Error::Moved));
        drop(job);
        task.join().await.unwrap()
    });
    assert_eq!(value.unwrap(), 7, "{}", next.text());
    next.end();
}

#[test]
fn a_permit_that_is_given_back_as_the_kernel_is_dropped_is_kept() {
    let lock = Rc::new(Mutex::new(()));
    let mut inner = Kernel::new(Sim::new());
    let (waits, holds) = (lock.clone(), lock.clone());
    let both = async move {
        // The older wait is dropped last, so it still waits when the other gives back the permit.
        let older = async move {
            yield_now().await.unwrap();
            drop(waits.lock().await);
        };
        let newer = async move {
            let _guard = holds.lock().await;
            sleep(secs(9)).await.unwrap();
        };
        spawn("older", older).detached().await;
        spawn("newer", newer).detached().await;
        for _ in 0..4 {
            yield_now().await.unwrap();
        }
    };
    inner.run(both).unwrap();
    drop(inner);
    assert!(lock.try_lock().is_some(), "the permit is lost");
}

#[test]
fn a_job_that_ends_in_the_turn_in_which_its_guard_wins_is_an_orphan() {
    let orphans = Rc::new(Cell::new(0));
    let seen = orphans.clone();
    let machine = Sim::new().jobs_take(secs(1));
    let mut kernel = Traced::new(machine, kernel::Options::new());
    kernel.on_orphan(move |_| seen.set(seen.get() + 1));
    let end = kernel.go(async {
        let deadline = connection_deadline().await;
        deadline.guard(secs(1), run_in_thread(|| 7)).await
    });
    assert!(end.is_err(), "{}", kernel.text());
    assert_eq!(orphans.get(), 1, "{}", kernel.text());
    kernel.end();
}

#[test]
fn a_nested_guard_has_no_race_with_events_of_a_later_turn() {
    let machine = Sim::new().ready_at(Time::from_micros(2_000_000), 1, Direction::Read);
    let mut kernel = Traced::new(machine, kernel::Options::new());
    kernel.go(async {
        let io = Rc::new(Io::new(Scripted(1)));
        let theirs = io.clone();
        let guarded = async move {
            let deadline = connection_deadline().await;
            let inner = deadline.guard(secs(1), theirs.readable());
            let _ = deadline.guard(secs(9), inner).await;
        };
        spawn("guarded", guarded).detached().await;
        sleep(secs(3)).await.unwrap();
    });
    assert_lines(&kernel.end(), " race ", 0);
}

/// What [`Clears`] drops.
type Shelf = RefCell<Option<std::pin::Pin<Box<dyn Future<Output = ()>>>>>;

thread_local! {
    static SHELF: Shelf = const { RefCell::new(None) };
}

/// A foreign waker that drops a future.
struct Clears;

impl Wake for Clears {
    fn wake(self: Arc<Self>) {
        let future = SHELF.take();
        drop(future);
    }
}

#[test]
fn a_waker_that_drops_the_scope_that_fires_harms_no_other_task() {
    let (_, trace) = on_sim(async {
        let waits = || join_all([sleep(secs(9)), sleep(secs(9))]);
        let mut future: std::pin::Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
            let both = async move { Ok::<_, traps::Interrupt>(waits().await) };
            let _ = timeout_after(secs(1), both).await;
        });
        let waker = Waker::from(Arc::new(Clears));
        let _ = poll_fn(|_| {
            Poll::Ready(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending())
        })
        .await;
        SHELF.set(Some(future));
        sleep(secs(3)).await.unwrap();
    });
    assert_lines(&trace, " deliver ", 1);
}

#[test]
fn a_guard_that_fired_while_it_lay_in_no_task_ends_where_it_is_polled() {
    let ((end, at), trace) = on_sim(async {
        let deadline = connection_deadline().await;
        let guard = Shared::new(async move { deadline.guard(secs(1), sleep(secs(60))).await });
        let first = guard.clone();
        let mut first = spawn("first", async move { first.poll_once().await }).await;
        assert!(first.join().await.unwrap().is_pending());
        sleep(secs(2)).await.unwrap();
        (guard.wait().await, clock().await)
    });
    assert!(end.is_err() && at < Time::from_micros(3_000_000), "at {at}\n{trace}");
}

#[test]
fn a_waker_that_a_panic_left_behind_wakes_no_other_task() {
    let (polls, trace) = on_sim(async {
        let kept = Rc::new(RefCell::new(None));
        let theirs = kept.clone();
        let panics = poll_fn(move |cx| -> Poll<()> {
            theirs.replace(Some(cx.waker().clone()));
            std::panic::resume_unwind(Box::new("on purpose"))
        });
        let polls = Rc::new(Cell::new(0));
        spawn("panics", panics).detached().await;
        let counted = polls.clone();
        let other = async move { counting(&counted, never::<()>()).await };
        let other = spawn("other", other).await;
        yield_now().await.unwrap();
        let waker: Waker = kept.take().unwrap();
        waker.wake();
        yield_now().await.unwrap();
        let polls = polls.get();
        drop(other);
        polls
    });
    assert_eq!(polls, 1, "{trace}");
}

#[test]
fn a_kernel_whose_observer_panicked_leaves_no_wait_when_it_is_dropped() {
    let (mut in_a_run, mut in_the_drop) = (0, 0);
    let left: Vec<_> = (1..60)
        .filter(|panics_at| {
            let queue = WaitQueue::new();
            let (mut kernel, _) = panicking(*panics_at);
            let program = async {
                let wait = queue.clone();
                let wait = async move {
                    let _ = join_all([wait.wait(), wait.wait()]).await;
                };
                spawn("waits", wait).detached().await;
                let _ = timeout_after(MS, queue.wait()).await;
            };
            let ran = panic_of(|| kernel.run(program));
            let dropped = panic_of(|| drop(kernel));
            in_a_run += u32::from(ran.is_some());
            in_the_drop += u32::from(dropped.is_some());
            let is_empty = queue.waiting() == 0;
            // If the queue were left as it is, it would name waits of the next kernel.
            let next = Kernel::new(Sim::new()).run(async {
                let (waits, wakes) = (queue.wait(), yield_now());
                let woken =
                    join(timeout_after(MS, waits), async { wakes.await.map(|()| queue.wake(1)) });
                woken.await.0.is_ok()
            });
            !(is_empty && next.unwrap()) || ran.is_some() && dropped.is_some()
        })
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(in_a_run > 10 && in_the_drop > 1, "{in_a_run} {in_the_drop}");
}

#[test]
fn a_task_that_ran_when_an_observer_panicked_is_dropped_with_its_kernel() {
    let mut kernel = Kernel::new(Sim::new());
    kernel.observe(|line: &Line<'_>| {
        if matches!(line.event, Told::Note { .. }) {
            std::panic::resume_unwind(Box::new(OBSERVERS));
        }
    });
    let (handle, kept) = (Rc::new(RefCell::new(None)), Rc::new(()));
    let (theirs, keeps) = (handle.clone(), kept.clone());
    let ran = panic_of(|| {
        kernel.run(async move {
            let notes = async move {
                traps::note("it runs");
                never::<()>().await;
                drop(keeps);
            };
            theirs.replace(Some(spawn("notes", notes).await));
            yield_now().await
        })
    });
    assert_eq!(ran.as_deref(), Some(OBSERVERS));
    drop(kernel);
    assert_eq!(Rc::strong_count(&kept), 1);
    let mut handle = handle.take().unwrap();
    assert_eq!(on_sim(async move { handle.join().await }).0, Err(traps::Error::Dropped));
}

#[test]
fn an_interrupt_that_was_read_before_its_timeout_moved_keeps_its_name() {
    let (ends, trace) = on_sim(async {
        let mut polls = 0;
        let holds = async move {
            let end = sleep(secs(9)).await;
            // The future reads the interrupt, and returns it in another task.
            poll_fn(|_| {
                polls += 1;
                if polls == 1 { Poll::Pending } else { Poll::Ready(()) }
            })
            .await;
            end
        };
        let both = Shared::new(async move {
            timeout_after(secs(60), async { ignore_after(secs(1), holds).await }).await
        });
        assert!(both.poll_once().await.is_pending());
        sleep(secs(2)).await.unwrap();
        assert!(both.poll_once().await.is_pending());
        end_elsewhere(&both).await
    });
    let why = ends.expect_err("no timeout around it takes it for its own");
    let is = (why.kind(), why.deadline());
    assert_eq!(is, (Kind::TaskTimeout, Some(Time::ZERO + secs(1))), "{trace}");
}

// ---- An unread interrupt -----------------------------------------------------------------------

#[test]
fn a_timeout_that_a_dropped_branch_has_not_read_ends_the_next_wait_around_it() {
    let ((ends, at), trace) = on_sim(async {
        let first = async {
            // The race ends with its left side in the turn in which the right side is interrupted.
            let _ = race(sleep(5 * MS), sleep(50 * MS)).await;
            sleep(100 * MS).await
        };
        let both = async { Ok::<_, Interrupt>(join(first, sleep(50 * MS)).await) };
        let (first, second) = timeout_after(5 * MS, both).await.unwrap();
        ((first.is_err(), second.is_err()), clock().await)
    });
    assert_eq!((ends, at), ((true, true), Time::ZERO + 5 * MS), "{trace}");
}

#[test]
fn a_cancellation_that_a_dropped_branch_has_not_read_reaches_the_branch_around_it() {
    let (heard, trace) = on_sim(async {
        let queue = WaitQueue::new();
        let (theirs, heard) = (queue.clone(), Rc::new(Cell::new(0)));
        let hears = heard.clone();
        let connection = async move {
            let reader = async {
                let first = race(theirs.wait(), sleep(secs(30))).await;
                assert!(matches!(first, Either::Left(Ok(()))));
                sleep(secs(30)).await
            };
            let (read, wrote) = join(reader, sleep(secs(90))).await;
            hears.set(u32::from(read.is_err()) + u32::from(wrote.is_err()));
        };
        let mut connection = spawn("connection", connection).await;
        yield_now().await.unwrap();
        // In one turn the reader's wait ends, and then the task is cancelled.
        queue.wake(1);
        connection.cancel_now("enough");
        connection.join().await.unwrap();
        assert_eq!(clock().await, Time::ZERO);
        heard.get()
    });
    assert_eq!(heard, 2, "{trace}");
}

#[test]
fn a_timeout_ends_a_bare_wait_beside_traps_that_each_poll_drops() {
    let (ended, trace) = on_sim(async {
        let queue = WaitQueue::new();
        let bare = poll_fn(|cx| {
            // A trap that is filed and dropped in this poll, in addition to a wait on a waker that
            // no code calls.
            assert!(pin!(queue.wait()).poll(cx).is_pending());
            Poll::<Result<(), Interrupt>>::Pending
        });
        timeout_after(5 * MS, bare).await
    });
    assert!(ended.is_err(), "{trace}");
}

#[test]
fn a_task_that_parks_bare_after_a_wait_that_was_over_at_once_has_a_line() {
    let (_, trace) = on_sim(async {
        let queue = WaitQueue::with_permits(1);
        let waits = async move {
            queue.wait().await.unwrap();
            never::<()>().await;
        };
        let waits = spawn("waits", waits).await;
        yield_now().await.unwrap();
        drop(waits);
    });
    // The second line is after the cancellation by the shutdown.
    assert_lines(&trace, " waits    block    waker", 2);
}

// ---- Two kernels, and two runs -----------------------------------------------------------------

#[test]
fn a_wait_for_a_signal_that_a_dropped_kernel_has_begun_takes_none_of_the_next() {
    let left = Shared::new(wait_signal(&[Signal::User1]));
    let mut first = sim();
    first.go(async {
        assert!(left.poll_once().await.is_pending());
        yield_now().await.unwrap();
    });
    first.end();
    let machine = Sim::new().signal_at(Time::from_micros(1_000), Signal::User1);
    let mut next = Traced::new(machine, kernel::Options::new());
    let heard = next.go(async {
        let mut waits = spawn("waits", wait_signal(&[Signal::User1])).await;
        assert!(ignore_after(2 * MS, left.wait()).await.unwrap().is_none());
        waits.join().await.unwrap()
    });
    assert_eq!(heard.unwrap(), Signal::User1, "{}", next.text());
    next.end();
}

#[test]
fn each_kernel_of_a_thread_numbers_the_queues_that_its_own_tasks_use() {
    let queues: Vec<_> = (0..3).map(|_| WaitQueue::new()).collect();
    let program = |first: usize| {
        on_sim(async {
            for n in [first, 2, 1, 0] {
                let _ = timeout_after(MS, queues[n].wait()).await;
            }
        })
    };
    let (_, old) = program(0);
    let (_, new) = program(2);
    for (trace, used) in [(old, ["q1", "q2", "q3", "q1"]), (new, ["q1", "q1", "q2", "q3"])] {
        let blocks = trace.lines().filter(|line| line.contains(" block    wait"));
        let seen: Vec<_> = blocks.map(|line| line.to_owned()).collect();
        assert!(
            seen.len() == 4 && seen.iter().zip(used).all(|(line, q)| line.contains(q)),
            "{trace}"
        );
    }
}

#[test]
fn a_connection_deadline_that_is_dropped_between_two_runs_is_disarmed_in_the_log() {
    let mut kernel = sim();
    let deadline = kernel.go(async {
        let deadline = connection_deadline().await;
        deadline.arm(secs(9));
        deadline
    });
    drop(deadline);
    kernel.go(async { yield_now().await.unwrap() });
    assert_lines(&kernel.end(), " disarm   d1", 1);
}
