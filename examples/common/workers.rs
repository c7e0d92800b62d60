//! One server, or several that share its port: each worker is a thread with a kernel of its own.

use std::io;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread;

use net::TcpListener;
use net::listener::Options;

use super::{Args, Outcome, outcome, report, run, say_listening};

/// What a worker tells the main thread.
enum News {
    Listening(SocketAddr),
    /// With what went wrong.
    Ended(Option<String>),
}

/// Where a server listens, and who is told when it does.
pub struct Place {
    addr: SocketAddr,
    options: Options,
    /// `None`: there is one worker, and whoever reads standard output is told.
    news: Option<Sender<News>>,
}

impl Place {
    /// Listens, and says so.
    pub fn listen(self) -> io::Result<TcpListener> {
        let listener = TcpListener::bind_with(self.addr, self.options)?;
        let addr = listener.local_addr()?;
        let (asked, backlog) = (self.options.backlog, listener.backlog());
        log::info!("listening on {addr} backlog={backlog} asked={asked}");
        match self.news {
            None => say_listening(addr),
            // The main thread outlives its workers.
            Some(news) => news.send(News::Listening(addr)).unwrap_or(()),
        }
        Ok(listener)
    }
}

/// Runs a server in each of `--workers` threads; they end by the same signals. Says where they
/// listen when all do. One that cannot begin ends them all.
pub fn serve<M, F>(args: &Args, main: M) -> ExitCode
where
    M: Fn(Place) -> F + Clone + Send + 'static,
    F: Future + 'static,
    F::Output: Outcome,
{
    let mut options = args.listener();
    if args.workers == 1 {
        return run(args.real_kernel(), main(Place { addr: args.addr, options, news: None }));
    }
    options.reuse_port = true;
    let (tell, news) = mpsc::channel();
    let mut addr = args.addr;
    for number in 1..=args.workers {
        let (args, tell, main) = (args.of_worker(number), tell.clone(), main.clone());
        let work = move || {
            let place = Place { addr, options, news: Some(tell.clone()) };
            let ended = catch_unwind(AssertUnwindSafe(|| outcome(args.real_kernel(), main(place))));
            let error = ended.unwrap_or_else(|_| Some("it panicked".to_owned()));
            tell.send(News::Ended(error.map(|error| format!("worker {number}: {error}"))))
        };
        let thread = thread::Builder::new().name(format!("worker-{number}")).spawn(work);
        let first_news = match thread {
            Ok(_) => news.recv().expect("we have a sender ourselves"),
            Err(error) => News::Ended(Some(format!("worker {number}: {error}"))),
        };
        match first_news {
            // Port 0 is chosen for the first; the others share it.
            News::Listening(found) => addr = found,
            News::Ended(None) => return last_words(&news, number - 1),
            // The other threads end with the process.
            News::Ended(error) => return report(error),
        }
    }
    say_listening(addr);
    last_words(&news, args.workers)
}

/// Waits for the end of so many workers; what went wrong is said at once.
fn last_words(news: &mpsc::Receiver<News>, workers: u32) -> ExitCode {
    let mut failed = None;
    for _ in 0..workers {
        if let Ok(News::Ended(Some(error))) = news.recv() {
            failed = Some(report(Some(error)));
        }
    }
    failed.unwrap_or(ExitCode::SUCCESS)
}
