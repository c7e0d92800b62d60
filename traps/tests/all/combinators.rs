//! Several waits in one task: our own combinators and those of `futures-util`, with timeouts in
//! their branches.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{join, select_biased};
use kernel::{Options, Sim};
use support::kernels::*;
use traps::io::{Direction, Io, Scripted};
use traps::{
    Either, Either3, Interrupt, Kind, Time, WaitQueue, branch, clock, foreign, ignore_after,
    join_all, race, race3, shield, sleep, spawn, timeout_after, timeout_at, yield_now,
};

fn at(seconds: u64) -> Time {
    Time::from_micros(seconds * 1_000_000)
}

fn kind<T: std::fmt::Debug>(result: Result<T, Interrupt>) -> Result<T, Kind> {
    result.map_err(|why| why.kind())
}

/// Returns the kind of an interrupt, and its reading of the clock.
fn told<T: std::fmt::Debug>(result: Result<T, Interrupt>) -> (Kind, Time) {
    let why = result.unwrap_err();
    (why.kind(), why.reading())
}

// ---- The plain cases ---------------------------------------------------------------------------

#[test]
fn join_of_two_sleeps_takes_the_longer() {
    let (end, trace) = on_sim(async {
        let foreign = join!(sleep(secs(1)), sleep(secs(3)));
        let ours = traps::join(sleep(secs(2)), sleep(secs(1))).await;
        (foreign, ours, clock().await)
    });
    assert_eq!(end, ((Ok(at(1)), Ok(at(3))), (Ok(at(5)), Ok(at(4))), at(5)));
    assert_lines(&trace, "withdraw", 0);
}

/// A single wait has the line `block`, and each of several waits has the line `await`, wherever in
/// the tree of scopes they are. A wait with an unread result does not count.
#[test]
fn x10_only_the_wait_that_has_no_other_beside_it_blocks() {
    let beside = on_sim(async {
        // Without scopes of their own, unlike the branches of `traps::join`.
        let (first, second) = join!(sleep(secs(2)), sleep(secs(1)));
        first.and(second).unwrap();
    });
    let in_a_scope_beside = on_sim(async {
        let mut first = Box::pin(timeout_after(secs(9), sleep(secs(2))));
        let _ = poll_once(&mut first).await;
        sleep(secs(1)).await.unwrap();
    });
    for (_, trace) in [beside, in_a_scope_beside] {
        let waits = waits(&trace);
        assert_eq!(waits[..3], ["await sleep 2s", "await sleep 1s", "block parked n=2"], "{trace}");
    }
    let (_, trace) = on_sim(async {
        let mut unread = Box::pin(sleep(secs(1)));
        let _ = poll_once(&mut unread).await;
        sleep(secs(2)).await.unwrap();
        sleep(secs(3)).await.unwrap();
    });
    assert_eq!(waits(&trace).last(), Some(&"block sleep 3s".to_owned()), "{trace}");
}

/// Returns the verbs and operations by which the main task waits.
fn waits(trace: &str) -> Vec<String> {
    let lines = trace.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_main = lines.filter(|words| words.get(4) == Some(&"main"));
    let waits = of_main.filter(|words| ["await", "block"].contains(&words[5]));
    waits.map(|words| words[5..8].join(" ")).collect()
}

#[test]
fn select_of_a_sleep_and_a_read_withdraws_the_loser() {
    let script = Sim::new().ready_at(at(2), 1, Direction::Read);
    let mut kernel = Traced::new(script, Options::new());
    kernel.go(async {
        let io = Io::new(Scripted(1));
        for (span, read_wins) in [(secs(1), false), (secs(5), true)] {
            let mut slept = sleep(span).fuse();
            let mut ready = io.readable().fuse();
            let won = select_biased! {
                _ = slept => false,
                ready = ready => ready.is_ok(),
            };
            assert_eq!(won, read_wins);
        }
        assert_eq!(clock().await, at(2));
    });
    let trace = kernel.end();
    assert_lines(&trace, "withdraw", 2);
    assert_lines(&trace, "main     register f1", 1);
}

