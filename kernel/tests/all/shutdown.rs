//! The shutdown of a kernel: its phases, the delays of each, and the line of each in
//! the log.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kernel::{Kernel, Options, RunError, Sim};
use support::kernels::{
    OnDrop, Oneshot, Traced, assert_lines, assert_sound, count, never, secs, sim,
};
use support::{Notes, check_with, check_with_panics, compare, compare_raw, ms, short, tenths};
use traps::shutdown::{begun, has_begun, hold, until_begun};
use traps::sync::Event;
use traps::{
    Error, Interruptible, Signal, TaskGroup, Time, clock, connection_deadline, foreign,
    run_in_thread, signals, sleep, spawn, timeout_after, wait_signal, yield_now,
};

fn at(tenth: u64) -> Time {
    Time::ZERO + tenths(tenth)
}

fn options() -> Options {
    Options::new().shutdown_on(&[Signal::Interrupt, Signal::Terminate])
}

/// Returns a machine that sends SIGTERM at each of these tenths of a second.
fn terminated_at(tenths: &[u64]) -> Sim {
    tenths.iter().fold(Sim::new(), |sim, tenth| sim.signal_at(at(*tenth), Signal::Terminate))
}

// ---- The machine fails -----------------------------------------------------------------------

/// The end of a job is counted even if no wait can report it any more.
#[test]
fn after_the_machine_has_failed_a_job_that_ends_is_not_left_alone() {
    let machine = Sim::new().fails_at(at(10));
    let clock = machine.clock();
    let mut kernel = Traced::new(machine, Options::new().longrun(None));
    let late = Rc::new(Cell::new(0));
    let told = late.clone();
    kernel.on_orphan(move |_| told.set(told.get() + 1));
    let ((send, receive), (begins, begun)) = (mpsc::channel::<()>(), mpsc::channel());
    let failed = kernel.run(async {
        let job = run_in_thread(move || {
            begins.send(()).unwrap();
            receive.recv()
        });
        drop(spawn("asks", async { drop(job.await) }).await);
        yield_now().await.unwrap();
        clock.advance(secs(1));
        never::<()>().await
    });
    assert!(matches!(failed, Err(RunError::Machine(_))), "{failed:?}");
    begun.recv().unwrap();
    send.send(()).unwrap();
    // The turns of the shutdown may pass without a wait.
    drop(kernel.shutdown());
    let trace = kernel.text();
    assert_eq!(late.get(), 1, "{trace}");
    assert_lines(&trace, "left behind", 0);
    assert_lines(&trace, "main     drop     its_run_failed", 1);
    assert_sound(&trace);
}

/// No wait can end any more, so no clean-up runs.
#[test]
fn after_the_machine_has_failed_the_tasks_that_are_left_are_dropped() {
    let mut kernel = Traced::new(Sim::new().fails_at(at(10)), Options::new());
    let notes = Notes::default();
    let noted = notes.clone();
    let failed = kernel.run(async {
        let waits = async move { noted.add(short(&sleep(secs(90)).await)) };
        drop(spawn("left", waits).await);
        never::<()>().await
    });
    assert!(matches!(failed, Err(RunError::Machine(_))), "{failed:?}");
    kernel.shutdown().unwrap();
    assert_eq!(notes.text(), "");
    let trace = kernel.text();
    assert_lines(&trace, "left     drop     the_machine_has_failed", 1);
    assert_sound(&trace);
}

/// A dropped task did not run, and the ends of the phases show how late they were.
#[test]
fn a_timed_trace_times_runs_and_fired_timers() {
    let mut kernel = Traced::new(Sim::new(), Options::new());
    kernel.time_the_trace();
    kernel.go(async {
        let stubborn = async {
            for _ in 0..2 {
                drop(sleep(secs(60)).await);
            }
        };
        drop(spawn("stubborn", stubborn).await);
        yield_now().await.unwrap();
    });
    let trace = kernel.end();
    let line = |part: &str| {
        let found = trace.lines().find(|line| line.contains(part));
        found.unwrap_or_else(|| panic!("{part}\n{trace}")).to_owned()
    };
    assert!(!line("stubborn exit     dropped").contains("ran="), "{trace}");
    assert!(line("main     exit     ok").contains("ran=0"), "{trace}");
    assert!(line("fire     grace").contains("late=0"), "{trace}");
}

// ---- The phases ------------------------------------------------------------------------------

#[test]
fn a_kernel_counts_the_holds_that_the_end_of_its_drain_cut_off() {
    for (span, cut_off) in [(tenths(4), 0), (tenths(6), 2), (Duration::MAX, 2)] {
        let mut kernel = Kernel::with_options(Sim::new(), options().drain(tenths(5)));
        kernel
            .run(async move {
                for _ in 0..2 {
                    let held = async move {
                        let _hold = hold();
                        sleep(span).await
                    };
                    spawn("busy", held).detached().await;
                }
                // No hold keeps this task, so no phase waits for it.
                spawn("idle", sleep(secs(90))).detached().await;
                yield_now().await
            })
            .unwrap()
            .unwrap();
        kernel.shutdown().unwrap();
        assert_eq!(kernel.counters().cut_off, cut_off, "{span:?}");
    }
}

