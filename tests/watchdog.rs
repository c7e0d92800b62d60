//! The idle watchdog: it calls back while nothing happens, and interrupts no task.

mod support;

use std::cell::Cell;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use kernel::{Kernel, Sim};
use support::{check, check_quietly, short};
use traps::{Interrupt, JoinError, idle_watchdog, join, note_warning, sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn d22_idle_it_calls_once_a_span_and_active_never() {
    let ran = check("d22_idle_it_calls_once_a_span_and_active_never", Sim::new(), async {
        let watchdog = idle_watchdog(2 * SECOND, || note_warning("idle")).await;
        let talk = async {
            sleep(5 * SECOND).await?;
            for _ in 0..3 {
                watchdog.touch();
                sleep(SECOND).await?;
            }
            sleep(2 * SECOND).await
        };
        let end = watchdog.watch(talk).await;
        watchdog.touch();
        sleep(9 * SECOND).await.unwrap();
        short(&end)
    });
    assert_eq!(ran.output, "ok");
    let warned = ran.lines(|line| line.contains(" warn "));
    let times: Vec<&str> =
        warned.iter().map(|line| line.split('.').next().unwrap().trim()).collect();
    // Idle until 5, active until 7, then idle up to the end at 10; nothing after it.
    assert_eq!(times, ["2", "4", "9"]);
}

#[test]
fn d22_a_touch_is_no_trap() {
    let traps = |touches: u32| {
        let mut kernel = Kernel::new(Sim::new());
        let main = async {
            let watchdog = idle_watchdog(SECOND, || panic!("it was idle")).await;
            let busy = async {
                for _ in 0..10 {
                    sleep(SECOND / 2).await.unwrap();
                    for _ in 0..touches {
                        watchdog.touch();
                    }
                }
            };
            watchdog.watch(busy).await;
        };
        kernel.run(main).unwrap();
        kernel.counters().traps
    };
    assert_eq!(traps(1), traps(100));
}

#[test]
fn d22_a_touch_at_the_very_end_of_a_span_comes_too_late_for_that_span() {
    let ran = check_quietly("tie", Sim::new(), async {
        let calls = Cell::new(0);
        let watchdog = idle_watchdog(SECOND, || calls.set(calls.get() + 1)).await;
        let busy = async {
            for _ in 0..3 {
                sleep(SECOND).await.unwrap();
                watchdog.touch();
            }
            let before = calls.get();
            sleep(SECOND / 2).await.unwrap();
            (before, calls.get())
        };
        watchdog.watch(busy).await
    });
    // The future is polled first, so its own third touch stands before the third call.
    assert_eq!(ran.output, (2, 3));
}

#[test]
fn d22_what_comes_from_further_out_ends_the_watching_and_reaches_the_future() {
    let ran = check_quietly("outer", Sim::new(), async {
        let calls = Cell::new(0);
        let watchdog = idle_watchdog(SECOND, || calls.set(calls.get() + 1)).await;
        // One that waits for nothing that could be interrupted.
        let bare = pending::<Result<(), Interrupt>>();
        let bare = timeout_after(SECOND * 5 / 2, watchdog.watch(bare)).await;
        let after_bare = calls.get();
        // One that takes its time to clean up.
        let tidy = async {
            let end = sleep(60 * SECOND).await;
            watchdog.touch();
            sleep(10 * SECOND).await.unwrap();
            end
        };
        let tidy = timeout_after(SECOND * 5 / 2, watchdog.watch(tidy)).await;
        (short(&bare), after_bare, short(&tidy), calls.get())
    });
    assert_eq!(ran.output, ("TT", 2, "TT", 4));
    assert_eq!(ran.took, SECOND * 15);
}

#[test]
fn d22_a_callback_that_panics_is_a_panic_of_the_watch() {
    let ran = check_quietly("panic", Sim::new(), async {
        let mut child = spawn("child", async {
            let watchdog = idle_watchdog(SECOND, || panic!("no pings today")).await;
            watchdog.watch(sleep(5 * SECOND)).await
        })
        .await;
        let joined = child.join().await;
        // One that is caught is gone; the watchdog is as before.
        let calls = Cell::new(0);
        let watchdog = idle_watchdog(SECOND, || {
            calls.set(calls.get() + 1);
            assert!(calls.get() > 1, "the first");
        });
        let watchdog = watchdog.await;
        let caught = AssertUnwindSafe(watchdog.watch(sleep(5 * SECOND))).catch_unwind().await;
        sleep(10 * SECOND).await.unwrap();
        let again = watchdog.watch(sleep(SECOND * 7 / 2)).await;
        (joined.unwrap_err(), caught.is_err(), short(&again), calls.get())
    });
    let (joined, caught, again, calls) = ran.output;
    assert!(matches!(joined, JoinError::Panicked(text) if text == "no pings today"));
    assert_eq!((caught, again, calls), (true, "ok", 4));
}

#[test]
#[should_panic(expected = "rule: a watchdog watches one future at a time")]
fn d22_two_watches_at_once_are_a_broken_rule() {
    let _ = kernel::run(async {
        let watchdog = idle_watchdog(SECOND, || ()).await;
        join(watchdog.watch(sleep(SECOND)), watchdog.watch(sleep(SECOND))).await
    });
}

#[test]
fn a_span_of_zero_or_without_an_end_never_calls() {
    for span in [Duration::ZERO, Duration::MAX] {
        let ran = check_quietly("never", Sim::new(), async {
            let watchdog = idle_watchdog(span, || panic!("it was idle")).await;
            let end = watchdog.watch(async {
                sleep(SECOND).await?;
                watchdog.touch();
                sleep(1000 * SECOND).await
            });
            short(&end.await)
        });
        assert_eq!(ran.output, "ok", "{span:?}");
        // Nor for a timeout further out, while what is inside comes to its end.
        let ran = check_quietly("never", Sim::new(), async {
            let watchdog = idle_watchdog(span, || panic!("it was idle")).await;
            let lingers = async {
                let slept = sleep(60 * SECOND).await;
                sleep(10 * SECOND).await?;
                slept
            };
            short(&timeout_after(SECOND, watchdog.watch(lingers)).await)
        });
        assert_eq!(ran.output, "TT", "{span:?}");
    }
}
