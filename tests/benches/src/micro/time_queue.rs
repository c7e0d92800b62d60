//! The kernel's timer heap. It is private to the kernel, so its source is a module here as well.

use std::hint::black_box;
use std::time::Duration;

use ::traps::Time;
use ::traps::core::names::Ticket;

use super::{Cpu, timers::FAR};

#[path = "../../../../kernel/src/core/timers.rs"]
#[allow(dead_code, reason = "the kernel uses the rest")]
mod of_the_kernel;

use of_the_kernel::{Owner, Timers};

/// Sets a timer that is far off and takes it out again, beside so many others.
pub fn set_and_cancel(others: u64, count: u64) -> f64 {
    let mut timers = Timers::default();
    let after = |span: Duration| Time::ZERO + span;
    for n in 0..others {
        timers.set(
            after(2 * FAR + Duration::from_micros(n)),
            Owner::Sleep(Ticket::new(n as u32, 0)),
            n,
        );
    }
    let start = Cpu::now();
    for n in 0..count {
        let at = after(FAR + Duration::from_micros(n));
        let timer = timers.set(black_box(at), Owner::Sleep(Ticket::new(0, 0)), others + n);
        timers.cancel(black_box(timer));
    }
    let figure = start.each(count);
    black_box(timers.next());
    figure
}
