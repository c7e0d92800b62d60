//! The server for any protocol, on the virtual clock.

use std::cell::RefCell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream as StdStream};
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Event, Line};
use kernel::{Kernel, Machine, Real, Sim};
use net::pipe::{PipeEnd, duplex};
use net::{Connection, TcpListener, TcpStream, serve};
use traps::{clock, run_in_thread, sleep};

const MS: Duration = Duration::from_millis(1);

/// Runs a program, and returns its `warn` lines.
fn warnings<M: Machine>(machine: M, program: impl Future) -> Vec<String> {
    let lines = Rc::new(RefCell::new(Vec::new()));
    let heard = lines.clone();
    let mut kernel = Kernel::new(machine);
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Warn { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    kernel.run(program).unwrap();
    kernel.shutdown().unwrap();
    drop(kernel);
    lines.take()
}

async fn failed(_: Connection<PipeEnd>) -> io::Result<()> {
    Err(ErrorKind::ConnectionReset.into())
}

#[test]
fn connections_that_fail_have_a_line_a_second_with_the_peer_and_their_number() {
    let peer = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let warned = warnings(Sim::new(), async {
        let mut ports = 1..=2500_u16;
        let accept = async move || {
            sleep(MS).await?;
            Ok(ports.next().map(|port| (duplex(1).0, peer(port))))
        };
        serve(accept, 10, failed).await.unwrap();
    });
    let wanted = [
        "127.0.0.1:1: connection reset",
        // The next connection is accepted a second later.
        "127.0.0.1:1000: connection reset (and 998 more before)",
        "127.0.0.1:2000: connection reset (and 999 more before)",
        // The end.
        "127.0.0.1:2500: connection reset (and 499 more before)",
    ];
    assert_eq!(warned, wanted);
}

/// The next connection does not fail, and arrives long after them.
#[test]
fn failures_that_were_left_out_are_told_by_the_next_connection() {
    let warned = warnings(Sim::new(), async {
        let mut count = 0;
        let accept = async move || {
            count += 1;
            sleep(if count == 4 { 5000 * MS } else { MS }).await?;
            Ok((count < 6).then(|| duplex(1).0))
        };
        let mut count = 0;
        let handle = move |_| {
            count += 1;
            let count = count;
            async move {
                match count {
                    1..4 => Err(format!("failure {count} at {}", clock().await)),
                    _ => Ok(()),
                }
            }
        };
        serve(accept, 10, handle).await.unwrap();
    });
    assert_eq!(warned, ["failure 1 at 0.001000", "failure 3 at 0.003000 (and 1 more before)"]);
}

/// A socket that was reset no longer knows its peer.
#[test]
fn the_peer_of_a_connection_that_was_reset_is_named() {
    let mut peer = String::new();
    let warned = warnings(Real::new().unwrap(), async {
        let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let client = move || {
            let mut client = StdStream::connect(addr).unwrap();
            client.read_exact(&mut [0]).unwrap();
            // A close with a byte that is not read is a reset.
            client.write_all(b"x").unwrap();
            client.local_addr().unwrap()
        };
        let mut is_first = true;
        let accept = async || match std::mem::take(&mut is_first) {
            true => listener.accept_peer_until_shutdown().await,
            false => Ok(None),
        };
        let handle = async |mut stream: Connection<TcpStream>| {
            stream.write_all(b"ab").await?;
            while stream.read(&mut [0; 8]).await? > 0 {}
            Ok::<(), io::Error>(())
        };
        let (client, served) = traps::join(run_in_thread(client), serve(accept, 1, handle)).await;
        served.unwrap();
        peer = client.unwrap().to_string();
    });
    assert_eq!(warned, [format!("{peer}: Connection reset by peer (os error 104)")]);
}
