//! An iterator that blocks, as a source of items: each item is a job, and nothing is lost.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};
use std::time::Duration;

use kernel::{Options, Sim};
use support::kernels::*;
use support::{check_with, compare_raw, ms};
use traps::threads::{IterateInThread, Limiter, thread_deadline};
use traps::{
    Error, InheritedLocal, Kind, Time, clock, ignore_after, iterate_in_thread, run_in_thread,
    sleep, spawn, timeout_after, yield_now,
};

fn at(span: Duration) -> Time {
    Time::ZERO + span
}

/// Makes a kernel on the virtual clock, on which each job takes `span`.
fn slow(span: Duration, options: Options) -> Traced<Sim> {
    Traced::new(Sim::new().jobs_take(span), options.longrun(None))
}

/// The fate of an iterator, as it records it: the number of its calls, and the time and the place
/// of its drop.
#[derive(Clone, Default)]
struct Fate {
    calls: Arc<AtomicU64>,
    /// The time of the drop, and whether a job dropped it.
    end: Arc<Mutex<Option<(Time, bool)>>>,
}

impl Fate {
    fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn end(&self) -> Option<(Time, bool)> {
        *self.end.lock().unwrap()
    }
}

/// An iterator that records its fate.
struct Watched<F> {
    next: F,
    fate: Fate,
    clock: kernel::SimClock,
}

impl<F: FnMut() -> Option<u64>> Iterator for Watched<F> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.fate.calls.fetch_add(1, Ordering::Relaxed);
        (self.next)()
    }
}

impl<F> Drop for Watched<F> {
    fn drop(&mut self) {
        let end = (self.clock.now(), thread_deadline().is_some());
        assert_eq!(self.fate.end.lock().unwrap().replace(end), None);
    }
}

/// An iterator that returns 1, 2, and so on.
type Numbers = Watched<Box<dyn FnMut() -> Option<u64> + Send>>;

/// Watches an iterator that counts to `last`.
fn count_to(last: u64, kernel: &Traced<Sim>) -> (Numbers, Fate) {
    let mut numbers = 1..=last;
    watch(Box::new(move || numbers.next()), kernel)
}

fn watch<F: FnMut() -> Option<u64>>(next: F, kernel: &Traced<Sim>) -> (Watched<F>, Fate) {
    let fate = Fate::default();
    (Watched { next, fate: fate.clone(), clock: kernel.machine().clock() }, fate)
}

/// Returns the remaining items of a source.
async fn rest<I>(items: &mut IterateInThread<I>) -> Vec<I::Item>
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    let mut found = Vec::new();
    while let Some(item) = items.next().await.unwrap() {
        found.push(item);
    }
    found
}

/// Asks for an item, and gives up after `span`.
async fn give_up_after<I>(span: Duration, items: &mut IterateInThread<I>)
where
    I: Iterator + Send + 'static,
    I::Item: Send + 'static,
{
    match timeout_after(span, items.next()).await {
        Err(Error::Interrupt(why)) => assert_eq!(why.kind(), Kind::TaskTimeout),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("an item came in time"),
    }
}

// ---- Tokens ------------------------------------------------------------------------------------

#[test]
fn f21_a_token_for_each_item_and_none_between() {
    let sim = Sim::new().jobs_take(ms(10));
    let options = Options::new().threads(1).longrun(None);
    let ran = check_with("f21_a_token_for_each_item_and_none_between", sim, options, async {
        let mut other = spawn("other", async {
            sleep(ms(100)).await.unwrap();
            run_in_thread(|| ()).await
        })
        .await;
        let mut items = iterate_in_thread(1..=2);
        while let Some(_item) = items.next().await.unwrap() {
            sleep(secs(1)).await.unwrap();
        }
        other.join().await.unwrap().unwrap();
    });
    // Three jobs for the source: the last finds the end. No job waits for the one token.
    assert_eq!(ran.count("offload"), 4);
    assert_eq!(ran.lines(|line| line.contains(" offload ") && line.contains("queued=0")).len(), 4);
    assert_eq!(ran.count("done"), 4);
}

