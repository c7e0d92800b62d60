//! Tables whose keys are never used twice, and lists that run through the rows of a table.
//!
//! A pure structure: it calls nothing foreign.

use std::fmt;
use std::marker::PhantomData;

use slab::Slab;

/// Names a row of a table: its index, and a serial number. A key of a row that is gone matches
/// nothing. Serial numbers repeat after 2^32 rows; whoever keeps a key longer may name another row.
pub struct Key<K> {
    /// The place of the row. It is used again.
    pub index: u32,
    /// Distinguishes the row from earlier ones in that place.
    pub serial: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K> Key<K> {
    /// The key of that row.
    #[must_use]
    pub const fn new(index: u32, serial: u32) -> Key<K> {
        Key { index, serial, kind: PhantomData }
    }
}

impl<K> Clone for Key<K> {
    fn clone(&self) -> Key<K> {
        *self
    }
}

impl<K> Copy for Key<K> {}

impl<K> PartialEq for Key<K> {
    fn eq(&self, other: &Key<K>) -> bool {
        (self.index, self.serial) == (other.index, other.serial)
    }
}

impl<K> Eq for Key<K> {}

impl<K> PartialOrd for Key<K> {
    fn partial_cmp(&self, other: &Key<K>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Key<K> {
    fn cmp(&self, other: &Key<K>) -> std::cmp::Ordering {
        (self.serial, self.index).cmp(&(other.serial, other.index))
    }
}

impl<K> fmt::Debug for Key<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.serial)
    }
}

/// Rows by key.
#[derive(Debug)]
pub struct Table<K, T> {
    rows: Slab<(u32, T)>,
    last: u32,
    kind: PhantomData<fn() -> K>,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Table<K, T> {
        Table { rows: Slab::new(), last: 0, kind: PhantomData }
    }
}

impl<K, T> Table<K, T> {
    /// Adds a row. O(1).
    ///
    /// # Panics
    ///
    /// If there are 2^32 rows.
    #[inline]
    pub fn insert(&mut self, row: T) -> Key<K> {
        self.last = self.last.wrapping_add(1);
        let index = self.rows.insert((self.last, row));
        Key::new(u32::try_from(index).expect("fewer than 2^32 rows"), self.last)
    }

    /// The row of that key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: Key<K>) -> Option<&T> {
        let (serial, row) = self.rows.get(key.index as usize)?;
        (*serial == key.serial).then_some(row)
    }

    /// The row of that key, to be changed.
    #[inline]
    pub fn get_mut(&mut self, key: Key<K>) -> Option<&mut T> {
        let (serial, row) = self.rows.get_mut(key.index as usize)?;
        (*serial == key.serial).then_some(row)
    }

    /// Removes a row.
    #[inline]
    pub fn remove(&mut self, key: Key<K>) -> Option<T> {
        self.get(key)?;
        Some(self.rows.remove(key.index as usize).1)
    }

    /// The key of the row in that place.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn key(&self, index: u32) -> Key<K> {
        Key::new(index, self.rows[index as usize].0)
    }

    /// All rows, in no order that means anything.
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
pub const NONE: u32 = u32::MAX;

/// The neighbours of a row in a list: the last row comes before the first.
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

/// Finds the links of a list in a row.
type LinksOf<T> = fn(&mut T) -> &mut Links;

/// A list through rows of a table, oldest first: the index of its first row, or [`NONE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(u32);

impl Default for List {
    fn default() -> List {
        List(NONE)
    }
}

impl List {
    /// The first row.
    #[inline]
    #[must_use]
    pub fn first(self) -> Option<u32> {
        (self.0 != NONE).then_some(self.0)
    }

    /// The row behind `index`.
    #[must_use]
    pub fn after(self, links: Links) -> Option<u32> {
        (links.after != self.0).then_some(links.after)
    }

    /// Adds a row at the end. O(1). `links` finds the links of this list in a row.
    #[inline]
    pub fn push<K, T>(&mut self, rows: &mut Table<K, T>, index: u32, links: LinksOf<T>) {
        let Some(first) = self.first() else {
            *links(&mut rows[index]) = Links { before: index, after: index };
            self.0 = index;
            return;
        };
        let last = std::mem::replace(&mut links(&mut rows[first]).before, index);
        *links(&mut rows[index]) = Links { before: last, after: first };
        links(&mut rows[last]).after = index;
    }

    /// Removes a row that is in this list. O(1).
    #[inline]
    pub fn remove<K, T>(&mut self, rows: &mut Table<K, T>, index: u32, links: LinksOf<T>) {
        let Links { before, after } = std::mem::take(links(&mut rows[index]));
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
