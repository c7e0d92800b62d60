//! Lines, frames, copies and servers over streams in memory, on the simulated machine.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Options, Sim};
use net::pipe::{PipeEnd, duplex};
use net::{
    BufReader, Connection, Frames, Stream, TcpListener, TcpStream, UnixStream, copy,
    copy_bidirectional, serve,
};
use testing::{Setup, run, sweep};
use traps::shutdown::begun;
use traps::{Interruptible, Signal, Time, join, sleep, spawn, timeout_after, yield_now};

const MS: Duration = Duration::from_millis(1);

/// An end of a pipe. The peer writes `text` and leaves.
async fn says(text: &[u8]) -> PipeEnd {
    let (here, mut there) = duplex(text.len());
    there.write_all(text).await.unwrap();
    here
}

/// An end of a pipe. The peer writes `text`, a byte each millisecond, and leaves.
async fn says_slowly(text: Vec<u8>) -> PipeEnd {
    let (here, mut there) = duplex(1);
    let says = async move {
        for byte in text {
            sleep(MS).await?;
            there.write_all(&[byte]).await?;
        }
        io::Result::Ok(())
    };
    spawn("says", says).detached().await;
    here
}

async fn read_all(stream: &mut impl Stream) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all, 1 << 20).await.unwrap();
    all
}

// ---- Lines -------------------------------------------------------------------------------------

#[test]
fn lines_have_either_end_and_the_last_one_may_have_none() {
    let text: &[u8] = b"one\r\ntwo\n\n\r\nth\rree\r\r\nlast";
    let wanted: [&[u8]; 6] = [b"one", b"two", b"", b"", b"th\rree\r", b"last"];
    for most in [1, 2, 100] {
        run(async {
            let mut stream = says(text).await;
            stream.set_short_reads(most);
            let (mut reader, mut found) = (BufReader::with_capacity(1, stream), Vec::new());
            let mut lines = reader.lines(10);
            while let Some(line) = lines.next().await.unwrap() {
                found.push(line.to_vec());
            }
            assert_eq!(found, wanted);
            assert!(lines.next().await.unwrap().is_none(), "the end stays the end");
        });
    }
}

#[test]
fn a_text_is_read_to_its_end_within_a_limit_and_must_be_utf_8() {
    let ran = run(async {
        let mut text = "so: ".to_owned();
        says("schön".as_bytes()).await.read_to_string(&mut text, 10).await.unwrap();
        assert_eq!(text, "so: schön");
        let too_long = says(b"two").await.read_to_string(&mut text, 11).await;
        let not_text = says(b"\xff").await.read_to_string(&mut text, 100).await;
        assert_eq!(text, "so: schön");
        [too_long, not_text].map(|read| read.unwrap_err().kind())
    });
    assert_eq!(ran.output, [ErrorKind::FileTooLarge, ErrorKind::InvalidData]);
}

#[test]
fn what_follows_the_lines_is_left_in_the_reader() {
    run(async {
        let mut stream = says(b"head\n\nbody").await;
        // Over a borrowed stream.
        let mut reader = BufReader::new(&mut stream);
        let mut lines = reader.lines(100);
        assert_eq!(lines.next().await.unwrap(), Some(&b"head"[..]));
        assert_eq!(lines.next().await.unwrap(), Some(&b""[..]));
        assert_eq!(read_all(&mut reader).await, b"body");
    });
}

#[test]
fn a_line_above_the_limit_is_an_error_that_says_the_limit_and_loses_nothing() {
    run(async {
        let mut reader = BufReader::new(says(b"four\nfives\n").await);
        let mut lines = reader.lines(5);
        assert_eq!(lines.next().await.unwrap(), Some(&b"four"[..]), "its end counts");
        let error = lines.next().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("within 5 bytes"), "{error}");
        let mut line = b"and ".to_vec();
        assert!(reader.read_line(&mut line, 6).await.unwrap());
        assert_eq!(line, b"and fives");
    });
}

#[test]
fn a_line_that_timed_out_again_and_again_comes_whole() {
    run(async {
        let mut reader = BufReader::new(says_slowly(b"first line\nsecond\n".to_vec()).await);
        let (mut lines, mut found, mut timeouts) = (reader.lines(100), Vec::new(), 0);
        loop {
            match timeout_after(MS * 3 / 2, lines.next()).await {
                Ok(None) => break,
                Ok(Some(line)) => found.push(line.to_vec()),
                Err(error) => {
                    assert!(error.interrupt().is_some());
                    timeouts += 1;
                }
            }
        }
        assert_eq!(found, [&b"first line"[..], b"second"]);
        assert!(timeouts >= 8, "{timeouts}");
    });
}

// ---- Frames ------------------------------------------------------------------------------------

