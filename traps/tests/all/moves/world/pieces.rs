//! The futures that the programs move: each notes what it is told, and what is wrong with that.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use traps::{
    Either, Interrupt, Interruptible, Task, TaskGroup, foreign, ignore_after, outside, race,
    run_in_thread, shield, sleep, spawn, timeout_after, wait_signal, yield_now,
};

use super::{ANY, IO, Out, REASONS, STREAM, Step, Way, World};
use support::kernels::{Oneshot, never};

/// A future of a kind that the program has. `depth`: how far others may be inside.
pub fn leaf_or_node(world: &Rc<World>, way: &Rc<Way>, depth: u32) -> Step {
    let is_node = |kind: &str| ["timeout", "branches", "shield"].contains(&kind);
    let kinds: Vec<_> =
        world.kinds.iter().filter(|kind| depth > 0 || !is_node(kind)).copied().collect();
    let kind = match kinds.len() {
        0 => "sleep",
        n => kinds[world.roll(n as u64) as usize],
    };
    let (w, way) = (world.clone(), way.clone());
    let inner = |depth| leaf_or_node(world, &way, depth);
    match kind {
        "timeout" => {
            let inner = inner(depth - 1);
            Box::pin(timeout(w, way.clone(), inner))
        }
        "branches" => {
            let both = (inner(depth - 1), inner(depth - 1));
            Box::pin(branches(w, both.0, both.1))
        }
        "shield" => {
            let inner = inner(depth - 1);
            Box::pin(async move { shield(timeout_after(w.span(), inner)).await })
        }
        "bare" => Box::pin(bare(w)),
        "join" => Box::pin(join(w, way)),
        "group" => Box::pin(group(w, way, false)),
        "next_done" => Box::pin(group(w, way, true)),
        "queue" => Box::pin(async move {
            let wait = w.side().queue.wait();
            w.note("queue", wait.await)
        }),
        "permit" => Box::pin(permit(w)),
        "lock" => Box::pin(lock(w)),
        "event" => Box::pin(async move {
            let event = w.side().event.clone();
            w.note("event", event.wait().await)
        }),
        "universal" => Box::pin(universal(w)),
        "signal" => Box::pin(signal(w, way)),
        "io" => Box::pin(io(w, way)),
        "thread" => Box::pin(thread(w)),
        "foreign" => Box::pin(shot(w)),
        "outside" => Box::pin(outer(w)),
        _ => Box::pin(nap(w, way)),
    }
}

async fn nap(w: Rc<World>, way: Rc<Way>) -> Out {
    let (span, since) = (w.span(), w.now());
    let end = sleep(span).await;
    if let Ok(said) = &end {
        w.lower_bound("a sleep", &way, since, span);
        if *said > w.now() && !w.has_crossed.get() {
            w.is_wrong("clock ahead", format!("a sleep says {said} at {}", w.now()));
        }
    }
    w.note("sleep", end)
}

async fn timeout(w: Rc<World>, way: Rc<Way>, inner: Step) -> Out {
    let (span, since) = (w.span(), w.now());
    let ignores = w.roll(2) == 0;
    let end = match ignores {
        true => ignore_after(span, inner).await.map(|end| end.is_none()),
        false => timeout_after(span, inner).await.map(|()| false),
    };
    // What was read before a move has the name that it had there.
    let is_old = w.carries() && !way.before.borrow().is_empty();
    let own = |why: &Interrupt| why.kind() == traps::Kind::TaskTimeout && !is_old;
    if end.as_ref().map_or_else(own, |timed_out| *timed_out) {
        w.lower_bound("a timeout", &way, since, span);
    }
    end.map(drop)
}

async fn branches(w: Rc<World>, a: Step, b: Step) -> Out {
    w.branches.set(w.branches.get() + 2);
    if w.roll(2) == 0 {
        let (a, b) = traps::join(a, b).await;
        return a.and(b);
    }
    match race(a, b).await {
        Either::Left(end) | Either::Right(end) => end,
    }
}

