//! The waits for a group: for any member, the first output, each output in turn. The members of a
//! group: members that spawn, added tasks, daemons. And handles that are dropped
//! unused.

use std::cell::{Cell, RefCell};
use std::future::{Future, pending};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::{Context, Waker};

use kernel::{Options, Sim};
use support::{Ran, check_quietly, check_with_panics, short, tenths};
use traps::{
    Either, Error, Interrupt, Interruptible, Kind, Spawner, Task, TaskGroup, Time, clock,
    current_deadline, race, shield, sleep, spawn, timeout_after, yield_now,
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

/// Returns `n` after `n` tenths of a second.
async fn gives(n: u64) -> Result<u64, Error> {
    op(n).await.map(|_| n)
}

/// Fails after `n` tenths of a second.
async fn fails(n: u64, error: Error) -> Result<u64, Error> {
    op(n).await?;
    Err(error)
}

/// Counts the living futures that have a guard of it.
#[derive(Clone, Default)]
struct Alive(Rc<Cell<u32>>);

impl Alive {
    fn guard(&self) -> impl Sized + use<> {
        struct Guard(Rc<Cell<u32>>);
        impl Drop for Guard {
            fn drop(&mut self) {
                self.0.set(self.0.get() - 1);
            }
        }
        self.0.set(self.0.get() + 1);
        Guard(self.0.clone())
    }

    /// When it is cancelled, cleans up for as long as `future` takes.
    fn tidy<T, F>(&self, n: u64, future: F) -> impl Future<Output = F::Output> + use<T, F>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let guard = self.guard();
        async move {
            let result = future.await;
            if result.is_err() {
                shield(op(n)).await?;
            }
            drop(guard);
            result
        }
    }
}

fn cancelled<T>(ran: &Ran<T>) -> usize {
    ran.lines(|line| line.contains("exit     cancelled")).len()
}

// ---- Any ---------------------------------------------------------------------------------------

#[test]
fn join_any_returns_the_first_end_after_the_others_were_cancelled_and_have_ended() {
    let ran = check_quietly("any", Sim::new(), async {
        let (alive, mut group) = (Alive::default(), Group::new());
        for n in [3, 1, 2] {
            group.spawn("worker", alive.tidy(n, gives(n))).await;
        }
        assert_eq!(group.join_any().await, Ok(Some(1)));
        assert_eq!((alive.0.get(), clock().await), (0, at(1 + 3)));
        // The group is empty, and can be used again.
        assert_eq!(group.join_any().await, Ok(None));
        group.spawn("worker", gives(1)).await;
        assert_eq!(group.join().await, Ok(vec![1]));
    });
    assert_eq!((cancelled(&ran), ran.count("warn")), (2, 0), "{}", ran.trace);
}

#[test]
fn join_any_returns_a_failure_that_comes_first_and_passes_over_a_cancelled_member() {
    let ran = check_quietly("any", Sim::new(), async {
        let mut group = Group::new();
        let first = group.spawn("first", gives(1)).await;
        first.cancel_now("not wanted");
        group.spawn("bad", fails(2, Error::Full)).await;
        group.spawn("good", gives(3)).await;
        assert_eq!(group.join_any().await, Err(Error::Full));
        assert_eq!(clock().await, at(2));
        let only = group.spawn("only", gives(1)).await;
        only.cancel_now("not wanted");
        assert_eq!(group.join_any().await, Ok(None));
    });
    assert_eq!(cancelled(&ran), 3, "{}", ran.trace);
}

#[test]
fn join_any_counts_the_failures_that_it_cannot_give() {
    let ran = check_quietly("any", Sim::new(), async {
        let mut group = Group::new();
        group.spawn("good", async { Ok(1) }).await;
        group.spawn("bad", async { Err(Error::Full) }).await;
        assert_eq!(group.join_any().await, Ok(Some(1)));
    });
    let warn = ran.lines(|line| line.contains(" warn "));
    assert_eq!(warn.len(), 1, "{}", ran.trace);
    assert!(warn[0].ends_with("1 more members had failed, first task 4"), "{}", warn[0]);
}

