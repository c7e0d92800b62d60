//! Random programs of everything that a task may do: in each, nothing is left over, the oracle
//! accepts the trace, and the same seed makes the same bytes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::future::pending;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::{join, select_biased};
use kernel::{Kernel, Options, Policy, Sim, SimClock};
use log::LevelFilter;
use support::kernels::*;
use traps::io::{Direction, Io, Scripted};
use traps::sync::{Event, Mutex};
use traps::universal::{UniversalEvent, UniversalQueue};
use traps::{
    ConnectionDeadline, Interrupt, Kind, OutsideWaker, Signal, Task, TaskGroup, Time, WaitQueue,
    branch, budget, cancellable, check_cancellation, clock, connection_deadline, foreign,
    ignore_after, iterate_in_thread, outside, race, run_in_thread, shield, shutdown, signals,
    sleep, spawn, timeout_after, timeout_at, wait_signal, yield_now,
};

/// A generator that is the same everywhere (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

/// The payload of a panic by design.
struct Chaos;

type Out = Result<(), Interrupt>;
/// The end of a step: its time, its interrupt, and the number of shared deadlines that had fired.
type Told = (Time, Option<Kind>, usize);
type Step = Pin<Box<dyn Future<Output = Out>>>;

/// The state that all tasks of a program share.
struct World {
    dice: RefCell<Dice>,
    queue: WaitQueue,
    lock: Mutex<u64>,
    event: Event,
    /// A queue for tasks and threads, items ascending.
    shared: UniversalQueue<u64>,
    items: Cell<u64>,
    got: RefCell<BTreeSet<u64>>,
    flag: UniversalEvent,
    handles: RefCell<Vec<Task<Out>>>,
    deadlines: RefCell<Vec<Rc<ConnectionDeadline>>>,
    /// Futures on their way from one task to another.
    shelf: RefCell<Vec<Step>>,
    spawned: Cell<u32>,
    /// Whether the runs are over. A future that came to the shelf then would never leave it.
    closing: Cell<bool>,
    clock: SimClock,
    told: RefCell<Vec<Told>>,
    /// The wakers that may end a wait from outside.
    wakers: RefCell<Vec<OutsideWaker>>,
    /// Starts and stops the observer during a run. Not the dice, so the program stays the same.
    coin: Option<RefCell<Dice>>,
    /// Whether to take the steps of `another_step`, too, which take long to sweep.
    takes_all: bool,
}

impl World {
    fn roll(&self, sides: u64) -> u64 {
        self.dice.borrow_mut().roll(sides)
    }

    /// Few spans, so that there are many ties.
    fn span(&self) -> Duration {
        tenths(self.roll(5))
    }

    fn toss(&self) {
        if let Some(coin) = &self.coin {
            let levels = [LevelFilter::Off, LevelFilter::Debug];
            log::set_max_level(levels[coin.borrow_mut().roll(2) as usize]);
        }
    }
}

fn step(world: &Rc<World>, depth: u32) -> Step {
    let (w, step) = (world.clone(), any_step(world, depth));
    Box::pin(async move {
        w.toss();
        let end = step.await;
        let fired = w.deadlines.borrow().iter().filter(|deadline| deadline.fired()).count();
        let how = end.as_ref().err().map(Interrupt::kind);
        w.told.borrow_mut().push((w.clock.now(), how, fired));
        end
    })
}

