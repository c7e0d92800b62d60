//! The model: what each object promises, in plain lists, stepped each time a task is polled.
//!
//! It knows nothing of the kernel but this: the tasks are polled in some order, the clock moves
//! only when no task can go on, and a deadline that is due is seen before any task runs.

mod acts;

use std::collections::{BTreeMap, VecDeque};

use traps::Time;

use super::program::{Op, Program};
use support::kernels::tenths;

/// How an operation ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Told {
    Done,
    Value(u64),
    Missed(u64),
    /// The other side of the channel is gone.
    Gone,
    /// The receiver is closed.
    Closed,
    /// The value of the cell was not made.
    Failed,
    Interrupted,
}

/// Those who wait for a permit, first come first, and the permits that are free.
#[derive(Default)]
struct Line {
    waiting: VecDeque<usize>,
    permits: u32,
    /// A permit that nobody waits for is kept.
    keeps: bool,
    /// In which poll it was given to last. What is given travels until the poll is over.
    touched: u64,
}

/// The lines. The two locks have the numbers 0 and 1, and each queue has two lines.
pub const PERMITS: usize = 2;
pub const DOOR: usize = 3;
pub const CELL: usize = 4;
pub const CONDITION: usize = 5;
pub const ROOM: usize = 6;
pub const QUEUE_ROOM: usize = 7;
pub const QUEUE_ITEMS: usize = 10;
const LINES: usize = 13;

/// Where an operation stands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum At {
    /// It has not been polled.
    New,
    /// In a line.
    Line(usize),
    /// It has a permit of a line.
    Handed(usize),
    /// It writes as soon as nobody reads; it has the door.
    Door,
    /// It makes the value of the cell until then.
    Making(Time),
    /// It waits for a state.
    State,
    /// Nowhere any more.
    Out,
}

/// An operation that has begun.
struct Begun {
    task: usize,
    op: Op,
    deadline: Option<Time>,
    /// Which receiver it uses, or what it puts.
    end: u64,
    at: At,
    /// The round, or the number of sets, when it began.
    mark: u64,
    until: Time,
    /// It was interrupted where it stood, and has not been polled since.
    is_interrupted: bool,
    /// How the wait for the condition ended; now it waits for the lock.
    relock: Option<Told>,
    /// The state has changed since it was polled.
    is_woken: bool,
    /// In which poll it began to wait last.
    blocked: u64,
    /// In which run of its task it waited for what was on its way.
    travels: u64,
}

impl Begun {
    /// No interrupt comes to it here.
    fn is_shielded(&self) -> bool {
        self.relock.is_some() || matches!(self.op, Op::Shielded(_))
    }
}

/// The items of a queue, in the order of putting, as a key and a number.
#[derive(Default)]
pub struct Items {
    items: Vec<u64>,
    pub unfinished: u64,
    rounds: u64,
}

impl Items {
    /// The place of the next item.
    fn next(&self, queue: usize) -> Option<usize> {
        match queue {
            0 => (!self.items.is_empty()).then_some(0),
            1 => self.items.len().checked_sub(1),
            _ => (0..self.items.len()).min_by_key(|place| (key(self.items[*place]), *place)),
        }
    }

    /// All items, in the order of taking.
    pub fn in_order(&self, queue: usize) -> Vec<u64> {
        let mut rest = Items { items: self.items.clone(), ..Items::default() };
        std::iter::from_fn(|| Some(rest.items.remove(rest.next(queue)?))).collect()
    }
}

/// By what a priority queue orders an item.
pub fn key(item: u64) -> u64 {
    item % 3
}

/// A oneshot channel.
#[derive(Clone, Copy)]
struct Shot {
    value: Option<u64>,
    has_sender: bool,
    has_receiver: bool,
}

