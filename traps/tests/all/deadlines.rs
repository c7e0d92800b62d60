//! The connection deadline and its guards.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use kernel::trace::{Event, Line};
use kernel::{Kernel, Options, Sim};
use support::{Notes, check, check_quietly, short};
use traps::io::{Direction, Io, Scripted};
use traps::{
    ConnectionDeadline, Either, Interrupt, Task, Time, WaitQueue, clock, connection_deadline,
    current_deadline, ignore_after, join, race, shield, sleep, spawn, timeout_after, yield_now,
};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A value that panics when it is dropped.
struct Dies;

impl Drop for Dies {
    fn drop(&mut self) {
        resume_unwind(Box::new("by design"));
    }
}

#[test]
fn a_guard_and_a_timeout_close_even_if_their_future_panics_in_its_drop() {
    let ran = check_quietly("dies", Sim::new(), async {
        let deadline = connection_deadline().await;
        let dies = || async {
            let _dies = Dies;
            sleep(9 * SECOND).await
        };
        let mut guard = Box::pin(deadline.guard(SECOND, dies()));
        let mut timeout = Box::pin(timeout_after(SECOND, dies()));
        for _ in 0..2 {
            let both =
                poll_fn(|cx| Poll::Ready((guard.as_mut().poll(cx), timeout.as_mut().poll(cx))));
            assert_eq!(both.await, (Poll::Pending, Poll::Pending));
            clock().await;
        }
        for dropped in [catch(|| drop(guard)), catch(|| drop(timeout))] {
            dropped.unwrap_err();
        }
        // The deadline interrupts the task, as outside any guard.
        deadline.arm(2 * SECOND);
        short(&sleep(5 * SECOND).await)
    });
    assert_eq!(ran.output, "TT");
    assert_eq!(ran.count("fire"), 1, "{}", ran.trace);
}

fn catch(code: impl FnOnce()) -> thread::Result<()> {
    catch_unwind(AssertUnwindSafe(code))
}

/// Three phases share one deadline: the log shows `d1` in each of them, and the deadline was made
/// once.
#[test]
fn d1_one_deadline_serves_every_phase() {
    let ran = check_quietly("d1", Sim::new(), async {
        let deadline = connection_deadline().await;
        for (span, takes) in [(10, 1), (30, 2), (5, 1), (30, 29)] {
            deadline.guard(span * SECOND, sleep(takes * SECOND)).await.unwrap();
        }
        deadline.number()
    });
    assert_eq!(ran.output, 1);
    let asked = ran.lines(|line| line.contains(" trap     connection_deadline"));
    let scopes = ran.lines(|line| line.contains(" trap     guard d1"));
    let armed = ran.lines(|line| line.contains(" arm      d1 "));
    assert_eq!((asked.len(), scopes.len(), armed.len()), (1, 4, 4), "{}", ran.trace);
    assert_eq!((ran.count("arm"), ran.count("disarm")), (4, 4));
}

/// The deadline interrupts the task that made it, whichever task arms it.
#[test]
fn d1_it_is_bound_to_the_task_that_made_it() {
    let notes = Notes::default();
    check_quietly("d1", Sim::new(), async {
        let shared = Rc::new(RefCell::new(None));
        let (noted, made) = (notes.clone(), shared.clone());
        let mut maker = spawn("maker", async move {
            *made.borrow_mut() = Some(Rc::new(connection_deadline().await));
            noted.add(format!("maker:{}", short(&sleep(5 * SECOND).await)));
        })
        .await;
        let noted = notes.clone();
        let mut other = spawn("other", async move {
            let deadline = shared.take().expect("the maker ran first");
            deadline.arm(SECOND);
            noted.add(format!("other:{}", short(&sleep(5 * SECOND).await)));
        })
        .await;
        maker.join().await.unwrap();
        assert_eq!(clock().await.as_micros(), 1_000_000);
        other.join().await.unwrap();
    });
    assert_eq!(notes.text(), "maker:TT other:ok");
}

/// Longer or shorter, near or far (the tick is 300 ms), the last arm counts.
#[test]
fn d2_a_longer_arm_replaces_a_shorter_one() {
    for (first, then) in [(10, 500), (500, 10), (10, 20), (20, 10), (500, 700), (700, 500)] {
        let ran = check_quietly("d2", Sim::new(), async {
            let deadline = connection_deadline().await;
            deadline.arm(first * MS);
            deadline.arm(then * MS);
            let end = sleep(SECOND).await;
            let fired = deadline.fired();
            // Arming the deadline also clears `fired`.
            deadline.arm(first * MS);
            (short(&end), end.unwrap_err().reading(), fired, deadline.fired())
        });
        let (end, at, fired, still) = ran.output;
        assert_eq!((end, fired, still), ("TT", true, false), "{first} {then}");
        let due = Time::ZERO + then * MS;
        assert!((due..=due + 300 * MS).contains(&at), "{first} {then}: {at}");
        assert_eq!(ran.count("fire"), 1);
    }
}

#[test]
fn d5_a_guard_disarms_on_every_way_out() {
    let ran = check("d5_a_guard_disarms_on_every_way_out", Sim::new(), async {
        let deadline = connection_deadline().await;
        let value = deadline.guard(SECOND, sleep(100 * MS)).await;
        let error = deadline.guard(SECOND, async {
            sleep(100 * MS).await?;
            Err::<(), Box<dyn std::error::Error>>("refused".into())
        });
        let error = error.await.unwrap_err().to_string();
        let timeout = deadline.guard(SECOND, sleep(2 * SECOND)).await;
        let dropped = ignore_after(100 * MS, deadline.guard(SECOND, sleep(5 * SECOND))).await;
        sleep(10 * SECOND).await.unwrap();
        (short(&value), error, short(&timeout), dropped.unwrap().is_none())
    });
    assert_eq!(ran.output, ("ok", "refused".to_owned(), "TT", true));
    assert_eq!((ran.count("arm"), ran.count("disarm"), ran.count("fire")), (4, 3, 5));
}

/// Six ways out of a guard. Each disarms a deadline that has not fired, and none ends a later wait.
#[test]
fn d5_nothing_stays_armed_on_any_way_out() {
    let ways: [(&str, &str, usize); 6] = [
        ("value", "ok", 0),
        ("error", "refused", 0),
        ("timeout", "TT", 1),
        ("cancel", "CAN", 0),
        ("drop", "dropped", 0),
        ("panic", "panicked", 0),
    ];
    for (way, wanted, fires) in ways {
        let never = WaitQueue::new();
        let mut kernel = Kernel::new(Sim::new());
        let main = async {
            let body = async move {
                if way == "panic" {
                    panic!("on purpose");
                }
                let takes = if ["value", "error"].contains(&way) { 1 } else { 9 };
                sleep(takes * SECOND).await?;
                if way == "error" {
                    return Err("refused".into());
                }
                Ok::<(), Box<dyn std::error::Error>>(())
            };
            let noted = Notes::default();
            let theirs = noted.clone();
            let mut victim = spawn("victim", async move {
                let deadline = Rc::new(connection_deadline().await);
                let guard = deadline.guard(5 * SECOND, body);
                let end = if way == "drop" {
                    match traps::race(guard, sleep(2 * SECOND)).await {
                        traps::Either::Left(_) => unreachable!("it takes longer"),
                        traps::Either::Right(_) => "dropped".to_owned(),
                    }
                } else {
                    match guard.await {
                        Ok(()) => "ok".to_owned(),
                        Err(error) => match traps::Interruptible::interrupt(&error) {
                            Some(why) => support::short_kind(why.kind()).to_owned(),
                            None => error.to_string(),
                        },
                    }
                };
                theirs.add(end);
                deadline
            })
            .await;
            sleep(2 * SECOND).await.unwrap();
            if way == "cancel" {
                victim.cancel_now("shutdown");
            }
            let deadline = victim.join().await.ok();
            if deadline.is_none() {
                noted.add("panicked");
            }
            (noted.text(), deadline)
        };
        let (end, deadline) = kernel.run(main).unwrap();
        assert_eq!(end, wanted, "{way}");
        let held = kernel.counters();
        assert_eq!((held.timers, held.pending), (0, 0), "{way}: {held:?}");
        let fired = deadline.as_ref().is_some_and(|deadline| deadline.fired());
        assert_eq!(usize::from(fired), fires, "{way}");
        // The next wait is not interrupted.
        let next = async { ignore_after(60 * SECOND, never.wait()).await };
        assert_eq!(kernel.run(next).unwrap(), Ok(None), "{way}");
        drop(deadline);
        kernel.shutdown().unwrap();
    }
}

