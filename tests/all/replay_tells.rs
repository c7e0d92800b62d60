//! Each report of a record or a replay reaches the user: the difference, and the error of the file.

use std::cell::RefCell;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Options, Real, Record, RunError, Taped};
use net::UnixStream;
use support::examples::build;
use testing::{Text, child};
use traps::internal::panic_message;
use traps::{note, sleep, spawn, wall_clock};

const MS: Duration = Duration::from_millis(1);
const RULE: &str = "rule: a thread has one kernel at a time, and this thread has one already";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tells_{name}.record"))
}

fn recording(path: impl AsRef<Path>) -> Kernel<Taped> {
    Kernel::record_to(path.as_ref(), Options::new()).unwrap()
}

fn replaying(path: &Path) -> Kernel<Taped> {
    Kernel::replay(path, Options::new()).unwrap()
}

/// Returns the message of a panic.
fn panics<T>(run: impl FnOnce() -> T) -> String {
    let panic = catch_unwind(AssertUnwindSafe(|| drop(run()))).expect_err("it panics");
    panic_message(&*panic).to_owned()
}

async fn program() {
    sleep(MS).await.unwrap();
    let _ = wall_clock();
}

/// Records [`program`].
fn recorded(name: &str) -> PathBuf {
    let path = path(name);
    let mut kernel = recording(&path);
    kernel.run(program()).unwrap();
    kernel.shutdown().unwrap();
    path
}

fn last_line(path: &Path) -> String {
    fs::read_to_string(path).unwrap().lines().last().unwrap().to_owned()
}

#[test]
fn a_panic_of_main_and_the_difference_behind_it_are_both_told() {
    let path = recorded("panic");
    let mut kernel = replaying(&path);
    let why = panics(|| kernel.run(async { panic!("main is wrong") }));
    assert!(why.starts_with("main panicked: main is wrong\nthe program differs from"), "{why}");
    assert!(why.contains(" of the record has:\n"), "{why}");
    drop(kernel);
    // If the record has the log, the line of the panic is the difference.
    let mut kernel = recording(&path);
    kernel.trace_to(io::sink());
    kernel.run(program()).unwrap();
    kernel.shutdown().unwrap();
    drop(kernel);
    let ended = replaying(&path).run(async { panic!("main is wrong") });
    let Err(RunError::Diverged(why)) = ended else { panic!("{ended:?}") };
    assert!(why.contains(" panic    main is wrong"), "{why}");
}

#[test]
fn a_panic_of_main_and_a_full_disk_are_both_told() {
    let mut kernel = recording("/dev/full");
    let why = panics(|| kernel.run(async { panic!("main is wrong") }));
    let full = "cannot write the record /dev/full: No space left on device";
    assert!(why.starts_with("main panicked: main is wrong\n") && why.contains(full), "{why}");
}

#[test]
fn a_difference_in_the_drop_of_a_kernel_is_told() {
    let path = path("drop");
    let left = |name: &'static str| async move {
        spawn(name, sleep(Duration::from_secs(1000))).detached().await;
        sleep(MS).await.unwrap();
    };
    let run = |mut kernel: Kernel<Taped>, name| {
        kernel.trace_to(io::sink());
        kernel.run(left(name)).unwrap();
    };
    run(recording(&path), "one");
    run(replaying(&path), "one");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("its_kernel_is_dropped", "it_was_told_so")).unwrap();
    let why = panics(|| run(replaying(&path), "one"));
    assert!(why.contains("the program differs from its record\n"), "{why}");
    // A thread that is already panicking reports it, and continues to its end.
    let mut kernel = replaying(&path);
    kernel.trace_to(io::sink());
    kernel.run(left("one")).unwrap();
    let why = panics(move || {
        let _kernel = kernel;
        panic!("first");
    });
    assert_eq!(why, "first");
}

