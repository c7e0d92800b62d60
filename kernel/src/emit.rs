//! How the kernel makes events, and how it runs code that is not its own.
//!
//! The macros number an event, and build it only if somebody listens.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whose events are of no task: number and name.
pub(crate) const KERNEL: (u64, &str) = (0, "kernel");

/// The kernel's own task, which moves what other threads sent to the ready queue.
pub(crate) const WAKEUP: (u64, &str) = (1, "wakeup");

/// Keeps the code that makes events out of the functions that mostly do not.
#[cold]
#[inline(never)]
pub(crate) fn apart<R>(code: impl FnOnce() -> R) -> R {
    code()
}

/// Numbers an event of a task and, if anybody listens, makes its line. Gives its number.
macro_rules! emit {
    ($kernel:expr, $task:expr, $event:expr) => {
        emit!($kernel, $task, $event, None)
    };
    ($kernel:expr, $task:expr, $event:expr, $timed:expr) => {
        $crate::emit::emit_for!($kernel, $kernel.tasks.label($task), $event, $timed)
    };
}
pub(crate) use emit;

/// The same for [`KERNEL`] or [`WAKEUP`].
macro_rules! emit_for {
    ($kernel:expr, $who:expr, $event:expr) => {
        $crate::emit::emit_for!($kernel, $who, $event, None)
    };
    ($kernel:expr, $who:expr, $event:expr, $timed:expr) => {{
        $kernel.log.seq += 1;
        if $kernel.log.is_listening() {
            $crate::emit::apart(|| {
                let event = $event;
                let timed = $timed;
                let (id, name) = $who;
                $kernel.log.write(id, name, event, timed);
            });
        }
        $kernel.log.seq
    }};
}
pub(crate) use emit_for;

/// A line that is worth its cost even when only warnings are wanted. The arms and scopes that came
/// before it without one have their numbers: all, or so many.
macro_rules! announce {
    ($kernel:expr, $who:expr, $event:expr) => {{
        let untold = $kernel.timers.table().untold();
        let (id, name) = $who;
        announce!($kernel, untold, id, name, $event)
    }};
    ($kernel:expr, $untold:expr, $id:expr, $name:expr, $event:expr) => {{
        $kernel.log.count_untold($untold);
        $kernel.log.seq += 1;
        $kernel.log.write($id, $name, $event, None);
    }};
}
pub(crate) use announce;

/// Runs foreign code that must not take the kernel down, such as a `Drop`.
pub(crate) fn quietly(code: impl FnOnce()) {
    // The panic hook has said what happened; the task concerned goes on without.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
        // Not dropped: to drop a panic's payload may panic again.
        std::mem::forget(payload);
    }
}

pub(crate) fn drop_quietly<T>(value: T) {
    quietly(move || drop(value));
}