#[test]
fn d10_a_deadline_is_used_again_after_it_fired() {
    let ran = check_quietly("d10", Sim::new(), async {
        let deadline = connection_deadline().await;
        let first = deadline.guard(SECOND, sleep(2 * SECOND)).await;
        let fired = deadline.fired();
        let second = deadline.guard(SECOND, sleep(100 * MS)).await;
        (short(&first), fired, short(&second), deadline.fired())
    });
    assert_eq!(ran.output, ("TT", true, "ok", false));
}

#[test]
fn d31_guards_nest_on_one_deadline() {
    let inner_first = check("d31_guards_nest_on_one_deadline", Sim::new(), async {
        let deadline = connection_deadline().await;
        let mut log = Vec::new();
        let outer = deadline
            .guard(SECOND, async {
                let inner = deadline.guard(300 * MS, sleep(2 * SECOND)).await;
                log.push(short(&inner));
                let inner = deadline.guard(5 * SECOND, sleep(2 * SECOND)).await;
                log.push(short(&inner));
                inner
            })
            .await;
        log.push(short(&outer));
        log
    });
    assert_eq!(inner_first.output, ["TT", "TCE", "TT"]);
    assert_eq!(inner_first.took, SECOND);
}

#[test]
fn d7_in_its_turn_the_deadline_wins_and_the_byte_is_still_there() {
    let sim = Sim::new().ready_at(Time::from_micros(1_000_000), 1, traps::io::Direction::Read);
    let ran = check("d7_in_its_turn_the_deadline_wins", sim, async {
        let socket = Io::new(Scripted(1));
        let deadline = connection_deadline().await;
        let guarded = deadline.guard(SECOND, async {
            socket.readable().await.map_err(|error| match error {
                traps::Error::Interrupt(interrupt) => interrupt,
                other => panic!("{other}"),
            })
        });
        let guarded = guarded.await;
        let after = socket.readable().await.is_ok();
        (short(&guarded), after)
    });
    assert_eq!(ran.output, ("TT", true));
    assert_eq!(ran.took, SECOND);
}

/// The deadline fires, and the task is cancelled before or after it runs. The timeout stays.
#[test]
fn d29_a_timeout_in_its_turn_stays_and_the_cancellation_is_next() {
    for canceller_first in [true, false] {
        let sim = Sim::new();
        let clock = sim.clock();
        let ran = check_quietly("d29", sim, async move {
            let victim = async {
                let deadline = connection_deadline().await;
                let end = deadline.guard(SECOND, sleep(5 * SECOND)).await;
                let (after, again) = (sleep(SECOND).await, sleep(5 * SECOND).await);
                (short(&end), short(&after), short(&again))
            };
            let child = spawn("victim", victim).await;
            yield_now().await.unwrap();
            if canceller_first {
                // The task is already ready when the deadline fires.
                clock.advance(SECOND);
                yield_now().await.unwrap();
            } else {
                sleep(SECOND).await.unwrap();
            }
            child.cancel_now("stop");
            let mut child = child;
            child.join().await.unwrap()
        });
        assert_eq!(ran.output, ("TT", "CAN", "ok"), "canceller first: {canceller_first}");
        let effect = if canceller_first { "= pending" } else { "= delivered" };
        assert_eq!(ran.lines(|line| line.contains(effect)).len(), 1, "{}", ran.trace);
    }
}

/// The cancellation is delivered. Before the victim runs, the deadline is due, too.
#[test]
fn d29_a_cancellation_before_it_stands() {
    for guards in [1, 2] {
        let sim = Sim::new();
        let world = sim.clock();
        let ran = check_quietly("d29", sim, async {
            let victim = async move {
                let deadline = connection_deadline().await;
                let inner = deadline.guard(SECOND, sleep(5 * SECOND));
                let end = match guards {
                    1 => inner.await,
                    _ => deadline.guard(SECOND, inner).await,
                };
                let (after, again) = (sleep(SECOND).await, sleep(5 * SECOND).await);
                (short(&end), short(&after), short(&again))
            };
            let mut child = spawn("victim", victim).await;
            sleep(500 * MS).await.unwrap();
            child.cancel_now("stop");
            world.advance(500 * MS);
            clock().await;
            child.join().await.unwrap()
        });
        assert_eq!(ran.output, ("CAN", "ok", "ok"), "{guards}\n{}", ran.trace);
        let races = ran.lines(|line| line.contains("winner=cancel loser=timeout"));
        assert_eq!(races.len(), guards, "one for each that was due\n{}", ran.trace);
    }
}

#[test]
fn in_a_late_turn_a_guard_fires_before_a_timeout_around_it() {
    let ran = check_quietly("guard", Sim::new().late_by(SECOND), async {
        let deadline = connection_deadline().await;
        let mut inner = None;
        let outer = timeout_after(500 * MS, async {
            let end = deadline.guard(600 * MS, sleep(5 * SECOND)).await;
            inner = Some(short(&end));
            end
        });
        let outer: Result<_, Interrupt> = outer.await;
        (inner, short(&outer))
    });
    assert_eq!(ran.output, (Some("TT"), "TT"), "{}", ran.trace);
}

#[test]
fn d3_zero_disarms_and_a_guard_of_zero_has_no_limit() {
    let ran = check_quietly("d3", Sim::new(), async {
        let deadline = connection_deadline().await;
        deadline.arm(SECOND);
        deadline.arm(Duration::ZERO);
        let slept = sleep(2 * SECOND).await;
        let free = deadline.guard(Duration::ZERO, sleep(3600 * SECOND)).await;
        (short(&slept), short(&free))
    });
    assert_eq!(ran.output, ("ok", "ok"));
    assert_eq!((ran.count("arm"), ran.count("disarm")), (1, 1));
    assert_eq!(ran.lines(|line| line.contains(" guard ")).len(), 0);
}

