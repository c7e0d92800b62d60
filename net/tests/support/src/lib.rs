//! A handler to be tested, and a client on the other end of a pipe, on a simulated machine.

pub mod app;
pub mod corpus;
pub mod hostile;
pub mod mistakes;
pub mod served;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Event, Line};
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Deadlines, Handler, Limits, Method, Request, Response, serve_connection};
use net::pipe::{PipeEnd, duplex};
use traps::{Either, Time, clock, spawn};

#[derive(Clone)]
pub struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        match (request.method(), request.path()) {
            (Method::Get, "/") => Ok(Response::text("Hello, World!")),
            (_, "/") => Ok(Response::method_not_allowed("GET, HEAD")?),
            (Method::Get, "/path") => Ok(Response::text(format!("{:?}", request))),
            (Method::Get, "/none") => Ok(Response::new(204)),
            (Method::Get, "/big") => Ok(Response::new(200).with_body(vec![b'x'; 100_000])),
            (Method::Get, "/fail") => Err(io::Error::other("a file is missing")),
            (Method::Get, "/bye") => Ok(Response::text("bye").and_close()),
            (Method::Get, "/sleep") => {
                traps::sleep(Duration::from_millis(500)).await?;
                Ok(Response::text("slept"))
            }
            (Method::Get, "/stream") => {
                let mut response = Response::new(200).header("X-Kind", "stream")?;
                if let Some(length) = request.query_value("length") {
                    response = response.with_length(length.parse().map_err(io::Error::other)?);
                }
                let mut answer = request.start(response).await?;
                for piece in [&b"one"[..], b"", b" and two"] {
                    answer.write(piece).await?;
                }
                answer.finish()
            }
            (Method::Post, "/echo") => {
                let kind = request.header("content-type").map(<[u8]>::to_vec);
                let kind = kind.unwrap_or_else(|| b"application/octet-stream".to_vec());
                let mut response = Response::new(200).header("Content-Type", kind)?;
                if let Some(length) = request.body_length() {
                    response = response.with_length(length);
                }
                let mut answer = request.start(response).await?;
                while answer.forward().await? {}
                answer.finish()
            }
            (Method::Post, "/count") => {
                let mut count = 0;
                while let Some(piece) = request.read_chunk().await? {
                    count += piece.len();
                }
                Ok(Response::text(format!("{count}")))
            }
            (Method::Post, "/slowly") => {
                while request.read_chunk().await?.is_some() {
                    traps::sleep(Duration::from_secs(8)).await?;
                }
                Ok(Response::text("slowly"))
            }
            (Method::Post, "/beside") => loop {
                let chunk = async { Ok(request.read_chunk().await?.is_some()) };
                let tick = traps::sleep(Duration::from_secs(1));
                match traps::race(chunk, tick).await {
                    Either::Left(Ok(true)) | Either::Right(Ok(_)) => {}
                    Either::Left(Ok(false)) => return Ok(Response::text("beside")),
                    Either::Left(Err(error)) => return Err(error),
                    Either::Right(Err(interrupt)) => return Err(interrupt.into()),
                }
            },
            (Method::Post, "/small") => {
                let body = request.body_to_vec(10).await?;
                Ok(Response::new(200).with_body(body))
            }
            (Method::Post, "/patient") => {
                let wait = traps::ignore_after(Duration::from_secs(1), request.read_chunk());
                let came = wait.await?.is_some();
                Ok(Response::new(if came { 200 } else { 503 }))
            }
            (Method::Post, "/ignore") => Ok(Response::text("ignored")),
            (_, "/host") => Ok(Response::text(request.host().unwrap_or("none").to_owned())),
            (_, "/reset") => Ok(Response::new(205).with_text("nothing")),
            (_, "/stale") => Ok(Response::new(304).with_text("nothing")),
            (Method::Trace, "/trace") => Ok(Response::text("traced")),
            (Method::Post, "/trailers") => {
                assert_eq!(request.trailer("x"), None, "not before the body was read");
                while request.read_chunk().await?.is_some() {}
                let of = |name| request.trailers(name).map(<[u8]>::to_vec).collect::<Vec<_>>();
                let (x, host) = (of("X").join(&b'|'), request.header("x").is_some());
                Ok(Response::text(format!("{} {host}", String::from_utf8_lossy(&x))))
            }
            (Method::Post, "/forbidden") => {
                let answer = request.start(Response::new(403).with_length(0)).await?;
                answer.finish()
            }
            (Method::Options, "*") => Ok(Response::new(204).header("Allow", "GET, POST")?),
            _ => Ok(Response::new(404).with_text("not here\n")),
        }
    }
}

