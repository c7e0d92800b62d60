//! Owned halves, Unix sockets and datagrams, on the real machine.

use std::cell::RefCell;
use std::future::Future;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use kernel::{Kernel, Real};
use net::{
    BufReader, Family, Stream, StreamSocket, TcpListener, TcpStream, UdpSocket, UnixDatagram,
    UnixListener, UnixStream,
};
use traps::{Interruptible, Task, spawn, timeout_after, yield_now};

/// More bytes than a socket and its peer hold.
const BIG: usize = 4 << 20;

fn run<F: Future>(main: F) -> F::Output {
    kernel::run(main).unwrap()
}

/// A separate path for each test, at which nothing exists.
fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.socket"));
    let _ = std::fs::remove_file(&path);
    path
}

async fn tcp_pair() -> (TcpStream, TcpStream) {
    let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

async fn read_to_end(stream: &mut impl Stream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all, BIG).await?;
    Ok(all)
}

/// A sequence of bytes that makes reordering visible.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

/// Whether it still waits after the system has reported everything.
async fn waits<T>(wait: impl Future<Output = io::Result<T>>) -> bool {
    let late = timeout_after(Duration::from_millis(50), wait).await;
    late.is_err_and(|error| error.interrupt().is_some())
}

// ---- Halves -------------------------------------------------------------------------------------

/// Each end is split: one task writes and one reads, at both.
async fn exchange<F: Family>(one: StreamSocket<F>, other: StreamSocket<F>) {
    let mut ends: Vec<Task<()>> = Vec::new();
    for end in [one, other] {
        let (mut reader, mut writer) = end.into_split();
        let write = async move { writer.write_all(&pattern(BIG)).await.unwrap() };
        let read = async move { assert!(read_to_end(&mut reader).await.unwrap() == pattern(BIG)) };
        ends.push(spawn("writer", write).await);
        ends.push(spawn("reader", read).await);
    }
    for mut end in ends {
        end.join().await.unwrap();
    }
}

#[test]
fn two_tasks_use_a_connection_and_the_end_of_the_writer_is_the_end_that_its_peer_reads() {
    run(async {
        let (client, server) = tcp_pair().await;
        exchange(client, server).await;
        let (one, other) = UnixStream::pair().unwrap();
        exchange(one, other).await;
    });
}

#[test]
fn a_half_that_reads_goes_on_without_the_other_and_the_last_closes() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel
        .run(async {
            let (mut client, server) = tcp_pair().await;
            let (mut reader, writer) = server.into_split();
            drop(writer);
            assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 0);
            client.write_all(b"still").await.unwrap();
            assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 5);
            drop(client);
            assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 0);
        })
        .unwrap();
    kernel.shutdown().unwrap();
    assert_eq!(kernel.counters().handles, 0);
}

#[test]
fn halves_of_one_connection_are_reunited_without_an_end_and_no_others() {
    run(async {
        let (client, mut server) = tcp_pair().await;
        let (mut other_client, mut other_server) = tcp_pair().await;
        let (reader, writer) = client.into_split();
        let (other_reader, other_writer) = other_client.into_split();
        let (reader, other_writer) = reader.reunite(other_writer).unwrap_err();
        other_client = other_reader.reunite(other_writer).unwrap();
        let mut client = reader.reunite(writer).unwrap();
        for (one, other) in [(&mut client, &mut server), (&mut other_client, &mut other_server)] {
            one.write_all(b"whole").await.unwrap();
            assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 5);
            assert!(waits(other.read(&mut [0; 8])).await, "no end has come");
        }
    });
}

#[test]
fn a_half_refuses_the_other_direction_and_can_be_buffered() {
    run(async {
        let (client, mut server) = tcp_pair().await;
        let (mut reader, mut writer) = client.into_split();
        let refused = reader.write(b"x").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        let refused = writer.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported);
        assert_eq!(writer.readable().await.unwrap_err().kind(), ErrorKind::Unsupported);
        reader.shutdown().unwrap();
        server.write_all(b"both lines").await.unwrap();
        let mut buf = [0; 10];
        let mut reader = BufReader::new(reader);
        reader.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"both lines");
        writer.write_vectored(&[IoSlice::new(b"a"), IoSlice::new(b"b")]).await.unwrap();
        writer.shutdown().unwrap();
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"ab");
    });
}

#[test]
fn a_half_whose_task_is_cancelled_ends_what_its_peer_reads_and_the_other_half_reads_on() {
    run(async {
        let (mut client, server) = tcp_pair().await;
        let (mut reader, mut writer) = server.into_split();
        let write = async move { writer.write_all(&pattern(BIG)).await };
        let mut writer = spawn("writer", write).await;
        yield_now().await.unwrap();
        writer.cancel_because("").await.unwrap();
        assert!(writer.join().await.unwrap().unwrap_err().interrupt().unwrap().is_cancelled());
        let read = read_to_end(&mut client).await.unwrap();
        assert!(!read.is_empty() && read.len() < BIG && read == pattern(BIG)[..read.len()]);
        client.write_all(b"heard").await.unwrap();
        assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 5);
    });
}