/// After a guard, as after a timeout, a wait that continues is in the scope around the guard.
#[test]
fn d5_a_wait_that_outlives_its_guard_is_not_in_the_next_one() {
    for beside in [0, 20] {
        let ran = check_quietly("outlives", Sim::new(), async move {
            let mut others: FuturesUnordered<_> =
                (0..beside).map(|_| sleep(3600 * SECOND)).collect();
            poll_fn(|cx| Poll::Ready(others.poll_next_unpin(cx).is_ready())).await;
            let deadline = connection_deadline().await;
            let mut nap = pin!(sleep(60 * SECOND));
            let first = async {
                traps::race(nap.as_mut(), sleep(SECOND)).await;
                Ok(())
            };
            let first: Result<(), Interrupt> = deadline.guard(10 * SECOND, first).await;
            let second = deadline.guard(SECOND, sleep(5 * SECOND)).await;
            let napped = nap.await;
            (short(&first), short(&second), short(&napped), clock().await)
        });
        assert_eq!(ran.output, ("ok", "TT", "ok", Time::ZERO + 60 * SECOND), "{beside}");
        // The wait is in a timeout, which is inside the guard while the guard runs.
        let ran = check_quietly("outlives", Sim::new(), async move {
            let mut others: FuturesUnordered<_> =
                (0..beside).map(|_| sleep(3600 * SECOND)).collect();
            poll_fn(|cx| Poll::Ready(others.poll_next_unpin(cx).is_ready())).await;
            let deadline = connection_deadline().await;
            let mut nap = pin!(timeout_after(100 * SECOND, sleep(60 * SECOND)));
            let first = async {
                traps::race(nap.as_mut(), sleep(SECOND)).await;
                Ok::<_, Interrupt>(())
            };
            deadline.guard(10 * SECOND, first).await.unwrap();
            let second = deadline.guard(SECOND, sleep(5 * SECOND)).await;
            (short(&second), short(&nap.await))
        });
        assert_eq!(ran.output, ("TT", "ok"), "{beside}");
    }
}

#[test]
fn d3_zero_forgets_an_earlier_interrupt() {
    let ran = check_quietly("d3", Sim::new(), async {
        let deadline = connection_deadline().await;
        let mut fired = Vec::new();
        for guards in [false, true] {
            deadline.guard(SECOND, sleep(2 * SECOND)).await.unwrap_err();
            fired.push(deadline.fired());
            if guards {
                deadline.guard(Duration::ZERO, sleep(SECOND)).await.unwrap();
            } else {
                deadline.arm(Duration::ZERO);
            }
            fired.push(deadline.fired());
        }
        fired
    });
    assert_eq!(ran.output, [true, false, true, false]);
}

/// The deadline fired while a shield held back its interrupt, so no code has read it yet.
#[test]
fn d3_d10_an_interrupt_that_a_shield_held_back_is_forgotten_with_the_next_arm() {
    for (span, second) in [(Duration::ZERO, "ok"), (5 * SECOND, "TT")] {
        let ran = check_quietly("held back", Sim::new(), async move {
            let deadline = connection_deadline().await;
            deadline.arm(SECOND);
            shield(sleep(2 * SECOND)).await.unwrap();
            let has_fired = deadline.fired();
            deadline.arm(span);
            let first = sleep(SECOND).await;
            (has_fired, short(&first), short(&sleep(60 * SECOND).await))
        });
        assert_eq!(ran.output, (true, "ok", second), "{span:?}");
    }
}

/// A post between two runs is handled before anything is due in the second.
#[test]
fn a_deadline_that_is_disarmed_between_two_runs_does_not_fire() {
    for traced in [false, true] {
        let sim = Sim::new();
        let by_hand = sim.clock();
        let mut kernel = Kernel::new(sim);
        if traced {
            kernel.trace_to(std::io::sink());
        }
        let made = kernel.run(async {
            let made = Rc::new(RefCell::new(None));
            let theirs = made.clone();
            let sleeper = async move {
                let deadline = Rc::new(connection_deadline().await);
                deadline.arm(100 * MS);
                *theirs.borrow_mut() = Some(deadline);
                sleep(SECOND).await
            };
            let sleeper = spawn("sleeper", sleeper).await;
            sleep(MS).await.unwrap();
            (made.take().unwrap(), sleeper)
        });
        let (deadline, mut sleeper) = made.unwrap();
        deadline.disarm();
        by_hand.advance(200 * MS);
        let slept = kernel.run(async { sleeper.join().await.unwrap() }).unwrap();
        assert_eq!((short(&slept), deadline.fired()), ("ok", false), "{traced}");
    }
}

/// A zero limit disarms a deadline at once, near or far. A guard of zero arms none.
#[test]
fn d3_zero_leaves_nothing_armed_and_nothing_to_wake_for() {
    for span in [10 * MS, 10 * SECOND] {
        let mut kernel = Kernel::new(Sim::new());
        let deadline = kernel
            .run(async {
                let deadline = connection_deadline().await;
                deadline.arm(span);
                deadline
            })
            .unwrap();
        assert_eq!(kernel.counters().timers, 1);
        kernel
            .run(async {
                deadline.arm(Duration::ZERO);
                deadline.guard(Duration::ZERO, yield_now()).await.unwrap();
            })
            .unwrap();
        assert_eq!(kernel.counters().timers, 0);
        let before = kernel.counters();
        // A minute in steps that are too short for the far table: no scan happens.
        kernel
            .run(async {
                for _ in 0..600 {
                    sleep(100 * MS).await.unwrap();
                }
            })
            .unwrap();
        let after = kernel.counters();
        assert!(after.scans - before.scans <= 1, "{after:?}");
        assert_eq!(after.turns - before.turns, 601);
        drop(deadline);
    }
}

#[test]
fn d4_disarming_thrice_is_one_line() {
    let ran = check_quietly("d4", Sim::new(), async {
        let deadline = connection_deadline().await;
        deadline.disarm();
        deadline.arm(SECOND);
        for _ in 0..3 {
            deadline.disarm();
        }
        sleep(2 * SECOND).await.unwrap();
    });
    assert_eq!((ran.count("arm"), ran.count("disarm")), (1, 1));
}

/// The deadline fires when its task is already ready with a value, and is disarmed before it ends a
/// wait. The next wait of the task is not interrupted in its place.
#[test]
fn d4_a_disarmed_deadline_ends_no_later_wait_though_it_has_fired() {
    for guarded in [false, true] {
        let sim = Sim::new();
        let world = sim.clock();
        let ran = check_quietly("d4", sim, async move {
            let queue = Rc::new(WaitQueue::new());
            let theirs = queue.clone();
            let mut waiter = spawn("waiter", async move {
                let deadline = connection_deadline().await;
                let steps = async {
                    let first = short(&theirs.wait().await);
                    deadline.disarm();
                    Ok::<_, Interrupt>((first, short(&sleep(SECOND).await), deadline.fired()))
                };
                if guarded {
                    return deadline.guard(SECOND, steps).await.unwrap();
                }
                deadline.arm(SECOND);
                steps.await.unwrap()
            })
            .await;
            yield_now().await.unwrap();
            queue.wake(1);
            world.advance(2 * SECOND);
            clock().await;
            waiter.join().await.unwrap()
        });
        assert_eq!(ran.output, ("ok", "ok", true), "guarded: {guarded}\n{}", ran.trace);
        assert_eq!(ran.lines(|line| line.contains(" fire     d1 ")).len(), 1);
    }
}

#[test]
fn d6_the_timeout_is_the_result_of_the_blocked_trap() {
    let ran = check_quietly("d6", Sim::new(), async {
        let deadline = connection_deadline().await;
        let seen = RefCell::new(None);
        let guarded = deadline.guard(SECOND, async {
            let end = sleep(5 * SECOND).await;
            *seen.borrow_mut() = Some((short(&end), clock().await.as_micros()));
            end
        });
        (short(&guarded.await), seen.into_inner())
    });
    assert_eq!(ran.output, ("TT", Some(("TT", 1_000_000))));
    assert_eq!(ran.lines(|line| line.contains("deliver  k=1 = !timeout scope=s1")).len(), 1);
}

