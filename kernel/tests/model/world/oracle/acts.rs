//! What never blocks, as the model has it.

use super::{CELL, CONDITION, DOOR, Model, PERMITS, QUEUE_ITEMS, QUEUE_ROOM, ROOM, Told};
use crate::world::program::Op;

impl Model {
    /// A guard or a permit of that line was dropped. A reader has no permit of the door.
    pub fn release(&mut self, line: usize, reads: bool) {
        self.say(|| format!("release of {line}"));
        if reads {
            self.readers -= 1;
        } else {
            self.give(line);
        }
    }

    pub fn forget(&mut self) {
        self.all_permits -= 1;
    }

    pub fn try_lock(&mut self, lock: usize, told: Option<u64>) {
        self.tried(lock, told.is_some());
        self.values[lock] += u64::from(told.is_some());
        if told.is_some() {
            self.expect("value of a lock", told, Some(self.values[lock]));
        }
    }

    pub fn try_read(&mut self, told: Option<u64>) {
        self.tried(DOOR, told.is_some());
        if told.is_some() {
            self.expect("value read", told, Some(self.shared));
            self.enter();
        }
    }

    pub fn try_write(&mut self, has_it: bool) {
        if has_it || self.readers == 0 {
            self.tried(DOOR, has_it);
        }
        if has_it {
            self.expect("readers beside a writer", self.readers, 0);
            self.shared += 1;
        }
    }

    pub fn try_acquire(&mut self, has_it: bool) {
        self.tried(PERMITS, has_it);
    }

    pub fn add_permits(&mut self, n: u32, is_done: bool) {
        self.expect("permits added", is_done, self.all_permits + n <= self.bound);
        if is_done {
            self.all_permits += n;
            (0..n).for_each(|_| self.give(PERMITS));
        }
    }

    pub fn notify(&mut self, n: u64) {
        let most = n.min(self.lines[CONDITION].waiting.len() as u64);
        (0..most).for_each(|_| self.give(CONDITION));
    }

    pub fn set_event(&mut self, is_set: bool) {
        self.flag = is_set;
        self.sets += u64::from(is_set);
    }

    pub fn set_cell(&mut self, value: u64, is_done: bool) {
        if is_done || self.cell.is_none() {
            self.tried(CELL, is_done);
        }
        if is_done {
            self.expect("value of the cell", None, self.cell);
            self.cell = Some(value);
            self.give(CELL);
        }
    }

    /// `Err` tells whether the receiver is gone.
    pub fn try_send(&mut self, item: u64, told: Result<(), bool>) {
        if self.is_closed || told == Err(true) {
            return self.expect("try_send", told, Err(self.is_closed));
        }
        self.tried(ROOM, told.is_ok());
        if told.is_ok() {
            self.items.push_back(item);
        }
    }

    pub fn try_recv(&mut self, told: Option<Told>) {
        self.expect("try_recv", told, self.next_item());
        told.into_iter().for_each(|told| self.received(told));
    }

    pub fn senders(&mut self, more: bool) {
        self.senders = if more { self.senders + 1 } else { self.senders - 1 };
    }

    pub fn close(&mut self, drops: bool) {
        self.is_closed = true;
        while self.lines[ROOM].waiting.front().is_some() {
            self.give(ROOM);
        }
        if drops {
            self.items.clear();
        }
    }

    pub fn oneshot_send(&mut self, shot: usize, item: u64, is_sent: bool) {
        self.expect("oneshot sent", is_sent, self.shots[shot].has_receiver);
        self.shots[shot].value = is_sent.then_some(item);
        self.shots[shot].has_sender = false;
    }

    pub fn oneshot_drop(&mut self, shot: usize, sends: bool) {
        let found = &mut self.shots[shot];
        *(if sends { &mut found.has_sender } else { &mut found.has_receiver }) = false;
    }

    pub fn oneshot_try(&mut self, shot: usize, told: Option<Told>) {
        self.expect("oneshot tried", told, self.next_shot(shot));
        self.shots[shot].value = None;
    }

    pub fn broadcast_send(&mut self, item: u64, is_sent: bool) {
        self.expect("broadcast sent", is_sent, !self.listeners.is_empty());
        if is_sent {
            self.news.push(item);
        }
    }

    pub fn broadcast_try(&mut self, listener: u64, told: Option<Told>) {
        self.expect("broadcast tried", told, self.next_news(listener));
        told.into_iter().for_each(|told| self.heard(listener, told));
    }

    pub fn speakers(&mut self, more: bool) {
        self.speakers = if more { self.speakers + 1 } else { self.speakers - 1 };
    }

    /// A receiver of the broadcast channel comes or goes.
    pub fn listener(&mut self, listener: u64, comes: bool) {
        if comes {
            self.listeners.insert(listener, self.news.len());
        } else {
            self.listeners.remove(&listener);
        }
    }

    pub fn watch_send(&mut self, is_sent: bool, modifies: bool) {
        let is_heard = modifies || !self.watchers.is_empty();
        self.expect("watch sent", is_sent, is_heard);
        if is_sent {
            self.watched += 1;
            self.version += 1;
            let even = self.ops.values_mut().filter(|begun| begun.op == Op::WatchEven);
            even.for_each(|begun| begun.is_woken = true);
        }
    }

    pub fn drop_publisher(&mut self) {
        self.has_publisher = false;
    }

    /// A new receiver of the watch channel; a clone has seen what the other one has.
    pub fn watcher(&mut self, watcher: u64, like: Option<u64>) {
        let seen = like.map_or(self.version, |like| self.watchers[&like]);
        self.watchers.insert(watcher, seen);
    }

    pub fn drop_watcher(&mut self, watcher: u64) {
        self.watchers.remove(&watcher);
    }

    pub fn try_put(&mut self, queue: usize, item: u64, is_put: bool) {
        self.tried(QUEUE_ROOM + queue, is_put);
        if is_put {
            self.put(queue, item);
        }
    }

    pub fn try_get(&mut self, queue: usize, told: Option<u64>) {
        self.tried(QUEUE_ITEMS + queue, told.is_some());
        if told.is_some() {
            let found = &self.queues[queue];
            let expected = found.next(queue).map(|at| found.items[at]);
            self.expect("item of a queue", told, expected);
            self.got(queue);
        }
    }

    /// Whether an item can be done with; if so, it is.
    pub fn task_done(&mut self, queue: usize) -> bool {
        let found = &mut self.queues[queue];
        let can = found.unfinished > 0;
        found.unfinished -= u64::from(can);
        found.rounds += u64::from(can && found.unfinished == 0);
        can
    }
}
