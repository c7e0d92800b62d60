//! Worker threads: tokens, queues, limiters, the context of a job, and late results.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use kernel::{Counters, JobView, Kernel, Machine, Options, Real, Sim};
use support::kernels::{Shared, Traced, assert_lines, on_real, on_sim, secs};
use support::{check, check_with, ms, tenths};
use traps::sync::Event;
use traps::threads::{Limiter, thread_deadline};
use traps::{
    Error, InheritedLocal, Kind, Signal, Task, Time, clock, join, run_in_thread, sleep, spawn,
    timeout_after, yield_now,
};

fn at(span: Duration) -> Time {
    Time::ZERO + span
}

fn is_timeout<T>(end: &Result<T, Error>) -> bool {
    matches!(end, Err(Error::Interrupt(why)) if why.kind() == Kind::TaskTimeout)
}

#[test]
fn scripted_jobs_that_panic_as_they_are_dropped_end_neither_their_kernel_nor_the_process() {
    struct Dies(Arc<AtomicU64>);
    impl Drop for Dies {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
            std::panic::resume_unwind(Box::new("by design"));
        }
    }
    for shut_down in [false, true] {
        let dropped = Arc::new(AtomicU64::new(0));
        let mut kernel = Kernel::new(Sim::new().jobs_take(secs(1)));
        let main = async {
            for _ in 0..3 {
                let dies = Dies(dropped.clone());
                let job = run_in_thread(move || drop(dies));
                drop(spawn("asks", job).await);
            }
            yield_now().await.unwrap();
        };
        kernel.run(main).unwrap();
        if shut_down {
            kernel.shutdown().unwrap();
        }
        drop(kernel);
        assert_eq!(dropped.load(Ordering::Relaxed), 3, "{shut_down}");
    }
}

async fn all<T: 'static>(tasks: Vec<Task<T>>) -> Vec<T> {
    let mut ended = Vec::new();
    for mut task in tasks {
        ended.push(task.join().await.unwrap());
    }
    ended
}

/// Returns the values of the orphans of a kernel, in order.
fn orphans<M: Machine, T: 'static>(kernel: &mut Traced<M>) -> Rc<RefCell<Vec<(u64, T)>>> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let theirs = seen.clone();
    kernel.on_orphan(move |orphan| {
        let value = orphan.outcome.unwrap().downcast::<T>().unwrap();
        theirs.borrow_mut().push((orphan.job, *value));
    });
    seen
}

// ---- A timeout on a job ------------------------------------------------------------------------

#[test]
fn r6_a_timeout_on_a_job_is_delivered_on_time() {
    let ran = check("r6_a_timeout_on_a_job", Sim::new().jobs_take(secs(2)), async {
        let end = timeout_after(tenths(2), run_in_thread(|| "too late")).await;
        let heard = clock().await;
        sleep(secs(3)).await.unwrap();
        (is_timeout(&end), heard)
    });
    assert_eq!(ran.output, (true, at(tenths(2))));
}

/// Asserts the state that 64 abandoned jobs leave, and the state that the 65th job meets.
fn assert_left_behind(counters: &Counters, jobs: &[JobView]) {
    let Counters { tokens, abandoned, queued, tokens_peak, .. } = *counters;
    assert_eq!((tokens, abandoned, queued, tokens_peak), (64, 64, 1, 64));
    let states: Vec<&str> = jobs.iter().map(|job| job.state).collect();
    assert_eq!(states[..64], ["abandoned"; 64]);
    assert_eq!(states[64..], ["queued"]);
}

#[test]
fn r6_the_sixty_fifth_of_jobs_that_are_cut_off_queues_and_none_is_lost() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(2)), Options::new());
    let late = orphans::<_, u64>(&mut kernel);
    let mut last = kernel.go(async {
        let mut callers = Vec::new();
        for n in 0..64_u64 {
            let call = async move {
                let end = timeout_after(tenths(2), run_in_thread(move || n)).await;
                (is_timeout(&end), clock().await)
            };
            callers.push(spawn("caller", call).await);
        }
        let last = spawn("last", async {
            let value = run_in_thread(|| 64_u64).await.unwrap();
            (value, clock().await)
        });
        let last = last.await;
        let ends = all(callers).await;
        assert!(ends.iter().all(|end| *end == (true, at(tenths(2)))), "{ends:?}");
        last
    });
    assert_left_behind(&kernel.counters(), &kernel.jobs());
    assert!(late.borrow().is_empty());
    let ended = kernel.go(async { last.join().await.unwrap() });
    assert_eq!(ended, (64, at(secs(4))), "it began when the first token came back");
    let wanted: Vec<(u64, u64)> = (0..64).map(|n| (n + 1, n)).collect();
    assert_eq!(*late.borrow(), wanted);
    let trace = kernel.end();
    assert_lines(&trace, "abandon  o", 64);
    assert_lines(&trace, "orphan   o", 64);
    assert_lines(&trace, "offload  o65 running=64 queued=1", 1);
    assert_lines(&trace, "offload  o65 starts running=64 queued=0", 1);
}

