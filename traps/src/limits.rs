//! The numbers that bound something here and have no option.

use std::time::Duration;

/// How long members of a [`TaskGroup`](crate::TaskGroup) may take to clean up, if nobody says.
pub(crate) const GROUP_GRACE: Duration = Duration::from_secs(5);

/// How many holders of a primitive are noted.
pub(crate) const HOLDERS: usize = 64;

/// How old the last line about a refusal by an [admission limit](crate::admission::Limit) is, at
/// least, when another one has a line.
pub(crate) const ADMISSION_PAUSE: Duration = Duration::from_secs(10);