#[test]
fn d8_after_a_timeout_the_task_continues() {
    let sim = Sim::new().ready_at(Time::from_micros(2_000_000), 1, Direction::Write);
    let ran = check_quietly("d8", sim, async {
        let socket = Io::new(Scripted(1));
        let deadline = connection_deadline().await;
        let guarded = deadline.guard(SECOND, async { socket.readable().await }).await;
        let guarded = matches!(guarded, Err(traps::Error::Interrupt(why)) if !why.is_cancelled());
        // The 408 response waits for the peer, and the timeout does not interrupt that wait.
        let answer = deadline.guard(5 * SECOND, async { socket.writable().await }).await;
        (guarded, answer.is_ok(), short(&sleep(SECOND).await))
    });
    assert_eq!(ran.output, (true, true, "ok"));
    assert_eq!(ran.lines(|line| line.contains("wake     io f1 write")).len(), 1);
    assert_eq!(ran.count("deliver"), 1);
}

#[test]
fn d9_a_cancellation_from_outside_is_not_a_timeout() {
    let ran = check_quietly("d9", Sim::new(), async {
        let mut child = spawn("child", async {
            let deadline = connection_deadline().await;
            let guarded = deadline.guard(2 * SECOND, sleep(5 * SECOND)).await;
            (short(&guarded), deadline.fired())
        })
        .await;
        sleep(SECOND).await.unwrap();
        child.cancel_now("shutdown");
        child.join().await.unwrap()
    });
    assert_eq!(ran.output, ("CAN", false));
}

/// Also a cancellation by the shutdown, and also after a guard that has timed out once.
#[test]
fn d9_a_shutdown_is_a_cancellation_in_a_guard() {
    let notes = Notes::default();
    let mut kernel = Kernel::new(Sim::new());
    kernel
        .run(async {
            let noted = notes.clone();
            let child = async move {
                let deadline = connection_deadline().await;
                let first = deadline.guard(SECOND, sleep(5 * SECOND)).await;
                let second = deadline.guard(9 * SECOND, sleep(20 * SECOND)).await;
                noted.add(format!("{} {}", short(&first), short(&second)));
                noted.add(deadline.fired().to_string());
            };
            spawn("child", child).await;
            sleep(2 * SECOND).await.unwrap();
        })
        .unwrap();
    kernel.shutdown().unwrap();
    assert_eq!(notes.text(), "TT CAN false");
}

#[test]
fn d11_ten_thousand_deadlines_are_one_scan_a_tick() {
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        let mut deadlines = Vec::new();
        for n in 0..10_000_u32 {
            let deadline = connection_deadline().await;
            deadline.arm(10 * SECOND + n * MS);
            deadlines.push(deadline);
        }
        sleep(9 * SECOND).await.unwrap();
        deadlines.iter().for_each(|deadline| deadline.arm(10 * SECOND));
        sleep(9 * SECOND).await.unwrap();
    };
    kernel.run(main).unwrap();
    let counters = kernel.counters();
    assert!(counters.turns < 10, "{counters:?}");
    assert!(counters.scans <= 4, "{counters:?}");
}

/// Returns the next random number, the same on every machine (an xorshift).
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn d12_of_a_thousand_deadlines_none_is_early_and_each_fires_within_a_tick() {
    let fired = Rc::new(RefCell::new(0));
    let mut kernel = Kernel::new(Sim::new());
    let seen = fired.clone();
    let main = async move {
        let mut state = 0x1234_5678;
        for _ in 0..1_000 {
            let span = Duration::from_micros(1 + random(&mut state) % 20_000_000);
            let seen = seen.clone();
            let victim = async move {
                let deadline = connection_deadline().await;
                let start = clock().await;
                let end = deadline.guard(span, sleep(3600 * SECOND)).await.unwrap_err();
                let due = start + span;
                let tick = Duration::from_millis(300);
                assert!((due..=due + tick).contains(&end.reading()), "{due} {}", end.reading());
                *seen.borrow_mut() += 1;
            };
            drop(spawn("victim", victim).await);
        }
        sleep(60 * SECOND).await.unwrap();
    };
    kernel.run(main).unwrap();
    assert_eq!(*fired.borrow(), 1_000);
}

#[test]
fn d15_d16_d17_the_scan_begins_with_an_arm_ends_with_a_disarm_and_begins_again() {
    let ran = check_quietly("d15", Sim::new(), async {
        let deadline = connection_deadline().await;
        let never = WaitQueue::new();
        sleep(1000 * SECOND).await.unwrap();
        deadline.arm(SECOND);
        sleep(500 * MS).await.unwrap();
        deadline.disarm();
        sleep(3600 * SECOND).await.unwrap();
        deadline.arm(SECOND);
        let end = never.wait().await;
        short(&end)
    });
    assert_eq!(ran.output, "TT");
    // At most one scan for each far sleep, and one that the disarmed deadline had asked for.
    assert!(ran.count("tick") <= 5, "{}", ran.trace);
    let turns = ran.lines(|line| line.contains("main") && line.contains(" run "));
    assert_eq!(turns.len(), 5);
}

/// The counters agree: no scan before the first arm, at most one scan after the last disarm, and
/// scans again after the next arm.
#[test]
fn d15_d16_d17_no_arm_no_scan() {
    let mut kernel = Kernel::new(Sim::new());
    // Five minutes in steps that are too short for the far table.
    async fn five_minutes() {
        for _ in 0..3_000 {
            sleep(100 * MS).await.unwrap();
        }
    }
    let deadline = kernel.run(connection_deadline()).unwrap();
    kernel.run(five_minutes()).unwrap();
    assert_eq!(kernel.counters().scans, 0, "nothing was armed yet");
    kernel
        .run(async {
            deadline.arm(SECOND);
            sleep(200 * MS).await.unwrap();
            deadline.disarm();
        })
        .unwrap();
    kernel.run(five_minutes()).unwrap();
    let quiet = kernel.counters().scans;
    assert!(quiet <= 1, "{quiet} scans for a deadline that was disarmed");
    // Its task was in an earlier run, so it interrupts no task. Use a guard.
    let guarded = kernel.run(deadline.guard(10 * SECOND, WaitQueue::new().wait())).unwrap();
    assert_eq!(short(&guarded), "TT");
    assert_eq!(kernel.counters().scans, quiet + 1);
    drop(deadline);
}

#[test]
fn d18_each_kernel_of_a_thread_has_its_own_and_knows_none_of_an_older_one() {
    let mut old = Vec::new();
    for seconds in [1, 5] {
        let arms = Rc::new(Cell::new(0));
        let counts = arms.clone();
        let mut kernel = Kernel::new(Sim::new());
        kernel.observe(move |line: &Line<'_>| {
            counts.set(counts.get() + u32::from(matches!(line.event, Event::Arm { .. })));
        });
        let main = async {
            // An older deadline does nothing, and has no line.
            old.iter().for_each(|older: &ConnectionDeadline| older.arm(SECOND));
            let deadline = connection_deadline().await;
            let end = deadline.guard(seconds * SECOND, sleep(9 * SECOND)).await;
            sleep(SECOND).await.unwrap();
            (deadline, end.unwrap_err().reading())
        };
        let (deadline, at) = kernel.run(main).unwrap();
        assert_eq!((at, arms.get()), (Time::ZERO + seconds * SECOND, 1));
        assert_eq!(kernel.counters().deadlines, 1);
        old.push(deadline);
    }
}

#[test]
fn d19_a_million_arms_are_no_trap_no_scan_and_no_turn() {
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        let deadline = connection_deadline().await;
        for _ in 0..1_000_000 {
            deadline.arm(10 * SECOND);
        }
    };
    kernel.run(main).unwrap();
    let counters = kernel.counters();
    assert_eq!((counters.traps, counters.scans, counters.turns), (0, 0, 1));
}

/// The kernel polls the machine after each of these arms.
#[test]
fn d19_arms_in_many_turns_are_no_scan_and_no_timer_more() {
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        let deadline = connection_deadline().await;
        for _ in 0..1_000 {
            deadline.arm(10 * SECOND);
            sleep(MS).await.unwrap();
        }
        deadline
    };
    let deadline = kernel.run(main).unwrap();
    let counters = kernel.counters();
    assert_eq!((counters.scans, counters.timers, counters.turns), (0, 1, 1_001));
    drop(deadline);
}