/// Everything that a program shares, as it should be.
pub struct Model {
    pub now: Time,
    /// The number of the poll, and of the run, of a task.
    poll: u64,
    run: u64,
    last: usize,
    lines: [Line; LINES],
    ops: BTreeMap<usize, Begun>,
    count: usize,
    /// A wake may have been passed on to an operation that goes on waiting.
    is_stale: bool,
    /// The tasks that were cancelled, and those that were told so.
    cancelled: Vec<bool>,
    told: Vec<bool>,
    pub values: [u64; 2],
    pub shared: u64,
    readers: usize,
    pub all_permits: u32,
    bound: u32,
    pub flag: bool,
    sets: u64,
    parties: usize,
    arrived: usize,
    round: u64,
    pub cell: Option<u64>,
    makers: usize,
    /// The channel.
    pub items: VecDeque<u64>,
    pub senders: usize,
    pub is_closed: bool,
    shots: [Shot; 2],
    /// The broadcast channel: all that was ever sent, how many are kept, and what each receiver
    /// gets next.
    news: Vec<u64>,
    kept: usize,
    speakers: usize,
    listeners: BTreeMap<u64, usize>,
    /// The watched value, its version, and the version that each receiver has seen.
    pub watched: u64,
    version: u64,
    has_publisher: bool,
    watchers: BTreeMap<u64, u64>,
    pub queues: [Items; 3],
    pub wrong: Option<String>,
    /// What happened, if somebody wants to know.
    pub log: Option<Vec<String>>,
}

impl Model {
    pub fn new(program: &Program, now: Time, logs: bool) -> Model {
        let mut lines: [Line; LINES] = Default::default();
        for (number, line) in lines.iter_mut().enumerate() {
            line.keeps = number != CONDITION;
            line.permits = match number {
                0 | 1 | DOOR | CELL => 1,
                PERMITS => program.permits,
                ROOM => program.bounds[0] as u32,
                QUEUE_ROOM..QUEUE_ITEMS => program.bounds[2] as u32,
                _ => 0,
            };
        }
        let shot = Shot { value: None, has_sender: true, has_receiver: true };
        Model {
            now,
            poll: 1,
            run: 1,
            last: usize::MAX,
            lines,
            ops: BTreeMap::new(),
            count: 0,
            is_stale: false,
            cancelled: vec![false; program.tasks.len()],
            told: vec![false; program.tasks.len()],
            values: [0; 2],
            shared: 0,
            readers: 0,
            all_permits: program.permits,
            bound: if program.is_bounded { program.permits } else { u32::MAX },
            flag: false,
            sets: 0,
            parties: program.parties,
            arrived: 0,
            round: 0,
            cell: None,
            makers: 0,
            items: VecDeque::new(),
            senders: 1,
            is_closed: false,
            shots: [shot; 2],
            news: Vec::new(),
            kept: program.bounds[1],
            speakers: 1,
            listeners: BTreeMap::from([(0, 0)]),
            watched: 1,
            version: 0,
            has_publisher: true,
            watchers: BTreeMap::from([(0, 0)]),
            queues: Default::default(),
            wrong: None,
            log: logs.then(Vec::new),
        }
    }