// ---- Unix connections ---------------------------------------------------------------------------

#[test]
fn a_unix_listener_accepts_with_and_without_the_address_of_the_peer() {
    run(async {
        let path = path("accepts");
        let mut listener = UnixListener::bind(&path).unwrap();
        assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(&*path));
        let mut client = UnixStream::connect(&path).await.unwrap();
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(&*path));
        let (mut server, peer) = listener.accept().await.unwrap();
        assert!(peer.is_unnamed());
        assert!(client.local_addr().unwrap().is_unnamed());
        assert_eq!(client.peer(), None, "it is no IP address");
        client.write_all(b"over a path").await.unwrap();
        client.sent().await.unwrap();
        drop(client);
        server.closed().await.unwrap();
        assert_eq!(read_to_end(&mut server).await.unwrap(), b"over a path");

        let mut client = UnixStream::connect(&path).await.unwrap();
        let mut server = listener.accept_stream().await.unwrap();
        server.write_all(b"back").await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 4);
    });
}

/// The system ends a read at the point where descriptors were sent, so a short read is not the
/// last.
#[test]
fn a_unix_read_that_stops_at_descriptors_is_followed_by_the_next() {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    run(async {
        let path = path("descriptors");
        let mut listener = UnixListener::bind(&path).unwrap();
        let client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        let mut server = listener.accept_stream().await.unwrap();
        let (mut space, sent) = ([MaybeUninit::uninit(); 64], [std::os::fd::AsFd::as_fd(&client)]);
        let mut with = SendAncillaryBuffer::new(&mut space);
        assert!(with.push(SendAncillaryMessage::ScmRights(&sent)));
        let flags = SendFlags::empty();
        sendmsg(&client, &[IoSlice::new(b"a")], &mut with, flags).unwrap();
        sendmsg(&client, &[IoSlice::new(b"b")], &mut SendAncillaryBuffer::default(), flags)
            .unwrap();
        let mut buf = [0; 8];
        for wanted in [b"a", b"b"] {
            let n = timeout_after(Duration::from_secs(60), server.read(&mut buf)).await.unwrap();
            assert_eq!(&buf[..n], wanted);
        }
    });
}

