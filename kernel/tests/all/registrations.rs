//! Descriptors: their registration, remembered readiness, and the ends of waits.

use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Options, Policy, Real, Sim};
use support::{check, check_quietly, check_with, ms};
use testing::{Setup, child};
use traps::io::{Descriptor, Direction, Io, Scripted, Source};
use traps::sync::Event;
use traps::{Error, Time, clock, ignore_after, join, sleep, spawn, yield_now};

fn at(n: u64) -> Time {
    Time::ZERO + ms(n)
}

/// Returns a script in which descriptor 7 becomes readable at these milliseconds.
fn readable_at(times: impl IntoIterator<Item = u64>) -> Sim {
    times.into_iter().fold(Sim::new(), |sim, n| sim.ready_at(at(n), 7, Direction::Read))
}

#[test]
fn c20_a_second_reader_is_busy_and_the_first_is_not_affected() {
    check("c20_a_second_reader_is_busy", readable_at([5]), async {
        let io = Rc::new(Io::new(Scripted(7)));
        let first = io.clone();
        let mut reader = spawn("reader", async move { first.readable().await }).await;
        yield_now().await.unwrap();
        assert!(matches!(io.readable().await, Err(Error::Busy)));
        reader.join().await.unwrap().unwrap();
    });
}

#[test]
fn c20_a_reader_and_a_writer_share_a_registration() {
    let sim = readable_at([5]).ready_at(at(3), 7, Direction::Write);
    let ran = check("c20_a_reader_and_a_writer", sim, async {
        let io = Rc::new(Io::new(Scripted(7)));
        let other = io.clone();
        let mut writer = spawn("writer", async move { other.writable().await }).await;
        io.readable().await.unwrap();
        writer.join().await.unwrap().unwrap();
    });
    assert_eq!(ran.count("register"), 1);
}

#[test]
fn c20_a_wake_of_the_reader_leaves_the_writer_registered() {
    for policy in [Policy::Lazy, Policy::NextSleep, Policy::Eager] {
        let sim = readable_at([3]).ready_at(at(5), 7, Direction::Write);
        let mut kernel = Kernel::with_options(sim, Options::new().policy(policy));
        let written = kernel.run(async {
            let io = Rc::new(Io::new(Scripted(7)));
            let other = io.clone();
            let mut reader = spawn("reader", async move { other.readable().await }).await;
            io.writable().await.unwrap();
            reader.join().await.unwrap().unwrap();
            clock().await
        });
        assert_eq!(written.unwrap(), at(5), "{policy}");
        assert_eq!(kernel.counters().registers, 1, "{policy}");
    }
}

#[test]
fn curio_d9_closing_a_handle_wakes_its_waiters() {
    check("curio_d9_close_under_a_waiter", Sim::new(), async {
        let io = Rc::new(Io::new(Scripted(7)));
        let waited = io.clone();
        let mut waiter = spawn("waiter", async move { waited.readable().await }).await;
        yield_now().await.unwrap();
        io.close();
        assert!(matches!(waiter.join().await.unwrap(), Err(Error::Closed)));
        assert!(matches!(io.readable().await, Err(Error::Closed)));
    });
}

#[test]
fn curio_d9_closing_a_handle_wakes_a_reader_and_a_writer() {
    check_quietly("close_under_two_waiters", Sim::new(), async {
        let io = Rc::new(Io::new(Scripted(7)));
        let (reads, writes) = (io.clone(), io.clone());
        let mut reader = spawn("reader", async move { reads.readable().await }).await;
        let mut writer = spawn("writer", async move { writes.writable().await }).await;
        yield_now().await.unwrap();
        io.close();
        assert!(matches!(reader.join().await.unwrap(), Err(Error::Closed)));
        assert!(matches!(writer.join().await.unwrap(), Err(Error::Closed)));
    });
}

#[test]
fn the_task_that_closes_a_handle_is_the_cause_whatever_it_did_before() {
    let event = Rc::new(Event::new());
    let ran = check_quietly("close_after_a_set", Sim::new(), async move {
        let io = Rc::new(Io::new(Scripted(7)));
        let (waited, theirs) = (io.clone(), event.clone());
        let mut other = spawn("other", async move { theirs.wait().await }).await;
        let mut waiter = spawn("waiter", async move { waited.readable().await }).await;
        yield_now().await.unwrap();
        event.set();
        io.close();
        other.join().await.unwrap().unwrap();
        waiter.join().await.unwrap().unwrap_err();
    });
    let cause = |part: &str| {
        let line = &ran.lines(|line| line.contains(part))[0];
        line.rsplit("cause=").next().unwrap().to_owned()
    };
    assert_eq!(cause("wake     closed"), cause("wake     event"));
}

