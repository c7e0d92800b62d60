//! Deferred unregistration: after a wait a descriptor stays registered, because the next wait is
//! often for the same one. Compare the traces of `--policy lazy`, `next-sleep` and `eager`.
//!
//! The traces of the two clocks differ here. On the real clock the descriptor is one end of a pair
//! of sockets (`p1`), and the task `writer` makes it readable. On the virtual clock a script makes
//! descriptor 7 (`f1`) readable.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use common::Lesson;
use kernel::{Policy, Real, Sim};
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

#[derive(clap::Args)]
struct Args {
    /// When to unregister a descriptor: lazy, next-sleep or eager
    #[arg(long, value_name = "NAME", default_value = "lazy")]
    policy: Policy,
    #[command(flatten)]
    lesson: Lesson,
}

pub fn main() -> ExitCode {
    let args: Args = common::parse("linger", "Deferred unregistration, seen in the trace");
    let Lesson { virtual_clock, common } = args.lesson.ready("linger");
    let options = common.options().policy(args.policy);
    if !virtual_clock {
        let kernel = Real::new().and_then(|real| common.kernel(real, options));
        return common::run(kernel, with_a_socket());
    }
    let ready = |sim: Sim, at| sim.ready_at(Time::ZERO + at * MS, 7, Direction::Read);
    let sim = [3, 6, 9].into_iter().fold(Sim::new(), ready);
    common::run(common.kernel(sim, options), linger(Io::new(Scripted(7)), |_| ()))
}
