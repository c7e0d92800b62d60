//! Each replay ends, reports, and is the same: jobs on separate threads, and programs that continue
//! to ask after the end of their record.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Options, Record, RunError, Taped};
use net::TcpStream;
use net::process::Process;
use testing::Text;
use traps::threads::thread_deadline;
use traps::universal::{UniversalEvent, UniversalQueue};
use traps::{
    is_traced, join, note, run_in_thread, sleep, spawn, timeout_after, wall_clock, yield_now,
};

/// How long a replay may take, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
const MS: Duration = Duration::from_millis(1);

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("ends_{name}.record"))
}

/// Runs `run` on a separate thread, and fails if it does not end.
#[track_caller]
fn within_limit<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, ended) = mpsc::channel();
    let thread = thread::spawn(move || sender.send(run()));
    match ended.recv_timeout(LIMIT) {
        Ok(value) => value,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end"),
        Err(_) => std::panic::resume_unwind(thread.join().expect_err("it has sent nothing")),
    }
}

/// Runs to the end, and returns the log.
fn log_of(mut kernel: Kernel<Taped>, main: impl Future<Output = ()>) -> Result<String, RunError> {
    let text = Text::default();
    kernel.trace_to(text.clone());
    kernel.run(main)?;
    kernel.shutdown()?;
    drop(kernel);
    Ok(text.take())
}

fn record<F: Future<Output = ()>>(path: &Path, main: impl FnOnce() -> F) -> String {
    let kernel = Kernel::record_to(Record::from(path), Options::new()).unwrap();
    log_of(kernel, main()).unwrap()
}

fn replay<F: Future<Output = ()> + 'static>(
    path: &Path,
    main: impl FnOnce() -> F + Send + 'static,
) -> Result<String, RunError> {
    let path = path.to_owned();
    within_limit(move || log_of(Kernel::replay(path, Options::new()).unwrap(), main()))
}

/// Records a program and replays it, and compares the logs.
#[track_caller]
fn is_replayed<F: Future<Output = ()> + 'static>(name: &str, main: fn() -> F) {
    let path = path(name);
    let log = record(&path, main);
    assert_eq!(replay(&path, main).unwrap(), log);
}

#[test]
fn a_job_that_waits_for_its_deadline_ends_in_a_replay() {
    is_replayed("deadline", || async {
        let job = run_in_thread(|| {
            let deadline = thread_deadline().unwrap();
            while !deadline.is_expired() {}
        });
        // The job may end before the kernel has seen that its deadline has passed.
        note(format!("{:?}", timeout_after(20 * MS, job).await));
    });
}

#[test]
fn a_job_is_told_in_a_replay_what_it_was_told() {
    let path = path("told");
    let run = |mut kernel: Kernel<Taped>| {
        let counts = Rc::new(RefCell::new(Vec::new()));
        let seen = counts.clone();
        kernel.on_orphan(move |orphan| {
            seen.borrow_mut().push(*orphan.outcome.unwrap().downcast::<[u64; 2]>().unwrap());
        });
        let main = async {
            let job = run_in_thread(|| {
                let deadline = thread_deadline().unwrap();
                let expired = (0_u64..).find(|_| deadline.is_expired());
                [expired.unwrap(), (0_u64..).find(|_| deadline.is_abandoned()).unwrap()]
            });
            assert!(timeout_after(20 * MS, job).await.is_err());
        };
        kernel.run(main).unwrap();
        kernel.shutdown().unwrap();
        drop(kernel);
        counts.take()
    };
    let told = run(Kernel::record_to(&*path, Options::new()).unwrap());
    assert_eq!(told.len(), 1);
    assert_eq!(run(Kernel::replay(&path, Options::new()).unwrap()), told);
}