/// Each phase waits for the events in its line: the close for none, the drain for a hold, the
/// clean-up for its grace.
#[test]
fn f18_all_phases() {
    let notes = Notes::default();
    let busy_notes = notes.clone();
    check_with("f18_all_phases", terminated_at(&[5]), options().grace(tenths(4)), async {
        let busy = async move {
            let _hold = hold();
            sleep(tenths(8)).await.unwrap();
            busy_notes.add("finished");
        };
        spawn("busy", busy).detached().await;
        spawn("idle", until_begun(sleep(secs(90)))).detached().await;
        let stubborn = async {
            loop {
                let _ = sleep(secs(90)).await;
            }
        };
        spawn("stubborn", stubborn).detached().await;
        begun().await.unwrap();
        assert!(has_begun());
        notes.add(format!("{}", clock().await));
    });
    assert_eq!(notes.text(), "0.500000 finished");
}

/// A failure in a phase affects only itself: a hold that is never dropped, a clean-up that panics
/// or does not end, a `Drop` that panics. The halt happens in any case.
#[test]
fn f18_a_failing_step() {
    let sim = terminated_at(&[1]);
    let options = options().drain(tenths(5)).grace(tenths(5));
    let ran = check_with_panics(sim, options, async {
        let holder = async {
            let _hold = hold();
            assert!(sleep(secs(90)).await.is_ok(), "the clean-up fails");
        };
        spawn("holder", holder).detached().await;
        let stubborn = async {
            let _guard = OnDrop(|| panic!("the drop fails"));
            loop {
                let _ = sleep(secs(90)).await;
            }
        };
        spawn("stubborn", stubborn).detached().await;
        begun().await.unwrap();
    });
    compare("f18_a_failing_step", &ran.trace);
}

/// No event can end a hold: the drain fails, and the later phases do not.
#[test]
fn f18_a_drain_that_fails_does_not_skip_the_phases_after_it() {
    let mut kernel = Traced::new(Sim::new(), options().drain(Duration::MAX));
    let notes = Notes::default();
    let noted = notes.clone();
    kernel.go(async {
        let holder = async move {
            let _hold = hold();
            noted.add(short(&Event::new().wait().await));
            noted.add(short(&sleep(secs(1)).await));
        };
        spawn("holder", holder).detached().await;
        yield_now().await.unwrap();
    });
    let failed = kernel.shutdown();
    assert!(matches!(failed, Err(RunError::Hang(_))), "{failed:?}");
    assert_eq!(notes.text(), "CAN ok");
    let trace = kernel.text();
    let phases = ["close reason=shutdown", "drain ", "cancel tasks=1 after=failure", "cleanup "];
    phases.iter().for_each(|phase| assert_lines(&trace, &format!("phase    {phase}"), 1));
    assert_lines(&trace, " halt ", 1);
    assert_sound(&trace);
}

#[test]
fn f18_a_shutdown_without_tasks_logs_only_its_halt() {
    let mut kernel = sim();
    kernel.go(async {});
    assert_lines(&kernel.end(), "phase ", 0);
}

#[test]
fn f18_the_whole_takes_no_longer_than_the_drain_and_one_grace() {
    let options = options().drain(secs(3)).grace(secs(2));
    let mut kernel = Traced::new(terminated_at(&[10]), options);
    let clock = kernel.machine().clock();
    kernel.go(async {
        for _ in 0..3 {
            // Holds forever, spawns in its clean-up, and swallows its interrupts.
            let stubborn = async {
                let _hold = hold();
                loop {
                    if sleep(secs(60)).await.is_err() {
                        drop(spawn("another", never::<()>()).await);
                    }
                }
            };
            spawn("stubborn", stubborn).await;
        }
        begun().await.unwrap();
    });
    assert_eq!(clock.now(), at(10), "main ended when it was told");
    let trace = kernel.end();
    assert_eq!(clock.now(), at(60));
    assert_lines(&trace, "phase    cancel tasks=3 after=limit", 1);
    assert_lines(&trace, "fire     drain deadline=4.000000", 1);
    assert_lines(&trace, "phase    drop tasks=", 1);
}

#[test]
fn f20_the_gate_is_passed_in_the_turn_in_which_the_signal_arrives() {
    let mut kernel = Traced::new(terminated_at(&[5]), options());
    let seen = Rc::new(RefCell::new(Vec::new()));
    kernel.go(async {
        for _ in 0..3 {
            let seen = seen.clone();
            let look = async move {
                sleep(tenths(5)).await.unwrap();
                seen.borrow_mut().push(has_begun());
            };
            spawn("look", look).await;
        }
        sleep(tenths(4)).await.unwrap();
        assert!(!has_begun());
        sleep(tenths(2)).await.unwrap(); // main is not told, and goes on
    });
    assert_eq!(seen.take(), [true; 3], "whoever runs in that turn knows");
    assert_lines(&kernel.end(), "phase    close reason=SIGTERM tasks=4", 1);
}

