//! Cancellation: clean-up that awaits, shields with a grace, a look at pending interrupts, and the
//! defects of Curio in this field, one test each.
//!
//! The rest of Curio's section 5 is in `curio_rules.rs`. Events of one turn are in
//! `precedence.rs`.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use futures_util::TryFutureExt;
use kernel::{Kernel, Sim};
use support::{Notes, Ran, at, check, check_quietly, ms, op, short, tenths};
use traps::sync::{Event, Mutex, Semaphore};
use traps::{
    Interrupt, Interruptible, Kind, Task, Time, WaitQueue, check_cancellation, clock, ignore_after,
    join, remaining, shield, sleep, spawn, timeout_after, yield_now,
};

/// Returns the number of lines that contain `text`.
fn lines_with<T>(ran: &Ran<T>, text: &str) -> usize {
    ran.lines(|line| line.contains(text)).len()
}

/// Polls once. After that, the awaited event has time to happen.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut polled = None;
    poll_fn(|cx| {
        if let Poll::Ready(output) = Pin::new(&mut *future).poll(cx) {
            polled = Some(output);
        }
        Poll::Ready(())
    })
    .await;
    polled
}

/// A future that is never ready and never woken.
async fn bare<T>() -> T {
    std::future::pending().await
}

// ---- Clean-up that awaits ------------------------------------------------------------------

/// An interrupt is delivered once. After that, clean-up may sleep, set a limit, and spawn and join
/// a child. A second request changes nothing.
#[test]
fn c29_clean_up_awaits() {
    let notes = Notes::default();
    let ran = check("c29_clean_up_awaits", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            noted.add(short(&timeout_after(tenths(2), op(9)).await));
            noted.add(short(&op(1).await));
            let limited = timeout_after(tenths(5), op(9)).await;
            noted.add(format!("{}@{}", short(&limited), clock().await));
            let mut child = spawn("child", op(1)).await;
            noted.add(short(&child.join().await.unwrap()));
        };
        let victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_now("first");
        victim.cancel_because("second").await.unwrap();
        notes.add(format!("ended@{}", clock().await));
    });
    assert_eq!(notes.text(), "CAN ok TT@0.700000 ok ended@0.800000");
    assert_eq!((lines_with(&ran, "= again"), ran.count("deliver")), (1, 2));
}

/// A second canceller waits for the same task to end, and its own wait can be interrupted.
#[test]
fn c30_a_second_cancel_waits_for_the_same_end() {
    let notes = Notes::default();
    check_quietly("c30_a_second_cancel_waits_for_the_same_end", Sim::new(), async {
        let victim = async {
            op(50).await.unwrap_err();
            op(4).await.unwrap();
        };
        let victim = Rc::new(spawn("victim", victim).await);
        let mut cancellers = Vec::new();
        for (name, patience) in [("first", 9), ("second", 9), ("third", 2)] {
            let (noted, victim) = (notes.clone(), victim.clone());
            let canceller = async move {
                let waited = timeout_after(tenths(patience), victim.cancel_because(name)).await;
                noted.add(format!("{name}:{}@{}", short(&waited), clock().await));
            };
            cancellers.push(spawn(name, canceller).await);
        }
        for canceller in &mut cancellers {
            canceller.join().await.unwrap();
        }
    });
    assert_eq!(notes.text(), "third:TT@0.200000 first:ok@0.400000 second:ok@0.400000");
}

/// `cancel_now` returns at once: the victim has its interrupt, and has not ended yet.
#[test]
fn c30_cancel_now_does_not_wait() {
    let notes = Notes::default();
    let ran = check_quietly("c30_cancel_now_does_not_wait", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            noted.add(short(&op(50).await));
            op(4).await.unwrap();
            noted.add(format!("ended@{}", clock().await));
        };
        let mut victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_now("enough");
        notes.add(format!("returned@{}", clock().await));
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "returned@0.100000 CAN ended@0.500000");
    // The call does not block: main blocks only in its sleep and in its join.
    assert_eq!(lines_with(&ran, "main     block"), 2);
}

