//! What tasks of one thread use to agree with each other: the scheduling queue, and the primitives
//! that are built from it alone.
//!
//! | type | for |
//! |---|---|
//! | [`WaitQueue`] | new primitives |
//! | [`Mutex`], [`RwLock`] | a value that one task has, or one writer or several readers |
//! | [`Semaphore`] | a number of tasks at a time |
//! | [`Event`] | a flag |
//! | [`Condition`] | a change of what a [`Mutex`] guards |
//! | [`Barrier`] | tasks that go on together |
//! | [`OnceCell`] | a value that is made once |
//!
//! All are fair: who waits is served in the order of arrival. What becomes free is handed to the
//! first in line and cannot be taken by anybody else on the way. A wait that is interrupted or
//! dropped takes nothing with it: what it was handed goes to the next. A wait stands in line once
//! the poll that began it is over: until then a `try_` call may take what becomes free.
//!
//! What is free is taken without a trap. Guards and permits give back what they have when they are
//! dropped. Each primitive can have a name for the log: [`Mutex::named`].

mod barrier;
mod condition;
mod event;
mod held;
mod mutex;
mod once_cell;
mod queue;
mod rw_lock;
mod semaphore;

pub use barrier::{Barrier, BarrierWaitResult};
pub use condition::Condition;
pub use event::Event;
pub use mutex::{Mutex, MutexGuard};
pub use once_cell::OnceCell;
pub use queue::{Wait, WaitQueue};
pub use rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{Permit, Semaphore};
