//! The flight recorder: each dump says what the whole log says.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use kernel::trace::Line;
use kernel::{Dump, Kernel, Options, Sim};
use testing::trace::{Checker, State, View, check, line, trace};
use traps::io::{Direction, Io, Scripted};
use traps::sync::{Mutex, Semaphore};
use traps::threads::Limiter;
use traps::{
    Error, Interrupt, Signal, Time, clock, connection_deadline, join, note, race, run_in_thread,
    shield, sleep, span, spawn, timeout_after, yield_now,
};

const MS: Duration = Duration::from_millis(1);

/// What the tasks of a random program share.
#[derive(Clone)]
struct World(Rc<Shared>);

struct Shared {
    random: Cell<u64>,
    /// How many steps are left.
    left: Cell<u32>,
    locks: Vec<Mutex<()>>,
    permits: Semaphore,
    sockets: Vec<Io<Scripted>>,
}

type Step = Pin<Box<dyn Future<Output = Result<(), Error>>>>;

impl World {
    fn new(seed: u64) -> World {
        World(Rc::new(Shared {
            random: Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            left: Cell::new(600),
            locks: (0..3).map(|n| Mutex::named(format!("lock-{n}"), ())).collect(),
            permits: Semaphore::named("permits", 2),
            sockets: (0..3).map(|n| Io::new(Scripted(n))).collect(),
        }))
    }

    fn below(&self, n: u64) -> u64 {
        let mut random = self.0.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.0.random.set(random);
        (random >> 11) % n
    }

    fn span(&self) -> Duration {
        self.below(40) as u32 * MS
    }

    fn step(&self, depth: u32) -> Step {
        let world = self.clone();
        Box::pin(async move { world.take_step(depth).await })
    }

    async fn take_step(&self, depth: u32) -> Result<(), Error> {
        let World(shared) = self;
        if shared.left.replace(shared.left.get().saturating_sub(1)) == 0 {
            return Ok(());
        }
        let deeper = || self.step(depth + 1);
        let n = |n: usize| self.below(n as u64) as usize;
        match self.below(if depth < 4 { 18 } else { 8 }) {
            0 => _ = sleep(self.span()).await?,
            1 => yield_now().await?,
            2 => {
                let _held = shared.locks[n(3)].lock().await?;
                sleep(self.span()).await?;
            }
            3 => {
                clock().await;
                note("said");
            }
            4 => {
                let _permit = shared.permits.acquire().await?;
                sleep(self.span()).await?;
            }
            5 => shared.sockets[n(3)].readable().await?,
            6 => drop(run_in_thread(|| ()).await),
            7 => _ = sleep(MS).await?,
            8 => drop(timeout_after(self.span(), deeper()).await),
            9 => drop(join(deeper(), deeper()).await),
            10 => drop(race(deeper(), deeper()).await),
            11 => drop(shield(deeper()).await),
            12 => {
                let mut child = spawn("child", deeper()).await;
                sleep(self.span()).await?;
                if n(2) == 0 {
                    child.cancel_now("test");
                }
                drop(child.join().await);
            }
            13 => {
                let deadline = connection_deadline().await;
                drop(deadline.guard(self.span(), deeper()).await);
                deadline.arm(self.span());
                let ended = sleep(self.span()).await;
                deadline.disarm();
                ended?;
            }
            14 => span("inner", deeper()).await?,
            // What was polled in one scope and then in another moves.
            15 => {
                let (inner, is_over) = (deeper(), Cell::new(false));
                let mut moves = Box::pin(async {
                    let ended = inner.await;
                    is_over.set(true);
                    ended
                });
                drop(race(timeout_after(MS, &mut moves), sleep(MS)).await);
                if !is_over.get() {
                    drop(timeout_after(9 * MS, moves).await);
                }
            }
            _ => {
                deeper().await?;
                deeper().await?;
            }
        }
        Ok(())
    }
}