/// A second cancellation of a ready task writes a line, and has no other effect.
#[test]
fn c28_a_second_cancel_is_a_line_and_nothing_else() {
    let notes = Notes::default();
    let ran = check_quietly("c28_a_second_cancel_is_a_line_and_nothing_else", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            for _ in 0..3 {
                noted.add(short(&op(1).await));
            }
        };
        let mut victim = spawn("victim", victim).await;
        victim.cancel_now("first");
        victim.cancel_now("second");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN ok ok");
    assert_eq!((lines_with(&ran, "= pending"), lines_with(&ran, "= again")), (1, 1));
}

/// A cancellation during a join ends the join and not the child. Clean-up may join the child
/// again, and gets its whole output.
#[test]
fn c29_clean_up_joins_the_child_that_it_waited_for() {
    check_quietly("c29_clean_up_joins_the_child_that_it_waited_for", Sim::new(), async {
        let victim = async {
            let child = async {
                op(3).await.unwrap();
                7
            };
            let mut child = spawn("child", child).await;
            let hit = child.join().await.unwrap_err();
            assert!(hit.interrupt().unwrap().is_cancelled());
            child.join().await.unwrap()
        };
        let mut victim = spawn("victim", victim).await;
        op(1).await.unwrap();
        victim.cancel_because("").await.unwrap();
        assert_eq!((victim.join().await, clock().await), (Ok(7), at(3)));
    });
}

