//! axum on trapline: its routes and extractors, served by hyper, with traps in the handlers.

use std::cell::RefCell;
use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1::Builder;
use hyper::service::service_fn;
use net::interop::{Compat, KernelTimer, ThreadBound, TwoWay};
use net::serve;
use serving::server::{self, Place, Server};
use tower::Service;
use traps::shutdown::until_begun;
use traps::{Either, race, sleep};

/// Clients at a time; others wait until one leaves.
const CLIENTS: u32 = 1000;
/// How long a client may take for the header section of a request.
const HEAD: Duration = Duration::from_secs(10);
/// How long a shutdown waits for the request in progress and its response.
const LAST: Duration = Duration::from_secs(2);

/// The state of the handlers, without a lock.
type Notes = Arc<ThreadBound<RefCell<Vec<String>>>>;

pub fn router() -> Router {
    Router::new()
        .route("/notes", post(add))
        .route("/notes/{id}", get(show))
        .route("/slow", get(slow))
        .with_state(Arc::new(ThreadBound::new(RefCell::default())))
}

async fn add(State(notes): State<Notes>, text: String) -> String {
    notes.borrow_mut().push(text);
    format!("{}\n", notes.borrow().len() - 1)
}

async fn show(State(notes): State<Notes>, Path(id): Path<usize>) -> Result<String, StatusCode> {
    notes.borrow().get(id).cloned().ok_or(StatusCode::NOT_FOUND)
}

/// axum demands futures that are `Send`, and those of traps are not.
async fn slow() -> Result<String, StatusCode> {
    let slept = ThreadBound::new(Box::pin(sleep(Duration::from_millis(500)))).await;
    slept.map(|now| format!("{now}\n")).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)
}

pub async fn connection(stream: impl TwoWay, router: Router) -> hyper::Result<()> {
    let service =
        service_fn(move |request: Request<Incoming>| router.clone().call(request.map(Body::new)));
    let mut builder = Builder::new();
    builder.timer(KernelTimer).header_read_timeout(HEAD);
    let mut served = pin!(builder.serve_connection(Compat::new(stream), service));
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
    let router = router();
    let handle = |stream| connection(stream, router.clone());
    // `serve` gives each connection a hold, so a shutdown waits for it.
    serve(async || listener.accept_peer_until_shutdown().await, CLIENTS, handle).await
}

fn main() -> ExitCode {
    let args: Server = common::parse("axum_server", "axum's routes on trapline, served by hyper");
    server::serve(&args.ready(0, &[]), main_task)
}
