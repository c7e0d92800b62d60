//! The standard streams, of processes of their own: this test, started again.

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use kernel::{Kernel, Machine, Options, Real};
use net::stdio::{stdin, stdout};
use net::{BufReader, Stream};
use testing::child::{self, Child};
use traps::{ignore_after, sleep, spawn, timeout_after};

/// Set in a process that this test has started: the program to run.
const PROGRAM: &str = "TRAPLINE_TEST_STDIO";

/// Set in such a process: where to record the run.
const RECORD: &str = "TRAPLINE_TEST_STDIO_RECORD";

/// Begins what a program writes, because the harness of tests writes before it.
const BEGIN: &str = "begin\n";

/// Sends back each line, doubled.
async fn doubles() -> io::Result<()> {
    let mut input = stdin();
    let mut reader = BufReader::new(&mut input);
    let mut lines = reader.lines(1 << 20);
    stdout().write_all(BEGIN.as_bytes()).await?;
    while let Some(line) = lines.next().await? {
        let text = [line, line, b"\n"].concat();
        stdout().write_all(&text).await?;
    }
    Ok(())
}

/// Reads with timeouts, in a task that is cancelled, and at last to the end.
async fn gives_up() -> io::Result<()> {
    let mut buf = [0; 4];
    let early = timeout_after(Duration::ZERO, stdin().read(&mut buf)).await;
    let mut task = spawn("reader", async { stdin().read(&mut [0; 4]).await }).await;
    sleep(Duration::from_millis(1)).await?;
    task.cancel_now("not wanted");
    let is_cancelled = task.join().await.is_ok_and(|read| read.is_err());
    assert!(early.is_err() && is_cancelled, "nothing was written so far");
    // Now the parent writes.
    stdout().write_all(BEGIN.as_bytes()).await?;
    stdin().readable().await?;
    let mut text = Vec::new();
    stdin().read_to_end(&mut text, 100).await?;
    stdout().write_all(&text).await
}

/// Leaves while the thread is in read(2).
async fn leaves() -> io::Result<()> {
    assert!(ignore_after(Duration::from_millis(1), stdin().readable()).await?.is_none());
    stdout().write_all(BEGIN.as_bytes()).await
}

/// Writes more than a pipe holds, while another task runs, until the reader is gone.
async fn floods() -> io::Result<()> {
    stdout().write_all(BEGIN.as_bytes()).await?;
    loop {
        match stdout().write_all(&[b'x'; 1 << 16]).await {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
}

fn run(mut kernel: Kernel<impl Machine>, program: &str) {
    let ended = match program {
        "doubles" => kernel.run(doubles()),
        "gives_up" => kernel.run(gives_up()),
        "leaves" => kernel.run(leaves()),
        "floods" => kernel.run(floods()),
        other => panic!("no program {other}"),
    };
    kernel.shutdown().unwrap();
    ended.unwrap().unwrap();
}

/// Runs as the program that `start` has started.
#[test]
fn program() {
    let Ok(program) = env::var(PROGRAM) else { return };
    match env::var_os(RECORD) {
        None => run(Kernel::new(Real::new().unwrap()), &program),
        Some(path) => {
            run(Kernel::record_to(PathBuf::from(path), Options::new()).unwrap(), &program);
        }
    }
    // As a program ends. The harness would write on.
    std::process::exit(0);
}

fn start(program: &str, record: Option<&PathBuf>) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["stdio::program", "--exact", "--nocapture"]).env(PROGRAM, program);
    command.envs(record.map(|path| (RECORD, path)));
    child::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
}

/// Reads up to the beginning of what the program writes.
fn begin(output: &mut impl Read) {
    let mut read = Vec::new();
    while !read.ends_with(BEGIN.as_bytes()) {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        read.extend(byte);
    }
}

#[test]
fn lines_go_through_the_program_and_back() {
    let mut child = start("doubles", None);
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    begin(&mut output);
    for n in 0..3 {
        writeln!(input, "{n}").unwrap();
        let mut reply = [0; 3];
        output.read_exact(&mut reply).unwrap();
        assert_eq!(String::from_utf8_lossy(&reply), format!("{n}{n}\n"));
    }
    // More than the streams and the pipes hold.
    let long = "long".repeat(100_000);
    let writer = std::thread::spawn(move || {
        write!(input, "{long}\nlast").unwrap();
        long
    });
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let long = writer.join().unwrap();
    assert!(rest == format!("{long}{long}\nlastlast\n"));
    assert!(child.wait().unwrap().success());
}

#[test]
fn bytes_for_a_read_that_was_dropped_are_for_the_next_reader() {
    let mut child = start("gives_up", None);
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    begin(&mut output);
    input.write_all(b"for the next reader").unwrap();
    drop(input);
    let mut text = String::new();
    output.read_to_string(&mut text).unwrap();
    assert_eq!(text, "for the next reader");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_thread_that_reads_does_not_hold_up_the_end() {
    let mut child = start("leaves", None);
    // Held open, so its read never ends.
    let _input = child.stdin.take().unwrap();
    begin(&mut child.stdout.take().unwrap());
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_output_that_nobody_reads_holds_up_no_other_task_and_its_end_is_an_error() {
    let mut child = start("floods", None);
    let mut output = child.stdout.take().unwrap();
    begin(&mut output);
    output.read_exact(&mut vec![0; 300_000]).unwrap();
    drop(output);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_replay_reads_the_input_from_its_record() {
    let folder = env::temp_dir().join(format!("trapline-stdio-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let record = folder.join("record");
    let mut child = start("doubles", Some(&record));
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    begin(&mut output);
    input.write_all(b"one\n").unwrap();
    output.read_exact(&mut [0; 7]).unwrap();
    input.write_all(b"two\n").unwrap();
    drop(input);
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(child.wait().unwrap().success());
    let ended = testing::replay(&record, doubles()).output;
    std::fs::remove_dir_all(&folder).unwrap();
    ended.unwrap();
}

#[test]
fn each_stream_has_one_direction() {
    testing::run(async {
        let write = stdin().write_all(b"x").await.unwrap_err();
        let read = stdout().read(&mut [0]).await.unwrap_err();
        assert_eq!([write.kind(), read.kind()], [ErrorKind::Unsupported; 2]);
    });
}