#[test]
fn frames_come_as_they_were_written_however_they_are_cut() {
    for width in [1, 2, 4, 8] {
        run(async {
            let (here, mut there) = duplex(3);
            there.set_short_reads(2);
            let sizes = [0, 1, 200, 0, 7];
            let writing = async move {
                let mut frames = Frames::with_width(here, width, 200);
                for size in sizes {
                    frames.write(&vec![size as u8; size]).await.unwrap();
                }
            };
            let reading = async {
                let mut frames = Frames::with_width(&mut there, width, 200);
                for size in sizes {
                    assert_eq!(frames.read().await.unwrap(), Some(&vec![size as u8; size][..]));
                }
                assert_eq!(frames.read().await.unwrap(), None);
            };
            join(writing, reading).await;
        });
    }
}

#[test]
fn a_length_is_four_bytes_big_endian() {
    run(async {
        let (here, mut there) = duplex(300);
        let mut frames = Frames::new(here, 1000);
        frames.write(&[7; 258]).await.unwrap();
        drop(frames);
        assert_eq!(read_all(&mut there).await[..4], [0, 0, 1, 2]);
    });
}

#[test]
fn a_cut_frame_is_an_error_that_says_how_far_it_came() {
    for (text, words) in [
        (&[0, 0][..], "2 of 4 bytes"),
        (&[0, 0, 0, 3][..], "4 of 7 bytes"),
        (&[0, 0, 0, 3, b'a', b'b'][..], "6 of 7 bytes"),
    ] {
        run(async {
            let error = Frames::new(says(text).await, 10).read().await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            assert!(error.to_string().contains(words), "{error}");
        });
    }
}

