//! Tests of every interleaving of small programs of threads. They run with `RUSTFLAGS="--cfg loom"`
//! in a release build. If a wake-up is lost, the model deadlocks, and loom reports that. A wait
//! with a timeout gives up at once, or after any step of the other threads.

use std::time::{Duration, Instant};

use super::*;

pub(super) use loom::sync::Mutex;
pub(super) use thread::Thread;

/// Threads of the loom model that can park. Do not use loom's own `park`: its `unpark` also wakes a
/// thread that waits for a lock, and that thread then continues without the lock.
pub(super) mod thread {
    pub(in super::super) use loom::thread::{spawn, yield_now};

    use std::sync::Arc;

    use loom::sync::{Condvar, Mutex};

    #[derive(Clone, Debug)]
    pub struct Thread(Arc<(Mutex<bool>, Condvar)>);

    impl Thread {
        pub(in super::super) fn unpark(&self) {
            let (woken, condvar) = &*self.0;
            *woken.lock().unwrap() = true;
            condvar.notify_one();
        }
    }

    loom::thread_local! {
        static HERE: Thread = Thread(Arc::new((Mutex::new(false), Condvar::new())));
    }

    pub(in super::super) fn current() -> Thread {
        HERE.with(Clone::clone)
    }

    pub(in super::super) fn park() {
        let Thread(here) = current();
        let (woken, condvar) = &*here;
        let mut woken = woken.lock().unwrap();
        while !std::mem::take(&mut *woken) {
            woken = condvar.wait(woken).unwrap();
        }
    }
}

/// Parks like the real `park`. In a model, a deadline can pass at any point, so it passes at once,
/// after a step of other threads.
pub(super) fn park(deadline: Option<Instant>) -> bool {
    if deadline.is_some() {
        thread::yield_now();
        return false;
    }
    thread::park();
    true
}

const SECOND: Duration = Duration::from_secs(1);

/// Checks a model of three threads. It bounds the preemptions, because all interleavings would take
/// minutes.
fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

#[test]
fn every_item_of_a_full_queue_arrives_in_order() {
    loom::model(|| {
        let queue = UniversalQueue::new(1);
        let theirs = queue.clone();
        let putter = thread::spawn(move || {
            (1..=2).for_each(|item| theirs.put_blocking(item).unwrap());
        });
        assert_eq!((queue.get_blocking(), queue.get_blocking()), (Ok(1), Ok(2)));
        putter.join().unwrap();
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
}

#[test]
fn a_get_lets_in_a_put_that_waits_for_room() {
    loom::model(|| {
        let queue = UniversalQueue::new(2);
        (1..=3).for_each(|item| drop(queue.try_put(item)));
        assert_eq!(queue.try_get(), Ok(1));
        queue.try_put(3).unwrap();
        let theirs = queue.clone();
        let putter = thread::spawn(move || theirs.put_blocking(4).unwrap());
        assert_eq!((queue.try_get(), queue.len() > 0), (Ok(2), true));
        putter.join().unwrap();
        assert_eq!((queue.get_blocking(), queue.get_blocking()), (Ok(3), Ok(4)));
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
}

#[test]
fn two_takers_have_each_item_once() {
    model(|| {
        let queue = UniversalQueue::new(3);
        (1..=2).for_each(|item| queue.try_put(item).unwrap());
        let (one, two) = (queue.clone(), queue.clone());
        let theirs = thread::spawn(move || one.try_get().ok());
        let putter = thread::spawn(move || two.put_blocking(3).unwrap());
        let mut all = vec![queue.get_blocking().unwrap()];
        putter.join().unwrap();
        all.extend(theirs.join().unwrap());
        all.extend(std::iter::from_fn(|| queue.try_get().ok()));
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
}

#[test]
fn an_item_of_a_get_that_gives_up_goes_to_the_next_get() {
    loom::model(|| {
        let queue = UniversalQueue::new(1);
        let theirs = queue.clone();
        let hasty = thread::spawn(move || theirs.get_blocking_timeout(SECOND).ok());
        queue.put_blocking(7).unwrap();
        let got = hasty.join().unwrap();
        assert_eq!(got.or_else(|| queue.try_get().ok()), Some(7));
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
}

#[test]
fn a_patient_get_has_the_item_that_a_hasty_get_gives_back() {
    model(|| {
        let queue = UniversalQueue::new(1);
        let (one, two) = (queue.clone(), queue.clone());
        let hasty = thread::spawn(move || one.get_blocking_timeout(SECOND).is_ok());
        let patient = thread::spawn(move || two.get_blocking());
        queue.put_blocking(7).unwrap();
        if hasty.join().unwrap() {
            queue.put_blocking(8).unwrap();
        }
        assert!(patient.join().unwrap().is_ok());
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
}

#[test]
fn a_put_that_gives_up_has_its_item_or_a_get_has_it() {
    loom::model(|| {
        let queue = UniversalQueue::new(1);
        queue.try_put(1).unwrap();
        let theirs = queue.clone();
        let hasty = thread::spawn(move || theirs.put_blocking_timeout(2, SECOND));
        assert_eq!(queue.get_blocking(), Ok(1));
        match hasty.join().unwrap() {
            Ok(()) => assert_eq!(queue.try_get(), Ok(2)),
            Err(late) => assert_eq!((late.item, queue.len()), (Some(2), 0)),
        }
        assert_eq!(queue.waiting(), 0);
    });
}

#[test]
fn a_close_ends_every_wait_and_no_item_is_lost_in_it() {
    model(|| {
        let queue = UniversalQueue::new(1);
        let (one, two) = (queue.clone(), queue.clone());
        let getter = thread::spawn(move || {
            let mut got = Vec::new();
            while let Ok(item) = one.get_blocking() {
                got.push(item);
            }
            got
        });
        let putter = thread::spawn(move || {
            let refused = |item| two.put_blocking(item).err().map(|error| error.item.unwrap());
            (1..=2).filter_map(refused).collect::<Vec<_>>()
        });
        queue.close();
        let (got, back) = (getter.join().unwrap(), putter.join().unwrap());
        assert_eq!([got, back].concat(), [1, 2]);
        assert_eq!((queue.len(), queue.waiting()), (0, 0));
    });
}

#[test]
fn a_set_event_ends_every_wait_though_it_is_cleared_at_once() {
    model(|| {
        let event = UniversalEvent::new();
        let (one, two) = (event.clone(), event.clone());
        let hasty = thread::spawn(move || one.wait_blocking_timeout(SECOND));
        let setter = thread::spawn(move || two.set());
        event.wait_blocking();
        event.clear();
        setter.join().unwrap();
        hasty.join().unwrap();
        assert_eq!((event.waiting(), event.is_set()), (0, false));
    });
}
