//! Every: the eight beats, at their times.

use crate::work::Work;

/// When each beat is due, and when it can begin, in milliseconds.
const BEATS: [(u64, u64); 8] =
    [(7, 7), (107, 107), (207, 207), (307, 457), (407, 487), (507, 517), (607, 607), (707, 707)];

/// When the last is over, in milliseconds.
const END: u64 = 737;

/// The time at the beginning of a line of the log, in milliseconds.
fn millis(line: &str) -> Option<u64> {
    let (seconds, rest) = line.split_whitespace().next()?.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * 1000 + rest.parse::<u64>().ok()? / 1000)
}

fn shown(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

pub fn check(work: &Work) -> Result<(), String> {
    let lines: Vec<&str> = work.log.lines().collect();
    let mut nth = 0;
    for (at, line) in lines.iter().enumerate() {
        let Some(beat) = line.strip_prefix("beat ") else { continue };
        let Some((due, begin)) = BEATS.get(nth) else {
            return Err(format!("line {}: `{line}` is one beat too many", at + 1));
        };
        nth += 1;
        if beat != nth.to_string() {
            return Err(format!("line {}: `{line}` came, and beat {nth} was next", at + 1));
        }
        // The work reads the clock first, so the line before has the time.
        let began = lines[..at].iter().rev().find_map(|line| millis(line)).unwrap_or_default();
        moment(nth, began, *due, *begin).map_err(|wrong| format!("line {}: {wrong}", at + 1))?;
    }
    let end = lines.iter().rev().find_map(|line| millis(line)).unwrap_or_default();
    match (nth, end) {
        (8, END) => Ok(()),
        (8, _) => Err(format!(
            "the last beat was over at {}, and `every` at {}; after the last beat there is nothing \
             to wait for",
            shown(END),
            shown(end)
        )),
        _ => Err(format!("there were {nth} beats; expected 8")),
    }
}

fn moment(nth: usize, began: u64, due: u64, begin: u64) -> Result<(), String> {
    if began == begin {
        return Ok(());
    }
    let head = format!("beat {nth} began at {}", shown(began));
    let (due, start) = (shown(due), shown(BEATS[0].0));
    Err(match nth {
        _ if began < begin => format!(
            "{head}, before its time, {due}; the times count from the first beat, which was at \
             {start}, not from the start of the clock"
        ),
        1..=3 => format!(
            "{head}, and its time was {due}: it is late by {} ms, and each beat will be later; a \
             sleep of a whole period comes on top of the work",
            began - begin
        ),
        4 => format!(
            "{head}; its time, {due}, was past when beat 3 was over, at {}, so it begins then and \
             is not put off",
            shown(begin)
        ),
        _ => format!(
            "{head}; its time was {due}, and it can begin at {}: count from the first beat, not \
             from one that was late itself",
            shown(begin)
        ),
    })
}
