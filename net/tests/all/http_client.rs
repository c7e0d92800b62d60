//! The client, against this server and against servers that misbehave.

use std::cell::Cell;
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpListener as StdListener};
use std::rc::Rc;
use std::time::Duration;

use http_support::App;
use kernel::{Kernel, Real, Sim};
use net::http::{Config, InvalidHeader, serve_connection};
use net::pipe::{PipeEnd, duplex};
use net::web::{Client, ClientRequest};
use net::{Stream, TcpStream};
use traps::internal::spend_budget;
use traps::{Interruptible, Time, clock, ignore_after, spawn, timeout_after, yield_now};

fn get(target: &str) -> ClientRequest {
    ClientRequest::new("GET", "a", target).unwrap()
}

/// Runs `program` with the client's end of a pipe to a server.
fn with_server<T>(most: usize, program: impl AsyncFnOnce(Client<PipeEnd>) -> T) -> T {
    let mut kernel = Kernel::new(Sim::new());
    let (mut server, mut client) = duplex(1 << 20);
    server.set_short_reads(most);
    client.set_short_reads(most);
    let ran = kernel.run(async {
        let config = Rc::new(Config::default());
        spawn("conn", async move { serve_connection(server, &App, &config).await }).await;
        program(Client::new(client)).await
    });
    kernel.shutdown().unwrap();
    ran.unwrap()
}

#[test]
fn one_connection_is_used_for_requests_of_each_kind_however_they_are_cut() {
    for most in [1, 2, 7, usize::MAX] {
        with_server(most, async |mut client| {
            let with = |method, target| ClientRequest::new(method, "a", target).unwrap();
            let large = vec![b'x'; 100_000];
            for (request, status, body) in [
                (get("/"), 200, &b"Hello, World!"[..]),
                (with("HEAD", "/"), 200, b""),
                (get("/none"), 204, b""),
                (get("/stream"), 200, b"one and two"),
                (get("/stream?length=11"), 200, b"one and two"),
                (with("POST", "/echo").with_body("back"), 200, b"back"),
                (with("POST", "/echo").with_body(large.clone()), 200, &large),
                (get("/big"), 200, &large),
                (with("PATCH", "/"), 405, b"method not allowed\n"),
            ] {
                let mut response = client.send(&request).await.unwrap();
                assert_eq!(response.status(), status, "{request:?}");
                let found = response.body_to_vec(1 << 20).await.unwrap();
                assert!(found == body, "{most}: {request:?}");
                assert!(client.is_open(), "{request:?}");
            }
            let mut response = client.send(&get("/bye")).await.unwrap();
            assert_eq!(response.header("connection"), Some(&b"close"[..]));
            assert_eq!(response.body_to_vec(3).await.unwrap(), b"bye");
            assert!(!client.is_open());
            let error = client.send(&get("/")).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotConnected);
        });
    }
}

#[test]
fn a_response_in_json_is_read_as_a_value() {
    let answers = [
        ("application/json", "[1,2]", Ok(vec![1, 2])),
        ("application/json", "[1,", Err("the JSON of the response: EOF")),
        ("text/html", "<p>", Err("the response, with status 404, has no JSON")),
    ];
    for (kind, body, wanted) in answers {
        let (mut server, client) = duplex(1 << 10);
        let mut kernel = Kernel::new(Sim::new());
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 404 Not Found\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        let read = kernel.run(async {
            let answers = async { server.write_all(answer.as_bytes()).await };
            let asks = async {
                let mut client = Client::new(client);
                client.send(&get("/")).await?.json::<Vec<u32>>(100).await
            };
            let (answered, read) = traps::join(answers, asks).await;
            answered.unwrap();
            read
        });
        match (read.unwrap(), wanted) {
            (Err(error), Err(why)) => {
                assert_eq!(error.kind(), ErrorKind::InvalidData);
                assert!(error.to_string().starts_with(why), "{error}");
            }
            (read, wanted) => assert_eq!(read.unwrap(), wanted.unwrap()),
        }
        kernel.shutdown().unwrap();
    }
}

