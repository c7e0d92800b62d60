//! How a handler is run: what it does not do for itself is done beside it.
//!
//! It may not look at the answer.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

use traps::threads::into_panic_message;
use traps::{Interruptible, Kind, note_warning, shield};

use super::config::Config;
use super::connections::Entry;
use super::gone::Gone;
use super::handler::Handler;
use super::request::Request;
use super::response::Response;
use super::transport::Transport;
use crate::limits::LEFT;
use crate::stream::Stream;

/// Has a request answered by its handler. Whenever the handler waits for something other than this
/// client:
///
/// - Answers before its own go out: they are not held back.
/// - Its deadline runs, anew after each read from the client and each write to it. While it waits
///   for the client, the deadline of that wait runs instead.
/// - The client is watched for its end. Once it has left, the handler has a moment to finish, for a
///   client that has only closed its sending side.
///
/// A handler whose time is over is cancelled by the deadline of the connection: what it waits for
/// is interrupted. A panic becomes an error, with a line in the log: what the handler owned was
/// dropped by then, its borrows of the transport too, so the connection can still answer.
pub(super) async fn handle<S: Stream, H: Handler>(
    handler: &H,
    request: &mut Request<'_, S>,
    entry: &Entry,
) -> io::Result<Response> {
    let (transport, config) = (request.writer.transport, request.writer.config);
    let mut work = pin!(handler.handle(request));
    // Most handlers are done at once.
    if let Poll::Ready(outcome) = poll_once(work.as_mut()).await {
        return outcome;
    }
    let mut watch = Watch { config, entry, runs: false, left: false };
    Box::pin(async {
        loop {
            watch.until_woken(transport).await;
            if let Poll::Ready(outcome) = poll_once(work.as_mut()).await {
                return watch.end(outcome);
            }
        }
    })
    .await
}

/// Polls a handler's work once.
fn poll_once<W>(mut work: Pin<&mut W>) -> impl Future<Output = Poll<W::Output>>
where
    W: Future<Output = io::Result<Response>>,
{
    poll_fn(move |cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        Poll::Ready(polled.unwrap_or_else(|panic| {
            note_warning(format!("a handler panicked: {}", into_panic_message(panic)));
            Poll::Ready(Err(io::Error::other(Gone::Panicked)))
        }))
    })
}

/// What goes on beside a handler that waits.
struct Watch<'w> {
    config: &'w Config,
    entry: &'w Entry,
    /// The deadline of the connection is that of the handler now.
    runs: bool,
    /// The client has left.
    left: bool,
}

#[allow(clippy::await_holding_refcell_ref, reason = "it is given back before the handler runs")]
impl Watch<'_> {
    /// Waits until the task is woken, for whatever reason.
    async fn until_woken<S: Stream>(&mut self, transport: &RefCell<Transport<S>>) {
        let Ok(mut transport) = transport.try_borrow_mut() else {
            // The handler waits for the client.
            self.runs = false;
            return pause().await;
        };
        self.runs &= !std::mem::take(&mut transport.progress);
        if !self.runs {
            self.run();
        }
        transport.flush_beside().await;
        if self.left || self.config.half_close {
            drop(transport);
            return pause().await;
        }
        // What interrupts the handler is not for this wait.
        let mut closed = pin!(shield(transport.closed()));
        let mut is_woken = false;
        let left = poll_fn(|cx| match closed.as_mut().poll(cx) {
            // One that fails is closed too.
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if is_woken => Poll::Ready(false),
            Poll::Pending => {
                is_woken = true;
                Poll::Pending
            }
        });
        if left.await {
            self.left = true;
            self.entry.leaves.set(true);
            self.run();
        }
    }

    /// Lets the handler's time begin.
    fn run(&mut self) {
        let span = self.config.deadlines.handler;
        let span = if self.left { span.min(LEFT) } else { span };
        self.entry.deadline().phase("handler");
        self.entry.deadline().arm(self.entry.now() + span);
        self.runs = true;
    }

    /// What the handler came to.
    fn end(&self, outcome: io::Result<Response>) -> io::Result<Response> {
        let is_over = self.runs && self.entry.deadline().fired();
        self.entry.deadline().disarm();
        let gone = |why| Err(io::Error::new(io::ErrorKind::TimedOut, why));
        match outcome {
            Err(error) if is_cancelled(&error) => Err(error),
            Ok(_) | Err(_) if is_over && self.left => gone(Gone::Left),
            Err(_) if is_over => gone(Gone::Late),
            outcome => outcome,
        }
    }
}

fn is_cancelled(error: &io::Error) -> bool {
    error.interrupt().is_some_and(|interrupt| interrupt.kind() == Kind::Cancelled)
}

/// Waits until the task is woken.
async fn pause() {
    let mut is_woken = false;
    poll_fn(
        |_| if std::mem::replace(&mut is_woken, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}
