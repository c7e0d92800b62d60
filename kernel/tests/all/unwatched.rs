//! The actions of tasks, and the number of their runs, do not depend on an observer.

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use kernel::{Kernel, Sim, SimClock};
use traps::{
    Interrupt, Kind, Time, clock, connection_deadline, ignore_after, sleep, spawn, timeout_after,
    timeout_at, yield_now,
};

const MS: Duration = Duration::from_millis(1);

/// The notes of a program, with the time of each.
#[derive(Clone, Default)]
struct Notes(Rc<RefCell<Vec<(u64, String)>>>, SimClock);

impl Notes {
    fn push(&self, text: impl ToString) {
        self.0.borrow_mut().push((self.1.now().as_micros(), text.to_string()));
    }

    /// Holds the CPU for `span`.
    fn burn(&self, span: Duration) {
        self.1.advance(span);
    }
}

/// Runs a program with an observer and without one. Its notes, the numbers of turns and of scopes,
/// and all counters are the same, except for scopes that the kernel did not learn of.
fn same_unwatched<F: Future<Output = ()>>(program: impl Fn(Notes) -> F) -> Vec<String> {
    let run = |watched: bool| {
        let sim = Sim::new();
        let notes = Notes(Rc::default(), sim.clock());
        let mut kernel = Kernel::new(sim);
        if watched {
            kernel.observe(|_: &kernel::trace::Line<'_>| {});
        }
        kernel.run(program(notes.clone())).unwrap();
        let mut counters = kernel.counters();
        counters.traps = 0;
        // A new observer sees the numbers of the turn and of the next scope.
        let next = Rc::new(RefCell::new((0, String::new())));
        let seen = next.clone();
        kernel.observe(move |line: &kernel::trace::Line<'_>| {
            let text = line.event.to_string();
            if text.contains("set_timeout") {
                *seen.borrow_mut() = (line.turn, text);
            }
        });
        kernel.run(async { timeout_after(MS, done()).await.unwrap() }).unwrap();
        let next = next.borrow().clone();
        (notes.0.take(), next, counters)
    };
    let (watched, unwatched) = (run(true), run(false));
    assert_eq!(watched, unwatched);
    unwatched.0.into_iter().map(|(_, note)| note).collect()
}

async fn done() -> Result<(), Interrupt> {
    Ok(())
}

#[test]
fn two_branches_that_give_way_in_one_run_both_go_on() {
    let notes = same_unwatched(|notes| async move {
        let first = async {
            clock().await;
            for _ in 0..3 {
                yield_now().await.unwrap();
                notes.push("first");
            }
        };
        let second = async {
            yield_now().await.unwrap();
            notes.push("second");
        };
        futures_util::join!(first, second);
    });
    assert_eq!(notes, ["first", "second", "first", "first"]);
}

#[test]
fn timeouts_that_are_over_at_once_have_their_numbers() {
    let notes = same_unwatched(|notes| async move {
        for span in [MS, 1000 * MS, Duration::MAX] {
            timeout_after(span, done()).await.unwrap();
            timeout_after(span, timeout_after(span, done())).await.unwrap();
        }
        timeout_after(None, done()).await.unwrap();
        ignore_after(1000 * MS, done()).await.unwrap();
        timeout_at(clock().await + 1000 * MS, done()).await.unwrap();
        let late = timeout_after(1000 * MS, sleep(2000 * MS)).await.unwrap_err();
        notes.push(late.scope().unwrap());
    });
    assert_eq!(notes, ["13"]);
}

/// A value that comes too late has its own line.
#[test]
fn timeouts_that_are_over_too_late_have_their_numbers() {
    same_unwatched(|notes| async move {
        for (span, burnt) in [(0, 0), (50, 49), (50, 50), (1000, 900), (1000, 999), (1000, 1000)] {
            let work = || async {
                notes.burn(burnt * MS);
                done().await
            };
            timeout_after(span * MS, work()).await.unwrap();
            timeout_at(clock().await + span * MS, work()).await.unwrap();
            // Later work in the same poll does not make a value late.
            timeout_after(span * MS, work()).await.unwrap();
            notes.burn(span * MS);
            timeout_after(span * MS, work()).await.unwrap();
        }
    });
}

/// A deadline counts from the first poll, whatever that poll does.
#[test]
fn a_timeout_counts_from_its_first_poll() {
    let notes = same_unwatched(|notes| async move {
        for span in [50, 1000] {
            let start = clock().await;
            let work = async {
                notes.burn(30 * MS);
                sleep(2000 * MS).await
            };
            let late = timeout_after(span * MS, work).await.unwrap_err();
            notes.push(late.deadline().unwrap().since(start).as_millis());
            // A passed deadline ends the first wait inside, in the same instant.
            let work = async {
                notes.burn(span * MS);
                sleep(MS).await
            };
            timeout_after(span * MS, work).await.unwrap_err();
            notes.push((clock().await.since(start).as_millis()) as u32 - span);
        }
    });
    assert_eq!(notes, ["50", "50", "1000", "1000"]);
}

