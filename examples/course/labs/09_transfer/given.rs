//! Given: a slow bank, and four transfers. Three are cancelled, each in another phase.

use std::time::Duration;

use super::kernel::{Error, Interrupt, Kernel, Sim, Task, note, sleep, spawn};

pub const SECOND: Duration = Duration::from_secs(1);

/// Two accounts. A wait that is interrupted has done nothing.
#[derive(Clone, Copy)]
pub struct Bank;

impl Bank {
    /// From here nobody else may use the accounts.
    pub fn lock(self) {
        note("locked");
    }

    /// Whether there is enough.
    pub async fn look_up(self) -> Result<(), Interrupt> {
        sleep(2 * SECOND).await?;
        note("looked up");
        Ok(())
    }

    /// From the one account.
    pub async fn take(self) -> Result<(), Interrupt> {
        sleep(2 * SECOND).await?;
        note("taken");
        Ok(())
    }

    /// To the other account.
    pub async fn give(self) -> Result<(), Interrupt> {
        sleep(2 * SECOND).await?;
        note("given");
        Ok(())
    }

    pub async fn unlock(self) -> Result<(), Interrupt> {
        sleep(SECOND).await?;
        note("unlocked");
        Ok(())
    }
}

async fn customer() {
    if let Err(interrupt) = super::lab::transfer(Bank).await {
        note(format_args!("error {interrupt}"));
    }
}

async fn cancel(task: Task<()>, after: Duration) -> Result<(), Error> {
    sleep(after).await?;
    task.cancel().await?;
    Ok(())
}

async fn main_task() -> Result<(), Error> {
    let mut tasks = Vec::new();
    for (name, seconds) in [("early", 1), ("middle", 3), ("late", 5)] {
        let customer = spawn(name, customer()).await;
        tasks.push(spawn("boss", cancel(customer, seconds * SECOND)).await);
    }
    spawn("calm", customer()).await.join().await?;
    for task in &mut tasks {
        task.join().await??;
    }
    Ok(())
}

pub fn main(_seed: u64) {
    let ran = Kernel::new(Sim::new()).run(main_task());
    ran.expect("the bank answers").expect("nobody cancels `main`");
}
