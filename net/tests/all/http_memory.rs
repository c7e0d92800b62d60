//! Bodies that are kept in memory: the bounds on their bytes and their times.

use std::cell::{Cell, RefCell};
use std::io::IoSlice;
use std::rc::Rc;
use std::time::Duration;

use http_support::{Act, deadlines, limits, talk_with};
use kernel::{Kernel, Sim};
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use net::web::Files;
use net::{Stream, pipe::PipeEnd};
use traps::threads::Limiter;
use traps::{Site, Time, clock, ignore_after, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// Responds with the length of the body, and notes it.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<usize>>>);

impl Handler for Kept {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> std::io::Result<Response> {
        let body = request.body_to_vec(usize::MAX).await?;
        self.0.borrow_mut().push(body.len());
        if request.path() == "/on" {
            // Keeps the body, and is never late, because its time begins again with each piece.
            let mut answer = request.start(Response::new(200)).await?;
            for _ in 0..4 {
                answer.write(b"on").await?;
                sleep(10 * SECOND).await?;
            }
            return answer.finish();
        }
        Ok(Response::text(format!("{}", body.len())))
    }
}

const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

fn post(length: usize) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n").into_bytes()
}

/// A client with its own connection and a named task.
async fn connect(handler: &Kept, config: &Rc<Config>) -> PipeEnd {
    let (server, client) = duplex(1 << 20);
    let (handler, config) = (handler.clone(), config.clone());
    let serve = async move { serve_connection(server, &handler, &config).await };
    spawn("conn", serve).detached().await;
    client
}

/// A client that has sent a body without its last byte, and has waited until the server has the
/// rest.
async fn almost(handler: &Kept, config: &Rc<Config>, length: usize) -> PipeEnd {
    let mut client = connect(handler, config).await;
    client.write_all(&post(length)).await.unwrap();
    client.write_all(&vec![b'x'; length - 1]).await.unwrap();
    settle().await;
    client
}

const MOMENT: Duration = Duration::from_millis(1);

/// Lets the others do all that they can do.
async fn settle() {
    sleep(MOMENT).await.unwrap();
}

/// The response that arrives within this time, and when it arrived.
async fn answer(client: &mut PipeEnd, span: Duration) -> Option<(String, Time)> {
    let mut buf = [0; 4096];
    let n = ignore_after(span, client.read(&mut buf)).await.unwrap()?;
    Some((String::from_utf8_lossy(&buf[..n]).into_owned(), clock().await))
}

/// Its status.
async fn status(client: &mut PipeEnd) -> Option<u16> {
    let (text, _) = answer(client, SECOND).await?;
    Some(text[9..12].parse().unwrap())
}

/// A server with a memory of 100,000 bytes for bodies of up to half of it, so the reserve is half.
fn small() -> Rc<Config> {
    Rc::new(limits(|limits| (limits.memory, limits.body) = (100_000, 50_000)))
}

