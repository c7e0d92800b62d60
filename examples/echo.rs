//! A TCP server that sends back what it gets: one task per connection.

mod common;

use std::io;
use std::process::ExitCode;

use common::server::{self, Place, Server};
use net::{TcpListener, TcpStream};
use traps::shutdown::{hold, until_begun};
use traps::spawn;

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    // A shutdown waits until what was read is sent back.
    let _hold = hold();
    let mut buf = vec![0; 16 * 1024];
    while let Some(n) = until_begun(stream.read(&mut buf)).await.transpose()? {
        if n == 0 {
            break;
        }
        stream.write_all(&buf[..n]).await?;
    }
    Ok(())
}

async fn serve(mut listener: TcpListener) -> io::Result<()> {
    let mut accepted = 0;
    while let Some(stream) = listener.accept_until_shutdown().await? {
        accepted += 1;
        // Nobody joins it: a connection that fails ends alone.
        spawn(format!("conn-{accepted}"), echo(stream)).detached().await;
    }
    Ok(())
}

async fn main_task(place: Place) -> io::Result<()> {
    let listener = place.listen()?;
    serve(listener).await
}

fn main() -> ExitCode {
    let args: Server = common::parse("echo", "A TCP server that sends back what it gets");
    let args = args.ready(&Default::default(), 0, "");
    server::serve(&args, main_task)
}