#[test]
fn an_answer_that_was_left_or_is_too_long_uses_the_connection_up() {
    with_server(usize::MAX, async |mut client| {
        let mut response = client.send(&get("/big")).await.unwrap();
        let error = response.body_to_vec(99_999).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(!client.is_open());
    });
    with_server(usize::MAX, async |mut client| {
        drop(client.send(&get("/big")).await.unwrap());
        assert!(!client.is_open());
    });
    with_server(usize::MAX, async |mut client| {
        let mut response = client.send(&get("/")).await.unwrap();
        assert_eq!(response.body_to_vec(3).await.unwrap_err().kind(), ErrorKind::InvalidData);
        let again = response.body_to_vec(100).await.unwrap_err();
        assert!(again.to_string().contains("13 bytes"), "{again}");
        assert!(!client.is_open());
    });
}

#[test]
fn a_body_whose_framing_is_broken_is_so_for_whoever_asks_again() {
    let mut kernel = Kernel::new(Sim::new());
    let (mut server, client) = duplex(1 << 20);
    let ran = kernel.run(async {
        // If parsing continued from the wrong state, this would be a chunk.
        let chunks = "5;a=\"\r\nhello\r\n0\r\n\r\n";
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        server.write_all(answer.as_bytes()).await.unwrap();
        let mut client = Client::new(client);
        let mut response = client.send(&get("/")).await.unwrap();
        for _ in 0..3 {
            assert_eq!(response.read_chunk().await.unwrap_err().kind(), ErrorKind::InvalidData);
        }
        client.is_open()
    });
    assert!(!ran.unwrap());
    drop(server);
}

#[test]
fn a_timeout_ends_the_wait_for_an_answer_on_time() {
    with_server(usize::MAX, async |mut client| {
        let span = Duration::from_millis(100);
        let error = timeout_after(span, client.send(&get("/sleep"))).await.map(drop).unwrap_err();
        assert!(error.interrupt().is_some(), "{error}");
        assert_eq!(clock().await, Time::ZERO + span);
        assert!(!client.is_open(), "the answer will come when nobody asks for it");
    });
}

#[test]
fn a_method_that_wants_a_body_says_that_there_is_none() {
    for (method, length) in [("POST", 1), ("PUT", 1), ("PATCH", 1), ("GET", 0), ("DELETE", 0)] {
        let mut kernel = Kernel::new(Sim::new());
        let (mut server, client) = duplex(1 << 20);
        let asked = kernel.run(async {
            server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            let request = ClientRequest::new(method, "a", "/").unwrap();
            drop(Client::new(client).send(&request).await.unwrap());
            let mut asked = [0; 1000];
            let n = server.read(&mut asked).await.unwrap();
            String::from_utf8(asked[..n].to_vec()).unwrap()
        });
        let asked = asked.unwrap();
        assert_eq!(asked.matches("\r\nContent-Length: 0\r\n").count(), length, "{asked}");
    }
}

/// The result of a client that gets a response byte by byte: status and body, or the kind of error;
/// and whether the connection is still open.
fn read(answer: &str) -> (Result<(u16, String), ErrorKind>, bool) {
    let mut kernel = Kernel::new(Sim::new());
    let (mut server, mut client) = duplex(1 << 20);
    client.set_short_reads(1);
    let ran = kernel.run(async {
        server.write_all(answer.as_bytes()).await.unwrap();
        server.shutdown().unwrap();
        let mut client = Client::new(client);
        let read = async {
            let mut response = client.send(&get("/")).await?;
            let body = response.body_to_vec(200_000).await?;
            Ok((response.status(), String::from_utf8(body).unwrap()))
        };
        let read: std::io::Result<_> = read.await;
        (read.map_err(|error| error.kind()), client.is_open())
    });
    kernel.shutdown().unwrap();
    ran.unwrap()
}

