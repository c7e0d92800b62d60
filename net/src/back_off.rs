//! What a listener does when the machine has run out of something: it waits, longer and longer, and
//! says so.
//!
//! It may not accept.

use std::io;
use std::mem;
use std::time::Duration;

use rustix::io::Errno;
use traps::{ConnectionDeadline, Time, note_warning};

use crate::limits::{BACK_OFF_FIRST, BACK_OFF_LONGEST, BACK_OFF_OVER};

/// The fault when an accept fails, though the listener is not.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The connection that would have been accepted; the next one may be well.
    Connection,
    /// The machine has run out of this, and the connection is still there.
    Exhausted(&'static str),
}

impl Trouble {
    pub(crate) fn of(error: &io::Error) -> Option<Trouble> {
        Some(match Errno::from_io_error(error)? {
            // Linux hands on a network error that the new socket has pending: see accept(2).
            Errno::CONNABORTED
            | Errno::PERM
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::OPNOTSUPP
            | Errno::NONET
            | Errno::NETDOWN
            | Errno::NETUNREACH
            | Errno::HOSTDOWN
            | Errno::HOSTUNREACH
            | Errno::TIMEDOUT => Trouble::Connection,
            Errno::MFILE => Trouble::Exhausted("Too many open files (limit of the process)"),
            Errno::NFILE => Trouble::Exhausted("Too many open files (limit of the system)"),
            Errno::NOBUFS | Errno::NOMEM => Trouble::Exhausted("No memory for a socket"),
            _ => return None,
        })
    }
}

/// One episode of backing off after another; it outlives an accept that is interrupted.
///
/// An episode goes on while descriptors come free one by one and are gone again: it would fill the
/// log with its ends and beginnings.
#[derive(Default)]
pub(crate) struct BackOff {
    /// Called at every back-off, to have somebody free what has run out.
    pub(crate) make_room: Option<Box<dyn Fn()>>,
    /// How often since the last accept, or since the shutdown began.
    pub(crate) row: u32,
    /// How often in this episode; zero: there is none.
    count: u64,
    /// When the last of them began.
    last: Time,
    /// As long as there is an episode.
    clock: Option<ConnectionDeadline>,
}

impl BackOff {
    /// How long to back off now, by a new `clock`, that there is no more of `what`; says so when
    /// that begins.
    pub(crate) fn next(&mut self, what: &str, clock: ConnectionDeadline) -> Duration {
        let now = clock.now();
        let ends = if self.row == 0 { self.words_if_over(now) } else { None };
        let (span, begins) = self.back_off(what, now);
        ends.into_iter().chain(begins).for_each(note_warning);
        self.clock = Some(clock);
        if let Some(make_room) = &self.make_room {
            make_room();
        }
        span
    }

    /// The span, and what is to be said.
    fn back_off(&mut self, what: &str, now: Time) -> (Duration, Option<String>) {
        let begins = self.count == 0;
        // Eight doublings pass the longest; more could overflow.
        let span = BACK_OFF_FIRST * (1 << self.row.min(8));
        self.row = self.row.saturating_add(1);
        self.count += 1;
        self.last = now;
        let words = || format!("accept backs off: {what}; tries again after 5 ms to 1 s");
        (span.min(BACK_OFF_LONGEST), begins.then(words))
    }

    /// It need not back off.
    #[inline]
    pub(crate) fn accepted(&mut self) {
        self.row = 0;
        if let Some(clock) = &self.clock {
            let now = clock.now();
            self.words_if_over(now).into_iter().for_each(note_warning);
        }
    }

    #[cold]
    fn words_if_over(&mut self, now: Time) -> Option<String> {
        if now.since(self.last) < BACK_OFF_OVER { None } else { self.last_words() }
    }

    /// Ends the episode, if there is one, and says so.
    pub(crate) fn end(&mut self) {
        self.last_words().into_iter().for_each(note_warning);
    }

    fn last_words(&mut self) -> Option<String> {
        self.clock = None;
        let count = mem::take(&mut self.count);
        (count > 0).then(|| format!("accept goes on after backing off {count} times"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn back_off_doubles_to_a_second_and_begins_anew_after_an_accept() {
        let mut back_off = BackOff::default();
        let mut next = || back_off.back_off("room", Time::ZERO).0.as_millis();
        let spans: Vec<u128> = (0..10).map(|_| next()).collect();
        assert_eq!(spans, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        back_off.accepted();
        assert_eq!(back_off.back_off("room", Time::ZERO).0, BACK_OFF_FIRST);
        back_off.row = 0;
        assert_eq!(back_off.back_off("room", Time::ZERO).0, BACK_OFF_FIRST);
    }

    #[test]
    fn d26_an_episode_is_two_lines_however_often_one_descriptor_comes_free() {
        let mut back_off = BackOff::default();
        let (mut now, mut said) = (Time::ZERO, Vec::new());
        for _ in 0..1000 {
            let (span, words) = back_off.back_off("room", now);
            said.extend(words);
            now = now + span;
            back_off.accepted();
            said.extend(back_off.words_if_over(now));
        }
        now = now + BACK_OFF_OVER;
        for _ in 0..2 {
            said.extend(back_off.words_if_over(now));
        }
        let begins = "accept backs off: room; tries again after 5 ms to 1 s";
        assert_eq!(said, [begins, "accept goes on after backing off 1000 times"]);
        assert_eq!(back_off.back_off("room", now).1.as_deref(), Some(begins));
    }

    #[test]
    fn trouble_of_one_connection_or_of_the_machine_is_not_the_listeners() {
        let of = |errno: Errno| Trouble::of(&errno.into());
        assert_eq!(of(Errno::CONNABORTED), Some(Trouble::Connection));
        assert!(matches!(of(Errno::MFILE), Some(Trouble::Exhausted(_))));
        assert_eq!(of(Errno::INVAL), None, "it does not listen any more");
        assert_eq!(Trouble::of(&ErrorKind::ResourceBusy.into()), None);
    }
}
