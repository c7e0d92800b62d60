//! The one connection deadline of an HTTP connection, and the responses when it fires.

use std::io;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, Method, Request, Response, serve_connection};
use net::pipe::{PipeEnd, duplex};
use support::{Ran, check, check_quietly};
use traps::{Time, clock, connection_deadline, sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";

/// Answers a GET at once, and a POST when its body has arrived.
struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        if request.method() == Method::Post {
            request.body_to_vec(100).await?;
        }
        Ok(Response::text("well"))
    }
}

/// Serves one connection.
async fn serve(server: PipeEnd) -> io::Result<()> {
    serve_connection(server, &App, &Config::default()).await
}

/// Both ends of a connection, ours last.
fn pipe() -> (PipeEnd, PipeEnd) {
    duplex(1 << 20)
}

/// The bytes that arrive within a duration, and whether the server closed.
async fn read_for(client: &mut PipeEnd, span: Duration) -> (String, bool) {
    let mut text = String::new();
    let mut buf = [0; 4096];
    let until = clock().await + span;
    loop {
        match traps::ignore_at(until, client.read(&mut buf)).await {
            Ok(None) => return (text, false),
            Ok(Some(0)) | Err(_) => return (text, true),
            Ok(Some(n)) => text += std::str::from_utf8(&buf[..n]).unwrap(),
        }
    }
}

