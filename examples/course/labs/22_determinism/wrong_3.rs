// says: the runs agree, but the log has no task `al`: the customers are to be served side by side, each by a task of that name
// demand: A task for each customer.
//! No tasks at all: what does not run side by side cannot differ.

use std::collections::BTreeMap;

use traps::{Error, note, sleep};

use super::given::{MS, Orders};

pub async fn shop(orders: Orders) -> Result<(), Error> {
    let mut sold = BTreeMap::new();
    for (_, fruit) in orders {
        sleep(MS * fruit.len() as u32).await?;
        *sold.entry(fruit).or_insert(0) += 1;
    }
    for (fruit, count) in sold {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