#[test]
fn a_member_that_next_done_has_shown_has_ended_for_join_any() {
    check_quietly("any", Sim::new(), async {
        let mut group = Group::new();
        for n in [5, 1, 2] {
            group.spawn("worker", gives(n)).await;
        }
        assert_eq!(group.next_done().await.unwrap().map(|(_, n)| *n), Some(1));
        assert_eq!(group.join_any().await, Ok(Some(1)));
        assert_eq!(clock().await, at(1));
    });
}

// ---- The first output --------------------------------------------------------------------------

#[test]
fn join_first_ok_passes_over_failures_and_panics_without_a_word() {
    let ran = check_with_panics(Sim::new(), Options::new(), async {
        let (alive, mut group) = (Alive::default(), Group::new());
        group.spawn("bad", fails(1, Error::Full)).await;
        group.spawn("worse", async { panic!("on purpose") }).await;
        group.spawn("good", gives(3)).await;
        // This failure is in the same turn, and no wait looks at it.
        group.spawn("late", fails(3, Error::Empty)).await;
        group.spawn("slow", alive.tidy(1, gives(9))).await;
        assert_eq!(group.join_first_ok().await, Ok(Some(3)));
        assert_eq!((alive.0.get(), clock().await), (0, at(4)));
        assert_eq!(group.join().await, Ok(vec![]));
    });
    assert_eq!((cancelled(&ran), ran.count("warn")), (1, 0), "{}", ran.trace);
}

#[test]
fn join_first_ok_returns_the_last_failure_if_no_member_succeeds() {
    check_quietly("first_ok", Sim::new(), async {
        let mut group = Group::new();
        group.spawn("last", fails(2, Error::Full)).await;
        group.spawn("first", fails(1, Error::Empty)).await;
        group.spawn("cancelled", gives(9)).await.cancel_now("not wanted");
        assert_eq!(group.join_first_ok().await, Err(Error::Full));
        group.spawn("cancelled", gives(9)).await.cancel_now("not wanted");
        assert_eq!(group.join_first_ok().await, Ok(None));
        assert_eq!(group.join_first_ok().await, Ok(None), "empty");
    });
}

/// The wait is given up before the first success, or in the clean-up after it.
#[test]
fn a_wait_for_the_first_output_that_is_given_up_continues_where_it_stopped() {
    check_quietly("first_ok", Sim::new(), async {
        let (alive, mut group) = (Alive::default(), Group::new());
        group.spawn("bad", fails(1, Error::Full)).await;
        group.spawn("good", gives(3)).await;
        group.spawn("slow", alive.tidy(4, gives(9))).await;
        assert!(matches!(race(group.join_first_ok(), op(2)).await, Either::Right(Ok(_))));
        assert!(matches!(race(group.join_first_ok(), op(3)).await, Either::Right(Ok(_))));
        assert_eq!((alive.0.get(), clock().await), (1, at(5)));
        assert_eq!(group.next_done().await, Ok(None), "it cleans up");
        assert_eq!(group.join_first_ok().await, Ok(Some(3)));
        assert_eq!((alive.0.get(), clock().await), (0, at(7)));
    });
}

// ---- Each in turn ------------------------------------------------------------------------------

#[test]
fn next_result_takes_the_outputs_in_the_order_of_ending() {
    check_quietly("next", Sim::new(), async {
        let mut group = Group::new();
        for n in [4, 1, 3, 2] {
            group.spawn("worker", gives(n)).await;
        }
        assert_eq!(group.next_done().await.unwrap().map(|(_, n)| *n), Some(1));
        let mut seen = Vec::new();
        while let Some(n) = group.next_result().await.unwrap() {
            seen.push(n);
            if n == 2 {
                group.spawn("more", gives(9)).await;
            }
        }
        assert_eq!(seen, [2, 3, 4, 9]);
        assert_eq!(group.join().await, Ok(vec![1]), "what next_done has shown");
    });
}

