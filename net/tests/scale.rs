//! Echo on the real machine: its registrations, and the resources that it holds.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Write};
use std::mem;
use std::net::{SocketAddr, TcpStream as StdStream};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use kernel::trace::{Event, Line};
use kernel::{Activation, Counters, Kernel, Options, Policy, Real};
use net::{TcpListener, TcpStream, raise_descriptor_limit};
use testing::child;
use traps::io::Direction;
use traps::{run_in_thread, spawn, timeout_after};

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buf = [0; 4096];
    loop {
        let n = stream.read(&mut buf).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buf[..n]).await?;
    }
}

/// Reports when the kernel is about to sleep for the first time after a reply.
struct Sleeps {
    has_answered: bool,
    tell: Sender<()>,
}

impl Activation for Sleeps {
    fn event(&mut self, line: &Line<'_>) {
        self.has_answered |= matches!(line.event, Event::Io { direction: Direction::Write, .. });
    }
    fn idle(&mut self) {
        if mem::take(&mut self.has_answered) {
            // The client may have gone.
            let _ = self.tell.send(());
        }
    }
}

/// Serves one connection. Its client sends this many messages, each when the server waits for it.
fn registrations_for(policy: Policy, messages: u32) -> Counters {
    let options = Options::new().policy(policy);
    let mut kernel = Kernel::with_options(Real::new().unwrap(), options);
    let (tell, asleep) = mpsc::channel();
    kernel.observe(Sleeps { has_answered: false, tell });
    let mut client = None;
    kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            // The client connects while the listener waits, so that both register.
            let start = async move { thread::spawn(move || talk(addr, messages, &asleep)) };
            let mut start = spawn("start", start).await;
            let (stream, _) = listener.accept().await.unwrap();
            echo(stream).await.unwrap();
            client = Some(start.join().await.unwrap());
        })
        .unwrap();
    client.unwrap().join().unwrap();
    kernel.counters()
}

fn talk(addr: SocketAddr, messages: u32, asleep: &Receiver<()>) {
    let mut stream = StdStream::connect(addr).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answer = [0; 4];
    for n in 0..messages {
        stream.write_all(&n.to_be_bytes()).unwrap();
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, n.to_be_bytes());
        asleep.recv().unwrap();
    }
}

#[test]
fn c18_the_number_of_registrations_does_not_grow_with_the_messages() {
    for policy in [Policy::Lazy, Policy::NextSleep] {
        let few = registrations_for(policy, 1_000);
        let many = registrations_for(policy, 20_000);
        assert_eq!(few.registers, 2, "a listener and a connection, {policy:?}");
        assert_eq!(few.registers, many.registers, "{policy:?}");
        assert_eq!(few.unregisters, many.unregisters, "{policy:?}");
    }
}

#[test]
fn c18_eager_registers_for_each_message() {
    let counters = registrations_for(Policy::Eager, 1_000);
    // The listener, and a wait for each message and for the end. The first message may arrive
    // before the first wait.
    assert!((1_001..=1_002).contains(&counters.registers), "{}", counters.registers);
    assert_eq!(counters.registered, 0);
}

#[test]
fn c18_a_task_that_alternates_between_two_descriptors_registers_two() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let rounds = 5_000;
    kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let mut clients =
                [StdStream::connect(addr).unwrap(), StdStream::connect(addr).unwrap()];
            let (mut one, _) = listener.accept().await.unwrap();
            let (mut two, _) = listener.accept().await.unwrap();
            let client = thread::spawn(move || {
                let mut answer = [0];
                for _ in 0..rounds {
                    for client in &mut clients {
                        client.write_all(b".").unwrap();
                        client.read_exact(&mut answer).unwrap();
                    }
                }
            });
            let mut buf = [0; 16];
            for _ in 0..rounds {
                for stream in [&mut one, &mut two] {
                    let n = stream.read(&mut buf).await.unwrap();
                    stream.write_all(&buf[..n]).await.unwrap();
                }
            }
            client.join().unwrap();
        })
        .unwrap();
    // The listener had both connections in its backlog and never waited.
    assert_eq!(kernel.counters().registers, 2);
}