#[test]
fn an_answer_ends_where_its_head_says_or_it_is_an_error() {
    let ok = |status, body: &str, open| (Ok((status, body.to_owned())), open);
    let bad = (Err(ErrorKind::InvalidData), false);
    let cut = (Err(ErrorKind::UnexpectedEof), false);
    let head = "HTTP/1.1 200 OK\r\n";
    for (answer, wanted) in [
        (format!("{head}Content-Length: 2\r\n\r\nab"), ok(200, "ab", true)),
        (format!("{head}Content-Length: 2\r\n\r\nabc"), ok(200, "ab", true)),
        (
            "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello\r\nX: 1\r\n\r\nabcde".to_owned(),
            bad.clone(),
        ),
        (format!("{head}X: 1\nContent-Length: 2\r\n\r\nab"), bad.clone()),
        (format!("{head}Content-Length: 0\r\n\r\n"), ok(200, "", true)),
        (
            format!("{head}Content-Length: 2\r\nConnection: a, close\r\n\r\nab"),
            ok(200, "ab", false),
        ),
        (format!("{head}\r\nall of it"), ok(200, "all of it", false)),
        ("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na".to_owned(), ok(200, "a", false)),
        (
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na".to_owned(),
            ok(200, "a", true),
        ),
        ("HTTP/1.2 200 OK\r\nContent-Length: 1\r\n\r\na".to_owned(), ok(200, "a", true)),
        (
            "HTTP/1.9 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n".to_owned(),
            ok(200, "a", true),
        ),
        ("HTTP/2.0 200 OK\r\nContent-Length: 1\r\n\r\na".to_owned(), bad.clone()),
        ("HTTP/1.10 200 OK\r\nContent-Length: 1\r\n\r\na".to_owned(), bad.clone()),
        (
            format!(
                "{head}Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
                format!("400;signature={}\r\n{}\r\n", "f".repeat(64), "x".repeat(1024)).repeat(100)
            ),
            ok(200, &"x".repeat(102_400), true),
        ),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".to_owned(), ok(304, "", true)),
        (
            format!("HTTP/1.1 100 Continue\r\n\r\n{head}Content-Length: 0\r\n\r\n"),
            ok(200, "", true),
        ),
        (
            format!(
                "{head}Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n2\r\nbc\r\n0\r\nT: u\r\n\r\n"
            ),
            ok(200, "abc", true),
        ),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"), cut.clone()),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"), bad.clone()),
        (format!("{head}Transfer-Encoding: gzip\r\n\r\n"), bad.clone()),
        (format!("{head}Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\na"), bad.clone()),
        (format!("{head}Content-Length: 1\r\nContent-Length: 1\r\n\r\na"), ok(200, "a", true)),
        (format!("{head}Content-Length: 1, 1 ,\t1\r\n\r\na"), ok(200, "a", true)),
        (format!("{head}Content-Length: 1\r\nContent-Length: 2\r\n\r\na"), bad.clone()),
        (format!("{head}Content-Length: 1, 2\r\n\r\na"), bad.clone()),
        (format!("{head}Content-Length: 1,\r\n\r\na"), bad.clone()),
        (format!("{head}Content-Length:\r\n\r\na"), bad.clone()),
        (
            format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\nT: u\r\n\tv\r\n \r\n\r\n"),
            ok(200, "", true),
        ),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\n0\r\n T: u\r\n\r\n"), bad.clone()),
        (format!("{head}Content-Length: +1\r\n\r\na"), bad.clone()),
        (format!("{head}Content-Length: 3\r\n\r\nab"), cut.clone()),
        ("HTTP/1.1 200".to_owned(), cut.clone()),
        (String::new(), cut),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n".to_owned(), bad.clone()),
        ("SSH-2.0-x\r\n\r\n".to_owned(), bad.clone()),
        (format!("{head}X: {}\r\n\r\n", "x".repeat(70_000)), bad.clone()),
        ("HTTP/1.1 100 Continue\r\n\r\n".repeat(20), bad),
    ] {
        assert_eq!(read(&answer), wanted, "{:?}", &answer[..answer.len().min(200)]);
    }
}

