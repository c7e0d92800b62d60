//! The wait table: what each parked ticket waits for. Same index as the ticket at the gate.
//!
//! Keeps its entries in two lists: the tickets of a task, and the waiters of a queue or a joined
//! task. Completes nothing.

use std::mem;
use std::num::NonZeroU64;
use std::rc::Rc;

use traps::SignalSet;
use traps::protocol::{Direction, HOME, QueueCore, ScopeId, SignalLine, Site};

use crate::links::{Lists, Names};
use crate::table::At;
use crate::task::{NONE, Task};
use crate::tasks::Tasks;
use crate::timers::TimerId;
use crate::trace::Seq;

/// What a parked ticket waits for.
pub(crate) enum Wait {
    /// The end of the poll in which it was filed. `sleep`: asked for as a sleep of zero.
    Yield {
        sleep: bool,
    },
    /// The timer is gone once it fired.
    Sleep {
        timer: Option<TimerId>,
    },
    Io {
        handle: u32,
        direction: Direction,
    },
    Join {
        task: u32,
        take: bool,
    },
    Queue(Rc<QueueCore>),
    Job {
        number: u64,
        slot: u32,
    },
    Signal(SignalSet),
    Stream(Rc<SignalLine>),
    Foreign {
        external: bool,
    },
    Outside {
        /// The number of its name.
        what: u32,
        external: bool,
    },
}

/// Its ticket is the one at the same place of the gate, which knows its serial number.
pub(crate) struct Entry {
    pub(crate) task: u32,
    /// The scope in which it was filed.
    scope_index: u32,
    scope_serial: NonZeroU64,
    /// Its number in the log.
    pub(crate) number: u64,
    pub(crate) wait: Wait,
    pub(crate) site: Site,
    /// Its `block` line.
    pub(crate) seq: Seq,
}

/// What is worth knowing of a wait that is over.
#[derive(Clone, Copy)]
pub(crate) struct Over {
    /// Of its ticket.
    pub(crate) index: u32,
    pub(crate) task: u32,
    /// Its number in the log.
    pub(crate) number: u64,
    pub(crate) site: Site,
}

impl Over {
    #[inline(always)]
    pub(crate) fn of(index: u32, entry: &Entry) -> Over {
        let Entry { task, number, site, .. } = *entry;
        Over { index, task, number, site }
    }
}

pub(crate) struct Waits {
    /// The number of the kernel.
    epoch: u32,
    entries: Vec<Option<Entry>>,
    /// By task: those whose ticket is at home.
    homes: Vec<Option<Entry>>,
    /// Of each task, its tickets, if it has several.
    siblings: Lists,
    /// Those who wait for the end of a task, or in a queue.
    pub(crate) lines: Lists,
    pub(crate) names: Names,
    numbers: u64,
}

impl Waits {
    pub(crate) fn new(epoch: u32) -> Waits {
        let (entries, homes, siblings, lines, names) = Default::default();
        Waits { epoch, entries, homes, siblings, lines, names, numbers: 0 }
    }

    pub(crate) fn scope(&self, entry: &Entry) -> ScopeId {
        let Entry { scope_index: index, scope_serial: serial, .. } = *entry;
        ScopeId { index, epoch: self.epoch, serial }
    }

    pub(crate) fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// How many tickets were ever parked: tells whether one was in between.
    pub(crate) fn parked_so_far(&self) -> u64 {
        self.numbers
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u32) -> Option<&Entry> {
        let table = if index & HOME == 0 { &self.entries } else { &self.homes };
        table.get((index & !HOME) as usize)?.as_ref()
    }

    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut Entry> {
        self.place(index)?.as_mut()
    }

    #[inline(always)]
    fn place(&mut self, index: u32) -> Option<&mut Option<Entry>> {
        let table = if index & HOME == 0 { &mut self.entries } else { &mut self.homes };
        table.get_mut((index & !HOME) as usize)
    }

    #[cold]
    fn make_place(&mut self, index: u32) {
        let table = if index & HOME == 0 { &mut self.entries } else { &mut self.homes };
        table.resize_with((index & !HOME) as usize + 1, || None);
    }

    /// Parks a ticket at the end of its task's list; gives its number.
    #[inline(always)]
    pub(crate) fn park(&mut self, tasks: &mut Tasks, at: &At, wait: Wait, seq: Seq) -> u64 {
        let At { task, ticket, scope, site } = *at;
        let index = ticket.index;
        if self.place(index).is_none() {
            self.make_place(index);
        }
        let number = self.next_number();
        self.link(tasks, task, index);
        let place = self.place(index).expect("made above");
        debug_assert!(place.is_none(), "a ticket is parked once");
        mem::forget(place.replace(Entry {
            task,
            scope_index: scope.index,
            scope_serial: scope.serial,
            number,
            wait,
            site,
            seq,
        }));
        number
    }

