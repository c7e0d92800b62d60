//! `--flight SIZE`: the flight recorder of each kernel, and the files of its dumps.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kernel::{Dump, Flight, Kernel, Machine};
use traps::Signal;

use crate::complain;

thread_local! {
    /// The recorder of the kernel of this thread, and the dumps that the program has asked for.
    static HERE: RefCell<Option<(Flight, Last)>> = const { RefCell::new(None) };
}

/// The causes of the kernel that can come again and again. Each gets a dump once in this time, as
/// does each cause of the program.
const OFTEN: [&str; 3] = ["panic", "deadlock", "watchdog"];
const PAUSE: Duration = Duration::from_secs(60);

/// When each cause had its last dump.
#[derive(Default)]
struct Last(BTreeMap<String, Instant>);

impl Last {
    /// Returns whether the cause may have a dump now. The caller then makes it.
    fn is_due(&mut self, cause: &str) -> bool {
        let is_due = self.0.get(cause).is_none_or(|last| last.elapsed() >= PAUSE);
        if is_due {
            self.0.insert(cause.to_owned(), Instant::now());
        }
        is_due
    }
}

/// Records the kernel in so many bytes. Each dump is a file in the current directory. SIGUSR1 makes
/// one, too.
pub(crate) fn record<M: Machine>(kernel: &mut Kernel<M>, bytes: usize) {
    let flight = kernel.flight(bytes);
    let mut last = Last::default();
    flight.on_dump(move |dump| {
        if !OFTEN.contains(&dump.cause()) || last.is_due(dump.cause()) {
            write(dump);
        }
    });
    HERE.replace(Some((flight.clone(), Last::default())));
    kernel.on_signal(Signal::User1, move |_| flight.dump("SIGUSR1"));
}

/// Returns whether the kernel of this thread has a recorder.
#[must_use]
pub fn is_on() -> bool {
    HERE.with_borrow(Option::is_some)
}

/// Makes a dump of the recorder of this thread's kernel, at most one a minute for each cause.
/// Returns whether it did. The time is compared first, because a dump copies up to a quarter of the
/// ring.
pub fn dump(cause: &str) -> bool {
    HERE.with_borrow_mut(|here| {
        let Some((flight, last)) = here else { return false };
        let is_due = last.is_due(cause);
        if is_due {
            flight.dump(cause);
        }
        is_due
    })
}

fn write(dump: &Dump) {
    // One number for all workers, so that no two have the same file.
    static DUMPS: AtomicU32 = AtomicU32::new(1);
    let number = DUMPS.fetch_add(1, Ordering::Relaxed);
    let path = format!("flight-{}-{number}.trace", process::id());
    let (cause, line) = (dump.cause(), dump.line());
    let written = File::create_new(&path).and_then(|file| dump.write_to(&mut BufWriter::new(file)));
    complain(match written {
        Ok(()) => format!("flight recorder: {cause} at #{line:04}, in {path}"),
        Err(error) => format!("flight recorder: {cause} at #{line:04}; no {path}: {error}"),
    });
}