/// The value of `name` in that head, or `None` if the client refuses the response.
fn field(head: &str, name: &str) -> Option<String> {
    let mut kernel = Kernel::new(Sim::new());
    let (mut server, client) = duplex(1 << 20);
    let ran = kernel.run(async {
        server.write_all(head.as_bytes()).await.unwrap();
        let mut client = Client::new(client);
        let response = client.send(&get("/")).await.ok()?;
        assert!(!response.head().windows(3).any(|three| three == b"\r\n "), "it has no fold");
        Some(String::from_utf8(response.header(name)?.to_vec()).unwrap())
    });
    ran.unwrap()
}

#[test]
fn a_folded_field_of_an_answer_is_read_as_if_it_had_a_space() {
    let end = "Content-Length: 0\r\n\r\n";
    for (fields, value) in [
        ("X: a\r\n b\r\n", "a b"),
        ("X: a \t\r\n\t b\r\n  c\r\n", "a b c"),
        ("X:\r\n a\r\n", "a"),
        ("X: a\r\n \r\n", "a"),
        ("Y: 1\r\n X: b\r\nX: a\r\n", "a"),
    ] {
        let found = field(&format!("HTTP/1.1 200 OK\r\n{fields}{end}"), "X");
        assert_eq!(found.as_deref(), Some(value), "{fields:?}");
    }
    // White space that is not a fold of a field is still refused.
    for fields in [" X: a\r\n", "X: a\n b\r\n", "X: a\r\r\n b\r\n", "X\r\n : a\r\n"] {
        let found = field(&format!("HTTP/1.1 200 OK\r\n{fields}X: b\r\n{end}"), "X");
        assert_eq!(found, None, "{fields:?}");
    }
    let ok = |body: &str| (Ok((200, body.to_owned())), true);
    let head = "HTTP/1.1 200 OK\r\n";
    assert_eq!(read(&format!("{head}Content-Length:\r\n 2\r\n\r\nab")), ok("ab"));
    let bad = (Err(ErrorKind::InvalidData), false);
    assert_eq!(read(&format!("{head}Content-Length: 1\r\n 2\r\n\r\nab")), bad);
    let chunked = "Transfer-Encoding:\r\n\tchunked\r\n\r\n1\r\na\r\n0\r\n\r\n";
    assert_eq!(read(&format!("{head}{chunked}")), ok("a"));
}