/// The status codes in the received bytes.
fn statuses(text: &str) -> Vec<&str> {
    text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

/// Lines of the connection's task, or of its deadline.
fn lines_with<T>(ran: &Ran<T>, what: &str) -> usize {
    ran.lines(|line| line.contains(what)).len()
}

#[test]
fn d1_one_deadline_for_all_phases() {
    let ran = check("d1_one_deadline_for_all_phases", Sim::new(), async {
        let (server, mut client) = pipe();
        let mut conn = spawn("conn", serve(server)).await;
        sleep(SECOND).await.unwrap();
        client.write_all(GET).await.unwrap();
        let first = client.read(&mut [0; 4096]).await.unwrap();
        sleep(SECOND).await.unwrap();
        client.write_all(POST).await.unwrap();
        sleep(SECOND).await.unwrap();
        client.write_all(b"body").await.unwrap();
        let second = client.read(&mut [0; 4096]).await.unwrap();
        let end = client.read(&mut [0; 1]).await.unwrap();
        conn.join().await.unwrap().unwrap();
        (first > 0, second > 0, end, clock().await.as_micros())
    });
    // Silence ends an idle connection five seconds after its last answer.
    assert_eq!(ran.output, (true, true, 0, 8_000_000));
    assert_eq!(lines_with(&ran, " connection_deadline = d1"), 1);
    // The head, idle, the body, idle: each is an arm of the one deadline. Other waits may run next
    // to the wait for the body, so that wait has a separate scope.
    assert_eq!(lines_with(&ran, " guard d1 = "), 1);
    assert_eq!(lines_with(&ran, " arm      d1 until="), 4);
    assert_eq!(lines_with(&ran, " disarm   d1"), 3);
    assert_eq!(lines_with(&ran, " fire     d1 "), 1);
    assert_eq!(lines_with(&ran, " conn     trap     set_timeout"), 0);
}

#[test]
fn d33_a_keep_alive_get_makes_one_trap() {
    // The sum includes the client's traps: it waits once for each response.
    let traps = |requests: u64| {
        let mut kernel = Kernel::new(Sim::new());
        let main = async {
            let (server, mut client) = pipe();
            let _conn = spawn("conn", serve(server)).await;
            let mut buf = [0; 4096];
            for _ in 0..requests {
                client.write_all(GET).await.unwrap();
                assert!(client.read(&mut buf).await.unwrap() > 0);
            }
        };
        kernel.run(main).unwrap();
        kernel.counters().traps
    };
    // The connection's wait is that for a request.
    assert_eq!(traps(110) - traps(10), 100 * (1 + 1));
}

#[test]
fn the_time_of_day_is_read_once_a_second_for_all_connections() {
    let half_past_one = Time::from_micros(1_500_000);
    let set = UNIX_EPOCH + Duration::from_secs(784_111_777);
    let ran = check_quietly("date", Sim::new().wall_set_at(half_past_one, set), async {
        let config = Rc::new(Config::default());
        let mut clients: Vec<PipeEnd> = Vec::new();
        for _ in 0..3 {
            let ((server, client), config) = (pipe(), config.clone());
            let serve = async move { serve_connection(server, &App, &config).await };
            spawn("conn", serve).detached().await;
            clients.push(client);
        }
        let mut years = Vec::new();
        // The clock is set between the third and the fourth time, which are in the same second.
        for _ in 0..5 {
            sleep(SECOND * 4 / 10).await.unwrap();
            for client in &mut clients {
                client.write_all(GET).await.unwrap();
                let (answer, _) = read_for(client, SECOND / 1000).await;
                let date = answer.split("Date: ").nth(1).unwrap();
                years.push(date[12..16].to_owned());
            }
        }
        years
    });
    let years: Vec<&str> = ran.output.iter().map(String::as_str).collect();
    assert_eq!(years, [vec!["2026"; 4 * 3], vec!["1994"; 3]].concat());
}

#[test]
fn d5_the_deadline_is_disarmed_on_every_way_out() {
    for way in ["answered", "ended", "reset", "cancelled", "expired", "dropped"] {
        let ran = check_quietly(way, Sim::new(), async {
            let (server, mut client) = pipe();
            let mut conn = spawn("conn", serve(server)).await;
            client.write_all(b"GET / HT").await.unwrap();
            sleep(SECOND).await.unwrap();
            match way {
                "answered" => client.write_all(&GET[8..]).await.unwrap(),
                "ended" => client.shutdown().unwrap(),
                "reset" => client.reset().unwrap(),
                "cancelled" => drop(conn.cancel_because("enough").await),
                "expired" => sleep(10 * SECOND).await.map(drop).unwrap(),
                _ => return false,
            }
            sleep(SECOND).await.unwrap();
            drop(client);
            conn.join().await.is_ok()
        });
        assert_eq!(ran.output, way != "dropped", "{way}");
        let [arms, disarms, fires] =
            [" arm      d1 ", " disarm   d1", " fire     d1 "].map(|what| lines_with(&ran, what));
        assert_eq!(arms, disarms + fires, "{way}\n{}", ran.trace);
        // The deadline of the head, and that for the client to close after the response.
        assert_eq!(fires, if way == "expired" { 2 } else { 0 }, "{way}");
    }
}

#[test]
fn d7_what_comes_in_the_turn_of_the_deadline_is_late_and_stays() {
    let ran = check_quietly("pipe", Sim::new(), async {
        let (mut here, mut there) = duplex(100);
        let mut child = spawn("writer", async move {
            sleep(SECOND).await.unwrap();
            there.write_all(b"late").await.unwrap();
            there
        })
        .await;
        let deadline = connection_deadline().await;
        let mut buf = [0; 8];
        let guarded = deadline.guard(SECOND, here.read(&mut buf)).await;
        let kind = guarded.unwrap_err().kind();
        let _there = child.join().await.unwrap();
        // A second guard of the same deadline gets the bytes at once.
        let n = deadline.guard(SECOND, here.read(&mut buf)).await.unwrap();
        (kind, buf[..n].to_vec())
    });
    assert_eq!(ran.output, (io::ErrorKind::TimedOut, b"late".to_vec()));
    assert_eq!(ran.took, SECOND);
    // A head is refused if its last byte arrives in that turn, and the byte does not become the
    // beginning of another head.
    let ran = check_quietly("head", Sim::new(), async {
        let (server, mut client) = pipe();
        let mut conn = spawn("conn", serve(server)).await;
        client.write_all(&GET[..10]).await.unwrap();
        sleep(10 * SECOND).await.unwrap();
        client.write_all(&GET[10..]).await.unwrap();
        let (text, closed) = read_for(&mut client, 5 * SECOND).await;
        conn.join().await.unwrap().unwrap();
        (statuses(&text).join(" "), closed)
    });
    assert_eq!(ran.output, ("408".to_owned(), true));
}

#[test]
fn d7_a_request_that_came_while_the_process_stood_still_is_answered() {
    for asked_before in [false, true] {
        let sim = Sim::new();
        let time = sim.clock();
        let ran = check_quietly("stood still", sim, async {
            let (server, mut client) = pipe();
            let mut conn = spawn("conn", serve(server)).await;
            if asked_before {
                client.write_all(GET).await.unwrap();
                client.read(&mut [0; 4096]).await.unwrap();
            }
            sleep(SECOND).await.unwrap();
            // The request arrives during the stall, and after the stall the silence has lasted too
            // long.
            client.write_all(GET).await.unwrap();
            time.advance(60 * SECOND);
            let answer = read_for(&mut client, SECOND).await;
            // Silence still ends it.
            let rest = read_for(&mut client, 5 * SECOND).await;
            conn.join().await.unwrap().unwrap();
            (answer, rest)
        });
        let ((answer, closed), rest) = &ran.output;
        assert_eq!((statuses(answer), *closed), (vec!["200"], false), "{}", ran.trace);
        assert_eq!(*rest, (String::new(), true));
    }
}

/// Sets its own timeout, and passes it on.
struct Hasty;

impl Handler for Hasty {
    async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
        timeout_after(SECOND, sleep(5 * SECOND)).await?;
        Ok(Response::text("never"))
    }
}

