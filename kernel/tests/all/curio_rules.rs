//! Rules of Curio and of the discussion after it, by their numbers, one test each.
//!
//! `curio_x_` is rule X of Curio's kernel; `c7_`, `x2_` and the like are rows of the list that
//! trapline keeps. If the trace shows the rule, it is a golden with the test's name.

use std::cell::Cell;
use std::rc::Rc;

use kernel::{Options, Sim};
use support::{Notes, at, check, check_quietly, check_with, ms, op, short, short_kind, tenths};
use traps::io::{Direction, Io, Scripted};
use traps::sync::{Event, Mutex};
use traps::universal::UniversalEvent;
use traps::{
    Either, Error, Interrupt, Interruptible, Kind, Time, TimeoutAfter, WaitQueue, branch, clock,
    current_deadline, current_task, ignore_after, join, race, run_in_thread, shield, sleep, spawn,
    timeout_after, timeout_at, yield_now,
};

/// A level that notes its number and its result, and passes the result on.
async fn level<F, T>(notes: Notes, number: u32, inner: TimeoutAfter<F>) -> Result<T, Interrupt>
where
    F: Future<Output = Result<T, Interrupt>>,
{
    let result = inner.await;
    notes.add(format!("f{number}:{}", short(&result)));
    result
}

// ---- The turn ------------------------------------------------------------------------------

/// A turn waits, takes arrivals, fires deadlines, and then runs the ready tasks. So a task's wake
/// and its deadline have both happened before any task runs.
#[test]
fn curio_l2_a_turn_looks_before_it_runs() {
    let sim = Sim::new().ready_at(at(1), 1, Direction::Read);
    let notes = Notes::default();
    let ran = check("curio_l2_a_turn_looks_before_it_runs", sim, async {
        let (by_io, by_timer) = (notes.clone(), notes.clone());
        let timer = async move {
            op(1).await.unwrap();
            by_timer.add("timer");
        };
        let io = async move {
            Io::new(Scripted(1)).readable().await.unwrap();
            by_io.add("io");
        };
        let mut timer = spawn("timer", timer).await;
        let mut io = spawn("io", io).await;
        timer.join().await.unwrap();
        io.join().await.unwrap();
    });
    assert_eq!(notes.text(), "io timer");
    assert_eq!(ran.runs_in_turn_of("fire"), ["io", "timer"]);
}

/// A task that becomes ready while tasks run, runs in the next turn.
#[test]
fn curio_l4_made_ready_in_a_turn_runs_in_the_next() {
    let ran = check("curio_l4_made_ready_in_a_turn_runs_in_the_next", Sim::new(), async {
        let event = Rc::new(Event::new());
        let waiting = event.clone();
        let mut waiter = spawn("waiter", async move { waiting.wait().await }).await;
        yield_now().await.unwrap();
        event.set();
        yield_now().await.unwrap();
        waiter.join().await.unwrap().unwrap();
    });
    assert_eq!(ran.runs_in_turn_of("wake     event q1"), ["waiter", "main"]);
    assert_eq!(ran.runs_in_turn_of("run      cause=#0014"), ["waiter", "main"]);
}

/// The order in one turn: tasks that were ready before, in the order in which they became ready;
/// then I/O; then timers by deadline.
#[test]
fn curio_l5_order_within_a_turn() {
    let sim = Sim::new().ready_at(at(1), 1, Direction::Read);
    let notes = Notes::default();
    let virtual_clock = sim.clock();
    let ran = check("curio_l5_order_within_a_turn", sim, async {
        let note = |word: &'static str| {
            let notes = notes.clone();
            move || notes.add(word)
        };
        let event = Rc::new(Event::new());
        let (said, waiting) = (note("woken"), event.clone());
        let woken = async move { waiting.wait().await.map(|()| said()) };
        let mut woken = spawn("woken", woken).await;
        let said = note("io");
        let io = async move { Io::new(Scripted(1)).readable().await.map(|()| said()) };
        let mut io = spawn("io", io).await;
        let (said, also) = (note("timer"), note("late_timer"));
        let mut timer = spawn("timer", async move { op(1).await.map(|_| said()) }).await;
        let later = async move { sleep(ms(101)).await.map(|_| also()) };
        let mut later = spawn("later", later).await;
        // While tasks hand work to each other, the kernel polls the machine only in every 62nd
        // turn. The next turn must be one of these.
        for _ in 0..60 {
            yield_now().await.unwrap();
        }
        let said = note("spawned");
        let mut spawned = spawn("spawned", async move { said() }).await;
        event.set();
        virtual_clock.advance(tenths(2));
        yield_now().await.unwrap();
        notes.add("yield");
        spawned.join().await.unwrap();
        woken.join().await.unwrap().unwrap();
        io.join().await.unwrap().unwrap();
        timer.join().await.unwrap().unwrap();
        later.join().await.unwrap().unwrap();
    });
    assert_eq!(notes.text(), "spawned woken yield io timer late_timer");
    let runs = ran.runs_in_turn_of("fire");
    assert_eq!(runs, ["spawned", "woken", "main", "io", "timer", "later"]);
}

/// A trap that is answered at once is no switch: no other task runs in between.
#[test]
fn curio_l6_an_answered_trap_is_no_switch() {
    let ran = check("curio_l6_an_answered_trap_is_no_switch", Sim::new(), async {
        let mut other = spawn("other", async {}).await;
        clock().await;
        current_task();
        current_deadline();
        WaitQueue::new().wake(1);
        timeout_after(tenths(1), async { Ok::<_, Interrupt>(()) }).await.unwrap();
        assert!(Mutex::new(()).try_lock().is_some());
        drop(Mutex::new(()).lock().await.unwrap());
        other.join().await.unwrap();
    });
    assert_eq!(ran.lines(|line| line.contains("main     run")).len(), 2, "{}", ran.trace);
}

