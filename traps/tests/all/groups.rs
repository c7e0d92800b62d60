//! Task groups: Curio's rules as decided for trapline, Curio's defects in this field, and what
//! members inherit.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use kernel::{Kernel, Options, Sim};
use support::{Notes, check, check_quietly, check_with_panics, ms, short, tenths};
use traps::sync::Event;
use traps::{
    Either, Error, Interrupt, Interruptible, Kind, TaskGroup, TaskId, Time, check_cancellation,
    clock, current_deadline, current_task, race, shield, sleep, spawn, timeout_after, yield_now,
};

type Group<T> = TaskGroup<T, Error>;

fn at(tenth: u64) -> Time {
    Time::ZERO + tenths(tenth)
}

#[track_caller]
fn op(n: u64) -> impl Future<Output = Result<Time, Error>> {
    let sleep = sleep(tenths(n));
    async { Ok(sleep.await?) }
}

/// Continues after every interrupt.
async fn stubborn() -> Result<(), Error> {
    loop {
        let _ = op(3).await;
    }
}

/// Calls its function when it is dropped.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

// ---- Outputs -----------------------------------------------------------------------------------

#[test]
fn outputs_come_in_the_order_of_spawning() {
    check_quietly("outputs", Sim::new(), async {
        let mut group = Group::new();
        for n in [3, 1, 2] {
            group.spawn("worker", async move { op(n).await.map(|_| n) }).await;
        }
        group.spawn("at once", async { Ok(0) }).await;
        assert_eq!(group.join().await, Ok(vec![3, 1, 2, 0]));
        assert_eq!(clock().await, at(3));
    });
}

#[test]
fn an_empty_group_is_joined_at_once_and_a_joined_one_can_be_used_again() {
    let ran = check_quietly("empty", Sim::new(), async {
        let mut group = Group::new();
        assert_eq!(group.join().await, Ok(vec![]));
        for round in 0..2 {
            group.spawn("member", async move { Ok(round) }).await;
            assert_eq!(group.join().await, Ok(vec![round]));
        }
        drop(group.spawn("member", async { Ok(9) }));
        assert_eq!(group.join().await, Ok(vec![]), "a spawn that is not awaited is never made");
    });
    assert_eq!(ran.count("warn"), 0);
}

#[test]
fn curio_g8_an_output_that_next_done_showed_stays_in_the_outputs() {
    check_quietly("g8", Sim::new(), async {
        let mut group = Group::new();
        let mut members = Vec::new();
        for n in [3, 1, 2] {
            let member = group.spawn("worker", async move { op(n).await.map(|_| n) }).await;
            members.push(member.id());
        }
        let mut seen = Vec::new();
        while let Some((task, output)) = group.next_done().await.unwrap() {
            seen.push((task, *output));
        }
        assert_eq!(seen, [(members[1], 1), (members[2], 2), (members[0], 3)]);
        assert_eq!(group.join().await, Ok(vec![3, 1, 2]));
    });
}

#[test]
fn curio_g8_next_done_ends_at_a_failure_and_an_interrupt_of_it_cancels_nothing() {
    check_quietly("g8", Sim::new(), async {
        let mut group = TaskGroup::<u64, io::Error>::new();
        group.spawn("second", async { Ok(op(2).await.map(|_| 2)?) }).await;
        group.spawn("first", async { Ok(op(1).await.map(|_| 1)?) }).await;
        let bad = group.spawn("bad", async {
            op(3).await?;
            Err(io::Error::other("no"))
        });
        bad.await;
        group.spawn("last", async { Ok(op(9).await.map(|_| 9)?) }).await;
        assert_eq!(group.next_done().await.unwrap().map(|(_, n)| *n), Some(1));
        let cut = timeout_after(ms(50), async { group.next_done().await.map(drop) }).await;
        assert_eq!(short(&cut), "TT");
        assert_eq!(group.next_done().await.unwrap().map(|(_, n)| *n), Some(2));
        assert_eq!(group.next_done().await, Ok(None));
        assert_eq!(group.next_done().await, Ok(None), "and it stays so");
        assert_eq!(clock().await, at(3));
        assert_eq!(group.join().await.unwrap_err().to_string(), "no");
    });
}

// ---- Failures ----------------------------------------------------------------------------------