/// A door that opens once, for any number of threads.
#[derive(Clone, Default)]
struct Latch(Arc<(Mutex<bool>, Condvar)>);

impl Latch {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(open, |open| !*open).unwrap());
    }
}

#[test]
fn r6_the_same_with_threads_that_are_held_back() {
    let mut kernel = Traced::new(Real::new().unwrap(), Options::new());
    let late = orphans::<_, u64>(&mut kernel);
    let latch = Latch::default();
    let held = latch.clone();
    let mut last = kernel.go(async move {
        let mut callers = Vec::new();
        for n in 0..64_u64 {
            let latch = held.clone();
            let job = move || {
                latch.pass();
                n
            };
            // No job can end before the latch opens, which is after all of these.
            let call = async move { is_timeout(&timeout_after(ms(1), run_in_thread(job)).await) };
            callers.push(spawn("caller", call).await);
        }
        let last = async { run_in_thread(|| 64_u64).await.unwrap() };
        let last = spawn("last", last).await;
        assert!(all(callers).await.into_iter().all(|cut| cut));
        last
    });
    assert_left_behind(&kernel.counters(), &kernel.jobs());
    assert_eq!(kernel.counters().threads, 64);
    latch.open();
    assert_eq!(kernel.go(async { last.join().await.unwrap() }), 64);
    assert!(kernel.run_until_quiescent(secs(60)).unwrap());
    let seen: BTreeSet<(u64, u64)> = late.borrow().iter().copied().collect();
    assert_eq!((seen.len(), late.borrow().len()), (64, 64), "each once");
    assert!(seen.into_iter().all(|(job, value)| job == value + 1));
    assert_eq!(kernel.counters().threads, 64, "the 65th has a thread of those that are free");
    let trace = kernel.end();
    assert_lines(&trace, "orphan   o", 64);
    assert_lines(&trace, "offload  o65 starts running=64 queued=0", 1);
}

#[test]
fn r6_a_job_that_is_cut_off_in_the_line_never_runs() {
    let sim = Sim::new().jobs_take(secs(2));
    let runs = Arc::new(AtomicU64::new(0));
    let (one, two) = (runs.clone(), runs.clone());
    let ran = check_with("r6_cut_off_in_the_line", sim, Options::new().threads(1), async move {
        let first = run_in_thread(move || one.fetch_add(1, Ordering::Relaxed));
        let second =
            timeout_after(tenths(2), run_in_thread(move || two.fetch_add(10, Ordering::Relaxed)));
        let (first, second) = join(first, second).await;
        (first.unwrap(), is_timeout(&second), clock().await)
    });
    assert_eq!(ran.output, (0, true, at(secs(2))));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[test]
fn c37_the_token_of_a_job_that_was_left_behind_is_free_when_its_thread_is() {
    let sim = Sim::new().jobs_take(secs(2));
    let ran = check_with("c37_left_behind", sim, Options::new().threads(1), async {
        let cut = timeout_after(tenths(2), run_in_thread(|| ())).await;
        run_in_thread(|| ()).await.unwrap();
        (is_timeout(&cut), clock().await)
    });
    assert_eq!(ran.output, (true, at(secs(4))));
}

#[test]
fn x8_the_message_of_a_late_panic_is_given_too_and_a_hook_may_panic() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    let seen = Rc::new(RefCell::new(Vec::new()));
    let theirs = seen.clone();
    kernel.on_orphan(move |orphan| {
        theirs.borrow_mut().push((orphan.job, orphan.task, orphan.outcome.unwrap_err()));
        panic!("in the hook");
    });
    kernel.go(async {
        for message in ["one", "two"] {
            let job = run_in_thread(move || -> u8 { panic!("{message}") });
            assert!(is_timeout(&timeout_after(tenths(5), job).await));
        }
        sleep(secs(2)).await.unwrap();
    });
    assert_eq!(*seen.borrow(), [(1, 2, "one".to_owned()), (2, 2, "two".to_owned())]);
    kernel.end();
}

