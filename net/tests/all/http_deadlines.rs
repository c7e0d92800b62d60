//! Each phase of a connection has its deadline, on a virtual clock.

use std::io;
use std::time::Duration;

use http_support::{Act, Seen, deadlines, talk, talk_with};
use net::Stream;
use net::http::{Config, Handler, Request, Response};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn seconds(n: u64) -> Act<'static> {
    Act::Sleep(Duration::from_secs(n))
}

/// The statuses, and the microsecond at which the server closed.
fn end(seen: &Seen) -> (Vec<u16>, Option<u64>) {
    (seen.statuses(), seen.closed_at.map(|at| at.as_micros()))
}

/// Sends the pieces one after the other, a second apart.
fn each_second(pieces: &[Vec<u8>]) -> Vec<Act<'_>> {
    pieces.iter().flat_map(|piece| [Act::Send(piece), seconds(1)]).collect()
}

#[test]
fn d23_a_client_that_never_says_a_byte_is_left_silently_after_the_head_deadline() {
    assert_eq!(end(&talk(&[seconds(60)])), (vec![], Some(10_000_000)));
}

#[test]
fn d23_a_head_has_ten_seconds_in_all_however_it_drips() {
    let drip: Vec<Act<'_>> =
        GET.iter().flat_map(|byte| [Act::Send(std::slice::from_ref(byte)), seconds(9)]).collect();
    let seen = talk(&drip);
    assert_eq!(seen.statuses(), [408]);
    assert_eq!(seen.reads[0].0.as_micros(), 10_000_000);
    assert!(seen.text.contains("Connection: close"));
}

#[test]
fn d23_the_head_of_a_later_request_counts_from_its_first_byte() {
    let seen = talk(&[Act::Send(GET), seconds(4), Act::Send(b"GET"), seconds(60)]);
    assert_eq!(seen.statuses(), [200, 408]);
    assert_eq!(seen.reads[1].0.as_micros(), 14_000_000);
}

#[test]
fn d23_an_idle_connection_is_closed_silently_after_five_seconds() {
    let seen = talk(&[Act::Send(GET), seconds(4), Act::Send(GET), seconds(60)]);
    assert_eq!(end(&seen), (vec![200, 200], Some(9_000_000)));
}

#[test]
fn d23_each_piece_of_a_body_has_thirty_seconds() {
    let head = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\na";
    let slow = || deadlines(|deadlines| deadlines.body_rate = 0);
    let kept = [Act::Send(head), seconds(29), Act::Send(b"bc"), seconds(29), Act::Send(b"de")];
    assert_eq!(end(&talk_with(slow(), 1 << 20, &kept)), (vec![200], None));
    let late = [Act::Send(head), seconds(29), Act::Send(b"bc"), seconds(60)];
    let seen = talk_with(slow(), 1 << 20, &late);
    assert_eq!((seen.statuses(), seen.reads[0].0.as_micros()), (vec![408], 59_000_000));
}

/// A body of 3,000 bytes: first `burst`, then this many bytes each second.
fn body_by(burst: usize, a_second: usize, framing: &str) -> Vec<Vec<u8>> {
    let piece = |len: usize| match framing {
        "chunks" => [format!("{len:x}\r\n").as_bytes(), &vec![b'x'; len], b"\r\n"].concat(),
        _ => vec![b'x'; len],
    };
    let fields = match framing {
        "chunks" => "Transfer-Encoding: chunked",
        _ => "Content-Length: 3000",
    };
    let mut sent = vec![format!("POST /count HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n").into()];
    let mut left = 3000;
    if burst > 0 {
        sent.push(piece(burst));
        left -= burst;
    }
    while left > 0 {
        let len = a_second.min(left);
        sent.push(piece(len));
        left -= len;
    }
    if framing == "chunks" {
        sent.push(b"0\r\n\r\n".to_vec());
    }
    sent
}