#[test]
fn group_first_failure_cancels_the_rest() {
    let ran = check("group_first_failure_cancels_the_rest", Sim::new(), async {
        let mut group = TaskGroup::<(), io::Error>::new();
        group.spawn("slow", async { Ok(op(9).await.map(drop)?) }).await;
        let quick = group.spawn("quick", async {
            op(1).await?;
            Err(io::Error::other("no such host"))
        });
        quick.await;
        group
            .spawn("tidy", async {
                let result = op(9).await;
                op(1).await?;
                result.map(drop).map_err(io::Error::from)
            })
            .await;
        assert_eq!(group.join().await.unwrap_err().to_string(), "no such host");
    });
    assert_eq!(ran.took, tenths(2));
}

#[test]
fn a_panic_of_a_member_fails_its_group_and_is_never_a_hang() {
    let ran = check_quietly("panic", Sim::new(), async {
        let mut group = Group::new();
        group.spawn("slow", async { op(9).await.map(drop) }).await;
        let bad = group.spawn("bad", async {
            op(1).await?;
            panic!("at the disco");
        });
        bad.await;
        let message = "at the disco".to_owned();
        assert_eq!(group.join().await, Err(Error::Panicked(message)));
    });
    assert_eq!(ran.took, tenths(1));
    assert_eq!(ran.count("cancel"), 1);
}

#[test]
fn errors_that_the_join_cannot_give_are_counted_in_a_line() {
    let ran = check_quietly("more", Sim::new(), async {
        let mut group = TaskGroup::<(), io::Error>::new();
        for n in 0..3 {
            group.spawn("bad", async move { Err(io::Error::other(n.to_string())) }).await;
        }
        group.spawn("slow", async { Ok(op(9).await.map(drop)?) }).await;
        // Returns an error of its own because it is cancelled. This is not reported.
        let translates = async { op(9).await.map(drop).map_err(|_| io::Error::other("gone")) };
        group.spawn("translates", translates).await;
        let error = group.join().await.unwrap_err();
        assert_eq!(error.to_string(), "0");
    });
    let warn = ran.lines(|line| line.contains(" warn "));
    assert_eq!(warn.len(), 1, "{}", ran.trace);
    assert!(warn[0].ends_with("2 more members had failed, first task 4"), "{}", warn[0]);
}

#[test]
fn a_panic_counts_as_an_error_that_the_join_cannot_give() {
    let ran = check_with_panics(Sim::new(), Options::new(), async {
        let mut group = Group::<()>::new();
        for _ in 0..2 {
            group.spawn("bad", async { panic!("both") }).await;
        }
        group.join().await.unwrap_err();
    });
    let warn = ran.lines(|line| line.contains(" warn "));
    assert_eq!(warn.len(), 1, "{}", ran.trace);
    assert!(warn[0].contains("1 more member"), "{}", warn[0]);
}

#[test]
fn curio_g5_a_member_cancelled_from_outside_does_not_fail_its_group() {
    check_quietly("g5", Sim::new(), async {
        let mut group = Group::new();
        group.spawn("a", async { op(2).await.map(|_| "a") }).await;
        let b = group.spawn("b", async { op(2).await.map(|_| "b") }).await;
        let c = group.spawn("c", async { op(2).await.map(|_| "c") }).await;
        let outsider = spawn("outsider", async move {
            op(1).await.unwrap();
            b.cancel_because("not needed").await.unwrap();
            c.cancel_now("nor this");
        });
        drop(outsider.await);
        assert_eq!(group.join().await, Ok(vec!["a"]));
        assert_eq!(clock().await, at(2));
    });
}

/// A cancellation that reaches a member as the result of another task is an error like any other.
#[test]
fn curio_g5_another_tasks_cancellation_is_a_failure() {
    check_quietly("g5", Sim::new(), async {
        let mut other = spawn("other", async { op(9).await.map(drop) }).await;
        let mut group = Group::new();
        let member = async move {
            op(1).await?;
            other.cancel_because("away").await?;
            other.join().await.unwrap()
        };
        group.spawn("member", member).await;
        match group.join().await {
            Err(Error::Interrupt(error)) => {
                assert_eq!((error.kind(), error.reason()), (Kind::Cancelled, "away"));
            }
            other => panic!("{other:?}"),
        }
    });
}

// ---- The joiner is interrupted -----------------------------------------------------------------

