//! Deadlines that operations find around them.
//!
//! Not here: configured timeouts (there is no configuration), and deadlines on the wire (a network
//! protocol would send `remaining()`). Other files test the deadline of a job on a thread
//! (`workers.rs`), limits that refuse (`overload.rs`), and what the members of a group inherit
//! (`groups.rs`).

mod support;

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use kernel::Sim;
use support::{Ran, check, check_quietly, short, short_kind, tenths};
use traps::threads::ThreadError;
use traps::{
    DefaultTimeout, Error, Interrupt, Interruptible, Kind, NotStarted, Time, cancellable, clock,
    current_deadline, fallback_after, remaining, run_in_thread, shield, sleep, spawn,
    timeout_after, wall_clock, yield_now,
};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn at(tenth: u64) -> Time {
    Time::ZERO + tenths(tenth)
}

#[track_caller]
fn op(n: u64) -> traps::Sleep {
    sleep(tenths(n))
}

/// The times and details of the `deadline` traps.
fn deadline_traps<T>(ran: &Ran<T>) -> Vec<String> {
    let lines = ran.lines(|line| line.contains(" trap     deadline"));
    let shown = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        format!("{} {}", words[0], words[7..].join(" "))
    };
    lines.into_iter().map(shown).collect()
}

fn short_io<T>(result: &io::Result<T>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.interrupt().map_or("other", |why| short_kind(why.kind())),
    }
}

// ---- What is in force --------------------------------------------------------------------------

#[test]
fn a1_the_deadline_is_absolute_and_readable_anywhere_below() {
    async fn far_below() -> (Option<Time>, Option<Duration>) {
        (current_deadline().await, remaining().await)
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
        assert!(matches!(result, Err(ThreadError::Interrupt(_))), "{result:?}");
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
        assert!(matches!(result.await, Err(ThreadError::NotStarted(_))));
    });
    assert!(!ran_at_all.load(Ordering::SeqCst));
    assert_eq!(ran.count("offload"), 0);
}

/// 30 s in all: the third operation begins when 20 s are spent, and its trap shows the outer
/// deadline, not a new one.
#[test]
fn a3_a_third_operation_runs_under_what_remains() {
    let ran = check_quietly("a3", Sim::new(), async {
        let third = cancellable(async {
            let left = remaining().await;
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
        assert_eq!(short_io(&result), "TT");
    });
    assert_eq!(ran.took, secs(30));
    let asked_at = ["0.000000", "10.000000", "20.000000", "20.000000"];
    let shown = asked_at.map(|time| format!("{time} until=30.000000 = s1"));
    assert_eq!(deadline_traps(&ran), shown, "the last one is `remaining`");
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
        let why = error.get_ref().unwrap().downcast_ref::<NotStarted>().unwrap();
        assert_eq!((why.deadline(), why.reading(), why.scope()), (at(5), at(7), 1));
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
        assert_eq!(short_io(&now), "other");
        assert_eq!(started.get(), 0);
        let soon = timeout_after(Duration::from_micros(1), cancellable(body())).await;
        assert_eq!(short_io(&soon), "ok");
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
        assert!(matches!(result, Err(Error::NotStarted(why)) if why.deadline() == at(1)));
    });
    assert!(!started.get());
}

/// Which of several deadlines it was: the soonest, of equal ones the outermost.
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
            let Err(Error::NotStarted(why)) = result.await else { panic!("it was started") };
            assert_eq!(why.scope(), scope, "{outer} around {inner}");
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
        assert_eq!(short_io(&result.await), "other");
    });
}

#[test]
fn a5_begun_and_cut_or_never_begun_are_two_errors_that_both_say_which_deadline() {
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
        assert!(matches!(&late, Error::NotStarted(_)));
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
        assert!(boxed.is::<NotStarted>());
        for error in [begun, late] {
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
        }
    });
}

async fn op_or_error(n: u64) -> Result<Time, Error> {
    Ok(op(n).await?)
}

// ---- Fallbacks and defaults --------------------------------------------------------------------

#[test]
fn a6_fallback_runs_outside_the_expired_scope() {
    let ran = check("a6_fallback_runs_outside_the_expired_scope", Sim::new(), async {
        let fetch = async { sleep(secs(60)).await.map(|_| "fresh") };
        let cached = || async {
            assert_eq!(current_deadline().await, Some(at(50)), "what is around");
            sleep(secs(1)).await.map(|_| "from the cache")
        };
        let page = timeout_after(secs(5), fallback_after(tenths(2), fetch, cached)).await;
        assert_eq!(page, Ok("from the cache"));
    });
    assert_eq!(ran.took, tenths(12));
}