fn any_step(world: &Rc<World>, depth: u32) -> Step {
    let w = world.clone();
    let leaf = depth == 0;
    let next = move || step(&w, depth - 1);
    let w = world.clone();
    // The steps of this function come first, and the leaves first of all.
    let kind = match (leaf, w.takes_all) {
        (true, false) => w.roll(18),
        (true, true) => w.roll(18 + LEAVES),
        (false, false) => w.roll(43),
        (false, true) => w.roll(43 + LEAVES + NODES),
    };
    match kind {
        18.. if leaf => another_leaf(&w, kind - 18),
        43.. => another_step(&w, kind - 43, depth),
        0..=3 => {
            let span = w.span();
            Box::pin(async move { sleep(span).await.map(drop) })
        }
        4 => Box::pin(async { yield_now().await }),
        5 => {
            let look = w.roll(3);
            Box::pin(async move {
                match look {
                    0 => drop(clock().await),
                    _ => check_cancellation().await?,
                }
                Ok(())
            })
        }
        6 => Box::pin(async move { w.queue.wait().await }),
        7 => Box::pin(async move {
            w.queue.wake(1 + w.roll(2));
            Ok(())
        }),
        8 => Box::pin(async move {
            let mut guard = w.lock.lock().await?;
            *guard += 1;
            let span = w.span();
            sleep(span).await.map(drop)
        }),
        9 => Box::pin(async move {
            let io = Io::new(Scripted(u32::try_from(w.roll(3)).unwrap() * 1000 + w.spawned.get()));
            match io.readable().await {
                Err(traps::Error::Interrupt(why)) => Err(why),
                _ => Ok(()),
            }
        }),
        10 => Box::pin(async {
            // A job belongs to one task. If it moves out of an ended task, it panics by rule.
            let job = AssertUnwindSafe(run_in_thread(|| 7)).catch_unwind();
            match job.await {
                Ok(Err(traps::Error::Interrupt(why))) => Err(why),
                _ => Ok(()),
            }
        }),
        11 => Box::pin(async { foreign(never::<()>()).await }),
        12 => Box::pin(async move {
            let span = w.span();
            let bare = async { never::<Out>().await };
            timeout_after(span, bare).await
        }),
        13 => Box::pin(async {
            let mut first = true;
            poll_fn(|cx| {
                if std::mem::take(&mut first) {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Ok(()))
            })
            .await
        }),
        14 => Box::pin(async {
            for _ in 0..40 {
                budget().await?;
            }
            Ok(())
        }),
        15 => match w.roll(4) {
            0 => Box::pin(async move {
                w.event.set();
                w.event.clear();
                w.event.wait().await
            }),
            1 => Box::pin(async move {
                let item = w.items.get() + 1;
                w.items.set(item);
                match w.shared.put(item).await {
                    Ok(()) => Ok(()),
                    Err(error) => {
                        assert_eq!(error.item, Some(item));
                        Err(interrupt_of(error.why))
                    }
                }
            }),
            2 => Box::pin(async move {
                let item = w.shared.get().await.map_err(interrupt_of)?;
                assert!(w.got.borrow_mut().insert(item), "{item} came twice");
                Ok(())
            }),
            _ => Box::pin(async move {
                if w.roll(2) == 0 {
                    w.flag.set();
                } else {
                    w.flag.clear();
                }
                w.flag.wait().await
            }),
        },
        16 => Box::pin(async {
            match wait_signal(&[traps::Signal::User1]).await {
                Err(traps::Error::Interrupt(why)) => Err(why),
                _ => Ok(()),
            }
        }),
        17 => Box::pin(async move {
            // A deadline that any task made. Any task arms it.
            if w.deadlines.borrow().len() < 3 {
                let fresh = Rc::new(connection_deadline().await);
                w.deadlines.borrow_mut().push(fresh);
            }
            let which = w.roll(w.deadlines.borrow().len() as u64) as usize;
            let deadline = w.deadlines.borrow()[which].clone();
            let next = w.roll(9);
            if next > 1 {
                deadline.arm(w.span());
            }
            // More actions in the run of an arm, which is held back until the run ends.
            match next {
                0 | 2 => deadline.disarm(),
                1 | 3 => drop(w.deadlines.borrow_mut().swap_remove(which)),
                4 => deadline.arm(w.span()),
                5 => deadline.arm(deadline.now() + w.span()),
                6 => return deadline.guard(w.span(), yield_now()).await,
                _ => {}
            }
            Ok(())
        }),
        36 | 37 => {
            let (span, inner) = (w.span(), next());
            Box::pin(async move { connection_deadline().await.guard(span, inner).await })
        }
        38 => {
            let (spans, a, b) = ([w.span(), w.span(), w.span()], next(), next());
            let swallow = w.roll(2) == 0;
            Box::pin(async move {
                let deadline = connection_deadline().await;
                let first = deadline.guard(spans[0], a).await;
                if !swallow {
                    first?;
                }
                let nested = async {
                    let end = deadline.guard(spans[1], b).await;
                    deadline.arm(spans[2]);
                    yield_now().await.and(end)
                };
                deadline.guard(spans[0], nested).await
            })
        }
        39 => {
            // One deadline under two branches, or in two tasks, at once.
            let (a, b) = (next(), next());
            let which = w.roll(3) as usize;
            Box::pin(async move {
                let shared = w.deadlines.borrow().get(which).cloned();
                let Some(deadline) = shared else { return a.await };
                let both = (w.span(), w.span());
                let (a, b) =
                    traps::join(deadline.guard(both.0, a), deadline.guard(both.1, b)).await;
                a.and(b)
            })
        }
        40 => {
            let (span, inner) = (w.span(), next());
            Box::pin(async move {
                let deadline = connection_deadline().await;
                deadline.arm(span);
                let end = inner.await;
                deadline.disarm();
                end
            })
        }
        41 => {
            let (span, inner) = (w.span(), next());
            let again = w.span();
            Box::pin(async move {
                let deadline = connection_deadline().await;
                let armed = async {
                    let end = inner.await;
                    deadline.arm(again);
                    end
                };
                let end = deadline.guard_task(span, armed).await;
                yield_now().await.and(end)
            })
        }
        42 => {
            // One after the other, with a scope between them.
            let (spans, a, b) = ([w.span(), w.span(), w.span()], next(), next());
            Box::pin(async move {
                let deadline = connection_deadline().await;
                let first = deadline.guard_task(spans[0], a).await;
                let second = deadline.guard(spans[1], b).await;
                deadline.guard_task(spans[2], yield_now()).await.and(first).and(second)
            })
        }
        18 | 19 => {
            let (span, inner) = (w.span(), next());
            Box::pin(async move { timeout_after(span, inner).await })
        }
        20 => {
            let (span, inner) = (w.span(), next());
            Box::pin(async move { ignore_after(span, inner).await.map(drop) })
        }
        21 => {
            let (inner, span, bounded) = (next(), w.span(), w.roll(2) == 0);
            Box::pin(async move {
                if bounded { shield(timeout_after(span, inner)).await } else { shield(inner).await }
            })
        }
        22 => {
            let (a, b) = (next(), next());
            Box::pin(async move {
                let (a, b) = traps::join(a, b).await;
                a.and(b)
            })
        }
        23 => {
            let (a, b) = (next(), next());
            Box::pin(async move {
                let (a, b) = join!(a, b);
                a.and(b)
            })
        }
        24 => {
            let (a, b) = (next(), next());
            Box::pin(async move {
                let (a, b) = join!(branch(a), branch(b));
                b.and(a)
            })
        }
        25 => {
            let (a, b) = (next(), next());
            Box::pin(async move {
                match race(a, b).await {
                    traps::Either::Left(end) | traps::Either::Right(end) => end,
                }
            })
        }
        26 => {
            let (a, b) = (next(), next());
            Box::pin(async move {
                select_biased! { end = a.fuse() => end, end = b.fuse() => end }
            })
        }
        27 => {
            let mut all: FuturesUnordered<Step> = (0..3).map(|_| next()).collect();
            let enough = w.roll(4);
            Box::pin(async move {
                let mut n = 0;
                while n < enough && all.next().await.is_some() {
                    n += 1;
                }
                Ok(())
            })
        }
        28 | 29 => {
            // One after the other. Half of the time, errors of the first are swallowed.
            let (a, b, swallow) = (next(), next(), w.roll(2) == 0);
            Box::pin(async move {
                let first = a.await;
                if !swallow {
                    first?;
                }
                b.await
            })
        }
        30 | 31 => {
            let inner = next();
            Box::pin(async move {
                if w.spawned.get() < 40 {
                    w.spawned.set(w.spawned.get() + 1);
                    let task = spawn("child", inner);
                    if w.roll(3) == 0 {
                        task.detached().await;
                    } else {
                        let task = task.await;
                        w.handles.borrow_mut().push(task);
                    }
                }
                Ok(())
            })
        }
        32 => Box::pin(async move {
            let task = w.handles.borrow_mut().pop();
            let Some(mut task) = task else { return Ok(()) };
            match w.roll(4) {
                0 => task.cancel_now("chaos"),
                1 => task.cancel_because("chaos").await?,
                2 => drop(task.join().await),
                _ => {}
            }
            if w.roll(2) == 0 {
                w.handles.borrow_mut().push(task);
            }
            Ok(())
        }),
        33 => {
            let mut inner = next();
            let polls = w.roll(3);
            Box::pin(async move {
                // Begun here, and finished by the task that takes it from the shelf.
                for _ in 0..polls {
                    if poll_once(&mut inner).await.is_ready() {
                        return Ok(());
                    }
                    clock().await;
                }
                if !w.closing.get() {
                    w.shelf.borrow_mut().push(inner);
                }
                Ok(())
            })
        }
        34 => Box::pin(async move {
            let taken = w.shelf.borrow_mut().pop();
            match taken {
                Some(inner) => inner.await,
                None => Ok(()),
            }
        }),
        _ => {
            let (inner, dies) = (next(), w.roll(3) == 0);
            Box::pin(async move {
                let end = inner.await;
                if dies {
                    // Without the panic hook, because a thousand messages are of no use.
                    resume_unwind(Box::new(Chaos));
                }
                end
            })
        }
    }
}

