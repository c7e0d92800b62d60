//! A shutdown in phases: close, drain, cancel, drop.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::http::State;
use super::kernel::{Error, Task, note, timeout_after};

/// The limit for requests that have begun.
const DRAIN: Duration = Duration::from_secs(10);
/// The limit for the clean-up of cancelled connections.
const GRACE: Duration = Duration::from_secs(5);

/// The connections that have not ended, by their numbers.
pub type Connections = Rc<RefCell<BTreeMap<u32, (Task<()>, Rc<State>)>>>;

pub async fn shut_down<T: 'static>(
    acceptor: Task<T>,
    connections: Connections,
) -> Result<(), Error> {
    note("phase close: no new connections");
    acceptor.cancel().await?;
    let mut open: Vec<_> = connections.take().into_values().collect();
    for (task, state) in &open {
        state.is_closing.set(true);
        if state.is_idle.get() {
            task.cancel().await?;
        }
    }
    note(format_args!("phase drain: {} connections", open.len()));
    let drained = timeout_after(DRAIN, async {
        for (task, _) in &mut open {
            task.join().await?;
        }
        Ok::<_, Error>(())
    });
    if drained.await.is_err() {
        note("phase cancel: the rest has 5 s");
        let cancelled = timeout_after(GRACE, async {
            for (task, _) in &open {
                task.cancel().await?;
            }
            Ok::<_, Error>(())
        });
        if cancelled.await.is_err() {
            note("phase drop");
        }
    }
    Ok(())
}
