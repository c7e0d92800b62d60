//! Tables, keys, lists and queues: the structures behind the gate.
//!
//! A [`Table`] is a slab of rows. A [`Key`] names a row by its index and by a serial number that no
//! other row of the table gets (until 2^32 rows later), so the key of a removed row matches
//! nothing. A look-up is a bounds check and a comparison of serial numbers.
//!
//! For example, a task is the row `3/17`: index 3, the 17th row ever made. It ends, and another
//! task gets index 3 as `3/18`. A waker that still holds `3/17` finds a row with another serial
//! number, and wakes no task.
//!
//! A [`List`] runs through rows of a table: each row has the indexes of its neighbours. So a row
//! leaves the list in O(1), wherever it is in the list, and no list allocates. A [`Queue`] is such
//! a list of parked waits, with the permits that no task has taken.
//!
//! The obvious way is reference-counted records that point at each other. It needs a weak pointer
//! for each direction, and frees memory at moments that the program does not choose. Indexes alone
//! would be enough for the structures, but not for handles and wakers, which outlive the rows that
//! they name.
//!
//! This file calls no user code.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::panic::Location;

use slab::Slab;

use crate::parts::fd::RawFd;

/// The name of a row of a table: its index and a serial number. The key of a removed row matches
/// nothing. Serial numbers repeat after 2^32 rows, so a key that is kept longer may name another
/// row. Until then, keys are ordered by age.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<K> {
    // Not zero, so that an optional key takes no more room.
    serial: NonZeroU32,
    /// The index of the row. It is used again after the row is removed.
    pub index: u32,
    kind: PhantomData<K>,
}

impl<K> Key<K> {
    /// Makes the key of a row from its index and serial number.
    #[inline]
    #[must_use]
    pub const fn new(index: u32, serial: u32) -> Key<K> {
        let serial = match NonZeroU32::new(serial) {
            Some(serial) => serial,
            // Outside of tests, only `NONE` is made with 0.
            None => NonZeroU32::MAX,
        };
        Key { index, serial, kind: PhantomData }
    }

    /// Returns the serial number of the key. It distinguishes the row from earlier rows with the
    /// same index.
    #[inline]
    #[must_use]
    pub const fn serial(self) -> u32 {
        self.serial.get()
    }

    /// The key that names no row.
    pub const NONE: Key<K> = Key::new(NONE, 0);
}

impl<K> Default for Key<K> {
    fn default() -> Key<K> {
        Key::NONE
    }
}

impl<K> fmt::Debug for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.serial)
    }
}

/// A table of rows, each with a key.
#[derive(Debug)]
pub struct Table<K, T> {
    rows: Slab<(u32, T)>,
    /// The serial number of the newest row.
    pub(crate) last: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Table<K, T> {
        Table { rows: Slab::new(), last: 0, kind: PhantomData }
    }
}

impl<K: Copy, T> Table<K, T> {
    /// Adds a row. O(1).
    ///
    /// # Panics
    ///
    /// Panics if there are 2^31 rows.
    #[inline(always)]
    pub(crate) fn insert(&mut self, row: T) -> Key<K> {
        // Not 0, so that an optional key takes no more room. After 2^32 rows the numbers begin
        // again, at 1.
        self.last = self.last.wrapping_add(1).max(1);
        let index = self.rows.insert((self.last, row));
        // 31 bits, because the highest bit of an index distinguishes a task from a scope.
        Key::new(i32::try_from(index).expect("fewer than 2^31 rows") as u32, self.last)
    }

    /// Returns the row of a key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: Key<K>) -> Option<&T> {
        let (serial, row) = self.rows.get(key.index as usize)?;
        (*serial == key.serial()).then_some(row)
    }

    /// Returns the row of a key, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        let (serial, row) = self.rows.get_mut(key.index as usize)?;
        (*serial == key.serial()).then_some(row)
    }

    /// Removes a row, and returns it.
    #[inline]
    pub(crate) fn remove(&mut self, key: Key<K>) -> Option<T> {
        // Compare the serial numbers first. A stale key would otherwise remove the row that has the
        // index now.
        self.get(key)?;
        Some(self.rows.remove(key.index as usize).1)
    }

    /// Takes all rows. Their keys match no row that is added later.
    pub(crate) fn clear(&mut self) -> Slab<(u32, T)> {
        // `last` stays as it is, so a key that a future kept from a dropped kernel matches no row
        // of the next kernel.
        std::mem::take(&mut self.rows)
    }

    /// Returns the row with this index, whatever its serial number.
    #[must_use]
    pub(crate) fn at(&self, index: u32) -> Option<(Key<K>, &T)> {
        let (serial, row) = self.rows.get(index as usize)?;
        Some((Key::new(index, *serial), row))
    }

    /// Returns the key of the row with this index.
    ///
    /// # Panics
    ///
    /// Panics if there is no such row.
    #[inline]
    #[must_use]
    pub fn key(&self, index: u32) -> Key<K> {
        Key::new(index, self.rows[index as usize].0)
    }

    /// Iterates over all rows, in no meaningful order.
    pub fn iter(&self) -> impl Iterator<Item = (Key<K>, &T)> {
        self.rows.iter().map(|(index, (serial, row))| (Key::new(index as u32, *serial), row))
    }
}

