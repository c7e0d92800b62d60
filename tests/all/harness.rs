//! The helper for users' tests: its checks, and its messages.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Injected, Options, Sim};
use testing::Setup;
use traps::internal::panic_message;
use traps::io::{Io, Scripted};
use traps::{
    Error, Interrupt, Kind, TaskGroup, Time, WaitQueue, clock, current_deadline, sleep, spawn,
    timeout_after,
};

const MS: Duration = Duration::from_millis(1);

/// Returns the message of a failing test.
fn said<T>(test: impl FnOnce() -> T) -> String {
    let failed = catch_unwind(AssertUnwindSafe(test)).err().expect("the test fails");
    panic_message(&*failed).to_owned()
}

// ---- One run -----------------------------------------------------------------------------------

#[test]
fn a_run_gives_the_output_the_span_the_trace_and_the_counters() {
    let sim = Sim::starting_at(Time::from_micros(7_000));
    let clock = sim.clock();
    let line = line!() + 1;
    let ran = Setup::new().sim(sim).run(async {
        drop(spawn("lingers", sleep(9 * MS)).await);
        sleep(2 * MS).await
    });
    assert_eq!(ran.output, Ok(Time::from_micros(9_000)));
    assert_eq!((ran.took, clock.now()), (2 * MS, Time::from_micros(9_000)));
    assert!(ran.trace.contains(&format!("spawn    parent=- at=tests/all/harness.rs:{line}\n")));
    assert!(ran.trace.ends_with("halt     tasks=0 tickets=0 timers=0 handles=0\n"));
    assert_eq!((ran.counters.traps, ran.counters.tasks), (3, 0));
}

#[test]
fn a_trace_that_begins_at_the_end_of_time_has_all_its_columns() {
    let ran = Setup::new().sim(Sim::starting_at(Time::NEVER)).run(async {});
    let spawns = ran.trace.lines().filter(|line| line.contains(" spawn "));
    assert!(spawns.clone().count() > 0 && spawns.clone().all(|line| !line.starts_with('#')));
}

#[test]
fn a_setup_takes_options() {
    let yields = |budget| {
        let main = async {
            for _ in 0..10 {
                traps::budget().await.unwrap();
            }
        };
        let ran = Setup::new().options(Options::new().budget(budget)).run(main);
        ran.trace.matches(" yielded ").count()
    };
    assert_eq!((yields(5), yields(128)), (1, 0));
}

#[test]
fn a_hang_is_told_with_who_waits_and_the_trace() {
    let said = said(|| testing::run(async { WaitQueue::new().wait().await }));
    assert!(said.starts_with("every task is blocked forever:\n1 task at 0.000000\n"), "{said}");
    assert!(said.contains("\n 2 main parked wait q1 "), "{said}");
    assert!(said.contains("\n#trace v3 clock=virtual seed=0 tick=0.3s\n"), "{said}");
}

#[test]
fn what_is_left_is_told() {
    let said = said(|| {
        testing::run(async {
            let io = Io::new(Scripted(7));
            let _ = timeout_after(MS, io.readable()).await;
            io
        })
    });
    assert!(said.starts_with("the program leaves registered=1 handles=1\n#trace"), "{said}");
}

#[test]
fn a_program_without_end_is_ended() {
    let limited = || Setup::new().limit(1000);
    let asks = said(|| {
        limited().run(async {
            loop {
                clock().await;
            }
        })
    });
    let sleeps = said(|| limited().run(async { while sleep(MS).await.is_ok() {} }));
    assert_eq!([asks, sleeps], ["the program does not end: more than 1000 events"; 2]);
    // The thread's next kernel is not affected.
    assert_eq!(limited().run(sleep(MS)).took, MS);
}

#[test]
fn a_panic_of_main_comes_through() {
    let panic = catch_unwind(|| testing::run(async { resume_unwind(Box::new(7_u8)) }));
    assert_eq!(panic.unwrap_err().downcast_ref::<u8>(), Some(&7));
}

/// Task 3 panics, and main learns of it or not.
async fn panics(how: &str) {
    let fails = async {
        assert_eq!(1, 2, "the sums differ");
        Ok::<(), Error>(())
    };
    let group = &mut TaskGroup::<(), Error>::new();
    match how {
        "detached" => spawn("child", fails).detached().await,
        "dropped" => drop(spawn("child", fails).await),
        "waited" => spawn("child", fails).await.wait().await.unwrap(),
        "cancelled late" => {
            let child = spawn("child", fails).await;
            sleep(MS).await.unwrap();
            child.cancel().await.unwrap();
        }
        "a daemon" => {
            group.spawn_daemon("child", fails).await;
        }
        "group dropped" => {
            group.spawn("child", fails).await;
            assert!(group.next_done().await.unwrap().is_none());
            return;
        }
        "passed over" => {
            group.spawn("child", fails).await;
            group.spawn("other", async { Ok(()) }).await;
            assert_eq!(group.join_first_ok().await, Ok(Some(())));
        }
        "joined" => assert!(spawn("child", fails).await.join().await.is_err()),
        "joined twice" => {
            let mut child = spawn("child", fails).await;
            assert!(child.join().await.is_err());
            assert!(child.await.is_err());
        }
        "group joined" => {
            group.spawn("child", fails).await;
            assert!(group.next_done().await.unwrap().is_none());
            assert!(group.join().await.is_err());
        }
        _ => unreachable!("{how}"),
    }
    // A sweep interrupts these.
    let _ = sleep(MS).await;
    let _ = group.join().await;
}