#[test]
fn an_invalid_status_counts_as_an_error_of_the_server() {
    for (status, wanted) in [(600, 500), (999, 500), (0, 500), (99, 500), (599, 599), (299, 299)] {
        let answer = format!("HTTP/1.1 {status:03} Odd\r\nContent-Length: 2\r\n\r\nab");
        assert_eq!(read(&answer), (Ok((wanted, "ab".to_owned())), true), "{status}");
    }
    for status in ["1000", "60", "6x0", "-10"] {
        let answer = format!("HTTP/1.1 {status} Odd\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(read(&answer).0, Err(ErrorKind::InvalidData), "{status}");
    }
}

#[test]
fn a_status_line_has_a_version_a_space_and_three_digits() {
    let fields = "Content-Length: 1\r\n\r\na";
    for line in ["HTTP/1.1 200", "HTTP/1.1 200 ", "HTTP/1.1 200  a\t\u{e9}", "HTTP/1.0 200 OK"] {
        let read = read(&format!("{line}\r\n{fields}")).0;
        assert_eq!(read, Ok((200, "a".to_owned())), "{line:?}");
    }
    for line in [
        "",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 +20 OK",
        "HTTP/1.1 200OK",
        "HTTP/1.1 200\tOK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/1.1 200 O\rK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 200 OK\nX: y",
        "HTTP/1.1 200 OK\r\n\nX: y",
        "HTTP/1. 200 OK",
        "HTTP/1 200 OK",
        "HTTP/0.9 200 OK",
        "http/1.1 200 OK",
        " HTTP/1.1 200 OK",
        "\r\nHTTP/1.1 200 OK",
    ] {
        let read = read(&format!("{line}\r\n{fields}")).0;
        assert_eq!(read, Err(ErrorKind::InvalidData), "{line:?}");
    }
}

/// Whether it has arrived when the first response is read, or arrives byte by byte.
#[test]
fn what_is_behind_an_answer_is_not_the_answer_to_the_next_request() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: ";
    for (first, poison) in [
        (get("/"), format!("{head}2\r\n\r\nok{head}6\r\n\r\npoison")),
        (
            ClientRequest::new("HEAD", "a", "/").unwrap(),
            format!("{head}4\r\n\r\nbody{head}1\r\n\r\nx"),
        ),
    ] {
        for short in [1, 1 << 16] {
            let mut kernel = Kernel::new(Sim::new());
            let (mut server, mut client) = duplex(1 << 20);
            client.set_short_reads(short);
            let ran = kernel.run(async {
                server.write_all(poison.as_bytes()).await.unwrap();
                let mut client = Client::new(client);
                let mut response = client.send(&first).await.unwrap();
                response.body_to_vec(1000).await.unwrap();
                client.send(&get("/")).await.map(drop).unwrap_err().kind()
            });
            assert_eq!(ran.unwrap(), ErrorKind::NotConnected);
            drop(server);
        }
    }
}

/// On a socket that is known to be empty after its last read.
#[test]
fn what_comes_between_two_requests_is_not_an_answer_and_an_end_is_seen() {
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    for spent in [0, u32::MAX] {
        for between in [Some(OK), None] {
            let mut kernel = Kernel::new(Real::new().unwrap());
            let kind = kernel.run(async {
                let listener = StdListener::bind("127.0.0.1:0").unwrap();
                let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                let (mut server, _) = listener.accept().unwrap();
                let mut client = Client::new(stream);
                server.write_all(OK).unwrap();
                let mut response = client.send(&get("/")).await.unwrap();
                assert_eq!(response.body_to_vec(1000).await.unwrap(), b"ok");
                match between {
                    Some(answer) => server.write_all(answer).unwrap(),
                    None => server.shutdown(Shutdown::Write).unwrap(),
                }
                spend_budget(spent);
                let late = client.send(&get("/")).await.map(drop).unwrap_err().kind();
                (late, client.is_open())
            });
            assert_eq!(kind.unwrap(), (ErrorKind::NotConnected, false), "{spent}");
        }
    }
}

#[test]
fn an_answer_that_an_interrupt_took_a_part_of_is_never_taken_for_a_whole_one() {
    for (first, wanted) in [("abc", Err(ErrorKind::InvalidInput)), ("", Ok(b"abcdef".to_vec()))] {
        let mut kernel = Kernel::new(Sim::new());
        let (mut server, client) = duplex(1 << 20);
        let ran = kernel.run(async {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n{first}");
            server.write_all(head.as_bytes()).await.unwrap();
            let mut client = Client::new(client);
            let mut response = client.send(&get("/")).await.unwrap();
            let whole = ignore_after(Duration::from_secs(1), response.body_to_vec(100)).await;
            assert!(whole.unwrap().is_none());
            server.write_all(&b"abcdef"[first.len()..]).await.unwrap();
            let again = response.body_to_vec(100).await;
            if again.is_err() {
                let piece = response.read_chunk().await.unwrap_err();
                assert!(piece.to_string().contains("3 bytes"), "{piece}");
            }
            again.map_err(|error| error.kind())
        });
        assert_eq!(ran.unwrap(), wanted);
    }
}

