//! The wait table: what each parked ticket waits for. Same index as the ticket at the gate.
//!
//! Threads its entries into two lists: the tickets of a task, and the waiters of a queue or a
//! joined task. Completes nothing.

use std::mem;
use std::num::NonZeroU64;
use std::rc::Rc;

use traps::SignalSet;
use traps::protocol::{Direction, HOME, QueueCore, ScopeId, SignalLine, Site, Ticket};

use crate::table::At;
use crate::task::{NONE, Task};
use crate::tasks::Tasks;
use crate::threads::JobId;
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
        line: Links,
    },
    Queue {
        queue: Rc<QueueCore>,
        line: Links,
    },
    Job(JobId),
    Signal(SignalSet),
    Stream(Rc<SignalLine>),
    Foreign {
        external: bool,
    },
    Outside {
        what: &'static str,
        external: bool,
    },
}

/// Neighbours in a line: that of a queue or of a joined task.
#[derive(Clone, Copy)]
pub(crate) struct Links {
    pub(crate) before: u32,
    pub(crate) after: u32,
}

impl Links {
    pub(crate) const ALONE: Links = Links { before: NONE, after: NONE };
}

pub(crate) struct Entry {
    /// Of its ticket, whose index is its place here.
    pub(crate) serial: NonZeroU64,
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
    pub(crate) ticket: Ticket,
    pub(crate) task: u32,
    /// Its number in the log.
    pub(crate) number: u64,
    pub(crate) site: Site,
}

impl Entry {
    /// Where it stands in a line.
    pub(crate) fn line(&self) -> Links {
        match self.wait {
            Wait::Join { line, .. } | Wait::Queue { line, .. } => line,
            _ => unreachable!("a line holds joiners, or waiters of its queue"),
        }
    }

    pub(crate) fn line_mut(&mut self) -> &mut Links {
        match &mut self.wait {
            Wait::Join { line, .. } | Wait::Queue { line, .. } => line,
            _ => unreachable!("a line holds joiners, or waiters of its queue"),
        }
    }
}

pub(crate) struct Waits {
    /// The number of the kernel.
    epoch: u32,
    entries: Vec<Option<Entry>>,
    /// By task: those whose ticket is at home.
    homes: Vec<Option<Entry>>,
    neighbours: Neighbours,
    numbers: u64,
    pub(crate) parked: usize,
}

/// Neighbours among the tickets of a task, at the places of the tickets. Apart, as most tickets are
/// alone: where a task waits for one thing, what stands here for it is old, and nothing reads it.
#[derive(Default)]
struct Neighbours {
    entries: Vec<Links>,
    homes: Vec<Links>,
}

impl Neighbours {
    fn get(&self, index: u32) -> Links {
        let table = if index & HOME == 0 { &self.entries } else { &self.homes };
        table.get((index & !HOME) as usize).copied().unwrap_or(Links::ALONE)
    }

    fn at(&mut self, index: u32) -> &mut Links {
        let table = if index & HOME == 0 { &mut self.entries } else { &mut self.homes };
        let place = (index & !HOME) as usize;
        if place >= table.len() {
            table.resize(place + 1, Links::ALONE);
        }
        &mut table[place]
    }

    /// Puts a ticket behind the last one of its task, which `was_alone` until now.
    #[cold]
    fn append(&mut self, last: u32, was_alone: bool, index: u32) {
        let before = self.at(last);
        before.after = index;
        if was_alone {
            before.before = NONE;
        }
        *self.at(index) = Links { before: last, after: NONE };
    }
}

impl Waits {
    pub(crate) fn new(epoch: u32) -> Waits {
        let (entries, homes, neighbours) = Default::default();
        Waits { epoch, entries, homes, neighbours, numbers: 0, parked: 0 }
    }

