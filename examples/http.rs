//! An HTTP server: `GET /`, `GET /plaintext`, `POST /echo`, `GET /sleep?ms=N`.

mod common;

use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use common::About;
use common::workers::{self, Place};
use net::Stream;
use net::http::{Config, Handler, Method, Request, Response, serve};

/// What this server answers.
struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        match (request.method(), request.path()) {
            (Method::Get, "/") => Ok(Response::text("Hello from trapline.\n")),
            (Method::Get, "/plaintext") => Ok(Response::text("Hello, World!")),
            (Method::Get, "/sleep") => sleep(request.query_value("ms")).await,
            (Method::Post, "/echo") => echo(request).await,
            (_, "/" | "/plaintext" | "/sleep") => Ok(Response::method_not_allowed("GET, HEAD")?),
            (_, "/echo") => Ok(Response::method_not_allowed("POST")?),
            _ => Ok(Response::new(404).with_text("There is nothing here.\n")),
        }
    }
}

/// Answers after `ms` milliseconds; the connection's other answers do not wait for it.
async fn sleep(ms: Option<&str>) -> io::Result<Response> {
    // Bounded: nobody looks at the connection meanwhile, so a client that left is still held.
    let Some(ms) = ms.and_then(|ms| ms.parse().ok()).filter(|ms| *ms <= 60_000) else {
        return Ok(Response::new(400).with_text("Say how long, as in /sleep?ms=100\n"));
    };
    traps::sleep(Duration::from_millis(ms)).await?;
    Ok(Response::text(format!("Slept for {ms} ms.\n")))
}

/// Sends the body back while it comes in.
async fn echo<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
    let kind = request.header("Content-Type").unwrap_or(b"application/octet-stream");
    let mut response = Response::new(200).header("Content-Type", kind)?;
    if let Some(length) = request.body_length() {
        response = response.with_length(length);
    }
    let mut answer = request.start(response).await?;
    while answer.forward().await? {}
    answer.finish()
}

async fn main_task(place: Place) -> io::Result<()> {
    let listener = place.listen()?;
    let config = Rc::new(Config::default());
    log::info!("limits {}", net::boot_line(&config));
    serve(listener, Rc::new(App), config).await
}

fn main() -> ExitCode {
    let what = "an HTTP server: /, /plaintext, /echo, /sleep?ms=N";
    let args = About { name: "http", what, server: true, policy: true }.parse();
    common::log_to_stderr();
    workers::serve(&args, main_task)
}
