//! The pipe in memory and the buffered reader, on the simulated machine.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use kernel::{Kernel, Sim};
use net::pipe::{PipeEnd, duplex};
use net::{BufReader, Stream};
use traps::{spawn, yield_now};

fn run<F: Future>(main: F) -> F::Output {
    let mut kernel = Kernel::new(Sim::new());
    let output = kernel.run(main).unwrap();
    kernel.shutdown().unwrap();
    assert_eq!(kernel.counters().tickets, 0, "nothing waits any more");
    output
}

async fn read_to_end(stream: &mut impl Stream) -> io::Result<Vec<u8>> {
    let (mut all, mut buf) = (Vec::new(), [0; 16]);
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(all),
            n => all.extend_from_slice(&buf[..n]),
        }
    }
}

/// An end of a pipe. The peer writes `text` and leaves.
async fn says(text: &'static [u8], capacity: usize) -> PipeEnd {
    let (here, mut there) = duplex(capacity);
    drop(traps::spawn("says", async move { there.write_all(text).await }).await);
    here
}

#[test]
fn both_ends_in_one_task_pass_more_than_the_pipe_holds() {
    run(async {
        let (mut a, mut b) = duplex(3);
        let writing = async {
            a.write_all(b"a longer text than fits").await.unwrap();
            a.shutdown().unwrap();
            read_to_end(&mut a).await.unwrap()
        };
        let reading = async {
            let got = read_to_end(&mut b).await.unwrap();
            b.write_all(&got).await.unwrap();
            drop(b);
        };
        let (back, ()) = traps::join(writing, reading).await;
        assert_eq!(back, b"a longer text than fits");
    });
}

#[test]
fn a_reader_that_waits_first_is_woken_in_one_task_and_in_two() {
    run(async {
        let (mut a, mut b) = duplex(16);
        let mut buf = [0; 4];
        let (n, ()) =
            traps::join(b.read(&mut buf), async { a.write_all(b"1").await.unwrap() }).await;
        assert_eq!(n.unwrap(), 1);
        let mut reader = traps::spawn("reader", async move { read_to_end(&mut b).await }).await;
        traps::yield_now().await.unwrap();
        a.write_all(b"2").await.unwrap();
        drop(a);
        assert_eq!(reader.join().await.unwrap().unwrap(), b"2");
    });
}

