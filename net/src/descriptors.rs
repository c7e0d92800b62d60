//! The number of descriptors that this process may have open.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit, which any process is allowed to do.
/// Returns the limit now in force, or `u64::MAX` if there is none. Child processes inherit the
/// limit.
///
/// # Errors
///
/// Returns the system's error. Then the limit is unchanged.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(maximum.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let limit = raise_descriptor_limit().unwrap();
        assert_eq!(raise_descriptor_limit().unwrap(), limit);
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        assert_eq!(current, maximum);
    }
}
