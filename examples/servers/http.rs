//! An HTTP server: `GET /`, `GET /plaintext`, `POST /echo`, `GET /sleep?ms=N`,
//! `GET /stream?chunks=N`, `GET /events`, `GET /files/NAME`, `GET /blocking?ms=N`, `GET /gate`.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use common::log::{ACCESS, access_time};
use net::Stream;
use net::http::serve;
use net::http::{Handler, Request, Response};
use net::web::{Blocking, ConcurrencyLimit, Event, Events, Files, Form, OwnedRequest, Router};
use serde_json::json;
use serving::access;
use serving::http_flags::HttpFlags;
use serving::http_lines;
use serving::kernel_page;
use serving::server::{self, Place, Server};
use traps::admission::AdmissionLimit;
use traps::shutdown;
use traps::threads::Limiter;

/// The routes.
#[derive(Clone, Copy)]
enum Route {
    Hello,
    Plaintext,
    Echo,
    Sleep,
    Stream,
    Events,
    File,
    Blocking,
    Gate,
    Kernel,
    KernelEvents,
    KernelWhy,
    KernelMetrics,
    KernelDump,
}

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    server: Server,
    #[command(flatten)]
    http: HttpFlags,
}

/// Work for a thread.
type Work = fn(&OwnedRequest) -> io::Result<Response>;

/// The handler of this server.
pub struct App {
    routes: Router<Route>,
    kernel_page: bool,
    /// A handler that takes longer makes a dump of the flight recorder.
    slow: Option<Duration>,
    /// `None` if no directory was given.
    files: Option<Files>,
    blocking: Blocking<Work>,
    gate: Blocking<Work>,
}

impl App {
    pub fn new(flags: &HttpFlags, gate: AdmissionLimit) -> io::Result<App> {
        let threads = |name, count: u64| Limiter::new(name, usize::try_from(count).unwrap_or(1));
        let routes = Router::new()
            .get("/", Route::Hello)
            .get("/plaintext", Route::Plaintext)
            .post("/echo", Route::Echo)
            .get("/sleep", Route::Sleep)
            .get("/stream", Route::Stream)
            .get("/events", Route::Events)
            .get("/files/{*name}", Route::File)
            .get("/blocking", Route::Blocking)
            .form(Form::Json)
            .get("/gate", Route::Gate)
            .form(Form::Text)
            .get("/kernel", Route::Kernel)
            .get("/kernel/events", Route::KernelEvents)
            .get("/kernel/why", Route::KernelWhy)
            .get("/kernel/metrics", Route::KernelMetrics)
            .post("/kernel/dump", Route::KernelDump);
        // As many threads as the gate admits requests, so that no admitted request waits for a
        // thread.
        let behind = threads("gate", gate.limit());
        let limit = ConcurrencyLimit::new(gate).or_else(too_busy);
        let open = |path: &PathBuf| Files::open(path, threads("files", flags.file_threads));
        Ok(App {
            routes,
            kernel_page: flags.kernel_page,
            slow: flags.slow,
            files: flags.files.as_ref().map(open).transpose()?,
            blocking: Blocking::new(threads("blocking", flags.blocking_threads), 0, block as Work),
            gate: Blocking::new(behind, 0, task as Work).behind(limit),
        })
    }
}

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let route = match self.routes.find(request) {
            Ok(route) => route,
            Err(answer) => return Ok(answer),
        };
        // A stream of events takes as long as its client likes.
        let is_stream = matches!(route, Route::Stream | Route::Events | Route::KernelEvents);
        let slow = self.slow.filter(|_| !is_stream).map(|slow| (slow, Instant::now()));
        let response = match route {
            Route::Hello => Ok(hello()),
            Route::Plaintext => Ok(plaintext()),
            Route::Sleep => {
                let ms = number(request.query_value("ms"), MOST_MS);
                sleep(ms).await
            }
            // Boxed so that requests for other paths do not carry their size.
            Route::Echo => Box::pin(echo(request)).await,
            Route::Stream => Box::pin(stream(request)).await,
            Route::Events => Box::pin(events(request)).await,
            Route::Kernel
            | Route::KernelEvents
            | Route::KernelWhy
            | Route::KernelMetrics
            | Route::KernelDump
                if !self.kernel_page =>
            {
                Ok(Response::new(404).with_text("Start the server with --kernel-page\n"))
            }
            Route::Kernel => Box::pin(kernel_page::page()).await,
            Route::KernelEvents => Box::pin(kernel_page::feed(request)).await,
            Route::KernelWhy => Box::pin(kernel_page::why(request)).await,
            Route::KernelMetrics => Box::pin(kernel_page::metrics()).await,
            Route::KernelDump => Ok(kernel_page::dump(request)),
            Route::File => match &self.files {
                Some(files) => {
                    let name = request.raw_param("name").unwrap_or_default().to_owned();
                    Box::pin(async move { files.respond(request, &name).await }).await
                }
                None => Ok(Response::new(404).with_text("Start the server with --files DIR\n")),
            },
            Route::Blocking => Box::pin(self.blocking.handle(request)).await,
            Route::Gate => Box::pin(self.gate.handle(request)).await,
        };
        if slow.is_some_and(|(slow, begin)| begin.elapsed() > slow) {
            common::flight::dump("slow");
        }
        response
    }
}

fn hello() -> Response {
    Response::text("Hello from trapline.\n")
}