#[test]
fn a_job_whose_end_is_the_last_line_of_a_record_does_not_run_again() {
    let path = path("cut_told");
    let program = |goes_on: bool| async move {
        // In the record, the answer to the job follows the end of the job.
        let job =
            run_in_thread(move || while goes_on && thread_deadline().unwrap().check().is_ok() {});
        timeout_after(Duration::from_secs(1000), job).await.unwrap();
    };
    record(&path, || program(false));
    let text = std::fs::read_to_string(&path).unwrap();
    let end = text.find(" done:1\n").unwrap();
    let kept = text[..end].lines().filter(|line| line.starts_with('<'));
    let kept: String = kept.map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, format!("{} done:1\n", kept.trim_end())).unwrap();
    match replay(&path, move || program(true)) {
        Err(RunError::Stopped(report)) => {
            assert!(report.contains("the job o1 has ended"), "{report}")
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_job_has_as_much_time_left_in_a_replay_as_in_the_record() {
    is_replayed("left", || async {
        let left = run_in_thread(|| thread_deadline().unwrap().remaining().unwrap().as_secs());
        sleep(MS).await.unwrap();
        let left = timeout_after(Duration::from_secs(1000), left).await;
        note(format!("{left:?}"));
    });
}

#[test]
fn jobs_that_wait_for_each_other_end_in_a_replay() {
    is_replayed("barrier", || async {
        let all = Arc::new(Barrier::new(3));
        let wait = || {
            let all = all.clone();
            run_in_thread(move || _ = all.wait())
        };
        assert_eq!(join(join(wait(), wait()), wait()).await, ((Ok(()), Ok(())), Ok(())));
    });
}

#[test]
fn a_job_sees_no_kernel_in_a_replay_either() {
    is_replayed("alone", || async {
        let job = run_in_thread(|| {
            note("a job has no log");
            let inner = kernel::run(async {
                sleep(MS).await.unwrap();
                note("nor has its kernel");
                run_in_thread(|| 2).await.unwrap()
            });
            (is_traced(), inner.unwrap(), thread::current().name().is_some())
        });
        note(format!("{:?}", job.await));
    });
}

thread_local! {
    static SEEN: Cell<u32> = const { Cell::new(0) };
}

#[test]
fn a_job_has_thread_locals_of_its_own_in_a_replay() {
    is_replayed("locals", || async {
        SEEN.set(7);
        let job = run_in_thread(|| SEEN.replace(1));
        note(format!("{:?} {}", job.await, SEEN.get()));
    });
}

#[test]
fn a_job_reads_no_clock_of_the_record_and_can_ask_whether_it_is_replayed() {
    let path = path("clock");
    let program = || async {
        let job = run_in_thread(|| {
            let _ = catch_unwind(wall_clock);
            traps::is_replaying()
        });
        let is_replay = job.await.unwrap();
        assert_eq!(is_replay, traps::is_replaying());
        sleep(MS).await.unwrap();
        note(format!("{:?}", wall_clock()));
    };
    let log = record(&path, program);
    assert_eq!(replay(&path, program).unwrap(), log);
}

#[test]
fn errors_have_their_kinds_in_a_replay() {
    is_replayed("errors", || async {
        // No name server is asked about these.
        for name in [&format!("{}:80", "a".repeat(70)), "a\0b:80", "nothing"] {
            let error = net::resolve(name).await.unwrap_err();
            note(format!("{:?}: {error}", error.kind()));
        }
        let found = Process::spawn(&mut Command::new("/no/such/program"));
        note(format!("{:?}", found.map_err(|error| error.kind()).err()));
        let found = Process::spawn(Command::new("cat").arg("a\0b"));
        note(format!("{:?}", found.map_err(|error| error.kind()).err()));
        note(format!("{:?}", TcpStream::connect("127.0.0.1:0").await.map(drop)));
    });
}

#[test]
fn a_replay_says_that_it_has_no_values_of_threads() {
    type Use = Option<Box<dyn FnOnce() + Send>>;
    // The task that starts the thread runs when main waits.
    let begin = |thread: Use| async move { thread.map(thread::spawn).map(drop) };
    let get = move |put: Use, queue: UniversalQueue<u32>| async move {
        spawn("begin", begin(put)).detached().await;
        assert_eq!(queue.get().await.unwrap(), 7);
    };
    let set = move |set: Use, event: UniversalEvent| async move {
        spawn("begin", begin(set)).detached().await;
        event.wait().await.unwrap();
    };
    for has_log in [false, true] {
        let path = path("universal");
        let record = |main: Pin<Box<dyn Future<Output = ()>>>| {
            let mut kernel = Kernel::record_to(&*path, Options::new()).unwrap();
            if has_log {
                kernel.trace_to(io::sink());
            }
            kernel.run(main).unwrap();
            kernel.shutdown().unwrap();
        };
        let differs = |ended: Result<String, RunError>| match ended {
            Err(RunError::Diverged(why)) => {
                assert!(why.contains("a replay has no values of threads, in task 2"), "{why}");
            }
            other => panic!("{other:?}"),
        };
        let queue = UniversalQueue::new(1);
        let theirs = queue.clone();
        let put = move || theirs.put_blocking(7).unwrap();
        record(Box::pin(get(Some(Box::new(put)), queue)));
        differs(replay(&path, move || get(None, UniversalQueue::new(1))));
        let event = UniversalEvent::new();
        let theirs = event.clone();
        record(Box::pin(set(Some(Box::new(move || theirs.set())), event)));
        differs(replay(&path, move || set(None, UniversalEvent::new())));
    }
}

/// A program that continues when its record has ended.
fn cut(name: &str) -> PathBuf {
    let path = path(name);
    record(&path, || async {
        sleep(MS).await.unwrap();
        note(format!("{:?}", wall_clock()));
    });
    let text = std::fs::read_to_string(&path).unwrap();
    let at = text.find("<wall").unwrap();
    let kept = text[..at].lines().count();
    let lines: Vec<&str> = text.lines().take(kept).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    path
}

#[track_caller]
fn stops<F: Future<Output = ()> + 'static>(name: &str, main: impl FnOnce() -> F + Send + 'static) {
    match replay(&cut(name), main) {
        Err(RunError::Stopped(report)) => {
            assert!(report.contains(" of the record ends:\n"), "{report}");
            assert!(report.contains(" main "), "{report}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_loop_over_the_time_of_day_ends_where_the_record_ends() {
    stops("wall", || async {
        sleep(MS).await.unwrap();
        let until = wall_clock() + Duration::from_secs(3600);
        while wall_clock() < until {}
    });
}

#[test]
fn a_loop_in_a_drop_ends_where_the_record_ends() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            let until = wall_clock() + 10 * MS;
            while wall_clock() < until {}
        }
    }
    stops("drop", || async {
        let _waits = Waits;
        sleep(MS).await.unwrap();
        let _ = wall_clock();
    });
}

#[test]
fn a_loop_over_the_end_of_a_process_ends_where_the_record_ends() {
    let path = path("process");
    let program = |waits: bool| async move {
        let mut cat = Command::new("cat");
        let mut cat = Process::spawn(cat.stdin(Stdio::piped())).unwrap();
        let _ = cat.try_wait();
        while waits && !matches!(cat.try_wait(), Ok(Some(_))) {}
    };
    record(&path, || program(false));
    match replay(&path, move || program(true)) {
        Err(RunError::Diverged(report)) => assert!(report.contains("asks for `exit`"), "{report}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_that_catches_panics_ends_where_the_record_ends() {
    stops("caught", || async {
        sleep(MS).await.unwrap();
        loop {
            assert!(catch_unwind(wall_clock).is_err());
            yield_now().await.unwrap();
        }
    });
}
