//! Given: three clients, each with a connection that `lab::serve` serves.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use kernel::{Kernel, Sim};
use net::Stream;
use net::pipe::{PipeEnd, duplex};
use traps::{ignore_after, note, sleep, spawn};

use super::lab;
use super::scenario::{self, Scenario};

/// The time that an answer takes.
static ANSWER: OnceLock<Duration> = OnceLock::new();

/// Answers a request.
pub async fn answer(stream: &mut PipeEnd, request: &str) -> io::Result<()> {
    note(format!("answers {request}"));
    sleep(ANSWER.get().copied().unwrap_or_default()).await?;
    stream.write_all(b"ok\n").await
}

/// Returns whether an answer arrives. The end of the stream is no answer.
async fn has_answer(stream: &mut PipeEnd) -> bool {
    matches!(stream.read(&mut [0; 16]).await, Ok(1..))
}

/// Makes the first request of a client that is slow after it. Returns whether it has an answer.
async fn begins(stream: &mut PipeEnd, scenario: &Scenario) -> bool {
    let Some(request) = scenario.first else { return true };
    let line = format!("{request}\n");
    let has_begun = stream.write_all(line.as_bytes()).await.is_ok() && has_answer(stream).await;
    if !has_begun {
        note("has no answer to its first request");
    }
    has_begun
}

/// Sends a byte from time to time, so that the connection is never idle for long.
async fn loris(mut stream: PipeEnd, scenario: Scenario) -> io::Result<()> {
    if !begins(&mut stream, &scenario).await {
        return Ok(());
    }
    sleep(scenario.every / 2).await?;
    let bytes = scenario.bytes;
    for sent in 0..=bytes {
        let byte = if sent < bytes { b"x" } else { b"\n" };
        if stream.write_all(byte).await.is_err() {
            note(format!("is cut off after {sent} bytes"));
            return Ok(());
        }
        sleep(scenario.every).await?;
    }
    note(if has_answer(&mut stream).await { "has an answer" } else { "has no answer" });
    Ok(())
}

/// Sends nothing, and waits for three times the limit.
async fn silent(mut stream: PipeEnd, scenario: Scenario) -> io::Result<()> {
    if !begins(&mut stream, &scenario).await {
        return Ok(());
    }
    let mut buf = [0; 16];
    let is_cut = ignore_after(3 * scenario.limit, stream.read(&mut buf)).await?.is_some();
    note(if is_cut { "is cut off" } else { "leaves" });
    Ok(())
}

/// Makes some requests. Its line is slow, so each request takes some time.
async fn honest(mut stream: PipeEnd, scenario: Scenario) -> io::Result<()> {
    for request in scenario.requests {
        let mut is_sent = true;
        let (first, second) = request.split_at(4);
        for piece in [first, second] {
            is_sent &= stream.write_all(piece.as_bytes()).await.is_ok();
            sleep(scenario.piece).await?;
        }
        is_sent &= stream.write_all(b"\n").await.is_ok();
        if !is_sent || !has_answer(&mut stream).await {
            note(format!("is cut off in its request for {request:.80}"));
            return Ok(());
        }
    }
    note("has all answers");
    Ok(())
}

async fn serve(stream: PipeEnd, limit: Duration) {
    if let Err(error) = lab::serve(stream, limit).await {
        note(format!("ends: {error}"));
    }
}

pub fn main(seed: u64) {
    let mut kernel = Kernel::new(Sim::new());
    kernel.trace_to(std::io::stdout());
    let clients = async {
        let Scenario { limit, answer, .. } = scenario::of(seed);
        let _ = ANSWER.set(answer);
        let [(one, to_one), (two, to_two), (three, to_three)] =
            [duplex(64), duplex(64), duplex(64)];
        spawn("conn-1", serve(one, limit)).detached().await;
        spawn("conn-2", serve(two, limit)).detached().await;
        spawn("conn-3", serve(three, limit)).detached().await;
        let mut loris = spawn("loris", loris(to_one, scenario::of(seed))).await;
        let mut honest = spawn("honest", honest(to_two, scenario::of(seed))).await;
        let mut silent = spawn("silent", silent(to_three, scenario::of(seed))).await;
        loris.join().await??;
        honest.join().await??;
        silent.join().await?
    };
    let ended: io::Result<()> = kernel.run(clients).unwrap_or_else(|error| panic!("{error}"));
    ended.expect("nothing interrupts the clients");
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
