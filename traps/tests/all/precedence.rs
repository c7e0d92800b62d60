//! The precedence of several events that reach a parked task before it runs again.
//!
//! Every order of events that a turn allows is arranged, in several nestings of scopes, and what
//! the task sees is compared with a model. The model knows the rules as they are written, and
//! nothing of the kernel's tables:
//!
//! - a value that is there stands: a trap that has ended is not interrupted (in a race, the other
//!   side is);
//! - an interrupt that was delivered stands too: what comes after it is due behind it;
//! - what could not be delivered is due at the next blocking trap that it reaches: the
//!   cancellation first, then the timeouts, in the order in which they fired;
//! - the end of a block drops its own timeout, and those around it that have fired are due again;
//! - a shield lets nothing in from outside.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use kernel::Sim;
use support::{Ran, check_quietly, ms, short, short_kind};
use traps::io::{Direction, Io, Scripted};
use traps::{
    Either, Interrupt, Interruptible, Task, Time, WaitQueue, race, shield, sleep, spawn,
    timeout_at, yield_now,
};

// ---- The events and their times ------------------------------------------------------------

/// An event that reaches the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The descriptor that it waits for is ready.
    Io,
    /// Another task wakes the queue that it waits at.
    Wake,
    /// The deadline of the inner block passes.
    Own,
    /// The deadline of the block around it passes.
    Enclosing,
    /// Another task cancels it.
    Cancel,
}

/// The time of an event: a step in the turns around the task's next run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    /// Step 5 of the turn before, after the task.
    Before,
    /// Step 2.
    Arrivals,
    /// Step 4.
    Deadlines,
    /// Step 5, before the task.
    Ahead,
    /// After the task, which has run and waits for another event.
    Behind,
}

/// The events, in order.
type Order = Vec<(When, What)>;

/// Returns every order of every selection except the empty one.
fn orders() -> Vec<Order> {
    use What::*;
    use When::*;
    let io: [Order; 2] = [vec![], vec![(Arrivals, Io)]];
    let wakes: [Order; 3] = [vec![], vec![(Before, Wake)], vec![(Ahead, Wake)]];
    let (own, enclosing) = ((Deadlines, Own), (Deadlines, Enclosing));
    let deadlines: [Order; 5] =
        [vec![], vec![own], vec![enclosing], vec![own, enclosing], vec![enclosing, own]];
    let cancels: [Order; 4] =
        [vec![], vec![(Before, Cancel)], vec![(Ahead, Cancel)], vec![(Behind, Cancel)]];
    let mut all = Vec::new();
    for (io, wake) in io.iter().flat_map(|io| wakes.iter().map(move |wake| (io, wake))) {
        for deadlines in &deadlines {
            for cancel in &cancels {
                // Two events of one step have either order, because `sort` is stable.
                for parts in [[io, wake, deadlines, cancel], [io, cancel, deadlines, wake]] {
                    let mut order: Order = parts.into_iter().flatten().copied().collect();
                    order.sort_by_key(|(when, _)| *when);
                    all.push(order);
                }
            }
        }
    }
    all.sort();
    all.dedup();
    all.retain(|order| !order.is_empty());
    all
}

// ---- Where the task waits ------------------------------------------------------------------

/// A scope around the task's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// The block whose deadline is [`What::Own`], without a limit if that does not happen.
    Own,
    /// The block whose deadline is [`What::Enclosing`].
    Enclosing,
    /// A block whose deadline is far away.
    Far,
    /// A shield.
    Shield,
}

impl Level {
    fn is_shield(self) -> bool {
        matches!(self, Level::Shield)
    }
}

/// The number of blocking traps after the wait in each scope: one more than there are interrupts.
const OPS: usize = 4;

// ---- The model -----------------------------------------------------------------------------

/// The origin of an interrupt: outside of all scopes, or the scope at a place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Cancel,
    Level(usize),
}

/// The model: the rules, and nothing else.
struct Model<'a> {
    order: &'a Order,
    chain: &'a [Level],
    /// Timeouts that have fired, in order.
    fired: Vec<usize>,
    /// Interrupts that the next blocking trap in their reach gets.
    due: Vec<Origin>,
    /// Whether a cancellation comes after the task has run.
    to_come: bool,
    notes: Vec<String>,
}

/// The log's text if the wake has found the first wait.
const WOKEN: &str = "victim   wake     wait q";

/// The state of one side of the first wait.
#[derive(Clone, Copy, PartialEq)]
enum First {
    Nothing,
    Value,
    Interrupted(Origin),
}

