//! Given: the part of the crate `common` of the examples that the lessons use.

use std::cell::RefCell;
use std::fmt::Debug;
use std::io::{self, Write};
use std::process::ExitCode;
use std::rc::Rc;

use super::Policy;
use super::mini::{Kernel, Machine, Sim};

pub struct Options;

impl Options {
    pub fn policy(self, _: Policy) -> Options {
        self
    }
}

#[derive(clap::Args)]
pub struct Common {}

impl Common {
    pub fn options(&self) -> Options {
        Options
    }

    pub fn kernel<M: Machine>(&self, machine: M, _: Options) -> io::Result<Kernel<M>> {
        Ok(Kernel::new(machine))
    }
}

#[derive(clap::Args)]
pub struct Lesson {
    #[arg(long = "virtual")]
    pub virtual_clock: bool,
    #[command(flatten)]
    pub common: Common,
}

impl Lesson {
    pub fn parse(name: &'static str, about: &'static str) -> Lesson {
        parse(name, about)
    }

    pub fn ready(self, _: &str) -> Lesson {
        self
    }

    #[track_caller]
    pub fn run<T: Debug + 'static>(
        &self,
        sim: Sim,
        lesson: impl Future<Output = T> + 'static,
    ) -> ExitCode {
        run(self.common.kernel(sim, Options), lesson)
    }
}

/// Parses the arguments of a lesson on the virtual clock.
pub fn parse<T: clap::Args>(name: &'static str, about: &'static str) -> T {
    let command = T::augment_args(clap::Command::new(name).about(about));
    let found = command.get_matches_from([name, "--virtual"]);
    T::from_arg_matches(&found).expect("all other arguments have defaults")
}

/// Memory that a kernel writes its log to.
#[derive(Clone, Default)]
struct Buffer(Rc<RefCell<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a lesson, and prints its log with the paths that the sources have from the root.
#[track_caller]
pub fn run<M: Machine, T: Debug + 'static>(
    kernel: io::Result<Kernel<M>>,
    main: impl Future<Output = T> + 'static,
) -> ExitCode {
    let log = Buffer::default();
    let Ok(mut kernel) = kernel else { return ExitCode::FAILURE };
    kernel.trace_to(log.clone());
    let ended = kernel.run(main);
    let text = String::from_utf8_lossy(&log.0.take()).into_owned();
    print!("{}", text.replace("course/step_12/lessons/../../../", ""));
    if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