/// A ready task is not interrupted: it keeps the result that woke it. The interrupt ends its next
/// blocking trap, wherever that is filed.
#[test]
fn c28_a_ready_task_is_hit_at_its_next_blocking_trap() {
    let notes = Notes::default();
    let ran = check("c28_a_ready_task_is_hit_at_its_next_blocking_trap", Sim::new(), async {
        let queue = WaitQueue::new();
        let (noted, waiting) = (notes.clone(), queue.clone());
        let victim = async move {
            noted.add(short(&waiting.wait().await));
            // These traps do not block, so the interrupt does not end them.
            clock().await;
            let mut child = spawn("child", async { 7 }).await;
            let block = timeout_after(tenths(1), child.wait());
            noted.add(short(&block.await));
            assert_eq!(child.join().await, Ok(7));
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        queue.wake(1);
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok CAN");
    assert_eq!((lines_with(&ran, "= pending"), ran.count("deliver")), (1, 0));
}

/// A scope was opened and is never polled again. An interrupt of the task cannot be read in it, so
/// the task's next trap gets it.
#[test]
fn c28_a_ready_task_is_interrupted_also_next_to_an_empty_scope() {
    let ran = check_quietly("", Sim::new(), async {
        let queue = WaitQueue::new();
        let waiting = queue.clone();
        let victim = async move {
            let mut begun = pin!(timeout_after(tenths(600), bare::<Result<(), Interrupt>>()));
            assert!(poll_once(&mut begun).await.is_none());
            let woken = short(&waiting.wait().await);
            (woken, short(&op(90).await), short(&op(1).await))
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        queue.wake(1);
        victim.cancel_now("");
        let ended = victim.join().await.unwrap();
        // A timeout. The main line is in its scope.
        let both = timeout_after(tenths(10), async {
            let mut begun = pin!(timeout_after(tenths(600), bare::<Result<(), Interrupt>>()));
            assert!(poll_once(&mut begun).await.is_none());
            let (slept, hit) = (op(10).await, op(50).await);
            Ok::<_, Interrupt>((short(&slept), short(&hit), short(&op(1).await)))
        });
        (ended, both.await.unwrap())
    });
    assert_eq!(ran.output, (("ok", "CAN", "ok"), ("ok", "TT", "ok")), "{}", ran.trace);
}

/// Each branch gets the interrupt once, even if it was in no trap for a while.
#[test]
fn a_ready_tasks_interrupt_comes_once_to_each_branch_and_to_nothing_beside_them() {
    let ran = check_quietly("", Sim::new(), async {
        let queue = WaitQueue::new();
        let waiting = queue.clone();
        let victim = async move {
            let branch = || async {
                waiting.wait().await.unwrap();
                (short(&op(1).await), short(&op(1).await))
            };
            let both = join(branch(), branch()).await;
            (both, short(&op(1).await))
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        queue.wake(2);
        victim.cancel_now("");
        victim.join().await.unwrap()
    });
    assert_eq!(ran.output, ((("CAN", "ok"), ("CAN", "ok")), "ok"), "{}", ran.trace);
}

/// The task has read an interrupt in the run in which it arrived. So the interrupt does not win
/// against later events.
#[test]
fn a_cancellation_of_ones_own_is_no_winner_of_a_later_race() {
    let ran = check_quietly("", Sim::new(), async {
        let own: Rc<RefCell<Option<Task<_>>>> = Rc::default();
        let handle = own.clone();
        let task = async move {
            join(op(90), async {
                let handle = handle.borrow_mut().take().unwrap();
                handle.cancel_now("");
                check_cancellation().await.unwrap_err();
                timeout_after(tenths(10), op(10)).await.unwrap();
                handle
            })
            .await
        };
        *own.borrow_mut() = Some(spawn("task", async { drop(task.await) }).await);
        op(20).await.unwrap();
    });
    assert_eq!(lines_with(&ran, "winner=value loser=timeout"), 1, "{}", ran.trace);
    assert_eq!(lines_with(&ran, "race"), 1, "{}", ran.trace);
}

/// If a wait is dropped with an unread cancellation, the cancellation is pending again.
#[test]
fn a_cancellation_that_finds_only_dropped_waits_is_pending() {
    check_quietly("", Sim::new(), async {
        let own: Rc<RefCell<Option<Task<()>>>> = Rc::default();
        let handle = own.clone();
        let task = async move {
            let mut slept = Some(Box::pin(op(90)));
            assert!(poll_once(slept.as_mut().unwrap()).await.is_none());
            yield_now().await.unwrap();
            let handle = handle.borrow_mut().take().unwrap();
            handle.cancel_now("");
            drop(slept.take());
            assert_eq!(short(&op(1).await), "CAN");
        };
        *own.borrow_mut() = Some(spawn("task", task).await);
        op(20).await.unwrap();
    });
}

/// The outer deadline passes while clean-up in the inner block awaits. It ends that wait as the
/// timeout of an enclosing block, and the outer block gets it as its own timeout.
#[test]
fn c11_outer_expires_during_inner_clean_up() {
    let notes = Notes::default();
    let ran = check("c11_outer_expires_during_inner_clean_up", Sim::new(), async {
        let inner = async {
            let hit = op(9).await;
            notes.add(short(&hit));
            // The clean-up takes too long for the outer block.
            notes.add(short(&op(9).await));
            notes.add(short(&op(1).await));
            hit
        };
        let outer = timeout_after(tenths(5), async {
            let inner = timeout_after(tenths(2), inner).await;
            notes.add(format!("inner:{}", short(&inner)));
            let next = op(1).await;
            notes.add(short(&next));
            next
        });
        notes.add(format!("outer:{}", short(&outer.await)));
        assert_eq!(clock().await, at(6));
    });
    assert_eq!(notes.text(), "TT TCE ok inner:TT TT outer:TT");
    assert_eq!(ran.count("deliver"), 2);
}

/// Code in the inner block swallows the outer timeout. All open deadlines stay in force, so it ends
/// the next blocking trap after the inner block, once.
#[test]
fn c11_inner_swallows() {
    let notes = Notes::default();
    check("c11_inner_swallows", Sim::new(), async {
        let outer = timeout_after(tenths(2), async {
            let inner = async {
                notes.add(short(&op(9).await));
                op(1).await
            };
            notes.add(format!("inner:{}", short(&timeout_after(tenths(9), inner).await)));
            notes.add(short(&op(1).await));
            op(1).await
        });
        notes.add(format!("outer:{}", short(&outer.await)));
        notes.add(short(&op(1).await));
    });
    assert_eq!(notes.text(), "TCE inner:ok TT outer:ok ok");
}

// ---- Shields with a grace ------------------------------------------------------------------

/// When a shield closes, the interrupt that it held back does not reach its siblings again.
#[test]
fn c31_a_shield_that_closes_leaves_nothing_to_its_siblings() {
    let notes = Notes::default();
    check_quietly("c31_a_shield_that_closes_leaves_nothing_to_its_siblings", Sim::new(), async {
        let queue = WaitQueue::new();
        let (noted, waiting) = (notes.clone(), queue.clone());
        let victim = async move {
            let block = timeout_after(tenths(9), async {
                noted.add(short(&waiting.wait().await));
                noted.add(short(&op(1).await));
                op(1).await
            });
            let both = futures_util::future::join(shield(waiting.wait()), block);
            let (shielded, block) = both.await;
            noted.add(format!("{} {}", short(&shielded), short(&block)));
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        // Both are woken, so the cancellation is pending in the block and recorded at the shield.
        queue.wake(2);
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok CAN ok ok");
}

// ---- A look at pending interrupts ----------------------------------------------------------

/// Without a shield, the check takes the pending interrupt. With a shield, the check shows it.
#[test]
fn curio_c9_check_cancellation_takes_and_in_a_shield_shows() {
    let notes = Notes::default();
    check_quietly("c9", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let masked = async {
                noted.add(short(&check_cancellation().await));
                noted.add(short(&check_cancellation().await));
                noted.add(short(&op(1).await));
            };
            shield(masked).await;
            noted.add(short(&check_cancellation().await));
            noted.add(short(&check_cancellation().await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        victim.cancel_now("enough");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN CAN ok CAN ok ok");
}

/// The check does not block: no other task runs, and it costs no turn.
#[test]
fn c31_check_cancellation_is_no_switch() {
    let ran = check_quietly("c31_check_cancellation_is_no_switch", Sim::new(), async {
        let mut other = spawn("other", async {}).await;
        for _ in 0..3 {
            check_cancellation().await.unwrap();
        }
        other.join().await.unwrap();
    });
    assert_eq!(ran.lines(|line| line.contains("main     run")).len(), 2, "{}", ran.trace);
}

/// Shielded code sees the interrupt and ends early. The interrupt is delivered after the shield.
#[test]
fn c31_shielded_code_can_end_early() {
    let notes = Notes::default();
    check_quietly("c31_shielded_code_can_end_early", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let batches = async {
                for n in 0.. {
                    if let Err(why) = check_cancellation().await {
                        return (n, why.reason());
                    }
                    op(1).await.unwrap();
                }
                unreachable!()
            };
            let (n, reason) = shield(batches).await;
            noted.add(format!("{n}:{reason}"));
            noted.add(short(&op(1).await));
        };
        let victim = spawn("victim", victim).await;
        sleep(ms(250)).await.unwrap();
        victim.cancel_because("stop").await.unwrap();
    });
    assert_eq!(notes.text(), "3:stop CAN");
}

/// The precedence is that of a blocking trap: first a cancellation, then the timeouts in the order
/// in which they fired. Each has the kind that a trap in this place would see.
#[test]
fn x2_check_cancellation_keeps_the_precedence() {
    let notes = Notes::default();
    check_quietly("x2_check_cancellation_keeps_the_precedence", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let block = timeout_after(tenths(1), async {
                let inner = timeout_after(tenths(2), async {
                    shield(op(5)).await.unwrap();
                    for _ in 0..4 {
                        noted.add(short(&check_cancellation().await));
                    }
                    Ok::<_, Interrupt>(())
                });
                inner.await
            });
            assert!(block.await.is_ok());
        };
        let mut victim = spawn("victim", victim).await;
        op(3).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN TCE TT ok");
}

/// Only step 4 of a turn fires timers, so code that never parks sees no timeout.
#[test]
fn c31_check_cancellation_sees_no_deadline_pass() {
    let sim = Sim::new();
    let virtual_clock = sim.clock();
    let notes = Notes::default();
    check_quietly("c31_check_cancellation_sees_no_deadline_pass", sim, async {
        let block = timeout_after(tenths(1), async {
            virtual_clock.advance(tenths(2));
            assert_eq!(remaining(), Some(Duration::ZERO));
            notes.add(short(&check_cancellation().await));
            notes.add(short(&op(0).await));
            check_cancellation().await
        });
        notes.add(short(&block.await));
    });
    assert_eq!(notes.text(), "ok ok TT");
}

/// The check takes the interrupt of its own branch, and leaves that of the other branch.
#[test]
fn x10_check_cancellation_in_each_branch() {
    let notes = Notes::default();
    check_quietly("x10_check_cancellation_in_each_branch", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let branch = || async {
                noted.add(short(&op(1).await));
                noted.add(short(&check_cancellation().await));
                noted.add(short(&check_cancellation().await));
            };
            join(branch(), branch()).await;
        };
        let mut victim = spawn("victim", victim).await;
        // This sleep began first, so it ends first. The victim is ready, and has not run yet.
        op(1).await.unwrap();
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "ok ok CAN CAN ok ok");
}

/// An interrupt that a check got and no code read is pending again.
#[test]
fn x3_check_cancellation_dropped_unread() {
    let notes = Notes::default();
    let ran = check_quietly("x3_check_cancellation_dropped_unread", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let mut check = Box::pin(check_cancellation());
            assert!(poll_once(&mut check).await.is_none());
            clock().await;
            drop(check);
            noted.add(short(&op(1).await));
            noted.add(short(&op(1).await));
        };
        let mut victim = spawn("victim", victim).await;
        victim.cancel_now("");
        victim.join().await.unwrap();
    });
    assert_eq!(notes.text(), "CAN ok");
    assert_eq!(lines_with(&ran, "check_cancellation = !cancelled"), 1);
}

// ---- Defects of Curio ----------------------------------------------------------------------

/// A block without a limit completes normally, alone and mixed with limited blocks.
#[test]
fn curio_d1_a_timeout_of_none_completes() {
    let ran = check_quietly("curio_d1_a_timeout_of_none_completes", Sim::new(), async {
        assert_eq!(timeout_after(None, op(1)).await, Ok(at(1)));
        assert_eq!(ignore_after(None, op(1)).await, Ok(Some(at(2))));
        assert_eq!(timeout_after(tenths(9), timeout_after(None, op(1))).await, Ok(at(3)));
        assert_eq!(timeout_after(None, timeout_after(tenths(9), op(1))).await, Ok(at(4)));
    });
    assert_eq!((ran.count("late"), lines_with(&ran, "fire     s")), (0, 0));
}

/// A deadline that a cancellation made obsolete does not hide a later deadline.
#[test]
fn curio_d2_a_longer_timeout_in_clean_up_fires() {
    // Near and far, and moving between the two stores.
    for (armed, limit) in [(15, 20), (5, 20), (5, 7), (15, 3), (90, 600)] {
        let notes = Notes::default();
        check_quietly("curio_d2_a_longer_timeout_in_clean_up_fires", Sim::new(), async {
            let noted = notes.clone();
            let victim = async move {
                noted.add(short(&timeout_after(tenths(armed), op(9_000)).await));
                noted.add(short(&timeout_after(tenths(limit), op(9_000)).await));
            };
            let victim = spawn("victim", victim).await;
            op(1).await.unwrap();
            victim.cancel_because("").await.unwrap();
            assert_eq!(clock().await, at(1 + limit), "{armed} {limit}");
        });
        assert_eq!(notes.text(), "CAN TT");
    }
}

/// A cancellation is pending at a shield. Timeouts inside the shield fire and close several times,
/// and the cancellation is still pending.
#[test]
fn curio_d3_a_cancel_outlives_timeouts_in_a_shield() {
    let notes = Notes::default();
    check_quietly("curio_d3_a_cancel_outlives_timeouts_in_a_shield", Sim::new(), async {
        let noted = notes.clone();
        let victim = async move {
            let inside = async {
                for _ in 0..3 {
                    noted.add(short(&timeout_after(tenths(1), op(9)).await));
                }
            };
            shield(inside).await;
            noted.add(short(&op(1).await));
            noted.add(short(&op(1).await));
        };
        let victim = spawn("victim", victim).await;
        sleep(ms(50)).await.unwrap();
        victim.cancel_because("").await.unwrap();
    });
    assert_eq!(notes.text(), "TT TT TT CAN ok");
}

/// A wake of more waiters than exist wakes all that exist. Curio's kernel crashes here.
#[test]
fn curio_d4_waking_an_empty_line_is_no_error() {
    check_quietly("curio_d4_waking_an_empty_line_is_no_error", Sim::new(), async {
        let queue = WaitQueue::new();
        queue.wake(1);
        queue.wake(u64::MAX);
        yield_now().await.unwrap();
        let waiting = queue.clone();
        let mut waiter = spawn("waiter", async move { waiting.wait().await }).await;
        yield_now().await.unwrap();
        // A wake is not kept, so this waiter is the only one.
        assert_eq!(queue.waiting(), 1);
        queue.wake(2);
        queue.wake(1);
        waiter.join().await.unwrap().unwrap();
        Event::new().set();
        yield_now().await.unwrap();
    });
}

#[test]
fn a_semaphore_lets_so_many_in_and_the_others_in_their_order() {
    check_quietly("semaphore", Sim::new(), async {
        let (few, inside, order) = (Semaphore::new(2), Cell::new(0), Notes::default());
        let work = |n: u64| {
            let (permit, order, inside) = (few.acquire(), order.clone(), &inside);
            async move {
                let _permit = permit.await?;
                inside.set(inside.get() + 1);
                assert!(inside.get() <= 2);
                order.add(n.to_string());
                sleep(tenths(n)).await?;
                inside.set(inside.get() - 1);
                Ok::<_, Interrupt>(())
            }
        };
        // The fourth gives up, and so leaves the queue.
        let fourth = traps::ignore_after(tenths(1), work(4));
        let all = traps::join_all([work(3), work(2), work(1)]);
        let (all, fourth) = traps::join(all, fourth).await;
        assert!(all.into_iter().all(|each| each.is_ok()));
        assert_eq!((fourth, inside.get(), order.text()), (Ok(None), 0, "3 2 1".to_owned()));
        let both = (few.try_acquire(), few.try_acquire());
        assert!(both.0.is_some() && both.1.is_some() && few.try_acquire().is_none());
    });
}

/// A task that released a lock during a wait takes the lock again afterwards. If that second wait
/// is cancelled, it releases nothing, because another task has the lock.
#[test]
fn curio_d5_a_cancel_while_a_lock_is_retaken_releases_no_lock() {
    let notes = Notes::default();
    check_quietly("curio_d5", Sim::new(), async {
        let lock = Rc::new(Mutex::new(0));
        let queue = WaitQueue::new();
        let (noted, theirs, waiting) = (notes.clone(), lock.clone(), queue.clone());
        let victim = async move {
            let guard = theirs.lock().await?;
            drop(guard);
            waiting.wait().await?;
            let retaken = theirs.lock().await;
            noted.add(short(&retaken));
            retaken.map(drop)
        };
        let mut victim = spawn("victim", victim).await;
        yield_now().await.unwrap();
        let mut owned = lock.lock().await.unwrap();
        queue.wake(1);
        op(1).await.unwrap();
        assert!(victim.cancel_because("").await.is_ok());
        assert!(victim.join().await.unwrap().is_err());
        assert!(lock.try_lock().is_none(), "it is still main's");
        *owned += 1;
        drop(owned);
        assert_eq!(lock.try_lock().as_deref(), Some(&1), "and free when main gives it back");
    });
    assert_eq!(notes.text(), "CAN");
}

/// A block that expired has the value `None`, whatever its own value would be.
#[test]
fn curio_d11_ignore_after_returns_none_when_it_has_expired() {
    check_quietly("curio_d11_ignore_after_returns_none_when_it_has_expired", Sim::new(), async {
        let value = |n: u64| async move { op(n).await.map(|_| None::<u8>) };
        assert_eq!(ignore_after(tenths(2), value(1)).await, Ok(Some(None)));
        assert_eq!(ignore_after(tenths(2), value(3)).await, Ok(None));
    });
}

/// A dropped wait leaves nothing in its queue, even if the queue is never woken.
#[test]
fn curio_d12_waits_that_were_given_up_are_freed() {
    let mut kernel = Kernel::new(Sim::new());
    let queue = WaitQueue::new();
    kernel
        .run(async {
            for _ in 0..2_000 {
                assert_eq!(ignore_after(ms(1), queue.wait()).await, Ok(None));
            }
        })
        .unwrap();
    let held = kernel.counters();
    let held = (queue.waiting(), held.tickets, held.scopes, held.timers, held.pending);
    assert_eq!(held, (0, 0, 0, 0, 0));
}

/// If none of these scopes delivered an interrupt (made by hand, or stored before), they pass it on
/// unchanged.
#[test]
fn curio_d19_an_interrupt_from_elsewhere_is_passed_on() {
    check_quietly("curio_d19_an_interrupt_from_elsewhere_is_passed_on", Sim::new(), async {
        let kept = Rc::new(RefCell::new(None));
        let theirs = kept.clone();
        let other = async move {
            *theirs.borrow_mut() = timeout_after(tenths(1), op(9)).await.err();
        };
        spawn("other", other).await.join().await.unwrap();
        let kept = kept.take().unwrap();
        let made = Interrupt::new(kept.delivery().clone());
        for foreign in [kept, made] {
            let raise = || std::future::ready(Err::<(), _>(foreign.clone()));
            assert_eq!(timeout_after(tenths(1), raise()).await, Err(foreign.clone()));
            assert_eq!(timeout_after(None, raise()).await, Err(foreign.clone()));
            assert_eq!(ignore_after(tenths(0), raise()).await, Err(foreign.clone()));
        }
        assert!(op(1).await.is_ok());
    });
}

#[test]
fn inside_a_timeout_of_none_an_outer_timeout_is_a_timeout_cancellation() {
    let ran = check_quietly("inner", Sim::new(), async {
        let mut inside = None;
        let body = async {
            inside = Some(timeout_after(None, op(9)).await.unwrap_err().kind());
            Ok::<(), Interrupt>(())
        };
        timeout_after(tenths(1), body).await.unwrap();
        inside
    });
    assert_eq!(ran.output, Some(Kind::TimeoutCancellation), "{}", ran.trace);
}

/// The inner timeout is delivered after the shield, when the outer deadline has passed, too.
#[test]
fn the_reading_of_an_interrupt_is_the_time_of_its_delivery() {
    let ran = check_quietly("reading", Sim::new(), async {
        let inner = timeout_after(ms(30), async {
            let _ = shield(sleep(ms(120))).await;
            sleep(ms(1)).await
        });
        let inner = inner.inspect_err(|why| assert_eq!(why.reading(), Time::ZERO + ms(120)));
        ignore_after(ms(90), inner).await
    });
    assert_eq!(ran.output, Ok(None), "{}", ran.trace);
}

// ---- One delivery, however the clean-up waits ----------------------------------------------

/// A deadline at 1 s ends a sleep. The clean-up waits, in the way of `clean_up`, for a plain waker
/// that is called at 2 s. Returns the result and the time.
fn cleans_up<F>(
    clean_up: impl Fn(Rc<Event>) -> F,
    guarded: bool,
) -> (Result<(), Interrupt>, Duration)
where
    F: Future<Output = ()>,
{
    let program = async {
        let event = Rc::new(Event::new());
        let sets = event.clone();
        let mut setter = spawn("setter", async move {
            sleep(tenths(20)).await.unwrap();
            sets.set();
        })
        .await;
        let body = async {
            sleep(tenths(90)).await.unwrap_err();
            clean_up(event).await;
            Ok::<(), Interrupt>(())
        };
        let deadline = traps::connection_deadline().await;
        let result = match guarded {
            true => deadline.guard(tenths(10), body).await,
            false => timeout_after(tenths(10), body).await,
        };
        let took = clock().await.since(Time::ZERO);
        setter.join().await.unwrap();
        (result, took)
    };
    check_quietly("clean-up", Sim::new(), program).output
}

/// Waits for an event by plain wakers, without a trap in this task.
async fn by_waker(event: Rc<Event>) {
    let (sender, receiver) = futures_util::future::abortable(std::future::pending::<()>());
    let aborts = async move {
        event.wait().await.unwrap();
        receiver.abort();
    };
    spawn("aborts", aborts).detached().await;
    let _ = sender.await;
}

#[test]
fn c29_a_clean_up_is_interrupted_once_however_many_branches_it_opens() {
    let whole = (Ok(()), tenths(20));
    let two = |event: Rc<Event>| (by_waker(event.clone()), by_waker(event));
    let joins = |event| async move {
        let (a, b) = two(event);
        join(a, b).await;
    };
    let races = |event| async move {
        let (a, b) = two(event);
        traps::race(a, b).await;
    };
    let all = |event: Rc<Event>| async move {
        traps::join_all((0..3).map(|_| by_waker(event.clone())).collect::<Vec<_>>()).await;
    };
    let foreign = |event| async move {
        let (a, b) = two(event);
        drop(join(traps::foreign(a), traps::foreign(b)).await);
    };
    let limited = |event| async move {
        let inner = async {
            joins(event).await;
            Ok::<(), Interrupt>(())
        };
        timeout_after(tenths(50), inner).await.unwrap();
    };
    assert_eq!(cleans_up(by_waker, false), whole);
    assert_eq!(cleans_up(joins, false), whole);
    assert_eq!(cleans_up(joins, true), whole);
    assert_eq!(cleans_up(races, false), whole);
    assert_eq!(cleans_up(all, false), whole);
    assert_eq!(cleans_up(foreign, false), whole);
    assert_eq!(cleans_up(|event| shield(joins(event)), false), whole);
    assert_eq!(cleans_up(limited, false), whole);
}

// ---- The order within a poll ---------------------------------------------------------------

#[test]
fn a_task_that_cancels_itself_has_no_branch_that_it_opens_later() {
    let results = |cancels_itself: bool| {
        check_quietly("self", Sim::new(), async move {
            let handle = Rc::new(RefCell::new(None::<Task<_>>));
            let own = handle.clone();
            let body = async move {
                if cancels_itself {
                    own.borrow().as_ref().unwrap().cancel_now("self");
                }
                let (a, b) = join(sleep(tenths(1)), sleep(tenths(1))).await;
                (a.is_err(), b.is_err())
            };
            let task = spawn("both", body).await;
            if !cancels_itself {
                task.cancel_now("other");
            }
            *handle.borrow_mut() = Some(task);
            yield_now().await.unwrap();
            let mut task = handle.take().unwrap();
            task.join().await.unwrap()
        })
        .output
    };
    assert_eq!(results(true), (true, false));
    assert_eq!(results(false), (true, false));
}

#[test]
fn a_trap_is_not_ended_by_a_timeout_that_closes_later_in_its_poll() {
    let ran = check_quietly("closes", Sim::new(), async {
        let first = async {
            // This interrupt is the only delivery of the outer timeout here.
            let ended = sleep(tenths(90)).await.is_err();
            (ended, yield_now().await.is_ok())
        };
        let second = async {
            let ended = timeout_after(tenths(20), sleep(tenths(90))).await.is_err();
            (ended, sleep(tenths(0)).await.is_ok())
        };
        let both = async { Ok::<_, Interrupt>(futures_util::future::join(first, second).await) };
        timeout_after(tenths(10), both).await
    });
    // The first branch files its trap before the second timeout closes and makes the outer deadline
    // pending again. So the interrupt ends the trap after that.
    assert_eq!(ran.output, Ok(((true, true), (true, false))), "{}", ran.trace);
}
