//! The small verbs: time, the current task and its pending interrupt, and yielding. Also this
//! crate's fixed limits.

use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use crate::core::gate;
use crate::core::protocol::{Reply, Trap};
use crate::core::table::{Site, TaskId};
use crate::core::wait::{Call, call};
use crate::interrupts::interrupt::Interrupt;
use crate::interrupts::pending::InForce;
use crate::time::{Time, micros};

/// Reads the kernel clock. *Answers.* Costs one reading of the machine's clock.
///
/// ```
/// use std::time::Duration;
/// use traps::{clock, sleep};
///
/// # testing::run(async {
/// let start = clock().await;
/// sleep(Duration::from_secs(1)).await.unwrap();
/// assert_eq!(clock().await - start, Duration::from_secs(1));
/// # });
/// ```
#[track_caller]
pub fn clock() -> impl Future<Output = Time> {
    call(
        || Trap::Clock,
        Location::caller(),
        |reply| match reply {
            Reply::Time(time) => time,
            other => other.wrong(),
        },
    )
}

/// Reads the time of day. It can jump, so no deadline uses it. Does not trap.
///
/// ```
/// use std::time::Duration;
/// use traps::{sleep, wall_clock};
///
/// # testing::run(async {
/// let before = wall_clock();
/// sleep(Duration::from_secs(3600)).await.unwrap();
/// assert_eq!(wall_clock().duration_since(before).unwrap().as_secs(), 3600);
/// # });
/// ```
///
/// # Panics
///
/// Panics outside a kernel.
#[must_use]
#[track_caller]
pub fn wall_clock() -> SystemTime {
    gate::with_shared(|kernel| (kernel.wall)()).expect("rule: a kernel tells the time of day")
}

/// Returns the id of the calling task, which is its number in the log. Does not trap.
///
/// ```
/// use traps::{current_task, spawn};
///
/// # testing::run(async {
/// let mut child = spawn("child", async { current_task() }).await;
/// assert_eq!(child.join().await.unwrap(), child.id());
/// assert_ne!(child.id(), current_task());
/// # });
/// ```
///
/// # Panics
///
/// Panics outside a task.
#[track_caller]
pub fn current_task() -> TaskId {
    gate::task_id(Location::caller())
}

/// Returns the nearest deadline in force here, or `None`. A shield hides the deadlines outside it.
/// Does not trap.
///
/// ```
/// use std::time::Duration;
/// use traps::{Error, Time, current_deadline, timeout_after};
///
/// # testing::run(async {
/// assert_eq!(current_deadline(), None);
/// let second = Duration::from_secs(1);
/// let inside = timeout_after(second, async { Ok::<_, Error>(current_deadline()) });
/// assert_eq!(inside.await, Ok(Some(Time::ZERO + second)));
/// # });
/// ```
///
/// # Panics
///
/// Panics outside a task.
#[track_caller]
pub fn current_deadline() -> Option<Time> {
    in_force(Location::caller()).map(|found| found.deadline)
}

/// Returns the nearest deadline in force here, and the scope that set it.
pub(crate) fn in_force(site: Site) -> Option<InForce> {
    gate::with_records(site, |records, scope, kernel| records.in_force(scope, &kernel.deadlines))
}

/// Takes the interrupt that is pending here, as a blocking trap would. *Answers.*
///
/// Use it to make a long computation cancellable: it costs no turn. If several interrupts are
/// pending, a cancellation comes before a timeout, and the timeout that fired first comes before
/// the others. The kernel checks deadlines and runs other tasks only between two runs of this task.
/// So code that never parks sees no new interrupt. [`yield_now`] yields, and can be interrupted,
/// too.
///
/// Inside a shield it returns the interrupt that the shield holds back, without taking it. So
/// shielded code can end early, and the interrupt is still delivered after the shield.
///
/// ```
/// use traps::{check_cancellation, spawn, yield_now};
///
/// # testing::run(async {
/// let mut task = spawn("sum", async {
///     let mut sum = 0_u64;
///     for n in 0.. {
///         sum += n;
///         if n % 1000 == 0 {
///             yield_now().await.ok(); // lets the other tasks run
///         }
///         if check_cancellation().await.is_err() {
///             break;
///         }
///     }
///     sum
/// })
/// .await;
/// yield_now().await.unwrap();
/// task.cancel_now("enough");
/// assert!(task.join().await.is_ok()); // it ended by itself
/// # });
/// ```
///
/// # Errors
///
/// Returns the pending interrupt. This call delivers it, so it comes only once.
#[track_caller]
pub fn check_cancellation() -> impl Future<Output = Result<(), Interrupt>> {
    call(
        || Trap::Check,
        Location::caller(),
        |reply| match reply {
            Reply::Held(interrupt) => Err(interrupt),
            other => other.done(),
        },
    )
}

