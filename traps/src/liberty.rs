//! The choices that the contract of the world leaves open. In a test, an explorer makes them.
//!
//! Such a choice is a *liberty*. The simulated machine and the pipe in memory call [`draw`] for
//! each one. Without an explorer, the result is always the usual choice.

use std::cell::RefCell;
use std::rc::Rc;

/// A kind of choice that the program does not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liberty {
    /// The choice of the ready task that runs first. A kernel promises first come, first served, so
    /// only an explorer takes this liberty.
    Order,
    /// The order of arrivals at one instant.
    Arrivals,
    /// The delay until the machine notices that time has passed.
    Lateness,
    /// The choice whether a descriptor looks ready when it is not.
    Readiness,
    /// The number of bytes that a read or a write moves.
    Lengths,
    /// The time that a job takes on its thread.
    Jobs,
}

/// A function that draws a number from 0 to the given number.
type Explorer = Rc<dyn Fn(Liberty, u64) -> u64>;

thread_local! {
    static EXPLORER: RefCell<Option<Explorer>> = const { RefCell::new(None) };
}

/// Draws a number from 0 to `most` from the explorer of this thread. Without an explorer, returns
/// 0, the usual choice.
#[must_use]
pub fn draw(liberty: Liberty, most: u64) -> u64 {
    let explorer = EXPLORER.with_borrow(Clone::clone);
    explorer.map_or(0, |explorer| explorer(liberty, most))
}

/// Returns whether this thread has an explorer.
#[must_use]
pub fn is_explored() -> bool {
    EXPLORER.with_borrow(Option::is_some)
}

/// Calls `run`, and lets `explorer` draw the numbers on this thread during the call.
pub fn explored<T>(explorer: Explorer, run: impl FnOnce() -> T) -> T {
    let _before = Before(EXPLORER.replace(Some(explorer)));
    run()
}

/// A guard that restores the previous explorer on drop, even after a panic.
struct Before(Option<Explorer>);

impl Drop for Before {
    fn drop(&mut self) {
        EXPLORER.set(self.0.take());
    }
}
