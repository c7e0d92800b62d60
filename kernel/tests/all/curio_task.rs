//! The cases of Curio's `test_task.py`, rewritten. A test has the name of its case without
//! `test_`. The guide has the table of all cases, on the page `curio`.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use kernel::{Kernel, Sim};
use support::{Notes, at, ms, op, short};
use testing::run;
use traps::sync::Event;
use traps::{
    Error, Task, TaskGroup, TaskLocal, check_cancellation, shield, spawn, timeout_after, yield_now,
};

type Group<T> = TaskGroup<T, Error>;

/// Adds, or fails like Curio's members that get a number and a text.
async fn add(x: u32, y: &str) -> Result<u32, Error> {
    Ok(x + y.parse::<u32>().map_err(|error| Error::Io(io::Error::other(error)))?)
}

/// A member that waits for an event. Notes how it ended.
async fn waiter(notes: Notes, event: Rc<Event>) -> Result<u32, Error> {
    let result = event.wait().await;
    notes.add(short(&result));
    Ok(result.map(|()| 0)?)
}

/// Makes a group of `count` members that wait for an event that never happens.
async fn waiters(notes: &Notes, count: usize) -> Group<u32> {
    let group = Group::new();
    for _ in 0..count {
        group.spawn("waiter", waiter(notes.clone(), Rc::default())).await;
    }
    group
}

/// Yields, so that ready tasks run.
async fn turns() {
    for _ in 0..5 {
        yield_now().await.unwrap();
    }
}

// ---- Tasks -------------------------------------------------------------------------------------

#[test]
fn cancel_noblock() {
    run(async {
        let requested = Rc::new(Cell::new(false));
        let seen = requested.clone();
        let child = async move { (op(100).await.is_err(), seen.get()) };
        let mut child = spawn("child", child).await;
        yield_now().await.unwrap();
        child.cancel_now("");
        requested.set(true);
        child.cancel_because("").await.unwrap();
        assert_eq!(child.join().await, Ok((true, true)), "the request returned first");
    });
}

#[test]
fn self_cancellation() {
    run(async {
        let slot = Rc::new(RefCell::new(None::<Task<&str>>));
        let own = slot.clone();
        let task = async move {
            own.take().expect("its handle").cancel_now("by itself");
            // The cancellation is pending until the next trap that blocks.
            traps::clock().await;
            yield_now().await.unwrap_err().reason()
        };
        slot.replace(Some(spawn("task", task).await));
        turns().await;
        assert!(slot.take().is_none());
    });
}

#[test]
fn set_cancellation() {
    run(async {
        let event = Rc::new(Event::new());
        let go = event.clone();
        let task = async move {
            // A trap that does not block leaves a cancellation pending.
            shield(go.wait()).await.unwrap();
            let in_shield = shield(async { short(&check_cancellation().await) }).await;
            let taken = short(&check_cancellation().await);
            (in_shield, taken, short(&check_cancellation().await), short(&op(10).await))
        };
        let mut task = spawn("task", task).await;
        yield_now().await.unwrap();
        task.cancel_now("");
        event.set();
        assert_eq!(task.join().await, Ok(("CAN", "CAN", "ok", "ok")));
    });
}

#[test]
fn defer_cancellation() {
    run(async {
        let (started, go_on) = (Rc::new(Event::new()), Rc::new(Event::new()));
        let (start, wait) = (started.clone(), go_on.clone());
        let child = async move {
            let shielded = shield(async {
                start.set();
                wait.wait().await
            });
            (short(&shielded.await), short(&check_cancellation().await))
        };
        let mut child = spawn("child", child).await;
        started.wait().await.unwrap();
        child.cancel_now("");
        go_on.set();
        assert_eq!(child.join().await, Ok(("ok", "CAN")));
    });
}

#[test]
fn late_join() {
    run(async {
        let mut child = spawn("child", async { "output" }).await;
        op(1).await.unwrap();
        child.cancel_because("too late").await.unwrap();
        assert_eq!(child.join().await, Ok("output"), "the cancellation changes nothing");
    });
}

#[test]
fn contextvars() {
    static N: TaskLocal<Cell<u32>> = TaskLocal::new();
    let notes = Notes::default();
    run(async {
        let mut group = Group::new();
        for from in [3, 6] {
            let noted = notes.clone();
            let countdown = async move {
                N.set(Cell::new(from));
                while let Some(n) = N.get().filter(|n| n.get() > 0) {
                    noted.add(n.get().to_string());
                    n.set(n.get() - 1);
                    yield_now().await?;
                }
                Ok(())
            };
            group.spawn("countdown", countdown).await;
        }
        group.join().await.unwrap();
    });
    assert_eq!(notes.text(), "3 6 2 5 1 4 3 2 1");
}

