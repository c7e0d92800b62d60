//! Random programs over real sockets, threads, processes and signals, recorded and replayed: the
//! logs are the same, byte for byte.

use std::cell::{Cell, RefCell};
use std::fs;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::{Kernel, Options, Policy, Record, RunError, Taped};
use net::process::{Collected, Process};
use net::{TcpListener, UdpSocket, UnixStream};
use testing::{Text, child, trace};
use traps::internal::panic_message;
use traps::internal::tape::{self, Mode};
use traps::threads::{Limiter, thread_deadline};
use traps::{
    Signal, ignore_after, is_traced, iterate_in_thread, join, note, outside, run_in_thread, sleep,
    span, spawn, timeout_after, wait_signal, wall_clock, yield_now,
};

const US: Duration = Duration::from_micros(1);
/// How long a replay may take, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// How many random programs a test makes; `REPLAY_SEEDS=10000` asks for more, and
/// `REPLAY_SEEDS=FROM..TO` for those.
fn seeds(usual: u64) -> Range<u64> {
    let asked = std::env::var("REPLAY_SEEDS").ok();
    let number = |text: &str| text.parse().expect("REPLAY_SEEDS is a number, or FROM..TO");
    match asked.as_deref().map(|asked| asked.split_once("..").unwrap_or(("0", asked))) {
        Some((from, to)) => number(from)..number(to),
        None => 0..usual,
    }
}

/// Numbers that look random, from a seed.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % sides
    }
    fn split(&mut self) -> Dice {
        Dice(self.roll(1 << 30) ^ 0x5555)
    }
}

