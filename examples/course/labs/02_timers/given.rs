//! Given: the timers of a breakfast, with a line for each call.

use std::collections::BTreeMap;
use std::time::Duration;

use super::kernel::Time;
use super::lab::{Timer, Timers};

#[derive(Default)]
struct Breakfast {
    timers: Timers,
    keys: BTreeMap<&'static str, Timer>,
}

fn at(millis: u64) -> Time {
    Time(Duration::from_millis(millis))
}

impl Breakfast {
    fn set(&mut self, millis: u64, name: &'static str) {
        println!("set {millis}ms {name}");
        let timer = self.timers.set(at(millis), name);
        self.keys.insert(name, timer);
    }

    fn clear(&mut self, name: &'static str) {
        println!("clear {name}");
        let timer = self.keys.remove(name).expect("what is cleared was set");
        self.timers.clear(timer);
    }

    fn next(&self) {
        match self.timers.next() {
            Some(Time(time)) => println!("next = {}ms", time.as_millis()),
            None => println!("next = none"),
        }
    }

    /// Pops so many times.
    fn pop(&mut self, millis: u64, times: u32) {
        for _ in 0..times {
            println!("pop {millis}ms = {}", self.timers.pop(at(millis)).unwrap_or("none"));
        }
    }
}

pub fn main(_seed: u64) {
    let mut breakfast = Breakfast::default();
    for (millis, name) in [(30, "tea"), (10, "egg"), (20, "toast"), (20, "milk"), (20, "butter")] {
        breakfast.set(millis, name);
    }
    breakfast.next();
    breakfast.pop(5, 1);
    breakfast.pop(10, 2);
    breakfast.next();
    breakfast.pop(25, 4);
    for (millis, name) in [(40, "jam"), (40, "ham"), (40, "cheese")] {
        breakfast.set(millis, name);
    }
    breakfast.clear("ham");
    breakfast.next();
    breakfast.pop(60, 4);
    breakfast.next();
    for name in ["rye", "oat", "fig"] {
        breakfast.set(70, name);
    }
    breakfast.pop(70, 1);
    breakfast.set(70, "plum");
    breakfast.pop(80, 4);
}