#[test]
fn f20_main_is_cancelled_when_the_drain_is_over_and_run_returns_its_output() {
    let mut kernel = Traced::new(terminated_at(&[5]), options().drain(secs(1)));
    let ended = kernel.go(async {
        assert!(!has_begun());
        let cut = sleep(secs(60)).await.unwrap_err();
        sleep(secs(1)).await.unwrap(); // clean-up
        (cut.is_cancelled(), clock().await)
    });
    assert_eq!(ended, (true, at(25)));
    assert!(matches!(kernel.run(async {}), Err(RunError::Shut)), "there is no next run");
    let trace = kernel.end();
    assert_lines(&trace, "phase    cancel tasks=1 after=limit", 1);
    assert_lines(&trace, "phase    close", 1);
}

#[test]
fn f20_a_second_signal_ends_the_drain() {
    let mut kernel = Traced::new(terminated_at(&[5, 7]), options());
    let ended = kernel.go(async {
        let _hold = hold();
        assert!(sleep(secs(60)).await.unwrap_err().is_cancelled());
        clock().await
    });
    assert_eq!(ended, at(7));
    assert_lines(&kernel.end(), "phase    cancel tasks=1 after=signal", 1);
}

#[test]
fn f20_a_main_that_has_not_asked_about_the_shutdown_is_cancelled_as_it_begins() {
    let mut kernel = Traced::new(terminated_at(&[5]), options());
    let ended = kernel.go(async {
        let cut = sleep(secs(60)).await.unwrap_err();
        sleep(secs(1)).await.unwrap(); // clean-up
        (cut.is_cancelled(), clock().await)
    });
    assert_eq!(ended, (true, at(15)));
    assert_lines(&kernel.end(), "phase    cancel tasks=1 after=drained", 1);
}

#[test]
fn f20_a_main_that_is_always_ready_is_cancelled_too() {
    let sim = terminated_at(&[5]);
    let clock = sim.clock();
    let mut kernel = Traced::new(sim, options());
    let turns = kernel.go(async {
        let mut turns = 0;
        while yield_now().await.is_ok() {
            clock.advance(tenths(1));
            turns += 1;
        }
        turns
    });
    assert!((5..100).contains(&turns), "{turns}");
    kernel.end();
}

#[test]
fn f20_a_main_that_has_asked_about_the_shutdown_finishes_its_work() {
    for asks in 0..4 {
        let mut kernel = Traced::new(terminated_at(&[5]), options());
        let ended = kernel.go(async {
            let mut held = None;
            match asks {
                0 => assert!(!has_begun()),
                1 => drop(until_begun(sleep(tenths(1))).await),
                2 => assert!(timeout_after(tenths(1), begun()).await.is_err()),
                _ => held = Some(hold()),
            }
            sleep(secs(3)).await.unwrap();
            drop(held);
            clock().await
        });
        assert!(ended >= at(30), "{asks}: {ended}");
        kernel.end();
    }
}

#[test]
fn f20_a_main_that_joins_a_task_with_a_hold_gets_its_output() {
    let mut kernel = Traced::new(terminated_at(&[5]), options());
    let ended = kernel.go(async {
        let server = async {
            let _hold = hold();
            sleep(secs(3)).await.unwrap();
            42
        };
        let output = spawn("server", server).await.join().await;
        (output.unwrap(), sleep(secs(1)).await.unwrap_err().is_cancelled())
    });
    assert_eq!(ended, (42, true));
    kernel.end();
}

#[test]
fn f20_a_main_that_works_on_after_its_members_takes_a_hold_too() {
    for holds in [false, true] {
        let mut kernel = Traced::new(terminated_at(&[5]), options());
        let ended = kernel.go(async {
            let _hold = holds.then(hold);
            let mut members = TaskGroup::new();
            for _ in 0..2 {
                let member = async {
                    let _hold = hold();
                    assert!(until_begun(sleep(secs(60))).await.is_none());
                    Ok::<_, Error>(sleep(secs(1)).await?)
                };
                members.spawn("member", member).await;
            }
            members.join().await.unwrap();
            (clock().await, sleep(secs(1)).await.is_ok())
        });
        assert_eq!(ended, (at(15), holds), "the members finish in both cases");
        kernel.end();
    }
}

#[test]
fn f20_each_further_signal_ends_a_phase() {
    for (holds, signals) in [(false, &[5, 7][..]), (true, &[5, 6, 7][..])] {
        let mut kernel = Traced::new(terminated_at(signals), options());
        let clock = kernel.machine().clock();
        let ended = kernel.run(async {
            let _hold = holds.then(hold);
            loop {
                let _ = sleep(secs(60)).await;
            }
        });
        assert!(matches!(ended, Err::<(), _>(RunError::Overdue)), "{holds}");
        kernel.end();
        assert_eq!(clock.now(), at(7), "{holds}");
    }
}

