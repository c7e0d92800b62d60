//! trapline: (a), the peers' small program on `TcpStream` and `ConnectionDeadline`; (b), the
//! handler of the `http` example with all its checks.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use kernel::{Kernel, Real};
use net::http::{Config, Deadlines, Limits};
use net::{Stream, TcpListener, TcpStream};
use traps::admission::AdmissionLimit;
use traps::{ConnectionDeadline, connection_deadline, spawn};

use super::program::{Kept, Next, ROOM, WRITE};
use super::{How, http_example, say_listening};

pub fn run(work: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    let mut kernel = Kernel::new(Real::new()?);
    kernel.run(work).map_err(io::Error::other)?
}

/// (b)
pub fn serve_http(addr: SocketAddr, how: How) -> io::Result<()> {
    // Only limits that a run of this length would reach are raised.
    let limits = Limits { connections: usize::MAX, requests: u64::MAX, ..Limits::default() };
    let never = Duration::MAX;
    let deadlines = match how.deadlines {
        // The others are long enough even for a client that pauses.
        true => Deadlines { idle: Next::Request.span(), ..Deadlines::default() },
        false => Deadlines {
            head: never,
            body: never,
            body_rate: 0,
            body_window: never,
            body_whole: never,
            handler: never,
            write: never,
            write_rate: 0,
            idle: never,
            linger: never,
        },
    };
    run(async move {
        let listener = TcpListener::bind(addr)?;
        say_listening(listener.local_addr()?);
        let app = http_example::App::new(&Default::default(), AdmissionLimit::new("gate", 5))?;
        let config = Rc::new(Config::new(limits, deadlines));
        net::http::serve(listener, Rc::new(app), config).await
    })
}

/// (a)
pub fn serve(addr: SocketAddr, how: How) -> io::Result<()> {
    let shared = Rc::new(RefCell::new(Shared { input: Box::new([0; ROOM]), out: Vec::new() }));
    run(async move {
        let mut listener = TcpListener::bind(addr)?;
        say_listening(listener.local_addr()?);
        loop {
            let stream = listener.accept_stream().await?;
            spawn("conn", conn(stream, shared.clone(), how)).detached().await;
        }
    })
}

/// The buffers that connections use one at a time, so that a waiting connection owns none.
struct Shared {
    input: Box<[u8; ROOM]>,
    out: Vec<u8>,
}

/// The deadline of a connection, if it has one. Armed again for each phase.
struct Phase(Option<ConnectionDeadline>);

impl Phase {
    #[inline]
    fn begin(&self, span: Duration) {
        if let Some(deadline) = &self.0 {
            deadline.arm(span);
        }
    }
}

/// Reads the bytes that have arrived and writes the responses, without a wait in between, because
/// the buffers are borrowed for this poll only. Returns the next wait, or `None` if there were no
/// bytes. Responses without room go to `rest`.
#[inline(always)]
fn look(
    stream: &mut TcpStream,
    phase: &Phase,
    kept: &mut Kept,
    (shared, how): (&RefCell<Shared>, How),
    rest: &mut Vec<u8>,
    cx: &mut Context<'_>,
) -> io::Result<Option<Next>> {
    let Shared { input, out } = &mut *shared.borrow_mut();
    let Some(read) = stream.try_read(&mut **input, cx) else { return Ok(None) };
    let input = &input[..read?];
    // Of a connection that failed something may be left.
    out.clear();
    if input.is_empty() {
        return Ok(Some(Next::Close));
    }
    let next = match how.echo {
        true => {
            out.extend_from_slice(input);
            Next::Request
        }
        false => kept.answer(input, out),
    };
    phase.begin(WRITE);
    if !out.is_empty() {
        let written = stream.try_write(out, cx).transpose()?.unwrap_or(0);
        if written < out.len() {
            rest.extend_from_slice(&out[written..]);
        }
    }
    Ok(Some(next))
}

/// The life of a connection. Not an `async fn`: that has its arguments twice.
#[allow(clippy::manual_async_fn, reason = "many wait in this")]
fn conn(
    mut stream: TcpStream,
    shared: Rc<RefCell<Shared>>,
    how: How,
) -> impl Future<Output = io::Result<()>> {
    async move {
        let deadline = if how.deadlines { Some(connection_deadline().await) } else { None };
        let phase = Phase(deadline);
        let (mut kept, mut next) = (Kept::default(), Next::Request);
        // A client that connects asks soon, so its request has usually arrived.
        let mut fresh = true;
        while next != Next::Close {
            phase.begin(next.span());
            if !mem::take(&mut fresh) {
                stream.readable().await?;
            }
            let mut rest = Vec::new();
            let looked = poll_fn(|cx| {
                let all = (&*shared, how);
                Poll::Ready(look(&mut stream, &phase, &mut kept, all, &mut rest, cx))
            });
            next = looked.await?.unwrap_or(next);
            if !rest.is_empty() {
                // Boxed, so that a connection waiting for a request does not carry the size of this
                // wait.
                Box::pin(stream.write_all(&rest)).await?;
            }
        }
        Ok(())
    }
}
