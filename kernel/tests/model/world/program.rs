//! Programs as data: drawn from a seed, printed, and made smaller.

use std::fmt;

/// A generator that is the same everywhere (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.roll(all.len() as u64) as usize]
    }
}

/// What may block. A number names the lock or the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    Sleep(u64),
    /// A sleep that no interrupt ends.
    Shielded(u64),
    Yield,
    Lock(usize),
    Read,
    Write,
    Acquire,
    /// For a notification, and until the value of the lock is even.
    Condition,
    ConditionEven,
    Event,
    Barrier,
    /// How long it takes, and whether it succeeds.
    Init(u64, bool),
    Send,
    Recv,
    Oneshot,
    OneshotClosed,
    Broadcast,
    Changed,
    /// Until the watched value is even.
    WatchEven,
    Put(usize),
    Get(usize),
    Join(usize),
}

/// What never blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    Cancel(usize),
    /// Drops the newest, or the oldest, of the guards and permits that the task has.
    Release,
    ReleaseOldest,
    TryLock(usize),
    TryRead,
    TryWrite,
    TryAcquire,
    AddPermits(u32),
    Forget,
    Notify(u64),
    SetEvent,
    ClearEvent,
    SetCell,
    TrySend,
    TryRecv,
    CloneSender,
    DropSender,
    CloseReceiver,
    DropReceiver,
    OneshotSend,
    OneshotTry,
    OneshotDropSender,
    OneshotDropReceiver,
    BroadcastSend,
    BroadcastTry,
    BroadcastSubscribe,
    BroadcastCloneSender,
    BroadcastDropSender,
    BroadcastDropReceiver,
    WatchSend,
    WatchModify,
    WatchSubscribe,
    WatchClone,
    WatchDropSender,
    WatchDropReceiver,
    TryPut(usize),
    TryGet(usize),
    TaskDone(usize),
}

/// One step of a task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Do(Op),
    /// With a timeout, in tenths of a second.
    Within(u64, Op),
    /// Both at once, until one is done; the other is dropped. The first is polled first.
    Race(Op, Op),
    /// Polled once, then dropped.
    Once(Op),
    Act(Act),
}

impl Step {
    pub fn needs_lock(self) -> bool {
        let waits = |op| matches!(op, Op::Condition | Op::ConditionEven);
        match self {
            Step::Do(op) | Step::Within(_, op) | Step::Once(op) => waits(op),
            Step::Race(a, b) => waits(a) || waits(b),
            Step::Act(_) => false,
        }
    }
}

/// A program.
#[derive(Clone)]
pub struct Program {
    pub tasks: Vec<Vec<Step>>,
    /// When main has had enough, in tenths of a second; `None` for never.
    pub patience: Option<u64>,
    pub permits: u32,
    /// The semaphore never has more permits.
    pub is_bounded: bool,
    pub parties: usize,
    /// The bounds of the channel, of the broadcast channel, and of the queues.
    pub bounds: [usize; 3],
    /// The policy of the kernel.
    pub policy: usize,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { patience, permits, is_bounded, parties, bounds, policy, .. } = self;
        write!(f, "patience {patience:?}, {permits} permits, bounded {is_bounded}, ")?;
        writeln!(f, "{parties} parties, bounds {bounds:?}, policy {policy}")?;
        for (task, steps) in self.tasks.iter().enumerate() {
            writeln!(f, "task {task}: {steps:?}")?;
        }
        Ok(())
    }
}

/// What belongs together. The acts that close something come once each, so they are rare.
const KINDS: [(&[Op], &[Act]); 12] = {
    use Act::*;
    use Op::*;
    [
        (&[Lock(0), Lock(1)], &[TryLock(0), TryLock(1), Release, ReleaseOldest]),
        (&[Read, Write], &[TryRead, TryWrite, Release, Release, ReleaseOldest]),
        (&[Acquire], &[TryAcquire, AddPermits(1), AddPermits(2), Forget, Release, Release]),
        (
            &[Lock(0), Condition, ConditionEven],
            &[Notify(1), Notify(2), Notify(u64::MAX), Release, Release],
        ),
        (&[Op::Event], &[SetEvent, ClearEvent]),
        (&[Op::Barrier], &[Release]),
        (&[Init(0, true), Init(1, true), Init(1, false), Init(2, false)], &[SetCell]),
        (
            &[Send, Send, Recv],
            &[
                TrySend,
                TrySend,
                TryRecv,
                TryRecv,
                CloneSender,
                DropSender,
                CloseReceiver,
                DropReceiver,
            ],
        ),
        (
            &[Oneshot, Oneshot, OneshotClosed],
            &[OneshotSend, OneshotSend, OneshotTry, OneshotDropSender, OneshotDropReceiver],
        ),
        (
            &[Broadcast],
            &[
                BroadcastSend,
                BroadcastSend,
                BroadcastSend,
                BroadcastTry,
                BroadcastSubscribe,
                BroadcastCloneSender,
                BroadcastDropSender,
                BroadcastDropReceiver,
            ],
        ),
        (
            &[Changed, WatchEven],
            &[
                WatchSend,
                WatchSend,
                WatchModify,
                WatchSubscribe,
                WatchClone,
                WatchDropSender,
                WatchDropReceiver,
            ],
        ),
        (&[Put(0), Get(0), Join(0)], &[TryPut(0), TryGet(0), TaskDone(0), TaskDone(0)]),
    ]
};

