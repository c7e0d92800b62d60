//! The open connections in the order in which their waits began: one queue for each kind of wait.
//!
//! A connection is at most in one queue, and is known by its place in the list of all connections.
//! The queues are rings of links, in one array. The first links are the *ends* of the queues, and
//! the link of place `p` is at `ENDS + p`. An end links to the first and the last connection of its
//! queue; the link of a connection in no queue links to itself. So a connection leaves its queue
//! without knowing which queue that is.
//!
//! Leaving is lazy. A connection whose wait is over stays in its queue until it waits again, is
//! removed, or is found first in the queue, so the hot path of a request pays for only one move.

use std::mem;

use traps::Time;

/// A kind of wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    New,
    Idle,
    Partial,
    Body,
    Room,
    Write,
    Full,
}

const ENDS: usize = Queue::Full as usize + 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u32,
    after: u32,
    /// The time at which the wait began, for the queues that need it.
    since: Time,
}

#[derive(Debug)]
pub(crate) struct Queues(Vec<Link>);

impl Default for Queues {
    fn default() -> Queues {
        Queues((0..ENDS as u32).map(Link::alone).collect())
    }
}

impl Link {
    fn alone(at: u32) -> Link {
        Link { before: at, after: at, since: Time::ZERO }
    }
}

impl Queues {
    /// Adds a place after all others, in no queue.
    pub(crate) fn add(&mut self) {
        let at = u32::try_from(self.0.len()).expect("there are fewer descriptors");
        self.0.push(Link::alone(at));
    }

    /// Moves a place to the end of a queue, with the time at which its wait began.
    #[inline]
    pub(crate) fn push(&mut self, queue: Queue, place: u32, since: Time) {
        let (end, at) = (queue as u32, place + ENDS as u32);
        let links = &mut self.0[..];
        let Link { before, after, .. } = links[at as usize];
        if after == end {
            // It is the last one already.
            links[at as usize].since = since;
            return;
        }
        links[before as usize].after = after;
        links[after as usize].before = before;
        let last = mem::replace(&mut links[end as usize].before, at);
        links[last as usize].after = at;
        links[at as usize] = Link { before: last, after: end, since };
    }

    /// Takes a place out of its queue.
    pub(crate) fn leave(&mut self, place: u32) {
        let at = place + ENDS as u32;
        self.unlink(at);
        self.0[at as usize] = Link::alone(at);
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        let Link { before, after, .. } = self.0[at as usize];
        self.0[before as usize].after = after;
        self.0[after as usize].before = before;
    }

    /// Removes a place. The last place takes its number.
    pub(crate) fn swap_remove(&mut self, place: u32) {
        let at = place + ENDS as u32;
        self.leave(place);
        let last = self.0.len() as u32 - 1;
        if at < last {
            let moved = self.0[last as usize];
            if moved.before == last {
                self.0[at as usize] = Link::alone(at);
            } else {
                self.0[moved.before as usize].after = at;
                self.0[moved.after as usize].before = at;
                self.0[at as usize] = moved;
            }
        }
        self.0.pop();
    }

    /// The first place in a queue, and the time at which its wait began.
    pub(crate) fn first(&self, queue: Queue) -> Option<(u32, Time)> {
        let at = self.0[queue as usize].after;
        let place = at.checked_sub(ENDS as u32)?;
        Some((place, self.0[at as usize].since))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Add,
        Push(bool, prop::sample::Index),
        Leave(prop::sample::Index),
        Remove(prop::sample::Index),
    }

    proptest! {
        /// Compared with two plain lists of the names of connections.
        #[test]
        fn the_queues_are_lists_in_the_order_of_their_moves(
            steps in prop::collection::vec(
                prop_oneof![
                    Just(Step::Add),
                    (any::<bool>(), any::<prop::sample::Index>())
                        .prop_map(|(second, index)| Step::Push(second, index)),
                    any::<prop::sample::Index>().prop_map(Step::Leave),
                    any::<prop::sample::Index>().prop_map(Step::Remove),
                ],
                1..100,
            ),
        ) {
            let mut queues = Queues::default();
            let (mut names, mut next) = (Vec::new(), 0_u32);
            let mut lists = [Vec::new(), Vec::new()];
            for step in steps {
                let place = |index: &prop::sample::Index| index.index(names.len());
                let mut out = |name: u32| {
                    lists.iter_mut().for_each(|list| list.retain(|other| *other != name));
                };
                match &step {
                    Step::Add => {
                        queues.add();
                        names.push(next);
                        next += 1;
                    }
                    _ if names.is_empty() => {}
                    Step::Push(second, index) => {
                        let at = place(index);
                        out(names[at]);
                        lists[usize::from(*second)].push(names[at]);
                        let queue = if *second { Queue::Body } else { Queue::Idle };
                        queues.push(queue, at as u32, Time::ZERO);
                    }
                    Step::Leave(index) => {
                        out(names[place(index)]);
                        queues.leave(place(index) as u32);
                    }
                    Step::Remove(index) => {
                        let at = place(index);
                        out(names[at]);
                        names.swap_remove(at);
                        queues.swap_remove(at as u32);
                    }
                }
            }
            for (queue, list) in [Queue::Idle, Queue::Body].into_iter().zip(&lists) {
                let mut found = Vec::new();
                while let Some((place, _)) = queues.first(queue) {
                    found.push(names[place as usize]);
                    queues.leave(place);
                }
                prop_assert_eq!(&found, list);
            }
            prop_assert_eq!(queues.0.len(), ENDS + names.len());
        }
    }
}
