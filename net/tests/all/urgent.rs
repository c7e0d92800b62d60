//! Urgent data: a read stops in front of the urgent byte, although more bytes follow it. The
//! readers here get all bytes except that one, however they read and whichever wait came before.

use std::future::poll_fn;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::task::Poll;
use std::time::Duration;

use http_support::App;
use http_support::served::read_all;
use net::http::{Config, serve_connection};
use net::pipe::duplex;
use net::{BufReader, Stream, TcpListener, TcpStream, UnixListener, copy};
use rustix::net::{SendFlags, send};
use traps::{Either, race, run_in_thread, sleep, spawn, timeout_after};

const SOON: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_secs(60);

/// Sends `before`, an urgent byte, and `behind`.
fn send_around(peer: &impl AsFd, before: &[u8], behind: &[u8]) {
    for (bytes, flags) in
        [(before, SendFlags::empty()), (b"!", SendFlags::OOB), (behind, SendFlags::empty())]
    {
        assert_eq!(send(peer, bytes, flags), Ok(bytes.len()));
    }
}

/// A connection whose other end is not the kernel's.
async fn tcp() -> (TcpStream, std::net::TcpStream) {
    let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.set_nodelay(true).unwrap();
    (listener.accept_stream().await.unwrap(), peer)
}

/// Reads six bytes by reads of at most this many.
async fn six(stream: &mut impl Stream, most: usize) -> io::Result<Vec<u8>> {
    let (mut all, mut buf) = (Vec::new(), vec![0; most]);
    while all.len() < 6 {
        let n = stream.read(&mut buf).await?;
        assert_ne!(n, 0, "the peer has not finished");
        all.extend_from_slice(&buf[..n]);
    }
    Ok(all)
}

/// The ways to read six bytes.
const WAYS: [&str; 11] = [
    "read",
    "read by three",
    "read by one",
    "read_exact",
    "read_to_end",
    "readable",
    "BufReader",
    "split",
    "into_split",
    "copy",
    "interop",
];

async fn read_by(way: &str, mut stream: TcpStream) -> io::Result<Vec<u8>> {
    match way {
        "read" => six(&mut stream, 100).await,
        "read by three" => six(&mut stream, 3).await,
        "read by one" => six(&mut stream, 1).await,
        "read_exact" => {
            let mut all = vec![0; 6];
            Stream::read_exact(&mut stream, &mut all).await.map(|()| all)
        }
        "read_to_end" => {
            let mut all = Vec::new();
            let end = stream.read_to_end(&mut all, 5).await;
            assert_eq!(end.unwrap_err().kind(), ErrorKind::FileTooLarge);
            Ok(all)
        }
        "readable" => {
            let (mut all, mut buf) = (Vec::new(), [0; 100]);
            while all.len() < 6 {
                stream.readable().await?;
                let n = poll_fn(|cx| Poll::Ready(stream.try_read(&mut buf, cx))).await;
                all.extend_from_slice(&buf[..n.transpose()?.unwrap_or(0)]);
            }
            Ok(all)
        }
        "BufReader" => {
            let mut reader = BufReader::new(&mut stream);
            let mut all = vec![0; 6];
            reader.read_exact(&mut all).await.map(|()| all)
        }
        "split" => six(&mut stream.split().0, 100).await,
        "into_split" => six(&mut stream.into_split().0, 100).await,
        "copy" => {
            let (mut end, mut other) = duplex(100);
            match race(six(&mut end, 100), copy(&mut stream, &mut other)).await {
                Either::Left(all) => all,
                Either::Right(copied) => Err(copied.expect_err("the peer has not finished")),
            }
        }
        "interop" => by_interop(stream).await,
        _ => unreachable!("{way}"),
    }
}

/// As the wrapper for other libraries does it.
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio-io"))]
async fn by_interop(stream: TcpStream) -> io::Result<Vec<u8>> {
    use std::panic::Location;

    use net::interop::TwoWay;
    use traps::io::Direction;

    let (mut all, mut buf) = (Vec::new(), [0; 100]);
    while all.len() < 6 {
        match stream.take(&mut buf) {
            Some(n) => all.extend_from_slice(&buf[..n?]),
            None => stream.wait(Direction::Read, Location::caller()).await?,
        }
    }
    Ok(all)
}