impl Model<'_> {
    /// Returns the notes of the task, and the number of waiters that a wake in the order finds.
    fn expects(order: &Order, chain: &[Level]) -> (String, Option<usize>) {
        let (fired, due, notes) = (Vec::new(), Vec::new(), Vec::new());
        let mut model = Model { order, chain, fired, due, to_come: false, notes };
        let found = model.first_wait();
        for depth in (0..=chain.len()).rev() {
            model.ops(depth);
            if depth > 0 {
                model.leave(depth - 1);
            }
        }
        (model.notes.join(" "), found)
    }

    /// Returns whether an interrupt reaches a trap inside the first `depth` scopes.
    fn reaches(&self, from: Origin, depth: usize) -> bool {
        let outside = match from {
            Origin::Cancel => 0,
            Origin::Level(place) => place + 1,
        };
        outside <= depth && !self.chain[outside..depth].iter().any(|level| level.is_shield())
    }

    /// Returns an interrupt's name there: a timeout is its own only if no other is nearer.
    fn name(&self, from: Origin, depth: usize) -> &'static str {
        let is_timeout = |place: &usize| !self.chain[*place].is_shield();
        match from {
            Origin::Cancel => "CAN",
            Origin::Level(place) if (0..depth).rev().find(is_timeout) == Some(place) => "TT",
            Origin::Level(_) => "TCE",
        }
    }

    fn becomes_due(&mut self, from: Origin) {
        if !self.due.contains(&from) {
            self.due.push(from);
        }
    }

    /// Returns the number of waiters that the wake in the order will find, if it has a wake.
    fn first_wait(&mut self) -> Option<usize> {
        let depth = self.chain.len();
        let comes = |what: What| self.order.iter().any(|(_, each)| *each == what);
        // The task waits for both in a race, and each side has its own state.
        let mut sides = vec![(What::Io, First::Nothing), (What::Wake, First::Nothing)];
        sides.retain(|(what, _)| comes(*what) || *what == What::Wake && !comes(What::Io));
        let mut found = None;
        for (when, what) in self.order {
            let place = |wanted| self.chain.iter().position(|level| *level == wanted);
            let from = match what {
                What::Io | What::Wake => {
                    let (_, side) = sides.iter_mut().find(|(each, _)| each == what).unwrap();
                    let waits = *side == First::Nothing;
                    if waits {
                        *side = First::Value;
                    }
                    if *what == What::Wake {
                        found = Some(usize::from(waits));
                    }
                    continue;
                }
                What::Own => Origin::Level(place(Level::Own).expect("it is in every chain")),
                What::Enclosing => Origin::Level(place(Level::Enclosing).expect("so is this")),
                What::Cancel if *when == When::Behind => {
                    self.to_come = true;
                    continue;
                }
                What::Cancel => Origin::Cancel,
            };
            if let Origin::Level(place) = from {
                self.fired.push(place);
            }
            self.becomes_due(from);
            for (_, side) in sides.iter_mut().filter(|_| self.reaches(from, depth)) {
                if *side == First::Nothing {
                    *side = First::Interrupted(from);
                }
            }
        }
        // The first side that has a result. If no side has one, the task is woken in the end.
        let end = sides.iter().find(|(_, side)| *side != First::Nothing);
        self.notes.push(match end.unwrap_or(&(What::Wake, First::Value)) {
            (_, First::Interrupted(from)) => {
                // All other interrupts are still due.
                self.due.retain(|each| each != from);
                self.name(*from, depth).to_owned()
            }
            (What::Io, _) => "io".to_owned(),
            _ => "wake".to_owned(),
        });
        found
    }

    /// Blocking traps inside the first `depth` scopes.
    fn ops(&mut self, depth: usize) {
        for _ in 0..OPS {
            let rank = |from: &Origin| match from {
                Origin::Cancel => 0,
                Origin::Level(place) => {
                    1 + self.fired.iter().position(|fired| fired == place).expect("it fired")
                }
            };
            let here = self.due.iter().filter(|from| self.reaches(**from, depth));
            let next = here.min_by_key(|from| rank(from)).copied();
            let next = next.or_else(|| {
                // The task parks, and this interrupt reaches it there.
                let comes = std::mem::take(&mut self.to_come).then_some(Origin::Cancel)?;
                if self.reaches(comes, depth) {
                    return Some(comes);
                }
                self.due.push(comes);
                None
            });
            self.due.retain(|from| Some(*from) != next);
            self.notes.push(next.map_or("ok", |from| self.name(from, depth)).to_owned());
        }
    }

    fn leave(&mut self, place: usize) {
        self.due.retain(|from| *from != Origin::Level(place));
        if self.chain[place].is_shield() {
            return;
        }
        for outer in self.fired.clone() {
            // The interrupts that would reach a trap in the scope that closes now.
            if outer < place && self.reaches(Origin::Level(outer), place) {
                self.becomes_due(Origin::Level(outer));
            }
        }
    }
}

