//! Runs that hold the CPU for too long: each has a line, which names the task and the traps at
//! which the run began and ended.

use std::cell::RefCell;
use std::future::poll_fn;
use std::process::Command;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use kernel::{Activation, Kernel, Machine, Options, Real, Sim, SimClock, trace};
use support::{Ran, check_with};
use testing::child;
use traps::io::{Direction, Io, Scripted};
use traps::{Time, WaitQueue, clock, join, run_in_thread, sleep, spawn, timeout_after, yield_now};

const MS: Duration = Duration::from_millis(1);

/// Runs a program and returns its `longrun` lines, from the name on.
fn longruns<F: Future>(sim: Sim, options: Options, program: F) -> Vec<String> {
    let ran = testing::Setup::new().sim(sim).options(options).run(program);
    found(&ran.trace)
}

/// Returns the lines without their sites, which are in this file.
fn found(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(" longrun "));
    let words = |line: &str| -> Vec<String> {
        let words = line.split_whitespace().skip(4);
        words.map(|word| word.split('@').next().unwrap().to_owned()).collect()
    };
    lines.map(|line| words(line).join(" ")).collect()
}

/// A value that takes time when it is dropped.
struct Slow(SimClock, Duration);

impl Drop for Slow {
    fn drop(&mut self) {
        self.0.advance(self.1);
    }
}

#[test]
fn c34_a_long_run_names_its_task_and_both_its_traps() {
    let name = "c34_a_long_run_names_its_task_and_both_its_traps";
    let sim = Sim::new();
    let clock = sim.clock();
    let ran: Ran<()> = check_with(name, sim, Options::new(), async {
        let spin = async move {
            sleep(10 * MS).await.unwrap();
            clock.advance(60 * MS);
            sleep(5 * MS).await.unwrap();
            clock.advance(2000 * MS);
        };
        let mut spin = spawn("spin", spin).await;
        let mut late = spawn("late", sleep(20 * MS)).await;
        spin.join().await.unwrap();
        late.join().await.unwrap().unwrap();
    });
    assert_eq!(ran.count("longrun"), 2);
    assert!(ran.lines(|line| line.contains("longrun")).iter().all(|line| line.len() <= 100));
}

#[test]
fn c34_a_run_of_exactly_the_limit_is_none_and_the_next_microsecond_is() {
    let micros = Duration::from_micros;
    for (span, lines) in [(50_000, 0), (50_001, 1)] {
        let sim = Sim::new();
        let clock = sim.clock();
        let program = async {
            yield_now().await.unwrap();
            clock.advance(micros(span));
            yield_now().await.unwrap();
            // Each run is measured from its own start.
            clock.advance(micros(49_999));
        };
        assert_eq!(longruns(sim, Options::new(), program).len(), lines, "{span}");
    }
    let own = |limit: Option<Duration>| {
        let sim = Sim::new();
        let clock = sim.clock();
        longruns(sim, Options::new().longrun(limit), async { clock.advance(3 * MS) })
    };
    assert_eq!(own(Some(2 * MS)), ["main longrun ran=0.003000 from=spawn to=exit"]);
    assert_eq!(own(Some(3 * MS)).len() + own(None).len() + own(Some(Duration::MAX)).len(), 0);
    assert_eq!(own(Some(Duration::ZERO)).len(), 1);
}

#[test]
fn c34_runs_of_one_turn_are_measured_each_by_itself() {
    let sim = Sim::new();
    let clock = sim.clock();
    let program = async {
        let spend = |span: Duration| {
            let clock = clock.clone();
            async move { clock.advance(span) }
        };
        let long = spawn("long", spend(70 * MS)).await;
        let short = spawn("short", spend(40 * MS)).await;
        let other = spawn("other", spend(40 * MS)).await;
        for mut task in [long, short, other] {
            task.join().await.unwrap();
        }
    };
    let wanted = ["long longrun ran=0.070000 from=spawn to=exit"];
    assert_eq!(longruns(sim, Options::new(), program), wanted);
}

#[test]
fn c34_a_long_drop_is_part_of_the_run_it_ends() {
    let sim = Sim::new();
    let clock = sim.clock();
    let program = async {
        // The output of a task that no task joins, and a value that a task still held.
        let output = Slow(clock.clone(), 60 * MS);
        drop(spawn("output", async move { output }).await);
        let held = Slow(clock.clone(), 70 * MS);
        let mut inside = spawn("inside", async move {
            let _held = held;
            yield_now().await.unwrap();
        })
        .await;
        inside.join().await.unwrap();
        // The task that took an output drops it.
        let output = Slow(clock.clone(), 80 * MS);
        let mut taken = spawn("taken", async move { output }).await;
        drop(taken.join().await.unwrap());
    };
    let wanted = [
        "output longrun ran=0.060000 from=spawn to=exit",
        "inside longrun ran=0.070000 from=yield to=exit",
        "main longrun ran=0.080000 from=join to=exit",
    ];
    assert_eq!(longruns(sim, Options::new(), program), wanted);
}

