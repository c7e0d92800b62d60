//! Given: the common module of the lesson `nested`.

pub use crate::lessons::common::*;

impl crate::lessons::Nested {
    pub fn start() -> std::process::ExitCode {
        super::main()
    }
}
