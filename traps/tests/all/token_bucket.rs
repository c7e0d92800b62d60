//! The token bucket, on the virtual clock.

use std::rc::Rc;
use std::time::Duration;

use traps::{Time, TokenBucket, clock, ignore_after, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// Takes `tokens` one by one, and returns when it had each, in milliseconds.
async fn times(bucket: &TokenBucket, tokens: usize) -> Vec<u128> {
    let mut times = Vec::new();
    for _ in 0..tokens {
        bucket.take(1).await.unwrap();
        times.push((clock().await - Time::ZERO).as_millis());
    }
    times
}

#[test]
fn a_burst_is_at_most_the_capacity_and_the_rest_comes_at_the_rate() {
    testing::run(async {
        let bucket = TokenBucket::new(3, SECOND);
        assert_eq!(times(&bucket, 5).await, [0, 0, 0, 1000, 2000]);
        sleep(SECOND / 2).await.unwrap();
        assert!(!bucket.try_take(1));
        assert_eq!(times(&bucket, 1).await, [3000]);
        // However long nothing is taken, it holds no more than three.
        sleep(60 * SECOND).await.unwrap();
        assert_eq!(times(&bucket, 4).await, [63_000, 63_000, 63_000, 64_000]);
        assert!(bucket.try_take(0));
    });
}

#[test]
fn parts_of_a_microsecond_are_not_lost() {
    testing::run(async {
        let thirds = TokenBucket::new(3, SECOND / 3);
        assert_eq!(times(&thirds, 3).await, [0; 3]);
        for _ in 0..300 {
            thirds.take(1).await.unwrap();
        }
        let late = clock().await - (Time::ZERO + 100 * SECOND);
        assert!(late <= Duration::from_micros(1), "{late:?}");
        // Gigabytes a second.
        let bytes = TokenBucket::new(1 << 20, Duration::from_nanos(1));
        let before = clock().await;
        for _ in 0..101 {
            bytes.take(1_000_000).await.unwrap();
        }
        let took = clock().await - before;
        assert!(took.abs_diff(SECOND / 10) < Duration::from_millis(1), "{took:?}");
    });
}

#[test]
fn a_task_that_waits_for_many_is_not_overtaken() {
    testing::run(async {
        let bucket = Rc::new(TokenBucket::new(4, SECOND));
        bucket.take(4).await.unwrap();
        let take = |tokens| {
            let bucket = bucket.clone();
            async move {
                bucket.take(tokens).await.unwrap();
                clock().await
            }
        };
        let mut many = spawn("many", take(3)).await;
        let mut one = spawn("one", take(1)).await;
        sleep(2 * SECOND).await.unwrap();
        assert!(!bucket.try_take(1), "there are two, but for the first task");
        let ends = (many.join().await.unwrap(), one.join().await.unwrap());
        assert_eq!(ends, (Time::ZERO + 3 * SECOND, Time::ZERO + 4 * SECOND));
    });
}

#[test]
fn a_wait_that_ends_early_takes_no_token() {
    testing::run(async {
        let bucket = TokenBucket::new(2, SECOND);
        bucket.take(2).await.unwrap();
        assert!(ignore_after(SECOND, bucket.take(2)).await.unwrap().is_none());
        assert!(bucket.try_take(1));
        assert_eq!(times(&bucket, 1).await, [2000]);
    });
}

#[test]
fn in_a_later_kernel_the_bucket_is_full() {
    let bucket = TokenBucket::new(2, 60 * SECOND);
    for _ in 0..2 {
        let ran = testing::run(async { times(&bucket, 2).await });
        assert_eq!(ran.output, [0, 0]);
    }
}

#[test]
#[should_panic(expected = "rule: 3 tokens from a bucket for 2")]
fn more_than_the_capacity_is_never_there() {
    let _ = TokenBucket::new(2, SECOND).try_take(3);
}