#[test]
fn f21_three_hundred_slow_downloads_over_two_hundred_tokens() {
    const DOWNLOADS: u64 = 300;
    const ITEMS: u64 = 20;
    let read = ms(10);
    let mut kernel = slow(read, Options::new().threads(200));
    let done = Rc::new(Cell::new(0));
    let theirs = done.clone();
    let (delays, took, end) = kernel.go(async move {
        let mut downloads = Vec::new();
        for _ in 0..DOWNLOADS {
            let done = theirs.clone();
            let download = async move {
                let mut items = iterate_in_thread(0..ITEMS);
                let mut taken = 0;
                while let Some(item) = items.next().await.unwrap() {
                    assert_eq!(item, taken);
                    taken += 1;
                    sleep(secs(1)).await.unwrap();
                }
                done.set(done.get() + 1);
                taken
            };
            downloads.push(spawn("download", download).await);
        }
        let mut delays = Vec::new();
        while theirs.get() < DOWNLOADS {
            let asked = clock().await;
            run_in_thread(|| ()).await.unwrap();
            delays.push(clock().await.since(asked));
            sleep(ms(7)).await.unwrap();
        }
        let mut taken = 0;
        for mut download in downloads {
            taken += download.join().await.unwrap();
        }
        (delays, taken, clock().await)
    });
    let counters = kernel.counters();
    kernel.end();
    assert_eq!((done.get(), took), (DOWNLOADS, DOWNLOADS * ITEMS));
    // The last of 300 callers waits for one whole read, and then for its own; never longer.
    assert!(delays.len() > 1000);
    assert!(delays.iter().all(|delay| *delay <= 2 * read), "{:?}", delays.iter().max());
    // All tokens were in use, each for reads only: no download held one for a second.
    assert_eq!(counters.tokens_peak, 200);
    let reads = DOWNLOADS * (ITEMS + 1) + delays.len() as u64;
    assert_eq!(counters.tokens_held, read * u32::try_from(reads).unwrap());
    // No download was later than if each of its reads had waited for one other read.
    assert!(end <= at((secs(1) + 2 * read) * 20 + 2 * read + ms(7)), "{end:?}");
}

#[test]
fn f21_each_item_is_within_the_limit_of_its_class() {
    let mut kernel = slow(ms(10), Options::new().threads(8));
    let disk = Limiter::new("disk", 1);
    let theirs = disk.clone();
    let end = kernel.go(async move {
        let mut readers = Vec::new();
        for _ in 0..3 {
            let mut items = theirs.iterate_in_thread(1..=4);
            readers.push(spawn("reader", async move { rest(&mut items).await }).await);
        }
        for mut reader in readers {
            assert_eq!(reader.join().await.unwrap(), [1, 2, 3, 4]);
        }
        clock().await
    });
    assert_eq!((disk.peak(), disk.in_use(), disk.waiting()), (1, 0, 0));
    assert_eq!(kernel.counters().tokens_peak, 1);
    // The sources run one after the other, with five jobs each.
    assert_eq!(end, at(3 * 5 * ms(10)));
    let trace = kernel.end();
    assert_lines(&trace, "limiter=disk", 15);
}

// ---- Interrupts --------------------------------------------------------------------------------

#[test]
fn f21_an_interrupted_next_loses_no_item() {
    let mut kernel = slow(secs(2), Options::new());
    let orphans = Rc::new(Cell::new(0));
    let heard = orphans.clone();
    kernel.on_orphan(move |_| heard.set(heard.get() + 1));
    let (counted, fate) = count_to(3, &kernel);
    let found = kernel.go(async move {
        let mut items = iterate_in_thread(counted);
        let given_up = timeout_after(ms(200), items.next()).await;
        assert!(matches!(given_up, Err(Error::Interrupt(_))), "{given_up:?}");
        let mut found = Vec::new();
        while let Some(item) = items.next().await.unwrap() {
            found.push((item, clock().await));
        }
        found
    });
    // The job of the first call made the first item.
    assert_eq!(found, [(1, at(secs(2))), (2, at(secs(4))), (3, at(secs(6)))]);
    assert_eq!((fate.calls(), orphans.get()), (4, 0));
    let trace = kernel.end();
    compare_raw("f21_an_interrupted_next_loses_no_item", &trace);
    assert_lines(&trace, "abandon  o1", 1);
    assert_lines(&trace, "orphan   o1", 1);
    assert_lines(&trace, " offload  o", 4);
}

