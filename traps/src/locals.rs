//! Task-locals: the statics through which a task reads and sets its own values.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;

use crate::context::inherited_of_job;
use crate::task::{LocalId, find, read_locals, replace, write_locals};

fn own(key: LocalId) -> Option<Rc<dyn Any>> {
    read_locals(|values| find(&values.own, key))
}

fn inherited(key: LocalId) -> Option<Arc<dyn Any + Send + Sync>> {
    match inherited_of_job() {
        Some(values) => find(&values, key),
        None => read_locals(|values| find(&values.inherited, key)),
    }
}

/// Defines one kind of local: its name, the pointer around its values, and the list that holds
/// them.
macro_rules! local {
    (
        $(#[$doc:meta])*
        $name:ident, $pointer:ident<$any:ty>, [$($bound:tt)*], $list:ident
    ) => {
        $(#[$doc])*
        pub struct $name<T: 'static> {
            /// A field whose address is the key of the local. The type has a size, so no two
            /// statics share an address. It also has interior mutability, so a `const` in place of
            /// a static does not compile.
            place: AtomicU8,
            value: PhantomData<fn() -> T>,
        }

        impl<T: 'static $($bound)*> $name<T> {
            /// Makes a local without a value, for a `static`.
            ///
            /// ```
            #[doc = concat!("use traps::", stringify!($name), " as Local;")]
            ///
            /// static USER: Local<String> = Local::new();
            ///
            /// assert!(USER.get().is_none());
            /// ```
            #[must_use]
            #[expect(clippy::new_without_default, reason = "it is of use in a static only")]
            pub const fn new() -> Self {
                Self { place: AtomicU8::new(0), value: PhantomData }
            }

            fn key(&'static self) -> LocalId {
                ptr::from_ref(&self.place).addr()
            }

            fn typed(value: $pointer<$any>) -> $pointer<T> {
                value.downcast().expect("a static has values of one type")
            }

            /// Returns the value of the running task. Returns `None` if it has none, and outside a
            /// task. Does not trap.
            ///
            /// ```
            #[doc = concat!("use traps::", stringify!($name), " as Local;")]
            ///
            /// static USER: Local<String> = Local::new();
            ///
            /// # testing::run(async {
            /// USER.set("ada".to_owned());
            /// assert_eq!(*USER.get().unwrap(), "ada");
            /// # });
            /// assert!(USER.get().is_none()); // outside the task
            /// ```
            #[must_use]
            pub fn get(&'static self) -> Option<$pointer<T>> {
                $list(self.key()).map(Self::typed)
            }

            /// Sets the value of the running task, and returns the previous value. Does not trap.
            ///
            /// ```
            #[doc = concat!("use traps::", stringify!($name), " as Local;")]
            ///
            /// static USER: Local<String> = Local::new();
            ///
            /// # testing::run(async {
            /// assert!(USER.set("ada".to_owned()).is_none());
            /// assert_eq!(*USER.set("grace".to_owned()).unwrap(), "ada");
            /// # });
            /// ```
            ///
            /// # Panics
            ///
            /// Panics outside a task.
            #[track_caller]
            pub fn set(&'static self, value: impl Into<$pointer<T>>) -> Option<$pointer<T>> {
                let value: $pointer<$any> = value.into();
                match write_locals(|values| replace(&mut values.$list, self.key(), Some(value))) {
                    Some(before) => before.map(Self::typed),
                    None => outside(Location::caller()),
                }
            }

            /// Removes the value of the running task and returns it. Returns `None` if there is
            /// none, and outside a task. Does not trap.
            ///
            /// ```
            #[doc = concat!("use traps::", stringify!($name), " as Local;")]
            ///
            /// static USER: Local<String> = Local::new();
            ///
            /// # testing::run(async {
            /// USER.set("ada".to_owned());
            /// assert_eq!(*USER.take().unwrap(), "ada");
            /// assert!(USER.get().is_none());
            /// # });
            /// ```
            pub fn take(&'static self) -> Option<$pointer<T>> {
                // `change` makes an entry in the table for a task that has none. There is nothing
                // to remove from such a task, so it needs no entry.
                self.get()?;
                let taken = write_locals(|values| replace(&mut values.$list, self.key(), None))?;
                taken.map(Self::typed)
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
    /// A value that belongs to one task. Its children do not see it, and it is dropped at the end
    /// of the task.
    ///
    /// It costs nothing in a task without values. In other tasks, each use searches a table by
    /// task.
    ///
    /// ```
    /// use std::cell::Cell;
    /// use traps::{TaskLocal, spawn};
    ///
    /// static DEPTH: TaskLocal<Cell<u32>> = TaskLocal::new();
    ///
    /// # testing::run(async {
    /// DEPTH.set(Cell::new(1));
    /// let mut child = spawn("child", async { DEPTH.get().is_none() }).await;
    /// assert!(child.join().await.unwrap());
    /// assert_eq!(DEPTH.get().unwrap().get(), 1);
    /// # });
    /// ```
    ///
    /// The address identifies the local, so it must be a `static`, not a `const`:
    ///
    /// ```compile_fail,E0716
    /// const DEPTH: traps::TaskLocal<u32> = traps::TaskLocal::new();
    /// DEPTH.get();
    /// ```
    TaskLocal, Rc<dyn Any>, [], own
}

local! {
    /// A value that the children of a task inherit, whether by [`spawn`](crate::spawn) or in a
    /// [`TaskGroup`](crate::TaskGroup). The child starts with the value that the parent has at the
    /// spawn. A job that the task gives to a [thread](crate::run_in_thread()) has the value, too.
    /// If parent or child set it later, the other does not see the change.
    ///
    /// It costs nothing if there is no value. A child that inherits costs one entry in a table.
    ///
    /// ```
    /// use traps::{InheritedLocal, spawn};
    ///
    /// static USER: InheritedLocal<String> = InheritedLocal::new();
    ///
    /// # testing::run(async {
    /// USER.set("ada".to_owned());
    /// let mut child = spawn("child", async { USER.get() }).await;
    /// USER.set("grace".to_owned());
    /// assert_eq!(*child.join().await.unwrap().unwrap(), "ada");
    /// # });
    /// ```
    InheritedLocal, Arc<dyn Any + Send + Sync>, [+ Send + Sync], inherited
}
