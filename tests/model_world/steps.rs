//! The steps of the tasks.

use std::future::poll_fn;
use std::rc::Rc;

use traps::channel::queue::{Order, OrderedQueue};
use traps::channel::{End, State};
use traps::{Either, Error, Interrupt, race, sleep, timeout_after, yield_now};

use super::oracle::Told;
use super::program::{Act, Op, Step};
use super::{Beside, Guard, Held, Hold, Item, Loan, Real, World};
use crate::common_kernel::{OnDrop, poll_once, tenths};

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
        Op::Recv => receive(Loan::of(&w.receiver)?, span),
        Op::Oneshot => {
            let receiver = Loan::of(&w.targets)?;
            end = receiver.number;
            receive(receiver, span)
        }
        Op::OneshotClosed => {
            let mut sender = Loan::of(&w.shots)?;
            end = sender.number;
            Box::pin(async move { sender.end().closed().await.map(|()| Told::Done) })
        }
        Op::Broadcast => {
            let receiver = Loan::of(&w.listeners)?;
            end = receiver.number;
            receive(receiver, span)
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

/// By the verb, or with a timeout by the poll that is for futures written by hand.
fn receive<'h, C: State<Item = Item> + 'h>(
    mut receiver: Loan<'h, End<C, 1>>,
    span: Option<u64>,
) -> Real<'h> {
    Box::pin(async move {
        told_item(match span {
            None => receiver.end().recv().await,
            Some(_) => poll_fn(|cx| receiver.end().poll_recv(cx)).await,
        })
    })
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
    fn real<O: Order<Item>>(queue: &OrderedQueue<Item, O>, item: Item) -> Real<'_> {
        Box::pin(async move { told(queue.put(item).await.map_err(|it| it.why)) })
    }
    with_queue!(w, queue, it => real(it, item))
}

fn get(w: &World, queue: usize) -> Real<'_> {
    fn real<O: Order<Item>>(queue: &OrderedQueue<Item, O>) -> Real<'_> {
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

// ---- What never blocks -------------------------------------------------------------------------

fn act<'w>(w: &'w World, act: Act, held: &Held<'w>) {
    w.model.borrow_mut().say(|| format!("{act:?}"));
    match act {
        Act::Cancel(_) => unreachable!("taken before"),
        Act::Release => {
            let newest = held.borrow_mut().pop();
            drop(newest);
        }
        Act::ReleaseOldest => {
            let mut held = held.borrow_mut();
            let oldest = (!held.is_empty()).then(|| held.remove(0));
            drop(held);
            drop(oldest);
        }
        Act::Forget => {
            let place = held.borrow().iter().position(Hold::is_permit);
            let hold = place.map(|place| held.borrow_mut().remove(place));
            if let Some(Guard::Permit(permit)) = hold.and_then(|mut hold| hold.guard.take()) {
                permit.forget();
                w.model.borrow_mut().forget();
            }
        }
        act => {
            try_lock(w, act, held);
            change(w, act);
            pass(w, act);
            tell(w, act);
        }
    }
}

fn try_lock<'w>(w: &'w World, act: Act, held: &Held<'w>) {
    let mut model = w.model.borrow_mut();
    let guard = match act {
        Act::TryLock(lock) => {
            let guard = w.locks[lock].try_lock().map(|mut guard| {
                *guard += 1;
                guard
            });
            model.try_lock(lock, guard.as_deref().copied());
            guard.map(|guard| Guard::Lock(lock, guard))
        }
        Act::TryRead => {
            let guard = w.shared.try_read();
            model.try_read(guard.as_deref().copied());
            guard.map(Guard::Read)
        }
        Act::TryWrite => {
            let guard = w.shared.try_write().map(|mut guard| {
                *guard += 1;
                guard
            });
            model.try_write(guard.is_some());
            guard.map(Guard::Write)
        }
        Act::TryAcquire => {
            let permit = w.permits.try_acquire();
            model.try_acquire(permit.is_some());
            permit.map(Guard::Permit)
        }
        _ => None,
    };
    held.borrow_mut().extend(guard.map(|guard| Hold::of(w, guard)));
}

/// Changes a state.
fn change(w: &World, act: Act) {
    let mut model = w.model.borrow_mut();
    match act {
        Act::AddPermits(n) => model.add_permits(n, w.permits.add_permits(n).is_ok()),
        Act::Notify(n) => {
            w.condition.notify(n);
            model.notify(n);
        }
        Act::SetEvent => {
            w.event.set();
            model.set_event(true);
        }
        Act::ClearEvent => {
            w.event.clear();
            model.set_event(false);
        }
        Act::SetCell => {
            let value = w.number();
            model.set_cell(value, w.cell.set(value).is_ok());
        }
        _ => {}
    }
}