/// A job's future is dropped in the turn in which the job ends. The kernel handles the end first.
#[test]
fn x8_a_job_that_ends_before_its_withdrawal_is_heeded_is_an_orphan() {
    let at_once = Time::ZERO + tenths(1);
    let sim = Sim::new().jobs_take(tenths(1)).signal_at(at_once, Signal::User1);
    let mut kernel = Traced::new(sim, Options::new());
    let late = orphans::<_, u8>(&mut kernel);
    let job = Shared::new(run_in_thread(|| 7_u8));
    let (polled, dropped) = (job.clone(), job);
    kernel.on_signal(Signal::User1, move |_| dropped.drop_future());
    kernel.go(async move {
        let asks = async move {
            let _ = polled.poll_once().await;
            sleep(tenths(3)).await
        };
        let mut asks = spawn("asks", asks).await;
        asks.join().await.unwrap().unwrap();
    });
    assert_eq!(*late.borrow(), [(1, 7)]);
    kernel.end();
}

// ---- States and tokens -------------------------------------------------------------------------

#[test]
fn r16_a_job_is_queued_runs_is_abandoned_and_is_gone() {
    let options = Options::new().threads(1);
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(2)), options);
    let states = |kernel: &Traced<Sim>| -> Vec<(u64, &str, u64, Time)> {
        let jobs = kernel.jobs();
        jobs.iter().map(|job| (job.number, job.state, job.task, job.since)).collect()
    };
    let callers = kernel.go(async {
        let mut callers = Vec::new();
        for _ in 0..3 {
            callers.push(spawn("caller", async { run_in_thread(|| ()).await.is_ok() }).await);
        }
        sleep(tenths(1)).await.unwrap();
        callers
    });
    let begun = Time::ZERO;
    let all_of = [(1, "running", 3, begun), (2, "queued", 4, begun), (3, "queued", 5, begun)];
    assert_eq!(states(&kernel), all_of);
    assert!(kernel.jobs()[0].site.contains("traps/tests/all/workers.rs:"));
    assert_eq!(kernel.jobs()[1].name, "caller");
    kernel.go(async {
        callers[0].cancel_because("no more").await.unwrap();
        callers[1].cancel_because("no more").await.unwrap();
        sleep(tenths(1)).await.unwrap();
    });
    assert_eq!(states(&kernel), [(1, "abandoned", 3, begun), (3, "queued", 5, begun)]);
    kernel.go(async { sleep(secs(2)).await.unwrap() });
    assert_eq!(states(&kernel), [(3, "running", 5, at(secs(2)))]);
    kernel.go(async { sleep(secs(2)).await.unwrap() });
    assert_eq!(states(&kernel), []);
    let ends = kernel.go(async { all(callers).await });
    assert_eq!(ends, [false, false, true]);
    let trace = kernel.end();
    // The second job never had a token, and the first had no caller when it ended.
    let lines = trace.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let words = ["offload", "abandon", "drop", "orphan", "done"];
    let of_jobs = lines.filter(|line| line.get(5).is_some_and(|verb| words.contains(verb)));
    let told: Vec<_> = of_jobs.map(|line| line[5..7].join(" ")).collect();
    let wanted = [
        "offload o1",
        "offload o2",
        "offload o3",
        "abandon o1",
        "drop o2",
        "orphan o1",
        "offload o3",
        "done o3",
    ];
    assert_eq!(told, wanted, "{trace}");
}

#[test]
fn f3_the_two_hundred_and_first_job_queues_and_is_not_refused() {
    let options = Options::new().threads(200);
    let mut kernel = Traced::new(Sim::new().jobs_take(ms(10)), options);
    let ends = kernel.go(async {
        let mut callers = Vec::new();
        for _ in 0..201 {
            let call = async {
                run_in_thread(|| ()).await.unwrap();
                clock().await
            };
            callers.push(spawn("caller", call).await);
        }
        all(callers).await
    });
    assert!(ends[..200].iter().all(|end| *end == at(ms(10))));
    assert_eq!(ends[200], at(ms(20)));
    let trace = kernel.end();
    assert_lines(&trace, "queued=1", 1);
    assert_lines(&trace, "offload  o201 running=200 queued=1", 1);
}

