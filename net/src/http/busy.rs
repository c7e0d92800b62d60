//! What is done on a connection on which something came: as far as it goes without a wait, and the
//! rest.
//!
//! It hands on what a busy connection has, and may not know a request.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::mem::take;
use std::ops::ControlFlow::{self, Break, Continue};
use std::task::{Context, Poll};

use super::config::{Buffers, Config};
use super::connection::{Connection, Server};
use super::parting::After;
use super::phase::Watch;
use super::seats::{Seat, Taken, Waits};
use super::wire::{Line, Trouble, Wire};
use crate::stream::Stream;

/// What is to be done next on a busy connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Todo {
    /// To read the next head.
    Next,
    /// The same, where not all of it is here.
    InPieces,
    /// To answer the request in hand.
    Answer,
    /// To gather the answer that is there.
    Settle,
    /// To answer for the server, and close.
    Refuse,
    /// To let others run.
    GiveWay,
    /// To close after an answer.
    Part(After),
    /// To close because the server stops.
    Leave,
    /// Nothing.
    Over(After),
}

/// What a busy connection has beside its buffers, while it is handed on.
#[derive(Debug)]
pub(crate) struct Paused {
    wire: Wire<()>,
    todo: Todo,
}

impl Buffers {
    /// Whether an answer is there, and goes out as soon as the date is known.
    fn wants_date(&self) -> bool {
        matches!(self.paused, Some(Paused { todo: Todo::Settle, .. }))
    }
}

impl<'c, S> Connection<'c, S> {
    /// One that goes on, and what is to be done on it.
    fn resume(
        mut buffers: Box<Buffers>,
        stream: S,
        seat: &'c Seat,
        config: &'c Config,
    ) -> (Connection<'c, S>, Todo) {
        let Paused { wire, todo } = buffers.paused.take().expect("it was handed on");
        (Connection { wire: RefCell::new(wire.over(stream)), buffers, seat, config }, todo)
    }

    /// It is busy no longer.
    #[inline(always)]
    fn rest(self) {
        self.config.pool.give(self.buffers, self.wire.into_inner().into_buffer());
    }

    /// Hands it on, unless it is busy no longer. Most are not handed on, and nothing of those is to
    /// be moved.
    #[cold]
    fn pause(
        self,
        done: Result<Todo, Trouble>,
    ) -> Result<ControlFlow<After, Box<Buffers>>, Trouble> {
        let todo = match done {
            Ok(Todo::Over(after)) => {
                self.rest();
                return Ok(Break(after));
            }
            Ok(todo) => todo,
            Err(trouble) => {
                self.rest();
                return Err(trouble);
            }
        };
        let Connection { wire, mut buffers, .. } = self;
        buffers.paused = Some(Paused { wire: wire.into_inner().over(()), todo });
        Ok(Continue(buffers))
    }
}

/// Does what is to be done on a connection, on which something came, or which is to be left, as far
/// as it takes no wait. Gives what is needed for the rest.
pub(super) fn begin<S: Stream, C: Server>(
    line: &mut Line<S, C>,
    todo: Todo,
    cx: &mut Context<'_>,
) -> Result<ControlFlow<After, Box<Buffers>>, Trouble> {
    let Line { stream, seat: Taken { seat, config: server } } = line;
    let (config, handler) = (&**server, server.handler());
    let waited = seat.waits.replace(Waits::Busy);
    let mut buffers = config.pool.take();
    let watch = Watch::new(seat.clone(), waited == Waits::First);
    let wire = RefCell::new(Wire::new(stream, take(&mut buffers.out), watch));
    let mut connection = Connection { wire, buffers, seat, config };
    let done = connection.go_on_at_once(todo, handler, cx);
    if let Ok(Todo::Over(after)) = done {
        connection.rest();
        return Ok(Break(after));
    }
    connection.pause(done)
}

/// The same for one that was handed on.
fn resume<S: Stream, C: Server>(
    line: &mut Line<S, C>,
    buffers: Box<Buffers>,
    cx: &mut Context<'_>,
) -> Result<ControlFlow<After, Box<Buffers>>, Trouble> {
    let Line { stream, seat: Taken { seat, config: server } } = line;
    let (mut connection, todo) = Connection::resume(buffers, stream, seat, server);
    let done = connection.go_on_at_once(todo, server.handler(), cx);
    connection.pause(done)
}

/// Does the rest.
#[allow(clippy::manual_async_fn, reason = "that has its arguments twice, and many wait in this")]
pub(super) fn go_on<S: Stream, C: Server>(
    line: &mut Line<S, C>,
    mut buffers: Box<Buffers>,
) -> impl Future<Output = Result<After, Trouble>> {
    async move {
        // The first answer of a connection, and of a second: nothing else is waited for.
        if buffers.wants_date() {
            // `Seat::read_date` in its steps: as a future of its own it would take 48 bytes more of
            // each connection.
            line.seat.begin().await;
            let time = line.seat.ask_date(&line.seat.config).await;
            line.seat.config.date.tell(time);
            let mut dated = Some(buffers);
            let go_on = |cx: &mut Context<'_>| {
                let buffers = dated.take().expect("it is ready at its first poll");
                Poll::Ready(resume(line, buffers, cx))
            };
            buffers = match poll_fn(go_on).await? {
                Break(after) => return Ok(after),
                Continue(buffers) => buffers,
            };
        }
        line.seat.begin().await;
        // In a box: who waits for a request has no room for all that an answer may need.
        Box::pin(serve(line, buffers)).await
    }
}

/// The same, with whatever is to be waited for.
async fn serve<S: Stream, C: Server>(
    line: &mut Line<S, C>,
    buffers: Box<Buffers>,
) -> Result<After, Trouble> {
    let Line { stream, seat: Taken { seat, config: server } } = line;
    let (mut connection, todo) = Connection::resume(buffers, stream, seat, server);
    let end = connection.go_on(todo, server.handler()).await;
    connection.rest();
    end
}