fn plaintext() -> Response {
    Response::text("Hello, World!")
}

/// The most that `ms=` may ask for.
const MOST_MS: u64 = 60_000;

/// The most that `chunks=` may ask for.
const MOST_CHUNKS: u64 = 1_000_000;

/// The response to a missing or too large number.
fn bad(what: &str, most: u64, example: &str) -> Response {
    let text = format!("Say how {what}, at most {most}, as in {example}\n");
    Response::new(400).with_text(text)
}

/// The number in a query, if it is a number of at most `most`.
fn number(text: Option<Cow<'_, str>>, most: u64) -> Option<u64> {
    text?.parse().ok().filter(|number| *number <= most)
}

/// Responds after `ms` milliseconds. Other responses of the connection do not wait for this one.
async fn sleep(ms: Option<u64>) -> io::Result<Response> {
    let Some(ms) = ms else {
        return Ok(bad("long", MOST_MS, "/sleep?ms=100"));
    };
    traps::sleep(Duration::from_millis(ms)).await?;
    Ok(Response::text(format!("Slept for {ms} ms.\n")))
}

/// Sends the body back once all of it has arrived, because a client that sends everything before it
/// reads would deadlock with an echo that streams. `--limit-body` bounds the memory.
async fn echo<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
    let kind = request.header("Content-Type").unwrap_or(b"application/octet-stream");
    let response = Response::new(200).header("Content-Type", kind)?;
    Ok(response.with_body(request.body_to_vec(usize::MAX).await?))
}

/// Sends as many chunks as the query asks for, as fast as the client takes them.
async fn stream<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
    let Some(chunks) = number(request.query_value("chunks"), MOST_CHUNKS) else {
        return Ok(bad("many", MOST_CHUNKS, "/stream?chunks=10"));
    };
    let plain = Response::new(200).header("Content-Type", "text/plain; charset=utf-8")?;
    // The response to a HEAD has no body.
    let sent = if request.is_head() { 0 } else { chunks };
    let mut answer = request.start(plain).await?;
    for chunk in 1..=sent {
        answer.write(format!("chunk {chunk} of {chunks}\n").as_bytes()).await?;
    }
    answer.finish()
}

/// Sends an event a second until the client leaves or the server stops.
async fn events<S: Stream>(request: &mut Request<'_, S>) -> io::Result<Response> {
    let last = Events::last_id(request).and_then(|id| id.parse().ok()).unwrap_or(0_u32);
    let mut events = Events::start(request).await?;
    for second in u64::from(last) + 1.. {
        if !events.is_wanted() {
            break;
        }
        let tick = shutdown::until_begun(traps::sleep(Duration::from_secs(1)));
        if tick.await.transpose()?.is_none() {
            break;
        }
        let text = format!("second {second}");
        events.send(&Event::new(&text).with_id(&second.to_string())).await?;
    }
    events.finish()
}

/// Occupies a thread for `ms` milliseconds.
fn block(request: &OwnedRequest) -> io::Result<Response> {
    let Some(ms) = number(request.query_value("ms"), MOST_MS) else {
        return Ok(bad("long", MOST_MS, "/blocking?ms=100"));
    };
    thread::sleep(Duration::from_millis(ms));
    Ok(Response::text(format!("Blocked for {ms} ms.\n")))
}

/// Scarce work after a gate: 15 ms, or `ms`, of a thread.
fn task(request: &OwnedRequest) -> io::Result<Response> {
    let Some(ms) = number(request.query_value("ms").or(Some("15".into())), MOST_MS) else {
        return Ok(
            Form::Json.error(400, &format!("say how long, at most {MOST_MS}, as in /gate?ms=100"))
        );
    };
    thread::sleep(Duration::from_millis(ms));
    Response::json(&json!({ "task_waiting": true, "ms": ms }))
}

/// The response of `/gate` when all places are taken. It asks the client to try again later.
fn too_busy(gate: &AdmissionLimit) -> Response {
    let info = format!("the server is too busy: {} at a time", gate.limit());
    let answer = json!({ "task_waiting": false, "info": info });
    Response::json(&answer).expect("it is a value of JSON")
}

async fn main_task(place: Place, flags: HttpFlags, gate: AdmissionLimit) -> io::Result<()> {
    let app = App::new(&flags, gate)?;
    let listener = place.listen()?;
    let mut config = flags.config();
    if flags.access_log {
        config.on_exchange(|answer| {
            log::info!(target: ACCESS, "{}", access::line(answer, &access_time()));
        });
    }
    let config = Rc::new(config);
    http_lines::in_force(&config).iter().for_each(|line| log::info!("{line}"));
    serve(listener, Rc::new(app), config).await
}

fn main() -> ExitCode {
    let what = "An HTTP server: /, /plaintext, /echo, /sleep?ms=N, /stream?chunks=N, /events,\n\
                /files/NAME, /blocking?ms=N, /gate?ms=N";
    let Args { server, http } = common::parse("http", what);
    let server = server.ready(http.threads(), &http.in_force());
    let server = server.with_seats(http.config().limits.connections);
    let server = if http.kernel_page { server.with_kernel_page() } else { server };
    // One for all workers, because the guarded work is scarce for the whole process.
    let gate = AdmissionLimit::new("gate", http.gate);
    server::serve(&server, move |place| main_task(place, http.clone(), gate.clone()))
}