/// Runs a random program on a small ring. Returns the number of its dumps, and what is wrong with
/// any of them.
fn fly(seed: u64) -> (u32, Vec<String>) {
    let ready = |sim: Sim, n: u64| {
        sim.ready_at(Time::ZERO + n as u32 * 7 * MS, (n % 3) as u32 as _, Direction::Read)
    };
    let sim = (0..200).fold(Sim::new().jobs_take(11 * MS), ready);
    let mut kernel = Kernel::new(sim);
    let flight = kernel.flight(16 << 10);
    let (dumps, wrong) = (Rc::new(Cell::new(0)), Rc::<RefCell<Vec<String>>>::default());
    let (counts, finds) = (dumps.clone(), wrong.clone());
    let mut whole = State::default();
    let mut lines = BTreeMap::new();
    kernel.observe(move |new: &Line<'_>| {
        let text = new.to_string();
        whole.line(&line(&text).unwrap());
        lines.insert(new.seq, text);
        if new.seq > 300 && new.seq.is_multiple_of(61) {
            counts.set(counts.get() + 1);
            let faults = faults_of(&flight.snapshot("test"), &lines, &whole.text(View::Whole));
            finds.borrow_mut().extend(faults.iter().map(|it| format!("#{}: {it}", new.seq)));
        }
    });
    let world = World::new(seed);
    let ended = kernel.run(async move {
        let mut workers = Vec::new();
        for _ in 0..8 {
            let world = world.clone();
            let work = async move {
                while world.0.left.get() > 0 {
                    drop(world.step(0).await);
                }
            };
            workers.push(spawn("worker", work).await);
        }
        // A program may deadlock, or wait for a socket for ever.
        timeout_after(Duration::from_secs(20), async {
            for worker in &mut workers {
                drop(worker.join().await);
            }
            Ok::<(), Interrupt>(())
        })
        .await
    });
    drop(ended);
    drop(kernel);
    (dumps.get(), wrong.take())
}

/// Compares a dump with the lines of the whole log, and with the state that they make.
fn faults_of(dump: &Dump, lines: &BTreeMap<u64, String>, whole: &str) -> Vec<String> {
    let text = dump.to_string();
    let (mut state, mut checker, mut faults) = (State::default(), Checker::default(), Vec::new());
    for remark in text.lines().filter(|row| row.starts_with('#')) {
        checker.remark(remark);
    }
    if text.contains(" missing=") {
        faults.push(text.lines().nth(2).unwrap().to_owned());
    }
    let mut last = 0;
    for each in trace(&text).unwrap() {
        if lines.get(&each.seq).is_none_or(|line| *line != each.to_string()) {
            faults.push(format!("another line: {each}"));
        }
        state.line(&each);
        checker.line(&each);
        last = each.seq;
    }
    if (last, last) != (dump.line(), lines.len() as u64) {
        faults.push(format!("it ends at #{last:04}"));
    }
    let state = state.text(View::Whole);
    faults.extend(whole.lines().filter(|row| !state.contains(row)).map(|row| format!("-{row}")));
    faults.extend(state.lines().filter(|row| !whole.contains(row)).map(|row| format!("+{row}")));
    if faults.is_empty() && state != whole {
        faults.push("another order".to_owned());
    }
    if let Err(broken) = checker.end() {
        // What the whole log breaks too is no fault of the dump.
        let all: String = lines.values().map(|line| format!("{line}\n")).collect();
        let known = check(&trace(&all).unwrap()).err().unwrap_or_default();
        let own = broken.iter().filter(|broken| !known.contains(broken));
        faults.extend(own.map(ToString::to_string));
    }
    faults
}

/// `FLIGHT_SEEDS=N` tests this many programs, with some 40 dumps each.
#[test]
fn a_dump_has_the_lines_and_the_state_of_the_whole_log() {
    let asked = std::env::var("FLIGHT_SEEDS").ok();
    let seeds = asked.map_or(12, |asked| asked.parse().expect("FLIGHT_SEEDS is a number"));
    let (mut dumps, mut wrong) = (0, Vec::new());
    for seed in 1..=seeds {
        let (made, faults) = fly(seed);
        dumps += made;
        wrong.extend(faults.into_iter().map(|it| format!("seed {seed} at {it}")));
    }
    println!("{dumps} dumps");
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong[..wrong.len().min(40)].join("\n"));
    assert!(dumps >= 12 * seeds as u32, "{dumps} dumps of {seeds} programs");
}

