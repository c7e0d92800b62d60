//! Bodies that are kept in memory: how many bytes there may be of them, and how long each may take.

mod common;

use std::rc::Rc;
use std::time::Duration;

use common::{Act, deadlines, limits, talk_with};
use kernel::{Kernel, Sim};
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use net::{Stream, pipe::PipeEnd};
use traps::{Time, clock, ignore_after, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// Answers with how long the body is.
#[derive(Clone)]
struct Kept;

impl Handler for Kept {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> std::io::Result<Response> {
        let body = request.body_to_vec(usize::MAX).await?;
        Ok(Response::text(format!("{}", body.len())))
    }
}

fn post(length: usize) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

/// A client of its own connection, whose task is named.
async fn connect(config: &Rc<Config>) -> PipeEnd {
    let (server, client) = duplex(1 << 20);
    let config = config.clone();
    let serve = async move { serve_connection(server, &Kept, &config).await };
    spawn("conn", serve).detached().await;
    client
}

/// The status of the answer that comes within so long, and when it came.
async fn status(client: &mut PipeEnd, span: Duration) -> Option<(u16, Time)> {
    let mut buf = [0; 4096];
    let n = ignore_after(span, client.read(&mut buf)).await.unwrap()?;
    let status = std::str::from_utf8(&buf[9..12]).unwrap().parse().unwrap();
    assert!(n > 12);
    Some((status, clock().await))
}

#[test]
fn a_body_waits_for_its_turn_while_others_fill_the_memory() {
    let mut kernel = Kernel::new(Sim::new());
    let config = Rc::new(limits(|limits| limits.memory = 100_000));
    kernel
        .run(async {
            let (mut first, mut second) = (connect(&config).await, connect(&config).await);
            let (mut third, mut small) = (connect(&config).await, connect(&config).await);
            first.write_all(&post(60_000)).await.unwrap();
            sleep(SECOND).await.unwrap();
            second.write_all(&post(60_000)).await.unwrap();
            second.write_all(&[b'x'; 60_000]).await.unwrap();
            sleep(SECOND).await.unwrap();
            // It would fit, but its turn has not come.
            third.write_all(&post(20_000)).await.unwrap();
            third.write_all(&[b'x'; 20_000]).await.unwrap();
            assert_eq!(status(&mut third, SECOND).await, None);
            // Small ones need no room.
            small.write_all(&post(16_384)).await.unwrap();
            small.write_all(&[b'x'; 16_384]).await.unwrap();
            assert_eq!(status(&mut small, SECOND).await.map(|it| it.0), Some(200));
            first.write_all(&[b'x'; 60_000]).await.unwrap();
            for client in [&mut first, &mut second, &mut third] {
                assert_eq!(status(client, SECOND).await.map(|it| it.0), Some(200));
            }
            // All of the room is given back.
            first.write_all(&post(100_000)).await.unwrap();
            first.write_all(&[b'x'; 100_000]).await.unwrap();
            assert_eq!(status(&mut first, SECOND).await.map(|it| it.0), Some(200));
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

#[test]
fn a_body_for_which_there_is_no_room_in_time_is_refused_and_its_client_may_come_again() {
    let mut kernel = Kernel::new(Sim::new());
    let config = Rc::new(limits(|limits| limits.memory = 100_000));
    kernel
        .run(async {
            let (mut first, mut second) = (connect(&config).await, connect(&config).await);
            // In chunks: it has what it may have reserved.
            let head = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
            first.write_all(head).await.unwrap();
            let drip = async {
                loop {
                    first.write_all(b"400\r\n").await.unwrap();
                    first.write_all(&[b'x'; 1024]).await.unwrap();
                    first.write_all(b"\r\n").await.unwrap();
                    sleep(SECOND).await.unwrap();
                }
            };
            let refused = async {
                sleep(SECOND).await.unwrap();
                second.write_all(&post(50_000)).await.unwrap();
                let mut buf = [0; 4096];
                let n = second.read(&mut buf).await.unwrap();
                let text = String::from_utf8_lossy(&buf[..n]).into_owned();
                assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
                assert!(text.contains("\r\nRetry-After: 1\r\n"), "{text}");
                assert_eq!(clock().await, Time::ZERO + 31 * SECOND);
            };
            let _ = traps::race(drip, refused).await;
        })
        .unwrap();
    drop(kernel);
}

#[test]
fn a_body_that_is_longer_than_the_memory_is_refused_by_its_length() {
    let config = limits(|limits| (limits.body, limits.memory) = (1 << 30, 100_000));
    let seen = common::talk_to(Kept, config, 1 << 20, usize::MAX, &[Act::Send(&post(100_001))]);
    assert_eq!(seen.statuses(), [413]);
}

/// Reads the body again if it does not come in a second.
struct Again;

impl Handler for Again {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> std::io::Result<Response> {
        let first = ignore_after(SECOND, request.body_to_vec(usize::MAX)).await?;
        assert!(first.is_none());
        let body = request.body_to_vec(usize::MAX).await?;
        Ok(Response::text(format!("{}", body.len())))
    }
}

#[test]
fn a_read_that_is_made_again_does_not_wait_for_its_own_room() {
    let config = limits(|limits| limits.memory = 50_000);
    let (head, body) = (post(50_000), vec![b'x'; 50_000]);
    let acts = [Act::Send(&head), Act::Sleep(2 * SECOND), Act::Send(&body)];
    assert_eq!(common::talk_to(Again, config, 1 << 20, usize::MAX, &acts).statuses(), [200]);
}

/// 300 bytes a second are enough of a body that its handler takes piece by piece. They would keep
/// 8 MiB in memory for hours.
#[test]
fn a_body_that_is_kept_in_memory_has_a_rate_over_its_whole_length() {
    let head = post(1_000_000);
    let mut acts = vec![Act::Send(&head)];
    for _ in 0..100 {
        acts.extend([Act::Send(&[b'x'; 300]), Act::Sleep(SECOND)]);
    }
    let config = || deadlines(|deadlines| deadlines.body_whole = 60 * SECOND);
    let seen = common::talk_to(Kept, config(), 1 << 20, usize::MAX, &acts);
    assert_eq!(seen.statuses(), [408]);
    let (at, _) = seen.reads[0];
    assert!(at >= Time::ZERO + 5 * SECOND && at < Time::ZERO + 6 * SECOND, "{at}");
    // At its rate it has the time for all of it.
    let piece = vec![b'x'; 25_000];
    let mut whole = vec![Act::Send(&head)];
    for _ in 0..40 {
        whole.extend([Act::Send(&piece[..]), Act::Sleep(SECOND)]);
    }
    assert_eq!(common::talk_to(Kept, config(), 1 << 20, usize::MAX, &whole).statuses(), [200]);
    let head = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n";
    acts[0] = Act::Send(head);
    assert_eq!(talk_with(config(), 1 << 20, &acts).statuses(), [200]);
}
