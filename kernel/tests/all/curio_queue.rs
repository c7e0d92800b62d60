//! The cases of Curio's `test_queue.py`, rewritten. A test has the name of its case without
//! `test_`. The guide has the table of all cases, on the page `curio`.
//!
//! Cases of tasks alone run on the simulated machine, and cases with threads on the real one.

use std::thread;

use support::{Notes, ms, op, short, tenths};
use testing::run;
use traps::channel::queue::{Discipline, FifoQueue, LifoQueue, OrderedQueue, PriorityQueue};
use traps::universal::UniversalQueue;
use traps::{Error, Task, run_in_thread, spawn, timeout_after};

// ---- Queues between tasks ----------------------------------------------------------------------

/// A consumer: takes items until it gets `None`, and notes them. Each item takes it some tenths of
/// a second.
async fn consumer<O: Discipline<Option<u32>> + 'static>(
    queue: &OrderedQueue<Option<u32>, O>,
    name: &'static str,
    notes: &Notes,
    tenth: u64,
) -> Task<()> {
    let (queue, notes) = (queue.clone(), notes.clone());
    let consume = async move {
        while let Some(item) = queue.get().await.unwrap() {
            notes.add(format!("{name}:{item}"));
            if tenth > 0 {
                op(tenth).await.unwrap();
            }
            queue.task_done();
        }
        queue.task_done();
        notes.add(format!("{name}:done"));
    };
    spawn(name, consume).await
}

#[test]
fn queue_simple() {
    let notes = Notes::default();
    run(async {
        let queue = FifoQueue::unbounded();
        let mut one = consumer(&queue, "one", &notes, 0).await;
        let mut two = consumer(&queue, "two", &notes, 0).await;
        for n in 0..4 {
            op(1).await.unwrap();
            queue.put(Some(n)).await.unwrap();
        }
        op(1).await.unwrap();
        queue.put(None).await.unwrap();
        queue.put(None).await.unwrap();
        notes.add("join");
        queue.join().await.unwrap();
        notes.add("joined");
        one.join().await.unwrap();
        two.join().await.unwrap();
    });
    let order = "one:0 two:1 one:2 two:3 join one:done two:done joined";
    assert_eq!(notes.text(), order);
}

#[test]
fn queue_unbounded() {
    let notes = Notes::default();
    run(async {
        let queue = FifoQueue::unbounded();
        let mut one = consumer(&queue, "one", &notes, 0).await;
        op(1).await.unwrap();
        for item in [Some(0), Some(1), Some(2), Some(3), None] {
            queue.put(item).await.unwrap();
        }
        notes.add("join");
        queue.join().await.unwrap();
        notes.add("joined");
        one.join().await.unwrap();
    });
    assert_eq!(notes.text(), "join one:0 one:1 one:2 one:3 one:done joined");
}

#[test]
fn queue_bounded() {
    let notes = Notes::default();
    run(async {
        let queue = FifoQueue::new(2);
        let mut one = consumer(&queue, "one", &notes, 1).await;
        op(1).await.unwrap();
        for n in 0..4 {
            queue.put(Some(n)).await.unwrap();
            notes.add(format!("put:{n}"));
        }
        queue.put(None).await.unwrap();
        notes.add("join");
        queue.join().await.unwrap();
        notes.add("joined");
        one.join().await.unwrap();
    });
    let order = "put:0 put:1 one:0 put:2 one:1 put:3 one:2 join one:3 one:done joined";
    assert_eq!(notes.text(), order);
}

#[test]
fn queue_get_cancel() {
    run(async {
        let get = async { short(&FifoQueue::<u32>::unbounded().get().await) };
        let mut consumer = spawn("consumer", get).await;
        op(5).await.unwrap();
        consumer.cancel_because("").await.unwrap();
        assert_eq!(consumer.join().await, Ok("CAN"));
    });
}

#[test]
fn queue_put_cancel() {
    run(async {
        let queue = FifoQueue::new(1);
        let puts = queue.clone();
        let put = async move {
            puts.put(0).await.unwrap();
            short(&puts.put(1).await)
        };
        let mut producer = spawn("producer", put).await;
        op(5).await.unwrap();
        producer.cancel_because("").await.unwrap();
        assert_eq!(producer.join().await, Ok("CAN"));
        assert_eq!((queue.try_get(), queue.try_get()), (Ok(0), Err(Error::Empty)));
    });
}