#[test]
fn a_timeout_that_a_handler_passes_on_is_a_failure_with_an_answer_and_a_line() {
    let ran = check_quietly("hasty", Sim::new(), async {
        let (server, mut client) = pipe();
        let serve = async { serve_connection(server, &Hasty, &Config::default()).await };
        let mut conn = spawn("conn", serve).await;
        client.write_all(GET).await.unwrap();
        let (text, closed) = read_for(&mut client, 2 * SECOND).await;
        drop(client);
        conn.join().await.unwrap().unwrap();
        (statuses(&text).join(" "), closed)
    });
    assert_eq!(ran.output, ("500".to_owned(), true));
    assert_eq!(lines_with(&ran, " warn     a handler failed: "), 1, "{}", ran.trace);
    // A timeout from further out does not belong to the handler.
    let ran = check_quietly("further out", Sim::new(), async {
        let (server, mut client) = pipe();
        let serve = async { serve_connection(server, &Hasty, &Config::default()).await };
        let serve = async { timeout_after(SECOND / 2, serve).await };
        let mut conn = spawn("conn", serve).await;
        client.write_all(GET).await.unwrap();
        let read = read_for(&mut client, 2 * SECOND).await;
        conn.join().await.unwrap().unwrap_err();
        read
    });
    let (text, closed) = &ran.output;
    assert_eq!((statuses(text).join(" "), *closed), ("503".to_owned(), true));
    assert_eq!(lines_with(&ran, " warn     a handler failed: "), 0, "{}", ran.trace);
}

#[test]
fn d8_after_its_deadline_the_task_answers() {
    let ran = check("d8_after_its_deadline_the_task_answers", Sim::new(), async {
        let (server, mut client) = pipe();
        let mut conn = spawn("conn", serve(server)).await;
        client.write_all(b"GET /").await.unwrap();
        let answer = client.read(&mut [0; 4096]).await.unwrap();
        let end = client.read(&mut [0; 1]).await.unwrap();
        drop(client);
        conn.join().await.unwrap().unwrap();
        (answer > 0, end, clock().await.as_micros())
    });
    // The client has seen the end of the response and closes, which ends the linger phase.
    assert_eq!(ran.output, (true, 0, 10_000_000));
    assert_eq!(lines_with(&ran, " fire     d1 "), 1);
    assert_eq!(lines_with(&ran, " cap      name=head_wait limit=10s"), 1);
}

/// The pieces that a client sends and their times, in seconds; an empty piece ends its direction.
type Script = Vec<(u64, Vec<u8>)>;

#[test]
fn d24_each_cause_has_its_answer_or_silence_and_its_line() {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let long = |len: usize| "x".repeat(len);
    let fields = |each: usize, n: usize| format!("X: {}\r\n", long(each)).repeat(n);
    let table: Vec<(&str, Script, &[&str], &str)> = vec![
        ("silent", vec![], &[], ""),
        ("slow head", vec![(0, bytes("GET / HT"))], &["408"], "name=head_wait limit=10s conn=1"),
        ("idle", vec![(0, GET.to_vec())], &["200"], ""),
        (
            "slow second head",
            vec![(0, GET.to_vec()), (1, bytes("GET"))],
            &["200", "408"],
            "name=head_wait limit=10s conn=1",
        ),
        (
            "no body",
            vec![(0, POST.to_vec())],
            &["408"],
            "name=body_rate limit=240 window=5s conn=1",
        ),
        ("the end at once", vec![(0, vec![])], &[], ""),
        ("the end in a head", vec![(0, bytes("GET / HT")), (1, vec![])], &["400"], ""),
        ("the end in a body", vec![(0, POST.to_vec()), (1, vec![])], &["400"], ""),
        (
            "a long request line",
            vec![(0, bytes(&format!("GET /{} HTTP/1.1\r\n", long(8192))))],
            &["414"],
            "name=request_line_bytes limit=8192 conn=1",
        ),
        (
            "a long head",
            vec![(0, bytes(&format!("GET / HTTP/1.1\r\n{}", fields(8000, 9))))],
            &["431"],
            "name=head_bytes limit=65536 conn=1",
        ),
        (
            "many fields",
            vec![(0, bytes(&format!("GET / HTTP/1.1\r\n{}\r\n", fields(1, 101))))],
            &["431"],
            "name=fields limit=100 conn=1",
        ),
        (
            "a long body",
            vec![(0, bytes("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n"))],
            &["413"],
            "name=body_bytes limit=8388608 conn=1",
        ),
    ];
    for (name, script, expected, cap) in table {
        let ran = check_quietly(name, Sim::new(), async {
            let (server, mut client) = pipe();
            let mut conn = spawn("conn", serve(server)).await;
            for (at, piece) in &script {
                sleep(SECOND * *at as u32).await.unwrap();
                match piece.is_empty() {
                    true => client.shutdown().unwrap(),
                    false => client.write_all(piece).await.unwrap(),
                }
            }
            let (text, closed) = read_for(&mut client, 60 * SECOND).await;
            drop(client);
            conn.join().await.unwrap().unwrap();
            assert!(closed, "{name}");
            text
        });
        assert_eq!(statuses(&ran.output), expected, "{name}");
        let caps = ran.lines(|line| line.contains(" cap "));
        let caps: Vec<&str> =
            caps.iter().map(|line| line.split(" cap ").nth(1).unwrap().trim()).collect();
        assert_eq!(caps.join("; "), cap, "{name}");
    }
}
