//! Streams of other libraries as streams of trapline: TLS under all that runs over a stream, and
//! hyper over all that a stream is wrapped in.

use std::io::{self, BufRead, ErrorKind, IoSlice, Read, Write};
use std::path::Path;
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use futures_rustls::{TlsAcceptor, TlsConnector, client, server};
use futures_util::{AsyncRead, AsyncWrite};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use kernel::Sim;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::interop::{Compat, FromFutures, KernelExecutor, KernelTimer, TwoWay};
use net::pipe::{PipeEnd, duplex};
use net::web::{Client, ClientRequest};
use net::{
    BufReader, Connection, Frames, Stream, TcpListener, TcpStream, UnixStream, WriteDeadline,
    copy_bidirectional, serve,
};
use support::examples::answer_help_and_refuse_what_is_wrong;
use testing::child;
use traps::{
    Interruptible, Task, connection_deadline, ignore_after, join, shield, sleep, spawn,
    timeout_after,
};

const SECOND: Duration = Duration::from_secs(1);

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|n| (n % 251) as u8).collect()
}

/// A server and a client that trust each other.
fn peers() -> (TlsAcceptor, TlsConnector) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = own.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let key = own.signing_key.serialize_der().try_into().unwrap();
    let server = ServerConfig::builder().with_no_client_auth();
    let mut server = server.with_single_cert(vec![certificate], key).unwrap();
    // The server would wait until a client that has connected reads them.
    server.send_tls13_tickets = 0;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (Arc::new(server).into(), Arc::new(client).into())
}

type Tls<S> =
    (FromFutures<server::TlsStream<Compat<S>>>, FromFutures<client::TlsStream<Compat<S>>>);

/// Makes a TLS connection of two ends.
async fn tls<S: TwoWay>((one, two): (S, S)) -> Tls<S> {
    let (acceptor, connector) = peers();
    let accept = acceptor.accept(Compat::new(one));
    let connect = connector.connect("localhost".try_into().unwrap(), Compat::new(two));
    let (server, client) = join(accept, connect).await;
    (FromFutures::new(server.unwrap()), FromFutures::new(client.unwrap()))
}

async fn read_all(stream: &mut impl Stream) -> io::Result<Vec<u8>> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all, 1 << 24).await?;
    Ok(all)
}

// ---- Streams over TLS ---------------------------------------------------------------------------

#[test]
fn what_is_written_comes_whole_and_ends_clean_though_the_pipe_is_small() {
    for (room, n) in [(10, 1000), (100_000, 300_000)] {
        let ran = testing::run(async move {
            let (mut server, mut client) = tls(duplex(room)).await;
            let write = async {
                server.write_all(&bytes(n)).await?;
                server.shutdown()?;
                server.flush().await?;
                assert_eq!(server.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
                io::Result::Ok(())
            };
            let (written, read) = join(write, read_all(&mut client)).await;
            written.unwrap();
            read.unwrap()
        });
        assert!(ran.output == bytes(n), "{room}");
    }
}

/// The pipe holds less than what is written, and the writer waits for an answer only.
#[test]
fn bytes_that_are_held_back_go_out_while_the_stream_is_read() {
    let ran = testing::run(async {
        let (mut server, mut client) = tls(duplex(50)).await;
        let ask = async {
            assert_eq!(server.write(&bytes(1000)).await?, 1000);
            server.readable().await?;
            let mut answer = [0; 2];
            server.read_exact(&mut answer).await?;
            Ok(answer)
        };
        let answer = async {
            let mut all = vec![0; 1000];
            client.read_exact(&mut all).await?;
            client.write_all(b"ok").await?;
            io::Result::Ok(all)
        };
        join(ask, answer).await
    });
    let (asked, answered): (io::Result<_>, _) = ran.output;
    assert_eq!((asked.unwrap(), answered.unwrap()), (*b"ok", bytes(1000)));
}

#[test]
fn a_wait_without_a_buffer_loses_no_byte_and_sees_the_end() {
    let ran = testing::run(async {
        let (mut server, mut client) = tls(duplex(1000)).await;
        client.write_all(b"hello").await.unwrap();
        server.readable().await.unwrap();
        server.readable().await.unwrap();
        // While a byte is unread, the end after it is not visible.
        assert_eq!(ignore_after(SECOND, server.closed()).await.unwrap(), None);
        let mut buf = [0; 8];
        assert_eq!(server.read(&mut buf).await.unwrap(), 5);
        assert_eq!(&buf[..5], b"hello");
        assert_eq!(ignore_after(SECOND, server.readable()).await.unwrap(), None);
        client.shutdown().unwrap();
        server.closed().await.unwrap();
        server.readable().await.unwrap();
        server.read(&mut buf).await.unwrap()
    });
    assert_eq!(ran.output, 0);
}

#[test]
fn a_reset_is_no_clean_end_for_the_peer() {
    let ran = testing::run(async {
        let (mut server, mut client) = tls(duplex(1000)).await;
        server.write_all(b"a part").await.unwrap();
        server.reset().unwrap();
        assert_eq!(server.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(server);
        read_all(&mut client).await.unwrap_err().kind()
    });
    assert_eq!(ran.output, ErrorKind::UnexpectedEof);
}

/// Repeats what an interrupt has ended.
async fn stubbornly<T>(mut attempt: impl AsyncFnMut() -> io::Result<T>) -> T {
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(error) => assert!(error.interrupt().is_some(), "{error}"),
        }
    }
}

