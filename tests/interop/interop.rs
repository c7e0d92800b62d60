//! Other libraries on trapline: the polled traits, hyper's server and client, rustls.

#[allow(dead_code, reason = "what the tests call is a part")]
#[path = "../../examples/hyper/hyper_client.rs"]
mod hyper_client;
#[allow(dead_code, reason = "what the tests call is a part")]
#[path = "../../examples/hyper/hyper_server.rs"]
mod hyper_server;
#[allow(dead_code, reason = "what the tests call is a part")]
#[path = "../../examples/tls/tls_echo.rs"]
mod tls_echo;

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use bytes::Bytes;
use futures_rustls::pki_types::ServerName;
use futures_rustls::rustls::{ClientConfig, RootCertStore};
use futures_rustls::{TlsAcceptor, TlsConnector};
use futures_util::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::rt::{Executor, Timer};
use hyper::service::service_fn;
use hyper::{Request, Response, client, server};
use kernel::Sim;
use net::interop::{Compat, KernelExecutor, KernelTimer, ThreadBound, TwoWay, io_error};
use net::pipe::{PipeEnd, duplex};
use net::process::Pipe;
use net::{TcpListener, TcpStream};
use support::kernels::*;
use traps::{
    Interrupt, Interruptible, Kind, Time, clock, ignore_after, join, sleep, spawn, timeout_after,
};

/// A connection over the loopback.
async fn loopback() -> (TcpStream, TcpStream) {
    let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = TcpStream::connect(listener.local_addr().unwrap());
    let (client, accepted) = join(connect, listener.accept_stream()).await;
    (client.unwrap(), accepted.unwrap())
}

fn seconds(n: u64) -> Time {
    Time::from_micros(n * 1_000_000)
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|n| (n % 251) as u8).collect()
}

// ---- The polled traits -------------------------------------------------------------------------

/// Sends `n` bytes and reads until the end, in one task.
async fn swap(stream: impl AsyncRead + AsyncWrite, n: usize) -> io::Result<Vec<u8>> {
    let (mut reader, mut writer) = stream.split();
    let mut back = Vec::new();
    let write = async {
        writer.write_all(&bytes(n)).await?;
        writer.close().await
    };
    futures_util::try_join!(reader.read_to_end(&mut back), write)?;
    Ok(back)
}

async fn swap_both<S: TwoWay>(one: S, two: S, n: usize) -> (Vec<u8>, Vec<u8>) {
    let (one, two) = join(swap(Compat::new(one), n), swap(Compat::new(two), n)).await;
    (one.unwrap(), two.unwrap())
}

#[test]
fn both_directions_of_a_stream_wait_in_one_task() {
    // More bytes than a pipe or a socket holds, so a writer that blocked the reader would wait
    // forever.
    let (mut one, two) = duplex(10);
    one.set_short_reads(3);
    let ran = testing::run(swap_both(one, two, 1000));
    assert_eq!(ran.output, (bytes(1000), bytes(1000)));

    let n = 8 << 20;
    let (swapped, _) = on_real(async {
        let (one, two) = loopback().await;
        swap_both(one, two, n).await
    });
    assert!(swapped == (bytes(n), bytes(n)));
}

#[test]
fn a_pipe_to_a_process_ends_by_its_close() {
    let (back, _) = on_real(async {
        let (reader, writer) = io::pipe().unwrap();
        let mut reader = Compat::new(Pipe::new(reader).unwrap());
        let mut writer = Compat::new(Pipe::new(writer).unwrap());
        let sent = bytes(200_000);
        let mut back = Vec::new();
        let write = async {
            writer.write_all(&sent).await.unwrap();
            writer.close().await.unwrap();
            let late = writer.write(b"late").await;
            assert_eq!(late.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        };
        join(write, reader.read_to_end(&mut back)).await.1.unwrap();
        back
    });
    assert_eq!(back, bytes(200_000));
}

#[test]
fn a_close_after_a_reset_is_no_error() {
    let (read, closed) = on_real(async {
        let (mut one, two) = loopback().await;
        net::Stream::reset(&mut one).unwrap();
        drop(one);
        let mut stream = Compat::new(two);
        let read = stream.read(&mut [0]).await;
        (read.map_err(|error| error.kind()), stream.close().await)
    })
    .0;
    assert_eq!(read, Err(io::ErrorKind::ConnectionReset));
    closed.unwrap();
}

#[test]
fn slices_without_a_byte_are_passed_over() {
    async fn write(stream: impl TwoWay) {
        let mut stream = Compat::new(stream);
        let mut slices = vec![IoSlice::new(b""); 1024];
        assert_eq!(stream.write_vectored(&slices).await.unwrap(), 0);
        slices.push(IoSlice::new(b"a"));
        assert_eq!(stream.write_vectored(&slices).await.unwrap(), 1);
        let cx = &mut Context::from_waker(Waker::noop());
        let written = hyper::rt::Write::poll_write_vectored(Pin::new(&mut stream), cx, &slices);
        assert!(matches!(written, Poll::Ready(Ok(1))), "{written:?}");
    }
    on_real(async {
        let (near, _far) = duplex(10);
        write(near).await;
        let (_reader, writer) = io::pipe().unwrap();
        write(Pipe::new(writer).unwrap()).await;
        let (one, _two) = loopback().await;
        write(one).await;
    });
}

/// Reads everything, and begins again after each interrupt.
async fn read_stubbornly(mut stream: Compat<PipeEnd>) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), [0; 4]);
    loop {
        match stream.read(&mut piece).await {
            Ok(0) => return all,
            Ok(n) => all.extend_from_slice(&piece[..n]),
            Err(error) => assert!(error.interrupt().is_some(), "{error}"),
        }
    }
}