/// A task whose operations never block yields after its budget, and a line reports that.
#[test]
fn curio_l6_a_budget_ends_an_endless_run() {
    let notes = Notes::default();
    let options = Options::new().budget(3);
    let ran = check_with("curio_l6_a_budget_ends_an_endless_run", Sim::new(), options, async {
        let other = notes.clone();
        let mut other = spawn("other", async move { other.add("other") }).await;
        for _ in 0..5 {
            traps::budget().await.unwrap();
            notes.add("op");
        }
        other.join().await.unwrap();
    });
    assert_eq!(notes.text(), "op op op other op op");
    assert_eq!(ran.count("yielded"), 1);
}

/// Children first run in the next turn, in the order of their spawning.
#[test]
fn curio_k1_spawn_order() {
    let notes = Notes::default();
    check("curio_k1_spawn_order", Sim::new(), async {
        let mut children = Vec::new();
        for n in 0..3 {
            let noted = notes.clone();
            let child = async move {
                for step in 0..2 {
                    noted.add(format!("c{n}.{step}"));
                    yield_now().await.unwrap();
                }
            };
            children.push(spawn(format!("c{n}"), child).await);
            notes.add(format!("spawned{n}"));
        }
        for child in &mut children {
            child.join().await.unwrap();
        }
    });
    let spawned = "spawned0 spawned1 spawned2";
    assert_eq!(notes.text(), format!("{spawned} c0.0 c1.0 c2.0 c0.1 c1.1 c2.1"));
}

/// A child inherits neither deadline nor shield.
#[test]
fn curio_k1_nothing_is_inherited() {
    check_quietly("curio_k1_nothing_is_inherited", Sim::new(), async {
        let block = timeout_after(tenths(1), async {
            let child = async {
                let deadline = current_deadline();
                (deadline, op(5).await.is_ok())
            };
            Ok::<_, Interrupt>(spawn("child", child).await)
        });
        let mut child = block.await.unwrap();
        assert_eq!(child.join().await.unwrap(), (None, true));
    });
}

/// Several joiners are woken in the order of their joins.
#[test]
fn curio_k6_joiners_are_woken_first_in_first_out() {
    let notes = Notes::default();
    check("curio_k6_joiners_are_woken_first_in_first_out", Sim::new(), async {
        let joined = Rc::new(spawn("joined", op(1)).await);
        let mut joiners = Vec::new();
        for n in 0..4 {
            let (noted, joined) = (notes.clone(), joined.clone());
            let joiner = async move {
                joined.wait().await.unwrap();
                noted.add(format!("j{n}"));
            };
            joiners.push(spawn(format!("j{n}"), joiner).await);
        }
        for joiner in &mut joiners {
            joiner.join().await.unwrap();
        }
    });
    assert_eq!(notes.text(), "j0 j1 j2 j3");
}

/// A joiner that times out leaves the queue, and the others keep their order.
#[test]
fn curio_k6_a_joiner_that_leaves_the_line() {
    let notes = Notes::default();
    check("curio_k6_a_joiner_that_leaves_the_line", Sim::new(), async {
        let joined = Rc::new(spawn("joined", op(5)).await);
        let mut joiners = Vec::new();
        for n in 0..4 {
            let (noted, joined) = (notes.clone(), joined.clone());
            let joiner = async move {
                let patience = if n == 1 { 1 } else { 9 };
                let result = timeout_after(tenths(patience), joined.wait()).await;
                noted.add(format!("j{n}:{}", short(&result)));
            };
            joiners.push(spawn(format!("j{n}"), joiner).await);
        }
        for joiner in &mut joiners {
            joiner.join().await.unwrap();
        }
    });
    assert_eq!(notes.text(), "j1:TT j0:ok j2:ok j3:ok");
}

/// Joining an ended task is no switch, and no trap that a cancellation can end.
#[test]
fn curio_k6_joining_an_ended_task_is_no_switch() {
    let ran = check("curio_k6_joining_an_ended_task_is_no_switch", Sim::new(), async {
        let mut ended = spawn("ended", async { 7 }).await;
        let joiner = async move {
            let seven = ended.join().await;
            (seven, yield_now().await.is_ok())
        };
        let mut joiner = spawn("joiner", joiner).await;
        joiner.cancel_now("");
        assert_eq!(joiner.join().await.unwrap(), (Ok(7), false));
    });
    assert_eq!(ran.count("block"), 2, "wakeup and main\n{}", ran.trace);
}

// ---- Cancellation --------------------------------------------------------------------------

/// A cancellation ends the wait of a parked task. `cancel` waits for the end of the task.
#[test]
fn curio_c1_cancel_hits_a_parked_task_and_waits() {
    let notes = Notes::default();
    check("curio_c1_cancel_hits_a_parked_task_and_waits", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let why = op(50).await.unwrap_err();
            noted.add(format!("{}:{}:{}", short_kind(why.kind()), why.by().unwrap(), why.reason()));
            op(1).await.unwrap();
            noted.add("cleaned");
        };
        let victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_because("enough").await.unwrap();
        notes.add("cancelled");
    });
    assert_eq!(notes.text(), "CAN:2:enough cleaned cancelled");
}

