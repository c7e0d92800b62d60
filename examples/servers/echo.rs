//! A TCP server that sends back what it gets: one task per connection.

use std::io;
use std::process::ExitCode;

use net::{Connection, TcpStream, serve};
use serving::server::{self, Place, Server};
use traps::shutdown::until_begun;

// A shutdown waits until everything that was read is sent back, because the connection holds it up.
async fn echo(mut stream: Connection<TcpStream>) -> io::Result<()> {
    let mut buf = vec![0; 16 * 1024];
    while let Some(n) = until_begun(stream.read(&mut buf)).await.transpose()? {
        if n == 0 {
            break;
        }
        stream.write_all(&buf[..n]).await?;
    }
    Ok(())
}

async fn main_task(place: Place) -> io::Result<()> {
    let mut listener = place.listen()?;
    // As many connections as there are descriptors. If none is free, the listener backs off.
    serve(async || listener.accept_peer_until_shutdown().await, u32::MAX, echo).await
}

fn main() -> ExitCode {
    let args: Server = common::parse("echo", "A TCP server that sends back what it gets");
    let args = args.ready(0, &[]);
    server::serve(&args, main_task)
}
