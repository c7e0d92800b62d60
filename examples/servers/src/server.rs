//! A server's command line and its workers: one kernel, or several that share the port, each on its
//! own thread.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Machine, Policy, Real, Remote, Taped};
use net::TcpListener;
use net::listener::Options;

use common::limits::{Limit, limit};
use common::stderr::FlushAtEnd;
use common::taped::Tape;
use common::values::{Span, address, between};
use common::{Common, Outcome, complain, fail, log, outcome, report, run, signals};

use crate::kernel_page;

/// How long a signal may take to reach all workers, because a busy worker checks for signals only
/// now and then.
const SPREAD: Duration = Duration::from_millis(100);

/// The number of descriptors that a worker needs for its kernel, its listener and its trace, in
/// addition to its connections.
const OF_A_WORKER: u64 = 8;

/// The options that every server has.
#[derive(clap::Args, Clone, Debug)]
pub struct Server {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = address)]
    addr: SocketAddr,
    /// Threads that share the port, each with its own kernel
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = between(1_u32, 64))]
    workers: u32,
    /// Connections that wait to be accepted, of each worker
    #[arg(long, value_name = "N", default_value_t = Options::default().backlog,
          value_parser = between(1, i32::MAX as u32))]
    backlog: u32,
    /// Milliseconds that a shutdown waits for answers, or off
    #[arg(long, value_name = "MS", default_value_t = Span(kernel::Options::default().drain),
          value_parser = Span::from(0))]
    drain: Span,
    /// When to unregister a descriptor: lazy, next-sleep or eager
    #[arg(long, value_name = "NAME", default_value = "lazy")]
    policy: Policy,
    /// Begin each line of the log with the time, as on a terminal
    #[arg(long)]
    log_time: bool,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    tape: Tape,
    /// The number of worker threads for blocking jobs, if a kernel needs more than it has by
    /// default.
    #[arg(skip)]
    threads: usize,
    /// The largest number of connections that a worker serves at a time, if this number is limited.
    #[arg(skip)]
    slots: Option<usize>,
    /// Whether the page `/kernel` shows what the kernel does.
    #[arg(skip)]
    kernel_page: bool,
}

impl Server {
    /// Checks the options, and prepares the log. If the options ask for a list, prints the list and
    /// ends the process instead. `threads` is the number of blocking jobs that run at a time, and
    /// `own` has the limits that only this server has.
    pub fn ready(mut self, threads: usize, own: &[Limit]) -> Server {
        self.threads = threads;
        let shared = [
            limit("workers", self.workers, "threads"),
            limit("backlog", self.backlog, "connections"),
        ];
        self.common.print_lists(&self.options(), &[own, &shared].concat());
        if self.workers > 1 && self.common.trace.as_deref() == Some("-") {
            fail("error: --trace -: each worker has a trace of its own; expected a file");
        }
        if self.workers > 1 && self.tape.is_on() {
            fail("error: several workers can be neither recorded nor replayed; expected 1");
        }
        log::prepare(self.log_time);
        self
    }

    fn options(&self) -> kernel::Options {
        let options = self.common.options().policy(self.policy).drain(self.drain.0);
        let options = options.timer_slack(common::TIMER_SLACK);
        let threads = self.threads.max(options.threads);
        options.threads(threads).shutdown_on(signals::of_shutdown())
    }

    fn listener(&self) -> Options {
        Options { backlog: self.backlog, ..Options::default() }
    }

    /// Sets the largest number of connections that a worker serves at a time, to compare it with
    /// the limit of open files.
    pub fn with_seats(mut self, slots: usize) -> Server {
        self.slots = Some(slots);
        self
    }