async fn write_stubbornly(mut stream: Compat<PipeEnd>, all: Vec<u8>) {
    let mut rest = &all[..];
    while !rest.is_empty() {
        match stream.write(rest).await {
            Ok(n) => rest = &rest[n..],
            Err(error) => assert!(error.interrupt().is_some(), "{error}"),
        }
    }
}

#[test]
fn an_interrupted_operation_has_moved_nothing() {
    let program = || {
        let main = async {
            let (one, two) = duplex(7);
            let got = Rc::new(Cell::new(Vec::new()));
            let theirs = got.clone();
            let reader = async move { theirs.set(read_stubbornly(Compat::new(one)).await) };
            drop(spawn("reader", reader).await);
            drop(spawn("writer", write_stubbornly(Compat::new(two), bytes(50))).await);
            // The tasks continue after main was interrupted.
            while sleep(secs(1)).await.is_err() {}
            got.take()
        };
        (Sim::new(), main)
    };
    let swept = testing::sweep(program).check(|_, ran| assert_eq!(ran.output, bytes(50)));
    assert!(swept.runs > 20, "{}", swept.runs);
}

#[test]
fn a_wait_that_nobody_polls_takes_no_interrupt_from_others() {
    let ran = testing::run(async {
        let (mut one, two) = duplex(10);
        let mut stream = Compat::new(two);
        let (ended, at) = {
            // A read is begun and abandoned for something else in the same scope.
            let rest = async {
                let mut buf = [0; 1];
                let begun = poll_fn(|cx| {
                    Poll::Ready(Pin::new(&mut stream).poll_read(cx, &mut buf).is_pending())
                });
                assert!(begun.await);
                sleep(secs(5)).await
            };
            (ignore_after(secs(1), rest).await, clock().await)
        };
        assert_eq!((ended, at), (Ok(None), seconds(1)));
        net::Stream::write_all(&mut one, b"x").await.unwrap();
        let mut buf = [0; 1];
        stream.read(&mut buf).await.map(|n| (n, buf))
    });
    assert_eq!(ran.output.unwrap(), (1, *b"x"));
}

