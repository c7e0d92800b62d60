//! What few waits have, beside the table of waits: at the place of the wait, or under a number.
//!
//! Knows no wait and no task: only indices.

use std::collections::BTreeMap;
use std::ptr;

use traps::protocol::HOME;

use crate::task::NONE;

/// Neighbours in a list of tickets.
#[derive(Clone, Copy)]
pub(crate) struct Links {
    pub(crate) before: u32,
    pub(crate) after: u32,
}

impl Links {
    const ALONE: Links = Links { before: NONE, after: NONE };
}

/// The links of tickets that are in a list of one kind, at the places of the tickets. Of others,
/// what stands here is old, and nothing reads it.
#[derive(Default)]
pub(crate) struct Lists {
    entries: Vec<Links>,
    homes: Vec<Links>,
}

impl Lists {
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Links {
        let table = if index & HOME == 0 { &self.entries } else { &self.homes };
        table.get((index & !HOME) as usize).copied().unwrap_or(Links::ALONE)
    }

    #[inline]
    pub(crate) fn at(&mut self, index: u32) -> &mut Links {
        let table = if index & HOME == 0 { &mut self.entries } else { &mut self.homes };
        let place = (index & !HOME) as usize;
        if place >= table.len() {
            grow(table, place);
        }
        &mut table[place]
    }

    /// Appends a ticket to a list; the list's new ends.
    #[inline]
    pub(crate) fn append(&mut self, (first, last): (u32, u32), index: u32) -> (u32, u32) {
        *self.at(index) = Links { before: last, after: NONE };
        if last == NONE {
            return (index, index);
        }
        self.at(last).after = index;
        (first, index)
    }

    /// Takes a ticket out of a list; the list's new ends.
    pub(crate) fn remove(&mut self, (first, last): (u32, u32), index: u32) -> (u32, u32) {
        let Links { before, after } = self.get(index);
        if before != NONE {
            self.at(before).after = after;
        }
        if after != NONE {
            self.at(after).before = before;
        }
        (if before == NONE { after } else { first }, if after == NONE { before } else { last })
    }
}

#[cold]
fn grow(table: &mut Vec<Links>, place: usize) {
    table.resize(place + 1, Links::ALONE);
}

/// The names that tasks give to what they wait for outside, each under a number.
#[derive(Default)]
pub(crate) struct Names {
    names: Vec<&'static str>,
    numbers: BTreeMap<&'static str, u32>,
}

/// So many are looked through before the map is.
const FEW: usize = 8;

impl Names {
    /// The number of a name, which is given out if it is new. O(log names).
    pub(crate) fn number(&mut self, name: &'static str) -> u32 {
        let few = self.names.iter().take(FEW).position(|known| ptr::eq(*known, name));
        if let Some(number) = few.and_then(|few| u32::try_from(few).ok()) {
            return number;
        }
        let next = u32::try_from(self.names.len()).expect("fewer than 2^32 names");
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.names.push(name);
        }
        number
    }

    pub(crate) fn name(&self, number: u32) -> &'static str {
        self.names[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_however_many_there_are() {
        let all: Vec<&'static str> = (0..20).map(|n| &*format!("n{n}").leak()).collect();
        let mut names = Names::default();
        for _ in 0..2 {
            for (number, name) in (0..).zip(&all) {
                assert_eq!((names.number(name), names.name(number)), (number, *name));
            }
        }
        // The same text at another place is the same name.
        assert_eq!(names.number(String::from("n3").leak()), 3);
    }

    #[test]
    fn a_ticket_leaves_its_list_from_wherever_it_stands() {
        let mut lists = Lists::default();
        let [a, b, c] = [7, HOME | 7, HOME];
        let all = [a, b, c].into_iter().fold((NONE, NONE), |ends, index| lists.append(ends, index));
        assert_eq!(all, (a, c));
        let ends = lists.remove(all, b);
        assert_eq!((ends, lists.get(a).after, lists.get(c).before), ((a, c), c, a));
        let ends = lists.remove(ends, a);
        assert_eq!((ends, lists.remove(ends, c)), ((c, c), (NONE, NONE)));
    }
}
