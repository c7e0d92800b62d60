//! The guard of a whole task, which needs no scope.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Sim};
use support::{check, check_quietly, short};
use traps::io::{Direction, Io, Scripted};
use traps::{
    Error, Interrupt, Kind, Time, WaitQueue, clock, connection_deadline, ignore_after, sleep,
    spawn, timeout_after, yield_now,
};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Waits that end in time, by the deadline, and in time again: the log has no scope.
#[test]
fn d10_the_guard_of_a_task_is_an_arm_and_a_disarm_around_each_wait() {
    let ran = check("d10_the_guard_of_a_task", Sim::new(), async {
        let deadline = connection_deadline().await;
        let first = deadline.guard_task(SECOND, sleep(SECOND / 2)).await;
        let second = deadline.guard_task(SECOND, sleep(2 * SECOND)).await;
        let fired = deadline.fired();
        let third = deadline.guard_task(Time::from_micros(9_000_000), sleep(SECOND)).await;
        let until = deadline.until().as_micros();
        (short(&first), short(&second), fired, short(&third), deadline.fired(), until)
    });
    assert_eq!(ran.output, ("ok", "TT", true, "ok", false, 9_000_000));
    assert_eq!((ran.count("arm"), ran.count("disarm"), ran.count("fire")), (3, 2, 3));
    assert_eq!(ran.lines(|line| line.contains(" guard d1")).len(), 0);
}

/// Six ways out of it. Each disarms a deadline that has not fired, and none ends a later wait.
#[test]
fn d5_the_guard_of_a_task_disarms_on_every_way_out() {
    for way in ["value", "error", "timeout", "cancel", "drop", "panic"] {
        let mut kernel = Kernel::new(Sim::new());
        let main = async {
            let mut victim = spawn("victim", async move {
                let deadline = Rc::new(connection_deadline().await);
                let body = async move {
                    assert!(way != "panic", "on purpose");
                    let takes = if ["timeout", "cancel"].contains(&way) { 9 } else { 1 };
                    sleep(takes * SECOND).await?;
                    if way == "error" { Err("refused".into()) } else { Ok(()) }
                };
                let guard =
                    deadline.guard_task::<_, (), Box<dyn std::error::Error>>(5 * SECOND, body);
                if way == "drop" {
                    drop(guard);
                } else {
                    assert_eq!(guard.await.is_ok(), way == "value", "{way}");
                }
                let fired = deadline.fired();
                // The next wait is not interrupted.
                sleep(60 * SECOND).await.unwrap();
                (deadline, fired)
            })
            .await;
            if way == "cancel" {
                sleep(2 * SECOND).await.unwrap();
                victim.cancel_now("enough");
            }
            victim.join().await.ok()
        };
        let deadline = kernel.run(main).unwrap();
        assert_eq!(deadline.is_none(), way == "panic");
        assert_eq!(deadline.is_some_and(|(_, fired)| fired), way == "timeout", "{way}");
        let held = kernel.counters();
        assert_eq!((held.timers, held.pending), (0, 0), "{way}: {held:?}");
        kernel.shutdown().unwrap();
    }
}

#[test]
fn d7_the_guard_of_a_task_wins_in_its_turn_and_the_byte_is_still_there() {
    let sim = Sim::new().ready_at(Time::from_micros(1_000_000), 1, Direction::Read);
    let ran = check_quietly("d7", sim, async {
        let socket = Io::new(Scripted(1));
        let deadline = connection_deadline().await;
        let guarded = deadline.guard_task(SECOND, async {
            socket.readable().await.map_err(|error| match error {
                Error::Interrupt(interrupt) => interrupt,
                other => panic!("{other}"),
            })
        });
        let guarded = guarded.await;
        let after = deadline.guard(SECOND, async {
            socket.readable().await.unwrap();
            Ok::<(), Interrupt>(())
        });
        (short(&guarded), after.await.is_ok())
    });
    assert_eq!((ran.output, ran.took), (("TT", true), SECOND));
}

