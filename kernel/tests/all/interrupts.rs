//! Which waits an interrupt ends, and interrupts that go back: their wait was dropped before it
//! read them, or had succeeded already. The rule is at the head of `traps/src/interrupts/mod.rs`.

use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::future;
use kernel::{Options, Sim};
use support::kernels::*;
use traps::io::{Direction, Io, Scripted};
use traps::sync::Barrier;
use traps::{
    ConnectionDeadline, Interrupt, Kind, Time, WaitQueue, branch, clock, connection_deadline, join,
    join_all, race, shield, sleep, spawn, timeout_after, yield_now,
};

const SECOND: Duration = Duration::from_secs(1);

/// Files the trap of a future, and does not wait for it.
async fn file<F: Future + Unpin>(future: &mut F) {
    let mut future = pin!(future);
    assert!(poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await);
}

/// Returns at the next poll.
async fn until_polled() {
    let mut is_polled = false;
    poll_fn(
        |_| if std::mem::replace(&mut is_polled, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

#[test]
fn an_interrupt_that_goes_back_ends_a_wait_that_parked_before_in_its_branch() {
    let ((ends, at), trace) = on_sim(async {
        let queue = WaitQueue::new();
        let second = async {
            let mut ended = Box::pin(sleep(9 * SECOND));
            file(&mut ended).await;
            until_polled().await;
            // The trap of the next wait comes before the interrupt goes back.
            let mut next = queue.wait();
            file(&mut next).await;
            drop(ended);
            next.await
        };
        let both = async { Ok::<_, Interrupt>(join(sleep(9 * SECOND), second).await) };
        let (first, second) = timeout_after(SECOND, both).await.unwrap();
        ((first.is_err(), second.is_err()), clock().await)
    });
    assert_eq!((ends, at), ((true, true), Time::ZERO + SECOND), "{trace}");
}

/// Runs two branches inside a timeout of a second. Each is interrupted. In the first, `wait` gets a
/// barrier whose round ends before the interrupt is read, and returns.
fn succeeds_first<F: Future>(wait: impl FnOnce(Rc<Barrier>) -> F) {
    let ((ends, at), trace) = on_sim(async {
        let barrier = Rc::new(Barrier::new(2));
        let theirs = barrier.clone();
        let other = async move {
            // If equal, a sleep fires before a timeout. So this task runs first.
            sleep(SECOND).await.unwrap();
            theirs.wait().await.unwrap();
        };
        let mut other = spawn("other", other).await;
        let first = async {
            wait(barrier).await;
            sleep(9 * SECOND).await
        };
        yield_now().await.unwrap();
        let both = async { Ok::<_, Interrupt>(join(first, sleep(9 * SECOND)).await) };
        let (first, second) = timeout_after(SECOND, both).await.unwrap();
        other.join().await.unwrap();
        ((first.is_err(), second.is_err()), clock().await)
    });
    assert_eq!((ends, at), ((true, true), Time::ZERO + SECOND), "{trace}");
}

#[test]
fn an_interrupt_that_came_too_late_is_pending_in_the_branch_of_its_wait() {
    succeeds_first(|barrier| async move { barrier.wait().await.unwrap() });
}

#[test]
fn an_interrupt_that_came_too_late_is_pending_around_its_branch_if_that_has_closed() {
    succeeds_first(|barrier| async move { race(barrier.wait(), pending::<()>()).await });
    succeeds_first(|barrier| async move { branch(branch(barrier.wait())).await.unwrap() });
    succeeds_first(|barrier| async move {
        join(race(pending::<()>(), branch(barrier.wait())), async {}).await
    });
}

#[test]
fn the_end_of_a_task_that_leaves_an_interrupt_unread_has_its_own_cause() {
    let (_, trace) = on_sim(async {
        let left = Shared::new(sleep(9 * SECOND));
        let theirs = left.clone();
        let body = async move {
            assert!(theirs.poll_once().await.is_pending());
            until_polled().await;
        };
        let mut task = spawn("leaves", body).await;
        yield_now().await.unwrap();
        task.cancel_now("");
        task.join().await.unwrap();
        drop(left);
    });
    let line =
        |word: &str| trace.lines().rfind(|line| line.contains("leaves") && line.contains(word));
    let number = line(" run ").unwrap().split_whitespace().nth(2).unwrap();
    assert!(line(" exit ").unwrap().ends_with(&format!("cause={number}")), "{trace}");
}

#[test]
fn a_trap_whose_event_has_happened_is_not_interrupted() {
    let machine = Sim::new().ready_at(Time::ZERO + SECOND, 1, Direction::Read);
    let mut kernel = Traced::new(machine, Options::new());
    kernel.go(async {
        let task = spawn("task", async {
            let queue = WaitQueue::with_permits(1);
            let io = Io::new(Scripted(1));
            // The descriptor is registered from here, and ready before the next wait.
            assert!(timeout_after(SECOND / 2, io.readable()).await.is_err());
            assert!(shield(sleep(SECOND)).await.is_ok());
            assert!(io.readable().await.is_ok());
            assert!(queue.wait().await.is_ok());
            assert!(queue.wait().await.unwrap_err().is_cancelled());
        });
        let mut task = task.await;
        yield_now().await.unwrap();
        sleep(SECOND * 3 / 4).await.unwrap();
        task.cancel_now("");
        task.join().await.unwrap();
    });
    kernel.end();
}

#[test]
fn timeouts_of_a_poll_that_panics_leave_no_timer() {
    let mut kernel = sim();
    kernel.go(async {
        let panics = async {
            let wait = timeout_after(SECOND, sleep(2 * SECOND));
            join(wait, async { panic!("as it should") }).await.1
        };
        let mut task = spawn("panics", panics).await;
        task.join().await.unwrap_err();
        yield_now().await.unwrap();
    });
    let trace = kernel.end();
    assert!(!trace.contains(" fire "), "{trace}");
}

thread_local! {
    static ARMED_AGAIN: RefCell<Option<Rc<ConnectionDeadline>>> = const { RefCell::new(None) };
}

struct ArmsAgain;

impl Wake for ArmsAgain {
    fn wake(self: Arc<Self>) {
        ARMED_AGAIN.with_borrow(|deadline| deadline.as_ref().unwrap().arm(60 * SECOND));
    }
}

#[test]
fn a_waker_that_arms_a_guard_again_saves_the_waits_after_its_own() {
    let (ends, trace) = on_sim(async {
        let deadline = Rc::new(connection_deadline().await);
        ARMED_AGAIN.set(Some(deadline.clone()));
        let both = async {
            let mut waits = [(); 2].map(|()| Box::pin(sleep(9 * SECOND)));
            let waker = Waker::from(Arc::new(ArmsAgain));
            for wait in &mut waits {
                assert!(wait.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            }
            let [first, second] = waits;
            Ok::<_, Interrupt>((first.await.is_err(), second.await.is_err(), clock().await))
        };
        let ends = deadline.guard(SECOND, both).await.unwrap();
        ARMED_AGAIN.take();
        ends
    });
    assert_eq!(ends, (true, false, Time::ZERO + 9 * SECOND), "{trace}");
}

/// Runs two futures side by side inside a timeout of a second. The second has ended before, and
/// another task has taken its rows in the tables of waits and scopes.
fn ends_what_is_left<F: Future<Output = bool>>(first: F, second: impl Future) {
    let ((is_interrupted, at), trace) = on_sim(async {
        let other = async {
            sleep(SECOND / 2).await.unwrap();
            join_all((0..5).map(|_| timeout_after(8 * SECOND, sleep(9 * SECOND)))).await;
        };
        let mut other = spawn("other", other).await;
        let both = async { Ok::<_, Interrupt>(future::join(first, second).await) };
        let (is_interrupted, _) = timeout_after(SECOND, both).await.unwrap();
        let at = clock().await;
        other.join().await.unwrap();
        (is_interrupted, at)
    });
    assert_eq!((is_interrupted, at), (true, Time::ZERO + SECOND), "{trace}");
}

#[test]
fn a_timeout_ends_the_wait_that_is_left_after_a_newer_one_has_gone() {
    let short = SECOND / 4;
    ends_what_is_left(async { sleep(9 * SECOND).await.is_err() }, sleep(short));
    let inner = |span| timeout_after(8 * SECOND, sleep(span));
    ends_what_is_left(async { inner(9 * SECOND).await.is_err() }, inner(short));
}

#[test]
fn a_bare_wait_that_begins_as_an_inner_timeout_closes_ends_with_the_outer_one() {
    let (end, trace) = on_sim(async {
        let body = async {
            let ended = timeout_after(2 * SECOND, sleep(9 * SECOND)).await;
            assert_eq!(ended.unwrap_err().kind(), Kind::TimeoutCancellation);
            pending::<Result<(), Interrupt>>().await
        };
        let end = timeout_after(SECOND, body).await;
        (end.unwrap_err().kind(), clock().await)
    });
    assert_eq!(end, (Kind::TaskTimeout, Time::ZERO + SECOND), "{trace}");
}
