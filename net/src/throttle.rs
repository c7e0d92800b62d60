//! Warnings that peers can cause at will.

use std::fmt::Display;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use traps::internal::Throttle;
use traps::{Time, note_warning};

use crate::limits::CAP_PAUSE;

/// Lets at most one warning a second into the log. A warning also says how many were left out
/// before it.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    throttle: Throttle,
    /// The last message, while no line has reported it.
    message: String,
}

impl Warnings {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs a message as a warning, or leaves it out.
    pub(crate) fn warn(&self, message: impl Display, now: Time) {
        // The caller's `Display` must not run under the lock.
        let message = message.to_string();
        let line = self.last().line(message, now);
        if let Some(line) = line {
            note_warning(line);
        }
    }

    /// Returns whether messages were left out since the last one in the log.
    pub(crate) fn owes(&self) -> bool {
        self.last().throttle.unlogged() > 0
    }

    /// Logs the last message that was left out, if the pause is over at `now`. `None` means that
    /// there will be no more messages.
    pub(crate) fn sum_up(&self, now: Option<Time>) {
        let line = self.last().rest(now);
        if let Some(line) = line {
            note_warning(line);
        }
    }
}

impl Last {
    fn line(&mut self, message: String, now: Time) -> Option<String> {
        self.throttle.count();
        self.message = message;
        self.rest(Some(now))
    }

    fn rest(&mut self, now: Option<Time>) -> Option<String> {
        let Last { throttle, message } = self;
        let has_message = throttle.unlogged() > 0;
        let is_due = has_message && now.is_none_or(|now| throttle.claim_line(now, CAP_PAUSE));
        is_due.then(|| match throttle.take_unlogged() - 1 {
            0 => mem::take(message),
            before => format!("{message} (and {before} more before)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_messages_is_one_a_second_and_each_is_counted_once() {
        let mut last = Last::default();
        let mut lines = Vec::new();
        for n in 0..2500 {
            lines.extend(last.line(n.to_string(), Time::ZERO + CAP_PAUSE / 1000 * n));
        }
        assert_eq!(lines, ["0", "1000 (and 999 more before)", "2000 (and 999 more before)"]);
        let now = Time::ZERO + CAP_PAUSE / 10 * 29;
        assert_eq!(last.rest(Some(now)), None);
        assert_eq!(last.rest(Some(now + CAP_PAUSE / 10)).unwrap(), "2499 (and 498 more before)");
        assert_eq!(last.rest(None), None);
        assert_eq!(last.line("next".to_owned(), now + CAP_PAUSE), None);
        assert_eq!(last.rest(None).unwrap(), "next");
    }

    #[test]
    fn a_message_of_an_earlier_kernel_holds_none_back() {
        let mut last = Last::default();
        assert!(last.line("late".to_owned(), Time::ZERO + CAP_PAUSE * 100).is_some());
        assert_eq!(last.line("early".to_owned(), Time::ZERO).as_deref(), Some("early"));
    }
}