/// The number of leaves and of other steps in addition to those above.
const LEAVES: u64 = 5;
const NODES: u64 = 8;

fn another_leaf(world: &Rc<World>, kind: u64) -> Step {
    let w = world.clone();
    match kind {
        0 => Box::pin(async move {
            let at = w.clock.now() + w.span();
            timeout_at(at, sleep(w.span())).await.map(drop)
        }),
        1 => Box::pin(async move {
            let (span, mut items) = (w.span(), iterate_in_thread(0..3));
            for _ in 0..3 {
                // The source of an ended task panics by rule, as above.
                let next = AssertUnwindSafe(items.next()).catch_unwind();
                let next = async { next.await.unwrap_or(Ok(None)) };
                if let Err(traps::Error::Interrupt(why)) = ignore_after(span, next).await {
                    return Err(why);
                }
            }
            Ok(())
        }),
        2 => Box::pin(async move {
            if w.roll(3) == 0 {
                let waker = w.wakers.borrow_mut().pop();
                waker.iter().for_each(OutsideWaker::wake);
                return Ok(());
            }
            let theirs = w.clone();
            let register = move |waker| {
                theirs.wakers.borrow_mut().push(waker);
                true
            };
            outside("chaos", register).await
        }),
        3 => Box::pin(async {
            match signals(&[Signal::User1]).next().await {
                Err(traps::Error::Interrupt(why)) => Err(why),
                _ => Ok(()),
            }
        }),
        _ => Box::pin(async move {
            let deadline = connection_deadline().await;
            deadline.arm(w.clock.now() + w.span());
            let first = yield_now().await;
            deadline.disarm();
            first.and(yield_now().await)
        }),
    }
}