/// Without an observer, an arm is a store that is put off until the run ends. More happens to the
/// deadline before that.
#[test]
fn d2_an_arm_is_in_force_at_once_for_the_rest_of_its_run() {
    let at = |seconds| Time::ZERO + seconds * SECOND;
    let ran = Kernel::new(Sim::new()).run(async {
        let deadline = connection_deadline().await;
        // Armed again inside a guard, it is the limit of the guard, and ends with the guard.
        let inside = deadline.guard(10 * SECOND, async {
            deadline.arm(20 * SECOND);
            Ok::<_, Interrupt>(current_deadline())
        });
        assert_eq!(inside.await.unwrap(), Some(at(20)));
        assert_eq!(deadline.until(), at(20));
        sleep(30 * SECOND).await.unwrap();
        // A guard takes over the arm. A disarm withdraws it, and so does an arm to a point.
        deadline.arm(50 * SECOND);
        let cut = deadline.guard(10 * SECOND, sleep(90 * SECOND)).await;
        assert_eq!((cut.unwrap_err().reading(), deadline.until()), (at(40), at(40)));
        // The deadline must not have fired, because then each arm is a post.
        let deadline = connection_deadline().await;
        yield_now().await.unwrap();
        deadline.arm(10 * SECOND);
        deadline.disarm();
        assert_eq!(deadline.until(), Time::NEVER);
        sleep(20 * SECOND).await.unwrap();
        deadline.arm(10 * SECOND);
        deadline.arm(at(90));
        assert_eq!((deadline.until(), sleep(20 * SECOND).await.is_ok()), (at(90), true));
        let cut = sleep(20 * SECOND).await;
        assert_eq!((cut.unwrap_err().reading(), deadline.fired()), (at(90), true));
        deadline.arm(10 * SECOND);
        assert!(!deadline.fired());
        // The deadline is dropped, and the sleep takes its place.
        drop(deadline);
        sleep(20 * SECOND).await.unwrap();
        clock().await
    });
    assert_eq!(ran.unwrap(), at(110));
}

#[test]
fn d5_an_arm_inside_a_guard_is_known_after_it_was_given_up_in_another_task() {
    let ran = Kernel::new(Sim::new()).run(async {
        let deadline = Rc::new(connection_deadline().await);
        let inside = deadline.clone();
        let mut guarded = Box::pin(async move {
            let wait = async {
                inside.arm(20 * SECOND);
                sleep(90 * SECOND).await
            };
            inside.guard(10 * SECOND, wait).await
        });
        // Its scope is opened, and the future inside is polled.
        for _ in 0..2 {
            let polled = poll_fn(|cx| Poll::Ready(guarded.as_mut().poll(cx))).await;
            assert!(polled.is_pending());
            yield_now().await.unwrap();
        }
        spawn("gives it up", async { drop(guarded) }).await.join().await.unwrap();
        sleep(30 * SECOND).await.unwrap();
        (deadline.until(), deadline.fired())
    });
    assert_eq!(ran.unwrap(), (Time::ZERO + 20 * SECOND, false));
}

/// The result is the same with an observer, which gets each arm, and without.
#[test]
fn d5_an_arm_at_the_very_end_of_a_task_s_guard_ends_with_it() {
    let at = |seconds| Time::ZERO + seconds * SECOND;
    let program = async || {
        let deadline = connection_deadline().await;
        yield_now().await.unwrap();
        let armed = async {
            sleep(SECOND).await?;
            deadline.arm(10 * SECOND);
            Ok::<_, Interrupt>(())
        };
        deadline.guard_task(5 * SECOND, armed).await.unwrap();
        let first = deadline.until();
        sleep(60 * SECOND).await.unwrap();
        let armed = async {
            deadline.arm(90 * SECOND);
            sleep(SECOND).await
        };
        deadline.guard_task(60 * SECOND, armed).await.unwrap();
        let unlimited = async {
            deadline.arm(10 * SECOND);
            Ok::<_, Interrupt>(())
        };
        let second = deadline.until();
        deadline.guard_task(Duration::ZERO, unlimited).await.unwrap();
        sleep(60 * SECOND).await.unwrap();
        (first, second, clock().await)
    };
    let wanted = (at(11), at(151), at(122));
    let told = check_quietly("told", Sim::new(), program());
    assert_eq!(told.output, wanted);
    assert_eq!(Kernel::new(Sim::new()).run(program()).unwrap(), wanted);
}

/// The guard has ended, so the deadline is for the whole task.
#[test]
fn d2_an_arm_after_the_end_of_a_task_s_guard_inside_a_guard_is_that_guards() {
    let program = async || {
        let deadline = connection_deadline().await;
        let unpolled = deadline.guard_task(10 * SECOND, sleep(SECOND));
        let inside = async {
            drop(unpolled);
            deadline.arm(7 * SECOND);
            timeout_after(60 * SECOND, sleep(90 * SECOND)).await
        };
        let cut = deadline.guard(5 * SECOND, inside).await;
        (short(&cut), deadline.until(), clock().await)
    };
    let wanted = ("TT", Time::ZERO + 7 * SECOND, Time::ZERO + 7 * SECOND);
    assert_eq!(check_quietly("told", Sim::new(), program()).output, wanted);
    assert_eq!(Kernel::new(Sim::new()).run(program()).unwrap(), wanted);
}

/// The kernel has opened the scope, and the guard does not know this yet.
#[test]
fn d2_a_far_arm_while_a_guard_is_opened_is_the_guards_too() {
    let ran = Kernel::new(Sim::new()).run(async {
        let deadline = connection_deadline().await;
        let other = async {
            clock().await;
            deadline.arm(SECOND);
            sleep(5 * SECOND).await
        };
        let guarded = deadline.guard(9 * SECOND, sleep(5 * SECOND));
        let (other, guarded) = join(other, guarded).await;
        (short(&other), short(&guarded))
    });
    assert_eq!(ran.unwrap(), ("ok", "TT"));
}

#[test]
fn d2_an_arm_of_a_run_without_an_observer_is_in_force_too() {
    let mut kernel = Kernel::with_options(Sim::new(), Options::new().longrun(None));
    let ran = kernel.run(async {
        let deadline = connection_deadline().await;
        deadline.arm(10 * SECOND);
        sleep(20 * SECOND).await
    });
    assert_eq!(ran.unwrap().unwrap_err().reading(), Time::ZERO + 10 * SECOND);
}

/// Others can use its place from the next turn on.
#[test]
fn d1_an_arm_of_a_deadline_that_goes_in_its_run_goes_with_it() {
    for guards in [false, true] {
        let mut kernel = Kernel::new(Sim::new());
        let ran = kernel.run(async {
            for _ in 0..3 {
                let deadline = connection_deadline().await;
                if guards {
                    deadline.guard(5 * SECOND, sleep(SECOND)).await.unwrap();
                }
                deadline.arm(10 * SECOND);
                drop(deadline);
                sleep(20 * SECOND).await.unwrap();
            }
        });
        ran.unwrap();
        let counters = kernel.counters();
        assert_eq!((counters.deadlines, counters.timers), (0, 0));
    }
}

/// After a re-arm in another run, the kernel still looks at the time of the arm before it. The log
/// shows neither this look nor a gap in the turns.
#[test]
fn d16_a_deadline_that_was_pushed_back_costs_one_scan() {
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        let deadline = connection_deadline().await;
        deadline.arm(10 * SECOND);
        sleep(5 * SECOND).await.unwrap();
        deadline.arm(100 * SECOND);
        sleep(45 * SECOND).await.unwrap();
    };
    kernel.run(main).unwrap();
    let counters = kernel.counters();
    // At ten seconds, when the deadline was due before the re-arm. Now nothing is due.
    assert_eq!((counters.scans, counters.polls, counters.turns), (1, 3, 4));
}