#[test]
fn task_diag() {
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        let child = spawn("child", op(3)).await;
        yield_now().await.unwrap();
        child
    };
    let child = kernel.run(main).unwrap();
    assert!(format!("{child:?}").contains(&child.id().to_string()));
    let tasks = kernel.tasks();
    let view = tasks.iter().find(|task| task.name == "child").expect("it is parked");
    assert!(view.spawned_at.as_ref().is_some_and(|site| site.contains("curio_task.rs")));
    let wait = &view.parked[0];
    assert!(wait.trap.starts_with("sleep"), "{wait:?}");
    assert!(wait.site.contains("curio_task.rs"), "{wait:?}");
    assert!(kernel.task_table().to_string().contains("child"));
    drop(child);
    kernel.shutdown().unwrap();
}

// ---- Groups ------------------------------------------------------------------------------------

/// A group of three members that add.
async fn sums() -> Group<u32> {
    let group = Group::new();
    for (x, y) in [(1, "1"), (2, "2"), (3, "3")] {
        group.spawn("child", add(x, y)).await;
    }
    group
}

#[test]
fn task_group() {
    run(async { assert_eq!(sums().await.join().await, Ok(vec![2, 4, 6])) });
}

#[test]
fn task_group_existing() {
    run(async {
        let event = Rc::new(Event::new());
        let mut tasks = Vec::new();
        for (x, y, waits) in [(1, "1", false), (2, "2", true), (3, "3", true), (4, "4", false)] {
            let event = event.clone();
            let child = async move {
                if waits {
                    event.wait().await?;
                }
                add(x, y).await
            };
            tasks.push(spawn("child", child).await);
        }
        turns().await;
        let mut group = Group::new();
        for task in tasks {
            group.add(task);
        }
        event.set();
        assert_eq!(group.join().await, Ok(vec![2, 4, 6, 8]));
    });
}

// ---- The first of a group ----------------------------------------------------------------------

#[test]
fn task_group_result() {
    run(async { assert_eq!(sums().await.join_any().await, Ok(Some(2))) });
}

#[test]
fn task_any_cancel() {
    let notes = Notes::default();
    run(async {
        let mut group = waiters(&notes, 2).await;
        group.spawn("child", add(1, "1")).await;
        assert_eq!(group.join_any().await, Ok(Some(2)));
        assert_eq!(notes.text(), "CAN CAN", "both have ended before the join gives the output");
    });
}

#[test]
fn task_any_error() {
    let notes = Notes::default();
    run(async {
        let mut group = waiters(&notes, 2).await;
        group.spawn("bad", add(1, "bad")).await;
        assert!(matches!(group.join_any().await, Err(Error::Io(_))));
        assert_eq!(notes.text(), "CAN CAN");
    });
}

#[test]
fn task_group_iter() {
    run(async {
        let mut group = sums().await;
        let mut taken = Vec::new();
        while let Some(output) = group.next_result().await.unwrap() {
            taken.push(output);
        }
        assert_eq!(taken, [2, 4, 6]);
        assert_eq!(group.join().await, Ok(vec![]), "what was taken is not there any more");
    });
}

#[test]
fn task_group_error() {
    let notes = Notes::default();
    run(async {
        let mut group = waiters(&notes, 2).await;
        group.spawn("bad", add(3, "bad")).await;
        assert!(matches!(group.join().await, Err(Error::Io(_))));
        assert_eq!(notes.text(), "CAN CAN", "both have ended before the join gives the error");
    });
}

#[test]
fn task_group_error_block() {
    let notes = Notes::default();
    run(async {
        let body = async {
            let mut group = waiters(&notes, 3).await;
            yield_now().await?;
            add(0, "bad").await?;
            group.join().await
        };
        assert!(matches!(body.await, Err(Error::Io(_))));
        // A group that is dropped cancels its members and does not wait for them.
        turns().await;
        assert_eq!(notes.text(), "CAN CAN CAN");
    });
}

#[test]
fn task_group_cancel() {
    let notes = Notes::default();
    run(async {
        let started = Rc::new(Event::new());
        let (noted, start) = (notes.clone(), started.clone());
        let task = async move {
            let mut group = waiters(&noted, 3).await;
            start.set();
            let joined = group.join().await;
            noted.add(format!("join:{}", short(&joined)));
        };
        let task = spawn("task", task).await;
        started.wait().await.unwrap();
        task.cancel_because("").await.unwrap();
    });
    assert_eq!(notes.text(), "CAN CAN CAN join:CAN");
}