#[test]
fn a_race_has_one_winner_and_leaves_nothing_of_the_loser() {
    let (ends, trace) = on_sim(async {
        let first = race(sleep(secs(1)), timeout_after(secs(9), sleep(secs(5)))).await;
        let tie = race(sleep(secs(1)), sleep(secs(1))).await;
        (first, tie, sleep(secs(20)).await)
    });
    assert_eq!(ends.0, Either::Left(Ok(at(1))));
    assert_eq!(ends.1, Either::Left(Ok(at(2))));
    assert_eq!(ends.2, Ok(at(22)));
    assert_lines(&trace, "fire     s", 0);
}

#[test]
fn a_race_of_three_has_one_winner_and_leaves_nothing_of_the_losers() {
    let (ends, trace) = on_sim(async {
        let mut ends = Vec::new();
        for [a, b, c] in [[1, 2, 3], [2, 1, 3], [3, 2, 1], [1, 1, 1]] {
            let [a, b, c] = [a, b, c].map(|n| timeout_after(secs(9), sleep(secs(n))));
            ends.push(race3(a, b, c).await);
        }
        sleep(secs(20)).await.unwrap();
        ends
    });
    let wanted = [
        Either3::First(Ok(at(1))),
        Either3::Second(Ok(at(2))),
        Either3::Third(Ok(at(3))),
        Either3::First(Ok(at(4))),
    ];
    assert_eq!(ends, wanted);
    assert_lines(&trace, "fire     s", 0);
}

#[test]
fn a_thousand_sleeps_unordered_complete_in_order_and_only_the_woken_are_polled() {
    let polls = Rc::new(Cell::new(0));
    let (order, trace) = on_sim(async {
        let mut all = FuturesUnordered::new();
        // 1..=1000 ms, filed in another order: 7 and 1000 have no common divisor.
        for n in 0..1000_u64 {
            let millis = n * 7 % 1000 + 1;
            let slept = sleep(std::time::Duration::from_millis(millis));
            all.push(counting(&polls, async move { slept.await.map(|_| millis) }));
        }
        let mut order = Vec::new();
        while let Some(done) = all.next().await {
            order.push(done.unwrap());
        }
        order
    });
    assert!(order.iter().copied().eq(1..=1000), "{order:?}");
    assert_eq!(polls.get(), 2000, "once to file, once to read");
    assert_lines(&trace, "wake     sleep", 1000);
}

#[test]
fn a_thousand_timeouts_unordered_end_each_on_its_own() {
    let (sum, _) = on_sim(async {
        let mut all = FuturesUnordered::new();
        for n in 1..=1000_u64 {
            let limit = std::time::Duration::from_millis(n);
            all.push(timeout_after(limit, sleep(secs(60))));
        }
        let mut ends = 0;
        while let Some(done) = all.next().await {
            ends += 1;
            let why = done.unwrap_err();
            assert_eq!(why.kind(), Kind::TaskTimeout);
            assert_eq!(why.deadline(), Some(Time::from_micros(ends * 1000)));
        }
        ends
    });
    assert_eq!(sum, 1000);
}

#[test]
fn join_all_keeps_the_order_of_its_children() {
    let (ends, _) = on_sim(async {
        join_all((1..=5).map(|n| async move { sleep(secs(6 - n)).await.map(|_| n) })).await
    });
    assert_eq!(ends, [Ok(1), Ok(2), Ok(3), Ok(4), Ok(5)]);
}

// ---- Timeouts in branches ----------------------------------------------------------------------

#[test]
fn nested_timeouts_in_both_branches_of_our_join_are_each_right() {
    let (ends, _) = on_sim(async {
        traps::join(
            timeout_after(secs(5), async {
                let inner = timeout_after(secs(1), sleep(secs(9))).await;
                (told(inner), sleep(secs(9)).await).1
            }),
            timeout_after(secs(2), async {
                let inner = timeout_after(secs(4), sleep(secs(9))).await;
                assert_eq!(told(inner.clone()), (Kind::TimeoutCancellation, at(2)));
                inner
            }),
        )
        .await
    });
    assert_eq!(told(ends.0), (Kind::TaskTimeout, at(5)));
    assert_eq!(told(ends.1), (Kind::TaskTimeout, at(2)));
}

