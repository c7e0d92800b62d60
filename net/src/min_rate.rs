//! The least rate at which a peer must send or take bytes, over a window that slides.
//!
//! A pure structure: reads no clock and counts only the time that it is told of.

use std::time::Duration;

/// Places in the ring. One is being filled, the others are the window.
const BUCKETS: usize = 32;

/// At least so many bytes in each window of the time spent waiting for the peer.
///
/// A limit on each wait alone is defeated by one byte a wait; an average from the beginning, by a
/// burst and then one byte a wait. This holds over every window of `window`, at any point from the
/// first full one. What the reader does between its waits costs the peer nothing.
///
/// Counts in 31 spans of the window: what it tells is exact or, by one span at most, too
/// patient, never too strict. 160 bytes, no allocation; O(32) a wait.
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
    /// In microseconds, as all times here.
    window: u64,
    /// Of one bucket: its length.
    span: u64,
    /// Bytes in a window; zero asks for none.
    least: u64,
    /// All waits so far.
    waited: u64,
    /// Bytes by when they came, in waiting time: that of bucket number `n` is at `n % BUCKETS`.
    buckets: [u32; BUCKETS],
}

impl MinRate {
    /// Asks for `rate` bytes a second over each `window`; for nothing if one of them is zero or the
    /// window has no end, else for a byte a window at least. A window of more than 4 GiB asks for
    /// 4 GiB.
    #[must_use]
    pub fn new(rate: u64, window: Duration) -> MinRate {
        let bytes = (u128::from(rate) * u128::from(micros(window))).div_ceil(1_000_000);
        MinRate::at_least(u64::try_from(bytes).unwrap_or(u64::MAX), window)
    }

    /// Asks for so many bytes over each `window`, else as [`MinRate::new`].
    #[must_use]
    pub fn at_least(bytes: u64, window: Duration) -> MinRate {
        let window = micros(window);
        let least = if window == u64::MAX { 0 } else { bytes.min(u64::from(u32::MAX)) };
        let span = window.div_ceil(BUCKETS as u64 - 1).max(1);
        MinRate { window, span, least, waited: 0, buckets: [0; BUCKETS] }
    }

    /// The window that it counts over.
    pub(crate) fn window(&self) -> Duration {
        Duration::from_micros(self.window)
    }

    /// Begins anew, for the next body.
    pub fn restart(&mut self) {
        (self.waited, self.buckets) = (0, [0; BUCKETS]);
    }

    /// How long the next wait may be if nothing comes in it; `None` for any time, zero if it was
    /// too slow already.
    #[must_use]
    pub fn before_wait(&self) -> Option<Duration> {
        if self.least == 0 {
            return None;
        }
        let mut sum: u64 = self.buckets.iter().copied().map(u64::from).sum();
        let newest = self.waited / self.span;
        let oldest = newest.saturating_sub(BUCKETS as u64 - 1);
        // Nothing leaves before the first window is full.
        let mut end = self.window;
        for number in oldest..=newest {
            if sum < self.least {
                break;
            }
            sum -= u64::from(self.buckets[place(number)]);
            // A bucket leaves when its place is needed again.
            end = number.saturating_add(BUCKETS as u64).saturating_mul(self.span);
        }
        Some(Duration::from_micros(end.saturating_sub(self.waited)))
    }

    /// A wait is over: it took so long, and so many bytes came at its end. A read that did not
    /// wait took no time.
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

    /// All that came, and when: the rule word for word.
    struct Naive {
        least: u64,
        window: u64,
        waited: u64,
        came: Vec<(u64, u64)>,
    }

    impl Naive {
        /// The first point from now at which the window before it holds too little.
        fn end(&self) -> u64 {
            let held = |at: u64| -> u64 {
                self.came.iter().filter(|(when, _)| when + self.window > at).map(|c| c.1).sum()
            };
            // It changes where something leaves, and there only.
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

    /// When a peer that sends so many bytes after each so long wait is cut off, in seconds.
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
        // As is one byte in a window that would have less.
        let mut least = MinRate::new(240, Duration::from_millis(4));
        least.after_wait(SECOND, 0);
        assert_eq!(least.before_wait(), Some(Duration::ZERO));
        // The greatest numbers are only great.
        for window in [5 * SECOND, Duration::from_micros(1)] {
            let mut most = MinRate::new(u64::MAX, window);
            for _ in 0..2 {
                most.after_wait(Duration::MAX, usize::MAX);
                assert!(most.before_wait().is_some());
            }
        }
    }
}
