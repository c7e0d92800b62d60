//! The life of an HTTP connection in the log, line by line.

use std::io;
use std::rc::Rc;

use kernel::{Options, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::{PipeEnd, duplex};
use support::{check, check_with, tenths};
use traps::shutdown::{begun, hold};
use traps::{Signal, Time, clock, sleep, spawn};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Answers at once, or after a second.
struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        if request.path() == "/slow" {
            sleep(tenths(10)).await?;
        }
        Ok(Response::text("well"))
    }
}

/// Serves one connection, which delays the drain as connections of a server do.
async fn serve(server: PipeEnd, config: Rc<Config>) -> io::Result<()> {
    let _hold = hold();
    serve_connection(server, &App, &config).await
}

/// The status of each response in one read, and whether the server must have announced that it
/// closes.
async fn read(client: &mut PipeEnd) -> String {
    let mut buf = [0; 4096];
    let n = client.read(&mut buf).await.unwrap();
    let text = String::from_utf8_lossy(&buf[..n]).into_owned();
    let close = if text.contains("Connection: close") { " close" } else { "" };
    let statuses: Vec<&str> = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    statuses.join(" ") + close
}

#[test]
fn one_connection_with_two_requests() {
    check("http_two_requests", Sim::new(), async {
        let (server, mut client) = duplex(1 << 16);
        let mut conn = spawn("conn", serve(server, Rc::default())).await;
        client.write_all(GET).await.unwrap();
        assert_eq!(read(&mut client).await, "200");
        sleep(tenths(20)).await.unwrap();
        client.write_all(GET).await.unwrap();
        assert_eq!(read(&mut client).await, "200");
        drop(client);
        conn.join().await.unwrap().unwrap();
    });
}

#[test]
fn a_head_that_takes_too_long() {
    check("http_head_timeout", Sim::new(), async {
        let (server, mut client) = duplex(1 << 16);
        let mut conn = spawn("conn", serve(server, Rc::default())).await;
        client.write_all(&GET[..9]).await.unwrap();
        sleep(tenths(90)).await.unwrap();
        client.write_all(&GET[9..18]).await.unwrap();
        assert_eq!(read(&mut client).await, "408 close");
        assert_eq!(clock().await, Time::ZERO + tenths(100));
        drop(client);
        conn.join().await.unwrap().unwrap();
    });
}

#[test]
fn a_request_that_is_refused() {
    check("http_refused", Sim::new(), async {
        let (server, mut client) = duplex(1 << 16);
        let mut conn = spawn("conn", serve(server, Rc::default())).await;
        // Still being sent when it is refused: the server reads on before it closes.
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n";
        client.write_all(head).await.unwrap();
        assert_eq!(read(&mut client).await, "413 close");
        client.write_all(b"a part of it").await.unwrap();
        drop(client);
        conn.join().await.unwrap().unwrap();
    });
}

/// One connection waits for its next request, one is busy, and one has sent a part of its request
/// when the server begins to stop, and sends the rest within the grace.
#[test]
fn a_server_that_is_told_to_stop() {
    let sim = Sim::new().signal_at(Time::ZERO + tenths(5), Signal::Terminate);
    let options = Options::new().longrun(None).shutdown_on(&[Signal::Terminate]);
    let ran = check_with("http_drained_shutdown", sim, options, async {
        let config = Rc::new(Config::default());
        let mut clients = Vec::new();
        for name in ["idle", "busy", "late"] {
            let (server, client) = duplex(1 << 16);
            spawn(name, serve(server, config.clone())).detached().await;
            clients.push(client);
        }
        let [mut idle, mut busy, mut late] = clients.try_into().expect("there are three");
        idle.write_all(GET).await.unwrap();
        let first = read(&mut idle).await;
        busy.write_all(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        late.write_all(&GET[..9]).await.unwrap();
        begun().await.unwrap();
        config.drain();
        late.write_all(&GET[9..]).await.unwrap();
        let end = read(&mut idle).await;
        let last = read(&mut late).await;
        drop((idle, late));
        let finished = read(&mut busy).await;
        drop(busy);
        [first, end, last, finished]
    });
    assert_eq!(ran.output, ["200", "", "200 close", "200 close"]);
    let phases: Vec<&str> = ran.lines(|line| line.contains(" phase "));
    let named = ["close", "drain", "cancel", "cleanup"];
    assert_eq!(phases.len(), named.len(), "{}", ran.trace);
    for (line, name) in phases.iter().zip(named) {
        assert!(line.contains(&format!(" phase    {name} ")), "{line}");
    }
}