fn another_step(world: &Rc<World>, kind: u64, depth: u32) -> Step {
    let w = world.clone();
    if kind >= NODES {
        return another_leaf(&w, kind - NODES);
    }
    let inner = step(&w, depth - 1);
    match kind {
        0 | 1 => Box::pin(async move {
            let (span, mut calls) = (w.span(), 0);
            let watch = async {
                while sleep(span).await.is_ok() {
                    calls += 1;
                    if calls > 5 {
                        // The watched future waits forever, and the clock would advance as long.
                        resume_unwind(Box::new(Chaos));
                    }
                }
                pending().await
            };
            match race(inner, watch).await {
                traps::Either::Left(end) | traps::Either::Right(end) => end,
            }
        }),
        2 => {
            let other = step(&w, depth - 1);
            Box::pin(async move {
                if w.spawned.get() >= 40 {
                    return inner.await;
                }
                w.spawned.set(w.spawned.get() + 2);
                let mut group = TaskGroup::new().grace(tenths(3));
                for member in [inner, other] {
                    group.spawn("member", async { Ok(member.await?) }).await;
                }
                match group.join().await {
                    Err(traps::Error::Interrupt(why)) => Err(why),
                    _ => Ok(()),
                }
            })
        }
        3 => Box::pin(async move {
            match cancellable(async { inner.await.map_err(traps::Error::from) }).await {
                Err(traps::Error::Interrupt(why)) => Err(why),
                _ => Ok(()),
            }
        }),
        4 => {
            let (span, other) = (w.span(), step(&w, depth - 1));
            Box::pin(async move {
                match ignore_after(span, inner).await? {
                    Some(end) => Ok(end),
                    None => other.await,
                }
            })
        }
        5 => Box::pin(async move { shutdown::until_begun(inner).await.unwrap_or(Ok(())) }),
        _ => Box::pin(async move {
            let deadline = connection_deadline().await;
            let until = w.clock.now() + w.span();
            match kind {
                6 => deadline.guard(until, inner).await,
                _ => deadline.guard_task(until, inner).await,
            }
        }),
    }
}

