//! What the column of times holds: when something is due, or a mark and when it was set to; and
//! which of them comes first.
//!
//! Two bits are enough, as no deadline is a hundred thousand years away.

use crate::time::Time;

/// From here on a time is never. The bits from here up are the mark.
pub(crate) const END: Time = Time::from_micros(1 << 62);
/// It has fired, as a connection deadline may that is not armed anew.
const FIRED: u64 = 0b10 << 62;
/// It has come near: the kernel's heap says when it is due. `NEVER` has the same mark.
const NEAR: u64 = 0b11 << 62;

/// Whether it is due then, in the table.
#[inline(always)]
pub(super) fn is_due(at: Time) -> bool {
    at < END
}

pub(super) fn fired(at: Time) -> Time {
    Time::from_micros(FIRED | at.as_micros())
}

pub(super) fn near(at: Time) -> Time {
    Time::from_micros(NEAR | at.as_micros())
}

#[inline(always)]
pub(super) fn has_fired(at: Time) -> bool {
    at.as_micros() >> 62 == FIRED >> 62
}

/// What it was set to, whatever has become of it.
pub(super) fn off(at: Time) -> Time {
    match at {
        Time::NEVER => at,
        at => Time::from_micros(at.as_micros() & (END.as_micros() - 1)),
    }
}

/// The first of them. Taken in eight columns: no branch, and no column waits for another.
#[inline]
pub(super) fn earliest(times: &[Time]) -> Time {
    let mut first = [u64::MAX; 8];
    let (rows, rest) = times.as_chunks::<8>();
    for row in rows {
        for (first, at) in first.iter_mut().zip(row) {
            *first = at.as_micros().min(*first);
        }
    }
    let rest = rest.iter().map(|at| at.as_micros());
    Time::from_micros(rest.chain(first).fold(u64::MAX, u64::min))
}
