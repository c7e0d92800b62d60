//! The kernel of the course, under the name of the crate `kernel`.

use std::str::FromStr;

pub use traps::{Kernel, Machine, Real, Sim};

/// The course has one policy.
#[derive(Clone, Copy, Debug)]
pub enum Policy {
    Lazy,
}

impl FromStr for Policy {
    type Err = String;

    fn from_str(text: &str) -> Result<Policy, String> {
        if text == "lazy" { Ok(Policy::Lazy) } else { Err("expected lazy".to_owned()) }
    }
}
