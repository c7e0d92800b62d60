//! A UDP server that sends each datagram back to where it came from.

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use common::{Common, values};
use net::UdpSocket;
use traps::Interruptible;
use traps::shutdown::until_begun;

#[derive(clap::Args)]
struct Args {
    /// Where to receive; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080",
          value_parser = values::address)]
    addr: SocketAddr,
    #[command(flatten)]
    common: Common,
}

async fn echo(socket: UdpSocket) -> io::Result<()> {
    // No datagram is longer.
    let mut buf = vec![0; 64 * 1024];
    while let Some((n, peer)) = until_begun(socket.recv_from(&mut buf)).await.transpose()? {
        let sent = socket.send_to(&buf[..n], peer).await;
        // A datagram that cannot be sent is lost, but the server continues.
        if let Err(error) = sent
            && error.interrupt().is_some()
        {
            return Err(error);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let Args { addr, common } =
        common::parse("udp_echo", "A UDP server that sends back each datagram");
    let kernel = common.until_signal();
    common::run(kernel, async move {
        let socket = UdpSocket::bind(addr)?;
        common.say_where(socket.local_addr()?);
        echo(socket).await
    })
}