#[test]
fn d29_a_timeout_stays_in_the_turn_of_the_guard_of_a_task() {
    let sim = Sim::new();
    let clock = sim.clock();
    let ran = check_quietly("d29", sim, async {
        let mut victim = spawn("victim", async {
            let deadline = connection_deadline().await;
            let end = deadline.guard_task(SECOND, sleep(5 * SECOND)).await;
            (short(&end), short(&sleep(SECOND).await), short(&sleep(SECOND).await))
        })
        .await;
        yield_now().await.unwrap();
        // The canceller is already ready when the deadline fires.
        clock.advance(SECOND);
        yield_now().await.unwrap();
        victim.cancel_now("stop");
        victim.join().await.unwrap()
    });
    assert_eq!(ran.output, ("TT", "CAN", "ok"));
}

/// The deadline fires when the task is already ready with a value. The value stays, and the next
/// wait of the task is not interrupted in its place.
#[test]
fn x1_after_a_value_of_an_earlier_turn_nothing_is_left_of_the_guard_of_a_task() {
    let sim = Sim::new();
    let world = sim.clock();
    let ran = check_quietly("x1", sim, async move {
        let queue = Rc::new(WaitQueue::new());
        let theirs = queue.clone();
        let mut waiter = spawn("waiter", async move {
            let deadline = connection_deadline().await;
            let end = deadline.guard_task(SECOND, theirs.wait()).await;
            (short(&end), deadline.fired(), short(&sleep(SECOND).await), deadline.fired())
        })
        .await;
        yield_now().await.unwrap();
        queue.wake(1);
        world.advance(2 * SECOND);
        clock().await;
        waiter.join().await.unwrap()
    });
    assert_eq!(ran.count("fire"), 2, "{}", ran.trace);
    assert_eq!(ran.output, ("ok", true, "ok", true));
}

/// As in a drain, another task ends the wait by an earlier deadline.
#[test]
fn d10_another_task_may_move_the_deadline_of_a_task_that_is_guarded() {
    let ran = check_quietly("moved", Sim::new(), async {
        let shared = Rc::new(connection_deadline().await);
        let theirs = shared.clone();
        let _other = spawn("other", async move {
            sleep(SECOND).await.unwrap();
            theirs.arm(theirs.now());
        })
        .await;
        let end = shared.guard_task(60 * SECOND, sleep(90 * SECOND)).await;
        // A guard with a scope continues from there, and so does a guard without.
        let guard = shared.guard(SECOND, sleep(2 * SECOND)).await;
        let free = shared.guard_task(Duration::ZERO, sleep(100 * SECOND)).await;
        (end.unwrap_err().kind(), short(&guard), short(&free))
    });
    assert_eq!(ran.output, (Kind::TaskTimeout, "TT", "ok"));
    assert_eq!(ran.took, 102 * SECOND);
}

#[test]
#[should_panic(expected = "rule: a task's guard is not inside another guard")]
fn a_guard_of_a_task_inside_a_guard_of_its_deadline_is_refused() {
    let mut kernel = Kernel::new(Sim::new());
    let _ = kernel.run(async {
        let deadline = connection_deadline().await;
        let inner = async { deadline.guard_task(SECOND, sleep(SECOND)).await };
        deadline.guard(SECOND, inner).await
    });
}

/// An outer timeout is delivered first, and the guard is over.
#[test]
fn d5_a_timeout_around_the_guard_of_a_task_disarms_it() {
    let ran = check_quietly("around", Sim::new(), async {
        let deadline = connection_deadline().await;
        let guard = deadline.guard_task(2 * SECOND, sleep(9 * SECOND));
        let around = ignore_after(SECOND, guard).await;
        (around, deadline.fired(), short(&sleep(9 * SECOND).await))
    });
    assert_eq!(ran.output, (Ok(None), false, "ok"));
}

