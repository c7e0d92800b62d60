//! The timer queue: each call, against a plain list.

use std::ptr;
use std::time::Duration;

use super::scenario::{self, Call};
use crate::work::Work;

/// A timer that was set.
struct Timer {
    at: Duration,
    name: &'static str,
    /// How it was removed: `clear` or `pop`.
    gone: Option<&'static str>,
    /// Whether its key was used in a `clear`.
    is_used: bool,
}

/// The timers, in the order of setting.
#[derive(Default)]
struct Timers {
    all: Vec<Timer>,
    /// The timers that were cleared when they were gone already: the name, the line of the output,
    /// and how many timers had been set then.
    cleared_again: Vec<(&'static str, usize, usize)>,
    /// Whether `clear` removes the first timer with the name and the time of its own, which is a
    /// mistake.
    clears_by_name: bool,
    /// Whether the whole output of the program is that of this mistake.
    is_by_name: bool,
}

pub fn check(work: &Work) -> Result<(), String> {
    let mistaken = Timers { clears_by_name: true, ..Timers::default() };
    let is_by_name = compare(work, mistaken).is_ok();
    compare(work, Timers { is_by_name, ..Timers::default() })
}

/// Compares each call with what the program got for it.
fn compare(work: &Work, mut timers: Timers) -> Result<(), String> {
    let calls = scenario::of(work.seed);
    // The student may print lines, too.
    let mut lines = work.log.lines().enumerate();
    for (nth, call) in calls.iter().enumerate() {
        let head = head(*call);
        let Some((at, got)) =
            lines.find_map(|(at, line)| Some((at, line.strip_prefix(head.as_str())?)))
        else {
            return Err(format!(
                "the program made {nth} of its {} calls; the next was `{}`",
                calls.len(),
                head.trim_end_matches(" = ")
            ));
        };
        let later: Vec<&str> = work.log.lines().skip(at + 1).collect();
        let line = at + 1;
        timers.call(*call, got, line, &later).map_err(|wrong| format!("line {line}: {wrong}"))?;
    }
    Ok(())
}

/// The line of a call without its result.
fn head(call: Call) -> String {
    match call {
        Call::Set(at, name) => format!("set {at:?} {name}"),
        Call::Clear(name) => format!("clear {name}"),
        Call::ClearFirst(name) => format!("clear the first {name}"),
        Call::Next => "next = ".to_owned(),
        Call::Pop(now) => format!("pop {now:?} = "),
    }
}

impl Timers {
    /// Compares a call with what the program got for it.
    fn call(&mut self, call: Call, got: &str, line: usize, later: &[&str]) -> Result<(), String> {
        match call {
            Call::Set(at, name) => {
                self.all.push(Timer { at, name, gone: None, is_used: false });
            }
            Call::Clear(name) => self.clear(name, line, false),
            Call::ClearFirst(name) => self.clear(name, line, true),
            Call::Next => self.next(got)?,
            Call::Pop(now) => {
                let due = self.soonest().filter(|timer| timer.at <= now);
                if due.map_or("none", |timer| timer.name) != got {
                    return Err(self.wrong_pop(now, got, due, later));
                }
                let left = self.all.iter_mut().filter(|timer| timer.gone.is_none());
                let due = left.filter(|timer| timer.name == got).min_by_key(|timer| timer.at);
                due.into_iter().for_each(|timer| timer.gone = Some("pop"));
            }
        }
        Ok(())
    }

    /// Uses the key of a timer with this name: of the first that is left, or of the last.
    fn clear(&mut self, name: &'static str, line: usize, is_first: bool) {
        let set = self.all.len();
        let mut left = self.all.iter_mut().filter(|timer| timer.name == name && !timer.is_used);
        let Some(timer) = (if is_first { left.next() } else { left.next_back() }) else { return };
        timer.is_used = true;
        if self.clears_by_name {
            let (at, name) = (timer.at, timer.name);
            let mut left = self.all.iter_mut().filter(|timer| timer.gone.is_none());
            let first = left.find(|timer| (timer.at, timer.name) == (at, name));
            first.into_iter().for_each(|timer| timer.gone = Some("clear"));
            return;
        }
        match timer.gone {
            None => timer.gone = Some("clear"),
            Some(_) => self.cleared_again.push((name, line, set)),
        }
    }

    /// The timer that comes next.
    fn soonest(&self) -> Option<&Timer> {
        // If times are equal, `min_by_key` returns the first.
        self.all.iter().filter(|timer| timer.gone.is_none()).min_by_key(|timer| timer.at)
    }

