//! Deadlocks: a kernel that would sleep forever ends the run with a report, on both clocks, and the
//! report names the tasks that wait for each other in a circle.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use kernel::{Kernel, Machine, Real, RunError, Sim};
use traps::sync::{Condition, Event, Mutex, Semaphore};
use traps::universal::UniversalQueue;
use traps::{
    Interrupt, Signal, WaitQueue, current_task, foreign, join, outside, race, sleep, spawn,
    timeout_after, yield_now,
};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A lock, as the smallest primitive that has holders.
fn lock(name: &'static str) -> WaitQueue {
    WaitQueue::with_permits(1).described("lock", name)
}

async fn take(lock: &WaitQueue) -> Result<(), Interrupt> {
    lock.wait_for_permit().await?;
    lock.hold();
    Ok(())
}

/// Spawns `n` tasks. Each takes its own lock and then the next task's lock.
async fn philosophers(n: usize) -> Result<(), Interrupt> {
    let forks: Rc<[WaitQueue]> = (0..n).map(|_| lock("fork")).collect();
    let mut all = Vec::new();
    for left in 0..n {
        let forks = forks.clone();
        let eat = async move {
            take(&forks[left]).await?;
            yield_now().await?;
            take(&forks[(left + 1) % forks.len()]).await
        };
        all.push(spawn(format!("p{left}"), eat).await);
    }
    for task in &mut all {
        let _ = task.join().await;
    }
    Ok(())
}