#[test]
fn a_second_kernel_of_a_thread_leaves_the_record_of_the_first_alone() {
    let path = path("second");
    let other = recorded("second_other");
    let before = fs::read(&other).unwrap();
    let mut kernel = recording(&path);
    kernel.run(program()).unwrap();
    for _ in 0..2 {
        assert!(panics(|| Kernel::record_to(&*other, Options::new())).contains(RULE));
        assert!(panics(|| Kernel::replay(&other, Options::new())).contains(RULE));
        assert!(panics(|| Kernel::new(Real::new().unwrap())).contains(RULE));
        kernel.run(program()).unwrap();
    }
    kernel.shutdown().unwrap();
    drop(kernel);
    assert_eq!((last_line(&path), fs::read(&other).unwrap()), ("<end".to_owned(), before));
    let mut kernel = replaying(&path);
    for _ in 0..3 {
        assert!(panics(|| Kernel::replay(&other, Options::new())).contains(RULE));
        kernel.run(program()).unwrap();
    }
    kernel.shutdown().unwrap();
    drop(kernel);
    // Also without a tape, because a tape must not be left on a thread that gets another kernel.
    let mut kernel = Kernel::new(Real::new().unwrap());
    assert!(panics(|| Kernel::replay(&other, Options::new())).contains(RULE));
    let ran = kernel.run(async { (wall_clock(), sleep(MS).await.is_ok()) }).unwrap();
    assert!(ran.0.elapsed().unwrap() < Duration::from_secs(1000) && ran.1);
}

#[test]
fn a_record_that_ends_before_its_program_is_a_warning_at_once() {
    let limited = Record { limit: 300, ..Record::from(path("warns")) };
    let full = "cannot write the record /dev/full: No space left on device";
    for (record, why) in
        [(Record::from("/dev/full"), full), (limited, "warns.record has reached its limit")]
    {
        let text = Text::default();
        let mut kernel = Kernel::record_to(record, Options::new()).unwrap();
        kernel.trace_to(text.clone());
        let seen = text.clone();
        let program = async move {
            // The first wait writes the record, and the warning is logged before the wait has
            // ended.
            sleep(MS).await.unwrap();
            seen.take()
        };
        let said = kernel.run(program).unwrap();
        assert!(said.contains(why) && said.contains("goes on without a record"), "{said}");
        let ended = kernel.shutdown();
        assert_eq!(ended.is_err(), why == full);
    }
}

#[test]
fn a_difference_has_the_task_by_name_the_line_of_the_log_and_the_bytes() {
    let path = path("report");
    let program = |bytes: &'static [u8]| async move {
        let (mut a, _b) = UnixStream::pair().unwrap();
        let send = async move { a.write_all(bytes).await.unwrap() };
        spawn("sender", send).await.join().await.unwrap();
    };
    let mut kernel = recording(&path);
    kernel.run(program(b"one\n")).unwrap();
    kernel.shutdown().unwrap();
    drop(kernel);
    let ended = replaying(&path).run(program(b"two\n"));
    let Err(RunError::Diverged(why)) = ended else { panic!("{ended:?}") };
    assert!(why.contains("the program sends other bytes, in task 3, after tests/"), "{why}");
    assert!(why.contains("\n  two\\n\ntask 3 is sender\nthe last line of the log is #00"), "{why}");
}

#[test]
fn a_long_line_of_a_record_is_cut_in_a_report() {
    let path = recorded("long");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("<wait ", &format!("<wait {} ", "x".repeat(1 << 20)), 1))
        .unwrap();
    let ended = replaying(&path).run(program());
    let Err(RunError::Diverged(why)) = ended else { panic!("{ended:?}") };
    assert!(why.contains("  <wait xxx") && why.contains("xxx...\n") && why.len() < 1000, "{why}");
}