/// Waits for a waker alone; some of these wake themselves.
async fn bare(w: Rc<World>) -> Out {
    if w.roll(2) == 0 {
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
        })
        .await;
    } else {
        let _ = w.note("bare", timeout_after(w.span(), never::<Out>()).await);
    }
    w.note("yield", yield_now().await)
}

/// A task that gives a number, whatever it is told.
async fn child(w: &Rc<World>) -> (Task<u64>, u64) {
    let (number, theirs, span) = (w.number(), w.clone(), w.span());
    let work = async move {
        let _ = theirs.note("child", sleep(span).await);
        number
    };
    (spawn("child", work).await, number)
}

/// Whether an error other than an interrupt may come of it: it is of another kernel.
fn refused(w: &World, way: &Way, what: &str, why: &dyn std::fmt::Display) {
    if !way.has_crossed.get() && !w.closing.get() {
        w.is_wrong("output lost", format!("{what}: {why}"));
    }
}

async fn join(w: Rc<World>, way: Rc<Way>) -> Out {
    let (mut task, number) = child(&w).await;
    let reason = REASONS.get(w.reasons.get()).filter(|_| w.roll(3) == 0);
    if let Some(reason) = reason {
        w.reasons.set(w.reasons.get() + 1);
        match w.roll(2) {
            0 => task.cancel_now(reason),
            _ => drop(w.note("cancel", task.cancel_because(reason).await)),
        }
    }
    if w.roll(3) == 0 {
        // A first join loses a race, perhaps with the output.
        w.branches.set(w.branches.get() + 2);
        let first = race(task.join(), sleep(w.span())).await;
        match first {
            Either::Left(Ok(output)) => {
                w.give("child", output);
                return Ok(());
            }
            Either::Left(end) => drop(w.note("join", end)),
            Either::Right(end) => drop(w.note("sleep", end)),
        }
    }
    for _ in 0..3 {
        let end = task.join().await;
        match &end {
            Ok(output) if *output != number => w.is_wrong("output lost", "another's came"),
            Ok(output) => w.give("child", *output),
            Err(why) if why.interrupt().is_some() => {
                // The wait was interrupted, and another is made.
                let _ = w.note("join", end);
                continue;
            }
            Err(why) => refused(&w, &way, "join", why),
        }
        return w.note("join", end);
    }
    Ok(())
}

async fn group(w: Rc<World>, way: Rc<Way>, one_by_one: bool) -> Out {
    let mut group = TaskGroup::<u64, traps::Error>::new();
    let (number, span) = (w.number(), w.span());
    let mut members = Vec::new();
    for n in 0..1 + w.roll(3) {
        let (number, span) = (number * 1000 + n, span * u32::try_from(n % 2 + 1).unwrap_or(1));
        members.push(number);
        // It does not fail by the deadline that it inherits.
        group
            .spawn("member", async move { Ok(sleep(span).await.map_or(number, |_| number)) })
            .await;
    }
    let mut done = Vec::new();
    while one_by_one && done.len() < members.len() {
        match group.next_done().await {
            Ok(Some((_, number))) => done.push(*number),
            Ok(None) => break,
            Err(why) => return w.note::<(), _>("next_done", Err(why)),
        }
    }
    if done.iter().any(|number| done.iter().filter(|it| *it == number).count() > 1) {
        w.is_wrong("output given twice", format!("next_done gave {done:?}"));
    }
    let end = group.join().await;
    match &end {
        Ok(outputs) if *outputs == members => {
            outputs.iter().for_each(|number| w.give("member", *number));
        }
        Ok(outputs) => {
            let what = format!("a group gave {outputs:?} of {members:?}");
            refused(&w, &way, "group", &what);
        }
        Err(why) if why.interrupt().is_some() => {}
        Err(why) => refused(&w, &way, "group", why),
    }
    w.note("group", end)
}

