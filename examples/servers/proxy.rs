//! A TCP proxy: forwards each connection to another server, in both directions.

use std::io::{self, IoSlice};
use std::process::ExitCode;
use std::time::Duration;

use common::limits::{self, span};
use common::values::{between, host_and_port, millis};
use net::{Connection, Split, Stream, TcpStream, copy_bidirectional, serve};
use serving::server::{self, Place, Server};
use traps::{ConnectionDeadline, Site, connection_deadline, timeout_after};

/// The options of the command line.
#[derive(clap::Args)]
struct Proxy {
    /// The server to which each connection is forwarded
    #[arg(value_name = "UPSTREAM", required_unless_present_any = ["print_limits", "list_traps"],
          value_parser = host_and_port)]
    upstream: Option<String>,
    /// Milliseconds for the connection to UPSTREAM to be made
    #[arg(long, value_name = "MS", default_value = "5000", value_parser = millis)]
    connect: Duration,
    /// Milliseconds of silence after which a connection ends
    #[arg(long, value_name = "MS", default_value = "300000", value_parser = millis)]
    idle: Duration,
    /// Connections at a time; others wait to be accepted
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = between(1, u32::MAX))]
    limit: u32,
    #[command(flatten)]
    server: Server,
}

/// A stream, or a half of one, that restarts a deadline with each byte.
struct Watched<'c, S>(S, &'c ConnectionDeadline, Duration);

impl<S: Split> Split for Watched<'_, &mut S> {
    fn split(&mut self) -> (impl Stream, impl Stream) {
        let Watched(stream, deadline, idle) = self;
        let (reader, writer) = stream.split();
        (Watched(reader, deadline, *idle), Watched(writer, deadline, *idle))
    }
}

impl<S: Stream> Stream for Watched<'_, S> {
    async fn read_from(&mut self, buf: &mut [u8], site: Site) -> io::Result<usize> {
        let n = self.0.read_from(buf, site).await?;
        self.1.arm(self.2);
        Ok(n)
    }

    async fn write_from(&mut self, bufs: &[IoSlice<'_>], site: Site) -> io::Result<usize> {
        let n = self.0.write_from(bufs, site).await?;
        self.1.arm(self.2);
        Ok(n)
    }

    fn readable(&mut self) -> impl Future<Output = io::Result<()>> {
        self.0.readable()
    }

    fn flush(&mut self) -> impl Future<Output = io::Result<()>> {
        self.0.flush()
    }

    fn shutdown(&mut self) -> io::Result<()> {
        self.0.shutdown()
    }

    fn has_end_message(&self) -> bool {
        self.0.has_end_message()
    }
}

/// Copies both ways until both have ended. Returns `false` if no byte went either way for `idle`.
pub async fn exchange(
    client: &mut impl Split,
    server: &mut impl Split,
    idle: Duration,
) -> io::Result<bool> {
    let deadline = connection_deadline().await;
    let mut client = Watched(client, &deadline, idle);
    let mut server = Watched(server, &deadline, idle);
    match deadline.guard(idle, copy_bidirectional(&mut client, &mut server)).await {
        Err(_) if deadline.fired() => Ok(false),
        copied => copied.map(|_| true),
    }
}

/// The longest time for connecting to the server, and for silence of both sides.
type Patience = [Duration; 2];

async fn pass_on(
    mut client: Connection<TcpStream>,
    upstream: String,
    [connect, idle]: Patience,
) -> io::Result<()> {
    let mut server = timeout_after(connect, TcpStream::connect(upstream)).await?;
    let ended = exchange(&mut *client, &mut server, idle).await;
    if !matches!(ended, Ok(true)) {
        // So that neither side takes a part of the data for the whole.
        client.reset()?;
        server.reset()?;
    }
    ended.map(drop)
}

async fn main_task(
    place: Place,
    upstream: String,
    patience: Patience,
    limit: u32,
) -> io::Result<()> {
    let mut listener = place.listen()?;
    let handle = |client| pass_on(client, upstream.clone(), patience);
    serve(async || listener.accept_peer_until_shutdown().await, limit, handle).await
}

fn main() -> ExitCode {
    let Proxy { upstream, connect, idle, limit, server } = common::parse("proxy", "A TCP proxy");
    let own = [
        span("connect", connect),
        span("idle", idle),
        limits::limit("limit", limit, "connections"),
    ];
    let server = server.ready(0, &own);
    // It is set, unless a list was printed.
    let upstream = upstream.unwrap_or_default();
    server::serve(&server, move |place| main_task(place, upstream.clone(), [connect, idle], limit))
}
