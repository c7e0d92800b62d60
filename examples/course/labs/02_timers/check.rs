//! The timer queue: each line of the program, against a plain list.

use crate::work::Work;

/// A timer that was set.
#[derive(Clone)]
struct Timer {
    at: u64,
    name: String,
    /// The line that removed it, and how: `clear` or `pop`.
    gone: Option<(usize, &'static str)>,
}

pub fn check(work: &Work) -> Result<(), String> {
    // In the order of setting.
    let mut timers = Vec::new();
    for (at, line) in work.log.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let wrong = match words[..] {
            ["set", at, name] => {
                let name = name.to_owned();
                timers.push(Timer { at: millis(at), name, gone: None });
                None
            }
            ["clear", name] => {
                remove(&mut timers, name, (at + 1, "clear"));
                None
            }
            ["next", "=", got] => next(&timers, got),
            ["pop", now, "=", got] => {
                let later: Vec<&str> = work.log.lines().skip(at + 1).collect();
                let wrong = pop(&timers, millis(now), got, &later);
                remove(&mut timers, got, (at + 1, "pop"));
                wrong
            }
            _ => Some(format!("`{line}` is no line of this program; print nothing of your own")),
        };
        if let Some(wrong) = wrong {
            return Err(format!("line {}: {wrong}", at + 1));
        }
    }
    Ok(())
}

fn millis(word: &str) -> u64 {
    word.trim_end_matches("ms").parse().unwrap_or_default()
}

fn remove(timers: &mut [Timer], name: &str, gone: (usize, &'static str)) {
    if let Some(timer) = timers.iter_mut().find(|timer| timer.name == name) {
        timer.gone.get_or_insert(gone);
    }
}

/// The timer that comes next.
fn soonest(timers: &[Timer]) -> Option<&Timer> {
    // Of equals, `min_by_key` gives the first.
    timers.iter().filter(|timer| timer.gone.is_none()).min_by_key(|timer| timer.at)
}

fn next(timers: &[Timer], got: &str) -> Option<String> {
    let right = soonest(timers).map_or("none".to_owned(), |timer| format!("{}ms", timer.at));
    (right != got).then(|| format!("`next` gave {got}; the soonest timer that is set is {right}"))
}

fn pop(timers: &[Timer], now: u64, got: &str, later: &[&str]) -> Option<String> {
    let due = soonest(timers).filter(|timer| timer.at <= now);
    if due.map_or("none", |timer| &timer.name) == got {
        return None;
    }
    let given = timers.iter().find(|timer| timer.name == got);
    if let Some(Timer { gone: Some((line, how)), .. }) = given {
        return Some(format!(
            "`pop` gave `{got}`, which was gone since the `{how}` of line {line}"
        ));
    }
    if let Some(given) = given.filter(|given| given.at > now) {
        let at = given.at;
        return Some(format!("`pop` gave `{got}` at {now} ms, before it is due: at {at} ms"));
    }
    let due = due?;
    let (name, at) = (&due.name, due.at);
    let comes = later.iter().any(|line| line.starts_with("pop") && line.ends_with(name));
    let mut equals = timers.iter().filter(|timer| timer.at == at && timer.name != *name);
    let cleared = equals.clone().find(|timer| matches!(timer.gone, Some((_, "clear"))));
    Some(match (given, cleared, equals.next_back()) {
        (_, Some(other), _) if !comes => format!(
            "`{name}` is lost: `clear` took back `{}`, and `{name}`, for {at} ms too, went with it",
            other.name
        ),
        (_, _, Some(other)) if !comes => format!(
            "`{name}` is lost: `{}` was set for {at} ms too, and took its place; two timers with \
             equal times are two timers",
            other.name
        ),
        (Some(given), ..) if given.at == at => format!(
            "`{name}` and `{got}` are both due at {at} ms, and `{name}` was set first; `pop` gave \
             `{got}` first"
        ),
        (Some(given), ..) => {
            format!("`pop` gave `{got}`, for {} ms, before `{name}`, for {at} ms", given.at)
        }
        (None, ..) => format!(
            "`pop` gave nothing at {now} ms, but `{name}` is due: a timer is due at its time, {at} \
             ms, and after it"
        ),
    })
}
