//! Step 7: an echo server. With a number on the command line, it ends after this many connections.

mod echo;
// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
mod kernel;

use kernel::{Error, Kernel, Real, TcpListener, note, spawn};

async fn serve(listener: TcpListener, limit: usize) -> Result<(), Error> {
    let mut connections = Vec::new();
    while connections.len() < limit {
        let stream = listener.accept().await?;
        let name = format!("conn-{}", connections.len() + 1);
        connections.push(spawn(&name, echo::serve(stream)).await);
    }
    for connection in &mut connections {
        if let Err(error) = connection.join().await? {
            note(error);
        }
    }
    Ok(())
}

fn main() -> std::io::Result<()> {
    let limit = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(usize::MAX);
    let mut kernel = Kernel::new(Real::new()?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    eprintln!("listening on {}", listener.address()?);
    kernel.run(serve(listener, limit))?.map_err(std::io::Error::other)
}