#[test]
fn f21_a_next_that_waits_for_a_job_can_be_interrupted_too() {
    let mut kernel = slow(secs(2), Options::new());
    let (counted, fate) = count_to(2, &kernel);
    let ends = kernel.go(async move {
        let mut items = iterate_in_thread(counted);
        for _ in 0..3 {
            give_up_after(ms(200), &mut items).await;
        }
        assert_eq!(clock().await, at(ms(600)));
        (items.next().await.unwrap(), clock().await, rest(&mut items).await)
    });
    assert_eq!((ends, fate.calls()), ((Some(1), at(secs(2)), vec![2]), 3));
    let trace = kernel.end();
    assert_lines(&trace, "abandon  o1", 1);
    assert_lines(&trace, " offload  o", 3);
}

#[test]
fn f21_an_item_that_was_made_meanwhile_is_there_at_once() {
    let mut kernel = slow(secs(2), Options::new());
    let (counted, fate) = count_to(2, &kernel);
    kernel.go(async move {
        let mut items = iterate_in_thread(counted);
        give_up_after(ms(200), &mut items).await;
        sleep(secs(5)).await.unwrap();
        assert_eq!(fate.calls(), 1, "no item is made ahead");
        let next = poll_once(&mut items.next()).await;
        assert!(matches!(next, Poll::Ready(Ok(Some(1)))), "{next:?}");
        assert_eq!(rest(&mut items).await, [2]);
    });
    kernel.end();
}

#[test]
fn f21_an_answer_that_is_dropped_unread_loses_no_item() {
    let mut kernel = slow(secs(2), Options::new());
    let (counted, fate) = count_to(2, &kernel);
    kernel.go(async move {
        let mut items = iterate_in_thread(counted);
        let mut unread = items.next();
        assert!(poll_once(&mut unread).await.is_pending());
        sleep(secs(5)).await.unwrap();
        drop(unread);
        assert_eq!(fate.calls(), 1);
        assert_eq!(rest(&mut items).await, [1, 2]);
        assert_eq!(fate.calls(), 3);
    });
    kernel.end();
}

#[test]
fn f21_a_job_that_was_withdrawn_is_asked_for_again() {
    let mut kernel = slow(secs(2), Options::new().threads(1));
    let (counted, fate) = count_to(2, &kernel);
    let calls = fate.clone();
    let end = kernel.go(async move {
        let mut hog = spawn("hog", run_in_thread(|| ())).await;
        yield_now().await.unwrap();
        let mut items = iterate_in_thread(counted);
        give_up_after(ms(200), &mut items).await;
        hog.join().await.unwrap().unwrap();
        assert_eq!((calls.calls(), clock().await), (0, at(secs(2))));
        assert_eq!(rest(&mut items).await, [1, 2]);
        clock().await
    });
    assert_eq!((end, fate.calls()), (at(secs(8)), 3));
    let trace = kernel.end();
    assert_lines(&trace, "drop     o2", 1);
    assert_lines(&trace, "abandon", 0);
}

/// The kernel handles the withdrawal after the poll, and the next call is made before that.
#[test]
fn f21_a_call_in_the_poll_that_drops_another_asks_again() {
    let mut kernel = slow(secs(2), Options::new().threads(1));
    let (counted, fate) = count_to(2, &kernel);
    kernel.go(async move {
        let mut hog = spawn("hog", run_in_thread(|| ())).await;
        yield_now().await.unwrap();
        let mut items = iterate_in_thread(counted);
        let mut unwanted = items.next();
        assert!(poll_once(&mut unwanted).await.is_pending());
        yield_now().await.unwrap();
        drop(unwanted);
        assert_eq!(items.next().await.unwrap(), Some(1));
        assert_eq!(rest(&mut items).await, [2]);
        hog.join().await.unwrap().unwrap();
    });
    assert_eq!(fate.calls(), 3);
    let trace = kernel.end();
    assert_lines(&trace, "drop     o2", 1);
    assert_lines(&trace, "wake     outside", 1);
}