/// One thing that the client does.
pub enum Act<'a> {
    Send(&'a [u8]),
    Sleep(Duration),
    /// Ends its direction.
    Finish,
}

/// What the client saw.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub text: String,
    /// When the server closed, if it did before the client went away.
    pub closed_at: Option<Time>,
    /// The times at which bytes arrived, and their numbers.
    pub reads: Vec<(Time, usize)>,
}

impl Seen {
    /// The status codes of the answers, in order.
    pub fn statuses(&self) -> Vec<u16> {
        let lines = self.text.split("HTTP/1.1 ").skip(1);
        lines.filter_map(|line| line.get(..3)?.parse().ok()).collect()
    }
}

pub fn talk(acts: &[Act<'_>]) -> Seen {
    talk_with(Config::default(), 1 << 20, acts)
}

/// Runs one connection: the acts, then reads until the server closes, or 100 ms after the last act.
pub fn talk_with(config: Config, capacity: usize, acts: &[Act<'_>]) -> Seen {
    talk_in_pieces(config, capacity, usize::MAX, acts)
}

/// Talks to a server that reads and writes at most `most` bytes at a time.
pub fn talk_in_pieces(config: Config, capacity: usize, most: usize, acts: &[Act<'_>]) -> Seen {
    talk_to(App, config, capacity, most, acts)
}

/// Talks to a server with that handler.
pub fn talk_to(
    handler: impl Handler + 'static,
    config: Config,
    capacity: usize,
    most: usize,
    acts: &[Act<'_>],
) -> Seen {
    let mut kernel = Kernel::new(Sim::new());
    let (mut server, mut client) = duplex(capacity);
    server.set_short_reads(most);
    let seen = kernel.run(async {
        let mut conn =
            spawn("conn", async move { serve_connection(server, &handler, &config).await }).await;
        let mut seen = Seen { text: String::new(), closed_at: None, reads: Vec::new() };
        for act in acts {
            match act {
                Act::Send(bytes) => {
                    let mut rest = *bytes;
                    while !rest.is_empty() {
                        match client.write(rest).await {
                            Ok(n) => rest = &rest[n..],
                            Err(_) => break,
                        }
                    }
                }
                Act::Sleep(span) => listen(&mut client, *span, &mut seen).await,
                Act::Finish => client.shutdown().expect("a pipe can be shut down"),
            }
        }
        listen(&mut client, Duration::from_millis(100), &mut seen).await;
        drop(client);
        if seen.closed_at.is_some() {
            conn.join().await.expect("the connection's task ends well").ok();
        }
        seen
    });
    kernel.shutdown().expect("it shuts down");
    seen.expect("nothing hangs")
}

/// Reads for so long.
async fn listen(client: &mut PipeEnd, span: Duration, seen: &mut Seen) {
    let until = clock().await + span;
    let mut buf = [0; 65_536];
    while seen.closed_at.is_none() {
        match traps::ignore_at(until, client.read(&mut buf)).await {
            Ok(None) => return,
            Ok(Some(0)) | Err(_) => seen.closed_at = Some(clock().await),
            Ok(Some(n)) => {
                seen.text.push_str(&String::from_utf8_lossy(&buf[..n]));
                seen.reads.push((clock().await, n));
            }
        }
    }
    traps::sleep(until.since(clock().await)).await.expect("nobody cancels the client");
}

pub fn limits(change: impl FnOnce(&mut Limits)) -> Config {
    let mut limits = Limits::default();
    change(&mut limits);
    Config::new(limits, Deadlines::default())
}

pub fn deadlines(change: impl FnOnce(&mut Deadlines)) -> Config {
    let mut deadlines = Deadlines::default();
    change(&mut deadlines);
    Config::new(Limits::default(), deadlines)
}

/// A kernel that collects its `cap` lines.
pub fn kernel_with_caps() -> (Kernel<Sim>, Rc<RefCell<Vec<String>>>) {
    let caps = Rc::new(RefCell::new(Vec::new()));
    let heard = caps.clone();
    let mut kernel = Kernel::new(Sim::new());
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Cap { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    (kernel, caps)
}
