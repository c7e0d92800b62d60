//! What is done on a connection on which something came: as far as it goes without a wait, and the
//! rest.
//!
//! It hands on what a busy connection has, and may not know a request.

use std::cell::RefCell;
use std::future::poll_fn;
use std::mem::take;
use std::ops::ControlFlow::{self, Break, Continue};
use std::ops::Deref;
use std::task::{Context, Poll};

use super::config::{Buffers, Config};
use super::connection::{Connection, Handler};
use super::head::Head;
use super::parting::After;
use super::phase::Watch;
use super::reading::Refused;
use super::response::Response;
use super::seats::Waits;
use super::wire::{Line, Trouble, Wire};
use crate::stream::Stream;

/// What is to be done next on a busy connection.
#[derive(Debug)]
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
    Refuse(Box<Refused>),
    /// To let others run.
    GiveWay,
    /// To close after an answer.
    Part(After),
    /// To close because the server stops.
    Leave,
    /// Nothing.
    Over(After),
}

/// What a busy connection has, while it is handed on.
#[derive(Debug)]
pub(crate) struct Paused {
    wire: Wire<()>,
    head: Head,
    answer: Option<(Response, bool)>,
    todo: Todo,
}

impl Buffers {
    /// Whether an answer is there, and goes out as soon as the date is known.
    fn wants_date(&self) -> bool {
        matches!(self.paused, Some(Paused { todo: Todo::Settle, .. }))
    }

    /// Those of a connection that goes on.
    fn resume<S>(&mut self, stream: S) -> (Wire<S>, Head, Option<(Response, bool)>, Todo) {
        let Paused { wire, head, answer, todo } = self.paused.take().expect("it was handed on");
        (wire.over(stream), head, answer, todo)
    }
}

/// Does what is to be done on a connection on which something came, or to be left if nothing did.
pub(super) async fn be_busy<S, H, C>(
    line: &mut Line<S, C>,
    handler: &H,
    came: bool,
) -> Result<After, Trouble>
where
    S: Stream,
    H: Handler,
    C: Deref<Target = Config>,
{
    let begin = |cx: &mut Context<'_>| {
        let todo = if came { Todo::Next } else { Todo::Leave };
        Poll::Ready(serve_at_once(line, handler, todo, cx))
    };
    let mut buffers = match poll_fn(begin).await? {
        Break(after) => return Ok(after),
        Continue(buffers) => buffers,
    };
    // The first answer of a connection, and of a second: nothing else is waited for.
    if buffers.wants_date() {
        line.seat.read_date(&line.config).await;
        let mut dated = Some(buffers);
        let go_on = |cx: &mut Context<'_>| {
            let buffers = dated.take().expect("it is ready at its first poll");
            Poll::Ready(serve_on(line, handler, buffers, cx))
        };
        buffers = match poll_fn(go_on).await? {
            Break(after) => return Ok(after),
            Continue(buffers) => buffers,
        };
    }
    line.seat.begin().await;
    // In a box: who waits for a request has no room for all that an answer may need.
    Box::pin(serve(line, handler, buffers)).await
}

/// Does what is to be done on a connection as far as it takes no wait. Gives what is needed for the
/// rest.
fn serve_at_once<S, C, H>(
    line: &mut Line<S, C>,
    handler: &H,
    todo: Todo,
    cx: &mut Context<'_>,
) -> Result<ControlFlow<After, Box<Buffers>>, Trouble>
where
    S: Stream,
    C: Deref<Target = Config>,
    H: Handler,
{
    let Line { stream, seat, config } = line;
    seat.waits.set(Waits::Busy);
    let mut buffers = config.pool.take();
    let watch = Watch::new(seat.clone(), !seat.has_asked());
    let wire = RefCell::new(Wire::new(stream, take(&mut buffers.out), watch));
    let inbox = &mut buffers.inbox;
    let mut connection =
        Connection { wire: &wire, inbox, head: Head::REFUSED, answer: None, config };
    let done = connection.go_on_at_once(todo, handler, cx);
    if let Ok(Todo::Over(after)) = done {
        config.pool.give(buffers, wire.into_inner().into_buffer());
        return Ok(Break(after));
    }
    let Connection { head, answer, .. } = connection;
    pause(buffers, wire.into_inner(), head, answer, config, done)
}

/// The same for one that was handed on.
fn serve_on<S, C, H>(
    line: &mut Line<S, C>,
    handler: &H,
    mut buffers: Box<Buffers>,
    cx: &mut Context<'_>,
) -> Result<ControlFlow<After, Box<Buffers>>, Trouble>
where
    S: Stream,
    C: Deref<Target = Config>,
    H: Handler,
{
    let Line { stream, config, .. } = line;
    let (wire, head, answer, todo) = buffers.resume(stream);
    let wire = RefCell::new(wire);
    let inbox = &mut buffers.inbox;
    let mut connection = Connection { wire: &wire, inbox, head, answer, config };
    let done = connection.go_on_at_once(todo, handler, cx);
    let Connection { head, answer, .. } = connection;
    pause(buffers, wire.into_inner(), head, answer, config, done)
}

/// Hands a connection on, or gives back what it had that is busy no longer. Most are not handed on:
/// then nothing of it is to be moved.
#[cold]
fn pause<S>(
    mut buffers: Box<Buffers>,
    wire: Wire<S>,
    head: Head,
    answer: Option<(Response, bool)>,
    config: &Config,
    done: Result<Todo, Trouble>,
) -> Result<ControlFlow<After, Box<Buffers>>, Trouble> {
    match done {
        Ok(Todo::Over(after)) => {
            config.pool.give(buffers, wire.into_buffer());
            Ok(Break(after))
        }
        Ok(todo) => {
            buffers.paused = Some(Paused { wire: wire.over(()), head, answer, todo });
            Ok(Continue(buffers))
        }
        Err(trouble) => {
            config.pool.give(buffers, wire.into_buffer());
            Err(trouble)
        }
    }
}

/// Does the rest.
async fn serve<S, H, C>(
    line: &mut Line<S, C>,
    handler: &H,
    mut buffers: Box<Buffers>,
) -> Result<After, Trouble>
where
    S: Stream,
    H: Handler,
    C: Deref<Target = Config>,
{
    let Line { stream, config, .. } = line;
    let (wire, head, answer, todo) = buffers.resume(stream);
    let wire = RefCell::new(wire);
    let inbox = &mut buffers.inbox;
    let mut connection = Connection { wire: &wire, inbox, head, answer, config };
    let end = connection.go_on(todo, handler).await;
    config.pool.give(buffers, wire.into_inner().into_buffer());
    end
}
