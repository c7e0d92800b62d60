//! The back-off of a listener: when the machine has run out of descriptors or memory, the listener
//! waits, longer each time, and logs a warning.
//!
//! This module must not accept connections.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use traps::internal::Throttle;
use traps::{ConnectionDeadline, Time, note_warning};

use crate::limits::{BACK_OFF_FIRST, BACK_OFF_LONGEST, BACK_OFF_PAUSE};

/// The reason why an accept failed although the listener is sound.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A connection in the backlog had failed. The next connection may be sound.
    Connection,
    /// The machine has run out of the named resource. The connection is still in the backlog.
    Exhausted(&'static str),
}

impl Trouble {
    pub(crate) fn of(error: &io::Error) -> Option<Trouble> {
        Some(match Errno::from_io_error(error)? {
            #[cfg(target_os = "linux")]
            Errno::NONET => Trouble::Connection,
            // Linux passes a pending network error of the new socket on as its own: see accept(2).
            Errno::CONNABORTED
            | Errno::PERM
            | Errno::PROTO
            | Errno::NOPROTOOPT
            | Errno::OPNOTSUPP
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

/// The back-off state of one listener. It outlives an interrupted accept.
///
/// Back-offs in a row are an *episode*, which ends with the next successful accept. If descriptors
/// are freed one by one and taken again at once, one episode follows another. To keep the log
/// short, an episode gets its two log lines only if it begins, or still lasts, [`BACK_OFF_PAUSE`]
/// after the last log line.
#[derive(Default)]
pub(crate) struct BackOff {
    /// The function to call at every back-off, to free some of the exhausted resource.
    pub(crate) make_room: Option<Box<dyn Fn()>>,
    /// The number of back-offs since the last accept, or since the shutdown began.
    pub(crate) row: u32,
    /// The throttle of the log lines about back-offs, at the start or the end of an episode. Counts
    /// the back-offs since the last log line about the end of an episode.
    throttle: Throttle,
    /// The clock for the time of an episode's last log line. Set while the log has only the
    /// episode's first line.
    clock: Option<ConnectionDeadline>,
}

impl BackOff {
    /// Returns how long to back off now because `what` has run out. `clock` is a new deadline, to
    /// read the time. Logs a warning unless the log has the beginning of this episode, or its last
    /// line about a back-off is too recent.
    pub(crate) fn next(&mut self, what: &str, clock: ConnectionDeadline) -> Duration {
        let span = self.lengthen();
        if self.clock.is_none()
            && let Some(words) = self.first_words(what, clock.now())
        {
            note_warning(words);
            self.clock = Some(clock);
        }
        if let Some(make_room) = &self.make_room {
            make_room();
        }
        span
    }

    fn lengthen(&mut self) -> Duration {
        // Eight doublings exceed the longest wait; more could overflow.
        let span = BACK_OFF_FIRST * (1 << self.row.min(8));
        self.row = self.row.saturating_add(1);
        self.throttle.count();
        span.min(BACK_OFF_LONGEST)
    }

    /// Returns the text of an episode's first log line, or `None` if the last log line about a
    /// back-off is too recent.
    fn first_words(&mut self, what: &str, now: Time) -> Option<String> {
        let is_logged = self.throttle.claim_line(now, BACK_OFF_PAUSE);
        is_logged.then(|| format!("accept backs off: {what}; tries again after 5 ms to 1 s"))
    }

    /// Records a successful accept, which ends the episode.
    #[inline]
    pub(crate) fn accepted(&mut self) {
        self.row = 0;
        if self.clock.is_some() {
            self.end();
        }
    }

    /// Ends the episode, and logs its end if the log has its beginning.
    #[cold]
    pub(crate) fn end(&mut self) {
        if let Some(clock) = self.clock.take() {
            note_warning(self.last_words(clock.now()));
        }
    }

    fn last_words(&mut self, now: Time) -> String {
        self.throttle.stamp(now);
        let count = self.throttle.take_unlogged();
        format!("accept goes on after backing off {count} times")
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn back_off_doubles_to_a_second_and_begins_anew_after_an_accept() {
        let mut back_off = BackOff::default();
        let spans: Vec<u128> = (0..10).map(|_| back_off.lengthen().as_millis()).collect();
        assert_eq!(spans, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        back_off.accepted();
        assert_eq!(back_off.lengthen(), BACK_OFF_FIRST);
        back_off.row = 0;
        assert_eq!(back_off.lengthen(), BACK_OFF_FIRST);
    }

    #[test]
    fn d26_the_end_is_said_at_once_and_a_new_beginning_ten_seconds_later() {
        let mut back_off = BackOff::default();
        let (mut now, mut said) = (Time::ZERO, Vec::new());
        // For 25 s, descriptors are freed one by one.
        for _ in 0..5000 {
            let span = back_off.lengthen();
            if let Some(begins) = back_off.first_words("room", now) {
                said.push((now, begins));
                now += span;
                said.push((now, back_off.last_words(now)));
            } else {
                now += span;
            }
            back_off.row = 0;
        }
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let begins = || "accept backs off: room; tries again after 5 ms to 1 s".to_owned();
        let ends = |count| format!("accept goes on after backing off {count} times");
        let first = [(at(0), begins()), (at(5), ends(1))];
        let later = [(at(10_005), begins()), (at(10_010), ends(2001))];
        let last = [(at(20_010), begins()), (at(20_015), ends(2001))];
        assert_eq!(said, [first, later, last].concat());
    }

    #[test]
    fn an_episode_of_an_earlier_kernel_holds_no_beginning_back() {
        let mut back_off = BackOff::default();
        back_off.lengthen();
        back_off.last_words(Time::ZERO + BACK_OFF_PAUSE * 100);
        assert!(back_off.first_words("room", Time::ZERO).is_some());
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
