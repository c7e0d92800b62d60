//! The waits for locks that other tasks hold, for the time in which each holder is known.

use std::collections::BTreeMap;

use super::model::{Trace, is_primitive};
use super::now::Now;
use super::stuck::{self, Closed, Holders};

/// A task waits for a primitive, and another task holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The line that began the wait, as a place in the trace.
    pub wait: usize,
    /// The task that holds the primitive.
    pub holder: u64,
    /// The line from which the holder is known.
    pub from: usize,
    /// The line that ends the wait or the holding.
    pub to: usize,
}

/// A wait that is open.
struct Open {
    wait: usize,
    /// The holders, and since when each is known.
    holders: BTreeMap<u64, usize>,
}

impl Open {
    /// From this line on, these tasks are the holders.
    fn sync(&mut self, held_by: &[u64], place: usize, links: &mut Vec<Link>) {
        let wait = self.wait;
        self.holders.retain(|holder, from| {
            let stays = held_by.contains(holder);
            if !stays {
                links.push(Link { wait, holder: *holder, from: *from, to: place });
            }
            stays
        });
        for holder in held_by {
            self.holders.entry(*holder).or_insert(place);
        }
    }
}

/// All links, in the order of their beginnings.
pub fn links(trace: &Trace) -> Vec<Link> {
    let (mut holders, mut links) = (Holders::default(), Vec::new());
    let begin = trace.begin();
    // By ticket.
    let mut open = BTreeMap::<u64, Open>::new();
    trace.each(|place, line| {
        if place == begin && begin > 0 {
            holders.begin();
            for (ticket, held_by) in holders.all() {
                open.entry(ticket).and_modify(|open| open.sync(held_by, place, &mut links));
            }
        }
        holders.line(line);
        let ticket = line.number("k");
        let begins = ["block", "await"].contains(&line.verb);
        if begins && is_primitive(line) {
            let fresh = Open { wait: place, holders: BTreeMap::new() };
            open.extend(ticket.map(|ticket| (ticket, fresh)));
        } else if ["wake", "deliver", "withdraw"].contains(&line.verb)
            && let Some(mut over) = ticket.and_then(|ticket| open.remove(&ticket))
        {
            over.sync(&[], place, &mut links);
        }
        if place < begin {
            return;
        }
        if begins || ["wake", "take"].contains(&line.verb) {
            for (ticket, held_by) in holders.of(line.op()) {
                if let Some(open) = open.get_mut(&ticket) {
                    open.sync(held_by, place, &mut links);
                }
            }
        }
    });
    for mut open in open.into_values() {
        let end = trace.last_of(trace.task_of(open.wait).id);
        open.sync(&[], end, &mut links);
    }
    links.sort_by_key(|link| (link.from, link.wait, link.holder));
    links
}

/// Tasks that wait for each other forever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deadlock {
    /// The line at which the deadlock is certain, because the run failed there or the log ends.
    pub at: usize,
    /// Whether the run failed because no task could continue.
    pub is_hang: bool,
    /// The number of tasks in a circle then.
    pub tasks: usize,
    /// Each circle, including those that are over by then: the line of each wait in it, and the
    /// task that holds the awaited primitive.
    pub circles: Vec<Vec<(usize, u64)>>,
    /// The circles in the words of the kernel.
    pub words: String,
}

/// The deadlocks of a trace; without circles if there is none. A dump that was written because the
/// run hangs ends before its tasks are dropped.
pub fn deadlock(trace: &Trace) -> Deadlock {
    let (mut now, mut hang) = (Now::before(trace), None);
    trace.each(|place, line| {
        if line.verb == "drop" && line.word(0) == "its_run_failed" {
            hang.get_or_insert(place);
        }
        if hang.is_none() {
            now.line(line);
        }
    });
    let place = |(seq, holder): &(u64, u64)| Some((trace.place(*seq)?, *holder));
    let (rings, past) = (stuck::rings(&now), stuck::past(&now));
    let tasks = rings.iter().map(Vec::len).sum();
    let all = rings.iter().chain(past.iter().map(|closed| &closed.ring));
    let circles = all.map(|ring| ring.iter().filter_map(place).collect()).collect();
    let mut words = stuck::circles(&now);
    for Closed { from, words: past, .. } in past {
        let when = format!(" from {} s on, over now:\n", from.at);
        words += &past.replacen(":\n", &when, 1);
    }
    let is_dumped = trace.whole.cause() == Some("hang");
    let hang = hang.or_else(|| trace.cause_of_dump().filter(|_| is_dumped));
    let at = hang.unwrap_or(trace.len() - 1);
    Deadlock { at, is_hang: hang.is_some(), tasks, circles, words }
}
