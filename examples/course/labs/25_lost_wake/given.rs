//! Given: a writer, its readers, and their exploration.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use kernel::Sim;
use testing::Liberty;
use testing::{Setup, explore};
use traps::sync::Event;
use traps::{Error, note, sleep, spawn, yield_now};

use super::lab::{Mailbox, seeds};
use super::scenario::{self, Scenario};

/// The unit of this lab.
#[allow(dead_code, reason = "not every solution uses it")]
pub const MS: Duration = Duration::from_millis(1);

/// What the writer and the readers share, besides the mailbox.
#[derive(Default)]
struct Rest {
    /// The items that no reader has got yet.
    items: RefCell<VecDeque<u32>>,
    /// Set once there is no such item.
    none: Event,
    /// Set when the first reader is to leave.
    leave: Event,
}

async fn write(mailbox: Rc<Mailbox>, rest: Rc<Rest>, scenario: Scenario) -> Result<(), Error> {
    let last = scenario.items.len() - 1;
    for (nth, item) in scenario.items.into_iter().enumerate() {
        if nth % 2 == 0 || !scenario.in_pairs {
            sleep(scenario.every).await?;
        }
        // Main cancels the reader in the next turn: before the reader of the last item runs.
        if nth == last && scenario.leaves == Some(0) {
            rest.leave.set();
        }
        note(format!("put {item}"));
        mailbox.put(item);
    }
    if let Some(turns) = scenario.leaves {
        for _ in 1..turns {
            yield_now().await?;
        }
        rest.leave.set();
    }
    Ok(())
}

/// Gets items until it is cancelled.
async fn read(mailbox: Rc<Mailbox>, rest: Rc<Rest>) -> Result<(), Error> {
    loop {
        let item = mailbox.get().await?;
        let mut items = rest.items.borrow_mut();
        let expected = *items.front().expect("there are as many items");
        // Once a reader has left, `check` looks for the items that were lost with it.
        let place =
            items.iter().position(|it| *it == item && (item == expected || rest.leave.is_set()));
        let place = place.unwrap_or_else(|| {
            panic!("`get` gives {item}, and the first item there is {expected}")
        });
        items.remove(place);
        note(format!("got {item}"));
        if items.is_empty() {
            rest.none.set();
        }
    }
}

async fn both(seed: u64) -> Result<(), Error> {
    let mailbox = Rc::new(Mailbox::default());
    let Scenario { items, readers: count, leaves, .. } = scenario::of(seed);
    let rest = Rc::new(Rest { items: RefCell::new(items.into()), ..Rest::default() });
    let write = write(mailbox.clone(), rest.clone(), scenario::of(seed));
    let mut writer = spawn("writer", write).await;
    let mut readers = VecDeque::new();
    for _ in 0..count {
        readers.push_back(spawn("reader", read(mailbox.clone(), rest.clone())).await);
    }
    if leaves.is_some() {
        rest.leave.wait().await?;
        let leaver = readers.pop_front().expect("there are two");
        leaver.cancel_because("leaves").await?;
    }
    writer.join().await??;
    rest.none.wait().await?;
    for reader in readers {
        reader.cancel_because("done").await?;
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
