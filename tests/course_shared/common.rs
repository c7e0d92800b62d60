//! What the lessons ask of the examples' common module, over the kernel of the course.

use std::fmt::Debug;
use std::io;
use std::process::ExitCode;

use kernel::{Kernel, Machine, Policy, Sim};

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

pub fn parse<T: clap::Args>(name: &'static str, about: &'static str) -> T {
    let found = T::augment_args(clap::Command::new(name).about(about)).get_matches();
    T::from_arg_matches(&found).unwrap()
}

#[track_caller]
pub fn run<M: Machine, T: Debug + 'static>(
    kernel: io::Result<Kernel<M>>,
    main: impl Future<Output = T> + 'static,
) -> ExitCode {
    kernel.unwrap().run(main).unwrap();
    ExitCode::SUCCESS
}
