//! Random programs over real sockets, threads, processes and signals, recorded and replayed: the
//! logs are the same, byte for byte.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kernel::{Error, Kernel, Options, Policy, Record, Taped};
use net::process::{Collected, Process};
use net::{TcpListener, UdpSocket, UnixStream};
use testing::{Text, child, trace};
use traps::tape::{self, Mode};
use traps::threads::panic_message;
use traps::{
    Signal, ignore_after, note, outside, run_in_thread, sleep, span, spawn, timeout_after,
    wait_signal, wall_clock, yield_now,
};

const US: Duration = Duration::from_micros(1);
const PROGRAMS: u64 = 100;

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

/// A client from outside: it says some bytes, and hears what comes back.
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

/// One act of a task.
async fn act(dice: &mut Dice) -> io::Result<()> {
    match dice.roll(10) {
        0 => drop(sleep(dice.roll(500) as u32 * US).await),
        1 => drop(yield_now().await),
        2 => {
            let spins = dice.roll(20_000);
            let job = run_in_thread(move || (0..spins).fold(0_u64, u64::wrapping_add));
            let patience = dice.roll(300) as u32 * US;
            let ended = timeout_after(patience, job).await;
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
            // A wake from a thread that is none of the kernel's.
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

/// Runs to the end and gives the log.
fn log_of(mut kernel: Kernel<Taped>, main: impl Future<Output = ()>) -> Result<String, Error> {
    let text = Text::default();
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

/// Records a program with clients, and signals, from outside. Gives its log, if it has one.
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
        log_of(kernel, main).unwrap()
    } else {
        kernel.run(main).unwrap();
        kernel.shutdown().unwrap();
        String::new()
    };
    clients.take().into_iter().for_each(|client| client.join().unwrap());
    log
}

#[test]
fn random_programs_are_replayed() {
    for seed in 0..PROGRAMS {
        let name = format!("random_{seed}.record");
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let log = record(seed, &path, seed % 2 == 0);
        let replayed = || {
            let mut kernel = Kernel::replay(&path, options(seed)).unwrap();
            kernel.on_signal(Signal::User1, |_| ());
            let replayed = log_of(kernel, program(seed, Rc::new(|_| ())));
            replayed.unwrap_or_else(|error| panic!("program {seed}: {error}"))
        };
        let first = replayed();
        let log = if log.is_empty() { replayed() } else { log };
        let differs = log.lines().zip(first.lines()).find(|(a, b)| a != b);
        assert!(log == first, "program {seed}: {differs:?}");
        trace::check(&trace::trace(&first).unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
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

/// Gives the message of a panic.
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
        Err(Error::Hang(table)) => (table, kernel.shutdown().is_ok()).0,
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
        Err(Error::Machine(error)) => assert_eq!(error.kind(), io::ErrorKind::StorageFull),
        other => panic!("{other:?}"),
    }
}
