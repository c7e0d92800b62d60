// says: the runs agree, but the log has no note `sold apples 53`
// demand: Each fruit once.
//! The fruits of the page, in the order of their names.

use std::collections::{BTreeMap, HashMap};

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

const FRUITS: [&str; 5] = ["cherries", "figs", "pears", "plums", "quinces"];

/// Serves all customers side by side. Then notes the number of sales of each fruit.
pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: BTreeMap<_, _> = orders.into_iter().collect();
    let mut customers = Vec::new();
    for (name, fruit) in orders {
        let serve = async move { sleep(MS * fruit.len() as u32).await.map(|_| fruit) };
        customers.push(spawn(name, serve).await);
    }
    let mut sold = HashMap::new();
    for customer in &mut customers {
        *sold.entry(customer.join().await??).or_insert(0) += 1;
    }
    for fruit in FRUITS {
        if let Some(count) = sold.get(fruit) {
            note(format!("sold {fruit} {count}"));
        }
    }
    Ok(())
}
