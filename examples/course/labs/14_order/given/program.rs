//! The program that made the log. The `at=` of a line names a line of this file.

use std::rc::Rc;
use std::time::Duration;

use traps::sync::Event;
use traps::{Error, sleep, spawn};

const MS: Duration = Duration::from_millis(1);

pub async fn bakery() -> Result<(), Error> {
    let bread = Rc::new(Event::named("bread"));
    let theirs = bread.clone();
    let baker = async move {
        sleep(200 * MS).await?;
        theirs.set();
        sleep(300 * MS).await
    };
    let mut baker = spawn("baker", baker).await;
    bread.wait().await?;
    sleep(100 * MS).await?;
    baker.join().await??;
    Ok(())
}