#[test]
fn a_body_waits_while_others_fill_the_memory_and_the_one_that_needs_least_is_next() {
    let mut kernel = Kernel::new(Sim::new());
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let mut first = almost(&handler, &config, 50_000).await;
            let mut second = almost(&handler, &config, 50_000).await;
            assert_eq!(config.memory(), 100_000);
            let mut third = almost(&handler, &config, 40_000).await;
            let mut fourth = almost(&handler, &config, 20_000).await;
            for client in [&mut third, &mut fourth] {
                client.write_all(b"x").await.unwrap();
            }
            // A body that fits into a read buffer needs no room.
            let mut small = almost(&handler, &config, 16_384).await;
            small.write_all(b"x").await.unwrap();
            assert_eq!(status(&mut small).await, Some(200));
            assert_eq!(*handler.0.borrow(), [16_384]);
            first.write_all(b"x").await.unwrap();
            settle().await;
            assert_eq!(*handler.0.borrow(), [16_384, 50_000, 20_000, 40_000]);
            second.write_all(b"x").await.unwrap();
            for client in [&mut first, &mut second, &mut third, &mut fourth] {
                assert_eq!(status(client).await, Some(200));
            }
            assert_eq!(config.memory(), 0, "all of it is given back");
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

#[test]
fn bodies_that_each_have_a_part_all_come_to_their_end() {
    let mut kernel = Kernel::new(Sim::new());
    let config = Rc::new(limits(|limits| (limits.memory, limits.body) = (1_000_000, 200_000)));
    kernel
        .run(async {
            let mut clients = Vec::new();
            for number in 0..40 {
                let mut client = connect(&Kept::default(), &config).await;
                let head = match number % 2 {
                    0 => post(200_000),
                    _ => CHUNKED.to_vec(),
                };
                client.write_all(&head).await.unwrap();
                clients.push(client);
            }
            // Five times as much as there is room for, and no body is complete before all have a
            // part.
            for _ in 0..10 {
                for (number, client) in clients.iter_mut().enumerate() {
                    let piece = [b'x'; 20_000];
                    match number % 2 {
                        0 => client.write_all(&piece).await.unwrap(),
                        _ => {
                            let chunk = [&b"4e20\r\n"[..], &piece, b"\r\n"].concat();
                            client.write_all(&chunk).await.unwrap();
                        }
                    }
                }
                settle().await;
                assert!(config.memory() <= 1_000_000, "{}", config.memory());
            }
            for client in clients.iter_mut().skip(1).step_by(2) {
                client.write_all(b"0\r\n\r\n").await.unwrap();
            }
            for (number, client) in clients.iter_mut().enumerate() {
                assert_eq!(status(client).await, Some(200), "{number}");
            }
            assert_eq!(config.memory(), 0);
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

/// A request with a head of this many bytes, without its end.
fn long_head(length: usize) -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\n".to_vec();
    while head.len() < length {
        head.extend_from_slice(format!("X: {}\r\n", "x".repeat(998)).as_bytes());
    }
    head
}

#[test]
fn a_head_that_outgrows_its_read_buffer_takes_room_until_its_request_is_answered() {
    let mut kernel = Kernel::new(Sim::new());
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let mut short = connect(&handler, &config).await;
            short.write_all(&long_head(11_000)).await.unwrap();
            settle().await;
            assert_eq!(config.memory(), 0, "it fits in the read buffer");
            let mut long = connect(&handler, &config).await;
            long.write_all(&long_head(40_000)).await.unwrap();
            settle().await;
            assert_eq!(config.memory(), 48 * 1024, "the buffer has 64 KiB");
            for client in [&mut short, &mut long] {
                client.write_all(b"\r\n").await.unwrap();
                assert_eq!(status(client).await, Some(200));
            }
            assert_eq!(config.memory(), 0);
            let mut left = connect(&handler, &config).await;
            left.write_all(&long_head(40_000)).await.unwrap();
            settle().await;
            assert_eq!(config.memory(), 48 * 1024);
            drop(left);
            settle().await;
            assert_eq!(config.memory(), 0);
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

#[test]
fn a_head_that_finds_no_room_is_refused_and_none_comes_before_a_body_that_waits() {
    let mut kernel = Kernel::new(Sim::new());
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let no_room = |text: &str| text.ends_with("there is no room for the head\n");
            let mut first = connect(&handler, &config).await;
            first.write_all(&long_head(40_000)).await.unwrap();
            settle().await;
            let mut second = connect(&handler, &config).await;
            second.write_all(&long_head(20_000)).await.unwrap();
            let (text, _) = answer(&mut second, SECOND).await.unwrap();
            assert!(no_room(&text), "{text}");
            first.write_all(b"\r\n").await.unwrap();
            assert_eq!(status(&mut first).await, Some(200));

            let mut bodies = Vec::new();
            for length in [30_000, 50_000, 40_000] {
                bodies.push(almost(&handler, &config, length).await);
            }
            let mut head = connect(&handler, &config).await;
            head.write_all(&long_head(20_000)).await.unwrap();
            let (text, _) = answer(&mut head, MOMENT).await.unwrap();
            assert!(no_room(&text), "the third body waits: {text}");
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

#[test]
fn a_client_that_reads_no_response_is_not_told_that_its_next_head_took_too_long() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let heard = Rc::new(RefCell::new(Vec::new()));
    let (mut config, told) = (Config::default(), heard.clone());
    config.on_exchange(move |answer| told.borrow_mut().push(answer.request_line.to_vec()));
    kernel
        .run(async {
            let (server, mut client) = duplex(64);
            let serve = async move { serve_connection(server, &Kept::default(), &config).await };
            let mut serve = spawn("conn", serve).await;
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP").await.unwrap();
            serve.join().await.unwrap().unwrap();
        })
        .unwrap();
    kernel.shutdown().unwrap();
    assert_eq!(*caps.borrow(), ["name=write_wait limit=30s conn=1"]);
    assert_eq!(*heard.borrow(), [b"GET / HTTP/1.1"]);
}

#[test]
fn a_head_that_hardly_comes_gives_way_to_a_body_that_waits() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let mut slow = connect(&handler, &config).await;
            slow.write_all(&long_head(60_000)).await.unwrap();
            sleep(SECOND).await.unwrap();
            let _last_part = almost(&handler, &config, 50_000).await;
            let mut body = almost(&handler, &config, 40_000).await;
            body.write_all(b"x").await.unwrap();
            let (text, _) = answer(&mut slow, SECOND).await.unwrap();
            assert!(text.ends_with("there is no room for the head\n"), "{text}");
            assert_eq!(status(&mut body).await, Some(200));
        })
        .unwrap();
    kernel.shutdown().unwrap();
    assert_eq!(*caps.borrow(), ["name=memory_bytes limit=100000 conn=1"]);
}

#[test]
fn the_client_that_costs_most_gives_way_to_a_body_that_waits_and_is_told_why() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let mut clients = Vec::new();
            for _ in 0..2 {
                clients.push(almost(&handler, &config, 50_000).await);
                sleep(SECOND).await.unwrap();
            }
            let begun = clock().await;
            let mut third = almost(&handler, &config, 40_000).await;
            third.write_all(b"x").await.unwrap();
            assert_eq!(answer(&mut third, SECOND).await.map(|it| it.1), Some(begun + MOMENT));
            let (text, at) = answer(&mut clients[0], SECOND).await.unwrap();
            assert!(text.starts_with("HTTP/1.1 503 ") && text.contains("Retry-After: 1"), "{text}");
            assert!(text.ends_with("there is no room for the body\n"), "{text}");
            assert_eq!(at, begun + MOMENT);
            clients[1].write_all(b"x").await.unwrap();
            assert_eq!(status(&mut clients[1]).await, Some(200));
            assert_eq!(config.memory(), 0);
        })
        .unwrap();
    assert_eq!(*caps.borrow(), ["name=memory_bytes limit=100000 conn=1"]);
}

