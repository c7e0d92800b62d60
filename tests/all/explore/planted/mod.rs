//! Small programs, each in a sound version and in one with a bug that a plain run does not show.

use std::time::Duration;

pub mod early_deadline;
pub mod lost_wake;
pub mod permit_leak;
pub mod reused_number;
pub mod starving_loop;

pub const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Sound,
    Broken,
}