/// A timeout inside or around the guard, or of another deadline, is due in the same turn. Whichever
/// ends the wait, the interrupt of the guard's own deadline ends with the guard.
#[test]
fn d5_a_guard_of_a_task_leaves_nothing_of_its_own_beside_another_timeout() {
    for span in [900 * MS, SECOND] {
        for way in ["inside", "around", "beside"] {
            let ran = check_quietly(way, Sim::new().late_by(200 * MS), async {
                let other = connection_deadline().await;
                let deadline = connection_deadline().await;
                let wait = sleep(5 * SECOND);
                let end = match way {
                    "inside" => deadline.guard_task(SECOND, timeout_after(span, wait)).await,
                    "around" => timeout_after(span, deadline.guard_task(SECOND, wait)).await,
                    _ => other.guard_task(span, deadline.guard_task(SECOND, wait)).await,
                };
                (short(&end), deadline.fired(), short(&sleep(SECOND).await), deadline.fired())
            });
            let end = if way == "beside" { "TT" } else { "TCE" };
            assert_eq!(ran.output, (end, true, "ok", true), "{way} {span:?}\n{}", ran.trace);
            assert_eq!(ran.count("deliver"), 1, "{way} {span:?}");
        }
    }
}

/// A generator that is the same everywhere (splitmix64).
struct Dice(Cell<u64>);

impl Dice {
    fn roll(&self, sides: u64) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let z = self.0.get();
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn span(&self, sides: u64) -> Duration {
        Duration::from_millis(self.roll(sides))
    }
}

/// The end of one guarded wait, whether the deadline has fired, and the time.
type Ended = (&'static str, bool, Time);

/// Waits of all kinds under one deadline, and waits between them under none, while another task
/// wakes, cancels and holds the CPU. A seed draws all of it, so that there are many ties.
fn guarded_waits(seed: u64, by_task: bool) -> Vec<Ended> {
    let dice = Dice(Cell::new(seed));
    let late = dice.span(3);
    let ready = (0..dice.roll(4)).map(|_| Time::ZERO + dice.span(20));
    let sim = ready.fold(Sim::new().late_by(late), |sim, at| sim.ready_at(at, 1, Direction::Read));
    let world = sim.clock();
    let main = async {
        let queue = WaitQueue::new();
        let (own, line) = (Dice(Cell::new(!seed)), queue.clone());
        let victim = async move {
            let deadline = connection_deadline().await;
            let io = Io::new(Scripted(1));
            let mut ends = Vec::new();
            for _ in 0..5 {
                let (kind, span, takes) = (own.roll(5), own.span(6), own.span(6));
                // A wait that may last forever has a limit.
                let span = if kind < 3 { span.max(MS) } else { span };
                let wait = async {
                    match kind {
                        0 => line.wait().await,
                        1 => match io.readable().await {
                            Err(Error::Interrupt(why)) => Err(why),
                            _ => Ok(()),
                        },
                        2 => {
                            sleep(takes).await?;
                            line.wait().await
                        }
                        3 => yield_now().await,
                        _ => sleep(takes).await.map(drop),
                    }
                };
                let end = match by_task {
                    true => deadline.guard_task(span, wait).await,
                    false => deadline.guard(span, wait).await,
                };
                ends.push((short(&end), deadline.fired(), clock().await));
                let between = short(&sleep(own.span(4)).await);
                ends.push((between, deadline.fired(), clock().await));
            }
            ends
        };
        let mut victim = spawn("victim", victim).await;
        for _ in 0..8 {
            sleep(dice.span(6)).await.unwrap();
            match dice.roll(8) {
                0 => victim.cancel_now("drawn"),
                1 | 2 => world.advance(dice.span(4)),
                _ => queue.wake(1),
            }
        }
        victim.join().await.unwrap()
    };
    Kernel::new(sim).run(main).unwrap()
}

/// In its own task, with nothing around it, it acts like the guard with a scope, but is cheaper.
#[test]
fn d5_d7_d10_d29_the_guard_of_a_task_has_the_effect_of_a_guard() {
    for seed in 0..3_000 {
        assert_eq!(guarded_waits(seed, true), guarded_waits(seed, false), "seed {seed}");
    }
}
