//! The primitives between tasks: each is fair, hands over, and survives an interrupt at any trap.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use kernel::{Kernel, Sim};
use testing::{Ran, run, sweep};
use traps::sync::{Barrier, Condition, Event, Mutex, MutexGuard, OnceCell, RwLock, Semaphore};
use traps::{Either, Error, Interrupt, Task, foreign, join, race, shield, spawn, yield_now};

/// The notes, in order.
#[derive(Clone, Default)]
struct Notes(Rc<RefCell<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl ToString) {
        self.0.borrow_mut().push(note.to_string());
    }

    fn text(&self) -> String {
        self.0.take().join(" ")
    }
}

/// The tasks that are inside.
#[derive(Clone, Default)]
struct Inside(Rc<Cell<u32>>);

impl Inside {
    /// Enters, stays for some turns, and leaves, interrupted or not.
    async fn stay(&self, notes: &Notes, name: &str, most: u32) -> Result<(), Interrupt> {
        self.0.set(self.0.get() + 1);
        assert!(self.0.get() <= most, "{name} is one too many");
        notes.add(name);
        let stayed = async {
            yield_now().await?;
            yield_now().await
        };
        let stayed = stayed.await;
        self.0.set(self.0.get() - 1);
        stayed
    }
}

async fn turns(n: u32) {
    for _ in 0..n {
        yield_now().await.expect("nobody interrupts main");
    }
}

/// Returns for each task whether it ended without an interrupt.
async fn join_each<T: 'static, E: 'static>(tasks: Vec<Task<Result<T, E>>>) -> Vec<bool> {
    let mut ended = Vec::new();
    for mut task in tasks {
        ended.push(task.join().await.expect("nobody panics").is_ok());
    }
    ended
}

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Interrupts the tasks of [`NAMES`], one at a time, at each of their traps.
#[track_caller]
fn sweep_tasks<T, F: Future<Output = T>>(main: impl Fn() -> F, check: impl Fn(&T)) {
    let swept = sweep(|| (Sim::new(), main())).only(&NAMES).check(|_, ran| check(&ran.output));
    check(&swept.plain.output);
    assert!(swept.runs >= 6, "each was interrupted");
}

// ---- Free primitives ---------------------------------------------------------------------------

#[test]
fn a_free_primitive_is_taken_without_a_trap() {
    let ran: Ran<()> = run(async {
        let few = Semaphore::named("few", 2);
        drop((few.acquire().await.unwrap(), few.acquire().await.unwrap()));
        let lock = Mutex::named("accounts", 1);
        *lock.lock().await.unwrap() += 1;
        assert_eq!((lock.is_locked(), lock.into_inner()), (false, 2));
        let routes = RwLock::named("routes", 1);
        drop((routes.read().await.unwrap(), routes.read().await.unwrap()));
        *routes.write().await.unwrap() += 1;
        assert_eq!(*routes.read().await.unwrap(), 2);
        let event = Event::named("begun");
        event.set();
        event.wait().await.unwrap();
        assert!(Barrier::named("alone", 1).wait().await.unwrap().is_leader());
        let pool = OnceCell::named("pool");
        assert_eq!(pool.get_or_init(async || 7).await, Ok(&7));
        assert_eq!(pool.get_or_init(async || 8).await, Ok(&7));
        let mut guard = Mutex::new(0);
        *guard.get_mut() = 3;
        let mut guard = guard.lock().await.unwrap();
        Condition::named("three").wait_for(&mut guard, |n| *n == 3).await.unwrap();
    });
    assert_eq!(ran.counters.traps, run(async {}).counters.traps, "{}", ran.trace);
}

// ---- In the log --------------------------------------------------------------------------------

