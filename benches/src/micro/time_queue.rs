//! The kernel's timer queue. It is private to the kernel, so its source is a module here as well.

use std::hint::black_box;
use std::time::Duration;

use ::traps::Time;
use ::traps::deadline_table::DeadlineTable;

use super::{Cpu, timers::FAR};

#[path = "../../../kernel/src/timers.rs"]
#[allow(dead_code, reason = "the kernel uses the rest")]
mod of_the_kernel;

use of_the_kernel::{Class, Owner, Rank, TimeQueue};

fn rank() -> Rank {
    Rank { class: Class::Sleep, seq: 0 }
}

/// Arms a timer that is far off and takes it out again, beside so many others.
pub fn arm_and_cancel(others: u64, count: u64) -> f64 {
    let table = DeadlineTable::new(Duration::from_millis(300), Box::new(|| Time::ZERO));
    let mut queue = TimeQueue::new(table);
    let now = Time::ZERO;
    let after = |span: Duration| now + span;
    for n in 0..others {
        queue.arm(after(2 * FAR + Duration::from_micros(n)), Owner(n as u32), now, rank);
    }
    let start = Cpu::now();
    for n in 0..count {
        let at = after(FAR + Duration::from_micros(n));
        let timer = queue.arm(black_box(at), Owner(0), now, rank);
        queue.disarm(black_box(timer));
    }
    let figure = start.each(count);
    black_box(queue.next());
    figure
}
