//! The numbers and times of the lines that a user sees at level `info` are those of the full trace.
//!
//! One test in a program of its own: the `log` facade is one for all threads.

use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use kernel::{Kernel, Options, Sim, SimClock};
use log::{Level, LevelFilter, Log, Metadata, Record};
use traps::io::{Direction, Io, Scripted};
use traps::{
    Interrupt, Time, WaitQueue, connection_deadline, idle_watchdog, join, note_cap, note_warning,
    shield, sleep, spawn, timeout_after, yield_now,
};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collect;

impl Log for Collect {
    fn enabled(&self, line: &Metadata<'_>) -> bool {
        line.level() <= Level::Info
    }

    fn log(&self, line: &Record<'_>) {
        if self.enabled(line.metadata()) {
            SEEN.lock().unwrap().push(line.args().to_string());
        }
    }

    fn flush(&self) {}
}

/// A deadline that says what becomes of it, armed near and far, in and out of guards.
async fn connection() {
    let deadline = connection_deadline().await;
    note_warning("made");
    deadline.arm(10 * SECOND);
    note_warning("armed once");
    deadline.arm(MS);
    deadline.arm(20 * SECOND);
    note_warning("armed thrice");
    deadline.disarm();
    deadline.disarm();
    note_cap("disarmed");
    let guarded = async {
        note_warning("guarded");
        deadline.arm(SECOND);
        deadline.arm(2 * SECOND);
        sleep(SECOND).await
    };
    deadline.guard(10 * SECOND, guarded).await.unwrap();
    note_warning("out");
    let timed = timeout_after(SECOND, deadline.guard(3 * SECOND, sleep(5 * SECOND))).await;
    note_warning(format!("{timed:?}"));
    let fired = deadline.guard(SECOND, shield(sleep(3 * SECOND))).await;
    note_cap(format!("{} {:?}", deadline.fired(), fired.is_ok()));
    deadline.arm(5 * SECOND);
}

async fn panics() {
    let deadline = connection_deadline().await;
    let guarded = async {
        sleep(SECOND).await?;
        deadline.arm(7 * SECOND);
        std::panic::resume_unwind(Box::new("as meant"))
    };
    deadline.guard(5 * SECOND, guarded).await.map_err(|_: traps::Interrupt| ()).unwrap()
}

/// Timeouts that are over at once: what comes after them has the time and the turn that it would
/// have had without.
async fn at_once(clock: SimClock) {
    drop(spawn("long", sleep(3600 * SECOND)).await);
    sleep(SECOND).await.unwrap();
    clock.advance(10 * MS);
    timeout_after(SECOND, async { Ok::<_, Interrupt>(()) }).await.unwrap();
    note_warning("in the same run");
    yield_now().await.unwrap();
    timeout_after(10 * SECOND, async { Ok::<_, Interrupt>(()) }).await.unwrap();
    sleep(100 * SECOND).await.unwrap();
    note_warning("after a wait");
    let late = async {
        clock.advance(2 * SECOND);
        Ok::<_, Interrupt>(())
    };
    timeout_after(SECOND, late).await.unwrap();
    note_warning("after one that was late");
}

/// Tasks that a poll tells of, with arms between them that it tells only where somebody listens.
async fn tells_of_many() {
    let deadline = connection_deadline().await;
    let mut told = 0;
    for _ in 0..100 {
        deadline.arm(20 * SECOND);
        // One that is asked for is given up.
        let mut spawned = spawn("many", async {}).detached();
        told += poll_fn(|cx| Poll::Ready(u32::from(spawned.poll_unpin(cx).is_ready()))).await;
    }
    note_warning(format!("of {told} tasks"));
}

async fn program() {
    // Nothing has a timer while this waits.
    Io::new(Scripted(1)).readable().await.unwrap();
    let mut victim = spawn("victim", WaitQueue::new().wait()).await;
    yield_now().await.unwrap();
    victim.cancel_now("test").await;
    let told = victim.join().await.unwrap().unwrap_err();
    connection_deadline().await.arm(MS);
    note_warning(format!("at its time, {}", told.reading()));
    join(connection(), connection()).await;
    connection_deadline().await.arm(MS);
    spawn("told", connection()).detached().await;
    note_warning("between");
    connection_deadline().await.arm(MS);
    spawn("told", async { note_warning("in a child") }).detached().await;
    sleep(100 * SECOND).await.unwrap();
    tells_of_many().await;
    let mut panicked = spawn("panics", panics()).await;
    panicked.join().await.unwrap_err();
    let watchdog = idle_watchdog(SECOND, || note_warning("idle")).await;
    let talk = async {
        watchdog.touch();
        sleep(3 * SECOND).await
    };
    watchdog.watch(talk).await.unwrap();
    // Left to the shutdown, in a guard.
    drop(spawn("left", connection()).await);
    sleep(500 * MS).await.unwrap();
}

/// A main that panics in the poll that opened and closed a timeout, perhaps beside more.
fn main_that_panics(traced: bool, alone: bool) {
    let sim = Sim::new();
    let clock = sim.clock();
    let mut kernel = Kernel::new(sim);
    if traced {
        kernel.trace_to(io::sink());
    }
    let panics = async {
        if !alone {
            at_once(clock).await;
        }
        timeout_after(SECOND, async { Ok::<_, Interrupt>(()) }).await.unwrap();
        std::panic::resume_unwind(Box::new("as meant"))
    };
    let ran = catch_unwind(AssertUnwindSafe(|| kernel.run(panics)));
    ran.map(|never: Result<(), _>| never.unwrap()).unwrap_err();
    SEEN.lock().unwrap().push(format!("{} traps", kernel.counters().traps));
}

/// A shutdown that is asked for in a run that arms: its line names a line that nobody saw.
fn shut_down_from_outside(traced: bool) {
    let mut kernel = Kernel::new(Sim::new());
    if traced {
        kernel.trace_to(io::sink());
    }
    let remote = kernel.remote();
    let main = async {
        let deadline = connection_deadline().await;
        deadline.arm(10 * SECOND);
        remote.shut_down("over").unwrap();
        yield_now().await.unwrap();
    };
    kernel.run(main).unwrap();
    kernel.shutdown().unwrap();
}

fn lines(traced: bool) -> Vec<String> {
    let sim = Sim::new().ready_at(Time::ZERO + 3 * SECOND, 1, Direction::Read);
    let mut kernel = Kernel::with_options(sim, Options::new().grace(Duration::ZERO));
    if traced {
        kernel.trace_to(io::sink());
    }
    kernel.run(program()).unwrap();
    kernel.shutdown().unwrap();
    for alone in [true, false] {
        main_that_panics(traced, alone);
    }
    shut_down_from_outside(traced);
    std::mem::take(&mut SEEN.lock().unwrap())
}

#[test]
fn the_numbers_and_times_of_lines_at_info_are_those_of_the_full_trace() {
    log::set_logger(&Collect).unwrap();
    log::set_max_level(LevelFilter::Info);
    let (quiet, traced) = (lines(false), lines(true));
    assert!(quiet.len() > 20, "{quiet:#?}");
    assert_eq!(quiet, traced);
}