#[test]
fn f4_the_time_of_held_tokens_is_counted_also_without_a_waiter() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(2)), Options::new().threads(2));
    kernel.go(async {
        // Two jobs hold a token from 0 to 2 s, one from 2 to 4 s. Waiting does not count.
        let cut = timeout_after(tenths(5), run_in_thread(|| ()));
        let (cut, (one, two)) = join(cut, join(run_in_thread(|| ()), run_in_thread(|| ()))).await;
        assert!(is_timeout(&cut) && one.is_ok() && two.is_ok());
    });
    let counters = kernel.counters();
    assert_eq!((counters.tokens_held, counters.tokens, counters.tokens_peak), (secs(6), 0, 2));
    kernel.end();
}

#[test]
fn r3_a_task_that_waits_for_a_job_holds_no_token() {
    let options = Options::new().threads(1);
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), options);
    let end = kernel.go(async {
        let done = Rc::new(Event::new());
        let theirs = done.clone();
        let waiter = async move {
            run_in_thread(|| ()).await.unwrap();
            // This job waits for another job, which needs the only token.
            theirs.wait().await.unwrap();
        };
        let worker = async move {
            run_in_thread(|| ()).await.unwrap();
            done.set();
        };
        join(waiter, worker).await;
        clock().await
    });
    assert_eq!(end, at(secs(2)));
    kernel.end();
}

#[test]
fn r10_a_thousand_timed_jobs_start_at_most_as_many_threads_as_there_are_tokens() {
    let options = Options::new().threads(8).idle(secs(3_600));
    let mut kernel = Traced::new(Real::new().unwrap(), options);
    let sum: u64 = kernel.go(async {
        let jobs = (0..1_000_u64).map(|n| timeout_after(secs(60), run_in_thread(move || n)));
        traps::join_all(jobs).await.into_iter().map(Result::unwrap).sum()
    });
    assert_eq!(sum, 499_500);
    // No thread has ended, so these are all threads that were ever started.
    let counters = kernel.counters();
    assert!((1..=8).contains(&counters.threads), "{counters:?}");
    assert_eq!(counters.tokens_peak, 8);
    kernel.end();
}

// ---- Limiters ----------------------------------------------------------------------------------

#[test]
fn a_limiter_leaves_the_pool_to_the_others() {
    let sim = Sim::new().jobs_take(secs(1));
    let ran = check_with("limiter_beside_the_pool", sim, Options::new().threads(2), async {
        let disk = Limiter::new("disk", 1);
        let timed = async |job: traps::threads::RunInThread<()>| {
            job.await.unwrap();
            clock().await
        };
        let slow = join(timed(disk.run_in_thread(|| ())), timed(disk.run_in_thread(|| ())));
        let (slow, other) = join(slow, timed(run_in_thread(|| ()))).await;
        (slow, other, disk.peak(), disk.in_use(), disk.waiting())
    });
    let [one, two] = [1, 2].map(|n| at(secs(n)));
    assert_eq!(ran.output, ((one, two), one, 1, 0, 0));
}

#[test]
fn a_job_that_is_withdrawn_at_its_limiter_gives_its_place_to_the_next() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    let disk = Limiter::new("disk", 1);
    let theirs = disk.clone();
    let order = kernel.go(async move {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let mut callers = Vec::new();
        for n in 0..4 {
            let (disk, seen) = (theirs.clone(), seen.clone());
            let call = async move {
                if disk.run_in_thread(|| ()).await.is_ok() {
                    let now = clock().await;
                    seen.borrow_mut().push((n, now));
                }
            };
            callers.push(spawn("caller", call).await);
        }
        yield_now().await.unwrap();
        assert_eq!((theirs.in_use(), theirs.waiting()), (1, 3));
        callers[1].cancel_because("no more").await.unwrap();
        all(callers).await;
        seen.take()
    });
    assert_eq!(order, [(0, at(secs(1))), (2, at(secs(2))), (3, at(secs(3)))]);
    assert_eq!((disk.peak(), disk.in_use(), disk.waiting()), (1, 0, 0));
    kernel.end();
}

