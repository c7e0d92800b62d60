//! The cases of Curio's `test_kernel.py`, rewritten. A test has the name of its case without
//! `test_`. The guide has the table of all cases, on the page `curio`.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, RunError, Sim, SimClock};
use support::{Notes, at, ms, op, short, tenths};
use testing::{Ran, Setup, run};
use traps::internal::panic_message;
use traps::io::{Direction, Io, Scripted};
use traps::sync::Event;
use traps::universal::UniversalQueue;
use traps::{
    Error, Interrupt, Kind, Task, check_cancellation, ignore_after, shield, spawn, timeout_after,
    yield_now,
};

/// Sleeps for `tenth` tenths of a second. Notes `NAME:start`, and `NAME:done` unless interrupted.
async fn coro(notes: &Notes, name: &str, tenth: u64) -> Result<(), Interrupt> {
    notes.add(format!("{name}:start"));
    op(tenth).await?;
    notes.add(format!("{name}:done"));
    Ok(())
}

/// Runs a main future that can move the clock while it holds the CPU.
fn run_with_clock<F: Future>(main: impl FnOnce(SimClock) -> F) -> Ran<F::Output> {
    let sim = Sim::new();
    let clock = sim.clock();
    Setup::new().sim(sim).run(main(clock))
}

// ---- Run, sleep, clock -------------------------------------------------------------------------

#[test]
fn hello() {
    let mut kernel = Kernel::new(Sim::new());
    assert_eq!(kernel.run(async { "hello" }).unwrap(), "hello");
    kernel.shutdown().unwrap();
}

#[test]
fn raise() {
    let mut kernel = Kernel::new(Sim::new());
    let output = kernel.run(async { Err::<(), _>(io::Error::other("boom")) }).unwrap();
    assert_eq!(output.unwrap_err().to_string(), "boom");
    kernel.shutdown().unwrap();
}

#[test]
fn sleep() {
    let ran = run(async { traps::sleep(ms(500)).await.unwrap() });
    assert_eq!((ran.took, ran.output), (ms(500), at(5)));
}

#[test]
fn clock() {
    let ran = run(async {
        let start = traps::clock().await;
        op(1).await.unwrap();
        traps::clock().await.since(start)
    });
    assert_eq!(ran.output, tenths(1));
}

#[test]
fn sleep_cancel() {
    let ran = run(async {
        let mut sleeper = spawn("sleeper", op(10)).await;
        op(1).await.unwrap();
        sleeper.cancel_because("").await.unwrap();
        short(&sleeper.join().await.unwrap())
    });
    assert_eq!((ran.output, ran.took), ("CAN", tenths(1)));
}

#[test]
fn sleep_timeout() {
    let ran = run(async {
        let mut sleeper = spawn("sleeper", timeout_after(tenths(1), op(10))).await;
        short(&sleeper.join().await.unwrap())
    });
    assert_eq!((ran.output, ran.took), ("TT", tenths(1)));
}

#[test]
fn sleep_ignore_timeout() {
    let ran = run(async {
        let sleeper = async {
            let call = ignore_after(tenths(1), op(10)).await;
            let block = ignore_after(tenths(1), async { op(10).await.map(drop) }).await;
            (call, block)
        };
        spawn("sleeper", sleeper).await.join().await.unwrap()
    });
    assert_eq!((ran.output, ran.took), ((Ok(None), Ok(None)), tenths(2)));
}

#[test]
fn sleep_notimeout() {
    let ran = run(async {
        let sleeper = async {
            let inside = timeout_after(tenths(5), op(1)).await;
            (inside, op(5).await)
        };
        spawn("sleeper", sleeper).await.join().await.unwrap()
    });
    assert_eq!(ran.output, (Ok(at(1)), Ok(at(6))), "the timeout does not hit what comes after it");
}

// ---- Join and cancel ---------------------------------------------------------------------------

#[test]
fn task_join() {
    let ran = run(async { spawn("child", async { 37 }).await.join().await });
    assert_eq!(ran.output, Ok(37));
}

#[test]
fn task_join_error() {
    let ran = run(async {
        let mut fails = spawn("fails", async { "bad".parse::<i32>() }).await;
        let panics = spawn("panics", async { "bad".parse::<i32>().expect("a number") });
        let mut panics = panics.await;
        (fails.join().await.unwrap().is_err(), panics.join().await)
    });
    let (failed, panicked) = ran.output;
    assert!(failed, "an error is the child's output");
    assert!(matches!(panicked, Err(Error::Panicked(message)) if message.contains("a number")));
}

