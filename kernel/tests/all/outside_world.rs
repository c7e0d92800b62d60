//! The programs of the guide's page on the outside world, `kernel/src/guide/outside.md`, and its
//! rules for new code: the kernel's reports when a rule is broken.
//!
//! Text that is not a trace is on that page, too, under the name of its test: [`said`].

use std::cell::RefCell;
use std::fs;
use std::future::Future;

use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use kernel::{Kernel, Options, Real, Sim, Stuck};
use support::kernels::{Traced, never, secs};
use support::{check_with, compare_raw, ms};
use traps::admission::AdmissionLimit;
use traps::threads::{Limiter, iterate_in_thread};
use traps::universal::UniversalEvent;
use traps::{
    Either, Error, Signal, Time, race, run_in_thread, sleep, spawn, timeout_after, wait_signal,
};

/// Compares `text` with the block of the page that has the name of the test.
#[track_caller]
fn said(test: &str, text: &str) {
    let page = support::root().join("kernel/src/guide/outside.md");
    let page = fs::read_to_string(page).unwrap();
    let head = format!("<!-- said: {test} -->\n```text\n");
    let block = page.split_once(&head).and_then(|(_, rest)| rest.split_once("```"));
    let (block, _) = block.unwrap_or_else(|| panic!("the page has no {head}{text}"));
    assert_eq!(block, text, "the page says\n{block}but it is\n{text}");
}

/// With `test:n` for each site in this file, where line 1 is that behind `top`.
fn with_own_sites(text: &str, top: u32) -> String {
    let mut parts = text.split(concat!(file!(), ":"));
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| {
        let end = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
        let line: u32 = part[..end].parse().expect("a site has a line");
        format!("{before}test:{}{}", line - top, &part[end..])
    })
}

// ---- Rules for new code ----------------------------------------------------------------------

/// Rule 1: a blocking call in a task holds up all tasks and gets a line. On a thread it does not.
#[test]
fn f28_a_blocking_call_goes_through_run_in_thread() {
    let sim = Sim::new().jobs_take(ms(60));
    let by_hand = sim.clock();
    let ran = check_with("f28_a_blocking_call", sim, Options::new(), async {
        let work = async move {
            sleep(ms(10)).await.unwrap();
            by_hand.advance(ms(60)); // a call that blocks
            run_in_thread(|| ()).await.unwrap(); // the same call on a thread
        };
        let mut work = spawn("work", work).await;
        let other = async {
            sleep(ms(20)).await.unwrap();
            sleep(ms(20)).await.unwrap()
        };
        let woken = spawn("other", other).await.join().await.unwrap();
        assert_eq!(woken, Time::ZERO + ms(90), "held up once, by the call in the task");
        work.join().await.unwrap();
    });
    assert_eq!(ran.count("longrun"), 1);
}

/// Rule 2: while a task computes, only a thread can report it.
#[test]
fn f28_the_watchdog_speaks_while_a_task_holds_the_cpu() {
    let (tell, hear) = mpsc::channel::<Stuck>();
    let options = Options::new().watchdog(Some(ms(20)));
    let mut kernel = Kernel::with_options(Real::new().unwrap(), options);
    kernel.on_stuck(move |stuck| tell.send(stuck.clone()).unwrap_or(()));
    let told = kernel.run(async {
        let spin = async move {
            // Blocks its thread until the report. Without the report this would never end.
            let stuck = hear.iter().find(|stuck| stuck.name == "spin").unwrap();
            (stuck, hear)
        };
        spawn("spin", spin).await.join().await.unwrap()
    });
    let (mut stuck, hear) = told.unwrap();
    drop(kernel);
    let mut over = hear.iter().find(|word| word.name == "spin" && word.over).unwrap();
    assert!(!stuck.over && stuck.lasted >= ms(20) && over.lasted >= stuck.lasted);
    // The task waits in a call, so it has used almost no CPU.
    assert!(stuck.cpu.unwrap() < stuck.lasted / 2, "{stuck}");
    // The measured values become those that the lesson `spin` shows.
    assert!(stuck.spawned_at.starts_with(file!()), "{stuck}");
    stuck.spawned_at = "examples/spin.rs:28".to_owned();
    (stuck.lasted, over.lasted) = (ms(100), secs(3));
    (stuck.cpu, over.cpu) = (Some(ms(100)), Some(secs(3)));
    said("f28_the_watchdog_speaks_while_a_task_holds_the_cpu", &format!("{stuck}\n{over}\n"));
}