#[cfg(not(any(feature = "futures-io", feature = "hyper", feature = "tokio-io")))]
async fn by_interop(mut stream: TcpStream) -> io::Result<Vec<u8>> {
    six(&mut stream, 100).await
}

#[test]
fn what_lies_behind_urgent_data_is_read_whichever_way_a_task_reads() {
    for way in WAYS {
        let all = kernel::run(async move {
            let (stream, peer) = tcp().await;
            let mut reader =
                spawn("reader", async move { timeout_after(LATE, read_by(way, stream)).await })
                    .await;
            sleep(SOON).await.unwrap();
            // It waits, and runs when all of this has arrived.
            send_around(&peer, b"abc", b"def");
            reader.join().await.unwrap()
        });
        assert_eq!(all.unwrap().unwrap(), b"abcdef", "{way}");
    }
}

/// The action of the reader at the time when the bytes arrive.
const BEFORE: [&str; 4] = ["sleeps", "waits for the end", "drops a read", "has read before"];

#[test]
fn what_lies_behind_urgent_data_is_read_whoever_has_heard_of_it() {
    for before in BEFORE {
        let all = kernel::run(async move {
            let (mut stream, peer) = tcp().await;
            let reader = async move {
                let mut buf = [0; 100];
                match before {
                    "waits for the end" => drop(race(stream.closed(), sleep(4 * SOON)).await),
                    "drops a read" => drop(race(sleep(3 * SOON), stream.read(&mut buf)).await),
                    "has read before" => {
                        assert_eq!(stream.read(&mut buf).await?, 3);
                        sleep(4 * SOON).await?;
                    }
                    _ => drop(sleep(4 * SOON).await?),
                }
                six(&mut stream, 100).await
            };
            let reader = async move { timeout_after(LATE, reader).await };
            let mut reader = spawn("reader", reader).await;
            if before == "has read before" {
                (&peer).write_all(b"xyz").unwrap();
            }
            sleep(2 * SOON).await.unwrap();
            send_around(&peer, b"abc", b"def");
            if before == "drops a read" {
                // The bytes and the end of the reader's sleep arrive in the same turn.
                std::thread::sleep(2 * SOON);
            }
            reader.join().await.unwrap()
        });
        assert_eq!(all.unwrap().unwrap(), b"abcdef", "{before}");
    }
}

#[test]
fn what_lies_behind_urgent_data_is_read_from_a_unix_socket() {
    let all = kernel::run(async {
        let path = std::env::temp_dir().join(format!("urgent-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut listener = UnixListener::bind(&path).unwrap();
        let peer = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let mut stream = listener.accept_stream().await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let reader = async move { timeout_after(LATE, six(&mut stream, 100)).await };
        let mut reader = spawn("reader", reader).await;
        sleep(SOON).await.unwrap();
        send_around(&peer, b"abc", b"def");
        reader.join().await.unwrap()
    });
    assert_eq!(all.unwrap().unwrap(), b"abcdef");
}

#[test]
fn a_request_with_urgent_data_in_it_is_answered() {
    let head = "Host: a\r\nConnection: close\r\n";
    let get = format!("GET / HTTP/1.1\r\n{head}\r\n");
    let post = format!("POST /count HTTP/1.1\r\n{head}Content-Length: 6\r\n\r\nabcdef");
    for (request, at, answer) in [(&get, 9, "Hello, World!"), (&post, post.len() - 3, "6")] {
        let (before, behind) = request.as_bytes().split_at(at);
        let said = kernel::run(async {
            let (stream, peer) = tcp().await;
            let serve = async move { serve_connection(stream, &App, &Config::default()).await };
            let mut server = spawn("server", serve).await;
            sleep(SOON).await.unwrap();
            send_around(&peer, before, behind);
            peer.set_read_timeout(Some(LATE)).unwrap();
            let said = run_in_thread(move || read_all(peer)).await.unwrap();
            server.join().await.unwrap().unwrap();
            said
        });
        let said = said.unwrap();
        assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with(answer), "{said}");
    }
}
