//! A server: a listener whose connections each have a task, until the kernel's shutdown begins.
//!
//! The life of each connection is in `connection`. This module must not touch a stream.

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use traps::shutdown::{has_begun, hold};
use traps::{connection_deadline, is_traced, spawn, yield_now};

use super::config::Config;
use super::connection::{Connection, live, refuse};
use super::guard::caps::Conn;
use super::guard::place::Place;
use super::handler::Handler;
use super::handshake::handshake;
use super::state::State;
use crate::listener::TcpListener;
use crate::stream::Stream;
use crate::tcp::TcpStream;

/// Returns whether one more connection can be served. At the limit, makes a waiting connection give
/// way, and logs a `cap` line that names it.
fn has_capacity(config: &Config) -> bool {
    let Config { limits, deadlines, open, .. } = config;
    if open.serving() < limits.connections {
        return true;
    }
    let Some(closed) = open.give_way(deadlines.head) else { return false };
    let conn = Conn(closed.number, None);
    open.caps.hit(conn, "connections", limits.connections, closed.now());
    true
}

/// Accepts connections and serves each in a task of its own, until the [shutdown](traps::shutdown)
/// of the kernel begins. Then it accepts the connections in the backlog, closes the listener,
/// [drains](Config::drain) the connections, and returns. Each connection
/// [holds](traps::shutdown::hold) the shutdown up until it has ended. *Blocks*.
///
/// If a connection fails, the others continue. An error of its stream, for example a reset in the
/// middle of a body, is not logged; the task ends with `exit ok` like any other. The log shows what
/// the server did: a `cap` line for each limit or deadline that was hit, and a `warn` line for each
/// [handler](Handler::handle) that failed.
///
/// Above [`Limits::connections`](super::Limits::connections), one connection closes for each new
/// one: the longest silent one, if it has not sent a byte for half a second; otherwise the one that
/// has waited longest for its next request; otherwise the one with a head in progress whose last
/// byte came first. The next choice is a request that waits for its client without progress: for a
/// quarter of a second for its body, or for two seconds for its response to be taken. A request
/// that gives way gets 503, or is cut off if its response has begun. The last choice is the longest
/// silent connection of all. If there is none, the new one is refused with 503. When descriptors
/// run out, one connection closes for each new one in the same order, but with refused peers that
/// do not read their 503 chosen before any others are refused.
///
/// A whole server, which a signal ends in phases:
///
/// ```no_run
/// use std::io;
/// use std::process::ExitCode;
/// use std::rc::Rc;
///
/// use kernel::Options;
/// use net::http::{Config, Handler, Request, Response, serve};
/// use net::{Stream, TcpListener};
/// use traps::Signal;
///
/// struct Hello;
///
/// impl Handler for Hello {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         Ok(Response::text(format!("This is {}.\n", request.path())))
///     }
/// }
///
/// async fn program() -> io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080")?;
///     serve(listener, Rc::new(Hello), Rc::new(Config::default())).await
/// }
///
/// fn main() -> ExitCode {
///     let options = Options::new().shutdown_on(&[Signal::Interrupt, Signal::Terminate]);
///     // Waits for the connections that are left after `program` has ended.
///     kernel::main(options, program())
/// }
/// ```
///
/// # Errors
///
/// Returns an error if the listener fails, or if an interrupt ends the wait. The connections
/// continue.
pub async fn serve<H: Handler + 'static>(
    listener: TcpListener,
    handler: Rc<H>,
    config: Rc<Config>,
) -> io::Result<()> {
    let live = |accepted, config| {
        live(Connection::accepted(accepted, held_place(config)), handler.clone())
    };
    let refused = |accepted, config| async {
        refuse(Connection::accepted(accepted, Place::new(config))).await
    };
    accept_all(listener, config, live, refused).await
}

