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

#[cfg(test)]
mod tests {
    use kernel::Sim;
    use net::pipe::duplex;
    use testing::Setup;
    use traps::{Time, spawn};

    use super::*;

    #[test]
    fn all_hear_what_one_says_and_who_is_silent_is_sent_away() {
        let ran = testing::run(async {
            let (room, _) = broadcast::channel(KEPT);
            let (mut tasks, mut ends) = (Vec::new(), Vec::new());
            for name in ["ann", "ben"] {
                let (mut theirs, ours) = duplex(LINE);
                let room = room.clone();
                let serve = async move { client(&mut theirs, room).await };
                tasks.push(spawn(name, serve).await);
                ends.push(ours);
            }
            yield_now().await?; // both have subscribed
            let many = KEPT + 1; // more lines at once than the channel keeps
            ends[0].write_all(&b"hello\r\n".repeat(many)).await?;
            for end in &mut ends {
                let mut heard = vec![0; 6 * many];
                end.read_exact(&mut heard).await?;
                assert_eq!(heard, b"hello\n".repeat(many));
            }
            for task in &mut tasks {
                let ended = task.join().await?;
                assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
            }
            Ok::<(), Box<dyn std::error::Error>>(())
        });
        ran.output.unwrap();
        assert_eq!(ran.took, PATIENCE); // by the virtual clock; the test takes no time
    }

    #[test]
    fn a_shutdown_ends_a_client_who_is_silent() {
        let delay = Duration::from_secs(1);
        let sim = Sim::new().signal_at(Time::ZERO + delay, Signal::Interrupt);
        let options = Options::new().shutdown_on(&[Signal::Interrupt]);
        let ran = Setup::new().sim(sim).options(options).run(async {
            let (mut theirs, _ours) = duplex(LINE);
            let (room, _) = broadcast::channel(KEPT);
            client(&mut theirs, room).await
        });
        ran.output.unwrap(); // not cancelled, because `client` calls `until_begun`
        assert_eq!(ran.took, delay);
    }
}