async fn permit(w: Rc<World>) -> Out {
    struct Gives(traps::WaitQueue);
    impl Drop for Gives {
        fn drop(&mut self) {
            self.0.give_permit();
        }
    }
    let permits = w.side().permits.clone();
    if !permits.try_take_permit() {
        w.note("permit", permits.wait_for_permit().await)?;
    }
    let _gives = Gives(permits);
    w.note("with permit", sleep(w.span()).await)
}

async fn lock(w: Rc<World>) -> Out {
    let lock = w.side().lock.clone();
    let guard = lock.lock().await;
    match guard {
        Ok(mut guard) => {
            *guard += 1;
            w.note("with lock", sleep(w.span()).await)
        }
        Err(why) => w.note::<(), _>("lock", Err(why)),
    }
}

async fn universal(w: Rc<World>) -> Out {
    if w.roll(2) == 0 {
        let item = w.number();
        let end = w.items.put(item).await;
        let list = if end.is_ok() { &w.items_put } else { &w.items_refused };
        list.borrow_mut().insert(item);
        return w.note("put", end);
    }
    let end = w.items.get().await;
    end.iter().for_each(|item| w.got(*item));
    w.note("get", end)
}

/// Notes from its second poll on that somebody waits: a request that was withdrawn in the poll that
/// filed it never happened.
async fn asks<F: Future>(w: &World, what: usize, wait: F) -> F::Output {
    let (mut wait, mut polls) = (pin!(wait), 0);
    poll_fn(|cx| {
        polls += 1;
        if polls > 1 {
            w.side().ask(what);
        }
        wait.as_mut().poll(cx)
    })
    .await
}

async fn signal(w: Rc<World>, way: Rc<Way>) -> Out {
    let side = w.here.get();
    let stream = if w.roll(2) == 0 { w.sides[side].stream.take() } else { None };
    let Some(mut stream) = stream else {
        let end = asks(&w, ANY, wait_signal(&[traps::Signal::User1])).await;
        // One that has crossed may get the signal of the kernel in which it began.
        if end.is_ok() && !way.has_crossed.get() {
            w.side().hear(ANY);
        }
        return w.note("signal", end);
    };
    let end = asks(&w, STREAM, stream.next()).await;
    if end.is_ok() && !way.has_crossed.get() {
        w.sides[side].hear(STREAM);
    }
    w.sides[side].stream.replace(Some(stream));
    w.note("stream", end)
}

async fn io(w: Rc<World>, way: Rc<Way>) -> Out {
    let (side, n) = (w.here.get(), w.roll(2) as usize);
    let io = w.sides[side].ios[n].clone();
    let end = asks(&w, IO + n, io.readable()).await;
    if end.is_ok() && !way.has_crossed.get() {
        w.sides[side].hear(IO + n);
    }
    w.note("io", end)
}

async fn thread(w: Rc<World>) -> Out {
    let (number, jobs) = (w.number(), w.jobs.clone());
    let job = run_in_thread(move || {
        jobs.fetch_add(1, Ordering::Relaxed);
        number
    });
    let end = job.await;
    if let Ok(output) = &end {
        w.jobs_given.set(w.jobs_given.get() + 1);
        w.give("job", *output);
        if *output != number {
            w.is_wrong("output lost", format!("job {number} gave {output}"));
        }
    }
    w.note("thread", end)
}

async fn shot(w: Rc<World>) -> Out {
    let shot = Oneshot::new();
    w.shots.borrow_mut().push(shot.clone());
    let got = match w.roll(2) {
        0 => foreign(shot.receive()).await,
        _ => Ok(shot.receive().await),
    };
    w.note("foreign", got)
}

async fn outer(w: Rc<World>) -> Out {
    let theirs = w.clone();
    let register = move |waker| {
        theirs.wakers.borrow_mut().push(waker);
        true
    };
    w.note("outside", outside("moves", register).await)
}
