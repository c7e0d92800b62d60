//! What the programs of `moves.rs` are made of: the world that their tasks share, and the futures
//! that they hand to each other.

mod pieces;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::FutureExt;
use kernel::{Sim, SimClock};
use traps::io::{Direction, Io, Scripted};
use traps::sync::{Event, Mutex};
use traps::universal::UniversalQueue;
use traps::{
    Interrupt, Interruptible, OutsideWaker, Signal, SignalStream, Task, TaskId, Time, WaitQueue,
};

use pieces::leaf_or_node;
use support::kernels::{Oneshot, tenths};

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
}

pub type Out = Result<(), Interrupt>;
pub type Step = Pin<Box<dyn Future<Output = Out>>>;

/// The reasons of the cancellations, so that each is known by its own.
pub const REASONS: [&str; 24] = [
    "r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07", "r08", "r09", "r10", "r11", "r12",
    "r13", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23",
];

/// The kinds of futures; a program has some of them.
pub const KINDS: [&str; 18] = [
    "sleep",
    "timeout",
    "bare",
    "join",
    "group",
    "next_done",
    "queue",
    "permit",
    "lock",
    "event",
    "universal",
    "signal",
    "io",
    "thread",
    "foreign",
    "outside",
    "branches",
    "shield",
];

/// The kinds that tell an interrupt some time after they have read it: a group cleans up before.
const CARRIERS: [&str; 2] = ["group", "next_done"];

/// How many permits a queue has.
pub const PERMITS: u32 = 2;
/// How many edges each descriptor has, and how often the signal comes.
pub const EDGES: u64 = 3;

/// What belongs to one of the two kernels, of which the second one comes after the first.
pub struct Side {
    pub clock: SimClock,
    pub start: Time,
    pub queue: WaitQueue,
    pub permits: WaitQueue,
    pub lock: Rc<Mutex<u64>>,
    pub event: Rc<Event>,
    pub ios: Vec<Rc<Io<Scripted>>>,
    pub stream: RefCell<Option<SignalStream>>,
    /// What was heard, by [`IO`] and so on.
    pub heard: [Heard; 4],
}

/// What tells of something that happens outside: the two descriptors, and the signal to those who
/// wait for any and to the stream.
pub const IO: usize = 0;
pub const ANY: usize = 2;
pub const STREAM: usize = 3;

/// How often something was heard.
#[derive(Default)]
pub struct Heard {
    pub times: Cell<u64>,
    pub last: Cell<Option<Time>>,
    /// When somebody waited for it first.
    pub asked: Cell<Option<Time>>,
}

impl Side {
    pub fn new(clock: SimClock) -> Side {
        Side {
            start: clock.now(),
            clock,
            queue: WaitQueue::new(),
            permits: WaitQueue::with_permits(PERMITS),
            lock: Rc::new(Mutex::new(0)),
            event: Rc::new(Event::new()),
            ios: (0..2).map(|n| Rc::new(Io::new(Scripted(n)))).collect(),
            stream: RefCell::new(Some(traps::signals(&[Signal::User1]))),
            heard: Default::default(),
        }
    }

    pub fn ask(&self, what: usize) {
        let heard = &self.heard[what];
        heard.asked.set(heard.asked.get().or(Some(self.clock.now())));
    }

    pub fn hear(&self, what: usize) {
        let heard = &self.heard[what];
        heard.times.set(heard.times.get() + 1);
        heard.last.set(Some(self.clock.now()));
    }

    /// Whether the last of what came has been heard by nobody, and was asked for before.
    pub fn is_due(&self, what: usize) -> bool {
        let heard = &self.heard[what];
        let after_edge = if what < ANY { Duration::ZERO } else { AFTER_EDGE };
        let last = self.start + tenths(3 * (EDGES - 1) + 1) + after_edge;
        heard.asked.get().is_some_and(|at| at < last) && heard.last.get() < Some(last)
    }
}

/// When the signal comes after an edge.
const AFTER_EDGE: Duration = Duration::from_millis(50);

