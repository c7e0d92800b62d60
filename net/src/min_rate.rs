//! The minimum rate at which a peer must send or take bytes, over a sliding window.
//!
//! The time of a rate is *waiting time*: only waits for the peer count, so a slow reader on our
//! side costs the peer nothing. This is a pure structure: it reads no clock, and the caller passes
//! in the length of each wait.
//!
//! The window is cut into 31 parts. A ring of 32 *buckets* counts the bytes: one bucket is being
//! filled, and the other 31 are the window. Bucket number `n` counts the bytes that came in the
//! part `n * span` to `(n + 1) * span` of the waiting time, and its slot in the ring is `n % 32`.
//! So a bucket leaves the window when its slot is needed again, at `(n + 32) * span`. Before a
//! wait, the buckets are taken out from the oldest on, until the rest is too little. The last one
//! taken out determines when the peer is too slow if it sends nothing more.
//!
//! Suppose a peer must send 240 bytes/s over 5 s, which is 1,200 bytes a window; a bucket is 0.16 s
//! long. The peer sends a megabyte after 1 s (bucket 6), and then one byte a second. The megabyte
//! leaves the window at 38 * 0.1613 s = 6.13 s, and the peer is cut off there.
//!
//! Why not the obvious way:
//!
//! - *A limit on each wait alone.* A peer that sends one byte per wait never reaches the limit.
//! - *An average from the beginning.* A peer that begins with a burst can then send one byte per
//!   wait for a long time.
//! - *The exact time of each read.* It needs memory without bound. Buckets are wrong by at most one
//!   bucket, and always in the peer's favor.

use std::time::Duration;

/// The number of slots in the ring. One bucket is being filled, and the others are the window.
const BUCKETS: usize = 32;

/// A minimum number of bytes in each window of the time spent waiting for a peer.
///
/// A limit on each wait alone does not stop a peer that sends one byte per wait. An average from
/// the beginning does not stop a peer that begins with a burst. This limit holds over every window
/// of length `window`, from the first full one on. The time that the caller spends between its
/// waits does not count.
///
/// The window is counted in 31 parts. A result is exact, or too patient by at most one part; it is
/// never too strict. Takes 160 bytes and no allocation. A wait costs O(32).
///
/// ```
/// use std::time::Duration;
/// let mut rate = net::MinRate::new(240, Duration::from_secs(5));
/// assert_eq!(rate.before_wait(), Some(Duration::from_secs(5)));
/// rate.after_wait(Duration::from_secs(3), 100);
/// assert_eq!(rate.before_wait(), Some(Duration::from_secs(2)));
/// ```
#[derive(Clone, Debug)]
pub struct MinRate {
    /// The length of the window, in microseconds, like all times in this type.
    window: u64,
    /// The length of one bucket.
    span: u64,
    /// The smallest number of bytes allowed in a window. Zero means no limit.
    least: u64,
    /// The sum of all waits so far.
    waited: u64,
    /// The number of bytes in each bucket. Bucket number `n` is at `n % BUCKETS`.
    buckets: [u32; BUCKETS],
}

impl MinRate {
    /// Makes a limit that asks for `rate` bytes a second over each `window`, and for at least one
    /// byte a window. Asks for nothing if `rate` or `window` is zero or the window is endless. Asks
    /// for at most 4 GiB a window.
    #[must_use]
    pub fn new(rate: u64, window: Duration) -> MinRate {
        let bytes = (u128::from(rate) * u128::from(micros(window))).div_ceil(1_000_000);
        MinRate::at_least(u64::try_from(bytes).unwrap_or(u64::MAX), window)
    }

    /// Makes a limit that asks for `bytes` bytes over each `window`, at most 4 GiB. Asks for
    /// nothing if `bytes` is zero or the window is endless. With a window of zero, a peer is too
    /// slow at once.
    #[must_use]
    pub fn at_least(bytes: u64, window: Duration) -> MinRate {
        let window = micros(window);
        let least = if window == u64::MAX { 0 } else { bytes.min(u64::from(u32::MAX)) };
        let span = window.div_ceil(BUCKETS as u64 - 1).max(1);
        MinRate { window, span, least, waited: 0, buckets: [0; BUCKETS] }
    }

    /// Returns the length of the window.
    pub(crate) fn window(&self) -> Duration {
        Duration::from_micros(self.window)
    }

    /// Asks for as many bytes as `other` from now on. The window stays the same.
    pub(crate) fn ask_for(&mut self, other: &MinRate) {
        self.least = other.least;
    }

    /// Forgets all waits and bytes so far, for the next body.
    pub fn restart(&mut self) {
        (self.waited, self.buckets) = (0, [0; BUCKETS]);
    }

    /// Returns how long the next wait may last if the peer sends nothing: `None` means any time,
    /// and zero means that the peer was too slow already.
    #[must_use]
    pub fn before_wait(&self) -> Option<Duration> {
        if self.least == 0 {
            return None;
        }
        let mut sum: u64 = self.buckets.iter().copied().map(u64::from).sum();
        let newest = self.waited / self.span;
        let oldest = newest.saturating_sub(BUCKETS as u64 - 1);
        // No bucket leaves before the first window is full.
        let mut end = self.window;
        for number in oldest..=newest {
            if sum < self.least {
                break;
            }
            sum -= u64::from(self.buckets[place(number)]);
            // A bucket leaves when its slot is needed again.
            end = number.saturating_add(BUCKETS as u64).saturating_mul(self.span);
        }
        Some(Duration::from_micros(end.saturating_sub(self.waited)))
    }

