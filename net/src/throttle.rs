//! A throttle for messages that peers can cause at will.

use std::fmt::Display;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use traps::{Time, note_warning};

use crate::limits::is_recent;

/// Lets at most one message a second into the log. A message also says how many were left out
/// before it.
#[derive(Debug, Default)]
pub(crate) struct Throttle(Mutex<Said>);

#[derive(Debug, Default)]
struct Said {
    /// The time of the last message in the log.
    at: Option<Time>,
    /// The number of messages left out since, and the last of them.
    more: u64,
    last: String,
}

impl Throttle {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a message as a warning, or leaves it out.
    pub(crate) fn warn(&self, message: impl Display, now: Time) {
        // The caller's `Display` must not run under the lock.
        let message = message.to_string();
        let line = self.said().line(message, now);
        if let Some(line) = line {
            note_warning(line);
        }
    }

    /// Returns whether messages were left out since the last one in the log.
    pub(crate) fn owes(&self) -> bool {
        self.said().more > 0
    }

    /// Logs the last message that was left out, if the pause is over at `now`. `None` means that
    /// there will be no more messages.
    pub(crate) fn sum_up(&self, now: Option<Time>) {
        let line = self.said().rest(now);
        if let Some(line) = line {
            note_warning(line);
        }
    }
}

impl Said {
    fn is_paused(&self, now: Time) -> bool {
        self.at.is_some_and(|at| is_recent(at, now))
    }

    fn line(&mut self, message: impl Display, now: Time) -> Option<String> {
        if self.is_paused(now) {
            (self.more, self.last) = (self.more + 1, message.to_string());
            return None;
        }
        self.at = Some(now);
        Some(with_count(&message, mem::take(&mut self.more)))
    }

    fn rest(&mut self, now: Option<Time>) -> Option<String> {
        if self.more == 0 || now.is_some_and(|now| self.is_paused(now)) {
            return None;
        }
        self.at = now.or(self.at);
        Some(with_count(&mem::take(&mut self.last), mem::take(&mut self.more) - 1))
    }
}

fn with_count(message: &dyn Display, before: u64) -> String {
    match before {
        0 => message.to_string(),
        _ => format!("{message} (and {before} more before)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::CAP_PAUSE;

    #[test]
    fn a_flood_of_messages_is_one_a_second_and_each_is_counted_once() {
        let mut said = Said::default();
        let mut lines = Vec::new();
        for n in 0..2500 {
            lines.extend(said.line(n, Time::ZERO + CAP_PAUSE / 1000 * n));
        }
        assert_eq!(lines, ["0", "1000 (and 999 more before)", "2000 (and 999 more before)"]);
        let now = Time::ZERO + CAP_PAUSE / 10 * 29;
        assert_eq!(said.rest(Some(now)), None);
        assert_eq!(said.rest(Some(now + CAP_PAUSE / 10)).unwrap(), "2499 (and 498 more before)");
        assert_eq!(said.rest(None), None);
        assert_eq!(said.line("next", now + CAP_PAUSE), None);
        assert_eq!(said.rest(None).unwrap(), "next");
    }

    #[test]
    fn a_message_of_an_earlier_kernel_holds_none_back() {
        let mut said = Said::default();
        assert!(said.line("late", Time::ZERO + CAP_PAUSE * 100).is_some());
        assert_eq!(said.line("early", Time::ZERO).as_deref(), Some("early"));
    }
}
