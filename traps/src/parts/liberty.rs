//! Choices that belong to the world and not to the program. In a test, an *explorer* makes them.
//!
//! Such a choice is a *liberty*: for example, how many bytes a read returns. The simulated machine
//! and the pipe in memory call [`draw`] for each choice. Without an explorer, the result is always
//! 0, which stands for the usual choice.

use std::cell::RefCell;
use std::rc::Rc;

/// A kind of choice that the program does not make.
///
/// ```
/// use std::rc::Rc;
/// use traps::internal::liberty::{Liberty, draw, explored};
///
/// // This explorer makes each read and write as short as it can be.
/// let short = Rc::new(|liberty, most| if liberty == Liberty::Lengths { most } else { 0 });
/// let drawn = explored(short, || (draw(Liberty::Lengths, 9), draw(Liberty::Order, 9)));
/// assert_eq!(drawn, (9, 0));
/// ```
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

/// A function that draws a number from 0 to the given number, both included.
type Explorer = Rc<dyn Fn(Liberty, u64) -> u64>;

thread_local! {
    static EXPLORER: RefCell<Option<Explorer>> = const { RefCell::new(None) };
}

/// Draws a number from 0 to `most` from the explorer of this thread. Without an explorer, returns
/// 0, the usual choice.
///
/// ```
/// use traps::internal::liberty::{Liberty, draw};
///
/// assert_eq!(draw(Liberty::Arrivals, 9), 0); // no explorer on this thread
/// ```
#[must_use]
pub fn draw(liberty: Liberty, most: u64) -> u64 {
    let explorer = EXPLORER.with_borrow(Clone::clone);
    explorer.map_or(0, |explorer| explorer(liberty, most))
}

/// Returns whether this thread has an explorer.
///
/// ```
/// assert!(!traps::internal::liberty::is_explored());
/// ```
#[must_use]
pub fn is_explored() -> bool {
    EXPLORER.with_borrow(Option::is_some)
}

/// Calls `run`, and lets `explorer` draw the numbers on this thread during the call.
///
/// ```
/// use std::rc::Rc;
/// use traps::internal::liberty::{Liberty, draw, explored, is_explored};
///
/// let drawn = explored(Rc::new(|_, most| most), || draw(Liberty::Arrivals, 9));
/// assert_eq!(drawn, 9);
/// assert!(!is_explored()); // only during the call
/// ```
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