/// Events inside have their place between the two lines.
#[test]
fn timeouts_around_what_is_filed_have_their_numbers() {
    same_unwatched(|notes| async move {
        for span in [50 * MS, 1000 * MS] {
            // A timeout dropped with its wait; one next to a request, and one after a request.
            let mut begun = Box::pin(timeout_after(span, sleep(MS)));
            let polled = poll_fn(|cx| Poll::Ready(begun.as_mut().poll(cx).is_pending()));
            assert!(polled.await);
            drop(begun);
            let both = futures_util::join!(timeout_after(span, done()), sleep(MS));
            notes.push(format!("{both:?}"));
            let both = futures_util::join!(sleep(MS), timeout_after(span, done()));
            notes.push(format!("{both:?}"));
            let both = futures_util::join!(
                timeout_after(span, sleep(MS)),
                timeout_after(span, done()),
                timeout_after(span, sleep(MS)),
            );
            notes.push(format!("{both:?}"));
            // Inside a timeout that has passed.
            let inner = async {
                let late = sleep(2000 * MS).await;
                timeout_after(1000 * MS, done()).await.unwrap();
                let next = timeout_after(1000 * MS, sleep(MS)).await;
                notes.push(format!("{next:?}"));
                late
            };
            notes.push(format!("{:?}", timeout_after(span, inner).await));
            timeout_after(1000 * MS, done()).await.unwrap();
        }
    });
}

#[test]
fn a_panic_inside_a_timeout_leaves_the_numbers_as_they_are() {
    same_unwatched(|notes| async move {
        for span in [50 * MS, 1000 * MS] {
            let dies = async move {
                let dies = async { std::panic::resume_unwind(Box::new("by design")) };
                timeout_after::<_, (), Interrupt>(span, dies).await
            };
            let mut task = spawn("dies", dies).await;
            notes.push(task.join().await.is_err());
        }
    });
}

/// Begins a timeout of a second around a long sleep, which it interrupts unseen.
async fn interrupted_unseen() -> Pin<Box<impl Future<Output = Result<(), Interrupt>>>> {
    let mut begun =
        Box::pin(timeout_after(1000 * MS, async { sleep(10_000 * MS).await.map(drop) }));
    assert!(poll_fn(|cx| Poll::Ready(begun.as_mut().poll(cx).is_pending())).await);
    sleep(2000 * MS).await.unwrap();
    begun
}

/// An interrupt that leaves a timeout in the poll that opened it is compared with that timeout, and
/// not with the earlier timeout in its place.
#[test]
fn the_deadline_of_a_timeout_that_just_opened_is_its_own() {
    let notes = same_unwatched(|notes| async move {
        let short = || timeout_after(100 * MS, sleep(MS));
        let (first, second) = futures_util::join!(short(), short());
        first.and(second).unwrap();
        let inner = interrupted_unseen().await;
        let left = ignore_after(60_000 * MS, inner).await;
        notes.push(format!("{:?}", left.map_err(|why| why.kind())));
        let inner = interrupted_unseen().await;
        let left = timeout_after(Duration::ZERO, timeout_after(None, inner)).await;
        notes.push(format!("{:?}", left.map_err(|why| why.kind())));
    });
    assert_eq!(notes, ["Err(UncaughtTimeout)", "Err(UncaughtTimeout)"]);
}

/// The end of a scope that the kernel closed long ago does not end the scope in its place.
#[test]
fn the_deadline_of_a_timeout_outlives_the_rest_of_another() {
    let begin = || Box::pin(timeout_after(1000 * MS, pending::<Result<(), Interrupt>>()));
    let mut kernel = Kernel::new(Sim::new());
    let mut left = (begin(), begin());
    let begun = poll_fn(|cx| Poll::Ready((left.0.as_mut().poll(cx), left.1.as_mut().poll(cx))));
    assert_eq!(kernel.run(begun).unwrap(), (Poll::Pending, Poll::Pending));
    let ran = kernel.run(async {
        let mut inner = Box::pin(timeout_after(5000 * MS, sleep(10_000 * MS)));
        assert!(poll_fn(|cx| Poll::Ready(inner.as_mut().poll(cx).is_pending())).await);
        // Both are over in the same instant.
        let outer = timeout_after(5000 * MS, async {
            sleep(MS).await?;
            drop(left);
            inner.await
        });
        let why = outer.await.unwrap_err();
        (why.kind(), why.scope())
    });
    assert_eq!(ran.unwrap(), (Kind::TaskTimeout, Some(4)));
}

