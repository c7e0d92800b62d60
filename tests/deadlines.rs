//! The connection deadline and its guards (rows D1 to D20, D29 to D33).

mod support;

use std::time::Duration;

use kernel::Sim;
use support::{check, check_quietly, short};
use traps::io::{Io, Scripted};
use traps::{Interrupt, Time, connection_deadline, ignore_after, sleep, spawn, timeout_after};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn d2_a_longer_arm_replaces_a_shorter_one() {
    let ran = check_quietly("d2", Sim::new(), async {
        let deadline = connection_deadline().await;
        deadline.arm(10 * MS);
        deadline.arm(500 * MS);
        let first = sleep(SECOND).await;
        (short(&first), first.unwrap_err().reading().as_micros(), deadline.fired())
    });
    assert_eq!(ran.output, ("TT", 500_000, true));
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
    let sim = Sim::new().ready_at(
        traps::Time::from_micros(1_000_000),
        1,
        traps::protocol::Direction::Read,
    );
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

#[test]
fn d29_a_cancellation_in_its_turn_wins() {
    for canceller_first in [true, false] {
        let ran = check_quietly("d29", Sim::new(), async move {
            let victim = async {
                let deadline = connection_deadline().await;
                let end = deadline.guard(SECOND, sleep(5 * SECOND)).await;
                let after = sleep(SECOND).await;
                (short(&end), short(&after))
            };
            // Its timer is set before or after the other's, for the same point.
            let child = spawn("victim", victim).await;
            if !canceller_first {
                sleep(100 * MS).await.unwrap();
                sleep(900 * MS).await.unwrap();
            } else {
                sleep(SECOND).await.unwrap();
            }
            child.cancel_now("stop").await;
            let mut child = child;
            child.join().await.unwrap()
        });
        assert_eq!(ran.output, ("CAN", "ok"), "canceller first: {canceller_first}");
    }
}

#[test]
fn a_timeout_around_a_guard_that_was_due_before_it_is_the_one_that_fired() {
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
    assert_eq!(ran.output, (Some("TCE"), "TT"));
}

#[test]
fn d3_a_guard_without_a_limit_forgets_the_one_before_it() {
    let ran = check_quietly("never", Sim::new(), async {
        let deadline = connection_deadline().await;
        let first = deadline.guard(SECOND, sleep(2 * SECOND)).await;
        let limits = (deadline.until().as_micros(), deadline.fired());
        let free = deadline.guard(Duration::MAX, async {
            let inner = timeout_after(MS, sleep(SECOND)).await;
            // The end of a timeout inside is where what fired around it would be heard again.
            sleep(SECOND).await?;
            inner
        });
        let free = free.await;
        (short(&first), limits, short(&free), deadline.until(), deadline.fired())
    });
    // A timeout further in that nobody handled, not one of this deadline.
    assert_eq!(ran.output, ("TT", (1_000_000, true), "UTE", Time::NEVER, false));
}

#[test]
fn a_deadline_outlives_the_task_that_made_it() {
    let ran = check_quietly("orphan", Sim::new(), async {
        let mut child = spawn("maker", async { connection_deadline().await }).await;
        let deadline = child.join().await.unwrap();
        drop(child);
        let mut other = spawn("other", async { short(&sleep(5 * SECOND).await) }).await;
        let guarded = deadline.guard(SECOND, sleep(2 * SECOND)).await;
        deadline.arm(SECOND);
        let bare = sleep(2 * SECOND).await;
        deadline.arm(SECOND);
        drop(deadline);
        (short(&guarded), short(&bare), other.join().await.unwrap())
    });
    // A guard is whoever polls it; without one nobody is interrupted.
    assert_eq!(ran.output, ("TT", "ok", "ok"));
}

#[test]
fn d10_what_fired_before_is_not_heard_of_in_the_next_guard() {
    for limit in [10 * SECOND, Duration::MAX] {
        let ran = check_quietly("again", Sim::new(), async move {
            let deadline = connection_deadline().await;
            let first = deadline.guard(SECOND, sleep(2 * SECOND)).await;
            let second = deadline.guard(limit, async {
                let inner = timeout_after(MS, sleep(SECOND)).await;
                // The end of a timeout inside is where what fired around it is heard of again.
                sleep(SECOND).await?;
                inner
            });
            (short(&first), short(&second.await))
        });
        assert_eq!(ran.output, ("TT", "UTE"), "{limit:?}");
    }
}