// ---- The end of a source -----------------------------------------------------------------------

#[test]
fn f21_a_source_that_is_dropped_between_items_closes_its_iterator_at_once() {
    let mut kernel = slow(secs(2), Options::new());
    let (counted, fate) = count_to(9, &kernel);
    let theirs = fate.clone();
    kernel.go(async move {
        let mut items = iterate_in_thread(counted);
        assert_eq!(items.next().await.unwrap(), Some(1));
        sleep(secs(1)).await.unwrap();
        drop(items);
        assert_eq!(theirs.end(), Some((at(secs(3)), false)));
    });
    kernel.end();
    assert_eq!(fate.calls(), 1);
}

#[test]
fn f21_a_source_that_is_dropped_before_its_job_begins_closes_its_iterator_at_once() {
    let mut kernel = slow(secs(2), Options::new());
    let orphans = Rc::new(Cell::new(0));
    let heard = orphans.clone();
    kernel.on_orphan(move |_| heard.set(heard.get() + 1));
    let (counted, fate) = count_to(9, &kernel);
    kernel.go(async move {
        let mut items = iterate_in_thread(counted);
        give_up_after(ms(200), &mut items).await;
        drop(items);
        sleep(secs(5)).await.unwrap();
    });
    // On the virtual clock a job begins at its end. This job found nothing to do.
    assert_eq!((fate.end(), fate.calls(), orphans.get()), (Some((at(ms(200)), false)), 0, 0));
    let trace = kernel.end();
    assert_lines(&trace, "orphan   o1", 1);
}

#[test]
fn f21_a_reader_that_is_cancelled_midway_closes_its_iterator() {
    let mut kernel = slow(ms(10), Options::new());
    let (counted, fate) = count_to(9, &kernel);
    let theirs = fate.clone();
    kernel.go(async move {
        let reader = spawn("reader", async move {
            let mut items = iterate_in_thread(counted);
            while items.next().await?.is_some() {
                sleep(secs(1)).await?;
            }
            Ok::<(), Error>(())
        })
        .await;
        sleep(ms(2500)).await.unwrap();
        reader.cancel_because("the client is gone").await.unwrap();
        assert_eq!(theirs.end(), Some((at(ms(2500)), false)));
    });
    assert_eq!(fate.calls(), 3);
    kernel.end();
}

#[test]
fn f21_an_iterator_that_has_ended_is_closed_there_and_not_called_again() {
    let mut kernel = slow(secs(2), Options::new());
    let mut answers = [Some(1), None, Some(2)].into_iter();
    let (broken, fate) = watch(move || answers.next().unwrap(), &kernel);
    let theirs = fate.clone();
    kernel.go(async move {
        let mut items = iterate_in_thread(broken);
        assert_eq!(rest(&mut items).await, [1]);
        // Dropped in its job, although the source still exists.
        assert_eq!(theirs.end(), Some((at(secs(4)), true)));
        for _ in 0..3 {
            assert_eq!(items.next().await.unwrap(), None);
        }
    });
    assert_eq!(fate.calls(), 2);
    let trace = kernel.end();
    assert_lines(&trace, " offload  o", 2);
}

// ---- Panics ------------------------------------------------------------------------------------