#[test]
fn a_client_that_is_fast_gives_way_to_nobody() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let mut clients = Vec::new();
            for _ in 0..2 {
                let mut client = connect(&handler, &config).await;
                client.write_all(&post(50_000)).await.unwrap();
                client.write_all(&[b'x'; 33_000]).await.unwrap();
                clients.push(client);
            }
            settle().await;
            let mut third = almost(&handler, &config, 40_000).await;
            third.write_all(b"x").await.unwrap();
            // More than a sixteenth in less than a quarter of a second, in two pieces.
            for _ in 0..10 {
                for client in &mut clients {
                    client.write_all(&[b'x'; 1_700]).await.unwrap();
                }
                sleep(SECOND / 10).await.unwrap();
            }
            for client in clients.iter_mut().chain([&mut third]) {
                assert_eq!(status(client).await, Some(200));
            }
        })
        .unwrap();
    assert_eq!(*caps.borrow(), [""; 0]);
}

/// Sends its body back.
struct Echo;

impl Handler for Echo {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> std::io::Result<Response> {
        Ok(Response::new(200).with_body(request.body_to_vec(usize::MAX).await?))
    }
}

/// How much of a response of 1 MB a client gets that reads this many bytes a second, and when the
/// connection ends.
async fn read_at(config: &Rc<Config>, bytes: usize) -> (usize, Time) {
    let (server, mut client) = duplex(60_000);
    let theirs = config.clone();
    let serve = async move { serve_connection(server, &Echo, &theirs).await };
    spawn("conn", serve).detached().await;
    client.write_all(&post(1_000_000)).await.unwrap();
    client.write_all(&vec![b'x'; 1_000_000]).await.unwrap();
    let (mut buf, mut read) = (vec![0; bytes], 0);
    while config.memory() > 0 {
        sleep(SECOND).await.unwrap();
        read += client.read(&mut buf).await.unwrap();
    }
    let over = clock().await;
    while let Ok(n @ 1..) = client.read(&mut buf).await {
        read += n;
        if read > 1_000_000 {
            break;
        }
    }
    (read, over)
}