#[test]
fn d30_an_error_made_of_the_timeout_leaves_nothing_pending() {
    let ran = check_quietly("d30", Sim::new(), async {
        let deadline = connection_deadline().await;
        let guarded = deadline
            .guard(SECOND, async {
                let end = sleep(5 * SECOND).await;
                end.map_err(|_| std::io::Error::other("told otherwise"))
            })
            .await;
        let after = sleep(5 * SECOND).await;
        (guarded.unwrap_err().to_string(), short(&after), deadline.fired())
    });
    assert_eq!(ran.output, ("told otherwise".to_owned(), "ok", true));
}

#[test]
fn d32_equal_deadlines_fire_in_the_order_of_their_making() {
    let ran = check_quietly("d32", Sim::new(), async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let mut children = Vec::new();
        for n in 0..20 {
            let order = order.clone();
            let victim = async move {
                let deadline = connection_deadline().await;
                // The deadlines are armed in another order, and from near and far.
                sleep(u32::try_from(20 - n).unwrap() * 45 * MS).await.unwrap();
                let left = (2 * SECOND).saturating_sub(clock().await.since(Time::ZERO));
                deadline.guard(left, sleep(5 * SECOND)).await.unwrap_err();
                order.borrow_mut().push(n);
            };
            children.push(spawn("victim", victim).await);
        }
        for mut child in children {
            child.join().await.unwrap();
        }
        order.take()
    });
    assert_eq!(ran.output, (0..20).collect::<Vec<_>>());
}

#[test]
fn without_a_guard_it_interrupts_its_task_wherever_that_is() {
    let ran = check("d2_armed_without_a_guard", Sim::new(), async {
        let deadline = connection_deadline().await;
        deadline.arm(SECOND);
        let inner: Result<_, Interrupt> = timeout_after(5 * SECOND, sleep(9 * SECOND)).await;
        let (first, fired) = (short(&inner), deadline.fired());
        deadline.arm(SECOND);
        let held = shield(sleep(2 * SECOND)).await;
        let late = sleep(SECOND).await;
        // Armed again before any wait: the pending interrupt is withdrawn.
        deadline.arm(SECOND);
        let again = shield(sleep(2 * SECOND)).await;
        deadline.arm(SECOND);
        let free = sleep(500 * MS).await;
        (first, fired, short(&held), short(&late), short(&again), short(&free))
    });
    assert_eq!(ran.output, ("TCE", true, "ok", "TT", "ok", "ok"));
}

#[test]
fn a_deadline_that_outlives_its_task_interrupts_no_task() {
    let ran = check_quietly("outlives", Sim::new(), async {
        let mut maker = spawn("maker", connection_deadline()).await;
        let deadline = maker.join().await.unwrap();
        drop(maker);
        deadline.arm(SECOND);
        // The new task has the place of the maker in the table.
        let mut other = spawn("other", sleep(2 * SECOND)).await;
        let slept = short(&other.join().await.unwrap());
        let fired = deadline.fired();
        // A guard still works.
        let guarded = deadline.guard(SECOND, sleep(2 * SECOND)).await;
        (slept, fired, short(&guarded))
    });
    assert_eq!(ran.output, ("ok", true, "TT"));
}

#[test]
fn c11_an_outer_deadline_hits_again_after_an_inner_guard() {
    let ran = check_quietly("c11", Sim::new(), async {
        let deadline = connection_deadline().await;
        let mut seen = Vec::new();
        let outer: Result<(), Interrupt> = timeout_after(SECOND, async {
            let inner = deadline.guard(5 * SECOND, async {
                let hit = sleep(9 * SECOND).await;
                seen.push(short(&hit));
                Ok::<_, Interrupt>(())
            });
            inner.await?;
            let next = sleep(9 * SECOND).await;
            seen.push(short(&next));
            next.map(drop)
        })
        .await;
        seen.push(short(&outer));
        seen
    });
    assert_eq!(ran.output, ["TCE", "TT", "TT"]);
    assert_eq!(ran.took, SECOND);
}

#[test]
fn of_equal_deadlines_a_guards_fires_before_a_timeouts() {
    let ran = check_quietly("equal", Sim::new(), async {
        let mut seen = Vec::new();
        let (a, b) = (connection_deadline().await, connection_deadline().await);
        // The outer guard was made after the inner guard.
        let inner = a.guard(SECOND, sleep(5 * SECOND));
        let outer = b.guard(SECOND, async {
            let end = inner.await;
            seen.push(short(&end));
            end
        });
        let end = outer.await;
        seen.push(short(&end));
        let outer = a.guard(SECOND, async {
            let end = timeout_after(SECOND, sleep(5 * SECOND)).await;
            seen.push(short(&end));
            end
        });
        let end = outer.await;
        seen.push(short(&end));
        let outer = timeout_after(SECOND, async {
            let end = a.guard(SECOND, sleep(5 * SECOND)).await;
            seen.push(short(&end));
            end
        });
        let end = outer.await;
        seen.push(short(&end));
        seen
    });
    assert_eq!(ran.output, ["TT", "TT", "TCE", "TT", "TT", "TT"]);
}

#[test]
fn x1_a_value_of_an_earlier_turn_stays() {
    let sim = Sim::new();
    let world = sim.clock();
    let ran = check("x1_a_value_of_an_earlier_turn_stays", sim, async move {
        let queue = Rc::new(WaitQueue::new());
        let theirs = queue.clone();
        let mut waiter = spawn("waiter", async move {
            let deadline = connection_deadline().await;
            let end = deadline.guard(SECOND, theirs.wait()).await;
            (short(&end), deadline.fired())
        })
        .await;
        yield_now().await.unwrap();
        queue.wake(1);
        // The deadline passes while the waiter is ready.
        world.advance(2 * SECOND);
        clock().await;
        waiter.join().await.unwrap()
    });
    assert_eq!(ran.output, ("ok", true));
}

#[test]
fn a_guard_is_a_deadline_in_force() {
    let ran = check_quietly("in force", Sim::new(), async {
        let deadline = connection_deadline().await;
        let before = current_deadline();
        let inside =
            deadline.guard(SECOND, async { Ok::<_, Interrupt>(current_deadline()) }).await.unwrap();
        (before, inside, current_deadline())
    });
    assert_eq!(ran.output, (None, Some(Time::from_micros(1_000_000)), None));
}

#[test]
fn a_guard_that_is_dropped_midway_leaves_the_deadline_free() {
    let ran = check_quietly("dropped", Sim::new(), async {
        let deadline = connection_deadline().await;
        for _ in 0..2 {
            let guard = deadline.guard(SECOND, sleep(9 * SECOND));
            let raced = traps::race(guard, sleep(500 * MS)).await;
            assert!(matches!(raced, traps::Either::Right(Ok(_))));
        }
        let slept = sleep(5 * SECOND).await;
        let guarded = deadline.guard(SECOND, sleep(5 * SECOND)).await;
        (short(&slept), short(&guarded))
    });
    assert_eq!(ran.output, ("ok", "TT"));
}