/// A client from outside: sends some bytes, and reads the reply.
fn client(addr: SocketAddr, mut dice: Dice) {
    let Ok(mut stream) = TcpStream::connect(addr) else { return };
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    for _ in 0..dice.roll(4) {
        let bytes = vec![b'a'; 1 + dice.roll(5000) as usize];
        if stream.write_all(&bytes).is_err() {
            return;
        }
        if dice.roll(3) == 0 {
            let _ = stream.read(&mut [0; 100]);
        }
    }
    match dice.roll(3) {
        // Bytes that are left to read make it a reset.
        0 => drop(stream),
        _ => {
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}

/// Serves some connections from outside.
async fn server(mut dice: Dice, seen: Rc<dyn Fn(SocketAddr)>) -> io::Result<()> {
    let mut listener = TcpListener::bind("127.0.0.1:0")?;
    seen(listener.local_addr()?);
    for _ in 0..3 {
        let Some(accepted) = ignore_after(20_000 * US, listener.accept()).await? else { break };
        let (mut stream, peer) = accepted;
        note(format!("from {}", peer.ip()));
        let mut dice = dice.split();
        let echo = async move {
            let mut buf = vec![0; 1 + dice.roll(4000) as usize];
            loop {
                let patience = (1 + dice.roll(3000) as u32) * US;
                let n = timeout_after(patience, stream.read(&mut buf)).await?;
                if n == 0 {
                    return Ok::<_, io::Error>(());
                }
                timeout_after(patience, stream.write_all(&buf[..n])).await?;
            }
        };
        drop(spawn(format!("echo-{peer}").split(':').next().unwrap().to_owned(), echo).await);
    }
    Ok(())
}

thread_local! {
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// A job of some kind. Its value is the same in the replay, however long the job takes.
async fn job(dice: &mut Dice) -> Result<u64, traps::Error> {
    let spins = dice.roll(20_000);
    match dice.roll(7) {
        0 => run_in_thread(move || (0..spins).fold(0_u64, u64::wrapping_add)).await,
        // To its deadline, as long as there is one.
        1 => {
            let until = || thread_deadline().is_none_or(|it| !it.is_expired());
            run_in_thread(move || (0..spins).take_while(|_| until()).last().map_or(0, |_| 1)).await
        }
        2 => run_in_thread(|| (while thread_deadline().unwrap().check().is_ok() {}, 2).1).await,
        // Jobs that wait for each other, as far as both have tokens.
        3 => {
            let (sender, there) = mpsc::channel();
            let waits = run_in_thread(move || u64::from(there.recv() == Ok(3)));
            let says = run_in_thread(move || _ = sender.send(3));
            let (waited, said) = join(says, waits).await;
            waited.and(said)
        }
        // A job sees neither its task nor the kernel, and can have its own kernel.
        4 => {
            SEEN.set(4);
            note("before a job");
            run_in_thread(|| {
                note("in a job");
                let inner = kernel::run(async { sleep(50 * US).await.is_ok() });
                SEEN.get() + u64::from(inner.unwrap() && !is_traced())
            })
            .await
        }
        5 => {
            thread_local! {
                static DISK: Limiter = Limiter::new("disk", 1);
            }
            DISK.with(Clone::clone).run_in_thread(move || spins).await
        }
        _ => {
            let mut items = iterate_in_thread(0..3_u64);
            let mut sum = 0;
            while let Some(item) = items.next().await? {
                sum += item;
            }
            Ok(sum)
        }
    }
}

/// One act of a task.
async fn act(dice: &mut Dice) -> io::Result<()> {
    match dice.roll(10) {
        0 => drop(sleep(dice.roll(500) as u32 * US).await),
        1 => drop(yield_now().await),
        2 => {
            let patience = dice.roll(300) as u32 * US;
            let ended = timeout_after(patience, job(dice)).await;
            note(format!("job {:?}", ended.map_err(|error: traps::Error| error.to_string())));
        }
        3 => {
            let (mut a, mut b) = UnixStream::pair()?;
            a.write_all(b"over there").await?;
            let mut buf = [0; 4];
            let n = b.read(&mut buf).await?;
            note(format!("heard {n}"));
        }
        4 => {
            let (a, b) = (UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?);
            a.send_to(b"datagram", b.local_addr()?).await?;
            let mut buf = [0; 100];
            let (n, from) = b.recv_from(&mut buf).await?;
            note(format!("{n} bytes, {}", from == a.local_addr()?));
        }
        5 => {
            // A wake from a thread that does not belong to the kernel.
            let woken = outside("thread", |waker| {
                if tape::mode() == Mode::Records {
                    thread::spawn(move || waker.wake());
                }
                true
            });
            let woken = ignore_after(5000 * US, woken).await?;
            note(format!("woken {}", woken.is_some()));
        }
        6 => {
            let signal = ignore_after(2000 * US, wait_signal(&[Signal::User1])).await?;
            note(format!("signal {}", signal.is_some()));
        }
        7 => note(format!("at {:?}", wall_clock())),
        8 if dice.roll(8) == 0 => {
            // Until the system has it, without a wait of the kernel.
            let mut command = Command::new("cat");
            let mut cat = Process::spawn(command.stdin(Stdio::piped()))?;
            note(format!("{:?}", cat.try_wait()));
            match dice.roll(3) {
                0 => cat.kill()?,
                1 => drop(cat.stdin.take()),
                _ => return Ok(()),
            }
            let status = loop {
                if let Some(status) = cat.try_wait()? {
                    break status;
                }
            };
            note(format!("{status}"));
        }
        8 if dice.roll(4) == 0 => {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut cat = Process::spawn(&mut command)?;
            let mut output = Collected::with_limit(100);
            let status = cat.communicate(&mut &b"meow"[..], &mut output).await?;
            note(format!("{status} {:?}", output.stdout));
        }
        _ => {
            let found = net::resolve("localhost:80").await?;
            note(format!("{found:?}"));
        }
    }
    Ok(())
}

async fn program(seed: u64, seen: Rc<dyn Fn(SocketAddr)>) {
    let mut dice = Dice(seed);
    let mut tasks = vec![spawn("server", server(dice.split(), seen)).await];
    for number in 0..2 + dice.roll(4) {
        let mut dice = dice.split();
        let acts = async move {
            for _ in 0..dice.roll(8) {
                act(&mut dice).await?;
            }
            Ok(())
        };
        tasks.push(spawn(format!("task-{number}"), acts).await);
    }
    for mut task in tasks {
        let ended = task.join().await;
        note(format!("{ended:?}"));
    }
}

/// Runs to the end and returns the log.
fn log_of(
    mut kernel: Kernel<Taped>,
    text: Text,
    main: impl Future<Output = ()>,
) -> Result<String, RunError> {
    kernel.trace_to(text.clone());
    kernel.run(main)?;
    kernel.shutdown()?;
    drop(kernel);
    Ok(text.take())
}

fn options(seed: u64) -> Options {
    let policies = [Policy::Lazy, Policy::Eager, Policy::NextSleep];
    let watchdog = seed.is_multiple_of(7).then_some(Duration::from_secs(1));
    let options = Options::new().policy(policies[(seed % 3) as usize]).watchdog(watchdog);
    options.threads(1 + (seed % 4) as usize)
}

/// Records a program with clients, and signals, from outside. Returns its log, if it has one.
fn record(seed: u64, path: &Path, with_log: bool) -> String {
    let record = Record { is_timed: with_log && seed.is_multiple_of(3), ..Record::from(path) };
    let mut kernel = Kernel::record_to(record, options(seed)).unwrap();
    let clients: Rc<RefCell<Vec<JoinHandle<()>>>> = Rc::default();
    let begun = clients.clone();
    let seen = Rc::new(move |addr| {
        let mut dice = Dice(seed);
        let dice = [(); 3].map(|()| dice.split());
        begun.borrow_mut().extend(dice.map(|dice| thread::spawn(move || client(addr, dice))));
        begun.borrow_mut().push(thread::spawn(|| child::send("USR1", std::process::id())));
    });
    // Without a wait for it, the signal would end the process.
    kernel.on_signal(Signal::User1, |_| ());
    let main = program(seed, seen);
    let log = if with_log {
        log_of(kernel, Text::default(), main).unwrap()
    } else {
        kernel.run(main).unwrap();
        kernel.shutdown().unwrap();
        String::new()
    };
    clients.take().into_iter().for_each(|client| client.join().unwrap());
    log
}

/// Replays a program. Returns its result with the log, and the log so far, which matters if it has
/// stopped.
fn replay(seed: u64, path: &Path) -> (Result<String, RunError>, String) {
    let path = path.to_owned();
    let (sender, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        let text = Text::default();
        let mut kernel = Kernel::replay(&path, options(seed)).unwrap();
        kernel.on_signal(Signal::User1, |_| ());
        let ended = log_of(kernel, text.clone(), program(seed, Rc::new(|_| ())));
        drop(sender.send((ended, text.take())));
    });
    match ended.recv_timeout(LIMIT) {
        Ok(ended) => ended,
        Err(RecvTimeoutError::Timeout) => panic!("the replay of program {seed} does not end"),
        Err(_) => resume_unwind(thread.join().expect_err("it has sent nothing")),
    }
}

#[test]
fn random_programs_are_replayed() {
    for seed in seeds(100) {
        let name = format!("random_{seed}.record");
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let log = record(seed, &path, seed % 2 == 0);
        let replayed = || {
            let (replayed, _) = replay(seed, &path);
            replayed.unwrap_or_else(|error| panic!("program {seed}: {error}"))
        };
        let first = replayed();
        let log = if log.is_empty() { replayed() } else { log };
        let differs = log.lines().zip(first.lines()).find(|(a, b)| a != b);
        assert!(log == first, "program {seed}: {differs:?}");
        trace::check(&trace::trace(&first).unwrap()).unwrap();
        fs::remove_file(path).unwrap();
    }
}

/// Cuts a record off, as a full disk or the end of the process does.
#[test]
fn random_programs_are_replayed_up_to_where_their_record_was_cut_off() {
    for seed in seeds(100) {
        let name = format!("random_cut_{seed}.record");
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let log = record(seed, &path, seed % 2 == 0);
        let bytes = fs::read(&path).unwrap();
        let head = 1 + bytes.iter().enumerate().filter(|it| *it.1 == b'\n').nth(2).unwrap().0;
        let mut dice = Dice(seed);
        for _ in 0..3 {
            let at = head + dice.roll((bytes.len() - head) as u64) as usize;
            fs::write(&path, &bytes[..at]).unwrap();
            let (ended, text) = replay(seed, &path);
            match ended {
                Err(RunError::Stopped(why)) => {
                    assert!(why.contains(" of the record ends:\n"), "program {seed}: {why}");
                }
                other => panic!("program {seed}, cut at {at}: {other:?}"),
            }
            assert!(log.is_empty() || log.starts_with(&text), "program {seed}, cut at {at}");
        }
        fs::remove_file(path).unwrap();
    }
}

/// Changes a record, so that the program differs from it.
#[test]
fn random_programs_that_differ_from_their_record_are_told_where() {
    for seed in seeds(100) {
        let name = format!("random_differs_{seed}.record");
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        record(seed, &path, seed % 2 == 0);
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let answers = (0..lines.len()).filter(|at| lines[*at].starts_with('<')).skip(3);
        // If a job does not learn that its deadline has passed, the replay gives it up after a
        // minute.
        let answers = answers.filter(|at| !lines[*at].starts_with("<told"));
        let answers: Vec<usize> = answers.collect();
        let mut dice = Dice(seed);
        for _ in 0..3 {
            let left_out = answers[dice.roll(answers.len() as u64) as usize];
            let kept = lines.iter().enumerate().filter(|(at, _)| *at != left_out);
            let kept: String = kept.map(|(_, line)| format!("{line}\n")).collect();
            fs::write(&path, kept).unwrap();
            // A reading of a clock, and an answer that is followed by an equal one, may be missed.
            match replay(seed, &path).0 {
                Err(RunError::Diverged(why) | RunError::Stopped(why)) => {
                    assert!(why.starts_with("line ") || why.starts_with("the job "), "{why}");
                }
                Ok(_) => {}
                other => panic!("program {seed} without line {left_out}: {other:?}"),
            }
        }
        fs::remove_file(path).unwrap();
    }
}

/// A small program for the tests below: an echo over a socket pair, with a note that may be added.
async fn small(note_it: bool, says: &'static [u8]) -> usize {
    let (mut a, mut b) = UnixStream::pair().unwrap();
    let hear = async move {
        let mut buf = [0; 10];
        if note_it {
            note("before the read");
        }
        b.read(&mut buf).await.unwrap()
    };
    let hear = if note_it {
        spawn("hear", span("hearing", hear)).await
    } else {
        spawn("hear", hear).await
    };
    let mut hear = hear;
    sleep(100 * US).await.unwrap();
    if note_it {
        note("before the write");
    }
    a.write_all(says).await.unwrap();
    hear.join().await.unwrap()
}

/// Returns the message of a panic.
fn panics(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).expect_err("it panics");
    panic_message(&*panic).to_owned()
}

/// Records [`small`] with its log.
fn small_record(name: &str, record: impl FnOnce(PathBuf) -> Record) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let mut kernel = Kernel::record_to(record(path.clone()), Options::new()).unwrap();
    kernel.trace_to(io::sink());
    assert_eq!(kernel.run(small(false, b"hello")).unwrap(), 5);
    kernel.shutdown().unwrap();
    path
}