// ---- The arrangement -----------------------------------------------------------------------

/// The state that the task of one run shares with the tasks that act on it.
struct World {
    order: Order,
    /// Whether the deadlines are equal.
    tie: bool,
    chain: Vec<Level>,
    queue: WaitQueue,
    notes: RefCell<Vec<String>>,
    /// Whether the first wait is over.
    has_run: Cell<bool>,
    /// Whether the turn has come.
    now: Cell<bool>,
}

impl World {
    fn note(&self, note: &str) {
        self.notes.borrow_mut().push(note.to_owned());
    }

    fn has(&self, wanted: What) -> bool {
        self.order.iter().any(|(_, what)| *what == wanted)
    }

    /// Returns the time of a deadline, if it passes. One later turn finds all of them.
    fn deadline(&self, wanted: What) -> Option<Time> {
        let place = self.order.iter().position(|(_, what)| *what == wanted)?;
        let place = if self.tie { 0 } else { place as u64 };
        Some(Time::ZERO + ms(10 + place))
    }

    /// Waits for the values of the two that will come.
    async fn first_wait(&self, io: &Io<Scripted>) {
        let by_io = async { io.readable().await.map(|()| "io") };
        let by_wake =
            async { self.queue.wait().await.map(|()| "wake").map_err(traps::Error::from) };
        let end = match (self.has(What::Io), self.has(What::Wake)) {
            (true, true) => match race(by_io, by_wake).await {
                Either::Left(end) | Either::Right(end) => end,
            },
            // In a shield the deadlines do not end the wait, and perhaps no other event happens.
            (true, false) => by_io.await,
            (false, _) => by_wake.await,
        };
        self.note(match &end {
            Ok(word) => word,
            Err(error) => short_kind(error.interrupt().expect("no other error").kind()),
        });
        self.has_run.set(true);
    }

    async fn ops(&self) {
        for _ in 0..OPS {
            self.note(short(&sleep(ms(1)).await));
        }
    }

    /// Does the actions of other tasks at this time, in order.
    async fn act(&self, now: When, victim: &Task<()>) {
        for (when, what) in &self.order {
            match what {
                What::Wake if *when == now => self.queue.wake(1),
                What::Cancel if *when == now => victim.cancel_now(""),
                _ => {}
            }
        }
    }
}

/// A block that ends with a value, whatever happens inside.
async fn block(limit: Option<Time>, body: impl Future<Output = ()>) {
    let inner = async {
        body.await;
        Ok::<_, Interrupt>(())
    };
    timeout_at(limit, inner).await.expect("what comes is swallowed inside");
}

/// The scopes from `depth` inwards, with the wait in the innermost, and traps after it in each.
fn inside(
    world: &Rc<World>,
    io: &Rc<Io<Scripted>>,
    depth: usize,
) -> Pin<Box<dyn Future<Output = ()>>> {
    let (world, io) = (world.clone(), io.clone());
    Box::pin(async move {
        let Some(level) = world.chain.get(depth).copied() else {
            world.first_wait(&io).await;
            return world.ops().await;
        };
        let body = inside(&world, &io, depth + 1);
        match level {
            Level::Own => block(world.deadline(What::Own), body).await,
            Level::Enclosing => block(world.deadline(What::Enclosing), body).await,
            Level::Far => block(Some(Time::from_micros(100_000_000)), body).await,
            Level::Shield => shield(body).await,
        }
        world.ops().await;
    })
}

/// The number of turns without a poll of the machine while tasks hand work to each other.
const UNSEEN: u32 = 61;