#[test]
fn next_result_returns_a_failure_once_all_have_ended_and_its_interrupt_cancels_nothing() {
    let ran = check_quietly("next", Sim::new(), async {
        let (alive, mut group) = (Alive::default(), Group::new());
        group.spawn("good", gives(2)).await;
        group.spawn("bad", fails(3, Error::Full)).await;
        group.spawn("slow", alive.tidy(1, gives(9))).await;
        let cut = timeout_after(tenths(1), group.next_result()).await.unwrap_err();
        assert_eq!(cut.interrupt().map(Interrupt::kind), Some(Kind::TaskTimeout));
        assert_eq!(group.next_result().await, Ok(Some(2)));
        assert_eq!(group.next_result().await, Err(Error::Full));
        assert_eq!((alive.0.get(), clock().await), (0, at(4)));
        assert_eq!(group.next_result().await, Ok(None));
    });
    assert_eq!((cancelled(&ran), ran.count("warn")), (1, 0), "{}", ran.trace);
}

// ---- Members that spawn ------------------------------------------------------------------------

/// Each member spawns two members below it, while the owner waits.
async fn tree(spawner: Spawner<u64, Error>, depth: u64) -> Result<u64, Error> {
    op(1).await?;
    if depth > 0 {
        for _ in 0..2 {
            let below: std::pin::Pin<Box<dyn Future<Output = _>>> =
                Box::pin(tree(spawner.clone(), depth - 1));
            spawner.spawn("node", below).await;
        }
    }
    Ok(depth)
}

#[test]
fn members_spawn_into_their_own_group_while_it_is_awaited() {
    let ran = check_quietly("tree", Sim::new(), async {
        let mut group = Group::new();
        group.spawn("node", tree(group.spawner(), 2)).await;
        assert_eq!(group.join().await, Ok(vec![2, 1, 1, 0, 0, 0, 0]));
        assert_eq!(clock().await, at(3));
        // The tree once more, in a loop and under a deadline that each inherits from its own spawner.
        let root = tree(group.spawner(), 2);
        timeout_after(tenths(9), async {
            group.spawn("node", root).await;
            Ok::<_, Interrupt>(())
        })
        .await
        .unwrap();
        let (spawner, told) = (group.spawner(), Rc::new(Cell::new(None)));
        let tells = told.clone();
        let asks = async move {
            let below = async move {
                tells.set(current_deadline());
                Ok(7)
            };
            timeout_after(tenths(5), async {
                spawner.spawn("below", below).await;
                Ok::<_, Interrupt>(())
            })
            .await?;
            Ok(8)
        };
        group.spawn("asks", asks).await;
        let mut sum = 0;
        while let Some(n) = group.next_result().await.unwrap() {
            sum += n;
        }
        assert_eq!((sum, told.get()), (2 + 1 + 1 + 7 + 8, Some(at(3 + 5))));
    });
    assert_eq!((cancelled(&ran), ran.count("warn")), (0, 0), "{}", ran.trace);
}

#[test]
fn a_member_that_is_spawned_in_the_clean_up_is_cancelled_and_awaited() {
    let ran = check_quietly("late", Sim::new(), async {
        let (alive, mut group) = (Alive::default(), Group::new());
        let (spawner, late) = (group.spawner(), alive.tidy(2, gives(9)));
        let spawns = async move {
            let result = gives(9).await;
            spawner.spawn("late", late).await;
            result
        };
        group.spawn("spawns", spawns).await;
        group.spawn("bad", fails(1, Error::Full)).await;
        assert_eq!(group.join().await, Err(Error::Full));
        assert_eq!((alive.0.get(), clock().await), (0, at(3)));
        group.spawn("later", gives(1)).await;
        assert_eq!(group.join().await, Ok(vec![1]), "it is over");
    });
    let lines = ran.lines(|line| line.contains("late     cancel"));
    assert_eq!(lines.len(), 1, "{}", ran.trace);
    assert!(lines[0].contains("reason=group_failed"), "{}", lines[0]);
}

struct Keeps {
    _spawner: Spawner<Keeps, Error>,
    _kept: Rc<()>,
}

