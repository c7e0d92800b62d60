//! What the world may do one way or another, and who decides that: in a test, an explorer.
//!
//! The simulated machine and the pipe in memory ask here wherever the contract leaves something
//! open. Without an explorer the answer is always the usual.

use std::cell::RefCell;
use std::rc::Rc;

/// A kind of decision that is not the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Liberty {
    /// Which of the tasks that are ready runs first. A kernel promises first come, first served:
    /// this is the one liberty that only an explorer takes.
    Order,
    /// In which order comes what comes at one instant.
    Arrivals,
    /// How late the machine notices that time has passed.
    Lateness,
    /// Whether a descriptor looks ready that is not.
    Readiness,
    /// How few bytes a read or a write moves.
    Lengths,
    /// How long a job takes on its thread.
    Jobs,
}

/// Draws a number up to the one given.
type Source = Rc<dyn Fn(Liberty, u64) -> u64>;

thread_local! {
    static SOURCE: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// A number from 0 to `most`, as the explorer of this thread draws it; without one 0, the usual.
#[must_use]
pub fn draw(liberty: Liberty, most: u64) -> u64 {
    let source = SOURCE.with_borrow(Clone::clone);
    source.map_or(0, |source| source(liberty, most))
}

/// Whether an explorer draws on this thread.
#[must_use]
pub fn is_explored() -> bool {
    SOURCE.with_borrow(Option::is_some)
}

/// Has `source` draw on this thread while `run` runs.
pub fn explored<T>(source: Source, run: impl FnOnce() -> T) -> T {
    let _before = Before(SOURCE.replace(Some(source)));
    run()
}

/// The source before this one, to be put back, by a panic too.
struct Before(Option<Source>);

impl Drop for Before {
    fn drop(&mut self) {
        SOURCE.set(self.0.take());
    }
}
