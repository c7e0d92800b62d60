use std::io;
use std::time::Duration;

use async_tungstenite::accept_async_with_config;
use async_tungstenite::tungstenite::protocol::WebSocketConfig;
use async_tungstenite::tungstenite::{Error, Message};
use futures_util::StreamExt;
use net::interop::{Compat, TwoWay};
use traps::channel::broadcast;
use traps::shutdown::until_begun;
use traps::{Either, race, timeout_after, yield_now};

/// How long a client may be silent.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of a message; without a limit of its own, a server takes 64 MiB.
const MESSAGE: usize = 64 * 1024;

pub type Room = broadcast::Sender<Message>;

pub async fn client(stream: impl TwoWay, room: Room) -> io::Result<()> {
    let to_io = |error| match error {
        Error::Io(error) => error, // it can carry an interrupt
        other => io::Error::other(other),
    };
    let config = WebSocketConfig::default().max_message_size(Some(MESSAGE));
    let accept = accept_async_with_config(Compat::new(stream), Some(config));
    let accept = timeout_after(PATIENCE, async { accept.await.map_err(to_io) });
    let Some(socket) = until_begun(accept).await.transpose()? else { return Ok(()) };
    let (mut sink, mut source) = socket.split();
    let mut news = room.subscribe();
    let speak = async {
        loop {
            let next = async { source.next().await.transpose().map_err(to_io) };
            let next = until_begun(timeout_after(PATIENCE, next)).await;
            // The client has left, or the shutdown has begun.
            let Some(Some(message)) = next.transpose()? else { return Ok(()) };
            if message.is_text() || message.is_binary() {
                room.send(message)?;
                yield_now().await?; // the other clients take this message now
            }
        }
    };
    let hear = async {
        loop {
            sink.send(news.recv().await?).await.map_err(to_io)?;
        }
    };
    let (Either::Left(ended) | Either::Right(ended)) = race(speak, hear).await;
    let close = async { sink.close(None).await.map_err(to_io) };
    _ = timeout_after(Duration::from_secs(1), close).await;
    ended
}
