//! Given: a writer, its readers, and their exploration.

use std::cell::RefCell;
use std::collections::VecDeque;
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

/// Gets this number of items. `rest` is what the readers have not got yet.
async fn read(
    mailbox: Rc<Mailbox>,
    rest: Rc<RefCell<VecDeque<u32>>>,
    count: usize,
) -> Result<(), Error> {
    for _ in 0..count {
        let item = mailbox.get().await?;
        let expected = rest.borrow_mut().pop_front().expect("there are as many items");
        assert!(item == expected, "`get` gives {item}, and the first item there is {expected}");
        note(format!("got {item}"));
    }
    Ok(())
}

async fn both(seed: u64) -> Result<(), Error> {
    let mailbox = Rc::new(Mailbox::default());
    let Scenario { items, readers: count, .. } = scenario::of(seed);
    let each = items.len() / count;
    let rest = Rc::new(RefCell::new(VecDeque::from(items)));
    let mut writer = spawn("writer", write(mailbox.clone(), scenario::of(seed))).await;
    let mut readers = Vec::new();
    for _ in 0..count {
        readers.push(spawn("reader", read(mailbox.clone(), rest.clone(), each)).await);
    }
    writer.join().await??;
    for reader in &mut readers {
        reader.join().await??;
    }
    Ok(())
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