#[test]
fn a6_the_fallback_is_for_its_own_timeout_alone() {
    let fallbacks = Rc::new(Cell::new(0));
    let ran = check_quietly("a6", Sim::new(), async {
        let count = fallbacks.clone();
        let fallback = move || {
            let count = count.clone();
            async move {
                count.set(count.get() + 1);
                Ok::<&str, io::Error>("fallback")
            }
        };
        let slow = || async { Ok::<_, io::Error>(op(20).await.map(|_| "slow")?) };
        // A value, and another error.
        let value = fallback_after(tenths(30), slow(), fallback.clone()).await;
        assert_eq!(value.unwrap(), "slow");
        let error = async { Err(io::Error::other("refused")) };
        let error = fallback_after(tenths(3), error, fallback.clone()).await.unwrap_err();
        assert_eq!(error.to_string(), "refused");
        // A timeout further out, and one of equal time further out.
        for outer in [2, 3] {
            let inner = fallback_after(tenths(3), slow(), fallback.clone());
            let result = timeout_after(tenths(outer), inner).await;
            assert_eq!(short_io(&result), "TT");
        }
        // One further in that nobody handled.
        let inner = timeout_after(tenths(1), slow());
        let result = fallback_after(tenths(3), inner, fallback.clone()).await;
        assert_eq!(short_io(&result), "UTE");
        // No limit.
        let value = fallback_after(None, slow(), fallback.clone()).await;
        assert_eq!(value.unwrap(), "slow");
        // A cancellation.
        let own = fallback.clone();
        let child = async move {
            let slow = async { Ok::<_, io::Error>(op(20).await.map(|_| "slow")?) };
            fallback_after(tenths(3), slow, own).await
        };
        let mut child = spawn("child", child).await;
        yield_now().await.unwrap();
        child.cancel("enough").await.unwrap();
        assert_eq!(short_io(&child.join().await.unwrap()), "CAN");
        assert_eq!(fallbacks.get(), 0);
        let value = fallback_after(tenths(3), slow(), fallback).await;
        assert_eq!(value.unwrap(), "fallback");
    });
    assert_eq!(fallbacks.get(), 1);
    assert_eq!(ran.took, tenths(20 + 2 + 3 + 1 + 20 + 3));
}

#[test]
fn a6_an_outer_deadline_holds_for_the_fallback_too() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let ran = check_quietly("a6", sim, async {
        let inner = fallback_after(tenths(2), op(9), || op(9));
        assert_eq!(short(&timeout_after(tenths(5), inner).await), "TT");
        assert_eq!(clock().await, at(5));
        // Both pass while nobody looks: the outer one is heard at the fallback's first trap.
        let fell_back = Cell::new(false);
        let late = async {
            virtual_clock.advance(tenths(6));
            op(9).await
        };
        let fallback = || {
            fell_back.set(true);
            op(9)
        };
        let inner = fallback_after(tenths(2), late, fallback);
        assert_eq!(short(&timeout_after(tenths(5), inner).await), "TT");
        assert!(fell_back.get());
    });
    assert_eq!(ran.took, tenths(5 + 6));
}

#[test]
fn a6_the_primary_is_gone_when_the_fallback_begins() {
    struct Held(Rc<Cell<bool>>);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.set(false);
        }
    }
    check_quietly("a6", Sim::new(), async {
        let held = Rc::new(Cell::new(true));
        let guard = Held(held.clone());
        let primary = async move {
            let _guard = guard;
            // Kept through the timeout: the future has ended, and is dropped.
            op(9).await
        };
        let fallback = || {
            assert!(!held.get());
            op(1)
        };
        assert_eq!(fallback_after(tenths(2), primary, fallback).await, Ok(at(3)));
    });
}

