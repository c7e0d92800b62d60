use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use kernel::Options;
use net::{BufReader, Connection, Split, Stream, TcpListener, TcpStream, serve};
use traps::channel::broadcast;
use traps::shutdown::until_begun;
use traps::{Either, Signal, race, timeout_after, yield_now};

/// Clients at a time; others wait until one leaves.
const CLIENTS: u32 = 100;
/// The most bytes of a line.
const LINE: usize = 1024;
/// Lines that are kept for a client who is slow.
const KEPT: usize = 64;
/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(60);

type Room = broadcast::Sender<Rc<str>>;

async fn client(stream: &mut impl Split, room: Room) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut lines = reader.lines(LINE);
    let mut news = room.subscribe();
    let speak = async {
        loop {
            let next = until_begun(timeout_after(PATIENCE, lines.next())).await;
            // The client has left, or the shutdown has begun.
            let Some(Some(line)) = next.transpose()? else { return Ok(()) };
            room.send(format!("{}\n", String::from_utf8_lossy(line)).into())?;
            yield_now().await?; // the other clients take this line now
        }
    };
    let hear = async {
        loop {
            let line = news.recv().await?;
            writer.write_all(line.as_bytes()).await?;
        }
    };
    match race(speak, hear).await {
        Either::Left(ended) | Either::Right(ended) => ended,
    }
}

async fn program() -> io::Result<()> {
    let mut listener = TcpListener::bind("127.0.0.1:7000")?;
    println!("listening on {}", listener.local_addr()?);
    let (room, _) = broadcast::channel(KEPT);
    let handle = |mut stream: Connection<TcpStream>| {
        let room = room.clone();
        async move { client(&mut *stream, room).await }
    };
    serve(async || listener.accept_until_shutdown().await, CLIENTS, handle).await
}

fn main() -> ExitCode {
    let options = Options::new().shutdown_on(&[Signal::Interrupt]).trace("chat.trace");
    kernel::main(options, program())
}
