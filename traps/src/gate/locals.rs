//! What tasks carry with them: their local values, kept by the task's number.
//!
//! Hands values out to be dropped; drops none itself while the table is borrowed.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

use super::kernels::drop_each;
use super::now::{Now, now};
use super::{GATE, Gate};
use crate::protocol::TaskRef;

/// A value that stays with its task.
pub(crate) type Own = Rc<dyn Any>;

/// A value that children get too, and jobs for a thread.
pub(crate) type Shared = Arc<dyn Any + Send + Sync>;

/// Which static it is the value of: its address, told apart and never ordered.
pub(crate) type Key = usize;

/// All values of one thread's tasks. Tasks without values have no entry.
pub(super) struct Locals {
    /// By kernel and task.
    tasks: RefCell<BTreeMap<(u32, NonZeroU64), TaskLocals>>,
}

/// The values of one task. A handful at most, so they are searched in order.
#[derive(Default)]
pub struct TaskLocals {
    pub(super) own: Vec<(Key, Own)>,
    /// The parent's own list until one of the two changes it.
    pub(super) inherited: Option<Rc<Vec<(Key, Shared)>>>,
}

impl TaskLocals {
    /// Drops them. A panic of one takes no other along, and goes no further.
    pub fn drop_each(self) {
        let TaskLocals { own, inherited } = self;
        drop_each(own);
        // What children share goes with the last of them.
        drop_each(inherited.and_then(Rc::into_inner).unwrap_or_default());
    }
}

impl Locals {
    pub(super) const fn new() -> Locals {
        Locals { tasks: RefCell::new(BTreeMap::new()) }
    }

    /// Whether a child of that task gets values.
    pub(super) fn hands_down(&self, task: TaskRef) -> bool {
        let tasks = self.tasks.borrow();
        tasks.get(&key_of(task)).is_some_and(|found| found.inherited.is_some())
    }

    /// Takes out all values of a kernel's tasks.
    pub(super) fn close(&self, epoch: u32, now: &Now) -> Vec<TaskLocals> {
        let mut tasks = self.tasks.borrow_mut();
        let closed: Vec<_> = tasks.keys().filter(|key| key.0 == epoch).copied().collect();
        let closed = closed.into_iter().filter_map(|key| tasks.remove(&key)).collect();
        now.any_locals.set(!tasks.is_empty());
        closed
    }
}

fn key_of(task: TaskRef) -> (u32, NonZeroU64) {
    (task.epoch, task.serial)
}

impl Gate {
    /// A child gets the values that its parent hands down.
    #[inline]
    pub fn inherit_locals(&self, parent: TaskRef, child: TaskRef) {
        if !self.has_locals() {
            return;
        }
        let mut tasks = self.locals.tasks.borrow_mut();
        let inherited = tasks.get(&key_of(parent)).and_then(|found| found.inherited.clone());
        if inherited.is_some() {
            tasks.insert(key_of(child), TaskLocals { own: Vec::new(), inherited });
        }
    }

    /// The values that a job for a thread takes along.
    #[inline]
    pub fn crossing_locals(&self, task: TaskRef) -> Vec<(Key, Shared)> {
        if !self.has_locals() {
            return Vec::new();
        }
        let tasks = self.locals.tasks.borrow();
        let values = tasks.get(&key_of(task)).and_then(|found| found.inherited.as_deref());
        values.cloned().unwrap_or_default()
    }

    /// Whether any task has values.
    #[inline]
    #[must_use]
    pub fn has_locals(&self) -> bool {
        self.now.any_locals.get()
    }

    /// A task ends: its values, to be dropped.
    pub fn take_locals(&self, task: TaskRef) -> Option<TaskLocals> {
        let mut tasks = self.locals.tasks.borrow_mut();
        let taken = tasks.remove(&key_of(task));
        self.now.any_locals.set(!tasks.is_empty());
        taken
    }

    /// How many tasks have values: for tests.
    #[must_use]
    pub fn tasks_with_locals(&self) -> usize {
        self.locals.tasks.borrow().len()
    }

    /// Runs foreign code that belongs to no task, although one is being served. It does not panic.
    pub fn aside<R>(&self, code: impl FnOnce() -> R) -> R {
        // What it withdraws may put things in order here, and what is filed is this task's.
        self.now.keep_order();
        let task = self.now.task.take();
        let result = code();
        self.now.task.set(task);
        result
    }
}

fn find<V: Clone>(values: &[(Key, V)], key: Key) -> Option<V> {
    values.iter().find(|(found, _)| *found == key).map(|(_, value)| value.clone())
}

/// Puts a value, or nothing, in place of what is there.
fn replace<V>(values: &mut Vec<(Key, V)>, key: Key, value: Option<V>) -> Option<V> {
    let place = values.iter().position(|(found, _)| *found == key);
    match (place, value) {
        (Some(place), Some(value)) => Some(mem::replace(&mut values[place].1, value)),
        (Some(place), None) => Some(values.remove(place).1),
        (None, Some(value)) => {
            values.push((key, value));
            None
        }
        (None, None) => None,
    }
}

/// Looks at the values of the task that is being polled; `None` outside a poll.
fn look<R>(read: impl FnOnce(&TaskLocals) -> Option<R>) -> Option<R> {
    // A thread without a kernel gets no gate by this.
    let task = now()?.task.get()?;
    GATE.try_with(|gate| {
        let tasks = gate.locals.tasks.borrow();
        read(tasks.get(&key_of(task))?)
    })
    .ok()
    .flatten()
}

/// Changes the values of the task that is being polled; `Err` outside a poll.
fn change<V, R>(value: V, write: impl FnOnce(&mut TaskLocals, V) -> R) -> Result<R, V> {
    let Some(task) = now().and_then(|now| now.task.get()) else { return Err(value) };
    let mut value = Some(value);
    let done = GATE.try_with(|gate| {
        let mut tasks = gate.locals.tasks.borrow_mut();
        gate.now.any_locals.set(true);
        Some(write(tasks.entry(key_of(task)).or_default(), value.take()?))
    });
    done.ok().flatten().ok_or_else(|| value.take().expect("it was not written"))
}

pub(crate) fn own_local(key: Key) -> Option<Own> {
    look(|values| find(&values.own, key))
}

pub(crate) fn inherited_local(key: Key) -> Option<Shared> {
    if crate::threads::is_in_job() {
        return crate::threads::crossed(key);
    }
    look(|values| find(values.inherited.as_ref()?, key))
}

pub(crate) fn set_own_local(key: Key, value: Option<Own>) -> Result<Option<Own>, Option<Own>> {
    change(value, |values, value| replace(&mut values.own, key, value))
}

pub(crate) fn set_inherited_local(
    key: Key,
    value: Option<Shared>,
) -> Result<Option<Shared>, Option<Shared>> {
    change(value, |values, value| {
        replace(Rc::make_mut(values.inherited.get_or_insert_default()), key, value)
    })
}
