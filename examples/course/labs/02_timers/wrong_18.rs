// says: line 587: `corn` is lost: line 586 cleared a `corn` that was gone, so it must remove nothing; two timers must not have the same key
// demand: A key clears its timer, and no other.
//! Yours: the timers, the soonest first.

use super::kernel::Time;

/// A place, and how often it was used. The second number begins again after 255.
pub type Timer = (usize, u8);

/// The time of a timer, its number, and its name.
type Entry = (Time, u64, &'static str);

#[derive(Default)]
pub struct Timers {
    places: Vec<(u8, Option<Entry>)>,
    set: u64,
}

impl Timers {
    pub fn set(&mut self, at: Time, name: &'static str) -> Timer {
        self.set += 1;
        let free = self.places.iter().position(|(_, entry)| entry.is_none());
        let place = free.unwrap_or_else(|| {
            self.places.push((0, None));
            self.places.len() - 1
        });
        self.places[place].1 = Some((at, self.set, name));
        (place, self.places[place].0)
    }

    pub fn clear(&mut self, (place, uses): Timer) {
        if self.places[place].0 == uses {
            self.take(place);
        }
    }

    pub fn next(&self) -> Option<Time> {
        self.soonest().map(|((at, ..), _)| at)
    }

    pub fn pop(&mut self, now: Time) -> Option<&'static str> {
        let (entry, place) = self.soonest().filter(|((at, ..), _)| *at <= now)?;
        self.take(place);
        Some(entry.2)
    }

    fn soonest(&self) -> Option<(Entry, usize)> {
        let entries = self.places.iter().zip(0..);
        entries.filter_map(|((_, entry), place)| Some(((*entry)?, place))).min()
    }

    fn take(&mut self, place: usize) {
        let (uses, entry) = &mut self.places[place];
        if entry.take().is_some() {
            *uses = uses.wrapping_add(1);
        }
    }
}