/// 20 bytes a second are enough for a response that is not in memory. They would keep 8 MiB for
/// days.
#[test]
fn an_answer_that_is_made_of_a_body_has_a_rate_by_its_length() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let config = Rc::new(deadlines(|deadlines| deadlines.body_whole = 60 * SECOND));
    kernel
        .run(async {
            let (read, over) = read_at(&config, 300).await;
            let second = |n| Time::ZERO + n * SECOND;
            assert!(read < 100_000 && over > second(29) && over < second(40), "{read} at {over}");
            let (read, _) = read_at(&config, 25_000).await;
            assert!(read > 1_000_000, "{read}");
        })
        .unwrap();
    assert_eq!(*caps.borrow(), ["name=write_rate limit=16666 window=30s conn=1"]);
}

/// The reserve of the memory is too small for any of them.
#[test]
fn of_two_bodies_that_wait_for_each_other_one_is_refused_at_once() {
    let mut kernel = Kernel::new(Sim::new());
    let config = Rc::new(limits(|limits| (limits.memory, limits.body) = (100_000, 100_000)));
    kernel
        .run(async {
            let handler = Kept::default();
            let mut clients = [connect(&handler, &config).await, connect(&handler, &config).await];
            for (piece, rest) in [(0, 30_000), (30_000, 30_000), (60_000, 40_000)] {
                for client in &mut clients {
                    if piece == 0 {
                        client.write_all(&post(100_000)).await.unwrap();
                    }
                    client.write_all(&vec![b'x'; rest]).await.unwrap();
                    settle().await;
                }
            }
            let [first, second] = &mut clients;
            assert_eq!((status(first).await, status(second).await), (Some(200), Some(503)));
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

/// Both the wait for room and the handler have 30 s. The log and the response show which of them
/// ended.
#[test]
fn a_body_for_which_there_is_no_room_in_time_is_refused_and_its_client_may_come_again() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let config = small();
    kernel
        .run(async {
            let handler = Kept::default();
            let mut keep = Vec::new();
            for _ in 0..2 {
                let mut client = connect(&handler, &config).await;
                let head = post(50_000);
                client.write_all(&[b"POST /on", &head[6..]].concat()).await.unwrap();
                client.write_all(&[b'x'; 50_000]).await.unwrap();
                keep.push(client);
            }
            settle().await;
            let begun = clock().await;
            let mut late = connect(&handler, &config).await;
            late.write_all(&post(20_000)).await.unwrap();
            late.write_all(&[b'x'; 20_000]).await.unwrap();
            let (text, at) = answer(&mut late, 60 * SECOND).await.unwrap();
            assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
            assert!(text.contains("\r\nRetry-After: 1\r\n"), "{text}");
            assert!(text.ends_with("there is no room for the body\n"), "{text}");
            // Within a tick of the kernel.
            assert!(at >= begun + 30 * SECOND && at < begun + 31 * SECOND, "{at}");
        })
        .unwrap();
    assert_eq!(*caps.borrow(), ["name=memory_bytes limit=100000 conn=3"]);
}

#[test]
fn a_client_that_leaves_while_its_body_waits_for_room_leaves_its_place() {
    let mut kernel = Kernel::new(Sim::new());
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let _first = almost(&handler, &config, 50_000).await;
            let _second = almost(&handler, &config, 50_000).await;
            let third = almost(&handler, &config, 40_000).await;
            assert_eq!(config.connections(), 3);
            drop(third);
            sleep(SECOND).await.unwrap();
            assert_eq!(config.connections(), 2);
        })
        .unwrap();
}

#[test]
fn a_body_that_is_longer_than_the_memory_is_refused_by_its_length() {
    let config = limits(|limits| (limits.body, limits.memory) = (1 << 30, 100_000));
    let seen = http_support::talk_to(
        Kept::default(),
        config,
        1 << 20,
        usize::MAX,
        &[Act::Send(&post(100_001))],
    );
    assert_eq!(seen.statuses(), [413]);
}

/// Reads the body again if it does not arrive within a second.
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
    assert_eq!(http_support::talk_to(Again, config, 1 << 20, usize::MAX, &acts).statuses(), [200]);
}

/// A body that is sent in this many pieces of that size, one a second, with a length or in chunks.
fn each_second(in_chunks: bool, pieces: usize, size: usize) -> Vec<Vec<u8>> {
    let piece = match in_chunks {
        true => [format!("{size:x}\r\n").as_bytes(), &vec![b'x'; size], b"\r\n"].concat(),
        false => vec![b'x'; size],
    };
    let mut sent = vec![piece; pieces];
    match in_chunks {
        true => {
            sent[0].splice(0..0, CHUNKED.iter().copied());
            sent.push(b"0\r\n\r\n".to_vec());
        }
        false => drop(sent[0].splice(0..0, post(pieces * size))),
    }
    sent
}

