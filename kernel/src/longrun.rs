//! Runs that are too long: who held the CPU, from which trap to which (row C34).
//!
//! Each run pays for one reading of the coarse clock and one comparison; all else is worked out
//! when a run was too long. Knows nothing of the watchdog, which looks from outside.

use std::mem;
use std::time::Duration;

use traps::Time;
use traps::protocol::{Direction, Site};

use crate::emit::announce;
use crate::kernel::Kernel;
use crate::limits::SKIPPED;
use crate::log;
use crate::machine::Machine;
use crate::task::State;
use crate::trace::{Alias, Event, Stop, WakeOp};
use crate::waits::{Entry, Wait};

/// How long a run may be, and since when the present one lasts.
pub(crate) struct Longrun {
    /// In nanoseconds; `u64::MAX`: nobody measures.
    limit: u64,
    /// When the run before it ended, or the turn's wait: a mark of the machine's.
    since: u64,
    /// What the kernel has done since: that is no run's time.
    pub(crate) since_then: Done,
    /// What the present run's task was ready for.
    from: Packed,
}

/// What comes before the first run of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Nothing that counts: the run before it has ended.
    Nothing,
    /// It has waited, or was not running: the turn began when it read the clock.
    Waited,
    /// It has served other threads, signals or deadlines, which may take its time.
    Served,
}

/// The turns that went by since the last look at the machine.
pub(crate) struct Skipped {
    turns: u32,
    /// A mark of the machine's as of that look; `u64::MAX` after an idle wait, until a turn goes
    /// by.
    since: u64,
}

impl Skipped {
    /// After an idle wait.
    pub(crate) const NONE: Skipped = Skipped { turns: 0, since: u64::MAX };

    /// The first turn after an idle wait, or one that is to look: whether it goes by.
    fn begin(&mut self, mark: u64) -> bool {
        let skips = self.since == u64::MAX;
        *self = Skipped { turns: u32::from(skips), since: mark };
        skips
    }
}

/// What a task was ready for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Came {
    Spawn,
    Waker,
    /// A scope fired around a wait on a bare waker.
    Scope(u64),
    /// This wait ended, by a completion or an interrupt.
    Wait(WakeOp, Site),
    /// It stood beside a wait on a waker.
    Foreign(Site),
}

/// The same in two words, as each task has it: in the first what it was, in four bits, and its
/// number, or an alias and a direction.
#[derive(Clone, Copy)]
pub(crate) struct Packed(u64, Option<Site>);

impl Packed {
    const BITS: u32 = 60;
    const NUMBER: u64 = (1 << Packed::BITS) - 1;

    #[inline(always)]
    pub(crate) fn of(came: Came) -> Packed {
        let (kind, number, site) = match came {
            Came::Spawn => (0, 0, None),
            Came::Waker => (1, 0, None),
            Came::Scope(scope) => (2, scope, None),
            Came::Foreign(site) => (3, 0, Some(site)),
            Came::Wait(op, site) => {
                let (kind, number) = match op {
                    WakeOp::Yield => (4, 0),
                    WakeOp::Sleep => (5, 0),
                    WakeOp::Io { alias, direction: Direction::Read } => (6, pack(alias)),
                    WakeOp::Io { alias, direction: Direction::Write } => (7, pack(alias)),
                    WakeOp::Join { task } => (8, task),
                    WakeOp::Wait { queue } => (9, queue),
                    WakeOp::Offload { job } => (10, job),
                    WakeOp::Signal => (11, 0),
                    WakeOp::Waker => (12, 0),
                    WakeOp::Outside => (13, 0),
                    WakeOp::Closed { alias } => (14, pack(alias)),
                    WakeOp::Scope { scope } => (15, scope),
                };
                (kind, number, Some(site))
            }
        };
        Packed(kind << Packed::BITS | number & Packed::NUMBER, site)
    }

    #[cold]
    fn came(self) -> Came {
        let Packed(what, site) = self;
        let number = what & Packed::NUMBER;
        let op = match (what >> Packed::BITS, site) {
            (0, _) => return Came::Spawn,
            (2, _) => return Came::Scope(number),
            (3, Some(site)) => return Came::Foreign(site),
            (_, None) => return Came::Waker,
            (4, _) => WakeOp::Yield,
            (5, _) => WakeOp::Sleep,
            (6, _) => WakeOp::Io { alias: unpack(number), direction: Direction::Read },
            (7, _) => WakeOp::Io { alias: unpack(number), direction: Direction::Write },
            (8, _) => WakeOp::Join { task: number },
            (9, _) => WakeOp::Wait { queue: number },
            (10, _) => WakeOp::Offload { job: number },
            (11, _) => WakeOp::Signal,
            (13, _) => WakeOp::Outside,
            (14, _) => WakeOp::Closed { alias: unpack(number) },
            (15, _) => WakeOp::Scope { scope: number },
            _ => WakeOp::Waker,
        };
        Came::Wait(op, site.expect("a wait has a place"))
    }
}

#[inline(always)]
fn pack(alias: Alias) -> u64 {
    u64::from(u32::from(alias.kind)) << 32 | u64::from(alias.number)
}

fn unpack(packed: u64) -> Alias {
    let kind = u32::try_from(packed >> 32).ok().and_then(char::from_u32).unwrap_or('f');
    Alias { kind, number: packed as u32 }
}

