//! Deadlines around operations.
//!
//! Not here: configured timeouts (there is no configuration), and deadlines on the wire (a network
//! protocol would send `remaining()`). Other files test the deadline of a job on a thread
//! (`workers.rs`), limits that refuse (`overload.rs`), and what the members of a group inherit
//! (`groups.rs`).

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use kernel::Sim;
use support::{at, check, check_quietly, op, short, tenths};
use traps::{
    Error, Interrupt, Interruptible, Kind, Time, cancellable, clock, current_deadline, remaining,
    run_in_thread, shield, sleep, timeout_after, wall_clock, yield_now,
};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

// ---- The deadline in force ---------------------------------------------------------------------

#[test]
fn a1_the_deadline_is_absolute_and_readable_anywhere_below() {
    async fn far_below() -> (Option<Time>, Option<Duration>) {
        (current_deadline(), remaining())
    }
    check_quietly("a1", Sim::starting_at(at(30)), async {
        timeout_after(secs(15), async {
            assert_eq!(far_below().await, (Some(at(180)), Some(secs(15))));
            sleep(secs(4)).await?;
            assert_eq!(far_below().await, (Some(at(180)), Some(secs(11))));
            Ok::<(), Interrupt>(())
        })
        .await
        .unwrap();
        assert_eq!(far_below().await, (None, None));
    });
}

#[test]
fn a2_work_on_a_thread_is_cut_for_its_caller_on_time() {
    let sim = Sim::new().jobs_take(secs(2));
    let ran = check_quietly("a2", sim, async {
        let job = cancellable(run_in_thread(|| 1));
        let result = timeout_after(tenths(2), job).await;
        assert!(matches!(result, Err(Error::Interrupt(_))), "{result:?}");
    });
    assert_eq!(ran.took, tenths(2));
    assert_eq!(ran.count("offload"), 1);
}

#[test]
fn a2_work_whose_time_is_over_is_not_given_to_a_thread() {
    let sim = Sim::new().jobs_take(secs(2));
    let virtual_clock = sim.clock();
    let ran_at_all = Arc::new(AtomicBool::new(false));
    let theirs = ran_at_all.clone();
    let ran = check_quietly("a2", sim, async {
        let result = timeout_after(tenths(2), async {
            virtual_clock.advance(tenths(2));
            cancellable(run_in_thread(move || theirs.store(true, Ordering::SeqCst))).await
        });
        assert!(matches!(result.await, Err(Error::NotStarted { .. })));
    });
    assert!(!ran_at_all.load(Ordering::SeqCst));
    assert_eq!(ran.count("offload"), 0);
}

/// 30 s for all: the third operation begins after 20 s, and its trap shows the outer deadline, not
/// a new deadline.
#[test]
fn a3_a_third_operation_runs_under_the_remaining_time() {
    let ran = check_quietly("a3", Sim::new(), async {
        let third = cancellable(async {
            let left = remaining();
            assert_eq!(left, Some(secs(10)));
            sleep(secs(20)).await?;
            io::Result::Ok(())
        });
        let second = cancellable(async {
            sleep(secs(10)).await?;
            third.await
        });
        let first = cancellable(async {
            sleep(secs(10)).await?;
            second.await
        });
        let result = timeout_after(secs(30), first).await;
        assert_eq!(short(&result), "TT");
    });
    assert_eq!(ran.took, secs(30));
}