#[test]
fn nested_timeouts_in_both_branches_of_a_foreign_join_are_each_right() {
    let (ends, _) = on_sim(async {
        timeout_after(secs(3), async {
            let (a, b) = join!(
                branch(timeout_after(secs(5), sleep(secs(9)))),
                branch(async {
                    let inner = timeout_after(secs(1), sleep(secs(9))).await;
                    assert_eq!(told(inner), (Kind::TaskTimeout, at(1)));
                    timeout_after(secs(8), sleep(secs(9))).await
                }),
            );
            assert_eq!(told(a.clone()), (Kind::TimeoutCancellation, at(3)));
            assert_eq!(told(b), (Kind::TimeoutCancellation, at(3)));
            a
        })
        .await
    });
    assert_eq!(told(ends), (Kind::TaskTimeout, at(3)));
}

#[test]
fn a_branch_that_was_ready_when_the_scope_fired_gets_it_at_its_next_trap() {
    for foreign in [false, true] {
        let (ends, _) = on_sim(async move {
            let mut ends = None;
            let both = timeout_after(secs(2), async {
                let ready = async {
                    sleep(secs(2)).await.unwrap(); // a tie: the value wins
                    sleep(secs(9)).await
                };
                let (a, b) = if foreign {
                    join!(branch(ready), branch(sleep(secs(9))))
                } else {
                    traps::join(ready, sleep(secs(9))).await
                };
                ends = Some((told(a.clone()), told(b)));
                a
            });
            let outer = told(both.await);
            (outer, ends.unwrap())
        });
        let hit = (Kind::TaskTimeout, at(2));
        assert_eq!(ends, (hit, (hit, hit)), "foreign: {foreign}");
    }
}

#[test]
fn a_branch_is_interrupted_once_though_its_sibling_closes_a_nested_scope_meanwhile() {
    for foreign in [false, true] {
        let (ends, trace) = on_sim(async move {
            let a = timeout_after(secs(5), sleep(secs(9)));
            let b = async {
                let first = sleep(secs(9)).await;
                // Clean-up: the only interrupt was delivered.
                (told(first), sleep(secs(1)).await)
            };
            let both = async {
                let (a, b) =
                    if foreign { join!(branch(a), branch(b)) } else { traps::join(a, b).await };
                Ok::<_, Interrupt>((told(a), b))
            };
            timeout_after(secs(1), both).await
        });
        let (a, b) = ends.unwrap();
        assert_eq!(a, (Kind::TimeoutCancellation, at(1)), "{trace}");
        assert_eq!(b, ((Kind::TaskTimeout, at(1)), Ok(at(2))), "{trace}");
    }
}

#[test]
fn a_timeout_in_one_branch_does_not_touch_the_other() {
    let (ends, _) = on_sim(async {
        let a = async {
            assert_eq!(kind(timeout_after(secs(1), sleep(secs(5))).await), Err(Kind::TaskTimeout));
            sleep(secs(1)).await
        };
        let b = async {
            sleep(secs(1)).await.unwrap(); // ready when the scope of the other fires
            sleep(secs(3)).await
        };
        traps::join(a, b).await
    });
    assert_eq!(ends, (Ok(at(2)), Ok(at(4))));
}

#[test]
fn a_cancellation_reaches_every_branch_once() {
    let (ends, trace) = on_sim(async {
        let mut child = spawn("child", async {
            let mut three = Vec::new();
            let branches = (0..3).map(|n| async move {
                if n == 1 {
                    sleep(secs(1)).await.unwrap(); // ready when the interrupt arrives
                }
                let hit = sleep(secs(9)).await.is_err();
                (hit, sleep(secs(1)).await.is_ok())
            });
            three.extend(join_all(branches).await);
            three
        })
        .await;
        sleep(secs(1)).await.unwrap();
        child.cancel_because("all").await.unwrap();
        child.join().await
    });
    assert_eq!(ends, Ok(vec![(true, true); 3]), "{trace}");
}

