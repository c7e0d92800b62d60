//! Processes in memory, on the virtual clock.

use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use net::Stream;
use net::process::{Collected, Process, Simulated};
use traps::{Signal, join, sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

/// Acts as `sort`.
async fn sort(mut process: Simulated) -> io::Result<()> {
    let mut text = String::new();
    process.stdin.read_to_string(&mut text, 1 << 20).await?;
    let mut lines: Vec<_> = text.split_inclusive('\n').collect();
    lines.sort_unstable();
    process.stdout.write_all(lines.concat().as_bytes()).await?;
    process.stderr.write_all(b"sorted\n").await?;
    process.exit(3);
    Ok(())
}

#[test]
fn a_program_talks_to_it_as_to_a_process_of_the_system() {
    let (mut process, plays) = Process::simulated();
    // More than its input holds at a time.
    let lines: Vec<_> = (0..20_000).rev().map(|n| format!("{n:05}\n")).collect();
    let ran = testing::run(async {
        let mut output = Collected::with_limit(1 << 20);
        let input = lines.concat();
        let mut input = input.as_bytes();
        let talk = process.communicate(&mut input, &mut output);
        let (status, sorted) = join(talk, sort(plays)).await;
        sorted.unwrap();
        (status.unwrap(), output)
    });
    let (status, output) = ran.output;
    assert_eq!((status.code(), status.success()), (Some(3), false));
    let sorted: Vec<_> = lines.into_iter().rev().collect();
    assert!(output.stdout == sorted.concat().as_bytes());
    assert_eq!(output.stderr, b"sorted\n");
}

/// Asks a process to end, waits for it up to `patience`, and then kills it.
async fn stop(process: &mut Process, patience: Duration) -> io::Result<Option<i32>> {
    process.send(Signal::Terminate)?;
    match timeout_after(patience, process.wait()).await {
        Ok(status) => Ok(status.code()),
        Err(_) => {
            process.kill()?;
            Ok(process.wait().await?.code())
        }
    }
}

/// Obeys SIGTERM, three seconds late.
async fn obey(process: Simulated) -> Option<Signal> {
    assert_eq!(process.next_signal().await.unwrap(), Some(Signal::Terminate));
    sleep(3 * SECOND).await.unwrap();
    let next = process.next_signal();
    let next = timeout_after(Duration::ZERO, async { io::Result::Ok(next.await?) }).await;
    process.exit(0);
    next.ok().flatten()
}

#[test]
fn a_signal_has_the_effect_that_the_test_gives_it() {
    let (mut process, plays) = Process::simulated();
    let ran = testing::run(async { join(stop(&mut process, 5 * SECOND), obey(plays)).await.0 });
    assert_eq!((ran.output.unwrap(), ran.took), (Some(0), 3 * SECOND));
    // It is killed, because it does not end in time.
    let (mut process, plays) = Process::simulated();
    let ran = testing::run(async { join(stop(&mut process, SECOND), obey(plays)).await.0 });
    assert_eq!(ran.output.unwrap(), None);
}

#[test]
fn signals_arrive_in_order_and_none_after_the_end() {
    let (mut process, plays) = Process::simulated();
    testing::run(async {
        process.send(Signal::User2).unwrap();
        process.send(Signal::Hangup).unwrap();
        process.kill().unwrap();
        process.send(Signal::Quit).unwrap();
        let mut signals = Vec::new();
        while let Some(signal) = plays.next_signal().await.unwrap() {
            signals.push(signal);
        }
        assert_eq!(signals, [Signal::User2, Signal::Hangup]);
        assert_eq!(process.try_wait().unwrap().unwrap().signal(), Some(9));
    });
}

#[test]
fn a_killed_or_dropped_process_ends_its_streams() {
    for is_killed in [true, false] {
        let (mut process, mut plays) = Process::simulated();
        let stdout = &mut process.stdout.take().unwrap();
        testing::run(async {
            plays.stdout.write_all(b"last words").await.unwrap();
            let mut ended = spawn("plays", async move {
                assert_eq!(plays.next_signal().await.unwrap(), None);
                assert_eq!(plays.stdin.read(&mut [0]).await.unwrap(), 0);
                let error = plays.stdout.write_all(b"more").await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            })
            .await;
            sleep(SECOND).await.unwrap();
            match is_killed {
                true => process.kill().unwrap(),
                false => drop(process),
            }
            let mut text = String::new();
            stdout.read_to_string(&mut text, 100).await.unwrap();
            assert_eq!(text, "last words");
            ended.join().await.unwrap();
        });
    }
}

#[test]
fn a_process_that_the_test_drops_was_killed_and_later_ends_change_nothing() {
    let (mut process, plays) = Process::simulated();
    assert_eq!(process.id(), i32::MAX as u32);
    let ran = testing::run(async {
        assert!(process.try_wait().unwrap().is_none());
        let early = timeout_after(SECOND, process.wait()).await;
        assert!(early.is_err());
        drop(plays);
        let status = process.wait().await.unwrap();
        process.kill().unwrap();
        (status.signal(), process.try_wait().unwrap() == Some(status))
    });
    assert_eq!(ran.output, (Some(9), true));
    let (mut process, plays) = Process::simulated();
    plays.exit(7);
    process.kill().unwrap();
    assert_eq!(process.try_wait().unwrap().unwrap().code(), Some(7));
}