#[test]
fn f18_a_main_that_does_not_end_is_dropped_with_its_grace() {
    let mut kernel = Traced::new(terminated_at(&[1]), options().drain(secs(1)).grace(secs(1)));
    let dropped = Rc::new(Cell::new(false));
    let (flag, clock) = (dropped.clone(), kernel.machine().clock());
    let ended = kernel.run(async move {
        let _guard = OnDrop(move || flag.set(true));
        assert!(!has_begun());
        loop {
            let _ = sleep(secs(60)).await;
        }
    });
    assert!(matches!(ended, Err::<(), _>(RunError::Overdue)));
    assert_eq!((dropped.get(), clock.now()), (true, at(21)));
    kernel.end();
    assert_eq!(clock.now(), at(21), "and no other grace");
}

#[test]
fn f18_a_panic_of_main_runs_the_phases_before_it_propagates() {
    let mut kernel = sim();
    let finished = Rc::new(Cell::new(false));
    let flag = finished.clone();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        kernel.go(async move {
            let busy = async move {
                let _hold = hold();
                sleep(secs(1)).await.unwrap();
                flag.set(true);
            };
            spawn("busy", busy).await;
            yield_now().await.unwrap();
            panic!("main fails");
        })
    }));
    assert!(panicked.is_err() && finished.get());
    assert_lines(&kernel.end(), "phase    close reason=main_panicked tasks=1", 1);
}

#[test]
fn c32_a_task_that_has_not_run_yet_may_hold_the_drain() {
    let mut kernel = sim();
    let finished = Rc::new(Cell::new(0));
    kernel.go(async {
        for _ in 0..2 {
            let finished = finished.clone();
            let late = async move {
                let inner = async move {
                    let _hold = hold();
                    sleep(secs(1)).await.unwrap();
                    finished.set(finished.get() + 1);
                };
                drop(spawn("inner", inner).await);
            };
            drop(spawn("late", late).await);
        }
    });
    kernel.end();
    assert_eq!(finished.get(), 2);
}

#[test]
fn c32_a_task_that_the_close_wakes_may_still_hold_the_drain() {
    let mut kernel = sim();
    let finished = Rc::new(Cell::new(false));
    kernel.go(async {
        let finished = finished.clone();
        let told = async move {
            begun().await.unwrap();
            let _hold = hold();
            sleep(secs(1)).await.unwrap();
            finished.set(true);
        };
        spawn("told", told).await;
        yield_now().await.unwrap();
    });
    kernel.end();
    assert!(finished.get());
}

/// A combinator's waker wakes the task, in the close.
#[test]
fn c32_a_task_that_the_close_wakes_under_a_combinator_may_still_hold_the_drain() {
    let mut kernel = sim();
    let finished = Rc::new(Cell::new(false));
    kernel.go(async {
        let finished = finished.clone();
        let told = async move {
            assert!(until_begun(sleep(secs(60))).await.is_none(), "it is not cancelled");
            let _hold = hold();
            sleep(secs(1)).await.unwrap();
            finished.set(true);
        };
        let mut all: FuturesUnordered<_> = [told].into_iter().collect();
        spawn("told", async move { all.next().await }).await;
        // The combinator polls its child twice.
        for _ in 0..3 {
            yield_now().await.unwrap();
        }
    });
    let trace = kernel.end();
    assert!(finished.get());
    assert_lines(&trace, "told     cancel", 0);
}

#[test]
fn c32_a_hold_that_no_task_can_drop_holds_nothing_up() {
    let mut kernel = sim();
    let clock = kernel.machine().clock();
    let kept = kernel.go(async { hold() });
    kernel.shutdown().unwrap();
    assert_eq!(clock.now(), Time::ZERO);
    assert_eq!(kernel.counters().cut_off, 0, "no task had it");
    drop(kept);
    drop(hold()); // outside a kernel it holds nothing
    kernel.end();
}

#[test]
fn r8_a_drain_without_a_limit_hides_no_timer_of_a_task() {
    let options = Options::new().shutdown_on(&[Signal::Terminate]).drain(Duration::MAX);
    let mut kernel = Kernel::with_options(terminated_at(&[10]), options);
    let ran = kernel.run(async {
        spawn("late", sleep(secs(3))).await;
        begun().await
    });
    ran.unwrap().unwrap();
    assert_eq!(kernel.outstanding().timers, 1);
    kernel.shutdown().unwrap();
}

#[test]
fn c33_a_trap_that_the_machine_refuses_is_an_error_of_that_trap() {
    let mut kernel = sim();
    kernel.go(async {
        let socket = std::os::unix::net::UnixStream::pair().unwrap().0;
        let refused = traps::io::Io::new(socket).readable().await;
        assert!(matches!(refused, Err(traps::Error::Io(_))), "{refused:?}");
        sleep(secs(1)).await.unwrap();
    });
    kernel.end();
}

// ---- A shutdown as tasks see it --------------------------------------------------------------

