//! Given: two clients, each with a connection that `lab::serve` serves.

use std::io;
use std::time::Duration;

use kernel::{Kernel, Sim};
use net::Stream;
use net::pipe::{PipeEnd, duplex};
use traps::{note, sleep, spawn};

use super::lab;

/// The unit of this lab.
pub const SECOND: Duration = Duration::from_secs(1);

/// So long a request may take, from the wait for its first byte to its last byte.
#[allow(dead_code, reason = "some solutions have a limit of their own")]
pub const LIMIT: Duration = Duration::from_secs(10);

/// So many bytes the loris sends before it ends its request.
const BYTES: u32 = 30;

/// Answers a request.
pub async fn answer(stream: &mut PipeEnd, request: &str) -> io::Result<()> {
    note(format!("answers {request}"));
    stream.write_all(b"ok\n").await
}

/// Whether an answer comes. The end of the stream is none.
async fn has_answer(stream: &mut PipeEnd) -> bool {
    matches!(stream.read(&mut [0; 16]).await, Ok(1..))
}

/// Sends a byte each second, so that the connection is never idle for long.
async fn loris(mut stream: PipeEnd) -> io::Result<()> {
    sleep(SECOND / 2).await?;
    for sent in 0..=BYTES {
        let byte = if sent < BYTES { b"x" } else { b"\n" };
        if stream.write_all(byte).await.is_err() {
            note(format!("is cut off after {sent} bytes"));
            return Ok(());
        }
        sleep(SECOND).await?;
    }
    note(if has_answer(&mut stream).await { "has an answer" } else { "has no answer" });
    Ok(())
}

/// Makes two requests. Its line is bad, so each takes 6 s.
async fn honest(mut stream: PipeEnd) -> io::Result<()> {
    for request in ["tea", "cake"] {
        let mut is_sent = true;
        for piece in ["one ", request] {
            is_sent &= stream.write_all(piece.as_bytes()).await.is_ok();
            sleep(3 * SECOND).await?;
        }
        is_sent &= stream.write_all(b"\n").await.is_ok();
        if !is_sent || !has_answer(&mut stream).await {
            note(format!("is cut off in its request for {request}"));
            return Ok(());
        }
    }
    note("has both answers");
    Ok(())
}

async fn serve(stream: PipeEnd) {
    if let Err(error) = lab::serve(stream).await {
        note(format!("ends: {error}"));
    }
}

pub fn main(_seed: u64) {
    let mut kernel = Kernel::new(Sim::new());
    kernel.trace_to(std::io::stdout());
    let clients = async {
        let (one, to_one) = duplex(64);
        let (two, to_two) = duplex(64);
        spawn("conn-1", serve(one)).detached().await;
        spawn("conn-2", serve(two)).detached().await;
        let mut loris = spawn("loris", loris(to_one)).await;
        let mut honest = spawn("honest", honest(to_two)).await;
        loris.join().await??;
        honest.join().await?
    };
    let ended: io::Result<()> = kernel.run(clients).unwrap_or_else(|error| panic!("{error}"));
    ended.expect("nothing interrupts the clients");
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
