//! WebSockets by async-tungstenite at both ends.

use async_tungstenite::tungstenite::{Error, Message};
use async_tungstenite::{accept_async, client_async};
use futures_util::StreamExt;
use net::TcpStream;
use net::interop::Compat;
use traps::join;

use super::{loopback, run};

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