#[test]
fn a7_leaving_a_scope_restores_the_deadline_around_it() {
    check_quietly("a7", Sim::new(), async {
        assert_eq!(current_deadline().await, None);
        timeout_after(tenths(9), async {
            timeout_after(tenths(5), async {
                assert_eq!(current_deadline().await, Some(at(5)));
                Ok::<(), Interrupt>(())
            })
            .await?;
            assert_eq!(current_deadline().await, Some(at(9)), "restored, not cleared");
            let inner = timeout_after(tenths(5), op(8)).await;
            assert_eq!(short(&inner), "TT");
            assert_eq!(current_deadline().await, Some(at(9)), "by a timeout too");
            Ok::<(), Interrupt>(())
        })
        .await
        .unwrap();
        assert_eq!(current_deadline().await, None);
    });
}

#[test]
fn a8_the_sooner_of_two_nested_deadlines_fires_and_the_outer_one_stays() {
    check_quietly("a8", Sim::new(), async {
        // Outer 5 s, inner 10 s: the outer one, attributed to it.
        let line = line!() + 1;
        let cut = timeout_after(secs(5), timeout_after(secs(10), sleep(secs(60)))).await;
        let why = cut.unwrap_err();
        assert_eq!((why.kind(), why.scope()), (Kind::TaskTimeout, Some(1)));
        assert_eq!((clock().await, why.set_at().unwrap().line()), (at(50), line));
        // Outer 5 s, inner 2 s: the inner one, then the outer one is still armed.
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
fn a9_the_span_at_the_call_overrides_the_default() {
    const FETCH: DefaultTimeout = DefaultTimeout::new(Duration::from_secs(10));
    let ran = check_quietly("a9", Sim::new(), async {
        let mut took = Vec::new();
        for span in [None, Some(secs(5)), Some(Duration::MAX)] {
            let before = clock().await;
            let result = FETCH.run(span, sleep(secs(60))).await;
            took.push((short(&result), clock().await.since(before)));
        }
        assert_eq!(took, [("TT", secs(10)), ("TT", secs(5)), ("ok", secs(60))]);
        FETCH.run(secs(3), sleep(secs(1))).await.unwrap();
    });
    let shown = |span: &str| ran.lines(|line| line.contains(&format!("set_timeout {span} "))).len();
    assert_eq!([shown("10s"), shown("5s"), shown("3s")], [1, 1, 1]);
    assert_eq!(FETCH.span(), secs(10));
}

#[test]
fn a10_without_a_deadline_there_is_one_question_and_nothing_else() {
    let operation = || async { op(2).await };
    let bare = check_quietly("a10", Sim::new(), async { operation().await.map(drop).unwrap() });
    let ran = check_quietly("a10", Sim::new(), async {
        let operation = async { Ok::<_, Error>(operation().await?) };
        cancellable(operation).await.map(drop).unwrap();
    });
    assert_eq!(deadline_traps(&ran), ["0.000000 = none"]);
    for verb in ["trap", "arm", "fire", "block", "disarm"] {
        let question = usize::from(verb == "trap");
        assert_eq!(ran.count(verb), bare.count(verb) + question, "{verb}");
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

/// The same program twice, on a day whose clock is set back and forth in the second: not one byte
/// of the trace differs.
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
                    walls.push(wall_clock().await);
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

/// Also where a task holds the CPU meanwhile.
#[test]
fn a_wall_clock_that_is_set_goes_on_from_then() {
    let then = SystemTime::UNIX_EPOCH + secs(1_700_000_000);
    let sim = Sim::new().wall_set_at(at(1), then);
    let clock = sim.clock();
    check_quietly("wall_set", sim, async {
        clock.advance(tenths(5));
        yield_now().await.unwrap();
        assert_eq!(wall_clock().await, then + tenths(4));
    });
}

/// A handle is for any thread, so for two.
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
        let inner = fallback_after(None, async { current_deadline_ok().await }, || async {
            panic!("no limit, no fallback")
        });
        let inside = timeout_after(tenths(3), inner).await;
        assert_eq!(inside, Ok(Some(at(3))), "the outer one stays in force");
        // A first sleep of zero completes; the next trap is hit.
        let twice = async {
            sleep(Duration::ZERO).await?;
            op(1).await.map(|_| "done")
        };
        let cut = fallback_after(Duration::ZERO, twice, || async { Ok("fallback") });
        assert_eq!(cut.await, Ok("fallback"));
        assert_eq!(clock().await, Time::ZERO);
    });
}

async fn current_deadline_ok() -> Result<Option<Time>, Interrupt> {
    Ok(current_deadline().await)
}