#[test]
fn a4_never_started() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let effects = Rc::new(Cell::new(0));
    let ran = check("a4_never_started", sim, async {
        let charge = || {
            let effects = effects.clone();
            async move {
                effects.set(effects.get() + 1);
                op(1).await?;
                io::Result::Ok(())
            }
        };
        let error = timeout_after(tenths(5), async {
            cancellable(charge()).await?;
            virtual_clock.advance(tenths(6));
            cancellable(charge()).await
        })
        .await
        .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(error.interrupt().is_none(), "nothing was interrupted");
        match error.get_ref().unwrap().downcast_ref() {
            Some(Error::NotStarted { deadline, reading, scope, .. }) => {
                assert_eq!((*deadline, *reading, *scope), (at(5), at(7), 1));
            }
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(effects.get(), 1, "the first one's");
    assert_eq!(ran.lines(|line| line.contains("block    sleep")).len(), 1);
}

#[test]
fn a4_a_deadline_that_comes_now_has_passed() {
    let started = Cell::new(0);
    check_quietly("a4", Sim::new(), async {
        let body = || async {
            started.set(started.get() + 1);
            io::Result::Ok(())
        };
        let now = timeout_after(Duration::ZERO, cancellable(body())).await;
        assert_eq!(short(&now), "other");
        assert_eq!(started.get(), 0);
        let soon = timeout_after(Duration::from_micros(1), cancellable(body())).await;
        assert_eq!(short(&soon), "ok");
        assert_eq!(started.get(), 1);
    });
}

/// A timeout that was handled inside its scope is still that scope's deadline.
#[test]
fn a4_clean_up_under_an_expired_deadline_begins_nothing() {
    let started = Cell::new(false);
    check_quietly("a4", Sim::new(), async {
        let result = timeout_after(tenths(1), async {
            assert_eq!(short(&op(9).await), "TT");
            let undo = async {
                started.set(true);
                Ok(())
            };
            cancellable(undo).await
        });
        let result: Result<(), Error> = result.await;
        assert!(matches!(result, Err(Error::NotStarted { deadline, .. }) if deadline == at(1)));
    });
    assert!(!started.get());
}

/// The soonest deadline fires; if several are equal, the outermost one fires.
#[test]
fn a4_the_error_names_the_deadline_that_holds() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    check_quietly("a4", sim, async {
        for (outer, inner, scope) in [(2, 5, 1), (5, 2, 4), (3, 3, 5)] {
            let innermost = async {
                virtual_clock.advance(tenths(6));
                cancellable(async { Ok::<(), Error>(()) }).await
            };
            let result = timeout_after(tenths(outer), timeout_after(tenths(inner), innermost));
            let Err(Error::NotStarted { scope: passed, .. }) = result.await else {
                panic!("it was started")
            };
            assert_eq!(passed, scope, "{outer} around {inner}");
        }
    });
}

#[test]
fn a4_a_shield_hides_the_deadline_outside_it() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    check_quietly("a4", sim, async {
        let result = timeout_after(tenths(1), async {
            virtual_clock.advance(tenths(2));
            let undo = async {
                op(1).await?;
                io::Result::Ok("undone")
            };
            let undone = shield(cancellable(undo)).await;
            assert_eq!(undone.unwrap(), "undone");
            cancellable(async { io::Result::Ok(()) }).await
        });
        assert_eq!(short(&result.await), "other");
    });
}

#[test]
fn a5_interrupted_and_never_begun_are_two_errors_and_both_name_the_deadline() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    check_quietly("a5", sim, async {
        let line = line!() + 1;
        let begun = timeout_after(tenths(1), cancellable(async { Ok(op(9).await?) }));
        let begun: Error = begun.await.unwrap_err();
        let late = timeout_after(tenths(1), async {
            virtual_clock.advance(tenths(4));
            cancellable(op_or_error(9)).await
        });
        let late: Error = late.await.unwrap_err();
        assert!(matches!(&begun, Error::Interrupt(why) if why.kind() == Kind::TaskTimeout));
        assert!(matches!(&late, Error::NotStarted { .. }));
        let here = format!("{}:{line}", file!());
        let after = format!("{}:{}", file!(), line + 2);
        assert_eq!(
            begun.to_string(),
            format!("timed out: deadline 0.100000 passed at 0.100000, set at {here}")
        );
        assert_eq!(
            late.to_string(),
            format!("not started at 0.500000: deadline 0.200000 of s2 had passed, set at {after}")
        );
        let boxed: Box<dyn std::error::Error> = timeout_after(Duration::ZERO, async {
            cancellable(async { Ok::<(), Box<dyn std::error::Error>>(()) }).await
        })
        .await
        .unwrap_err();
        assert!(boxed.is::<Error>());
        for error in [begun, late] {
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
        }
    });
}

async fn op_or_error(n: u64) -> Result<Time, Error> {
    Ok(op(n).await?)
}

// ---- Nested deadlines --------------------------------------------------------------------

#[test]
fn a7_leaving_a_scope_restores_the_deadline_around_it() {
    check_quietly("a7", Sim::new(), async {
        assert_eq!(current_deadline(), None);
        timeout_after(tenths(9), async {
            timeout_after(tenths(5), async {
                assert_eq!(current_deadline(), Some(at(5)));
                Ok::<(), Interrupt>(())
            })
            .await?;
            assert_eq!(current_deadline(), Some(at(9)), "restored, not cleared");
            let inner = timeout_after(tenths(5), op(8)).await;
            assert_eq!(short(&inner), "TT");
            assert_eq!(current_deadline(), Some(at(9)), "by a timeout too");
            Ok::<(), Interrupt>(())
        })
        .await
        .unwrap();
        assert_eq!(current_deadline(), None);
    });
}

