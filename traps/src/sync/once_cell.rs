//! A value that is made once.

use std::borrow::Cow;
use std::cell;
use std::panic::Location;

use super::held::Held;
use crate::{Interrupt, WaitQueue};

/// A value that the first task to need it makes, while the others wait for it.
///
/// ```no_run
/// use traps::sync::OnceCell;
///
/// # async fn connect() -> Result<u32, traps::Error> { Ok(7) }
/// # async fn example(pool: &OnceCell<u32>) -> Result<(), traps::Error> {
/// let pool = pool.get_or_try_init(async || connect().await).await?;
/// # drop(pool);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OnceCell<T> {
    value: cell::OnceCell<T>,
    /// One permit: the right to make the value.
    line: WaitQueue,
}

impl<T> Default for OnceCell<T> {
    fn default() -> OnceCell<T> {
        OnceCell::new()
    }
}

impl<T> OnceCell<T> {
    /// One without a value.
    pub fn new() -> OnceCell<T> {
        OnceCell::named("")
    }

    /// One without a value, with a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>) -> OnceCell<T> {
        let line = WaitQueue::with_permits(1).described("once_cell", name);
        OnceCell { value: cell::OnceCell::new(), line }
    }

    /// The value, if there is one.
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Sets the value.
    ///
    /// # Errors
    ///
    /// `value` itself, if there is a value or a task is making one.
    pub fn set(&self, value: T) -> Result<(), T> {
        match Held::try_take(self.line.clone()) {
            Some(_held) => self.value.set(value),
            None => Err(value),
        }
    }

    /// The value; if there is none, `init` makes it. *Blocks* while another task makes it, and
    /// where `init` does.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait for another task; `init` is then not called.
    #[track_caller]
    pub fn get_or_init(
        &self,
        init: impl AsyncFnOnce() -> T,
    ) -> impl Future<Output = Result<&T, Interrupt>> {
        self.get_or_try_init(async || Ok(init().await))
    }

    /// The value; if there is none, `init` makes it. If that fails, or is dropped midway, the
    /// next task tries: the first that waits. *Blocks* while another task makes it, and where
    /// `init` does. An `init` that asks for the value itself waits for itself.
    ///
    /// # Errors
    ///
    /// Of `init`, or the interrupt that ended the wait for another task; `init` is then not called.
    #[track_caller]
    pub fn get_or_try_init<E: From<Interrupt>>(
        &self,
        init: impl AsyncFnOnce() -> Result<T, E>,
    ) -> impl Future<Output = Result<&T, E>> {
        let held = Held::take(self.line.clone(), Location::caller());
        async {
            let _held = if self.get().is_none() { Some(held.await?) } else { None };
            if let Some(value) = self.get() {
                return Ok(value);
            }
            let value = init().await?;
            Ok(self.value.get_or_init(|| value))
        }
    }
}