#[test]
fn a_stream_comes_back_as_it_was() {
    let ran = testing::run(async {
        let (one, two) = duplex(10);
        let mut wrapped = Compat::new(two);
        let waits = timeout_after(secs(1), async { wrapped.read(&mut [0]).await }).await;
        assert_eq!(waits.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let mut plain = wrapped.into_inner();
        drop(one);
        net::Stream::read(&mut plain, &mut [0]).await.unwrap()
    });
    assert_eq!(ran.output, 0);
}

// ---- hyper -------------------------------------------------------------------------------------

/// Sends the body back, after a second of the kernel's for `/slow`.
async fn back(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, io::Error> {
    if request.uri().path() == "/slow" {
        sleep(secs(1)).await?;
    }
    let body = request.into_body().collect().await.map_err(io_error)?;
    Ok(Response::new(Full::new(body.to_bytes())))
}

async fn serve(stream: impl TwoWay) -> hyper::Result<()> {
    let mut builder = server::conn::http1::Builder::new();
    builder.timer(KernelTimer).header_read_timeout(secs(5));
    builder.serve_connection(Compat::new(stream), service_fn(back)).await
}

/// Sends a body to a path by hyper's client. Returns the body of the response.
async fn ask(stream: impl TwoWay, path: &str, bodies: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (mut sender, connection) =
        client::conn::http1::handshake(Compat::new(stream)).await.unwrap();
    KernelExecutor.execute(async move { connection.await.unwrap() });
    let mut answers = Vec::new();
    for body in bodies {
        let request = Request::post(path).header("Host", "here");
        let body = Full::new(Bytes::from(body.clone()));
        let answer = sender.send_request(request.body(body).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        answers.push(answer.into_body().collect().await.unwrap().to_bytes().to_vec());
    }
    answers
}

#[test]
fn hypers_client_gets_answers_from_hypers_server() {
    let bodies = [bytes(0), bytes(10), bytes(100_000)];
    let (mut one, mut two) = duplex(1000);
    one.set_short_reads(700);
    two.set_short_reads(300);
    let ran = testing::run(async {
        let server = spawn("server", serve(two)).await;
        let answers = ask(one, "/slow", &bodies).await;
        let mut server = server;
        server.join().await.unwrap().unwrap();
        (answers, clock().await)
    });
    assert_eq!(ran.output.0, bodies);
    assert_eq!(ran.output.1, seconds(3), "a second for each");

    let large = [bytes(4 << 20), bytes(1)];
    let (answers, _) = on_real(async {
        let (one, two) = loopback().await;
        let mut server = spawn("server", serve(two)).await;
        let answers = ask(one, "/", &large).await;
        server.join().await.unwrap().unwrap();
        answers
    });
    assert!(answers == large);
}

#[test]
fn raw_bytes_get_an_answer_from_hypers_server() {
    let (answers, _) = on_real(async {
        let (mut client, accepted) = loopback().await;
        let mut server = spawn("server", serve(accepted)).await;
        // Two requests at once, and the first byte of one of them alone.
        client.write_all(b"P").await.unwrap();
        let rest = "OST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none\
                    POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\
                    Connection: close\r\n\r\ntwo";
        client.write_all(rest.as_bytes()).await.unwrap();
        let mut answers = Vec::new();
        net::Stream::read_to_end(&mut client, &mut answers, 10_000).await.unwrap();
        server.join().await.unwrap().unwrap();
        String::from_utf8(answers).unwrap()
    });
    assert_eq!(answers.matches("HTTP/1.1 200 OK\r\n").count(), 2, "{answers}");
    let (first, second) = (answers.find("\r\n\r\none"), answers.find("\r\n\r\ntwo"));
    assert!(first.is_some() && first < second, "{answers}");
}

/// Requests that make hyper's server wait: for the rest of a head, and for its service.
const UNDER_WAY: [&str; 2] = ["GET / HT", "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"];

#[test]
fn a_timeout_around_hypers_server_ends_it() {
    let ran = testing::run(async {
        let mut ends = Vec::new();
        for request in UNDER_WAY {
            let (mut one, two) = duplex(100);
            net::Stream::write_all(&mut one, request.as_bytes()).await.unwrap();
            let served = async { serve(two).await.map_err(io_error) };
            let ended = timeout_after(tenths(5), served).await.unwrap_err();
            ends.push((ended.interrupt().map(Interrupt::kind), ended.kind()));
        }
        (ends, clock().await)
    });
    let timed_out = (Some(Kind::TaskTimeout), io::ErrorKind::TimedOut);
    assert_eq!(ran.output, (vec![timed_out; 2], seconds(1)));
}

#[test]
fn a_cancellation_ends_hypers_server() {
    let ran = testing::run(async {
        let mut ends = Vec::new();
        for request in ["", UNDER_WAY[0], UNDER_WAY[1]] {
            let (mut one, two) = duplex(100);
            let mut server = spawn("server", serve(two)).await;
            net::Stream::write_all(&mut one, request.as_bytes()).await.unwrap();
            sleep(tenths(5)).await.unwrap();
            server.cancel_because("enough").await.unwrap();
            let ended = server.join().await.unwrap().map_err(io_error);
            ends.push(ended.map_err(|error| error.interrupt().map(Interrupt::reason)));
        }
        (ends, clock().await)
    });
    let cancelled = Err(Some("enough"));
    assert_eq!(ran.output, (vec![Ok(()), cancelled, cancelled], Time::from_micros(1_500_000)));
}

#[test]
fn the_timer_leaves_a_peer_that_is_slow_with_its_head() {
    let ran = testing::run(async {
        let (mut one, two) = duplex(100);
        let mut server = spawn("server", serve(two)).await;
        net::Stream::write_all(&mut one, b"GET / HT").await.unwrap();
        let mut said = Vec::new();
        net::Stream::read_to_end(&mut one, &mut said, 1000).await.unwrap();
        let ended = server.join().await.unwrap().unwrap_err();
        (ended.is_timeout(), said)
    });
    assert_eq!(ran.output, (true, Vec::new()));
}

#[test]
fn the_timer_sleeps_on_the_kernel_clock_and_no_interrupt_ends_it_early() {
    let ran = testing::run(async {
        let slept = ignore_after(secs(1), async {
            KernelTimer.sleep(secs(3)).await;
            let at = clock().await;
            // The bytes that it held back.
            sleep(secs(1)).await.map(|_| at).inspect_err(|_| assert_eq!(at, seconds(3)))
        });
        (slept.await, clock().await)
    });
    assert_eq!(ran.output, (Ok(None), seconds(3)));
}

#[test]
fn a_thread_bound_value_panics_by_name_on_another_thread() {
    type Bound = ThreadBound<Rc<Cell<u8>>>;
    let misuses: [fn(Bound); 2] = [|bound| bound.set(1), drop];
    for misuse in misuses {
        let bound = Bound::new(Rc::default());
        bound.set(2);
        let panicked = thread::spawn(move || misuse(bound)).join().unwrap_err();
        let name = std::any::type_name::<Rc<Cell<u8>>>();
        let rule = format!("rule: ThreadBound<{name}> stays on the thread that made it");
        assert_eq!(*panicked.downcast::<String>().unwrap(), rule);
    }
    // hyper demands that a sleep is `Send`.
    let mut sleep = KernelTimer.sleep(secs(1));
    let poll = move || {
        let polled = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    };
    let panicked = thread::spawn(poll).join().unwrap_err();
    assert!(panicked.downcast::<String>().unwrap().starts_with("rule: ThreadBound<"));
}

#[test]
#[should_panic(expected = "rule: ")]
fn the_executor_outside_a_task_names_the_rule() {
    KernelExecutor.execute(std::future::ready(()));
}

// ---- TLS ---------------------------------------------------------------------------------------

/// A server and a client that trust each other.
fn tls() -> (TlsAcceptor, TlsConnector) {
    let own = tls_echo::certificate().unwrap();
    let server = tls_echo::acceptor(&own).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    (server, Arc::new(client).into())
}

/// Both ends use TLS, send this many bytes and read the bytes of the other end.
async fn swap_by_tls<S: TwoWay>(one: S, two: S, n: usize) -> (Vec<u8>, Vec<u8>) {
    let (acceptor, connector) = tls();
    let accept = async { swap(acceptor.accept(Compat::new(one)).await?, n).await };
    let name = ServerName::try_from("localhost").unwrap();
    let connect = async { swap(connector.connect(name, Compat::new(two)).await?, n).await };
    let (accepted, connected) = join(accept, connect).await;
    (accepted.unwrap(), connected.unwrap())
}

#[test]
fn tls_goes_over_a_pipe_and_over_the_loopback() {
    let (mut one, two) = duplex(500);
    one.set_short_reads(333);
    let ran = testing::run(swap_by_tls(one, two, 50_000));
    assert!(ran.output == (bytes(50_000), bytes(50_000)));

    let (swapped, _) = on_real(async {
        let (one, two) = loopback().await;
        swap_by_tls(one, two, 1 << 20).await
    });
    assert!(swapped == (bytes(1 << 20), bytes(1 << 20)));
}

// ---- The examples ------------------------------------------------------------------------------

#[test]
fn the_client_of_the_examples_gets_answers_from_their_server() {
    let (answers, _) = on_real(async {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut out = Vec::new();
        for path in ["/", "/nowhere"] {
            let serve =
                async { hyper_server::connection(listener.accept_stream().await.unwrap()).await };
            let (fetched, served) =
                join(hyper_client::fetch(&address, path, &mut out), serve).await;
            fetched.unwrap();
            served.unwrap();
        }
        out
    });
    assert_eq!(String::from_utf8(answers).unwrap(), "hello from trapline\n");
}

#[test]
fn the_tls_server_of_the_examples_sends_back_what_it_gets() {
    let (back, _) = on_real(async {
        let (client, accepted) = loopback().await;
        let (acceptor, connector) = tls();
        let mut server = spawn("server", tls_echo::echo(acceptor, accepted)).await;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, Compat::new(client)).await.unwrap();
        let back = swap(stream, 100_000).await.unwrap();
        server.join().await.unwrap().unwrap();
        back
    });
    assert_eq!(back, bytes(100_000));
}