/// A machine with the edges and signals that [`EDGES`] says.
pub fn machine(start: Time) -> Sim {
    let mut machine = Sim::starting_at(start).jobs_take(tenths(2));
    for n in 0..EDGES {
        let at = start + tenths(3 * n + 1);
        for descriptor in 0..2 {
            machine = machine.ready_at(at, descriptor, Direction::Read);
        }
        machine = machine.signal_at(at + AFTER_EDGE, Signal::User1);
    }
    machine
}

/// A task that may be cancelled.
pub struct Target {
    pub number: usize,
    pub task: Rc<Task<()>>,
    pub side: usize,
}

/// A future on its way, and where it was polled last.
pub struct Piece {
    step: Step,
    pub is_done: bool,
    pub way: Rc<Way>,
}

/// Where a future has been.
#[derive(Default)]
pub struct Way {
    /// The kernel and the task of its last poll.
    pub last: Cell<Option<(usize, usize)>>,
    /// Those of all its polls before it moved.
    pub before: RefCell<BTreeSet<(usize, usize)>>,
    pub has_crossed: Cell<bool>,
}

/// What all tasks of a program share, in both kernels.
pub struct World {
    pub dice: RefCell<Dice>,
    pub kinds: Vec<&'static str>,
    pub sides: [Side; 2],
    /// The kernel that runs, and the task in whose name the program acts.
    pub here: Cell<usize>,
    pub shelf: RefCell<Vec<Piece>>,
    /// Of all pieces that are alive, wherever they are.
    pub ways: RefCell<Vec<Weak<Way>>>,
    pub targets: RefCell<Vec<Target>>,
    /// By the number of a target, the reason of its first cancellation, if that was asked for in
    /// its own kernel.
    pub cancelled: RefCell<BTreeMap<usize, Option<&'static str>>>,
    pub target_numbers: Cell<usize>,
    pub spawned: Cell<u32>,
    pub reasons: Cell<usize>,
    pub numbers: Cell<u64>,
    pub branches: Cell<u64>,
    pub has_crossed: Cell<bool>,
    pub closing: Cell<bool>,
    pub told: RefCell<BTreeMap<&'static str, u64>>,
    /// By the reason of a cancellation, the kernel and the task that it is for.
    pub owners: RefCell<BTreeMap<&'static str, (usize, TaskId)>>,
    /// By the reason of a cancellation, how many waits it may have found at once.
    pub at_once: RefCell<BTreeMap<&'static str, u64>>,
    /// Outputs of tasks, members and jobs that were given.
    pub given: RefCell<BTreeSet<u64>>,
    pub jobs: Arc<AtomicU64>,
    pub jobs_given: Cell<u64>,
    pub jobs_orphaned: Cell<u64>,
    pub items: UniversalQueue<u64>,
    pub items_put: RefCell<BTreeSet<u64>>,
    pub items_refused: RefCell<BTreeSet<u64>>,
    pub items_got: RefCell<BTreeSet<u64>>,
    pub shots: RefCell<Vec<Oneshot<u64>>>,
    pub wakers: RefCell<Vec<OutsideWaker>>,
    /// What happened, to be compared.
    pub outcomes: RefCell<Vec<(&'static str, String, Time)>>,
    /// What is wrong: its class, and more.
    pub wrong: RefCell<Vec<(String, String)>>,
}

impl World {
    pub fn new(seed: u64, kinds: Vec<&'static str>, sides: [Side; 2]) -> World {
        World {
            dice: RefCell::new(Dice(seed)),
            kinds,
            sides,
            here: Cell::new(0),
            shelf: RefCell::default(),
            ways: RefCell::default(),
            at_once: RefCell::default(),
            targets: RefCell::default(),
            spawned: Cell::new(0),
            reasons: Cell::new(0),
            numbers: Cell::new(0),
            branches: Cell::new(0),
            has_crossed: Cell::new(false),
            closing: Cell::new(false),
            told: RefCell::default(),
            owners: RefCell::default(),
            given: RefCell::default(),
            jobs: Arc::default(),
            jobs_given: Cell::new(0),
            jobs_orphaned: Cell::new(0),
            target_numbers: Cell::new(0),
            cancelled: RefCell::default(),
            items: UniversalQueue::new(2),
            items_put: RefCell::default(),
            items_refused: RefCell::default(),
            items_got: RefCell::default(),
            shots: RefCell::default(),
            wakers: RefCell::default(),
            outcomes: RefCell::default(),
            wrong: RefCell::default(),
        }
    }

