//! A Redis server with two timeouts a request: the `redis` example, and the same program on tokio
//! as its users write it. Both run the commands by the same code.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use traps::Time;

use super::redis_example::{Data, Next, Part, serve_clients};
use super::{How, say_listening, tokio as tokio_peer, trapline};

/// The time that a client may be silent, and the time that it may take to receive replies.
const PATIENCE: [Duration; 2] = [Duration::from_secs(300), Duration::from_secs(30)];

pub fn serve(addr: SocketAddr, _: How) -> io::Result<()> {
    trapline::run(async move {
        let listener = net::TcpListener::bind(addr)?;
        say_listening(listener.local_addr()?);
        serve_clients(listener, PATIENCE).await
    })
}

fn data() -> RefCell<Data> {
    let start = Instant::now();
    RefCell::new(Data::new(move || Time::default() + start.elapsed()))
}

thread_local! {
    // Not in an `Rc`: a task that holds one needs a `LocalSet`, which costs more.
    static DATA: RefCell<Data> = data();
}

pub fn serve_on_tokio(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    tokio_peer::runtime(How { deadlines: true, ..how })?.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        for number in 1.. {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(client(stream, number));
        }
        Ok(())
    })
}

async fn client(mut stream: TcpStream, number: u64) -> io::Result<()> {
    let [idle, write] = PATIENCE;
    let (mut input, mut out) = (Vec::with_capacity(8 * 1024), Vec::new());
    let mut part = Part::default();
    loop {
        match timeout(idle, stream.read_buf(&mut input)).await {
            Err(_) | Ok(Ok(0)) => return Ok(()),
            Ok(read) => read?,
        };
        loop {
            // Whether the input is used up, or the connection has ended: no load subscribes.
            let (used, end) = DATA.with_borrow_mut(|data| {
                let (used, next) = data.answer(number, &input, &mut part, &mut out);
                let end = match next {
                    Next::Read => Some(false),
                    Next::Continue => None,
                    Next::Close | Next::Subscribed(_) => Some(true),
                };
                (used, end)
            });
            input.drain(..used);
            if !out.is_empty() {
                timeout(write, stream.write_all(&out)).await??;
                out.clear();
            }
            match end {
                None => {}
                Some(false) => break,
                Some(true) => return Ok(()),
            }
        }
    }
}
