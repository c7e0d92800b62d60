//! Yours: a shutdown in phases.

use std::pin::Pin;
use std::rc::Rc;

use super::given::{Connections, DRAIN, State};
use super::kernel::{Error, Interrupt, Task, Time, clock, spawn, timeout_after};

type Open = Vec<(Task<()>, Rc<State>)>;

/// Ends the server. A request that has begun is answered if that takes at most `DRAIN`.
pub async fn shut_down(
    acceptor: Task<Result<(), Interrupt>>,
    connections: Connections,
) -> Result<(), Error> {
    // All together: the acceptor is one of those that can go at once.
    let accepting = spawn("end of accepting", async move { acceptor.cancel().await });
    let mut accepting = accepting.await;
    accepting.join().await??;
    let open = connections.take();
    open.iter().for_each(|(_, state)| state.is_closing.set(true));
    end(open, clock().await + DRAIN).await
}

/// Ends the connections, the last first.
async fn end(mut open: Open, limit: Time) -> Result<(), Error> {
    let Some((mut task, state)) = open.pop() else { return Ok(()) };
    if state.is_idle.get() {
        task.cancel().await?;
        return Box::pin(end(open, limit)).await;
    }
    // The idle ones below it must not wait.
    let rest: Pin<Box<dyn Future<Output = _>>> = Box::pin(end(open, limit));
    let mut rest = spawn("rest", rest).await;
    let left = limit.since(clock().await);
    if timeout_after(left, task.join()).await.is_err() {
        task.cancel().await?;
    }
    rest.join().await?
}
