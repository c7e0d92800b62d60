//! The kernel's timer heap. It is private to the kernel, so its source is a module here as well.

use std::hint::black_box;
use std::time::Duration;

use ::traps::Time;
use ::traps::internal::table::Ticket;

use super::{Cpu, timers::FAR};

#[path = "../../../../kernel/src/core/timers.rs"]
#[allow(dead_code, reason = "the kernel uses the rest")]
mod of_the_kernel;

use of_the_kernel::{Owner, Timers};

/// Sets a timer in the far future and cancels it, among this many others.
pub fn set_and_cancel(others: u64, count: u64) -> f64 {
    let mut timers = Timers::default();
    let after = |span: Duration| Time::ZERO + span;
    for n in 0..others {
        timers.set_sleep(after(2 * FAR + Duration::from_micros(n)), Ticket::new(n as u32, 0));
    }
    let start = Cpu::now();
    // A ticket above the others names a sleep that has been cancelled.
    let lives = |owner| matches!(owner, Owner::Sleep(sleep) if u64::from(sleep.index) < others);
    let mut stale = 0;
    for n in 0..count {
        let at = after(FAR + Duration::from_micros(n));
        timers.set_sleep(black_box(at), Ticket::new(others as u32, 0));
        stale += 1;
        if timers.sweep(stale, lives) {
            stale = 0;
        }
    }
    let figure = start.each(count);
    black_box(timers.next(lives));
    figure
}
