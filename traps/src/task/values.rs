//! The values that belong to tasks: some stay with theirs, some go to its children.
//!
//! Values are foreign: none is dropped while the table is borrowed.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::core::gate;
use crate::core::names::TaskRef;
use crate::threads::drop_quietly;

/// Which static a value belongs to: its address, told apart and never ordered.
pub(super) type Key = usize;
/// The values that children get, and that a job for a thread takes along.
pub(crate) type Crossing = Vec<(Key, Arc<dyn Any + Send + Sync>)>;

/// The values of one task. A handful at most, so they are searched in order.
#[derive(Default)]
pub(super) struct Locals {
    pub(super) own: Vec<(Key, Rc<dyn Any>)>,
    pub(super) inherited: Crossing,
}

thread_local! {
    static LOCALS: RefCell<BTreeMap<TaskRef, Locals>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether any task of this thread has values: a cheap test before the other two.
#[inline]
#[must_use]
pub fn any_locals() -> bool {
    LOCALS.try_with(|locals| !locals.borrow().is_empty()).unwrap_or(false)
}

/// A child gets the values that its parent hands down.
pub fn inherit_locals(parent: TaskRef, child: TaskRef) {
    let inherited = crossing(parent);
    if !inherited.is_empty() {
        let locals = Locals { own: Vec::new(), inherited };
        LOCALS.with_borrow_mut(|tasks| tasks.insert(child, locals));
    }
}

/// A task ends: drops its values. A panic of one takes no other along, and goes no further.
pub fn drop_locals(task: TaskRef) {
    let taken = LOCALS.try_with(|locals| locals.borrow_mut().remove(&task));
    if let Ok(Some(Locals { own, inherited })) = taken {
        own.into_iter().for_each(drop_quietly);
        inherited.into_iter().for_each(drop_quietly);
    }
}

/// The values that a job of that task takes to its thread.
pub(crate) fn crossing(task: TaskRef) -> Crossing {
    let values = LOCALS.try_with(|locals| Some(locals.borrow().get(&task)?.inherited.clone()));
    values.ok().flatten().unwrap_or_default()
}

/// The value of that key.
pub(super) fn find<V: Clone>(values: &[(Key, V)], key: Key) -> Option<V> {
    values.iter().find(|(found, _)| *found == key).map(|(_, value)| value.clone())
}

/// Puts a value, or nothing, in place of what is there.
pub(super) fn replace<V>(values: &mut Vec<(Key, V)>, key: Key, value: Option<V>) -> Option<V> {
    let place = values.iter().position(|(found, _)| *found == key);
    let before = place.map(|place| values.remove(place).1);
    values.extend(value.map(|value| (key, value)));
    before
}

/// Looks at the values of the task that is being polled; `None` outside a poll.
pub(super) fn look<R>(read: impl FnOnce(&Locals) -> Option<R>) -> Option<R> {
    let task = gate::task()?;
    LOCALS.try_with(|locals| read(locals.borrow().get(&task)?)).ok().flatten()
}

/// Changes the values of the task that is being polled; `None` outside a poll.
pub(super) fn change<R>(write: impl FnOnce(&mut Locals) -> R) -> Option<R> {
    let task = gate::task()?;
    LOCALS.try_with(|locals| write(locals.borrow_mut().entry(task).or_default())).ok()
}