    pub fn say(&mut self, what: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{} {}", self.now, what()));
        }
    }

    /// The first thing that is wrong is kept: after it the model does not fit any more.
    pub fn is_wrong(&mut self, what: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            let what = what();
            self.say(|| format!("WRONG: {what}"));
            self.wrong = Some(what);
        }
    }

    fn expect<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, real: T, model: T) {
        if real != model {
            self.is_wrong(|| format!("{what}: {real:?}, should be {model:?}"));
        }
    }

    // ---- Time ------------------------------------------------------------------------------

    /// A task is polled.
    pub fn begin_poll(&mut self, task: usize, now: Time) {
        self.poll += 1;
        assert!(self.poll < 100_000, "the program does not end");
        self.run += u64::from(task != self.last);
        self.last = task;
        self.advance(now);
    }

    /// The clock has moved: what could go on has gone on, and deadlines have passed.
    pub fn advance(&mut self, now: Time) {
        if now == self.now {
            return;
        }
        self.check_rest("before the clock moves");
        self.now = now;
        let due = |begun: &Begun| begun.deadline.is_some_and(|at| at <= now);
        let hit: Vec<usize> =
            self.ops.iter().filter(|(_, begun)| due(begun)).map(|(id, _)| *id).collect();
        hit.into_iter().for_each(|id| self.interrupt(id));
    }

    /// Nobody can go on: each operation waits for something that has not come.
    pub fn check_rest(&mut self, when: &str) {
        let goes_on = |(id, begun): (&usize, &Begun)| {
            let is_late = begun.deadline.is_some_and(|at| at <= self.now) && !begun.is_shielded();
            let goes_on = begun.is_interrupted || is_late || self.is_due(begun);
            goes_on.then(|| format!("{id} {:?} of task {}", begun.op, begun.task))
        };
        if let Some(stuck) = self.ops.iter().find_map(goes_on) {
            self.is_wrong(|| format!("not told {when}: {stuck}"));
        }
    }

    /// Every task waits for ever: no operation has a time at which it would end.
    pub fn check_hang(&mut self) {
        self.check_rest("in a hang");
        let ends = |begun: &Begun| begun.until > self.now || begun.deadline > Some(self.now);
        if let Some(begun) = self.ops.values().find(|begun| ends(begun)) {
            let op = begun.op;
            self.is_wrong(|| format!("a hang, but {op:?} has an end"));
        }
        if self.ops.is_empty() {
            self.is_wrong(|| "a hang, but nobody waits".to_owned());
        }
    }

    /// The task is cancelled; the first time counts.
    pub fn cancel(&mut self, task: usize) {
        self.say(|| format!("cancel of task {task}"));
        if !std::mem::replace(&mut self.cancelled[task], true) {
            let of_task = |(id, begun): (&usize, &Begun)| (begun.task == task).then_some(*id);
            let hit: Vec<usize> = self.ops.iter().filter_map(of_task).collect();
            hit.into_iter().for_each(|id| self.interrupt(id));
        }
    }

    pub fn is_cancelled(&self, task: usize) -> bool {
        self.cancelled[task]
    }

    /// An interrupt comes where the operation stands. One that can go on is not interrupted.
    fn interrupt(&mut self, id: usize) {
        let begun = &self.ops[&id];
        let stays = begun.is_shielded()
            || matches!(begun.at, At::New | At::Handed(_) | At::Out)
            || begun.is_woken
            || begun.op == Op::Yield
            || self.is_due(begun);
        if !stays {
            self.take_out(id);
        }
    }

    // ---- Lines -----------------------------------------------------------------------------

    fn begun(&mut self, id: usize) -> &mut Begun {
        self.ops.get_mut(&id).expect("it has begun")
    }

    fn at(&mut self, id: usize, at: At) {
        self.begun(id).at = at;
    }

    /// Takes a permit, or stands in line for it.
    fn take_or_wait(&mut self, id: usize, line: usize) {
        let found = &mut self.lines[line];
        if found.permits > 0 {
            found.permits -= 1;
            return self.at(id, At::Handed(line));
        }
        found.waiting.push_back(id);
        self.at(id, At::Line(line));
    }

    /// Whether an interrupt waits for it to block.
    fn is_pending(&self, id: usize) -> bool {
        let Begun { task, deadline, .. } = self.ops[&id];
        let is_late = deadline.is_some_and(|at| at <= self.now);
        is_late || self.cancelled[task] && !self.told[task]
    }

    /// It begins to wait. An interrupt that is pending comes at once.
    fn block(&mut self, id: usize) {
        self.begun(id).blocked = self.poll;
        if self.is_pending(id) && !self.ops[&id].is_shielded() {
            self.take_out(id);
        }
    }

    /// It is interrupted where it stands.
    fn take_out(&mut self, id: usize) {
        if let At::Line(line) = self.ops[&id].at {
            self.lines[line].waiting.retain(|it| *it != id);
            self.at(id, At::Out);
        }
        self.begun(id).is_interrupted = true;
        self.say(|| format!("  {id} is interrupted"));
    }

    /// Hands a permit to the first in line, or keeps it.
    fn give(&mut self, line: usize) {
        let found = &mut self.lines[line];
        found.touched = self.poll;
        if let Some(first) = found.waiting.pop_front() {
            self.at(first, At::Handed(line));
            self.say(|| format!("  {first} is handed {line}"));
        } else if found.keeps {
            found.permits += 1;
        }
    }

    /// A task has tried to take a permit. It may have failed while one was on its way.
    fn tried(&mut self, line: usize, has_it: bool) {
        let Line { permits, touched, .. } = self.lines[line];
        if has_it && permits == 0 {
            self.is_wrong(|| format!("a permit of {line} was taken that is not free"));
        } else if !has_it && permits > 0 && touched != self.poll {
            self.is_wrong(|| format!("a permit of {line} is free, and was not given"));
        }
        self.lines[line].permits -= u32::from(has_it && permits > 0);
    }

    fn free(&self, line: usize) -> u32 {
        self.lines[line].permits
    }

    // ---- Operations ------------------------------------------------------------------------

    /// An operation is about to be polled for the first time.
    pub fn begin(&mut self, task: usize, op: Op, span: Option<u64>, end: u64) -> usize {
        self.count += 1;
        let id = self.count;
        self.say(|| format!("{id} begins: {op:?} of task {task}, within {span:?}, with {end}"));
        let begun = Begun {
            task,
            op,
            end,
            deadline: span.map(|span| self.now + tenths(span)),
            at: At::New,
            mark: 0,
            until: Time::ZERO,
            is_interrupted: false,
            relock: None,
            is_woken: false,
            blocked: 0,
            travels: 0,
        };
        self.ops.insert(id, begun);
        id
    }

    /// Whether it can go on, seen from outside.
    fn is_due(&self, begun: &Begun) -> bool {
        match begun.at {
            At::New => true,
            At::Line(_) | At::Out => false,
            At::Handed(_) => true,
            At::Door => self.readers == 0,
            At::Making(until) => self.now >= until,
            At::State => self.state_of(begun).is_some(),
        }
    }

    /// What an operation that waits for a state is told now.
    fn state_of(&self, begun: &Begun) -> Option<Told> {
        let gone = |is: bool| is.then_some(Told::Gone);
        match begun.op {
            Op::Sleep(_) | Op::Shielded(_) => (self.now >= begun.until).then_some(Told::Done),
            Op::Yield => Some(Told::Done),
            Op::Event => (self.flag || self.sets > begun.mark).then_some(Told::Done),
            Op::Barrier => (self.round > begun.mark).then_some(Told::Value(0)),
            Op::Recv => self.next_item(),
            Op::Oneshot => self.next_shot(begun.end as usize),
            Op::OneshotClosed => {
                (!self.shots[begun.end as usize].has_receiver).then_some(Told::Done)
            }
            Op::Broadcast => self.next_news(begun.end),
            Op::Changed => {
                let is_new = self.watchers[&begun.end] != self.version;
                is_new.then_some(Told::Done).or(gone(!self.has_publisher))
            }
            Op::WatchEven => {
                let found = self.watched.is_multiple_of(2).then_some(Told::Value(self.watched));
                found.or(gone(!self.has_publisher))
            }
            Op::Join(queue) => {
                let Items { unfinished, rounds, .. } = self.queues[queue];
                (unfinished == 0 || rounds > begun.mark).then_some(Told::Done)
            }
            _ => unreachable!("it stands in a line"),
        }
    }

    fn next_item(&self) -> Option<Told> {
        let closed = self.is_closed.then_some(Told::Closed);
        let gone = (self.senders == 0).then_some(Told::Gone);
        self.items.front().map(|item| Told::Value(*item)).or(gone).or(closed)
    }

    fn next_shot(&self, shot: usize) -> Option<Told> {
        let Shot { value, has_sender, .. } = self.shots[shot];
        value.map(Told::Value).or((!has_sender).then_some(Told::Gone))
    }

    fn next_news(&self, listener: u64) -> Option<Told> {
        let (at, oldest) = (self.listeners[&listener], self.oldest());
        match self.news.get(at) {
            _ if at < oldest => Some(Told::Missed((oldest - at) as u64)),
            Some(item) => Some(Told::Value(*item)),
            None => (self.speakers == 0).then_some(Told::Gone),
        }
    }

    fn oldest(&self) -> usize {
        self.news.len().saturating_sub(self.kept)
    }

    /// Lets an operation go as far as it can; says what it should be told, if it ends.
    fn step(&mut self, id: usize) -> Option<Told> {
        let Begun { op, at, is_interrupted, mark, .. } = self.ops[&id];
        match op {
            Op::Condition | Op::ConditionEven => return self.step_condition(id, op),
            // If the others have gone on with it, this is no error.
            Op::Barrier if is_interrupted && self.round > mark => {}
            _ if is_interrupted => return Some(Told::Interrupted),
            _ => {}
        }
        if at == At::New {
            match line_of(op) {
                Some(CELL) if self.cell.is_some() => return self.cell.map(Told::Value),
                Some(ROOM) if self.is_closed => return Some(Told::Gone),
                Some(line) => self.take_or_wait(id, line),
                None => self.begin_state(id, op),
            }
            if op == Op::Barrier && self.arrived == self.parties {
                self.arrived = 0;
                self.round += 1;
                return Some(Told::Value(1));
            }
        }
        if let (At::Handed(CELL), Op::Init(span, _)) = (self.ops[&id].at, op) {
            if self.cell.is_some() {
                return self.cell.map(Told::Value);
            }
            self.at(id, At::Making(self.now + tenths(span)));
        }
        if let (At::Handed(DOOR), Op::Write) = (self.ops[&id].at, op) {
            self.at(id, At::Door);
        }
        let begins = self.ops[&id].at != at;
        if !self.is_due(&self.ops[&id]) || op == Op::Yield && begins {
            if std::mem::take(&mut self.begun(id).is_woken) || begins {
                self.block(id);
            }
            if op == Op::WatchEven {
                let watcher = self.ops[&id].end;
                self.watchers.insert(watcher, self.version);
            }
            return self.ops[&id].is_interrupted.then_some(Told::Interrupted);
        }
        Some(match op {
            Op::Lock(lock) => Told::Value(self.values[lock] + 1),
            Op::Read => Told::Value(self.shared),
            Op::Write => Told::Value(self.shared + 1),
            Op::Init(_, true) => Told::Value(self.ops[&id].end),
            Op::Init(_, false) => Told::Failed,
            Op::Send if self.is_closed => Told::Gone,
            Op::Acquire | Op::Send | Op::Put(_) => Told::Done,
            Op::Get(queue) => {
                let queue_of = &self.queues[queue];
                queue_of.next(queue).map_or(Told::Failed, |at| Told::Value(queue_of.items[at]))
            }
            _ => self.state_of(&self.ops[&id]).expect("it is due"),
        })
    }

    /// An operation begins to wait for a state.
    fn begin_state(&mut self, id: usize, op: Op) {
        let now = self.now;
        self.arrived += usize::from(op == Op::Barrier);
        let mark = match op {
            Op::Event => self.sets,
            Op::Barrier => self.round,
            Op::Join(queue) => self.queues[queue].rounds,
            _ => 0,
        };
        let begun = self.begun(id);
        (begun.at, begun.mark) = (At::State, mark);
        if let Op::Sleep(span) | Op::Shielded(span) = op {
            begun.until = now + tenths(span);
        }
    }

    fn step_condition(&mut self, id: usize, op: Op) -> Option<Told> {
        loop {
            let holds = op == Op::ConditionEven && self.values[0].is_multiple_of(2);
            let Begun { at, relock, .. } = self.ops[&id];
            match (at, relock) {
                (At::New, _) if holds => return Some(Told::Done),
                (At::New, _) => self.unlock_and_wait(id),
                (At::Handed(CONDITION), _) => self.lock_again(id, Told::Done),
                (At::Out, _) => self.lock_again(id, Told::Interrupted),
                (At::Line(_), _) => return None,
                (_, Some(Told::Done)) if op == Op::ConditionEven && !holds => {
                    self.unlock_and_wait(id);
                }
                (_, relock) => return relock,
            }
        }
    }

    fn unlock_and_wait(&mut self, id: usize) {
        self.give(0);
        let begun = self.begun(id);
        (begun.relock, begun.is_interrupted) = (None, false);
        self.take_or_wait(id, CONDITION);
        self.block(id);
    }

    fn lock_again(&mut self, id: usize, how: Told) {
        let begun = self.begun(id);
        (begun.relock, begun.is_interrupted) = (Some(how), false);
        self.take_or_wait(id, 0);
    }

    /// The real operation was polled: it pends, or it was told something.
    pub fn settle(&mut self, id: usize, told: Option<Told>, is_cancelled: bool) {
        let due = self.step(id);
        let is_pending = self.is_pending(id);
        let Begun { task, op, at, blocked, travels, .. } = self.ops[&id];
        if let Some(told) = told {
            self.say(|| format!("{id} is told {told:?}"));
            self.hear(id, told, is_cancelled);
        }
        match (due, told) {
            (None, None) => {}
            (Some(due), Some(told)) if due == told => self.finish(id, told),
            // It looks once more in this run.
            (Some(Told::Interrupted), None) if blocked == self.poll => {}
            // A wake that was meant for another kept the interrupt from it, until it waits again.
            (Some(Told::Interrupted), None) if self.is_stale && at == At::State => {}
            (Some(Told::Interrupted), Some(told))
                if self.is_stale
                    && at == At::State
                    && self.state_of(&self.ops[&id]) == Some(told) =>
            {
                self.finish(id, told);
            }
            // It was polled for another reason, in the same run.
            (Some(_), None) if op == Op::Yield => {}
            // What it was given is on its way.
            (Some(_), None) if self.is_on_its_way(op, at) => self.begun(id).travels = self.run,
            (Some(_), Some(Told::Interrupted)) if is_pending && travels == self.run => {
                self.finish(id, Told::Interrupted);
            }
            _ => {
                self.is_wrong(|| {
                    format!("{id} {op:?} of task {task} is told {told:?}, should be {due:?}")
                });
                if told.is_some() {
                    self.leave(id);
                }
            }
        }
    }

    /// Each interrupt has a reason, and each cancellation is told once.
    fn hear(&mut self, id: usize, told: Told, is_cancelled: bool) {
        let Begun { task, deadline, .. } = self.ops[&id];
        let is_right = match (told, is_cancelled) {
            (Told::Interrupted, true) => {
                self.cancelled[task] && !std::mem::replace(&mut self.told[task], true)
            }
            (Told::Interrupted, false) => deadline.is_some_and(|at| at <= self.now),
            _ => true,
        };
        if !is_right {
            self.is_wrong(|| format!("{id} is interrupted by nothing"));
        }
    }

    fn is_on_its_way(&self, op: Op, at: At) -> bool {
        let line = match at {
            At::Handed(line) => Some(line),
            _ => line_of(op),
        };
        line.is_some_and(|line| self.lines[line].touched == self.poll)
    }

    /// An operation ends, as it was told.
    fn finish(&mut self, id: usize, told: Told) {
        let Begun { op, at, end, .. } = self.ops[&id];
        if told == Told::Interrupted && !matches!(op, Op::Condition | Op::ConditionEven) {
            return self.leave(id);
        }
        match op {
            Op::Lock(lock) => self.values[lock] += 1,
            Op::Read => self.enter(),
            Op::Write => self.shared += 1,
            Op::Init(..) if at != At::New => {
                if let (Told::Value(value), At::Making(_)) = (told, at) {
                    self.cell = Some(value);
                }
                self.give(CELL);
            }
            Op::Send if told == Told::Done => self.items.push_back(end),
            Op::Put(queue) => self.put(queue, end),
            Op::Get(queue) => self.got(queue),
            Op::Recv => self.received(told),
            Op::Oneshot if told != Told::Gone => self.shots[end as usize].value = None,
            Op::Broadcast => self.heard(end, told),
            // What was looked at was seen.
            Op::Changed | Op::WatchEven => drop(self.watchers.insert(end, self.version)),
            _ => {}
        }
        self.ops.remove(&id);
    }

    /// An operation is interrupted or dropped. What it was handed goes to the next.
    pub fn leave(&mut self, id: usize) {
        let Some(begun) = self.ops.remove(&id) else { return };
        let Begun { op, at, relock, mark, is_woken, is_interrupted, .. } = begun;
        self.say(|| format!("{id} leaves from {at:?}"));
        // A wake that it did not read passes on to one who may wait for something newer.
        let has_wake = at == At::State && !is_interrupted;
        self.is_stale |= has_wake && (is_woken || self.is_due(&begun));
        match at {
            At::Line(line) => self.lines[line].waiting.retain(|it| *it != id),
            At::Handed(line) => self.give(line),
            At::Door => self.give(DOOR),
            At::Making(_) => self.give(CELL),
            At::State if op == Op::Barrier && self.round == mark => self.arrived -= 1,
            // The guard was in it.
            At::New if matches!(op, Op::Condition | Op::ConditionEven) => self.give(0),
            At::New | At::State | At::Out => {}
        }
        if relock == Some(Told::Done) {
            self.give(CONDITION);
        }
    }

    fn enter(&mut self) {
        self.readers += 1;
        self.give(DOOR);
    }

    fn put(&mut self, queue: usize, item: u64) {
        self.queues[queue].items.push(item);
        self.queues[queue].unfinished += 1;
        self.give(QUEUE_ITEMS + queue);
    }

    fn got(&mut self, queue: usize) {
        if let Some(at) = self.queues[queue].next(queue) {
            self.queues[queue].items.remove(at);
            self.give(QUEUE_ROOM + queue);
        }
    }

    fn received(&mut self, told: Told) {
        if let Told::Value(_) = told {
            self.items.pop_front();
            self.give(ROOM);
        }
    }

    fn heard(&mut self, listener: u64, told: Told) {
        let oldest = self.oldest();
        let at = self.listeners.get_mut(&listener).expect("it is not dropped");
        match told {
            Told::Value(_) => *at += 1,
            Told::Missed(_) => *at = oldest,
            _ => {}
        }
    }

    /// The task that makes the value of the cell begins, or ends.
    pub fn makes(&mut self, begins: bool) {
        self.makers = if begins { self.makers + 1 } else { self.makers - 1 };
        if self.makers > 1 || self.cell.is_some() {
            self.is_wrong(|| "the value of the cell is made twice".to_owned());
        }
    }

    // ---- The end ---------------------------------------------------------------------------

    /// All tasks have ended: nobody waits, nothing is held.
    pub fn check_end(&mut self) {
        self.expect("operations left", self.ops.len(), 0);
        self.expect("readers left", self.readers, 0);
        self.expect("arrived at the barrier", self.arrived, 0);
        self.expect("permits free", self.free(PERMITS), self.all_permits);
        for line in [0, 1, DOOR, CELL] {
            self.expect("locks free", self.free(line), 1);
        }
        for queue in 0..3 {
            let (free, items) = (self.free(QUEUE_ITEMS + queue), self.queues[queue].items.len());
            self.expect("items for permits", free as usize, items);
        }
    }
}

/// In which line an operation stands first; `None` if it waits for a state.
fn line_of(op: Op) -> Option<usize> {
    match op {
        Op::Lock(lock) => Some(lock),
        Op::Acquire => Some(PERMITS),
        Op::Read | Op::Write => Some(DOOR),
        Op::Init(..) => Some(CELL),
        Op::Send => Some(ROOM),
        Op::Put(queue) => Some(QUEUE_ROOM + queue),
        Op::Get(queue) => Some(QUEUE_ITEMS + queue),
        _ => None,
    }
}
