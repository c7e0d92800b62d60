//! hyper's HTTP server on trapline: one task per connection, and traps in the service.

use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response};
use net::interop::{Compat, KernelTimer, TwoWay};
use net::serve;
use serving::server::{self, Place, Server};
use traps::shutdown::until_begun;
use traps::{Either, Interrupt, clock, race, sleep};

/// Clients at a time; others wait until one leaves.
const CLIENTS: u32 = 1000;
/// A peer that is slower with the head of a request is disconnected.
const HEAD: Duration = Duration::from_secs(10);
/// How long a shutdown waits for the request in progress and its response.
const LAST: Duration = Duration::from_secs(2);

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Interrupt> {
    let text = match request.uri().path() {
        "/" => "hello from trapline\n".to_owned(),
        "/clock" => format!("{}\n", clock().await),
        "/slow" => format!("{}\n", sleep(Duration::from_millis(500)).await?),
        _ => {
            let missing = Response::builder().status(404).body(Full::default());
            return Ok(missing.expect("a status alone is a response"));
        }
    };
    Ok(Response::new(text.into()))
}

pub async fn connection(stream: impl TwoWay) -> hyper::Result<()> {
    let mut builder = Builder::new();
    builder.timer(KernelTimer).header_read_timeout(HEAD);
    let mut served = pin!(builder.serve_connection(Compat::new(stream), service_fn(answer)));
    if let Some(ended) = until_begun(served.as_mut()).await {
        return ended;
    }
    served.as_mut().graceful_shutdown();
    // Without a limit, half a header section would delay the shutdown until the end of its drain.
    match race(served, sleep(LAST)).await {
        Either::Left(ended) => ended,
        Either::Right(_) => Ok(()),
    }
}

async fn main_task(place: Place) -> io::Result<()> {
    let mut listener = place.listen()?;
    // `serve` gives each connection a hold, so a shutdown waits for it.
    serve(async || listener.accept_peer_until_shutdown().await, CLIENTS, connection).await
}

fn main() -> ExitCode {
    let args: Server = common::parse("hyper_server", "hyper's own HTTP server on trapline");
    server::serve(&args.ready(0, &[]), main_task)
}