#[test]
fn a_task_that_waits_for_the_shutdown_is_woken_wherever_it_is_polled() {
    let mut kernel = Traced::new(terminated_at(&[5]), options());
    let ended = kernel.go(async {
        // Children that are polled only if their own waker was called.
        let mut all = FuturesUnordered::new();
        for n in 0..4_u64 {
            let wait = async move {
                match n % 2 {
                    0 => begun().await.unwrap(),
                    _ => assert!(until_begun(sleep(secs(60))).await.is_none()),
                }
                n
            };
            all.push(wait.boxed_local());
        }
        let mut seen = Vec::new();
        while let Some(n) = all.next().await {
            seen.push(n);
        }
        seen.sort_unstable();
        (seen, clock().await)
    });
    assert_eq!(ended, (vec![0, 1, 2, 3], at(5)));
    kernel.end();
}

/// A question of another task than main does not count for main.
#[test]
fn a_main_that_only_joins_its_workers_ends_by_itself_if_they_hold() {
    for holds in [false, true] {
        let mut kernel = Traced::new(terminated_at(&[5]), options());
        let joined = kernel.go(async move {
            let worker = async move {
                let _hold = holds.then(hold);
                until_begun(sleep(secs(60))).await;
                Ok::<_, Error>(sleep(tenths(3)).await?)
            };
            let mut workers = TaskGroup::new();
            workers.spawn("worker", worker).await;
            workers.join().await
        });
        let ended = joined.map(|ends| ends[0]).ok();
        assert_eq!(ended, holds.then(|| at(8)));
        kernel.end();
    }
}

#[test]
fn a_value_of_the_same_turn_beats_the_shutdown_and_a_wait_after_it_is_not_begun_twice() {
    let mut kernel = Traced::new(terminated_at(&[5]), options());
    kernel.go(async {
        let both = until_begun(sleep(tenths(5))).await;
        assert!(both.is_some_and(|slept| slept.is_ok()));
        assert!(until_begun(sleep(secs(60))).await.is_none());
        assert!(until_begun(std::future::ready(7)).await == Some(7));
        begun().await.unwrap();
        assert_eq!(clock().await, at(5));
    });
    kernel.end();
}

/// A due guard wins against the beginning of the shutdown, as it wins against a value. Nothing is
/// lost, because `has_begun` still returns true.
#[test]
fn d7_a_guard_that_is_due_beats_the_shutdown_of_its_turn() {
    for by_task in [false, true] {
        let mut kernel = Traced::new(terminated_at(&[5]), options());
        kernel.go(async {
            let other = spawn("other", begun()).await;
            let deadline = connection_deadline().await;
            let end = match by_task {
                true => deadline.guard_task(tenths(5), begun()).await,
                false => deadline.guard(tenths(5), begun()).await,
            };
            assert!(end.is_err() && has_begun());
            begun().await.unwrap();
            other.wait().await.unwrap();
            assert_eq!(clock().await, at(5));
        });
        let trace = kernel.end();
        assert_lines(&trace, "other    wake     wait q1", 1);
    }
}

#[test]
fn waits_that_know_of_the_shutdown_make_no_trap_of_their_own() {
    let plain = testing::run(async {
        for _ in 0..10 {
            sleep(ms(1)).await.unwrap();
        }
    });
    let knowing = testing::run(async {
        for _ in 0..10 {
            until_begun(sleep(ms(1))).await.unwrap().unwrap();
        }
    });
    assert_eq!(plain.counters.traps, knowing.counters.traps);
}

#[test]
fn an_interrupt_ends_a_wait_for_the_shutdown() {
    testing::run(async {
        assert!(traps::timeout_after(secs(1), begun()).await.is_err());
        let cut =
            traps::timeout_after(secs(1), async { until_begun(sleep(secs(60))).await.transpose() });
        assert!(cut.await.unwrap_err().interrupt().is_some());
        assert!(!has_begun());
    });
    assert!(!has_begun(), "nor outside");
}

#[test]
fn a_shutdown_of_one_kernel_is_not_the_next_ones() {
    let mut first = Traced::new(terminated_at(&[1]), options());
    first.go(async { begun().await.unwrap() });
    assert!(has_begun(), "until it is dropped");
    first.end();
    assert!(!has_begun());
    let mut second = sim();
    second.go(async { assert!(!has_begun()) });
    second.end();
}

// ---- Quiescence ------------------------------------------------------------------------------

/// The job's caller gave up, and main has ended. The job's last message still arrives.
#[test]
fn r8_three_of_three_entries() {
    let mut kernel = Traced::new(Sim::new().jobs_take(tenths(5)), Options::new());
    let history = Arc::new(Mutex::new(Vec::new()));
    let note = |entry| history.lock().unwrap().push(entry);
    let (event, ran, handled) = (Oneshot::new(), history.clone(), history.clone());
    kernel.go(async {
        let heard = event.clone();
        let handler = async move {
            foreign(heard.receive()).await.unwrap();
            handled.lock().unwrap().push("handled");
        };
        spawn("handler", handler).detached().await;
        note("asked");
        let job = run_in_thread(move || {
            ran.lock().unwrap().push("ran");
            event.send(());
        });
        assert!(traps::ignore_after(tenths(1), job).await.unwrap().is_none());
    });
    assert_eq!(kernel.counters().abandoned, 1);
    assert!(!kernel.is_quiescent());
    assert!(kernel.run_until_quiescent(secs(10)).unwrap());
    assert_eq!(*history.lock().unwrap(), ["asked", "ran", "handled"]);
    assert!(kernel.is_quiescent());
    compare_raw("r8_three_of_three_entries", &kernel.end());
}

