//! The steps of the tasks.

mod acts;

use std::future::poll_fn;
use std::rc::Rc;

use traps::channel::queue::{Discipline, OrderedQueue};
use traps::{Either, Error, Interrupt, race, shield, sleep, timeout_after, yield_now};

use super::oracle::Told;
use super::program::{Act, Op, Step};
use super::{Beside, Guard, Held, Hold, Item, Loan, Real, World};
use acts::act;
use support::kernels::{OnDrop, poll_once, tenths};

/// Receives by the verb, or with a timeout by the poll that is for hand-written futures.
macro_rules! receive {
    ($receiver:expr, $span:expr) => {{
        let mut receiver = $receiver;
        Box::pin(async move {
            told_item(match $span {
                None => receiver.end().recv().await,
                Some(_) => poll_fn(|cx| receiver.end().poll_recv(cx)).await,
            })
        })
    }};
}

/// What a task does from its beginning to its end. Once it is cancelled, nothing that it waits for
/// takes long.
pub async fn script(w: Rc<World>, task: usize, steps: Vec<Step>) {
    let w = &*w;
    let held = Held::default();
    for step in steps {
        // Who waits for the condition has the lock.
        if step.needs_lock() && !held.borrow().iter().any(Hold::is_lock) {
            take(w, task, Step::Within(3, Op::Lock(0)), &held).await;
        }
        let is_cancelled = w.model.borrow().is_cancelled(task);
        let step = match step {
            Step::Do(op) | Step::Race(op, _) if is_cancelled => Step::Within(2, op),
            step => step,
        };
        take(w, task, step, &held).await;
    }
    while !held.borrow().is_empty() {
        act(w, Act::Release, &held);
    }
}

async fn take<'w>(w: &'w World, task: usize, step: Step, held: &Held<'w>) {
    let begin = |op, span| begin(w, task, op, span, held);
    match step {
        Step::Do(op) => {
            if let Some(op) = begin(op, None) {
                let _ = op.await;
            }
        }
        Step::Within(span, op) => {
            if let Some(op) = begin(op, Some(span)) {
                let _ = timeout_after(tenths(span), op).await;
            }
        }
        Step::Race(a, b) => match (begin(a, None), begin(b, None)) {
            (Some(a), Some(b)) => match race(a, b).await {
                Either::Left(_) | Either::Right(_) => {}
            },
            (Some(op), None) | (None, Some(op)) => {
                let _ = op.await;
            }
            (None, None) => {}
        },
        Step::Once(op) => {
            if let Some(mut op) = begin(op, None) {
                let _ = poll_once(&mut op).await;
            }
        }
        Step::Act(Act::Cancel(task)) => w.cancel(task),
        Step::Act(this) => act(w, this, held),
    }
}

/// Begins an operation, if the task has what it takes.
fn begin<'w: 'h, 'h>(
    w: &'w World,
    task: usize,
    op: Op,
    span: Option<u64>,
    held: &'h Held<'w>,
) -> Option<Beside<'h>> {
    let keep = |guard| held.borrow_mut().push(Hold::of(w, guard));
    let number = w.number();
    let mut end = 0;
    let real: Real<'h> = match op {
        Op::Sleep(span) => Box::pin(async move { sleep(tenths(span)).await.map(|_| Told::Done) }),
        Op::Shielded(span) => {
            Box::pin(async move { shield(sleep(tenths(span))).await.map(|_| Told::Done) })
        }
        Op::Yield => Box::pin(async { yield_now().await.map(|()| Told::Done) }),
        Op::Lock(lock) => Box::pin(async move {
            let mut guard = w.locks[lock].lock().await?;
            *guard += 1;
            let told = Told::Value(*guard);
            keep(Guard::Lock(lock, guard));
            Ok(told)
        }),
        Op::Read => Box::pin(async move {
            let guard = w.shared.read().await?;
            let told = Told::Value(*guard);
            keep(Guard::Read(guard));
            Ok(told)
        }),
        Op::Write => Box::pin(async move {
            let mut guard = w.shared.write().await?;
            *guard += 1;
            let told = Told::Value(*guard);
            keep(Guard::Write(guard));
            Ok(told)
        }),
        Op::Acquire => Box::pin(async move {
            keep(Guard::Permit(w.permits.acquire().await?));
            Ok(Told::Done)
        }),
        Op::Condition | Op::ConditionEven => wait_for_condition(w, op, held)?,
        Op::Event => Box::pin(async { w.event.wait().await.map(|()| Told::Done) }),
        Op::Barrier => Box::pin(async {
            w.barrier.wait().await.map(|all| Told::Value(u64::from(all.is_leader())))
        }),
        Op::Init(span, succeeds) => {
            end = number;
            init(w, number, span, succeeds)
        }
        Op::Send => {
            let (mut sender, item) = (Loan::of(&w.senders)?, w.item());
            end = item.id;
            Box::pin(async move { told(sender.end().send(item).await.map_err(|it| it.why)) })
        }
        Op::Recv => receive!(Loan::of(&w.receiver)?, span),
        Op::Oneshot => {
            let receiver = Loan::of(&w.targets)?;
            end = receiver.number;
            receive!(receiver, span)
        }
        Op::OneshotClosed => {
            let mut sender = Loan::of(&w.shots)?;
            end = sender.number;
            Box::pin(async move { sender.end().closed().await.map(|()| Told::Done) })
        }
        Op::Broadcast => {
            let receiver = Loan::of(&w.listeners)?;
            end = receiver.number;
            receive!(receiver, span)
        }
        Op::Changed => {
            let mut receiver = Loan::of(&w.watchers)?;
            end = receiver.number;
            Box::pin(async move { told(receiver.end().changed().await) })
        }
        Op::WatchEven => {
            let mut receiver = Loan::of(&w.watchers)?;
            end = receiver.number;
            Box::pin(async move {
                let found = receiver.end().wait_for(|value| value.is_multiple_of(2)).await;
                told_value(found.map(|value| *value))
            })
        }
        Op::Put(queue) => {
            let item = w.item();
            end = item.id;
            put(w, queue, item)
        }
        Op::Get(queue) => get(w, queue),
        Op::Join(queue) => join(w, queue),
    };
    let id = w.model.borrow_mut().begin(task, op, span, end);
    Some(Beside { world: w, id, real: Some(real) })
}

