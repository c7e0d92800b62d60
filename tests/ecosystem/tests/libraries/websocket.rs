//! WebSockets by async-tungstenite at both ends.

use std::io;
use std::time::Duration;

use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::{WebSocketStream, accept_async, client_async};
use futures_util::StreamExt;
use kernel::{Options, Sim};
use net::TcpStream;
use net::interop::Compat;
use net::pipe::{PipeEnd, duplex};
use testing::Setup;
use traps::channel::broadcast;
use traps::shutdown::until_begun;
use traps::{Signal, Task, Time, join, spawn};

use super::websocket_chat::{PATIENCE, Room, client};
use super::{loopback, run};

/// Messages that a room keeps.
const KEPT: usize = 64;

/// Sends each message back, until the client closes.
async fn echo(stream: TcpStream) -> Result<(), Error> {
    let mut socket = accept_async(Compat::new(stream)).await?;
    while let Some(message) = socket.next().await.transpose()? {
        if !message.is_close() {
            socket.send(message).await?;
        }
    }
    Ok(())
}

async fn ask(stream: TcpStream, messages: &[Message]) -> Result<Vec<Message>, Error> {
    let (mut socket, _) = client_async("ws://localhost/echo", Compat::new(stream)).await?;
    let mut back = Vec::new();
    for message in messages {
        socket.send(message.clone()).await?;
        back.extend(socket.next().await.transpose()?);
    }
    socket.close(None).await?;
    while let Some(message) = socket.next().await.transpose()? {
        assert!(message.is_close(), "{message}");
    }
    Ok(back)
}

#[test]
fn a_websocket_carries_text_and_a_message_of_a_mebibyte() {
    let messages = [Message::text("tea"), Message::binary(vec![7; 1 << 20])];
    let sent = messages.clone();
    let back = run(async move {
        let (client, accepted) = loopback().await;
        let (asked, served) = join(ask(client, &sent), echo(accepted)).await;
        served.unwrap();
        asked.unwrap()
    });
    assert!(back == messages);
}

/// A client of a room, by a pipe.
async fn enter(
    name: &'static str,
    room: &Room,
) -> (Task<io::Result<()>>, WebSocketStream<Compat<PipeEnd>>) {
    let (theirs, ours) = duplex(4096);
    let task = spawn(name, client(theirs, room.clone())).await;
    (task, client_async("ws://localhost/", Compat::new(ours)).await.unwrap().0)
}

#[test]
fn all_clients_get_more_messages_at_once_than_the_room_keeps_and_a_silent_one_is_sent_away() {
    let ran = testing::run(async {
        let room = broadcast::channel(KEPT).0;
        let (ann_task, mut ann) = enter("ann", &room).await;
        let (ben_task, mut ben) = enter("ben", &room).await;
        let many = KEPT + 1;
        for _ in 0..many {
            ann.send(Message::text("tea")).await.unwrap();
        }
        for _ in 0..many {
            for end in [&mut ann, &mut ben] {
                assert_eq!(end.next().await.unwrap().unwrap(), Message::text("tea"));
            }
        }
        for task in [ann_task, ben_task] {
            assert_eq!(task.await.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        }
    });
    assert_eq!(ran.took, PATIENCE);
}

#[test]
fn a_shutdown_closes_a_websocket_and_a_handshake_that_has_not_ended() {
    let second = Duration::from_secs(1);
    let sim = Sim::new().signal_at(Time::ZERO + second, Signal::Interrupt);
    let options = Options::new().shutdown_on(&[Signal::Interrupt]);
    let ran = Setup::new().sim(sim).options(options).run(async {
        let room = broadcast::channel(KEPT).0;
        let (silent, _ours) = duplex(4096);
        let silent = spawn("silent", client(silent, room.clone())).await;
        let (open, mut end) = enter("open", &room).await;
        let heard = until_begun(std::future::pending::<()>()).await;
        assert_eq!(heard, None);
        assert!(end.next().await.unwrap().unwrap().is_close());
        silent.await.unwrap().unwrap();
        open.await.unwrap().unwrap();
    });
    assert_eq!(ran.took, second);
}