#[test]
fn r8_a_shutdown_that_begins_is_not_quiet_though_all_ends_in_its_turn() {
    let options = Options::new().shutdown_on(&[Signal::Terminate]);
    let mut kernel = Traced::new(Sim::new().signal_at(at(10), Signal::Terminate), options);
    kernel.go(async {
        drop(spawn("until", async { begun().await.unwrap() }).await);
        yield_now().await.unwrap();
    });
    assert!(!kernel.run_until_quiescent(secs(10)).unwrap());
    kernel.end();
}

#[test]
fn r8_quiet_is_when_nothing_is_left_that_could_happen() {
    let mut kernel =
        Traced::new(Sim::new().ready_at(at(20), 1, traps::io::Direction::Read), Options::new());
    let clock = kernel.machine().clock();
    kernel.go(async {
        spawn("asleep", sleep(secs(5))).await;
        spawn("stuck", never::<()>()).await; // nothing can wake it
        yield_now().await.unwrap();
    });
    assert!(!kernel.run_until_quiescent(secs(1)).unwrap(), "a timer and a step of the script");
    assert_eq!(clock.now(), at(10), "the limit ends the wait");
    assert!(kernel.run_until_quiescent(secs(60)).unwrap());
    assert_eq!(clock.now(), at(50), "and is not waited for");
    assert_eq!(kernel.counters().tasks, 1);
    kernel.end();
}

#[test]
fn r8_a_wake_that_is_on_its_way_is_not_quiet() {
    let mut kernel = sim();
    let event = Oneshot::new();
    let done = Rc::new(Cell::new(false));
    kernel.go(async {
        let (event, done) = (event.clone(), done.clone());
        let waiter = async move {
            event.receive().await;
            done.set(true);
        };
        spawn("waiter", waiter).await;
        yield_now().await.unwrap();
    });
    assert!(kernel.is_quiescent(), "nobody holds the waker but us");
    let sender = event.clone();
    std::thread::spawn(move || sender.send(())).join().unwrap();
    assert!(!kernel.is_quiescent());
    assert!(kernel.run_until_quiescent(secs(1)).unwrap());
    assert!(done.get());
    kernel.end();
}

/// A kernel with one abandoned job on a real thread, which ends on request.
fn with_an_abandoned_job(options: Options) -> (Traced<Sim>, mpsc::Sender<()>) {
    let mut kernel = Traced::new(Sim::new(), options);
    let ((open, gate), (say, started)) = (mpsc::channel(), mpsc::channel());
    kernel.go(async {
        let job = run_in_thread(move || {
            say.send(()).unwrap();
            let _ = gate.recv();
        });
        let caller = spawn("caller", job).await;
        yield_now().await.unwrap();
        started.recv().unwrap();
        caller.cancel_because("").await.unwrap();
    });
    assert_eq!((kernel.counters().abandoned, kernel.is_quiescent()), (1, false));
    (kernel, open)
}

#[test]
fn r9_the_halt_waits_for_a_job_that_was_left_behind() {
    let (kernel, open) = with_an_abandoned_job(Options::new().grace(secs(3600)));
    let opener = std::thread::spawn(move || open.send(()));
    let trace = kernel.end();
    opener.join().unwrap().unwrap();
    assert_lines(&trace, "orphan   o1", 1);
    assert_lines(&trace, "threads=", 0);
}

#[test]
fn r9_a_job_that_outlives_the_grace_is_named_and_left_alone() {
    let (mut kernel, open) = with_an_abandoned_job(Options::new().grace(secs(0)));
    kernel.shutdown().unwrap();
    let trace = kernel.text();
    assert_lines(&trace, "warn     jobs still running on threads, left behind: o1", 1);
    assert!(trace.ends_with("handles=0 threads=1\n"), "{trace}");
    support::kernels::assert_sound(&trace);
    open.send(()).unwrap();
}

// ---- Signals ---------------------------------------------------------------------------------