/// Waits with the guard of the first lock, if the task has it.
fn wait_for_condition<'w: 'h, 'h>(w: &'w World, op: Op, held: &'h Held<'w>) -> Option<Real<'h>> {
    let place = held.borrow().iter().position(Hold::is_lock)?;
    let Some(Guard::Lock(_, mut guard)) = held.borrow_mut().remove(place).guard.take() else {
        unreachable!("it is a lock")
    };
    Some(Box::pin(async move {
        let end = match op {
            Op::Condition => w.condition.wait(&mut guard).await,
            _ => w.condition.wait_for(&mut guard, |value| value.is_multiple_of(2)).await,
        };
        held.borrow_mut().push(Hold::of(w, Guard::Lock(0, guard)));
        end.map(|()| Told::Done)
    }))
}

/// The initialization of the cell failed.
struct Failed(Option<Interrupt>);

impl From<Interrupt> for Failed {
    fn from(why: Interrupt) -> Failed {
        Failed(Some(why))
    }
}

fn init(w: &World, number: u64, span: u64, succeeds: bool) -> Real<'_> {
    let make = async move || {
        w.model.borrow_mut().makes(true);
        let _ends = OnDrop(|| w.model.borrow_mut().makes(false));
        if span > 0 {
            sleep(tenths(span)).await?;
        }
        if succeeds { Ok(number) } else { Err(Failed(None)) }
    };
    Box::pin(async move {
        match w.cell.get_or_try_init(make).await {
            Ok(value) => Ok(Told::Value(*value)),
            Err(Failed(None)) => Ok(Told::Failed),
            Err(Failed(Some(why))) => Err(why),
        }
    })
}

fn told(end: Result<(), Error>) -> Result<Told, Interrupt> {
    match end {
        Ok(()) => Ok(Told::Done),
        Err(why) => told_value(Err(why)),
    }
}

fn told_item(end: Result<Item, Error>) -> Result<Told, Interrupt> {
    told_value(end.map(|item| item.id))
}

fn told_value(end: Result<u64, Error>) -> Result<Told, Interrupt> {
    match end {
        Ok(value) => Ok(Told::Value(value)),
        Err(Error::Interrupt(why)) => Err(why),
        Err(Error::SendersGone | Error::ReceiversGone) => Ok(Told::Gone),
        Err(Error::Closed) => Ok(Told::Closed),
        Err(Error::Lagged(missed)) => Ok(Told::Missed(missed)),
        Err(why) => panic!("{why}"),
    }
}

/// What a receive that does not wait tells; `None` if there is nothing.
fn tried(end: Result<Item, Error>) -> Option<Told> {
    match end {
        Err(Error::Empty) => None,
        end => told_item(end).ok(),
    }
}

// ---- The three queues --------------------------------------------------------------------------

/// Does something with one of the three queues.
macro_rules! with_queue {
    ($world:expr, $queue:expr, $it:ident => $do:expr) => {
        match $queue {
            0 => {
                let $it = &$world.fifo;
                $do
            }
            1 => {
                let $it = &$world.lifo;
                $do
            }
            _ => {
                let $it = &$world.smallest_first;
                $do
            }
        }
    };
}

fn put(w: &World, queue: usize, item: Item) -> Real<'_> {
    fn real<O: Discipline<Item>>(queue: &OrderedQueue<Item, O>, item: Item) -> Real<'_> {
        Box::pin(async move { told(queue.put(item).await.map_err(|it| it.why)) })
    }
    with_queue!(w, queue, it => real(it, item))
}

fn get(w: &World, queue: usize) -> Real<'_> {
    fn real<O: Discipline<Item>>(queue: &OrderedQueue<Item, O>) -> Real<'_> {
        Box::pin(async move { Ok(Told::Value(queue.get().await?.id)) })
    }
    with_queue!(w, queue, it => real(it))
}

fn join(w: &World, queue: usize) -> Real<'_> {
    with_queue!(w, queue, it => Box::pin(async { it.join().await.map(|()| Told::Done) }))
}

pub fn try_put(w: &World, queue: usize, item: Item) -> Result<(), Error> {
    with_queue!(w, queue, it => it.try_put(item).map_err(|it| it.why))
}

pub fn try_get(w: &World, queue: usize) -> Option<u64> {
    with_queue!(w, queue, it => it.try_get()).ok().map(|item| item.id)
}

pub fn task_done(w: &World, queue: usize) {
    with_queue!(w, queue, it => it.task_done());
}
