//! The programs of `model.rs`: what their tasks share and do, each step beside its model.

pub mod oracle;
pub mod program;
mod steps;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use kernel::SimClock;
use traps::channel::queue::{FifoQueue, LifoQueue, PriorityQueue};
use traps::channel::{broadcast, mpsc, oneshot, watch};
use traps::internal::panic_message;
use traps::sync::{
    Barrier, Condition, Event, Mutex, MutexGuard, OnceCell, Permit, RwLock, RwLockReadGuard,
    RwLockWriteGuard, Semaphore,
};
use traps::{Interrupt, Task};

use oracle::{DOOR, Model, PERMITS, Told};
use program::Program;
pub use steps::script;
use support::kernels::poll_once;

/// What is sent and put. Counted, so that none is left.
#[derive(Debug)]
pub struct Item {
    id: u64,
    alive: Rc<Cell<i64>>,
}

impl Item {
    fn new(id: u64, alive: &Rc<Cell<i64>>) -> Item {
        alive.set(alive.get() + 1);
        Item { id, alive: alive.clone() }
    }
}

impl Clone for Item {
    fn clone(&self) -> Item {
        Item::new(self.id, &self.alive)
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        self.alive.set(self.alive.get() - 1);
    }
}

/// By the key only: equal items have an order all the same.
impl Ord for Item {
    fn cmp(&self, other: &Item) -> std::cmp::Ordering {
        oracle::key(self.id).cmp(&oracle::key(other.id))
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Item {}

/// The ends of channels that no task uses now, each with a number.
type Ends<E> = RefCell<Vec<(u64, E)>>;

/// What the tasks of a program share.
pub struct World {
    pub clock: SimClock,
    pub model: RefCell<Model>,
    pub tasks: RefCell<Vec<Rc<Task<()>>>>,
    locks: [Mutex<u64>; 2],
    shared: RwLock<u64>,
    permits: Semaphore,
    condition: Condition,
    event: Event,
    barrier: Barrier,
    parties: usize,
    cell: OnceCell<u64>,
    senders: Ends<mpsc::Sender<Item>>,
    receiver: Ends<mpsc::Receiver<Item>>,
    shots: Ends<oneshot::Sender<Item>>,
    targets: Ends<oneshot::Receiver<Item>>,
    speakers: Ends<broadcast::Sender<Item>>,
    listeners: Ends<broadcast::Receiver<Item>>,
    publisher: Ends<watch::Sender<u64>>,
    watchers: Ends<watch::Receiver<u64>>,
    fifo: FifoQueue<Item>,
    lifo: LifoQueue<Item>,
    smallest_first: PriorityQueue<Item>,
    bounds: [usize; 3],
    numbers: Cell<u64>,
    pub alive: Rc<Cell<i64>>,
}

impl World {
    pub fn new(program: &Program, clock: SimClock, logs: bool) -> World {
        let Program { permits, is_bounded, parties, bounds, .. } = *program;
        let semaphore = Semaphore::new(permits);
        let (sender, receiver) = mpsc::channel(bounds[0]);
        let (shots, targets) = (0..2)
            .map(|number| {
                let (sender, receiver) = oneshot::channel();
                ((number, sender), (number, receiver))
            })
            .unzip();
        let (speaker, listener) = broadcast::channel(bounds[1]);
        let (publisher, watcher) = watch::channel(1);
        World {
            model: RefCell::new(Model::new(program, clock.now(), logs)),
            clock,
            tasks: RefCell::default(),
            locks: [Mutex::new(0), Mutex::new(0)],
            shared: RwLock::new(0),
            permits: if is_bounded { semaphore.bounded() } else { semaphore },
            condition: Condition::new(),
            event: Event::new(),
            barrier: Barrier::new(parties),
            parties,
            cell: OnceCell::new(),
            senders: RefCell::new(vec![(0, sender)]),
            receiver: RefCell::new(vec![(0, receiver)]),
            shots: RefCell::new(shots),
            targets: RefCell::new(targets),
            speakers: RefCell::new(vec![(0, speaker)]),
            listeners: RefCell::new(vec![(0, listener)]),
            publisher: RefCell::new(vec![(0, publisher)]),
            watchers: RefCell::new(vec![(0, watcher)]),
            fifo: FifoQueue::new(bounds[2]),
            lifo: LifoQueue::new(bounds[2]),
            smallest_first: PriorityQueue::new(bounds[2]),
            bounds,
            numbers: Cell::new(0),
            alive: Rc::default(),
        }
    }

    /// A number that nothing else has.
    fn number(&self) -> u64 {
        self.numbers.update(|number| number + 1);
        self.numbers.get()
    }

    fn item(&self) -> Item {
        Item::new(self.number(), &self.alive)
    }

    /// Cancels a task, if there is one.
    pub fn cancel(&self, task: usize) {
        let found = self.tasks.borrow().get(task).cloned();
        if let Some(found) = found {
            self.model.borrow_mut().cancel(task);
            found.cancel_now("chaos");
        }
    }
}

/// An end of a channel in use. It goes back when dropped.
struct Loan<'w, E> {
    from: &'w Ends<E>,
    number: u64,
    end: Option<E>,
}

impl<'w, E> Loan<'w, E> {
    fn of(from: &'w Ends<E>) -> Option<Loan<'w, E>> {
        let (number, end) = from.borrow_mut().pop()?;
        Some(Loan { from, number, end: Some(end) })
    }

    fn end(&mut self) -> &mut E {
        self.end.as_mut().expect("it goes back when dropped")
    }
}

impl<E> Drop for Loan<'_, E> {
    fn drop(&mut self) {
        let end = self.end.take().expect("it goes back once");
        self.from.borrow_mut().push((self.number, end));
    }
}

/// A guard or a permit.
enum Guard<'w> {
    Lock(usize, MutexGuard<'w, u64>),
    Read(#[expect(dead_code, reason = "held")] RwLockReadGuard<'w, u64>),
    Write(#[expect(dead_code, reason = "held")] RwLockWriteGuard<'w, u64>),
    Permit(Permit),
}

/// What a task has. The model is told when it is dropped.
struct Hold<'w> {
    world: &'w World,
    guard: Option<Guard<'w>>,
}

impl<'w> Hold<'w> {
    fn of(world: &'w World, guard: Guard<'w>) -> Hold<'w> {
        Hold { world, guard: Some(guard) }
    }

    fn is_lock(&self) -> bool {
        matches!(self.guard, Some(Guard::Lock(0, _)))
    }

    fn is_permit(&self) -> bool {
        matches!(self.guard, Some(Guard::Permit(_)))
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let (line, reads) = match &self.guard {
            Some(Guard::Lock(lock, _)) => (*lock, false),
            Some(Guard::Read(_)) => (DOOR, true),
            Some(Guard::Write(_)) => (DOOR, false),
            Some(Guard::Permit(_)) => (PERMITS, false),
            None => return,
        };
        self.guard = None;
        self.world.model.borrow_mut().release(line, reads);
    }
}

/// What the running task has, the oldest first.
type Held<'w> = RefCell<Vec<Hold<'w>>>;

type Real<'h> = Pin<Box<dyn Future<Output = Result<Told, Interrupt>> + 'h>>;

/// A real operation beside its model, which sees each of its polls.
struct Beside<'h> {
    world: &'h World,
    id: usize,
    real: Option<Real<'h>>,
}

