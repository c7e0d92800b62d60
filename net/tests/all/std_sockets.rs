//! Sockets of the standard library and of other libraries, on the real machine and in a replay.

use std::fs;
use std::future::Future;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use kernel::{Kernel, Options};
use net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use socket2::SockRef;
use traps::{Interruptible, timeout_after};

/// Longer than any test takes, so that a lost datagram ends the test.
const PATIENCE: Duration = Duration::from_secs(30);

fn run<F: Future>(main: F) -> F::Output {
    kernel::run(main).unwrap()
}

async fn tcp_pair() -> (TcpStream, TcpStream) {
    let mut listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Waits for bytes, so that the socket is registered, and gives up.
async fn waits(stream: &mut TcpStream) {
    let waited = timeout_after(Duration::from_millis(1), stream.read(&mut [0])).await;
    assert!(waited.unwrap_err().interrupt().is_some());
}

/// Whether an epoll instance of this process watches the socket.
fn is_watched(socket: &impl AsFd) -> bool {
    let owned = fs::File::from(socket.as_fd().try_clone_to_owned().unwrap());
    let socket = format!("ino:{:x} ", owned.metadata().unwrap().ino());
    let infos = fs::read_dir("/proc/self/fdinfo").unwrap();
    infos
        .filter_map(|info| fs::read_to_string(info.ok()?.path()).ok())
        .any(|info| info.lines().any(|line| line.starts_with("tfd:") && line.contains(&socket)))
}

#[test]
fn a_connection_goes_to_the_standard_library_and_back_without_losing_a_byte() {
    run(async {
        let (mut client, mut server) = tcp_pair().await;
        client.write_all(b"one").await.unwrap();
        assert_eq!(server.read(&mut [0]).await.unwrap(), 1);
        let plain = server.into_std().unwrap();
        assert_eq!(io::Read::read(&mut &plain, &mut [0]).unwrap(), 1);
        let mut server = TcpStream::try_from(plain).unwrap();
        let mut buf = [0; 8];
        assert_eq!((server.read(&mut buf).await.unwrap(), buf[0]), (1, b'e'));
        client.write_all(b"two").await.unwrap();
        assert_eq!(server.read(&mut buf).await.unwrap(), 3);
        drop(client);
        assert_eq!(server.read(&mut buf).await.unwrap(), 0);
    });
}

#[test]
fn every_kind_of_socket_is_taken_over_and_given_up() {
    run(async {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut listener = TcpListener::try_from(listener).unwrap();
        let address = listener.local_addr().unwrap();
        let _client = std::net::TcpStream::connect(address).unwrap();
        listener.accept().await.unwrap();
        assert_eq!(listener.into_std().unwrap().local_addr().unwrap(), address);

        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        let (mut one, mut other) =
            (UnixStream::try_from(one).unwrap(), UnixStream::try_from(other).unwrap());
        one.write_all(b"x").await.unwrap();
        assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 1);
        drop(one.into_std().unwrap());
        assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 0);

        let path = file("given_up.socket");
        let _ = fs::remove_file(&path);
        let given_up = UnixListener::bind(&path).unwrap().into_std().unwrap();
        let mut listener = UnixListener::try_from(given_up).unwrap();
        let _client = UnixStream::connect(&path).await.unwrap();
        listener.accept().await.unwrap();

        let (one, other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        let one = UnixDatagram::try_from(one).unwrap();
        other.send(b"datagram").unwrap();
        assert_eq!(one.recv(&mut [0; 20]).await.unwrap(), 8);
        one.into_std().unwrap().send(b"back").unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let addr = udp.local_addr().unwrap();
        let udp = UdpSocket::try_from(udp).unwrap().into_std().unwrap();
        let udp = UdpSocket::try_from(udp).unwrap();
        let lent = SockRef::from(&udp).local_addr().unwrap();
        assert_eq!((udp.local_addr().unwrap(), lent.as_socket()), (addr, Some(addr)));
    });
}

/// Unless it is removed, the registration of a closed descriptor stays in epoll as long as a
/// duplicate lives.
#[test]
fn a_duplicate_that_outlives_its_connection_is_not_watched() {
    run(async {
        let (_client, mut server) = tcp_pair().await;
        waits(&mut server).await;
        let duplicate = server.as_fd().try_clone_to_owned().unwrap();
        assert!(is_watched(&duplicate));
        drop(server);
        traps::yield_now().await.unwrap();
        assert!(!is_watched(&duplicate));

        let (_client, server) = tcp_pair().await;
        let plain = server.into_std().unwrap();
        let duplicate = plain.try_clone().unwrap();
        let mut server = TcpStream::try_from(plain).unwrap();
        waits(&mut server).await;
        drop(server);
        traps::yield_now().await.unwrap();
        assert!(!is_watched(&duplicate));
    });
}

#[test]
fn a_connection_that_was_lent_counts_its_bytes_as_before() {
    run(async {
        let (mut client, _server) = tcp_pair().await;
        client.write_all(b"12").await.unwrap();
        SockRef::from(&client).set_keepalive(true).unwrap();
        client.write_all(b"345").await.unwrap();
        assert_eq!(client.written(), 5);
    });
}

