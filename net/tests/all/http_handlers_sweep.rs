//! Handlers that hold a resource (a place in a gate, a thread, a file, a response in progress) are
//! interrupted at each of their traps, and must release it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kernel::Sim;
use net::Stream;
use net::http::{Config, Deadlines};
use net::http::{Handler, Limits, Request, Response, serve_connection};
use net::pipe::{PipeEnd, duplex};
use net::web::{Blocking, Client, ClientRequest, ConcurrencyLimit, Event, Events, Files};
use net::web::{OwnedRequest, Router};
use traps::admission::AdmissionLimit;
use traps::threads::Limiter;
use traps::{sleep, spawn};

const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Copy)]
enum Route {
    Task,
    File,
    Events,
}

struct App {
    routes: Router<Route>,
    task: Blocking<fn(&OwnedRequest) -> io::Result<Response>>,
    files: Files,
}

fn task(request: &OwnedRequest) -> io::Result<Response> {
    Ok(Response::new(200).with_body(request.body().to_vec()))
}

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let route = match self.routes.find(request) {
            Ok(route) => route,
            Err(answer) => return Ok(answer),
        };
        match route {
            Route::Task => self.task.handle(request).await,
            Route::File => {
                let name = request.raw_param("name").unwrap().to_owned();
                self.files.respond(request, &name).await
            }
            Route::Events => {
                let mut events = Events::start(request).await?;
                for _ in 0..2 {
                    events.during(2 * MS, sleep(3 * MS)).await??;
                    events.send(&Event::new("tick")).await?;
                }
                events.finish()
            }
        }
    }
}

/// The result, and the resources that are still held.
struct Held {
    gate: AdmissionLimit,
    bodies: Vec<Vec<u8>>,
}

async fn talk(client: PipeEnd, bodies: &mut Vec<Vec<u8>>) -> io::Result<()> {
    let mut client = Client::new(client);
    for request in [
        ClientRequest::new("POST", "a", "/task")?.with_body("done"),
        ClientRequest::new("GET", "a", "/files/ten")?,
        ClientRequest::new("GET", "a", "/events")?,
    ] {
        let mut response = client.send(&request).await?;
        // A request that is cut off is refused if none of its response has been sent.
        if response.status() == 503 {
            break;
        }
        bodies.push(response.body_to_vec(1000).await?);
    }
    Ok(())
}

async fn program(home: &Path) -> Held {
    let gate = AdmissionLimit::new("few", 1);
    let limiter = Limiter::new("threads", 1);
    let task =
        Blocking::new(limiter.clone(), 10, task as fn(&OwnedRequest) -> io::Result<Response>);
    let app = App {
        routes: Router::new()
            .post("/task", Route::Task)
            .get("/files/{*name}", Route::File)
            .get("/events", Route::Events),
        task: task.behind(ConcurrencyLimit::new(gate.clone())),
        files: Files::open(home, limiter).unwrap().piece(4),
    };
    let (server, client) = duplex(1 << 16);
    let serve = async move {
        // The deadline of the handlers adds its own scope to each trap.
        let deadlines = Deadlines { handler: Duration::from_secs(5), ..Deadlines::default() };
        serve_connection(server, &app, &Config::new(Limits::default(), deadlines)).await
    };
    let mut conn = spawn("conn", serve).await;
    let mut bodies = Vec::new();
    // Its connection ends with it, whatever its result.
    let _ = talk(client, &mut bodies).await;
    let _ = conn.join().await;
    Held { gate, bodies }
}

/// Whether this process has the file open.
fn is_open(file: &Path) -> bool {
    let file = fs::canonicalize(file).unwrap();
    let mut links = fs::read_dir("/proc/self/fd").unwrap();
    links.any(|entry| entry.is_ok_and(|entry| fs::read_link(entry.path()).is_ok_and(|l| l == file)))
}

#[test]
fn whatever_a_handler_holds_comes_back_wherever_it_is_interrupted() {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("handlers_sweep");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("ten"), "0123456789").unwrap();
    let sweep = testing::sweep(|| (Sim::new().jobs_take(MS), program(&home)));
    let remark = ":\n\n";
    let events = format!("{remark}data: tick\n\n").repeat(2);
    let all = [b"done".to_vec(), b"0123456789".to_vec(), events.into_bytes()];
    let swept = sweep.check(|_, ran| {
        let Held { gate, bodies } = ran.output;
        assert_eq!(gate.inside(), 0);
        assert!(!is_open(&home.join("ten")));
        // A complete response is right; an incomplete one is recognizable to the client.
        for (body, wanted) in bodies.iter().zip(&all) {
            assert_eq!(String::from_utf8_lossy(body), String::from_utf8_lossy(wanted));
        }
    });
    assert_eq!(swept.plain.output.bodies, all);
    assert!(swept.runs > 50, "{} runs", swept.runs);
}