/// A file without an end, such as a device, must not fill the memory.
#[test]
fn a_line_without_an_end_is_no_record() {
    let why = Kernel::replay("/dev/zero", Options::new()).unwrap_err();
    assert_eq!(why.kind(), io::ErrorKind::InvalidData);
    assert!(why.to_string().len() < 1000, "{why}");
    let why = kernel::recorded_command("/dev/zero").unwrap_err();
    assert_eq!(why.to_string(), "this is no record");
}

/// A limit of 4 blocks, of 512 or 1,024 bytes.
#[test]
fn a_limit_of_file_sizes_ends_the_record_and_not_the_process() {
    let path = path("ulimit");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 4; exec \"$0\" \"$@\""]).arg(build("echo"));
    command.args(["--addr", "127.0.0.1:0", "--record"]).arg(&path);
    let mut process = child::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on ").expect("it says where it listens");
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(child::LIMIT)).unwrap();
    for _ in 0..20 {
        stream.write_all(&[b'a'; 1000]).unwrap();
        stream.read_exact(&mut [0; 1000]).unwrap();
    }
    process.send("TERM");
    let mut told = String::new();
    process.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(1), "{told}");
    let text = format!("cannot write the record {}: File too large", path.display());
    assert!(told.contains(&format!("warning: {text}")), "{told}");
    assert!(told.lines().last().unwrap().contains(&text), "{told}");
}

#[test]
fn a_kernel_in_a_thread_local_records_to_its_end() {
    thread_local! {
        static KERNEL: RefCell<Option<Kernel<Taped>>> = const { RefCell::new(None) };
    }
    let path = path("local");
    for is_first in [false, true] {
        let file = path.clone();
        // The destructors of a thread run in the order of their registration, or in reverse.
        let ended = thread::spawn(move || {
            if is_first {
                assert!(KERNEL.take().is_none());
            }
            let mut kernel = recording(&file);
            kernel.run(program()).unwrap();
            KERNEL.set(Some(kernel));
        });
        ended.join().unwrap();
        let mut kernel = replaying(&path);
        kernel.run(program()).unwrap();
        assert!(last_line(&path).starts_with('<'));
    }
}

#[test]
fn a_line_that_the_log_does_not_reach_is_an_error() {
    let path = recorded("until");
    for (line, is_reached) in [(7, true), (1000, false)] {
        let mut kernel = replaying(&path);
        kernel.stop_at(line);
        match kernel.run(program()).and_then(|()| kernel.shutdown()) {
            Err(RunError::Stopped(_)) => assert!(is_reached),
            Err(RunError::Unreached(text)) => {
                assert!(!is_reached);
                let (before, after) = text.split_once(", before line #1000").unwrap();
                assert!(before.starts_with("the log of the replay ends at line #00"), "{text}");
                assert_eq!(after, "");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_log_that_begins_after_the_first_run_is_not_recorded() {
    let path = path("late");
    let run = |mut kernel: Kernel<Taped>| {
        kernel.run(program()).unwrap();
        let text = Text::default();
        kernel.trace_to(text.clone());
        kernel.trace_to(io::sink());
        kernel.run(async { note(format!("{:?}", wall_clock())) }).unwrap();
        kernel.shutdown().unwrap();
        text.take()
    };
    let log = run(recording(&path));
    assert!(fs::read_to_string(&path).unwrap().lines().all(|line| line.starts_with('<')));
    let note = |log: &str| log.lines().find(|line| line.contains(" note ")).map(str::to_owned);
    let replayed = run(replaying(&path));
    let words = |line: Option<String>| line.unwrap().split(" note ").nth(1).map(str::to_owned);
    assert_eq!(words(note(&replayed)), words(note(&log)));
}

#[test]
fn a_log_with_two_writers_is_recorded_once() {
    let path = path("two");
    let run = |mut kernel: Kernel<Taped>| {
        let text = Text::default();
        kernel.trace_to(text.clone());
        kernel.trace_to(io::sink());
        kernel.run(program()).unwrap();
        kernel.shutdown().unwrap();
        text.take()
    };
    assert_eq!(run(recording(&path)), run(replaying(&path)));
}