    /// Records a wait, and the bytes that came at its end. A read that did not wait has `waited`
    /// zero.
    pub fn after_wait(&mut self, waited: Duration, bytes: usize) {
        let before = self.waited / self.span;
        self.waited = self.waited.saturating_add(micros(waited));
        let newest = self.waited / self.span;
        for number in (before..newest).take(BUCKETS) {
            self.buckets[place(number + 1)] = 0;
        }
        let bucket = &mut self.buckets[place(newest)];
        *bucket = bucket.saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
}

fn place(number: u64) -> usize {
    (number % BUCKETS as u64) as usize
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A direct implementation of the rule, which keeps every read and its time.
    struct Naive {
        least: u64,
        window: u64,
        waited: u64,
        came: Vec<(u64, u64)>,
    }

    impl Naive {
        /// Returns the first time from now on at which the preceding window holds too few bytes.
        fn end(&self) -> u64 {
            let held = |at: u64| -> u64 {
                self.came.iter().filter(|(when, _)| when + self.window > at).map(|c| c.1).sum()
            };
            // The sum changes only at the points where bytes leave the window.
            let leaves = self.came.iter().map(|(when, _)| when + self.window);
            let mut points: Vec<u64> = leaves.chain([self.window, self.waited]).collect();
            points.retain(|at| *at >= self.waited.max(self.window));
            points.sort_unstable();
            *points.iter().find(|at| held(**at) < self.least).expect("in the end all has left")
        }
    }

    proptest! {
        #[test]
        fn d25_it_is_the_naive_rule_but_for_one_span_of_patience(
            rate in 1_u64..2_000,
            window in 1_u64..8_000_000,
            waits in prop::collection::vec((0_u64..3_000_000, 0_usize..3_000, 0_u32..4), 1..60),
        ) {
            let mut rated = MinRate::new(rate, Duration::from_micros(window));
            let least = rated.least;
            let mut naive = Naive { least, window, waited: 0, came: Vec::new() };
            let patience = window / (BUCKETS as u64 - 1) + BUCKETS as u64 + 1;
            for (waited, bytes, short) in waits {
                let waited = waited >> (8 * short);
                rated.after_wait(Duration::from_micros(waited), bytes);
                naive.waited += waited;
                naive.came.push((naive.waited, bytes as u64));
                if least == 0 {
                    prop_assert_eq!(rated.before_wait(), None);
                    continue;
                }
                let limit = rated.before_wait().expect("it asks for something");
                let end = naive.waited + micros(limit);
                prop_assert!(end >= naive.end(), "{end} is before {}", naive.end());
                prop_assert!(end <= naive.end() + patience, "{end} is after {}", naive.end());
            }
        }
    }

    /// Returns the time, in seconds, after which a peer is cut off. The peer sends `bytes` after
    /// each wait of length `each`.
    fn cut(mut rate: MinRate, each: Duration, bytes: usize) -> Option<f64> {
        for _ in 0..1000 {
            let limit = rate.before_wait().expect("it asks for something");
            if limit <= each {
                return Some(
                    Duration::from_micros(rate.waited).as_secs_f64() + limit.as_secs_f64(),
                );
            }
            rate.after_wait(each, bytes);
        }
        None
    }

    #[test]
    fn d25_a_drip_is_cut_after_the_window_and_an_honest_peer_is_not() {
        let rate = || MinRate::new(240, 5 * SECOND);
        assert_eq!(cut(rate(), SECOND, 1), Some(5.0));
        assert_eq!(cut(rate(), SECOND, 300), None);
        assert_eq!(cut(rate(), SECOND / 100, 3), None);
        let mut burst = rate();
        burst.after_wait(SECOND, 1_000_000);
        let end = cut(burst, SECOND, 1).expect("a drip after a burst is a drip");
        assert!((6.0..6.17).contains(&end), "{end}");
    }

    #[test]
    fn nothing_is_asked_for_where_a_number_is_zero_or_the_window_has_no_end() {
        for (rate, window) in [(0, SECOND), (240, Duration::ZERO), (240, Duration::MAX)] {
            assert_eq!(MinRate::new(rate, window).before_wait(), None);
        }
        // A rate below one byte a window asks for one byte.
        let mut least = MinRate::new(240, Duration::from_millis(4));
        least.after_wait(SECOND, 0);
        assert_eq!(least.before_wait(), Some(Duration::ZERO));
        // The greatest numbers do not overflow.
        for window in [5 * SECOND, Duration::from_micros(1)] {
            let mut most = MinRate::new(u64::MAX, window);
            for _ in 0..2 {
                most.after_wait(Duration::MAX, usize::MAX);
                assert!(most.before_wait().is_some());
            }
        }
    }
}
