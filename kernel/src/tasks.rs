//! The task table: which tasks there are, by place and by number.
//!
//! Polls nothing and wakes nothing.

use std::mem;
use std::num::NonZeroU64;
use std::pin::Pin;

use traps::protocol::{Body, Site, TaskRef};

use crate::task::{NONE, Remains, State, Task};

/// A place that is free has a record too, with nothing in it to drop.
pub(crate) struct Tasks {
    records: Vec<Task>,
    /// The place that was freed last, or `NONE`.
    free: u32,
    last: u64,
    /// Which one is main, or `NONE`, and where it was run.
    main: u32,
    main_site: Option<Site>,
    /// Not ended.
    pub(crate) alive: usize,
    epoch: u32,
}

impl Tasks {
    pub(crate) fn new(epoch: u32) -> Tasks {
        Tasks {
            records: Vec::new(),
            free: NONE,
            last: 1,
            main: NONE,
            main_site: None,
            alive: 0,
            epoch,
        }
    }

    /// Adds the main task: its future is in the frame of `run`.
    pub(crate) fn add_main(&mut self, site: Site, deadlines_before: u32) -> TaskRef {
        let main = self.add(None, 0, deadlines_before, false);
        (self.main, self.main_site) = (main.index, Some(site));
        main
    }

    #[inline]
    pub(crate) fn is_main(&self, index: u32) -> bool {
        self.main == index
    }

    /// Adds a task and numbers it; `detached`: nobody can join it. Number 1 is the wake-up task,
    /// which is not in the table.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        body: Option<Pin<Box<dyn Body>>>,
        parent: u64,
        deadlines_before: u32,
        detached: bool,
    ) -> TaskRef {
        self.last += 1;
        self.alive += 1;
        let id = NonZeroU64::new(self.last).expect("numbers start at 2");
        let mut index = self.free;
        if index == NONE {
            index = u32::try_from(self.records.len()).expect("fewer than 2^32 tasks");
            self.records.push(Task::new(id, body, (parent, deadlines_before), detached));
        } else {
            let place = &mut self.records[index as usize];
            debug_assert!(place.state == State::Gone, "the free list holds free places");
            self.free = place.first_wait;
            let task = Task::new(id, body, (parent, deadlines_before), detached);
            // What was removed has nothing left to drop.
            mem::forget(mem::replace(place, task));
        }
        TaskRef { index, epoch: self.epoch, serial: id }
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Task {
        &self.records[index as usize]
    }

    /// A task that may be gone.
    pub(crate) fn try_get(&self, index: u32) -> Option<&Task> {
        self.records.get(index as usize).filter(|task| task.state != State::Gone)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Task {
        &mut self.records[index as usize]
    }

    /// The index of a task that may be gone.
    pub(crate) fn find(&self, task: TaskRef) -> Option<u32> {
        let found = self.try_get(task.index)?;
        (task.epoch == self.epoch && found.id == task.serial).then_some(task.index)
    }

    /// Those that are there, with their places.
    fn all(&self) -> impl Iterator<Item = (u32, &Task)> {
        (0..).zip(&self.records).filter(|(_, task)| task.state != State::Gone)
    }

    /// The index of a task by its number: a search, for rare occasions.
    pub(crate) fn find_by_number(&self, id: NonZeroU64) -> Option<u32> {
        Some(self.all().find(|(_, task)| task.id == id)?.0)
    }

    pub(crate) fn name_of(&self, index: u32) -> TaskRef {
        TaskRef { index, epoch: self.epoch, serial: self.get(index).id }
    }

    /// The number and the name, for the log.
    pub(crate) fn label(&self, index: u32) -> (u64, &str) {
        let task = self.get(index);
        let name = match &task.body {
            Some(body) => body.name(),
            None if self.is_main(index) => "main",
            None => "-",
        };
        (task.id.get(), name)
    }

    /// Where it was spawned; `None` if its output was taken.
    pub(crate) fn site(&self, index: u32) -> Option<Site> {
        match &self.get(index).body {
            Some(body) => Some(body.site()),
            None => self.main_site.filter(|_| self.is_main(index)),
        }
    }

    /// Frees the place of a task that has ended; gives what is left to drop.
    #[inline]
    pub(crate) fn remove(&mut self, index: u32) -> Remains {
        if self.is_main(index) {
            self.main = NONE;
        }
        let task = &mut self.records[index as usize];
        debug_assert!(task.is_ended(), "a task is removed once, when it has ended");
        task.state = State::Gone;
        task.first_wait = mem::replace(&mut self.free, index);
        task.take_remains()
    }

    /// The number that was given out last.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Those with a number above `older` that have not ended, newest first.
    pub(crate) fn newest_first(&self, older: u64) -> Vec<u32> {
        let wanted = |task: &Task| !task.is_ended() && task.id.get() > older;
        let alive = self.all().filter(|(_, task)| wanted(task));
        let mut found: Vec<_> = alive.map(|(index, task)| (task.id, index)).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found.into_iter().map(|(_, index)| index).collect()
    }

    /// All, ended ones too.
    pub(crate) fn drain(&mut self) -> Vec<Task> {
        let mut all = mem::take(&mut self.records);
        self.free = NONE;
        all.sort_unstable_by_key(|task| std::cmp::Reverse(task.id));
        all
    }
}