fn report<M: Machine, T: std::fmt::Debug>(
    machine: M,
    main: impl Future<Output = T>,
) -> (String, u64) {
    let mut kernel = Kernel::new(machine);
    match kernel.run(main) {
        Err(error @ RunError::Hang(_)) => (format!("{error:?}"), kernel.counters().polls),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_circle_is_named_in_order_on_both_clocks() {
    let (simulated, _) = report(Sim::new(), philosophers(5));
    let (real, _) = report(Real::new().unwrap(), philosophers(5));
    for said in [simulated, real] {
        let (table, circle) = said.split_once("deadlock of 5 tasks:").expect(&said);
        assert!(table.starts_with("every task is blocked forever:\n6 tasks at "), "{said}");
        assert!(table.contains(" parked lock fork held-by=4"), "{said}");
        let expected = "
 3 p0 waits for lock fork, held by 4 p1
 4 p1 waits for lock fork, held by 5 p2
 5 p2 waits for lock fork, held by 6 p3
 6 p3 waits for lock fork, held by 7 p4
 7 p4 waits for lock fork, held by 3 p0";
        assert_eq!(circle, expected);
    }
}

/// A turn does not wait if no event could end the wait.
#[test]
fn the_report_comes_before_the_kernel_sleeps() {
    let never = async { WaitQueue::new().wait().await };
    assert!(report(Real::new().unwrap(), never).1 <= 1, "no turn but that of main");
}

#[test]
fn a_task_that_waits_for_itself_is_a_circle_of_one() {
    let (said, _) = report(Sim::new(), async {
        let lock = lock("left");
        take(&lock).await?;
        take(&lock).await
    });
    assert!(
        said.ends_with("deadlock of 1 task:\n 2 main waits for lock left, held by 2 main"),
        "{said}"
    );
}

#[test]
fn a_join_is_a_link_of_a_circle() {
    let (said, _) = report(Sim::new(), async {
        let lock = lock("door");
        take(&lock).await.unwrap();
        let theirs = lock.clone();
        let mut child = spawn("child", async move { take(&theirs).await }).await;
        child.join().await
    });
    assert!(said.contains("\n 2 main waits for join 3, held by 3 child\n"), "{said}");
    assert!(said.ends_with("\n 3 child waits for lock door, held by 2 main"), "{said}");
}

/// The real clock counts the waker in the queue, as the guide states.
#[test]
fn a_wait_at_a_universal_queue_that_only_its_task_has_is_a_hang_on_the_virtual_clock() {
    let (said, _) = report(Sim::new(), async { UniversalQueue::<()>::new(1).get().await });
    assert!(said.contains(" main parked queue_get "), "{said}");
}

/// A wait with a deadline ends, and so does the wait of a task that has another way out.
#[test]
fn a_task_with_another_way_out_is_in_no_deadlock() {
    let seen = Rc::new(RefCell::new(String::new()));
    let theirs = seen.clone();
    let mut kernel = Kernel::new(Sim::new().signal_at(traps::Time::ZERO + MS, Signal::User1));
    kernel.on_signal(Signal::User1, move |table| *theirs.borrow_mut() = table.to_string());
    let ran = kernel.run(async {
        let (left, right) = (lock("left"), lock("right"));
        take(&left).await?;
        let ours = (left.clone(), right.clone());
        let child = spawn("child", async move {
            take(&ours.1).await?;
            take(&ours.0).await
        })
        .await;
        yield_now().await?;
        let _ = timeout_after(HOUR, take(&right)).await;
        child.cancel_because("over").await?;
        Ok::<_, Interrupt>(())
    });
    ran.unwrap().unwrap();
    let seen = seen.borrow();
    assert!(seen.contains(" lock right held-by=3 ") && !seen.contains("deadlock of"), "{seen}");
}

/// Two tasks are stuck while a third continues. The table shows their circle.
#[test]
fn a_circle_beside_live_tasks_is_in_the_table() {
    let mut kernel = Kernel::new(Sim::new());
    kernel
        .run(async {
            spawn("stuck", async { philosophers(2).await }).detached().await;
            sleep(MS).await
        })
        .unwrap()
        .unwrap();
    let table = kernel.task_table().to_string();
    assert!(table.contains("deadlock of 2 tasks:\n"), "{table}");
}

/// The kernel waits for events that outside code could still send. For signals: `tests/signals.rs`.
#[test]
fn a_kernel_that_another_thread_could_wake_sleeps() {
    let real = || Real::new().unwrap();
    // A thread has a remote, and spawns a task after a while.
    let mut kernel = Kernel::new(real());
    let (remote, queue) = (kernel.remote(), WaitQueue::new());
    let theirs = outside("a_thread", |waker| {
        std::thread::spawn(move || waker.wake());
        true
    });
    kernel.run(theirs).unwrap().unwrap();
    drop(remote);
    // Another thread has a waker of another library.
    let (send, receive) = channel();
    std::thread::spawn(send);
    kernel.run(foreign(receive)).unwrap().unwrap();
    drop(queue);
}

/// Returns a function for a thread, and the future that it completes.
fn channel() -> (impl FnOnce() + Send, impl Future<Output = ()>) {
    use std::sync::{Arc, Mutex};
    use std::task::{Poll, Waker};
    type Shared = Arc<Mutex<(bool, Option<Waker>)>>;
    let shared = Shared::default();
    let theirs = shared.clone();
    let send = move || {
        let waker = {
            let mut state = theirs.lock().unwrap();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    };
    let receive = std::future::poll_fn(move |cx| {
        let mut state = shared.lock().unwrap();
        state.1 = Some(cx.waker().clone());
        if state.0 { Poll::Ready(()) } else { Poll::Pending }
    });
    (send, receive)
}

#[test]
fn a_block_line_names_the_primitive_and_its_holders() {
    let ran = testing::run(async {
        let few = WaitQueue::with_permits(5).described("semaphore", "few");
        for _ in 0..5 {
            take(&few).await.unwrap();
        }
        let theirs = few.clone();
        let mut child = spawn("child", async move { take(&theirs).await }).await;
        yield_now().await.unwrap();
        let unnamed = WaitQueue::new().described("gate", "");
        let _ = timeout_after(MS, unnamed.wait()).await;
        few.release(few.hold());
        few.give_permit();
        child.join().await.unwrap().unwrap();
        current_task()
    });
    let lines: Vec<&str> = ran.trace.lines().map(|line| line.get(38..).unwrap_or("")).collect();
    let has = |text: &str| lines.iter().any(|line| line.starts_with(text));
    assert!(has("block    semaphore few held-by=2 k=7 "), "{}", ran.trace);
    assert!(has("wake     semaphore few k=7 "), "{}", ran.trace);
    assert!(has("block    gate q2 k="), "{}", ran.trace);
}

/// A permit may have moved to another task, which gives it back later; a waker may end a wait.
#[test]
fn a_wait_that_another_task_may_end_is_in_no_deadlock() {
    let mut kernel = Kernel::new(Sim::new());
    let few = Semaphore::named("few", 1);
    let main = async {
        let acceptor = async move {
            let moved = few.acquire().await?;
            let late = async move {
                sleep(HOUR).await?;
                drop(moved);
                Ok::<_, Interrupt>(())
            };
            spawn("late", late).detached().await;
            few.acquire().await.map(drop)
        };
        spawn("acceptor", acceptor).detached().await;
        let woken = async {
            let lock = lock("left");
            take(&lock).await?;
            let mut waker = None;
            let kept = poll_fn(|cx| {
                waker = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
            join(kept, take(&lock)).await.1
        };
        spawn("woken", woken).detached().await;
        sleep(MS).await
    };
    kernel.run(main).unwrap().unwrap();
    let table = kernel.task_table().to_string();
    assert!(table.contains(" semaphore few held-by=3 ") && table.contains(" woken "), "{table}");
    assert!(!table.contains("deadlock of"), "{table}");
}

#[test]
fn both_branches_of_a_join_have_to_be_stuck() {
    let (said, _) = report(Sim::new(), async {
        let (a, b) = (lock("a"), lock("b"));
        take(&a).await?;
        take(&b).await?;
        join(take(&a), take(&b)).await.0
    });
    assert!(said.ends_with("\n 2 main waits for lock a, held by 2 main"), "{said}");
}

/// Runs main with a log, and returns the texts of its warnings and the log.
fn warnings<T>(main: impl Future<Output = T>) -> (Vec<String>, String) {
    let (_, trace) = support::kernels::on_sim(main);
    let texts = trace.lines().filter_map(|line| line.split_once(" warn     "));
    (texts.map(|(_, text)| text.to_owned()).collect(), trace)
}

/// Spawns two tasks that take two locks in different order, the second lock within `way`.
async fn two<F: Future<Output = ()> + 'static>(
    locks: [WaitQueue; 2],
    way: impl Fn(WaitQueue) -> F + Clone + 'static,
) {
    for (name, [first, second]) in [("a", [0, 1]), ("b", [1, 0])] {
        let (first, second) = (locks[first].clone(), locks[second].clone());
        let way = way.clone();
        let task = async move {
            take(&first).await?;
            yield_now().await?;
            way(second).await;
            Ok::<_, Interrupt>(())
        };
        spawn(name, task).detached().await;
    }
}

#[test]
fn a_deadlock_of_some_tasks_is_warned_of_once_while_others_run() {
    let (said, trace) = warnings(async {
        two([lock("left"), lock("right")], async |lock| drop(take(&lock).await)).await;
        for _ in 0..3 {
            sleep(MS).await.unwrap();
        }
    });
    let expected = "deadlock of 2 tasks: 4 b waits for lock left, held by 3 a; 3 a waits for lock \
                    right, held by 4 b";
    assert_eq!(said, [expected], "{trace}");
    let warn = trace.lines().position(|line| line.contains(" warn ")).unwrap();
    let wait = trace.lines().nth(warn + 1).unwrap();
    assert!(wait.contains("4 b        block    lock left held-by=3 "), "{wait}");
}

#[test]
fn a_circle_of_one_and_a_circle_over_a_join_are_warned_of() {
    let (said, trace) = warnings(async {
        let alone = lock("alone");
        let twice = async move {
            take(&alone).await?;
            take(&alone).await
        };
        spawn("twice", twice).detached().await;
        let door = lock("door");
        let parent = async move {
            take(&door).await?;
            let theirs = async move {
                sleep(MS).await?;
                take(&door).await
            };
            let mut child = spawn("child", theirs).await;
            drop(child.join().await);
            Ok::<_, Interrupt>(())
        };
        spawn("parent", parent).detached().await;
        sleep(2 * MS).await.unwrap();
        let gate = lock("gate");
        let last = async move {
            take(&gate).await?;
            let theirs = async move { take(&gate).await };
            let mut child = spawn("early", theirs).await;
            sleep(MS).await?;
            drop(child.join().await);
            Ok::<_, Interrupt>(())
        };
        spawn("last", last).detached().await;
        sleep(2 * MS).await.unwrap();
    });
    let expected = [
        "deadlock of 1 task: 3 twice waits for lock alone, held by 3 twice",
        "deadlock of 2 tasks: 5 child waits for lock door, held by 4 parent; 4 parent waits for \
         join 5, held by 5 child",
        "deadlock of 2 tasks: 6 last waits for join 7, held by 7 early; 7 early waits for lock \
         gate, held by 6 last",
    ];
    assert_eq!(said, expected, "{trace}");
}

/// A wait with a deadline ends, a permit may come from any task, and a task with two waits has two
/// ways out.
#[test]
fn a_circle_with_a_way_out_is_not_warned_of() {
    let locks = || [lock("left"), lock("right")];
    let permits = || ["s", "t"].map(|name| WaitQueue::with_permits(1).described("semaphore", name));
    let limited = async |lock: WaitQueue| drop(timeout_after(MS, take(&lock)).await);
    let beside = async |lock: WaitQueue| drop(race(take(&lock), sleep(MS)).await);
    for (said, trace) in [
        warnings(async {
            two(locks(), limited).await;
            sleep(5 * MS).await
        }),
        warnings(async {
            two(locks(), beside).await;
            sleep(5 * MS).await
        }),
        warnings(async {
            two(permits(), async |it| drop(take(&it).await)).await;
            sleep(MS).await
        }),
    ] {
        assert_eq!(said, [""; 0], "{trace}");
        assert!(trace.contains(" held-by="), "{trace}");
    }
}

/// A wake that reached no task has no other line.
#[test]
fn a_notification_is_a_line_with_the_number_of_tasks_that_it_woke() {
    let (_, trace) = support::kernels::on_sim(async {
        let (more, flag) = (Condition::named("more"), Event::named("flag"));
        let (queue, own) = (WaitQueue::new(), WaitQueue::new().described("turnstile", ""));
        more.notify_all();
        flag.set();
        flag.clear();
        queue.wake(3);
        own.wake(1);
        let shared = Rc::new((more, flag, Mutex::new(())));
        for _ in 0..2 {
            let (shared, queue) = (shared.clone(), queue.clone());
            let waits = async move {
                queue.wait().await?;
                shared.1.wait().await?;
                shared.0.wait(&mut shared.2.lock().await?).await
            };
            spawn("waits", waits).detached().await;
        }
        sleep(MS).await.unwrap();
        queue.wake(3);
        sleep(MS).await.unwrap();
        shared.1.set();
        sleep(MS).await.unwrap();
        shared.0.notify_one();
        shared.0.notify_all();
    });
    let notes = trace.lines().filter_map(|line| line.split_once(" main     notify   "));
    let notes: Vec<_> = notes.map(|(_, what)| what).collect();
    let expected = [
        "condition more woke=0",
        "event flag woke=0",
        "wait q3 woke=0",
        "turnstile q4 woke=0",
        "wait q3 woke=2",
        "event flag woke=2",
        "condition more woke=1",
        "condition more woke=1",
    ];
    assert_eq!(notes, expected, "{trace}");
    // The wakes come after their line.
    let mut lines = trace.lines().skip_while(|line| !line.contains("wait q3 woke=2")).skip(1);
    assert!(lines.by_ref().take(2).all(|line| line.contains(" waits    wake     wait q3 ")));
    assert_eq!(trace.matches(" notify ").count(), notes.len(), "a channel has none\n{trace}");
}
