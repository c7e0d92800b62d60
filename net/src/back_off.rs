//! What a listener does when the machine has run out of something: it waits, longer and longer, and
//! says so.
//!
//! It may not accept.

use std::io;
use std::time::Duration;

use traps::{ConnectionDeadline, Time, note_warning};

use crate::errno;
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
        Some(match error.raw_os_error()? {
            // Linux hands on a network error that the new socket has pending: see accept(2).
            errno::ECONNABORTED
            | errno::EPERM
            | errno::EPROTO
            | errno::ENOPROTOOPT
            | errno::EOPNOTSUPP
            | errno::ENONET
            | errno::ENETDOWN
            | errno::ENETUNREACH
            | errno::EHOSTDOWN
            | errno::EHOSTUNREACH
            | errno::ETIMEDOUT => Trouble::Connection,
            errno::EMFILE => Trouble::Exhausted("Too many open files (limit of the process)"),
            errno::ENFILE => Trouble::Exhausted("Too many open files (limit of the system)"),
            errno::ENOBUFS | errno::ENOMEM => Trouble::Exhausted("No memory for a socket"),
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
    /// How often since the last accept.
    row: u32,
    episode: Option<Episode>,
    /// As long as there is one.
    clock: Option<ConnectionDeadline>,
}

struct Episode {
    /// Back-offs so far.
    count: u64,
    /// When the last of them began.
    last: Time,
}

impl BackOff {
    /// How long to back off now, by a new `clock`, that there is no more of `what`; says so when
    /// that begins.
    pub(crate) fn next(&mut self, what: &str, clock: ConnectionDeadline) -> Duration {
        let now = clock.now();
        self.clock = Some(clock);
        let last_words = if self.row == 0 { self.words_if_over(now) } else { None };
        let (span, first_words) = self.back_off(what, now);
        last_words.into_iter().chain(first_words).for_each(note_warning);
        if let Some(make_room) = &self.make_room {
            make_room();
        }
        span
    }

    /// The span, and what is to be said.
    fn back_off(&mut self, what: &str, now: Time) -> (Duration, Option<String>) {
        let words = self
            .episode
            .is_none()
            .then(|| format!("accept backs off: {what}; tries again after 5 ms to 1 s"));
        let episode = self.episode.get_or_insert(Episode { count: 0, last: now });
        episode.count += 1;
        episode.last = now;
        // Eight doublings pass the longest; more could overflow.
        let span = BACK_OFF_FIRST * (1 << self.row.min(8));
        self.row = self.row.saturating_add(1);
        (span.min(BACK_OFF_LONGEST), words)
    }

    /// The next back-off is the shortest, however many there were.
    pub(crate) fn begin_anew(&mut self) {
        self.row = 0;
    }

    /// It need not back off.
    #[inline]
    pub(crate) fn accepted(&mut self) {
        self.row = 0;
        if let Some(clock) = &self.clock {
            let now = clock.now();
            self.look(now);
        }
    }

    #[cold]
    fn look(&mut self, now: Time) {
        if let Some(text) = self.words_if_over(now) {
            self.clock = None;
            note_warning(text);
        }
    }

    fn words_if_over(&mut self, now: Time) -> Option<String> {
        let over = self.episode.as_ref().is_some_and(|it| now.since(it.last) >= BACK_OFF_OVER);
        if over { self.last_words() } else { None }
    }

    /// Ends the episode, if there is one, and says so.
    pub(crate) fn end(&mut self) {
        self.clock = None;
        self.last_words().into_iter().for_each(note_warning);
    }

    fn last_words(&mut self) -> Option<String> {
        let Episode { count, .. } = self.episode.take()?;
        Some(format!("accept goes on after backing off {count} times"))
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
        back_off.begin_anew();
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
        let of = |errno| Trouble::of(&io::Error::from_raw_os_error(errno));
        assert_eq!(of(errno::ECONNABORTED), Some(Trouble::Connection));
        assert!(matches!(of(errno::EMFILE), Some(Trouble::Exhausted(_))));
        assert_eq!(of(22), None, "EINVAL: it does not listen any more");
        assert_eq!(Trouble::of(&ErrorKind::ResourceBusy.into()), None);
    }
}
