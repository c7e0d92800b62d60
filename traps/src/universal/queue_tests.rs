//! Random programs on one queue: items are conserved, and waits are served in order.

use std::collections::BTreeSet;
use std::thread;

use super::{Contents, Locked, Operation, OperationResult, Waiter};
use crate::error::Error;

/// A random number generator that returns the same numbers on every machine (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % sides as u64).unwrap()
    }
}

/// A queue, and the records that the test keeps of it.
struct World {
    queue: Locked<u64>,
    closed: bool,
    /// The next item to put. Items ascend, so the test can see their order.
    next: u64,
    /// The items that were taken, or that went back to their puts.
    out: BTreeSet<u64>,
    /// The waiting puts, in the order of arrival; `gets` has the waiting gets.
    puts: Vec<Operation<u64>>,
    gets: Vec<Operation<u64>>,
    /// Whether a put or a get took its item late or gave up. After that, an older item can follow a
    /// younger one.
    mixed: bool,
    /// The last item that was taken before `mixed` was set.
    last: u64,
}

fn waiter() -> Option<Waiter> {
    Some(Waiter::Thread(thread::current()))
}

impl World {
    fn new(room: usize) -> World {
        World {
            queue: Locked::new(room),
            closed: false,
            next: 1,
            out: BTreeSet::new(),
            puts: Vec::new(),
            gets: Vec::new(),
            mixed: false,
            last: 0,
        }
    }

    fn inspect<R>(&self, check: impl FnOnce(&Contents<u64>) -> R) -> R {
        self.queue.with(|contents| check(contents))
    }

    fn came_out(&mut self, item: u64) {
        assert!(self.out.insert(item), "{item} came out twice");
    }

    fn got(&mut self, item: u64) {
        if !self.mixed {
            assert!(item > self.last, "{item} after {}", self.last);
            self.last = item;
        }
        self.came_out(item);
    }

    fn put(&mut self) {
        let mut put = Operation::put(self.next);
        self.next += 1;
        match put.advance(&self.queue, waiter()) {
            Some(ended) => self.end_put(put, ended),
            None => self.puts.push(put),
        }
    }

    fn get(&mut self) {
        let mut get = Operation::get();
        match get.advance(&self.queue, waiter()) {
            Some(ended) => self.end_get(get, ended),
            None => self.gets.push(get),
        }
    }

    fn end_put(&mut self, put: Operation<u64>, ended: OperationResult) {
        assert_eq!(ended.is_ok(), put.item.is_none());
        assert!(ended.is_ok() || self.closed);
        put.item.into_iter().for_each(|item| self.came_out(item));
    }

    fn end_get(&mut self, get: Operation<u64>, ended: OperationResult) {
        assert_eq!(ended.is_ok(), get.item.is_some());
        assert!(ended.is_ok() || self.closed && self.inspect(Contents::len) == 0);
        get.item.into_iter().for_each(|item| self.got(item));
    }

    /// Polls one of the waiting puts, woken or not, sometimes with a new waiter.
    fn poll_put(&mut self, place: usize, dice: &mut Dice) {
        let number = self.puts[place].number.unwrap();
        let waits = self.inspect(|contents| {
            contents.puts.iter().any(|(found, waiter)| *found == number && waiter.is_some())
        });
        let ended = self.puts[place].advance(&self.queue, waiter().filter(|_| dice.roll(2) == 0));
        assert_eq!(ended.is_none(), waits, "a woken operation has an outcome");
        if let Some(ended) = ended {
            let put = self.puts.remove(place);
            self.end_put(put, ended);
        }
    }

    fn poll_get(&mut self, place: usize, dice: &mut Dice) {
        let number = self.gets[place].number.unwrap();
        let waits = self.inspect(|contents| {
            contents.gets.iter().any(|(found, waiter)| *found == number && waiter.is_some())
        });
        self.mixed = true;
        let ended = self.gets[place].advance(&self.queue, waiter().filter(|_| dice.roll(2) == 0));
        assert_eq!(ended.is_none(), waits, "a woken operation has an outcome");
        if let Some(ended) = ended {
            let get = self.gets.remove(place);
            self.end_get(get, ended);
        }
    }