    pub fn roll(&self, sides: u64) -> u64 {
        self.dice.borrow_mut().roll(sides)
    }

    /// Few spans, so that there are many ties.
    pub fn span(&self) -> Duration {
        tenths(self.roll(5))
    }

    pub fn side(&self) -> &Side {
        &self.sides[self.here.get()]
    }

    pub fn now(&self) -> Time {
        self.side().clock.now()
    }

    pub fn number(&self) -> u64 {
        self.numbers.set(self.numbers.get() + 1);
        self.numbers.get()
    }

    pub fn is_wrong(&self, class: &str, what: impl Into<String>) {
        self.wrong.borrow_mut().push((class.to_owned(), what.into()));
    }

    /// Notes how something ended, as the code that asked for it is told.
    pub fn note<T, E: Interruptible>(&self, what: &'static str, end: Result<T, E>) -> Out {
        let why = end.as_ref().err().and_then(Interruptible::interrupt).cloned();
        let said = match (&end, &why) {
            (Ok(_), _) => "ok".to_owned(),
            (_, Some(why)) => format!("{:?}", why.kind()),
            _ => "error".to_owned(),
        };
        self.outcomes.borrow_mut().push((what, said, self.now()));
        let Some(why) = why else { return Ok(()) };
        if let Some(reason) = REASONS.iter().find(|it| why.is_cancelled() && **it == why.reason()) {
            let mut told = self.told.borrow_mut();
            let times = told.entry(reason).or_default();
            *times += 1;
            let reader = (self.here.get(), traps::current_task());
            let owner = self.owners.borrow().get(reason).copied();
            if owner.is_some_and(|owner| owner != reader) && !CARRIERS.contains(&what) {
                self.is_wrong("cancellation told to another", format!("{reason} in {what}"));
            }
            let at_once = self.at_once.borrow().get(reason).copied().unwrap_or(0);
            if *times > 1 + at_once + self.branches.get() {
                self.is_wrong("cancellation told twice", format!("{reason} in {what}"));
            }
        }
        Err(why)
    }

    /// An output of a task or a job is given.
    pub fn give(&self, what: &str, number: u64) {
        if !self.given.borrow_mut().insert(number) {
            self.is_wrong("output given twice", format!("{what} {number}"));
        }
    }

    /// For the name of a class.
    pub fn crossed(&self) -> &'static str {
        if self.has_crossed.get() { " where futures outlive a kernel" } else { "" }
    }

    pub fn got(&self, item: u64) {
        if !self.items_got.borrow_mut().insert(item) {
            self.is_wrong("item given twice", format!("item {item}"));
        }
    }

    /// A job that nobody heard of has ended.
    pub fn orphan(&self) {
        self.jobs_orphaned.set(self.jobs_orphaned.get() + 1);
    }

    /// How many pieces were polled last in that task.
    pub fn pieces_of(&self, side: usize, task: usize) -> u64 {
        self.ways.borrow_mut().retain(|way| way.strong_count() > 0);
        let ways = self.ways.borrow();
        let lasts = ways.iter().filter_map(|way| way.upgrade()?.last.get());
        lasts.filter(|last| *last == (side, task)).count() as u64
    }

    /// A piece leaves the task that polled it last. An interrupt that it has not told may end all
    /// that the task waits for.
    pub fn leaves(&self, piece: &Piece) {
        let Some((side, task)) = piece.way.last.get() else { return };
        if let Some(Some(reason)) = self.cancelled.borrow().get(&task) {
            let pieces = self.pieces_of(side, task);
            *self.at_once.borrow_mut().entry(reason).or_default() += pieces;
        }
    }

    /// Whether pieces tell interrupts that they have read in an earlier task.
    pub fn carries(&self) -> bool {
        self.kinds.iter().any(|kind| CARRIERS.contains(kind))
    }

