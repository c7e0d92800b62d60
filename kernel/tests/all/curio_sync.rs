//! The cases of Curio's `test_sync.py`, rewritten. A test has the name of its case without
//! `test_`. The guide has the table of all cases, on the page `curio`.
//!
//! Cases of tasks alone run on the simulated machine, and cases with threads on the real one.

use std::collections::VecDeque;
use std::rc::Rc;
use std::thread;

use support::{Notes, ms, op, short, tenths};
use testing::run;
use traps::channel::oneshot;
use traps::sync::{Condition, Event, Mutex, Semaphore};
use traps::universal::{UniversalEvent, UniversalQueue};
use traps::{Interrupt, Task, run_in_thread, spawn, timeout_after};

/// A task that waits. Notes `wait`, and how the wait ended.
async fn waiter<F, T>(notes: &Notes, wait: F) -> Task<()>
where
    F: Future<Output = Result<T, Interrupt>> + 'static,
{
    let notes = notes.clone();
    let wait = async move {
        notes.add("wait");
        notes.add(short(&wait.await));
    };
    spawn("waiter", wait).await
}

/// Cancels a wait after a second. Returns the notes.
async fn cancelled<T>(notes: &Notes, wait: impl Future<Output = Result<T, Interrupt>> + 'static) {
    let waiter = waiter(notes, wait).await;
    op(10).await.unwrap();
    notes.add("cancel");
    waiter.cancel_because("").await.unwrap();
    notes.add("cancelled");
}

const CANCELLED: &str = "wait cancel CAN cancelled";

/// Lets a wait time out after half a second.
async fn timed_out<T>(notes: &Notes, wait: impl Future<Output = Result<T, Interrupt>> + 'static) {
    let mut waiter = waiter(notes, timeout_after(tenths(5), wait)).await;
    op(10).await.unwrap();
    notes.add("slept");
    waiter.join().await.unwrap();
}

const TIMED_OUT: &str = "wait TT slept";

// ---- Events ------------------------------------------------------------------------------------

#[test]
fn event_get_wait() {
    let notes = Notes::default();
    run(async {
        let event = Rc::new(Event::new());
        let (noted, waits) = (notes.clone(), event.clone());
        let wait = async move {
            noted.add(waits.is_set().to_string());
            waits.wait().await.unwrap();
            noted.add(waits.is_set().to_string());
            waits.clear();
            noted.add(waits.is_set().to_string());
        };
        let mut waiter = spawn("waiter", wait).await;
        op(10).await.unwrap();
        notes.add("set");
        event.set();
        waiter.join().await.unwrap();
    });
    assert_eq!(notes.text(), "false set true false");
}

#[test]
fn event_get_immediate() {
    let ran = run(async {
        let event = Event::new();
        event.set();
        op(10).await.unwrap();
        event.wait().await.unwrap();
    });
    assert_eq!(ran.took, tenths(10));
    assert_eq!(ran.trace.matches(" main     block ").count(), 1, "it is no switch\n{}", ran.trace);
}

#[test]
fn event_wait_cancel() {
    let notes = Notes::default();
    run(cancelled(&notes, async { Event::new().wait().await }));
    assert_eq!(notes.text(), CANCELLED);
}

#[test]
fn event_wait_timeout() {
    let notes = Notes::default();
    run(timed_out(&notes, async { Event::new().wait().await }));
    assert_eq!(notes.text(), TIMED_OUT);
}

/// The timeout of a wait that ended in time does not end the next wait.
#[test]
fn event_wait_notimeout() {
    let notes = Notes::default();
    run(async {
        let event = Rc::new(Event::new());
        let (noted, waits) = (notes.clone(), event.clone());
        let wait = async move {
            noted.add(short(&timeout_after(tenths(10), waits.wait()).await));
            waits.clear();
            noted.add(short(&waits.wait().await));
        };
        let mut waiter = spawn("waiter", wait).await;
        for tenth in [2, 10] {
            op(tenth).await.unwrap();
            notes.add("set");
            event.set();
        }
        waiter.join().await.unwrap();
    });
    assert_eq!(notes.text(), "set ok set ok");
}

// ---- Locks and semaphores ----------------------------------------------------------------------