#[test]
fn a_timeout_that_just_opened_in_the_past_is_the_one_that_passed() {
    let notes = same_unwatched(|notes| async move {
        for _ in 0..2 {
            let inner = interrupted_unseen().await;
            let past = clock().await;
            let past = Time::from_micros(past.as_micros() - 1_500_000);
            let why = timeout_at(past, timeout_after(60_000 * MS, inner)).await.unwrap_err();
            notes.push(format!("{:?} {}", why.kind(), why.deadline() == Some(past)));
        }
    });
    assert_eq!(notes, ["TaskTimeout true", "TaskTimeout true"]);
}

/// The timeout has no timer that would wake the kernel.
#[test]
fn timeouts_that_are_over_at_once_cost_no_turn() {
    same_unwatched(|_| async move {
        drop(spawn("long", sleep(3_600_000 * MS)).await);
        sleep(MS).await.unwrap();
        timeout_after(10_000 * MS, done()).await.unwrap();
        sleep(100_000 * MS).await.unwrap();
        timeout_after(10_000 * MS, timeout_after(20_000 * MS, done())).await.unwrap();
        sleep(100_000 * MS).await.unwrap();
        let both = futures_util::join!(
            timeout_after(10_000 * MS, done()),
            timeout_after(None, sleep(100_000 * MS)),
            timeout_after(20_000 * MS, done()),
        );
        both.1.unwrap();
    });
}

/// Interrupts that are pending in a guard are known only in its own task.
#[test]
fn a_cancellation_outlives_a_guard_that_another_task_drops() {
    type Begun = Pin<Box<dyn Future<Output = Result<(), Interrupt>>>>;
    let notes = same_unwatched(|notes| async move {
        let shelf: Rc<RefCell<Option<Begun>>> = Rc::default();
        let begun = shelf.clone();
        let victim = spawn("victim", async move {
            let deadline = Rc::new(connection_deadline().await);
            let guarded = deadline.clone();
            let mut guard: Begun =
                Box::pin(async move { guarded.guard(1000 * MS, pending()).await });
            // Filed, opened, and polled inside.
            for _ in 0..2 {
                poll_fn(|cx| Poll::Ready(guard.as_mut().poll(cx).is_pending())).await;
                clock().await;
            }
            *begun.borrow_mut() = Some(guard);
            // The cancellation lets it look once.
            let mut looked = false;
            poll_fn(
                |_| if mem::replace(&mut looked, true) { Poll::Ready(()) } else { Poll::Pending },
            )
            .await;
            notes.push(sleep(MS).await.is_err());
        });
        let victim = victim.await;
        yield_now().await.unwrap();
        victim.cancel_now("test");
        shelf.take();
        sleep(2 * MS).await.unwrap();
    });
    assert_eq!(notes, ["true"]);
}

/// The scope of a future from a dropped kernel has a number that this kernel uses, too.
#[test]
fn a_timeout_of_a_dropped_kernel_is_not_taken_for_one_of_this() {
    let mut first = Kernel::new(Sim::new());
    let mut left = Box::pin(timeout_after(1000 * MS, pending::<Result<(), Interrupt>>()));
    first.run(poll_fn(|cx| Poll::Ready(left.as_mut().poll(cx).is_ready()))).unwrap();
    drop(first);
    let mut second = Kernel::new(Sim::new());
    let ran = second.run(async {
        let work = async {
            drop(left);
            sleep(2000 * MS).await
        };
        timeout_after(1000 * MS, work).await.unwrap_err().scope()
    });
    assert_eq!(ran.unwrap(), Some(1));
}

/// The time at which the kernel scans the far deadlines depends on the stored deadlines, and not on
/// the time at which it learned of them.
#[test]
fn arms_that_are_superseded_taken_back_or_dropped_in_their_run_ask_for_the_same_looks() {
    let sleeps = || async {
        drop(futures_util::join!(sleep(1200 * MS), sleep(1450 * MS), sleep(2000 * MS)));
    };
    same_unwatched(|_| async move {
        let deadline = connection_deadline().await;
        deadline.arm(1000 * MS);
        deadline.arm(10_000 * MS);
        sleeps().await;
    });
    same_unwatched(|_| async move {
        let deadline = connection_deadline().await;
        deadline.arm(1000 * MS);
        drop(deadline);
        sleeps().await;
    });
    same_unwatched(|_| async move {
        let deadline = connection_deadline().await;
        deadline.arm(1000 * MS);
        sleep(10 * MS).await.unwrap();
        let first = sleep(1200 * MS);
        drop(futures_util::join!(first, sleep(1450 * MS), async { deadline.disarm() }));
    });
}
