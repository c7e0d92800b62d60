//! Other libraries over sockets of the loopback: the rows of the page *Other libraries*.

mod axum;
mod http2;
mod redis;
mod tokio;
mod tower;
mod websocket;
mod websocket_chat;

use std::time::Duration;

use net::{TcpListener, TcpStream};
use traps::{join, timeout_after};

/// A connection over the loopback.
async fn loopback() -> (TcpStream, TcpStream) {
    let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = TcpStream::connect(listener.local_addr().unwrap());
    let (client, accepted) = join(connect, listener.accept_stream()).await;
    (client.unwrap(), accepted.unwrap())
}

/// Runs a program on the real clock, so that a library that never ends fails its test.
fn run<T: 'static>(program: impl Future<Output = T> + 'static) -> T {
    let bounded =
        timeout_after(Duration::from_secs(60), async { Ok::<T, traps::Error>(program.await) });
    kernel::run(bounded).unwrap().expect("the library ends")
}