impl<K, T> std::ops::Index<u32> for Table<K, T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.rows[index as usize].1
    }
}

impl<K, T> std::ops::IndexMut<u32> for Table<K, T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.rows[index as usize].1
    }
}

/// The end of a list, and the index of no row.
pub(crate) const NONE: u32 = u32::MAX;

/// The neighbours of a row in a list. The list is circular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    before: u32,
    after: u32,
}

impl Default for Links {
    fn default() -> Links {
        Links { before: NONE, after: NONE }
    }
}

/// A function that finds the links of a list in a row.
type LinksOf<T> = fn(&mut T) -> &mut Links;

/// A list through rows of a table, oldest first: the index of its first row, or `NONE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(u32);

impl Default for List {
    fn default() -> List {
        List(NONE)
    }
}

impl List {
    /// Returns the index of the first row.
    #[inline]
    #[must_use]
    pub fn first(self) -> Option<u32> {
        (self.0 != NONE).then_some(self.0)
    }

    /// Returns the index of the row that follows the row with these links.
    #[must_use]
    pub fn after(self, links: Links) -> Option<u32> {
        // The list is circular: the row after the last is the first.
        (links.after != self.0).then_some(links.after)
    }

    /// Adds a row at the end. O(1). `links` finds the links of this list in a row.
    #[inline]
    pub fn push<K, T>(&mut self, rows: &mut Table<K, T>, index: u32, links: LinksOf<T>) {
        debug_assert!(*links(&mut rows[index]) == Links::default(), "a row is in a list once");
        let Some(first) = self.first() else {
            *links(&mut rows[index]) = Links { before: index, after: index };
            self.0 = index;
            return;
        };
        // The row before the first is the last. So the list needs no field for its end.
        let last = std::mem::replace(&mut links(&mut rows[first]).before, index);
        *links(&mut rows[index]) = Links { before: last, after: first };
        links(&mut rows[last]).after = index;
    }

    /// Removes a row that is in this list. O(1).
    #[inline]
    pub fn remove<K, T>(&mut self, rows: &mut Table<K, T>, index: u32, links: LinksOf<T>) {
        let Links { before, after } = std::mem::take(links(&mut rows[index]));
        debug_assert!(before != NONE && after != NONE, "a row leaves a list that it is in");
        // A row that is its own neighbour is the only one.
        if after == index {
            self.0 = NONE;
            return;
        }
        links(&mut rows[before]).after = after;
        links(&mut rows[after]).before = before;
        if self.0 == index {
            self.0 = after;
        }
    }
}

/// The location of a call in the user's source.
pub type Site = &'static Location<'static>;

/// The marker of the keys of waits: a [`Ticket`] is a `Key<OfWait>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfWait {}
/// The marker of the keys of scopes: a [`ScopeId`] is a `Key<OfScope>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfScope {}
/// The marker of the keys of tasks: a [`TaskRef`] is a `Key<OfTask>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfTask {}
/// The marker of the keys of handles: a [`HandleId`] is a `Key<OfHandle>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OfHandle {}

/// The name of a wait, from the poll that files it until its result is read or its future is
/// dropped.
pub type Ticket = Key<OfWait>;
/// The name of an open scope, or of a whole task: the place outside all its scopes.
pub type ScopeId = Key<OfScope>;
/// The name of a task, which may have ended.
pub type TaskRef = Key<OfTask>;
/// The index of a task that has not ended, in both tables. If a task may have ended, use its
/// [`TaskRef`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskIndex(pub u32);

impl TaskIndex {
    /// Returns the row of a task.
    #[inline]
    #[must_use]
    pub const fn of(task: TaskRef) -> TaskIndex {
        TaskIndex(task.index)
    }
}

/// The bit that distinguishes the index of a task from that of a scope. No table has so many rows.
const IS_TASK: u32 = 1 << 31;

impl ScopeId {
    /// Returns the name of the place in a task that is outside all its scopes. Its highest bit is
    /// set, so it names a task, and no row of the table of scopes. An enum of both would be longer,
    /// and a wait in no scope would need a case of its own.
    #[inline]
    #[must_use]
    pub const fn of(task: TaskRef) -> ScopeId {
        Key { index: task.index | IS_TASK, serial: task.serial, kind: PhantomData }
    }

