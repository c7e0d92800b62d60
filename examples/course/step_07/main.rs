//! Step 7: an echo server. A number on the command line ends it after so many connections.

// This program uses it in part.
#[allow(dead_code, unused_imports)]
mod kernel;

use kernel::{Error, Kernel, Real, TcpListener, TcpStream, note, spawn};

async fn echo(stream: TcpStream) -> Result<(), Error> {
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}

async fn serve(listener: TcpListener, limit: usize) -> Result<(), Error> {
    let mut connections = Vec::new();
    while connections.len() < limit {
        let stream = listener.accept().await?;
        let name = format!("conn-{}", connections.len() + 1);
        connections.push(spawn(&name, echo(stream)).await);
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