    /// Raises the limit of open files as far as possible. Returns a warning if this fails or the
    /// limit is too small.
    fn make_room(&self) -> Option<String> {
        let limit = match net::raise_descriptor_limit() {
            Ok(limit) => limit,
            Err(error) => return Some(format!("cannot raise the limit of open files: {error}")),
        };
        let workers = u64::from(self.workers);
        let open = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
        let left = limit.saturating_sub(open + workers * OF_A_WORKER);
        let slots = self.slots? as u64;
        (workers.saturating_mul(slots) > left).then(|| {
            format!(
                "the limit of {limit} open files leaves {left} for connections, fewer than \
                 --limit-connections {slots} times --workers {workers}"
            )
        })
    }

    /// Lets [`kernel_page`] see the events of each worker's kernel.
    pub fn with_kernel_page(mut self) -> Server {
        self.kernel_page = true;
        self
    }

    // Compiled in the caller's crate; see `Common::until_signal`.
    #[inline]
    fn kernel(&self) -> io::Result<Kernel<Real>> {
        self.watched(self.common.kernel(Real::new()?, self.options())?)
    }

    // As above.
    #[inline]
    fn taped_kernel(&self) -> io::Result<Kernel<Taped>> {
        if self.kernel_page {
            complain(
                "warning: /kernel shows times of its own, so a replay differs where it is sent",
            );
        }
        self.watched(self.tape.kernel(&self.common, self.options())?)
    }

    fn watched<M: Machine>(&self, mut kernel: Kernel<M>) -> io::Result<Kernel<M>> {
        if self.kernel_page {
            kernel_page::watch(&mut kernel);
        }
        Ok(kernel)
    }

    /// Returns the options of worker `number`, one of several workers. Its trace goes to its own
    /// file.
    fn of_worker(&self, number: u32) -> Server {
        let mut worker = self.clone();
        worker.common.trace = self.common.trace.as_ref().map(|path| format!("{path}.{number}"));
        worker
    }
}

/// The message for the user when all workers listen.
struct Greeting {
    common: Common,
    /// The warning about the limit of open files, if there is one.
    warning: Option<String>,
}

impl Greeting {
    /// Logs the warning, and prints `listening on ADDR` to standard output, for a program that
    /// waits for it.
    fn say(self, addr: SocketAddr) {
        if let Some(warning) = self.warning {
            ::log::warn!("{warning}");
        }
        if !self.common.is_out_for_a_greeting() {
            return;
        }
        let say = move || {
            let mut out = io::stdout().lock();
            // A closed standard output is not an error.
            let _ = writeln!(out, "listening on {addr}").and_then(|()| out.flush());
        };
        // On its own thread, because standard output may have no reader yet.
        let thread = thread::Builder::new().name("stdout".to_owned());
        if let Err(error) = thread.spawn(say) {
            ::log::warn!("cannot say on standard output where it listens: {error}");
        }
    }
}

/// A report of a worker to the main thread.
enum News {
    Listening(Remote, SocketAddr),
    /// The worker has ended, with the text of its error if it failed.
    Ended(Option<String>),
}

/// The receiver of the report that a worker listens.
enum Told {
    /// The user, because there is only one worker.
    User(Greeting),
    /// The main thread, because there are several workers.
    Main(Sender<News>, Remote),
    /// None, because the server is run again from a record, and does not listen.
    Nobody,
}

/// The address of a server, with the options of its listener.
pub struct Place {
    addr: SocketAddr,
    options: Options,
    told: Told,
}

impl Place {
    /// Makes the listener, starts the log, and reports the address.
    pub fn listen(self) -> io::Result<TcpListener> {
        let listener = TcpListener::bind_with(self.addr, self.options)?;
        let addr = listener.local_addr()?;
        let (asked, backlog) = (self.options.backlog, listener.backlog());
        log::start();
        if let Told::Nobody = self.told {
            return Ok(listener);
        }
        let cut = if backlog < asked { format!(", not {asked}: somaxconn") } else { String::new() };
        ::log::info!("listening on {addr}, backlog {backlog}{cut}");
        match self.told {
            Told::Nobody => {}
            Told::User(greeting) => greeting.say(addr),
            Told::Main(news, remote) => {
                // Until now the first worker had the port alone, so another server that starts at
                // the same time fails.
                if !self.options.reuse_port {
                    listener.share_port()?;
                }
                news.send(News::Listening(remote, addr)).unwrap_or(());
            }
        }
        Ok(listener)
    }
}