    #[inline(always)]
    fn link(&mut self, tasks: &mut Tasks, task: u32, index: u32) {
        let owner = tasks.get_mut(task);
        owner.waits += 1;
        if owner.waits == 1 {
            (owner.first_wait, owner.last_wait) = (index, index);
        } else {
            self.link_to_others(owner, index);
        }
    }

    #[cold]
    fn link_to_others(&mut self, owner: &mut Task, index: u32) {
        let mut ends = (owner.first_wait, owner.last_wait);
        if owner.waits == 2 {
            // One that was alone has nothing here yet.
            ends = self.siblings.append((NONE, NONE), owner.first_wait);
        }
        (owner.first_wait, owner.last_wait) = self.siblings.append(ends, index);
    }

    #[inline(always)]
    fn unlink(&mut self, owner: &mut Task, index: u32) {
        owner.waits -= 1;
        if owner.waits == 0 {
            (owner.first_wait, owner.last_wait) = (NONE, NONE);
        } else {
            self.unlink_from_others(owner, index);
        }
    }

    #[cold]
    fn unlink_from_others(&mut self, owner: &mut Task, index: u32) {
        let ends = (owner.first_wait, owner.last_wait);
        (owner.first_wait, owner.last_wait) = self.siblings.remove(ends, index);
    }

    /// Ends a wait: its ticket is in no table and no list any more but, perhaps, in a line, which
    /// is the caller's matter. Gives its task, too.
    #[inline(always)]
    pub(crate) fn end<'t>(
        &mut self,
        tasks: &'t mut Tasks,
        index: u32,
    ) -> Option<(Over, &'t mut Task)> {
        let place = self.place(index)?;
        let over = Over::of(index, place.as_ref()?);
        *place = None;
        let owner = tasks.get_mut(over.task);
        self.unlink(owner, index);
        Some((over, owner))
    }

    /// The same, and hands the whole entry over.
    pub(crate) fn remove(&mut self, tasks: &mut Tasks, index: u32) -> Option<Entry> {
        let entry = self.place(index)?.take()?;
        self.unlink(tasks.get_mut(entry.task), index);
        Some(entry)
    }

    /// Gives a ticket to another task.
    pub(crate) fn rehome(&mut self, tasks: &mut Tasks, index: u32, task: u32, scope: ScopeId) {
        let Some(entry) = self.get_mut(index) else { return };
        let from = mem::replace(&mut entry.task, task);
        (entry.scope_index, entry.scope_serial) = (scope.index, scope.serial);
        self.unlink(tasks.get_mut(from), index);
        self.link(tasks, task, index);
    }

    /// Moves tickets of a task from scope to scope; gives which. O(tickets of the task).
    pub(crate) fn move_out(
        &mut self,
        tasks: &Tasks,
        task: u32,
        to: impl Fn(ScopeId) -> Option<ScopeId>,
    ) -> Vec<u32> {
        let owner = tasks.get(task);
        let (mut moved, mut index) = (Vec::new(), owner.first_wait);
        for _ in 0..owner.waits {
            let entry = self.get(index).expect("a list holds parked tickets");
            if let Some(scope) = to(self.scope(entry)) {
                let entry = self.get_mut(index).expect("looked at above");
                (entry.scope_index, entry.scope_serial) = (scope.index, scope.serial);
                moved.push(index);
            }
            index = self.siblings.get(index).after;
        }
        moved
    }

    /// Everything, for a kernel that ends.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Entry> {
        let homes = mem::take(&mut self.homes);
        mem::take(&mut self.entries).into_iter().chain(homes).flatten()
    }

    /// How many parked tickets wait for such a thing. O(tickets).
    pub(crate) fn count(&self, wanted: impl Fn(&Wait) -> bool) -> usize {
        self.entries.iter().chain(&self.homes).flatten().filter(|entry| wanted(&entry.wait)).count()
    }

    /// Tickets of a task, in the order of their parking.
    pub(crate) fn of(&self, tasks: &Tasks, task: u32) -> Vec<u32> {
        let owner = tasks.get(task);
        let (mut found, mut index) = (Vec::new(), owner.first_wait);
        for _ in 0..owner.waits {
            found.push(index);
            index = self.siblings.get(index).after;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sleeping task pays for one of each: a larger one says why, in `benches/counts.txt`.
    #[test]
    fn what_is_kept_of_a_task_and_its_wait_does_not_grow() {
        assert_eq!((size_of::<Option<Entry>>(), crate::task::SIZE), (56, 120));
    }
}