#[test]
fn a_shield_in_one_branch_holds_back_and_the_other_branch_is_hit() {
    let (ends, _) = on_sim(async {
        timeout_after(secs(1), async {
            let (a, b) = traps::join(
                async {
                    let inside = shield(async {
                        assert!(timeout_after(secs(2), sleep(secs(9))).await.is_err());
                        sleep(secs(1)).await
                    })
                    .await;
                    (inside, sleep(secs(9)).await)
                },
                sleep(secs(9)),
            )
            .await;
            assert_eq!(a.0, Ok(at(3)));
            assert_eq!(kind(a.1), Err(Kind::TaskTimeout));
            assert_eq!(told(b), (Kind::TaskTimeout, at(1)));
            Ok::<_, Interrupt>(())
        })
        .await
    });
    assert_eq!(ends, Ok(()));
}

// ---- Waits on bare wakers ----------------------------------------------------------------------

#[test]
fn a_timeout_ends_a_bare_wait_and_drops_it() {
    let dropped = Rc::new(Cell::new(false));
    let theirs = dropped.clone();
    let (end, trace) = on_sim(async move {
        let bare = async {
            let _guard = OnDrop(|| theirs.set(true));
            never::<Result<(), Interrupt>>().await
        };
        let end = timeout_after(secs(1), bare).await;
        assert!(dropped.get());
        end
    });
    assert_eq!(told(end), (Kind::TaskTimeout, at(1)));
    assert_lines(&trace, "wake     scope s1", 1);
}

#[test]
fn the_timeout_that_fired_ends_a_bare_wait_in_nested_ones() {
    let bare = || async { never::<Result<(), Interrupt>>().await };
    let (ends, _) = on_sim(async move {
        let outer = timeout_after(secs(1), timeout_after(secs(2), bare())).await;
        let inner = ignore_after(secs(9), timeout_after(secs(2), bare())).await;
        let same = timeout_at(at(5), timeout_at(at(5), bare())).await;
        (kind(outer), kind(inner), kind(same))
    });
    let (outer, inner, same) = ends;
    assert_eq!(outer, Err(Kind::TaskTimeout));
    assert_eq!(inner, Err(Kind::UncaughtTimeout));
    assert_eq!(same, Err(Kind::TaskTimeout));
}

#[test]
fn bare_waits_in_several_branches_that_time_out_together_all_end() {
    for foreign in [false, true] {
        let bare = || timeout_after(secs(1), async { never::<Result<(), Interrupt>>().await });
        let (ends, _) = on_sim(async move {
            if foreign { join!(bare(), bare()) } else { traps::join(bare(), bare()).await }
        });
        let hit = (Kind::TaskTimeout, at(1));
        assert_eq!((told(ends.0), told(ends.1)), (hit, hit));
    }
}

#[test]
fn a_bare_wait_ends_though_its_task_was_ready_when_the_timeout_fired() {
    let (ends, _) = on_sim(async {
        let bare = timeout_after(secs(1), async { never::<Result<(), Interrupt>>().await });
        join!(sleep(secs(1)), bare)
    });
    assert_eq!(ends.0, Ok(at(1)));
    assert_eq!(told(ends.1), (Kind::TaskTimeout, at(1)));
}

#[test]
fn a_bare_wait_that_begins_after_its_timeout_fired_ends() {
    let (end, _) = on_sim(async {
        let late = timeout_after(secs(1), async {
            sleep(secs(1)).await?; // a tie: the value wins, and the timeout is pending
            never::<Result<(), Interrupt>>().await
        });
        late.await
    });
    assert_eq!(told(end), (Kind::TaskTimeout, at(1)));
}

#[test]
fn a_bare_wait_next_to_a_trap_ends_when_the_trap_has_ended() {
    let (end, _) = on_sim(async {
        let both = async {
            let (slept, ()) = traps::join(sleep(secs(9)), never::<()>()).await;
            slept
        };
        timeout_after(secs(1), both).await
    });
    assert_eq!(told(end), (Kind::TaskTimeout, at(1)));
}