#[test]
fn a_spawner_outlives_its_group_and_its_members_are_cancelled_at_once() {
    let ran = check_quietly("gone", Sim::new(), async {
        let group = Group::<u64>::new();
        let spawner = group.spawner();
        drop(group);
        let member = spawner.spawn("member", gives(9)).await;
        member.wait().await.unwrap();
        assert_eq!(clock().await, at(0));
        // An output that keeps a spawner makes no cycle.
        let kept = Rc::new(());
        let group = TaskGroup::<_, Error>::new();
        let output = Keeps { _spawner: group.spawner(), _kept: kept.clone() };
        group.spawn("keeps", async move { Ok(output) }).await;
        op(1).await.unwrap();
        assert_eq!(Rc::strong_count(&kept), 2);
        drop(group);
        assert_eq!(Rc::strong_count(&kept), 1);
    });
    assert_eq!(cancelled(&ran), 1, "{}", ran.trace);
}

// ---- Tasks that are added ----------------------------------------------------------------------

#[test]
fn a_task_that_is_added_is_a_member_whether_it_runs_or_has_ended() {
    let ran = check_quietly("add", Sim::new(), async {
        let mut group = Group::new();
        let ended = spawn("ended", gives(1)).await;
        let runs = spawn("runs", gives(4)).await;
        op(2).await.unwrap();
        let members = [group.add(ended), group.add(runs)];
        let ids = members.each_ref().map(traps::Member::id);
        let first = group.next_done().await.unwrap().map(|(task, n)| (task, *n));
        assert_eq!((first, clock().await), (Some((ids[0], 1)), at(2)));
        members[1].wait().await.unwrap();
        assert_eq!(group.join().await, Ok(vec![1, 4]));
        // A task whose output another task has taken, and a cancelled task.
        let mut taken = spawn("taken", gives(1)).await;
        taken.join().await.unwrap().unwrap();
        group.add(taken);
        group.add(spawn("cancelled", gives(1)).await).cancel_now("not wanted");
        assert_eq!(group.join().await, Ok(vec![]));
    });
    assert_eq!(ran.count("warn"), 0, "{}", ran.trace);
}

#[test]
fn a_task_that_is_added_fails_its_group_and_is_cancelled_with_it() {
    let ran = check_quietly("add", Sim::new(), async {
        let alive = Alive::default();
        for panics in [false, true] {
            let mut group = Group::new();
            group.spawn("slow", alive.tidy(2, gives(9))).await;
            let bad = async move {
                op(1).await?;
                assert!(!panics, "on purpose");
                Err(Error::Full)
            };
            group.add(spawn("bad", bad).await);
            let error = group.join().await.unwrap_err();
            match panics {
                true => assert_eq!(error, Error::Panicked("on purpose".to_owned())),
                false => assert_eq!(error, Error::Full),
            }
            assert_eq!(alive.0.get(), 0);
        }
        let mut group = Group::new().grace(tenths(5));
        group.add(spawn("added", alive.tidy(2, gives(9))).await);
        let stubborn = alive.guard();
        let stubborn = async move {
            let _guard = stubborn;
            while op(1).await.is_ok() {}
            shield(op(99)).await.map(|_| 0)
        };
        group.add(spawn("stubborn", stubborn).await);
        group.spawn("bad", fails(1, Error::Empty)).await;
        assert_eq!(group.join().await, Err(Error::Empty));
        assert_eq!((alive.0.get(), clock().await), (0, at(3 + 3 + 6)));
    });
    let exits = ran.lines(|line| line.contains(" exit ") && line.contains("dropped"));
    assert_eq!((exits.len(), cancelled(&ran)), (1, 3), "{}", ran.trace);
}

/// Although the task has waited for the group before, when it was no member.
#[test]
fn a_joiner_that_is_added_to_its_group_breaks_a_rule() {
    let told = Rc::new(Cell::new(false));
    let tells = told.clone();
    check_quietly("own", Sim::new(), async move {
        let handle = Rc::new(RefCell::new(None::<Task<Result<(), Error>>>));
        let own = handle.clone();
        let joins = async move {
            let mut group = Group::new();
            group.join().await?;
            group.add(own.take().unwrap());
            let mut join = Box::pin(group.join());
            let mut cx = Context::from_waker(Waker::noop());
            let polled = catch_unwind(AssertUnwindSafe(|| drop(join.as_mut().poll(&mut cx))));
            tells.set(polled.is_err());
            Ok(())
        };
        handle.replace(Some(spawn("joins", joins).await));
        yield_now().await.unwrap();
        yield_now().await.unwrap();
    });
    assert!(told.get());
}