/// Takes the pending interrupt like [`check_cancellation`], for a wrapper that passes its caller's
/// location. Ignores an interrupt that a shield holds back.
///
/// ```
/// use std::panic::Location;
/// use traps::Interrupt;
/// use traps::internal::take_pending_from;
///
/// /// Reads the next page. The log shows the line that calls this.
/// #[track_caller]
/// fn next_page() -> impl Future<Output = Result<u32, Interrupt>> {
///     let site = Location::caller();
///     async move {
///         take_pending_from(site).await?;
///         Ok(7)
///     }
/// }
///
/// # testing::run(async {
/// assert_eq!(next_page().await, Ok(7)); // no interrupt is pending
/// # });
/// ```
pub fn take_pending_from(site: Site) -> impl Future<Output = Result<(), Interrupt>> {
    call(|| Trap::Check, site, Reply::done)
}

/// Returns the time left until the nearest deadline in force, or `None` if no deadline is in force.
/// Reads the clock. Does not trap.
///
/// ```
/// use std::time::Duration;
/// use traps::{Interrupt, remaining, sleep, timeout_after};
///
/// # testing::run(async {
/// let second = Duration::from_secs(1);
/// let left = timeout_after(5 * second, async {
///     sleep(2 * second).await?;
///     Ok::<_, Interrupt>(remaining())
/// });
/// assert_eq!(left.await, Ok(Some(3 * second)));
/// # });
/// ```
///
/// # Panics
///
/// Panics outside a task.
#[track_caller]
pub fn remaining() -> Option<Duration> {
    let deadline = current_deadline()?;
    Some(deadline.since(gate::now().unwrap_or_default()))
}

/// Waits until `duration` has passed on the kernel clock, and returns the reading of the clock.
/// *Blocks.*
///
/// The duration counts from the first poll, and is rounded up to a microsecond. The sleep never
/// ends early. A zero duration yields for one turn, and completes even if a deadline passes during
/// that turn. A sleep of [`Duration::MAX`] never ends.
///
/// ```
/// use std::time::Duration;
/// use traps::{Time, sleep};
///
/// # testing::run(async {
/// let woken_at = sleep(Duration::from_millis(1_500)).await.unwrap();
/// assert_eq!(woken_at, Time::from_micros(1_500_000));
/// # });
/// ```
///
/// # Errors
///
/// Returns the interrupt that ended the sleep.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    sleep_from(duration, Location::caller())
}

/// Sleeps like [`sleep`], for a wrapper that passes its caller's location.
///
/// ```
/// use std::panic::Location;
/// use std::time::Duration;
/// use traps::Sleep;
/// use traps::internal::sleep_from;
///
/// /// Sleeps for some minutes. The log shows the line that calls this.
/// #[track_caller]
/// fn minutes(n: u64) -> Sleep {
///     sleep_from(Duration::from_secs(60 * n), Location::caller())
/// }
///
/// # testing::run(async {
/// assert_eq!(minutes(2).await.unwrap().as_micros(), 120_000_000);
/// # });
/// ```
pub fn sleep_from(duration: Duration, site: Site) -> Sleep {
    Sleep { duration: micros(duration), until: Time::NEVER, call: Call::from(site) }
}

/// The future of [`sleep`].
///
/// ```
/// use std::time::Duration;
/// use traps::{Sleep, sleep};
///
/// # testing::run(async {
/// let pause: Sleep = sleep(Duration::from_secs(1));
/// pause.await.unwrap();
/// # });
/// ```
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Sleep {
    /// The duration in microseconds.
    duration: u64,
    /// The end of the sleep. The first poll sets it, and it stays if another task polls the future.
    /// In another kernel, the sleep begins again.
    until: Time,
    call: Call,
}

impl Future for Sleep {
    type Output = Result<Time, Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Sleep { duration, until, call } = &mut *self;
        let filed = call.ticket();
        let request = || {
            if !filed.is_some_and(gate::is_of_this_kernel) {
                *until = gate::now().unwrap_or_default() + Duration::from_micros(*duration);
            }
            Trap::Sleep { span: *duration, until: *until }
        };
        call.poll(cx, request).map(|reply| match reply {
            Reply::Time(time) => Ok(time),
            Reply::Interrupt(interrupt) => Err(interrupt),
            other => other.wrong(),
        })
    }
}

