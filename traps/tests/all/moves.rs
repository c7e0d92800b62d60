//! Random programs whose futures move: they are polled once, handed to another task or to the next
//! kernel of the thread, polled there, dropped half-way, joined or cancelled.
//!
//! Whatever they do, nothing is left, each output is given once, no permit, item, signal or edge is
//! lost or doubled, each cancellation is told once and to its own task, nothing is early, the
//! oracle accepts both traces, and the same seed gives the same bytes, with a listener or without.

pub(crate) mod world;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Options, Policy, Sim};
use support::kernels::*;
use traps::{
    Signal, Time, clock, ignore_after, race, sleep, spawn, timeout_after, wait_signal, yield_now,
};
use world::*;

/// Classes of failures that the kernel is known to have: the beginning of each, and why. A kernel
/// without them passes with an empty list. `kernel/tests/all/regressions.rs` has a small program
/// for each.
const KNOWN: &[(&str, &str)] = &[];

// ---- What a task does --------------------------------------------------------------------------

/// Takes a future from the shelf, or makes a future.
fn take_piece(w: &Rc<World>) -> Piece {
    let lying = w.shelf.borrow().len() as u64;
    if lying > 0 && w.roll(3) > 0 {
        let place = w.roll(lying) as usize;
        return w.shelf.borrow_mut().remove(place);
    }
    new_piece(w)
}

/// Puts a future on the shelf, or drops it.
fn lay_down(w: &Rc<World>, piece: Piece) {
    let keeps = w.roll(4) > 0 && !w.closing.get() && !piece.is_done;
    if keeps {
        w.shelf.borrow_mut().push(piece);
    } else {
        w.leaves(&piece);
    }
}

/// Polls a future once.
async fn once(w: &World, task: usize, piece: &mut Piece) -> bool {
    poll_once(&mut InHand { world: w, task, piece }).await.is_ready()
}

/// Polls a future until it is done, or its time is over.
async fn to_the_end(w: &Rc<World>, task: usize, mut piece: Piece) {
    let span = w.span() + tenths(1);
    let _ = ignore_after(span, InHand { world: w, task, piece: &mut piece }).await;
    lay_down(w, piece);
}

/// One random action of a task.
async fn deed(w: &Rc<World>, task: usize) {
    match w.roll(10) {
        0 | 1 => {
            let mut piece = take_piece(w);
            if !once(w, task, &mut piece).await {
                lay_down(w, piece);
            }
        }
        2 | 3 => {
            let piece = take_piece(w);
            to_the_end(w, task, piece).await;
        }
        4 => {
            let piece = take_piece(w);
            w.leaves(&piece);
        }
        5 => {
            // The future is held until it has its result.
            let mut piece = take_piece(w);
            if !once(w, task, &mut piece).await {
                let _ = w.note("hold", sleep(w.span()).await);
                if w.roll(2) == 0 || !once(w, task, &mut piece).await {
                    lay_down(w, piece);
                }
            }
        }
        6 if w.spawned.get() < 12 => {
            let piece = take_piece(w);
            spawn_target(w, |w, task| async move { to_the_end(&w, task, piece).await }).await;
        }
        7 => {
            let (mut a, mut b) = (take_piece(w), take_piece(w));
            w.branches.set(w.branches.get() + 2);
            let (one, two) = (
                InHand { world: w, task, piece: &mut a },
                InHand { world: w, task, piece: &mut b },
            );
            let first =
                ignore_after(tenths(3), async { Ok::<_, traps::Interrupt>(race(one, two).await) });
            match first.await {
                Ok(Some(traps::Either::Left(_))) => lay_down(w, b),
                Ok(Some(traps::Either::Right(_))) => lay_down(w, a),
                _ => {
                    lay_down(w, a);
                    lay_down(w, b);
                }
            }
        }
        8 => cancel(w).await,
        _ => wake(w).await,
    }
}