#[test]
fn notes_and_spans_that_are_added_are_no_difference() {
    let path = small_record("notes.record", Record::from);
    let plain = testing::replay(&path, small(false, b"hello"));
    let noted = testing::replay(&path, small(true, b"hello"));
    assert_eq!((plain.output, noted.output), (5, 5));
    let verbs = |trace: &str| {
        let lines = trace::trace(trace).unwrap();
        lines.iter().map(|line| line.verb.to_string()).collect::<Vec<_>>()
    };
    let (plain, noted) = (verbs(&plain.trace), verbs(&noted.trace));
    let is_said = |verb: &&String| ["note", "enter", "leave"].contains(&verb.as_str());
    assert_eq!(noted.iter().filter(is_said).count(), 4);
    assert_eq!(
        noted.iter().filter(|it| !is_said(it)).collect::<Vec<_>>(),
        plain.iter().collect::<Vec<_>>()
    );
}

#[test]
fn a_recorded_run_is_a_test_that_fails_at_the_first_difference() {
    let path = small_record("differs.record", Record::from);
    let why = panics(|| drop(testing::replay(&path, small(false, b"hullo"))));
    assert!(
        why.contains("the program sends other bytes, in task 2, after tests/replay_random.rs"),
        "{why}"
    );
    // The record has more bytes than this program sends.
    let why = panics(|| drop(testing::replay(&path, small(false, b"he"))));
    assert!(why.contains("the program sends other bytes"), "{why}");
    let other = testing::Setup::new().options(Options::new().threads(7));
    let why = panics(move || drop(other.replay(&path, small(false, b"hello"))));
    assert!(why.contains("the options of the program are:"), "{why}");
}