#[test]
fn a8_the_sooner_of_two_nested_deadlines_fires_and_the_outer_one_stays() {
    check_quietly("a8", Sim::new(), async {
        // Outer 5 s, inner 10 s: the outer timeout fires, and its scope gets it as its own.
        let line = line!() + 1;
        let cut = timeout_after(secs(5), timeout_after(secs(10), sleep(secs(60)))).await;
        let why = cut.unwrap_err();
        assert_eq!((why.kind(), why.scope()), (Kind::TaskTimeout, Some(1)));
        assert_eq!((clock().await, why.set_at().unwrap().line()), (at(50), line));
        // Outer 5 s, inner 2 s: the inner timeout fires, and the outer deadline is still armed.
        let outer = timeout_after(secs(5), async {
            let inner = timeout_after(secs(2), sleep(secs(60))).await;
            assert_eq!(short(&inner), "TT");
            assert_eq!(clock().await, at(70));
            sleep(secs(60)).await
        });
        assert_eq!(short(&outer.await), "TT");
        assert_eq!(clock().await, at(100));
    });
}

#[test]
fn a10_without_a_deadline_an_operation_makes_no_trap_more() {
    let operation = || async { op(2).await };
    let bare = check_quietly("a10", Sim::new(), async { operation().await.map(drop).unwrap() });
    let ran = check_quietly("a10", Sim::new(), async {
        let operation = async { Ok::<_, Error>(operation().await?) };
        cancellable(operation).await.map(drop).unwrap();
    });
    for verb in ["trap", "arm", "fire", "block", "disarm"] {
        assert_eq!(ran.count(verb), bare.count(verb), "{verb}");
    }
}

#[test]
fn a11_an_undecorated_helper_is_cut_at_the_outer_deadline() {
    async fn helper_that_knows_of_no_deadline() -> Result<(), Interrupt> {
        loop {
            op(2).await?;
        }
    }
    let ran = check_quietly("a11", Sim::new(), async {
        let result = timeout_after(tenths(5), helper_that_knows_of_no_deadline()).await;
        assert_eq!(short(&result), "TT");
    });
    assert_eq!(ran.took, tenths(5));
}

// ---- Clocks ------------------------------------------------------------------------------------

/// Runs a program twice. In the second run, the time of day is set back and forth. Not one byte of
/// the trace differs.
#[test]
fn a13_stepping_the_wall_clock_does_nothing() {
    let program = |steps: bool| {
        let mut sim = Sim::new();
        if steps {
            let year = secs(365 * 86_400);
            let then = SystemTime::UNIX_EPOCH + secs(1_700_000_000);
            sim = sim.wall_set_at(at(1), then + year).wall_set_at(at(3), then - year);
        }
        check_quietly("a13", sim, async {
            let mut walls = Vec::new();
            let result = timeout_after(tenths(5), async {
                loop {
                    op(2).await?;
                    walls.push(wall_clock());
                }
            });
            let result: Result<(), Interrupt> = result.await;
            (short(&result), walls)
        })
    };
    let (still, stepped) = (program(false), program(true));
    assert_eq!(still.output.0, "TT");
    assert_eq!(still.trace, stepped.trace);
    let [before, after] = [still.output.1, stepped.output.1];
    assert!(before.is_sorted() && !after.is_sorted(), "the steps were taken: {after:?}");
}

/// Sets the wall clock while a task holds the CPU.
#[test]
fn a_wall_clock_that_is_set_continues_from_there() {
    let then = SystemTime::UNIX_EPOCH + secs(1_700_000_000);
    let sim = Sim::new().wall_set_at(at(1), then);
    let clock = sim.clock();
    check_quietly("wall_set", sim, async {
        clock.advance(tenths(5));
        yield_now().await.unwrap();
        assert_eq!(wall_clock(), then + tenths(4));
    });
}

/// Any thread may use a handle, so two threads may.
#[test]
fn a_virtual_clock_that_two_threads_advance_loses_nothing() {
    let clock = Sim::new().clock();
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| (0..100_000).for_each(|_| clock.advance(Duration::from_micros(1))));
        }
    });
    assert_eq!(clock.now(), Time::ZERO + Duration::from_millis(200));
}

// ---- None and zero -----------------------------------------------------------------------------

#[test]
fn x6_none_is_no_limit_of_its_own_and_zero_has_passed() {
    check_quietly("x6", Sim::new(), async {
        let inside = timeout_after(tenths(3), timeout_after(None, current_deadline_ok())).await;
        assert_eq!(inside, Ok(Some(at(3))), "the outer one stays in force");
        // A first sleep of zero completes. The interrupt ends the next trap.
        let twice = async {
            sleep(Duration::ZERO).await?;
            op(1).await.map(|_| "done")
        };
        assert_eq!(short(&timeout_after(Duration::ZERO, twice).await), "TT");
        assert_eq!(clock().await, Time::ZERO);
    });
}

async fn current_deadline_ok() -> Result<Option<Time>, Interrupt> {
    Ok(current_deadline())
}