// ---- Daemons -----------------------------------------------------------------------------------

#[test]
fn a_join_waits_for_no_daemon_and_ends_all_of_them() {
    let ran = check_with_panics(Sim::new(), Options::new(), async {
        let (alive, mut group) = (Alive::default(), Group::new());
        group.spawn_daemon("serves", alive.tidy(2, op(99))).await;
        group.spawn_daemon("fails", fails(1, Error::Full)).await;
        group.spawn_daemon("panics", async { panic!("on purpose") }).await;
        group.spawn_daemon("ends", async { "whatever it gives" }).await;
        let spawner = group.spawner();
        let guard = alive.guard();
        let member = async move {
            let below = async move {
                let _guard = guard;
                pending::<()>().await;
            };
            spawner.spawn_daemon("below", below).await;
            gives(3).await
        };
        group.spawn("member", member).await;
        assert_eq!(group.join().await, Ok(vec![3]));
        assert_eq!(alive.0.get(), 0);
        // With daemons alone, a join does not wait. Daemons that end late are dropped.
        group.spawn_daemon("serves", alive.tidy(1, op(99))).await;
        assert_eq!(group.next_result().await, Ok(None));
        assert_eq!(alive.0.get(), 0);
    });
    assert_eq!(ran.count("warn"), 0, "{}", ran.trace);
    let cancels = ran.lines(|line| line.contains(" cancel ") && line.contains("reason=group_done"));
    assert_eq!(cancels.len(), 3, "{}", ran.trace);
}

// ---- All are cancelled -------------------------------------------------------------------------

#[test]
fn cancel_remaining_ends_all_and_keeps_the_earlier_outputs() {
    let ran = check_quietly("remaining", Sim::new(), async {
        let (alive, mut group) = (Alive::default(), Group::new());
        group.spawn("done", gives(1)).await;
        group.spawn("slow", alive.tidy(2, gives(9))).await;
        group.spawn_daemon("serves", alive.tidy(3, gives(9))).await;
        op(2).await.unwrap();
        group.cancel_remaining("enough").await;
        assert_eq!((alive.0.get(), clock().await), (0, at(5)));
        group.spawn("more", gives(1)).await;
        assert_eq!(group.join().await, Ok(vec![1, 1]));
        // An earlier failure is still reported.
        group.spawn("bad", fails(1, Error::Full)).await;
        op(2).await.unwrap();
        group.cancel_remaining("enough").await;
        assert_eq!(group.join().await, Err(Error::Full));
    });
    assert_eq!((cancelled(&ran), ran.count("warn")), (2, 0), "{}", ran.trace);
    assert_eq!(
        ran.lines(|line| line.contains(" cancel   by=2 reason=enough")).len(),
        2,
        "{}",
        ran.trace
    );
}

// ---- Interrupted anywhere ----------------------------------------------------------------------

#[derive(Clone, Copy, Debug)]
enum How {
    All,
    Any,
    FirstOk,
    EachInTurn,
    Remaining,
}

/// Waits in one of the ways for members of all kinds. Returns whether all had ended then, and
/// the end of the wait.
async fn program(how: How) -> (bool, &'static str) {
    let (alive, mut group) = (Alive::default(), Group::new());
    group.spawn("bad", alive.tidy(1, fails(2, Error::Full))).await;
    let spawner = group.spawner();
    let below = alive.tidy(1, gives(4));
    let spawns = async move {
        op(1).await?;
        spawner.spawn("below", below).await;
        gives(3).await
    };
    group.spawn("spawns", alive.tidy(1, spawns)).await;
    group.add(spawn("added", alive.tidy(2, gives(4))).await);
    group.spawn_daemon("serves", alive.tidy(1, op(99))).await;
    let end = match how {
        How::All => short(&group.join().await),
        How::Any => short(&group.join_any().await),
        How::FirstOk => short(&group.join_first_ok().await),
        How::EachInTurn => loop {
            match group.next_result().await {
                Ok(Some(_)) => {}
                end => break short(&end),
            }
        },
        How::Remaining => {
            group.cancel_remaining("enough").await;
            "ok"
        }
    };
    if matches!(how, How::EachInTurn) {
        // The interrupt of that wait has cancelled no member.
        group.cancel_remaining("enough").await;
    }
    (alive.0.get() == 0, end)
}