#[test]
fn a_length_above_the_limit_is_refused_before_anything_is_read_for_it() {
    run(async {
        let (here, mut there) = duplex(100);
        there.write_all(&[255, 255, 255, 255]).await.unwrap();
        let mut frames = Frames::new(here, 10);
        // The stream has not ended, so a wait for a frame would hang.
        let error = frames.read().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(error.to_string(), "a frame of 4294967295 bytes, and 10 is the most");
        assert_eq!(frames.write(&[0; 11]).await.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(frames.into_parts().1, [255; 4], "nothing is lost");
        assert_eq!(read_all(&mut there).await, b"", "nothing was written");
        let mut narrow = Frames::with_width(there, 1, 1000);
        assert_eq!(narrow.write(&[0; 256]).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    });
}

/// Reads two frames, and continues after each interrupt.
#[test]
fn a_frame_that_is_interrupted_anywhere_comes_whole() {
    let program = || {
        let main = async {
            let mut frames =
                Frames::new(says_slowly(b"\0\0\0\x02ab\0\0\0\x03cde".to_vec()).await, 9);
            let (mut found, mut interrupts) = (Vec::new(), 0);
            loop {
                match frames.read().await {
                    Ok(None) => break,
                    Ok(Some(frame)) => found.push(frame.to_vec()),
                    Err(error) if error.interrupt().is_some() && interrupts == 0 => interrupts += 1,
                    // The writer was interrupted, so the rest does not arrive.
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
                        break;
                    }
                }
            }
            (found, interrupts)
        };
        (Sim::new(), main)
    };
    let whole = [b"ab".to_vec(), b"cde".to_vec()];
    let hits = Cell::new(0);
    let swept = sweep(program).check(|_, ran| {
        let (found, interrupts) = &ran.output;
        hits.set(hits.get() + interrupts);
        assert!(whole.starts_with(found));
        assert!(*interrupts == 0 || *found == whole, "{found:?}");
    });
    assert_eq!(swept.plain.output, (whole.to_vec(), 0));
    assert!(hits.get() >= 10, "{} reads were interrupted", hits.get());
}

// ---- Copies ------------------------------------------------------------------------------------

#[test]
fn a_copy_counts_and_leaves_the_end_to_its_caller() {
    run(async {
        let (mut here, mut there) = duplex(100);
        assert_eq!(copy(&mut says(b"some bytes").await, &mut here).await.unwrap(), 10);
        here.write_all(b" and more").await.unwrap();
        drop(here);
        assert_eq!(read_all(&mut there).await, b"some bytes and more");
    });
}

/// Runs a client and a server with a proxy between them. Returns the bytes that each of them got,
/// and the counts.
async fn talk_through_a_proxy() -> (Vec<u8>, Vec<u8>, io::Result<(u64, u64)>) {
    let ((mut client, mut a), (mut b, mut server)) = (duplex(3), duplex(2));
    let asking = async {
        client.write_all(b"a question").await.unwrap();
        client.shutdown().unwrap();
        read_all(&mut client).await
    };
    let answering = async {
        // The end of the question has passed through; the other direction continues.
        let question = read_all(&mut server).await;
        server.write_all(b"an answer to it").await.unwrap();
        drop(server);
        question
    };
    let copying = async move { copy_bidirectional(&mut a, &mut b).await };
    let ((answer, question), counts) = join(join(asking, answering), copying).await;
    (question, answer, counts)
}

#[test]
fn each_end_is_passed_on_by_itself_and_the_copy_ends_after_both() {
    let ran = run(talk_through_a_proxy());
    assert!(!ran.trace.contains("at=net/src"), "the log names this file: {}", ran.trace);
    let (question, answer, counts) = ran.output;
    assert_eq!((&question[..], &answer[..]), (&b"a question"[..], &b"an answer to it"[..]));
    assert_eq!(counts.unwrap(), (10, 15));
}

#[test]
fn where_both_directions_of_a_copy_can_go_on_the_first_goes_first() {
    run(async {
        let ((mut client, mut a), (mut b, mut server)) = (duplex(8), duplex(8));
        client.write_all(b"x").await.unwrap();
        server.write_all(b"y").await.unwrap();
        let heard = Rc::new(RefCell::new(Vec::new()));
        for (name, mut end) in [("client", client), ("server", server)] {
            let heard = heard.clone();
            let hear = async move {
                assert_eq!(end.read(&mut [0]).await.unwrap(), 1);
                heard.borrow_mut().push(name);
            };
            spawn(name, hear).detached().await;
        }
        yield_now().await.unwrap();
        assert_eq!(copy_bidirectional(&mut a, &mut b).await.unwrap(), (1, 1));
        assert_eq!(*heard.borrow(), ["server", "client"]);
    });
}

#[test]
fn a_copy_in_both_directions_ends_at_the_first_failure() {
    run(async {
        let ((mut client, mut a), (mut b, server)) = (duplex(8), duplex(8));
        client.reset().unwrap();
        // The server is silent forever.
        let error = copy_bidirectional(&mut a, &mut b).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        drop(server);
    });
}

#[test]
fn what_comes_through_a_copy_that_is_interrupted_anywhere_is_a_beginning() {
    let program = || {
        let main = async {
            let ((mut client, mut a), (mut b, mut server)) = (duplex(4), duplex(4));
            let copying = async move { copy_bidirectional(&mut a, &mut b).await };
            spawn("proxy", copying).detached().await;
            let serving = async move {
                let mut got = Vec::new();
                server.read_to_end(&mut got, 100).await?;
                server.write_all(&got).await
            };
            spawn("server", serving).detached().await;
            let mut back = Vec::new();
            let asking = async {
                client.write_all(b"12345678").await?;
                client.shutdown()?;
                client.read_to_end(&mut back, 100).await
            };
            let asked = asking.await;
            (back, asked)
        };
        (Sim::new(), main)
    };
    let swept = sweep(program).check(|_, ran| assert!(b"12345678".starts_with(&ran.output.0)));
    let (back, asked) = swept.plain.output;
    assert_eq!((&back[..], asked.is_ok()), (&b"12345678"[..], true));
}

// ---- Halves ------------------------------------------------------------------------------------

#[test]
fn each_half_of_a_connection_is_a_stream_in_its_direction_only() {
    kernel::run(async {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let (reader, writer) = client.split();
        let (mut reader, mut frames) = (BufReader::new(reader), Frames::new(writer, 10));
        frames.write(b"abc").await.unwrap();
        let unsupported = frames.read().await.unwrap_err();
        assert_eq!(unsupported.kind(), ErrorKind::Unsupported);
        frames.stream().shutdown().unwrap();
        assert_eq!(read_all(&mut server).await, b"\0\0\0\x03abc");
        server.write_all(b"a line\nand another").await.unwrap();
        drop(server);
        let mut lines = reader.lines(100);
        assert_eq!(lines.next().await.unwrap(), Some(&b"a line"[..]));
        assert_eq!(lines.next().await.unwrap(), Some(&b"and another"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
        assert_eq!(reader.write(b"x").await.unwrap_err().kind(), ErrorKind::Unsupported);
    })
    .unwrap();
}

// ---- Servers -----------------------------------------------------------------------------------

/// What happened, in order.
type Notes = Rc<RefCell<Vec<String>>>;

/// Accepts this many connections and then none until the shutdown begins. Each reads its number,
/// and is served for that many milliseconds.
async fn server(spans: &'static [u32], limit: u32, notes: Notes) -> io::Result<()> {
    let mut waiting = VecDeque::new();
    for span in spans {
        waiting.push_back(says(&span.to_be_bytes()).await);
    }
    let inside = Rc::new(Cell::new(0));
    let accept = async || match waiting.pop_front() {
        Some(stream) => Ok(Some(stream)),
        None => begun().await.map(|()| None).map_err(io::Error::from),
    };
    let handle = |mut stream: Connection<PipeEnd>| {
        let (notes, inside) = (notes.clone(), inside.clone());
        async move {
            inside.set(inside.get() + 1);
            assert!(inside.get() <= limit);
            let mut span = [0; 4];
            let read = stream.read_exact(&mut span).await;
            let slept = sleep(MS * u32::from_be_bytes(span)).await;
            inside.set(inside.get() - 1);
            read?;
            slept?;
            notes.borrow_mut().push(format!("{} inside={}", span[3], inside.get()));
            assert_ne!(span[3], 13, "on purpose");
            Err::<(), _>(io::Error::other("no matter"))
        }
    };
    serve(accept, limit, handle).await
}

/// The signal arrives after `millis`.
fn terminated(millis: u32) -> (Sim, Options) {
    let sim = Sim::new().signal_at(Time::ZERO + MS * millis, Signal::Terminate);
    (sim, Options::new().shutdown_on(&[Signal::Terminate]))
}

#[test]
fn a_server_serves_so_many_at_a_time_in_order_and_survives_those_that_fail() {
    let (sim, options) = terminated(100);
    let notes = Notes::default();
    let served = server(&[13, 5, 4, 3, 2, 1], 2, notes.clone());
    Setup::new().sim(sim).options(options).panics_allowed().run(served).output.unwrap();
    // 5 is followed at 5 ms by 4, that at 9 ms by 3, that at 12 ms by 2; 13 ends at 13 ms.
    let wanted =
        ["5 inside=1", "4 inside=1", "3 inside=1", "13 inside=1", "2 inside=1", "1 inside=0"];
    assert_eq!(*notes.borrow(), wanted);
}

/// When the shutdown begins, as many of the waiting connections are served as there are slots.
#[test]
fn a_shutdown_waits_for_those_that_are_served_and_for_a_slot_full_of_those_that_wait() {
    let (sim, options) = terminated(3);
    let notes = Notes::default();
    let served = server(&[10, 20, 30], 1, notes.clone());
    // The server is not main, because the end of main would be waited for anyway.
    let ran = Setup::new().sim(sim).options(options).run(async {
        spawn("server", served).detached().await;
        begun().await
    });
    ran.output.unwrap();
    assert_eq!(*notes.borrow(), ["10 inside=0", "20 inside=0"]);
    assert!(ran.trace.contains("after=drained"), "{}", ran.trace);
}

#[test]
fn a_server_to_which_clients_never_stop_to_come_ends_at_a_shutdown() {
    let (sim, options) = terminated(12);
    let served = Cell::new(0);
    let handle = |connection| {
        served.set(served.get() + 1);
        async move {
            let _slot: Connection<PipeEnd> = connection;
            sleep(MS * 5).await.map(drop)
        }
    };
    let endless = serve(async || Ok(Some(duplex(1).0)), 2, handle);
    Setup::new().sim(sim).options(options).run(endless).output.unwrap();
    assert_eq!(served.get(), 8, "two at 0, 5 and 10 ms, and two more after the signal");
}

/// The handlers return at once: only the kept halves hold the slots.
#[test]
fn each_half_of_a_connection_keeps_its_slot() {
    let ran = run(async {
        let (accepted, kept) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        let (count, keep) = (accepted.clone(), kept.clone());
        let accept = async move || {
            count.set(count.get() + 1);
            Ok((count.get() <= 6).then(|| UnixStream::pair().unwrap().0))
        };
        let handle = move |stream: Connection<UnixStream>| {
            let (reader, writer) = stream.into_split();
            keep.borrow_mut().push((Some(BufReader::new(reader)), Some(writer)));
            async { io::Result::Ok(()) }
        };
        spawn("server", serve(accept, 2, handle)).detached().await;
        let mut seen = Vec::new();
        for step in 0..4 {
            for _ in 0..10 {
                yield_now().await.unwrap();
            }
            seen.push(accepted.get());
            let first = &mut kept.borrow_mut()[step / 2];
            if step % 2 == 0 { drop(first.0.take()) } else { drop(first.1.take()) }
        }
        seen
    });
    assert_eq!(ran.output, [2, 2, 3, 3]);
}

#[test]
fn a_server_can_be_interrupted_anywhere() {
    let program = || {
        let main = async {
            let notes = Notes::default();
            let served = timeout_after(MS * 50, server(&[3, 2, 1], 2, notes.clone())).await;
            (served.is_err(), notes.take().len())
        };
        (Sim::new(), main)
    };
    let swept = sweep(program).run();
    assert_eq!(swept.plain.output, (true, 3));
}
