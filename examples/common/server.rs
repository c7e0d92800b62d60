//! A server's command line and its workers: one kernel, or several that share the port, each on a
//! thread of its own.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Policy, Real, Remote};
use net::TcpListener;
use net::http::Config;
use net::listener::{Options, probe};
use traps::Signal;

use super::stderr::FlushAtEnd;
use super::values::{Span, address, between};
use super::{Common, Outcome, fail, kernel_page, log, outcome, report, run};

/// How long a signal may take to reach all workers: a busy one looks for it now and then.
const SPREAD: Duration = Duration::from_millis(100);

/// Descriptors that a worker needs beside its connections: those of its kernel, its listener, its
/// trace.
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
    /// Worker threads for blocking jobs, if a kernel needs more than it has by default.
    #[arg(skip)]
    threads: usize,
    /// Connections that a worker serves at a time, if that is limited.
    #[arg(skip)]
    slots: Option<usize>,
    /// `/kernel` shows what the kernel does.
    #[arg(skip)]
    kernel_page: bool,
}

impl Server {
    /// Checks the options, prints the list that was asked for, and prepares the log. `threads` is
    /// how many blocking jobs run at a time, and `own` what the server's own options are.
    pub fn ready(mut self, config: &Config, threads: usize, own: &str) -> Server {
        self.threads = threads;
        self.common.print_lists(&self.options(), &self.listener(), config, own);
        if self.workers > 1 && self.common.trace.as_deref() == Some("-") {
            fail("error: --trace -: each worker has a trace of its own; expected a file");
        }
        log::prepare(self.log_time);
        self
    }

    fn options(&self) -> kernel::Options {
        let options = self.common.options().policy(self.policy).drain(self.drain.0);
        let threads = self.threads.max(options.threads);
        options.threads(threads).shutdown_on(signals())
    }

    fn listener(&self) -> Options {
        Options { backlog: self.backlog, ..Options::default() }
    }

    /// Each worker serves at most so many connections at a time.
    pub fn with_seats(mut self, slots: usize) -> Server {
        self.slots = Some(slots);
        self
    }

    /// Raises the limit of open files as far as it goes. Gives what is to be said of it.
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

    /// Lets [`kernel_page`] see the events of each kernel.
    pub fn with_kernel_page(mut self) -> Server {
        self.kernel_page = true;
        self
    }

    fn kernel(&self) -> io::Result<Kernel<Real>> {
        let mut kernel = self.common.kernel(Real::new()?, self.options())?;
        if self.kernel_page {
            kernel_page::watch(&mut kernel);
        }
        Ok(kernel)
    }

    /// The options of one of several workers, whose traces are in files of their own.
    fn of_worker(&self, number: u32) -> Server {
        let mut worker = self.clone();
        worker.common.trace = self.common.trace.as_ref().map(|path| format!("{path}.{number}"));
        worker
    }
}

/// What shuts a server down.
pub fn signals() -> &'static [Signal] {
    const SIGNALS: [Signal; 3] = [Signal::Interrupt, Signal::Terminate, Signal::Hangup];
    if is_hangup_ignored() { &SIGNALS[..2] } else { &SIGNALS }
}

/// Whether this process was started to survive its terminal, as by `nohup`.
fn is_hangup_ignored() -> bool {
    const HANGUP: u64 = 1;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & HANGUP != 0)
}

/// What is said when all workers listen.
struct Greeting {
    /// Standard output is the trace's, so only the log says where they listen.
    quiet: bool,
    /// What is wrong with the limit of open files, if something is.
    warning: Option<String>,
}

impl Greeting {
    /// Says `listening on ADDR` on standard output, for whoever waits for it.
    fn say(self, addr: SocketAddr) {
        if let Some(warning) = self.warning {
            ::log::warn!("{warning}");
        }
        if self.quiet {
            return;
        }
        let say = move || {
            let mut out = io::stdout().lock();
            // A closed standard output is no error.
            let _ = writeln!(out, "listening on {addr}").and_then(|()| out.flush());
        };
        // By a thread of its own: who reads it may be long in coming.
        let thread = thread::Builder::new().name("stdout".to_owned());
        if let Err(error) = thread.spawn(say) {
            ::log::warn!("cannot say on standard output where it listens: {error}");
        }
    }
}