    /// The ticket of the entry that is, or was, at that place.
    #[inline(always)]
    pub(crate) fn ticket(&self, index: u32, entry: &Entry) -> Ticket {
        Ticket { index, epoch: self.epoch, serial: entry.serial }
    }

    /// What is worth knowing of the entry that is, or was, at that place.
    #[inline(always)]
    pub(crate) fn over(&self, index: u32, entry: &Entry) -> Over {
        let Entry { task, number, site, .. } = *entry;
        Over { ticket: self.ticket(index, entry), task, number, site }
    }

    pub(crate) fn scope(&self, entry: &Entry) -> ScopeId {
        let Entry { scope_index: index, scope_serial: serial, .. } = *entry;
        ScopeId { index, epoch: self.epoch, serial }
    }

    /// The entry of that very ticket, if it is parked.
    pub(crate) fn find(&self, ticket: Ticket) -> Option<&Entry> {
        self.get(ticket.index).filter(|entry| entry.serial == ticket.serial)
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
        self.parked += 1;
        self.link(tasks, task, index);
        let place = self.place(index).expect("made above");
        debug_assert!(place.is_none(), "a ticket is parked once");
        mem::forget(place.replace(Entry {
            serial: ticket.serial,
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
        let last = mem::replace(&mut owner.last_wait, index);
        if last == NONE {
            owner.first_wait = index;
        } else {
            self.neighbours.append(last, owner.waits == 1, index);
        }
        owner.waits += 1;
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
        let Links { before, after } = self.neighbours.get(index);
        match before {
            NONE => owner.first_wait = after,
            before => self.neighbours.at(before).after = after,
        }
        match after {
            NONE => owner.last_wait = before,
            after => self.neighbours.at(after).before = before,
        }
    }

    /// Ends a wait: its ticket is in no table and no list any more but, perhaps, in a line, which
    /// is the caller's matter. Gives its task, too.
    #[inline(always)]
    pub(crate) fn end<'t>(
        &mut self,
        tasks: &'t mut Tasks,
        index: u32,
    ) -> Option<(Over, &'t mut Task)> {
        let entry = self.get(index)?;
        let over = self.over(index, entry);
        *self.place(index)? = None;
        self.parked -= 1;
        let owner = tasks.get_mut(over.task);
        self.unlink(owner, index);
        Some((over, owner))
    }

    /// The same, and hands the whole entry over.
    pub(crate) fn remove(&mut self, tasks: &mut Tasks, index: u32) -> Option<Entry> {
        let entry = self.place(index)?.take()?;
        self.parked -= 1;
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

    /// Everything, for a kernel that ends.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Entry> {
        self.parked = 0;
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
            index = self.neighbours.get(index).after;
        }
        found
    }

    /// Appends a ticket to a line and returns the line's new ends.
    pub(crate) fn join_line(&mut self, ends: (u32, u32), index: u32) -> (u32, u32) {
        let (first, last) = ends;
        if last == NONE {
            return (index, index);
        }
        self.get_mut(last).expect("a line holds parked tickets").line_mut().after = index;
        self.get_mut(index).expect("it was just parked").line_mut().before = last;
        (first, index)
    }

    /// Takes an entry that was just removed out of its line; the line's new ends.
    pub(crate) fn leave_line(&mut self, ends: (u32, u32), entry: &Entry) -> (u32, u32) {
        let (mut first, mut last) = ends;
        let Links { before, after } = entry.line();
        let rule = "a line holds parked tickets";
        match before {
            NONE => first = after,
            before => self.get_mut(before).expect(rule).line_mut().after = after,
        }
        match after {
            NONE => last = before,
            after => self.get_mut(after).expect(rule).line_mut().before = before,
        }
        (first, last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sleeping task pays for one of each: a larger one says why, in `benches/counts.txt`.
    #[test]
    fn what_is_kept_of_a_task_and_its_wait_does_not_grow() {
        assert_eq!((size_of::<Option<Entry>>(), crate::task::SIZE), (72, 128));
    }
}
