//! Sockets over the loopback interface, on the real machine.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::net::{Shutdown, SocketAddr};
use std::task::Poll;
use std::time::Duration;

use kernel::{Kernel, Real};
use net::{BufReader, Stream, TcpListener, TcpStream};
use traps::{Interruptible, ignore_after, timeout_after};

/// Below this the window is so small that the system's delayed acknowledgements set the pace.
const SMALL: usize = 64 * 1024;

const LOOPBACK: &str = "127.0.0.1:0";

/// No wait for bytes that have arrived takes this long, even on a busy machine.
const LATE: Duration = Duration::from_secs(60);

fn run<F: Future>(main: F) -> F::Output {
    kernel::run(main).unwrap()
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn pair() -> (TcpStream, TcpStream) {
    let (mut listener, address) = listen();
    let client = TcpStream::connect(address).await.unwrap();
    let (server, peer) = listener.accept().await.unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
    (client, server)
}

async fn read_to_end(stream: &mut impl Stream) -> io::Result<Vec<u8>> {
    let (mut all, mut buf) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(all),
            n => all.extend_from_slice(&buf[..n]),
        }
    }
}

/// Writes all of the slices, in order.
async fn write_slices(stream: &mut TcpStream, mut bufs: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !bufs.is_empty() {
        let n = stream.write_vectored(bufs).await?;
        IoSlice::advance_slices(&mut bufs, n);
    }
    Ok(())
}

/// A sequence of bytes that makes reordering visible.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

/// An address without a listener.
fn free_address() -> SocketAddr {
    (testing::child::own_host(), 2_000).into()
}

#[test]
fn what_is_written_comes_back_and_the_end_is_seen() {
    run(async {
        let (mut listener, address) = listen();
        let server = traps::spawn("echo", async move {
            let (mut stream, _) = listener.accept().await?;
            let mut buf = [0; 100];
            loop {
                match stream.read(&mut buf).await? {
                    0 => return io::Result::Ok(()),
                    n => stream.write_all(&buf[..n]).await?,
                }
            }
        });
        let mut server = server.await;
        let mut client = TcpStream::connect(address).await.unwrap();
        assert_eq!(client.peer_addr().unwrap(), address);
        for _ in 0..10 {
            client.write_all(b"hello").await.unwrap();
            let mut buf = [0; 5];
            let mut reader = BufReader::new(client);
            reader.read_exact(&mut buf).await.unwrap();
            assert_eq!(&buf, b"hello");
            (client, _) = reader.into_parts();
        }
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0, "the end stays the end");
        server.join().await.unwrap().unwrap();
    });
}

#[test]
fn bytes_and_the_end_that_came_together_are_both_read() {
    run(async {
        for _ in 0..200 {
            let (mut client, mut server) = pair().await;
            // The server waits first, so that one event reports the bytes and the end.
            let reader = traps::spawn("reader", async move {
                server.readable().await?;
                read_to_end(&mut server).await
            });
            let mut reader = reader.await;
            traps::yield_now().await.unwrap();
            client.write_all(b"last words").await.unwrap();
            drop(client);
            assert_eq!(reader.join().await.unwrap().unwrap(), b"last words");
        }
    });
}

#[test]
fn a_big_transfer_both_ways_passes_small_buffers_in_order() {
    const SIZE: usize = 4 << 20;
    run(async {
        let (mut client, mut server) = pair().await;
        client.set_buffer_sizes(SMALL, SMALL).unwrap();
        server.set_buffer_sizes(SMALL, SMALL).unwrap();
        let exchange = async |stream: &mut TcpStream| {
            let (data, mut got, mut buf) = (pattern(SIZE), Vec::new(), [0; 3000]);
            let (mut reader, mut writer) = stream.split();
            let sent = async {
                writer.write_all(&data).await.unwrap();
                writer.shutdown().unwrap();
            };
            let received = async {
                loop {
                    match reader.read(&mut buf).await.unwrap() {
                        0 => break,
                        n => got.extend_from_slice(&buf[..n]),
                    }
                }
            };
            traps::join(sent, received).await;
            assert!(got == data, "the bytes came in order");
            assert_eq!(stream.written(), SIZE as u64);
        };
        traps::join(exchange(&mut client), exchange(&mut server)).await;
    });
}