#[test]
fn task_cancel() {
    run(async {
        let cancelled = Rc::new(Cell::new(false));
        let seen = cancelled.clone();
        let child = async move { seen.set(op(5).await.is_err_and(|why| why.is_cancelled())) };
        let child = spawn("child", child).await;
        child.cancel_because("").await.unwrap();
        assert!(cancelled.get(), "cancel waits for the end");
    });
}

#[test]
fn task_cancel_poll() {
    let notes = Notes::default();
    run(async {
        let noted = notes.clone();
        let child = shield(async move {
            op(1).await.unwrap();
            noted.add("success");
            noted.add(short(&check_cancellation().await));
        });
        spawn("child", child).await.cancel_because("").await.unwrap();
        notes.add("done");
    });
    assert_eq!(notes.text(), "success CAN done");
}

#[test]
fn task_cancel_not_blocking() {
    let ran = run(async {
        let (started, go_on) = (Rc::new(Event::new()), Rc::new(Event::new()));
        let (start, wait) = (started.clone(), go_on.clone());
        let child = async move {
            start.set();
            let hit = op(10_000).await;
            wait.wait().await.unwrap();
            hit
        };
        let mut child = spawn("child", child).await;
        started.wait().await.unwrap();
        child.cancel_now("");
        go_on.set();
        short(&child.join().await.unwrap())
    });
    assert_eq!(ran.output, "CAN");
}

#[test]
fn task_cancel_join() {
    let ran = run(async {
        let event = Event::new();
        let mut child = spawn("child", async move { event.wait().await }).await;
        yield_now().await.unwrap();
        child.cancel_because("").await.unwrap();
        short(&child.join().await.unwrap())
    });
    assert_eq!(ran.output, "CAN");
}

#[test]
fn task_cancel_join_wait() {
    run(async {
        let event = Rc::new(Event::new());
        let waits = event.clone();
        let child = Rc::new(spawn("child", async move { waits.wait().await }).await);
        let cancelled = child.clone();
        let canceller = async move { cancelled.cancel_because("").await };
        spawn("canceller", canceller).await.join().await.unwrap().unwrap();
        assert!(!event.is_set());
        let mut child = Rc::into_inner(child).expect("the canceller has ended");
        assert_eq!(short(&child.join().await.unwrap()), "CAN");
    });
}

/// Sleeps while its child runs. If it is cancelled, it cancels the child first.
async fn parent(notes: Notes, name: &'static str, child: Task<()>) {
    if op(5).await.is_err() {
        child.cancel_because("").await.unwrap();
        notes.add(format!("{name}:cancelled"));
    }
}

#[test]
fn task_child_cancel() {
    let notes = Notes::default();
    run(async {
        let noted = notes.clone();
        let child = async move {
            noted.add("start");
            assert!(op(5).await.is_err());
            noted.add("child:cancelled");
        };
        let child = spawn("child", child).await;
        let middle = spawn("parent", parent(notes.clone(), "parent", child)).await;
        let oldest = parent(notes.clone(), "grandparent", middle);
        let oldest = spawn("grandparent", oldest).await;
        op(2).await.unwrap();
        notes.add("cancelling");
        oldest.cancel_because("").await.unwrap();
        notes.add("done");
    });
    let order = "start cancelling child:cancelled parent:cancelled grandparent:cancelled done";
    assert_eq!(notes.text(), order);
}

#[test]
fn task_ready_cancel() {
    let notes = Notes::default();
    run_with_clock(|clock| async move {
        let noted = notes.clone();
        let child = async move {
            noted.add("child:sleep");
            op(10).await.unwrap();
            noted.add("child:slept");
            noted.add(format!("child:{}", short(&op(10).await)));
        };
        let noted = notes.clone();
        let parent = async move {
            let child = spawn("child", child).await;
            noted.add("parent:sleep");
            op(5).await.unwrap();
            noted.add("cancel");
            child.cancel_because("").await.unwrap();
            noted.add("cancelled");
        };
        let mut parent = spawn("parent", parent).await;
        op(1).await.unwrap();
        // Both sleeps are over before either task runs.
        clock.advance(tenths(10));
        parent.join().await.unwrap();
        let order = "parent:sleep child:sleep cancel child:slept child:CAN cancelled";
        assert_eq!(notes.text(), order);
    });
}