#[test]
fn f21_a_panic_ends_the_iterator_and_is_returned_once() {
    let mut kernel = slow(secs(2), Options::new());
    let mut calls = 0;
    let next = move || {
        calls += 1;
        assert!(calls < 2, "no second one");
        Some(calls)
    };
    let (bad, fate) = watch(next, &kernel);
    let theirs = fate.clone();
    kernel.go(async move {
        let mut items = iterate_in_thread(bad);
        assert_eq!(items.next().await.unwrap(), Some(1));
        let end = items.next().await;
        assert!(matches!(&end, Err(Error::Panicked(text)) if text == "no second one"), "{end:?}");
        assert_eq!(theirs.end(), Some((at(secs(4)), true)));
        assert_eq!(rest(&mut items).await, []);
    });
    assert_eq!(fate.calls(), 2);
    kernel.end();
}

#[test]
fn f21_a_panic_after_an_interrupt_is_returned_by_the_next_call() {
    let mut kernel = slow(secs(2), Options::new());
    kernel.go(async move {
        let mut items = iterate_in_thread(std::iter::from_fn(|| -> Option<u8> { panic!("late") }));
        give_up_after(ms(200), &mut items).await;
        let end = items.next().await;
        assert!(matches!(&end, Err(Error::Panicked(text)) if text == "late"), "{end:?}");
        assert_eq!(clock().await, at(secs(2)));
        assert_eq!(items.next().await.unwrap(), None);
    });
    kernel.end();
}

#[test]
fn f21_a_panic_in_an_iterators_drop_is_returned_too() {
    struct Bad(u8);
    impl Iterator for Bad {
        type Item = u8;
        fn next(&mut self) -> Option<u8> {
            assert!(self.0 < 2, "in the call");
            None
        }
    }
    impl Drop for Bad {
        fn drop(&mut self) {
            panic!("in the drop");
        }
    }
    let mut kernel = slow(secs(2), Options::new());
    kernel.go(async {
        for (bad, expected) in [(Bad(1), "in the drop"), (Bad(2), "in the call")] {
            let mut items = iterate_in_thread(bad);
            let end = items.next().await;
            assert!(matches!(&end, Err(Error::Panicked(text)) if text == expected), "{end:?}");
            assert_eq!(items.next().await.unwrap(), None);
        }
    });
    kernel.end();
}

// ---- The context of a job ----------------------------------------------------------------------

#[test]
fn f21_an_item_is_made_under_the_deadline_and_with_the_locals_of_its_call() {
    static USER: InheritedLocal<&str> = InheritedLocal::new();
    let mut kernel = slow(ms(100), Options::new());
    kernel.go(async {
        let look = || {
            let left = thread_deadline().expect("it is a job").remaining();
            Some((left, USER.get().map(|user| *user)))
        };
        let mut items = iterate_in_thread(std::iter::from_fn(look));
        let first = ignore_after(secs(1), items.next()).await.unwrap();
        assert_eq!(first, Some(Some((Some(ms(900)), None))));
        USER.set("ann");
        let second = items.next().await.unwrap();
        assert_eq!(second, Some((None, Some("ann"))));
    });
    kernel.end();
}

#[test]
fn f21_inside_a_job_nothing_is_asked_for() {
    let mut kernel = slow(ms(100), Options::new());
    kernel.go(async {
        let nested = || {
            let mut items = iterate_in_thread(1..3);
            let polled = pin!(items.next()).poll(&mut Context::from_waker(Waker::noop()));
            matches!(polled, Poll::Ready(Err(Error::WouldNest)))
        };
        assert!(run_in_thread(nested).await.unwrap());
        assert!(iterate_in_thread(std::iter::repeat_with(nested)).next().await.unwrap().unwrap());
    });
    let trace = kernel.end();
    assert_lines(&trace, " offload  o", 2);
}

// ---- Real threads ------------------------------------------------------------------------------

/// An iterator that reports each call, and then waits for its item. Also reports the thread on
/// which it is dropped.
struct Latched {
    called: Sender<ThreadId>,
    items: Receiver<u64>,
    dropped: Sender<(ThreadId, bool)>,
}

impl Iterator for Latched {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.called.send(thread::current().id()).unwrap();
        self.items.recv().ok()
    }
}

impl Drop for Latched {
    fn drop(&mut self) {
        let in_job = thread_deadline().is_some();
        self.dropped.send((thread::current().id(), in_job)).unwrap();
    }
}

