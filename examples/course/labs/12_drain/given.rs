//! Given: a server with connections of all kinds, on the virtual clock.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::kernel::{Error, Interrupt, Kernel, Sim, Task, note, sleep, spawn};

/// For requests that have begun.
pub const DRAIN: Duration = Duration::from_secs(10);

fn tenths(n: u32) -> Duration {
    Duration::from_millis(100) * n
}

/// What a connection and the shutdown tell each other.
#[derive(Default)]
pub struct State {
    /// It waits for a request, and none has begun.
    pub is_idle: Cell<bool>,
    /// The answer to this request is the last.
    pub is_closing: Cell<bool>,
}

/// The connections that were accepted.
pub type Connections = Rc<RefCell<Vec<(Task<()>, Rc<State>)>>>;

/// Requests, one after the other: each comes after a pause, and needs some time. In tenths.
type Requests = &'static [(u32, u32)];

async fn serve(state: Rc<State>, requests: Requests) -> Result<(), Interrupt> {
    for (number, (pause, work)) in (1..).zip(requests) {
        state.is_idle.set(true);
        sleep(tenths(*pause)).await?;
        state.is_idle.set(false);
        note(format_args!("begin {number}"));
        if let Err(interrupt) = sleep(tenths(*work)).await {
            sleep(tenths(10)).await?;
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
    let connection = serve(state.clone(), requests);
    let task = spawn(name, async { _ = connection.await }).await;
    connections.borrow_mut().push((task, state));
}

async fn accept(connections: Connections) -> Result<(), Interrupt> {
    for number in 1..=4 {
        sleep(tenths(17)).await?;
        connect(&connections, &format!("late-{number}"), &[(5, 10)]).await;
    }
    sleep(tenths(36_000)).await?;
    Ok(())
}

async fn main_task() -> Result<(), Error> {
    let connections = Connections::default();
    connect(&connections, "idle", &[(10, 5), (595, 10)]).await;
    connect(&connections, "busy", &[(10, 40)]).await;
    connect(&connections, "chatty", &[(10, 20), (5, 20), (5, 20), (5, 20), (5, 20)]).await;
    connect(&connections, "stuck", &[(10, 600)]).await;
    let acceptor = spawn("acceptor", accept(connections.clone())).await;
    sleep(tenths(20)).await?;
    note("shutdown");
    super::lab::shut_down(acceptor, connections).await?;
    note("over");
    Ok(())
}

pub fn main(_seed: u64) {
    let ran = Kernel::new(Sim::new()).run(main_task());
    ran.expect("everybody ends").expect("nobody cancels `main`");
}
