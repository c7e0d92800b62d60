//! Overload: the refusals of an admission limit, and their effect on all other tasks.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Options, Sim};
use support::kernels::*;
use traps::admission::AdmissionLimit;
use traps::sync::Mutex;
use traps::{Error, Task, Time, clock, ignore_after, run_in_thread, sleep, spawn};

const MS: Duration = Duration::from_millis(1);

/// The reply of a route with an admission limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reply {
    Done(Time),
    Busy(Time),
}

/// A route whose work takes a thread, for each request that the limit admits.
async fn gated(gate: AdmissionLimit) -> Reply {
    let Ok(_place) = gate.try_admit() else { return Reply::Busy(clock().await) };
    run_in_thread(|| ()).await.unwrap();
    Reply::Done(clock().await)
}

async fn all<T: 'static>(tasks: Vec<Task<T>>) -> Vec<T> {
    let mut ended = Vec::new();
    for mut task in tasks {
        ended.push(task.join().await.unwrap());
    }
    ended
}

#[test]
fn f6_a_refused_call_takes_no_thread_and_is_answered_in_its_turn() {
    let mut kernel = Traced::new(Sim::new().jobs_take(15 * MS), Options::new());
    let gate = AdmissionLimit::new("request_task", 1);
    let theirs = gate.clone();
    let replies = kernel.go(async move {
        let first = spawn("first", gated(theirs.clone())).await;
        let second = spawn("second", gated(theirs)).await;
        all(vec![first, second]).await
    });
    let trace = kernel.end();
    let later = Time::ZERO + 15 * MS;
    assert_eq!(replies, [Reply::Done(later), Reply::Busy(Time::ZERO)]);
    assert_lines(&trace, "second   cap      name=request_task limit=1", 1);
    assert_lines(&trace, "second   offload", 0);
    // `second` first ran in the turn in which it was refused, and ended in the same turn.
    let turn_of = |part: &str| trace.lines().find(|line| line.contains(part)).map(turn).unwrap();
    assert_eq!(turn_of("second   run"), turn_of("second   exit"));
    assert_eq!((gate.admitted(), gate.refused(), gate.inside()), (1, 1, 0));
}

fn turn(line: &str) -> &str {
    line.split_whitespace().nth(1).unwrap()
}

#[test]
fn f8_a_burst_at_a_gate_leaves_the_other_routes_their_threads() {
    let mut kernel = Traced::new(Sim::new().jobs_take(15 * MS), Options::new().threads(200));
    let gate = AdmissionLimit::new("request_task", 5);
    let theirs = gate.clone();
    let (replies, beats) = kernel.go(async move {
        let mut burst = Vec::new();
        for _ in 0..400 {
            burst.push(spawn("request", gated(theirs.clone())).await);
        }
        let mut beats = Vec::new();
        for _ in 0..195 {
            let beat = async {
                let asked = clock().await;
                run_in_thread(|| ()).await.unwrap();
                clock().await.since(asked)
            };
            beats.push(spawn("beat", beat).await);
        }
        (all(burst).await, all(beats).await)
    });
    let trace = kernel.end();
    let done = replies.iter().filter(|reply| **reply == Reply::Done(Time::ZERO + 15 * MS));
    let busy = replies.iter().filter(|reply| **reply == Reply::Busy(Time::ZERO));
    assert_eq!((done.count(), busy.count()), (5, 395));
    assert_eq!((gate.admitted(), gate.refused(), gate.peak()), (5, 395, 5));
    // The burst left 195 of 200 threads, so each beat had its thread at once.
    assert!(beats.iter().all(|took| *took == 15 * MS));
    assert_lines(&trace, " offload  o", 200);
    assert_lines(&trace, "queued=0", 200);
    // All refusals were in one turn, before any job had ended.
    let refused = |line: &&str| line.contains("request  exit") && line.starts_with(" 0.000000");
    let turns: Vec<&str> = trace.lines().filter(refused).map(turn).collect();
    assert_eq!(turns.len(), 395);
    assert!(turns.iter().all(|turn| *turn == turns[0]));
    assert_lines(&trace, "cap      name=request_task", 1);
}

/// Returns a limit that has refused seven entries and is empty again.
fn rushed() -> AdmissionLimit {
    let gate = AdmissionLimit::new("door", 1);
    let place = gate.try_admit().unwrap();
    for _ in 0..7 {
        gate.try_admit().unwrap_err();
    }
    drop(place);
    gate
}

