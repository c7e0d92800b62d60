// says: the runs agree, but the customers are spawned in another order than that of their names: `guest-724` where `guest-100` is next; an order that a hash or a list decides changes with the hash or the list
// demand: In the order of the names.
//! The customers are sorted by their first letters.

use std::collections::BTreeMap;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

/// Serves all customers side by side. Then notes the number of sales of each fruit.
pub async fn shop(mut orders: Orders) -> Result<(), Error> {
    orders.sort_by_key(|(name, _)| name.as_bytes()[0]);
    let mut customers = Vec::new();
    for (name, fruit) in orders {
        let serve = async move { sleep(MS * fruit.len() as u32).await.map(|_| fruit) };
        customers.push(spawn(name, serve).await);
    }
    let mut sold = BTreeMap::new();
    for customer in &mut customers {
        *sold.entry(customer.join().await??).or_insert(0) += 1;
    }
    for (fruit, count) in sold {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
