//! Random events of every variant, as they come and as they are printed, for the tests.

use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;
use traps::Kind;
use traps::protocol::Direction;
use traps::time::Time;

use super::op::{Effect, Exit, Op, Outcome, Timer, WakeOp, Why};

use super::words::{phrase, sentence, signal, stop, word};
use super::*;

/// What an event is made of. `raw` says whether texts are as wild as they come or as printed.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) raw: bool,
    pub(super) n: [u64; 4],
    pub(super) small: u32,
    pub(super) texts: [String; 2],
    pub(super) some: [bool; 4],
    pub(super) times: [Time; 2],
    pub(super) spans: [Duration; 3],
    pub(super) letter: char,
    /// Choices: a trap, a wait, an outcome, a word of a list, how many answers.
    pub(super) pick: [usize; 5],
}

impl Parts {
    fn text(&self, nth: usize, clean: fn(&str) -> Cow<'_, str>) -> Text<'static> {
        let text = &self.texts[nth];
        Cow::Owned(if self.raw { text.clone() } else { clean(text).into_owned() })
    }

    fn word(&self, nth: usize) -> Text<'static> {
        self.text(nth, word)
    }

    fn reason(&self) -> Text<'static> {
        if self.texts[1].is_empty() { Cow::Borrowed("") } else { self.word(1) }
    }

    fn span(&self, nth: usize) -> Duration {
        let span = self.spans[nth];
        if self.raw { span } else { (Time::ZERO + span).since(Time::ZERO) }
    }

    fn alias(&self) -> Alias {
        let wild = !self.letter.is_ascii_lowercase() && !self.raw;
        Alias { kind: if wild { 'f' } else { self.letter }, number: self.small }
    }

    fn direction(&self) -> Direction {
        if self.some[0] { Direction::Read } else { Direction::Write }
    }

    fn site(&self) -> Option<Site<'static>> {
        self.some[1].then(|| Site { file: self.word(0), line: self.small })
    }

    fn stop(&self, nth: usize) -> Stop<'static> {
        Stop { trap: self.text(nth, stop), at: self.site() }
    }

    fn task(&self) -> Option<u64> {
        self.some[2].then_some(self.n[0])
    }

    fn ticket(&self) -> Option<u64> {
        self.some[3].then_some(self.n[1])
    }

    fn timed(&self) -> Option<Timed> {
        let span = |nth: usize| self.some[nth].then(|| self.span(nth));
        let timed = Timed { ran: span(0), waited: span(1), late: span(2) };
        (self.some[3] && timed != Timed::default()).then_some(timed)
    }

    fn timer(&self) -> Timer {
        match self.pick[3] % 5 {
            0 => Timer::Sleep(self.n[0]),
            1 => Timer::Scope(self.n[0]),
            2 => Timer::Grace,
            3 => Timer::Drain,
            _ => Timer::Deadline(self.n[0]),
        }
    }

    fn phase(&self) -> Phase<'static> {
        use After::{Drained, Failure, Limit, Signal};
        let (tasks, until) = (self.n[2], self.times[0]);
        match self.pick[3] % 5 {
            0 => {
                let cause = self.some[2].then_some(self.n[3]);
                Phase::Gate { reason: self.word(1), tasks, cause }
            }
            1 => Phase::Drain { holds: tasks, until },
            2 => {
                let after = [Drained, Limit, Signal, Failure][self.pick[2] % 4];
                Phase::Cancel { tasks, after }
            }
            3 => Phase::Cleanup { tasks, until },
            _ => Phase::Drop { tasks },
        }
    }

    fn outcome(&self, pick: usize) -> Outcome<'static> {
        use Kind::{Cancelled, TaskTimeout, TimeoutCancellation, UncaughtTimeout};
        match pick % 9 {
            0 => Outcome::Ok,
            1 => Outcome::Time(self.times[0]),
            2 => Outcome::NoTime,
            3 => Outcome::Number(self.n[2]),
            4 => Outcome::Scope(self.n[2]),
            5 => Outcome::Interrupt {
                kind: [Cancelled, TaskTimeout, TimeoutCancellation, UncaughtTimeout]
                    [self.pick[3] % 4],
                scope: self.n[3],
                set_at: self.site(),
                by: self.task(),
                reason: self.reason(),
            },
            6 => Outcome::Error(self.text(1, phrase)),
            7 => Outcome::Deadline(self.n[2]),
            _ => Outcome::Signal(self.text(1, signal)),
        }
    }

    fn op(&self) -> Op<'static> {
        let (n, span, until) = (self.n[2], self.span(0), self.times[1]);
        match self.pick[0] % 26 {
            0 => Op::Clock,
            1 => Op::WallClock,
            2 => Op::CurrentTask,
            3 => Op::Deadline { until: self.some[0].then_some(until) },
            4 => Op::Yield,
            5 => Op::Sleep { span, until },
            6 => Op::Io { alias: self.alias(), direction: self.direction() },
            7 => Op::SetTimeout {
                span: self.some[0].then_some(span),
                until: self.some[1].then_some(until),
            },
            8 => Op::UnsetTimeout { scope: n },
            9 => Op::Branch,
            10 => Op::Shield { grace: self.some[0].then_some(span) },
            11 => Op::Spawn { name: self.word(1) },
            12 => Op::Join { task: n },
            13 => Op::Cancel { task: n, reason: self.reason() },
            14 => Op::Wait { queue: n },
            15 => Op::Wake { queue: n, n: self.n[3] },
            16 => Op::Offload { job: n },
            17 => Op::Signal,
            18 => Op::Waker,
            19 => Op::Foreign { external: self.some[0] },
            20 => Op::ConnectionDeadline,
            21 => Op::Guard { deadline: n },
            22 => Op::CheckInterrupt,
            23 => Op::HeldInterrupt,
            24 => Op::Outside { what: self.word(1), external: self.some[0] },
            _ => Op::Parked { tickets: n },
        }
    }

    fn wake_op(&self) -> WakeOp {
        let n = self.n[2];
        match self.pick[1] % 11 {
            0 => WakeOp::Yield,
            1 => WakeOp::Sleep,
            2 => WakeOp::Io { alias: self.alias(), direction: self.direction() },
            3 => WakeOp::Join { task: n },
            4 => WakeOp::Wait { queue: n },
            5 => WakeOp::Offload { job: n },
            6 => WakeOp::Signal,
            7 => WakeOp::Waker,
            8 => WakeOp::Closed { alias: self.alias() },
            9 => WakeOp::Outside,
            _ => WakeOp::Scope { scope: n },
        }
    }

    fn offload(&self, job: u64, cause: u64) -> Event<'static> {
        let (running, queued) = (self.small, self.small / 2);
        if self.some[0] {
            return Event::OffloadStarts { job, running, queued, cause };
        }
        let limiter = self.some[1].then(|| self.word(0));
        Event::Offload { job, running, queued, limiter }
    }

    fn answered(&self) -> Cow<'static, [Answered<'static>]> {
        let count = self.pick[4] % 4;
        let one = |nth| Answered { ticket: self.n[nth], outcome: self.outcome(self.pick[2] + nth) };
        Cow::Owned((0..count).map(one).collect())
    }

    /// The event of variant `verb`, of [`VERBS`].
    pub(super) fn event(&self, verb: usize) -> Event<'static> {
        let (alias, direction, timer) = (self.alias(), self.direction(), self.timer());
        let (cause, n, job, scope) = (self.n[3], self.n[2], self.n[2], self.n[2]);
        let (outcome, at) = (self.outcome(self.pick[2]), self.site());
        let (ticket, text) = (self.n[1], self.text(1, sentence));
        match verb {
            0 => Event::Spawn { parent: self.task(), cause: self.some[3].then_some(cause), at },
            1 => Event::Run { cause, answered: self.answered() },
            2 => Event::Trap { op: self.op(), outcome, cause: self.some[2].then_some(cause), at },
            3 => Event::Block { op: self.op(), ticket: self.ticket(), at },
            4 => Event::Wake { op: self.wake_op(), ticket: self.ticket(), cause },
            5 => Event::Deliver { ticket, outcome, cause },
            6 => Event::Withdraw { ticket },
            7 => {
                use Effect::{Again, Delivered, Ended, Pending};
                let effect = [Delivered, Pending, Again, Ended][self.pick[3] % 4];
                Event::Cancel { by: self.task(), reason: self.reason(), cause, effect }
            }
            8 => {
                let how = [Exit::Ok, Exit::Panic, Exit::Cancelled, Exit::Dropped];
                Event::Exit { how: how[self.pick[3] % 4], cause }
            }
            9 => Event::Drop { what: self.word(1) },
            10 => Event::Join { task: n },
            11 => Event::Yielded { budget: self.small },
            12 => Event::Longrun { ran: self.times[0], from: self.stop(1), to: self.stop(0) },
            13 => Event::Late { scope, deadline: self.times[0], over: self.span(0) },
            14 => Event::Race { winner: self.word(0), loser: self.word(1), scope },
            15 => Event::Warn { text },
            16 => Event::Panic { text },
            17 => Event::Register { alias },
            18 => Event::Defer { alias, direction },
            19 => Event::Reuse { alias, direction },
            20 => Event::Remember { alias, direction, n: self.small },
            21 => {
                use Why::{Close, Exit, Interrupt, Other, Suspend, Unwanted, Wake};
                let why = [Wake, Suspend, Other, Exit, Unwanted, Interrupt, Close];
                Event::Unregister { alias, why: why[self.pick[3] % 7] }
            }
            22 => Event::Refuse { alias, text },
            23 => Event::Arm { timer, until: self.times[0], at },
            24 => Event::Disarm { timer },
            25 => Event::Fire { timer, deadline: self.times[0], cause },
            26 => Event::Tick { moved: n, far: self.n[0] },
            27 => self.offload(job, cause),
            28 => Event::Done { job },
            29 => Event::Abandon { job },
            30 => Event::Orphan { job },
            31 => Event::Shield { scope, open: self.some[0] },
            32 => Event::Cleanup { scope, outcome },
            33 => Event::Cap { text },
            34 => Event::Boot { text },
            35 => Event::Phase(self.phase()),
            _ => {
                let threads = self.n[1];
                Event::Halt { tasks: n, tickets: self.n[0], timers: n, handles: cause, threads }
            }
        }
    }

    pub(super) fn line(&self, verb: usize) -> Line<'static> {
        let event = self.event(verb);
        let timed = self.timed().filter(|_| self.raw || !event.ends_in_text());
        let [task, turn, seq, _] = self.n;
        Line { at: self.times[0], turn, seq, task, name: self.word(0), event, timed }
    }
}

