//! Given: a writer, a reader, and their exploration.

use std::rc::Rc;
use std::time::Duration;

use kernel::Sim;
use testing::Liberty;
use testing::{Setup, explore};
use traps::{Error, note, sleep, spawn};

use super::lab::{Mailbox, seeds};
use super::scenario::{self, Scenario};

/// The unit of this lab.
#[allow(dead_code, reason = "not every solution uses it")]
pub const MS: Duration = Duration::from_millis(1);

async fn write(mailbox: Rc<Mailbox>, scenario: Scenario) -> Result<(), Error> {
    for (nth, item) in scenario.items.into_iter().enumerate() {
        if nth % 2 == 0 || !scenario.in_pairs {
            sleep(scenario.every).await?;
        }
        note(format!("put {item}"));
        mailbox.put(item);
    }
    Ok(())
}

async fn read(mailbox: Rc<Mailbox>, items: Vec<u32>) -> Result<(), Error> {
    for expected in items {
        let item = mailbox.get().await?;
        assert!(item == expected, "`get` gives {item}, and the first item there is {expected}");
        note(format!("got {item}"));
    }
    Ok(())
}

async fn both(seed: u64) -> Result<(), Error> {
    let mailbox = Rc::new(Mailbox::default());
    let mut writer = spawn("writer", write(mailbox.clone(), scenario::of(seed))).await;
    let mut reader = spawn("reader", read(mailbox, scenario::of(seed).items)).await;
    writer.join().await??;
    reader.join().await?
}

/// Prints the log of the first failure or, without a failure, of the plain run. Remarks show the
/// number of seeds, and the failure.
pub fn main(seed: u64) {
    let seeds = seeds();
    let count = seeds.clone().count();
    let program = || (Setup::new().sim(Sim::new()).limit(2_000), both(seed));
    // The kernel promises first come, first served, so the mailbox can rely on this order.
    let found = explore(seeds, program).without(Liberty::Order).find();
    match found {
        Some(found) => {
            print!("{}", found.trace);
            println!("# found {}", found.to_string().replace('\n', "\n# "));
        }
        None => print!("{}", Setup::new().run(both(seed)).trace),
    }
    println!("# seeds {count}");
}