impl Future for Beside<'_> {
    type Output = Result<Told, Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let real = self.real.as_mut().expect("it is not polled after its end");
        let polled = real.as_mut().poll(cx);
        let (told, is_cancelled) = match &polled {
            Poll::Pending => (None, false),
            Poll::Ready(Ok(told)) => (Some(*told), false),
            Poll::Ready(Err(why)) => (Some(Told::Interrupted), why.is_cancelled()),
        };
        self.world.model.borrow_mut().settle(self.id, told, is_cancelled);
        if polled.is_ready() {
            self.real = None;
        }
        polled
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        if let Some(real) = self.real.take() {
            drop(real);
            self.world.model.borrow_mut().leave(self.id);
        }
    }
}

/// A task, whose polls the model sees.
pub struct Watched<F> {
    pub world: Rc<World>,
    pub task: usize,
    pub body: Pin<Box<F>>,
}

impl<F: Future> Future for Watched<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let now = self.world.clock.now();
        self.world.model.borrow_mut().begin_poll(self.task, now);
        let polled = catch_unwind(AssertUnwindSafe(|| self.body.as_mut().poll(cx)));
        polled.unwrap_or_else(|panic| {
            let said = || format!("task {} panics: {}", self.task, panic_message(&*panic));
            self.world.model.borrow_mut().is_wrong(said);
            resume_unwind(panic)
        })
    }
}