/// The test's side of the iterator.
struct Latch {
    called: Receiver<ThreadId>,
    give: Sender<u64>,
    dropped: Receiver<(ThreadId, bool)>,
}

fn latched() -> (Latched, Latch) {
    let ((called, is_called), (give, items)) = (mpsc::channel(), mpsc::channel());
    let (dropped, is_dropped) = mpsc::channel();
    let latch = Latch { called: is_called, give, dropped: is_dropped };
    (Latched { called, items, dropped }, latch)
}

#[test]
fn f21_a_call_that_is_dropped_while_a_thread_works_loses_no_item() {
    let (iterator, latch) = latched();
    let (_, trace) = on_real(async move {
        let home = thread::current().id();
        let mut items = iterate_in_thread(iterator);
        let mut first = items.next();
        assert!(poll_once(&mut first).await.is_pending());
        yield_now().await.unwrap();
        assert_ne!(latch.called.recv().unwrap(), home);
        // The thread has the iterator now, and waits for an item.
        drop(first);
        let mut second = items.next();
        assert!(poll_once(&mut second).await.is_pending());
        yield_now().await.unwrap();
        latch.give.send(7).unwrap();
        assert_eq!(second.await.unwrap(), Some(7));
        assert!(latch.called.try_recv().is_err(), "one item, one call");
        // Another item is made while no task waits, and the next call gets it.
        let mut third = items.next();
        assert!(poll_once(&mut third).await.is_pending());
        yield_now().await.unwrap();
        latch.called.recv().unwrap();
        drop(third);
        latch.give.send(8).unwrap();
        drop(latch.give);
        assert_eq!(rest(&mut items).await, [8]);
        let (thread, in_job) = latch.dropped.recv().unwrap();
        assert!(thread != home && in_job);
    });
    assert_lines(&trace, " offload  o", 3);
    assert_lines(&trace, "abandon  o", 2);
}

#[test]
fn f21_a_source_that_is_dropped_while_a_thread_works_closes_its_iterator_there() {
    let mut kernel = real();
    let orphans = Rc::new(RefCell::new(Vec::new()));
    let heard = orphans.clone();
    kernel.on_orphan(move |orphan| heard.borrow_mut().push(orphan.outcome.unwrap_err()));
    let (iterator, latch) = latched();
    let home = thread::current().id();
    kernel.go(async move {
        let mut items = iterate_in_thread(iterator);
        let mut unwanted = items.next();
        assert!(poll_once(&mut unwanted).await.is_pending());
        yield_now().await.unwrap();
        latch.called.recv().unwrap();
        drop(unwanted);
        drop(items);
        assert!(latch.dropped.try_recv().is_err(), "the thread has it");
        latch.give.send(7).unwrap();
        let (thread, in_job) = latch.dropped.recv().unwrap();
        assert!(thread != home && in_job);
    });
    let trace = kernel.end();
    assert_lines(&trace, "orphan   o1", 1);
    assert!(orphans.borrow().is_empty());
}

#[test]
fn f21_a_panic_that_no_source_will_hear_of_goes_to_the_hook() {
    let mut kernel = real();
    let orphans = Rc::new(RefCell::new(Vec::new()));
    let heard = orphans.clone();
    kernel.on_orphan(move |orphan| heard.borrow_mut().push(orphan.outcome.unwrap_err()));
    let ((started, is_started), (release, released)) = (mpsc::channel(), mpsc::channel::<()>());
    kernel.go(async move {
        let bad = std::iter::from_fn(move || -> Option<u8> {
            started.send(()).unwrap();
            released.recv().unwrap_err();
            panic!("too late");
        });
        let mut items = iterate_in_thread(bad);
        let mut unwanted = items.next();
        assert!(poll_once(&mut unwanted).await.is_pending());
        yield_now().await.unwrap();
        is_started.recv().unwrap();
        drop(unwanted);
        drop(items);
        drop(release);
    });
    kernel.end();
    assert_eq!(*orphans.borrow(), ["too late"]);
}
