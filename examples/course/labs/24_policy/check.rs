//! Each registration ends at the second wait for another event, never sooner or later.

use kernel::trace::Seq;
use testing::trace::{Line, trace};

use crate::work::Work;

/// The descriptors, the task that waits for each last, and how often each is registered.
const LAST: [(&str, &str, usize); 9] = [
    ("f1", "steady", 1),
    ("f2", "resting", 2),
    ("f3", "writer", 1),
    ("f4", "pair", 1),
    ("f5", "pair", 1),
    ("f6", "turning", 2),
    ("f7", "yielding", 1),
    ("f8", "both", 1),
    ("f9", "both", 1),
];

pub fn check(work: &Work) -> Result<(), String> {
    let lines = trace(&work.log).map_err(|error| error.to_string())?;
    let log = Log(lines);
    log.no_wake_ends_it()?;
    log.nobody_is_left_waiting()?;
    log.the_first_wait_keeps_it()?;
    log.the_second_ends_it()?;
    log.a_yield_counts()?;
    log.another_wait_ends_it("pair", "f4", "f5 read")?;
    log.another_wait_ends_it("turning", "f6", "f6 write")?;
    LAST.iter().try_for_each(|(alias, name, times)| log.all_ends_with_the_task(alias, name, *times))
}

struct Log<'t>(Vec<Line<'t>>);

