//! Permits.

use std::borrow::Cow;
use std::cell::Cell;
use std::panic::Location;
use std::rc::Rc;

use super::held::Held;
use crate::{Error, Interrupt, WaitQueue};

/// A number of permits. Fair: a permit that is given back goes to the first in line.
///
/// A free permit is taken without a trap. Clones are the same semaphore. The log shows who has
/// taken permits, although a permit may have moved to another task since. So no deadlock that is
/// reported has a wait for a semaphore in it.
///
/// ```no_run
/// use traps::sync::Semaphore;
///
/// # async fn example() -> Result<(), traps::Error> {
/// let few = Semaphore::new(3);
/// let permit = few.acquire().await?;
/// // Two more may come here now.
/// drop(permit);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    line: WaitQueue,
    /// How many permits there are: free, held, or on their way to who waits.
    all: Rc<Cell<u32>>,
    /// How many there may be.
    bound: u32,
}

impl Semaphore {
    /// With so many permits.
    pub fn new(permits: u32) -> Semaphore {
        Semaphore::named("", permits)
    }

    /// With so many permits, and a name for the log.
    pub fn named(name: impl Into<Cow<'static, str>>, permits: u32) -> Semaphore {
        let line = WaitQueue::with_permits(permits).described("semaphore", name);
        Semaphore { line, all: Rc::new(Cell::new(permits)), bound: u32::MAX }
    }

    /// The same semaphore, which never has more permits than now: [`Semaphore::add_permits`] only
    /// replaces those that were [forgotten](Permit::forget). Clones that were made before have no
    /// bound.
    ///
    /// ```
    /// use traps::{Error, sync::Semaphore};
    ///
    /// let few = Semaphore::named("few", 3).bounded();
    /// assert_eq!(few.add_permits(1), Err(Error::Full));
    /// ```
    pub fn bounded(self) -> Semaphore {
        Semaphore { bound: self.all.get(), ..self }
    }

    /// Takes a permit. *Blocks* while there is none.
    ///
    /// # Errors
    ///
    /// The interrupt that ended the wait; no permit is then taken.
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Result<Permit, Interrupt>> + use<> {
        let (held, all) = (Held::take(self.line.clone(), Location::caller()), self.all.clone());
        async move { Ok(Permit { held: held.await?, all }) }
    }

    /// Takes a permit if one is free.
    pub fn try_acquire(&self) -> Option<Permit> {
        Held::try_take(self.line.clone()).map(|held| Permit { held, all: self.all.clone() })
    }

    /// How many permits are free.
    pub fn available_permits(&self) -> u32 {
        self.line.permits()
    }

    /// Makes `n` new permits; those who wait get them first.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there would be more than the bound, or than `u32::MAX`; then none is
    /// made. Permits that are held count.
    pub fn add_permits(&self, n: u32) -> Result<(), Error> {
        let sum = self.all.get().checked_add(n).filter(|sum| *sum <= self.bound);
        self.all.set(sum.ok_or(Error::Full)?);
        self.line.give_permits(n);
        Ok(())
    }
}

/// A permit of a [`Semaphore`]; given back when dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit {
    held: Held,
    all: Rc<Cell<u32>>,
}

impl Permit {
    /// Drops the permit without giving it back: the semaphore has one less.
    pub fn forget(self) {
        self.all.set(self.all.get() - 1);
        self.held.forget();
    }
}