#[test]
fn double_cancel() {
    let notes = Notes::default();
    run(async {
        let noted = notes.clone();
        let sleeper = async move {
            noted.add("start");
            assert!(op(10).await.is_err());
            noted.add("request");
            noted.add(format!("cleaned:{}", short(&op(10).await)));
        };
        let sleeper = spawn("sleeper", sleeper).await;
        op(5).await.unwrap();
        let first = timeout_after(tenths(5), sleeper.cancel_because("first")).await;
        notes.add(format!("retry:{}", short(&first)));
        sleeper.cancel_because("second").await.unwrap();
        notes.add("done");
    });
    assert_eq!(notes.text(), "start request retry:TT cleaned:ok done");
}

#[test]
fn custom_cancel() {
    run(async {
        let event = Event::new();
        let child = async move { event.wait().await.unwrap_err() };
        let mut child = spawn("child", child).await;
        yield_now().await.unwrap();
        child.cancel_because("out of paper").await.unwrap();
        let why = child.join().await.unwrap();
        assert_eq!((why.kind(), why.reason()), (Kind::Cancelled, "out of paper"));
    });
}

// ---- Timeouts ----------------------------------------------------------------------------------

#[test]
fn nested_timeout() {
    let notes = Notes::default();
    run(async {
        let child = async {
            let first = timeout_after(tenths(50), coro(&notes, "first", 10)).await;
            notes.add(format!("first:{}", short(&first)));
            coro(&notes, "second", 10).await
        };
        let parent = timeout_after(ms(750), child).await;
        notes.add(format!("parent:{}", short(&parent)));
    });
    assert_eq!(notes.text(), "first:start first:TCE second:start parent:TT");
}

#[test]
fn nested_context_timeout2() {
    let notes = Notes::default();
    let ran = run(async {
        let inner = async {
            let result = timeout_after(tenths(100), op(50)).await;
            notes.add(format!("inner:{}", short(&result)));
            result
        };
        let middle = async {
            let result = timeout_after(tenths(150), inner).await;
            notes.add(format!("middle:{}", short(&result)));
            result
        };
        short(&timeout_after(tenths(1), middle).await)
    });
    assert_eq!(notes.text(), "inner:TCE middle:TCE");
    assert_eq!((ran.output, ran.took), ("TT", tenths(1)));
}

#[test]
fn nested_timeout_uncaught() {
    let notes = Notes::default();
    let ran = run(async {
        let child = timeout_after(tenths(10), coro(&notes, "child", 50));
        short(&timeout_after(tenths(100), child).await)
    });
    assert_eq!(notes.text(), "child:start");
    assert_eq!((ran.output, ran.took), ("UTE", tenths(10)));
}

#[test]
fn nested_timeout_none() {
    let notes = Notes::default();
    let ran = run(async {
        let child = timeout_after(None, coro(&notes, "child", 20));
        short(&timeout_after(tenths(10), child).await)
    });
    assert_eq!(notes.text(), "child:start");
    assert_eq!((ran.output, ran.took), ("TT", tenths(10)));
}

/// Curio drops the deadline at the cancellation; here it ends the clean-up.
#[test]
fn task_cancel_timeout() {
    let notes = Notes::default();
    run(async {
        let noted = notes.clone();
        let child = async move {
            let block = timeout_after(tenths(10), async {
                let hit = op(50).await;
                noted.add(short(&hit));
                noted.add(format!("cleaned:{}", short(&op(10).await)));
                hit
            });
            noted.add(short(&block.await));
        };
        let child = spawn("child", child).await;
        op(5).await.unwrap();
        child.cancel_because("").await.unwrap();
        assert_eq!(traps::clock().await, at(10));
    });
    assert_eq!(notes.text(), "CAN cleaned:TT CAN");
}

#[test]
fn timeout_badness() {
    let ran = run_with_clock(|clock| async move {
        let block = timeout_after(tenths(1), async {
            clock.advance(tenths(2));
            Ok::<_, Interrupt>("no trap, so nothing to interrupt")
        });
        (block.await.is_ok(), op(1).await.is_ok())
    });
    assert_eq!(ran.output, (true, true));
    assert_eq!(ran.trace.matches(" late ").count(), 1, "{}", ran.trace);
}

#[test]
fn kernel_multischedule() {
    run_with_clock(|clock| async move {
        let sleeper = async {
            let inside = timeout_after(ms(500), traps::sleep(ms(250))).await.is_ok();
            (inside, op(1).await.is_ok())
        };
        let mut sleeper = spawn("sleeper", sleeper).await;
        op(1).await.unwrap();
        // The sleep and the timeout around it are both over.
        clock.advance(tenths(10));
        assert_eq!(sleeper.join().await, Ok((true, true)));
    });
}

// ---- Fairness, descriptors ---------------------------------------------------------------------