#[test]
fn a_refusal_of_a_request_that_is_still_sent_is_read() {
    let mut kernel = Kernel::new(Sim::new());
    let (mut server, client) = duplex(100);
    let seen = kernel.run(async {
        let answer = b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n";
        server.write_all(answer).await.unwrap();
        drop(server);
        let mut client = Client::new(client);
        let request = ClientRequest::new("POST", "a", "/").unwrap().with_body(vec![0; 1000]);
        let sent = ignore_after(Duration::from_secs(1), client.send(&request)).await;
        let mut response = sent.unwrap().expect("it does not hang");
        let status = response.status();
        assert_eq!(response.body_to_vec(0).await.unwrap(), b"");
        // Whatever the response is, the rest of the request was never sent.
        (status, client.is_open())
    });
    assert_eq!(seen.unwrap(), (413, false));
    kernel.shutdown().unwrap();
}

#[test]
fn a_request_asks_a_host_for_a_target() {
    for (host, target) in [("a", "/#b"), ("a", "*/"), ("a", "/ b"), ("a/b", "/"), ("a@b", "/")] {
        let request = ClientRequest::new("GET", host, target);
        assert_eq!(request.err(), Some(InvalidHeader::Value), "{host} {target}");
    }
    for (host, target) in [("[::1]:80", "/?a=b"), ("", "/{}"), ("a.b", "*")] {
        assert!(ClientRequest::new("OPTIONS", host, target).is_ok(), "{host} {target}");
    }
}

#[test]
fn a_request_has_one_host() {
    for name in ["Host", "HOST", "Content-Length"] {
        let request = ClientRequest::new("GET", "a", "/").unwrap().header(name, "b");
        assert_eq!(request.err(), Some(InvalidHeader::Reserved), "{name}");
    }
}

/// They answer no request.
#[test]
fn bytes_behind_a_response_end_the_connection() {
    for (more, open) in [(&b""[..], true), (b"x", false), (b"HTTP/1.1 200 OK\r\n", false)] {
        let mut kernel = Kernel::new(Sim::new());
        let is_open = kernel.run(async {
            let (mut server, client) = duplex(1000);
            server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await.unwrap();
            server.write_all(more).await.unwrap();
            let mut client = Client::new(client);
            let body = client.send(&get("/")).await.unwrap().body_to_vec(10).await.unwrap();
            assert_eq!(body, b"hi");
            client.is_open()
        });
        assert_eq!(is_open.unwrap(), open, "{more:?}");
        kernel.shutdown().unwrap();
    }
}

/// A server that sends chunks of one byte does not make the client's other tasks wait long.
#[test]
fn a_response_of_small_chunks_gives_way_after_a_hundred_of_them() {
    let mut kernel = Kernel::new(Sim::new());
    let read = Rc::new(Cell::new(0));
    let count = read.clone();
    let most = kernel.run(async {
        let (mut server, client) = duplex(1 << 20);
        server.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await.unwrap();
        server.write_all(&b"1\r\nx\r\n".repeat(20_000)).await.unwrap();
        server.write_all(b"0\r\n\r\n").await.unwrap();
        let reads = async move {
            let mut client = Client::new(client);
            let mut response = client.send(&get("/")).await.unwrap();
            while response.read_chunk().await.unwrap().is_some() {
                count.set(count.get() + 1);
            }
        };
        spawn("reads", reads).detached().await;
        let mut most = 0;
        while read.get() < 20_000 {
            let before = read.get();
            yield_now().await.unwrap();
            most = most.max(read.get() - before);
        }
        drop(server);
        most
    });
    let most = most.unwrap();
    assert!((1..=128).contains(&most), "{most} chunks in one turn");
    kernel.shutdown().unwrap();
}