#[test]
fn readiness_without_a_waiter_is_remembered() {
    let ran = check("readiness_is_remembered", readable_at([1, 3]), async {
        let io = Io::new(Scripted(7));
        io.readable().await.unwrap();
        sleep(ms(5)).await.unwrap();
        io.readable().await.unwrap();
    });
    assert_eq!(ran.took, ms(6), "the second wait did not block");
    assert_eq!(ran.count("remember"), 1);
}

#[test]
fn a_registration_that_is_refused_takes_nothing_from_the_first() {
    check("a_registration_that_is_refused", readable_at([5]), async {
        let first = Rc::new(Io::new(Scripted(7)));
        let waited = first.clone();
        let mut reader = spawn("reader", async move { waited.readable().await }).await;
        yield_now().await.unwrap();
        let second = Io::new(Scripted(7)).readable().await;
        assert!(
            matches!(second, Err(Error::Io(error)) if error.kind() == ErrorKind::AlreadyExists)
        );
        reader.join().await.unwrap().unwrap();
    });
}

/// An error that was read is gone, and so is the readiness that it made. Otherwise a loop that
/// waits after every `WouldBlock` would no longer yield.
#[test]
fn a_datagram_socket_waits_again_once_its_error_was_read() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    // No peer is there yet.
    let (ours, gone) = (socket.local_addr().unwrap(), (child::own_host(), 2_000_u16));
    socket.connect(gone).unwrap();
    let mut kernel = Kernel::new(Real::new().unwrap());
    let (refusals, waits) = kernel
        .run(async move {
            let io = Rc::new(Io::new(socket));
            let asks = io.clone();
            // When the error comes, a task waits.
            let ask = async move { asks.send(b"is anybody there?").map(drop) };
            spawn("ask", ask).detached().await;
            let (mut refusals, mut waits, mut buf) = (0, 0, [0; 16]);
            loop {
                match io.recv(&mut buf) {
                    Ok(_) => break (refusals, waits),
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                        refusals += 1;
                        spawn("answer", async move {
                            let late = UdpSocket::bind(gone).unwrap();
                            late.send_to(b"now", ours).unwrap();
                        })
                        .detached()
                        .await;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        waits += 1;
                        assert!(waits < 10, "no other task ran");
                        io.readable().await.unwrap();
                    }
                }
            }
        })
        .unwrap();
    assert!(refusals == 1 && waits <= 3, "{refusals} {waits}");
    kernel.shutdown().unwrap();
}

#[test]
fn unwanted_events_end_no_registration() {
    let ran = check("events_that_nobody_wants", readable_at(1..=20), async {
        let io = Io::new(Scripted(7));
        io.readable().await.unwrap();
        sleep(ms(50)).await.unwrap();
        io.readable().await.unwrap();
        assert!(ignore_after(ms(1), io.readable()).await.is_ok());
    });
    assert_eq!((ran.count("remember"), ran.count("register")), (1, 1));
    assert_eq!(ran.count("unregister"), 1, "by the close");
}

/// A peer writes, and no task reads: the kernel sleeps as soon as the pipe is full.
#[test]
fn unwanted_events_do_not_keep_the_kernel_awake() {
    let (socket, mut peer) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    peer.set_nonblocking(true).unwrap();
    let mut kernel = Kernel::new(Real::new().unwrap());
    let writes = kernel
        .run(async {
            let io = Io::new(socket);
            assert!(ignore_after(ms(1), io.readable()).await.unwrap().is_none());
            let mut writes = 0;
            while peer.write(&[0; 4096]).is_ok() {
                writes += 1;
                yield_now().await.unwrap();
            }
            // The descriptor is ready all this time.
            sleep(ms(20)).await.unwrap();
            io.readable().await.unwrap();
            writes
        })
        .unwrap();
    let counters = kernel.counters();
    assert_eq!((counters.registers, counters.unregisters), (1, 1), "by the close");
    assert!(counters.polls < writes + 10, "{} polls for {writes} writes", counters.polls);
}

#[test]
fn curio_i5_an_interrupted_wait_is_unregistered_at_once_or_stays() {
    for (policy, name, unregistered) in
        [(Policy::Lazy, "curio_i5_lazy", 1), (Policy::NextSleep, "curio_i5_next_sleep", 2)]
    {
        let ran = check_with(name, readable_at([5]), Options::new().policy(policy), async {
            let io = Io::new(Scripted(7));
            assert!(ignore_after(ms(1), io.readable()).await.unwrap().is_none());
            io.readable().await.unwrap();
        });
        assert_eq!(ran.count("unregister"), unregistered, "{name}");
    }
}

