//! A token bucket: it bounds the rate of something, and allows short bursts.
//!
//! The bucket stores no tokens, but how long it will take until it is full again. A token costs
//! `every`, and this time passes by itself. So nothing has to run to fill the bucket, and no
//! rounding adds up. With 2 tokens at most and one new token a second:
//!
//! ```text
//! at 0.0 s    full in 0 s    take 1, full in 1 s
//! at 0.0 s    full in 1 s    take 1, full in 2 s: empty
//! at 0.5 s    full in 1.5 s  one more would be 2.5 s: wait for 0.5 s
//! ```

use std::panic::Location;
use std::time::Duration;

use crate::core::gate;
use crate::interrupts::interrupt::Interrupt;
use crate::sync::Mutex;
use crate::time::Time;
use crate::verbs::sleep_from;

/// A token bucket: a limit of a rate, with bursts. It begins full. Each take removes tokens, and
/// each `every` adds one, up to the capacity. So in any period `p`, at most `capacity + p / every`
/// tokens are taken: up to 10 in a minute if 5 is the capacity and `every` is 12 s.
///
/// Waiting tasks are served first come, first served. To refuse instead, use
/// [`try_take`](TokenBucket::try_take).
///
/// ```
/// use std::time::Duration;
/// use traps::{Time, TokenBucket, clock};
///
/// # testing::run(async {
/// // Ten requests a second, and bursts of two.
/// let bucket = TokenBucket::new(2, Duration::from_secs(1) / 10);
/// for _ in 0..5 {
///     bucket.take(1).await?;
/// }
/// assert_eq!(clock().await, Time::ZERO + Duration::from_millis(300));
/// assert!(!bucket.try_take(1));
/// # Ok::<(), traps::Interrupt>(())
/// # }).output.unwrap();
/// ```
#[derive(Debug)]
pub struct TokenBucket {
    capacity: u32,
    every: Duration,
    /// The task that has the lock is the next to take tokens.
    level: Mutex<Level>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// How long the bucket needs to be full, at the time `at` of a kernel with this number.
    missing: Duration,
    at: Time,
    kernel: u32,
}

impl TokenBucket {
    /// Makes a full bucket for `capacity` tokens, to which a token is added `every` so often. For a
    /// rate in bytes, a token is a byte.
    ///
    /// # Panics
    ///
    /// Panics if `capacity` is zero.
    #[must_use]
    pub fn new(capacity: u32, every: Duration) -> TokenBucket {
        assert!(capacity > 0, "rule: a token bucket has room for a token");
        TokenBucket { capacity, every, level: Mutex::named("bucket", Level::default()) }
    }

    /// Takes tokens, and waits until the bucket has them. *Blocks* unless it has them now and no
    /// other task waits. An interrupted or dropped wait takes no token.
    ///
    /// # Errors
    ///
    /// Returns the interrupt that ended the wait.
    ///
    /// # Panics
    ///
    /// Panics if `tokens` is more than the capacity.
    #[track_caller]
    pub fn take(&self, tokens: u32) -> impl Future<Output = Result<(), Interrupt>> {
        self.check(tokens);
        let (lock, site) = (self.level.lock(), Location::caller());
        async move {
            let mut level = lock.await?;
            while let Err(wait) = self.take_now(&mut level, tokens) {
                sleep_from(wait, site).await?;
            }
            Ok(())
        }
    }

    /// Takes tokens if the bucket has them now and no task waits for some. Returns whether it has
    /// taken them. Does not trap.
    ///
    /// # Panics
    ///
    /// Panics if `tokens` is more than the capacity.
    #[track_caller]
    #[must_use]
    pub fn try_take(&self, tokens: u32) -> bool {
        self.check(tokens);
        let level = self.level.try_lock();
        level.is_some_and(|mut level| self.take_now(&mut level, tokens).is_ok())
    }

    /// The bucket would never have more tokens than its capacity.
    #[track_caller]
    fn check(&self, tokens: u32) {
        let capacity = self.capacity;
        assert!(tokens <= capacity, "rule: {tokens} tokens from a bucket for {capacity}");
    }

    /// Takes tokens, or returns how long to wait for them.
    fn take_now(&self, level: &mut Level, tokens: u32) -> Result<(), Duration> {
        let (now, kernel) = (gate::now().unwrap_or_default(), gate::epoch());
        // A point of another kernel's clock means nothing here: begin with a full bucket.
        let is_ours = level.kernel == kernel;
        let missing =
            if is_ours { level.missing.saturating_sub(now - level.at) } else { Duration::ZERO };
        let missing = missing.saturating_add(self.every.saturating_mul(tokens));
        let wait = missing.saturating_sub(self.every.saturating_mul(self.capacity));
        if !wait.is_zero() {
            return Err(wait);
        }
        *level = Level { missing, at: now, kernel };
        Ok(())
    }
}