#[test]
fn a_limiter_serves_another_kernel_when_the_first_is_gone() {
    let disk = Limiter::new("disk", 1);
    for _ in 0..2 {
        let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
        kernel.go(async {
            let cut = timeout_after(tenths(1), disk.run_in_thread(|| ())).await;
            assert!(is_timeout(&cut));
        });
        assert_eq!(disk.in_use(), 1);
        kernel.end();
        assert_eq!(disk.in_use(), 0);
    }
}

// ---- The context of a job ----------------------------------------------------------------------

static USER: InheritedLocal<String> = InheritedLocal::new();

/// Returns the context of a job: the time that remains, and an inherited local.
fn context() -> (Option<Option<Duration>>, Option<String>) {
    let user = USER.get().map(|user| user.to_string());
    (thread_deadline().map(|deadline| deadline.remaining()), user)
}

#[test]
fn r2_a15_x7_a_job_sees_the_deadline_and_the_inherited_locals_of_its_task() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    kernel.go(async {
        USER.set("ada".to_owned());
        // On the simulated machine a job runs when its span is over.
        let inside = timeout_after(secs(5), run_in_thread(context)).await.unwrap();
        assert_eq!(inside, (Some(Some(secs(4))), Some("ada".to_owned())));
        let mut child = spawn("child", run_in_thread(context)).await;
        // A bare spawn inherits locals and no deadline.
        let inside = timeout_after(secs(5), child.join()).await.unwrap().unwrap();
        assert_eq!(inside, (Some(None), Some("ada".to_owned())));
        assert_eq!(context(), (None, Some("ada".to_owned())), "a task is no job");
    });
    kernel.end();
    assert_eq!(context(), (None, None));
}

/// A blocking library may have a kernel of its own.
#[test]
fn a_kernel_in_a_job_has_its_own_locals_and_jobs() {
    let ((inside, job, after), _) = on_real(async {
        USER.set("outer".to_owned());
        let blocks = || {
            let main = async {
                assert_eq!(USER.get(), None, "nothing is inherited by a main");
                USER.set("inner".to_owned());
                let job = run_in_thread(context).await.unwrap();
                (USER.get().map(|user| user.to_string()), job.1)
            };
            let (inside, job) = kernel::run(main).unwrap();
            (inside, job, USER.get().map(|user| user.to_string()))
        };
        run_in_thread(blocks).await.unwrap()
    });
    assert_eq!((inside, job), (Some("inner".to_owned()), Some("inner".to_owned())));
    assert_eq!(after.as_deref(), Some("outer"), "it is a job again");
}

#[test]
fn a15_a_job_learns_that_its_kernel_is_gone() {
    let (tell, told) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let mut kernel = Kernel::new(Real::new().unwrap());
    let ran = kernel.run(async {
        let job = move || {
            tell.send(thread_deadline().unwrap()).unwrap();
            let _ = wait.recv();
        };
        spawn("asks", run_in_thread(job)).await;
        yield_now().await
    });
    ran.unwrap().unwrap();
    let deadline = told.recv().unwrap();
    assert_eq!(deadline.check(), Ok(()));
    drop(kernel);
    assert!(deadline.is_abandoned());
    drop(go);
}

#[test]
fn a15_a_job_that_asks_stops_at_its_first_look_after_the_deadline() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    let late = orphans::<_, (Result<(), Error>, bool, bool)>(&mut kernel);
    let look = || {
        let deadline = thread_deadline().unwrap();
        (deadline.check(), deadline.is_expired(), deadline.is_abandoned())
    };
    kernel.go(async move {
        let in_time = timeout_after(secs(2), run_in_thread(look)).await.unwrap();
        assert_eq!(in_time, (Ok(()), false, false));
        assert!(is_timeout(&timeout_after(tenths(5), run_in_thread(look)).await));
        // A caller without a deadline, which is cancelled.
        let caller = spawn("caller", run_in_thread(look)).await;
        yield_now().await.unwrap();
        caller.cancel_because("no more").await.unwrap();
        sleep(secs(3)).await.unwrap();
    });
    let given_up = |expired| (Err(Error::Gone), expired, true);
    assert_eq!(*late.borrow(), [(2, given_up(true)), (3, given_up(false))]);
    kernel.end();
}