#[test]
fn the_end_of_a_run_of_refusals_logs_their_number() {
    let (_, trace) = on_sim(async {
        let gate = rushed();
        let _place = gate.try_admit().unwrap();
    });
    assert_lines(&trace, "cap      name=door limit=1", 2);
    assert_lines(&trace, "cap      name=door limit=1 refused=7", 1);
}

#[test]
fn an_entry_on_another_thread_leaves_the_number_of_refusals_to_one_that_has_a_log() {
    let (_, trace) = on_sim(async {
        let gate = rushed();
        let elsewhere = gate.clone();
        std::thread::spawn(move || drop(elsewhere.try_admit().unwrap())).join().unwrap();
        let _place = gate.try_admit().unwrap();
    });
    assert_lines(&trace, "cap      name=door limit=1 refused=7", 1);
}

/// If a full limit has a free place again and again, each entry ends a run of refusals.
#[test]
fn d26_a_gate_that_is_rushed_for_long_does_not_fill_the_log() {
    let (_, trace) = on_sim(async {
        let gate = AdmissionLimit::new("door", 1);
        for _ in 0..2_500 {
            let _place = gate.try_admit().unwrap();
            gate.try_admit().unwrap_err();
            gate.try_admit().unwrap_err();
            sleep(10 * MS).await.unwrap();
        }
        assert_eq!(gate.refused(), 5_000);
    });
    // Lines at 0, 10 and 20 s, and at the entry after each, for the refusals without a line.
    assert_lines(&trace, "cap      name=door limit=1", 6);
    assert_lines(&trace, "cap      name=door limit=1 refused=2", 3);
    assert_lines(&trace, "cap      name=door limit=1 refused=2000", 2);
}

#[test]
fn f7_no_more_wait_for_the_lock_than_the_gate_lets_in() {
    let waiting = Rc::new(Cell::new(0));
    let most = Rc::new(Cell::new(0));
    let mut kernel = Traced::new(Sim::new().jobs_take(15 * MS), Options::new());
    let (theirs, peak) = (waiting.clone(), most.clone());
    let (done, end) = kernel.go(async move {
        let (gate, lock) = (AdmissionLimit::new("request_task", 5), Rc::new(Mutex::new(())));
        let mut burst = Vec::new();
        for _ in 0..50 {
            let (gate, lock) = (gate.clone(), lock.clone());
            let (waiting, most) = (theirs.clone(), peak.clone());
            burst.push(
                spawn("request", async move {
                    let Ok(_place) = gate.try_admit() else { return false };
                    waiting.set(waiting.get() + 1);
                    most.set(most.get().max(waiting.get() - 1));
                    let _locked = lock.lock().await.unwrap();
                    run_in_thread(|| ()).await.unwrap();
                    waiting.set(waiting.get() - 1);
                    true
                })
                .await,
            );
        }
        let done = all(burst).await.into_iter().filter(|done| *done).count();
        (done, clock().await)
    });
    kernel.end();
    assert_eq!((done, most.get(), waiting.get()), (5, 4, 0));
    assert_eq!(end, Time::ZERO + 5 * 15 * MS, "one at a time");
}

#[test]
fn a16_a_place_that_went_with_the_job_is_kept_until_its_thread_has_ended() {
    let mut kernel = Traced::new(Sim::new().jobs_take(2000 * MS), Options::new());
    let gate = AdmissionLimit::new("slow", 1);
    let theirs = gate.clone();
    kernel.go(async move {
        let place = theirs.try_admit().unwrap();
        let job = run_in_thread(move || drop(place));
        let late: Result<Option<()>, Error> = ignore_after(200 * MS, job).await;
        assert!(late.unwrap().is_none());
        assert_eq!(clock().await, Time::ZERO + 200 * MS);
        theirs.try_admit().unwrap_err();
        sleep(2000 * MS).await.unwrap();
        assert!(theirs.try_admit().is_ok());
    });
    kernel.end();
    assert_eq!(gate.refused(), 1);
}

/// Two kernels use a limit, one after the other. The second kernel's clock starts again.
#[test]
fn a_refusal_is_logged_also_where_the_last_line_has_a_later_time() {
    let gate = AdmissionLimit::new("door", 1);
    for start in [100 * MS * 1000, Duration::ZERO] {
        let ours = gate.clone();
        let mut kernel = Traced::new(Sim::starting_at(Time::ZERO + start), Options::new());
        kernel.go(async move {
            let _place = ours.try_admit().unwrap();
            ours.try_admit().unwrap_err();
        });
        // A single refusal has its own line, and needs no sum.
        assert_lines(&kernel.end(), "cap      name=door", 1);
    }
}
