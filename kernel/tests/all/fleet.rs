//! A fleet of workers joins a server within 36 minutes: fishtest's burst of 2025, replayed on the
//! virtual clock.
//!
//! The numbers of workers by time, the pool, the limit, the service times and the rates of calls
//! are fishtest's. A seed draws the time of each join and the duration of each call. Prints
//! the result: `cargo test --test fleet -- --nocapture`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Counters, JobView, Kernel, Options, Sim};
use traps::admission::AdmissionLimit;
use traps::threads::Limiter;
use traps::{Task, clock, sleep, spawn};

const SEED: u64 = 0x5eed_2025;
/// Threads of the server, and places at the limit of `request`.
const TOKENS: usize = 200;
const PLACES: u64 = 5;
/// The number of connections that it would accept.
const CONNECTIONS: u64 = 10_000;
/// The number of workers after so many seconds.
const JOINED: [(u64, u64); 4] = [(0, 205), (1_080, 4_608), (1_980, 9_116), (2_160, 9_418)];
/// The time within which the workers of one machine start.
const BOOT: Duration = Duration::from_millis(100);
/// The time for which the full fleet is watched.
const STEADY: Duration = Duration::from_secs(600);

/// A kind of call: its service time, and how often a worker makes it. At 9,418 workers
/// that is 83, 7.4 and 18.1 calls a second.
struct Route {
    name: &'static str,
    micros: u64,
    every: Duration,
}

const fn route(name: &'static str, micros: u64, every: u64) -> Route {
    Route { name, micros, every: Duration::from_millis(every) }
}

const CALLS: [Route; 3] = [
    route("beat", 6_000, 113_470),
    route("update", 7_000, 1_272_700),
    route("version", 4_000, 520_330),
];
const REQUEST: Route = route("request", 15_000, 0);

/// Numbers from a seed (xorshift), the same everywhere.
#[derive(Clone)]
struct Random(Rc<Cell<u64>>);

impl Random {
    fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.set(x);
        x
    }

    /// Below `limit`.
    fn below(&self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn span_below(&self, limit: Duration) -> Duration {
        Duration::from_micros(self.below(limit.as_micros() as u64))
    }
}

/// The server, with its limits and counters.
struct Server {
    random: Random,
    connections: AdmissionLimit,
    requests: AdmissionLimit,
    calls: [Limiter; 3],
    request: Limiter,
    asked: Cell<u64>,
    served: Cell<u64>,
    /// The time for which served calls would have held tokens if each had taken the usual time.
    usual: Cell<Duration>,
    working: Cell<u64>,
    closing: Cell<bool>,
}

impl Server {
    fn new(random: Random) -> Rc<Server> {
        Rc::new(Server {
            random,
            connections: AdmissionLimit::new("connections", CONNECTIONS),
            requests: AdmissionLimit::new("request", PLACES),
            calls: [&CALLS[0], &CALLS[1], &CALLS[2]].map(|call| Limiter::new(call.name, TOKENS)),
            request: Limiter::new(REQUEST.name, TOKENS),
            asked: Cell::default(),
            served: Cell::default(),
            usual: Cell::default(),
            working: Cell::default(),
            closing: Cell::default(),
        })
    }

    /// One call, on a thread.
    async fn serve(&self, route: &Route, threads: &Limiter) {
        self.asked.set(self.asked.get() + 1);
        threads.run_in_thread(|| ()).await.expect("no call fails");
        self.served.set(self.served.get() + 1);
        self.usual.set(self.usual.get() + Duration::from_micros(route.micros));
    }
}

/// From half to one and a half of the usual time, evenly spread, so the mean is the usual time.
fn service_times(random: Random) -> impl FnMut(&JobView) -> Option<Duration> {
    move |job| {
        let name = job.limiter.expect("each call has its limiter");
        let route = CALLS.iter().chain([&REQUEST]).find(|route| route.name == name).unwrap();
        Some(Duration::from_micros(route.micros / 2 + random.below(route.micros + 1)))
    }
}

/// Asks for a task until it gets one.
async fn join(server: &Server) {
    loop {
        if let Ok(_place) = server.requests.try_admit() {
            return server.serve(&REQUEST, &server.request).await;
        }
        // Refused clients wait like this: 15 s, with some spread.
        let pause = Duration::from_secs(15) + server.random.span_below(SECOND);
        sleep(pause).await.unwrap();
    }
}

