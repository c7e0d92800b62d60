//! The operating system with a tape: it records the answers of [`Real`], or plays a record in
//! place of them.
//!
//! A machine that records asks [`Real`], and writes each answer down. A machine that plays has no
//! poller, clock, bell or signal handler: the record has all answers. A value is not recorded if no
//! decision depends on it, such as the result of the end of a registration.
//!
//! Most readings of the coarse clock are equal to the one before. So the record has a line only for
//! a reading that differs, with the number of equal readings before it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, io};

use traps::internal::table::Descriptor;
use traps::internal::tape::{self, Answer, Mode, Words};
use traps::threads::is_in_job;
use traps::{Signal, Time};

use super::sealed::Driver;
use super::{Arrivals, Bell, IoEvent, Real, WaitLimit};

/// The operating system with a tape. [`Kernel::record_to`](crate::Kernel::record_to) makes it so
/// that it records, and [`Kernel::replay`](crate::Kernel::replay) so that it plays a record.
///
/// ```
/// use kernel::{Kernel, Options, recorded_program};
/// use traps::wall_clock;
///
/// let path = std::env::temp_dir().join(format!("trapline-{}.record", std::process::id()));
/// let mut kernel = Kernel::record_to(&path, Options::new())?;
/// let recorded = kernel.run(async { wall_clock() })?;
/// kernel.shutdown()?;
/// drop(kernel);
///
/// let mut kernel = Kernel::replay(&path, Options::new())?;
/// assert_eq!(kernel.run(async { wall_clock() })?, recorded); // the time of day of the record
/// kernel.shutdown()?;
/// assert!(!recorded_program(&path)?.is_empty());
/// std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Taped {
    /// `None` while a record is played.
    real: Option<Real>,
    /// The deadline tick that the environment has set for the recorded run.
    tick: Option<Duration>,
    /// The last reading of the coarse clock, and the number of equal readings since.
    mark: (u64, u64),
}

/// The bell of a machine that plays a record. It does nothing, because the record says in which
/// turn the kernel gets its messages.
struct NoBell;

impl Bell for NoBell {
    fn ring(&self) {}
}

impl Taped {
    /// Makes a machine for the tape of this thread. Without `real`, it plays the tape.
    pub(crate) fn new(real: Option<Real>, tick: Option<Duration>) -> Taped {
        Taped { real, tick, mark: (0, 0) }
    }

    /// Asks for a result that has no value.
    fn done(
        &mut self,
        kind: &'static str,
        live: impl FnOnce(&mut Real) -> io::Result<()>,
    ) -> io::Result<()> {
        let live = || self.real.as_mut().map_or_else(|| Ok(()), live);
        let put = |done: &io::Result<()>, words: &mut Words| words.result(done, |(), _| ());
        tape::input(kind, live, put, |answer| answer.result(|_| ()))
    }
}

/// Returns the name of this program, without its folder, and its arguments.
pub fn command() -> Vec<OsString> {
    let mut arguments = env::args_os();
    let program = arguments.next().unwrap_or_default();
    let name = Path::new(&program).file_name().unwrap_or_default().to_owned();
    std::iter::once(name).chain(arguments).collect()
}

/// The tape ends with its machine, so it also ends if no kernel could be made for the machine.
impl Drop for Taped {
    fn drop(&mut self) {
        let _ = tape::end();
    }
}

fn at(nanos: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_nanos(nanos)
}

/// Converts a time of day for the record: nanoseconds since 1970.
fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// The words for an event in the record, by its bits: `r` bytes to read, `w` room to write, `c` the
/// close of the peer, `u` urgent data.
const SEEN: [&str; 16] = [
    "-", "r", "w", "rw", "c", "rc", "wc", "rwc", "u", "ru", "wu", "rwu", "cu", "rcu", "wcu", "rwcu",
];

/// Writes the result of a wait of the machine: for each descriptor its index, its serial number and
/// its word of [`SEEN`], and then the signals. The serial number counts from the start of the tape,
/// because an earlier kernel of the recording thread may have used up some.
fn put_arrivals(arrivals: &Arrivals, words: &mut Words) {
    let before = u64::from(tape::serial());
    for arrival in &arrivals.io {
        let IoEvent { token, readable, writable, closed, urgent } = *arrival;
        words.number(token & 0xffff_ffff);
        words.number((token >> 32).wrapping_sub(before) & 0x7fff_ffff);
        let bits = [readable, writable, closed, urgent].map(usize::from);
        words.word(SEEN[bits[0] | bits[1] << 1 | bits[2] << 2 | bits[3] << 3]);
    }
    for signal in &arrivals.signals {
        words.word(&signal.to_string());
    }
}

