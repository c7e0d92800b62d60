//! The write deadline: a peer that does not read is cut off, a peer that reads slowly is not.

use std::cell::Cell;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use kernel::{Kernel, Options, Sim};
use net::pipe::{PipeEnd, duplex};
use net::{Stream, WriteDeadline};
use traps::Site;
use traps::{
    Either, Interruptible, budget, clock, connection_deadline, ignore_after, join, join_all, race,
    sleep, timeout_after,
};

const SECOND: Duration = Duration::from_secs(1);

fn run<F: Future>(main: F) -> F::Output {
    let mut kernel = Kernel::new(Sim::new());
    let output = kernel.run(main).unwrap();
    kernel.shutdown().unwrap();
    let left = kernel.counters();
    assert_eq!((left.tickets, left.scopes, left.timers, left.deadlines), (0, 0, 0, 0));
    output
}

async fn seconds() -> u64 {
    clock().await.as_micros() / 1_000_000
}

fn kind<T>(done: io::Result<T>) -> Result<T, ErrorKind> {
    done.map_err(|error| error.kind())
}

/// Reads this many bytes in each interval, until the end. Returns the total.
async fn reads(mut stream: PipeEnd, each: Duration, bytes: usize) -> io::Result<usize> {
    let mut all = 0;
    loop {
        sleep(each).await?;
        match stream.read(&mut vec![0; bytes]).await? {
            0 => return Ok(all),
            n => all += n,
        }
    }
}

#[test]
fn d21_a_peer_that_reads_nothing_is_reset_after_thirty_seconds() {
    let (end, at, met) = run(async {
        let (mut stream, mut peer) = duplex(1000);
        let deadline = WriteDeadline::new(connection_deadline().await, WriteDeadline::SPAN);
        let end = kind(deadline.write_all(&mut stream, &[b'x'; 5000]).await);
        // Not an end after 1,000 bytes, which it might take for the whole.
        (end, seconds().await, kind(peer.read(&mut [0; 2000]).await))
    });
    assert_eq!((end, at), (Err(ErrorKind::ConnectionReset), 30));
    assert_eq!(met, Err(ErrorKind::ConnectionReset));
}

#[test]
fn d21_a_peer_that_reads_slowly_is_not_cut_off() {
    let (end, read, took) = run(async {
        let (mut stream, peer) = duplex(100);
        let writing = async {
            let deadline = WriteDeadline::new(connection_deadline().await, WriteDeadline::SPAN);
            let end = kind(deadline.write_all(&mut stream, &[b'x'; 1000]).await);
            stream.shutdown().unwrap();
            end
        };
        let (end, read) = join(writing, reads(peer, 29 * SECOND, 10)).await;
        (end, read.unwrap(), seconds().await)
    });
    assert_eq!((end, read), (Ok(()), 1000));
    assert_eq!(took, 29 * 101);
}

#[test]
fn d21_a_write_that_is_broken_off_and_tried_again_has_one_span_in_all() {
    for dropped in [false, true] {
        let (end, at) = run(async {
            let (mut stream, _peer) = duplex(10);
            let deadline = WriteDeadline::new(connection_deadline().await, WriteDeadline::SPAN);
            deadline.write_all(&mut stream, b"exactly 10").await.unwrap();
            let mut tries = 0;
            let end = loop {
                tries += 1;
                assert!(tries < 10, "it is never cut off");
                let write = deadline.write_all(&mut stream, b"more");
                if dropped {
                    let Either::Left(end) = race(write, sleep(7 * SECOND)).await else { continue };
                    break kind(end);
                }
                match ignore_after(7 * SECOND, write).await {
                    Ok(None) => {}
                    end => break kind(end.map(drop)),
                }
            };
            (end, seconds().await)
        });
        assert_eq!((end, at), (Err(ErrorKind::ConnectionReset), 30), "{dropped}");
    }
}

#[test]
fn d21_whoever_reads_slowly_is_not_cut_off_by_writes_that_are_broken_off() {
    let (written, read) = run(async {
        let (mut stream, peer) = duplex(10);
        let writing = async {
            let deadline = WriteDeadline::new(connection_deadline().await, WriteDeadline::SPAN);
            let mut rest = &[b'x'; 50][..];
            while !rest.is_empty() {
                let bufs = [IoSlice::new(rest)];
                let write = deadline.write_vectored(&mut stream, &bufs);
                if let Some(n) = ignore_after(7 * SECOND, write).await? {
                    rest = &rest[n..];
                }
            }
            stream.shutdown()
        };
        join(writing, reads(peer, 29 * SECOND, 10)).await
    });
    written.unwrap();
    assert_eq!(read.unwrap(), 50);
}

/// Takes all bytes that it is offered, after the action for this many bytes.
struct Sink<F>(F);

