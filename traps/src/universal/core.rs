//! The universal queue as a pure structure: items, and the two lines of those who wait.
//!
//! Knows neither tasks nor threads, takes no lock and calls nobody: it says who is to be woken, and
//! its caller does that after the lock. Nothing of a user's is dropped here either.
//!
//! An item is numbered when its put arrives and keeps its number until it is taken. The oldest may
//! stand in the [`Head`], from which they are taken without a word to the core: what it knows of
//! them is how many there were at most. Three things hold by what it knows, and make the lines fair
//! without a look at them:
//!
//! - no get waits empty-handed while an item is free, so who comes later finds none;
//! - no put waits while there is room, so who comes later finds none;
//! - the gets that were handed an item stand before those that were not.

use std::collections::VecDeque;
use std::mem;

/// Why an operation cannot be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It would have to wait.
    Wait,
    Closed,
}

/// What has become of a put or get that waits.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate<D, C> {
    Waits,
    Done(D),
    Closed(C),
}

/// What is to be done once the lock is released. Two wakes need no allocation; a close may make
/// more.
#[derive(Debug)]
pub(super) struct After<W> {
    wake: [Option<W>; 2],
    more: Vec<W>,
    /// Wakers that are not needed any more, to be dropped outside.
    stale: [Option<W>; 2],
}

impl<W> After<W> {
    pub(super) fn nothing() -> After<W> {
        After { wake: [None, None], more: Vec::new(), stale: [None, None] }
    }

    fn wake(&mut self, waker: Option<W>) {
        let Some(waker) = waker else { return };
        match self.wake.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(waker),
            None => self.more.push(waker),
        }
    }

    fn forget(&mut self, waker: Option<W>) {
        let place = self.stale.iter_mut().find(|place| place.is_none());
        *place.expect("an operation replaces or removes one waiter") = waker;
    }

    /// Whether there is nothing to be done: mostly.
    #[inline]
    pub(super) fn is_nothing(&self) -> bool {
        self.wake[0].is_none() && self.stale[0].is_none()
    }

    /// Those who are to be woken, in that order.
    pub(super) fn woken(self) -> impl Iterator<Item = W> {
        self.wake.into_iter().flatten().chain(self.more)
    }
}

/// The oldest free items, by number: all older than those of the core.
pub(super) type Head<T> = VecDeque<(u64, T)>;

/// A put that waits for room, and its item.
struct Putter<T, W> {
    number: u64,
    item: T,
    /// `None`: it was woken.
    waker: Option<W>,
}

/// A get that waits.
struct Getter<T, W> {
    number: u64,
    /// What it was handed and has not taken.
    item: Option<(u64, T)>,
    /// `None`: it was woken.
    waker: Option<W>,
}

pub(super) struct Core<T, W> {
    room: usize,
    closed: bool,
    /// The number that was given out last, to an item or a get.
    last: u64,
    /// Items at the head: no fewer than there are.
    head: usize,
    /// The other free items, by number.
    items: VecDeque<(u64, T)>,
    /// By number.
    puts: VecDeque<Putter<T, W>>,
    /// By number; the first `handed` of them have an item.
    gets: VecDeque<Getter<T, W>>,
    handed: usize,
}

impl<T, W> Core<T, W> {
    pub(super) fn new(room: usize) -> Core<T, W> {
        Core {
            room,
            closed: false,
            last: 0,
            head: 0,
            items: VecDeque::new(),
            puts: VecDeque::new(),
            gets: VecDeque::new(),
            handed: 0,
        }
    }

    /// Items that were put and not taken, as far as it knows; those that were handed to somebody
    /// count.
    pub(super) fn len(&self) -> usize {
        self.head + self.items.len() + self.handed
    }

    /// Hears how many stand at the head, and does what follows from that and from what was done:
    /// lets in the puts for which there is room, and hands free items to the gets that wait. After
    /// all that is done here but a put.
    pub(super) fn hear(&mut self, head: usize, after: &mut After<W>) {
        self.head = head;
        self.settle(after);
    }

