// says: the runs agree, but the task `al` does not serve its customer: it is to sleep 5ms for the plums
// demand: Side by side.
//! Tasks that do nothing; the shop serves before it spawns them.

use std::collections::BTreeMap;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

pub async fn shop(orders: Orders) -> Result<(), Error> {
    let mut sold = BTreeMap::new();
    for (name, fruit) in orders.into_iter().collect::<BTreeMap<_, _>>() {
        sleep(MS * fruit.len() as u32).await?;
        *sold.entry(fruit).or_insert(0) += 1;
        spawn(name, async {}).detached().await;
    }
    for (fruit, count) in sold {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