/// A worker: joins, unless it was there before, and then makes calls from time to time.
async fn worker(server: Rc<Server>, joins: bool) {
    let _connection = server.connections.try_admit().expect("no 503");
    if joins {
        join(&server).await;
    }
    server.working.set(server.working.get() + 1);
    let start = clock().await;
    let mut next = [0, 1, 2].map(|n| server.random.span_below(CALLS[n].every));
    while !server.closing.get() {
        let call = (0..3).min_by_key(|n| next[*n]).unwrap();
        sleep((start + next[call]).since(clock().await)).await.unwrap();
        server.serve(&CALLS[call], &server.calls[call]).await;
        next[call] += CALLS[call].every;
    }
}

/// Starts workers as in the table. A machine starts up to twelve of them at once.
async fn arrivals(server: Rc<Server>) -> Vec<Task<()>> {
    let mut workers = Vec::new();
    for _ in 0..JOINED[0].1 {
        workers.push(spawn("worker", worker(server.clone(), false)).await);
    }
    for pair in JOINED.windows(2) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        while (workers.len() as u64) < after {
            let machine = (1 + server.random.below(12)).min(after - workers.len() as u64);
            for _ in 0..machine {
                let joining = {
                    let (server, start) = (server.clone(), server.random.span_below(BOOT));
                    async move {
                        sleep(start).await.unwrap();
                        worker(server, true).await;
                    }
                };
                workers.push(spawn("worker", joining).await);
            }
            let share = (to - from) * 1_000_000 / (after - before);
            sleep(Duration::from_micros(share * machine)).await.unwrap();
        }
    }
    workers
}

const SECOND: Duration = Duration::from_secs(1);

/// Returns the mean number of tokens in use between two snapshots.
fn mean(from: &Counters, to: &Counters, span: Duration) -> f64 {
    (to.tokens_held - from.tokens_held).as_secs_f64() / span.as_secs_f64()
}

#[test]
fn f9_f10_f12_f13_the_burst_loses_nothing_and_refuses_few() {
    let random = Random(Rc::new(Cell::new(SEED)));
    let sim = Sim::new().job_spans(service_times(random.clone()));
    let options = Options::new().threads(TOKENS);
    let mut kernel = Kernel::with_options(sim, options);
    let server = Server::new(random);

    let workers = kernel.run(arrivals(server.clone())).unwrap();
    let joined = kernel.run(clock()).unwrap();
    let (grown, usual) = (kernel.counters(), server.usual.get());
    kernel.run(sleep(STEADY)).unwrap().unwrap();
    let steady = kernel.counters();
    let little = (server.usual.get() - usual).as_secs_f64() / STEADY.as_secs_f64();
    let tokens = mean(&grown, &steady, STEADY);

    server.closing.set(true);
    let last = CALLS.map(|call| call.every).into_iter().max().unwrap();
    kernel.run(sleep(last + SECOND)).unwrap().unwrap();
    kernel.shutdown().unwrap();
    let end = kernel.counters();
    let dead = workers.len() as u64 - server.working.get();
    drop(workers);

    println!("seed {SEED:#x}: {} workers after {joined} s", JOINED[3].1);
    println!("calls: asked {} served {}", server.asked.get(), server.served.get());
    println!("gate: entered {} refused {}", server.requests.admitted(), server.requests.refused());
    println!("503: {}  dead workers: {dead}", server.connections.refused());
    println!("tokens: peak {} of {TOKENS}, queued {}", end.tokens_peak, end.queued);
    println!("mean tokens with the full fleet: {tokens:.3}, by Little's law {little:.3}");

    assert_eq!(server.asked.get(), server.served.get(), "none is lost");
    assert_eq!((server.connections.refused(), dead), (0, 0));
    assert_eq!(server.requests.admitted(), JOINED[3].1 - JOINED[0].1, "each got its task");
    assert_eq!(server.requests.refused(), REFUSED);
    assert_eq!((end.tokens, end.jobs, end.tasks), (0, 0, 0));
    // Tokens in use: 0.5 for beats, 0.05 for updates, 0.07 for versions.
    assert!((tokens - little).abs() < 0.02 * little, "{tokens} beside {little}");
    assert!((0.60..0.65).contains(&little), "{little}");
}

/// The number of refusals with this seed.
const REFUSED: u64 = 32;