#[test]
fn d25_a_body_that_drips_is_cut_off_though_each_read_comes_in_time() {
    for framing in ["length", "chunks"] {
        let drip = body_by(0, 1, framing);
        let seen = talk(&each_second(&drip[..20]));
        assert_eq!(seen.statuses(), [408], "{framing}");
        assert_eq!(seen.reads[0].0.as_micros(), 5_000_000, "{framing}");
        // Bytes that arrived at once count for one window at most.
        let burst = body_by(2_900, 1, framing);
        let seen = talk(&each_second(&burst[..20]));
        assert_eq!(seen.statuses(), [408], "{framing}");
        let at = seen.reads[0].0.as_micros();
        assert!((6_000_000..6_500_000).contains(&at), "{framing}: {at}");
    }
}

#[test]
fn d25_a_body_that_drips_is_cut_off_also_where_its_handler_waits_for_more_than_that() {
    let head = b"POST /beside HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n";
    let seen = talk(&[Act::Send(head), seconds(60)]);
    assert_eq!((seen.statuses(), seen.reads[0].0.as_micros()), (vec![408], 5_000_000));
}

#[test]
fn d25_a_slow_honest_body_is_taken() {
    for framing in ["length", "chunks"] {
        let slow = body_by(0, 300, framing);
        assert_eq!(end(&talk(&each_second(&slow))), (vec![200], None), "{framing}");
    }
    // One byte at a time, with no rate required.
    let config = deadlines(|deadlines| deadlines.body_rate = 0);
    let drip = body_by(2_980, 1, "length");
    assert_eq!(end(&talk_with(config, 1 << 20, &each_second(&drip))), (vec![200], None));
}

#[test]
fn d25_what_a_handler_does_between_its_reads_costs_the_peer_nothing() {
    let head = b"POST /slowly HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\n\r\n";
    let mut acts = vec![Act::Send(head)];
    for _ in 0..6 {
        // Far less than 240 bytes a second, but the server waits two seconds of each ten.
        acts.extend([seconds(2), Act::Send(b"0123456789"), seconds(8)]);
    }
    let config = deadlines(|deadlines| deadlines.body_rate = 4);
    assert_eq!(talk_with(config, 1 << 20, &acts).statuses(), [200]);
    let config = deadlines(|deadlines| deadlines.body_rate = 6);
    assert_eq!(talk_with(config, 1 << 20, &acts).statuses(), [408]);
}

#[test]
fn zero_has_passed_at_once_and_max_never_passes() {
    let config = deadlines(|deadlines| deadlines.idle = Duration::ZERO);
    let seen = talk_with(config, 1 << 20, &[Act::Send(GET), seconds(1)]);
    assert_eq!(seen.statuses(), [200]);
    // Within a tick of the kernel.
    assert!(seen.closed_at.unwrap().as_micros() <= 300_000, "{:?}", seen.closed_at);
    let config = deadlines(|deadlines| {
        (deadlines.head, deadlines.idle) = (Duration::MAX, Duration::MAX);
    });
    let acts = [seconds(1000), Act::Send(&GET[..9]), seconds(1000), Act::Send(&GET[9..])];
    let seen = talk_with(config, 1 << 20, &acts);
    assert_eq!(end(&seen), (vec![200], None));
}

/// The time at which the server gives up a client that asks and reads nothing, and how much the
/// client can still read after that.
fn left(handler: &impl Handler, request: &str) -> (u64, io::Result<usize>) {
    let mut kernel = kernel::Kernel::new(kernel::Sim::new());
    let (server, mut client) = net::pipe::duplex(1000);
    let end = kernel.run(async {
        let config = Config::default();
        let serve = net::http::serve_connection(server, handler, &config);
        let ask = async {
            client.write_all(request.as_bytes()).await.unwrap();
            traps::sleep(Duration::from_secs(100)).await.unwrap();
            let mut read = 0;
            loop {
                match client.read(&mut [0; 2000]).await? {
                    0 => return Ok(read),
                    n => read += n,
                }
            }
        };
        let timed = async {
            serve.await.unwrap();
            traps::clock().await.as_micros()
        };
        traps::join(timed, ask).await
    });
    end.unwrap()
}