#[test]
fn an_interrupted_join_cancels_and_awaits_all_and_then_returns_the_interrupt() {
    let ended = Notes::default();
    let ran = check_quietly("interrupted", Sim::new(), async {
        let mut group = Group::new();
        for n in 1..=3 {
            let ended = ended.clone();
            let member = async move {
                let result = op(50).await;
                shield(op(n)).await?;
                ended.add(n.to_string());
                result.map(drop)
            };
            group.spawn("member", member).await;
        }
        let outer = timeout_after(tenths(9), async {
            let inner = timeout_after(tenths(1), group.join()).await;
            match &inner {
                Err(Error::Interrupt(why)) => assert_eq!(why.kind(), Kind::TaskTimeout),
                other => panic!("{other:?}"),
            }
            op(1).await.unwrap();
            inner
        });
        let why = outer.await.unwrap_err();
        assert_eq!(why.interrupt().map(Interrupt::kind), Some(Kind::UncaughtTimeout));
    });
    assert_eq!(ended.text(), "1 2 3");
    assert_eq!(ran.took, tenths(1 + 3 + 1));
}

/// The joiner is cancelled, and an outer timeout fires while its group cleans up. The join still
/// waits for every member, and the timeout is delivered afterwards.
#[test]
fn curio_d7_a_second_interrupt_in_the_clean_up_leaves_no_member_running() {
    let ended = Rc::new(Cell::new(0));
    let count = ended.clone();
    let ran = check_quietly("d7", Sim::new(), async move {
        let joiner = async move {
            let mut group = Group::new();
            for _ in 0..3 {
                let count = count.clone();
                let member = async move {
                    let result = op(50).await;
                    shield(op(20)).await?;
                    count.set(count.get() + 1);
                    result.map(drop)
                };
                group.spawn("member", member).await;
            }
            let timed = timeout_after(tenths(5), async {
                let joined = group.join().await;
                assert_eq!((count.get(), clock().await), (3, at(21)));
                let joined = joined.unwrap_err();
                assert_eq!(joined.interrupt().map(Interrupt::kind), Some(Kind::Cancelled));
                op(1).await.map(drop)
            });
            let timed = timed.await;
            assert_eq!(short(&timed), "TT", "held back, not lost");
        };
        let mut joiner = spawn("joiner", joiner).await;
        op(1).await.unwrap();
        joiner.cancel_because("enough").await.unwrap();
        joiner.join().await.unwrap();
    });
    assert_eq!(ended.get(), 3);
    assert_eq!(ran.took, tenths(21));
}

/// Interrupts a group whose members do not end by themselves. The grace ends them, and the second
/// interrupt is delivered afterwards.
#[test]
fn curio_d7_a_second_interrupt_is_delivered_after_the_grace_has_ended_the_members() {
    let drops = Rc::new(Cell::new(0));
    let count = drops.clone();
    let ran = check_quietly("d7", Sim::new(), async move {
        let joiner = async move {
            let mut group = Group::<()>::new().grace(tenths(7));
            for _ in 0..3 {
                let count = count.clone();
                let guard = OnDrop(move || count.set(count.get() + 1));
                let member = async move {
                    let _guard = guard;
                    stubborn().await
                };
                group.spawn("member", member).await;
            }
            let timed = timeout_after(tenths(5), async {
                let joined = group.join().await.unwrap_err();
                assert_eq!((count.get(), clock().await), (3, at(8)));
                assert_eq!(joined.interrupt().map(Interrupt::kind), Some(Kind::Cancelled));
                op(1).await.map(drop)
            });
            assert_eq!(short(&timed.await), "TT", "held back, not lost");
        };
        let mut joiner = spawn("joiner", joiner).await;
        op(1).await.unwrap();
        joiner.cancel_because("enough").await.unwrap();
        joiner.join().await.unwrap();
    });
    assert_eq!(drops.get(), 3);
    assert_eq!(ran.took, tenths(8));
}

#[test]
fn curio_g3_all_are_cancelled_first_newest_first_then_all_are_awaited() {
    let ran = check_quietly("g3", Sim::new(), async {
        let mut group = Group::new();
        for name in ["a", "b", "c"] {
            group.spawn(name, async { op(9).await.map(drop) }).await;
        }
        let cut = timeout_after(tenths(1), group.join()).await;
        assert!(cut.is_err());
    });
    let lines = ran.lines(|line| [" cancel ", " exit "].iter().any(|verb| line.contains(verb)));
    let shown: Vec<_> = lines
        .iter()
        .map(|line| line.split_whitespace().skip(4).take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        shown,
        ["c cancel", "b cancel", "a cancel", "c exit", "b exit", "a exit", "main exit"]
    );
}

