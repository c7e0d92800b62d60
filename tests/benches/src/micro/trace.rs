//! The cost of the trace, on and off. The work is a task that yields; the figure of a trace that is
//! on is the additional cost of an event.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::rc::Rc;

use ::kernel::{Kernel, Real};
use ::traps::sync::Mutex;

use super::{Case, Cpu, OURS, Runner};
use crate::report::Bar;

pub const SECTION: &str = "trace";
const COUNT: u64 = 50_000;

pub fn cases() -> Vec<Case> {
    let case = |name, figure, bars, runners, limits| {
        let (section, unit, load, count) = (SECTION, "ns", 1, COUNT);
        Case { section, name, figure, unit, load, count, bars, runners, limits }
    };
    let text = "the event as text";
    let off = case("trace_off", "trace off: a yield", &[], OFF, "one test an event");
    if cfg!(not(feature = "trace")) {
        // There is none that could be on.
        return vec![off];
    }
    vec![
        off,
        case("trace_hook", "trace on, to a hook: an event", &[], HOOK, "the call"),
        case("trace_memory", "trace on, to memory: an event", MEMORY_BAR, MEMORY, text),
        case("trace_file", "trace on, to a file: an event", &[], FILE, "the text, and the system"),
        case("flight_yield", "flight recorder on: a yield", &[], FLIGHT, "three events"),
        Case {
            load: 4,
            ..case("flight_mutex", "flight recorder on: a contended lock", &[], LOCK, "six events")
        },
    ]
}

const MEMORY_BAR: &[Bar] = &[Bar::AtMost(150.0)];
const OFF: &[(&str, Runner)] = &[(OURS, off)];
const HOOK: &[(&str, Runner)] = &[(OURS, hook)];
const MEMORY: &[(&str, Runner)] = &[(OURS, memory)];
const FILE: &[(&str, Runner)] = &[(OURS, file)];
const FLIGHT: &[(&str, Runner)] = &[(OURS, flight)];
const LOCK: &[(&str, Runner)] = &[(OURS, lock)];

/// This many tasks that yield `count` times together; nanoseconds of one.
fn yields(kernel: &mut Kernel<Real>, tasks: u64, count: u64) -> f64 {
    let main = async {
        let start = Cpu::now();
        let mut all = Vec::new();
        for _ in 0..tasks {
            let yields = async move {
                for _ in 0..count / tasks {
                    traps::yield_now().await.expect("nothing interrupts it");
                }
            };
            all.push(traps::spawn("yields", yields).await);
        }
        for mut task in all {
            task.join().await.expect("it ends");
        }
        start.each(count)
    };
    kernel.run(main).expect("main ends")
}

fn kernel() -> Kernel<Real> {
    Kernel::new(Real::new().expect("the system gives a poller"))
}

fn off(tasks: u64, count: u64) -> f64 {
    yields(&mut kernel(), tasks, count)
}

/// The additional cost of one of `events`, if `listen` turns the trace on. A thread has one kernel
/// at a time, so the one without a trace runs first.
fn added(
    listen: impl FnOnce(&mut Kernel<Real>),
    events: &Cell<u64>,
    tasks: u64,
    count: u64,
) -> f64 {
    let off = off(tasks, count);
    let mut on = kernel();
    listen(&mut on);
    let on = yields(&mut on, tasks, count);
    (on - off) * count as f64 / events.get().max(1) as f64
}

fn hook(tasks: u64, count: u64) -> f64 {
    let events = Rc::new(Cell::new(0));
    let seen = events.clone();
    let count_line = move |_: &kernel::trace::Line<'_>| seen.set(seen.get() + 1);
    added(|kernel| kernel.observe(count_line), &events, tasks, count)
}

/// Counts the lines that go through it.
struct Lines<W>(W, Rc<Cell<u64>>);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.set(self.1.get() + u64::from(bytes.last() == Some(&b'\n')));
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A piece of memory that is written again and again from its beginning.
struct Memory(Vec<u8>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > self.0.capacity() {
            self.0.clear();
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn memory(tasks: u64, count: u64) -> f64 {
    let events = Rc::new(Cell::new(0));
    let lines = Lines(Memory(Vec::with_capacity(1 << 20)), events.clone());
    added(|kernel| kernel.trace_to(lines), &events, tasks, count)
}

fn file(tasks: u64, count: u64) -> f64 {
    let path = std::env::temp_dir().join(format!("trapline-bench-{}.trace", std::process::id()));
    let file = File::create(&path).expect("a temporary file can be made");
    // The file is written and never read. Because it has no name, none is left.
    std::fs::remove_file(&path).expect("it was made just now");
    let events = Rc::new(Cell::new(0));
    let lines = Lines(BufWriter::new(file), events.clone());
    added(|kernel| kernel.trace_to(lines), &events, tasks, count)
}

/// The size of the ring. Small enough that a run begins several segments.
const RING: usize = 1 << 20;

fn flight(tasks: u64, count: u64) -> f64 {
    let mut kernel = kernel();
    kernel.flight(RING);
    yields(&mut kernel, tasks, count)
}

/// This many tasks that together take a named lock `count` times, each over a yield.
fn lock(tasks: u64, count: u64) -> f64 {
    let mut kernel = kernel();
    kernel.flight(RING);
    let main = async {
        let lock = Rc::new(Mutex::named("accounts", ()));
        let start = Cpu::now();
        let mut all = Vec::new();
        for _ in 0..tasks {
            let lock = lock.clone();
            let takes = async move {
                for _ in 0..count / tasks {
                    let _held = lock.lock().await.expect("nothing interrupts it");
                    traps::yield_now().await.expect("nothing interrupts it");
                }
            };
            all.push(traps::spawn("takes", takes).await);
        }
        for mut task in all {
            task.join().await.expect("it ends");
        }
        start.each(count)
    };
    kernel.run(main).expect("main ends")
}