impl<F: AsyncFnMut(usize) -> io::Result<()>> Stream for Sink<F> {
    async fn read_from(&mut self, _: &mut [u8], _: Site) -> io::Result<usize> {
        Ok(0)
    }
    async fn write_from(&mut self, bufs: &[IoSlice<'_>], _: Site) -> io::Result<usize> {
        let size = bufs.iter().map(|buf| buf.len()).sum();
        (self.0)(size).await?;
        Ok(size)
    }
    async fn readable(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn shutdown(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn d21_a_large_write_begins_anew_after_each_mebibyte() {
    let (end, took) = run(async {
        let (taken, room_at) = (Cell::new(0), Cell::new(None));
        let mut tape = Sink(async |size: usize| {
            // A write that is given up and repeated does not restart the time.
            let now = clock().await;
            let at = room_at.get().unwrap_or(now + 20 * SECOND * (size >> 20) as u32);
            room_at.set(Some(at));
            sleep(at.since(now)).await?;
            room_at.set(None);
            taken.set(taken.get() + size);
            Ok(())
        });
        let deadline = WriteDeadline::new(connection_deadline().await, WriteDeadline::SPAN);
        let end = kind(deadline.write_all(&mut tape, &vec![b'x'; 4 << 20]).await);
        assert_eq!(taken.get(), 4 << 20);
        (end, seconds().await)
    });
    assert_eq!((end, took), (Ok(()), 80));
}

/// Like a socket right after a write that filled it: there is some room, but no event reports it.
#[test]
fn d21_room_of_which_nobody_is_told_does_not_double_the_span() {
    let (end, at) = run(async {
        let mut tries = 0;
        let mut full = Sink(async |_| {
            tries += 1;
            if tries != 3 {
                sleep(Duration::MAX).await?;
            }
            Ok(())
        });
        let deadline = WriteDeadline::new(connection_deadline().await, 3 * SECOND);
        deadline.write_all(&mut full, b"some").await.unwrap();
        let end = kind(deadline.write_all(&mut full, b"more").await);
        (end, clock().await.as_micros())
    });
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
    assert!((3_000_000..4_000_000).contains(&at), "{at}");
}

#[test]
fn d21_who_reads_slowly_is_not_cut_off_where_the_budget_is_spent() {
    let mut kernel = Kernel::with_options(Sim::new(), Options::new().budget(2));
    let ends = kernel.run(async {
        let writes = (0..10).map(|_| async {
            let deadline = WriteDeadline::new(connection_deadline().await, SECOND);
            // Its peer reads slowly, so there is room at the third try.
            let mut asked = 0;
            let mut slow = Sink(async |_| {
                asked += 1;
                if asked < 3 {
                    sleep(Duration::MAX).await?;
                }
                Ok(budget().await?)
            });
            kind(deadline.write_all(&mut slow, b"some").await)
        });
        join_all(writes).await
    });
    assert_eq!(ends.unwrap(), [Ok(()); 10]);
    kernel.shutdown().unwrap();
}

#[test]
fn d21_a_second_writer_is_refused_and_does_not_move_the_deadline() {
    run(async {
        let (mut stream, _peer) = duplex(10);
        let (mut other, _other_peer) = duplex(10);
        let deadline = WriteDeadline::new(connection_deadline().await, WriteDeadline::SPAN);
        let first = async {
            let end = kind(deadline.write_all(&mut stream, b"more than ten").await);
            (end, seconds().await)
        };
        let second = async {
            sleep(20 * SECOND).await.unwrap();
            kind(deadline.write_all(&mut other, b"x").await)
        };
        let (first, second) = join(first, second).await;
        assert_eq!(first, (Err(ErrorKind::ConnectionReset), 30));
        assert_eq!(second, Err(ErrorKind::ResourceBusy));
        // Nothing of it was written, and the next write has its turn.
        deadline.write_all(&mut other, b"exactly 10").await.unwrap();
        // So has the write after one that was dropped.
        let dropped = ignore_after(SECOND, deadline.write_all(&mut other, b"x")).await;
        assert!(dropped.unwrap().is_none());
        assert_eq!(kind(deadline.write_all(&mut other, b"").await), Ok(()));
    });
}

#[test]
fn an_interrupt_from_further_out_is_passed_on_and_resets_nothing() {
    run(async {
        let (mut stream, mut peer) = duplex(10);
        // The sooner of the two, or the only one.
        for (span, own) in [(5 * SECOND, WriteDeadline::SPAN), (SECOND, Duration::MAX)] {
            let deadline = WriteDeadline::new(connection_deadline().await, own);
            let end = timeout_after(span, deadline.write_all(&mut stream, b"more than ten")).await;
            assert!(end.unwrap_err().interrupt().is_some());
        }
        assert_eq!(peer.read(&mut [0; 20]).await.unwrap(), 10);
    });
}

#[test]
fn a_write_that_need_not_wait_makes_no_trap() {
    let mut kernel = Kernel::new(Sim::new());
    let mut traps = |writes| {
        let before = kernel.counters().traps;
        let main = async {
            let (mut stream, _peer) = duplex(1000);
            let deadline = WriteDeadline::new(connection_deadline().await, WriteDeadline::SPAN);
            for _ in 0..writes {
                deadline.write_all(&mut stream, b"some").await.unwrap();
            }
        };
        kernel.run(main).unwrap();
        kernel.counters().traps - before
    };
    assert_eq!(traps(1), traps(100));
}

/// Other parts of the task may have spent its budget, which is not a fault of the peer.
#[test]
fn a_write_for_which_there_is_room_is_never_late_whatever_is_left_of_the_budget() {
    for spent in [0, u32::MAX] {
        let end = run(async {
            let (mut stream, _peer) = duplex(1000);
            let deadline = WriteDeadline::new(connection_deadline().await, Duration::ZERO);
            traps::internal::spend_budget(spent);
            kind(deadline.write_all(&mut stream, b"there is room").await)
        });
        assert_eq!(end, Ok(()), "{spent}");
    }
}