#[test]
fn ping_pong_starvation() {
    run(async {
        let (one, two) = (UniversalQueue::new(1), UniversalQueue::new(1));
        one.try_put("ball").unwrap();
        let player = |from: UniversalQueue<_>, to: UniversalQueue<_>| async move {
            while let Ok(ball) = from.get().await {
                to.put(ball).await.unwrap();
            }
        };
        let ping = spawn("ping", player(one.clone(), two.clone())).await;
        let pong = spawn("pong", player(two, one)).await;
        let survivor = async {
            for _ in 0..10 {
                yield_now().await.unwrap();
            }
            "survived"
        };
        assert_eq!(spawn("survivor", survivor).await.join().await, Ok("survived"));
        ping.cancel_because("").await.unwrap();
        pong.cancel_because("").await.unwrap();
    });
}

#[test]
fn io_registration() {
    let sim = Sim::new().ready_at(at(1), 1, Direction::Read);
    Setup::new().sim(sim).run(async {
        let io = Rc::new(Io::new(Scripted(1)));
        let wait = |name, direction| {
            let (io, here) = (io.clone(), Location::caller());
            spawn(name, async move { io.ready(direction, here).await })
        };
        let mut reader = wait("reader", Direction::Read).await;
        let mut writer = wait("writer", Direction::Write).await;
        let mut second_reader = wait("second reader", Direction::Read).await;
        let mut second_writer = wait("second writer", Direction::Write).await;
        assert_eq!(second_reader.join().await, Ok(Err(Error::Busy)));
        assert_eq!(second_writer.join().await, Ok(Err(Error::Busy)));
        writer.cancel_because("").await.unwrap();
        assert_eq!(short(&writer.join().await.unwrap()), "CAN");
        assert_eq!(reader.join().await, Ok(Ok(())));
    });
}

// ---- The end of a run, and tasks after it ------------------------------------------------------

#[test]
fn task_run_error() {
    let mut kernel = Kernel::new(Sim::new());
    let main = async {
        op(1).await.unwrap();
        "bad".parse::<i32>()
    };
    assert!(kernel.run(main).unwrap().is_err());
    kernel.shutdown().unwrap();
}

#[test]
fn reentrant_kernel() {
    let mut kernel = Kernel::new(Sim::new());
    let refused = kernel.run(async {
        let inner = catch_unwind(|| drop(Kernel::new(Sim::new())));
        panic_message(&*inner.unwrap_err()).to_owned()
    });
    assert!(refused.unwrap().starts_with("rule: a thread has one kernel at a time"));
    kernel.shutdown().unwrap();
}

#[test]
fn single_stepping() {
    let mut kernel = Kernel::new(Sim::new());
    let value = Rc::new(Cell::new(0));
    let set = value.clone();
    let child = async move {
        yield_now().await.unwrap();
        set.set(1);
        op(1).await.unwrap();
        set.set(2);
    };
    let child = kernel.run(async { spawn("child", child).await }).unwrap();
    let mut steps = 0;
    while value.get() < 1 {
        kernel.run(async { yield_now().await.unwrap() }).unwrap();
        steps += 1;
    }
    assert!(steps <= 2, "{steps} steps");
    kernel.machine().clock().advance(tenths(2));
    kernel.run(async { yield_now().await.unwrap() }).unwrap();
    assert_eq!(value.get(), 2);
    drop(child);
    kernel.shutdown().unwrap();
}

#[test]
fn kernel_no_shutdown() {
    drop(Kernel::new(Sim::new()));
    let mut kernel = Kernel::new(Sim::new());
    kernel.shutdown().unwrap();
    assert!(matches!(kernel.run(async {}), Err(RunError::Shut)));
}

#[test]
fn kernel_exit() {
    let mut kernel = Kernel::new(Sim::new());
    let cleaned = Rc::new(Cell::new(false));
    let seen = cleaned.clone();
    let main = async move {
        let child = async move { seen.set(op(9).await.is_err()) };
        spawn("child", child).detached().await;
        yield_now().await.unwrap();
        panic!("exit");
    };
    let ended = catch_unwind(AssertUnwindSafe(|| kernel.run(main)));
    assert!(ended.is_err(), "the panic of main comes out of run");
    assert!(cleaned.get(), "and the kernel has been shut down before");
}

#[test]
fn kernel_debug() {
    let ran = run(async { traps::sleep(Duration::ZERO).await.unwrap() });
    for verb in ["run ", "block ", "exit "] {
        assert!(ran.trace.contains(&format!(" main     {verb}")), "{verb}\n{}", ran.trace);
    }
}