const UNSEEN: [&str; 7] =
    ["detached", "dropped", "waited", "cancelled late", "a daemon", "group dropped", "passed over"];

#[test]
fn a_panic_that_no_join_returns_fails_the_test() {
    for how in UNSEEN {
        let said = said(|| testing::run(panics(how)));
        let head = "task 3 child panicked, and no join returned the panic: ";
        assert!(said.starts_with(head) && said.contains("the sums differ"), "{how}: {said}");
        // An exploration and a sweep find it in their plain run.
        let found = testing::explore(1..=1, || (Sim::new(), panics(how))).find().unwrap();
        assert!(found.seeds == 0 && found.why.starts_with(head), "{how}: {}", found.why);
        let swept = self::said(|| testing::sweep(|| (Sim::new(), panics(how))).run());
        assert!(swept.starts_with(head), "{how}: {swept}");
    }
}

#[test]
fn a_panic_that_a_join_returns_is_the_tests_own_business() {
    for how in ["joined", "joined twice", "group joined"] {
        testing::run(panics(how));
    }
}

#[test]
fn a_test_may_allow_panics() {
    for how in UNSEEN {
        let setup = || Setup::new().panics_allowed();
        setup().run(panics(how));
        testing::explore(1..=5, || (setup(), panics(how))).run();
    }
    testing::sweep(|| (Sim::new(), panics("detached"))).panics_allowed().run();
}

#[test]
fn a_panic_in_one_order_alone_fails_the_exploration() {
    let program = || {
        let main = async {
            let flag = Rc::new(Cell::new(false));
            let (sets, checks) = (flag.clone(), flag);
            spawn("sets", async move { sets.set(true) }).detached().await;
            spawn("checks", async move { assert!(checks.get(), "not set") }).detached().await;
        };
        (Sim::new(), main)
    };
    let found = testing::explore(1..=50, program).find().expect("an order in which it panics");
    assert!(found.seeds > 0, "{found}");
    let said = "task 4 checks panicked, and no join returned the panic: not set";
    assert!(found.why.starts_with(said), "{found}");
}

// ---- Sweeps ------------------------------------------------------------------------------------

/// The results of each blocking trap of a program.
type Told = Rc<RefCell<Vec<Option<Kind>>>>;

#[test]
fn a_sweep_meets_each_trap_of_each_task_twice() {
    let mut met = Vec::new();
    let swept = testing::sweep(|| {
        let main = async {
            let mut child = spawn("child", sleep(MS)).await;
            let _ = child.join().await;
        };
        (Sim::new(), main)
    })
    .check(|injection, ran| {
        assert!(ran.trace.contains(match injection.what {
            Injected::Cancellation => " cancel   by=- reason=injected ",
            Injected::Timeout => " fire     s",
        }));
        met.push(injection.to_string());
    });
    assert_eq!((swept.traps, swept.runs), (3, 6));
    let without_lines: Vec<_> =
        met.iter().map(|text| text.split(" at tests/all/harness.rs:").next().unwrap()).collect();
    assert_eq!(
        without_lines,
        [
            "a cancellation before trap 1, spawn child of task 2 main",
            "a timeout before trap 1, spawn child of task 2 main",
            "a cancellation before trap 2, join 3 of task 2 main",
            "a timeout before trap 2, join 3 of task 2 main",
            "a cancellation before trap 3, sleep 1ms until=0.001000 of task 3 child",
            "a timeout before trap 3, sleep 1ms until=0.001000 of task 3 child",
        ]
    );
}

#[test]
fn only_some_tasks_and_only_some_traps() {
    let program = || {
        let main = async {
            let mut child = spawn("child", async {
                for _ in 0..7 {
                    clock().await;
                }
            });
            let _ = (&mut child).await.join().await;
        };
        (Sim::new(), main)
    };
    assert_eq!(testing::sweep(program).run().runs, 18);
    assert_eq!(testing::sweep(program).only(&["child"]).run().runs, 14);
    assert_eq!(testing::sweep(program).only(&["child"]).stride(3).run().runs, 6);
    let mut numbers = Vec::new();
    let sweep = testing::sweep(program).only(&["child"]).stride(3);
    sweep.check(|injection, _| numbers.push(injection.trap.number));
    assert_eq!(numbers, [3, 3, 6, 6, 9, 9]);
}

