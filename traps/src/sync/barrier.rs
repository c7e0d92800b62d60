//! Tasks that go on together.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::Location;

use super::held::OnDrop;
use crate::core::filing::unread;
use crate::{Interrupt, WaitQueue};

/// Where tasks wait until there are `n` of them; then all go on, and the next `n` can come.
///
/// ```no_run
/// use traps::sync::Barrier;
///
/// # async fn measure() {}
/// # async fn example(all: &Barrier) -> Result<(), traps::Error> {
/// measure().await;
/// if all.wait().await?.is_leader() {
///     println!("all have measured");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Barrier {
    n: usize,
    /// How many wait for this round to end.
    arrived: Cell<usize>,
    /// How often it was opened.
    round: Cell<u64>,
    line: WaitQueue,
}

impl Barrier {
    /// For `n` tasks; 0 is taken as 1.
    pub fn new(n: usize) -> Barrier {
        Barrier::named("", n)
    }

    /// For `n` tasks, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, n: usize) -> Barrier {
        let line = WaitQueue::new().described("barrier", name);
        Barrier { n, arrived: Cell::new(0), round: Cell::new(0), line }
    }

    /// Waits until `n` tasks are here, in this call. *Blocks*, unless this is the last of them,
    /// which wakes the others in the order in which they came.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; the task is then not counted. If the others have gone on
    /// with it before the interrupt could be read, this is no error, and the interrupt is delivered
    /// at the next trap that blocks.
    #[track_caller]
    pub fn wait(&self) -> impl Future<Output = Result<BarrierWaitResult, Interrupt>> {
        let site = Location::caller();
        async move {
            self.arrived.set(self.arrived.get() + 1);
            let round = self.round.get();
            if self.arrived.get() >= self.n {
                self.arrived.set(0);
                self.round.set(round + 1);
                self.line.wake(u64::MAX);
                return Ok(BarrierWaitResult(true));
            }
            let counts = || self.round.get() == round;
            let leave = || self.arrived.set(self.arrived.get() - usize::from(counts()));
            let _leave = OnDrop(Some(leave));
            // A wake from before may come, passed on by a wait that was dropped unread.
            while counts() {
                match self.line.wait_from(site).await {
                    Err(interrupt) if counts() => return Err(interrupt),
                    Err(interrupt) => unread(&interrupt),
                    Ok(()) => {}
                }
            }
            Ok(BarrierWaitResult(false))
        }
    }
}

/// What [`Barrier::wait`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether this task came last: one of each `n`.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}