/// Returns the end of the report of a hang.
fn circle(main: impl Future<Output = Result<(), Interrupt>>) -> String {
    match Kernel::new(Sim::new()).run(main) {
        Err(kernel::RunError::Hang(report)) => {
            let report = report.to_string();
            let (_, circle) = report.split_once("deadlock of ").expect(&report);
            circle.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("; ")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_task_that_has_a_lock_or_makes_a_value_is_named_in_a_deadlock() {
    let said = circle(async {
        let lock = Mutex::named("accounts", ());
        drop(lock.lock().await?);
        let _guard = lock.lock().await?;
        lock.lock().await.map(drop)
    });
    assert_eq!(said, "2 main waits for mutex accounts, held by 2 main");
    let said = circle(async {
        let pool = Rc::new(OnceCell::named("pool"));
        let init = async || pool.get_or_try_init(async || Ok::<_, Interrupt>(1)).await.copied();
        pool.get_or_try_init(init).await.map(drop)
    });
    assert_eq!(said, "2 main waits for once_cell pool, held by 2 main");
    // The second guard of a reader waits for the writer, and the writer waits for the first guard.
    let said = circle(async {
        let lock = Rc::new(RwLock::named("routes", ()));
        let _reading = lock.read().await?;
        let theirs = lock.clone();
        let _writer = spawn("writer", async move { theirs.write().await.map(drop) }).await;
        yield_now().await?;
        lock.read().await.map(drop)
    });
    let writer = "3 writer waits for rwlock routes, held by 2 main";
    assert_eq!(said, format!("2 main waits for rwlock routes, held by 3 writer; {writer}"));
}

#[test]
fn who_waits_for_no_task_waits_for_a_name() {
    let ran = run(async {
        let (event, pair) = (Event::named("begun"), Barrier::named("pair", 2));
        let _ = race(join(event.wait(), pair.wait()), turns(1)).await;
        let (lock, more) = (Mutex::new(0), Condition::named("more"));
        let mut guard = lock.lock().await.unwrap();
        let _ = race(more.wait(&mut guard), turns(1)).await;
    });
    for wait in
        ["await    event begun k=", "await    barrier pair k=", "await    condition more k="]
    {
        assert!(ran.trace.contains(wait), "{}", ran.trace);
    }
}

// ---- Semaphore ---------------------------------------------------------------------------------

#[test]
fn a_permit_that_is_given_back_is_on_its_way_to_the_first_in_line() {
    let notes = Notes::default();
    run(async {
        let (one, inside) = (Semaphore::new(1), Inside::default());
        let permit = one.acquire().await.unwrap();
        let mut tasks = Vec::new();
        for name in NAMES {
            let (permit, inside, notes) = (one.acquire(), inside.clone(), notes.clone());
            let work = async move {
                let _permit = permit.await?;
                inside.stay(&notes, name, 1).await
            };
            tasks.push(spawn(name, work).await);
        }
        turns(1).await;
        drop(permit);
        assert!(one.try_acquire().is_none(), "nobody overtakes");
        let late = one.acquire().await.unwrap();
        notes.add("late");
        assert_eq!(one.available_permits(), 0);
        drop(late);
        assert_eq!((join_each(tasks).await, one.available_permits()), (vec![true; 3], 1));
    });
    assert_eq!(notes.text(), "a b c late");
}

#[test]
fn new_permits_go_to_waiters_first() {
    run(async {
        let few = Semaphore::new(0);
        let mut tasks = Vec::new();
        for name in NAMES {
            let permit = few.acquire();
            let forget = async move { permit.await.map(traps::sync::Permit::forget) };
            tasks.push(spawn(name, forget).await);
        }
        turns(1).await;
        few.add_permits(5).unwrap();
        assert_eq!(few.available_permits(), 2, "three are on their way");
        assert_eq!(join_each(tasks).await, [true; 3]);
        assert_eq!(few.available_permits(), 2, "what is forgotten does not come back");
        assert_eq!(few.add_permits(u32::MAX - 1), Err(Error::Full));
        few.add_permits(u32::MAX - 2).unwrap();
        assert_eq!(few.available_permits(), u32::MAX);
    });
}

#[test]
fn a_bounded_semaphore_refuses_one_permit_too_many_wherever_the_others_are() {
    run(async {
        let two = Semaphore::named("two", 2).bounded();
        assert_eq!(two.add_permits(1), Err(Error::Full));
        let held = two.acquire().await.unwrap();
        let gone = two.acquire().await.unwrap();
        assert_eq!(two.clone().add_permits(1), Err(Error::Full));
        gone.forget();
        assert_eq!(two.add_permits(2), Err(Error::Full), "and then none is made");
        assert_eq!((two.available_permits(), two.add_permits(1)), (0, Ok(())));
        drop(held);
        assert_eq!((two.available_permits(), two.add_permits(1)), (2, Err(Error::Full)));
    });
}

#[test]
fn a_semaphore_survives_an_interrupt_anywhere() {
    let main = || async {
        let (few, inside, notes) = (Semaphore::new(1), Inside::default(), Notes::default());
        let mut tasks = Vec::new();
        for name in NAMES {
            let (permit, inside, notes) = (few.acquire(), inside.clone(), notes.clone());
            let work = async move {
                let _permit = permit.await?;
                inside.stay(&notes, name, 1).await
            };
            tasks.push(spawn(name, work).await);
        }
        let ended = join_each(tasks).await;
        (few.available_permits(), inside.0.get(), ended)
    };
    sweep_tasks(main, |(free, inside, ended)| {
        assert_eq!((*free, *inside), (1, 0));
        assert!(ended.iter().filter(|ok| **ok).count() >= 2, "{ended:?}");
    });
}

// ---- Mutex -------------------------------------------------------------------------------------

#[test]
fn a_mutex_is_handed_over_in_the_order_of_arrival() {
    let notes = Notes::default();
    run(async {
        let (lock, inside) = (Rc::new(Mutex::new(())), Inside::default());
        let guard = lock.lock().await.unwrap();
        let mut tasks = Vec::new();
        for name in NAMES {
            let (lock, inside, notes) = (lock.clone(), inside.clone(), notes.clone());
            let work = async move {
                let _guard = lock.lock().await?;
                inside.stay(&notes, name, 1).await
            };
            tasks.push(spawn(name, work).await);
        }
        turns(1).await;
        // The second in the queue gives up, and its place is gone.
        tasks[1].cancel_now("");
        turns(1).await;
        drop(guard);
        assert!(lock.is_locked() && lock.try_lock().is_none(), "it is on its way");
        drop(lock.lock().await.unwrap());
        notes.add("late");
        assert_eq!((join_each(tasks).await, lock.is_locked()), (vec![true, false, true], false));
    });
    assert_eq!(notes.text(), "a c late");
}

#[test]
fn a_mutex_survives_an_interrupt_anywhere() {
    let main = || async {
        let (lock, notes) = (Rc::new(Mutex::new(Inside::default())), Notes::default());
        let mut tasks = Vec::new();
        for name in NAMES {
            let (lock, notes) = (lock.clone(), notes.clone());
            tasks.push(
                spawn(name, async move { lock.lock().await?.stay(&notes, name, 1).await }).await,
            );
        }
        let ended = join_each(tasks).await;
        let inside = lock.try_lock().expect("it is free").0.get();
        (inside, ended)
    };
    sweep_tasks(main, |(inside, ended)| {
        assert_eq!(*inside, 0);
        assert!(ended.iter().filter(|ok| **ok).count() >= 2, "{ended:?}");
    });
}

// ---- RwLock ------------------------------------------------------------------------------------

/// A task that reads or, if its name is in capitals, writes.
async fn visitor(
    name: &'static str,
    lock: &Rc<RwLock<()>>,
    inside: &Inside,
    notes: &Notes,
) -> Task<Result<(), Interrupt>> {
    let (lock, inside, notes) = (lock.clone(), inside.clone(), notes.clone());
    let visit = async move {
        if name.chars().all(char::is_uppercase) {
            let _guard = lock.write().await?;
            inside.stay(&notes, name, 1).await
        } else {
            let _guard = lock.read().await?;
            inside.stay(&notes, name, 9).await
        }
    };
    spawn(name, visit).await
}

#[test]
fn readers_that_follow_each_other_are_in_together_and_none_overtakes_a_writer() {
    let notes = Notes::default();
    run(async {
        let (lock, inside) = (Rc::new(RwLock::new(())), Inside::default());
        let guard = lock.write().await.unwrap();
        let mut tasks = Vec::new();
        for name in ["r", "s", "W", "t", "u", "X"] {
            tasks.push(visitor(name, &lock, &inside, &notes).await);
        }
        turns(1).await;
        assert!(lock.try_read().is_none() && lock.try_write().is_none());
        drop(guard);
        assert!(lock.try_read().is_none(), "it is on its way");
        let mut most = 0;
        while lock.try_write().is_none() {
            assert!(lock.try_read().is_none(), "a writer waits or writes");
            most = most.max(inside.0.get());
            turns(1).await;
        }
        assert_eq!((join_each(tasks).await, most), (vec![true; 6], 2));
    });
    assert_eq!(notes.text(), "r s W t u X");
}

#[test]
fn a_writer_that_gives_up_lets_the_readers_after_it_in_while_others_still_read() {
    let notes = Notes::default();
    run(async {
        let (lock, inside) = (Rc::new(RwLock::new(())), Inside::default());
        let reading = lock.read().await.unwrap();
        let writer = visitor("W", &lock, &inside, &notes).await;
        let reader = visitor("r", &lock, &inside, &notes).await;
        turns(2).await;
        assert_eq!(notes.text(), "", "both wait");
        writer.cancel_now("");
        assert_eq!(join_each(vec![writer, reader]).await, [false, true]);
        assert!(lock.try_write().is_none(), "main still reads");
        drop(reading);
        assert!(lock.try_write().is_some());
    });
    assert_eq!(notes.text(), "r");
}

#[test]
fn a_writer_finds_the_last_reader_gone_that_left_in_the_same_poll() {
    run(async {
        let lock = RwLock::new(0);
        let reading = lock.read().await.unwrap();
        let leave = async { drop(reading) };
        let (written, ()) = join(async { lock.write().await.map(|mut n| *n = 1) }, leave).await;
        assert_eq!((written, *lock.read().await.unwrap()), (Ok(()), 1));
    });
}

#[test]
fn a_rwlock_survives_an_interrupt_anywhere() {
    // Each of the three tasks is once a reader and once a writer.
    for writers in [[false, true, false], [true, false, true], [true, true, false]] {
        let main = || async move {
            let (lock, inside) = (Rc::new(RwLock::new(())), Inside::default());
            let reading = lock.read().await.unwrap();
            let mut tasks = Vec::new();
            for (name, writes) in NAMES.into_iter().zip(writers) {
                let (lock, inside) = (lock.clone(), inside.clone());
                let visit = async move {
                    let notes = Notes::default();
                    if writes {
                        let _guard = lock.write().await?;
                        inside.stay(&notes, name, 1).await
                    } else {
                        let _guard = lock.read().await?;
                        inside.stay(&notes, name, 2).await
                    }
                };
                tasks.push(spawn(name, visit).await);
            }
            turns(2).await;
            drop(reading);
            let ended = join_each(tasks).await;
            (lock.try_write().is_some(), inside.0.get(), ended)
        };
        sweep_tasks(main, |(is_free, inside, ended)| {
            assert_eq!((*is_free, *inside), (true, 0));
            assert!(ended.iter().filter(|ok| **ok).count() >= 2, "{ended:?}");
        });
    }
}

// ---- Condition ---------------------------------------------------------------------------------

/// A number, and a condition for its changes.
#[derive(Default)]
struct Tank {
    level: Mutex<u32>,
    changed: Condition,
}

/// Waits for one notification, and notes it while it has the lock.
async fn waiter(name: &'static str, tank: &Rc<Tank>, notes: &Notes) -> Task<Result<(), Interrupt>> {
    let (tank, notes) = (tank.clone(), notes.clone());
    let wait = async move {
        let mut guard = tank.level.lock().await?;
        let waited = tank.changed.wait(&mut guard).await;
        assert!(tank.level.try_lock().is_none(), "it is locked again, whatever came");
        *guard += 1;
        notes.add(if waited.is_ok() { name } else { "!" });
        waited
    };
    spawn(name, wait).await
}

#[test]
fn so_many_are_notified_in_the_order_of_arrival_and_none_is_kept() {
    let notes = Notes::default();
    run(async {
        let tank = Rc::new(Tank::default());
        let mut tasks = Vec::new();
        for name in NAMES {
            tasks.push(waiter(name, &tank, &notes).await);
        }
        turns(1).await;
        assert!(tank.level.try_lock().is_some(), "who waits has unlocked it");
        tank.changed.notify(2);
        turns(3).await;
        assert_eq!(notes.text(), "a b");
        tank.changed.notify(7);
        tank.changed.notify_all();
        tank.changed.notify_one();
        tasks.push(waiter("late", &tank, &notes).await);
        turns(3).await;
        assert_eq!(notes.text(), "c");
        tank.changed.notify_one();
        assert_eq!(join_each(tasks).await, [true; 4]);
        assert_eq!((notes.text(), tank.level.lock().await.as_deref()), ("late".into(), Ok(&4)));
    });
}

#[test]
fn a_wait_that_is_interrupted_has_the_lock_and_takes_no_notification() {
    let notes = Notes::default();
    run(async {
        let tank = Rc::new(Tank::default());
        let first = waiter("a", &tank, &notes).await;
        let second = waiter("b", &tank, &notes).await;
        turns(1).await;
        let guard = tank.level.lock().await.unwrap();
        first.cancel_now("");
        turns(3).await;
        assert_eq!(notes.text(), "", "it waits for the lock, which is main's");
        drop(guard);
        tank.changed.notify_one();
        assert_eq!(join_each(vec![first, second]).await, [false, true]);
        assert!(!tank.level.is_locked());
    });
    assert_eq!(notes.text(), "! b");
}

#[test]
fn an_interrupt_during_the_second_wait_for_the_lock_is_kept_for_the_next_trap() {
    let notes = Notes::default();
    run(async {
        let tank = Rc::new(Tank::default());
        let (theirs, noted) = (tank.clone(), notes.clone());
        let wait = async move {
            let mut guard = theirs.level.lock().await?;
            noted.add(theirs.changed.wait(&mut guard).await.is_ok());
            noted.add(*guard);
            noted.add(yield_now().await.is_ok());
            Ok::<_, Interrupt>(())
        };
        let mut task = spawn("waiter", wait).await;
        turns(1).await;
        let mut guard = tank.level.lock().await.unwrap();
        tank.changed.notify_one();
        turns(2).await;
        task.cancel_now("");
        turns(2).await;
        *guard = 5;
        drop(guard);
        task.join().await.unwrap().unwrap();
        assert!(!tank.level.is_locked());
    });
    assert_eq!(notes.text(), "true 5 false");
}

/// Waits for a notification and for the end of `other`, which wins.
async fn give_up_at(
    other: impl Future,
    guard: &mut MutexGuard<'_, u32>,
    changed: &Condition,
) -> bool {
    matches!(race(other, changed.wait(guard)).await, Either::Left(_))
}

#[test]
fn a_notification_of_a_wait_that_is_dropped_is_for_the_next() {
    // Dropped before it is read, and while it waits for the lock.
    for midway in [false, true] {
        let notes = Notes::default();
        run(async {
            let (tank, event) = (Rc::new(Tank::default()), Rc::new(Event::new()));
            let (theirs, end, noted) = (tank.clone(), event.clone(), notes.clone());
            let first = async move {
                let mut guard = theirs.level.lock().await.unwrap();
                assert!(give_up_at(end.wait(), &mut guard, &theirs.changed).await);
                let used = catch_unwind(AssertUnwindSafe(|| *guard));
                noted.add(used.is_err());
            };
            let mut first = spawn("first", first).await;
            let mut second = waiter("second", &tank, &notes).await;
            turns(1).await;
            let guard = tank.level.lock().await.unwrap();
            tank.changed.notify_one();
            if midway {
                turns(2).await;
            }
            event.set();
            turns(2).await;
            drop(guard);
            first.join().await.unwrap();
            second.join().await.unwrap().unwrap();
            assert!(!tank.level.is_locked());
        });
        assert_eq!(notes.text(), "true second", "{midway}");
    }
}

#[test]
fn an_interrupt_of_a_wait_that_is_dropped_before_it_has_the_lock_is_kept_for_the_next_trap() {
    let ended = run(async {
        let tank = Rc::new(Tank::default());
        let theirs = tank.clone();
        let wait = async move {
            let mut guard = theirs.level.lock().await?;
            // These turns are shielded from the cancellation.
            assert!(give_up_at(shield(turns(5)), &mut guard, &theirs.changed).await);
            yield_now().await
        };
        let mut task = spawn("waiter", wait).await;
        turns(1).await;
        let _guard = tank.level.lock().await.unwrap();
        task.cancel_now("");
        task.join().await.unwrap()
    });
    assert!(ended.output.unwrap_err().is_cancelled());
}

#[test]
fn a_condition_survives_an_interrupt_anywhere() {
    let main = || async {
        let tank = Rc::new(Tank::default());
        let mut tasks = Vec::new();
        for name in NAMES {
            let tank = tank.clone();
            let take = async move {
                let mut guard = tank.level.lock().await?;
                tank.changed.wait_for(&mut guard, |level| *level > 0).await?;
                yield_now().await?;
                *guard -= 1;
                Ok::<_, Interrupt>(())
            };
            tasks.push(spawn(name, take).await);
        }
        for _ in NAMES {
            turns(1).await;
            *tank.level.lock().await.unwrap() += 1;
            tank.changed.notify_all();
        }
        let taken = join_each(tasks).await.into_iter().filter(|ok| *ok).count();
        let left = *tank.level.try_lock().expect("it is free");
        (taken, left)
    };
    sweep_tasks(main, |(taken, left)| {
        assert_eq!(*taken as u32 + left, 3);
        assert!(*taken >= 2, "nobody else missed a notification");
    });
}

// ---- Event -------------------------------------------------------------------------------------

#[test]
fn an_event_wakes_all_waiters_in_the_order_of_arrival_and_survives_an_interrupt_anywhere() {
    let main = || async {
        let (event, notes) = (Rc::new(Event::new()), Notes::default());
        let mut tasks = Vec::new();
        for name in NAMES {
            let (event, notes) = (event.clone(), notes.clone());
            let wait = async move {
                event.wait().await?;
                notes.add(name);
                Ok::<_, Interrupt>(())
            };
            tasks.push(spawn(name, wait).await);
        }
        turns(1).await;
        event.set();
        event.clear();
        let ended = join_each(tasks).await;
        assert!(!event.is_set());
        let late = race(event.wait(), yield_now()).await;
        assert!(matches!(late, Either::Right(_)), "no wake is left");
        (notes.text(), ended)
    };
    sweep_tasks(main, |(order, ended)| {
        let came = NAMES.into_iter().zip(ended).filter(|(_, ok)| **ok).map(|(name, _)| name);
        let came: Vec<&str> = came.collect();
        assert!(came.len() >= 2, "{came:?}");
        assert_eq!(*order, came.join(" "));
    });
}

// ---- Barrier -----------------------------------------------------------------------------------

#[test]
fn all_go_on_when_the_last_has_come_and_so_again_and_again() {
    let notes = Notes::default();
    run(async {
        let all = Rc::new(Barrier::new(3));
        let mut tasks = Vec::new();
        for name in NAMES {
            let (all, notes) = (all.clone(), notes.clone());
            let rounds = async move {
                for round in 0..3 {
                    notes.add(round);
                    let led = all.wait().await?.is_leader();
                    notes.add(if led { name.to_uppercase() } else { name.to_owned() });
                }
                Ok::<_, Interrupt>(())
            };
            tasks.push(spawn(name, rounds).await);
        }
        assert_eq!(join_each(tasks).await, [true; 3]);
    });
    // The leader continues at once, and is first in the next round.
    assert_eq!(notes.text(), "0 0 0 C 1 a 1 b 1 B 2 c 2 a 2 A b c");
}

#[test]
fn a_task_interrupted_at_a_barrier_does_not_count_unless_the_others_have_passed() {
    let notes = Notes::default();
    run(async {
        let both = Rc::new(Barrier::new(2));
        let comer = || {
            let (both, notes) = (both.clone(), notes.clone());
            let come = async move {
                notes.add(both.wait().await.is_ok());
                notes.add(yield_now().await.is_ok());
                Ok::<_, Interrupt>(())
            };
            spawn("comer", come)
        };
        // This wait has returned before main comes.
        let early = comer().await;
        turns(1).await;
        early.cancel_now("");
        turns(2).await;
        assert_eq!(notes.text(), "false true");
        // Main comes before this wait is polled, so it counts.
        let late = comer().await;
        turns(1).await;
        late.cancel_now("");
        assert!(both.wait().await.unwrap().is_leader());
        assert_eq!(join_each(vec![early, late]).await, [true; 2]);
        assert_eq!(notes.text(), "true false");
        // A dropped wait does not count either.
        let dropped = race(both.wait(), yield_now()).await;
        assert!(matches!(dropped, Either::Right(_)));
        let pair = join(both.wait(), both.wait()).await;
        assert_eq!((pair.0.unwrap().is_leader(), pair.1.unwrap().is_leader()), (false, true));
    });
}

#[test]
fn a_wake_from_before_that_was_dropped_unread_ends_no_later_wait() {
    run(async {
        let (go, event) = (Rc::new(Event::new()), Rc::new(Event::new()));
        let pair = Rc::new(Barrier::new(2));
        let (theirs, gone) = (event.clone(), go.clone());
        let at_event = async move { race(gone.wait(), theirs.wait()).await };
        let (theirs, gone) = (pair.clone(), go.clone());
        let at_barrier = async move { race(gone.wait(), theirs.wait()).await };
        let mut tasks = (spawn("event", at_event).await, spawn("pair", at_barrier).await);
        turns(1).await;
        go.set();
        event.set();
        event.clear();
        assert!(pair.wait().await.unwrap().is_leader());
        // Both tasks have their wake, and drop it when they are polled, after this poll.
        let later = race(event.wait(), pair.wait());
        assert!(matches!(race(later, turns(4)).await, Either::Right(())));
        assert!(matches!(tasks.0.join().await, Ok(Either::Left(Ok(())))));
        assert!(matches!(tasks.1.join().await, Ok(Either::Left(Ok(())))));
    });
}

#[test]
fn a_barrier_survives_an_interrupt_anywhere() {
    let main = || async {
        let (all, leaders) = (Rc::new(Barrier::new(3)), Rc::new(Cell::new(0)));
        let mut tasks = Vec::new();
        for name in NAMES {
            let (all, leaders) = (all.clone(), leaders.clone());
            let rounds = async move {
                for round in 1..=2 {
                    // An interrupted task comes again, and counts once.
                    let passed = match all.wait().await {
                        Err(_) => all.wait().await?,
                        Ok(passed) => passed,
                    };
                    leaders.set(leaders.get() + u32::from(passed.is_leader()));
                    assert!([round, round - 1].contains(&leaders.get()), "all three are here");
                }
                Ok::<_, Interrupt>(())
            };
            tasks.push(spawn(name, rounds).await);
        }
        (join_each(tasks).await, leaders.get())
    };
    sweep_tasks(main, |ended| assert_eq!(*ended, (vec![true; 3], 2)));
}

// ---- OnceCell ----------------------------------------------------------------------------------

#[test]
fn the_first_task_makes_the_value_and_the_others_wait_for_it() {
    let notes = Notes::default();
    run(async {
        let cell = Rc::new(OnceCell::new());
        let mut tasks = Vec::new();
        for name in NAMES {
            let (cell, noted) = (cell.clone(), notes.clone());
            let get = async move {
                let init = async || {
                    noted.add("make");
                    turns(2).await;
                    name
                };
                let value = *cell.get_or_init(init).await?;
                noted.add(name.to_owned() + value);
                Ok::<_, Interrupt>(())
            };
            tasks.push(spawn(name, get).await);
        }
        turns(1).await;
        assert_eq!((cell.set("mine"), cell.get()), (Err("mine"), None), "it is being made");
        assert_eq!(join_each(tasks).await, [true; 3]);
        assert_eq!((cell.set("mine"), cell.get()), (Err("mine"), Some(&"a")));
        let other = OnceCell::default();
        assert_eq!((other.set(7), other.get_or_init(async || 8).await), (Ok(()), Ok(&7)));
    });
    assert_eq!(notes.text(), "make aa ba ca");
}

#[test]
fn where_an_initialiser_fails_or_is_dropped_the_first_that_waits_tries() {
    let notes = Notes::default();
    run(async {
        let (cell, made) = (Rc::new(OnceCell::new()), Rc::new(Event::new()));
        let mut tasks = Vec::new();
        for name in NAMES {
            let (cell, made, notes) = (cell.clone(), made.clone(), notes.clone());
            let get = async move {
                let init = async || {
                    notes.add(name);
                    yield_now().await?;
                    match name {
                        "a" => Err(Error::Closed),
                        "b" => Ok(foreign(pending()).await?),
                        _ => Ok(7),
                    }
                };
                match race(made.wait(), cell.get_or_try_init(init)).await {
                    Either::Left(_) => Err(Error::Gone),
                    Either::Right(value) => value.map(|value| notes.add(value)),
                }
            };
            tasks.push(spawn(name, get).await);
        }
        turns(5).await;
        assert_eq!(notes.text(), "a b");
        // Now `b` drops its attempt, and `c` no longer waits.
        let late = cell.get_or_try_init(async || Ok::<_, Interrupt>(8));
        made.set();
        assert_eq!(late.await, Ok(&8));
        assert_eq!(join_each(tasks).await, [false; 3]);
    });
    assert_eq!(notes.text(), "");
}

#[test]
fn a_once_cell_survives_an_interrupt_anywhere() {
    let main = || async {
        let (cell, making) = (Rc::new(OnceCell::new()), Inside::default());
        let mut tasks = Vec::new();
        for name in NAMES {
            let (cell, making) = (cell.clone(), making.clone());
            let get = async move {
                let notes = Notes::default();
                let init = async || making.stay(&notes, name, 1).await.map(|()| name);
                cell.get_or_try_init(init).await.map(|value| assert!(!value.is_empty()))
            };
            tasks.push(spawn(name, get).await);
        }
        let ended = join_each(tasks).await;
        (ended, cell.get().copied())
    };
    sweep_tasks(main, |(ended, value)| {
        assert!(ended.iter().filter(|ok| **ok).count() >= 2, "{ended:?}");
        assert_eq!(*value, if ended[0] { Some("a") } else { Some("b") });
    });
}

#[test]
fn user_code_that_panics_leaves_a_primitive_whole() {
    let ran = run(async {
        let cell = Rc::new(OnceCell::new());
        let theirs = cell.clone();
        let init = async move || -> u32 {
            yield_now().await.unwrap();
            panic!("of the initializer")
        };
        let mut first =
            spawn("first", async move { theirs.get_or_init(init).await.copied() }).await;
        let theirs = cell.clone();
        let second = async move { theirs.get_or_init(async || 7).await.copied() };
        let mut second = spawn("second", second).await;
        first.join().await.unwrap_err();
        assert_eq!(second.join().await.unwrap(), Ok(7));

        let (mutex, change) = (Rc::new(Mutex::new(1)), Rc::new(Condition::new()));
        let (theirs, news) = (mutex.clone(), change.clone());
        let choosy = async move {
            let mut guard = theirs.lock().await.unwrap();
            let holds = |n: &u32| if *n > 1 { panic!("of the predicate") } else { false };
            news.wait_for(&mut guard, holds).await
        };
        let mut choosy = spawn("choosy", choosy).await;
        turns(3).await;
        *mutex.lock().await.unwrap() = 2;
        change.notify_one();
        choosy.join().await.unwrap_err();
        assert_eq!(*mutex.lock().await.unwrap(), 2, "it is unlocked");
    });
    ran.output
}