#[test]
fn d21_a_peer_that_reads_nothing_is_left_after_thirty_seconds_and_keeps_what_was_sent() {
    let (at, read) = left(&http_support::App, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((at, read.unwrap()), (30_000_000, 1000));
    // This response ends with the connection, so only a reset marks it as incomplete.
    let (at, read) = left(&Persistent, "GET / HTTP/1.0\r\n\r\n");
    assert_eq!((at, read.unwrap_err().kind()), (30_000_000, io::ErrorKind::ConnectionReset));
}

/// Tries again as long as it is allowed to.
struct Persistent;

impl Handler for Persistent {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        answer.write(&[b'x'; 2000]).await?;
        while traps::ignore_after(Duration::from_secs(7), answer.flush()).await?.is_none() {}
        answer.finish()
    }
}

#[test]
fn d21_a_handler_that_tries_again_holds_a_peer_that_reads_nothing_no_longer() {
    let (at, read) = left(&Persistent, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!((at, read.unwrap()), (30_000_000, 1000));
}

#[test]
fn d21_a_peer_that_reads_slowly_gets_the_whole_answer() {
    let mut kernel = kernel::Kernel::new(kernel::Sim::new());
    let (server, mut client) = net::pipe::duplex(1000);
    let answer = kernel.run(async {
        let config = Config::default();
        let serve = net::http::serve_connection(server, &http_support::App, &config);
        let ask = async {
            let request = b"GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            client.write_all(request).await.unwrap();
            let (mut answer, mut buf) = (Vec::new(), [0; 1000]);
            loop {
                traps::sleep(Duration::from_secs(29)).await.unwrap();
                match net::Stream::read(&mut client, &mut buf).await.unwrap() {
                    0 => return answer,
                    n => answer.extend_from_slice(&buf[..n]),
                }
            }
        };
        let (served, answer) = traps::join(serve, ask).await;
        served.unwrap();
        answer
    });
    assert!(answer.unwrap().ends_with(&[b'x'; 100_000]));
}

/// Writes a little again and again, and lets the server decide when the bytes go out.
struct Trickle;

impl Handler for Trickle {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut answer = request.start(Response::new(200)).await?;
        for _ in 0..20 {
            answer.write(b"tick").await?;
            traps::sleep(Duration::from_millis(300)).await?;
        }
        answer.finish()
    }
}

#[test]
fn the_time_of_a_handler_begins_anew_with_each_piece_that_goes_out() {
    let config = deadlines(|deadlines| deadlines.handler = Duration::from_secs(1));
    let acts = [Act::Send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), seconds(8)];
    let seen = http_support::talk_to(Trickle, config, 1 << 20, usize::MAX, &acts);
    assert_eq!(seen.text.matches("tick").count(), 20, "{}", seen.text);
    assert!(seen.text.ends_with("0\r\n\r\n"), "{}", seen.text);
}

/// It takes some bytes in each period, but too few.
#[test]
fn d21_a_peer_that_reads_too_little_over_a_span_is_left() {
    let mut kernel = kernel::Kernel::new(kernel::Sim::new());
    let (server, mut client) = net::pipe::duplex(1000);
    let ended = kernel.run(async {
        let config = deadlines(|deadlines| deadlines.write_rate = 100);
        let serve = net::http::serve_connection(server, &http_support::App, &config);
        let ask = async {
            client.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            let (mut read, mut buf) = (0, [0; 500]);
            loop {
                traps::sleep(Duration::from_secs(10)).await.unwrap();
                match client.read(&mut buf).await {
                    Ok(n) if n > 0 => read += n,
                    _ => return (read, traps::clock().await),
                }
            }
        };
        let (served, ended) = traps::join(serve, ask).await;
        served.unwrap();
        ended
    });
    let (read, at) = ended.unwrap();
    assert!(read < 100_000 && at < traps::Time::ZERO + Duration::from_secs(120), "{read} {at}");
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
            net::http::serve_connection(server, &http_support::App, &Config::default()).await
        })
        .await;
        traps::sleep(Duration::from_secs(1)).await.unwrap();
        conn.cancel_because("enough").await.unwrap();
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
