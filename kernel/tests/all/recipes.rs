//! The recipes of the guide, as they stand there.

use std::cell::Cell;
use std::future::pending;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use kernel::Sim;
use support::{at, check, check_quietly, op, short, tenths};
use traps::{
    Either, Interrupt, Interruptible, clock, current_deadline, ignore_after, race, sleep, spawn,
    timeout_after, yield_now,
};

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

// ---- The recipes -------------------------------------------------------------------------------

async fn fallback_after<T, E: Interruptible>(
    span: Duration,
    first: impl Future<Output = Result<T, E>>,
    otherwise: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match ignore_after(span, first).await? {
        Some(value) => Ok(value),
        None => otherwise.await,
    }
}

async fn within<T, E: Interruptible>(
    span: Option<Duration>,
    future: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    timeout_after(span.unwrap_or(Duration::from_secs(10)), future).await
}

async fn watch_idle<T>(
    span: Duration,
    heard: &Cell<bool>,
    mut on_idle: impl FnMut(),
    watched: impl Future<Output = T>,
) -> T {
    let watch = async {
        while sleep(span).await.is_ok() {
            if !heard.replace(false) {
                on_idle();
            }
        }
        pending().await
    };
    match race(watched, watch).await {
        Either::Left(output) | Either::Right(output) => output,
    }
}

#[test]
fn the_guide_shows_the_tested_code() {
    let (page, here) = (include_str!("../../src/guide/recipes.md"), include_str!("recipes.rs"));
    let recipes: Vec<&str> = page.split("```").filter(|it| it.starts_with("rust\n")).collect();
    assert_eq!(recipes.len(), 3);
    for recipe in recipes {
        let shown = recipe.lines().skip(1).filter(|line| !line.starts_with("# "));
        let shown = shown.collect::<Vec<_>>().join("\n");
        assert!(here.contains(&shown), "{shown}");
    }
}

// ---- A fallback --------------------------------------------------------------------------------

#[test]
fn a6_fallback_runs_outside_the_expired_scope() {
    let ran = check("a6_fallback_runs_outside_the_expired_scope", Sim::new(), async {
        let fetch = async { sleep(secs(60)).await.map(|_| "fresh") };
        let cached = async {
            assert_eq!(current_deadline(), Some(at(50)), "what is around");
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
        let fallback = || {
            let count = count.clone();
            async move {
                count.set(count.get() + 1);
                Ok::<&str, io::Error>("fallback")
            }
        };
        let slow = || async { Ok::<_, io::Error>(op(20).await.map(|_| "slow")?) };
        // A value, and another error.
        let value = fallback_after(tenths(30), slow(), fallback()).await;
        assert_eq!(value.unwrap(), "slow");
        let error = async { Err(io::Error::other("refused")) };
        let error = fallback_after(tenths(3), error, fallback()).await.unwrap_err();
        assert_eq!(error.to_string(), "refused");
        // An outer timeout with an earlier deadline, and one with the same deadline.
        for outer in [2, 3] {
            let inner = fallback_after(tenths(3), slow(), fallback());
            let result = timeout_after(tenths(outer), inner).await;
            assert_eq!(short(&result), "TT");
        }
        // An inner timeout that no code handled.
        let inner = timeout_after(tenths(1), slow());
        let result = fallback_after(tenths(3), inner, fallback()).await;
        assert_eq!(short(&result), "UTE");
        // No limit.
        let value = fallback_after(Duration::MAX, slow(), fallback()).await;
        assert_eq!(value.unwrap(), "slow");
        // A cancellation.
        let own = fallback();
        let child = async move {
            let slow = async { Ok::<_, io::Error>(op(20).await.map(|_| "slow")?) };
            fallback_after(tenths(3), slow, own).await
        };
        let mut child = spawn("child", child).await;
        yield_now().await.unwrap();
        child.cancel_because("enough").await.unwrap();
        assert_eq!(short(&child.join().await.unwrap()), "CAN");
        assert_eq!(fallbacks.get(), 0);
        let value = fallback_after(tenths(3), slow(), fallback()).await;
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
        let inner = fallback_after(tenths(2), op(9), op(9));
        assert_eq!(short(&timeout_after(tenths(5), inner).await), "TT");
        assert_eq!(clock().await, at(5));
        // Both pass in one run. The outer timeout ends the fallback's first trap.
        let fell_back = Cell::new(false);
        let late = async {
            virtual_clock.advance(tenths(6));
            op(9).await
        };
        let fallback = async {
            fell_back.set(true);
            op(9).await
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
            // The future has ended by the timeout, and is dropped.
            op(9).await
        };
        let fallback = async {
            assert!(!held.get());
            op(1).await
        };
        assert_eq!(fallback_after(tenths(2), primary, fallback).await, Ok(at(3)));
    });
}

// ---- A default ---------------------------------------------------------------------------------

#[test]
fn a9_the_span_at_the_call_overrides_the_default() {
    let ran = check_quietly("a9", Sim::new(), async {
        let mut took = Vec::new();
        for span in [None, Some(secs(5)), Some(Duration::MAX)] {
            let before = clock().await;
            let result = within(span, sleep(secs(60))).await;
            took.push((short(&result), clock().await.since(before)));
        }
        assert_eq!(took, [("TT", secs(10)), ("TT", secs(5)), ("ok", secs(60))]);
    });
    let shown = |span: &str| ran.lines(|line| line.contains(&format!("set_timeout {span} "))).len();
    assert_eq!([shown("10s"), shown("5s")], [1, 1]);
}

// ---- A watchdog for idleness -------------------------------------------------------------------

#[test]
fn d22_idle_it_calls_once_a_span_and_active_never() {
    let ran = check_quietly("d22", Sim::new(), async {
        let (heard, calls) = (Cell::new(false), Cell::new(Vec::new()));
        let on_idle = || {
            let mut so_far = calls.take();
            so_far.push(heard.get());
            calls.set(so_far);
        };
        let talk = async {
            sleep(secs(5)).await?;
            let idle = calls.take().len();
            for _ in 0..5 {
                heard.set(true);
                sleep(secs(1)).await?;
            }
            let active = calls.take().len();
            sleep(secs(5)).await?;
            Ok::<_, Interrupt>((idle, active, calls.take().len()))
        };
        watch_idle(secs(2), &heard, on_idle, talk).await.unwrap()
    });
    assert_eq!(ran.output, (2, 0, 2));
}

#[test]
fn d22_an_outer_interrupt_ends_the_watching_and_reaches_the_future() {
    let ran = check_quietly("outer", Sim::new(), async {
        let (heard, calls) = (Cell::new(false), Cell::new(0));
        let count = || calls.set(calls.get() + 1);
        // A future without a wait that could be interrupted.
        let bare = watch_idle(secs(1), &heard, count, pending::<Result<(), Interrupt>>());
        let bare = timeout_after(tenths(25), bare).await;
        let after_bare = calls.get();
        // A future with a long clean-up.
        let tidy = async {
            let end = sleep(secs(60)).await;
            sleep(secs(10)).await.unwrap();
            end
        };
        let tidy = timeout_after(tenths(25), watch_idle(secs(1), &heard, count, tidy)).await;
        (short(&bare), after_bare, short(&tidy), calls.get())
    });
    assert_eq!(ran.output, ("TT", 2, "TT", 4));
    assert_eq!(ran.took, secs(15));
}
