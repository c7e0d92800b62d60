use std::io;
use std::process::ExitCode;
use std::rc::Rc;

use kernel::Options;
use net::{BufReader, Connection, Stream, TcpListener, TcpStream, serve};
use traps::channel::broadcast;
use traps::{Either, race, yield_now};

/// Clients at a time; others wait until one leaves.
const CLIENTS: u32 = 100;
/// The most bytes of a line.
const LINE: usize = 1024;
/// Lines that are kept for a client who is slow.
const KEPT: usize = 64;

type Room = broadcast::Sender<Rc<str>>;

async fn client(mut stream: Connection<TcpStream>, room: Room) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut lines = reader.lines(LINE);
    let mut news = room.subscribe();
    let speak = async {
        while let Some(line) = lines.next().await? {
            room.send(format!("{}\n", String::from_utf8_lossy(line)).into())?;
            yield_now().await?; // the other clients take this line now
        }
        Ok(())
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
    let handle = |stream| client(stream, room.clone());
    serve(async || listener.accept_until_shutdown().await, CLIENTS, handle).await
}

fn main() -> ExitCode {
    kernel::main(Options::new(), program())
}