/// How many variants [`Parts::event`] knows.
pub(super) const VERBS: usize = 37;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..20u64, 9_990..10_010u64, any::<u64>(), Just(u64::MAX)]
}

pub(super) fn text() -> impl Strategy<Value = String> {
    let odd =
        prop::sample::select(" =,!#@k\n\t\u{e9}\u{2028}\u{7f}:s1-_".chars().collect::<Vec<_>>());
    let wild = prop_oneof![prop::char::range('a', 'z'), odd, any::<char>()];
    let known = ["ok", "cancelled", "timeout", "never", "none", "at=x:1", "SIGINT", "k=3 = ok, "];
    prop_oneof![
        prop::collection::vec(wild, 0..10).prop_map(String::from_iter),
        prop::sample::select(known.to_vec()).prop_map(str::to_owned),
    ]
}

pub(super) fn parts() -> impl Strategy<Value = Parts> {
    let times = prop::array::uniform2(number().prop_map(Time::from_micros));
    let nanos = number().prop_map(Duration::from_nanos);
    let span = prop_oneof![nanos, number().prop_map(Duration::from_millis), Just(Duration::MAX)];
    (
        (prop::array::uniform4(number()), any::<u32>(), prop::array::uniform2(text())),
        (any::<[bool; 4]>(), times, prop::array::uniform3(span)),
        (prop_oneof![prop::char::range('a', 'z'), any::<char>()], any::<[u16; 5]>()),
    )
        .prop_map(|((n, small, texts), (some, times, spans), (letter, pick))| {
            let pick = pick.map(usize::from);
            Parts { raw: true, n, small, texts, some, times, spans, letter, pick }
        })
}
