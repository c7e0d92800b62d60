//! Given: a server with connections of all kinds, on the virtual clock.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::kernel::{Error, Interrupt, Kernel, Sim, Task, note, sleep, spawn};
pub use super::scenario::DRAIN;
use super::scenario::{self, CLEAN_UP, Requests, Scenario, tenths};

/// The state that a connection and the shutdown share.
#[derive(Default)]
pub struct State {
    /// Whether the connection waits for a request that has not begun.
    pub is_idle: Cell<bool>,
    /// Whether the answer to this request is the last.
    pub is_closing: Cell<bool>,
}

/// The connections that were accepted.
pub type Connections = Rc<RefCell<Vec<(Task<()>, Rc<State>)>>>;

async fn serve(state: Rc<State>, requests: Requests) -> Result<(), Interrupt> {
    for (number, (pause, work)) in (1..).zip(requests) {
        state.is_idle.set(true);
        sleep(tenths(pause)).await?;
        state.is_idle.set(false);
        note(format_args!("begin {number}"));
        if let Err(interrupt) = sleep(tenths(work)).await {
            sleep(CLEAN_UP).await?;
            note("cleaned up");
            return Err(interrupt);
        }
        note(format_args!("answer {number}"));
        if state.is_closing.get() {
            break;
        }
    }
    Ok(())
}

async fn connect(connections: &Connections, name: &str, requests: Requests) {
    let state = Rc::<State>::default();
    // From the start, the connection waits for a request.
    state.is_idle.set(true);
    let connection = serve(state.clone(), requests);
    let task = spawn(name, async { _ = connection.await }).await;
    connections.borrow_mut().push((task, state));
}

async fn accept(
    connections: Connections,
    every: Duration,
    requests: Requests,
) -> Result<(), Interrupt> {
    for number in 1..=4 {
        sleep(every).await?;
        connect(&connections, &format!("late-{number}"), requests.clone()).await;
    }
    sleep(Duration::from_secs(3600)).await?;
    Ok(())
}

async fn main_task(scenario: Scenario) -> Result<(), Error> {
    let connections = Connections::default();
    for (name, requests) in scenario.connections {
        connect(&connections, name, requests).await;
    }
    let acceptor = accept(connections.clone(), tenths(scenario.every), scenario.late);
    let acceptor = spawn("acceptor", acceptor).await;
    sleep(scenario.shutdown).await?;
    note("shutdown");
    super::lab::shut_down(acceptor, connections).await?;
    note("over");
    Ok(())
}

pub fn main(seed: u64) {
    let ran = Kernel::new(Sim::new()).run(main_task(scenario::of(seed)));
    ran.expect("all connections end").expect("no task cancels `main`");
}