#[test]
fn a_run_that_sets_options_by_descriptors_is_replayed() {
    async fn program(address: SocketAddr) -> (String, Option<ErrorKind>) {
        let listener = std::net::TcpListener::bind(address).unwrap();
        let mut listener = TcpListener::try_from(listener).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        SockRef::from(&server).set_keepalive(true).unwrap();
        SockRef::from(&server).set_ttl_v4(9).unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_broadcast(true).unwrap();
        SockRef::from(&socket).set_multicast_loop_v4(false).unwrap();
        client.write_all(b"hello").await.unwrap();
        let mut buf = [0; 8];
        let n = server.read(&mut buf).await.unwrap();
        let given_up = server.into_std().map_err(|error| error.kind());
        (String::from_utf8_lossy(&buf[..n]).into_owned(), given_up.err())
    }
    let record = file("std_sockets.record");
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut kernel = Kernel::record_to(&record, Options::new()).unwrap();
    assert_eq!(kernel.run(program(any)).unwrap(), ("hello".to_owned(), None));
    kernel.shutdown().unwrap();
    drop(kernel);
    let replayed = testing::replay(&record, program(any)).output;
    assert_eq!(replayed, ("hello".to_owned(), Some(ErrorKind::Unsupported)));
}

#[test]
fn a_broadcast_has_to_be_allowed() {
    run(async {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let everybody = SocketAddr::from((Ipv4Addr::BROADCAST, 9));
        let refused = socket.send_to(b"x", everybody).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
        assert!(!SockRef::from(&socket).broadcast().unwrap());
        socket.set_broadcast(true).unwrap();
        assert!(SockRef::from(&socket).broadcast().unwrap());
    });
}

#[test]
fn a_member_of_a_group_hears_what_is_sent_to_it_until_it_leaves() {
    run(async {
        let (group, lo) = (Ipv4Addr::new(239, 255, 77, 3), Ipv4Addr::LOCALHOST);
        let member = UdpSocket::bind((group, 0)).unwrap();
        member.join_multicast_v4(&group, &lo).unwrap();
        let again = member.join_multicast_v4(&group, &lo).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AddrInUse);
        let sender = UdpSocket::bind((lo, 0)).unwrap();
        SockRef::from(&sender).set_multicast_if_v4(&lo).unwrap();
        sender.send_to(b"all", member.local_addr().unwrap()).await.unwrap();
        let heard = timeout_after(PATIENCE, member.recv(&mut [0; 8])).await;
        assert_eq!(heard.unwrap(), 3);
        member.leave_multicast_v4(&group, &lo).unwrap();
        let left = member.leave_multicast_v4(&group, &lo).unwrap_err();
        assert_eq!(left.kind(), ErrorKind::AddrNotAvailable);

        // Not every system has IPv6.
        if let Ok(member) = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)) {
            let group = Ipv6Addr::new(0xff11, 0, 0, 0, 0, 0, 0, 0x77);
            member.join_multicast_v6(&group, 1).unwrap();
            member.leave_multicast_v6(&group, 1).unwrap();
        }
    });
}

#[test]
fn an_address_is_a_host_and_a_port_too() {
    run(async {
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        for host in ["localhost", "127.0.0.1"] {
            let (connected, accepted) =
                traps::join(TcpStream::connect((host, port)), listener.accept()).await;
            assert_eq!(connected.unwrap().peer_addr().unwrap().port(), port);
            accepted.unwrap();
        }
        for (host, port, found) in [("::1", 80, "[::1]:80"), ("[::1]", 80, "[::1]:80")] {
            assert_eq!(net::resolve((host, port)).await.unwrap(), [found.parse().unwrap()]);
        }
        let owned = (String::from("127.0.0.1"), 1);
        assert_eq!(net::resolve(&owned).await.unwrap(), [([127, 0, 0, 1], 1).into()]);
        let error = TcpListener::bind(("localhost", 80)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("localhost:80"), "{error}");
    });
}

/// The zone of a link-local address is the name of an interface.
#[test]
fn a_zone_is_understood_with_brackets_and_without() {
    run(async {
        let lo: SocketAddr = SocketAddrV6::new("fe80::1".parse().unwrap(), 80, 0, 1).into();
        for text in ["[fe80::1%lo]:80", "fe80::1%lo:80", "[fe80::1%1]:80"] {
            assert_eq!(net::resolve(text).await.unwrap(), [lo], "{text}");
            // The address is valid, but no interface has it.
            for error in [TcpListener::bind(text).err(), UdpSocket::bind(text).err()] {
                assert_ne!(error.unwrap().kind(), ErrorKind::InvalidInput, "{text}");
            }
        }
        assert_eq!(net::resolve(("fe80::1%lo", 80)).await.unwrap(), [lo]);
        for wrong in ["[localhost%lo]:80", "[fe80::1%lo]", "[fe80::1%lo]:"] {
            let error = TcpListener::bind(wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{wrong}");
        }
    });
}
