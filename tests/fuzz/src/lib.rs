//! The code that the fuzz targets share.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use kernel::{Kernel, Sim};
use net::http::{Config, Handler, serve_connection};
use net::pipe::duplex;
use net::{Stream, TcpListener, TcpStream};
use traps::{clock, ignore_after, join_all, sleep, spawn, timeout_after, yield_now};

/// Serves one connection on the simulated machine. The client writes `bytes`, and the server reads
/// at most `most` of them at once. Returns everything that the server wrote, and whether the
/// connection ended by itself.
///
/// # Panics
///
/// Panics if the server panics or hangs.
pub fn responses<H: Handler + 'static>(handler: H, bytes: &[u8], most: usize) -> (Vec<u8>, bool) {
    let mut kernel = Kernel::new(Sim::new());
    let talked = kernel.run(async {
        let (mut server, mut client) = duplex(1 << 20);
        server.set_short_reads(most);
        spawn("conn", async move { serve_connection(server, &handler, &Config::default()).await })
            .await;
        let (mut all, mut buf) = (Vec::new(), [0; 4096]);
        client.write(bytes).await.expect("the pipe has room");
        loop {
            // Longer than the sum of all deadlines.
            match ignore_after(Duration::from_secs(120), client.read(&mut buf)).await {
                Ok(Some(n @ 1..)) => all.extend_from_slice(&buf[..n]),
                Ok(Some(0)) | Err(_) => return (all, true),
                Ok(None) => return (all, false),
            }
        }
    });
    kernel.shutdown().expect("it shuts down");
    talked.expect("nothing hangs")
}

/// The program of the target `record`: it takes something of each common kind from outside.
///
/// # Errors
///
/// Returns the first error of a socket.
pub async fn program() -> io::Result<Vec<u8>> {
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut client = spawn("client", async move {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"a question").await?;
        let mut buf = [0; 64];
        let n = stream.read(&mut buf).await?;
        Ok::<_, io::Error>(buf[..n].to_vec())
    })
    .await;
    let mut stream = listener.accept_stream().await?;
    let mut buf = [0; 64];
    let n = timeout_after(Duration::from_secs(5), stream.read(&mut buf)).await?;
    stream.write_all(&buf[..n]).await?;
    let _ = join_all((1..4).map(|n| sleep(Duration::from_millis(n)))).await;
    yield_now().await?;
    let _ = clock().await;
    let echoed = client.join().await;
    echoed.unwrap_or_else(|_| Ok(Vec::new()))
}
