//! trapline: (a), the peers' small program on `TcpStream` and `ConnectionDeadline`; (b), the
//! handler of the `http` example with all its checks.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use kernel::{Kernel, Real};
use net::http::{Config, Deadlines, Limits};
use net::{Stream, TcpListener, TcpStream};
use traps::admission::Gate;
use traps::{ConnectionDeadline, connection_deadline, spawn};

use super::program::{Kept, Next, ROOM, WRITE};
use super::{How, http_example, say_listening};

fn run(work: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let mut kernel = Kernel::new(Real::new()?);
    kernel.run(work).map_err(io::Error::other)?
}

/// (b)
pub fn serve_http(addr: SocketAddr, how: How) -> io::Result<()> {
    // Only what a run of this length would meet is raised.
    let limits = Limits { connections: usize::MAX, requests: u64::MAX, ..Limits::default() };
    let never = Duration::MAX;
    let deadlines = match how.deadlines {
        // The others are long enough for a client that looks on for a while, too.
        true => Deadlines { idle: Next::Request.span(), ..Deadlines::default() },
        false => Deadlines {
            head: never,
            body: never,
            body_rate: 0,
            body_window: never,
            handler: never,
            write: never,
            idle: never,
            linger: never,
        },
    };
    run(async move {
        let listener = TcpListener::bind(addr)?;
        say_listening(listener.local_addr()?);
        let app = http_example::App::new(&Default::default(), Gate::new("gate", 5))?;
        let config = Rc::new(Config::new(limits, deadlines));
        net::http::serve(listener, Rc::new(app), config).await
    })
}

/// (a)
pub fn serve(addr: SocketAddr, how: How) -> io::Result<()> {
    let input = RefCell::new(Box::new([0; ROOM]));
    let shared = Rc::new(Shared { input, out: Cell::default() });
    run(async move {
        let mut listener = TcpListener::bind(addr)?;
        say_listening(listener.local_addr()?);
        loop {
            let stream = listener.accept_stream().await?;
            spawn("conn", conn(stream, shared.clone(), how)).detached().await;
        }
    })
}

/// What connections use one at a time: one that waits owns no buffer.
struct Shared {
    input: RefCell<Box<[u8; ROOM]>>,
    out: Cell<Vec<u8>>,
}

/// The deadline of a connection, if it is to have one: armed anew for each phase.
struct Phase(Option<ConnectionDeadline>);

impl Phase {
    #[inline]
    fn begin(&self, span: Duration) {
        if let Some(deadline) = &self.0 {
            deadline.arm(span);
        }
    }
}

/// Writes all. A wait for room is in a box: who waits for a request has no room for that.
async fn write_all(stream: &mut TcpStream, out: &[u8]) -> io::Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    match poll_fn(|cx| Poll::Ready(stream.try_write(out, cx))).await.transpose()? {
        Some(n) if n == out.len() => Ok(()),
        n => Box::pin(stream.write_all(&out[n.unwrap_or(0)..])).await,
    }
}

/// Reads what is there into the buffer of all and hands it to `take`: `None` if that would wait.
/// The buffer is borrowed for this one poll.
fn read_now<T>(
    stream: &mut TcpStream,
    shared: &Shared,
    mut take: impl FnMut(&[u8]) -> T,
) -> impl Future<Output = Option<io::Result<T>>> {
    poll_fn(move |cx| {
        let input = &mut **shared.input.borrow_mut();
        let read = stream.try_read(input, cx);
        Poll::Ready(read.map(|read| read.map(|n| take(&input[..n]))))
    })
}

/// The life of a connection. Not an `async fn`: that has its arguments twice.
#[allow(clippy::manual_async_fn, reason = "many wait in this")]
fn conn(
    mut stream: TcpStream,
    shared: Rc<Shared>,
    how: How,
) -> impl Future<Output = io::Result<()>> {
    async move {
        let deadline = if how.deadlines { Some(connection_deadline().await) } else { None };
        let phase = Phase(deadline);
        let (mut kept, mut next) = (Kept::default(), Next::Request);
        // A client that connects asks soon: most often its request is here already.
        let mut fresh = true;
        while next != Next::Close {
            phase.begin(next.span());
            if !std::mem::take(&mut fresh) {
                stream.readable().await?;
            }
            let mut out = shared.out.take();
            let take = |bytes: &[u8]| {
                if how.echo {
                    out.extend_from_slice(bytes);
                } else {
                    next = kept.answer(bytes, &mut out);
                }
                bytes.len()
            };
            match read_now(&mut stream, &shared, take).await.transpose()? {
                Some(0) => break,
                Some(_) => {}
                None => continue,
            }
            phase.begin(WRITE);
            write_all(&mut stream, &out).await?;
            out.clear();
            shared.out.set(out);
        }
        Ok(())
    }
}