/// Cancels one of the tasks.
async fn cancel(w: &Rc<World>) {
    let (reason, targets) = (w.reasons.get(), w.targets.borrow().len() as u64);
    if reason == REASONS.len() || targets == 0 {
        return;
    }
    let place = w.roll(targets) as usize;
    let task = {
        let targets = w.targets.borrow();
        let target = &targets[place];
        // A task of the earlier kernel has ended.
        let known = (target.side == w.here.get()).then_some(REASONS[reason]);
        w.cancelled.borrow_mut().entry(target.number).or_insert(known);
        let pieces = w.pieces_of(target.side, target.number);
        w.at_once.borrow_mut().insert(REASONS[reason], pieces);
        w.owners.borrow_mut().insert(REASONS[reason], (target.side, target.task.id()));
        target.task.clone()
    };
    w.reasons.set(reason + 1);
    task.cancel_now(REASONS[reason]);
}

/// Wakes a random waiter.
async fn wake(w: &Rc<World>) {
    let side = w.side();
    match w.roll(7) {
        0 => side.queue.wake(1 + w.roll(2)),
        1 => side.queue.wake(1),
        2 => {
            side.event.set();
            side.event.clear();
        }
        3 => {
            let shot = w.shots.borrow_mut().pop();
            shot.iter().for_each(|shot| shot.send(7));
        }
        4 => {
            let waker = w.wakers.borrow_mut().pop();
            waker.iter().for_each(traps::OutsideWaker::wake);
        }
        5 => {
            let item = w.number();
            if w.items.try_put(item).is_ok() {
                w.items_put.borrow_mut().insert(item);
            }
        }
        _ => {
            if let Ok(item) = w.items.try_get() {
                w.got(item);
            }
        }
    }
}

/// Spawns a task that may be cancelled.
async fn spawn_target<F: Future<Output = ()> + 'static>(
    w: &Rc<World>,
    work: impl FnOnce(Rc<World>, usize) -> F,
) -> Rc<traps::Task<()>> {
    let (world, number) = (w.clone(), w.new_target());
    let work = work(w.clone(), number);
    let checked = async move {
        work.await;
        check_told(&world, number).await;
    };
    let task = Rc::new(spawn("task", checked).await);
    let target = Target { number, task: task.clone(), side: w.here.get() };
    w.targets.borrow_mut().push(target);
    w.spawned.set(w.spawned.get() + 1);
    task
}

/// Checks that a cancelled task has got its interrupt, or gets it now.
async fn check_told(w: &Rc<World>, number: usize) {
    let first = w.cancelled.borrow().get(&number).copied();
    let Some(Some(reason)) = first else { return };
    let told = |w: &World| w.told.borrow().get(reason).copied().unwrap_or(0);
    if told(w) > 0 || w.is_on_its_way(w.here.get(), number) || w.has_crossed.get() {
        return;
    }
    let end = sleep(Duration::ZERO).await;
    if end.is_ok() && told(w) == 0 {
        w.is_wrong("cancellation lost", format!("task {number}, {reason}"));
    }
    let _ = w.note("last", end);
}

/// The whole life of a task.
async fn script(w: Rc<World>, task: usize) {
    for _ in 0..2 + w.roll(5) {
        deed(&w, task).await;
        let end = match w.roll(3) {
            0 => w.note("pause", sleep(w.span()).await),
            1 => w.note("yield", yield_now().await),
            _ => Ok(()),
        };
        if end.is_err() && w.roll(2) == 0 {
            return;
        }
        if clock().await > w.now() && !w.has_crossed.get() {
            w.is_wrong("clock ahead", "the clock is ahead of the machine's");
        }
    }
}

// ---- The life of a program ---------------------------------------------------------------------

/// One run of a kernel.
async fn part(w: Rc<World>) {
    let mut tasks = Vec::new();
    for _ in 0..2 + w.roll(2) {
        tasks.push(spawn_target(&w, script).await);
    }
    script(w.clone(), usize::MAX).await;
    for task in tasks {
        // The remaining futures continue in the next run.
        let _ = timeout_after(tenths(15), task.wait()).await;
    }
}

