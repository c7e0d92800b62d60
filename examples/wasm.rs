//! Four lessons as one module of WebAssembly. The gate runs them in node: each log must equal the
//! one of Linux, byte for byte. The other lessons read the system's clock, or need its descriptors.
//!
//! In this file `common` is this file: it has no command line, and collects the log in memory.

extern crate self as common;

use std::cell::RefCell;
use std::fmt::Debug;
use std::io;
use std::process::ExitCode;

use kernel::{Kernel, Sim};

#[path = "hello.rs"]
mod hello;
#[path = "nested.rs"]
mod nested;
#[path = "phases.rs"]
mod phases;
#[path = "producer.rs"]
mod producer;

const LESSONS: [fn() -> ExitCode; 4] = [hello::main, nested::main, phases::main, producer::main];

thread_local! {
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Runs a lesson, and returns the length of its log.
#[unsafe(no_mangle)]
extern "C" fn run(lesson: usize) -> usize {
    LOG.take();
    LESSONS[lesson]();
    LOG.with_borrow(Vec::len)
}

/// Returns the address of the log of the last lesson.
#[unsafe(no_mangle)]
extern "C" fn log() -> *const u8 {
    LOG.with_borrow(|log| log.as_ptr())
}

struct Log;

impl io::Write for Log {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(lines));
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The command line of a lesson, with `--virtual` alone.
pub struct Lesson {
    /// Always true.
    pub virtual_clock: bool,
}

impl Lesson {
    /// Takes the name and the summary of a lesson, and needs neither.
    pub fn parse(_: &str, _: &str) -> Lesson {
        Lesson { virtual_clock: true }
    }

    /// Runs the lesson on `sim`, and shuts the kernel down.
    #[track_caller]
    pub fn run<F: Future<Output: Debug>>(&self, sim: Sim, lesson: F) -> ExitCode {
        let mut kernel = Kernel::new(sim);
        kernel.trace_to(Log);
        let ran = kernel.run(lesson);
        kernel.shutdown().expect("a lesson leaves nothing that fails");
        ran.map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS)
    }
}