    fn next(&self, got: &str) -> Result<(), String> {
        let soonest = self.soonest();
        let right = soonest.map_or("none".to_owned(), |timer| format!("{:?}", timer.at));
        if right == got {
            return Ok(());
        }
        let cleared = self
            .all
            .iter()
            .find(|timer| format!("{:?}", timer.at) == got && matches!(timer.gone, Some("clear")));
        Err(match (soonest, cleared) {
            (_, Some(timer)) => format!(
                "`next` returned {got}, the time of `{}`, which was cleared; the soonest timer \
                 that is set is {right}",
                timer.name
            ),
            (Some(timer), None) => self.stale(timer).unwrap_or_else(|| {
                format!(
                    "`next` returned {got}; the soonest timer, `{}`, is for {right}",
                    timer.name
                )
            }),
            (None, None) => format!("`next` returned {got}, and no timer is set"),
        })
    }

    /// The sentence for a timer that was removed by a `clear` of a timer that was gone.
    fn stale(&self, timer: &Timer) -> Option<String> {
        let set = self.all.iter().position(|each| ptr::eq(each, timer))?;
        let (stale, line, _) = self.cleared_again.iter().rfind(|(.., before)| set < *before)?;
        Some(format!(
            "`{}` is lost: line {line} cleared a `{stale}` that was gone, so it must remove \
             nothing; two timers must not have the same key",
            timer.name
        ))
    }

    /// The sentence for a wrong result of `pop`.
    fn wrong_pop(&self, now: Duration, got: &str, due: Option<&Timer>, later: &[&str]) -> String {
        let mut given = self.all.iter().filter(|timer| timer.name == got).collect::<Vec<_>>();
        given.sort_by_key(|timer| (timer.gone.is_some(), timer.at));
        let given = given.first().copied();
        match given {
            Some(Timer { gone: Some("clear"), .. }) => {
                return format!("`pop` returned `{got}`, which was cleared");
            }
            Some(Timer { gone: Some(_), .. }) => {
                return format!("`pop` returned `{got}` a second time");
            }
            Some(Timer { at, .. }) if *at > now => {
                return format!("`pop` returned `{got}` at {now:?}, before it is due: at {at:?}");
            }
            None if got != "none" => {
                return format!("`pop` returned `{got}`, and no timer has that name");
            }
            _ => {}
        }
        let Some(due) = due else { return format!("`pop` returned `{got}` at {now:?}") };
        let Timer { name, at, .. } = due;
        let comes = later.iter().any(|line| line.starts_with("pop") && line.ends_with(name));
        match given {
            _ if !comes => self.lost(due),
            Some(given) if given.at == *at && self.is_by_name => format!(
                "`{name}` and `{got}` are both due at {at:?}, and `{name}` was set first; `pop` \
                 returned `{got}` first, as if `clear {name}` had removed this timer, and not the \
                 other one of that name; two timers with equal names are two timers"
            ),
            Some(given) if given.at == *at => format!(
                "`{name}` and `{got}` are both due at {at:?}, and `{name}` was set first; `pop` \
                 returned `{got}` first"
            ),
            Some(given) => {
                format!("`pop` returned `{got}`, for {:?}, before `{name}`, for {at:?}", given.at)
            }
            None => format!(
                "`pop` returned nothing at {now:?}, but `{name}` is due: a timer is due at its \
                 time, {at:?}, and after it"
            ),
        }
    }

    /// The sentence for a timer that is due, and that no `pop` returns.
    fn lost(&self, due: &Timer) -> String {
        let Timer { name, at, .. } = due;
        if let Some(sentence) = self.stale(due) {
            return sentence;
        }
        let is_twin = |other: &&Timer| other.name == *name && !ptr::eq(*other, due);
        match self.all.iter().rfind(is_twin) {
            Some(Timer { gone: Some("clear"), .. }) => {
                return format!(
                    "`{name}` is lost: `clear {name}` was for another timer of that name; two \
                     timers with equal names are two timers"
                );
            }
            Some(_) => {
                return format!(
                    "`{name}` is lost: it has been due since {at:?}, and another timer has its \
                     name; two timers with equal names are two timers"
                );
            }
            None => {}
        }
        let equals = || self.all.iter().filter(|timer| timer.at == *at && timer.name != *name);
        let cleared = equals().find(|timer| timer.gone == Some("clear"));
        match (cleared, equals().next_back()) {
            (Some(other), _) => format!(
                "`{name}` is lost: `clear` took back `{}`, and `{name}`, for {at:?} too, went with \
                 it",
                other.name
            ),
            (None, Some(other)) => format!(
                "`{name}` is lost: `{}` was set for {at:?} too, and took its place; two timers \
                 with equal times are two timers",
                other.name
            ),
            (None, None) => {
                format!("`{name}` is lost: it has been due since {at:?}, and no `pop` returns it")
            }
        }
    }
}