fn interrupt_of(error: traps::Error) -> Interrupt {
    match error {
        traps::Error::Interrupt(interrupt) => interrupt,
        other => panic!("the queue is open: {other}"),
    }
}

fn machine() -> Sim {
    let mut machine = Sim::new().jobs_take(tenths(2));
    for n in 1..10 {
        let at = Time::from_micros(n * 100_000);
        machine = machine.ready_at(at, u32::try_from(n).unwrap(), Direction::Read);
        machine = machine.signal_at(at, traps::Signal::User1);
    }
    machine
}

fn options(seed: u64) -> Options {
    let policy = [Policy::Lazy, Policy::Eager, Policy::NextSleep][(seed % 3) as usize];
    Options::new().policy(policy).grace(secs(2)).budget(16)
}

fn world(seed: u64, clock: SimClock) -> World {
    World {
        dice: RefCell::new(Dice(seed)),
        queue: WaitQueue::new(),
        lock: Mutex::new(0),
        event: Event::new(),
        shared: UniversalQueue::new(1),
        items: Cell::new(0),
        got: RefCell::default(),
        flag: UniversalEvent::new(),
        handles: RefCell::default(),
        deadlines: RefCell::default(),
        shelf: RefCell::default(),
        spawned: Cell::new(0),
        closing: Cell::new(false),
        clock,
        told: RefCell::default(),
        wakers: RefCell::default(),
        coin: None,
        takes_all: true,
    }
}

fn life(seed: u64) -> String {
    let machine = machine();
    let world = Rc::new(world(seed, machine.clock()));
    let mut kernel = Traced::new(machine, options(seed));
    for _ in 0..2 {
        let main = async {
            for _ in 0..4 {
                let inner = step(&world, 5);
                let task = spawn("task", inner).await;
                world.handles.borrow_mut().push(task);
            }
            let _ = timeout_after(secs(1), step(&world, 5)).await;
            let _ = sleep(secs(1)).await;
        };
        match catch_unwind(AssertUnwindSafe(|| kernel.run(main))) {
            // An endless wait inside a shield is a hang, as it should be.
            Ok(Ok(()) | Err(kernel::RunError::Hang(_))) => {}
            Ok(Err(error)) => panic!("{error}"),
            // Main took a step that panics. The futures on the shelf outlive the kernel.
            Err(panic) if panic.is::<Chaos>() => {
                world.handles.take();
                world.shelf.take();
                world.deadlines.take();
                assert_sound(&kernel.text());
                return kernel.text();
            }
            Err(panic) => resume_unwind(panic),
        }
    }
    // The futures on the shelf may own handles.
    world.closing.set(true);
    world.handles.take();
    world.shelf.take();
    world.deadlines.take();
    let (shared, flag) = (world.shared.clone(), world.flag.clone());
    drop(world);

    let trace = kernel.end();
    // A task that gave up, or was dropped, has left both queues.
    assert_eq!((shared.waiting(), flag.waiting()), (0, 0));
    trace
}

/// Returns the seeds of a test's random programs; `CHAOS_SEEDS=60000` asks for more.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("CHAOS_SEEDS").ok();
    0..asked.map_or(usual, |seeds| seeds.parse().expect("CHAOS_SEEDS is a number"))
}