#[test]
fn an_interrupted_operation_has_moved_nothing() {
    let program = || {
        let main = async {
            let ((acceptor, connector), (one, two)) = (peers(), duplex(90));
            let writer = async move {
                // An interrupted handshake has failed.
                let accepted = shield(acceptor.accept(Compat::new(one))).await.unwrap();
                let mut server = FromFutures::new(accepted);
                let (all, mut at) = (bytes(300), 0);
                while at < all.len() {
                    let piece = &all[at..all.len().min(at + 100)];
                    at += stubbornly(async || server.write(piece).await).await;
                }
                stubbornly(async || server.flush().await).await;
                server.shutdown().unwrap();
                stubbornly(async || server.sent().await).await;
            };
            let mut writer = spawn("writer", writer).await;
            let reader = async move {
                let connect = connector.connect("localhost".try_into().unwrap(), Compat::new(two));
                let mut client = FromFutures::new(shield(connect).await.unwrap());
                let (mut all, mut piece) = (Vec::new(), [0; 70]);
                loop {
                    stubbornly(async || client.readable().await).await;
                    match stubbornly(async || client.read(&mut piece).await).await {
                        0 => return all,
                        n => all.extend_from_slice(&piece[..n]),
                    }
                }
            };
            let mut reader = spawn("reader", reader).await;
            loop {
                if let Ok(all) = reader.join().await {
                    while writer.join().await.is_err() {}
                    return all;
                }
            }
        };
        (Sim::new(), main)
    };
    let swept = testing::sweep(program).check(|_, ran| assert_eq!(ran.output, bytes(300)));
    assert!(swept.runs > 20, "{}", swept.runs);
}

#[test]
fn lines_and_frames_and_copies_go_over_tls() {
    let ran = testing::run(async {
        let (server, client) = tls(duplex(100)).await;
        let (mut proxy, far) = tls(duplex(100)).await;
        let echo = async move {
            let mut frames = Frames::new(far, 100_000);
            while let Some(frame) = frames.read().await? {
                let frame = frame.to_vec();
                frames.write(&frame).await?;
            }
            frames.stream().shutdown()?;
            frames.stream().flush().await
        };
        let mut server = server;
        let mut echo = spawn("echo", echo).await;
        let copy = async move { copy_bidirectional(&mut server, &mut proxy).await };
        let mut copy = spawn("copy", copy).await;
        let mut frames = Frames::new(client, 100_000);
        for n in [0, 1, 5000] {
            frames.write(&bytes(n)).await.unwrap();
            assert!(frames.read().await.unwrap().unwrap() == bytes(n));
        }
        let (mut stream, rest) = frames.into_parts();
        assert!(rest.is_empty());
        stream.shutdown().unwrap();
        assert_eq!(BufReader::new(&mut stream).lines(10).next().await.unwrap(), None);
        echo.join().await.unwrap().unwrap();
        copy.join().await.unwrap().unwrap()
    });
    assert_eq!(ran.output, (5013, 5013));
}

// ---- HTTP over TLS ------------------------------------------------------------------------------

struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        if request.path() == "/slow" {
            sleep(SECOND * 3).await?;
        }
        let is_endless = request.path() == "/endless";
        if is_endless || request.path() == "/stream" {
            let mut answer = request.start(Response::new(200)).await?;
            answer.write(b"a part").await?;
            answer.flush().await?;
            if is_endless {
                sleep(SECOND * 20).await?;
            }
            return answer.finish();
        }
        let mut body = Vec::new();
        while let Some(piece) = request.read_chunk().await? {
            body.extend_from_slice(piece);
        }
        Ok(Response::text(format!("{} {}", request.path(), body.len())))
    }
}