/// The wait of `cancel` can itself time out. The request stays in force.
#[test]
fn curio_c1_the_wait_of_a_cancel_can_time_out() {
    check("curio_c1_the_wait_of_a_cancel_can_time_out", Sim::new(), async {
        let victim = async {
            op(50).await.unwrap_err();
            op(5).await.is_ok()
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        let wait = timeout_after(tenths(1), victim.cancel_because(""));
        assert_eq!(wait.await.unwrap_err().kind(), Kind::TaskTimeout);
        assert!(victim.join().await.unwrap());
        assert_eq!(clock().await, at(5));
    });
}

/// Only one request in the life of a task takes effect.
#[test]
fn curio_c2_a_task_is_cancelled_once() {
    let notes = Notes::default();
    let ran = check("curio_c2_a_task_is_cancelled_once", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            for _ in 0..3 {
                noted.add(short(&op(1).await));
            }
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        victim.cancel_now("first");
        victim.cancel_now("second");
        yield_now().await.unwrap();
        victim.cancel_because("third").await.unwrap();
        victim.cancel_now("fourth");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN ok ok");
    assert_eq!(ran.lines(|line| line.contains("= again")).len(), 2);
    assert_eq!(ran.lines(|line| line.contains("fourth")).len(), 0);
}

/// A ready task is not interrupted: it first reads the result that woke it.
#[test]
fn curio_c3_a_ready_task_keeps_the_result_that_woke_it() {
    let notes = Notes::default();
    let ran = check("curio_c3_a_ready_task_keeps_the_result_that_woke_it", Sim::new(), async {
        let queue = WaitQueue::new();
        let (noted, waiting) = (notes.clone(), queue.clone());
        let victim = async move {
            noted.add(short(&waiting.wait().await));
            noted.add(short(&yield_now().await));
            noted.add(short(&yield_now().await));
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        queue.wake(1);
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok CAN ok");
    assert_eq!(ran.lines(|line| line.contains("= pending")).len(), 1);
}

/// If a task is cancelled before its first run, it starts, and its first blocking trap fails.
#[test]
fn curio_c4_cancel_before_the_first_run() {
    let notes = Notes::default();
    check("curio_c4_cancel_before_the_first_run", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            noted.add("started");
            clock().await;
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "started CAN");
}

/// A task that never blocks again ends as usual, and its output is kept.
#[test]
fn curio_c5_a_task_that_never_blocks_ends_as_usual() {
    let ran = check("curio_c5_a_task_that_never_blocks_ends_as_usual", Sim::new(), async {
        let mut victim = spawn("victim", async { clock().await }).await;
        victim.cancel_now("");
        assert_eq!(victim.join().await, Ok(Time::ZERO));
    });
    assert_eq!(ran.lines(|line| line.contains("victim   exit     ok")).len(), 1);
}

/// The traps that return a pending cancellation, and those that do not.
#[test]
fn curio_c6_where_a_cancellation_hits() {
    let sim = Sim::new().jobs_take(tenths(1));
    let notes = Notes::default();
    check_quietly("curio_c6_where_a_cancellation_hits", sim, async {
        let held = Rc::new(Mutex::new(()));
        let unset = Rc::new(Event::new());
        let _held = held.lock().await.unwrap();
        let sleeper = Rc::new(spawn("sleeper", op(9)).await);
        for place in 0..11 {
            let (noted, held, unset) = (notes.clone(), held.clone(), unset.clone());
            let sleeper = sleeper.clone();
            let victim = async move {
                // None of these traps is interrupted.
                clock().await;
                current_task();
                let mut child = spawn("child", async {}).await;
                child.cancel_now("");
                assert!(Mutex::new(()).lock().await.is_ok());
                let set = Event::new();
                set.set();
                assert!(set.wait().await.is_ok());
                WaitQueue::new().wake(1);
                let block = timeout_after(tenths(9), async { Ok::<_, Interrupt>(()) });
                assert!(block.await.is_ok());
                traps::budget().await.unwrap();
                assert!(shield(async { sleep(ms(1)).await }).await.is_ok());
                child.join().await.unwrap();
                let hit = match place {
                    0 => op(0).await.map(|_| ()),
                    1 => op(1).await.map(|_| ()),
                    2 => yield_now().await,
                    3 => held.lock().await.map(|_| ()),
                    4 => unset.wait().await,
                    5 => sleeper.wait().await,
                    6 => WaitQueue::new().wait().await,
                    7 => traps::check_cancellation().await,
                    8 => run_in_thread(|| ()).await.map_err(|why| why.interrupt().unwrap().clone()),
                    9 => UniversalEvent::new().wait().await,
                    _ => {
                        let io = Io::new(Scripted(1));
                        io.readable().await.map_err(|why| why.interrupt().unwrap().clone())
                    }
                };
                noted.add(short(&hit));
                // The interrupt is delivered once: it was taken there, and not only shown.
                noted.add(short(&op(0).await));
            };
            let mut victim = spawn("victim", victim).await;
            victim.cancel_now("");
            victim.join().await.unwrap();
        }
        sleeper.cancel_because("").await.unwrap();
    });
    assert_eq!(notes.text(), ["CAN ok"; 11].join(" "));
}

/// A cancellation that arrives inside a shield is not lost when a timeout inside fires and its
/// block ends. In Curio it is lost.
#[test]
fn curio_c8_a_cancel_is_never_lost() {
    let notes = Notes::default();
    check("curio_c8_a_cancel_is_never_lost", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let inner = shield(async { timeout_after(tenths(3), op(9)).await });
            noted.add(short(&inner.await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "TT CAN");
}

/// Deadlines outside stay in force for clean-up after a cancellation.
#[test]
fn curio_c10_clean_up_is_under_the_outer_deadline() {
    let notes = Notes::default();
    check("curio_c10_clean_up_is_under_the_outer_deadline", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let outer = timeout_after(tenths(5), async {
                let inner = timeout_after(tenths(9), op(20)).await;
                noted.add(short(&inner));
                noted.add(short(&op(20).await));
                inner
            });
            noted.add(short(&outer.await));
        };
        let mut victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
        assert_eq!(clock().await, at(5));
    });
    assert_eq!(notes.text(), "CAN TT CAN");
}

/// A swallowed cancellation is gone, because it is delivered once.
#[test]
fn x3_a_swallowed_cancellation_is_gone() {
    let notes = Notes::default();
    let ran = check("x3_a_swallowed_cancellation_is_gone", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            noted.add(short(&op(9).await));
            noted.add(short(&op(1).await));
            noted.add(short(&op(0).await));
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN ok ok");
    assert_eq!(ran.count("deliver"), 1);
}

/// Cancel and deadline in one turn, the deadline first: the timeout stays, and the cancellation is
/// pending after it.
#[test]
fn x2_a_timeout_that_was_first_stays() {
    let notes = Notes::default();
    let ran = check("x2_a_timeout_that_was_first_stays", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let block = timeout_after(tenths(5), async {
                let hit = op(9).await;
                noted.add(short(&hit));
                hit
            });
            noted.add(short(&block.await));
            noted.add(short(&op(1).await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        op(5).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "TT TT CAN ok");
    assert_eq!(ran.lines(|line| line.contains("= pending")).len(), 1);
}

/// The race ends with the timeout of the branch that ends first. The other branch was cancelled and
/// is dropped unread, so the cancellation is pending again.
#[test]
fn x2_a_cancellation_of_a_branch_that_lost_to_a_timeout_is_next() {
    let notes = Notes::default();
    let ran = check_quietly("x2_a_branch_that_lost", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let (Either::Left(first) | Either::Right(first)) =
                race(timeout_after(tenths(5), op(9)), op(9)).await;
            noted.add(short(&first));
            noted.add(short(&op(1).await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        op(5).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "TT CAN ok");
    assert_eq!(ran.lines(|line| line.contains("= delivered")).len(), 1);
    assert_eq!(ran.lines(|line| line.contains("cleanup  root")).len(), 1);
}

/// Cancel and deadline before the task runs, the cancel first: the timeout comes too late.
#[test]
fn x2_cancel_beats_a_timeout_that_was_second() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let notes = Notes::default();
    let ran = check("x2_cancel_beats_a_timeout_that_was_second", sim, async {
        let noted = notes.clone();
        let victim = async move {
            let block = timeout_after(tenths(5), async {
                let hit = op(9).await;
                noted.add(short(&hit));
                hit
            });
            noted.add(short(&block.await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        op(4).await.unwrap();
        victim.cancel_now("");
        virtual_clock.advance(tenths(1));
        clock().await;
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN CAN ok");
    assert_eq!(ran.lines(|line| line.contains("winner=cancel loser=timeout")).len(), 1);
}

/// An outer block's timeout that lost to a cancellation stays in force in that block.
#[test]
fn x2_the_timeout_that_lost_is_still_in_force() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let notes = Notes::default();
    check("x2_the_timeout_that_lost_is_still_in_force", sim, async {
        let noted = notes.clone();
        let victim = async move {
            let block = timeout_after(tenths(5), async {
                noted.add(short(&op(9).await));
                noted.add(short(&op(1).await));
                op(1).await
            });
            noted.add(short(&block.await));
        };
        let mut victim = spawn("victim", victim).await;
        op(4).await.unwrap();
        victim.cancel_now("");
        virtual_clock.advance(tenths(1));
        clock().await;
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN TT ok");
}

/// Both are pending at a shield. After it, the cancellation comes first and the timeout next.
#[test]
fn x2_a_pending_cancel_before_a_pending_timeout() {
    let notes = Notes::default();
    check("x2_a_pending_cancel_before_a_pending_timeout", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let block = timeout_after(tenths(1), async {
                noted.add(short(&shield(op(5)).await));
                noted.add(short(&op(1).await));
                noted.add(short(&op(1).await));
                op(1).await
            });
            noted.add(short(&block.await));
        };
        let mut victim = spawn("victim", victim).await;
        op(3).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok CAN TT ok");
}

/// A cancellation that is pending in a block is not lost when the block ends.
#[test]
fn curio_c8_a_pending_cancel_leaves_the_block() {
    let notes = Notes::default();
    check("curio_c8_a_pending_cancel_leaves_the_block", Sim::new(), async {
        let queue = WaitQueue::new();
        let (noted, waiting) = (notes.clone(), queue.clone());
        let victim = async move {
            let inner = timeout_after(tenths(2), waiting.wait());
            noted.add(short(&timeout_after(tenths(3), inner).await));
            noted.add(short(&op(1).await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        queue.wake(1);
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok CAN ok");
}

/// A shield holds back a cancellation until the first blocking trap after it.
#[test]
fn c31_a_shield_holds_back_a_cancellation() {
    let notes = Notes::default();
    check("c31_a_shield_holds_back_a_cancellation", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let shielded = async {
                noted.add(short(&op(3).await));
                shield(op(1)).await.map(|_| noted.add("nested"))
            };
            noted.add(short(&shield(shielded).await));
            clock().await;
            noted.add("behind");
            noted.add(short(&op(1).await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok nested ok behind CAN ok");
}

/// A deadline outside a shield is held back; one opened inside it works.
#[test]
fn c31_a_shield_holds_back_only_what_is_outside() {
    let notes = Notes::default();
    check("c31_a_shield_holds_back_only_what_is_outside", Sim::new(), async {
        let block = timeout_after(tenths(1), async {
            let inside = shield(async {
                assert_eq!(current_deadline(), None);
                noted_inside(&notes, timeout_after(tenths(2), op(9))).await;
                op(2).await
            });
            notes.add(short(&inside.await));
            assert_eq!(current_deadline(), Some(at(1)));
            op(1).await
        });
        notes.add(short(&block.await));
        assert_eq!(clock().await, at(4));
    });
    assert_eq!(notes.text(), "TT ok TT");
}

async fn noted_inside<T>(notes: &Notes, block: impl Future<Output = Result<T, Interrupt>>) {
    notes.add(short(&block.await));
}

// ---- Timeouts ------------------------------------------------------------------------------

/// An inner scope gets the error before the scope around it, all in a single run. One delivery
/// propagates; there is not one for each scope.
#[test]
fn c7_c8_levels_hear_from_the_inside_out() {
    let notes = Notes::default();
    let ran = check_quietly("c7_c8_levels_hear_from_the_inside_out", Sim::new(), async {
        let mut nested: Levels = Box::pin(async { op(20).await.map(drop) });
        for (number, tenth) in [(5, 8), (4, 7), (3, 4), (2, 6), (1, 5)] {
            let inner = level(notes.clone(), number, timeout_after(tenths(tenth), nested));
            nested = Box::pin(inner);
        }
        short(&nested.await)
    });
    assert_eq!(notes.text(), "f5:TCE f4:TCE f3:TT f2:UTE f1:UTE");
    assert_eq!((ran.output, ran.count("deliver")), ("UTE", 1));
    let closed = ran.lines(|line| line.contains(" unset_timeout "));
    let closed: Vec<_> = closed.iter().filter_map(|line| line.split_whitespace().nth(7)).collect();
    assert_eq!(closed, ["s5", "s4", "s3", "s2", "s1"], "{}", ran.trace);
}

type Levels = std::pin::Pin<Box<dyn Future<Output = Result<(), Interrupt>>>>;

/// Each deadline is in the scope tree. Of nested deadlines only the nearest ever fires, whatever
/// the order of nesting. The other scopes close as the error leaves them, so one timer fires, one
/// trap is interrupted, and nothing is due later.
#[test]
fn c10_of_a_chain_only_the_nearest_fires() {
    for chain in [[4, 5, 6, 7], [7, 6, 5, 4], [6, 4, 7, 5], [40, 50, 60, 4]] {
        let ran = check_quietly("c10_of_a_chain_only_the_nearest_fires", Sim::new(), async {
            let mut nested: Levels = Box::pin(async { op(200).await.map(drop) });
            for tenth in chain {
                nested = Box::pin(timeout_after(tenths(tenth), nested));
            }
            assert!(nested.await.is_err());
            assert_eq!(clock().await, at(4));
            // This sleep ends after all deadlines.
            op(100).await.unwrap();
        });
        let fired = ran.lines(|line| line.contains(" fire     s"));
        assert_eq!((fired.len(), ran.count("deliver")), (1, 1), "{chain:?}\n{}", ran.trace);
    }
}

/// The nearest deadline of a chain is the one in force.
#[test]
fn c10_the_nearest_is_the_deadline_in_force() {
    check_quietly("c10_the_nearest_is_the_deadline_in_force", Sim::new(), async {
        let inner = timeout_after(tenths(7), async { Ok::<_, Interrupt>(current_deadline()) });
        let middle = timeout_after(tenths(4), async {
            let inside = inner.await?;
            Ok::<_, Interrupt>((inside, current_deadline()))
        });
        let outer = timeout_after(tenths(6), async {
            let inside = middle.await?;
            Ok::<_, Interrupt>((inside, current_deadline()))
        });
        let four = Some(at(4));
        assert_eq!(outer.await, Ok(((four, four), Some(at(6)))));
    });
}

/// A sleep never ends early; on the simulated machine it ends on time.
#[test]
fn c5_a_sleep_is_a_lower_bound() {
    check_quietly("c5_a_sleep_is_a_lower_bound", Sim::new(), async {
        for micros in [1, 999, 1_000, 299_999, 300_000, 300_001, 86_400_000_000] {
            let span = std::time::Duration::from_micros(micros);
            let until = clock().await + span;
            assert_eq!(sleep(span).await, Ok(until));
        }
    });
    let late = Sim::new().late_by(ms(7));
    check("c5_a_sleep_is_a_lower_bound", late, async {
        assert_eq!(op(1).await, Ok(Time::ZERO + ms(107)));
    });
}

/// `sleep(ZERO)` goes to the back of the queue and returns the time: no task starves, and the loop
/// can be cancelled.
#[test]
fn c6_sleep_zero_starves_no_task() {
    let sim = (1..=3).fold(Sim::new(), |sim, n| sim.ready_at(at(n), 1, Direction::Read));
    let virtual_clock = sim.clock();
    let rounds = Rc::new(Cell::new(0));
    check_quietly("c6_sleep_zero_starves_no_task", sim, async {
        let counted = rounds.clone();
        let spin = async move {
            while op(0).await.is_ok() {
                counted.set(counted.get() + 1);
                virtual_clock.advance(ms(1));
            }
        };
        let spin = spawn("spin", spin).await;
        let echo = async {
            let io = Io::new(Scripted(1));
            for _ in 0..3 {
                io.readable().await.unwrap();
            }
            clock().await
        };
        let mut echo = spawn("echo", echo).await;
        assert!(echo.join().await.unwrap() >= at(3));
        spin.cancel_because("done").await.unwrap();
    });
    assert!(rounds.get() >= 300, "{} rounds", rounds.get());
}

/// The trace of one `sleep(ZERO)` among others: back of the queue, one turn.
#[test]
fn c6_sleep_zero_goes_to_the_back() {
    let notes = Notes::default();
    check("c6_sleep_zero_goes_to_the_back", Sim::new(), async {
        let other = notes.clone();
        let mut other = spawn("other", async move { other.add("other") }).await;
        assert_eq!(op(0).await, Ok(Time::ZERO));
        notes.add("main");
        other.join().await.unwrap();
    });
    assert_eq!(notes.text(), "other main");
}

/// A cancellation also ends a `sleep(ZERO)`, and leaves nothing of it behind.
#[test]
fn c6_sleep_zero_can_be_cancelled() {
    let notes = Notes::default();
    check("c6_sleep_zero_can_be_cancelled", Sim::new(), async {
        let noted = notes.clone();
        let spin = async move {
            let mut rounds = 0;
            while op(0).await.is_ok() {
                rounds += 1;
            }
            noted.add(format!("{rounds} rounds"));
        };
        let spin = spawn("spin", spin).await;
        op(0).await.unwrap();
        spin.cancel_because("").await.unwrap();
    });
    assert_eq!(notes.text(), "1 rounds");
}

/// Both deadlines have passed when the loop checks. Each scope gets its own timeout, the inner
/// scope first.
#[test]
fn c9_the_scope_whose_deadline_fired() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let notes = Notes::default();
    check("c9_the_scope_whose_deadline_fired", sim, async {
        let block = async {
            virtual_clock.advance(ms(100));
            op(1).await
        };
        let inner = level(notes.clone(), 2, timeout_after(ms(20), block));
        let outer = level(notes.clone(), 1, timeout_after(ms(50), inner));
        let why = outer.await.unwrap_err();
        assert_eq!((why.deadline(), why.reading()), (Some(Time::ZERO + ms(50)), at(1)));
    });
    assert_eq!(notes.text(), "f2:TT f1:TT");
}

/// The end of a block restores the outer deadline. If that has passed, it ends the next blocking
/// trap, and nothing before it.
#[test]
fn c11_an_expired_outer_deadline_hits_the_next_blocking_trap() {
    let notes = Notes::default();
    check("c11_an_expired_outer_deadline_hits_the_next_blocking_trap", Sim::new(), async {
        let outer = timeout_after(tenths(2), async {
            let inner = timeout_after(tenths(5), op(9)).await;
            notes.add(short(&inner));
            clock().await;
            let mut child = spawn("child", async {}).await;
            notes.add("runs");
            let next = op(1).await;
            notes.add(short(&next));
            child.join().await.unwrap();
            // The interrupt was delivered above, once, so this sleep runs.
            notes.add(short(&op(1).await));
            next
        });
        notes.add(short(&outer.await));
    });
    assert_eq!(notes.text(), "TCE runs TT ok TT");
}

/// An outer timeout that is pending in an inner block moves out with the task.
#[test]
fn c11_a_pending_outer_timeout_leaves_the_inner_block() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let notes = Notes::default();
    check("c11_a_pending_outer_timeout_leaves_the_inner_block", sim, async {
        let queue = WaitQueue::new();
        let (noted, waiting) = (notes.clone(), queue.clone());
        let task = async move {
            let outer = timeout_after(tenths(1), async {
                noted.add(short(&timeout_after(tenths(5), waiting.wait()).await));
                op(1).await
            });
            noted.add(short(&outer.await));
            noted.add(short(&op(1).await));
        };
        let mut task = spawn("task", task).await;
        yield_now().await.unwrap();
        queue.wake(1);
        virtual_clock.advance(tenths(1));
        clock().await;
        task.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok TT ok");
}

/// Completion in the turn of the deadline: the block ends, and no stray timeout comes later.
#[test]
fn c12_no_stray_timeout_after_the_block() {
    let notes = Notes::default();
    let ran = check("c12_no_stray_timeout_after_the_block", Sim::new(), async {
        notes.add(short(&timeout_after(tenths(1), op(1)).await));
        notes.add(short(&op(0).await));
        notes.add(short(&op(1).await));
    });
    assert_eq!(notes.text(), "ok ok ok");
    assert_eq!((ran.count("race"), ran.count("late"), ran.count("deliver")), (1, 1, 0));
}

/// I/O and deadline in one turn: completion wins, the timeout is dropped, and lines report that.
#[test]
fn c13_completion_wins_the_turn() {
    let sim = Sim::new().ready_at(at(1), 1, Direction::Write).late_by(ms(30));
    let ran = check("c13_completion_wins_the_turn", sim, async {
        let io = Io::new(Scripted(1));
        timeout_after(ms(80), io.writable()).await.unwrap();
        op(0).await.unwrap();
    });
    assert_eq!(ran.lines(|line| line.contains("winner=value loser=timeout s1")).len(), 1);
    assert_eq!(ran.lines(|line| line.contains("over=30ms")).len(), 1);
}

/// `ignore_after` returns `None` on its own timeout, and passes on any other interrupt.
#[test]
fn c14_ignore_after_is_an_option() {
    check("c14_ignore_after_is_an_option", Sim::new(), async {
        assert_eq!(ignore_after(tenths(1), op(2)).await, Ok(None));
        assert_eq!(ignore_after(tenths(2), op(1)).await, Ok(Some(at(2))));
        let outer = timeout_after(tenths(1), ignore_after(tenths(2), op(9))).await;
        assert_eq!(short(&outer), "TT");
        let inner = ignore_after(tenths(2), timeout_after(tenths(1), op(9))).await;
        assert_eq!(short(&inner), "UTE");
    });
}

/// Without a limit of its own, the outer limit stays in force, also for `remaining`.
#[test]
fn c15_none_leaves_the_outer_deadline_in_force() {
    let notes = Notes::default();
    check("c15_none_leaves_the_outer_deadline_in_force", Sim::new(), async {
        let block = async {
            assert_eq!(current_deadline(), Some(at(3)));
            op(9).await
        };
        let inner = level(notes.clone(), 2, timeout_after(None, block));
        let outer = level(notes.clone(), 1, timeout_after(tenths(3), inner));
        assert!(outer.await.is_err());
        assert_eq!(clock().await, at(3));
        assert!(timeout_after(None, op(1)).await.is_ok());
    });
    assert_eq!(notes.text(), "f2:TCE f1:TT");
}

/// A limit of zero passes at once. It ends the first trap that parks, but not a `sleep(ZERO)`.
#[test]
fn x6_zero_has_passed_at_once() {
    let notes = Notes::default();
    check("x6_zero_has_passed_at_once", Sim::new(), async {
        let block = timeout_after(tenths(0), async {
            clock().await;
            notes.add(short(&op(0).await));
            op(0).await
        });
        notes.add(short(&block.await));
        let queue = WaitQueue::new();
        notes.add(short(&timeout_after(tenths(0), queue.wait()).await));
        assert_eq!(queue.waiting(), 0);
    });
    assert_eq!(notes.text(), "ok TT TT");
}

/// A deadline never jumps the queue: a task that is ready keeps its result.
#[test]
fn curio_t4_a_ready_task_keeps_its_result() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let notes = Notes::default();
    let ran = check("curio_t4_a_ready_task_keeps_its_result", sim, async {
        let queue = WaitQueue::new();
        let (noted, waiting) = (notes.clone(), queue.clone());
        let block = timeout_after(tenths(1), async move {
            noted.add(short(&waiting.wait().await));
            op(1).await
        });
        let mut waiter = spawn("waiter", block).await;
        yield_now().await.unwrap();
        queue.wake(1);
        virtual_clock.advance(tenths(1));
        clock().await;
        notes.add(short(&waiter.join().await.unwrap()));
    });
    assert_eq!(notes.text(), "ok TT");
    assert_eq!(ran.lines(|line| line.contains("winner=value loser=timeout s1")).len(), 1);
}

/// The reading in an interrupt is the kernel's time at delivery, not the deadline.
#[test]
fn curio_t4_the_reading_is_the_loops_time() {
    check("curio_t4_the_reading_is_the_loops_time", Sim::new().late_by(ms(3)), async {
        let why = timeout_after(tenths(1), op(2)).await.unwrap_err();
        assert_eq!((why.deadline(), why.reading()), (Some(at(1)), Time::ZERO + ms(103)));
    });
}

/// An interrupt cannot be replayed into another block: a block converts only its own interrupts.
#[test]
fn curio_t10_an_interrupt_cannot_be_replayed() {
    check_quietly("curio_t10_an_interrupt_cannot_be_replayed", Sim::new(), async {
        let old = timeout_after(tenths(1), op(2)).await.unwrap_err();
        let replay = ignore_after(tenths(0), async { Err::<(), _>(old.clone()) }).await;
        assert_eq!(replay, Err(old));
    });
}

// ---- Ties ----------------------------------------------------------------------------------

/// Equal deadlines in one task: the outer block fires first, however each was set.
#[test]
fn tie_the_outer_of_equal_deadlines() {
    let notes = Notes::default();
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    check("tie_the_outer_of_equal_deadlines", sim, async {
        // The inner block opens later, nearer to its end, so its timer is in another store.
        let block = async {
            virtual_clock.advance(tenths(9));
            level(notes.clone(), 2, timeout_after(tenths(1), op(9))).await
        };
        let outer = level(notes.clone(), 1, timeout_at(at(10), block));
        assert!(outer.await.is_err());
    });
    assert_eq!(notes.text(), "f2:TCE f1:TT");
}

/// A sleep that ends with a deadline completes.
#[test]
fn tie_a_sleep_before_timeouts() {
    let notes = Notes::default();
    let ran = check("tie_a_sleep_before_timeouts", Sim::new(), async {
        let inner = level(notes.clone(), 2, timeout_after(tenths(4), op(4)));
        let outer = level(notes.clone(), 1, timeout_after(tenths(4), inner));
        assert!(outer.await.is_ok());
    });
    assert_eq!(notes.text(), "f2:ok f1:ok");
    assert_eq!((ran.count("race"), ran.count("late")), (2, 2));
}

/// Equal deadlines of several tasks fire in the order of opening. A block that closed and opened
/// again counts as new.
#[test]
fn tie_the_order_of_opening() {
    let notes = Notes::default();
    check("tie_the_order_of_opening", Sim::new(), async {
        let mut tasks = Vec::new();
        for name in ["a", "b", "c"] {
            let noted = notes.clone();
            let task = async move {
                if name == "a" {
                    timeout_at(at(5), op(1)).await.unwrap();
                }
                let hit = timeout_at(at(5), op(9)).await;
                noted.add(format!("{name}:{}", short(&hit)));
            };
            tasks.push(spawn(name, task).await);
        }
        for task in &mut tasks {
            task.join().await.unwrap();
        }
    });
    assert_eq!(notes.text(), "b:TT c:TT a:TT");
}

/// The far table and the near heap agree on the order of opening.
#[test]
fn tie_far_and_near_keep_the_order_of_opening() {
    let notes = Notes::default();
    check("tie_far_and_near_keep_the_order_of_opening", Sim::new(), async {
        let mut tasks = Vec::new();
        // Opened at 0.0, 0.9 and 0.5.
        for (name, wait) in [("far", 0), ("near", 9), ("middle", 5)] {
            let noted = notes.clone();
            let task = async move {
                op(wait).await.unwrap();
                let hit = timeout_at(at(10), op(90)).await;
                noted.add(format!("{name}:{}", short(&hit)));
            };
            tasks.push(spawn(name, task).await);
        }
        for task in &mut tasks {
            task.join().await.unwrap();
        }
    });
    assert_eq!(notes.text(), "far:TT middle:TT near:TT");
}

// ---- Branches ------------------------------------------------------------------------------

/// The rules hold in each branch of a `join`: a branch that times out does not affect the other.
#[test]
fn x10_a_timeout_in_one_branch() {
    let notes = Notes::default();
    check("x10_a_timeout_in_one_branch", Sim::new(), async {
        let left = level(notes.clone(), 1, timeout_after(tenths(1), op(9)));
        let right = level(notes.clone(), 2, timeout_after(tenths(9), op(2)));
        let _ = join(left, right).await;
        assert_eq!(clock().await, at(2));
    });
    assert_eq!(notes.text(), "f1:TT f2:ok");
}

/// An outer timeout is delivered to each branch once. A branch that swallows it continues alone.
#[test]
fn x10_an_outer_timeout_reaches_each_branch() {
    let notes = Notes::default();
    check("x10_an_outer_timeout_reaches_each_branch", Sim::new(), async {
        let left = async {
            notes.add(format!("left:{}", short(&op(9).await)));
            notes.add(format!("left:{}", short(&op(1).await)));
        };
        let right = level(notes.clone(), 2, timeout_after(tenths(5), op(9)));
        let both = async {
            let ((), right) = join(left, right).await;
            right
        };
        let outer = level(notes.clone(), 1, timeout_after(tenths(2), both));
        assert!(outer.await.is_err());
    });
    assert_eq!(notes.text(), "left:TT f2:TCE left:ok f1:TT");
}

/// A branch that is ready at the deadline gets the interrupt at its next blocking trap.
#[test]
fn x10_a_branch_that_was_ready_is_hit_later() {
    let notes = Notes::default();
    let sim = Sim::new().ready_at(at(2), 1, Direction::Read);
    check("x10_a_branch_that_was_ready_is_hit_later", sim, async {
        let io = Io::new(Scripted(1));
        let left = async {
            notes.add(format!("left:{}", io.readable().await.is_ok()));
            notes.add(format!("left:{}", short(&op(1).await)));
        };
        let right = async { notes.add(format!("right:{}", short(&op(9).await))) };
        let both = async {
            futures_util::future::join(branch(left), branch(right)).await;
            Ok::<_, Error>(())
        };
        let outer = timeout_after(tenths(2), both).await;
        assert!(outer.is_ok());
    });
    assert_eq!(notes.text(), "left:true right:TT left:TT");
}

/// One branch has a value and wins. The other branch's unread interrupt is pending again, and
/// nothing of it is left after the timeout.
#[test]
fn x10_an_interrupt_that_was_not_read_is_pending_again() {
    let notes = Notes::default();
    let sim = Sim::new().ready_at(at(2), 1, Direction::Read);
    check("x10_an_interrupt_that_was_not_read_is_pending_again", sim, async {
        let io = Io::new(Scripted(1));
        let block = timeout_after(tenths(2), async {
            let first = race(io.readable(), op(9)).await;
            notes.add(if matches!(first, Either::Left(Ok(()))) { "left" } else { "right" });
            let next = op(1).await;
            notes.add(short(&next));
            next
        });
        notes.add(short(&block.await));
        notes.add(short(&op(1).await));
    });
    assert_eq!(notes.text(), "left TT TT ok");
}

/// A cancellation reaches each branch, too, after a timeout that one of them has.
#[test]
fn x10_a_cancellation_reaches_each_branch() {
    let notes = Notes::default();
    check("x10_a_cancellation_reaches_each_branch", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let left = async {
                let _ = level(noted.clone(), 1, timeout_after(tenths(2), op(9))).await;
                noted.add(format!("next:{}", short(&op(1).await)));
            };
            let right = level(noted.clone(), 2, timeout_after(tenths(5), op(9)));
            let _ = join(left, right).await;
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        op(2).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "f1:TT f2:CAN next:CAN ok");
}

/// The end of a thread's job and a deadline in one turn: completion wins.
#[test]
fn x1_a_job_that_ends_with_its_deadline() {
    let sim = Sim::new().jobs_take(tenths(2));
    let ran = check("x1_a_job_that_ends_with_its_deadline", sim, async {
        timeout_after(tenths(2), run_in_thread(|| 7)).await.unwrap()
    });
    assert_eq!((ran.output, ran.count("race"), ran.count("late")), (7, 1, 1));
}

/// The caller gets its timeout on time. The job runs on, and its late result is an orphan.
#[test]
fn x8_a_job_that_outlives_its_caller() {
    let sim = Sim::new().jobs_take(tenths(5));
    let ran = check("x8_a_job_that_outlives_its_caller", sim, async {
        let late = timeout_after(tenths(2), run_in_thread(|| 7)).await;
        assert!(late.is_err());
        assert_eq!(clock().await, at(2));
        op(4).await.unwrap();
    });
    assert_eq!((ran.count("abandon"), ran.count("orphan"), ran.count("done")), (1, 1, 0));
}

/// In a foreign `join` with unwrapped children, each child's timeout is still its own.
#[test]
fn x10_timeouts_in_a_foreign_join() {
    let notes = Notes::default();
    check("x10_timeouts_in_a_foreign_join", Sim::new(), async {
        let left = level(notes.clone(), 2, timeout_after(tenths(2), op(9)));
        let right = level(notes.clone(), 3, timeout_after(tenths(4), op(9)));
        let both = async {
            let (_, right) = futures_util::future::join(left, right).await;
            right
        };
        let outer = level(notes.clone(), 1, timeout_after(tenths(3), both));
        assert!(outer.await.is_err());
    });
    assert_eq!(notes.text(), "f2:TT f3:TCE f1:TT");
}

/// A wait on a bare waker has no trap to fail, so its timeout drops it.
#[test]
fn x10_a_timeout_ends_a_wait_on_a_bare_waker() {
    let notes = Notes::default();
    check("x10_a_timeout_ends_a_wait_on_a_bare_waker", Sim::new(), async {
        let never = futures_util::future::pending::<Result<(), Interrupt>>();
        notes.add(short(&timeout_after(tenths(2), never).await));
        notes.add(short(&op(1).await));
    });
    assert_eq!(notes.text(), "TT ok");
}

// ---- The end -------------------------------------------------------------------------------

/// A shutdown cancels the remaining tasks, newest first, and the tasks that clean-up spawns. At the
/// end of the grace it drops the tasks that are left.
#[test]
fn c32_shutdown() {
    let notes = Notes::default();
    let options = Options::new().grace(tenths(10));
    check_with("c32_shutdown", Sim::new(), options, async {
        let noted = notes.clone();
        let first = async move {
            noted.add(format!("first:{}", short(&op(90).await)));
            spawn("late", op(90)).detached().await;
            noted.add(format!("first:{}", short(&op(1).await)));
        };
        spawn("first", first).detached().await;
        let noted = notes.clone();
        let second = async move {
            noted.add(format!("second:{}", short(&shield(op(5)).await)));
            noted.add(format!("second:{}", short(&op(5).await)));
        };
        spawn("second", second).detached().await;
        spawn("stubborn", shield(op(90))).detached().await;
        yield_now().await.unwrap();
    });
    assert_eq!(notes.text(), "first:CAN first:ok second:ok second:CAN");
}

/// All open deadlines stay in force while an inner timeout or a cancellation is handled.
#[test]
fn x5_all_open_deadlines_stay_in_force() {
    let notes = Notes::default();
    check("x5_all_open_deadlines_stay_in_force", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let outer = timeout_after(tenths(5), async {
                noted.add(short(&timeout_after(tenths(2), op(9)).await));
                let cancelled = op(9).await;
                noted.add(short(&cancelled));
                noted.add(short(&timeout_after(tenths(9), op(9)).await));
                cancelled
            });
            noted.add(short(&outer.await));
        };
        let victim = spawn("victim", victim).await;
        op(3).await.unwrap();
        victim.cancel_because("").await.unwrap();
        assert_eq!(clock().await, at(5));
    });
    assert_eq!(notes.text(), "TT CAN TCE CAN");
}

/// A shield in one branch holds back a cancellation there, and nowhere else.
#[test]
fn x10_a_shield_in_one_branch() {
    let notes = Notes::default();
    check("x10_a_shield_in_one_branch", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let left = async {
                noted.add(format!("left:{}", short(&shield(op(5)).await)));
                noted.add(format!("left:{}", short(&op(1).await)));
            };
            let right = async {
                noted.add(format!("right:{}", short(&op(5).await)));
                noted.add(format!("right:{}", short(&op(1).await)));
            };
            join(left, right).await;
            noted.add(short(&op(1).await));
        };
        let victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_because("").await.unwrap();
    });
    assert_eq!(notes.text(), "right:CAN right:ok left:ok left:CAN ok");
}

#[test]
fn x3_an_interrupt_that_ends_a_race_is_delivered_once() {
    let notes = Notes::default();
    let ran = check("x3_an_interrupt_that_ends_a_race_is_delivered_once", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let raced = match race(op(9), op(9)).await {
                traps::Either::Left(result) | traps::Either::Right(result) => result,
            };
            noted.add(short(&raced));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN ok");
    assert_eq!(ran.count("deliver"), 2);
}