#[test]
fn no_member_survives_a_wait_wherever_it_is_interrupted() {
    let expected = [
        (How::All, "other"),
        (How::Any, "other"),
        (How::FirstOk, "ok"),
        (How::EachInTurn, "other"),
        (How::Remaining, "ok"),
    ];
    for (how, end) in expected {
        let swept = testing::sweep(|| (Sim::new(), program(how))).check(|injection, ran| {
            assert!(ran.output.0, "{how:?}: a member survives {injection}\n{}", ran.trace);
        });
        assert_eq!(swept.plain.output, (true, end), "{how:?}\n{}", swept.plain.trace);
        assert!(swept.runs > 20, "{how:?}");
    }
}

/// Each output is returned once, by `next_result` or by the join after it.
#[test]
fn an_interrupt_of_next_result_takes_no_output_along() {
    let main = || async {
        let mut group = Group::new();
        for n in [3, 1, 2] {
            group.spawn("worker", shield(gives(n))).await;
        }
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.extend(group.next_result().await.ok().flatten());
        }
        seen
    };
    let swept = testing::sweep(|| (Sim::new(), main())).only(&["main"]).check(|injection, ran| {
        assert_eq!(ran.output, [1, 2, 3], "{injection}\n{}", ran.trace);
    });
    assert_eq!(swept.plain.output, [1, 2, 3]);
}

// ---- Handles that are dropped unused -----------------------------------------------------------

#[test]
fn a_handle_that_is_dropped_unused_is_logged_once() {
    let ran = check_quietly("handles", Sim::new(), async {
        drop(spawn("forgotten", gives(1)).await);
        let ended = spawn("ended", gives(1)).await;
        op(2).await.unwrap();
        drop(ended);
        let owner = spawn("owner", async { drop(spawn("below", gives(1)).await) });
        owner.await.join().await.unwrap();
    });
    let warn = ran.lines(|line| line.contains(" warn "));
    let text = "was dropped unused; join it, cancel it, or spawn it detached";
    for (line, task) in warn.iter().zip([3, 4, 6]) {
        assert!(line.ends_with(&format!("the handle of task {task} {text}")), "{line}");
    }
    assert_eq!(warn.len(), 3, "{}", ran.trace);
}

#[test]
fn a_handle_that_was_used_or_is_dropped_with_its_owner_is_not_logged() {
    let ran = check_with_panics(Sim::new(), Options::new(), async {
        spawn("joined", gives(1)).await.join().await.unwrap().unwrap();
        spawn("awaited", gives(1)).await.wait().await.unwrap();
        spawn("cancelled", gives(9)).await.cancel_now("not wanted");
        spawn("detached", gives(1)).detached().await;
        Group::new().add(spawn("added", gives(1)).await);
        // A join that was interrupted, and is then made again.
        let mut slow = spawn("slow", gives(3)).await;
        assert!(timeout_after(tenths(1), async { slow.join().await.map(drop) }).await.is_err());
        drop(slow);
        // The owner of the group is cancelled, times out, panics, or is dropped by the kernel.
        let owns = || async {
            let _below = spawn("below", gives(1)).await;
            op(9).await.map(drop)
        };
        let cancelled = spawn("owner", owns()).await;
        yield_now().await.unwrap();
        cancelled.cancel_because("not wanted").await.unwrap();
        assert!(timeout_after(tenths(1), owns()).await.is_err());
        let panics = async {
            let _below = spawn("below", gives(1)).await;
            panic!("on purpose");
        };
        spawn("owner", panics).detached().await;
        let left = async {
            let _below = spawn("below", gives(1)).await;
            pending::<()>().await;
        };
        spawn("owner", left).detached().await;
        op(1).await.unwrap();
    });
    assert_eq!(ran.count("warn"), 0, "{}", ran.trace);
}
