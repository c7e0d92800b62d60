//! Processes, on the real machine. The order of events decides, not their times.

use std::fs;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use net::process::{Collected, Pipe, Process};
use net::{BufReader, Stream};
use testing::child;
use traps::{Either, Interruptible, Signal, race, sleep, spawn, timeout_after, yield_now};

/// Runs `main`, which waits for processes. A process that does not end fails the test.
fn run<F: Future>(main: F) -> F::Output {
    match kernel::run(race(main, sleep(child::LIMIT))).unwrap() {
        Either::Left(output) => output,
        Either::Right(_) => panic!("a process has not ended"),
    }
}

/// A shell that runs `script`, with all of its standard streams piped.
fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Whether the system still has a process of ours with this number, a dead one included.
fn is_there(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
    parent == Some(&std::process::id().to_string())
}

/// Yields until the system has removed it, because another thread reaps it.
async fn gone(id: u32) {
    while is_there(id) {
        yield_now().await.unwrap();
    }
}

#[test]
fn a_mebibyte_goes_through_a_process_and_back() {
    let bytes: Vec<u8> = (0..1_u32 << 20).map(|n| (n % 251) as u8).collect();
    let mut output = Collected::with_limit(1 << 20);
    let status = run(async {
        let mut cat = Process::spawn(&mut shell("exec cat"))?;
        cat.communicate(&mut &bytes[..], &mut output).await
    });
    assert!(status.unwrap().success());
    assert!(output.stdout == bytes && output.stderr.is_empty());
}

#[test]
fn both_outputs_are_read_at_once_and_the_status_is_the_processs_own() {
    // More than a pipe holds, on both, in turns.
    let script = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789;
        echo abcdefghijabcdefghijabcdefghijabcdefghij >&2; i=$((i+1)); done; exit 7";
    let mut output = Collected::with_limit(1 << 20);
    let status = run(async {
        Process::spawn(&mut shell(script))?.communicate(&mut &b""[..], &mut output).await
    });
    assert_eq!(status.unwrap().code(), Some(7));
    assert_eq!((output.stdout.len(), output.stderr.len()), (3000 * 41, 3000 * 41));
}

#[test]
fn a_process_that_does_not_read_its_input_is_no_error() {
    let input = vec![0; 1 << 20];
    let mut output = Collected::with_limit(100);
    let mut left = &input[..];
    let status = run(async {
        let mut process = Process::spawn(&mut shell("exec 0<&-; echo done"))?;
        process.communicate(&mut left, &mut output).await
    });
    assert!(status.unwrap().success());
    assert_eq!(output.stdout, b"done\n");
    assert!(!left.is_empty());
}

#[test]
fn slices_without_a_byte_are_passed_over() {
    run(async {
        let (reader, writer) = io::pipe().unwrap();
        let (mut reader, mut writer) = (Pipe::new(reader).unwrap(), Pipe::new(writer).unwrap());
        for empty in [1, 1023, 1024, 2000] {
            let mut slices = vec![IoSlice::new(b""); empty];
            assert_eq!(writer.write_vectored(&slices).await.unwrap(), 0);
            slices.push(IoSlice::new(b"a"));
            assert_eq!(writer.write_vectored(&slices).await.unwrap(), 1, "after {empty}");
            slices.extend([IoSlice::new(b"b"); 2000]);
            assert_eq!(writer.write_vectored(&slices).await.unwrap(), 1024, "after {empty}");
            reader.read_exact(&mut [0; 1025]).await.unwrap();
        }
    });
}

#[test]
fn more_output_than_the_limit_is_an_error_and_the_process_is_ended() {
    let mut output = Collected::with_limit(10);
    let (error, id) = run(async {
        let mut endless = Process::spawn(&mut shell("exec yes")).unwrap();
        let id = endless.id();
        (endless.communicate(&mut &b""[..], &mut output).await.unwrap_err(), id)
    });
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    assert_eq!(error.to_string(), "more than 10 bytes came");
    assert!(output.stdout.len() > 10 && output.stdout.starts_with(b"y\ny\ny\ny\ny\ny"));
    assert!(output.stdout.len() <= 10 + (16 << 10), "no more than a read takes");
    run(gone(id));
}