/// At the end of a kernel's life, takes everything that it may have kept: no event was lost.
async fn last_part(w: Rc<World>) {
    let _ = sleep(tenths(40)).await;
    let side = w.side();
    let mut stream = side.stream.take();
    for what in [IO, IO + 1, ANY, STREAM] {
        let is_due = side.is_due(what) && !w.has_crossed.get();
        let has_come = match (what, &mut stream) {
            _ if side.heard[what].asked.get().is_none() => continue,
            (ANY, _) => is_there(async { wait_signal(&[Signal::User1]).await.map(drop) }).await,
            (STREAM, Some(stream)) => is_there(async { stream.next().await.map(drop) }).await,
            (STREAM, None) => continue,
            (io, _) => is_there(async { side.ios[io].readable().await.map(drop) }).await,
        };
        if has_come {
            side.hear(what);
        } else if is_due {
            let class = if what < ANY { "edge lost" } else { "signal lost" };
            w.is_wrong(
                class,
                format!("of source {what}, heard {} times", side.heard[what].times.get()),
            );
        }
    }
}

/// Returns whether the event has happened by now.
async fn is_there<E: traps::Interruptible>(wait: impl Future<Output = Result<(), E>>) -> bool {
    matches!(ignore_after(tenths(1), wait).await, Ok(Some(())))
}

/// The way in which a program is run.
#[derive(Clone, Copy, PartialEq)]
enum Listens {
    Nobody,
    Somebody,
}

/// The result of a program.
#[derive(PartialEq)]
struct Life {
    traces: [String; 2],
    outcomes: Vec<(&'static str, String, Time)>,
    wrong: Vec<(String, String)>,
}

fn options(seed: u64) -> Options {
    let policy = [Policy::Lazy, Policy::Eager, Policy::NextSleep][(seed % 3) as usize];
    Options::new().policy(policy).grace(secs(2)).budget(16)
}

/// Draws a few kinds of steps, so that a failing program is small.
fn kinds(seed: u64) -> Vec<&'static str> {
    if let Ok(asked) = std::env::var("MOVES_KINDS") {
        return KINDS.into_iter().filter(|kind| asked.split(',').any(|it| it == *kind)).collect();
    }
    let mut dice = Dice(!seed);
    (0..1 + dice.roll(4)).map(|_| KINDS[dice.roll(KINDS.len() as u64) as usize]).collect()
}

fn life(seed: u64, listens: Listens) -> Life {
    let mut dice = Dice(seed ^ 0x5eed);
    let starts = [Time::ZERO, [Time::ZERO, Time::from_micros(1_000_000)][dice.roll(2) as usize]];
    let both = dice.roll(2) == 0;
    let machines = starts.map(machine);
    let sides = [Side::new(machines[0].clock()), Side::new(machines[1].clock())];
    let world = Rc::new(World::new(seed, kinds(seed), sides));
    let texts = [Text::default(), Text::default()];
    let mut listeners = texts.iter().map(|text| (listens == Listens::Somebody).then_some(text));
    for (here, machine) in machines.into_iter().enumerate() {
        world.here.set(here);
        let mut kernel = kernel_of(machine, seed, listeners.next().flatten(), &world);
        for _ in 0..if here == 0 || both { 2 } else { 0 } {
            run(&world, &mut kernel, part(world.clone()));
        }
        world.closing.set(here == 1);
        if dice.roll(2) == 0 {
            clear(&world);
        }
        run(&world, &mut kernel, last_part(world.clone()));
        if here == 1 {
            clear(&world);
        }
        if dice.roll(2) == 0 {
            shut_down(&world, &mut kernel);
        }
        drop(kernel);
        // The futures that the first kernel leaves continue in the second kernel.
    }
    clear(&world);
    let traces = texts.map(|text| String::from_utf8(text.0.take()).unwrap());
    for text in traces.iter().filter(|_| listens == Listens::Somebody) {
        check_trace(&world, text);
    }
    world.check_conservation();
    Life { traces, outcomes: world.outcomes.take(), wrong: world.wrong.take() }
}

/// The log of a kernel.
#[derive(Clone, Default)]
struct Text(Rc<RefCell<Vec<u8>>>);

impl std::io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn kernel_of(machine: Sim, seed: u64, text: Option<&Text>, w: &Rc<World>) -> Kernel<Sim> {
    let mut kernel = Kernel::with_options(machine, options(seed));
    if let Some(text) = text {
        kernel.trace_to(text.clone());
        kernel.observe(testing::Truth::default());
    }
    let w = w.clone();
    kernel.on_orphan(move |_| w.orphan());
    kernel
}