/// What a worker tells the main thread.
enum News {
    Listening(Remote),
    /// With what went wrong.
    Ended(Option<String>),
}

/// Who is to know that a worker listens.
enum Told {
    /// The user: it is the only worker.
    User(Greeting),
    /// The main thread, which outlives its workers.
    Main(Sender<News>, Remote),
}

/// Where a server listens.
pub struct Place {
    addr: SocketAddr,
    options: Options,
    told: Told,
}

impl Place {
    /// Listens, starts the log, and says where.
    pub fn listen(self) -> io::Result<TcpListener> {
        let listener = TcpListener::bind_with(self.addr, self.options)?;
        let addr = listener.local_addr()?;
        let (asked, backlog) = (self.options.backlog, listener.backlog());
        log::start();
        let cut = if backlog < asked { format!(", not {asked}: somaxconn") } else { String::new() };
        ::log::info!("listening on {addr}, backlog {backlog}{cut}");
        match self.told {
            Told::User(greeting) => greeting.say(addr),
            Told::Main(news, remote) => news.send(News::Listening(remote)).unwrap_or(()),
        }
        Ok(listener)
    }
}

/// Runs a server in each of `--workers` threads; they end together. Says where they listen when all
/// of them do. One that cannot start ends them all.
pub fn serve<M, F>(args: &Server, main: M) -> ExitCode
where
    M: Fn(Place) -> F + Clone + Send + 'static,
    F: Future + 'static,
    F::Output: Outcome,
{
    let mut options = args.listener();
    let quiet = args.common.trace.as_deref() == Some("-");
    let greeting = Greeting { quiet, warning: args.make_room() };
    if args.workers == 1 {
        let place = Place { addr: args.addr, options, told: Told::User(greeting) };
        return run(args.kernel(), main(place));
    }
    let _flush = FlushAtEnd;
    // The workers share their port with whoever asks the system for that, as another server of this
    // kind does.
    let addr = match probe(args.addr) {
        Ok(addr) => addr,
        Err(error) => return report(Some(error.to_string())),
    };
    options.reuse_port = true;
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
        if !workers.hear() {
            return workers.end();
        }
    }
    greeting.say(addr);
    workers.end_with_the_first()
}

/// The threads, as the main one sees them.
struct Workers {
    news: mpsc::Receiver<News>,
    /// Those that listen, to shut them down.
    remotes: Vec<Remote>,
    running: u32,
    failed: Option<ExitCode>,
}

impl Workers {
    /// Waits for the next news: whether one listens, or has ended. Says at once what went wrong.
    fn hear(&mut self) -> bool {
        match self.news.recv().expect("a worker that runs has news to come") {
            News::Listening(remote) => {
                self.remotes.push(remote);
                true
            }
            News::Ended(error) => {
                self.running -= 1;
                if error.is_some() {
                    self.failed = Some(report(error));
                }
                false
            }
        }
    }

    fn end_with_the_first(mut self) -> ExitCode {
        // All of them listen, so this is an end.
        self.hear();
        self.end()
    }

    /// Ends all of them: a signal that came while they started may not have reached each.
    fn end(mut self) -> ExitCode {
        if self.failed.is_none() {
            // A worker that we shut down before the signal reaches it would take that for a second
            // signal, which cuts off its answers.
            thread::sleep(SPREAD);
        }
        while self.running > 0 {
            for remote in self.remotes.drain(..) {
                // It fails if that one has ended.
                let _ = remote.shut_down("another_worker_ended");
            }
            self.hear();
        }
        self.failed.unwrap_or(ExitCode::SUCCESS)
    }
}