#[test]
fn every_stream_sees_every_signal_that_it_asked_for_and_one_waiter_takes_it_too() {
    let script = |sim: Sim, (tenth, signal)| sim.signal_at(at(tenth), signal);
    let (hup, usr) = (Signal::Hangup, Signal::User1);
    let sim = [(2, hup), (3, usr), (4, hup)].into_iter().fold(Sim::new(), script);
    let mut kernel = Traced::new(sim, Options::new());
    let notes = Notes::default();
    kernel.go(async {
        let (one, two) = (notes.clone(), notes.clone());
        let both = async move {
            let mut stream = signals(&[Signal::User1, Signal::Hangup]);
            for _ in 0..3 {
                one.add(format!("both:{}", stream.next().await.unwrap()));
            }
        };
        let mut both = spawn("both", both).await;
        let hangups = async move {
            let mut stream = signals(&[Signal::Hangup]);
            for _ in 0..2 {
                two.add(format!("hup:{}", stream.next().await.unwrap()));
            }
        };
        let mut hangups = spawn("hangups", hangups).await;
        notes.add(format!("once:{}", wait_signal(&[Signal::Hangup]).await.unwrap()));
        both.join().await.unwrap();
        hangups.join().await.unwrap();
    });
    assert_eq!(
        notes.text(),
        "both:SIGHUP hup:SIGHUP once:SIGHUP both:SIGUSR1 both:SIGHUP hup:SIGHUP"
    );
    kernel.end();
}

#[test]
fn a_stream_keeps_one_of_each_number_between_two_nexts() {
    let times = [(2, Signal::User1), (3, Signal::Hangup), (3, Signal::User1), (6, Signal::User1)];
    let script = |sim: Sim, (tenth, signal)| sim.signal_at(at(tenth), signal);
    let mut kernel = Traced::new(times.into_iter().fold(Sim::new(), script), Options::new());
    kernel.go(async {
        let mut stream = signals(&[Signal::Hangup, Signal::User1]);
        // A wait that ends early takes no signal.
        assert!(traps::timeout_after(tenths(1), stream.next()).await.is_err());
        sleep(tenths(4)).await.unwrap();
        assert_eq!(stream.next().await.unwrap(), Signal::Hangup, "the lowest number first");
        assert_eq!(stream.next().await.unwrap(), Signal::User1);
        assert_eq!(clock().await, at(5));
        assert_eq!(stream.next().await.unwrap(), Signal::User1);
        assert_eq!(clock().await, at(6));
    });
    kernel.end();
}

#[test]
fn a_signal_that_its_waiter_does_not_read_is_kept_for_that_stream() {
    let sim = Sim::new().signal_at(at(1), Signal::Hangup);
    let mut kernel = Traced::new(sim, Options::new());
    kernel.go(async {
        let mut stream = signals(&[Signal::Hangup]);
        let mut other = signals(&[Signal::Hangup]);
        // Both happen in one turn: the sleep is first, and the signal is dropped unread.
        let raced = traps::race(sleep(tenths(1)), stream.next()).await;
        drop(raced);
        assert_eq!(stream.next().await.unwrap(), Signal::Hangup);
        let never = traps::timeout_after(tenths(1), other.next()).await;
        assert!(never.is_err(), "it began to ask later");
    });
    kernel.end();
}

// ---- The task table --------------------------------------------------------------------------

#[test]
fn f26_the_table_at_a_signal_shows_each_task_and_what_it_is_parked_in() {
    let tables = Rc::new(RefCell::new(Vec::new()));
    let sim = [5, 6].into_iter().fold(Sim::new(), |sim, t| sim.signal_at(at(t), Signal::User1));
    let mut kernel = Traced::new(sim, Options::new());
    let heard = tables.clone();
    kernel.on_signal(Signal::User1, |_| panic!("a hook that fails ends nothing"));
    kernel.on_signal(Signal::User1, move |table| heard.borrow_mut().push(table.to_string()));
    let top = line!();
    kernel.go(async {
        let mut sleeper = spawn("sleeper", sleep(tenths(7))).await;
        let reader = async { traps::io::Io::new(traps::io::Scripted(1)).readable().await };
        spawn("reader", traps::timeout_after(secs(9), reader)).await;
        spawn("stuck", never::<()>()).await;
        let both = traps::join(sleep(secs(1)), begun());
        spawn("two at once", both).await;
        sleeper.join().await.unwrap().unwrap();
    });
    let site = |line: u32| format!("kernel/tests/all/shutdown.rs:{}", top + line);
    let [s2, s3, s5, s6, s7] = [site(2), site(3), site(5), site(6), site(8)];
    let wanted = format!(
        "5 tasks at 0.500000\n\
         id name        state  parked in       since    until     site\n \
          2 main        parked join 3          0.000000 -         {s7}\n \
          3 sleeper     parked sleep           0.000000 0.700000  {s2}\n \
          4 reader      parked io f1 read      0.000000 9.000000  {s3}\n \
          5 stuck       parked waker           0.000000 -         {s5}\n \
          6 two_at_once parked sleep           0.000000 1.000000  {s6}\n\
         {:24}wait q1         0.000000 -         {s6}\n",
        ""
    );
    let squeeze = |text: &str| -> Vec<String> {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        text.lines().map(words).collect()
    };
    let tables = tables.take();
    assert_eq!(tables.len(), 2, "at each signal, also while nothing else happens");
    assert_eq!(squeeze(&tables[0]), squeeze(&wanted), "{}", tables[0]);
    let columns = |text: &str| -> Vec<usize> {
        text.lines().skip(1).map(|line| line.rfind(' ').unwrap()).collect()
    };
    let places = columns(&tables[0]);
    assert!(places.iter().all(|place| *place == places[0]), "it is aligned\n{}", tables[0]);
    assert!(tables[0].is_ascii() && !tables[0].lines().any(|line| line.ends_with(' ')));
    kernel.end();
}