/// One run. Other tasks act before the task and after it. `ahead` yields each turn, so it is ready
/// before any event of the task. Main comes after both.
fn run(name: &str, order: &Order, tie: bool, chain: &[Level]) -> (Ran<()>, Rc<World>) {
    let sim = Sim::new().ready_at(Time::ZERO + ms(20), 1, Direction::Read);
    let virtual_clock = sim.clock();
    let world = Rc::new(World {
        order: order.clone(),
        tie,
        chain: chain.to_vec(),
        queue: WaitQueue::new(),
        notes: RefCell::default(),
        has_run: Cell::new(false),
        now: Cell::new(false),
    });
    let ran = check_quietly(name, sim, async {
        // This is turn 1. The last turn without a poll is the one before the turn that counts.
        for _ in 3..UNSEEN {
            yield_now().await.unwrap();
        }
        let ours = world.clone();
        let task = async move {
            let io = Rc::new(Io::new(Scripted(1)));
            inside(&ours, &io, 0).await;
            if ours.has(What::Io) && ours.notes.borrow()[0] != "io" {
                // The readiness is not lost: it was remembered.
                io.readable().await.expect("nothing interrupts it");
            }
        };
        let task = Rc::new(spawn("victim", task).await);
        let (ours, victim) = (world.clone(), task.clone());
        let ahead = async move {
            while !ours.now.get() {
                yield_now().await.unwrap();
            }
            ours.act(When::Ahead, &victim).await;
        };
        spawn("ahead", ahead).await;
        for _ in 0..2 {
            yield_now().await.unwrap();
        }
        world.now.set(true);
        world.act(When::Before, &task).await;
        virtual_clock.advance(ms(30));
        for turn in 0.. {
            yield_now().await.unwrap();
            if world.has_run.get() {
                break;
            }
            if turn == 3 {
                world.queue.wake(1);
            }
            assert!(turn < 9, "it waits for ever");
        }
        world.act(When::Behind, &task).await;
        task.wait().await.unwrap();
    });
    (ran, world)
}

/// Returns whether the trace has the events in the intended order.
fn in_order(ran: &Ran<()>, order: &Order, chain: &[Level]) {
    let scope = |wanted: Level| chain.iter().position(|level| *level == wanted).unwrap() + 1;
    let mut after = 0;
    for (when, what) in order {
        let words = match what {
            What::Io => ["io f1 read", "remember f1"].map(str::to_owned).to_vec(),
            What::Wake => vec![WOKEN.to_owned()],
            What::Own => vec![format!("fire     s{} ", scope(Level::Own))],
            What::Enclosing => vec![format!("fire     s{} ", scope(Level::Enclosing))],
            What::Cancel => vec!["victim   cancel   by=".to_owned()],
        };
        let is_it = |line: &str| {
            words.iter().any(|word| line.contains(word.as_str()))
                && !["block", "await"].iter().any(|verb| line.contains(verb))
        };
        let lines = ran.lines(|_| true);
        let Some(place) = lines.iter().position(|line| is_it(line)) else {
            assert_eq!(*what, What::Wake, "only a wake may find nobody");
            continue;
        };
        assert!(place >= after, "{when:?} {what:?}\n{}", story(ran));
        after = place;
    }
}

/// Returns the lines of the turns that count.
fn story(ran: &Ran<()>) -> String {
    let turn = |line: &str| line.split_whitespace().nth(1).unwrap().parse::<u32>().unwrap();
    ran.lines(|line| turn(line) <= 2 || turn(line) >= UNSEEN).join("\n")
}

#[track_caller]
fn every_order(name: &str, chain: &[Level]) {
    let all = orders();
    assert_eq!(all.len(), 139);
    for order in all {
        let (expected, found) = Model::expects(&order, chain);
        // Of equal deadlines the outer one fires first.
        let deadlines = [What::Enclosing, What::Own].map(|what| (When::Deadlines, what));
        let may_tie = order.windows(2).any(|two| two == deadlines);
        for tie in [false, true].into_iter().filter(|tie| !tie || may_tie) {
            let (ran, world) = run(name, &order, tie, chain);
            in_order(&ran, &order, chain);
            let noted = world.notes.borrow().join(" ");
            let what = || format!("{order:?} tie={tie} in {chain:?}\n{}", story(&ran));
            assert_eq!(noted, expected, "{}", what());
            if let Some(found) = found {
                assert_eq!(ran.lines(|line| line.contains(WOKEN)).len(), found, "{}", what());
            }
        }
    }
}

#[test]
fn x2_every_order_plain() {
    every_order("x2_every_order_plain", &[Level::Enclosing, Level::Own]);
}

#[test]
fn x2_every_order_inside_a_shield() {
    use Level::{Enclosing, Own, Shield};
    let name = "x2_every_order_inside_a_shield";
    every_order(name, &[Enclosing, Own, Shield]);
    every_order(name, &[Enclosing, Shield, Own]);
    every_order(name, &[Shield, Enclosing, Own]);
}

#[test]
fn x2_every_order_inside_nested_timeouts() {
    use Level::{Enclosing, Far, Own};
    let name = "x2_every_order_inside_nested_timeouts";
    every_order(name, &[Far, Enclosing, Far, Own, Far]);
    every_order(name, &[Enclosing, Own, Far, Far]);
}

#[test]
fn x2_every_order_inside_both() {
    use Level::{Enclosing, Far, Own, Shield};
    let name = "x2_every_order_inside_both";
    every_order(name, &[Enclosing, Far, Shield, Own, Far, Shield, Far]);
}