#[test]
fn lock_sequence() {
    let notes = Notes::default();
    run(async {
        let lock = Rc::new(Mutex::new(()));
        let mut workers = Vec::new();
        for name in ["one", "two", "three"] {
            let (noted, lock) = (notes.clone(), lock.clone());
            let work = async move {
                noted.add(format!("{name}:wait:{}", lock.is_locked()));
                let guard = lock.lock().await.unwrap();
                noted.add(format!("{name}:acquire"));
                op(2).await.unwrap();
                drop(guard);
                noted.add(format!("{name}:release"));
            };
            workers.push(spawn(name, work).await);
        }
        for worker in &mut workers {
            worker.join().await.unwrap();
        }
    });
    let waits = "one:wait:false one:acquire two:wait:true three:wait:true";
    let turns = "one:release two:acquire two:release three:acquire three:release";
    assert_eq!(notes.text(), format!("{waits} {turns}"));
}

#[test]
fn lock_acquire_cancel() {
    let notes = Notes::default();
    run(async {
        let lock = Rc::new(Mutex::new(()));
        let wanted = lock.clone();
        let _guard = lock.lock().await.unwrap();
        cancelled(&notes, async move { wanted.lock().await.map(drop) }).await;
    });
    assert_eq!(notes.text(), CANCELLED);
}

#[test]
fn lock_acquire_timeout() {
    let notes = Notes::default();
    run(async {
        let lock = Rc::new(Mutex::new(()));
        let wanted = lock.clone();
        let _guard = lock.lock().await.unwrap();
        timed_out(&notes, async move { wanted.lock().await.map(drop) }).await;
    });
    assert_eq!(notes.text(), TIMED_OUT);
}

/// Runs workers that each hold a permit for some tenths of a second. Returns the notes.
fn workers(permits: u32, spans: [u64; 3]) -> String {
    let notes = Notes::default();
    run(async {
        let semaphore = Semaphore::new(permits);
        let mut workers = Vec::new();
        for (name, span) in ["one", "two", "three"].into_iter().zip(spans) {
            let (noted, semaphore) = (notes.clone(), semaphore.clone());
            let work = async move {
                noted.add(format!("{name}:wait:{}", semaphore.available_permits()));
                let permit = semaphore.acquire().await.unwrap();
                noted.add(format!("{name}:acquire"));
                op(span).await.unwrap();
                drop(permit);
                noted.add(format!("{name}:release"));
            };
            workers.push(spawn(name, work).await);
        }
        for worker in &mut workers {
            worker.join().await.unwrap();
        }
    });
    notes.text()
}

#[test]
fn sema_sequence() {
    let waits = "one:wait:1 one:acquire two:wait:0 three:wait:0";
    let turns = "one:release two:acquire two:release three:acquire three:release";
    assert_eq!(workers(1, [2, 2, 2]), format!("{waits} {turns}"));
}

#[test]
fn sema_sequence2() {
    let waits = "one:wait:2 one:acquire two:wait:1 two:acquire three:wait:0";
    let turns = "one:release three:acquire two:release three:release";
    assert_eq!(workers(2, [5, 6, 7]), format!("{waits} {turns}"));
}

#[test]
fn sema_acquire_cancel() {
    let notes = Notes::default();
    run(async {
        let semaphore = Semaphore::new(1);
        let _permit = semaphore.acquire().await.unwrap();
        cancelled(&notes, semaphore.acquire()).await;
    });
    assert_eq!(notes.text(), CANCELLED);
}

#[test]
fn sema_acquire_timeout() {
    let notes = Notes::default();
    run(async {
        let semaphore = Semaphore::new(1);
        let _permit = semaphore.acquire().await.unwrap();
        timed_out(&notes, semaphore.acquire()).await;
    });
    assert_eq!(notes.text(), TIMED_OUT);
}

// ---- Conditions --------------------------------------------------------------------------------

/// A queue, and a condition on which its consumers wait for an item.
#[derive(Default)]
struct Items {
    queue: Mutex<VecDeque<Option<u32>>>,
    more: Condition,
}

impl Items {
    async fn put(&self, item: Option<u32>) {
        self.queue.lock().await.unwrap().push_back(item);
        self.more.notify_one();
    }
}

