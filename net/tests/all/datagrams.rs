//! Datagrams in memory, on the virtual clock, and the same program over UDP.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use net::UdpSocket;
use net::datagrams::{Datagrams, MemorySocket, Network};
use testing::child;
use traps::{Either, Interruptible, Kind, ignore_after, join, race, sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

fn at(address: &str) -> SocketAddr {
    address.parse().unwrap()
}

fn pair() -> (Network, MemorySocket, MemorySocket) {
    let network = Network::new();
    let [one, other] = ["10.0.0.1:1", "10.0.0.2:2"].map(|it| network.bind(at(it)).unwrap());
    (network, one, other)
}

/// Returns the bytes of the next datagram, unless none comes within a second.
async fn next(socket: &impl Datagrams) -> Option<Vec<u8>> {
    let mut buf = [0; 8];
    let received = ignore_after(SECOND, socket.recv_from(&mut buf)).await.unwrap()?;
    Some(buf[..received.0].to_vec())
}

/// Sends back `n` datagrams.
async fn echo(socket: &impl Datagrams, n: usize) -> io::Result<()> {
    let mut buf = [0; 8];
    for _ in 0..n {
        let (n, peer) = socket.recv_from(&mut buf).await?;
        socket.send_to(&buf[..n], peer).await?;
    }
    Ok(())
}

/// Sends two datagrams, and returns what comes back for each.
async fn ask(socket: &impl Datagrams, server: SocketAddr) -> io::Result<[Vec<u8>; 2]> {
    let mut replies = [const { Vec::new() }; 2];
    for (question, reply) in [&b"one"[..], b""].into_iter().zip(&mut replies) {
        assert_eq!(socket.send_to(question, server).await?, question.len());
        let mut buf = [1; 8];
        let (n, from) = socket.recv_from(&mut buf).await?;
        assert_eq!(from, server);
        *reply = buf[..n].to_vec();
    }
    Ok(replies)
}

#[test]
fn a_program_does_the_same_over_udp_and_in_memory() {
    async fn both(server: impl Datagrams, client: impl Datagrams) -> [Vec<u8>; 2] {
        let at = server.local_addr().unwrap();
        let (echoed, replies) = join(echo(&server, 2), ask(&client, at)).await;
        echoed.unwrap();
        replies.unwrap()
    }
    let (_, server, client) = pair();
    let ran = testing::run(both(server, client));
    assert_eq!(ran.output, [b"one".to_vec(), Vec::new()]);
    assert_eq!(ran.took, Duration::ZERO);
    let over_udp = kernel::run(async {
        let [server, client] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        timeout_after(child::LIMIT, async { io::Result::Ok(both(server, client).await) }).await
    });
    assert_eq!(over_udp.unwrap().unwrap(), ran.output);
}

#[test]
fn a_datagram_is_received_as_a_whole_or_its_rest_is_lost() {
    let (_, here, there) = pair();
    testing::run(async {
        there.send_to(b"abc", at("10.0.0.1:1")).await.unwrap();
        there.send_to(b"d", at("10.0.0.1:1")).await.unwrap();
        let mut short = [0; 2];
        let from = at("10.0.0.2:2");
        assert_eq!(here.recv_from(&mut short).await.unwrap(), (2, from));
        assert_eq!(&short, b"ab");
        assert_eq!(next(&here).await.unwrap(), b"d");
        assert_eq!(next(&here).await, None);
    });
}

#[test]
fn an_address_has_one_socket_and_is_free_once_the_socket_is_dropped() {
    let (network, here, there) = pair();
    let taken = network.bind(at("10.0.0.1:1")).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AddrInUse);
    let chosen = [(); 2].map(|()| network.bind(at("10.0.0.1:0")).unwrap());
    let chosen = chosen.each_ref().map(|it| it.local_addr().unwrap());
    assert_eq!(chosen, [at("10.0.0.1:32768"), at("10.0.0.1:32769")]);
    testing::run(async {
        there.send_to(b"old", at("10.0.0.1:1")).await.unwrap();
        drop(here);
        let here = network.bind(at("10.0.0.1:1")).unwrap();
        assert_eq!(next(&here).await, None, "the old socket took it along");
        there.send_to(b"new", at("10.0.0.1:1")).await.unwrap();
        assert_eq!(next(&here).await.unwrap(), b"new");
    });
}

#[test]
fn what_is_lost_is_counted_and_the_sender_gets_no_error() {
    let (network, here, there) = pair();
    testing::run(async {
        assert_eq!(there.send_to(b"nowhere", at("10.0.0.9:9")).await.unwrap(), 7);
        assert_eq!(network.lost(), 1);
        network.lose_next(2);
        for n in 0..3 {
            there.send_to(&[n], at("10.0.0.1:1")).await.unwrap();
        }
        assert_eq!((network.lost(), next(&here).await), (3, Some(vec![2])));
        for n in 0..300_u16 {
            there.send_to(&n.to_be_bytes(), at("10.0.0.1:1")).await.unwrap();
        }
        assert_eq!(network.lost(), 3 + 300 - 256);
        for n in 0..256_u16 {
            assert_eq!(next(&here).await.unwrap(), n.to_be_bytes(), "the last ones are lost");
        }
        assert_eq!(next(&here).await, None);
    });
}

#[test]
fn a_datagram_whose_receiver_is_dropped_is_for_the_next_one() {
    let (_, here, there) = pair();
    let ran = testing::run(async {
        let here = Rc::new(here);
        let theirs = here.clone();
        let mut buf = [0];
        // The datagram wakes this receiver, which loses the race in the same poll.
        let first = here.recv_from(&mut buf);
        let sent = async {
            let second = spawn("second", async move { next(&*theirs).await }).await;
            sleep(SECOND / 2).await.unwrap();
            there.send_to(b"x", at("10.0.0.1:1")).await.unwrap();
            second
        };
        match race(first, sent).await {
            Either::Left(received) => panic!("{received:?}"),
            Either::Right(mut second) => second.join().await.unwrap(),
        }
    });
    assert_eq!((ran.output, ran.took), (Some(b"x".to_vec()), SECOND / 2));
}

#[test]
fn a_socket_that_no_peer_writes_to_is_a_hang_that_is_reported() {
    let (_, here, _there) = pair();
    let mut kernel = kernel::Kernel::new(kernel::Sim::new());
    let error = kernel.run(async { here.recv_from(&mut [0]).await.map(drop) }).unwrap_err();
    assert!(error.to_string().contains("datagrams"), "{error}");
    kernel.shutdown().unwrap();
    drop(kernel);
    let timeout = testing::run(timeout_after(SECOND, here.recv_from(&mut [0])));
    let error = timeout.output.unwrap_err();
    assert_eq!(error.interrupt().unwrap().kind(), Kind::TaskTimeout);
}