#[test]
fn a_bare_wait_that_is_not_polled_for_its_timeout_holds_no_timeout_around_it_back() {
    let (end, _) = on_sim(async {
        // A list polls a child only after a call of the child's own waker, which no code has.
        let mut list = FuturesUnordered::new();
        list.push(timeout_after(secs(1), async { never::<Result<(), Interrupt>>().await }));
        timeout_after(secs(2), async { list.next().await.expect("it has a child") }).await
    });
    assert_eq!(told(end), (Kind::TaskTimeout, at(2)));
}

/// A channel through which another task sends 5 after three seconds.
async fn five_at_three_seconds() -> Oneshot<u32> {
    let channel = Oneshot::new();
    let sender = channel.clone();
    let send = async move {
        sleep(secs(3)).await.unwrap();
        sender.send(5);
    };
    drop(spawn("sender", send).await);
    channel
}

#[test]
fn a_bare_wait_ends_although_its_poll_posts_to_the_kernel() {
    for what in ["child", "handle", "wake", "waker", "timeout"] {
        let (end, _) = on_sim(async move {
            let (channel, other) = (five_at_three_seconds().await, Oneshot::new());
            spawn("other", other.clone().receive()).detached().await;
            timeout_after(secs(3), async move {
                // The value arrives in the turn in which the timeout fires.
                assert_eq!(channel.receive().await, 5);
                match what {
                    "child" => spawn("child", async {}).detached().await,
                    "handle" => drop(spawn("child", async {}).await),
                    "wake" => WaitQueue::new().wake(1),
                    "waker" => other.send(()),
                    _ => return timeout_after(secs(9), never::<Result<(), Interrupt>>()).await,
                }
                never().await
            })
            .await
        });
        assert_eq!(told(end), (Kind::TaskTimeout, at(3)), "{what}");
    }
}

#[test]
fn a_value_that_a_poll_hands_to_its_own_task_wins_against_a_timeout_around_a_bare_wait() {
    let (end, _) = on_sim(async {
        let (channel, second) = (five_at_three_seconds().await, Oneshot::new());
        let receives = second.clone().receive();
        let sends = async move {
            second.send(channel.receive().await + 1);
            never::<()>().await;
        };
        let both = async { Ok::<_, Interrupt>(race(receives, sends).await) };
        timeout_after(secs(3), both).await
    });
    assert!(matches!(end, Ok(Either::Left(6))), "{end:?}");
}

#[test]
fn a_bare_wait_inside_a_shield_is_left_alone() {
    let (end, _) = on_sim(async {
        let channel = five_at_three_seconds().await;
        timeout_after(secs(1), async {
            let value = shield(channel.receive()).await;
            assert_eq!((value, clock().await), (5, at(3)));
            sleep(secs(1)).await
        })
        .await
    });
    assert_eq!(kind(end), Err(Kind::TaskTimeout));
}

#[test]
fn an_interrupt_that_was_delivered_leaves_clean_up_on_a_bare_waker_alone() {
    let (end, _) = on_sim(async {
        let channel = five_at_three_seconds().await;
        timeout_after(secs(1), async {
            let hit = sleep(secs(9)).await;
            assert_eq!(channel.receive().await, 5);
            hit
        })
        .await
    });
    assert_eq!(told(end), (Kind::TaskTimeout, at(1)));
}

#[test]
fn foreign_is_interrupted_in_place() {
    let polled_after = Rc::new(Cell::new(false));
    let theirs = polled_after.clone();
    let (end, trace) = on_sim(async move {
        timeout_after(secs(1), async {
            let wait = foreign(never::<()>()).await;
            theirs.set(true); // in place: the code around it continues
            wait
        })
        .await
    });
    assert_eq!(told(end), (Kind::TaskTimeout, at(1)));
    assert!(polled_after.get());
    assert_lines(&trace, "block    foreign", 1);
    assert_lines(&trace, "deliver", 1);
}

