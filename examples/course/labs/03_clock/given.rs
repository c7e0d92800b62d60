//! Given: three tasks on your clock, with a line for each call of `wait`.

use std::io;
use std::time::Duration;

use super::kernel::{Kernel, Machine, Time, sleep, yield_now};
use super::lab::Clock;
use super::scenario;

/// More calls of `wait` than a correct clock gets.
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

/// To the microsecond, as the kernel shows times, or to the nanosecond if there are some.
fn shown(Time(time): Time) -> String {
    match time.subsec_nanos() % 1000 {
        0 => format!("{}.{:06}", time.as_secs(), time.subsec_micros()),
        _ => format!("{}.{:09}", time.as_secs(), time.subsec_nanos()),
    }
}

async fn nap([first, second]: [Duration; 2]) {
    sleep(first).await;
    yield_now().await;
    sleep(second).await;
}

async fn yields(times: u32) {
    for _ in 0..times {
        yield_now().await;
    }
}

pub fn main(seed: u64) {
    let scenario = scenario::of(seed);
    let mut kernel = Kernel::new(Watched(Clock::new(), 0));
    for spans in scenario.naps {
        kernel.add(nap(spans));
    }
    kernel.add(yields(scenario.yields));
    if let Err(error) = kernel.run() {
        println!("{error}");
    }
    let mut clock = Watched(Clock::new(), 0);
    for (nth, until) in scenario.by_hand.into_iter().enumerate() {
        println!("call {} by hand: {}", nth + 1, until.map_or("none".into(), |at| shown(Time(at))));
        // Some of these calls must fail.
        drop(clock.wait(until.map(Time)));
    }
}
