//! A chat server: each line of a client goes to all clients. A client that sends nothing, or does
//! not read, for too long is disconnected. No client can forge the line of another, because
//! characters that control a terminal are not passed on. But two clients can have the same name.

use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use common::limits::{limit, span};
use common::log::plain;
use common::values::millis;
use net::{BufReader, Connection, Stream, TcpStream, serve};
use serving::server::{self, Place, Server};
use traps::channel::broadcast;
use traps::shutdown::until_begun;
use traps::{Either, Error, race, timeout_after, yield_now};

/// Clients at a time; others wait to be accepted.
const CLIENTS: u32 = 1000;
/// The most bytes of a line, with its end.
const LINE: usize = 1024;
/// Lines that are kept for clients who have not read them.
const KEPT: usize = 100;

/// The options of the command line.
#[derive(clap::Args)]
struct Chat {
    /// Milliseconds that a client may be silent
    #[arg(long, value_name = "MS", default_value = "300000", value_parser = millis)]
    patience: Duration,
    #[command(flatten)]
    server: Server,
}

type Room = broadcast::Sender<Rc<str>>;

/// The first line is the client's name.
async fn client(
    mut stream: Connection<TcpStream>,
    room: Room,
    patience: Duration,
) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut lines = reader.lines(LINE);
    let Some(name) =
        until_begun(timeout_after(patience, lines.next())).await.transpose()?.flatten()
    else {
        return Ok(());
    };
    let name = plain(&String::from_utf8_lossy(name));
    let mut news = room.subscribe();
    room.send(format!("{name} is here\n").into())?;
    let speak = async {
        while let Some(line) = timeout_after(patience, lines.next()).await? {
            let said = plain(&String::from_utf8_lossy(line));
            room.send(format!("{name}: {said}\n").into())?;
            // Many lines can come in one packet: the other clients take this one first.
            yield_now().await?;
        }
        io::Result::Ok(())
    };
    let hear = async {
        // At a shutdown the client still gets the earlier lines.
        while let Some(heard) = until_begun(news.recv()).await {
            let line = match heard {
                Err(Error::Lagged(_)) => continue,
                heard => heard?,
            };
            timeout_after(patience, writer.write_all(line.as_bytes())).await?;
        }
        Ok(())
    };
    let ended = race(speak, hear).await;
    room.send(format!("{name} has left\n").into())?;
    let (Either::Left(ended) | Either::Right(ended)) = ended;
    ended
}

async fn main_task(place: Place, patience: Duration) -> io::Result<()> {
    let mut listener = place.listen()?;
    let (room, _) = broadcast::channel(KEPT);
    let handle = |stream| client(stream, room.clone(), patience);
    serve(async || listener.accept_peer_until_shutdown().await, CLIENTS, handle).await
}

fn main() -> ExitCode {
    let Chat { patience, server } = common::parse("chat", "A chat server for lines of text");
    let own = [
        span("patience", patience),
        limit("clients", CLIENTS, "connections"),
        limit("line", LINE, "bytes"),
        limit("kept", KEPT, "lines"),
    ];
    let server = server.ready(0, &own);
    server::serve(&server, move |place| main_task(place, patience))
}