fn get_arrivals(answer: &mut Answer<'_>) -> Arrivals {
    let mut arrivals = Arrivals::default();
    let before = u64::from(tape::serial());
    while !answer.is_empty() {
        let word = answer.word();
        if let Some(signal) = Signal::ALL.iter().find(|signal| signal.to_string() == word) {
            arrivals.signals.push(*signal);
            continue;
        }
        let (index, serial, seen) = (word.parse::<u32>(), answer.number(), answer.word());
        let (Ok(index), Some(bits)) = (index, SEEN.iter().position(|it| *it == seen)) else {
            return answer.wrong();
        };
        let serial = before.wrapping_add(serial) & 0x7fff_ffff;
        let saw = |bit: usize| bits >> bit & 1 != 0;
        arrivals.io.push(IoEvent {
            token: u64::from(index) | serial << 32,
            readable: saw(0),
            writable: saw(1),
            closed: saw(2),
            urgent: saw(3),
        });
    }
    arrivals
}

impl Driver for Taped {
    const IS_TAPED: bool = true;

    fn clock_name(&self) -> &'static str {
        "real"
    }

    fn tick(&self) -> Option<Duration> {
        self.tick
    }

    fn now(&mut self) -> Time {
        let live = || self.real.as_mut().map_or(0, |real| real.now().as_micros());
        Time::from_micros(tape::clock(live))
    }

    fn mark(&mut self) -> u64 {
        let (last, same) = self.mark;
        let Some(real) = &mut self.real else {
            let moved = tape::is_next(&format!("mark {same}"));
            let step = |answer: &mut Answer<'_>| (answer.number(), answer.number()).1;
            let step = if moved { tape::input("mark", || 0, |_, _| (), step) } else { 0 };
            self.mark = (last + step, if moved { 0 } else { same + 1 });
            return self.mark.0;
        };
        let mark = real.mark();
        self.mark = (mark, same + 1);
        if mark != last {
            let put = |step: &u64, words: &mut Words| {
                words.number(same);
                words.number(*step);
            };
            tape::input("mark", || mark.wrapping_sub(last), put, |_| 0);
            self.mark = (mark, 0);
        }
        mark
    }

    fn cpu(&mut self) -> Option<Duration> {
        let live = || self.real.as_mut().and_then(Driver::cpu).unwrap_or_default();
        let put = |cpu: &Duration, words: &mut Words| words.number(cpu.as_nanos() as u64);
        Some(tape::input("cpu", live, put, |answer| Duration::from_nanos(answer.number())))
    }

    fn wall_clock(&self) -> Box<dyn Fn() -> SystemTime> {
        let real = self.real.as_ref().map(Driver::wall_clock);
        Box::new(move || {
            let live = || nanos(real.as_ref().map_or_else(SystemTime::now, |real| real()));
            let put = |nanos: &u64, words: &mut Words| words.number(*nanos);
            let nanos = tape::input("wall", live, put, |answer| answer.number());
            // The task is being unwound. A `Drop` in it can wait for a time in a loop, and that
            // loop must end, so the clock must move.
            if tape::mode() == Mode::Stopped { SystemTime::now() } else { at(nanos) }
        })
    }

    fn wait(&mut self, until: WaitLimit, arrivals: &mut Arrivals) -> io::Result<()> {
        if until != WaitLimit::Now {
            tape::flush();
            if tape::has_lost() {
                // The kernel warns in the next turn that the record was lost. A real wait here
                // could delay that turn forever.
                return Ok(());
            }
        }
        let live = || {
            let Some(real) = &mut self.real else { return Ok(Arrivals::default()) };
            let mut found = Arrivals::default();
            real.wait(until, &mut found).map(|()| found)
        };
        let put = |found: &io::Result<_>, words: &mut Words| words.result(found, put_arrivals);
        let found = tape::input("wait", live, put, |answer| answer.result(get_arrivals))?;
        arrivals.io.extend(found.io);
        arrivals.signals.extend(found.signals);
        Ok(())
    }

    fn register(&mut self, descriptor: Descriptor, token: u64) -> io::Result<()> {
        self.done("register", |real| real.register(descriptor, token))
    }

    fn deregister(&mut self, descriptor: Descriptor) -> io::Result<()> {
        self.real.as_mut().map_or(Ok(()), |real| real.deregister(descriptor))
    }

    fn is_readable(&mut self, descriptor: Descriptor) -> bool {
        let live = || self.real.as_mut().is_none_or(|real| real.is_readable(descriptor));
        let put = |is: &bool, words: &mut Words| words.number(u64::from(*is));
        tape::input("readable", live, put, |answer| answer.number() != 0)
    }

    fn bell(&self) -> Arc<dyn Bell> {
        self.real.as_ref().map_or_else(|| Arc::new(NoBell) as _, Driver::bell)
    }

    fn watch_signal(&mut self, signal: Signal) -> io::Result<()> {
        self.done("watch", |real| real.watch_signal(signal))
    }

    fn thread_clock(&self) -> Box<dyn Fn() -> Time + Send + Sync> {
        let real = self.real.as_ref().map(Driver::thread_clock);
        Box::new(move || {
            let live = || real.as_ref().map_or(Time::ZERO, |real| real());
            // A job reads the clock on its own thread, which has no tape. In a replay, the context
            // of the job has another clock, so this one is not read.
            if is_in_job() || tape::mode() == Mode::Off {
                return live();
            }
            Time::from_micros(tape::clock(|| live().as_micros()))
        })
    }

    fn has_io(&self) -> bool {
        true
    }
}