#[test]
fn of_two_wakes_of_one_turn_a_task_leaves_one_registration_to_its_next_sleep() {
    let sim = readable_at([5]).ready_at(at(5), 8, Direction::Read);
    let options = Options::new().policy(Policy::NextSleep);
    let ran = Setup::new().sim(sim).options(options).run(async {
        let (first, second) = (Io::new(Scripted(7)), Io::new(Scripted(8)));
        let (one, two) = join(first.readable(), second.readable()).await;
        one.and(two).unwrap();
        sleep(ms(1)).await.unwrap();
    });
    let left = ran.trace.matches(" unregister ").count();
    assert_eq!((left, ran.trace.matches("why=close").count()), (2, 0), "{}", ran.trace);
}

#[test]
fn a_descriptor_that_was_closed_to_waits_is_not_closed_before_the_system_has_let_go_of_it() {
    // Another test of this process may take the number first.
    let tried = (0..1_000).any(|_| a_number_is_used_again_after_a_close());
    assert!(tried, "no number was used again");
}

/// Returns whether the number was used again. The new descriptor can then be waited for.
fn a_number_is_used_again_after_a_close() -> bool {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let (socket, mut peer) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    let twin = socket.try_clone().unwrap();
    let used = kernel
        .run(async {
            let io = Io::new(socket);
            assert!(ignore_after(ms(1), io.readable()).await.unwrap().is_none());
            let number = io.as_raw_fd();
            io.close();
            io.close();
            assert!(matches!(io.readable().await, Err(Error::Closed)));
            drop(io);
            yield_now().await.unwrap();
            // Descriptors of the same file, one of which has the same number.
            let twins: Vec<_> = (0..30).map(|_| twin.try_clone().unwrap()).collect();
            let Some(again) = twins.into_iter().find(|twin| twin.as_raw_fd() == number) else {
                return false;
            };
            peer.write_all(b"x").unwrap();
            Io::new(again).readable().await.unwrap();
            true
        })
        .unwrap();
    kernel.shutdown().unwrap();
    used
}

#[test]
fn curio_d18_a_waiter_that_was_woken_does_not_make_another_busy() {
    check("curio_d18_no_false_busy", readable_at([1, 3]), async {
        let io = Rc::new(Io::new(Scripted(7)));
        let first = io.clone();
        let mut reader = spawn("reader", async move { first.readable().await }).await;
        sleep(ms(1)).await.unwrap();
        // The reader is ready and has not run yet.
        io.readable().await.unwrap();
        reader.join().await.unwrap().unwrap();
    });
}

/// A handled `Busy`, after a wait for another descriptor whose registration is kept, does not
/// affect the next waits. Curio's kernel ends at the next wait.
#[test]
fn curio_d20_a_busy_that_was_handled_harms_no_later_wait() {
    let readable = |sim: Sim, n| sim.ready_at(at(n), 8, Direction::Read);
    for policy in [Policy::Eager, Policy::NextSleep, Policy::Lazy] {
        let sim = [1, 7].into_iter().fold(readable_at([5]), readable);
        Setup::new().sim(sim).options(Options::new().policy(policy)).run(async {
            let (io, other) = (Rc::new(Io::new(Scripted(7))), Io::new(Scripted(8)));
            let first = io.clone();
            let mut reader = spawn("reader", async move { first.readable().await }).await;
            other.readable().await.unwrap();
            assert!(matches!(io.readable().await, Err(Error::Busy)));
            sleep(ms(1)).await.unwrap();
            other.readable().await.unwrap();
            reader.join().await.unwrap().unwrap();
        });
    }
}

#[test]
fn curio_d21_a_descriptor_that_the_poller_refuses_is_an_error_of_the_wait() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel
        .run(async {
            let file = std::fs::File::open(support::root().join("Cargo.toml"));
            let file = Io::new(file.unwrap());
            let Err(Error::Io(error)) = file.readable().await else { panic!("not refused") };
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            let Err(error) = Io::new(Scripted(7)).readable().await else { panic!("not refused") };
            assert!(error.to_string().contains("simulated"), "{error}");
            sleep(Duration::ZERO).await.unwrap();
        })
        .unwrap();
    kernel.shutdown().unwrap();
    assert_eq!(kernel.counters().handles, 0);
}

/// A socket that states that it has no duplicate.
struct Sole(UnixStream);

