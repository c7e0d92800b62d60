//! Given: a writer, a reader, and their exploration.

use std::rc::Rc;
use std::time::Duration;

use kernel::Sim;
use testing::{Setup, explore};
use traps::liberty::Liberty;
use traps::{Error, note, sleep, spawn};

use super::lab::{Mailbox, seeds};

pub const MS: Duration = Duration::from_millis(1);

async fn write(mailbox: Rc<Mailbox>) -> Result<(), Error> {
    for item in 1..=3 {
        sleep(5 * MS).await?;
        note(format!("put {item}"));
        mailbox.put(item);
    }
    Ok(())
}

async fn read(mailbox: Rc<Mailbox>) -> Result<(), Error> {
    for _ in 1..=3 {
        let item = mailbox.get().await?;
        note(format!("got {item}"));
    }
    Ok(())
}

async fn both() -> Result<(), Error> {
    let mailbox = Rc::new(Mailbox::default());
    let mut writer = spawn("writer", write(mailbox.clone())).await;
    let mut reader = spawn("reader", read(mailbox)).await;
    writer.join().await??;
    reader.join().await?
}

/// Prints the log of the first failure, or of the plain run if there is none; and, in remarks, how
/// many seeds there were and what is wrong.
pub fn main(_seed: u64) {
    let seeds = seeds();
    let count = seeds.clone().count();
    let program = || (Setup::new().sim(Sim::new()).limit(2_000), both());
    // First come, first served: that is a promise of the kernel, and the mailbox may rely on it.
    let found = explore(seeds, program).without(Liberty::Order).find();
    match found {
        Some(found) => {
            print!("{}", found.trace);
            println!("# found {}", found.to_string().replace('\n', "\n# "));
        }
        None => print!("{}", Setup::new().run(both()).trace),
    }
    println!("# seeds {count}");
}
