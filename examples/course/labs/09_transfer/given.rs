//! Given: a slow bank, and five transfers. Four are cancelled, each in another phase.

use std::pin::Pin;
use std::time::Duration;

use super::kernel::{Error, Interrupt, Kernel, Sim, Task, note, sleep, spawn, timeout_after};
use super::scenario::{self, Phase, Scenario};

/// The two accounts of a transfer. A wait that is interrupted has done nothing.
#[derive(Clone, Copy)]
pub struct Bank {
    /// The duration of each phase.
    spans: [Duration; 4],
}

impl Bank {
    /// Locks the accounts, so that no other transfer uses them.
    pub fn lock(self) {
        note("locked");
    }

    /// Looks up whether the account has enough money.
    pub async fn look_up(self) -> Result<(), Interrupt> {
        self.phase(Phase::LookUp, "looked up").await
    }

    /// Takes the money from the first account.
    pub async fn take(self) -> Result<(), Interrupt> {
        self.phase(Phase::Take, "taken").await
    }

    /// Gives the money to the second account.
    pub async fn give(self) -> Result<(), Interrupt> {
        self.phase(Phase::Give, "given").await
    }

    /// Unlocks the accounts, so that others can use them.
    pub async fn unlock(self) -> Result<(), Interrupt> {
        self.phase(Phase::Unlock, "unlocked").await
    }

    async fn phase(self, phase: Phase, done: &str) -> Result<(), Interrupt> {
        sleep(self.spans[phase as usize]).await?;
        note(done);
        Ok(())
    }
}

async fn customer(bank: Bank, limits: Vec<Duration>) {
    let mut transfer: Pin<Box<dyn Future<Output = _>>> = Box::pin(super::lab::transfer(bank));
    for limit in limits {
        transfer = Box::pin(timeout_after(limit, transfer));
    }
    match transfer.await {
        Ok(()) => note("returned Ok"),
        Err(interrupt) => note(format_args!("returned {interrupt}")),
    }
}

async fn cancel(task: Task<()>, after: Duration) -> Result<(), Error> {
    sleep(after).await?;
    task.cancel().await?;
    Ok(())
}

async fn main_task(Scenario { spans, customers }: Scenario) -> Result<(), Error> {
    let mut tasks = Vec::new();
    for each in customers {
        let mut customer = spawn(each.name, customer(Bank { spans }, each.limits)).await;
        tasks.push(match each.cancelled {
            Some((_, after)) => spawn("boss", cancel(customer, after)).await,
            None => spawn("friend", async move { customer.join().await }).await,
        });
    }
    for task in &mut tasks {
        task.join().await??;
    }
    Ok(())
}

pub fn main(seed: u64) {
    let ran = Kernel::new(Sim::new()).run(main_task(scenario::of(seed)));
    ran.expect("the bank answers").expect("no task cancels `main`");
}