#[test]
fn a_unix_path_that_exists_is_not_taken_and_errors_name_it() {
    use socket2::{Domain, SockAddr, Socket, Type};
    run(async {
        let path = path("exists");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "it is for the caller to remove");
        let shown = path.display().to_string();
        let error = UnixListener::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        assert!(error.to_string().starts_with(&format!("cannot listen on {shown}: ")), "{error}");
        // A child of another thread may still have the listener. At this path no process ever
        // listens.
        let silent = self::path("silent");
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::unix(&silent).unwrap()).unwrap();
        let error = UnixStream::connect(&silent).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let wanted = format!("cannot connect to {}: ", silent.display());
        assert!(error.to_string().starts_with(&wanted), "{error}");
        let error = UnixDatagram::bind(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let error = UnixDatagram::unbound().unwrap().connect(path.with_extension("none"));
        assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn an_abstract_name_is_a_path_that_begins_with_a_zero_byte() {
    use std::os::linux::net::SocketAddrExt;
    run(async {
        let name = format!("\0trapline-{}", std::process::id());
        let mut listener = UnixListener::bind(&name).unwrap();
        let bound = listener.local_addr().unwrap();
        assert_eq!(bound.as_abstract_name(), Some(&name.as_bytes()[1..]));
        let mut client = UnixStream::connect(&name).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        client.write_all(b"x").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 1);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn the_longest_path_of_a_peer_is_no_panic_and_all_others_are_known() {
    run(async {
        let at = path("longest");
        let receiver = UnixDatagram::bind(&at).unwrap();
        for len in [106, 107, 108] {
            let begin = std::env::temp_dir().join(format!("{}-", std::process::id()));
            let path = PathBuf::from(format!("{:a<len$}", begin.display().to_string()));
            let sender = UnixDatagram::bind(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let known = if len == 108 { None } else { Some(&*path) };
            assert_eq!(sender.local_addr().unwrap().as_pathname(), known, "{len}");
            sender.send_to(b"x", &at).await.unwrap();
            let (_, from) = receiver.recv_from(&mut [0; 8]).await.unwrap();
            assert_eq!(from.as_pathname(), known, "{len}");
        }
    });
}

#[test]
fn a_unix_connection_waits_while_the_backlog_is_full() {
    run(async {
        let path = path("backlog");
        // The library's own listener has a long backlog.
        let short = std::os::unix::net::UnixListener::bind(&path).unwrap();
        rustix::net::listen(&short, 0).unwrap();
        let _first = UnixStream::connect(&path).await.unwrap();
        assert!(waits(UnixStream::connect(&path)).await);
        let second = spawn("second", UnixStream::connect(path.clone()));
        let mut second = second.await;
        yield_now().await.unwrap();
        let (_, peer) = short.accept().unwrap();
        assert!(peer.is_unnamed());
        second.join().await.unwrap().unwrap();
    });
}

#[test]
fn a_unix_listener_drains_its_backlog_when_the_kernel_shuts_down() {
    let path = path("drains");
    let mut kernel = Kernel::new(Real::new().unwrap());
    let served = Rc::new(RefCell::new(Vec::new()));
    let (notes, at) = (served.clone(), path.clone());
    kernel
        .run(async move {
            let mut listener = UnixListener::bind(&at).unwrap();
            let serve = async move {
                let _hold = traps::shutdown::hold();
                while let Some(mut stream) = listener.accept_until_shutdown().await.unwrap() {
                    let read = read_to_end(&mut stream).await.unwrap();
                    notes.borrow_mut().push(read);
                }
            };
            spawn("server", serve).detached().await;
            yield_now().await.unwrap();
        })
        .unwrap();
    for text in ["one", "two"] {
        // Blocking ones, which are in the backlog when the shutdown begins.
        std::os::unix::net::UnixStream::connect(&path).unwrap().write_all(text.as_bytes()).unwrap();
    }
    kernel.shutdown().unwrap();
    assert_eq!(*served.borrow(), [b"one", b"two"]);
}

// ---- DatagramSocket ----------------------------------------------------------------------------------

#[test]
fn datagrams_come_whole_with_the_address_of_their_sender() {
    run(async {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(one) = UdpSocket::bind(any) else { continue };
            let other = UdpSocket::bind(any).unwrap();
            let [at, from] = [&one, &other].map(|socket| socket.local_addr().unwrap());
            let mut buf = [0; 16];
            for text in ["first", "", "third"] {
                assert_eq!(other.send_to(text.as_bytes(), at).await.unwrap(), text.len());
            }
            for text in ["first", "", "third"] {
                let received = one.recv_from(&mut buf).await.unwrap();
                assert_eq!((received, one.last_len()), ((text.len(), from), text.len()));
                assert_eq!(&buf[..text.len()], text.as_bytes());
            }
        }
    });
}

#[test]
fn a_datagram_that_is_cut_tells_its_length_and_the_next_one_is_whole() {
    run(async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let at = udp.local_addr().unwrap();
        let mut buf = [0; 4];
        for text in ["more than four", "four"] {
            one.send(text.as_bytes()).await.unwrap();
            assert_eq!(other.recv(&mut buf).await.unwrap(), 4);
            assert_eq!(
                (&buf, other.last_len()),
                (text.as_bytes()[..4].try_into().unwrap(), text.len())
            );
            udp.send_to(text.as_bytes(), at).await.unwrap();
            assert_eq!(udp.recv_from(&mut buf).await.unwrap(), (4, at));
            assert_eq!(udp.last_len(), text.len());
        }
    });
}

#[test]
fn a_connected_udp_socket_hears_its_peer_alone_and_of_its_refusal() {
    run(async {
        let any = "127.0.0.1:0";
        let [one, other, third] = [any; 3].map(|any| UdpSocket::bind(any).unwrap());
        let [at, peer] = [&one, &other].map(|socket| socket.local_addr().unwrap());
        let unconnected = one.send(b"x").await.unwrap_err().raw_os_error();
        assert_eq!(unconnected, Some(rustix::io::Errno::DESTADDRREQ.raw_os_error()));
        one.connect(peer).unwrap();
        third.send_to(b"stranger", at).await.unwrap();
        other.send_to(b"friend", at).await.unwrap();
        let mut buf = [0; 16];
        assert_eq!(one.recv(&mut buf).await.unwrap(), 6);
        one.send(b"answer").await.unwrap();
        assert_eq!(other.recv_from(&mut buf).await.unwrap(), (6, at));
        drop(other);
        one.send(b"gone").await.unwrap();
        let refused = one.recv(&mut buf).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_udp_address_that_is_taken_or_is_a_name_is_an_error() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address: SocketAddr = taken.local_addr().unwrap();
    let error = UdpSocket::bind(address).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().starts_with(&format!("cannot bind {address}: ")), "{error}");
    assert_eq!(UdpSocket::bind("localhost:0").unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_receive_that_timed_out_or_lost_a_race_lost_no_datagram() {
    run(async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let mut buf = [0; 16];
        for round in 0..50_u8 {
            let late = timeout_after(Duration::ZERO, other.recv(&mut buf)).await;
            assert!(late.unwrap_err().interrupt().is_some());
            one.send(&[round]).await.unwrap();
            let race = traps::race(yield_now(), other.recv(&mut buf)).await;
            if let traps::Either::Left(_) = race {
                assert_eq!(other.recv(&mut buf).await.unwrap(), 1);
            }
            assert_eq!(buf[0], round);
        }
    });
}

#[test]
fn one_socket_sends_and_receives_in_two_tasks() {
    run(async {
        let (one, other) = UnixDatagram::pair().unwrap();
        let one = Rc::new(one);
        let receiver = one.clone();
        let receive = async move {
            let mut buf = [0; 8];
            for n in 0..2000_u32 {
                assert_eq!(receiver.recv(&mut buf).await.unwrap(), 4);
                assert_eq!(buf[..4], n.to_le_bytes(), "in order");
            }
        };
        let mut receiver = spawn("receiver", receive).await;
        let echo = async move {
            let mut buf = [0; 8];
            while other.recv(&mut buf).await.unwrap() > 0 {
                other.send(&buf[..4]).await.unwrap();
            }
        };
        let mut echo = spawn("echo", echo).await;
        for n in 0..2000_u32 {
            one.send(&n.to_le_bytes()).await.unwrap();
        }
        receiver.join().await.unwrap();
        one.send(b"").await.unwrap();
        echo.join().await.unwrap();
    });
}

/// The system reports room in the receiver's queue only to a connected socket.
#[test]
fn a_datagram_to_a_path_waits_for_a_receiver_whom_others_have_filled() {
    run(async {
        let path = path("filled");
        let receiver = UnixDatagram::bind(&path).unwrap();
        assert_eq!(receiver.local_addr().unwrap().as_pathname(), Some(&*path));
        let (filler, sender) = (UnixDatagram::unbound().unwrap(), UnixDatagram::unbound().unwrap());
        filler.connect(&path).unwrap();
        let mut filled = 0;
        while !waits(filler.send(b"fill")).await {
            filled += 1;
        }
        let send = async move { sender.send_to(b"last", &path).await };
        let mut send = spawn("sender", send).await;
        yield_now().await.unwrap();
        let mut buf = [0; 8];
        for _ in 0..filled {
            let (n, from) = receiver.recv_from(&mut buf).await.unwrap();
            assert_eq!(&buf[..n], b"fill");
            assert!(from.is_unnamed());
        }
        assert_eq!(receiver.recv(&mut buf).await.unwrap(), 4);
        assert_eq!(&buf[..4], b"last");
        assert_eq!(send.join().await.unwrap().unwrap(), 4);
    });
}

#[test]
fn a_connect_outside_a_kernel_names_its_line() {
    for address in ["127.0.0.1:1", "localhost:1"] {
        let line = line!() + 2;
        let poll = || {
            let connect = pin!(TcpStream::connect(address));
            let _ = connect.poll(&mut Context::from_waker(Waker::noop()));
        };
        let panic = std::panic::catch_unwind(poll).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        let wanted = format!("{}:{line}:", file!());
        assert!(message.contains(&wanted), "{address}: {message} has no {wanted}");
    }
}

/// Polls a future once: it does not wait.
fn at_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        std::task::Poll::Ready(output) => Some(output),
        std::task::Poll::Pending => None,
    }
}

/// The known state of the socket's buffers is out of date. A Unix socket with a full buffer then
/// never reports room.
#[test]
fn a_direction_that_is_shut_down_ends_reads_and_writes_without_a_wait() {
    use std::net::Shutdown;
    run(async {
        let (mut client, mut server) = tcp_pair().await;
        server.write_all(b"some").await.unwrap();
        assert_eq!(client.read(&mut [0; 8]).await.unwrap(), 4);
        client.shutdown(Shutdown::Read).unwrap();
        assert_eq!(at_once(client.read(&mut [0; 8])).expect("no wait").unwrap(), 0);
        assert!(client.write(&pattern(BIG)).await.unwrap() < BIG, "it is full");
        assert_eq!(at_once(client.write(b"")).expect("no wait").unwrap(), 0);

        let path = path("shut");
        let mut listener = UnixListener::bind(&path).unwrap();
        let mut client = UnixStream::connect(&path).await.unwrap();
        let _server = listener.accept_stream().await.unwrap();
        assert!(client.write(&pattern(BIG)).await.unwrap() < BIG, "it is full");
        client.shutdown(Shutdown::Write).unwrap();
        let refused = at_once(client.write(b"more")).expect("no wait").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
    });
}
