//! The program that made the log. The `at=` of a line names a line of this file.

use std::rc::Rc;
use std::time::Duration;

use kernel::SimClock;
use traps::channel::mpsc;
use traps::sync::Mutex;
use traps::{Error, sleep, spawn};

const MS: Duration = Duration::from_millis(1);

/// Makes the index of a page. A long page takes long.
fn index(cpu: &SimClock, length: u32) {
    cpu.advance(length * MS);
}

async fn clerk() -> Result<(), Error> {
    for _ in 0..4 {
        sleep(60 * MS).await?;
    }
    Ok(())
}

async fn indexer(
    cpu: SimClock,
    shelf: Rc<Mutex<u32>>,
    mut pages: mpsc::Receiver<u32>,
) -> Result<(), Error> {
    while let Ok(length) = pages.recv().await {
        index(&cpu, length);
        let mut shelf = shelf.lock().await?;
        sleep(2 * MS).await?;
        *shelf += 1;
    }
    Ok(())
}

async fn writer(cpu: SimClock, shelf: Rc<Mutex<u32>>) -> Result<(), Error> {
    sleep(230 * MS).await?;
    let shelf = shelf.lock().await?;
    index(&cpu, 12 * *shelf);
    sleep(MS).await?;
    Ok(())
}

pub async fn library(cpu: SimClock) -> Result<(), Error> {
    let shelf = Rc::new(Mutex::named("shelf", 0));
    let (pages, received) = mpsc::named("pages", 2);
    let mut tasks = vec![
        spawn("clerk", clerk()).await,
        spawn("indexer", indexer(cpu.clone(), shelf.clone(), received)).await,
        spawn("writer", writer(cpu, shelf)).await,
    ];
    for length in [3, 7, 190, 5] {
        pages.send(length).await.map_err(Error::from)?;
        sleep(15 * MS).await?;
    }
    drop(pages);
    for task in &mut tasks {
        task.join().await??;
    }
    Ok(())
}