#[test]
fn task_group_timeout() {
    let notes = Notes::default();
    let ran = run(async {
        let block = timeout_after(ms(250), async {
            let mut group = waiters(&notes, 3).await;
            let joined = group.join().await;
            notes.add(format!("join:{}", short(&joined)));
            joined
        });
        short(&block.await)
    });
    // The members have the same deadline. The join is interrupted first and cancels them, but their
    // timeouts were delivered before that, and stay.
    assert_eq!(notes.text(), "TT TT TT join:TT");
    assert_eq!((ran.output, ran.took), ("TT", ms(250)));
}

/// Curio's joiner takes the error from the group. Here a wait takes nothing, and the group fails.
#[test]
fn task_group_join() {
    let notes = Notes::default();
    run(async {
        let event = Rc::new(Event::new());
        let mut group = Group::new();
        let bad = group.spawn("bad", add(1, "foo")).await;
        for _ in 0..2 {
            group.spawn("waiter", waiter(notes.clone(), event.clone())).await;
        }
        bad.wait().await.unwrap();
        turns().await;
        assert_eq!(notes.text(), "", "nothing happens to the others before the join");
        event.set();
        turns().await;
        assert_eq!(notes.text(), "ok ok");
        assert!(matches!(group.join().await, Err(Error::Io(_))));
    });
}

/// Curio's group leaves out a member that was joined by hand. Here a wait takes nothing.
#[test]
fn task_group_join_done() {
    run(async {
        let mut group = Group::new();
        group.spawn("child", add(1, "1")).await;
        group.spawn("child", add(2, "2")).await;
        let third = group.spawn("child", add(3, "3")).await;
        third.wait().await.unwrap();
        assert_eq!(group.join().await, Ok(vec![2, 4, 6]));
    });
}

// ---- Members that are cancelled, and daemons ----------------------------------------------------

#[test]
fn task_wait_none() {
    let notes = Notes::default();
    run(async {
        let mut group = waiters(&notes, 2).await;
        yield_now().await.unwrap();
        group.cancel_remaining("not awaited").await;
        assert_eq!(notes.text(), "CAN CAN");
        assert_eq!(group.join().await, Ok(vec![]));
    });
}

#[test]
fn task_group_cancel_remaining() {
    let notes = Notes::default();
    run(async {
        let mut group = Group::new();
        let first = group.spawn("first", add(1, "1")).await;
        group.spawn("second", add(2, "2")).await;
        for _ in 0..2 {
            group.spawn("waiter", waiter(notes.clone(), Rc::default())).await;
        }
        let shown = group.next_done().await.unwrap().map(|(task, output)| (task, *output));
        assert_eq!(shown, Some((first.id(), 2)));
        assert_eq!(group.next_result().await, Ok(Some(4)));
        group.cancel_remaining("enough").await;
        assert_eq!(notes.text(), "CAN CAN");
        assert_eq!(group.join().await, Ok(vec![2]), "what was shown, and not what was taken");
    });
}

#[test]
fn taskgroup_misc() {
    let notes = Notes::default();
    run(async {
        for count in 0..=1 {
            let mut group = waiters(&notes, count).await;
            group.cancel_remaining("").await;
            assert_eq!(group.join().await, Ok(vec![]));
        }
        assert_eq!(notes.text(), "CAN");
    });
}

/// A daemon that serves until it is cancelled.
async fn daemon(notes: Notes) {
    notes.add(short(&op(50).await));
}

#[test]
fn task_group_daemon() {
    let notes = Notes::default();
    let ran = run(async {
        let mut group = Group::new();
        group.spawn("child", add(1, "1")).await;
        group.spawn_daemon("gives", add(2, "2")).await;
        group.spawn_daemon("fails", add(3, "bad")).await;
        for _ in 0..2 {
            group.spawn_daemon("serves", daemon(notes.clone())).await;
        }
        assert_eq!(group.join().await, Ok(vec![2]), "what daemons come to is thrown away");
        assert_eq!(notes.text(), "CAN CAN");
    });
    assert_eq!(ran.took, ms(0));
}

#[test]
fn task_group_daemon_error() {
    let notes = Notes::default();
    run(async {
        let body = async {
            let group = Group::<()>::new();
            group.spawn_daemon("serves", daemon(notes.clone())).await;
            yield_now().await?;
            add(0, "bad").await
        };
        assert!(matches!(body.await, Err(Error::Io(_))));
        turns().await;
        assert_eq!(notes.text(), "CAN");
    });
}

#[test]
fn task_join_daemon() {
    run(async {
        let mut group = Group::new();
        let ends = group.spawn_daemon("ends", op(1)).await;
        group.spawn("child", add(3, "3")).await;
        ends.wait().await.unwrap();
        assert_eq!(traps::clock().await, at(1));
        assert_eq!(group.join().await, Ok(vec![6]));
    });
}

#[test]
fn task_group_empty() {
    run(async { assert_eq!(Group::<()>::new().join().await, Ok(vec![])) });
}