#[test]
fn slices_go_out_in_order_however_they_are_cut() {
    run(async {
        let (mut client, mut server) = pair().await;
        client.set_buffer_sizes(SMALL, SMALL).unwrap();
        let data = pattern(1 << 20);
        let expected = data.clone();
        let writer = traps::spawn("writer", async move {
            let mut slices: Vec<_> = data.chunks(777).map(IoSlice::new).collect();
            write_slices(&mut client, &mut slices).await
        });
        let mut writer = writer.await;
        assert!(read_to_end(&mut server).await.unwrap() == expected);
        writer.join().await.unwrap().unwrap();
    });
}

#[test]
fn more_slices_than_the_system_takes_at_once_all_go_out() {
    run(async {
        let (mut client, mut server) = pair().await;
        let data = pattern(3000);
        let expected = data.clone();
        let writer = traps::spawn("writer", async move {
            let mut slices: Vec<_> = data.chunks(1).map(IoSlice::new).collect();
            let written = write_slices(&mut client, &mut slices);
            timeout_after(LATE, written).await.map(|()| client)
        });
        let mut writer = writer.await;
        // No task reads before, because the system makes no edge for a writer that was never
        // refused room.
        drop(writer.join().await.unwrap().unwrap());
        assert!(read_to_end(&mut server).await.unwrap() == expected);
    });
}

#[test]
fn slices_without_a_byte_are_passed_over() {
    run(async {
        let (mut client, mut server) = pair().await;
        let mut slices = vec![IoSlice::new(b""); 2000];
        slices.push(IoSlice::new(b"abc"));
        assert_eq!(client.write_vectored(&slices).await.unwrap(), 3);
        write_slices(&mut client, &mut slices).await.unwrap();
        assert_eq!(client.write_vectored(&[IoSlice::new(b""); 2000]).await.unwrap(), 0);
        drop(client);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"abcabc");
    });
}

#[test]
fn a_read_into_nothing_does_not_wait() {
    run(async {
        let (mut client, mut server) = pair().await;
        assert_eq!(server.read(&mut []).await.unwrap(), 0);
        client.write_all(b"x").await.unwrap();
        server.readable().await.unwrap();
        assert_eq!(server.read(&mut []).await.unwrap(), 0);
        let mut buf = [0; 2];
        assert_eq!(server.read(&mut buf).await.unwrap(), 1);
        assert_eq!(server.read(&mut []).await.unwrap(), 0, "the socket is empty now");
    });
}