// ---- The grace ---------------------------------------------------------------------------------

/// When the grace ends, one member is parked, one ready, one was never interrupted, and one waits
/// on a bare waker. All are dropped, newest first, before the join returns.
#[test]
fn curio_g3_the_grace_ends_members_that_do_not_end_themselves() {
    let drops = Notes::default();
    let ran = check_quietly("g3", Sim::new(), async {
        let mut group = Group::new().grace(tenths(7));
        let guarded = |name: &'static str| {
            let drops = drops.clone();
            OnDrop(move || drops.add(name))
        };
        let guard = guarded("parked");
        group
            .spawn("parked", async move {
                let _guard = guard;
                stubborn().await
            })
            .await;
        let guard = guarded("ready");
        group
            .spawn("ready", async move {
                let _guard = guard;
                loop {
                    // Waits for the end of the grace, and then in every turn.
                    let _ = op(1).await;
                    while clock().await >= at(8) {
                        let _ = yield_now().await;
                    }
                }
            })
            .await;
        let guard = guarded("bare");
        group
            .spawn("bare", async move {
                let _guard = guard;
                pending().await
            })
            .await;
        let guard = guarded("shielded");
        group
            .spawn("shielded", async move {
                let _guard = guard;
                shield(op(99)).await.map(drop)
            })
            .await;
        let result = timeout_after(tenths(1), group.join()).await;
        assert!(matches!(result, Err(Error::Interrupt(_))));
        assert_eq!(drops.text(), "shielded bare ready parked", "when the join returns");
        // A task that was ready in this turn still runs in it.
        yield_now().await.unwrap();
    });
    assert_eq!(ran.took, tenths(1 + 7));
    assert_eq!(ran.lines(|line| line.contains("drop     its_grace_is_over")).len(), 4);
    assert_eq!(ran.lines(|line| line.contains("exit     dropped")).len(), 4);
}

#[test]
fn a_member_that_is_dropped_while_it_is_ready_disturbs_no_other_task() {
    let rounds = Rc::new(Cell::new(0));
    let count = rounds.clone();
    let ran = check_quietly("ready", Sim::new(), async move {
        let mut group = Group::<()>::new().grace(Duration::ZERO);
        for _ in 0..3 {
            group
                .spawn("spins", async {
                    loop {
                        let _ = yield_now().await;
                    }
                })
                .await;
        }
        let mut other = spawn("other", async move {
            while count.get() < 9 {
                count.set(count.get() + 1);
                yield_now().await.unwrap();
            }
        })
        .await;
        yield_now().await.unwrap();
        assert!(timeout_after(Duration::ZERO, group.join()).await.is_err());
        // A task that takes the place of a dropped one is not run for it.
        let mut fresh = spawn("fresh", async { clock().await }).await;
        assert_eq!(fresh.join().await, Ok(Time::ZERO));
        other.join().await.unwrap();
    });
    assert_eq!(rounds.get(), 9);
    assert_eq!(ran.lines(|line| line.contains("exit     dropped")).len(), 3);
}

#[test]
fn a_dropped_member_releases_its_resources() {
    check_quietly("held", Sim::new(), async {
        let lock = Rc::new(traps::sync::Mutex::new(()));
        let mut group = Group::new().grace(Duration::ZERO);
        let theirs = lock.clone();
        group
            .spawn("holder", async move {
                let _guard = theirs.lock().await?;
                stubborn().await
            })
            .await;
        yield_now().await.unwrap();
        assert!(lock.try_lock().is_none());
        assert!(timeout_after(Duration::ZERO, group.join()).await.is_err());
        drop(lock.lock().await.unwrap());
    });
}

/// A shutdown cancels the joiner, whose group then cleans up within the kernel's own grace. The
/// grace that ends first drops the stubborn members.
#[test]
fn a_shutdown_ends_a_group_whose_members_do_not() {
    for (group_grace, dropped_by_group) in [(tenths(20), 1), (tenths(40), 0)] {
        let options = Options::new().grace(tenths(30));
        let mut kernel = Kernel::with_options(Sim::new(), options);
        let cancelled = Rc::new(Cell::new(0));
        let count = cancelled.clone();
        kernel
            .run(async move {
                let joiner = async move {
                    let mut group = Group::new().grace(group_grace);
                    group.spawn("stubborn", stubborn()).await;
                    let result = group.join().await;
                    assert!(matches!(result, Err(Error::Interrupt(_))));
                    count.set(count.get() + 1);
                };
                drop(spawn("joiner", joiner).await);
                yield_now().await.unwrap();
                yield_now().await.unwrap();
            })
            .unwrap();
        kernel.shutdown().unwrap();
        assert_eq!(cancelled.get(), dropped_by_group);
        let left = kernel.counters();
        assert_eq!((left.tasks, left.tickets, left.scopes, left.timers), (0, 0, 0, 0));
    }
}