/// The statuses that a client gets if it sends these pieces, one a second, and when the first
/// status arrived.
fn sent_to_be_kept(whole: u32, sent: &[Vec<u8>]) -> (Vec<u16>, Time) {
    let config = deadlines(|deadlines| deadlines.body_whole = whole * SECOND);
    let acts = sent.iter().flat_map(|piece| [Act::Send(piece), Act::Sleep(SECOND)]);
    let acts: Vec<Act<'_>> = acts.collect();
    let seen = http_support::talk_to(Kept::default(), config, 1 << 20, usize::MAX, &acts);
    (seen.statuses(), seen.reads.first().map_or(Time::ZERO, |read| read.0))
}

/// 300 bytes a second are enough for a body that its handler takes piece by piece. At that rate 8
/// MiB would stay in memory for hours, so the more has arrived, the faster the rest must arrive.
#[test]
fn a_body_that_is_kept_in_memory_has_a_rate_by_what_has_come_with_a_length_or_in_chunks() {
    for in_chunks in [false, true] {
        // At this rate, the bytes so far would take a minute: 18,000 bytes are enough.
        let (statuses, at) = sent_to_be_kept(60, &each_second(in_chunks, 100, 300));
        assert_eq!(statuses, [408], "in chunks: {in_chunks}");
        let second = |n| Time::ZERO + n * SECOND;
        assert!(at > second(59) && at < second(66), "in chunks: {in_chunks}, {at}");
        // A client that keeps its pace has the time for all of it.
        let (statuses, _) = sent_to_be_kept(60, &each_second(in_chunks, 40, 25_000));
        assert_eq!(statuses, [200], "in chunks: {in_chunks}");
        let (statuses, _) = sent_to_be_kept(300, &each_second(in_chunks, 15, 20_000));
        assert_eq!(statuses, [200], "in chunks: {in_chunks}");
        // A burst does not allow a slow rest.
        let mut burst = each_second(in_chunks, 30, 300);
        let whole = each_second(in_chunks, 1, 1_000_000);
        burst[0] = if in_chunks {
            whole[0].clone()
        } else {
            [&post(1_009_000)[..], &vec![b'x'; 1_000_300]].concat()
        };
        assert_eq!(sent_to_be_kept(300, &burst).0, [408], "in chunks: {in_chunks}");
    }
    let head = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n";
    let mut acts = vec![Act::Send(head)];
    for _ in 0..100 {
        acts.extend([Act::Send(&[b'x'; 300]), Act::Sleep(SECOND)]);
    }
    let config = deadlines(|deadlines| deadlines.body_whole = 60 * SECOND);
    assert_eq!(talk_with(config, 1 << 20, &acts).statuses(), [200]);
}

/// Answers with the beginning of its body.
struct Part(usize);

impl Handler for Part {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> std::io::Result<Response> {
        let mut body = request.body_to_vec(usize::MAX).await?;
        body.truncate(self.0);
        Ok(Response::new(200).with_body(body))
    }
}

#[test]
fn the_memory_of_a_body_is_given_back_except_for_what_the_response_is_made_of() {
    for part in [40_000, 30_000, 20_000] {
        let mut kernel = Kernel::new(Sim::new());
        let (config, handler) = (small(), Part(part));
        kernel
            .run(async {
                let (server, mut client) = duplex(1000);
                let theirs = config.clone();
                let serve = async move { serve_connection(server, &handler, &theirs).await };
                spawn("conn", serve).detached().await;
                client.write_all(&post(40_000)).await.unwrap();
                client.write_all(&vec![b'x'; 40_000]).await.unwrap();
                // The client has read nothing of the response.
                settle().await;
                assert_eq!(config.memory(), part as u64);
                drop(client);
                settle().await;
                assert_eq!(config.memory(), 0);
            })
            .unwrap();
        kernel.shutdown().unwrap();
    }
}

