//! Given: the timers of a breakfast, with a line for each call.

use super::kernel::Time;
use super::lab::{Timer, Timers};
use super::scenario::{self, Call};

#[derive(Default)]
struct Breakfast {
    timers: Timers,
    /// The keys that were not used, in the order of setting.
    keys: Vec<(&'static str, Timer)>,
}

impl Breakfast {
    fn call(&mut self, call: Call) {
        match call {
            Call::Set(at, name) => {
                println!("set {at:?} {name}");
                self.keys.push((name, self.timers.set(Time(at), name)));
            }
            Call::Clear(name) => {
                println!("clear {name}");
                self.clear(self.keys.iter().rposition(|(each, _)| *each == name));
            }
            Call::ClearFirst(name) => {
                println!("clear the first {name}");
                self.clear(self.keys.iter().position(|(each, _)| *each == name));
            }
            Call::Next => {
                let next = self.timers.next().map(|Time(at)| format!("{at:?}"));
                println!("next = {}", next.as_deref().unwrap_or("none"));
            }
            Call::Pop(now) => {
                println!("pop {now:?} = {}", self.timers.pop(Time(now)).unwrap_or("none"));
            }
        }
    }

    /// Clears the timer whose key is at that place.
    fn clear(&mut self, place: Option<usize>) {
        let (_, key) = self.keys.remove(place.expect("each timer is cleared once"));
        self.timers.clear(key);
    }
}

pub fn main(seed: u64) {
    let mut breakfast = Breakfast::default();
    for call in scenario::of(seed) {
        breakfast.call(call);
    }
}