#[test]
fn f26_a_signal_with_a_hook_is_not_kept_for_a_later_wait() {
    let mut kernel = Traced::new(Sim::new().signal_at(at(1), Signal::User1), Options::new());
    let calls = Rc::new(Cell::new(0));
    let counted = calls.clone();
    kernel.on_signal(Signal::User1, move |_| counted.set(counted.get() + 1));
    kernel.go(async {
        sleep(tenths(2)).await.unwrap();
        let late = traps::timeout_after(tenths(1), wait_signal(&[Signal::User1])).await;
        assert!(late.is_err());
    });
    assert_eq!(calls.get(), 1);
    assert_eq!(count(&kernel.end(), "= SIGUSR1"), 0);
}

#[test]
fn a_signal_that_one_waiter_has_no_time_for_is_for_the_next() {
    let sim = Sim::new().signal_at(Time::ZERO + secs(1), Signal::Hangup);
    let mut kernel = Traced::new(sim, Options::new());
    let (first, second) = kernel.go(async {
        let first = async {
            let deadline = connection_deadline().await;
            let wait = async { Ok(wait_signal(&[Signal::Hangup]).await?) };
            deadline.guard(secs(1), wait).await.map_err(|error: std::io::Error| error.kind())
        };
        let mut first = spawn("first", first).await;
        let second = timeout_after(secs(50), wait_signal(&[Signal::Hangup]));
        let mut second = spawn("second", second).await;
        (first.join().await.unwrap(), second.join().await.unwrap())
    });
    assert_eq!(first, Err(std::io::ErrorKind::TimedOut), "the deadline wins in its turn");
    assert_eq!(second.unwrap(), Signal::Hangup);
    kernel.end();
}

#[test]
fn a_wait_until_the_shutdown_watches_the_kernel_in_which_it_continues() {
    let mut wait = Box::pin(until_begun(never::<()>()));
    let mut first = sim();
    first.go(async { assert!(futures_util::poll!(wait.as_mut()).is_pending()) });
    first.end();
    let options = Options::new().shutdown_on(&[Signal::Terminate]);
    let term = Sim::new().signal_at(Time::ZERO + secs(1), Signal::Terminate);
    let mut second = Traced::new(term, options);
    let ended = second.go(async { (wait.as_mut().await, clock().await) });
    assert_eq!(ended, (None, Time::ZERO + secs(1)));
    second.end();
}

// ---- Steps, and a kernel that is dropped -----------------------------------------------------

#[test]
fn a_single_turn_runs_the_ready_tasks_and_does_not_wait() {
    let mut kernel = sim();
    let notes = Notes::default();
    let noted = notes.clone();
    kernel
        .run(async {
            let task = async move {
                noted.add("first");
                sleep(secs(1)).await.unwrap();
                noted.add("second");
            };
            drop(spawn("left", task).await);
        })
        .unwrap();
    assert!(!kernel.run_until_quiescent(secs(0)).unwrap());
    assert_eq!(notes.text(), "first");
    // Nothing is due, and the clock of the machine stands still.
    assert!(!kernel.run_until_quiescent(secs(0)).unwrap());
    assert_eq!(notes.text(), "first");
    assert!(kernel.run_until_quiescent(secs(2)).unwrap());
    assert_eq!(notes.text(), "first second");
    assert!(kernel.run_until_quiescent(secs(0)).unwrap());
    kernel.end();
}

#[test]
fn a_live_kernel_that_is_dropped_logs_the_tasks_that_it_drops() {
    let mut kernel = sim();
    kernel
        .run(async {
            for name in ["one", "other"] {
                drop(spawn(name, sleep(secs(1))).await);
            }
            yield_now().await.unwrap();
        })
        .unwrap();
    let trace = kernel.drop_live();
    assert_lines(&trace, "one      drop     its_kernel_is_dropped", 1);
    assert_lines(&trace, "other    drop     its_kernel_is_dropped", 1);
    assert_sound(&trace);
}

#[test]
fn a_task_that_was_cancelled_before_is_not_cancelled_again() {
    let mut kernel = sim();
    kernel.go(async {
        let cleans_up = async {
            sleep(secs(9)).await.unwrap_err();
            sleep(secs(1)).await
        };
        let cancelled = spawn("cancelled", cleans_up).await;
        spawn("other", sleep(secs(9))).detached().await;
        yield_now().await.unwrap();
        cancelled.cancel_now("enough");
        yield_now().await.unwrap();
    });
    kernel.shutdown().unwrap();
    let trace = kernel.end();
    let cancels = |name: &str| {
        let is_it = |line: &&str| line.contains(name) && line.contains(" cancel ");
        trace.lines().filter(is_it).count()
    };
    assert_eq!((cancels(" cancelled "), cancels(" other ")), (1, 1), "{trace}");
}