#[test]
fn d3_a_guard_without_a_limit_forgets_the_one_before_it() {
    let ran = check_quietly("never", Sim::new(), async {
        let deadline = connection_deadline().await;
        let first = deadline.guard(SECOND, sleep(2 * SECOND)).await;
        let limits = (deadline.until().as_micros(), deadline.fired());
        let free = deadline.guard(Duration::MAX, async {
            let inner = timeout_after(MS, sleep(SECOND)).await;
            // At the end of an inner timeout, an interrupt from around it could be delivered again.
            sleep(SECOND).await?;
            inner
        });
        let free = free.await;
        (short(&first), limits, short(&free), deadline.until(), deadline.fired())
    });
    // The unhandled timeout of an inner scope, and not of this deadline.
    assert_eq!(ran.output, ("TT", (1_000_000, true), "UTE", Time::NEVER, false));
}

#[test]
fn d10_an_earlier_interrupt_is_not_delivered_in_the_next_guard() {
    for limit in [10 * SECOND, Duration::MAX] {
        let ran = check_quietly("again", Sim::new(), async move {
            let deadline = connection_deadline().await;
            let first = deadline.guard(SECOND, sleep(2 * SECOND)).await;
            let second = deadline.guard(limit, async {
                let inner = timeout_after(MS, sleep(SECOND)).await;
                // At the end of an inner timeout, an interrupt from around it is delivered again.
                sleep(SECOND).await?;
                inner
            });
            (short(&first), short(&second.await))
        });
        assert_eq!(ran.output, ("TT", "UTE"), "{limit:?}");
    }
}

#[test]
fn d10_an_earlier_unread_interrupt_is_not_delivered_when_the_guard_is_dropped() {
    for inside in [false, true] {
        let ran = check_quietly("unread", Sim::new(), async move {
            let deadline = connection_deadline().await;
            let mut nap = Box::pin(sleep(3600 * SECOND));
            let first = deadline.guard(SECOND, async {
                match race(sleep(10 * SECOND), nap.as_mut()).await {
                    Either::Left(ended) | Either::Right(ended) => ended.map(drop),
                }
            });
            let first = first.await;
            let mut nap = Some(nap);
            if !inside {
                nap = None;
            }
            let second = deadline.guard(5 * SECOND, async {
                drop(nap.take());
                sleep(SECOND).await
            });
            (short(&first), second.await.is_ok())
        });
        assert_eq!(ran.output, ("TT", true), "{inside}");
    }
}

#[test]
fn d10_a_guard_that_moves_after_it_fired_forgets_its_unread_interrupt() {
    for span in [5 * SECOND, Duration::ZERO] {
        let ran = check_quietly("moved", Sim::new(), async move {
            let deadline = connection_deadline().await;
            let guarded = async {
                let first = async {
                    let ended = sleep(10 * SECOND).await;
                    if span.is_zero() {
                        deadline.disarm();
                    } else {
                        deadline.arm(span);
                    }
                    ended.is_ok()
                };
                let slept = race(first, sleep(20 * SECOND)).await;
                assert!(matches!(slept, Either::Left(false)));
                sleep(SECOND).await
            };
            deadline.guard(SECOND, guarded).await.map(|woke| woke.as_micros())
        });
        assert_eq!(ran.output, Ok(2_000_000), "{span:?}");
    }
}

#[test]
fn x2_a_timeout_that_stays_is_read_once_if_its_guard_was_armed_again() {
    let sim = Sim::new();
    let clock = sim.clock();
    let ran = check_quietly("armed anew", sim, async {
        let deadline = Rc::new(connection_deadline().await);
        let inner = deadline.clone();
        // This task runs first in the turn in which the deadline fires.
        let other = deadline.clone();
        let given = Rc::new(RefCell::new(None::<Task<_>>));
        let taken = given.clone();
        let mut meddler = spawn("meddler", async move {
            yield_now().await.unwrap();
            clock.advance(SECOND);
            yield_now().await.unwrap();
            other.arm(5 * SECOND);
            let mut task = taken.borrow_mut().take().expect("it was given");
            task.cancel_now("x");
            task.join().await.unwrap()
        })
        .await;
        *given.borrow_mut() = Some(
            spawn("guarded", async move {
                let guarded = async {
                    let ended = sleep(10 * SECOND).await;
                    let (then, again) = (sleep(SECOND).await, sleep(SECOND).await);
                    Ok::<_, Interrupt>((short(&ended), short(&then), short(&again)))
                };
                inner.guard(SECOND, guarded).await
            })
            .await,
        );
        meddler.join().await.unwrap()
    });
    assert_eq!(ran.output, Ok(("TT", "CAN", "ok")));
}

/// The traps of a request are counted: its two waits are two traps, and their guards cost none. The
/// deadline costs none either, because the connection makes it only once.
#[test]
fn d33_a_guard_costs_no_trap() {
    let traps_of = |requests: u64| {
        let mut kernel = Kernel::new(Sim::new());
        let main = async {
            let deadline = connection_deadline().await;
            for _ in 0..requests {
                deadline.guard(10 * SECOND, sleep(MS)).await.unwrap();
                deadline.guard(30 * SECOND, sleep(MS)).await.unwrap();
            }
        };
        kernel.run(main).unwrap();
        kernel.counters().traps
    };
    assert_eq!([0, 1, 2, 1_000].map(traps_of), [0, 2, 4, 2_000]);
}

#[test]
fn the_counter_of_traps_has_the_tasks_that_were_spawned_and_no_scopes() {
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        timeout_after(SECOND, sleep(MS)).await.unwrap();
        assert_eq!(spawn("child", async { 7 }).await.join().await, Ok(7));
    };
    kernel.run(main).unwrap();
    assert_eq!(kernel.counters().traps, 3, "a sleep, a spawn and a join");
}