#[test]
fn queue_get_timeout() {
    run(async {
        let queue = FifoQueue::<u32>::unbounded();
        assert_eq!(short(&timeout_after(tenths(5), queue.get()).await), "TT");
    });
}

#[test]
fn queue_put_timeout() {
    run(async {
        let queue = FifoQueue::new(1);
        queue.put(0).await.unwrap();
        let rejected = timeout_after(tenths(5), queue.put(1)).await.unwrap_err();
        assert_eq!((rejected.item, queue.len()), (Some(1), 1), "the item comes back");
    });
}

#[test]
fn queue_qsize() {
    run(async {
        let queue = FifoQueue::unbounded();
        queue.put(1).await.unwrap();
        assert_eq!(queue.len(), 1);
    });
}

#[test]
fn priority_queue() {
    let notes = Notes::default();
    run(async {
        let queue = PriorityQueue::unbounded();
        for n in [4, 2, 1, 3] {
            queue.put((n, Some(n))).await.unwrap();
        }
        queue.put((10, None)).await.unwrap();
        let (gets, noted) = (queue.clone(), notes.clone());
        let consume = async move {
            while let (_, Some(n)) = gets.get().await.unwrap() {
                noted.add(n.to_string());
                op(2).await.unwrap();
                gets.task_done();
            }
            gets.task_done();
        };
        spawn("consumer", consume).detached().await;
        queue.join().await.unwrap();
    });
    assert_eq!(notes.text(), "1 2 3 4");
}

#[test]
fn lifo_queue() {
    let notes = Notes::default();
    run(async {
        let queue = LifoQueue::unbounded();
        for item in [None, Some(0), Some(1), Some(2), Some(3)] {
            queue.put(item).await.unwrap();
        }
        let mut one = consumer(&queue, "one", &notes, 2).await;
        queue.join().await.unwrap();
        one.join().await.unwrap();
    });
    assert_eq!(notes.text(), "one:3 one:2 one:1 one:0 one:done");
}

// ---- Queues between tasks and threads ----------------------------------------------------------

/// A task that takes items until the queue is closed.
async fn taker(queue: &UniversalQueue<u32>) -> Task<Vec<u32>> {
    let queue = queue.clone();
    let take = async move {
        let mut taken = Vec::new();
        while let Ok(item) = queue.get().await {
            taken.push(item);
        }
        taken
    };
    spawn("taker", take).await
}

/// A thread that puts all numbers up to `end`, and closes the queue.
fn putter(queue: &UniversalQueue<u32>, end: u32) -> thread::JoinHandle<()> {
    let queue = queue.clone();
    thread::spawn(move || {
        for n in 0..end {
            queue.put_blocking(n).unwrap();
        }
        queue.close();
    })
}

fn sorted(mut items: Vec<u32>) -> Vec<u32> {
    items.sort_unstable();
    items
}

#[test]
fn univ_queue_basic() {
    let queue = UniversalQueue::new(1);
    assert!(queue.is_empty());
    assert_eq!(queue.len(), 0);
    assert!(queue.try_put(0).is_ok(), "it is not full");
    assert_eq!(queue.try_put(1).unwrap_err().why, Error::Full);
}

#[test]
fn univ_queue_sync_async() {
    kernel::run(async {
        let queue = UniversalQueue::new(4);
        let mut taker = taker(&queue).await;
        let thread = putter(&queue, 10);
        run_in_thread(move || thread.join().unwrap()).await.unwrap();
        assert_eq!(taker.join().await.unwrap(), (0..10).collect::<Vec<_>>());
    })
    .unwrap();
}

#[test]
fn univ_queue_async_sync() {
    kernel::run(async {
        let queue = UniversalQueue::new(4);
        let gets = queue.clone();
        let thread = thread::spawn(move || {
            std::iter::from_fn(|| gets.get_blocking().ok()).collect::<Vec<u32>>()
        });
        for n in 0..10 {
            queue.put(n).await.unwrap();
        }
        queue.close();
        let taken = run_in_thread(move || thread.join().unwrap()).await.unwrap();
        assert_eq!(taken, (0..10).collect::<Vec<_>>());
    })
    .unwrap();
}