#[test]
fn the_client_and_the_server_of_http_speak_tls() {
    let ran = testing::run(async {
        let (server, client) = tls(duplex(300)).await;
        let serve = async move { serve_connection(server, &App, &Config::default()).await };
        let mut served = spawn("server", serve).await;
        let mut client = Client::new(client);
        let mut bodies = Vec::new();
        for (target, body) in [("/", 0), ("/slow", 10), ("/big", 50_000)] {
            let request =
                ClientRequest::new("POST", "localhost", target).unwrap().with_body(bytes(body));
            let mut response = client.send(&request).await.unwrap();
            assert_eq!(response.status(), 200);
            bodies.push(String::from_utf8(response.body_to_vec(1 << 20).await.unwrap()).unwrap());
        }
        // The client leaves without `close_notify`.
        drop(client);
        let ended = served.join().await.unwrap();
        (bodies, ended.map_err(|error| error.kind()))
    });
    let bodies = ["/ 0", "/slow 10", "/big 50000"].map(str::to_owned).to_vec();
    assert_eq!(ran.output, (bodies, Err(ErrorKind::UnexpectedEof)));
}

#[test]
fn a_client_that_leaves_ends_a_handler_that_still_waits() {
    let ran = testing::run(async {
        let (server, mut client) = tls(duplex(1000)).await;
        let serve = async move { serve_connection(server, &App, &Config::default()).await };
        let mut served = spawn("server", serve).await;
        client.write_all(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        client.shutdown().unwrap();
        let at = traps::clock().await;
        let _ = served.join().await.unwrap();
        traps::clock().await.since(at)
    });
    assert!(ran.output < SECOND * 3, "{:?}", ran.output);
}

/// Serves one TLS connection to a client that sends `request`, and reads up to the end. `until`
/// runs at the same time as both, with the server's configuration. Returns the bytes, and the kind
/// of the error if the end was no `close_notify`.
fn end_of(
    room: usize,
    request: &'static [u8],
    until: impl AsyncFnOnce(&Config, &mut Task<io::Result<()>>) + 'static,
) -> (Vec<u8>, Result<(), ErrorKind>) {
    let ran = testing::run(async move {
        let (server, mut client) = tls(duplex(room)).await;
        let config = Rc::new(Config::default());
        let theirs = config.clone();
        let serve = async move { serve_connection(server, &App, &theirs).await };
        let mut served = spawn("server", serve).await;
        client.write_all(request).await.unwrap();
        let mut got = Vec::new();
        let read = async {
            // The server waits until everything has gone out, however small the pipe is.
            sleep(SECOND / 2).await.unwrap();
            client.read_to_end(&mut got, 1 << 24).await
        };
        let (read, ()) = join(read, until(&config, &mut served)).await;
        drop(client);
        let _ = served.join().await;
        (got, read.map_err(|error| error.kind()))
    });
    ran.output
}

/// RFC 9112, 9.8: a server must send `close_notify` before it closes.
#[test]
fn each_end_of_a_connection_is_a_close_notify() {
    let nothing = async |_: &Config, _: &mut Task<_>| {};
    let requests: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        // The body ends with the connection.
        b"GET /stream HTTP/1.0\r\n\r\n",
        // The idle deadline.
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        // Refused: a bad head, a body without an end, and a head without one.
        b"GET /\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n",
        b"GET / HT",
    ];
    for request in requests {
        for room in [50, 1000, 1 << 20] {
            let (got, end) = end_of(room, request, nothing);
            let case = String::from_utf8_lossy(request);
            assert!(got.starts_with(b"HTTP/1.1 "), "{room} {case:?}: {got:?}");
            assert_eq!(end, Ok(()), "{room} {case:?}");
        }
    }
    assert_eq!(end_of(1000, b"", nothing), (Vec::new(), Ok(())), "silent");
    let idle = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let drain = async |config: &Config, _: &mut Task<_>| {
        sleep(SECOND).await.unwrap();
        config.drain();
    };
    assert_eq!(end_of(1000, idle, drain).1, Ok(()), "drained");
    assert_eq!(end_of(1000, b"", drain).1, Ok(()), "drained without a request");
    for request in [&idle[..], b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"] {
        let cancel = async |_: &Config, served: &mut Task<_>| {
            sleep(SECOND).await.unwrap();
            served.cancel().await.unwrap();
        };
        assert_eq!(end_of(1000, request, cancel).1, Ok(()), "cancelled");
    }
}

