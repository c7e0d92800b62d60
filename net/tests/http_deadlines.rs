//! Each phase of a connection has its deadline, on a virtual clock.

mod common;

use std::time::Duration;

use common::{Act, Seen, talk, talk_with};
use net::http::Config;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn seconds(n: u64) -> Act<'static> {
    Act::Sleep(Duration::from_secs(n))
}

/// The statuses, and the microsecond at which the server closed.
fn end(seen: &Seen) -> (Vec<u16>, Option<u64>) {
    (seen.statuses(), seen.closed_at.map(|at| at.as_micros()))
}

#[test]
fn a_client_that_never_says_a_byte_is_left_silently_after_the_head_deadline() {
    assert_eq!(end(&talk(&[seconds(60)])), (vec![], Some(10_000_000)));
}

#[test]
fn a_head_has_ten_seconds_in_all_however_it_drips() {
    let drip: Vec<Act<'_>> =
        GET.iter().flat_map(|byte| [Act::Send(std::slice::from_ref(byte)), seconds(9)]).collect();
    let seen = talk(&drip);
    assert_eq!(seen.statuses(), [408]);
    assert_eq!(seen.reads[0].0.as_micros(), 10_000_000);
    assert!(seen.text.contains("Connection: close"));
}

#[test]
fn the_head_of_a_later_request_counts_from_its_first_byte() {
    let seen = talk(&[Act::Send(GET), seconds(4), Act::Send(b"GET"), seconds(60)]);
    assert_eq!(seen.statuses(), [200, 408]);
    assert_eq!(seen.reads[1].0.as_micros(), 14_000_000);
}

#[test]
fn an_idle_connection_is_closed_silently_after_five_seconds() {
    let seen = talk(&[Act::Send(GET), seconds(4), Act::Send(GET), seconds(60)]);
    assert_eq!(end(&seen), (vec![200, 200], Some(9_000_000)));
}

#[test]
fn each_piece_of_a_body_has_thirty_seconds() {
    let head = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\na";
    let kept = [Act::Send(head), seconds(29), Act::Send(b"bc"), seconds(29), Act::Send(b"de")];
    assert_eq!(end(&talk(&kept)), (vec![200], None));
    let late = [Act::Send(head), seconds(29), Act::Send(b"bc"), seconds(60)];
    assert_eq!(end(&talk(&late)), (vec![], Some(59_000_000)));
}

#[test]
fn a_peer_that_reads_nothing_is_left_after_thirty_seconds() {
    let requests = b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut kernel = kernel::Kernel::new(kernel::Sim::new());
    let (server, mut client) = net::pipe::duplex(1000);
    let end = kernel.run(async {
        let config = Config::default();
        let serve = net::http::serve_connection(server, &common::App, &config);
        let ask = async {
            net::Stream::write(&mut client, requests).await.unwrap();
            traps::sleep(Duration::from_secs(100)).await.unwrap();
        };
        let timed = async {
            serve.await.unwrap();
            traps::clock().await.as_micros()
        };
        traps::join(timed, ask).await.0
    });
    assert_eq!(end.unwrap(), 30_000_000);
}

#[test]
fn a_refused_client_that_goes_on_sending_is_left_in_the_end() {
    let seen = talk(&[Act::Send(b"GET / HTTP/1.1\r\n\r\n"), seconds(60)]);
    assert_eq!(seen.statuses(), [400]);
    let flood = vec![b'x'; 300_000];
    let seen =
        talk_with(Config::default(), 1000, &[Act::Send(b"GET /\r\n\r\n"), Act::Send(&flood)]);
    assert_eq!((seen.statuses(), seen.closed_at.is_some()), (vec![400], true));
}

#[test]
fn a_cancelled_connection_ends_with_the_interrupt() {
    use traps::Interruptible;
    let mut kernel = kernel::Kernel::new(kernel::Sim::new());
    let (server, client) = net::pipe::duplex(1000);
    let end = kernel.run(async {
        let mut conn = traps::spawn("conn", async move {
            net::http::serve_connection(server, &common::App, &Config::default()).await
        })
        .await;
        traps::sleep(Duration::from_secs(1)).await.unwrap();
        conn.cancel("enough").await.unwrap();
        let end = conn.join().await;
        drop(client);
        end
    });
    let error = end.unwrap().unwrap().unwrap_err();
    assert!(error.interrupt().is_some_and(traps::Interrupt::is_cancelled), "{error}");
}

#[test]
fn a_handler_may_give_up_a_read_and_answer() {
    let head = b"POST /patient HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    let get: Vec<u8> = [b"abc", GET].concat();
    let seen = talk(&[Act::Send(head), seconds(2), Act::Send(&get)]);
    assert_eq!(seen.statuses(), [503, 200], "the body is read past, and the connection kept");
    assert_eq!(seen.reads[0].0.as_micros(), 1_000_000);
}