    /// Whether a put waits for room.
    pub(super) fn awaits_room(&self) -> bool {
        !self.closed && !self.puts.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// How many puts and gets wait, or have not heard that they need not any more.
    pub(super) fn waiting(&self) -> usize {
        self.puts.len() + self.gets.len()
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Puts the item in `slot`, if there is room.
    pub(super) fn try_put(
        &mut self,
        slot: &mut Option<T>,
        after: &mut After<W>,
    ) -> Result<(), Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        if self.len() >= self.room {
            return Err(Refusal::Wait);
        }
        let number = self.number();
        self.items.push_back((number, slot.take().expect("rule: a put has an item")));
        self.settle(after);
        Ok(())
    }

    /// A put that [`Core::try_put`] told to wait goes to the end of the line.
    pub(super) fn join_puts(&mut self, item: T, waker: W) -> u64 {
        let number = self.number();
        self.puts.push_back(Putter { number, item, waker: Some(waker) });
        number
    }

    /// What has become of a put that waits; it leaves the line unless it still does.
    pub(super) fn look_at_put(&mut self, number: u64, after: &mut After<W>) -> Fate<(), T> {
        match self.puts.binary_search_by_key(&number, |put| put.number) {
            Err(_) => Fate::Done(()),
            Ok(_) if !self.closed => Fate::Waits,
            Ok(_) => self.leave_puts(number, after).map_or(Fate::Done(()), Fate::Closed),
        }
    }

    /// A put that waits is woken through another waker from now on.
    pub(super) fn rewake_put(&mut self, number: u64, waker: W, after: &mut After<W>) {
        if let Ok(place) = self.puts.binary_search_by_key(&number, |put| put.number) {
            after.forget(self.puts[place].waker.replace(waker));
        }
    }

    /// A put gives up: its item comes back, unless some get has it or had it.
    pub(super) fn take_back(
        &mut self,
        number: u64,
        head: &mut Head<T>,
        after: &mut After<W>,
    ) -> Option<T> {
        if let Some(item) = self.leave_puts(number, after) {
            return Some(item);
        }
        let (_, item) = [head, &mut self.items].into_iter().find_map(|items| {
            let place = items.binary_search_by_key(&number, |(found, _)| *found).ok()?;
            items.remove(place)
        })?;
        Some(item)
    }

    /// A put gives up whose item is not wanted back if it got in.
    pub(super) fn leave_puts(&mut self, number: u64, after: &mut After<W>) -> Option<T> {
        let place = self.puts.binary_search_by_key(&number, |put| put.number).ok()?;
        let put = self.puts.remove(place)?;
        after.forget(put.waker);
        Some(put.item)
    }

    /// Takes the oldest item, if one is free. `Closed`: none is left, and none can come. A head
    /// that is empty gets all the others first.
    pub(super) fn try_get(&mut self, head: &mut Head<T>) -> Result<T, Refusal> {
        if head.is_empty() {
            mem::swap(head, &mut self.items);
        }
        match head.pop_front() {
            Some((_, item)) => Ok(item),
            None if self.closed && self.handed == 0 => Err(Refusal::Closed),
            None => Err(Refusal::Wait),
        }
    }

    /// A get that [`Core::try_get`] told to wait goes to the end of the line.
    pub(super) fn join_gets(&mut self, waker: W) -> u64 {
        let number = self.number();
        self.gets.push_back(Getter { number, item: None, waker: Some(waker) });
        number
    }

    /// What has become of a get that waits; it leaves the line unless it still does.
    pub(super) fn look_at_get(&mut self, number: u64, after: &mut After<W>) -> Fate<T, ()> {
        let Ok(place) = self.gets.binary_search_by_key(&number, |get| get.number) else {
            unreachable!("rule: a get stands in line until it is told what became of it")
        };
        if place >= self.handed && !(self.closed && self.len() == 0) {
            return Fate::Waits;
        }
        self.leave(place, after).map_or(Fate::Closed(()), |(_, item)| Fate::Done(item))
    }

    /// A get that waits is woken through another waker from now on.
    pub(super) fn rewake_get(&mut self, number: u64, waker: W, after: &mut After<W>) {
        if let Ok(place) = self.gets.binary_search_by_key(&number, |get| get.number) {
            after.forget(self.gets[place].waker.replace(waker));
        }
    }

    /// A get gives up: what it was handed goes back to where it was in the order, and so to the
    /// next in line, if there is one.
    pub(super) fn leave_gets(&mut self, number: u64, head: &mut Head<T>, after: &mut After<W>) {
        let Ok(place) = self.gets.binary_search_by_key(&number, |get| get.number) else { return };
        if let Some((number, item)) = self.leave(place, after) {
            let is_old = head.back().is_some_and(|(last, _)| number < *last);
            let items = if is_old { head } else { &mut self.items };
            let place = items.partition_point(|(found, _)| *found < number);
            items.insert(place, (number, item));
        }
    }

    fn leave(&mut self, place: usize, after: &mut After<W>) -> Option<(u64, T)> {
        let get = self.gets.remove(place)?;
        self.handed -= usize::from(get.item.is_some());
        after.forget(get.waker);
        get.item
    }

    /// No put is taken any more. Those that wait hear of it, gets once nothing is left.
    pub(super) fn close(&mut self, after: &mut After<W>) {
        if !mem::replace(&mut self.closed, true) {
            for put in &mut self.puts {
                after.wake(put.waker.take());
            }
        }
    }

    /// Lets in the puts for which there is room, and hands free items to the gets that wait.
    fn settle(&mut self, after: &mut After<W>) {
        while !self.closed && self.len() < self.room {
            let Some(put) = self.puts.pop_front() else { break };
            self.items.push_back((put.number, put.item));
            after.wake(put.waker);
        }
        while let Some(get) = self.gets.get_mut(self.handed)
            && let Some(item) = self.items.pop_front()
        {
            get.item = Some(item);
            after.wake(get.waker.take());
            self.handed += 1;
        }
        if self.closed && self.len() == 0 {
            for get in &mut self.gets {
                after.wake(get.waker.take());
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::locked::Locked;
    use super::*;
    use std::collections::BTreeSet;

    /// A generator that is the same everywhere (splitmix64).
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

    /// One of a line, as its own waker: who it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    enum Who {
        Put(u64),
        Get(u64),
    }

    /// A queue, and the books that are kept of it.
    struct World {
        queue: Locked<u64, Who>,
        room: usize,
        closed: bool,
        /// The item that is put next: ascending, so the order can be seen.
        next: u64,
        /// Items that came out, at either end.
        out: BTreeSet<u64>,
        /// Who stands in line and has not been told; and who was told.
        puts: Vec<u64>,
        gets: Vec<u64>,
        woken: BTreeSet<Who>,
        /// Somebody took what it was handed, perhaps late, or gave up: after that an older item may
        /// come behind a younger one.
        mixed: bool,
        /// What was taken last, before that.
        last: u64,
    }

    impl World {
        fn new(room: usize) -> World {
            World {
                queue: Locked::new(room),
                room,
                closed: false,
                next: 1,
                out: BTreeSet::new(),
                puts: Vec::new(),
                gets: Vec::new(),
                woken: BTreeSet::new(),
                mixed: false,
                last: 0,
            }
        }

        /// Something of the core's, with the head at hand.
        fn work<R>(
            &mut self,
            work: impl FnOnce(&mut Core<u64, Who>, &mut Head<u64>, &mut After<Who>) -> R,
        ) -> R {
            self.ask(|queue, after| queue.with(after, work))
        }

        fn ask<R>(&mut self, ask: impl FnOnce(&Locked<u64, Who>, &mut After<Who>) -> R) -> R {
            let mut after = After::nothing();
            let result = ask(&self.queue, &mut after);
            for who in after.woken() {
                assert!(self.woken.insert(who), "{who:?} is woken once");
                let line = match who {
                    Who::Put(_) => &self.puts,
                    Who::Get(_) => &self.gets,
                };
                let (Who::Put(name) | Who::Get(name)) = who;
                // First come, first served: all before it were woken too.
                let place = line.iter().position(|of| *of == name).expect("it stands in line");
                let earlier = line[..place].iter().map(|name| match who {
                    Who::Put(_) => Who::Put(*name),
                    Who::Get(_) => Who::Get(*name),
                });
                earlier.for_each(|who| assert!(self.woken.contains(&who)));
            }
            result
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
            let item = self.next;
            self.next += 1;
            let mut slot = Some(item);
            match self.ask(|queue, after| queue.try_put(&mut slot, after)) {
                Ok(()) => assert!(self.puts.iter().all(|n| self.woken.contains(&Who::Put(*n)))),
                Err(Refusal::Closed) => self.came_out(slot.unwrap()),
                Err(Refusal::Wait) => {
                    // The number of the entry, which its waker needs, is the next one.
                    let item = slot.unwrap();
                    let number = self.work(|core, _, _| {
                        let number = core.last + 1;
                        assert_eq!(core.join_puts(item, Who::Put(number)), number);
                        number
                    });
                    self.puts.push(number);
                }
            }
        }

        fn get(&mut self) {
            match self.ask(|queue, after| queue.try_get(after)) {
                Ok(item) => {
                    assert!(self.gets.iter().all(|n| self.woken.contains(&Who::Get(*n))));
                    self.got(item);
                }
                Err(Refusal::Closed) => assert!(self.closed && self.len() == 0),
                Err(Refusal::Wait) => {
                    let number = self.work(|core, _, _| {
                        let number = core.last + 1;
                        assert_eq!(core.join_gets(Who::Get(number)), number);
                        number
                    });
                    self.gets.push(number);
                }
            }
        }

        fn look_at_put(&mut self, place: usize) {
            let number = self.puts[place];
            let woken = self.woken.contains(&Who::Put(number));
            match self.work(|core, _, after| core.look_at_put(number, after)) {
                Fate::Waits => return assert!(!woken, "who is woken has an outcome"),
                Fate::Done(()) => assert!(woken),
                Fate::Closed(item) => {
                    assert!(woken && self.closed);
                    self.came_out(item);
                }
            }
            self.puts.remove(place);
        }

        fn look_at_get(&mut self, place: usize) {
            let number = self.gets[place];
            let woken = self.woken.contains(&Who::Get(number));
            self.mixed = true;
            match self.work(|core, _, after| core.look_at_get(number, after)) {
                Fate::Waits => return assert!(!woken, "who is woken has an outcome"),
                Fate::Done(item) => {
                    assert!(woken);
                    self.got(item);
                }
                Fate::Closed(()) => assert!(woken && self.closed && self.len() == 0),
            }
            self.gets.remove(place);
        }

        fn leave(&mut self, dice: &mut Dice) {
            self.mixed = true;
            let all = self.puts.len() + self.gets.len();
            let place = dice.roll(all);
            if place < self.puts.len() {
                let number = self.puts.remove(place);
                let back = match dice.roll(2) {
                    0 => self.take_back(number),
                    _ => self.work(|core, _, after| core.leave_puts(number, after)),
                };
                back.into_iter().for_each(|item| self.came_out(item));
            } else {
                let number = self.gets.remove(place - self.puts.len());
                self.work(|core, head, after| core.leave_gets(number, head, after));
            }
        }

        /// It comes back if nobody has it.
        fn take_back(&mut self, number: u64) -> Option<u64> {
            self.work(|core, head, after| {
                let free = head.iter().chain(&core.items).map(|(number, _)| *number);
                let waits = core.puts.iter().map(|put| put.number);
                let is_nobodys = free.chain(waits).any(|found| found == number);
                let back = core.take_back(number, head, after);
                assert_eq!(back.is_some(), is_nobodys);
                back
            })
        }

        fn len(&mut self) -> usize {
            self.work(|core, _, _| core.len())
        }

        fn check(&self) {
            self.queue.look(|head, core| self.check_parts(head, core));
        }

        fn check_parts(&self, head: &Head<u64>, core: &Core<u64, Who>) {
            let len = head.len() + core.items.len() + core.handed;
            assert!(len <= self.room, "the bound is exact");
            assert!(head.len() <= core.head);
            let empty_handed = core.gets.len() - core.handed;
            assert!(empty_handed == 0 || head.is_empty() && core.items.is_empty());
            assert!(core.puts.is_empty() || core.closed || len == self.room);
            let handed = |get: &Getter<u64, Who>| get.item.is_some();
            assert_eq!(core.gets.iter().take_while(|get| handed(get)).count(), core.handed);
            assert_eq!(core.gets.iter().filter(|get| handed(get)).count(), core.handed);
            let numbers = head.iter().chain(&core.items).map(|(number, _)| *number);
            assert!(numbers.is_sorted());
            // Each item that ever came is inside or came out.
            let inside = len + core.puts.len();
            let came = usize::try_from(self.next - 1).unwrap();
            assert_eq!(inside + self.out.len(), came);
        }
    }

    #[test]
    fn whatever_happens_in_whatever_order_items_are_conserved_and_lines_are_fair() {
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
                        world.look_at_put(place);
                    }
                    12 | 13 if !world.gets.is_empty() => {
                        let place = dice.roll(world.gets.len());
                        world.look_at_get(place);
                    }
                    14 if !patient && world.puts.len() + world.gets.len() > 0 => {
                        world.leave(&mut dice);
                    }
                    15 if dice.roll(30) == 0 => {
                        world.closed = true;
                        world.work(|core, _, after| core.close(after));
                    }
                    _ => {}
                }
                world.check();
            }
            // All who were woken look, until nobody is left who was.
            world.closed = true;
            world.work(|core, _, after| core.close(after));
            while !world.gets.is_empty() || !world.puts.is_empty() {
                let puts = world.puts.len();
                (0..puts).rev().for_each(|place| world.look_at_put(place));
                let gets = world.gets.len();
                (0..gets).rev().for_each(|place| world.look_at_get(place));
                if world.len() > 0 {
                    world.get();
                }
                world.check();
            }
            while world.len() > 0 {
                world.get();
            }
            assert_eq!(world.work(|core, _, _| core.waiting()), 0, "who gave up left nothing");
            assert_eq!(world.out.len() as u64, world.next - 1, "every item came out");
        }
    }

    #[test]
    fn two_wakes_need_no_allocation() {
        let queue = Locked::new(1);
        let mut after = After::nothing();
        queue.try_put(&mut Some(1), &mut after).unwrap();
        queue.with(&mut after, |core, _, _| core.join_puts(2, 'p'));
        assert_eq!(queue.try_get(&mut after), Ok(1));
        assert_eq!(after.more.capacity(), 0);
        assert_eq!(after.woken().collect::<Vec<_>>(), ['p']);
    }
}
