//! Programs that exist only to be counted: `bench counts sleeps N` and `bench counts echo
//! [--timeouts]`.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use kernel::{Kernel, Real, Sim};
use net::{TcpListener, TcpStream};
use traps::{Interrupt, sleep, spawn, timeout_after};

use crate::out;

/// Longer than a client waits.
const SPAN: Duration = Duration::from_secs(60);

/// Sleeps `n` times on the simulated machine.
///
/// # Errors
///
/// Returns an error if `n` is not a number.
pub fn sleep_often(n: &str) -> Result<bool, String> {
    let n: u64 = n.parse().map_err(|_| format!("expected a number, not `{n}`"))?;
    let main = async {
        for _ in 0..n {
            sleep(Duration::from_millis(1)).await?;
        }
        Ok::<(), Interrupt>(())
    };
    let slept = Kernel::new(Sim::new()).run(main).map_err(|error| error.to_string())?;
    slept.map(|()| true).map_err(|error| error.to_string())
}

/// Sends everything back, until it is killed, with or without a timeout around each read.
///
/// # Errors
///
/// The listener's.
pub fn echo(timeouts: bool) -> Result<bool, String> {
    let served = Real::new().map_err(|error| error.to_string()).and_then(|real| {
        let served = Kernel::new(real).run(accept(timeouts));
        served.map_err(|error| error.to_string())
    })?;
    served.map(|()| true).map_err(|error| error.to_string())
}

async fn accept(timeouts: bool) -> io::Result<()> {
    let mut listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let listening = format!("listening on {}\n", listener.local_addr()?);
    out::say(&listening).map_err(io::Error::other)?;
    loop {
        let stream = listener.accept_stream().await?;
        spawn("conn", conn(stream, timeouts)).detached().await;
    }
}

async fn conn(mut stream: TcpStream, timeouts: bool) -> io::Result<()> {
    let mut buf = [0; 256];
    loop {
        let n = match timeouts {
            true => timeout_after(SPAN, stream.read(&mut buf)).await?,
            false => stream.read(&mut buf).await?,
        };
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buf[..n]).await?;
    }
}