#[test]
fn a_response_whose_client_is_slow_gives_way_to_a_body_that_waits() {
    let mut kernel = Kernel::new(Sim::new());
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let mut slow = Vec::new();
            for _ in 0..2 {
                let (server, mut client) = duplex(1000);
                let theirs = config.clone();
                let serve = async move { serve_connection(server, &Echo, &theirs).await };
                spawn("conn", serve).detached().await;
                client.write_all(&post(50_000)).await.unwrap();
                client.write_all(&vec![b'x'; 50_000]).await.unwrap();
                slow.push(client);
            }
            settle().await;
            assert_eq!(config.memory(), 100_000);
            let mut body = almost(&handler, &config, 20_000).await;
            body.write_all(b"x").await.unwrap();
            assert_eq!(status(&mut body).await, Some(200));
            // One of them was enough.
            assert_eq!(config.memory(), 50_000);
        })
        .unwrap();
    kernel.shutdown().unwrap();
}

#[test]
fn a_body_that_has_come_leaves_the_last_part_at_once_though_it_is_kept() {
    let mut kernel = Kernel::new(Sim::new());
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let _common = almost(&handler, &config, 40_000).await;
            // It has the reserve.
            let mut last = connect(&handler, &config).await;
            let head = String::from_utf8(post(20_000)).unwrap().replacen('/', "/on", 1);
            last.write_all(head.as_bytes()).await.unwrap();
            last.write_all(&vec![b'x'; 19_999]).await.unwrap();
            settle().await;
            let mut next = connect(&handler, &config).await;
            next.write_all(&post(20_000)).await.unwrap();
            next.write_all(&vec![b'x'; 20_000]).await.unwrap();
            settle().await;
            assert_eq!(config.memory(), 60_000, "it waits");
            last.write_all(b"x").await.unwrap();
            let now = clock().await;
            let (text, at) = answer(&mut next, SECOND).await.unwrap();
            assert!(text.starts_with("HTTP/1.1 200 "), "{text}");
            assert_eq!(at, now);
        })
        .unwrap();
    drop(kernel);
}

/// Makes a response of 100,000 bytes in memory, or one from static bytes.
struct Large;

impl Handler for Large {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> std::io::Result<Response> {
        static BODY: [u8; 100_000] = [b'x'; 100_000];
        Ok(match request.path() {
            "/static" => Response::new(200).with_body(&BODY[..]),
            _ => Response::new(200).with_body(BODY.to_vec()),
        })
    }
}

/// A client that asks for `path` and does not read.
async fn unread(handler: impl Handler + 'static, config: &Rc<Config>, path: &str) -> PipeEnd {
    let (server, mut client) = duplex(10_000);
    let config = config.clone();
    let serve = async move { serve_connection(server, &handler, &config).await };
    spawn("conn", serve).detached().await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    settle().await;
    client
}

#[test]
fn a_response_that_a_handler_makes_counts_and_a_slow_client_gives_way_to_it() {
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let config = Rc::new(limits(|limits| limits.memory = 250_000));
    kernel
        .run(async {
            let _static = unread(Large, &config, "/static").await;
            assert_eq!(config.memory(), 0, "the program has it anyway");
            let mut first = unread(Large, &config, "/").await;
            let _second = unread(Large, &config, "/").await;
            assert_eq!(config.memory(), 200_000);
            sleep(SECOND).await.unwrap();
            let _third = unread(Large, &config, "/").await;
            assert_eq!(config.memory(), 200_000, "the first gave way");
            let (mut buf, mut read) = (vec![0; 20_000], 0);
            while let Ok(n @ 1..) = first.read(&mut buf).await {
                read += n;
            }
            assert!((1..100_000).contains(&read), "{read}");
        })
        .unwrap();
    assert_eq!(*caps.borrow(), ["name=memory_bytes limit=250000 conn=2"]);
}

/// A rate by length is required of a response only if it is made of a body.
#[test]
fn a_slow_reader_of_a_response_that_a_handler_makes_has_the_usual_rate() {
    let mut kernel = Kernel::new(Sim::new());
    let config = Rc::new(deadlines(|deadlines| deadlines.body_whole = SECOND));
    kernel
        .run(async {
            let mut client = unread(Large, &config, "/").await;
            let (mut buf, mut read) = (vec![0; 1_000], 0);
            while read < 100_000 {
                sleep(SECOND).await.unwrap();
                read += client.read(&mut buf).await.expect("it is fast enough");
            }
        })
        .unwrap();
}

