//! The memory of an idle keep-alive connection, by an allocator that counts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::rc::Rc;

use allocation_counter::measure;
use http_support::App;
use kernel::{Kernel, Real};
use net::TcpListener;
use net::http::serve;
use traps::{spawn, yield_now};

/// The size of the tables of a kernel, which double. Nearly as many connections fill them.
const FULL: usize = 1 << 7;

/// The most bytes that one more idle connection may take, with its share of full tables.
const MOST: i64 = 568;

/// Returns the bytes that are allocated while `count` connections that have had an answer each wait
/// for another request.
fn live_with(count: usize) -> i64 {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let mut clients = Vec::with_capacity(count);
    let connect = || {
        let ask = async {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let addr: SocketAddr = listener.local_addr().unwrap();
            spawn("server", serve(listener, Rc::new(App), Rc::default())).detached().await;
            for _ in 0..count {
                let mut client = Client::connect(addr).unwrap();
                client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
                client.set_nonblocking(true).unwrap();
                let mut answer = [0; 1024];
                while client.read(&mut answer).is_err() {
                    yield_now().await.unwrap();
                }
                clients.push(client);
            }
        };
        kernel.run(ask).unwrap();
    };
    let live = measure(connect).bytes_current;
    drop(clients);
    live
}

#[test]
fn an_idle_connection_takes_no_more_than_it_did() {
    // The first run makes what a thread makes once.
    let [_, full, twice] = [FULL, FULL, 2 * FULL].map(|full| live_with(full - 8));
    let each = (twice - full) / FULL as i64;
    println!("an idle connection: {each} bytes");
    assert!(each <= MOST, "{each} bytes");
}