/// Rule 3: a job for the whole stream keeps its token for the whole stream; a job for each item
/// lets others in between.
#[test]
fn f28_a_stream_takes_a_token_for_each_item() {
    let span = |job: &kernel::JobView| Some(if job.name == "greedy" { ms(30) } else { ms(10) });
    let sim = Sim::new().job_spans(span);
    check_with("f28_a_token_for_each_item", sim, Options::new().threads(1), async {
        let brief = || async { run_in_thread(|| ()).await.unwrap() };
        let greedy = run_in_thread(|| (1..=3).collect::<Vec<u32>>());
        let mut greedy = spawn("greedy", greedy).await;
        spawn("brief", brief()).await.join().await.unwrap();
        assert_eq!(greedy.join().await.unwrap().unwrap(), [1, 2, 3]);

        let stream = async {
            let mut items = iterate_in_thread(1..=3_u32);
            let mut found = Vec::new();
            while let Some(item) = items.next().await.unwrap() {
                found.push(item);
            }
            found
        };
        let mut stream = spawn("stream", stream).await;
        spawn("brief", brief()).await.join().await.unwrap();
        assert_eq!(stream.join().await.unwrap(), [1, 2, 3]);
    });
}

/// Rule 4: a limiter queues. An admission limit refuses, and so bounds the queue of a limiter.
#[test]
fn f28_too_much_work_is_refused_at_the_limit() {
    let sim = Sim::new().jobs_take(ms(10));
    let ran = check_with("f28_queue_or_refuse", sim, Options::new(), async {
        let (door, disk) = (AdmissionLimit::new("thumbnails", 2), Limiter::new("disk", 1));
        let mut tasks = Vec::new();
        for name in ["first", "second", "third"] {
            let (door, disk) = (door.clone(), disk.clone());
            let thumbnail = async move {
                let _place = door.try_admit()?;
                disk.run_in_thread(|| ()).await.unwrap();
                Ok::<(), Error>(())
            };
            tasks.push(spawn(name, thumbnail).await);
        }
        let mut ends = Vec::new();
        for task in &mut tasks {
            ends.push(task.join().await.unwrap());
        }
        assert_eq!(ends, [Ok(()), Ok(()), Err(Error::Full)]);
    });
    assert!(ran.lines(|line| line.contains("third ") && line.contains("offload")).is_empty());
}

/// Rule 5, the half that is refused: a job has no kernel.
#[test]
fn f28_a_job_that_asks_for_a_job_is_refused() {
    let mut kernel = Kernel::new(Sim::new().jobs_take(ms(10)));
    let refused = kernel.run(run_in_thread(|| {
        let asked = pin!(run_in_thread(|| 7));
        match asked.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => ended,
            Poll::Pending => panic!("it waits for a kernel that is not there"),
        }
    }));
    let refused = refused.unwrap().unwrap().unwrap_err();
    assert!(matches!(refused, Error::WouldNest));
    said("f28_a_job_that_asks_for_a_job_is_refused", &format!("{refused}\n"));
}