    fn give_up(&mut self, dice: &mut Dice) {
        self.mixed = true;
        let place = dice.roll(self.puts.len() + self.gets.len());
        if place >= self.puts.len() {
            let mut get = self.gets.remove(place - self.puts.len());
            get.withdraw(&self.queue, false);
            return assert!(get.item.is_none());
        }
        let mut put = self.puts.remove(place);
        let number = put.number.unwrap();
        let (is_free, waits) = self.inspect(|contents| {
            let place = contents.items.iter().position(|(found, _)| *found == number);
            (place.is_some_and(|place| place >= contents.reserved()), place >= Some(contents.len()))
        });
        if dice.roll(2) == 0 {
            let ended = put.give_up(&self.queue, Error::TimedOut);
            assert_eq!(ended.is_err(), is_free, "the item comes back if no get has it");
        } else {
            put.withdraw(&self.queue, false);
            assert_eq!(put.item.is_some(), waits, "the item comes back if it was not in the queue");
        }
        put.item.into_iter().for_each(|item| self.came_out(item));
    }

    fn close(&mut self) {
        self.closed = true;
        self.queue.with(|contents| contents.closed = true);
    }

    fn check(&self) {
        self.inspect(|contents| {
            let (len, reserved) = (contents.len(), contents.reserved());
            assert!(len <= contents.room, "the bound is exact");
            assert!(contents.items.iter().map(|(number, _)| number).is_sorted());
            assert!(contents.puts.is_empty() || contents.closed || len == contents.room);
            assert!(contents.puts.iter().all(|(_, waiter)| waiter.is_some() != contents.closed));
            // First come, first served: exactly the operations that have an item are woken.
            let served = if contents.closed && len == 0 { contents.gets.len() } else { reserved };
            let woken = contents.gets.iter().map(|(_, waiter)| waiter.is_none());
            assert!(woken.eq((0..contents.gets.len()).map(|place| place < served)));
            // Each item that was ever made is in the queue or came out.
            let came = usize::try_from(self.next - 1).unwrap();
            assert_eq!(contents.items.len() + self.out.len(), came);
            assert_eq!(contents.puts.len(), self.puts.len().min(contents.puts.len()));
            assert_eq!(contents.gets.len(), self.gets.len());
        });
    }
}

#[test]
fn random_programs_conserve_items_and_serve_waits_in_order() {
    for seed in 0..4_000 {
        let mut dice = Dice(seed);
        let mut world = World::new(1 + dice.roll(3));
        let patient = dice.roll(2) == 0;
        for _ in 0..80 {
            match dice.roll(16) {
                0..=4 => world.put(),
                5..=9 => world.get(),
                10 | 11 if !world.puts.is_empty() => {
                    let place = dice.roll(world.puts.len());
                    world.poll_put(place, &mut dice);
                }
                12 | 13 if !world.gets.is_empty() => {
                    let place = dice.roll(world.gets.len());
                    world.poll_get(place, &mut dice);
                }
                14 if !patient && world.puts.len() + world.gets.len() > 0 => {
                    world.give_up(&mut dice);
                }
                15 if dice.roll(30) == 0 => world.close(),
                _ => {}
            }
            world.check();
        }
        // Poll all woken operations until none is left.
        world.close();
        while !world.gets.is_empty() || !world.puts.is_empty() {
            (0..world.puts.len()).rev().for_each(|place| world.poll_put(place, &mut dice));
            (0..world.gets.len()).rev().for_each(|place| world.poll_get(place, &mut dice));
            if world.inspect(Contents::len) > 0 {
                world.get();
            }
            world.check();
        }
        while world.inspect(Contents::len) > 0 {
            world.get();
        }
        let left = world.inspect(|contents| contents.puts.len() + contents.gets.len());
        assert_eq!(left, 0, "an operation that gave up is in no list");
        assert_eq!(world.out.len() as u64, world.next - 1, "every item came out");
    }
}
