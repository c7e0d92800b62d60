//! Given: three tasks on your clock, with a line for each call of `wait`.

use std::io;
use std::time::Duration;

use super::kernel::{Kernel, Machine, Time, sleep, yield_now};
use super::lab::Clock;

/// More calls of `wait` than a right clock gets.
const MOST: u32 = 50;

/// Your clock, watched, and how often it was asked to wait.
struct Watched(Clock, u32);

impl Machine for Watched {
    fn now(&self) -> Time {
        self.0.now()
    }

    fn wait(&mut self, until: Option<Time>) -> io::Result<()> {
        self.1 += 1;
        if self.1 > MOST {
            return Err(io::Error::other(format!(
                "`wait` was called {MOST} times; that is enough"
            )));
        }
        let before = shown(self.0.now());
        let waited = self.0.wait(until);
        let after = waited.as_ref().map_or("error".to_owned(), |()| shown(self.0.now()));
        println!("wait {}: {before} -> {after}", until.map_or("none".to_owned(), shown));
        waited
    }
}

fn shown(time: Time) -> String {
    time.to_string().trim_start().to_owned()
}

const MS: Duration = Duration::from_millis(1);

async fn nap(first: u32, second: u32) {
    sleep(MS * first).await;
    yield_now().await;
    sleep(MS * second).await;
}

/// A clock that has reached the end of its tasks.
fn asked_by_hand(mut clock: Watched) {
    clock.0.wait(Some(Time(300 * MS))).expect("a time in the future can be waited for");
    // The kernel is late.
    drop(clock.wait(Some(Time(200 * MS))));
    drop(clock.wait(None));
    println!("an hour, which a virtual clock passes at once");
    drop(clock.wait(Some(Time(3600 * 1000 * MS))));
}

pub fn main(_seed: u64) {
    let mut kernel = Kernel::new(Watched(Clock::new(), 0));
    kernel.add(nap(100, 200));
    kernel.add(nap(50, 100));
    kernel.add(yield_now());
    if let Err(error) = kernel.run() {
        println!("{error}");
    }
    asked_by_hand(Watched(Clock::new(), 0));
}
