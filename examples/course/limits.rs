//! The limits of a student's program and of its build.

use std::time::Duration;

/// The limits of a process and its descendants.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From its start to its end. A wait for the lock of another cargo does not count.
    pub time: Duration,
    /// The CPU time of each process, in seconds.
    pub cpu: u64,
    /// Of all processes together, in MiB; and the data of each process.
    pub memory: u64,
    /// Processes and threads.
    pub tasks: u64,
    /// Standard output and standard error together, in MiB.
    pub output: u64,
    /// The largest file, in MiB.
    pub file: u64,
    /// Open files of each process.
    pub open: u64,
}

/// The exit code of a guard's child that cannot execute the program.
pub const NOT_EXECUTED: u8 = 126;

/// The limits of one run of a program.
pub const RUN: Limits = Limits {
    time: Duration::from_secs(10),
    cpu: 20,
    memory: 512,
    tasks: 64,
    output: 8,
    file: 64,
    open: 1024,
};

/// The limits of one build.
pub const BUILD: Limits = Limits {
    time: Duration::from_secs(60),
    cpu: 30,
    memory: 4096,
    tasks: 1024,
    output: 8,
    file: 1024,
    open: 4096,
};

/// The time of a build of the crates themselves, for the labs that change them.
pub const BUILD_OF_CRATES: Duration = Duration::from_secs(300);

impl Limits {
    /// The limits as rows of a table: what is limited, and by how much.
    pub fn rows(&self) -> [(&'static str, String); 7] {
        [
            ("time", format!("{} s", self.time.as_secs())),
            ("CPU time of a process", format!("{} s", self.cpu)),
            ("memory", format!("{} MiB", self.memory)),
            ("processes and threads", self.tasks.to_string()),
            ("output", format!("{} MiB", self.output)),
            ("size of a file", format!("{} MiB", self.file)),
            ("open files of a process", self.open.to_string()),
        ]
    }
}