// ---- Waiting for members from elsewhere --------------------------------------------------------

/// Other tasks wait for a member before its group, after it, and in the same turn. The join has
/// the output, and no task hangs.
#[test]
fn curio_d6_a_member_that_others_wait_for_is_still_joined() {
    let order = Notes::default();
    check_quietly("d6", Sim::new(), async {
        let mut group = Group::new();
        let member = group.spawn("member", async { op(1).await.map(|_| "output") }).await;
        let mut others = Vec::new();
        for name in ["first", "second"] {
            let (order, member) = (order.clone(), member.clone());
            let other = async move {
                member.wait().await.unwrap();
                order.add(name);
            };
            others.push(spawn(name, other).await);
        }
        assert_eq!(group.join().await, Ok(vec!["output"]));
        order.add("joined");
        member.wait().await.unwrap();
        member.cancel_because("too late").await.unwrap();
        for other in &mut others {
            other.join().await.unwrap();
        }
    });
    assert_eq!(order.text().split(' ').count(), 3, "{}", order.text());
}

/// The original case: the only member ends, and another task that waits for it runs before the
/// joiner.
#[test]
fn curio_d6_a_waiter_that_runs_before_the_joiner_takes_nothing_away() {
    check_quietly("d6", Sim::new(), async {
        let go = Rc::new(Event::new());
        let mut group = Group::new();
        let theirs = go.clone();
        let member =
            group.spawn("member", async move { Ok(theirs.wait().await.map(|()| 1)?) }).await;
        let mut waiter = spawn("waiter", async move { member.wait().await }).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        go.set();
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        // The member has ended, and the waiter knows. Only now does a task join.
        waiter.join().await.unwrap().unwrap();
        assert_eq!(group.join().await, Ok(vec![1]));
    });
}

#[test]
#[expect(clippy::await_holding_refcell_ref, reason = "it is the rule that is broken here")]
#[should_panic(expected = "rule: a member does not wait for its own group")]
fn a_member_that_joins_its_own_group_breaks_a_rule() {
    let mut kernel = Kernel::new(Sim::new());
    let _ = kernel.run(async {
        let group = Rc::new(RefCell::new(Group::new()));
        let own = group.clone();
        let member = async move { own.borrow_mut().join().await.map_err(|_| never()) };
        let member =
            group.borrow_mut().spawn("member", async { Ok(member.await.map(drop)?) }).await;
        member.wait().await.unwrap();
        let panic = group.borrow_mut().join().await.unwrap_err();
        panic!("{panic}");
    });
}

fn never() -> Interrupt {
    unreachable!("it panics first")
}

#[test]
#[expect(clippy::await_holding_refcell_ref, reason = "nobody else has it before it is spawned")]
fn a_member_that_joins_its_own_group_panics_each_time() {
    let mut kernel = Kernel::new(Sim::new());
    let told = kernel.run(async {
        let group = Rc::new(RefCell::new(Group::<()>::new()));
        let (own, told) = (group.clone(), Rc::new(Cell::new(0)));
        let tells = told.clone();
        let member = async move {
            let mut own = own.borrow_mut();
            for _ in 0..2 {
                let mut join = Box::pin(own.join());
                let mut cx = Context::from_waker(Waker::noop());
                let polled = catch_unwind(AssertUnwindSafe(|| drop(join.as_mut().poll(&mut cx))));
                tells.set(tells.get() + u32::from(polled.is_err()));
            }
            Ok(())
        };
        let member = group.borrow_mut().spawn("member", member).await;
        member.wait().await.unwrap();
        told.get()
    });
    assert_eq!(told.unwrap(), 2);
}

// ---- Groups that are dropped -------------------------------------------------------------------