impl Program {
    pub fn drawn(seed: u64) -> Program {
        let mut dice = Dice(seed);
        // Few kinds, so that the tasks meet.
        let count = dice.one_of(&[1, 1, 2, 3]);
        let kinds: Vec<usize> =
            (0..count).map(|_| dice.roll(KINDS.len() as u64) as usize).collect();
        // One of the three orders of a queue.
        let queue = dice.roll(3) as usize;
        let count = 2 + dice.roll(5) as usize;
        let tasks = (0..count).map(|_| {
            let steps = 1 + dice.roll(10);
            (0..steps).map(|_| step(&mut dice, &kinds, queue, count)).collect()
        });
        let tasks = tasks.collect();
        Program {
            tasks,
            patience: (dice.roll(2) == 0).then(|| 1 + dice.roll(20)),
            permits: dice.roll(3) as u32,
            is_bounded: dice.roll(4) == 0,
            parties: 1 + dice.roll(3) as usize,
            bounds: [0; 3].map(|_| 1 + dice.roll(2) as usize),
            policy: dice.roll(3) as usize,
        }
    }

    /// Returns the program with one task or one step less, in every way.
    pub fn smaller(&self) -> Vec<Program> {
        let mut smaller = Vec::new();
        let mut without = |task: usize, steps: std::ops::Range<usize>| {
            let mut less = self.clone();
            less.tasks[task].drain(steps);
            smaller.push(less);
        };
        let tasks = self.tasks.iter().enumerate();
        let long = tasks.clone().filter(|(_, steps)| steps.len() > 1);
        long.for_each(|(task, steps)| without(task, 0..steps.len()));
        for (task, steps) in tasks {
            (0..steps.len()).for_each(|step| without(task, step..step + 1));
        }
        smaller
    }
}

fn op(dice: &mut Dice, kinds: &[usize], queue: usize) -> Op {
    let kind = dice.one_of(kinds);
    match dice.one_of(KINDS[kind].0) {
        Op::Put(_) => Op::Put(queue),
        Op::Get(_) => Op::Get(queue),
        Op::Join(_) => Op::Join(queue),
        op => op,
    }
}

fn step(dice: &mut Dice, kinds: &[usize], queue: usize, tasks: usize) -> Step {
    let kind = dice.one_of(kinds);
    match dice.roll(20) {
        0 | 1 => Step::Do(Op::Sleep(1 + dice.roll(4))),
        2 | 3 => Step::Do(Op::Yield),
        4 => Step::Act(Act::Cancel(dice.roll(tasks as u64) as usize)),
        5..=9 => Step::Act(match dice.one_of(KINDS[kind].1) {
            Act::TryPut(_) => Act::TryPut(queue),
            Act::TryGet(_) => Act::TryGet(queue),
            Act::TaskDone(_) => Act::TaskDone(queue),
            act => act,
        }),
        10 | 11 => Step::Within(1 + dice.roll(3), op(dice, kinds, queue)),
        12 | 13 => {
            let (op, span) = (op(dice, kinds, queue), 1 + dice.roll(3));
            let sleep = if dice.roll(3) == 0 { Op::Shielded(span) } else { Op::Sleep(span) };
            if dice.roll(2) == 0 { Step::Race(op, sleep) } else { Step::Race(sleep, op) }
        }
        14 => match dice.roll(3) {
            0 => Step::Race(Op::Yield, op(dice, kinds, queue)),
            1 => Step::Once(op(dice, kinds, queue)),
            _ => Step::Race(op(dice, kinds, queue), op(dice, kinds, queue)),
        },
        _ => Step::Do(op(dice, kinds, queue)),
    }
}
