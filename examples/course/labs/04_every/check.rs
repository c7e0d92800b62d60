//! Every: the beats, at their times.

use std::time::Duration;

use super::scenario::{self, Scenario};
use crate::work::Work;

/// More reads of the clock before a beat look at it again and again.
const MOST_READS: u32 = 5;

/// A beat, in the words of the page. The times are as the log shows them.
struct Beat {
    /// When the beat is due.
    due: Duration,
    /// When the beat can begin: when it is due, and the one before is over.
    begin: Duration,
    over: Duration,
}

/// The log, as far as it was read.
#[derive(Default)]
struct Reader {
    /// The time of the last line of the kernel, and the number of the line in the output, from 1.
    now: Duration,
    number: usize,
    /// How often `every` has slept since the last beat was over.
    sleeps: u32,
    /// How often it has read the clock since then.
    reads: u32,
    /// Whether a beat goes on, so that a sleep is not that of `every`.
    is_in_beat: bool,
    beats: usize,
}

pub fn check(work: &Work) -> Result<(), String> {
    let mut lines = work.log.lines().enumerate();
    let mut drummers = scenario::of(work.seed).into_iter();
    drummers.try_for_each(|scenario| {
        // This line begins the log of the next.
        drummer(&scenario, lines.by_ref().take_while(|(_, line)| !line.starts_with("drummer ")))
    })
}

fn drummer<'l>(
    scenario: &Scenario,
    lines: impl Iterator<Item = (usize, &'l str)>,
) -> Result<(), String> {
    let beats = beats(scenario);
    let mut reader = Reader { is_in_beat: true, ..Reader::default() };
    for (at, line) in lines {
        let number = at + 1;
        reader.line(line, number, &beats).map_err(|wrong| format!("line {number}: {wrong}"))?;
    }
    ended(scenario, &beats, &reader).map_err(|wrong| format!("line {}: {wrong}", reader.number))
}

/// Compares the end of a drummer's log.
fn ended(scenario: &Scenario, beats: &[Beat], reader: &Reader) -> Result<(), String> {
    let last = beats.last().map_or(logged(scenario.start), |beat| beat.over);
    match (reader.beats, reader.now) {
        (count, _) if count < beats.len() => {
            Err(format!("the log ends after {count} beats; expected {}", beats.len()))
        }
        (0, now) if now != last => Err(format!(
            "`every` was asked for no beat at {}, and was over at {}; there is nothing to wait for",
            shown(last),
            shown(now)
        )),
        (_, now) if now != last => Err(format!(
            "the last beat was over at {}, and `every` at {}; after the last beat there is nothing \
             to wait for",
            shown(last),
            shown(now)
        )),
        (count, _) if count > 0 && reader.sleeps > 0 => {
            Err("`every` sleeps after the last beat; there is nothing to wait for then".to_owned())
        }
        _ => Ok(()),
    }
}

fn beats(scenario: &Scenario) -> Vec<Beat> {
    let mut over = scenario.start;
    let beat = |(nth, work): (usize, &Duration)| {
        let due = scenario.start + scenario.period * nth as u32;
        let begin = due.max(over);
        over = begin + *work;
        Beat { due: logged(due), begin: logged(begin), over: logged(over) }
    };
    scenario.work.iter().enumerate().map(beat).collect()
}

/// The log cuts the nanoseconds off.
fn logged(time: Duration) -> Duration {
    Duration::from_nanos(time.as_nanos() as u64 / 1000 * 1000)
}

fn shown(time: Duration) -> String {
    let micros = format!("{}.{:06}", time.as_secs(), time.subsec_micros());
    micros.strip_suffix("000").unwrap_or(&micros).to_owned()
}

impl Reader {
    fn line(&mut self, line: &str, number: usize, beats: &[Beat]) -> Result<(), String> {
        if let Some(now) = time(line) {
            (self.now, self.number) = (now, number);
            let is_sleep = line.split_whitespace().skip(3).take(2).eq(["block", "sleep"]);
            self.sleeps += u32::from(is_sleep && !self.is_in_beat);
            let is_read = line.split_whitespace().skip(3).take(2).eq(["trap", "clock"]);
            self.reads += u32::from(is_read && !self.is_in_beat);
            return Ok(());
        }
        let next = self.beats + 1;
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["beat", nth] if nth == next.to_string() => self.beat(beats),
            ["beat", _] if self.beats == beats.len() => {
                Err(format!("`{line}` is one beat too many; expected {}", beats.len()))
            }
            ["beat", _] => Err(format!("`{line}` came, and beat {next} was next")),
            ["beat", _, "is", "over"] => {
                (self.is_in_beat, self.sleeps, self.reads) = (false, 0, 0);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn beat(&mut self, beats: &[Beat]) -> Result<(), String> {
        let nth = self.beats + 1;
        let Some(beat) = beats.get(self.beats) else {
            return Err(format!("`beat {nth}` is one beat too many; expected {}", beats.len()));
        };
        if beat.begin != self.now {
            return Err(wrong_time(nth, self.now, beats));
        }
        if self.sleeps > 1 {
            return Err(format!(
                "`every` slept {} times before beat {nth}; one sleep is enough, because it is \
                 known when the beat is due",
                self.sleeps
            ));
        }
        if self.reads > MOST_READS {
            return Err(format!(
                "`every` read the clock {} times before beat {nth}; it is known when the beat is \
                 due, so once or twice is enough",
                self.reads
            ));
        }
        (self.is_in_beat, self.beats) = (true, nth);
        Ok(())
    }
}

/// The time at the beginning of a line of the log.
fn time(line: &str) -> Option<Duration> {
    let (seconds, micros) = line.split_whitespace().next()?.split_once('.')?;
    let micros =
        seconds.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros.parse().ok()?)?;
    Some(Duration::from_micros(micros))
}

/// The sentence for a beat that began at the wrong time.
fn wrong_time(nth: usize, began: Duration, beats: &[Beat]) -> String {
    let Beat { due, begin, .. } = beats[nth - 1];
    let start = beats[0].begin;
    let head = format!("beat {nth} began at {}", shown(began));
    let due_at = shown(due);
    if began < begin {
        let why = if began >= due {
            format!("; beat {} was not over", nth - 1)
        } else if began + start == due {
            format!("; the times count from the first beat, which was at {}", shown(start))
        } else {
            String::new()
        };
        return format!("{head}, and it was due at {due_at}: that is too early{why}");
    }
    let Some(before) = nth.checked_sub(2).map(|before| &beats[before]) else {
        return format!("{head}; the first beat is due at once, at {due_at}");
    };
    if due < begin {
        let why = if before.begin > before.due {
            "; count from the first beat, not from one that was late"
        } else {
            " and is not put off"
        };
        return format!(
            "{head}; it was due at {due_at}, and beat {} was over at {}, so it begins then{why}",
            nth - 1,
            shown(begin)
        );
    }
    let late = began - begin;
    let why = if began == before.over + (beats[1].due - start) {
        "; a sleep of a whole period comes on top of the work"
    } else {
        ""
    };
    format!("{head}, and it was due at {due_at}: it is late by {late:?}{why}")
}