#[test]
fn cond_sequence() {
    let notes = Notes::default();
    run(async {
        let items = Rc::new(Items::default());
        let mut consumers = Vec::new();
        for name in ["one", "two"] {
            let (noted, items) = (notes.clone(), items.clone());
            let consume = async move {
                loop {
                    let mut queue = items.queue.lock().await.unwrap();
                    if queue.is_empty() {
                        noted.add(format!("{name}:wait"));
                        items.more.wait(&mut queue).await.unwrap();
                    }
                    let Some(item) = queue.pop_front().expect("it was notified") else { break };
                    noted.add(format!("{name}:{item}"));
                }
                noted.add(format!("{name}:done"));
            };
            consumers.push(spawn(name, consume).await);
        }
        traps::yield_now().await.unwrap();
        for item in [Some(0), Some(1), Some(2), Some(3), None, None] {
            notes.add(item.map_or("end".to_owned(), |n| format!("put:{n}")));
            items.put(item).await;
            op(1).await.unwrap();
        }
        for consumer in &mut consumers {
            consumer.join().await.unwrap();
        }
    });
    let first = "one:wait two:wait put:0 one:0 one:wait put:1 two:1 two:wait";
    let second = "put:2 one:2 one:wait put:3 two:3 two:wait";
    assert_eq!(notes.text(), format!("{first} {second} end one:done end two:done"));
}

/// Waits for a notification.
async fn notified(of: Rc<Items>) -> Result<(), Interrupt> {
    let mut queue = of.queue.lock().await?;
    of.more.wait(&mut queue).await
}

#[test]
fn cond_wait_cancel() {
    let notes = Notes::default();
    run(cancelled(&notes, notified(Rc::default())));
    assert_eq!(notes.text(), CANCELLED);
}

#[test]
fn cond_wait_timeout() {
    let notes = Notes::default();
    run(timed_out(&notes, notified(Rc::default())));
    assert_eq!(notes.text(), TIMED_OUT);
}

#[test]
fn cond_notify_all() {
    let notes = Notes::default();
    run(async {
        let items = Rc::new(Items::default());
        let mut waiters = Vec::new();
        for _ in 0..3 {
            waiters.push(waiter(&notes, notified(items.clone())).await);
        }
        op(10).await.unwrap();
        let guard = items.queue.lock().await.unwrap();
        notes.add("notify");
        items.more.notify_all();
        drop(guard);
        notes.add("done");
        for waiter in &mut waiters {
            waiter.join().await.unwrap();
        }
    });
    assert_eq!(notes.text(), "wait wait wait notify done ok ok ok");
}

#[test]
fn cond_waitfor() {
    let notes = Notes::default();
    run(async {
        let items = Rc::new(Items::default());
        let mut consumers = Vec::new();
        for name in ["one", "two"] {
            let (noted, items) = (notes.clone(), items.clone());
            let consume = async move {
                let mut queue = items.queue.lock().await.unwrap();
                items.more.wait_for(&mut queue, |queue| queue.len() > 2).await.unwrap();
                noted.add(format!("{name}:{}", queue.len()));
            };
            consumers.push(spawn(name, consume).await);
        }
        traps::yield_now().await.unwrap();
        for n in 0..4 {
            notes.add(format!("put:{n}"));
            items.put(Some(n)).await;
            op(1).await.unwrap();
        }
        for consumer in &mut consumers {
            consumer.join().await.unwrap();
        }
    });
    assert_eq!(notes.text(), "put:0 put:1 put:2 one:3 put:3 two:4");
}

// ---- Events between tasks and threads ----------------------------------------------------------

#[test]
fn uevent_get_wait() {
    let notes = Notes::default();
    run(async {
        let event = UniversalEvent::new();
        let (noted, waits) = (notes.clone(), event.clone());
        let wait = async move {
            noted.add(waits.is_set().to_string());
            waits.wait().await.unwrap();
            noted.add(waits.is_set().to_string());
            waits.clear();
            noted.add(waits.is_set().to_string());
        };
        let mut waiter = spawn("waiter", wait).await;
        op(10).await.unwrap();
        notes.add("set");
        event.set();
        waiter.join().await.unwrap();
    });
    assert_eq!(notes.text(), "false set true false");
}