fn run(w: &World, kernel: &mut Kernel<Sim>, main: impl Future<Output = ()>) {
    match catch_unwind(AssertUnwindSafe(|| kernel.run(main))) {
        Ok(Ok(())) => {}
        Ok(Err(kernel::RunError::Hang(what))) => w.is_wrong("hang", what),
        Ok(Err(error)) => w.is_wrong("error", error.to_string()),
        Err(panic) => w.is_wrong("panic", traps::internal::panic_message(&*panic)),
    }
}

/// Drops the futures that are on their way, and the handles of tasks.
fn clear(w: &World) {
    drop(w.shelf.take());
    drop(w.targets.take());
}

fn shut_down(w: &World, kernel: &mut Kernel<Sim>) {
    match catch_unwind(AssertUnwindSafe(|| kernel.shutdown())) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => w.is_wrong("shutdown", error.to_string()),
        Err(panic) => w.is_wrong("panic", traps::internal::panic_message(&*panic)),
    }
    let c = kernel.counters();
    let left = [c.tasks, c.tickets, c.scopes, c.timers, c.jobs, c.pending, c.deadlines];
    if left != [0; 7] {
        w.is_wrong("left", format!("{c:?}"));
    }
}

fn check_trace(w: &World, text: &str) {
    match testing::trace::trace(text)
        .map(|lines| testing::trace::check(&lines).err().unwrap_or_default())
    {
        Ok(violations) => violations.into_iter().for_each(|it| {
            w.is_wrong(&format!("trace, rule {}{}", it.rule, w.crossed()), it.to_string());
        }),
        Err(error) => w.is_wrong("trace that cannot be read", format!("{error:?}")),
    }
}

/// Returns the seeds of a test's random programs; `MOVES_SEEDS=100000` asks for more.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("MOVES_SEEDS").ok();
    let number = |text: &str| text.parse().expect("MOVES_SEEDS is a number, or FROM..TO");
    match asked.as_deref().map(|asked| asked.split_once("..").unwrap_or(("0", asked))) {
        Some((from, to)) => number(from)..number(to),
        None => 0..usual,
    }
}

/// Returns the faults of a program.
fn faults(seed: u64) -> Vec<(String, String)> {
    let first = life(seed, Listens::Somebody);
    let mut wrong = first.wrong.clone();
    let mut differs = |class: &str, is: bool| {
        if is {
            wrong.push((class.to_owned(), String::new()));
        }
    };
    differs("another trace", life(seed, Listens::Somebody) != first);
    differs("another outcome unwatched", life(seed, Listens::Nobody).outcomes != first.outcomes);
    wrong
}

/// With `MOVES_ALL=1`, continues after a failure, reports known failures too, and lists all classes
/// with the seeds and kinds of their programs. Otherwise shows the traces of the first failure.
#[test]
fn whatever_moves_nothing_is_lost_doubled_early_or_left() {
    let all = std::env::var_os("MOVES_ALL").is_some();
    let is_known = |class: &str| KNOWN.iter().any(|(known, _)| class.starts_with(known));
    let mut classes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for seed in seeds(200) {
        let mut wrong = faults(seed);
        wrong.retain(|(class, _)| all || !is_known(class));
        if let (Some((class, what)), false) = (wrong.first(), all) {
            let traces = life(seed, Listens::Somebody).traces.join("\n");
            panic!("{traces}\nseed {seed} {:?}: {class}: {what}", kinds(seed));
        }
        for (class, what) in wrong {
            let letters = what.chars().filter(|it| !it.is_ascii_digit() && *it != '\n');
            let short: String = letters.take(120).collect();
            classes.entry(format!("{class}: {short}")).or_default().push(seed);
        }
    }
    for (class, seeds) in &classes {
        let few: Vec<_> = seeds.iter().take(8).map(|seed| (seed, kinds(*seed))).collect();
        eprintln!("{} x {class}: {few:?}", seeds.len());
    }
    assert!(classes.is_empty(), "{} classes", classes.len());
}