#[test]
fn a_half_closed_connection_still_carries_the_answer() {
    run(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"question").await.unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"question");
        server.write_all(b"answer").await.unwrap();
        drop(server);
        assert_eq!(read_to_end(&mut client).await.unwrap(), b"answer");
        let error = client.write(b"more").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_refused_connection_is_an_error_that_names_the_address() {
    let address = free_address();
    let error = run(TcpStream::connect(address)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert!(error.to_string().starts_with(&format!("cannot connect to {address}: ")), "{error}");
}

#[test]
fn a_port_in_use_is_an_error_that_names_the_address() {
    let (_listener, address) = listen();
    let error = TcpListener::bind(address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().starts_with(&format!("cannot listen on {address}: ")), "{error}");
}

#[test]
fn a_listener_takes_no_name_and_a_connection_needs_a_port() {
    let error = TcpListener::bind("localhost:0").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = run(TcpStream::connect("localhost")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_name_is_looked_up_and_each_of_its_addresses_tried() {
    run(async {
        // Listens on IPv4 only, while the name may have an IPv6 address as well.
        let (mut listener, address) = listen();
        let name = format!("localhost:{}", address.port());
        let mut client = TcpStream::connect(&name).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        server.write_all(b"found").await.unwrap();
        assert_eq!(client.read(&mut [0; 16]).await.unwrap(), 5);

        // The system never assigns port 1 to another test.
        let error = TcpStream::connect("localhost:1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!(error.to_string().contains("localhost:1"), "{error}");
    });
}

#[test]
fn ipv6_is_no_exception() {
    let Ok(mut listener) = TcpListener::bind("[::1]:0") else { return };
    run(async {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"six").await.unwrap();
        drop(client);
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"six");
    });
}

#[test]
fn a_read_that_timed_out_lost_nothing() {
    run(async {
        let (mut client, mut server) = pair().await;
        let mut buf = [0; 16];
        for round in 0..20_u8 {
            let late = traps::timeout_after(Duration::ZERO, server.read(&mut buf)).await;
            let error = late.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert!(error.interrupt().is_some());
            // Twice, so that the second read follows a short one, which waits without trying.
            for byte in [round, round + 100] {
                client.write_all(&[byte]).await.unwrap();
                assert_eq!(server.read(&mut buf).await.unwrap(), 1);
                assert_eq!(buf[0], byte);
            }
        }
    });
}

/// The stream stores the progress, so it is not lost with the error.
#[test]
fn curio_c11_a_write_that_was_cancelled_tells_how_far_it_came() {
    const SIZE: usize = 4 << 20;
    run(async {
        let (mut client, mut server) = pair().await;
        client.set_buffer_sizes(SMALL, SMALL).unwrap();
        server.set_buffer_sizes(SMALL, SMALL).unwrap();
        let data = pattern(SIZE);
        let writer = traps::spawn("writer", async move {
            let error = client.write_all(&data).await.unwrap_err();
            assert!(error.interrupt().unwrap().is_cancelled());
            client.written()
        });
        let mut writer = writer.await;
        // No task reads, so the writer fills the buffers and parks, or is interrupted at its first
        // wait.
        traps::yield_now().await.unwrap();
        writer.cancel_because("").await.unwrap();
        let written = usize::try_from(writer.join().await.unwrap()).unwrap();
        assert!(0 < written && written < SIZE, "{written}");
        assert!(read_to_end(&mut server).await.unwrap() == pattern(SIZE)[..written]);
    });
}

#[test]
fn a_read_that_lost_a_race_lost_nothing() {
    run(async {
        let (mut client, mut server) = pair().await;
        let mut buf = [0; 16];
        for round in 0..100_u8 {
            client.write_all(&[round]).await.unwrap();
            // Both may be done in one turn; the read is then dropped with its readiness unread.
            let race = traps::race(traps::yield_now(), server.read(&mut buf)).await;
            if let traps::Either::Left(_) = race {
                assert_eq!(server.read(&mut buf).await.unwrap(), 1);
            }
            assert_eq!(buf[0], round);
        }
    });
}

#[test]
fn connections_that_wait_already_are_accepted_without_waiting() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let accepted = kernel.run(async {
        let (mut listener, address) = listen();
        let mut clients = Vec::new();
        for _ in 0..10 {
            clients.push(TcpStream::connect(address).await.unwrap());
        }
        let mut accepted = Vec::new();
        for _ in 0..10 {
            accepted.push(listener.accept().await.unwrap());
        }
        drop(clients);
        accepted.len()
    });
    assert_eq!(accepted.unwrap(), 10);
    kernel.shutdown().unwrap();
    assert_eq!(kernel.counters().handles, 0, "all handles are released");
}

#[test]
fn a_connection_registers_once_for_its_life() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let (mut client, mut server) = kernel.run(pair()).unwrap();
    let before = kernel.counters().registers;
    let served = kernel.run(async {
        let echo = traps::spawn("echo", async move {
            let mut buf = [0; 64];
            loop {
                match server.read(&mut buf).await? {
                    0 => return io::Result::Ok(()),
                    n => server.write_all(&buf[..n]).await?,
                }
            }
        });
        let mut echo = echo.await;
        for _ in 0..50 {
            client.write_all(b"x").await?;
            assert_eq!(client.read(&mut [0; 64]).await?, 1);
        }
        drop(client);
        echo.join().await.unwrap()
    });
    served.unwrap().unwrap();
    // The client may have been registered while it connected.
    assert!(kernel.counters().registers - before <= 2);
    kernel.shutdown().unwrap();
    assert_eq!(kernel.counters().handles, 0);
}