#[test]
fn a_body_that_ends_with_the_connection_and_breaks_off_has_no_close_notify() {
    let cancel = async |_: &Config, served: &mut Task<_>| {
        sleep(SECOND).await.unwrap();
        served.cancel().await.unwrap();
    };
    let (got, end) = end_of(1000, b"GET /endless HTTP/1.0\r\n\r\n", cancel);
    assert!(got.ends_with(b"a part"), "{got:?}");
    assert_eq!(end, Err(ErrorKind::UnexpectedEof));
}

/// The pipe has no room for them when they are written, so the TLS stream holds them back.
#[test]
fn responses_that_a_tls_stream_holds_back_come_whole_before_the_end() {
    for request in [
        &b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"[..],
        b"GET /stream HTTP/1.0\r\n\r\n",
    ] {
        let nothing = async |_: &Config, _: &mut Task<_>| {};
        let whole = end_of(1 << 20, request, nothing);
        assert_eq!(end_of(50, request, nothing), whole);
    }
}

// ---- hyper over wrapped streams -----------------------------------------------------------------

async fn answer(request: hyper::Request<Incoming>) -> io::Result<hyper::Response<Full<Bytes>>> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.map_err(io::Error::other)?;
    let text = format!("{path} {}", body.to_bytes().len());
    Ok(hyper::Response::new(Full::new(text.into())))
}