#[test]
fn a_head_says_which_job_runs_although_an_earlier_one_waits() {
    let mut kernel = Kernel::new(Sim::new().jobs_take(MS));
    let flight = kernel.flight(16 << 10);
    let dump = kernel.run(async move {
        let disk = Limiter::new("disk", 1);
        let limited = join(disk.run_in_thread(|| ()), disk.run_in_thread(|| ()));
        spawn("asks", join(limited, run_in_thread(|| ()))).detached().await;
        // No time passes, so the jobs last until the ring has only later lines.
        for _ in 0..2000 {
            yield_now().await.unwrap();
        }
        flight.snapshot("test")
    });
    let dump = dump.unwrap();
    assert!(dump.first_line() > 1000);
    let mut state = State::default();
    for line in trace(&dump.to_string()).unwrap() {
        state.line(&line);
    }
    let state = state.text(View::Whole);
    let jobs: Vec<_> = state.lines().filter(|row| row.starts_with("job ")).collect();
    assert_eq!(jobs, ["job o1 runs by=3", "job o2 queued by=3", "job o3 runs by=3"]);
}

/// A recorded kernel, and its dumps.
fn recorded(sim: Sim, options: Options) -> (Kernel<Sim>, Receiver<String>) {
    let mut kernel = Kernel::with_options(sim, options);
    let (sender, dumps) = mpsc::channel();
    kernel.flight(64 << 10).on_dump(move |dump| _ = sender.send(dump.to_string()));
    (kernel, dumps)
}

/// Returns the first dump of a program.
fn dump_of<F: Future>(main: F) -> String {
    let (mut kernel, dumps) = recorded(Sim::new(), Options::new());
    drop(kernel.run(main));
    // The drop waits for the dumps.
    drop(kernel);
    dumps.try_recv().expect("a dump was made")
}

/// Returns the cause of a dump, and the verb of its line.
fn cause_of(dump: &str) -> String {
    let remark = dump.lines().find_map(|row| row.strip_prefix("# flight from=#0001 cause="));
    let (cause, at) = remark.expect("it has the remark").split_once(" at=#").unwrap();
    let lines = trace(dump).unwrap();
    let line = lines.iter().find(|line| line.seq == at.parse().unwrap()).unwrap();
    format!("{cause}: {} {}", line.name(), line.verb)
}

async fn panics() {
    panic!("a panic that is wanted")
}

/// Two tasks that wait for each other's lock.
async fn deadlock() {
    let locks = [1, 2].map(|n| Rc::new(Mutex::named(format!("lock-{n}"), ())));
    let [one, two] = locks.clone();
    let mut other = spawn("other", async move {
        let _held = one.lock().await;
        yield_now().await.unwrap();
        drop(two.lock().await);
    })
    .await;
    let _held = locks[1].lock().await;
    yield_now().await.unwrap();
    drop(timeout_after(MS, other.join()).await);
    drop(locks[0].lock().await);
}

#[test]
fn a_dump_names_its_cause_and_the_line_of_the_cause() {
    let hang = dump_of(std::future::pending::<()>());
    let panic = dump_of(async { spawn("bad", panics()).await.join().await });
    let circle = dump_of(deadlock());
    let found = [&hang, &panic, &circle].map(|dump| cause_of(dump));
    assert_eq!(found, ["hang: main block", "panic: bad panic", "deadlock: main warn"]);
    assert!(panic.contains(" bad      exit     panic "), "{panic}");
    assert!(circle.lines().last().unwrap().contains(" block    mutex lock-1 held-by=3 "));
}

#[test]
fn a_program_can_ask_for_a_dump_at_a_signal_and_in_a_poll() {
    let sim = Sim::new().signal_at(Time::ZERO + 5 * MS, Signal::User1);
    let mut kernel = Kernel::new(sim);
    let flight = kernel.flight(64 << 10);
    let (sender, dumps) = mpsc::channel();
    flight.on_dump(move |dump| _ = sender.send(dump.to_string()));
    let at_signal = flight.clone();
    kernel.on_signal(Signal::User1, move |_| at_signal.dump("SIGUSR1"));
    kernel.run(sleep(9 * MS)).unwrap().unwrap();
    assert_eq!(
        cause_of(&dumps.recv_timeout(Duration::from_secs(60)).unwrap()),
        "SIGUSR1: kernel arrive"
    );
    let inside = kernel.run(async move { flight.snapshot("two words").to_string() }).unwrap();
    assert_eq!(cause_of(&inside), "two_words: main run");
}