#[test]
fn a_reset_is_met_by_the_peer_instead_of_an_end() {
    run(async {
        let (mut client, mut server) = pair().await;
        client.write_all(b"some").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 4);
        // Without unread bytes a close alone would be an orderly end.
        server.reset().unwrap();
        drop(server);
        let met = client.read(&mut [0; 8]).await;
        assert_eq!(met.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_try_takes_what_is_there_and_the_wait_after_it_misses_nothing() {
    run(async {
        let (mut client, mut server) = pair().await;
        let mut buf = [0; 100];
        // The first wait registers the socket; later ones go by its edges.
        for _ in 0..3 {
            let tried = poll_fn(|cx| Poll::Ready(server.try_read(&mut buf, cx))).await;
            assert!(tried.is_none(), "{tried:?}");
            client.write_all(b"hello").await.unwrap();
            server.readable().await.unwrap();
            let tried = poll_fn(|cx| Poll::Ready(server.try_read(&mut buf, cx))).await;
            assert_eq!(tried.unwrap().unwrap(), 5);
            // Bytes that arrive after a short read, or after a try that found nothing, are also
            // read without a wait.
            client.write_all(b"more").await.unwrap();
            let tried = poll_fn(|cx| Poll::Ready(server.try_read(&mut buf, cx))).await;
            assert_eq!(tried.unwrap().unwrap(), 4);
        }
        let piece = pattern(SMALL);
        let mut written = 0;
        while let Some(n) = poll_fn(|cx| Poll::Ready(server.try_write(&piece, cx))).await {
            written += n.unwrap();
        }
        assert_eq!(server.written(), written as u64);
        let more = traps::spawn("more", async move {
            server.write_all(&pattern(SMALL)).await?;
            server.readable().await?;
            let tried = poll_fn(|cx| Poll::Ready(server.try_read(&mut buf, cx))).await;
            assert_eq!(tried.unwrap()?, 0);
            io::Result::Ok(())
        });
        let mut more = more.await;
        client.shutdown(Shutdown::Write).unwrap();
        let read = read_to_end(&mut client).await.unwrap();
        assert_eq!(read.len(), written + SMALL);
        more.join().await.unwrap().unwrap();
    });
}

/// Writes until the system takes no more. Returns the number of bytes.
async fn fill(stream: &mut TcpStream) -> usize {
    let (piece, mut written) = (pattern(SMALL), 0);
    while let Some(n) = poll_fn(|cx| Poll::Ready(stream.try_write(&piece, cx))).await {
        written += n.unwrap();
    }
    written
}

/// Whether it is still pending after the system has reported everything.
async fn waits<T>(wait: impl Future<Output = io::Result<T>>) -> bool {
    let late = timeout_after(Duration::from_millis(50), wait).await;
    late.is_err_and(|error| error.interrupt().is_some())
}

#[test]
fn an_end_is_seen_behind_bytes_that_nobody_has_read() {
    run(async {
        for waits_before in [false, true] {
            let (mut client, mut server) = pair().await;
            if waits_before {
                assert!(waits(server.closed()).await);
            }
            client.write_all(b"last words").await.unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            // Once the end is known it stays so.
            for _ in 0..2 {
                server.closed().await.unwrap();
            }
            assert_eq!(read_to_end(&mut server).await.unwrap(), b"last words");
            server.closed().await.unwrap();
            // It reports nothing about the other direction.
            server.write_all(b"answer").await.unwrap();
            drop(server);
            assert_eq!(read_to_end(&mut client).await.unwrap(), b"answer");
        }
    });
}

#[test]
fn an_end_that_comes_with_bytes_or_after_them_ends_a_wait_for_it() {
    run(async {
        for together in [false, true] {
            let (mut client, mut server) = pair().await;
            let watcher = traps::spawn("watcher", async move {
                server.closed().await?;
                read_to_end(&mut server).await
            });
            let mut watcher = watcher.await;
            traps::yield_now().await.unwrap();
            client.write_all(b"last words").await.unwrap();
            if !together {
                let ended = ignore_after(Duration::from_millis(20), watcher.join()).await;
                assert!(ended.unwrap().is_none(), "bytes are no end");
            }
            drop(client);
            assert_eq!(watcher.join().await.unwrap().unwrap(), b"last words");
        }
    });
}

#[test]
fn a_reset_counts_as_closed() {
    run(async {
        let (mut client, mut server) = pair().await;
        client.reset().unwrap();
        drop(client);
        server.closed().await.unwrap();
        let met = server.read(&mut [0; 8]).await;
        assert_eq!(met.unwrap_err().kind(), ErrorKind::ConnectionReset);
        server.closed().await.unwrap();
    });
}

#[test]
fn bytes_alone_are_no_end_and_are_found_by_the_read_after_it() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let read = kernel.run(async {
        let (mut client, mut server) = pair().await;
        let mut buf = [0; 100];
        for round in 0..20 {
            // After a short read the next one would wait without trying.
            client.write_all(b"some").await.unwrap();
            assert_eq!(server.read(&mut buf).await.unwrap(), 4);
            client.write_all(b"more").await.unwrap();
            match round % 3 {
                // The wait takes the edge of the bytes, and is dropped while it waits for the next.
                0 => assert!(waits(server.closed()).await),
                // Dropped when it has its edge, or before.
                1 => drop(traps::race(traps::yield_now(), server.closed()).await),
                _ => drop(traps::race(server.closed(), traps::yield_now()).await),
            }
            let read = timeout_after(LATE, server.read(&mut buf)).await;
            assert_eq!(read.unwrap(), 4, "{round}");
        }
        // Finished, and not only dropped.
        client.write_all(b"some").await.unwrap();
        assert_eq!(server.read(&mut buf).await.unwrap(), 4);
        client.write_all(b"last").await.unwrap();
        drop(client);
        server.closed().await.unwrap();
        timeout_after(LATE, read_to_end(&mut server)).await
    });
    assert_eq!(read.unwrap().unwrap(), b"last");
    let turns = kernel.counters().turns;
    assert!(turns < 1_000, "it does not spin: {turns} turns");
}

#[test]
fn what_a_peer_does_not_read_is_not_sent_until_it_does() {
    run(async {
        for _ in 0..3 {
            let (mut client, mut server) = pair().await;
            server.sent().await.unwrap();
            server.write_all(b"a word").await.unwrap();
            server.sent().await.unwrap();
            let written = 6 + fill(&mut server).await;
            assert!(waits(server.sent()).await);
            let sender = traps::spawn("sender", async move {
                server.sent().await?;
                // There is room again, and the next write finds it.
                server.write_all(&pattern(SMALL)).await
            });
            let mut sender = sender.await;
            let ended = ignore_after(Duration::from_millis(20), sender.join()).await;
            assert!(ended.unwrap().is_none());
            let read = timeout_after(LATE, read_to_end(&mut client)).await;
            assert_eq!(read.unwrap().len(), written + SMALL);
            sender.join().await.unwrap().unwrap();
        }
    });
}

#[test]
fn a_write_after_a_wait_that_was_dropped_finds_room() {
    run(async {
        let (mut client, mut server) = pair().await;
        let mut written = fill(&mut server).await;
        assert!(waits(server.sent()).await);
        let reader = traps::spawn("reader", async move { read_to_end(&mut client).await }).await;
        let mut reader = reader;
        for _ in 0..20 {
            drop(traps::race(traps::yield_now(), server.sent()).await);
            let write = timeout_after(LATE, server.write_all(&[0; 1000]));
            write.await.unwrap();
            written += 1000;
        }
        drop(server);
        assert_eq!(reader.join().await.unwrap().unwrap().len(), written);
    });
}

#[test]
fn a_connection_that_failed_has_nothing_to_send() {
    run(async {
        let (mut client, mut server) = pair().await;
        fill(&mut server).await;
        client.reset().unwrap();
        drop(client);
        server.sent().await.unwrap();
    });
}

#[test]
fn a_stream_knows_its_peer_if_it_has_one() {
    run(async {
        let (mut client, server) = pair().await;
        let address = server.local_addr().unwrap();
        assert_eq!(client.peer(), Some(address));
        assert_eq!(BufReader::new(&mut client).peer(), Some(address));
        assert_eq!(BufReader::new(client).peer(), Some(address));
        assert_eq!(net::pipe::duplex(1).0.peer(), None);
    });
}
