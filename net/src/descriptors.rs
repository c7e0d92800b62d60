//! How many descriptors this process may have open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, which any process may do. Gives the limit
/// that is in force then; `u64::MAX` if there is none. Programs that this process starts inherit
/// it.
///
/// # Errors
///
/// The system's. The limit is as it was then.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum.unwrap_or(u64::MAX))
}