impl Source for Sole {
    fn descriptor(&self) -> Descriptor {
        Descriptor::Real(self.0.as_raw_fd())
    }
    fn into_owner(self) -> Option<OwnedFd> {
        Some(self.0.into())
    }
    fn is_sole(&self) -> bool {
        true
    }
}

#[test]
fn c19_a_stale_event_does_not_concern_the_next_handle() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let heard = kernel.run(async {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // A child of another thread has such a duplicate between its fork and its exec.
        let duplicate = ours.try_clone().unwrap();
        let io = Io::new(Sole(ours));
        assert!(ignore_after(Duration::ZERO, io.readable()).await.unwrap().is_none());
        drop(io);
        yield_now().await.unwrap();
        // The poller still knows the closed descriptor. The next one takes its place.
        let (ours, _peer) = UnixStream::pair().unwrap();
        let next = Io::new(Sole(ours));
        theirs.write_all(&[1]).unwrap();
        let heard = ignore_after(ms(1), next.readable()).await.unwrap();
        drop(duplicate);
        heard
    });
    assert!(heard.unwrap().is_none(), "nothing came for it");
}

#[test]
fn c19_a_descriptor_number_that_is_used_again_is_not_the_old_handle() {
    let (mut kernel, mut rounds) = (Kernel::new(Real::new().unwrap()), 0);
    kernel
        .run(async {
            let mut numbers = Vec::new();
            // Other tests of this process take numbers, too, so this may need many rounds.
            let mut used_again = false;
            while numbers.len() < 10 || !used_again && numbers.len() < 10_000 {
                let byte = numbers.len() as u8;
                let (ours, mut theirs) = UnixStream::pair().unwrap();
                ours.set_nonblocking(true).unwrap();
                used_again |= numbers.contains(&ours.as_raw_fd());
                numbers.push(ours.as_raw_fd());
                let io = Io::new(ours);
                theirs.write_all(&[byte]).unwrap();
                io.readable().await.unwrap();
                let mut got = [0];
                (&*io).read_exact(&mut got).unwrap();
                assert_eq!(got, [byte]);
                // An event of this pair is under way when its number is free again.
                theirs.write_all(&[99]).unwrap();
                drop(io);
                yield_now().await.unwrap();
            }
            assert!(used_again, "the system used a number again");
            rounds = numbers.len() as u64;
        })
        .unwrap();
    assert_eq!(kernel.counters().registered, 0);
    assert_eq!(kernel.counters().registers, rounds);
}

#[test]
fn readiness_without_a_line_leaves_a_ready_task_in_the_queue_of_the_last_line() {
    let sim = readable_at([1, 2, 3]);
    let ticks = sim.clock();
    check_quietly("readiness_without_a_line", sim, async move {
        let io = Io::new(Scripted(7));
        io.readable().await.unwrap();
        // The second readiness is remembered. The third changes nothing, and has no line. The
        // kernel polls for readiness only in some turns.
        for _ in 0..400 {
            ticks.advance(Duration::from_micros(10));
            yield_now().await.unwrap();
        }
        io.readable().await.unwrap();
    });
}

/// Tasks that only hand work to each other cost few system calls, and delay everything else for a
/// bounded number of turns.
#[test]
fn busy_tasks_look_at_the_machine_every_62nd_turn_or_when_the_clock_has_moved() {
    let polls = |each: Duration| {
        let sim = Sim::new();
        let clock = sim.clock();
        let mut kernel = Kernel::new(sim);
        kernel
            .run(async {
                for _ in 1..620 {
                    yield_now().await.unwrap();
                    clock.advance(each);
                }
            })
            .unwrap();
        assert_eq!(kernel.counters().turns, 620);
        kernel.counters().polls
    };
    assert_eq!(polls(Duration::ZERO), 10);
    // The clock has not moved in the first turns.
    assert_eq!(polls(Duration::from_micros(1)), 618);
}

/// A peer that stops sending may still receive.
#[test]
fn a_socket_whose_peer_has_ended_its_direction_still_waits_for_room() {
    let (socket, peer) = UnixStream::pair().unwrap();
    socket.set_nonblocking(true).unwrap();
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel
        .run(async {
            let mut ours = socket.try_clone().unwrap();
            let io = Io::new(socket);
            io.readable().await.unwrap();
            while ours.write(&[0; 4096]).is_ok() {}
            // There was room when the descriptor was registered.
            let _ = ignore_after(ms(1), io.writable()).await.unwrap();
            assert!(ignore_after(ms(1), io.writable()).await.unwrap().is_none());
        })
        .unwrap();
    drop(peer);
    kernel.shutdown().unwrap();
}