#[test]
fn a15_a_thread_that_looks_stops_when_its_caller_is_cancelled() {
    let (ended, trace) = on_real(async {
        let (started, is_started) = mpsc::channel();
        let (stopped, has_stopped) = mpsc::channel();
        let job = move || {
            let deadline = thread_deadline().unwrap();
            started.send(()).unwrap();
            while deadline.check().is_ok() {
                thread::yield_now();
            }
            stopped.send(()).unwrap();
        };
        let caller = spawn("caller", run_in_thread(job)).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        is_started.recv().unwrap();
        caller.cancel_because("no more").await.unwrap();
        has_stopped.recv().is_ok()
    });
    assert!(ended);
    assert_lines(&trace, "abandon  o1", 1);
}

#[test]
fn r7_the_next_job_of_a_thread_sees_its_own_context_or_none() {
    let mut kernel = Traced::new(Real::new().unwrap(), Options::new().threads(1));
    kernel.go(async {
        let here = || (thread::current().id(), context());
        let mut ada = spawn("ada", async move {
            USER.set("ada".to_owned());
            let seen = timeout_after(secs(600), run_in_thread(here)).await.unwrap();
            // A job that panics leaves nothing behind either.
            let panics = run_in_thread(|| -> u8 { panic!("in the job of {:?}", USER.get()) });
            let ended = timeout_after(secs(600), panics).await;
            assert!(matches!(ended, Err(Error::Panicked(text)) if text.contains("ada")));
            seen
        })
        .await;
        let (thread, (remaining, user)) = ada.join().await.unwrap();
        assert!(remaining.flatten().is_some() && user.as_deref() == Some("ada"));
        let (same, nothing) = run_in_thread(here).await.unwrap();
        assert_eq!((same, nothing), (thread, (Some(None), None)));
        USER.set("charles".to_owned());
        let (same, own) = run_in_thread(here).await.unwrap();
        assert_eq!((same, own), (thread, (Some(None), Some("charles".to_owned()))));
    });
    assert_eq!(kernel.counters().threads, 1);
    kernel.end();
}

#[test]
fn r1_a_job_that_asks_for_a_job_gets_an_error() {
    let nested = || {
        let inner = pin!(run_in_thread(|| 1));
        let polled = inner.poll(&mut Context::from_waker(Waker::noop()));
        format!("{polled:?}")
    };
    let (real, _) = on_real(async move { run_in_thread(nested).await.unwrap() });
    let (sim, trace) = on_sim(async move { run_in_thread(nested).await.unwrap() });
    assert_eq!([real, sim], ["Ready(Err(WouldNest))"; 2].map(str::to_owned));
    assert_lines(&trace, "offload  o", 1);
    let text = Error::WouldNest.to_string();
    assert!(text.contains("run it right there"), "{text}");
}

// ---- The end -----------------------------------------------------------------------------------

/// A value that panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb");
    }
}

#[test]
fn r9_a_job_that_no_thread_has_taken_at_the_halt_is_dropped_with_a_line() {
    for _ in 0..50 {
        let mut kernel = Traced::new(Real::new().unwrap(), Options::new());
        kernel.go(async {
            for _ in 0..4 {
                let bomb = Bomb;
                // The bomb is dropped if the job never runs, and forgotten if it runs.
                let job = move || std::mem::forget(bomb);
                spawn("caller", async { run_in_thread(job).await.is_ok() }).await;
            }
            yield_now().await.unwrap();
        });
        let trace = kernel.end();
        assert_lines(&trace, "left behind", 0);
        let ends = ["orphan   o", "done     o", "drop     o"];
        let ends: usize = ends.iter().map(|end| support::kernels::count(&trace, end)).sum();
        assert_eq!(ends, 4, "{trace}");
    }
}

#[test]
fn leftovers_of_threads_and_jobs_may_panic_in_their_drop_and_end_no_process() {
    let (release, released) = mpsc::channel::<()>();
    let mut kernel = kernel::Kernel::with_options(Real::new().unwrap(), Options::new().threads(1));
    let remote = kernel.remote();
    let ran = kernel.run(async {
        let first = move || released.recv().is_err();
        spawn("first", async { run_in_thread(first).await.is_ok() }).await;
        for _ in 0..2 {
            let bomb = Bomb;
            let job = move || drop(bomb);
            spawn("queued", async { run_in_thread(job).await.is_ok() }).await;
        }
        yield_now().await.unwrap();
    });
    ran.unwrap();
    for _ in 0..2 {
        let bomb = Bomb;
        drop(remote.spawn("guest", move || {
            drop(bomb);
            async {}
        }));
    }
    drop(kernel);
    drop(release);
}