    /// Whether a piece that is alive may have an interrupt of that task that it has not told: it
    /// was polled there last, or it can take along what it has read.
    pub fn is_on_its_way(&self, side: usize, task: usize) -> bool {
        let ways = self.ways.borrow();
        let mut alive = ways.iter().filter_map(Weak::upgrade);
        alive.any(|way| {
            let was_there = self.carries() && way.before.borrow().contains(&(side, task));
            way.last.get() == Some((side, task)) || was_there
        })
    }

    pub fn new_target(&self) -> usize {
        self.target_numbers.set(self.target_numbers.get() + 1);
        self.target_numbers.get()
    }

    /// Of permits, items, signals, edges and jobs, none is lost or doubled. For the end, when all
    /// futures are gone.
    pub fn check_conservation(&self) {
        for side in &self.sides {
            let mut free = 0;
            while side.permits.try_take_permit() {
                free += 1;
            }
            if free != PERMITS {
                self.is_wrong("permit lost or doubled", format!("{free} of {PERMITS}"));
            }
            if side.lock.try_lock().is_none() {
                self.is_wrong("permit lost or doubled", "the lock is held");
            }
            for (what, heard) in side.heard.iter().enumerate() {
                if heard.times.get() > EDGES {
                    let class = if what < ANY { "edge doubled" } else { "signal doubled" };
                    self.is_wrong(class, format!("{} of {EDGES}", heard.times.get()));
                }
            }
            let waiting = side.queue.waiting() + side.permits.waiting();
            if waiting > 0 {
                self.is_wrong("left", format!("{waiting} waits in queues"));
            }
        }
        while let Ok(item) = self.items.try_get() {
            self.got(item);
        }
        let (put, got) = (self.items_put.borrow(), self.items_got.borrow());
        if let Some(lost) = put.difference(&got).next() {
            self.is_wrong("item lost", format!("item {lost}"));
        }
        if let Some(back) = self.items_refused.borrow().intersection(&got).next() {
            self.is_wrong("item given twice", format!("item {back} was refused"));
        }
        if self.items.waiting() > 0 {
            self.is_wrong("left", "waits at the universal queue");
        }
        let (run, given) = (self.jobs.load(Ordering::Relaxed), self.jobs_given.get());
        let orphaned = self.jobs_orphaned.get();
        if run != given + orphaned {
            let what = format!("{run} ran, {given} were given, {orphaned} orphans");
            self.is_wrong("job lost or doubled", what);
        }
    }

    /// Checks that nothing is early.
    pub fn lower_bound(&self, what: &str, way: &Way, since: Time, span: Duration) {
        if !way.has_crossed.get() && self.now() < since + span {
            let class = format!("too early{}", self.crossed());
            let what = format!("{what} of {span:?} from {since} ends at {}", self.now());
            self.is_wrong(&class, what);
        }
    }
}

/// A new future of one of the program's kinds.
pub fn new_piece(world: &Rc<World>) -> Piece {
    let way = Rc::new(Way::default());
    world.ways.borrow_mut().push(Rc::downgrade(&way));
    let step = leaf_or_node(world, &way, 2);
    let (w, caught) = (world.clone(), AssertUnwindSafe(step).catch_unwind());
    let step = async move {
        caught.await.unwrap_or_else(|panic| {
            w.is_wrong("panic", traps::internal::panic_message(&*panic));
            Ok(())
        })
    };
    Piece { step: Box::pin(step), is_done: false, way }
}

/// A piece in the hands of a task.
pub struct InHand<'p> {
    pub world: &'p World,
    pub task: usize,
    pub piece: &'p mut Piece,
}

impl Future for InHand<'_> {
    type Output = Out;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Out> {
        let here = (self.world.here.get(), self.task);
        if self.piece.way.last.get() != Some(here) {
            self.world.leaves(self.piece);
        }
        let way = &self.piece.way;
        if let Some(last) = way.last.replace(Some(here)).filter(|last| *last != here) {
            way.before.borrow_mut().insert(last);
            if last.0 != here.0 {
                way.has_crossed.set(true);
                self.world.has_crossed.set(true);
            }
        }
        if self.piece.is_done {
            return Poll::Ready(Ok(()));
        }
        let polled = self.piece.step.as_mut().poll(cx);
        self.piece.is_done = polled.is_ready();
        polled
    }
}