#[test]
fn uevent_get_wait_timeout() {
    let notes = Notes::default();
    run(async {
        let event = UniversalEvent::new();
        let mut waiter = waiter(&notes, timeout_after(tenths(10), event.wait())).await;
        op(20).await.unwrap();
        assert!(!event.is_set());
        event.set();
        waiter.join().await.unwrap();
    });
    assert_eq!(notes.text(), "wait TT");
}

/// Waits until a task waits for the event.
async fn until_awaited(event: &UniversalEvent) {
    while event.waiting() == 0 {
        traps::sleep(ms(1)).await.unwrap();
    }
}

/// Runs a future on a runtime of another kind, in a new thread.
fn in_other_runtime<T: Send + 'static>(
    main: impl Future<Output = T> + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::spawn(|| tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(main))
}

#[test]
fn uevent_get_twait() {
    kernel::run(async {
        let event = UniversalEvent::new();
        let waits = event.clone();
        let thread = thread::spawn(move || {
            waits.wait_blocking();
            waits.is_set()
        });
        until_awaited(&event).await;
        event.set();
        assert!(run_in_thread(move || thread.join().unwrap()).await.unwrap());
    })
    .unwrap();
}

#[test]
fn uevent_get_asyncio_set() {
    kernel::run(async {
        let event = UniversalEvent::new();
        let waits = event.clone();
        let mut waiter = spawn("waiter", async move { waits.wait().await }).await;
        until_awaited(&event).await;
        let thread = in_other_runtime(async move { event.set() });
        waiter.join().await.unwrap().unwrap();
        run_in_thread(move || thread.join().unwrap()).await.unwrap();
    })
    .unwrap();
}

#[test]
fn uevent_get_asyncio_wait() {
    kernel::run(async {
        let event = UniversalEvent::new();
        let waits = event.clone();
        let thread = in_other_runtime(async move {
            tokio::task::spawn_blocking(move || waits.wait_blocking()).await.unwrap();
        });
        until_awaited(&event).await;
        event.set();
        run_in_thread(move || thread.join().unwrap()).await.unwrap();
    })
    .unwrap();
}

// ---- Results -----------------------------------------------------------------------------------

#[test]
fn value() {
    run(async {
        let (sender, mut receiver) = oneshot::channel();
        spawn("work", async move { sender.send(2 + 3).unwrap() }).detached().await;
        assert_eq!(receiver.recv().await, Ok(5));
    });
}

#[test]
fn error() {
    run(async {
        let (sender, mut receiver) = oneshot::channel();
        let work = async move { sender.send("3x".parse::<u32>().map(|y| 2 + y)).unwrap() };
        spawn("work", work).detached().await;
        assert!(receiver.recv().await.unwrap().is_err());
    });
}

/// Passes a result of a thread on, by a runtime of another kind and by a task, to a thread.
fn passed_on<T: Send + 'static>(result: T) -> T {
    let [first, second, third] = [(); 3].map(|()| UniversalQueue::new(1));
    let (work, from, to) = (first.clone(), first, second.clone());
    let worker = thread::spawn(move || work.try_put(result).unwrap());
    let runtime = in_other_runtime(async move {
        let get = tokio::task::spawn_blocking(move || from.get_blocking());
        to.try_put(get.await.unwrap().unwrap()).unwrap();
    });
    kernel::run(async { third.put(second.get().await.unwrap()).await.unwrap() }).unwrap();
    worker.join().unwrap();
    runtime.join().unwrap();
    third.try_get().unwrap()
}

#[test]
fn universal_value() {
    assert_eq!(passed_on("3".parse().map(|y: u32| 2 + y)), Ok(5));
}

#[test]
fn universal_error() {
    assert!(passed_on("3x".parse().map(|y: u32| 2 + y)).is_err());
}

/// The text for people names the type.
#[test]
fn repr() {
    let shown = [
        ("Mutex", format!("{:?}", Mutex::new(7))),
        ("Event", format!("{:?}", Event::new())),
        ("Semaphore", format!("{:?}", Semaphore::new(1))),
        ("Condition", format!("{:?}", Condition::new())),
        ("UniversalEvent", format!("{:?}", UniversalEvent::new())),
        ("UniversalQueue", format!("{:?}", UniversalQueue::<u32>::new(1))),
        ("Sender", format!("{:?}", oneshot::channel::<u32>().0)),
    ];
    for (name, text) in shown {
        assert!(text.starts_with(name), "{name}: {text}");
    }
}