#[test]
fn a_job_that_asks_its_kernel_for_something_does_not_hold_the_halt_up() {
    let mut kernel = Traced::new(Real::new().unwrap(), Options::new().grace(secs(600)));
    let remote = kernel.remote();
    let (told, heard) = mpsc::channel();
    kernel.go(async {
        let (started, is_started) = mpsc::channel();
        let job = move || {
            started.send(()).unwrap();
            // Wakes until the kernel refuses, which is when it halts.
            while remote.wake().is_ok() {
                thread::yield_now();
            }
            told.send(remote.spawn("guest", || async {}).join()).unwrap();
        };
        spawn("caller", async { run_in_thread(job).await.is_ok() }).await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        is_started.recv().unwrap();
    });
    let trace = kernel.end();
    assert_eq!(heard.recv().unwrap(), Err(Error::Gone));
    assert_lines(&trace, "left behind", 0);
}

#[test]
fn x8_a_value_that_came_and_was_not_read_is_an_orphan_too() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    let unread = orphans::<_, u64>(&mut kernel);
    kernel.go(async {
        let job = async { run_in_thread(|| 7_u64).await.map_err(std::io::Error::from).map(drop) };
        let nap = async { sleep(secs(1)).await.map_err(std::io::Error::from).map(drop) };
        assert!(matches!(traps::race(nap, job).await, traps::Either::Left(Ok(()))));
        yield_now().await.unwrap();
    });
    assert_eq!(*unread.borrow(), [(1, 7)]);
    let trace = kernel.end();
    assert_lines(&trace, "done     o1", 1);
    assert_lines(&trace, "orphan   o1", 1);
}

#[test]
fn a_process_that_a_job_starts_can_be_terminated() {
    let (status, _) = on_real(async {
        let show = || {
            let mut grep = std::process::Command::new("grep");
            testing::child::output(grep.args(["SigBlk", "/proc/self/status"]))
        };
        run_in_thread(show).await.unwrap().stdout
    });
    assert_eq!(status, b"SigBlk:\t0000000000000000\n");
}

#[test]
fn a_job_whose_future_another_task_polls_is_an_error_there_and_an_orphan() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    let moved = kernel.go(async {
        let mut job = Box::pin(run_in_thread(|| 7));
        let asked = traps::race(&mut job, yield_now()).await;
        assert!(matches!(asked, traps::Either::Right(Ok(_))));
        let mut other = spawn("other", job).await;
        let moved = other.join().await.unwrap();
        sleep(secs(2)).await.unwrap();
        moved
    });
    assert!(matches!(moved, Err(Error::Moved)), "{moved:?}");
    assert_lines(&kernel.end(), "orphan   o1", 1);
}

#[test]
fn a_job_that_has_ended_returns_its_value_to_the_task_that_polls_its_future() {
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), Options::new());
    let moved = kernel.go(async {
        let mut job = Box::pin(run_in_thread(|| 7));
        let asked = traps::race(&mut job, yield_now()).await;
        assert!(matches!(asked, traps::Either::Right(Ok(_))));
        sleep(secs(2)).await.unwrap();
        let mut other = spawn("other", job).await;
        other.join().await.unwrap()
    });
    assert_eq!(moved, Ok(7));
    assert_lines(&kernel.end(), "orphan", 0);
}

/// The job already has its limiter's token, and waits for a token of the pool.
#[test]
fn a_job_that_is_withdrawn_before_the_pool_gives_it_a_token_gives_its_limiters_back() {
    let options = Options::new().threads(1);
    let mut kernel = Traced::new(Sim::new().jobs_take(secs(1)), options);
    kernel.go(async {
        let disk = Limiter::new("disk", 1);
        let busy = spawn("busy", run_in_thread(|| ())).await;
        yield_now().await.unwrap();
        let never = timeout_after(tenths(5), disk.run_in_thread(|| unreachable!())).await;
        assert!(is_timeout::<()>(&never));
        yield_now().await.unwrap();
        assert_eq!((disk.in_use(), disk.waiting()), (0, 0));
        disk.run_in_thread(|| ()).await.unwrap();
        assert_eq!(clock().await, at(secs(2)));
        busy.wait().await.unwrap();
    });
    kernel.end();
}