#[test]
fn foreign_whose_value_comes_with_the_interrupt_returns_the_value_and_keeps_the_interrupt() {
    let (end, trace) = on_sim(async {
        let channel = Oneshot::new();
        let sender = channel.clone();
        let mut child = spawn("child", async move {
            let value = foreign(channel.receive()).await.unwrap();
            (value, sleep(secs(9)).await.map_err(|why| why.reason()))
        })
        .await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        child.cancel_now("late");
        sender.send(3);
        child.join().await
    });
    assert_eq!(end, Ok((3, Err("late"))), "{trace}");
}

#[test]
fn a_timeout_inside_a_race_inside_unordered_leaves_nothing() {
    let (n, _) = on_sim(async {
        let mut all = FuturesUnordered::new();
        for n in 1..=50_u64 {
            all.push(async move {
                let one = race(
                    timeout_after(secs(n), async {
                        let (a, b) = traps::join(sleep(secs(60)), sleep(secs(2 * n))).await;
                        a.and(b)
                    }),
                    sleep(secs(n + n % 2)),
                );
                one.await
            });
        }
        let mut lefts = 0;
        while let Some(end) = all.next().await {
            lefts += usize::from(matches!(end, Either::Left(Err(_))));
        }
        lefts
    });
    // In a tie both are done, and a race polls the first branch first.
    assert_eq!(n, 50);
}

#[test]
fn a_pinned_future_raced_each_round_keeps_its_deadline_and_its_ticket() {
    let (rounds, trace) = on_sim(async {
        let mut long = pin!(timeout_after(tenths(35), sleep(secs(9))));
        let mut rounds = 0;
        loop {
            match race(long.as_mut(), sleep(secs(1))).await {
                Either::Right(_) => rounds += 1,
                Either::Left(end) => return (rounds, told(end)),
            }
        }
    });
    assert_eq!(rounds, (3, (Kind::TaskTimeout, Time::from_micros(3_500_000))));
    assert_lines(&trace, "await    sleep 9s", 1);
}

#[test]
fn children_of_a_combinator_polled_by_waker_only_survive_spurious_and_late_wakes() {
    let (order, _) = on_sim(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let mut all = FuturesUnordered::new();
        for n in 0..20_u64 {
            let order = order.clone();
            all.push(async move {
                for step in 0..3 {
                    clock().await; // an answering trap
                    yield_now().await.unwrap();
                    sleep(secs(n % 4)).await.unwrap();
                    order.borrow_mut().push((step, n));
                }
            });
        }
        while all.next().await.is_some() {}
        Rc::try_unwrap(order).unwrap().into_inner()
    });
    assert_eq!(order.len(), 60);
}

// ---- Filed before a timeout, awaited inside it --------------------------------------------------

/// A wait began in the poll in which the timeout around it opened, before the timeout. It is inside
/// the timeout all the same: it gets the interrupt, and its future cleans up.
#[test]
fn a_wait_that_began_before_its_timeout_gets_the_timeout() {
    for own_waker in [true, false] {
        for another_is_first in [false, true] {
            let (seen, _) = on_sim(async {
                let told = Rc::new(Cell::new(None));
                let tell = told.clone();
                let mut inner = Box::pin(async move {
                    let waited = sleep(secs(10)).await;
                    tell.set(waited.as_ref().err().map(Interrupt::reading));
                    waited
                });
                let mut other = Box::pin(sleep(secs(60)));
                std::future::poll_fn(|cx| {
                    if another_is_first {
                        assert!(other.as_mut().poll(cx).is_pending());
                    }
                    let mut none = std::task::Context::from_waker(std::task::Waker::noop());
                    let cx = if own_waker { cx } else { &mut none };
                    assert!(inner.as_mut().poll(cx).is_pending());
                    std::task::Poll::Ready(())
                })
                .await;
                let ended = timeout_after(secs(1), inner).await;
                (kind(ended), told.get(), clock().await)
            });
            assert_eq!(seen, (Err(Kind::TaskTimeout), Some(at(1)), at(1)), "{own_waker}");
        }
    }
}