#[test]
fn a_line_that_is_longer_than_the_room_for_one_is_whole_in_a_dump() {
    let text = "long ".repeat(1000);
    let (mut kernel, _dumps) = recorded(Sim::new(), Options::new());
    let flight = kernel.flight(64 << 10);
    let name = "n".repeat(2000);
    let theirs = name.clone();
    let dump = kernel.run(async move {
        note(&text);
        let mut named = spawn(theirs, async { note("said") }).await;
        named.join().await.unwrap();
        flight.snapshot("test").to_string()
    });
    let (dump, text) = (dump.unwrap(), "long ".repeat(1000));
    assert!(dump.contains(&format!(" note     {}\n", text.trim_end())));
    assert!(dump.contains(&format!(" {name} note     said\n")));
}

#[test]
fn a_line_that_is_too_long_for_an_entry_is_left_out() {
    let (mut kernel, _dumps) = recorded(Sim::new(), Options::new());
    let flight = kernel.flight(128 << 20);
    let dump = kernel.run(async move {
        note("before");
        note("x".repeat(1 << 24));
        note("after");
        yield_now().await.unwrap();
        flight.snapshot("test").to_string()
    });
    let dump = dump.unwrap();
    let notes: Vec<_> =
        dump.lines().filter_map(|row| row.split_once(" note     ")).map(|(_, text)| text).collect();
    assert_eq!(notes, ["before", "after"]);
}

/// The hook holds the first dump back until the kernel has made another.
#[test]
fn a_dump_waits_for_no_hook_and_a_hook_can_dump_and_be_replaced() {
    let mut kernel = Kernel::new(Sim::new());
    let flight = kernel.flight(64 << 10);
    let (inner, (sender, dumps)) = (flight.clone(), mpsc::channel());
    let (entered, enters) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    flight.on_dump(move |dump| {
        sender.send(dump.cause().to_owned()).unwrap();
        entered.send(()).unwrap();
        wait.recv_timeout(Duration::from_secs(60)).unwrap();
        let sender = sender.clone();
        if dump.cause() == "first" {
            inner.on_dump(move |dump| sender.send(format!("then {}", dump.cause())).unwrap());
            inner.dump("inside");
        }
    });
    flight.dump("first");
    enters.recv_timeout(Duration::from_secs(60)).unwrap();
    flight.dump("second");
    go.send(()).unwrap();
    go.send(()).unwrap();
    // The drop waits for the dump that the hook has asked for, too.
    drop(kernel);
    let found: Vec<_> = dumps.try_iter().collect();
    assert_eq!(found, ["first", "second", "then inside"]);
}

/// The thread of the watchdog makes the dump while the task holds the thread of the kernel.
#[test]
fn the_watchdog_dumps_a_kernel_that_is_stuck() {
    let (mut kernel, dumps) = recorded(Sim::new(), Options::new().watchdog(Some(MS)));
    let dump = kernel.run(async move { dumps.recv_timeout(Duration::from_secs(60)) });
    let dump = dump.unwrap().expect("the watchdog has made a dump");
    assert_eq!(cause_of(&dump), "watchdog: main run");
}

/// The permit of a task can outlive it. The task that drops the permit keeps its own: the last of
/// two.
#[test]
fn the_permit_of_an_ended_task_is_not_given_back_by_the_task_that_drops_it() {
    let mut kernel = Kernel::new(Sim::new());
    let flight = kernel.flight(16 << 10);
    let dump = kernel.run(async move {
        let pool = Semaphore::named("pool", 3);
        let (theirs, slot) = (pool.clone(), Rc::new(RefCell::new(None)));
        let gets = slot.clone();
        let mut child = spawn("child", async move {
            *gets.borrow_mut() = Some(theirs.acquire().await.unwrap());
        })
        .await;
        let first = pool.acquire().await.unwrap();
        let (_own, at) = (pool.acquire().await.unwrap(), line!());
        child.join().await.unwrap();
        drop((first, slot.take()));
        for _ in 0..400 {
            yield_now().await.unwrap();
        }
        (flight.snapshot("test").to_string(), at)
    });
    let (dump, at) = dump.unwrap();
    let lines = trace(&dump).unwrap();
    let mut state = State::default();
    lines.iter().for_each(|line| state.line(line));
    let text = state.text(View::Whole);
    let held: Vec<_> = lines.iter().filter(|line| line.verb == "take").collect();
    assert!(held.len() == 1 && held[0].task == 2 && held[0].seq < 100, "{held:?}");
    assert!(held[0].key("at").unwrap().ends_with(&format!(":{at}")), "{held:?}");
    assert!(text.contains("semaphore pool held-by=2"), "{text}");
}
