//! A server: a listener whose connections each have a task, until the kernel's shutdown begins.
//!
//! What a connection does is `connection`'s matter. It may not touch a stream.

use std::borrow::Cow;
use std::io;
use std::ops::Deref;
use std::rc::Rc;

use traps::shutdown::{Hold, has_begun, hold};
use traps::{connection_deadline, is_traced, spawn, yield_now};

use super::config::Config;
use super::connection::{Connection, live, turn_away};
use super::handler::Handler;
use crate::listener::TcpListener;

/// What a connection has of its server. Holds the shutdown up.
#[derive(Debug)]
struct Share {
    config: Rc<Config>,
    _hold: Hold,
}

impl Deref for Share {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.config
    }
}

/// Whether one more can be served, if need be in the place of another.
fn has_capacity(config: &Config) -> bool {
    let Config { limits, deadlines, open, .. } = config;
    open.serving() < limits.connections || open.close_one_waiting(deadlines.head)
}

/// Accepts connections and serves each in a task of its own, until the
/// [shutdown](traps::shutdown) of the kernel begins. Then it accepts what waits in the backlog,
/// closes the listener, [drains](Config::drain) the connections, and returns; each of them
/// [holds](traps::shutdown::hold) the shutdown up until it has ended. *Blocks*.
///
/// A connection that fails ends alone. What its stream says, a reset in the midst of a body for
/// example, is no news: the task's line is `exit ok`, as any task's that returns. The log has what
/// the server did: a `cap` line for a limit or a deadline that was hit, a `warn` line for a
/// [handler](Handler::handle) that failed.
///
/// Above [`Limits::connections`](super::Limits::connections) one connection closes for each new
/// one: the longest silent one, which has not sent a byte for half a second; else the one that has
/// waited longest for its next request; else the longest silent one of all. If there is none, the
/// new one is refused with 503. When descriptors run out, one connection closes for each new one in
/// the same order, and after those a peer that does not read why it was refused.
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
    listener.on_exhausted(move || ours.open.make_room(ours.deadlines.head));
    let clock = connection_deadline().await;
    // Whoever keeps coming does not keep those from ending who have nothing to do.
    let (mut late, mut accepted) = (listener.backlog().max(1), 0_u64);
    while late > 0
        && let Some(stream) = listener.accept_until_shutdown().await?
    {
        if has_begun() {
            late -= 1;
            if !config.is_draining() {
                config.drain();
            }
        }
        config.open.caps.sum_up(clock.now(), false);
        let share = Share { config: config.clone(), _hold: hold() };
        let mut is_free = has_capacity(&config);
        if !is_free {
            // Those that were accepted in this turn have not run yet, and may be silent.
            yield_now().await?;
            is_free = has_capacity(&config);
        }
        if !is_free {
            let refuse = async move { turn_away(stream, &share).await };
            spawn("refused", refuse).detached().await;
            continue;
        }
        accepted += 1;
        // Made here: others may be accepted before the task first runs. Nobody joins it: its
        // failures end with it.
        let connection = live(Connection::new(stream, share), handler.clone());
        // The number is for the log alone, and costs an allocation.
        let name: Cow<'_, str> = match is_traced() {
            true => format!("conn-{accepted}").into(),
            false => "conn".into(),
        };
        spawn(name, connection).detached().await;
    }
    drop(listener);
    config.drain();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::future::Future;

    use super::super::connections::Entry;
    use super::super::request::Request;
    use super::super::response::Response;
    use super::*;
    use crate::stream::Stream;
    use crate::tcp::TcpStream;

    struct Hello;

    impl Handler for Hello {
        async fn handle<S: Stream>(&self, _: &mut Request<'_, S>) -> io::Result<Response> {
            Ok(Response::text("hello"))
        }
    }

    #[test]
    fn what_is_kept_of_a_connection_that_waits_does_not_grow() {
        /// Of the future that is made of the arguments.
        fn size<A, B, F: Future>(_: impl Fn(A, B) -> F) -> usize {
            size_of::<F>()
        }
        let live = size(live::<TcpStream, Share, Hello, Rc<Hello>>);
        // Beside it a task has 8 bytes for its name and place, an entry 16 for its counts, and each
        // allocation 8, in multiples of 16.
        assert_eq!((live, size_of::<Entry>(), size_of::<TcpStream>()), (136, 88, 40));
    }
}