/// Passes items on.
fn pass(w: &World, act: Act) {
    let mut model = w.model.borrow_mut();
    match act {
        Act::TrySend => {
            if let Some((_, sender)) = w.senders.borrow().last() {
                let item = w.item();
                let (id, end) = (item.id, sender.try_send(item));
                model.try_send(id, end.map_err(|it| matches!(it.why, Error::ReceiversGone)));
            }
        }
        Act::TryRecv => {
            if let Some((_, receiver)) = w.receiver.borrow_mut().last_mut() {
                model.try_recv(tried(receiver.try_recv()));
            }
        }
        Act::CloneSender => {
            let clone = w.senders.borrow().last().map(|(_, sender)| sender.clone());
            clone.iter().for_each(|_| model.senders(true));
            w.senders.borrow_mut().extend(clone.map(|sender| (0, sender)));
        }
        Act::DropSender => {
            let sender = w.senders.borrow_mut().pop();
            sender.iter().for_each(|_| model.senders(false));
        }
        Act::CloseReceiver => {
            if let Some((_, receiver)) = w.receiver.borrow_mut().last_mut() {
                receiver.close();
                model.close(false);
            }
        }
        Act::DropReceiver => {
            let receiver = w.receiver.borrow_mut().pop();
            receiver.iter().for_each(|_| model.close(true));
        }
        Act::TryPut(queue) => {
            let item = w.item();
            let (id, end) = (item.id, try_put(w, queue, item));
            model.try_put(queue, id, end.is_ok());
        }
        Act::TryGet(queue) => model.try_get(queue, try_get(w, queue)),
        Act::TaskDone(queue) if model.task_done(queue) => task_done(w, queue),
        _ => {}
    }
}

/// Tells one or all.
fn tell(w: &World, act: Act) {
    let mut model = w.model.borrow_mut();
    match act {
        Act::OneshotSend => {
            let sender = w.shots.borrow_mut().pop();
            if let Some((number, sender)) = sender {
                let item = w.item();
                let (id, end) = (item.id, sender.send(item));
                model.oneshot_send(number as usize, id, end.is_ok());
            }
        }
        Act::OneshotTry => {
            if let Some((number, receiver)) = w.targets.borrow_mut().last_mut() {
                model.oneshot_try(*number as usize, tried(receiver.try_recv()));
            }
        }
        Act::OneshotDropSender => {
            let sender = w.shots.borrow_mut().pop();
            sender.iter().for_each(|(number, _)| model.oneshot_drop(*number as usize, true));
        }
        Act::OneshotDropReceiver => {
            let receiver = w.targets.borrow_mut().pop();
            receiver.iter().for_each(|(number, _)| model.oneshot_drop(*number as usize, false));
        }
        Act::BroadcastSend => {
            if let Some((_, sender)) = w.speakers.borrow().last() {
                let item = w.item();
                let (id, end) = (item.id, sender.send(item));
                model.broadcast_send(id, end.is_ok());
            }
        }
        Act::BroadcastTry => {
            if let Some((number, receiver)) = w.listeners.borrow_mut().last_mut() {
                model.broadcast_try(*number, tried(receiver.try_recv()));
            }
        }
        Act::BroadcastSubscribe => {
            let receiver = w.speakers.borrow().last().map(|(_, it)| (w.number(), it.subscribe()));
            receiver.iter().for_each(|(number, _)| model.listener(*number, true));
            w.listeners.borrow_mut().extend(receiver);
        }
        Act::BroadcastCloneSender => {
            let clone = w.speakers.borrow().last().map(|(_, sender)| sender.clone());
            clone.iter().for_each(|_| model.speakers(true));
            w.speakers.borrow_mut().extend(clone.map(|sender| (0, sender)));
        }
        Act::BroadcastDropSender => {
            let sender = w.speakers.borrow_mut().pop();
            sender.iter().for_each(|_| model.speakers(false));
        }
        Act::BroadcastDropReceiver => {
            let receiver = w.listeners.borrow_mut().pop();
            receiver.iter().for_each(|(number, _)| model.listener(*number, false));
        }
        act => watch(w, act, &mut model),
    }
}

fn watch(w: &World, act: Act, model: &mut super::Model) {
    match act {
        Act::WatchSend => {
            if let Some((_, sender)) = w.publisher.borrow().last() {
                model.watch_send(sender.send(model.watched + 1).is_ok(), false);
            }
        }
        Act::WatchModify => {
            if let Some((_, sender)) = w.publisher.borrow().last() {
                sender.send_modify(|value| *value += 1);
                model.watch_send(true, true);
            }
        }
        Act::WatchSubscribe => {
            let receiver = w.publisher.borrow().last().map(|(_, it)| (w.number(), it.subscribe()));
            receiver.iter().for_each(|(number, _)| model.watcher(*number, None));
            w.watchers.borrow_mut().extend(receiver);
        }
        Act::WatchClone => {
            let clone = w.watchers.borrow().last().map(|(like, it)| (*like, it.clone()));
            if let Some((like, clone)) = clone {
                let number = w.number();
                model.watcher(number, Some(like));
                w.watchers.borrow_mut().push((number, clone));
            }
        }
        Act::WatchDropSender => {
            let sender = w.publisher.borrow_mut().pop();
            sender.iter().for_each(|_| model.drop_publisher());
        }
        Act::WatchDropReceiver => {
            let receiver = w.watchers.borrow_mut().pop();
            receiver.iter().for_each(|(number, _)| model.drop_watcher(*number));
        }
        _ => {}
    }
}