impl Longrun {
    pub(crate) fn new(limit: Option<Duration>) -> Longrun {
        let nanos = limit.map(|limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        Longrun {
            limit: nanos.unwrap_or(u64::MAX),
            since: 0,
            since_then: Done::Waited,
            from: Packed::of(Came::Spawn),
        }
    }

    /// A task gets the CPU.
    #[inline]
    pub(crate) fn begin_from(&mut self, came: Packed) {
        self.from = came;
    }
}

impl<M: Machine> Kernel<M> {
    /// The runs of a turn begin. Where the kernel has waited, or was not running, the first of them
    /// began with the turn's reading of the clock, or now, if it was busy since; else with the end
    /// of the last.
    pub(crate) fn begin_runs(&mut self) {
        if self.longrun.limit == u64::MAX {
            return;
        }
        match mem::replace(&mut self.longrun.since_then, Done::Nothing) {
            Done::Nothing => {}
            Done::Waited => self.longrun.since = self.machine.mark_of(self.log.now),
            Done::Served => self.longrun.since = self.machine.mark(),
        }
    }

    /// A run is over: its task has left the CPU, or has ended and is still in the table.
    #[inline]
    pub(crate) fn end_run(&mut self, index: u32) {
        self.end_beat();
        if self.longrun.limit != u64::MAX {
            let mark = self.machine.mark();
            if mark.wrapping_sub(self.longrun.since) > self.longrun.limit {
                self.measure_run(index);
            }
            self.longrun.since = mark;
            self.timers.table().end_run(mark);
        } else {
            self.timers.table().settle();
        }
    }

    /// Whether this turn, which has tasks to run, goes by without a look at the machine: as long as
    /// the turns before it took no time that the coarse clock shows. Tasks that are busy for long
    /// and give way would hold up all I/O and every deadline for that many of their turns.
    #[inline]
    pub(crate) fn skips(&mut self) -> bool {
        // The last run's end, where it was read.
        let measured = self.longrun.limit != u64::MAX;
        let mark = if measured { self.longrun.since } else { self.machine.mark() };
        let skips = self.skipped.since == mark && self.skipped.turns < SKIPPED;
        self.skipped.turns += 1;
        skips || self.skipped.begin(mark)
    }

    /// Says that a run was too long, if it surely was.
    #[cold]
    #[inline(never)]
    fn measure_run(&mut self, index: u32) {
        let ran = self.machine.passed(self.longrun.since);
        if ran <= Duration::from_nanos(self.longrun.limit) {
            return;
        }
        let ran = Time::ZERO + ran;
        let (from, to) = (self.longrun.from.came().shown(), self.stands_at(index));
        announce!(self, self.tasks.label(index), Event::Longrun { ran, from, to });
    }

    /// Where a run has led.
    fn stands_at(&self, index: u32) -> Stop<'static> {
        let task = self.tasks.get(index);
        if task.is_ended() {
            return Stop { trap: "exit".into(), at: None };
        }
        match self.waits.get(task.last_wait) {
            Some(entry) => {
                Stop { trap: self.shown_wait(entry).into(), at: Some(log::site(entry.site)) }
            }
            // It gave way, or called its own waker.
            None if task.state == State::Ready => task.came.came().shown(),
            None => Came::Waker.shown(),
        }
    }

    /// What a task is ready for whose wait an interrupt ended.
    pub(crate) fn waited(&self, entry: &Entry) -> Came {
        let op = match &entry.wait {
            Wait::Yield { sleep: false } => WakeOp::Yield,
            Wait::Yield { sleep: true } | Wait::Sleep { .. } => WakeOp::Sleep,
            Wait::Io { handle, direction } => match self.registrations.alias(*handle) {
                Some(alias) => WakeOp::Io { alias, direction: *direction },
                None => return Came::Foreign(entry.site),
            },
            Wait::Join { task, .. } => WakeOp::Join { task: self.tasks.label(*task).0 },
            Wait::Queue(queue) => WakeOp::Wait { queue: queue.number.get() },
            Wait::Job { number, .. } => WakeOp::Offload { job: *number },
            Wait::Signal(_) | Wait::Stream(_) => WakeOp::Signal,
            Wait::Outside { .. } => WakeOp::Outside,
            Wait::Foreign { .. } => return Came::Foreign(entry.site),
        };
        Came::Wait(op, entry.site)
    }
}

impl Came {
    fn shown(self) -> Stop<'static> {
        match self {
            Came::Spawn => Stop { trap: "spawn".into(), at: None },
            Came::Waker => Stop { trap: "waker".into(), at: None },
            Came::Scope(scope) => {
                Stop { trap: WakeOp::Scope { scope }.to_string().into(), at: None }
            }
            Came::Wait(op, site) => Stop { trap: op.to_string().into(), at: Some(log::site(site)) },
            Came::Foreign(site) => Stop { trap: "foreign".into(), at: Some(log::site(site)) },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn what_a_task_came_for_comes_out_of_its_words_as_it_went_in() {
        let site = Location::caller();
        let alias = Alias { kind: 'c', number: u32::MAX };
        let ops = [
            WakeOp::Yield,
            WakeOp::Sleep,
            WakeOp::Io { alias, direction: Direction::Read },
            WakeOp::Io { alias, direction: Direction::Write },
            WakeOp::Join { task: 1 << 59 },
            WakeOp::Wait { queue: 2 },
            WakeOp::Offload { job: 3 },
            WakeOp::Signal,
            WakeOp::Waker,
            WakeOp::Outside,
            WakeOp::Closed { alias },
            WakeOp::Scope { scope: 4 },
        ];
        let waits = ops.into_iter().map(|op| Came::Wait(op, site));
        let others = [Came::Spawn, Came::Waker, Came::Scope(5), Came::Foreign(site)];
        for came in waits.chain(others) {
            assert_eq!(format!("{:?}", Packed::of(came).came()), format!("{came:?}"));
        }
        assert_eq!(size_of::<Packed>(), 16);
    }
}