    /// Returns the task, if this is the place outside all scopes of a task. For [`Key::NONE`],
    /// which has the bit too, it is a task that is in no table.
    #[inline]
    #[must_use]
    pub const fn task(self) -> Option<TaskRef> {
        let Key { index, serial, .. } = self;
        let task = Key { index: index & !IS_TASK, serial, kind: PhantomData };
        if index & IS_TASK == 0 { None } else { Some(task) }
    }
}

/// The name of an owned descriptor.
pub type HandleId = Key<OfHandle>;

/// The number of a task in its kernel. Numbers count from 1, without gaps, and are never used
/// twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One direction of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Bytes to read, a connection to accept, or the end of the stream.
    Read,
    /// Room to write.
    Write,
}

/// The descriptor behind a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// A descriptor of the operating system, in non-blocking mode.
    Real(RawFd),
    /// A descriptor that a simulated machine makes ready by script.
    Scripted(u32),
}

/// A queue of waits, and the permits that no wait has taken.
///
/// The waits are a list through their own records, so a wait leaves the queue in O(1), wherever it
/// is.
#[derive(Debug, Default)]
pub struct Queue {
    /// The parked waits, in the order of arrival. The kernel maintains this list.
    pub waiters: Cell<List>,
    /// The number of parked waits in the queue.
    pub len: Cell<u64>,
    /// The number of kept permits.
    pub permits: Cell<u32>,
    /// Set by an event that happens once. From then on, a wait ends as soon as it has parked.
    pub over: Cell<bool>,
    /// The purpose of the queue, for the log.
    pub label: Cell<Label>,
    /// For the log: the number of the queue, and the epoch of the kernel that gave it.
    pub number: Cell<(u64, u32)>,
    /// The primitive that is built on the queue, if it has one.
    pub primitive: OnceCell<Box<Primitive>>,
}

/// The primitive that is built on a queue: its name, and its holders.
#[derive(Debug)]
pub struct Primitive {
    /// The kind of the primitive, such as `mutex`.
    pub kind: &'static str,
    /// The name of the primitive; empty if it has none.
    pub name: Cow<'static, str>,
    /// The tasks that hold a lock or a permit now, in the order of taking. A task that holds
    /// several is listed several times.
    pub holders: RefCell<Vec<TaskRef>>,
}

/// The purpose of a queue, for the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Label {
    /// An ordinary queue. Its primitive, if any, names it.
    #[default]
    Queue,
    /// The arrival of a signal.
    Signal,
}

impl Queue {
    /// Makes an empty queue for this purpose.
    #[must_use]
    pub(crate) fn labelled(label: Label) -> Queue {
        Queue { label: Cell::new(label), ..Queue::default() }
    }

    /// Returns whether a wait in the queue would be woken as soon as it has parked.
    #[must_use]
    pub fn has_happened(&self) -> bool {
        self.over.get() || self.permits.get() > 0
    }

    /// Keeps one more permit for the next wait; the queue keeps at most `u32::MAX` permits.
    pub fn keep_permit(&self) {
        // A count that wrapped to 0 would lose all permits. This loses one.
        self.permits.set(self.permits.get().saturating_add(1));
    }

    /// Takes a kept permit. Returns whether the queue had a permit.
    #[must_use]
    pub fn take_permit(&self) -> bool {
        let left = self.permits.get().checked_sub(1);
        left.map(|left| self.permits.set(left)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = Table<(), Links>;

    fn all(list: List, rows: &Rows) -> Vec<u32> {
        std::iter::successors(list.first(), |at| list.after(rows[*at])).collect()
    }

    #[test]
    fn a_key_of_a_row_that_is_gone_matches_nothing() {
        let mut table = Table::<(), char>::default();
        let old = table.insert('a');
        assert_eq!(table.remove(old), Some('a'));
        let new = table.insert('b');
        assert_eq!((old.index, table.get(old)), (new.index, None));
        assert_eq!(table.remove(old), None);
        assert_eq!((table.get(new), table.key(new.index)), (Some(&'b'), new));
    }

    #[test]
    fn a_list_keeps_the_order_of_its_rows_whichever_is_removed() {
        for removed in 0..4 {
            let (mut rows, mut list) = (Rows::default(), List::default());
            for _ in 0..4 {
                let key = rows.insert(Links::default());
                list.push(&mut rows, key.index, |row| row);
            }
            list.remove(&mut rows, removed, |row| row);
            let left: Vec<u32> = (0..4).filter(|row| *row != removed).collect();
            assert_eq!(all(list, &rows), left);
            list.push(&mut rows, removed, |row| row);
            assert_eq!(all(list, &rows).last(), Some(&removed));
            (0..4).for_each(|row| list.remove(&mut rows, row, |row| row));
            assert_eq!(list.first(), None);
        }
    }
}
