//! Random programs of scopes: after each line, the kernel's state agrees with the log.
//!
//! Two kinds. In the first, a task runs several futures side by side, with the combinators of this
//! crate and of `futures`, and cancels itself and others in the middle of a poll. In the second,
//! futures are polled in one scope or task, and then in another one.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures_util::future;
use futures_util::stream::{FuturesUnordered, StreamExt};
use support::kernels::tenths;
use testing::Setup;
use traps::{
    ConnectionDeadline, Interrupt, Task, check_cancellation, clock, connection_deadline, foreign,
    ignore_after, join, join_all, race, shield, sleep, spawn, timeout_after, yield_now,
};

use crate::moves::world::Dice;

type Step = Pin<Box<dyn Future<Output = Result<(), Interrupt>>>>;

/// The state that the tasks of a program share.
struct World {
    dice: RefCell<Dice>,
    /// Futures that another scope or task may continue.
    shelf: RefCell<Vec<Step>>,
    moves: bool,
    tasks: RefCell<Vec<Rc<Task<()>>>>,
    deadlines: RefCell<Vec<Rc<ConnectionDeadline>>>,
    /// The wakers of bare waits, with a flag that ends the waits.
    wakers: RefCell<Vec<Waker>>,
    is_over: Cell<bool>,
}

impl World {
    fn roll(&self, sides: u64) -> u64 {
        self.dice.borrow_mut().roll(sides)
    }

    fn one<T: Clone>(&self, of: &RefCell<Vec<T>>) -> Option<T> {
        let count = of.borrow().len() as u64;
        (count > 0).then(|| of.borrow()[self.roll(count) as usize].clone())
    }
}

/// Waits for a waker that is called when the program is nearly over.
async fn bare(w: Rc<World>) {
    poll_fn(|cx| {
        if w.is_over.get() {
            return Poll::Ready(());
        }
        w.wakers.borrow_mut().push(cx.waker().clone());
        Poll::Pending
    })
    .await;
}

/// Polls a future once. Returns it if it is not ready.
async fn once(mut step: Step) -> Option<Step> {
    let is_ready = poll_fn(|cx| Poll::Ready(step.as_mut().poll(cx).is_ready())).await;
    (!is_ready).then_some(step)
}

/// Returns a random step with at most `depth` nested scopes.
fn step(w: &Rc<World>, depth: u64) -> Step {
    let w = w.clone();
    let kind = w.roll(if depth == 0 { 9 } else { 24 });
    let inner = move |w: &Rc<World>| step(w, depth - 1);
    Box::pin(async move {
        match kind {
            0 | 1 => sleep(tenths(w.roll(5))).await.map(drop),
            2 => yield_now().await,
            3 => {
                clock().await;
                Ok(())
            }
            4 => check_cancellation().await.map(drop),
            5 => {
                bare(w).await;
                Ok(())
            }
            6 => foreign(bare(w)).await,
            7 => {
                if let Some(task) = w.one(&w.tasks) {
                    task.cancel_now("drawn");
                }
                Ok(())
            }
            8 => {
                let Some(deadline) = w.one(&w.deadlines) else { return Ok(()) };
                match w.roll(3) {
                    0 => deadline.disarm(),
                    _ => deadline.arm(tenths(w.roll(4))),
                }
                Ok(())
            }
            9 | 10 => timeout_after(tenths(w.roll(5)), inner(&w)).await,
            11 => ignore_after(tenths(w.roll(5)), inner(&w)).await.map(drop),
            12 => shield(inner(&w)).await,
            13 => {
                let Some(deadline) = w.one(&w.deadlines) else { return inner(&w).await };
                deadline.guard(tenths(w.roll(4)), inner(&w)).await
            }
            14 => {
                let (a, b) = join(inner(&w), inner(&w)).await;
                a.and(b)
            }
            15 => {
                race(inner(&w), inner(&w)).await;
                Ok(())
            }
            16 => {
                join_all((0..3).map(|_| inner(&w)).collect::<Vec<_>>()).await;
                Ok(())
            }
            17 | 18 => {
                let (a, b) = future::join(inner(&w), inner(&w)).await;
                a.and(b)
            }
            19 => {
                future::select(inner(&w), inner(&w)).await;
                Ok(())
            }
            20 => {
                let mut all: FuturesUnordered<Step> = (0..3).map(|_| inner(&w)).collect();
                while all.next().await.is_some() {}
                Ok(())
            }
            21 if w.moves => move_one(w.clone(), depth).await,
            _ => {
                for _ in 0..2 + w.roll(3) {
                    // An interrupted step is over, and its clean-up follows.
                    let _ = inner(&w).await;
                }
                Ok(())
            }
        }
    })
}

/// Polls a future that was polled elsewhere before, or begins a future that is finished elsewhere.
async fn move_one(w: Rc<World>, depth: u64) -> Result<(), Interrupt> {
    let lying = w.shelf.borrow().len() as u64;
    let taken = match w.roll(3) {
        0 if lying > 0 => {
            let place = w.roll(lying) as usize;
            w.shelf.borrow_mut().remove(place)
        }
        _ => step(&w, depth - 1),
    };
    match w.roll(4) {
        0 => taken.await,
        _ => {
            if let Some(rest) = once(taken).await {
                w.shelf.borrow_mut().push(rest);
            }
            Ok(())
        }
    }
}

/// The program of a seed.
async fn program(seed: u64, moves: bool) {
    let w = Rc::new(World {
        dice: RefCell::new(Dice(seed)),
        shelf: RefCell::default(),
        moves,
        tasks: RefCell::default(),
        deadlines: RefCell::default(),
        wakers: RefCell::default(),
        is_over: Cell::new(false),
    });
    for number in 0..1 + w.roll(2) {
        let deadline = connection_deadline().await;
        deadline.arm(tenths(number * 3));
        w.deadlines.borrow_mut().push(Rc::new(deadline));
    }
    for _ in 0..1 + w.roll(3) {
        let own = w.clone();
        let body = async move {
            for _ in 0..1 + own.roll(4) {
                let _ = step(&own, 4).await;
            }
        };
        let task = Rc::new(spawn("drawn", body).await);
        w.tasks.borrow_mut().push(task);
    }
    let _ = sleep(tenths(30)).await;
    w.is_over.set(true);
    w.wakers.take().into_iter().for_each(Waker::wake);
    let _ = sleep(tenths(30)).await;
    let tasks = w.tasks.take();
    for task in tasks {
        task.cancel_now("over");
        let _ = task.wait().await;
    }
    w.shelf.take();
    w.deadlines.take();
}

/// Runs the programs of some seeds, and names the seeds whose log differs from the truth.
fn run(moves: bool) {
    let asked = std::env::var("SCOPE_SEEDS").ok();
    let range = |text: &str| match text.split_once("..") {
        Some((from, to)) => Some((from.parse().ok()?, to.parse().ok()?)),
        None => Some((0, text.parse().ok()?)),
    };
    let seeds = asked.as_deref().map(|text| range(text).expect("SCOPE_SEEDS is N or FROM..TO"));
    let (from, to) = seeds.unwrap_or((0, 300));
    let mut failed = Vec::new();
    for seed in from..to {
        let ran = catch_unwind(AssertUnwindSafe(|| Setup::new().run(program(seed, moves))));
        failed.extend(ran.is_err().then_some(seed));
    }
    assert!(failed.is_empty(), "{} of {} programs: {failed:?}", failed.len(), to - from);
}

#[test]
fn the_state_agrees_with_the_log_with_futures_side_by_side() {
    run(false);
}

#[test]
fn the_state_agrees_with_the_log_with_futures_that_move() {
    run(true);
}