/// Serves as [`serve`] does, over the streams that `wrap` makes of the accepted ones, for example
/// by a TLS handshake.
///
/// The handshake runs in the task of its connection, and is a part of the wait for the first byte
/// of a request. So [`Deadlines::head`](super::Deadlines::head) bounds both together, a silent
/// client makes room for a new one, a [drain](Config::drain) waits half a second for both, and a
/// connection over the limit completes its handshake before it gets 503. An error of `wrap` ends
/// the connection without a log line, like an error of the stream. To have it in the log, log it in
/// `wrap`.
///
/// If the stream of `wrap` does not know its peer, the `cap` lines do not name it either; see
/// `FromFutures::with_peer`. An access log has the peer in any case.
///
/// ```no_run
/// use std::io;
/// use std::rc::Rc;
///
/// use net::http::{Config, Handler, serve_wrapped};
/// use net::{BufReader, TcpListener, TcpStream};
///
/// /// Serves behind a proxy that sends the client's address in a first line.
/// async fn server<H: Handler + 'static>(app: Rc<H>, config: Rc<Config>) -> io::Result<()> {
///     let first_line = async |tcp: TcpStream| {
///         let mut stream = BufReader::new(tcp);
///         let mut line = Vec::new();
///         match stream.read_line(&mut line, 108).await? {
///             true if line.starts_with(b"PROXY ") => Ok(stream),
///             _ => Err(io::ErrorKind::InvalidData.into()),
///         }
///     };
///     serve_wrapped(TcpListener::bind("127.0.0.1:8080")?, first_line, app, config).await
/// }
/// ```
///
/// # Errors
///
/// Returns the errors of [`serve`].
pub async fn serve_wrapped<S, H>(
    listener: TcpListener,
    wrap: impl AsyncFn(TcpStream) -> io::Result<S> + 'static,
    handler: Rc<H>,
    config: Rc<Config>,
) -> io::Result<()>
where
    S: Stream + 'static,
    H: Handler + 'static,
{
    let wrap = &Rc::new(wrap);
    let live = |accepted, config| {
        let (place, wrap, handler) = (held_place(config), wrap.clone(), handler.clone());
        async move {
            // Boxed, so that a waiting connection is small.
            match Box::pin(handshake(accepted, place, &*wrap, State::New)).await? {
                Some(connection) => live(connection, handler).await,
                None => Ok(()),
            }
        }
    };
    let refused = |accepted, config| {
        let wrap = wrap.clone();
        async move {
            match handshake(accepted, Place::new(config), &*wrap, State::FULL).await? {
                Some(connection) => refuse(connection).await,
                None => Ok(()),
            }
        }
    };
    accept_all(listener, config, live, refused).await
}

/// Makes the place of a connection before its task first runs, because others may be accepted in
/// the meantime. The connection delays the shutdown as long as it has work that should finish.
fn held_place(config: Rc<Config>) -> Place<Rc<Config>> {
    let place = Place::new(config);
    place.entry.hold(hold());
    place
}

/// An accepted stream, with its peer for an access log.
type TcpPeer = (TcpStream, Option<SocketAddr>);

