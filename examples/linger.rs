//! Deferred unregistration: a descriptor that was waited for stays registered, in case the next
//! wait is for it again. Compare the traces under `--policy lazy`, `next-sleep` and `eager`.
//!
//! The two clocks have different traces here. On the real one the descriptor is a socket (`p1`) of
//! a pair, and a task of its own, `writer`, makes it readable; on the virtual one there is neither:
//! the script of the machine says when descriptor 7 (`f1`) is readable.

mod common;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use common::About;
use kernel::Sim;
use traps::io::{Direction, Io, Scripted, Source};
use traps::{Error, Time, sleep, spawn};

const MS: Duration = Duration::from_millis(1);

/// Waits twice in a row for the same descriptor, sleeps, and waits for it again.
pub async fn linger<S: Source>(reader: Io<S>, mut take: impl FnMut(&Io<S>)) -> Result<(), Error> {
    for _ in 0..2 {
        reader.readable().await?;
        take(&reader);
    }
    sleep(MS).await?;
    reader.readable().await?;
    take(&reader);
    Ok(())
}

/// On the real clock, another task writes into the other end of a pair of sockets.
async fn with_a_socket() -> std::io::Result<()> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut writer = spawn("writer", async move {
        for _ in 0..3 {
            sleep(3 * MS).await?;
            (&theirs).write_all(b".")?;
        }
        Ok::<(), std::io::Error>(())
    })
    .await;
    linger(Io::new(ours), |reader| _ = (&**reader).read(&mut [0])).await?;
    writer.join().await?
}

fn main() -> ExitCode {
    let what = "deferred unregistration, seen in the trace";
    let args = About { name: "linger", what, server: false, policy: true }.parse();
    if !args.virtual_clock {
        return common::run(args.real_kernel(), with_a_socket());
    }
    let ready = |sim: Sim, at| sim.ready_at(Time::ZERO + at * MS, 7, Direction::Read);
    let sim = [3, 6, 9].into_iter().fold(Sim::new(), ready);
    common::run(args.kernel(sim), linger(Io::new(Scripted(7)), |_| ()))
}
