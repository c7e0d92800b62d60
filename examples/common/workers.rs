//! One server, or several that share its port: each worker is a thread with a kernel of its own.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use kernel::Remote;
use net::TcpListener;
use net::listener::Options;

use super::{Args, Outcome, outcome, report, run, say_listening};

/// How long a signal may take to reach all of them: one that is busy looks for it now and then.
const SPREAD: Duration = Duration::from_millis(100);

/// What a worker tells the main thread.
enum News {
    Listening(SocketAddr, Remote),
    /// With what went wrong.
    Ended(Option<String>),
}

/// Where a server listens, and who is told when it does.
pub struct Place {
    addr: SocketAddr,
    options: Options,
    /// `None`: there is one worker, and whoever reads standard output is told.
    news: Option<(Sender<News>, Remote)>,
    /// Standard output is the trace's: the log says it.
    quiet: bool,
}

impl Place {
    /// Listens, and says so.
    pub fn listen(self) -> io::Result<TcpListener> {
        let listener = TcpListener::bind_with(self.addr, self.options)?;
        let addr = listener.local_addr()?;
        let (asked, backlog) = (self.options.backlog, listener.backlog());
        log::info!("listening on {addr} backlog={backlog} asked={asked}");
        match self.news {
            None if self.quiet => {}
            None => say_listening(addr),
            // The main thread outlives its workers.
            Some((news, remote)) => news.send(News::Listening(addr, remote)).unwrap_or(()),
        }
        Ok(listener)
    }
}

/// Runs a server in each of `--workers` threads; they end together. Says where they listen when all
/// do. One that cannot begin ends them all.
pub fn serve<M, F>(args: &Args, main: M) -> ExitCode
where
    M: Fn(Place) -> F + Clone + Send + 'static,
    F: Future + 'static,
    F::Output: Outcome,
{
    let mut options = args.listener();
    if args.workers == 1 {
        let quiet = args.trace.as_deref() == Some("-");
        return run(
            args.real_kernel(),
            main(Place { addr: args.addr, options, news: None, quiet }),
        );
    }
    options.reuse_port = true;
    let (tell, news) = mpsc::channel();
    let mut workers = Workers { news, remotes: Vec::new(), running: 0, failed: None };
    let mut addr = args.addr;
    for number in 1..=args.workers {
        let (args, tell, main) = (args.of_worker(number), tell.clone(), main.clone());
        let work = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let kernel = args.real_kernel();
                let remote = kernel.as_ref().ok().map(kernel::Kernel::remote);
                let news = remote.map(|remote| (tell.clone(), remote));
                outcome(kernel, main(Place { addr, options, news, quiet: false }))
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
        match workers.hear() {
            // Port 0 is chosen for the first; the others share it.
            Some(found) => addr = found,
            None => return workers.end(),
        }
    }
    say_listening(addr);
    workers.end_with_the_first()
}

/// The threads, as the main one sees them.
struct Workers {
    news: mpsc::Receiver<News>,
    /// Those that listen.
    remotes: Vec<Remote>,
    running: u32,
    failed: Option<ExitCode>,
}

impl Workers {
    /// Waits for the next news: where one listens, or `None` if one has ended. What went wrong is
    /// said at once.
    fn hear(&mut self) -> Option<SocketAddr> {
        match self.news.recv().expect("a worker that runs has news to come") {
            News::Listening(addr, remote) => {
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
        // All of them listen, so this is an end.
        self.hear();
        self.end()
    }

    /// Sees to it that all end: a signal that came while they started has not reached them all.
    fn end(mut self) -> ExitCode {
        if self.failed.is_none() {
            // To one that is told before the signal reaches it, that would be a second one, which
            // cuts off what it has in hand.
            thread::sleep(SPREAD);
        }
        while self.running > 0 {
            for remote in self.remotes.drain(..) {
                // One that has ended, or is about to, does not mind.
                let _ = remote.shut_down("another_worker_ended");
            }
            self.hear();
        }
        self.failed.unwrap_or(ExitCode::SUCCESS)
    }
}