/// Serves with hyper at one end, and asks with hyper at the other.
async fn hyper_at_both<S, C>(server: S, client: C) -> String
where
    S: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
    C: hyper::rt::Read + hyper::rt::Write + Unpin + 'static,
{
    let serve = async move {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(KernelTimer).serve_connection(server, service_fn(answer)).await
    };
    spawn("server", serve).detached().await;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(client).await.unwrap();
    hyper::rt::Executor::execute(&KernelExecutor, async move { drop(connection.await) });
    let request = hyper::Request::post("/a").header("Host", "x");
    let request = request.body(Full::new(Bytes::from(bytes(20_000)))).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[test]
fn hyper_goes_over_tls_and_over_a_buffer() {
    let ran = testing::run(async {
        let (server, client) = tls(duplex(500)).await;
        let by_tls = hyper_at_both(server, client).await;

        // The first byte of the request is in the buffer already.
        let (one, mut two) = duplex(500);
        two.write_all(b"G").await.unwrap();
        let mut server = BufReader::new(one);
        server.fill().await.unwrap();
        let serve = async move {
            let builder = hyper::server::conn::http1::Builder::new();
            builder.serve_connection(Compat::new(server), service_fn(answer)).await
        };
        spawn("server", serve).detached().await;
        two.write_all(b"ET /b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let buffered = String::from_utf8(read_all(&mut two).await.unwrap()).unwrap();
        (by_tls, buffered)
    });
    assert_eq!(ran.output.0, "/a 20000");
    assert!(ran.output.1.ends_with("\r\n\r\n/b 0"), "{}", ran.output.1);
}

#[test]
fn hyper_goes_over_a_served_connection() {
    let body = kernel::run(async {
        let mut listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut is_first = true;
        let accept = async move || match std::mem::take(&mut is_first) {
            true => listener.accept_stream().await.map(Some),
            false => Ok(None),
        };
        let client = async {
            let tcp = TcpStream::connect(address).await.unwrap();
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(Compat::new(tcp)).await.unwrap();
            hyper::rt::Executor::execute(&KernelExecutor, async move { drop(connection.await) });
            let request = hyper::Request::get("/").header("Host", "x");
            let request = request.body(Full::<Bytes>::default()).unwrap();
            let answer = sender.send_request(request).await.unwrap();
            answer.into_body().collect().await.unwrap().to_bytes()
        };
        let handle = async |stream: Connection<TcpStream>| {
            let builder = hyper::server::conn::http1::Builder::new();
            builder.serve_connection(Compat::new(stream), service_fn(answer)).await
        };
        let (served, body) = join(serve(accept, 1, handle), client).await;
        served.unwrap();
        body
    });
    assert_eq!(body.unwrap(), "/ 0");
}

#[test]
fn halves_have_the_traits_of_futures_in_their_direction() {
    use futures_util::{AsyncReadExt, AsyncWriteExt};
    kernel::run(async {
        let (one, two) = UnixStream::pair().unwrap();
        let (mut reader, mut writer) = (Compat::new(one.into_split().0), Compat::new(two));
        writer.write_all(b"hello").await.unwrap();
        let mut buf = [0; 5];
        reader.read_exact(&mut buf).await.unwrap();
        assert_eq!(&buf, b"hello");
        assert_eq!(reader.write(b"x").await.unwrap_err().kind(), ErrorKind::Unsupported);
    })
    .unwrap();
}

// ---- The examples ------------------------------------------------------------------------------

#[test]
fn each_example_answers_help_and_refuses_an_option_that_it_does_not_have() {
    for (folder, package, examples) in [
        ("examples/tls", "trapline-example-tls", 4),
        ("examples/hyper", "trapline-example-hyper", 3),
    ] {
        assert_eq!(answer_help_and_refuse_what_is_wrong(folder, Some(package)), examples);
    }
}

/// Half of the clients are silent, and half stop in the midst of the handshake.
#[test]
fn the_server_serves_beside_handshakes_that_never_end_and_its_drain_does_not_wait_for_them() {
    let built = support::examples::build_of("trapline-example-tls");
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).join("handshakes.pem");
    let mut server = Command::new(built.join("https_server"));
    server.arg(&own).args(["--addr", "127.0.0.1:0"]);
    let mut server = child::spawn(server.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    io::BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on 127.0.0.1:").unwrap().to_owned();
    let silent: Vec<std::net::TcpStream> = (0..50)
        .map(|n| {
            let mut client = std::net::TcpStream::connect(format!("127.0.0.1:{addr}")).unwrap();
            // The head of a record that does not come.
            client.write_all(if n % 2 == 0 { b"" } else { &[22, 3, 1, 2, 0] }).unwrap();
            client
        })
        .collect();
    let mut client = Command::new(built.join("https_client"));
    let page = child::output(client.arg(format!("localhost:{addr}")).arg("/page").arg(&own));
    assert_eq!(String::from_utf8_lossy(&page.stdout), "This is /page, by TLS.\n");
    server.send("TERM");
    for mut client in silent {
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    let ended = server.wait_with_output();
    let log = String::from_utf8(ended.stderr).unwrap();
    // The drain is ten seconds; work that it cuts off makes the code 1.
    assert_eq!(ended.status.code(), Some(0), "{log}");
    assert!(!log.contains("cut off"), "{log}");
}

// ---- A stream that holds all bytes back ---------------------------------------------------------

/// Takes all bytes at once, and passes them on only when it is flushed or closed.
struct Lazy {
    stream: Compat<PipeEnd>,
    held: Vec<u8>,
}

impl AsyncRead for Lazy {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Lazy {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.held.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let Lazy { stream, held } = &mut *self;
            let n = std::task::ready!(Pin::new(stream).poll_write(cx, held))?;
            held.drain(..n);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.as_mut().poll_flush(cx))?;
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

#[test]
fn all_that_writes_a_message_flushes_it() {
    let ran = testing::run(async {
        let (one, mut two) = duplex(1000);
        let mut lazy = FromFutures::new(Lazy { stream: Compat::new(one), held: Vec::new() });
        let mut heard = Vec::new();
        let mut buf = [0; 100];
        lazy.write_all(b"a").await.unwrap();
        heard.push(two.read(&mut buf).await.unwrap());
        Frames::new(&mut lazy, 10).write(b"frame").await.unwrap();
        heard.push(two.read(&mut buf).await.unwrap());
        let deadline = WriteDeadline::new(connection_deadline().await, SECOND);
        deadline.write_all(&mut lazy, b"abcd").await.unwrap();
        heard.push(two.read(&mut buf).await.unwrap());
        BufReader::new(&mut lazy).write_all(b"ab").await.unwrap();
        heard.push(two.read(&mut buf).await.unwrap());
        let (mut near, mut far) = duplex(10);
        far.write_all(b"abc").await.unwrap();
        far.shutdown().unwrap();
        net::copy(&mut near, &mut lazy).await.unwrap();
        heard.push(two.read(&mut buf).await.unwrap());
        let request = ClientRequest::new("GET", "x", "/").unwrap();
        let sent =
            timeout_after(SECOND, async { Client::new(&mut lazy).send(&request).await.map(drop) });
        assert!(sent.await.is_err());
        heard.push(two.read(&mut buf).await.unwrap());
        assert_eq!(lazy.write_vectored(&[IoSlice::new(b"late")]).await.unwrap(), 4);
        assert_eq!(ignore_after(SECOND, two.read(&mut buf)).await.unwrap(), None);
        lazy.shutdown().unwrap();
        heard.push(two.read(&mut buf).await.unwrap());
        heard.push(two.read(&mut buf).await.unwrap());
        heard
    });
    assert_eq!(ran.output[..5], [1, 9, 4, 2, 3]);
    assert_eq!(ran.output[6..], [4, 0]);
}
