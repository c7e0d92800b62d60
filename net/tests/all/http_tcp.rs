//! The HTTP handler over real sockets: effects that a pipe cannot show.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream as StdStream};
use std::rc::Rc;
use std::time::Duration;

use http_support::App;
use kernel::{Counters, Kernel, Real};
use net::TcpListener;
use net::http::{Config, serve, serve_connection};
use net::listener::Options;
use traps::{run_in_thread, shutdown, spawn, yield_now};

/// Serves one connection while `client` talks to it from a thread. Returns the client's result.
fn talk<T: Send + 'static>(client: impl FnOnce(SocketAddr) -> T + Send + 'static) -> (T, Counters) {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let result = kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr = listener.local_addr().unwrap();
            let client = run_in_thread(move || client(addr));
            // A client on a busy machine may be slow.
            let mut config = Config::default();
            config.deadlines.idle = Duration::from_secs(60);
            let serve = async {
                let (stream, _) = listener.accept().await?;
                serve_connection(stream, &App, &config).await
            };
            let (result, served) = traps::join(client, serve).await;
            let _: io::Result<()> = served;
            result.unwrap()
        })
        .unwrap();
    (result, kernel.counters())
}

#[test]
fn an_end_that_comes_with_the_last_bytes_is_seen_at_once() {
    // The client's FIN may arrive before the request is read. Then no edge follows, and if the
    // kernel did not remember the end, the handler would wait for its idle deadline.
    for _ in 0..50 {
        let (answer, counters) = talk(|addr| {
            let mut stream = StdStream::connect(addr).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        });
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.ends_with("Hello, World!"), "{answer}");
        assert_eq!((counters.tickets, counters.scopes, counters.timers), (0, 0, 0));
    }
}

#[test]
fn a_keep_alive_connection_registers_once() {
    let (answers, counters) = talk(|addr| {
        let mut stream = StdStream::connect(addr).unwrap();
        let mut answers = 0;
        let mut buf = [0; 1024];
        for _ in 0..100 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let n = stream.read(&mut buf).unwrap();
            answers += usize::from(buf[..n].ends_with(b"Hello, World!"));
        }
        answers
    });
    assert_eq!(answers, 100);
    assert!((1..=2).contains(&counters.registers), "the connection, and the listener if it waited");
}

#[test]
fn a_reset_in_the_middle_of_a_request_ends_that_connection_only() {
    let ((), counters) = talk(|addr| {
        let mut stream = StdStream::connect(addr).unwrap();
        stream.write_all(b"GET /big HTTP/1.1\r\nHost: x\r\n\r\nGET /big HT").unwrap();
        // Closing with unread bytes in the socket sends a reset.
        drop(stream);
    });
    assert_eq!((counters.tasks, counters.tickets, counters.registered), (0, 0, 0));
}

/// The request arrives when the server has begun to shut down, before the poller can report it.
#[test]
fn f17_the_last_look_goes_into_the_socket_itself() {
    let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let mut kernel = Kernel::new(Real::new().unwrap());
    let mut client = kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
            client.write_all(request).unwrap();
            let mut late = client.try_clone().unwrap();
            let config = Rc::new(Config::default());
            let stop = config.clone();
            let sender = async move {
                assert!(shutdown::until_begun(std::future::pending::<()>()).await.is_none());
                late.write_all(request).unwrap();
                stop.drain();
            };
            spawn("sender", sender).await;
            yield_now().await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let serve = async move {
                let _hold = shutdown::hold();
                serve_connection(stream, &App, &config).await
            };
            spawn("conn", serve).await;
            yield_now().await.unwrap();
            yield_now().await.unwrap();
            client
        })
        .unwrap();
    kernel.shutdown().unwrap();
    let mut answers = String::new();
    client.read_to_string(&mut answers).unwrap();
    assert!(answers.starts_with("HTTP/1.1 200 OK\r\n"), "{answers}");
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 2, "{answers}");
    assert_eq!(answers.matches("\r\nConnection: close\r\n").count(), 1, "{answers}");
}

#[test]
fn a_server_serves_also_where_none_may_wait_to_be_accepted() {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let answer = kernel.run(async {
        let options = Options { backlog: 0, ..Options::default() };
        let listener = TcpListener::bind_with("127.0.0.1:0", options).unwrap();
        let addr = listener.local_addr().unwrap();
        spawn("server", serve(listener, Rc::new(App), Rc::default())).detached().await;
        let client = run_in_thread(move || {
            let mut stream = StdStream::connect(addr)?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            io::Result::Ok(answer)
        });
        client.await
    });
    let answer = answer.unwrap().unwrap().unwrap();
    assert!(answer.ends_with("Hello, World!"), "{answer}");
    kernel.shutdown().unwrap();
}

/// One arrives in each turn, and there is always one waiting to be accepted.
#[test]
fn a_server_that_shuts_down_serves_one_backlog_more_however_many_clients_come() {
    const MANY: usize = 50;
    let mut kernel = Kernel::new(Real::new().unwrap());
    let came = Rc::new(Cell::new(0));
    let theirs = came.clone();
    let before = kernel.run(async move {
        let options = Options { backlog: 4, ..Options::default() };
        let listener = TcpListener::bind_with("127.0.0.1:0", options).unwrap();
        let addr = listener.local_addr().unwrap();
        spawn("server", serve(listener, Rc::new(App), Rc::default())).detached().await;
        let clients = async move {
            let _hold = shutdown::hold();
            shutdown::begun().await.unwrap();
            let mut clients = Vec::new();
            while clients.len() < MANY
                && let Ok(client) = StdStream::connect(addr)
            {
                clients.push(client);
                yield_now().await.unwrap();
            }
            theirs.set(clients.len());
        };
        spawn("clients", clients).detached().await;
        yield_now().await.unwrap();
        yield_now().await.unwrap();
        [(); 3].map(|()| StdStream::connect(addr).unwrap())
    });
    kernel.shutdown().unwrap();
    drop(before);
    assert!(came.get() < MANY, "all of them were accepted");
}
