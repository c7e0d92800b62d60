//! A TCP proxy: what comes on a connection goes on to another server, and back.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use common::limits::{self, span};
use common::values::{between, host_and_port, millis};
use net::{Connection, Stream, TcpStream, copy_bidirectional, serve};
use serving::server::{self, Place, Server};
use traps::timeout_after;

/// What the command line asks for.
#[derive(clap::Args)]
struct Proxy {
    /// Where each connection goes on to
    #[arg(value_name = "UPSTREAM", required_unless_present_any = ["print_limits", "list_traps"],
          value_parser = host_and_port)]
    upstream: Option<String>,
    /// Milliseconds for the connection to UPSTREAM to be made
    #[arg(long, value_name = "MS", default_value = "5000", value_parser = millis)]
    connect: Duration,
    /// Connections at a time; others wait to be accepted
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = between(1, u32::MAX))]
    limit: u32,
    #[command(flatten)]
    server: Server,
}

async fn pass_on(
    mut client: Connection<TcpStream>,
    upstream: String,
    patience: Duration,
) -> io::Result<()> {
    let mut server = timeout_after(patience, TcpStream::connect(upstream)).await?;
    let copied = copy_bidirectional(&mut *client, &mut server).await;
    if copied.is_err() {
        // So that neither side takes a part for the whole.
        client.reset()?;
        server.reset()?;
    }
    copied.map(drop)
}

async fn main_task(
    place: Place,
    upstream: String,
    patience: Duration,
    limit: u32,
) -> io::Result<()> {
    let mut listener = place.listen()?;
    let handle = |client| pass_on(client, upstream.clone(), patience);
    serve(async || listener.accept_peer_until_shutdown().await, limit, handle).await
}

fn main() -> ExitCode {
    let Proxy { upstream, connect, limit, server } = common::parse("proxy", "A TCP proxy");
    let own = [span("connect", connect), limits::limit("limit", limit, "connections")];
    let server = server.ready(0, &own);
    // It is there, or a list was printed.
    let upstream = upstream.unwrap_or_default();
    server::serve(&server, move |place| main_task(place, upstream.clone(), connect, limit))
}
