//! A kitchen with one oven: the program that wrote `oven.trace`.

use std::rc::Rc;
use std::time::Duration;

use traps::sync::Mutex;
use traps::{Error, note, sleep, spawn, timeout_after};

const SECOND: Duration = Duration::from_secs(1);

type Oven = Rc<Mutex<()>>;

/// Arrives after `walk` seconds, and uses the oven for `bake` seconds.
async fn cook(oven: Oven, walk: u32, bake: u32) -> Result<(), Error> {
    if walk > 0 {
        sleep(walk * SECOND).await?;
    }
    let _oven = oven.lock().await?;
    sleep(bake * SECOND).await?;
    Ok(())
}

/// Arrives after a second, and waits for the oven for two seconds at most.
async fn impatient(oven: Oven) -> Result<(), Error> {
    sleep(SECOND).await?;
    if timeout_after(2 * SECOND, oven.lock()).await.is_err() {
        note("cold");
    }
    Ok(())
}

pub async fn kitchen() -> Result<(), Error> {
    let oven = Oven::new(Mutex::named("oven", ()));
    let mut cooks = vec![
        spawn("bread", cook(oven.clone(), 0, 5)).await,
        spawn("supper", impatient(oven.clone())).await,
        spawn("cake", cook(oven.clone(), 2, 3)).await,
        spawn("pizza", cook(oven, 4, 1)).await,
    ];
    for cook in &mut cooks {
        cook.join().await??;
    }
    Ok(())
}