/// Polls the future once and leaves it pending.
async fn begin<F: Future>(mut future: Pin<&mut F>) {
    for _ in 0..2 {
        poll_fn(|cx| {
            assert!(future.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        // Every trap that it filed is answered.
        clock().await;
    }
}

#[test]
fn a_guard_that_was_leaked_leaves_the_slot_of_its_deadline_alone() {
    let mut kernel = Kernel::new(Sim::new());
    let joined = kernel.run(async {
        let victim = async {
            let deadline = connection_deadline().await;
            let mut leaked = Box::pin(deadline.guard(SECOND, sleep(5 * SECOND)));
            begin(leaked.as_mut()).await;
            std::mem::forget(leaked);
            drop(deadline);
            // A wait without a timer: the table is empty by then, and has no slots.
            WaitQueue::new().wait().await
        };
        let mut victim = spawn("victim", victim).await;
        sleep(10 * SECOND).await.unwrap();
        victim.cancel_now("test");
        short(&victim.join().await.unwrap())
    });
    assert_eq!(joined.unwrap(), "CAN");
    kernel.shutdown().unwrap();
    // The slot leaks with the guard.
    assert_eq!((kernel.counters().scopes, kernel.counters().deadlines), (0, 1));
}

#[test]
#[should_panic(expected = "rule: a connection deadline is used in the kernel that made it")]
fn d18_a_guard_that_began_in_one_kernel_is_refused_in_the_next() {
    let mut first = Kernel::new(Sim::new());
    let deadline = first.run(connection_deadline()).unwrap();
    let mut guard = pin!(deadline.guard(SECOND, sleep(5 * SECOND)));
    first.run(begin(guard.as_mut())).unwrap();
    drop(first);
    let _ = Kernel::new(Sim::new()).run(guard);
}

#[test]
fn x1_a_sleep_that_ends_in_the_turn_of_its_guard_loses() {
    for span in [900 * MS, SECOND] {
        // Both are due when the late machine comes back.
        let sim = Sim::new().late_by(200 * MS);
        let ran = check_quietly("x1", sim, async {
            let deadline = connection_deadline().await;
            let guarded = deadline.guard(SECOND, sleep(span)).await;
            (short(&guarded), deadline.fired())
        });
        assert_eq!(ran.output, ("TT", true), "{span:?}");
    }
}

#[test]
fn d19_a_store_does_not_overtake_a_post() {
    // Without an observer, because with one no arm is a store.
    let mut kernel = Kernel::new(Sim::new());
    let ran = kernel.run(async {
        let deadline = connection_deadline().await;
        deadline.arm(MS); // a post
        deadline.arm(20 * SECOND); // would be a store
        let slept = sleep(10 * SECOND).await;
        let first = (short(&slept), deadline.fired());
        deadline.arm(MS);
        deadline.disarm();
        let slept = sleep(10 * SECOND).await;
        (first, (short(&slept), deadline.fired()))
    });
    assert_eq!(ran.unwrap(), (("ok", false), ("ok", false)));
}

/// Another branch arms the deadline between the first and the second poll of the guard.
#[test]
fn d2_an_arm_while_a_guard_is_opened_is_the_guards() {
    async fn program() -> (&'static str, &'static str) {
        let deadline = connection_deadline().await;
        let other = async {
            clock().await; // answered in the same run as the guard's own trap, and read before it
            deadline.disarm();
            deadline.arm(SECOND);
            sleep(5 * SECOND).await
        };
        let (slept, guarded) = join(other, deadline.guard(9 * SECOND, sleep(5 * SECOND))).await;
        (short(&slept), short(&guarded))
    }
    let watched = check_quietly("d2", Sim::new(), program());
    let unwatched = Kernel::new(Sim::new()).run(program());
    assert_eq!((watched.output, unwatched.unwrap()), (("ok", "TT"), ("ok", "TT")));
}

#[test]
fn d10_each_firing_is_known_also_where_posts_were_made_before() {
    let mut kernel = Kernel::new(Sim::new());
    let fired = kernel.run(async {
        let deadline = connection_deadline().await;
        let mut fired = Vec::new();
        for span in [SECOND, MS, SECOND, MS] {
            deadline.guard(span, sleep(5 * SECOND)).await.unwrap_err();
            fired.push(deadline.fired());
            deadline.guard(span, async { Ok::<_, Interrupt>(()) }).await.unwrap();
            fired.push(deadline.fired());
        }
        fired
    });
    assert_eq!(fired.unwrap(), [true, false].repeat(4));
}

#[test]
fn x1_only_waits_inside_the_due_guard_lose() {
    let ran = check_quietly("x1", Sim::new(), async {
        let (first, second) = (connection_deadline().await, connection_deadline().await);
        first.guard(SECOND, sleep(5 * SECOND)).await.unwrap_err();
        // The deadline that fired before is not due now, and its scope is the same.
        let inside = first.guard(10 * SECOND, sleep(SECOND));
        let (inside, due) = join(inside, second.guard(SECOND, sleep(5 * SECOND))).await;
        (short(&inside), short(&due))
    });
    assert_eq!(ran.output, ("ok", "TT"));
}

#[test]
fn x3_a_guard_that_has_ended_gets_no_part_of_a_later_cancellation() {
    let ran = check_quietly("x3", Sim::new(), async {
        let victim = async {
            let deadline = connection_deadline().await;
            let before = deadline.guard(SECOND, sleep(MS)).await;
            let hit = sleep(5 * SECOND).await;
            let after = deadline.guard(SECOND, sleep(MS)).await;
            [before, hit, after].map(|end| short(&end))
        };
        let mut victim = spawn("victim", victim).await;
        sleep(SECOND).await.unwrap();
        victim.cancel_now("test");
        victim.join().await.unwrap()
    });
    assert_eq!(ran.output, ["ok", "CAN", "ok"]);
}

/// The loser has no scope of its own, because it is the deadline of the task.
#[test]
fn a_race_that_a_deadline_without_a_guard_lost_names_no_scope() {
    let sim = Sim::new();
    let world = sim.clock();
    let ran = check_quietly("race_without_a_scope", sim, async {
        let late = async {
            let deadline = connection_deadline().await;
            deadline.arm(SECOND);
            sleep(9 * SECOND).await
        };
        let mut late = spawn("late", late).await;
        yield_now().await.unwrap();
        late.cancel_now("enough");
        // The task is already ready when the deadline fires.
        world.advance(SECOND);
        clock().await;
        assert!(late.join().await.unwrap().unwrap_err().is_cancelled());
    });
    let races = ran.lines(|line| line.contains(" race "));
    assert_eq!(races.len(), 1, "{}", ran.trace);
    assert!(!races[0].contains(" s"), "{}", races[0]);
}

#[test]
fn a_deadline_whose_task_has_ended_interrupts_no_task() {
    let ran = check_quietly("ended", Sim::new(), async {
        let armed = async {
            let deadline = connection_deadline().await;
            deadline.arm(SECOND);
            deadline
        };
        // The task has ended and is not joined, so its output and its record are still there.
        let mut task = spawn("ended", armed).await;
        sleep(3 * SECOND).await.unwrap();
        drop(task.join().await.unwrap());
    });
    assert_eq!(ran.lines(|line| line.contains("cleanup")).len(), 0, "{}", ran.trace);
}

/// A third task ends an idle connection, for example to make room, although the tick is long.
#[test]
fn a_deadline_that_is_fired_does_not_wait_for_the_tick() {
    let options = Options::new().tick(60 * SECOND);
    let ran = Kernel::with_options(Sim::new(), options).run(async {
        let deadline = Rc::new(connection_deadline().await);
        let theirs = deadline.clone();
        // The table has been scanned just now, so the next scan is a tick away.
        assert!(deadline.guard(SECOND, sleep(90 * SECOND)).await.is_err());
        let before = clock().await;
        spawn("other", async move {
            sleep(SECOND).await.unwrap();
            theirs.fire();
        })
        .detached()
        .await;
        let cut = deadline.guard(600 * SECOND, sleep(900 * SECOND)).await;
        assert!(cut.is_err() && deadline.fired());
        let passed = clock().await.since(before);
        // A deadline that is armed to a passed point waits for the tick.
        deadline.arm(clock().await);
        assert!(sleep(900 * SECOND).await.is_err());
        (passed, clock().await.since(before) > SECOND)
    });
    assert_eq!(ran.unwrap(), (SECOND, true));
}

/// Code that handles the error of an inner timeout still meets the outer deadline.
#[test]
fn a_timeout_that_closes_brings_passed_deadlines_back_except_through_a_shield() {
    for (shielded, ended) in [(false, false), (true, true)] {
        let mut kernel = Kernel::new(Sim::new());
        let slept = kernel.run(async {
            let body = async {
                sleep(9 * SECOND).await.unwrap_err();
                let inner = ignore_after(SECOND, sleep(MS));
                let closed = if shielded { shield(inner).await } else { inner.await };
                assert!(closed.unwrap().is_some());
                Ok::<_, Interrupt>(sleep(MS).await.is_ok())
            };
            timeout_after(SECOND, body).await
        });
        assert_eq!(slept.unwrap(), Ok(ended), "{shielded}");
        kernel.shutdown().unwrap();
    }
}

/// Both branches are interrupted. One of them is dropped unread, and the other has been read.
#[test]
fn a_timeout_unread_in_one_branch_is_not_delivered_again_in_the_branch_that_read_it() {
    let mut kernel = Kernel::new(Sim::new());
    let slept = kernel.run(async {
        let body = async {
            let ended = race(sleep(9 * SECOND), sleep(9 * SECOND)).await;
            assert!(matches!(ended, Either::Left(Err(_))));
            Ok::<_, Interrupt>(sleep(MS).await.is_ok())
        };
        timeout_after(SECOND, body).await
    });
    assert_eq!(slept.unwrap(), Ok(true));
    kernel.shutdown().unwrap();
}