/// Runs a server in each of `--workers` threads, which end together. Prints the address when all
/// workers listen. If a worker cannot start, ends all of them.
pub fn serve<M, F>(args: &Server, main: M) -> ExitCode
where
    M: Fn(Place) -> F + Clone + Send + 'static,
    F: Future + 'static,
    F::Output: Outcome,
{
    let mut options = args.listener();
    let greeting = Greeting { common: args.common.clone(), warning: args.make_room() };
    if args.workers == 1 {
        let told = if args.tape.is_played() { Told::Nobody } else { Told::User(greeting) };
        let place = Place { addr: args.addr, options, told };
        if args.tape.is_on() {
            return run(args.taped_kernel(), main(place));
        }
        return run(args.kernel(), main(place));
    }
    let _flush = FlushAtEnd;
    let mut addr = args.addr;
    let (tell, news) = mpsc::channel();
    let mut workers = Workers { news, remotes: Vec::new(), running: 0, failed: None };
    for number in 1..=args.workers {
        let (args, tell, main) = (args.of_worker(number), tell.clone(), main.clone());
        let work = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| match args.kernel() {
                Ok(kernel) => {
                    let told = Told::Main(tell.clone(), kernel.remote());
                    outcome(Ok(kernel), main(Place { addr, options, told }))
                }
                Err(error) => Some(error.to_string()),
            }));
            let error = ended.unwrap_or_else(|_| Some("it panicked".to_owned()));
            tell.send(News::Ended(error.map(|error| format!("worker {number}: {error}"))))
        };
        let thread = thread::Builder::new().name(format!("worker-{number}")).spawn(work);
        if let Err(error) = thread {
            workers.failed = Some(report(Some(format!("worker {number}: {error}"))));
            return workers.end();
        }
        workers.running += 1;
        let Some(at) = workers.hear() else { return workers.end() };
        // The other workers listen at the same address, even if the system has chosen the port.
        (addr, options.reuse_port) = (at, true);
    }
    greeting.say(addr);
    workers.end_with_the_first()
}

/// The worker threads, as the main thread sees them.
struct Workers {
    news: mpsc::Receiver<News>,
    /// The remotes of the workers that listen, to shut their kernels down.
    remotes: Vec<Remote>,
    running: u32,
    failed: Option<ExitCode>,
}

impl Workers {
    /// Waits for the next report of a worker. Returns the address if the worker listens, or `None`
    /// if it has ended. Writes the worker's error to standard error at once.
    fn hear(&mut self) -> Option<SocketAddr> {
        match self.news.recv().expect("a worker that runs has news to come") {
            News::Listening(remote, addr) => {
                self.remotes.push(remote);
                Some(addr)
            }
            News::Ended(error) => {
                self.running -= 1;
                if error.is_some() {
                    self.failed = Some(report(error));
                }
                None
            }
        }
    }

    fn end_with_the_first(mut self) -> ExitCode {
        // All of them listen, so this report is the end of a worker.
        self.hear();
        self.end()
    }

    /// Shuts all workers down, and returns the exit code. A signal that arrived while the workers
    /// started may have missed some of them.
    fn end(mut self) -> ExitCode {
        if self.failed.is_none() {
            // If a worker is shut down before the signal reaches it, it takes the signal for a
            // second one, which cuts off its responses.
            thread::sleep(SPREAD);
        }
        while self.running > 0 {
            for remote in self.remotes.drain(..) {
                // This fails if the worker has ended.
                let _ = remote.shut_down("another_worker_ended");
            }
            self.hear();
        }
        self.failed.unwrap_or_else(|| report(None))
    }
}
