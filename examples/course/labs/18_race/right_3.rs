//! The value is the end of the sender itself: an event, and a cell that both share.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use kernel::SimClock;
use traps::sync::Event;
use traps::{Error, spawn, timeout_after, yield_now};

use super::given::{Question, compute};

pub async fn ask(cpu: SimClock, patience: Duration, question: Question) -> Result<u32, Error> {
    let shared = Rc::new((Event::new(), Cell::new(None)));
    let theirs = Rc::clone(&shared);
    let sender = async move {
        // The asker waits by then.
        yield_now().await?;
        theirs.1.set(Some(question.answer()));
        theirs.0.set();
        compute(&cpu, patience);
        Ok::<_, Error>(())
    };
    spawn("sender", sender).detached().await;
    timeout_after(patience, async { shared.0.wait().await }).await?;
    Ok(shared.1.take().expect("the event says that it is there"))
}