/// A get times out before each item arrives. No item is lost.
#[test]
fn univ_queue_cancel() {
    kernel::run(async {
        let (queue, timeouts) = (UniversalQueue::new(2), UniversalQueue::new(1));
        let (puts, waits) = (queue.clone(), timeouts.clone());
        let thread = thread::spawn(move || {
            for n in 0..10 {
                let () = waits.get_blocking().unwrap();
                puts.put_blocking(n).unwrap();
            }
            puts.close();
        });
        let mut taken = Vec::new();
        loop {
            match timeout_after(ms(1), queue.get()).await {
                Ok(item) => taken.push(item),
                Err(Error::Interrupt(_)) => drop(timeouts.try_put(())),
                Err(_) => break,
            }
        }
        run_in_thread(move || thread.join().unwrap()).await.unwrap();
        assert_eq!(taken, (0..10).collect::<Vec<_>>());
    })
    .unwrap();
}

#[test]
fn univ_queue_multiple_consumer() {
    kernel::run(async {
        let queue = UniversalQueue::new(10);
        let mut takers = Vec::new();
        for _ in 0..3 {
            takers.push(taker(&queue).await);
        }
        let thread = putter(&queue, 1000);
        let mut taken = Vec::new();
        for taker in &mut takers {
            taken.extend(taker.join().await.unwrap());
        }
        run_in_thread(move || thread.join().unwrap()).await.unwrap();
        assert_eq!(sorted(taken), (0..1000).collect::<Vec<_>>());
    })
    .unwrap();
}

#[test]
fn univ_queue_multiple_kernels() {
    let queue = UniversalQueue::new(10);
    let kernel = || {
        let queue = queue.clone();
        thread::spawn(move || {
            kernel::run(async { taker(&queue).await.join().await.unwrap() }).unwrap()
        })
    };
    let kernels = [kernel(), kernel(), kernel()];
    putter(&queue, 1000).join().unwrap();
    let taken = kernels.into_iter().flat_map(|kernel| kernel.join().unwrap()).collect();
    assert_eq!(sorted(taken), (0..1000).collect::<Vec<_>>());
}

/// Runs a future on a runtime of another kind, in a new thread.
fn in_other_runtime<T: Send + 'static>(
    main: impl Future<Output = T> + Send + 'static,
) -> thread::JoinHandle<T> {
    thread::spawn(|| tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(main))
}

#[test]
fn uqueue_asyncio_prod() {
    kernel::run(async {
        let queue = UniversalQueue::new(2);
        let mut taker = taker(&queue).await;
        let theirs = queue.clone();
        let produce = async move {
            for n in 0..10 {
                let queue = theirs.clone();
                let put = tokio::task::spawn_blocking(move || queue.put_blocking(n));
                put.await.unwrap().unwrap();
            }
            theirs.close();
        };
        let thread = in_other_runtime(produce);
        assert_eq!(taker.join().await.unwrap(), (0..10).collect::<Vec<_>>());
        run_in_thread(move || thread.join().unwrap()).await.unwrap();
    })
    .unwrap();
}

#[test]
fn uqueue_asyncio_consumer() {
    let queue = UniversalQueue::new(2);
    let theirs = queue.clone();
    let consume = async move {
        let mut taken = Vec::new();
        loop {
            let queue = theirs.clone();
            let get = tokio::task::spawn_blocking(move || queue.get_blocking());
            match get.await.unwrap() {
                Ok(item) => taken.push(item),
                Err(_closed) => return taken,
            }
        }
    };
    let thread = in_other_runtime(consume);
    kernel::run(async {
        for n in 0..10 {
            queue.put(n).await.unwrap();
        }
        queue.close();
    })
    .unwrap();
    assert_eq!(thread.join().unwrap(), (0..10).collect::<Vec<_>>());
}

#[test]
fn uqueue_put_cancel() {
    run(async {
        let queue = UniversalQueue::new(1);
        queue.put(1).await.unwrap();
        let rejected = timeout_after(tenths(1), queue.put(2)).await.unwrap_err();
        assert_eq!((rejected.item, queue.len()), (Some(2), 1));
    });
}