impl<'t> Log<'t> {
    /// The lines that begin (`register`) or end (`unregister`) the registration of a descriptor.
    fn calls(&self, verb: &str, alias: &str) -> Vec<&Line<'t>> {
        self.0.iter().filter(|line| line.verb == verb && line.word(0) == alias).collect()
    }

    /// The lines at which a task leaves the CPU for another event than its descriptor.
    fn sleeps(&self, name: &str) -> Vec<&Line<'t>> {
        let is_it = |line: &&Line<'_>| line.name() == name && line.verb == "block";
        self.0.iter().filter(is_it).filter(|line| line.word(0) == "sleep").collect()
    }

    /// The last wake of a task for a descriptor before a line.
    fn wake(&self, name: &str, alias: &str, before: Seq) -> Option<Seq> {
        let is_it = |line: &&Line<'_>| line.name() == name && line.verb == "wake";
        let wakes = self.0.iter().filter(is_it).filter(|line| line.word(1) == alias);
        wakes.map(|line| line.seq).rfind(|seq| *seq < before)
    }

    fn exit(&self, name: &str) -> Option<&Line<'t>> {
        self.0.iter().find(|line| line.name() == name && line.verb == "exit")
    }

    fn no_wake_ends_it(&self) -> Result<(), String> {
        let is_it = |line: &&Line<'_>| line.verb == "unregister" && line.key("why") == Some("wake");
        let Some(end) = self.0.iter().find(is_it) else { return Ok(()) };
        Err(format!(
            "line #{:04}: a wake ends the registration of {}, as under Eager; a wake leaves it in \
             place and notes it for the task, as under NextSleep",
            end.seq,
            end.word(0)
        ))
    }

    /// `reader` has slept twice, and `writer` still waits for the same descriptor.
    fn nobody_is_left_waiting(&self) -> Result<(), String> {
        let woken = self.wake("writer", "f3", Seq::MAX).unwrap_or(Seq::MAX);
        let Some(end) = self.calls("unregister", "f3").into_iter().find(|end| end.seq < woken)
        else {
            return Ok(());
        };
        Err(format!(
            "line #{:04}: the registration of f3 ends because `reader` waits for something else, \
             but `writer` still waits for f3, and no event can wake it now; a registration ends \
             only if no task waits for its descriptor",
            end.seq
        ))
    }

    fn the_first_wait_keeps_it(&self) -> Result<(), String> {
        let exit = self.exit("steady").map_or(Seq::MAX, |line| line.seq);
        // At the end of the task the registration ends a line before.
        let is_early = |end: &&Line<'_>| end.seq < exit && end.key("why") != Some("exit");
        let Some(end) = self.calls("unregister", "f1").into_iter().find(is_early) else {
            return Ok(());
        };
        let seq = end.seq;
        let before = self.sleeps("steady").into_iter().filter(|line| line.seq < seq).count();
        if before == 1 {
            return Err(format!(
                "line #{seq:04}: the registration of f1 ends when `steady` waits for something \
                 else for the first time, as under NextSleep; the second time ends it"
            ));
        }
        let wake = self.wake("steady", "f1", seq).unwrap_or_default();
        Err(format!(
            "line #{seq:04}: the registration of f1 ends at the first wait of `steady` for \
             something else since its wake in #{wake:04}; {} such waits are counted over the life \
             of the task, and each wake for a descriptor starts the count again",
            before
        ))
    }

    fn the_second_ends_it(&self) -> Result<(), String> {
        let sleeps = self.sleeps("resting");
        let [first, second, third, ..] = sleeps[..] else {
            return Err("`resting` does not sleep three times; is `given.rs` changed?".to_owned());
        };
        let ends = self.calls("unregister", "f2");
        match ends.first().map_or(Seq::MAX, |end| end.seq) {
            seq if seq < second.seq => Err(format!(
                "line #{seq:04}: the registration of f2 ends when `resting` waits for something \
                 else for the first time (#{:04}); the second time ends it",
                first.seq
            )),
            seq if seq < third.seq => Ok(()),
            seq if self.wake("resting", "f2", seq) == self.wake("resting", "f2", third.seq) => {
                Err(format!(
                    "line #{seq:04}: the registration of f2 ends when `resting` waits for \
                     something else for the third time; the second time was in #{:04}",
                    second.seq
                ))
            }
            _ => Err(format!(
                "`resting` waits for something else in #{:04}, #{:04} and #{:04}, and f2 stays \
                 registered; the policy is to act when a task leaves the CPU: look where `suspend` \
                 in `run.rs` asks for the policy",
                first.seq, second.seq, third.seq
            )),
        }
    }

    /// `yielding` yields, and then sleeps.
    fn a_yield_counts(&self) -> Result<(), String> {
        let sleep = self.sleeps("yielding").first().map_or(Seq::MAX, |line| line.seq);
        let is_end = |end: &&&Line<'_>| end.key("why") == Some("suspend");
        if self.calls("unregister", "f7").iter().find(is_end).is_some_and(|end| end.seq > sleep) {
            return Ok(());
        }
        Err(format!(
            "line #{sleep:04}: `yielding` leaves the CPU here for the second time since its wake, \
             and that does not end the registration of f7; the first time was its yield"
        ))
    }

    /// A task that was woken for the descriptor waits for another descriptor or direction.
    fn another_wait_ends_it(&self, name: &str, alias: &str, other: &str) -> Result<(), String> {
        let op = format!("io {other}");
        let is_it =
            |line: &&Line<'_>| (line.name(), line.verb) == (name, "block") && line.op() == op;
        let wait = self.0.iter().find(is_it).map_or(Seq::MAX, |line| line.seq);
        match self.calls("unregister", alias).first() {
            Some(end) if end.seq < wait => Ok(()),
            end => Err(format!(
                "line #{wait:04}: `{name}` waits for `{other}`, and it was woken for `{alias} \
                 read`; {alias} {}; a wait for another descriptor or direction ends the \
                 registration at once: look at what `wait_unusually` does under NextSleep",
                end.map_or_else(
                    || "stays registered".to_owned(),
                    |end| format!("stays registered until #{:04}", end.seq)
                )
            )),
        }
    }

    /// A task leaves no registration behind, and no call to the system is made in vain.
    fn all_ends_with_the_task(&self, alias: &str, name: &str, times: usize) -> Result<(), String> {
        let (begins, ends) = (self.calls("register", alias), self.calls("unregister", alias));
        let exit = self.exit(name).map_or(Seq::MAX, |line| line.seq);
        match ends.last() {
            Some(end) if end.seq < exit && (begins.len(), ends.len()) == (times, times) => Ok(()),
            Some(end) if end.seq < exit => Err(format!(
                "{alias} is registered {} times and its registration ended {} times; each is to be \
                 {times} in this program",
                begins.len(),
                ends.len()
            )),
            _ => Err(format!(
                "line #{exit:04}: `{name}` has ended, and {alias} is still registered; the end of \
                 a task ends what its last wake left in place"
            )),
        }
    }
}
