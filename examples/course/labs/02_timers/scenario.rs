//! The calls of a breakfast, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// A call of the timers. Of several timers with a name, `Clear` uses the key of the last, and
/// `ClearFirst` the key of the first. No key is used twice.
#[derive(Clone, Copy)]
pub enum Call {
    Set(Duration, &'static str),
    Clear(&'static str),
    ClearFirst(&'static str),
    Next,
    Pop(Duration),
}

use Call::{Clear, ClearFirst, Next, Pop, Set};

const NAMES: [&str; 20] = [
    "tea", "egg", "toast", "milk", "butter", "jam", "ham", "cheese", "rye", "oat", "fig", "plum",
    "pear", "bun", "bean", "rice", "nut", "salt", "date", "corn",
];

/// The number of timers that a drawn scenario sets at first.
const MANY: u64 = 300;

const NANO: Duration = Duration::from_nanos(1);

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Call> {
    match seed {
        0 => of_the_page(),
        1 => fixed(),
        _ => drawn(seed),
    }
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

fn of_the_page() -> Vec<Call> {
    let mut calls = [(30, "tea"), (10, "egg"), (20, "toast"), (20, "milk"), (20, "butter")]
        .map(|(at, name)| Set(ms(at), name))
        .to_vec();
    calls.extend([Next, Pop(ms(5)), Pop(ms(10)), Pop(ms(10)), Next]);
    calls.extend([Pop(ms(25)); 4]);
    calls.extend(["jam", "ham", "cheese"].map(|name| Set(ms(40), name)));
    calls.extend([Clear("ham"), Next]);
    calls.extend([Pop(ms(60)); 4]);
    calls.push(Next);
    calls.extend(["rye", "oat", "fig"].map(|name| Set(ms(70), name)));
    calls.extend([Pop(ms(70)), Set(ms(70), "plum")]);
    calls.extend([Pop(ms(80)); 4]);
    calls
}

/// Adds to the scenario of the page: a clear of a timer that has fired, a clear of the soonest
/// timer, and times between two milliseconds.
fn fixed() -> Vec<Call> {
    let mut calls = vec![Set(ms(5), "tea"), Set(ms(7), "egg"), Pop(ms(5)), Set(ms(9), "toast")];
    calls.extend([Clear("tea"), Next, Clear("egg"), Next, Next, Pop(ms(8)), Pop(ms(9))]);
    calls.extend([Set(us(20_700), "milk"), Set(us(20_300), "butter"), Set(us(20_300), "jam")]);
    calls.extend([Next, Pop(us(20_299)), Pop(us(20_500)), Pop(us(20_500)), Pop(us(20_500))]);
    calls.extend([Set(ms(1), "ham"), Set(ms(90_000), "cheese"), Next, Pop(ms(21)), Pop(ms(21))]);
    calls.extend([Next, Pop(ms(89_999)), Pop(ms(90_000)), Next]);
    // No timer is set now, so the next one could get a key that was used before.
    calls.extend([Set(ms(90_001), "rye"), Pop(ms(90_001)), Set(ms(90_001), "oat")]);
    calls.extend([Clear("rye"), Next, Pop(ms(90_001)), Next]);
    // Names that are used twice, at different times and at the same time.
    let names = [(90_010, "fig"), (90_010, "plum"), (90_020, "fig"), (90_010, "fig")];
    calls.extend(names.map(|(at, name)| Set(ms(at), name)));
    calls.extend([Clear("fig"), Next, Pop(ms(90_010)), Pop(ms(90_010)), Clear("fig")]);
    calls.extend([Next, Pop(ms(90_020)), Set(us(0), "fig"), Set(us(0), "pear"), Clear("fig")]);
    calls.extend([Next, Pop(us(0)), Next]);
    // Times to the nanosecond, after more than a year.
    let year = Duration::from_nanos(400 * 24 * 3_600_000_000_000 + 1);
    calls.extend([Set(year, "bun"), Set(ms(100_000), "bean"), Next, Pop(ms(100_000)), Next]);
    calls.extend([Pop(year - NANO), Pop(year), Next]);
    // The later of two times that differ by a nanosecond is set first.
    calls.extend([Set(year + 2 * NANO, "rice"), Set(year + NANO, "nut"), Next]);
    calls.extend([Pop(year + NANO), Next, Pop(year + 2 * NANO), Next]);
    // As floating-point numbers, these two times are equal.
    calls.extend([Set(year + 4 * NANO, "date"), Set(year + 3 * NANO, "salt"), Next]);
    calls.extend([Pop(year + 4 * NANO), Pop(year + 4 * NANO)]);
    // The last of 257 timers is equal to the first, whose key was kept.
    calls.extend([Set(year, "corn"), Pop(year)].repeat(256));
    calls.extend([Set(year, "corn"), ClearFirst("corn"), Next, Pop(year)]);
    // A timer that has been due for more than a year.
    calls.extend([Set(us(1), "leek"), Next, Pop(year)]);
    calls
}

fn drawn(seed: u64) -> Vec<Call> {
    let (mut calls, mut now, mut names) = (vec![Next, Pop(us(0))], us(0), NAMES.iter().cycle());
    let mut set = Vec::new();
    for nth in 0..MANY + 60 {
        let below = |bound| draw(seed, nth, bound) as usize;
        // First, many timers at a time.
        match if nth < MANY { 0 } else { below(5) } {
            0 | 1 => {
                let name = names.next().expect("it begins again");
                // Few times, so that many are equal.
                calls.push(Set(now + us(500) * below(4) as u32, name));
                set.push(name);
            }
            2 if !set.is_empty() => calls.push(Clear(set.swap_remove(below(set.len() as u64)))),
            2 | 3 => calls.push(Next),
            _ => {
                now += us(500) * below(3) as u32;
                calls.push(Pop(now));
            }
        }
    }
    calls.extend([Pop(now + ms(2))].repeat(set.len() + 1));
    calls
}