#[test]
fn curio_g4_a_group_that_is_left_by_an_error_cancels_its_members() {
    let ran = check_quietly("g4", Sim::new(), async {
        let block = async {
            let mut group = Group::new();
            for name in ["a", "b"] {
                group.spawn(name, async { op(9).await.map(drop) }).await;
            }
            yield_now().await.unwrap();
            Err::<(), _>(io::Error::other("left"))?;
            group.join().await.map(drop).map_err(io::Error::other)
        };
        assert_eq!(block.await.unwrap_err().to_string(), "left");
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert_eq!(clock().await, Time::ZERO);
    });
    let cancels = ran.lines(|line| line.contains("cancel   by=2 reason=group_dropped"));
    assert_eq!(cancels.len(), 2, "{}", ran.trace);
    assert_eq!(ran.lines(|line| line.contains("exit     cancelled")).len(), 2);
    assert_eq!(ran.count("warn"), 0);
}

#[test]
fn a_failure_that_no_task_joined_is_logged() {
    let ran = check_quietly("unjoined", Sim::new(), async {
        let group = Group::new();
        group.spawn("ok", async { Ok(()) }).await;
        group.spawn("bad", async { timeout_after(ms(1), op(9)).await.map(drop) }).await;
        op(1).await.unwrap();
        drop(group);
        // The failure of a join that is given up in its clean-up.
        let mut group = Group::new();
        group.spawn("bad", async { timeout_after(ms(1), op(9)).await.map(drop) }).await;
        group.spawn("stubborn", async { shield(op(9)).await.map(drop) }).await;
        // Fails because it is cancelled.
        let timed = async { shield(timeout_after(ms(1), op(9))).await.map(drop) };
        let translates = async { op(9).await.map(drop).or(timed.await) };
        group.spawn("translates", translates).await;
        assert!(matches!(race(group.join(), op(2)).await, Either::Right(Ok(_))));
        drop(group);
        op(9).await.unwrap();
    });
    let warn = ran.lines(|line| line.contains(" warn "));
    assert_eq!(warn.len(), 2, "{}", ran.trace);
    assert!(warn[0].ends_with("1 of its members had failed, first task 4"), "{}", warn[0]);
    assert!(warn[1].ends_with("1 of its members had failed, first task 5"), "{}", warn[1]);
}

#[test]
fn a_join_that_is_given_up_continues_where_it_stopped() {
    check_quietly("again", Sim::new(), async {
        let mut group = Group::new();
        for n in [1, 3] {
            group.spawn("worker", async move { op(n).await.map(|_| n) }).await;
        }
        assert!(matches!(race(group.join(), op(2)).await, Either::Right(Ok(_))));
        assert_eq!(group.join().await, Ok(vec![1, 3]));
        // In the clean-up.
        let mut group = TaskGroup::<(), io::Error>::new();
        group.spawn("bad", async { Err(io::Error::other("no")) }).await;
        group.spawn("tidy", async { Ok(shield(op(3)).await.map(drop)?) }).await;
        yield_now().await.unwrap();
        assert!(matches!(race(group.join(), op(1)).await, Either::Right(Ok(_))));
        assert_eq!(group.join().await.unwrap_err().to_string(), "no");
        assert_eq!(clock().await, at(6));
    });
}

#[test]
fn members_that_outlive_a_run_are_joined_in_the_next() {
    let mut kernel = Kernel::new(Sim::new());
    let mut group = Group::new();
    kernel
        .run(async {
            group.spawn("member", async { op(5).await.map(|_| 5) }).await;
            op(1).await.unwrap();
        })
        .unwrap();
    assert_eq!(kernel.run(async { group.join().await }).unwrap(), Ok(vec![5]));
    kernel
        .run(async {
            group.spawn("member", async { op(5).await.map(|_| 5) }).await;
            yield_now().await.unwrap();
        })
        .unwrap();
    // Between runs: the request waits for the next.
    drop(group);
    kernel.run(async { yield_now().await.unwrap() }).unwrap();
    kernel.run(async { yield_now().await.unwrap() }).unwrap();
    assert_eq!(kernel.counters().tasks, 0);
}

#[test]
fn a_group_outlives_its_kernel_in_peace() {
    let mut group = Group::new();
    let mut kernel = Kernel::new(Sim::new());
    kernel.run(async { group.spawn("member", op(5)).await }).unwrap();
    drop(kernel);
    let mut kernel = Kernel::new(Sim::new());
    assert_eq!(kernel.run(async { group.join().await }).unwrap(), Ok(vec![]));
}

// ---- What members inherit ----------------------------------------------------------------------

