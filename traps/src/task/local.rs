//! Locals: the statics by which a task reads and sets the values that belong to it.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use super::values::{Key, change, find, look, replace};
use crate::threads::context::crossed;

fn own(key: Key) -> Option<Rc<dyn Any>> {
    look(|values| find(&values.own, key))
}

fn inherited(key: Key) -> Option<Arc<dyn Any + Send + Sync>> {
    match crossed() {
        Some(values) => find(&values, key),
        None => look(|values| find(&values.inherited, key)),
    }
}

/// Makes one kind of local: what its values are counted by, and in which list they are.
macro_rules! local {
    (
        $(#[$doc:meta])*
        $name:ident, $pointer:ident<$any:ty>, [$($bound:tt)*], $list:ident
    ) => {
        $(#[$doc])*
        pub struct $name<T: 'static> {
            /// Of a size, and able to change: so no two statics share an address, and a `const`
            /// in place of a static does not compile.
            place: AtomicU8,
            value: PhantomData<fn() -> T>,
        }

        impl<T: 'static $($bound)*> $name<T> {
            /// A local without a value, for a `static`.
            #[must_use]
            #[expect(clippy::new_without_default, reason = "it is of use in a static only")]
            pub const fn new() -> Self {
                Self { place: AtomicU8::new(0), value: PhantomData }
            }

            fn key(&'static self) -> Key {
                ptr::from_ref(&self.place).addr()
            }

            fn typed(value: $pointer<$any>) -> $pointer<T> {
                value.downcast().expect("a static has values of one type")
            }

            /// The value that the running task has; `None` if it has none, and outside a task.
            /// Does not trap.
            #[must_use]
            pub fn get(&'static self) -> Option<$pointer<T>> {
                $list(self.key()).map(Self::typed)
            }

            /// Gives the running task a value, and gives back the one that it had. Does not trap.
            ///
            /// # Panics
            ///
            /// Outside a task.
            #[track_caller]
            pub fn set(&'static self, value: impl Into<$pointer<T>>) -> Option<$pointer<T>> {
                let value: $pointer<$any> = value.into();
                match change(|values| replace(&mut values.$list, self.key(), Some(value))) {
                    Some(before) => before.map(Self::typed),
                    None => outside(Location::caller()),
                }
            }

            /// Takes the value away from the running task; `None` if it has none, and outside a
            /// task. Does not trap.
            pub fn take(&'static self) -> Option<$pointer<T>> {
                // Looked at first: a task without values gets no entry by this.
                self.get()?;
                change(|values| replace(&mut values.$list, self.key(), None))?.map(Self::typed)
            }
        }

        impl<T> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

#[cold]
fn outside(site: &Location<'_>) -> ! {
    panic!("rule: a local is set by a task; the one at {site} was set outside a kernel's poll")
}

local! {
    /// A value that each task has for itself: no child sees it, and it ends with its task.
    ///
    /// Costs nothing in a task that has none; in others, a search by task at each use.
    ///
    /// ```no_run
    /// use std::cell::Cell;
    /// use traps::TaskLocal;
    ///
    /// static DEPTH: TaskLocal<Cell<u32>> = TaskLocal::new();
    ///
    /// # async fn example() {
    /// DEPTH.set(Cell::new(1));
    /// let mut child = traps::spawn("child", async { DEPTH.get().is_none() }).await;
    /// assert!(child.join().await.unwrap());
    /// assert_eq!(DEPTH.get().unwrap().get(), 1);
    /// # }
    /// ```
    ///
    /// It is told from others by where it is, so it is a `static` and not a `const`:
    ///
    /// ```compile_fail,E0716
    /// const DEPTH: traps::TaskLocal<u32> = traps::TaskLocal::new();
    /// DEPTH.get();
    /// ```
    TaskLocal, Rc<dyn Any>, [], own
}

local! {
    /// A value that a task's children start with: by [`spawn`](crate::spawn) and in a
    /// [`TaskGroup`](crate::TaskGroup), as it is at the spawn. A job that the task gives to a
    /// [thread](crate::run_in_thread()) has it too. What parent or child set later, the
    /// other does not see.
    ///
    /// Costs nothing where there is none; a child that inherits costs one entry in a table.
    ///
    /// ```no_run
    /// use traps::InheritedLocal;
    ///
    /// static USER: InheritedLocal<String> = InheritedLocal::new();
    ///
    /// # async fn example() {
    /// USER.set("ada".to_owned());
    /// let mut child = traps::spawn("child", async { USER.get() }).await;
    /// USER.set("grace".to_owned());
    /// assert_eq!(*child.join().await.unwrap().unwrap(), "ada");
    /// # }
    /// ```
    InheritedLocal, Arc<dyn Any + Send + Sync>, [+ Send + Sync], inherited
}
