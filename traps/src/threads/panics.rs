//! Foreign code that may panic, and what a panic says.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs foreign code; the message of its panic, if that happens.
pub(crate) fn caught<R>(code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(code)).map_err(into_panic_message)
}

/// Runs foreign code, such as a waker; a panic of it goes no further.
pub fn quietly(code: impl FnOnce()) {
    // The panic hook has told of it. To drop its payload may panic again.
    let _ = catch_unwind(AssertUnwindSafe(code)).map_err(mem::forget);
}

/// Drops a foreign value; a panic of it goes no further.
pub fn drop_quietly<T>(value: T) {
    quietly(move || drop(value));
}

/// The message of a panic, as far as it is text.
#[must_use]
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let string = || panic.downcast_ref::<String>().map(String::as_str);
    let text = panic.downcast_ref::<&str>().copied().or_else(string);
    text.unwrap_or("a panic without a message")
}

/// The message of a panic whose payload nobody else wants. Its own drop may panic.
#[must_use]
pub fn into_panic_message(panic: Box<dyn Any + Send>) -> String {
    let message = panic_message(&*panic).to_owned();
    drop_quietly(panic);
    message
}