/// Yields until every task that is ready now has run once. *Blocks.*
///
/// ```
/// use std::{cell::Cell, rc::Rc};
/// use traps::{spawn, yield_now};
///
/// # testing::run(async {
/// let has_run = Rc::new(Cell::new(false));
/// let theirs = has_run.clone();
/// spawn("task", async move { theirs.set(true) }).detached().await;
/// assert!(!has_run.get());
/// yield_now().await.unwrap();
/// assert!(has_run.get());
/// # });
/// ```
///
/// # Errors
///
/// Returns the interrupt that was pending.
#[track_caller]
pub fn yield_now() -> impl Future<Output = Result<(), Interrupt>> {
    call(|| Trap::Yield { spent: false }, Location::caller(), Reply::done)
}

/// Takes one operation from the task's *budget*, which is renewed whenever the task parks. If the
/// budget is spent, the task yields for one turn. Await this before a system call that could
/// succeed again and again without parking the task.
///
/// ```
/// use traps::budget;
///
/// /// Adds up bytes that are in memory already, so no read ever parks the task.
/// async fn sum(bytes: &[u8]) -> Result<u64, traps::Interrupt> {
///     let mut sum = 0;
///     for chunk in bytes.chunks(16) {
///         budget().await?; // yields now and then, so that other tasks can run
///         sum += chunk.iter().map(|byte| u64::from(*byte)).sum::<u64>();
///     }
///     Ok(sum)
/// }
///
/// # let ran = testing::run(async {
/// assert_eq!(sum(&[1; 16 * 1000]).await, Ok(16_000));
/// # });
/// # assert!(ran.counters.turns > 5, "{:?}", ran.counters);
/// ```
///
/// # Errors
///
/// Returns the interrupt that was pending when the task yielded.
#[track_caller]
pub fn budget() -> Budget {
    budget_from(Location::caller())
}

/// Takes one operation like [`budget`], for a wrapper that passes its caller's location.
///
/// ```
/// use std::panic::Location;
/// use traps::internal::budget_from;
///
/// # testing::run(async {
/// budget_from(Location::caller()).await.unwrap();
/// # });
/// ```
pub fn budget_from(site: Site) -> Budget {
    Budget { call: Call::from(site) }
}

/// Takes one operation from the task's budget, and returns whether any was left. If so, [`budget`]
/// need not be awaited. Does not trap.
///
/// ```
/// use traps::budget;
/// use traps::internal::take_budget;
///
/// # testing::run(async {
/// // The fast path makes no future.
/// if !take_budget() {
///     budget().await.unwrap();
/// }
/// # });
/// ```
#[inline]
#[must_use]
pub fn take_budget() -> bool {
    gate::spend()
}

/// Takes up to `operations` more operations from the task's budget, for a call that counts as
/// several. Does not trap.
///
/// ```
/// use traps::internal::{spend_budget, take_budget};
///
/// # testing::run(async {
/// spend_budget(u32::MAX);
/// assert!(!take_budget()); // nothing is left until the task parks
/// # });
/// ```
pub fn spend_budget(operations: u32) {
    gate::spend_more(operations);
}

/// The future of [`budget`].
///
/// ```
/// use traps::{Budget, budget};
///
/// # testing::run(async {
/// let operation: Budget = budget();
/// operation.await.unwrap();
/// # });
/// ```
#[derive(Debug)]
#[must_use = "a budget that is not awaited is not taken from"]
pub struct Budget {
    call: Call,
}

impl Future for Budget {
    type Output = Result<(), Interrupt>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.call.ticket().is_none() && gate::spend() {
            return Poll::Ready(Ok(()));
        }
        let yielded = ready!(self.call.poll(cx, || Trap::Yield { spent: true })).done();
        // The yield has renewed the budget. Take the operation that the caller asked for.
        gate::spend();
        Poll::Ready(yielded)
    }
}

/// The default time that members of a [`TaskGroup`](crate::TaskGroup) get to clean up.
pub(crate) const GROUP_GRACE: Duration = Duration::from_secs(5);

/// The largest number of holders that are recorded for one primitive.
pub(crate) const HOLDERS: usize = 64;

/// The shortest time between two log lines that report a first refusal by one [admission
/// limit](crate::admission::AdmissionLimit).
pub(crate) const ADMISSION_PAUSE: Duration = Duration::from_secs(10);
