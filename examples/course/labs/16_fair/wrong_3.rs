// says: line #0096: item 1 was done by task 5 `item`; the items are the work of task 4 `pump`, and tasks of their own would all run in the same turn, before the kernel looks at its timers
// demand: `pump` does all items itself.
//! Yours: the task `pump`.

use std::rc::Rc;

use traps::channel::mpsc::Receiver;
use traps::{Error, spawn};

use super::given::Bench;

/// Works on each item, in their order, until the sender is gone.
pub async fn pump(mut items: Receiver<u32>, bench: Bench) -> Result<(), Error> {
    let bench = Rc::new(bench);
    let mut tasks = Vec::new();
    while let Ok(item) = items.recv().await {
        let bench = Rc::clone(&bench);
        tasks.push(spawn("item", async move { bench.work(item) }).await);
    }
    for task in &mut tasks {
        task.join().await?;
    }
    Ok(())
}
