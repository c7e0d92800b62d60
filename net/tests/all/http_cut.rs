//! A response that ends with its connection, as for HTTP/1.0, and breaks off: the client must never
//! take it for a complete one.

use std::future::Future;
use std::io::{self, ErrorKind, IoSlice};
use std::time::Duration;

use http_support::deadlines;
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::{PipeEnd, duplex};
use traps::Site;
use traps::{Either, ignore_after, race, sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

/// One end of a pipe that is reset as a socket is: by closing it, and only if it has not ended
/// before.
struct Socket {
    end: PipeEnd,
    resets: bool,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.resets {
            self.end.reset().unwrap();
        }
    }
}

impl Stream for Socket {
    fn read_from(&mut self, buf: &mut [u8], site: Site) -> impl Future<Output = io::Result<usize>> {
        self.end.read_from(buf, site)
    }

    fn write_from(
        &mut self,
        bufs: &[IoSlice<'_>],
        site: Site,
    ) -> impl Future<Output = io::Result<usize>> {
        self.end.write_from(bufs, site)
    }

    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        self.end.readable()
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.end.shutdown()
    }

    fn reset(&mut self) -> io::Result<()> {
        self.resets = true;
        Ok(())
    }
}

struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let path = request.path().to_owned();
        let mut answer = request.start(Response::new(200)).await?;
        answer.write(b"some").await?;
        let large = vec![b'x'; 100_000];
        match path.as_str() {
            "/whole" => {}
            "/flushed" => answer.flush().await?,
            "/working" => {
                let whole = answer.finish()?;
                sleep(10 * SECOND).await?;
                return Ok(whole);
            }
            "/gathered" => answer.write(&large[..12_000]).await?,
            "/fails" => return Err(io::Error::other("a file is missing")),
            "/panics" => panic!("something is missing"),
            "/dropped" => return Ok(Response::text("other")),
            "/slow" => drop(sleep(10 * SECOND).await?),
            "/cut" => timeout_after(SECOND, answer.write(&large)).await?,
            "/cut-and-finished" => {
                assert!(ignore_after(SECOND, answer.write(&large)).await?.is_none());
                assert!(answer.write(b"the end").await.is_err());
            }
            "/cut-and-refused" => {
                assert!(ignore_after(SECOND, answer.write(&large)).await?.is_none());
                assert!(answer.request().body_to_vec(1).await.is_err());
            }
            "/reads" => while answer.request().read_chunk().await?.is_some() {},
            path => unreachable!("{path}"),
        }
        answer.finish()
    }
}

/// How the response ends for a client that sends `request` and then reads nothing for a while.
fn end_of(config: Config, request: &str, cancel: bool) -> io::Result<usize> {
    let mut kernel = Kernel::new(Sim::new());
    let (end, mut client) = duplex(10_000);
    let ended = kernel.run(async {
        client.write_all(request.as_bytes()).await.unwrap();
        let serve = async move {
            let socket = Socket { end, resets: false };
            serve_connection(socket, &App, &config).await
        };
        let conn = spawn("conn", serve).await;
        sleep(5 * SECOND).await.unwrap();
        if cancel {
            conn.cancel_because("enough").await.unwrap();
        }
        let (mut buf, mut read) = (vec![0; 10_000], 0);
        loop {
            match client.read(&mut buf).await {
                Ok(0) => return Ok(read),
                Ok(n) => read += n,
                Err(error) => return Err(error),
            }
        }
    });
    drop(client);
    kernel.shutdown().unwrap();
    ended.unwrap()
}

#[test]
fn an_answer_that_ends_with_the_connection_and_breaks_off_is_reset() {
    let limited = || deadlines(|deadlines| deadlines.handler = 2 * SECOND);
    let get = |path: &str, rest: &str| format!("GET {path} HTTP/1.0\r\n\r\n{rest}");
    // What follows the request has the server read on after an answer that is whole.
    for rest in ["", "x"] {
        assert!(end_of(Config::default(), &get("/whole", rest), false).is_ok(), "{rest:?}");
        assert!(end_of(Config::default(), &get("/flushed", rest), false).is_ok(), "{rest:?}");
        for path in ["/fails", "/panics", "/dropped", "/slow", "/cut", "/cut-and-finished"] {
            let ended = end_of(limited(), &get(path, rest), false);
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset, "{path}, {rest:?}");
        }
        for path in ["/slow", "/cut"] {
            let ended = end_of(Config::default(), &get(path, rest), true);
            assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset, "{path}, {rest:?}");
        }
    }
    let refused = "POST /cut-and-refused HTTP/1.0\r\nContent-Length: 9\r\n\r\nabc";
    let ended = end_of(Config::default(), refused, false);
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let post = "POST /reads HTTP/1.0\r\nContent-Length: 9\r\n\r\nabc";
    let brief = deadlines(|deadlines| deadlines.body = SECOND);
    assert_eq!(end_of(brief, post, false).unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[test]
fn an_answer_that_ends_with_a_connection_which_is_dropped_is_reset_unless_it_is_all_out() {
    for (path, is_whole) in [
        ("/slow", false),
        ("/cut", false),
        ("/gathered", false),
        ("/whole", true),
        ("/working", true),
    ] {
        let mut kernel = Kernel::new(Sim::new());
        let (end, mut client) = duplex(10_000);
        let ended = kernel.run(async {
            // What follows the request has the server read on after an answer that is whole.
            let get = format!("GET {path} HTTP/1.0\r\n\r\nx");
            client.write_all(get.as_bytes()).await.unwrap();
            let socket = Socket { end, resets: false };
            let config = Config::default();
            let serve = serve_connection(socket, &App, &config);
            assert!(matches!(race(serve, sleep(SECOND / 2)).await, Either::Right(_)), "{path}");
            let mut buf = vec![0; 10_000];
            loop {
                match client.read(&mut buf).await {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) => return Err(error.kind()),
                }
            }
        });
        let expected = if is_whole { Ok(()) } else { Err(ErrorKind::ConnectionReset) };
        assert_eq!(ended.unwrap(), expected, "{path}");
    }
}

#[test]
fn a_handler_that_lets_go_of_a_large_piece_of_its_answer_fails_alone() {
    let (end, mut client) = duplex(1_000);
    let ran = testing::run(async move {
        client.write_all(b"GET /cut HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let socket = Socket { end, resets: false };
        serve_connection(socket, &App, &Config::default()).await
    });
    ran.output.expect("it is no failure of the connection");
    assert_eq!(ran.trace.matches("warn     a handler failed: ").count(), 1, "{}", ran.trace);
}
