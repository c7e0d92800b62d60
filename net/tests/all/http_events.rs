//! Server-sent events: the bytes on the wire, their times, and the handling of a client that
//! leaves.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use http_support::app::{get, with};
use kernel::{Kernel, Options, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use net::web::{Event, Events};
use traps::shutdown::{hold, until_begun};
use traps::{Signal, Time, clock, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// Sends `count` events, one a second, with a remark every 400 ms. Notes when it is dropped.
struct Ticks(u32, Rc<Cell<Option<&'static str>>>);

impl Handler for Ticks {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let last = Events::last_id(request).and_then(|id| id.parse().ok()).unwrap_or(0);
        let mut events = Events::start(request).await?;
        for number in last + 1..=last + self.0 {
            let wait = events.during(SECOND * 2 / 5, sleep(SECOND)).await;
            if !matches!(wait, Ok(Ok(_))) {
                self.1.set(Some("nobody listens"));
            }
            wait??;
            events.send(&Event::new("tick").with_id(&number.to_string())).await?;
        }
        events.finish()
    }
}

#[test]
fn events_come_when_they_happen_and_remarks_between_them() {
    let ticks = Ticks(2, Rc::default());
    let seen = http_support::app::talk(Sim::new(), Config::default(), ticks, &get("GET /"));
    assert_eq!((seen.statuses(), seen.at), (vec![200], Time::ZERO + 2 * SECOND));
    assert_eq!(seen.field("Content-Type"), Some("text/event-stream"));
    assert_eq!(seen.field("Cache-Control"), Some("no-cache"));
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let tick = |id| chunk(":\n\n").repeat(2) + &chunk(&format!("id: {id}\ndata: tick\n\n"));
    assert_eq!(seen.body(), tick(1) + &tick(2) + "0\r\n\r\n");
    assert!(!seen.closed, "the connection goes on");
}

#[test]
fn head_has_the_head_and_no_events() {
    let ticks = Ticks(1_000, Rc::default());
    let seen = http_support::app::talk(Sim::new(), Config::default(), ticks, &get("HEAD /"));
    assert_eq!((seen.statuses(), seen.body(), seen.closed), (vec![200], "", true));
    assert_eq!(seen.field("Content-Type"), Some("text/event-stream"));
    assert_eq!(seen.at, Time::ZERO, "nobody waits for what is not sent");
}

#[test]
fn a_client_that_comes_back_goes_on_where_it_was() {
    let ticks = Ticks(1, Rc::default());
    let request = with("GET /", "Last-Event-ID: 41");
    let seen = http_support::app::talk(Sim::new(), Config::default(), ticks, &request);
    assert!(seen.body().contains("id: 42\ndata: tick\n\n"), "{}", seen.text);
}

#[test]
fn a_client_that_goes_is_noticed_before_the_next_remark() {
    let mut kernel = Kernel::new(Sim::new());
    let told = Rc::<Cell<_>>::default();
    let ticks = Ticks(1_000, told.clone());
    let ended = kernel.run(async {
        let (server, mut client) = duplex(4096);
        let serve = async move { serve_connection(server, &ticks, &Config::default()).await };
        let mut conn = spawn("conn", serve).await;
        client.write_all(get("GET /").as_bytes()).await.unwrap();
        let mut head = [0; 4096];
        assert!(client.read(&mut head).await.unwrap() > 0, "the head is there before any event");
        assert_eq!(clock().await, Time::ZERO);
        sleep(SECOND * 11 / 10).await.unwrap();
        drop(client);
        conn.join().await.unwrap().unwrap();
        clock().await
    });
    assert_eq!(ended.unwrap(), Time::ZERO + SECOND * 27 / 20);
    assert_eq!(told.get(), Some("nobody listens"));
    kernel.shutdown().unwrap();
}

/// Sends events until the shutdown begins, as in the documentation of [`Events`].
struct UntilShutdown;

impl Handler for UntilShutdown {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let mut events = Events::start(request).await?;
        loop {
            let tick = events.during(SECOND, until_begun(sleep(60 * SECOND))).await?;
            if tick.transpose()?.is_none() {
                return events.finish();
            }
            events.send(&Event::new("tick")).await?;
        }
    }
}

#[test]
fn a_shutdown_ends_events_whose_handler_waits_until_it_has_begun() {
    let sim = Sim::new().signal_at(Time::ZERO + 90 * SECOND, Signal::Interrupt);
    let options = Options::new().shutdown_on(&[Signal::Interrupt]);
    let ran = testing::Setup::new().sim(sim).options(options).run(async {
        let _hold = hold();
        let (server, mut client) = duplex(4096);
        let config = Config::default();
        let serve = async move { serve_connection(server, &UntilShutdown, &config).await };
        let mut conn = spawn("conn", serve).await;
        let request = with("GET /", "Connection: close");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text, 1 << 16).await.unwrap();
        conn.join().await.unwrap().unwrap();
        text
    });
    assert!(ran.output.contains("data: tick\n\n"), "{}", ran.output);
    assert!(ran.output.ends_with("0\r\n\r\n"), "the response is complete: {}", ran.output);
    assert_eq!(ran.took, 90 * SECOND);
}

#[test]
fn an_event_is_the_lines_that_its_parts_make_and_no_others() {
    let text = |event: Event<'_>| event.text().map_err(|error| error.kind());
    for (data, lines) in [
        ("", "data: \n\n"),
        ("a", "data: a\n\n"),
        ("a\nb\r\nc\rd\n", "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"),
        ("id: 7\n\nevent: x", "data: id: 7\ndata: \ndata: event: x\n\n"),
        (": \u{e9}", "data: : \u{e9}\n\n"),
    ] {
        assert_eq!(text(Event::new(data)), Ok(lines.to_owned()), "{data:?}");
    }
    let full = Event::new("d").named("n").with_id("i").with_retry(SECOND);
    assert_eq!(text(full), Ok("event: n\nid: i\nretry: 1000\ndata: d\n\n".to_owned()));
    for bad in ["a\nb", "a\rb", "\0"] {
        assert_eq!(text(Event::new("").with_id(bad)), Err(io::ErrorKind::InvalidInput));
        assert_eq!(text(Event::new("").named(bad)), Err(io::ErrorKind::InvalidInput));
    }
}
