//! The watchdog: it names the task that holds the CPU, and is silent while no task does. The real
//! clock is the subject here. Only lower bounds of durations are asserted.

use std::fs;
use std::hint;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kernel::{Kernel, Options, Real, Sim, Stuck};
use testing::child;
use traps::{sleep, spawn, yield_now};

const MS: Duration = Duration::from_millis(1);

/// Threads are counted by name, so one test of them runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watched(span: Duration) -> Kernel<Real> {
    Kernel::with_options(Real::new().unwrap(), Options::new().watchdog(Some(span)))
}

/// Returns the folders of the watchdog threads of this process.
fn threads() -> Vec<PathBuf> {
    let all = fs::read_dir("/proc/self/task").unwrap().map(|entry| entry.unwrap().path());
    // Linux keeps fifteen letters of a name.
    let named = |path: &PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "trapline-watchd")
    };
    all.filter(named).collect()
}

/// Holds the CPU until `calls` counts `words` reports, for a minute at most.
fn spin_until(calls: &AtomicUsize, words: usize) {
    let start = Instant::now();
    while calls.load(Ordering::SeqCst) < words && start.elapsed() < 60_000 * MS {
        hint::spin_loop();
    }
}

#[test]
fn a_task_that_is_stuck_is_named_while_it_is_and_once_more_when_it_is_not() {
    let _alone = alone();
    let said: Arc<Mutex<Vec<Stuck>>> = Arc::default();
    let calls = Arc::new(AtomicUsize::new(0));
    let mut kernel = watched(20 * MS);
    let (theirs, counted) = (said.clone(), calls.clone());
    kernel.on_stuck(move |stuck| {
        theirs.lock().unwrap().push(stuck.clone());
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let ours = calls.clone();
    let spin = async move {
        yield_now().await.unwrap();
        spin_until(&ours, 3);
    };
    kernel.run(async { spawn("spin", spin).await.join().await.unwrap() }).unwrap();
    drop(kernel);
    let said = said.lock().unwrap();
    let stuck: Vec<&Stuck> = said.iter().filter(|stuck| stuck.name == "spin").collect();
    assert!(stuck.len() >= 4, "{said:?}");
    for (nth, word) in stuck.iter().enumerate() {
        assert_eq!(word.task, 3);
        assert!(word.spawned_at.contains("stuck.rs:"), "{word}");
        assert_eq!(word.over, nth + 1 == stuck.len(), "{said:?}");
        assert!(word.cpu.unwrap() <= word.lasted, "{word}");
        if !word.over {
            assert!(word.lasted >= 20 * MS * (1 << nth), "again when it has doubled: {said:?}");
        }
    }
    assert!(!stuck[stuck.len() - 1].cpu.unwrap().is_zero(), "it computed");
    let (first, last) = (stuck[0].to_string(), stuck[stuck.len() - 1].to_string());
    assert!(first.starts_with("stuck: task 3 spin has run for "), "{first}");
    assert!(last.starts_with("stuck no more: task 3 spin ran for about "), "{last}");
}

#[test]
fn a_hook_that_is_set_late_and_panics_is_called_again() {
    let _alone = alone();
    let calls = Arc::new(AtomicUsize::new(0));
    let mut kernel = watched(5 * MS);
    // The thread exists before the hook.
    kernel.run(async {}).unwrap();
    let counted = calls.clone();
    kernel.on_stuck(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        panic!("not again");
    });
    kernel.run(async { spin_until(&calls, 2) }).unwrap();
    drop(kernel);
    assert!(calls.load(Ordering::SeqCst) >= 3);
}

#[test]
fn it_starts_with_the_first_run_and_ends_with_the_kernel() {
    let _alone = alone();
    let mut kernel = watched(1000 * MS);
    assert_eq!(threads().len(), 0);
    kernel.run(async {}).unwrap();
    kernel.run(async {}).unwrap();
    while threads().is_empty() {
        std::thread::yield_now(); // it has yet to name itself
    }
    assert_eq!(threads().len(), 1);
    kernel.shutdown().unwrap();
    drop(kernel);
    assert_eq!(threads().len(), 0);
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel.run(async {}).unwrap();
    assert_eq!(threads().len(), 0, "it is off unless it is asked for");
}

#[test]
fn it_never_enters_the_trace() {
    let _alone = alone();
    let trace = |options: Options| {
        let program = async {
            let mut child = spawn("child", sleep(MS)).await;
            yield_now().await.unwrap();
            child.join().await.unwrap().unwrap();
        };
        testing::Setup::new().sim(Sim::new()).options(options).run(program).trace
    };
    let on = Options::new().watchdog(Some(MS));
    let (with, without) = (trace(on), trace(Options::new()));
    assert_eq!(with, without);
}

/// `examples/spin.rs` as a user runs it: the watchdog's report comes before the end of the spin.
#[test]
fn the_line_appears_while_the_task_spins() {
    let _alone = alone();
    let mut command = child::cargo();
    command
        .current_dir(support::root())
        .args(["run", "--quiet", "--offline", "--example", "spin", "--", "--watchdog", "100"])
        .stderr(Stdio::piped());
    let mut spin = child::spawn_within(child::BUILD, &mut command);
    let lines = BufReader::new(spin.stderr.take().unwrap()).lines();
    let lines: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(spin.wait().unwrap().success());
    let place = |text: &str| lines.iter().position(|line| line.contains(text));
    let over = place("the computation is over").expect("it says so");
    let stuck = place("stuck: task 3 spin has run for ").expect("the watchdog says so");
    assert!(stuck < over, "{lines:?}");
    assert!(place("stuck no more: task 3 spin").expect("and its end") > over, "{lines:?}");
}