/// An interrupt may have been reported in its place, and a caller that tries again must not take
/// the bytes so far for the whole output.
#[test]
fn what_is_too_much_is_an_error_of_every_read_with_that_limit_and_is_not_lost() {
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"123456789012").unwrap();
    drop(writer);
    let mut into = Vec::new();
    run(async {
        let mut reader = Pipe::new(reader).unwrap();
        for limit in [10, 10, 11] {
            let error = reader.read_to_end(&mut into, limit).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::FileTooLarge, "{limit}");
        }
        reader.read_to_end(&mut into, 12).await.unwrap();
    });
    assert_eq!(into, b"123456789012");
}

#[test]
fn lines_of_a_process_are_read_and_answered_one_by_one() {
    run(async {
        let mut cat = Process::spawn(&mut shell("exec cat")).unwrap();
        let mut input = cat.stdin.take().unwrap();
        let mut output = BufReader::new(cat.stdout.take().unwrap());
        let early = timeout_after(Duration::ZERO, output.readable()).await;
        assert!(early.unwrap_err().interrupt().is_some());
        for text in ["one\n", "two\n"] {
            input.write_all(text.as_bytes()).await.unwrap();
            output.readable().await.unwrap();
            let mut line = Vec::new();
            assert!(output.read_line(&mut line, 10).await.unwrap());
            assert_eq!(line, text.trim().as_bytes());
        }
        input.shutdown().unwrap();
        assert_eq!(input.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        output.readable().await.unwrap();
        assert_eq!(output.read(&mut [0; 8]).await.unwrap(), 0);
        assert!(cat.wait().await.unwrap().success());
    });
}

#[test]
fn a_timeout_on_a_wait_leaves_the_process_alone() {
    let status = run(async {
        let mut command = shell("exec cat");
        command.stdout(Stdio::null());
        let mut cat = Process::spawn(&mut command).unwrap();
        let keep = cat.stdin.take();
        let early = timeout_after(Duration::ZERO, cat.wait()).await;
        assert!(early.unwrap_err().interrupt().is_some());
        assert_eq!(cat.try_wait().unwrap(), None);
        drop(keep);
        let first = cat.wait().await.unwrap();
        assert_eq!(cat.wait().await.unwrap(), first, "it may be asked again");
        cat.kill().unwrap();
        cat.send(Signal::Terminate).unwrap();
        first
    });
    assert!(status.success());
}

#[test]
fn a_communication_that_is_cut_again_and_again_loses_no_byte() {
    let bytes: Vec<u8> = (0..1_u32 << 20).map(|n| (n % 253) as u8).collect();
    let mut output = Collected::with_limit(1 << 20);
    let (status, cuts) = run(async {
        let mut cat = Process::spawn(&mut shell("exec cat")).unwrap();
        let (mut input, mut cuts) = (&bytes[..], 0);
        loop {
            // Each wait is interrupted as soon as it begins.
            let talk = timeout_after(Duration::ZERO, cat.communicate(&mut input, &mut output));
            match talk.await {
                Err(error) if error.interrupt().is_some() => cuts += 1,
                ended => return (ended, cuts),
            }
        }
    });
    assert!(status.unwrap().success());
    assert!(output.stdout == bytes);
    assert!(cuts > 0);
}

#[test]
fn a_task_that_is_cancelled_takes_its_process_with_it() {
    let id = run(async {
        let mut process = Process::spawn(&mut shell("exec cat")).unwrap();
        let id = process.id();
        let _open = process.stdin.take();
        let mut owner = spawn("owner", async move { process.wait().await.map(drop) }).await;
        yield_now().await.unwrap();
        assert!(is_there(id));
        owner.cancel_because("no_longer_wanted").await.unwrap();
        owner.join().await.unwrap().unwrap_err();
        id
    });
    run(gone(id));
}

#[test]
fn a_cancellation_that_is_older_than_a_communication_ends_it() {
    run(async {
        let mut talk = spawn("talk", async {
            let mut output = Collected::with_limit(10);
            let mut process = Process::spawn(&mut shell("exec sleep 1000"))?;
            process.communicate(&mut &b""[..], &mut output).await
        })
        .await;
        // Before its first run.
        talk.cancel_now("not wanted");
        let end = timeout_after(Duration::from_secs(60), talk.join()).await;
        assert!(end.unwrap().unwrap_err().interrupt().is_some());
    });
}

#[test]
fn it_is_asked_to_end_or_made_to() {
    let (asked, made) = run(async {
        let mut first = Process::spawn(&mut shell("exec cat"))?;
        let mut second = Process::spawn(&mut shell("exec cat"))?;
        let _open = (first.stdin.take(), second.stdin.take());
        first.send(Signal::Terminate)?;
        second.kill()?;
        io::Result::Ok((first.wait().await?, second.wait().await?))
    })
    .unwrap();
    assert_eq!((asked.signal(), made.signal()), (Some(15), Some(9)));
}

#[test]
fn each_signal_that_is_sent_arrives_as_itself() {
    let codes = run(async {
        let mut codes = Vec::new();
        for &signal in Signal::ALL {
            // `read` waits without another process, so the shell runs its trap at once.
            let name = &signal.to_string()["SIG".len()..];
            let script = format!("trap 'exit 7' {name}; echo ready; read line; exit 8");
            // A shell cannot trap a signal that it inherits as ignored, as from `nohup`.
            let mut command = Command::new("env");
            command.args(["--default-signal", "sh", "-c", &script]);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = Process::spawn(&mut command)?;
            let _open = process.stdin.take();
            process.stdout.as_mut().unwrap().read_exact(&mut [0; 6]).await?;
            process.send(signal)?;
            codes.push(process.wait().await?.code());
        }
        io::Result::Ok(codes)
    });
    assert_eq!(codes.unwrap(), [Some(7); Signal::ALL.len()]);
}

#[test]
fn a_program_that_is_not_there_is_an_error() {
    let error = Process::spawn(&mut Command::new("/nowhere/at/all")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[test]
fn a_hundred_processes_leave_nothing_behind() {
    let mut kernel = kernel::Kernel::new(kernel::Real::new().unwrap());
    let ids = kernel.run(async {
        let mut ids = Vec::new();
        for n in 0..100 {
            let mut process = Process::spawn(&mut shell("exec cat")).unwrap();
            ids.push(process.id());
            match n % 4 {
                0 => drop(process),
                1 => assert!(process.wait().await.unwrap().success()),
                2 => process.kill().unwrap(),
                _ => {
                    let mut output = Collected::with_limit(10);
                    process.communicate(&mut &b"ab"[..], &mut output).await.unwrap();
                    assert_eq!(output.stdout, b"ab");
                }
            }
        }
        for id in &ids {
            gone(*id).await;
        }
        ids
    });
    assert_eq!(ids.unwrap().len(), 100);
    let counters = kernel.counters();
    assert_eq!((counters.registered, counters.handles, counters.tickets), (0, 0, 0));
    kernel.shutdown().unwrap();
}

#[test]
fn who_takes_the_child_has_it_as_it_is() {
    let mut child = run(async {
        let mut process = Process::spawn(&mut shell("exec cat")).unwrap();
        // Its input ends, so it does.
        process.stdin = None;
        process.into_child()
    });
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_pipe_of_ones_own_is_read_and_its_end_seen() {
    let text = run(async {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("/bin/echo");
        command.arg("hello").stdout(writer);
        let mut echo = Process::spawn(&mut command)?;
        drop(command); // it has the writing end as well
        let mut text = Vec::new();
        Pipe::new(reader)?.read_to_end(&mut text, 100).await?;
        echo.wait().await?;
        io::Result::Ok(text)
    });
    assert_eq!(text.unwrap(), b"hello\n");
}

/// Neither of them would end by itself.
#[test]
fn a_process_that_is_dropped_is_killed_unless_it_was_taken() {
    run(async {
        let dropped = Process::spawn(&mut shell("exec sleep 1000")).unwrap();
        let id = dropped.id();
        drop(dropped);
        gone(id).await;
        let mut process = Process::spawn(&mut shell("exec cat")).unwrap();
        let (mut input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut taken = process.into_child();
        input.write_all(b"alive\n").await.unwrap();
        let mut line = Vec::new();
        assert!(BufReader::new(output).read_line(&mut line, 10).await.unwrap());
        assert_eq!(line, b"alive");
        drop(input);
        assert!(taken.wait().unwrap().success());
    });
}

/// Set in a process that has inherited an ignored SIGCHLD.
const IGNORED: &str = "TRAPLINE_TEST_SIGCHLD_IS_IGNORED";

/// The system would discard the exit statuses, and remove the process before it has a pidfd.
#[test]
fn a_process_has_its_status_where_sigchld_is_ignored() {
    if std::env::var_os(IGNORED).is_none() {
        let mut command = Command::new("env");
        command.arg("--ignore-signal=CHLD").arg(std::env::current_exe().unwrap());
        command.args(["--exact", &child::this_test(), "--nocapture"]).env(IGNORED, "1");
        let ran = child::output(&mut command);
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{ran:?}");
        return;
    }
    let ignored = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = ignored.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    assert_ne!(u64::from_str_radix(ignored, 16).unwrap() & 1 << (17 - 1), 0, "{ignored}");
    run(async {
        for n in 0..50 {
            let mut process =
                Process::spawn(Command::new("/bin/sh").args(["-c", "exit 7"])).unwrap();
            if n % 2 == 0 {
                while process.try_wait().unwrap().is_none() {}
            }
            assert_eq!(process.wait().await.unwrap().code(), Some(7));
        }
        let mut killed = Process::spawn(&mut shell("exec sleep 1000")).unwrap();
        killed.kill().unwrap();
        assert_eq!(killed.wait().await.unwrap().signal(), Some(9));
    });
}

/// Other code has waited for the process, so its number may belong to another one.
#[test]
fn a_process_that_other_code_has_waited_for_is_sent_no_signal_by_its_number() {
    run(async {
        let mut process = Process::spawn(&mut shell("exec cat")).unwrap();
        process.stdin = None;
        let pid = rustix::process::Pid::from_raw(process.id() as i32);
        let options = rustix::process::WaitOptions::empty();
        rustix::process::waitpid(pid, options).unwrap().unwrap();
        process.kill().unwrap();
        process.send(Signal::Terminate).unwrap();
        assert_eq!(process.wait().await.unwrap_err().raw_os_error(), Some(10), "ECHILD");
    });
}

/// Set in a process that may have few descriptors.
const FEW: &str = "TRAPLINE_TEST_FEW_DESCRIPTORS";

#[test]
fn a_process_that_cannot_have_its_descriptors_has_not_run() {
    if std::env::var_os(FEW).is_none() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap());
        command.args(["--exact", &child::this_test(), "--nocapture"]).env(FEW, "1");
        let ran = child::output(&mut command);
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && said.contains("1 passed"), "{ran:?}");
        return;
    }
    // The page faults of all children that were waited for.
    let faults = || {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        stat.rsplit(") ").next().unwrap().split(' ').nth(8).unwrap().parse::<u64>().unwrap()
    };
    run(async {
        let (mut started, mut refused) = (0, 0);
        for left in (0..6).flat_map(|left| [left; 10]) {
            let before = faults();
            let mut files: Vec<fs::File> = Vec::new();
            while let Ok(file) = fs::File::open("/dev/null") {
                files.push(file);
            }
            files.truncate(files.len() - left);
            let spawned = Process::spawn(&mut Command::new("/bin/true"));
            drop(files);
            match spawned {
                Ok(mut process) => {
                    assert!(process.wait().await.unwrap().success());
                    assert!(faults() > before);
                    started += 1;
                }
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(24), "EMFILE");
                    // A process that had started would have been reaped by now.
                    sleep(Duration::from_millis(2)).await.unwrap();
                    assert_eq!(faults(), before, "{left} descriptors");
                    refused += 1;
                }
            }
        }
        assert!(started > 0 && refused > 0, "{started} {refused}");
    });
}