#[test]
fn an_idle_kernel_takes_no_turns() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let turn = Rc::new(Cell::new(0));
    let seen = turn.clone();
    kernel.observe(move |line: &kernel::trace::Line<'_>| seen.set(line.turn));
    let turns = kernel
        .run(async {
            raise_descriptor_limit().unwrap();
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let mut clients = Vec::new();
            for _ in 0..1_000 {
                clients.push(StdStream::connect(addr).unwrap());
                let (stream, _) = listener.accept().await.unwrap();
                spawn("conn", echo(stream)).await;
            }
            // Every connection is registered; its first event, room to write, arrives at once. The
            // kernel is quiet when several turns in a row were taken only for the return of a
            // thread.
            let mut quiet = 0;
            while quiet < 5 {
                let before = turn.get();
                run_in_thread(|| thread::sleep(Duration::from_millis(20))).await.unwrap();
                quiet = if turn.get() - before == 1 { quiet + 1 } else { 0 };
            }
            let before = turn.get();
            run_in_thread(|| thread::sleep(Duration::from_secs(1))).await.unwrap();
            turn.get() - before
        })
        .unwrap();
    assert_eq!(turns, 1, "the turn in which the thread came back");
    kernel.shutdown().unwrap();
}

const CONNECTIONS: usize = 10_000;
const CLIENT: &str = "TRAPLINE_SCALE_CLIENT";

/// The second process: all connections at once, each with a reply.
fn client_process(addr: &str) {
    raise_descriptor_limit().unwrap();
    let addr: SocketAddr = addr.parse().unwrap();
    let connect = |_| StdStream::connect(addr).unwrap();
    let mut streams: Vec<StdStream> = (0..CONNECTIONS).map(connect).collect();
    for (n, stream) in streams.iter_mut().enumerate() {
        stream.write_all(&(n as u64).to_be_bytes()).unwrap();
    }
    for (n, stream) in streams.iter_mut().enumerate() {
        let mut answer = [0; 8];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer, (n as u64).to_be_bytes());
    }
}

#[test]
fn f2_ten_thousand_connections_take_no_thread_and_leave_nothing_behind() {
    if let Ok(addr) = std::env::var(CLIENT) {
        return client_process(&addr);
    }
    let limit = raise_descriptor_limit().unwrap();
    assert!(limit > CONNECTIONS as u64 + 100, "the hard limit of descriptors is {limit}");
    let mut kernel = Kernel::new(Real::new().unwrap());
    let start = kernel.counters();
    let peak = Rc::new(RefCell::new((0, 0)));
    let counts = peak.clone();
    let mut child = kernel
        .run(async move {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", &child::this_test()])
                .env(CLIENT, addr.to_string())
                .stdout(Stdio::null());
            let child = child::spawn(&mut command);
            let mut tasks = Vec::new();
            for _ in 0..CONNECTIONS {
                let accepted = timeout_after(child::LIMIT, listener.accept()).await;
                let (stream, _) = accepted.unwrap();
                let counts = counts.clone();
                let conn = async move {
                    {
                        let mut counts = counts.borrow_mut();
                        counts.0 += 1;
                        counts.1 = counts.0.max(counts.1);
                    }
                    let result = echo(stream).await;
                    counts.borrow_mut().0 -= 1;
                    result
                };
                tasks.push(spawn("conn", conn).await);
            }
            for mut task in tasks {
                task.join().await.unwrap().unwrap();
            }
            child
        })
        .unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(peak.borrow().1, CONNECTIONS, "all at once");
    let end = kernel.counters();
    let held = |c: &Counters| (c.tasks, c.tickets, c.scopes, c.timers, c.registered, c.handles);
    assert_eq!(held(&end), held(&start));
    assert_eq!((end.threads, end.tokens_peak), (0, 0), "nor was there ever one");
}
