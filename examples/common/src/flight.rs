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
    /// The recorder of the kernel of this thread.
    static HERE: RefCell<Option<Flight>> = const { RefCell::new(None) };
}

/// The causes that a program can have again and again. Each gets a dump once in this time.
const OFTEN: [&str; 4] = ["panic", "deadlock", "watchdog", "slow"];
const PAUSE: Duration = Duration::from_secs(60);

/// Records the kernel in so many bytes. Each dump is a file in the current directory. SIGUSR1 makes
/// one, too.
pub(crate) fn record<M: Machine>(kernel: &mut Kernel<M>, bytes: usize) {
    let flight = kernel.flight(bytes);
    let mut last = BTreeMap::<String, Instant>::new();
    flight.on_dump(move |dump| {
        let cause = dump.cause();
        let is_early = last.get(cause).is_some_and(|last| last.elapsed() < PAUSE);
        if !is_early || !OFTEN.contains(&cause) {
            last.insert(cause.to_owned(), Instant::now());
            write(dump);
        }
    });
    HERE.replace(Some(flight.clone()));
    kernel.on_signal(Signal::User1, move |_| flight.dump("SIGUSR1"));
}

/// Makes a dump of the recorder of this thread's kernel, if there is one.
pub fn dump(cause: &str) {
    HERE.with_borrow(|flight| flight.iter().for_each(|flight| flight.dump(cause)));
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