/// Accepts connections, as [`serve`] describes. `live` runs a connection, and `refused` runs one
/// that is over the limit.
async fn accept_all<L, R>(
    mut listener: TcpListener,
    config: Rc<Config>,
    live: impl Fn(TcpPeer, Rc<Config>) -> L,
    refused: impl Fn(TcpPeer, Rc<Config>) -> R,
) -> io::Result<()>
where
    L: Future<Output = io::Result<()>> + 'static,
    R: Future<Output = io::Result<()>> + 'static,
{
    let ours = config.clone();
    listener.on_exhausted(move || ours.open.make_room(ours.deadlines.head));
    let clock = connection_deadline().await;
    // Once the shutdown has begun, accept at most one backlog more, so that a stream of new clients
    // cannot hold it up.
    let (mut late, mut served) = (listener.backlog().max(1), 0_u64);
    while late > 0
        && let Some(accepted) = listener.accept_known(config.on_exchange.0.is_some()).await?
    {
        if has_begun() {
            late -= 1;
            if !config.is_draining() {
                config.drain();
            }
        }
        config.open.caps.sum_up(clock.now(), false);
        let mut is_free = has_capacity(&config);
        if !is_free {
            // Connections accepted in this turn have not run yet; they may be silent.
            yield_now().await?;
            is_free = has_capacity(&config);
        }
        if !is_free {
            spawn("refused", refused(accepted, config.clone())).detached().await;
            continue;
        }
        served += 1;
        // No task joins the connection, so no task sees its failure.
        let connection = live(accepted, config.clone());
        // Only the log shows the number, and making it costs an allocation.
        let name: Cow<'_, str> = match is_traced() {
            true => format!("conn-{served}").into(),
            false => "conn".into(),
        };
        spawn(name, connection).detached().await;
    }
    drop(listener);
    config.drain();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use kernel::{Kernel, Sim};
    use traps::shutdown::begun;
    use traps::{Time, clock, shield, sleep};

    use super::super::connection::busy;
    use super::super::guard::connections::Entry;
    use super::super::handler::Hello;
    use super::super::request::Request;
    use super::super::response::Response;
    use super::*;
    use crate::pipe::{PipeEnd, duplex};

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the size of the future that a function makes of its arguments.
    fn size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_is_kept_of_a_connection_that_waits_does_not_grow() {
        let live = size(live::<TcpStream, Rc<Config>, Hello, Rc<Hello>>);
        // In addition, the body of a task has 8 bytes for its cell, an entry has 16 for its counts,
        // and each allocation has 8, rounded up to multiples of 16.
        assert_eq!((live, size_of::<Entry>(), size_of::<TcpStream>()), (112, 80, 32));
    }

    /// Sends `request` on a connection, and does nothing more. Shuts the kernel down a second
    /// later. Returns what came back, the time of its last byte or of the connection's end, and the
    /// number of connections whose work was cut off.
    fn shut_down_beside(request: &'static [u8], reads: bool) -> (String, Time, u64) {
        struct Large;

        impl Handler for Large {
            async fn handle<S: Stream>(
                &self,
                request: &mut Request<'_, S>,
            ) -> io::Result<Response> {
                request.body_to_vec(usize::MAX).await?;
                Ok(Response::new(200).with_body(vec![b'x'; 100_000]))
            }
        }

        let mut kernel = Kernel::new(Sim::new());
        let seen = Rc::new(RefCell::new((String::new(), Time::ZERO)));
        let shown = seen.clone();
        let main = async {
            let config = Rc::new(Config::default());
            let (server, mut client) = duplex(1000);
            let theirs = config.clone();
            let conn = async move {
                let connection = Connection::new(server, held_place(theirs));
                let _ = live(connection, Rc::new(Large)).await;
            };
            spawn("conn", conn).detached().await;
            spawn("drain", async move { begun().await.map(|()| config.drain()) }).detached().await;
            let client = async move {
                client.write_all(request).await.unwrap();
                let mut buf = [0; 1000];
                while reads && let Ok(n @ 1..) = shield(client.read(&mut buf)).await {
                    shown.borrow_mut().0.push_str(&String::from_utf8_lossy(&buf[..n]));
                    shown.borrow_mut().1 = clock().await;
                }
                while shield(client.write(b"")).await.is_ok() {
                    shown.borrow_mut().1 = clock().await;
                    let _ = shield(sleep(SECOND / 10)).await;
                }
            };
            spawn("client", client).detached().await;
            sleep(SECOND).await.unwrap();
        };
        kernel.run(main).unwrap();
        kernel.shutdown().unwrap();
        let (text, end) = seen.borrow().clone();
        (text, end, kernel.counters().cut_off)
    }

    #[test]
    fn f17_a_peer_that_does_nothing_holds_no_shutdown_up_and_is_no_work_that_was_cut_off() {
        let requests: [(&[u8], bool, &str); 4] = [
            (b"GET / HTTP/1.1\r\nHo", true, "503"),
            (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", true, "408"),
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", false, ""),
            (b"GET / HTTP/9.1\r\nHost: a\r\n\r\n", true, "505"),
        ];
        for (request, reads, status) in requests {
            let (text, end, cut_off) = shut_down_beside(request, reads);
            assert_eq!((text.get(9..12).unwrap_or_default(), cut_off), (status, 0), "{text}");
            // The grace, one wait for the peer, and the wait in which a refused peer reads why.
            assert!(end <= Time::ZERO + 6 * SECOND, "{text}: {end}");
        }
    }

    /// Opens a connection that sends `bytes`. Returns the end of its client.
    async fn open(config: &Rc<Config>, bytes: &[u8]) -> PipeEnd {
        let (server, mut client) = duplex(10_000);
        let connection = Connection::new(server, Place::new(config.clone()));
        let conn = async move { live(connection, Rc::new(Reads)).await };
        spawn("conn", conn).detached().await;
        client.write_all(bytes).await.unwrap();
        yield_now().await.unwrap();
        client
    }

    /// Reads the body, and responds with a large one.
    struct Reads;

    impl Handler for Reads {
        async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
            let body = request.body_to_vec(usize::MAX).await?;
            if request.path() == "/busy" {
                sleep(20 * SECOND).await?;
            }
            Ok(Response::new(200).with_body([body, vec![b'x'; 20_000]].concat()))
        }
    }

    /// Each new connection is served, although clients that have sent one byte of a request hold
    /// all places; such a client gets a response that says why it loses its place.
    #[test]
    fn a_client_that_begins_a_request_and_stops_gives_its_seat_to_a_newcomer() {
        let begun: [(&[u8], &str); 3] = [
            (b"G", "503"),
            (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx", "503"),
            // Its response has begun.
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "200"),
        ];
        for (bytes, status) in begun {
            let mut kernel = Kernel::new(Sim::new());
            let main = async {
                let mut config = Config::default();
                config.limits.connections = 3;
                let config = Rc::new(config);
                let mut clients = Vec::new();
                for _ in 0..3 {
                    assert!(has_capacity(&config));
                    clients.push(open(&config, bytes).await);
                    sleep(SECOND / 2).await.unwrap();
                }
                sleep(2 * SECOND).await.unwrap();
                for (number, mut client) in clients.into_iter().enumerate() {
                    assert!(has_capacity(&config), "{status}: {number}");
                    sleep(SECOND / 10).await.unwrap();
                    let mut text = vec![0; 40_000];
                    let mut n = 0;
                    while let Ok(more @ 1..) = client.read(&mut text[n..]).await {
                        n += more;
                    }
                    let text = String::from_utf8_lossy(&text[..n]);
                    assert_eq!(&text[9..12], status, "{number}: {text}");
                    let told = text.ends_with("there are too many connections\n");
                    assert_eq!(told, status == "503", "{text}");
                    assert!(text.len() < 20_000, "the response is cut");
                    let busy = open(&config, b"GET /busy HTTP/1.1\r\nHost: a\r\n\r\n").await;
                    // It keeps its seat.
                    std::mem::forget(busy);
                    assert_eq!(config.connections(), 3);
                }
                assert!(!has_capacity(&config), "all are busy");
            };
            kernel.run(main).unwrap();
        }
    }

    /// glibc's allocator caches freed blocks of up to 1,032 bytes. A larger block costs each
    /// request 340 instructions more.
    #[test]
    fn a_busy_connection_with_a_handler_of_256_bytes_is_a_small_block() {
        struct Large;

        impl Handler for Large {
            async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
                let kept = [0_u8; 232];
                yield_now().await?;
                Ok(Response::new(200).with_body(std::hint::black_box(&kept).to_vec()))
            }
        }

        let busy = size(busy::<TcpStream, Rc<Config>, Large>);
        assert!(busy <= 1032, "{busy} bytes");
    }
}