#[test]
fn a_download_counts_and_a_slow_client_gives_way_to_a_body() {
    struct Download(Files);

    impl Handler for Download {
        async fn handle<S: Stream>(
            &self,
            request: &mut Request<'_, S>,
        ) -> std::io::Result<Response> {
            self.0.respond(request, "large").await
        }
    }

    let home = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("http_memory");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("large"), vec![b'x'; 300_000]).unwrap();
    let files = || Files::open(&home, Limiter::new("files", 2)).unwrap().piece(40_000);
    let (mut kernel, caps) = http_support::kernel_with_caps();
    let (handler, config) = (Kept::default(), small());
    kernel
        .run(async {
            let _first = unread(Download(files()), &config, "/").await;
            let _second = unread(Download(files()), &config, "/").await;
            sleep(SECOND).await.unwrap();
            assert_eq!(config.memory(), 80_000);
            let mut body = almost(&handler, &config, 40_000).await;
            body.write_all(b"x").await.unwrap();
            assert_eq!(status(&mut body).await, Some(200));
            settle().await;
            assert_eq!(config.memory(), 40_000, "one download broke off");
        })
        .unwrap();
    assert_eq!(*caps.borrow(), ["name=memory_bytes limit=100000 conn=1"]);
}

// ---- How a body is read -------------------------------------------------------------------------

/// A pipe that counts the reads.
struct Counted(PipeEnd, Rc<Cell<u32>>);

impl Stream for Counted {
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> std::io::Result<usize> {
        self.1.set(self.1.get() + 1);
        self.0.read_from(buf, site).await
    }
    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> std::io::Result<usize> {
        self.0.write_from(bufs, site).await
    }
    async fn readable(&mut self) -> std::io::Result<()> {
        self.0.readable().await
    }
    fn shutdown(&mut self) -> std::io::Result<()> {
        self.0.shutdown()
    }
}

/// Sends `bytes`, one piece a millisecond, and a second request behind them. Returns the response
/// to the first, and the number of the server's reads.
async fn echoed(length: usize, bytes: &[u8], piece: usize) -> (Vec<u8>, u32) {
    let (server, mut client) = duplex(4 << 20);
    let reads = Rc::new(Cell::new(0));
    let server = Counted(server, reads.clone());
    let serve = async move { serve_connection(server, &Echo, &Config::default()).await };
    let mut conn = spawn("conn", serve).await;
    let sent = [bytes, &post(3), b"end"].concat();
    for piece in sent.chunks(piece) {
        client.write_all(piece).await.unwrap();
        settle().await;
    }
    let count = reads.get();
    Stream::shutdown(&mut client).unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all, usize::MAX - 1).await.unwrap();
    conn.join().await.unwrap().unwrap();
    let at = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let rest = all.split_off(at + length);
    assert!(rest.starts_with(b"HTTP/1.1 200 OK\r\n") && rest.ends_with(b"\r\n\r\nend"));
    (all.split_off(at), count)
}

#[test]
fn a_long_body_arrives_whole_in_few_reads_and_the_next_request_behind_it() {
    const KIB: usize = 1024;
    let ran = Kernel::new(Sim::new()).run(async {
        for length in [16 * KIB, 32 * KIB, 64 * KIB, 1000 * KIB, 1024 * KIB] {
            for length in [length - 1, length, length + 1] {
                let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
                let whole = [post(length), body.clone()].concat();
                let (back, reads) = echoed(length, &whole, usize::MAX).await;
                assert!(back == body && reads <= 12, "{length}: {reads}");
                let (back, _) = echoed(length, &whole, 1_400).await;
                assert!(back == body, "{length}");
                let line = format!("{length:x}\r\n");
                let chunks = [CHUNKED, line.as_bytes(), &body, b"\r\n0\r\n\r\n"].concat();
                let (back, _) = echoed(length, &chunks, usize::MAX).await;
                assert!(back == body, "{length}");
            }
        }
    });
    ran.unwrap();
}

#[test]
fn a_long_body_that_breaks_off_is_refused_and_frees_its_room() {
    let ran = Kernel::new(Sim::new()).run(async {
        let (handler, config) = (Kept::default(), Rc::new(Config::default()));
        let mut client = almost(&handler, &config, 100_000).await;
        assert_eq!(config.memory(), 100_000);
        Stream::shutdown(&mut client).unwrap();
        assert_eq!(status(&mut client).await, Some(400));
        drop(client);
        settle().await;
        assert_eq!(config.memory(), 0);
    });
    ran.unwrap();
}