/// After all tasks: each object is free, and has what the model has.
pub async fn check_end(w: &World) {
    w.model.borrow_mut().check_end();
    let mut round: Vec<_> = (0..w.parties).map(|_| Box::pin(w.barrier.wait())).collect();
    let mut leaders = 0;
    for wait in round.iter_mut().rev() {
        leaders += u64::from(matches!(poll_once(wait).await, Poll::Ready(Ok(_))));
    }
    drop(round);
    let wrong = [
        (leaders != 1).then_some("the barrier"),
        what_is_left(w),
        w.fifo.join().await.is_err().then_some("the join of a queue"),
        w.lifo.join().await.is_err().then_some("the join of a queue"),
        w.smallest_first.join().await.is_err().then_some("the join of a queue"),
    ];
    if let Some(what) = wrong.into_iter().flatten().next() {
        w.model.borrow_mut().is_wrong(|| format!("at the end: {what}"));
    }
}

/// The first thing that is not as in the model.
fn what_is_left(w: &World) -> Option<&'static str> {
    let model = w.model.borrow();
    let values = [0, 1].map(|lock: usize| w.locks[lock].try_lock().map(|guard| *guard));
    let shared = w.shared.try_write().map(|guard| *guard);
    let is_made = w.cell.get().copied() == model.cell;
    let mut is_right = vec![
        (values == model.values.map(Some), "a lock"),
        (shared == Some(model.shared), "the rwlock"),
        (w.permits.available_permits() == model.all_permits, "the permits"),
        (w.event.is_set() == model.flag, "the event"),
        (is_made && w.cell.set(0).is_ok() == model.cell.is_none(), "the cell"),
    ];
    for (_, mut receiver) in w.receiver.take() {
        let items = std::iter::from_fn(|| receiver.try_recv().ok()).map(|item| item.id);
        is_right.push((items.eq(model.items.iter().copied()), "items of the channel"));
        if let Some((_, sender)) = w.senders.borrow().first() {
            let room = (0..).take_while(|_| sender.try_send(w.item()).is_ok()).count();
            let expected = if model.is_closed { 0 } else { w.bounds[0] };
            is_right.push((room == expected, "room of the channel"));
        }
    }
    for queue in 0..3 {
        let items: Vec<_> = std::iter::from_fn(|| steps::try_get(w, queue)).collect();
        is_right.push((items == model.queues[queue].in_order(queue), "items of a queue"));
        let room = (0..).take_while(|_| steps::try_put(w, queue, w.item()).is_ok()).count();
        is_right.push((room == w.bounds[2], "room of a queue"));
        let unfinished = model.queues[queue].unfinished as usize + room;
        (0..unfinished).for_each(|_| steps::task_done(w, queue));
    }
    is_right.into_iter().find(|(is_right, _)| !is_right).map(|(_, what)| what)
}