#[test]
fn a_write_to_an_end_that_is_gone_is_a_broken_pipe() {
    run(async {
        let (mut a, b) = duplex(1);
        a.write_all(b"x").await.unwrap();
        let mut writer = traps::spawn("writer", async move { a.write_all(b"y").await }).await;
        traps::yield_now().await.unwrap();
        drop(b);
        let error = writer.join().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn after_a_shutdown_the_other_direction_goes_on() {
    run(async {
        let (mut a, mut b) = duplex(16);
        a.write(b"bye").await.unwrap();
        a.shutdown().unwrap();
        assert_eq!(a.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(read_to_end(&mut b).await.unwrap(), b"bye");
        b.write(b"ok").await.unwrap();
        assert_eq!(a.read(&mut [0; 8]).await.unwrap(), 2);
    });
}

#[test]
fn a_wait_that_timed_out_moved_nothing_and_the_next_one_is_woken() {
    run(async {
        let (mut a, mut b) = duplex(2);
        let mut buf = [0; 4];
        for _ in 0..3 {
            let late = traps::timeout_after(Duration::from_secs(1), b.read(&mut buf)).await;
            assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        }
        a.write_all(b"ab").await.unwrap();
        let late = traps::timeout_after(Duration::from_secs(1), a.write(b"c")).await;
        assert_eq!(late.unwrap_err().kind(), ErrorKind::TimedOut);
        let writing = async {
            a.write_all(b"cd").await.unwrap();
            drop(a);
        };
        let (all, ()) = traps::join(read_to_end(&mut b), writing).await;
        assert_eq!(all.unwrap(), b"abcd");
    });
}

#[test]
fn a_wait_that_is_dropped_leaves_the_line_to_the_next() {
    run(async {
        let (mut a, mut b) = duplex(8);
        let mut buf = [0; 4];
        let lost = traps::race(traps::yield_now(), b.read(&mut buf)).await;
        assert!(matches!(lost, traps::Either::Left(_)));
        let writing = async { a.write_all(b"z").await.unwrap() };
        let (n, ()) = traps::join(b.read(&mut buf), writing).await;
        assert_eq!((n.unwrap(), buf[0]), (1, b'z'));
    });
}

#[test]
fn short_reads_cut_what_was_written_in_one_piece() {
    run(async {
        let (mut a, mut b) = duplex(64);
        b.set_short_reads(2);
        let slices = [IoSlice::new(b"abc"), IoSlice::new(b""), IoSlice::new(b"de")];
        assert_eq!(a.write_vectored(&slices).await.unwrap(), 5);
        let mut buf = [0; 16];
        let mut sizes = Vec::new();
        for _ in 0..3 {
            sizes.push(b.read(&mut buf).await.unwrap());
        }
        assert_eq!(sizes, [2, 2, 1]);
        assert_eq!(b.write(b"xyz").await.unwrap(), 2);
    });
}

#[test]
fn readable_says_that_there_is_something_and_takes_nothing() {
    run(async {
        let (mut a, mut b) = duplex(8);
        let writing = async { a.write_all(b"q").await.unwrap() };
        let (ready, ()) = traps::join(b.readable(), writing).await;
        ready.unwrap();
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 1);
        drop(a);
        b.readable().await.unwrap();
        assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn lines_come_without_their_ends_whatever_the_cut() {
    run(async {
        for (short, capacity) in [(1, 1), (2, 3), (64, 64)] {
            let mut end = says(b"one\r\n\ntwo\nlast", 5).await;
            end.set_short_reads(short);
            let mut reader = BufReader::with_capacity(capacity, end);
            let mut lines = Vec::new();
            loop {
                let mut line = Vec::new();
                if !reader.read_line(&mut line, 10).await.unwrap() {
                    break;
                }
                lines.push(String::from_utf8(line).unwrap());
            }
            assert_eq!(lines, ["one", "", "two", "last"]);
        }
    });
}

#[test]
fn a_line_over_the_bound_is_refused_and_still_in_the_buffer() {
    run(async {
        let mut reader = BufReader::with_capacity(2, says(b"12345\n6", 64).await);
        let mut line = Vec::new();
        let error = reader.read_line(&mut line, 5).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(line.is_empty());
        assert!(reader.read_line(&mut line, 6).await.unwrap());
        assert_eq!(line, b"12345");
        assert!(reader.read_line(&mut line, 6).await.unwrap());
        assert_eq!(line, b"123456", "it is appended");
    });
}

#[test]
fn a_line_that_timed_out_half_way_is_read_whole_by_the_next_call() {
    run(async {
        let (mut a, b) = duplex(64);
        let mut reader = BufReader::new(b);
        let mut line = Vec::new();
        a.write_all(b"half").await.unwrap();
        let late = traps::timeout_after(Duration::from_secs(1), reader.read_line(&mut line, 99));
        assert_eq!(late.await.unwrap_err().kind(), ErrorKind::TimedOut);
        a.write_all(b" and half\n").await.unwrap();
        assert!(reader.read_line(&mut line, 99).await.unwrap());
        assert_eq!(line, b"half and half");
    });
}

#[test]
fn an_exact_read_takes_all_or_nothing() {
    run(async {
        let mut reader = BufReader::with_capacity(4, says(b"0123456789", 3).await);
        let mut eight = [0; 8];
        reader.read_exact(&mut eight).await.unwrap();
        assert_eq!(&eight, b"01234567");
        let error = reader.read_exact(&mut eight).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(reader.buffer(), b"89");
        assert_eq!(reader.fill().await.unwrap(), 2);
        assert_eq!(reader.fill_more().await.unwrap(), 0);
        reader.consume(1);
        assert_eq!(reader.into_parts().1, b"9");
    });
}

#[test]
fn a_reset_ends_both_directions_at_both_ends_at_once() {
    run(async {
        let (mut a, mut b) = duplex(4);
        a.write_all(b"lost").await.unwrap();
        let kind = |done: io::Result<usize>| done.unwrap_err().kind();
        let waiting = async {
            // There is no room, and there never will be.
            b.write_all(b"full").await.unwrap();
            let kind = kind(b.write(b"x").await);
            (kind, b)
        };
        let resetting = async {
            traps::sleep(Duration::from_secs(1)).await.unwrap();
            a.reset().unwrap();
            a
        };
        let ((waited, mut b), mut a) = traps::join(waiting, resetting).await;
        assert_eq!(waited, ErrorKind::ConnectionReset);
        assert_eq!(kind(a.read(&mut [0]).await), ErrorKind::ConnectionReset);
        assert_eq!(kind(a.write(b"x").await), ErrorKind::ConnectionReset);
        assert_eq!(a.readable().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        drop(a);
        assert_eq!(kind(b.read(&mut [0]).await), ErrorKind::ConnectionReset);
        assert_eq!(kind(b.write(b"x").await), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_reader_over_a_pipe_end_waits_at_the_line_that_called_it() {
    let line = line!() + 5;
    let ran = testing::run(async {
        let (a, b) = duplex(64);
        let mut reader = BufReader::new(b);
        let waits = spawn("reads", async move {
            reader.read_line(&mut Vec::new(), 100).await.unwrap();
        })
        .await;
        yield_now().await.unwrap();
        drop(a);
        drop(waits);
    });
    let here = format!("pipe.rs:{line}");
    assert!(ran.trace.contains(&here), "{here}\n{}", ran.trace);
}

/// The operations that generic code performs on any stream.
async fn answer(stream: &mut impl Stream) -> io::Result<()> {
    let mut length = [0; 1];
    stream.read_exact(&mut length).await?;
    let mut body = vec![0; usize::from(length[0])];
    stream.read_exact(&mut body).await?;
    stream.write_all(&body).await
}

#[test]
fn generic_code_reads_exactly_and_writes_all() {
    run(async {
        let (mut a, mut b) = duplex(3);
        let asks = async {
            a.write_all(b"\x0a0123456789").await.unwrap();
            let mut back = [0; 10];
            a.read_exact(&mut back).await.unwrap();
            assert_eq!(&back, b"0123456789");
            a.write_all(b"\x05abc").await.unwrap();
            a.shutdown().unwrap();
        };
        let answers = async {
            answer(&mut b).await.unwrap();
            let short = answer(&mut BufReader::new(&mut b)).await.unwrap_err();
            assert_eq!(short.kind(), ErrorKind::UnexpectedEof);
            b.shutdown().unwrap();
        };
        traps::join(asks, answers).await;
        let mut rest = Vec::new();
        a.read_to_end(&mut rest, 10).await.unwrap();
        assert_eq!(rest, b"");
        let mut long = says(b"0123456789", 3).await;
        let error = long.read_to_end(&mut rest, 9).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    });
}

#[test]
fn an_end_that_wrote_its_last_or_is_gone_has_closed() {
    run(async {
        let (mut a, mut b) = duplex(8);
        let closing = async {
            a.write_all(b"bytes").await.unwrap();
            traps::sleep(Duration::from_secs(1)).await.unwrap();
            a.shutdown().unwrap();
            a
        };
        let seeing = async {
            let early = traps::timeout_after(Duration::from_millis(500), b.closed()).await;
            assert_eq!(early.unwrap_err().kind(), ErrorKind::TimedOut);
            BufReader::new(&mut b).closed().await.unwrap();
            assert_eq!(b.read(&mut [0; 8]).await.unwrap(), 5);
            b.sent().await.unwrap();
        };
        let (mut a, ()) = traps::join(closing, seeing).await;
        drop(b);
        a.closed().await.unwrap();
        let (mut a, mut b) = duplex(8);
        b.reset().unwrap();
        a.closed().await.unwrap();
    });
}
