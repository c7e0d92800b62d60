//! Values of tasks: their lifetime, inheritance by children, and their drop.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kernel::{Kernel, Options, Sim};
use support::kernels::*;
use traps::internal::any_locals;
use traps::{
    InheritedLocal, TaskGroup, TaskLocal, run_in_thread, sleep, spawn, timeout_after, yield_now,
};

/// Counts its living instances.
#[derive(Debug)]
struct Counted(Rc<Cell<i32>>);

impl Counted {
    fn new(alive: &Rc<Cell<i32>>) -> Counted {
        alive.set(alive.get() + 1);
        Counted(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Counts its end, and panics.
struct Dies(Arc<AtomicU64>);

impl Drop for Dies {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::panic::resume_unwind(Box::new("by design"));
    }
}

#[test]
fn values_that_panic_as_their_kernel_or_their_task_ends_end_neither_it_nor_the_process() {
    static FIRST: TaskLocal<Dies> = TaskLocal::new();
    static SECOND: TaskLocal<Dies> = TaskLocal::new();
    static THIRD: InheritedLocal<Dies> = InheritedLocal::new();
    static FOURTH: InheritedLocal<Dies> = InheritedLocal::new();
    let dropped = Arc::new(AtomicU64::new(0));
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        for waits in [false, true] {
            let dropped = dropped.clone();
            let task = async move {
                FIRST.set(Dies(dropped.clone()));
                SECOND.set(Dies(dropped.clone()));
                THIRD.set(Dies(dropped.clone()));
                FOURTH.set(Dies(dropped));
                if waits {
                    std::future::pending::<()>().await;
                }
            };
            drop(spawn("task", task).await);
        }
        yield_now().await.unwrap();
    };
    kernel.run(main).unwrap();
    assert_eq!(dropped.load(Ordering::Relaxed), 4);
    drop(kernel);
    assert_eq!((dropped.load(Ordering::Relaxed), any_locals()), (8, false));
}

/// Not even if the job itself panics, or is dropped before it began, with its captures.
#[test]
fn values_that_panic_in_a_job_end_neither_its_thread_nor_the_process() {
    static FIRST: InheritedLocal<Dies> = InheritedLocal::new();
    static SECOND: InheritedLocal<Dies> = InheritedLocal::new();
    let dropped = Arc::new(AtomicU64::new(0));
    for ends in [false, true] {
        let mut kernel = Kernel::new(Sim::new().jobs_take(Duration::from_secs(1)));
        let main = async {
            let (first, second) = (Dies(dropped.clone()), Dies(dropped.clone()));
            let asks = async move {
                FIRST.set(first);
                SECOND.set(second);
                let job = run_in_thread(|| panic!("by design too"));
                // The job is the last owner of the values.
                drop(timeout_after(Duration::from_millis(1), job).await);
            };
            drop(spawn("asks", asks).await);
            sleep(Duration::from_millis(if ends { 2000 } else { 500 })).await.unwrap();
        };
        kernel.run(main).unwrap();
        drop(kernel);
    }
    assert_eq!((dropped.load(Ordering::Relaxed), any_locals()), (4, false));
}

#[test]
fn a_local_stays_with_its_task() {
    static NUMBER: TaskLocal<u32> = TaskLocal::new();
    static OTHER: TaskLocal<u32> = TaskLocal::new();
    on_sim(async {
        assert_eq!(NUMBER.get(), None);
        assert_eq!(NUMBER.set(1), None);
        assert_eq!(NUMBER.set(2), Some(Rc::new(1)), "what it had");
        assert_eq!(OTHER.get(), None, "one static is not another");
        OTHER.set(7);
        let mut child = spawn("child", async {
            let before = NUMBER.get();
            NUMBER.set(3);
            yield_now().await.unwrap();
            (before, NUMBER.get())
        })
        .await;
        yield_now().await.unwrap();
        assert_eq!(NUMBER.get(), Some(Rc::new(2)), "a child's is a child's");
        assert_eq!(child.join().await.unwrap(), (None, Some(Rc::new(3))));
        assert_eq!(NUMBER.take(), Some(Rc::new(2)));
        assert_eq!((NUMBER.take(), NUMBER.get()), (None, None));
        assert_eq!(OTHER.get(), Some(Rc::new(7)));
        // A task in the place of an ended task has none of its values.
        let mut fresh = spawn("fresh", async { NUMBER.get() }).await;
        assert_eq!(fresh.join().await, Ok(None));
    });
    assert!(!any_locals());
}

#[test]
fn children_start_with_what_their_parent_had_at_the_spawn() {
    static USER: InheritedLocal<String> = InheritedLocal::new();
    static REQUEST: InheritedLocal<u64> = InheritedLocal::new();
    let user = || USER.get().map(|user| user.to_string());
    on_sim(async {
        let mut early = spawn("early", async move { user() }).await;
        USER.set("ada".to_owned());
        REQUEST.set(17);
        let mut child = spawn("child", async move {
            let before = (user(), REQUEST.get());
            USER.set("charles".to_owned());
            // The child has two children: one before a change, one after it.
            let mut grandchild = spawn("grandchild", async move { (user(), REQUEST.get()) }).await;
            REQUEST.take();
            let mut last = spawn("last", async move { REQUEST.get() }).await;
            assert_eq!(last.join().await, Ok(None));
            (before, grandchild.join().await.unwrap(), user())
        })
        .await;
        // Between the spawn and the child's first run.
        let before = USER.set("grace".to_owned());
        assert_eq!(before.as_deref().map(String::as_str), Some("ada"));
        assert_eq!(early.join().await, Ok(None));
        let (before, grandchild, after) = child.join().await.unwrap();
        let request = Some(Arc::new(17));
        assert_eq!(before, (Some("ada".to_owned()), request.clone()));
        assert_eq!(grandchild, (Some("charles".to_owned()), request.clone()));
        assert_eq!(after.as_deref(), Some("charles"));
        assert_eq!((user(), REQUEST.get()), (Some("grace".to_owned()), request));
    });
    assert!(!any_locals());
}

#[test]
fn members_of_a_group_inherit_as_other_children_do() {
    static USER: InheritedLocal<String> = InheritedLocal::new();
    static OWN: TaskLocal<u32> = TaskLocal::new();
    on_sim(async {
        OWN.set(1);
        USER.set("ada".to_owned());
        let mut group = TaskGroup::<_, traps::Error>::new();
        group.spawn("member", async { Ok((USER.get(), OWN.get())) }).await;
        let outputs = group.join().await.unwrap();
        assert_eq!(outputs, [(Some(Arc::new("ada".to_owned())), None)]);
    });
}

/// A copy is a second handle to the same value, not a second value.
#[test]
fn a_value_is_shared_and_not_cloned() {
    static SHARED: InheritedLocal<Vec<u8>> = InheritedLocal::new();
    on_sim(async {
        let value = Arc::new(vec![1, 2, 3]);
        SHARED.set(value.clone());
        let mut children = Vec::new();
        for _ in 0..3 {
            children.push(spawn("child", async { SHARED.get().unwrap() }).await);
        }
        for child in &mut children {
            assert!(Arc::ptr_eq(&child.join().await.unwrap(), &value));
        }
    });
}

#[test]
fn outside_a_task_there_is_nothing_to_get() {
    static NUMBER: TaskLocal<u32> = TaskLocal::new();
    static USER: InheritedLocal<u32> = InheritedLocal::new();
    let nothing = || NUMBER.get().is_none() && USER.get().is_none() && NUMBER.take().is_none();
    assert!(nothing());
    let mut kernel = Kernel::new(Sim::new());
    kernel.run(async { NUMBER.set(1) }).unwrap();
    assert!(nothing());
    kernel.run(async { assert!(nothing(), "of the main before") }).unwrap();
    assert!(std::thread::spawn(|| NUMBER.get().is_none()).join().unwrap());
}

#[test]
#[should_panic(expected = "rule: a local is set by a task; the one at traps/tests/all/locals.rs")]
fn a_local_that_is_set_outside_a_task_breaks_a_rule() {
    static NUMBER: TaskLocal<u32> = TaskLocal::new();
    NUMBER.set(1);
}

#[test]
#[should_panic(expected = "rule: a local is set by a task; the one at traps/tests/all/locals.rs")]
fn an_inherited_local_too() {
    static USER: InheritedLocal<u32> = InheritedLocal::new();
    USER.set(1);
}

#[test]
fn tasks_without_locals_cost_no_entry() {
    static USER: InheritedLocal<u32> = InheritedLocal::new();
    static OWN: TaskLocal<u32> = TaskLocal::new();
    on_sim(async {
        let mut idle = spawn("idle", sleep(secs(1))).await;
        assert!(USER.get().is_none() && OWN.take().is_none());
        assert!(!any_locals());
        OWN.set(1);
        assert!(any_locals());
        idle.join().await.unwrap().unwrap();
    });
}

/// However a task ends, its values go with it.
#[test]
fn values_are_freed_when_their_task_ends() {
    static VALUE: TaskLocal<Counted> = TaskLocal::new();
    let alive = Rc::new(Cell::new(0));
    let set = |alive: &Rc<Cell<i32>>| {
        let value = Counted::new(alive);
        move || drop(VALUE.set(value))
    };
    let (_, trace) = on_sim(async {
        let set_it = set(&alive);
        let mut returns = spawn("returns", async move { set_it() }).await;
        let set_it = set(&alive);
        let mut panics = spawn("panics", async move {
            set_it();
            panic!("it does");
        })
        .await;
        let set_it = set(&alive);
        let mut group = TaskGroup::<(), traps::Error>::new().grace(secs(1));
        let stubborn = async move {
            set_it();
            loop {
                let _ = sleep(secs(5)).await;
            }
        };
        group.spawn("dropped", stubborn).await;
        returns.join().await.unwrap();
        assert!(panics.join().await.is_err());
        assert_eq!(alive.get(), 1, "the stubborn one's");
        assert!(traps::timeout_after(secs(1), group.join()).await.is_err());
        assert_eq!(alive.get(), 0);
        let set_it = set(&alive);
        drop(
            spawn("left to the shutdown", async move {
                set_it();
                sleep(secs(99)).await
            })
            .await,
        );
        yield_now().await.unwrap();
        assert_eq!(alive.get(), 1);
    });
    assert_eq!(alive.get(), 0);
    assert_lines(&trace, "exit     dropped", 1);
}

#[test]
fn values_are_freed_when_their_kernel_goes() {
    static VALUE: TaskLocal<Counted> = TaskLocal::new();
    let alive = Rc::new(Cell::new(0));
    for is_shut_down in [false, true] {
        let mut kernel = Kernel::new(Sim::new());
        let value = Counted::new(&alive);
        kernel
            .run(async {
                let task = async move {
                    VALUE.set(value);
                    sleep(secs(1)).await.unwrap();
                    VALUE.get().is_some()
                };
                let task = spawn("task", task).await;
                yield_now().await.unwrap();
                task
            })
            .map(std::mem::forget)
            .unwrap();
        assert_eq!((alive.get(), any_locals()), (1, true));
        if is_shut_down {
            kernel.shutdown().unwrap();
        } else {
            drop(kernel);
        }
        assert_eq!((alive.get(), any_locals()), (0, false));
    }
}

/// The drop of a value can use the table that held the value.
#[test]
fn a_value_is_never_dropped_while_the_table_is_borrowed() {
    static INNER: TaskLocal<u32> = TaskLocal::new();
    static OUTER: TaskLocal<OnDrop<Box<dyn FnMut()>>> = TaskLocal::new();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let value = |seen: &Rc<RefCell<Vec<Option<u32>>>>| {
        let seen = seen.clone();
        let look: Box<dyn FnMut()> = Box::new(move || {
            seen.borrow_mut().push(INNER.get().map(|inner| *inner));
        });
        OnDrop(look)
    };
    let mut kernel = Traced::new(Sim::new(), Options::new());
    kernel.go(async {
        INNER.set(1);
        OUTER.set(value(&seen));
        drop(OUTER.set(value(&seen)));
        drop(OUTER.take());
        assert_eq!(seen.take(), [Some(1), Some(1)], "in the task");
        OUTER.set(value(&seen));
        let theirs = value(&seen);
        drop(
            spawn("parked", async move {
                OUTER.set(theirs);
                sleep(secs(1)).await
            })
            .await,
        );
        yield_now().await.unwrap();
    });
    assert_eq!(seen.take(), [None], "main has ended");
    drop(kernel);
    assert_eq!(seen.take(), [None], "and so has the kernel");
}

/// A future that is dropped in the middle of another task's run has no task.
#[test]
fn a_dropped_member_does_not_see_the_joiners_locals() {
    static NUMBER: TaskLocal<u32> = TaskLocal::new();
    let seen = Rc::new(Cell::new(Some(Rc::new(9))));
    let theirs = seen.clone();
    on_sim(async {
        NUMBER.set(1);
        let mut group = TaskGroup::<(), traps::Error>::new().grace(secs(1));
        let guard = OnDrop(move || theirs.set(NUMBER.get()));
        let stubborn = async move {
            let _guard = guard;
            loop {
                let _ = sleep(secs(5)).await;
            }
        };
        group.spawn("stubborn", stubborn).await;
        assert!(traps::timeout_after(secs(1), group.join()).await.is_err());
        assert_eq!(NUMBER.get(), Some(Rc::new(1)));
    });
    assert_eq!(seen.take(), None);
}

#[test]
fn two_runs_of_one_program_are_the_same_bytes() {
    static USER: InheritedLocal<u32> = InheritedLocal::new();
    static OWN: TaskLocal<u32> = TaskLocal::new();
    let program = || async {
        for n in 0..4 {
            USER.set(n);
            OWN.set(n);
            drop(spawn("child", async { USER.get().map(|user| *user) }).await);
        }
        yield_now().await.unwrap();
    };
    assert_eq!(on_sim(program()).1, on_sim(program()).1);
}

#[test]
fn a_detached_child_gets_the_values_as_they_were_when_it_was_spawned() {
    static USER: InheritedLocal<u32> = InheritedLocal::new();
    let (seen, _) = on_sim(async {
        let seen = Rc::new(Cell::new(None));
        let sees = seen.clone();
        USER.set(1);
        let child = async move { sees.set(USER.get().map(|user| *user)) };
        spawn("child", child).detached().await;
        USER.set(2);
        yield_now().await.unwrap();
        seen.get()
    });
    assert_eq!(seen, Some(1));
}

#[test]
fn values_of_other_tasks_change_no_line_of_one_that_spawns_detached() {
    static USER: InheritedLocal<u32> = InheritedLocal::new();
    static NAME: TaskLocal<&str> = TaskLocal::new();
    let program = |has_values: bool| {
        on_sim(async move {
            let other = async move {
                if has_values {
                    USER.set(1);
                    NAME.set("other");
                }
                never::<()>().await;
            };
            spawn("other", other).detached().await;
            yield_now().await.unwrap();
            assert_eq!(any_locals(), has_values);
            let both = (sleep(secs(1)), spawn("child", async {}).detached());
            futures_util::join!(both.0, both.1).0.unwrap();
        })
    };
    assert_eq!(program(true).1, program(false).1);
}