#[test]
fn an_injected_interrupt_waits_for_a_trap_that_blocks() {
    let told = Told::default();
    let program = || {
        told.borrow_mut().clear();
        let told = told.clone();
        let tell = move |end: &Result<Time, Interrupt>| {
            told.borrow_mut().push(end.as_ref().err().map(Interrupt::kind));
        };
        let main = async move {
            clock().await;
            tell(&sleep(MS).await);
            // After an inner timeout, an outer one that has passed is delivered again.
            tell(&timeout_after(9 * MS, sleep(MS)).await);
            tell(&sleep(MS).await);
            clock().await;
            current_deadline()
        };
        (Sim::new(), main)
    };
    let (cancelled, timeout) = (Some(Kind::Cancelled), Some(Kind::TaskTimeout));
    let further_out = Some(Kind::TimeoutCancellation);
    let mut seen = Vec::new();
    testing::sweep(program).check(|injection, ran| {
        // A deadline that has passed is still in force.
        assert_eq!(ran.output.is_some(), injection.what == Injected::Timeout);
        seen.push((injection.trap.number, told.borrow().clone()));
    });
    let plain = vec![None; 3];
    assert_eq!(
        seen,
        [
            (1, vec![cancelled, None, None]),
            (1, vec![timeout, None, timeout]),
            (2, vec![cancelled, None, None]),
            (2, vec![timeout, None, timeout]),
            (3, vec![None, cancelled, None]),
            (3, vec![None, further_out, timeout]),
            (4, vec![None, cancelled, None]),
            (4, vec![None, further_out, timeout]),
            (5, vec![None, None, cancelled]),
            (5, vec![None, None, timeout]),
            (6, plain.clone()),
            (6, plain),
        ]
    );
}

#[test]
fn a_sweep_names_each_interrupt_that_a_program_does_not_survive() {
    let said = said(|| {
        testing::sweep(|| {
            let main = async {
                let queue = Rc::new(WaitQueue::new());
                let theirs = queue.clone();
                let tell = async move {
                    // A task that waits for this one waits forever if this one is interrupted here.
                    sleep(MS).await?;
                    theirs.give_permit();
                    Ok::<_, Interrupt>(())
                };
                drop(spawn("teller", tell).await);
                queue.wait_for_permit().await
            };
            (Sim::new(), main)
        })
        .run()
    });
    assert!(said.starts_with("2 of 6 interrupted runs failed\n- a cancellation before trap 3, "));
    assert!(said.contains("sleep 1ms until=0.001000 of task 3 teller at tests/all/harness.rs:"));
    assert!(said.contains("\n- a timeout before trap 3, "), "{said}");
    assert!(said.contains(": every task is blocked forever:\n1 task at "), "{said}");
    let trace = said.split("the trace of the first:\n").nth(1).expect("it has a trace");
    assert!(trace.starts_with("#trace v3") && trace.contains("reason=injected"), "{said}");
}

#[test]
fn a_sweep_tells_a_panic_and_an_endless_run() {
    let panics = said(|| {
        testing::sweep(|| {
            let main = async {
                let mut child = spawn("child", async { sleep(MS).await.unwrap() }).await;
                let _ = child.join().await;
            };
            (Sim::new(), main)
        })
        .only(&["child"])
        .run()
    });
    assert_eq!(panics.matches(": a task panicked\n").count(), 2, "{panics}");
    let endless = said(|| {
        let main = || async { while timeout_after(9 * MS, sleep(MS)).await.is_err() {} };
        testing::sweep(|| (Sim::new(), main())).run()
    });
    assert!(endless.starts_with("2 of 4 interrupted runs failed\n- a timeout"), "{endless}");
    assert!(endless.contains("the program does not end: more than 10"), "{endless}");
}

#[test]
fn a_sweep_tells_a_check_that_fails_and_a_program_that_changes() {
    let check = said(|| {
        let main = || async { sleep(MS).await.is_ok() };
        let sweep = testing::sweep(|| (Sim::new(), main()));
        sweep.check(|_, ran| assert!(ran.output, "it shall sleep through"))
    });
    assert!(check.contains("before trap 1, sleep 1ms"), "{check}");
    assert!(check.contains(": the check failed: it shall sleep through\n"), "{check}");
    let runs = Cell::new(0);
    let changes = said(|| {
        testing::sweep(|| {
            runs.set(runs.get() + 1);
            (Sim::new(), sleep(runs.get() * MS))
        })
        .run()
    });
    assert!(changes.contains(": rule: a program is the same in each run, but"), "{changes}");
}