#[test]
fn a1_x7_members_inherit_the_deadline_and_a_bare_spawn_does_not() {
    let ran = check_quietly("x7", Sim::new(), async {
        let mut group = Group::new();
        let mut line = 0;
        let mut bare = timeout_after(tenths(3), async {
            let below = async { Ok(current_deadline()) };
            group.spawn("member", below).await;
            line = line!() + 1;
            group.spawn("late", async { op(9).await.map(|_| None) }).await;
            let shielded = async { Ok(current_deadline()) };
            shield(group.spawn("shielded", shielded)).await;
            let bare = spawn("bare", async { current_deadline() }).await;
            Ok::<_, Interrupt>(bare)
        })
        .await
        .unwrap();
        assert_eq!(bare.join().await, Ok(None));
        group.spawn("outside", async { Ok(current_deadline()) }).await;
        let done = [
            *group.next_done().await.unwrap().unwrap().1,
            *group.next_done().await.unwrap().unwrap().1,
            *group.next_done().await.unwrap().unwrap().1,
        ];
        assert_eq!(done, [Some(at(3)), None, None], "member, shielded, outside");
        // The interrupt has left its own timeout, and the spawn is the call site that set it.
        match group.join().await {
            Err(Error::Interrupt(error)) => {
                assert_eq!(error.kind(), Kind::TaskTimeout);
                assert_eq!(error.set_at().map(|site| site.line()), Some(line));
                assert_eq!(error.deadline(), Some(at(3)));
            }
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(ran.took, tenths(3));
    // A scope for each that has a deadline, none for the others.
    assert_eq!(ran.lines(|line| line.contains(" set_timeout")).len(), 3);
}

/// Joiner and members have the same deadline. The joiner's fires first, so it cancels the members,
/// which already have their own timeouts. Failures by these timeouts are not reported.
#[test]
fn x7_a_deadline_of_all_is_the_joiners() {
    let notes = Notes::default();
    let ran = check_quietly("x7", Sim::new(), async {
        let result = timeout_after(tenths(3), async {
            let mut group = Group::new();
            for _ in 0..3 {
                let noted = notes.clone();
                let member = async move {
                    let ended = op(9).await;
                    noted.add(short(&ended));
                    ended.map(drop)
                };
                group.spawn("member", member).await;
            }
            group.join().await
        })
        .await;
        assert!(matches!(result, Err(Error::Interrupt(why)) if why.kind() == Kind::TaskTimeout));
    });
    assert_eq!(notes.text(), "TT TT TT");
    assert_eq!(ran.took, tenths(3));
    assert_eq!(ran.count("warn"), 0);
    // The members were cancelled by then, and have ended before the timeout could reach them.
    assert_eq!(ran.lines(|line| line.contains("member   cancel")).len(), 3);
    assert_eq!(ran.lines(|line| line.contains("= pending")).len(), 3);
}

// ---- Many --------------------------------------------------------------------------------------

#[test]
fn ten_thousand_members_are_joined_and_cancelled_with_a_fixed_number_of_traps_each() {
    async fn many(n: u64, fail: bool) -> (bool, Time) {
        let mut group = Group::new();
        for _ in 0..n {
            group.spawn("member", async { op(5).await.map(drop) }).await;
        }
        yield_now().await.unwrap();
        let joined = match fail {
            true => timeout_after(tenths(1), group.join()).await.is_ok(),
            false => group.join().await.is_ok(),
        };
        (joined, clock().await)
    }
    let traps = |n: u64, fail: bool| {
        let mut kernel = Kernel::new(Sim::new());
        let (joined, time) = kernel.run(many(n, fail)).unwrap();
        assert_eq!((joined, time), if fail { (false, at(1)) } else { (true, at(5)) });
        kernel.shutdown().unwrap();
        kernel.counters().traps
    };
    for fail in [false, true] {
        let [one, ten, many] = [1, 10, 10_000].map(|n| traps(n, fail));
        let each = (ten - one) / 9;
        assert_eq!(many - ten, each * (10_000 - 10));
    }
}

/// Each is cancelled while it is ready, so its interrupt is pending until its first trap.
#[test]
fn curio_c4_ten_thousand_members_are_cancelled_before_their_first_run() {
    let begun = Rc::new(Cell::new(0));
    let mut kernel = Kernel::new(Sim::new());
    kernel
        .run(async {
            let group = Group::new();
            for _ in 0..10_000 {
                let begun = begun.clone();
                let member = async move {
                    begun.set(begun.get() + 1);
                    op(5).await.map(drop)
                };
                group.spawn("member", member).await;
            }
            drop(group);
            yield_now().await.unwrap();
            yield_now().await.unwrap();
            assert_eq!(clock().await, Time::ZERO);
        })
        .unwrap();
    assert_eq!(begun.get(), 10_000);
    let left = kernel.counters();
    assert_eq!((left.tasks, left.pending), (0, 0));
}

#[test]
fn a_members_number_is_its_tasks() {
    let seen = Rc::new(Cell::new(TaskId(0)));
    let theirs = seen.clone();
    check_quietly("number", Sim::new(), async move {
        let mut group = Group::new();
        let member = async move {
            theirs.set(current_task());
            Ok(())
        };
        let member = group.spawn("member", member).await;
        group.join().await.unwrap();
        assert_eq!(seen.get(), member.id());
    });
}

/// The event happens while the join cleans up. The cancellation was not delivered to the task yet.
#[test]
fn a_cancellation_that_a_join_took_is_not_lost_with_its_group() {
    for in_time in [true, false] {
        let ran = check_quietly("dropped", Sim::new(), async move {
            let over = Rc::new(Event::new());
            let hears = over.clone();
            let joins = async move {
                let joins = async {
                    let mut group = Group::new();
                    group.spawn("stubborn", stubborn()).await;
                    group.join().await
                };
                let first = match in_time {
                    true => race(joins, shield(hears.wait())).await,
                    false => race(timeout_after(tenths(90), joins), shield(hears.wait())).await,
                };
                let is_over = matches!(first, Either::Right(Ok(())));
                (is_over, short(&check_cancellation().await), short(&check_cancellation().await))
            };
            let mut joins = spawn("joins", joins).await;
            op(1).await.unwrap();
            joins.cancel_now("no longer wanted");
            op(1).await.unwrap();
            over.set();
            joins.join().await.unwrap()
        });
        assert_eq!(ran.output, (true, "CAN", "ok"), "{}", ran.trace);
    }
}

#[test]
fn an_output_whose_drop_panics_keeps_no_member_from_its_end() {
    let ended = Rc::new(Cell::new(false));
    let theirs = ended.clone();
    check_quietly("drops", Sim::new(), async move {
        let wild = || OnDrop(|| panic!("of the drop"));
        let mut group = TaskGroup::<_, Error>::new();
        group.spawn("shown", async move { Ok(Some(wild())) }).await;
        group.spawn("bad", async { Err(Error::Empty) }).await;
        group.spawn("unseen", async move { Ok(Some(wild())) }).await;
        group
            .spawn("long", async move {
                let _ended = OnDrop(move || theirs.set(true));
                pending().await
            })
            .await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        assert_eq!(group.join().await.map(drop), Err(Error::Empty));
        assert!(ended.get(), "all have ended");
        group.spawn("again", async { Ok(None) }).await;
        assert_eq!(group.join().await.map(|outputs| outputs.len()), Ok(1));
    });
}

// ---- Second halves -----------------------------------------------------------------------------

#[test]
fn a_group_names_the_members_that_it_waits_for_unless_they_are_many() {
    // The log shows the first four of several.
    for (members, named) in [(4, "3,4,5,6"), (8, "3,4,5,6,.."), (9, "")] {
        let ran = check_quietly("named", Sim::new(), async {
            let mut group = Group::new();
            for _ in 0..members {
                group.spawn("worker", op(1)).await;
            }
            group.join().await.unwrap().len()
        });
        let line = ran.lines(|line| line.contains(" block    group "))[0];
        let holders = line.split_once("held-by=").map_or("", |(_, rest)| rest);
        assert_eq!(holders.split(' ').next(), Some(named), "{line}");
    }
}

#[test]
fn an_interrupt_of_a_dropped_join_is_returned_by_the_next_join_of_any_kind() {
    check_quietly("met", Sim::new(), async {
        let mut group = Group::new();
        group.spawn("fast", async { Ok(at(0)) }).await;
        let slow = async {
            let slept = op(90).await;
            shield(op(10)).await?;
            slept
        };
        group.spawn("slow", slow).await;
        // The join is interrupted after 0.5 s, and dropped in its clean-up 0.5 s later.
        let join = timeout_after(tenths(5), group.join());
        assert!(matches!(race(join, sleep(tenths(10))).await, Either::Right(Ok(_))));
        let met = group.join_first_ok().await.unwrap_err();
        assert!(met.interrupt().is_some());
        assert_eq!(clock().await, at(15));
    });
}
