//! The example `redis` on tokio's current-thread runtime: the same data and the same answers, with
//! a read buffer for each connection and a timeout around each read and each write.

use std::cell::RefCell;
use std::io;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use traps::Time;

use super::{How, redis_example, tokio::runtime};
use redis_example::{Data, Next};

/// The defaults of the example.
const IDLE: Duration = Duration::from_secs(300);
const WRITE: Duration = Duration::from_secs(30);

thread_local! {
    // Not behind an `Rc`: a task that holds one needs a `LocalSet`.
    static DATA: RefCell<Data> = {
        let start = Instant::now();
        RefCell::new(Data::new(move || Time::from_micros(start.elapsed().as_micros() as u64)))
    };
}

pub fn serve(listener: std::net::TcpListener) -> io::Result<()> {
    runtime(How { deadlines: true, echo: false })?.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(conn(stream));
        }
    })
}

async fn conn(mut stream: TcpStream) -> io::Result<()> {
    let (mut input, mut out) = (BytesMut::with_capacity(8192), Vec::new());
    loop {
        input.reserve(4096);
        match timeout(IDLE, stream.read_buf(&mut input)).await {
            Err(_) | Ok(Ok(0)) => return Ok(()),
            Ok(read) => read?,
        };
        loop {
            // Without `next`, which is not `Send`, because a subscriber's inbox is not.
            let (used, goes_on, reads) = DATA.with_borrow_mut(|data| {
                let (used, next) = data.answer(0, &input, &mut out);
                let reads = matches!(next, Next::Read);
                (used, reads || matches!(next, Next::Write), reads)
            });
            input.advance(used);
            if !out.is_empty() {
                timeout(WRITE, stream.write_all(&out)).await??;
                out.clear();
            }
            // A subscriber is no part of what is measured.
            if !goes_on {
                return Ok(());
            }
            if reads {
                break;
            }
        }
    }
}