#[test]
fn whatever_a_program_does_nothing_is_left_and_the_trace_is_sound() {
    for seed in seeds(300) {
        let lived = catch_unwind(|| life(seed));
        if let Err(panic) = lived {
            eprintln!("seed {seed}");
            resume_unwind(panic);
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for seed in 0..50 {
        assert!(life(seed) == life(seed), "seed {seed}");
    }
}

/// A program of one run. At its end it clears everything that other tasks could still hold.
async fn program(world: World) -> Rc<World> {
    let world = Rc::new(world);
    let _clear = OnDrop(|| {
        world.closing.set(true);
        world.handles.take();
        world.shelf.take();
    });
    let main = async {
        for _ in 0..3 {
            let inner = step(&world, 5);
            let task = spawn("task", inner).await;
            world.handles.borrow_mut().push(task);
        }
        let _ = timeout_after(secs(1), step(&world, 5)).await;
        let _ = sleep(secs(1)).await;
    };
    let _ = AssertUnwindSafe(main).catch_unwind().await;
    world.clone()
}

/// The observer of a program.
#[derive(Clone, Copy, PartialEq)]
enum Listens {
    Nobody,
    Somebody,
    /// An observer for parts of the run.
    InParts,
}

/// Returns the ends of a program's steps, with an observer or without.
fn told(seed: u64, listens: Listens) -> Vec<Told> {
    let machine = machine();
    let clock = machine.clock();
    let mut kernel = Kernel::with_options(machine, options(seed));
    if listens == Listens::Somebody {
        kernel.trace_to(std::io::sink());
    }
    let coin = (listens == Listens::InParts).then(|| RefCell::new(Dice(!seed)));
    let told = match kernel.run(program(World { coin, ..world(seed, clock) })) {
        Ok(world) => world.told.take(),
        Err(_) => Vec::new(),
    };
    log::set_max_level(LevelFilter::Off);
    told
}

/// Without an observer, most arms are stores and not posts in program order, and the kernel cannot
/// see most scopes. An observer that comes or goes in the middle changes nothing either.
#[test]
fn d19_an_arm_by_a_store_has_the_effect_of_an_arm_by_a_post() {
    for seed in seeds(800) {
        let stored = told(seed, Listens::Nobody);
        assert_eq!(stored, told(seed, Listens::Somebody), "seed {seed}");
        assert_eq!(stored, told(seed, Listens::InParts), "seed {seed}, in parts");
    }
}

#[test]
fn a_program_that_is_interrupted_anywhere_hangs_only_in_a_shield_and_leaves_nothing() {
    let mut swept = 0;
    for seed in 0..60 {
        let program = || {
            let machine = machine();
            let clock = machine.clock();
            let world = World { takes_all: false, ..world(seed, clock) };
            (machine, program(world).map(drop))
        };
        let sweep = || testing::sweep(program).options(options(seed)).panics_allowed();
        let Err(panic) = catch_unwind(|| sweep().limit(100_000).run()) else {
            swept += 1;
            continue;
        };
        let said = traps::internal::panic_message(&*panic);
        // The plain program may wait forever, too.
        let Some((failures, trace)) = said.split_once("the trace of the first:\n") else {
            assert!(said.starts_with("every task is blocked for ever"), "seed {seed}: {said}");
            continue;
        };
        let designed = [": every task is blocked for ever:", ": a task panicked", " more"];
        let mut each = failures.lines().filter(|line| line.starts_with("- "));
        assert!(each.all(|line| designed.iter().any(|end| line.ends_with(end))), "{seed}: {said}");
        let hangs = failures.contains(designed[0]);
        assert!(!hangs || trace.contains(" shield "), "seed {seed}: {said}");
    }
    assert!(swept > 40, "most programs come through: {swept}");
}

#[test]
fn whatever_the_world_does_nothing_is_left_and_the_trace_is_sound() {
    for seed in 0..60 {
        let program = || {
            let machine = machine();
            let clock = machine.clock();
            let world = World { takes_all: false, ..world(seed, clock) };
            let setup = testing::Setup::new().sim(machine).options(options(seed)).panics_allowed();
            (setup, program(world).map(drop))
        };
        testing::explore(1..=10, program).run();
    }
}
