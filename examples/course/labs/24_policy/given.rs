//! Given: eight tasks wait for descriptors under the policy SecondSleep. A script makes each
//! descriptor ready. The program prints the log.

use std::io::stdout;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Options, Policy, Sim};
use traps::io::{Direction, Io, Scripted};
use traps::{Error, Task, Time, join, sleep, spawn, yield_now};

const MS: Duration = Duration::from_millis(1);

type Shared = Rc<Io<Scripted>>;

/// Sleeps once between two waits for the same descriptor.
async fn steady(f1: Shared) -> Result<(), Error> {
    for _ in 0..3 {
        f1.readable().await?;
        sleep(MS).await?;
    }
    Ok(())
}

/// Sleeps three times between two waits for the same descriptor.
async fn resting(f2: Shared) -> Result<(), Error> {
    f2.readable().await?;
    for _ in 0..3 {
        sleep(MS).await?;
    }
    f2.readable().await
}

/// Sleeps while another task still waits for the same descriptor.
async fn reader(f3: Shared) -> Result<(), Error> {
    f3.readable().await?;
    for _ in 0..3 {
        sleep(MS).await?;
    }
    Ok(())
}

async fn writer(f3: Shared) -> Result<(), Error> {
    f3.writable().await
}

/// Waits for two descriptors, one after the other.
async fn pair(f4: Shared, f5: Shared) -> Result<(), Error> {
    f4.readable().await?;
    f5.readable().await
}

/// Waits for the two directions of a descriptor, one after the other.
async fn turning(f6: Shared) -> Result<(), Error> {
    f6.readable().await?;
    f6.writable().await
}

/// Yields, and sleeps once.
async fn yielding(f7: Shared) -> Result<(), Error> {
    f7.readable().await?;
    yield_now().await?;
    sleep(MS).await?;
    Ok(())
}

/// Waits for two descriptors at once.
async fn both(f8: Shared, f9: Shared) -> Result<(), Error> {
    let (one, other) = join(f8.readable(), f9.readable()).await;
    one.and(other)
}

async fn program() -> Result<(), Error> {
    // Main keeps the handles, so no descriptor is closed before its task has ended.
    let handle = |number| Rc::new(Io::new(Scripted(number)));
    let [f1, f2, f3, f4, f5] = [1, 2, 3, 4, 5].map(handle);
    let tasks: [Task<Result<(), Error>>; 5] = [
        spawn("steady", steady(f1.clone())).await,
        spawn("resting", resting(f2.clone())).await,
        spawn("reader", reader(f3.clone())).await,
        spawn("writer", writer(f3.clone())).await,
        spawn("pair", pair(f4.clone(), f5.clone())).await,
    ];
    for mut task in tasks {
        task.join().await??;
    }
    let [f6, f7, f8, f9] = [6, 7, 8, 9].map(handle);
    let tasks: [Task<Result<(), Error>>; 3] = [
        spawn("turning", turning(f6.clone())).await,
        spawn("yielding", yielding(f7.clone())).await,
        spawn("both", both(f8.clone(), f9.clone())).await,
    ];
    for mut task in tasks {
        task.join().await??;
    }
    Ok(())
}

pub fn main(_seed: u64) {
    use Direction::{Read, Write};
    let script = [
        (2, 1, Read),
        (4, 1, Read),
        (6, 1, Read),
        (2, 2, Read),
        (12, 2, Read),
        (2, 3, Read),
        (9, 3, Write),
        (2, 4, Read),
        (10, 5, Read),
        (20, 6, Read),
        (22, 6, Write),
        (20, 7, Read),
        (20, 8, Read),
        (20, 9, Read),
    ];
    let ready =
        |sim: Sim, (at, number, direction)| sim.ready_at(Time::ZERO + at * MS, number, direction);
    let sim = script.into_iter().fold(Sim::new(), ready);
    let mut kernel = Kernel::with_options(sim, Options::default().policy(Policy::SecondSleep));
    kernel.trace_to(stdout());
    // If a registration ends too early, a task waits forever. The log shows which one.
    let _ = kernel.run(program());
    let _ = kernel.shutdown();
}