#[test]
fn a_record_ends_with_a_line_at_its_limit_and_the_program_goes_on() {
    let limited = |path| Record { limit: 1000, ..Record::from(path) };
    let path = small_record("limited.record", limited);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().last(), Some("<end the record has reached its limit"));
    assert!(text.len() < 1100, "{}", text.len());
    let why = panics(|| drop(testing::replay(&path, small(false, b"hello"))));
    assert!(why.contains("  <end the record has reached its limit\n"), "{why}");
    assert!(why.contains(" main "), "the tasks: {why}");
}

#[test]
fn a_hang_is_replayed() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hang.record");
    let main = || async { traps::sync::Event::new().wait().await };
    let hang = |mut kernel: Kernel<Taped>| match kernel.run(main()) {
        Err(RunError::Hang(table)) => (table, kernel.shutdown().is_ok()).0,
        other => panic!("{other:?}"),
    };
    let hung = hang(Kernel::record_to(path.clone(), Options::new()).unwrap());
    assert!(std::fs::read_to_string(&path).unwrap().contains("\n<hang\n"));
    assert_eq!(hang(Kernel::replay(&path, Options::new()).unwrap()), hung);
}

#[test]
fn a_panic_of_main_is_replayed() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("panic.record");
    let main = || async {
        sleep(10 * US).await.unwrap();
        let (mut a, _b) = UnixStream::pair().unwrap();
        a.write_all(b"x").await.unwrap();
        panic!("at {:?}", wall_clock());
    };
    let panic = |mut kernel: Kernel<Taped>| panics(|| drop(kernel.run(main())));
    let first = panic(Kernel::record_to(path.clone(), Options::new()).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().last(), Some("<end"));
    assert_eq!(panic(Kernel::replay(&path, Options::new()).unwrap()), first);
}

#[test]
fn the_request_of_another_thread_ends_a_replay_with_its_name() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("remote.record");
    let mut kernel = Kernel::record_to(path.clone(), Options::new()).unwrap();
    let remote = kernel.remote();
    let guest = thread::spawn(move || remote.spawn("guest", || async { 7 }).join());
    let main = || async { sleep(20_000 * US).await.unwrap() };
    kernel.run(main()).unwrap();
    assert_eq!(guest.join().unwrap().unwrap(), 7);
    kernel.shutdown().unwrap();
    drop(kernel);
    let why = panics(|| drop(testing::replay(&path, main())));
    assert!(why.contains("the request `spawn:guest` of a thread cannot be replayed"), "{why}");
}

#[test]
fn a_record_that_cannot_be_written_is_an_error_of_the_shutdown() {
    let mut kernel = Kernel::record_to("/dev/full", Options::new()).unwrap();
    assert_eq!(kernel.run(small(false, b"hello")).unwrap(), 5);
    match kernel.shutdown() {
        Err(RunError::Machine(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
        other => panic!("{other:?}"),
    }
}