#[test]
fn c34_a_long_poll_that_panics_is_logged_after_the_panic() {
    let sim = Sim::new();
    let clock = sim.clock();
    let program = async {
        let spin = async move {
            let _held = Slow(clock.clone(), 30 * MS);
            clock.advance(30 * MS);
            panic!("enough");
        };
        let mut spin = spawn("spin", spin).await;
        spin.join().await.unwrap_err();
    };
    let ran = testing::Setup::new().sim(sim).run(program);
    assert_eq!(found(&ran.trace), ["spin longrun ran=0.060000 from=spawn to=exit"]);
    let place = |text: &str| ran.trace.find(text).unwrap();
    assert!(place(" panic ") < place(" longrun "));
    assert!(place(" longrun ") < place(" exit     panic"));
}

#[test]
fn c34_a_long_main_and_what_it_ran_from() {
    let sim = Sim::new().jobs_take(5 * MS);
    let clock = sim.clock();
    let spend = || clock.advance(51 * MS);
    let program = async {
        let queue = WaitQueue::new();
        timeout_after(MS, queue.wait()).await.unwrap_err();
        spend();
        run_in_thread(|| ()).await.unwrap();
        spend();
        sleep(Duration::ZERO).await.unwrap();
        let branch = async {
            sleep(MS).await.unwrap();
            spend();
        };
        // The task stays parked in the other branch.
        join(branch, sleep(60 * MS)).await.1.unwrap();
        let mut polled = false;
        poll_fn(|cx| {
            spend();
            cx.waker().wake_by_ref();
            if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    };
    let wanted = [
        "main longrun ran=0.051000 from=interrupt to=offload",
        "main longrun ran=0.051000 from=offload to=yield",
        "main longrun ran=0.051000 from=sleep to=sleep",
        "main longrun ran=0.051000 from=sleep to=waker",
        "main longrun ran=0.051000 from=waker to=exit",
    ];
    assert_eq!(longruns(sim, Options::new(), program), wanted);
}

/// Tasks that are busy for long and yield, like streams that are read as fast as they are written:
/// the kernel polls the machine after each turn in which time passed.
#[test]
fn curio_l6_long_runs_that_give_way_hold_up_no_io_and_no_deadline() {
    for longrun in [Some(50 * MS), None] {
        let sim = Sim::new().ready_at(Time::ZERO + 20 * MS, 1, Direction::Read);
        let by_hand = sim.clock();
        let setup = testing::Setup::new().sim(sim).options(Options::new().longrun(longrun));
        let ran = setup.run(async {
            let busy = async move {
                while yield_now().await.is_ok() {
                    by_hand.advance(4 * MS);
                }
            };
            let busy = spawn("busy", busy).await;
            let reader = async {
                let io = Io::new(Scripted(1));
                io.readable().await.unwrap();
                clock().await
            };
            let mut reader = spawn("reader", reader).await;
            let slept = sleep(30 * MS).await.unwrap();
            let read = reader.join().await.unwrap();
            busy.cancel_because("enough").await.unwrap();
            (read, slept)
        });
        let (read, slept) = ran.output;
        assert!(read <= Time::ZERO + 28 * MS, "at {read}");
        assert!(slept <= Time::ZERO + 38 * MS, "at {slept}");
    }
}

/// The real clock is the subject here: a run that is too long by its reading has a line, and a run
/// that may be short enough has none. The test asserts no duration that the machine could lengthen.
#[test]
fn c34_on_the_real_machine_a_run_that_was_too_long_has_its_line() {
    let runs = |limit: Duration, spend: Duration| {
        let mut kernel =
            Kernel::with_options(Real::new().unwrap(), Options::new().longrun(Some(limit)));
        lines_of(&mut kernel, async move {
            yield_now().await.unwrap();
            let start = Instant::now();
            while start.elapsed() < spend {}
            yield_now().await.unwrap();
        })
    };
    let said = runs(10 * MS, 60 * MS);
    assert!(said.iter().any(|line| line.contains(" from=yield to=yield")), "{said:?}");
    assert_eq!(runs(Duration::from_secs(3600), 10 * MS), [""; 0]);
}

/// The real clock is the subject here. A run that blocks its thread takes long and uses almost no
/// CPU. A run that computes uses some.
#[test]
fn c34_the_line_of_a_run_shows_how_much_of_it_was_on_a_cpu() {
    let told = |work: fn()| {
        let options = Options::new().longrun(Some(20 * MS));
        let lines =
            lines_of(&mut Kernel::with_options(Real::new().unwrap(), options), async move {
                yield_now().await.unwrap();
                work();
                yield_now().await.unwrap();
            });
        let line = lines.into_iter().find(|line| line.contains(" from=yield to=yield")).unwrap();
        let span = |key: &str| -> f64 {
            let word = line.split(' ').find_map(|word| word.strip_prefix(key)).unwrap();
            word.parse().unwrap()
        };
        (span("ran="), span("cpu="))
    };
    let (ran, cpu) = told(|| std::thread::sleep(400 * MS));
    assert!(cpu < ran / 2.0, "it slept: {cpu} of {ran}");
    let (ran, cpu) = told(|| {
        let start = Instant::now();
        while start.elapsed() < 100 * MS {}
    });
    assert!(0.0 < cpu && cpu <= ran, "it computed: {cpu} of {ran}");
    // Virtual time takes no CPU.
    let sim = Sim::new();
    let clock = sim.clock();
    let lines = longruns(sim, Options::new(), async { clock.advance(60 * MS) });
    assert_eq!(lines, ["main longrun ran=0.060000 from=spawn to=exit"]);
}

fn lines_of<M: Machine>(kernel: &mut Kernel<M>, program: impl Future<Output = ()>) -> Vec<String> {
    struct Keep(Rc<RefCell<String>>);
    impl Activation for Keep {
        fn event(&mut self, line: &trace::Line<'_>) {
            *self.0.borrow_mut() += &format!("{line}\n");
        }
    }
    let text = Rc::default();
    kernel.observe(Keep(Rc::clone(&text)));
    kernel.run(program).unwrap();
    let text = text.borrow();
    found(&text)
}

/// Names the test that plays the program without a logger.
const CHILD: &str = "TRAPLINE_TEST_HOLDS_THE_THREAD";

/// The program: each of two tasks holds the thread twice, from one call site. Then one task holds
/// it after a call of its waker, and one in its first run.
fn hold_the_thread() {
    let spin = || {
        let start = Instant::now();
        while start.elapsed() < 150 * MS {}
    };
    kernel::run(async {
        for name in ["first", "second"] {
            let busy = async move {
                for _ in 0..2 {
                    yield_now().await.unwrap();
                    spin();
                }
            };
            spawn(name, busy).await.await.unwrap();
        }
        let mut polls = 0;
        let woken = poll_fn(move |cx| {
            polls += 1;
            if polls == 1 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            spin();
            Poll::Ready(())
        });
        spawn("woken", woken).await.await.unwrap();
        spawn("spawned", async move { spin() }).await.await.unwrap();
        yield_now().await.unwrap();
        spin();
    })
    .unwrap();
    // A virtual clock holds no thread.
    let sim = Sim::new();
    let clock = sim.clock();
    Kernel::new(sim).run(async { clock.advance(500 * MS) }).unwrap();
}

#[test]
fn without_a_logger_a_debug_build_names_each_place_that_holds_the_thread_once() {
    if std::env::var_os(CHILD).is_some() {
        return hold_the_thread();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &child::this_test(), "--nocapture"]).env(CHILD, "1");
    let output = child::output(&mut command);
    assert!(output.status.success());
    let text = String::from_utf8(output.stderr).unwrap();
    let says = |words: &str| text.lines().filter(|line| line.contains(words)).count();
    let once = usize::from(cfg!(debug_assertions));
    let here = file!();
    for (name, after) in [
        ("5 woken", format!("a call of its waker (it was spawned at {here}:")),
        ("6 spawned", format!("its spawn at {here}:")),
    ] {
        assert_eq!(says(&format!(" in its run after {after}")), once, "{name}: {text}");
        assert_eq!(says(&format!("trapline: task {name} held the thread for ")), once, "{text}");
    }
    // On a busy machine other runs are long too.
    let is_ours = |line: &&str| line.starts_with("trapline: ") && line.contains(" after yield at ");
    let told: Vec<&str> = text.lines().filter(is_ours).collect();
    let places = if cfg!(debug_assertions) { 2 } else { 0 };
    assert_eq!(told.len(), places, "{text}");
    if let [first, main] = told[..] {
        assert!(first.starts_with("trapline: task 3 first held the thread for "), "{first}");
        assert!(first.contains(concat!(" after yield at ", file!(), ":")), "{first}");
        assert!(main.starts_with("trapline: task 2 main held the thread for "), "{main}");
    }
}
