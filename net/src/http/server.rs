//! A server: a listener whose connections each have a task, until the kernel's shutdown begins.
//!
//! What a connection does is `connection`'s matter. It may not touch a stream.

use std::future::Future;
use std::io;
use std::ops::Deref;
use std::rc::Rc;

use traps::shutdown::{Holds, has_begun, hold, holds};
use traps::{ConnectionDeadline, connection_deadline, spawn, wall_clock};

use super::config::Config;
use super::connection::{Handler, Server, live};
use super::parting::turn_away;
use super::phase::Limit;
use super::wire::Line;
use crate::listener::TcpListener;

/// What the connections of a server share.
#[derive(Debug)]
struct Shared<H> {
    handler: Rc<H>,
    config: Rc<Config>,
    holds: Holds,
}

/// One connection's share of it, in one word: each that waits has one. Holds the shutdown up.
#[derive(Debug)]
struct Share<H>(Rc<Shared<H>>);

impl<H> Share<H> {
    fn of(shared: &Rc<Shared<H>>) -> Share<H> {
        shared.holds.add();
        Share(shared.clone())
    }
}

impl<H> Drop for Share<H> {
    fn drop(&mut self) {
        self.0.holds.give_back();
    }
}

impl<H> Deref for Share<H> {
    type Target = Config;

    #[inline]
    fn deref(&self) -> &Config {
        &self.0.config
    }
}

impl<H: Handler> Server for Share<H> {
    type Handler = H;

    #[inline]
    fn handler(&self) -> &H {
        &self.0.handler
    }

    /// Each has a task of its own.
    #[inline]
    #[track_caller]
    fn limited<'d, F>(
        limit: Limit,
        deadline: &'d ConnectionDeadline,
        wait: F,
    ) -> impl Future<Output = io::Result<()>>
    where
        F: Future<Output = io::Result<()>> + 'd,
    {
        limit.guard_task(deadline, wait)
    }
}

/// Accepts connections and serves each in a task of its own, until the
/// [shutdown](traps::shutdown) of the kernel begins. Then it accepts what waits in the backlog,
/// closes the listener, [drains](Config::drain) the connections, and returns; each of them
/// [holds](traps::shutdown::hold) the shutdown up until it has ended. *Blocks*.
///
/// A connection that fails ends alone. What its stream says, a reset in the midst of a body for
/// example, is no news: the task's line is `exit ok`, as any task's that returns. The log has what
/// the server did: a `cap` line for a limit or a deadline that was hit, a `warn` line for a
/// [handler](Handler::handle) that failed. One over
/// [`Limits::connections`](super::Limits::connections) is refused with 503. When descriptors run
/// out, connections that keep one for nothing give it back: at once if they wait for their next
/// request, after half a second if they have yet to send anything.
///
/// A whole server, which a signal ends in phases:
///
/// ```no_run
/// use std::io;
/// use std::rc::Rc;
///
/// use kernel::{Kernel, Options, Real};
/// use net::http::{Config, Handler, Request, Response, serve};
/// use net::{Stream, TcpListener};
/// use traps::Signal;
///
/// struct Hello;
///
/// impl Handler for Hello {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         Ok(Response::text(format!("This is {}.\n", request.path())))
///     }
/// }
///
/// async fn server() -> io::Result<()> {
///     let listener = TcpListener::bind("127.0.0.1:8080")?;
///     serve(listener, Rc::new(Hello), Rc::new(Config::default())).await
/// }
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let options = Options::new().shutdown_on(&[Signal::Interrupt, Signal::Terminate]);
///     let mut kernel = Kernel::with_options(Real::new()?, options);
///     kernel.run(server())??;
///     // It waits for the connections that are left.
///     Ok(kernel.shutdown()?)
/// }
/// ```
///
/// # Errors
///
/// The listener's own; the interrupt that ended the wait. The connections go on.
pub async fn serve<H: Handler + 'static>(
    mut listener: TcpListener,
    handler: Rc<H>,
    config: Rc<Config>,
) -> io::Result<()> {
    let ours = config.clone();
    listener.on_exhausted(move || ours.seats.make_room());
    let shared = Rc::new(Shared { handler, config: config.clone(), holds: holds() });
    let limit = config.limits.connections;
    // Its clock tells when the date is to be read again, once for all that come meanwhile.
    let clock = connection_deadline().await;
    config.date.forget();
    // Whoever keeps coming does not keep those from ending who have nothing to do.
    let mut late = listener.backlog().max(1);
    while late > 0
        && let Some(stream) = listener.accept_until_shutdown().await?
    {
        if has_begun() {
            late -= 1;
            if !config.is_draining() {
                config.drain();
            }
        }
        if config.connections() >= limit {
            let (hold, config) = (hold(), config.clone());
            spawn("refused", async move {
                let _hold = hold;
                turn_away(stream, &config).await
            })
            .detached()
            .await;
            continue;
        }
        let now = clock.now();
        config.seats.calm(now);
        if !config.date.is_right(now) {
            config.date.ask(now);
            config.date.tell(wall_clock().await);
        }
        // Seated here: others may be accepted before the task first runs.
        let line = Line::new(stream, config.seats.take(), Share::of(&shared));
        line.seat.set_dated();
        // Nobody joins it: its failures end with it.
        spawn("conn", live(line)).detached().await;
    }
    drop(listener);
    config.drain();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::super::connection::Handler;
    use super::super::request::Request;
    use super::super::response::Response;
    use super::super::seats::Seat;
    use super::*;
    use crate::stream::Stream;
    use crate::tcp::TcpStream;

    struct Hello;

    impl Handler for Hello {
        async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
            Ok(Response::text("hello"))
        }
    }

    /// Of the future that `make` gives.
    fn size<A, F: Future>(_: impl Fn(A) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_is_kept_of_a_connection_that_waits_does_not_grow() {
        let life = size(live::<TcpStream, Share<Hello>>);
        // 8 beside it for a task's name and place, 16 for the counts of a seat, and 8 for each of
        // the two by the allocator, which gives multiples of 16.
        assert_eq!((life, size_of::<Seat>(), size_of::<TcpStream>()), (160, 72, 40));
    }
}
