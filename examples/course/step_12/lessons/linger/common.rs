//! Given: the common module of the lesson `linger`.

pub use crate::lessons::common::*;

impl crate::lessons::Linger {
    pub fn start() -> std::process::ExitCode {
        super::main()
    }
}
