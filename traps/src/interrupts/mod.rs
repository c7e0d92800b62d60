//! What may end a wait early: timeouts and cancellations. This is the second reading, after
//! `core/`.
//!
//! | file | is |
//! |---|---|
//! | `source.rs` | the record of a scope, and what it gets when it fires |
//! | `tree.rs` | how scopes open, close, and lie in each other |
//! | `interrupt.rs` | the error of a wait that ended early, and how it travels upwards |
//! | `pending.rs` | where a source is pending, and which wait takes its interrupt |
//! | `scope.rs` | how a future runs in a scope, and the futures of branches and shields |
//!
//! The kernel's half is `kernel/src/interrupts.rs`.
//!
//! An *interrupt* is the error with which a blocking trap ends early. Its *source* is a scope that
//! has *fired*: a timeout or a connection deadline whose time has passed, or the scope around a
//! task that was cancelled. A *connection deadline* is a slot in a table that its task moves with
//! each request; a *guard* is a timeout with such a deadline, or one that wins against a value of
//! the same turn. Both are in `traps/src/deadline.rs`, and `timeout_after` is in
//! `traps/src/timeout.rs`. When a source fires, its task may be parked in one wait or in several,
//! be ready with a result, be running, or be inside a shield. Whatever it is doing, two promises
//! hold until the source closes or is armed again:
//!
//! - **Once per branch.** Each branch of a `join` or a `race` gets the interrupt once. After that,
//!   its clean-up code can wait as usual.
//! - **Never lost.** If no wait can take the interrupt now, the next blocking trap does. If a
//!   future is dropped before it has read its interrupt, another parked wait gets it, or the next
//!   blocking trap.
//!
//! # The rule
//!
//! All other files point here; this is its only wording.
//!
//! > A source is pending at itself, and at each branch inside it that was open when it fired or,
//! > for a cancellation, when that was asked for. A wait looks along its way out, from its own
//! > scope to the source. It takes the interrupt at the first scope where the source is pending,
//! > unless there is a shield between the wait and the source. When a wait has taken it, the source
//! > is no longer pending anywhere on that way. If the task never reads the interrupt, the source
//! > is pending again where the wait took it, and further out at each place that no other wait has
//! > taken and kept.
//!
//! A wait looks at three moments: when its trap is dispatched, before the trap has any effect; and,
//! if it is parked then, when the source fires and when an interrupt goes back. All waits that are
//! parked look before any of them takes. If several sources are pending for a wait, a cancellation
//! comes first, and then the source that fired first. A task that waits for foreign wakers alone
//! has no trap to end. Outside any shield it is polled, and the future of the timeout takes the
//! interrupt itself. A cancellation has no such future. The poll only lets the task file another
//! trap, which takes the cancellation.
//!
//! A trap whose event has already happened does not block, and does not look. Such a trap is a join
//! of a task that has ended, a wait in a queue that keeps a permit, or a wait for a descriptor that
//! is known to be ready.
//!
//! For example, the timeout `T` is around `join(a, b)`. At 1 s, `a` sleeps, and `b` sleeps inside a
//! shield:
//!
//! ```text
//!                                            way out     pending at
//! T fires                                                a, b, T
//! the parked sleep of a takes it             a, T        b
//! a reads it, and sleeps again to clean up   a, T        b           takes nothing
//! the shield of b has ended; b sleeps        b, T        nothing     takes it at b
//! that sleep is dropped unread               b, T        b           T still counts as taken by a
//! ```
//!
//! If instead `a` drops its first sleep unread, after the second line, `T` is pending at `a`, `b`
//! and `T` again.
//!
//! # One exception to "once"
//!
//! When a timeout closes, each enclosing timeout or guard that has fired is pending again, out to
//! the next shield. It is pending at one place. That is the innermost branch around the closing
//! timeout, of those that were open when the enclosing timeout fired. Without such a branch, it is
//! the enclosing timeout itself. Only traps that are filed after the close take it. Otherwise code
//! that handles the error of an inner timeout, in a loop of attempts for example, would never meet
//! the outer deadline.
//!
//! # Why not the obvious way
//!
//! *A flag on the task* ("cancelled") is read by every later trap, so clean-up code cannot wait.
//! *A list of the waits to end*, made when the source fires, misses the branch that is inside a
//! shield at that time.

pub mod interrupt;
pub mod pending;
pub mod scope;
pub mod source;
pub mod tree;