/// Rule 5, the half that the kernel cannot refuse: a job has the only token, and waits for a task
/// that waits for the token. The task table shows it.
#[test]
fn f28_the_table_shows_a_job_that_waits_for_a_task_that_waits_for_it() {
    let at = |second| Time::ZERO + secs(second);
    let sim = Sim::new().signal_at(at(1), Signal::User1).signal_at(at(2), Signal::Hangup);
    let by_hand = sim.clock();
    let mut kernel = Traced::new(sim, Options::new().threads(1).longrun(None));
    let tables = Rc::new(RefCell::new(String::new()));
    let heard = tables.clone();
    kernel.on_signal(Signal::User1, move |table| *heard.borrow_mut() += &table.to_string());
    let remote = kernel.remote();
    let top = line!();
    kernel.go(async {
        let asks = UniversalEvent::new();
        let tell = asks.clone();
        let outer = run_in_thread(move || {
            let inner = async move || {
                tell.set();
                timeout_after(secs(2), run_in_thread(|| ())).await
            };
            remote.spawn("inner", inner).join()
        });
        let mut outer = spawn("outer", outer).await;
        asks.wait().external().await.unwrap();
        // While a real thread runs a job, a virtual clock advances only by hand.
        for signal in [Signal::User1, Signal::Hangup] {
            by_hand.advance(secs(1));
            wait_signal(&[signal]).await.unwrap();
        }
        // Only its own deadline has ended it.
        let inner = outer.join().await.unwrap().unwrap().unwrap();
        assert!(matches!(inner, Err(Error::Interrupt(_))), "{inner:?}");
    });
    compare_raw("f28_a_job_that_waits_for_the_kernel", &kernel.end());
    let table = with_own_sites(&tables.take(), top);
    said("f28_the_table_shows_a_job_that_waits_for_a_task_that_waits_for_it", &table);
}

/// A wait that was handed a signal is dropped while no kernel runs.
#[test]
fn an_unread_signal_is_for_the_next_waiter_in_its_kernel() {
    let mut kernel =
        Traced::new(Sim::new().signal_at(Time::ZERO + ms(10), Signal::Hangup), Options::new());
    let mut first = Box::pin(wait_signal(&[Signal::Hangup]));
    let ended = kernel.go(race(sleep(ms(10)), &mut first));
    assert!(matches!(ended, Either::Left(Ok(_))));
    drop(first);
    assert_eq!(kernel.go(wait_signal(&[Signal::Hangup])).unwrap(), Signal::Hangup);
    kernel.end();
}

// ---- The page ----------------------------------------------------------------------------------

/// The table that SIGUSR1 prints.
#[test]
fn the_task_table_of_the_guide() {
    let sim = Sim::new().signal_at(Time::ZERO + ms(250), Signal::User1).jobs_take(secs(1));
    let mut kernel = Traced::new(sim, Options::new());
    let tables = Rc::new(RefCell::new(String::new()));
    let heard = tables.clone();
    kernel.on_signal(Signal::User1, move |table| *heard.borrow_mut() += &table.to_string());
    let top = line!();
    kernel.go(async {
        let reader = async { traps::io::Io::new(traps::io::Scripted(1)).readable().await };
        spawn("reader", timeout_after(secs(9), reader)).await;
        spawn("worker", run_in_thread(|| ())).await;
        spawn("both", traps::join(sleep(secs(1)), never::<()>())).await;
        spawn("stuck", never::<()>()).await;
        sleep(ms(500)).await.unwrap();
    });
    kernel.end();
    said("the_task_table_of_the_guide", &with_own_sites(&tables.take(), top));
}

/// A late job, and a job after it: the late job is abandoned, holds its token to its real end, and
/// its value is an orphan.
#[test]
fn the_abandoned_job_of_the_guide() {
    let sim = Sim::new().jobs_take(ms(50));
    check_with("outside_abandoned", sim, Options::new().threads(1), async {
        let late = timeout_after(ms(20), run_in_thread(|| 7)).await;
        assert!(matches!(late, Err(Error::Interrupt(_))));
        let next = run_in_thread(|| 8).await.unwrap();
        assert_eq!(next, 8);
    });
}

#[test]
fn a_site_is_told_from_the_text_around_it() {
    let here = file!();
    let text = format!("at {here}:12 and {here}:7, end");
    assert_eq!(with_own_sites(&text, 2), "at test:10 and test:5, end");
    assert_eq!(with_own_sites("no site", 2), "no site");
    assert_eq!(with_own_sites(&format!("{here}:3"), 2), "test:1");
}
